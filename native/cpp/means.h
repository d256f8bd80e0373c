// Weighted power means of many numbers in one pass: fixed points of kernels that move no mass.
#pragma once
#include "numbers.h"

template <class T> struct Mean {
  int64_t n_models, n_rows, n_labels;
  const T *values;     // (n_models, n_rows, n_labels)
  int64_t model_step;  // from one model to the next; rows follow each other
  const T *weights;
  int64_t weight_steps[3];  // over models, rows and labels; 0 where they do not differ
  double order, exponent;   // (sum of w x^order)^exponent; order 0: the geometric mean
  T *means;                 // (n_rows, n_labels)
};

// False if some number or mean is below the normal ones: digits would be missing.
template <class T> static bool take_means(const Mean<T> &mean) {
  typedef Vector<T> V;
  typedef Mask<T> I;
  const int64_t *steps = mean.weight_steps;
  Factor<T> order(mean.order), exponent(mean.exponent);
  constexpr T unit = (T)(1ull << Type<T>::fraction);
  I tiny = I{};
  for (int64_t row = 0; row < mean.n_rows; row++)
    for (int64_t j = 0; j < mean.n_labels; j += lanes<T>) {
      int64_t left = mean.n_labels - j, at = row * mean.n_labels + j;
      V high = V{}, sum = V{}, m, e, fraction, whole;
      I zero = I{};
      for (int64_t model = 0; model < mean.n_models; model++) {
        const T *from = mean.weights + model * steps[0] + row * steps[1];
        V x = load_some<T>(mean.values + model * mean.model_step + at, left, 1);
        V w = steps[2] ? load_some<T>(from + j, left, 0) : all<T>(from[0]);
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
      if (mean.order == 0) {
        whole = nearest_whole<T>(high + sum);
        fraction = (high - whole) + sum;
      } else {
        zero = ~(sum > 0);
        split<T>(zero ? all<T>(1) : sum, m, e);
        raise<T>(e, log2_of(m), exponent, fraction, whole);
      }
      V found = zero ? V{} : join<T>(exp2_of(fraction), whole, Type<T>::bias);
      tiny |= (found == 0) & ~zero;
      store_some(mean.means + at, found, left);
    }
  return !any(tiny);
}
