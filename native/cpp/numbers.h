// Numbers in extended range: a mantissa near 1 and a whole exponent, in a vector each.
//
// Powers and quotients of such numbers stay in range whatever they are. Compiler vectors: the same
// text serves SSE2, AVX2, AVX-512 and NEON, by VECTOR_BYTES; of AVX-512's own instructions there is
// one, in `join`, which does what takes eight others.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "polynomials.h"

#ifndef VECTOR_BYTES
#define VECTOR_BYTES 16
#endif
#define MEMBER inline __attribute__((always_inline))
#define INLINE static MEMBER

template <class T> struct Type;

template <> struct Type<float> {
  typedef float V __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t I __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint32_t U __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t Bits;
  static constexpr int digits = 23, bias = 127;
  static constexpr int fraction = 12;  // bits of a factor that multiply exponents exactly
  static constexpr Bits one = 0x3f800000, root = 0x3f3504f3, rounder_bits = 0x4b400000;
  static constexpr float rounder = 0x1.8p23f;
  static constexpr float none = -0x1p20f, limit = 0x1p12f;
};

template <> struct Type<double> {
  typedef double V __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t I __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint64_t U __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t Bits;
  static constexpr int digits = 52, bias = 1023;
  static constexpr int fraction = 26;
  static constexpr Bits one = 0x3ff0000000000000, root = 0x3fe6a09e667f3bcd,
                        rounder_bits = 0x4338000000000000;
  static constexpr double rounder = 0x1.8p52;
  static constexpr double none = -0x1p40, limit = 0x1p26;
};

template <class T> using Vector = typename Type<T>::V;
template <class T> using Mask = typename Type<T>::I;
template <class T> constexpr int lanes = VECTOR_BYTES / sizeof(T);
// The smallest normal number is 2^lowest.
template <class T> constexpr int lowest = 1 - Type<T>::bias;

template <class T> INLINE Vector<T> all(T x) { return x - Vector<T>{}; }
// 0, 1, 2, ...: the numbers of the lanes.
template <class T> INLINE Mask<T> count_up() {
  Mask<T> lane{};
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; i++) lane[i] = i;
  return lane;
}
template <class V> INLINE V largest(V a, V b) { return a > b ? a : b; }
template <class V> INLINE V smallest(V a, V b) { return a < b ? a : b; }

template <class I> INLINE bool any(I mask) {
  int64_t parts[sizeof(I) / 8], found = 0;
  memcpy(parts, &mask, sizeof mask);
  for (int64_t part : parts) found |= part;
  return found != 0;
}

template <class T> INLINE Vector<T> load(const T *from) {
  Vector<T> x;
  memcpy(&x, from, sizeof x);
  return x;
}
template <class T> INLINE void store(T *to, Vector<T> x) { memcpy(to, &x, sizeof x); }

// The first `count` numbers, if fewer than a vector has; `rest` in place of the others.
template <class T> INLINE Vector<T> load_some(const T *from, int64_t count, T rest) {
  if (count >= lanes<T>) return load(from);
  Vector<T> x = all<T>(rest);
  for (int64_t lane = 0; lane < count; lane++) x[lane] = from[lane];
  return x;
}
template <class T> INLINE void store_some(T *to, Vector<T> x, int64_t count) {
  if (count >= lanes<T>) return store(to, x);
  for (int64_t lane = 0; lane < count; lane++) to[lane] = x[lane];
}

// The numbers of two vectors at some places, of which only the last bits count.
template <class V, class I> INLINE V look_up(V low, V high, I places) {
#if defined(__clang__)
  constexpr int n = sizeof(V) / sizeof(low[0]);
  V found = low;
  for (int lane = 0; lane < n; lane++) {
    auto place = places[lane] & (2 * n - 1);
    found[lane] = place < n ? low[place] : high[place - n];
  }
  return found;
#else
  return __builtin_shuffle(low, high, places);
#endif
}

// The largest number of a vector: each half is compared with the other, then quarters and so on.
template <class T> INLINE T largest_of(Vector<T> x) {
#pragma GCC unroll 4
  for (int half = lanes<T> / 2; half; half /= 2)
    x = largest(x, look_up(x, x, count_up<T>() ^ (typename Type<T>::Bits)half));
  return x[0];
}
template <class T> INLINE T smallest_of(Vector<T> x) { return -largest_of<T>(-x); }

template <class T> INLINE Vector<T> nearest_whole(Vector<T> x) {
  return (x + Type<T>::rounder) - Type<T>::rounder;
}

// An exponent below every other stands for the number 0.
template <class T> INLINE Mask<T> is_none(Vector<T> exponent) {
  return exponent < Type<T>::none / 2;
}

// Whether an exponent is of a number, but too large or too small for exact products.
template <class T> INLINE Mask<T> is_far(Vector<T> exponent) {
  return ((exponent > Type<T>::limit) | (exponent < -Type<T>::limit)) & ~is_none<T>(exponent);
}

// Whether x is a number above 0 with all its digits: by its bits, which nothing flushes.
template <class T> INLINE Mask<T> is_normal(Vector<T> x) {
  typedef Type<T> P;
  constexpr typename P::Bits least = (typename P::Bits)1 << P::digits;
  return ((Mask<T>)x >= least) & ((Mask<T>)x < (2 * P::bias + 1) * least);
}

