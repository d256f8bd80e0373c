// Products of many vectors with the kernel of some models.
//
// A kernel is one matrix or the product of two, dense or sparse. Its entries come scaled by a power
// of two, the largest near 2^top, and so do the vectors; a sum of as many terms as there are then
// just fits. What is lost to underflow in a sum is below what `sure` allows for: a sum above it
// is exact to rounding. Where no term can have been lost, smaller sums are exact too, and 0 is 0.
#pragma once
#include "numbers.h"

// One matrix, ready to be multiplied from one side.
template <class T> struct Matrix {
  int64_t n_in, n_out;
  const T *panels;        // dense: (n_out / lanes, n_in, lanes), rounded up with zeros
  const T *entries;       // sparse: by output, or null
  const int32_t *inputs;  // (n_entries,)
  const int64_t *starts;  // (n_out + 1,)
  double least;           // exponent of the smallest entry above 0; very low if some were lost
};

template <class T> struct Kernel {
  int64_t n_source, n_target, n_factors;  // of 1 or 2 matrices
  int64_t has_zeros;                      // among entries; if not, no sum of numbers is 0
  Matrix<T> to_source[2], to_target[2];   // in the order in which they are applied
  const T *sums;      // products with 2^top everywhere, a vector too long at most; or null
  double top;         // exponent of the largest entry of a vector
  double scale;       // entries are 2^scale times what they stand for
  double sure;        // sums below it may have lost something
  double least_most;  // of two factors: what the largest number between them must be
};

// What is known of a vector that enters a product or comes out of it.
template <class T> struct Row {
  T shift;      // the vector stands for 2^shift times its numbers
  T least;      // exponent of its smallest number above 0
  bool is_sure; // no term of a sum was lost
  bool is_lost; // too much was
};

INLINE int64_t padded(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
template <class T> INLINE int64_t padded(int64_t n) { return padded(n, lanes<T>); }

// Some rows times one to three panels.
template <class T, int n_rows, int n_panels>
INLINE void multiply_tile(const T *x, int64_t x_step, const T *panel, T *y, int64_t y_step,
                          int64_t n_in) {
  typedef Vector<T> V;
  V sums[n_rows][n_panels];
#pragma GCC unroll 12
  for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 3
    for (int p = 0; p < n_panels; p++) sums[row][p] = V{};
  for (int64_t i = 0; i < n_in; i++) {
    V entries[n_panels];
#pragma GCC unroll 3
    for (int p = 0; p < n_panels; p++) entries[p] = load(panel + (p * n_in + i) * lanes<T>);
#pragma GCC unroll 12
    for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 3
      for (int p = 0; p < n_panels; p++) sums[row][p] += x[row * x_step + i] * entries[p];
  }
#pragma GCC unroll 12
  for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 3
    for (int p = 0; p < n_panels; p++) store(y + row * y_step + p * lanes<T>, sums[row][p]);
}

// As many rows at once as there are registers for; then fewer.
template <class T, int n_rows, int n_panels>
static void multiply_panels(const T *x, int64_t x_step, const T *panel, T *y, int64_t y_step,
                            int64_t n_in, int64_t count) {
  int64_t row = 0;
  for (; row + n_rows <= count; row += n_rows)
    multiply_tile<T, n_rows, n_panels>(x + row * x_step, x_step, panel, y + row * y_step, y_step,
                                       n_in);
  constexpr int fewer = n_rows == 12 ? 8 : n_rows == 6 ? 4 : n_rows / 2;
  if constexpr (n_rows > 1)
    multiply_panels<T, fewer, n_panels>(x + row * x_step, x_step, panel, y + row * y_step, y_step,
                                        n_in, count - row);
}

template <class T>
static void multiply_dense(const Matrix<T> &matrix, const T *x, int64_t x_step, T *y,
                           int64_t y_step, int64_t count) {
  constexpr int n_rows = VECTOR_BYTES == 64 ? 12 : 6;
  int64_t n_panels = padded<T>(matrix.n_out) / lanes<T>, panel = 0;
  // One panel alone reads an entry of x for each sum; three make better use of it.
  if (VECTOR_BYTES == 64 && n_panels % 2 && n_panels > 1) {
    multiply_panels<T, 8, 3>(x, x_step, matrix.panels, y, y_step, matrix.n_in, count);
    panel = 3;
  }
  // Panels outside: one stays in the cache while all rows pass.
  for (; panel + 2 <= n_panels; panel += 2)
    multiply_panels<T, n_rows, 2>(x, x_step, matrix.panels + panel * matrix.n_in * lanes<T>,
                                  y + panel * lanes<T>, y_step, matrix.n_in, count);
  if (panel < n_panels)
    multiply_panels<T, n_rows, 1>(x, x_step, matrix.panels + panel * matrix.n_in * lanes<T>,
                                  y + panel * lanes<T>, y_step, matrix.n_in, count);
}

// Rows side by side, (n, width): each entry of a sparse matrix then meets a whole vector of rows.
template <class T>
static void turn(const T *x, int64_t x_step, int64_t n, int64_t count, int64_t width, T *turned) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t row = 0; row < count; row++) turned[i * width + row] = x[row * x_step + i];
    for (int64_t row = count; row < width; row++) turned[i * width + row] = 0;
  }
}

