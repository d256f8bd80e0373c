// Weighted power means of many numbers in one pass: fixed points of kernels that move no mass.
#pragma once
#include "numbers.h"

template <class T> struct Mean {
  int64_t n_models, n_rows, n_labels;
  const T *values;     // (n_models, n_rows, n_labels)
  int64_t model_step;  // from one model to the next; rows follow each other
  const T *weights;
  int64_t weight_steps[3];     // over models, rows and labels; 0 where they do not differ
  double order, exponent;      // (sum of w x^order)^exponent; order 0: the geometric mean
  const T *near_one, *of_two;  // see `Powers`; or null
  T *means;                    // (n_rows, n_labels)

  MEMBER Vector<T> value(int64_t model, int64_t row, int64_t j) const {
    return load_some<T>(values + model * model_step + row * n_labels + j, n_labels - j, 1);
  }
  MEMBER Vector<T> weight(int64_t model, int64_t row, int64_t j) const {
    const T *from = weights + model * weight_steps[0] + row * weight_steps[1];
    return weight_steps[2] ? load_some<T>(from + j, n_labels - j, 0) : all<T>(from[0]);
  }
};

// x^order of numbers from 2^-30 to 2, as most scores are: a polynomial of the mantissa times a
// power of two from a table, which two vectors of 16 hold. By a logarithm and an exponential it
// would take twice as long.
struct Powers {
  typedef Type<float> P;
  static constexpr int n_terms = 9, n_powers = 2 * lanes<float>, highest = 1;
  float terms[n_terms];        // of (x^order - 1) / (x - 1), x a mantissa, by powers of x - 1
  Vector<float> low, high;     // 2^(order e), at the last bits of e as they are in a number
  Mask<float> outside = P::I{};  // marks what the table did not have

  explicit Powers(const Mean<float> &mean)
      : low(load(mean.of_two)), high(load(mean.of_two + lanes<float>)) {
    memcpy(terms, mean.near_one, sizeof terms);
  }
  // 0 for 0.
  MEMBER Vector<float> of(Vector<float> x) {
    typedef P::U U;
    typedef P::I I;
    constexpr int lowest_biased = P::bias + highest + 1 - n_powers;
    I biased = (I)((U)((I)x + (P::one - P::root)) >> P::digits), some = (I)x != 0;
    Vector<float> offset = (P::V)((I)x - (I)((U)(biased - P::bias) << P::digits)) - 1.0f;
    outside |= ((U)(biased - lowest_biased) >= (uint32_t)n_powers) & some;
    Vector<float> power = offset * polynomial<float>(offset, terms) + 1.0f;
    return some ? power * look_up(low, high, biased) : P::V{};
  }
};

// The weighted sums of the models' powers at some whole vectors of labels, into `means`; false if
// the table does not have them all. Not inline: it needs all registers.
__attribute__((noinline)) [[maybe_unused]] static bool sum_from_table(const Mean<float> &mean,
                                                                      int64_t row, int64_t count) {
  Powers powers(mean);
  const int64_t *steps = mean.weight_steps;
  const float *values = mean.values + row * mean.n_labels;
  const float *weights = mean.weights + row * steps[1];
  float *to = mean.means + row * mean.n_labels;
  for (int64_t j = 0; j < count; j += lanes<float>) {
    Vector<float> total = Vector<float>{};
    for (int64_t model = 0; model < mean.n_models; model++) {
      Vector<float> power = powers.of(load(values + model * mean.model_step + j));
      const float *weight = weights + model * steps[0];
      total += (steps[2] ? load(weight + j) : all<float>(*weight)) * power;
    }
    store(to + j, total);
  }
  return !any(powers.outside);
}

// sum^exponent; 0 for 0. Marks what is below the normal numbers.
template <class T>
INLINE Vector<T> raise_sum(Vector<T> sum, Factor<T> exponent, Mask<T> &tiny) {
  Vector<T> m, e, fraction, whole;
  Mask<T> zero = ~(sum > 0);
  split<T>(zero ? all<T>(1) : sum, m, e);
  raise<T>(e, log2_of(m), exponent, fraction, whole);
  Vector<T> found = zero ? Vector<T>{} : join<T>(exp2_of(fraction), whole, Type<T>::bias);
  tiny |= (found == 0) & ~zero;
  return found;
}

// The mean at some labels of a row, by logarithms. Marks what is below the normal numbers.
template <class T>
INLINE Vector<T> mean_at(const Mean<T> &mean, Factor<T> order, Factor<T> exponent, int64_t row,
                         int64_t j, Mask<T> &tiny) {
  typedef Vector<T> V;
  typedef Mask<T> I;
  constexpr T unit = (T)(1ull << Type<T>::fraction);
  V high = V{}, sum = V{}, m, e, fraction, whole;
  I zero = I{};
  for (int64_t model = 0; model < mean.n_models; model++) {
    V x = mean.value(model, row, j), w = mean.weight(model, row, j);
    I normal = is_normal<T>(x);
    tiny |= ((I)x != 0) & ~normal;
    split<T>(normal ? x : all<T>(1), m, e);
    if (mean.order == 0) {  // weights times exponents in two parts, the first of them exact
      V part = nearest_whole<T>(w * unit) / unit;
      high += part * e;
      sum += (w - part) * e + w * log2_of(m);
      zero |= ~normal;
    } else {
      raise<T>(e, log2_of(m), order, fraction, whole);
      sum += normal ? w * join<T>(exp2_of(fraction), whole) : V{};
    }
  }
  if (mean.order != 0) return raise_sum<T>(sum, exponent, tiny);
  whole = nearest_whole<T>(high + sum);
  fraction = (high - whole) + sum;
  V found = zero ? V{} : join<T>(exp2_of(fraction), whole, Type<T>::bias);
  tiny |= (found == 0) & ~zero;
  return found;
}

// False if some number is negative or not finite, or if it or a mean is below the normal ones:
// digits would be missing.
template <class T> static bool take_means(const Mean<T> &mean) {
  Factor<T> order(mean.order), exponent(mean.exponent);
  Mask<T> tiny = Mask<T>{};
  for (int64_t row = 0; row < mean.n_rows; row++) {
    T *to = mean.means + row * mean.n_labels;
    int64_t j = 0;
    if constexpr (lanes<T> == 16) {
      int64_t count = mean.n_labels / lanes<T> * lanes<T>;
      if (mean.near_one && sum_from_table(mean, row, count))
        // All sums first: then none of these waits for the last.
        for (; j < count; j += lanes<T>) store(to + j, raise_sum<T>(load(to + j), exponent, tiny));
    }
    for (; j < mean.n_labels; j += lanes<T>)
      store_some(to + j, mean_at<T>(mean, order, exponent, row, j, tiny), mean.n_labels - j);
  }
  return !any(tiny);
}