// x > 0, normal: x = mantissa 2^exponent, mantissa from sqrt(1/2) to sqrt(2).
template <class T>
INLINE void split(Vector<T> x, Vector<T> &mantissa, Vector<T> &exponent) {
  typedef Type<T> P;
  typedef typename P::I I;
  typedef typename P::U U;
  U biased = (U)((I)x + (P::one - P::root)) >> P::digits;
  mantissa = (Vector<T>)((I)x - (I)((U)((I)biased - P::bias) << P::digits));
  exponent = (Vector<T>)((I)biased + P::rounder_bits) - (P::rounder + (T)P::bias);
}

// mantissa 2^exponent as an ordinary number: 0 below the smallest normal one, infinity above 2^125
// at the earliest (2^127 for a mantissa below sqrt(2)).
#if defined(__AVX512F__) && VECTOR_BYTES == 64
template <class T>
INLINE Vector<T> join(Vector<T> mantissa, Vector<T> exponent, int = 0) {
  // With a mask of all numbers: the other form has gcc 12 warn of what is not there.
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_maskz_scalef_ps((__mmask16)-1, (__m512)mantissa, (__m512)exponent);
  else return (Vector<T>)_mm512_maskz_scalef_pd((__mmask8)-1, (__m512d)mantissa, (__m512d)exponent);
}
#else
template <class T>
INLINE Vector<T> join(Vector<T> mantissa, Vector<T> exponent,
                      int highest = Type<T>::bias - 2) {
  typedef Type<T> P;
  typedef typename P::I I;
  typedef typename P::U U;
  I whole = (I)(exponent + P::rounder);  // its low bits; the shift drops the others
  Vector<T> joined = (Vector<T>)((U)mantissa + ((U)whole << P::digits));
  joined = exponent > (T)lowest<T> ? joined : Vector<T>{};
  return exponent > (T)highest ? all<T>((T)INFINITY) : joined;
}
#endif

// mantissa 2^exponent below the normal numbers, rounded to the nearest; made of bits, because such
// numbers are taken for 0 while anything is computed.
template <class T> static T join_tiny(T mantissa, T exponent) {
  typedef Type<T> P;
  typename P::Bits bits;
  memcpy(&bits, &mantissa, sizeof bits);
  constexpr typename P::Bits one = (typename P::Bits)1 << P::digits;
  int64_t shift = lowest<T> - (int64_t)exponent - ((bits >> P::digits) - P::bias);
  bits = (bits & (one - 1)) | one;
  if (shift > P::digits + 1) return 0;
  if (shift > 0) bits = (bits + ((typename P::Bits)1 << (shift - 1))) >> shift;
  T joined;
  memcpy(&joined, &bits, sizeof bits);
  return joined;
}

// Sum of c[i] x^i: even and odd terms apart, which halves the wait for one another.
template <class T, int n> INLINE Vector<T> polynomial(Vector<T> x, const T (&c)[n]) {
  constexpr int even = (n - 1) / 2 * 2, odd = n / 2 * 2 - 1;
  Vector<T> square = x * x, first = all<T>(c[even]), second = all<T>(c[odd]);
#pragma GCC unroll 16
  for (int i = even - 2; i >= 0; i -= 2) first = first * square + c[i];
#pragma GCC unroll 16
  for (int i = odd - 2; i >= 1; i -= 2) second = second * square + c[i];
  return second * x + first;
}

// log2(1 + x) for x such that 1 + x is a mantissa, with all digits where x is small.
INLINE Vector<float> log2_of_one_plus(Vector<float> x) {
  return x * polynomial<float>(x, log2_of_float);
}
INLINE Vector<double> log2_of_one_plus(Vector<double> x) {
  Vector<double> quotient = x / (x + 2.0);
  return quotient * polynomial<double>(quotient * quotient, log2_of_double);
}
INLINE Vector<float> log2_of(Vector<float> m) { return log2_of_one_plus(m - 1.0f); }
INLINE Vector<double> log2_of(Vector<double> m) { return log2_of_one_plus(m - 1.0); }

// 2^x - 1 for x from -1/2 to 1/2, with all digits where x is small.
INLINE Vector<float> exp2_minus_one(Vector<float> x) {
  return x * polynomial<float>(x, exp2_of_float);
}
INLINE Vector<double> exp2_minus_one(Vector<double> x) {
  return x * polynomial<double>(x, exp2_of_double);
}
template <class V> INLINE V exp2_of(V x) { return exp2_minus_one(x) + 1; }

// A factor of exponents in two parts: the product of the first with a whole number within
// `limit` is exact, so that what is left after the whole part loses nothing.
template <class T> struct Factor {
  T whole, high, low;
  explicit Factor(double x) : whole((T)x) {
    double unit = std::ldexp(1.0, Type<T>::fraction);
    high = (T)(std::nearbyint(x * unit) / unit);
    low = (T)(x - (double)high);
  }
};

// (2^(exponent + log2_mantissa))^factor = 2^(raised + fraction), fraction from -1/2 to 1/2.
template <class T>
INLINE void raise(Vector<T> exponent, Vector<T> log2_mantissa, Factor<T> factor,
                  Vector<T> &fraction, Vector<T> &raised) {
  Vector<T> rest = factor.low * exponent + factor.whole * log2_mantissa;
  raised = nearest_whole<T>(factor.high * exponent + rest);
  fraction = (factor.high * exponent - raised) + rest;
}