template <class T, int n_vectors, int n_chains>
INLINE void add_entry(const Matrix<T> &matrix, int64_t at, const T *turned,
                      Vector<T> (&sums)[n_vectors][n_chains], int chain) {
  const T *from = turned + matrix.inputs[at] * (int64_t)(n_vectors * lanes<T>);
#pragma GCC unroll 2
  for (int v = 0; v < n_vectors; v++) sums[v][chain] += matrix.entries[at] * load(from + v * lanes<T>);
}

// Some outputs of all rows at a time, so that each row gets a whole vector of them.
template <class T, int n_vectors>
static void multiply_entries(const Matrix<T> &matrix, const T *turned, T *y, int64_t y_step,
                             int64_t count) {
  typedef Vector<T> V;
  constexpr int64_t width = n_vectors * lanes<T>;
  constexpr int n_chains = 4;  // entries apart, so that none waits for the last
  T values[lanes<T> * width];
  for (int64_t first = 0; first < matrix.n_out; first += lanes<T>) {
    for (int64_t out = first; out < first + lanes<T>; out++) {
      V sums[n_vectors][n_chains] = {};
      // Beyond the labels sums are 0, as in panels.
      int64_t start = out < matrix.n_out ? matrix.starts[out] : 0;
      int64_t stop = out < matrix.n_out ? matrix.starts[out + 1] : 0;
      int64_t at = start;
      for (; at + n_chains <= stop; at += n_chains)
#pragma GCC unroll 4
        for (int chain = 0; chain < n_chains; chain++)
          add_entry<T, n_vectors, n_chains>(matrix, at + chain, turned, sums, chain);
      for (; at < stop; at++) add_entry<T, n_vectors, n_chains>(matrix, at, turned, sums, 0);
#pragma GCC unroll 2
      for (int v = 0; v < n_vectors; v++)
        store(values + (out - first) * width + v * lanes<T>,
              (sums[v][0] + sums[v][1]) + (sums[v][2] + sums[v][3]));
    }
    for (int64_t row = 0; row < count; row++)
      for (int64_t out = 0; out < lanes<T>; out++)
        y[row * y_step + first + out] = values[out * width + row];
  }
}

template <class T>
static void multiply_sparse(const Matrix<T> &matrix, const T *x, int64_t x_step, T *y,
                            int64_t y_step, int64_t count, T *turned) {
  for (int64_t row = 0; row < count;) {
    bool is_wide = count - row > lanes<T>;
    int64_t width = (is_wide ? 2 : 1) * lanes<T>, some = width < count - row ? width : count - row;
    turn(x + row * x_step, x_step, matrix.n_in, some, width, turned);
    if (is_wide) multiply_entries<T, 2>(matrix, turned, y + row * y_step, y_step, some);
    else multiply_entries<T, 1>(matrix, turned, y + row * y_step, y_step, some);
    row += some;
  }
}

template <class T>
static void multiply(const Matrix<T> &matrix, const T *x, int64_t x_step, T *y, int64_t y_step,
                     int64_t count, T *turned) {
  if (matrix.entries) multiply_sparse(matrix, x, x_step, y, y_step, count, turned);
  else multiply_dense(matrix, x, x_step, y, y_step, count);
}

// Whether every product of an entry and a number of the row is a normal number.
template <class T> INLINE bool keeps_all(const Matrix<T> &matrix, const Row<T> &row) {
  return row.least > (T)lowest<T> && matrix.least + row.least > (double)lowest<T>;
}

// Bring what one factor gave to the scale at which the next one takes it.
template <class T> static void rescale(const Kernel<T> &kernel, T *x, int64_t n, Row<T> &row) {
  T most = 0, least = (T)INFINITY;
  for (int64_t i = 0; i < n; i++) {
    most = most > x[i] ? most : x[i];
    least = x[i] > 0 && x[i] < least ? x[i] : least;
  }
  if (!(most > 0)) {  // nothing, and known to be nothing only if no term was lost
    row.is_lost = !row.is_sure;
    row.least = (T)-lowest<T>;
    return;
  }
  row.is_lost = !row.is_sure && most < (T)kernel.least_most;
  int shift = std::ilogb(most) - (int)kernel.top;
  shift = shift > lowest<T> ? shift : lowest<T>;  // 2^-shift is a number too
  T factor = (T)std::ldexp(1.0, -shift);
  for (int64_t i = 0; i < n; i++) x[i] *= factor;
  row.least = (T)(std::ilogb(least) - shift);
  row.shift += (T)shift;
}

// K v of every row (or K^T u): from `x` to `y`, both with room for whole vectors.
template <class T>
static void apply(const Kernel<T> &kernel, const Matrix<T> *factors, const T *x, int64_t x_step,
                  T *y, int64_t y_step, int64_t count, Row<T> *rows, T *between, T *turned) {
  for (int64_t row = 0; row < count; row++) {
    rows[row].shift -= (T)kernel.scale;
    rows[row].is_sure = keeps_all(factors[0], rows[row]);
    rows[row].is_lost = false;
  }
  if (kernel.n_factors == 1) return multiply(factors[0], x, x_step, y, y_step, count, turned);
  int64_t rank = factors[0].n_out, step = padded<T>(rank);
  multiply(factors[0], x, x_step, between, step, count, turned);
  for (int64_t row = 0; row < count; row++) {
    rescale(kernel, between + row * step, rank, rows[row]);
    rows[row].is_sure = rows[row].is_sure && keeps_all(factors[1], rows[row]);
  }
  multiply(factors[1], between, step, y, y_step, count, turned);
}
