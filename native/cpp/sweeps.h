// Sweeps of Algorithms 1 and 2 in extended range: lines u, p and v.
//
// Scalings are mantissas and exponents. Only what enters a product is brought to one scale per row;
// rows for which that would lose something are marked, and somebody else does them again.
// Where steps are longer, mantissas of u and v are kept as their logs between sweeps: such a step is
// a sum of logs.
// Samples are swept a few at a time, as many as the caches hold; each for itself, so that the
// answer does not depend on how many there are.
#pragma once
#include <cstdlib>
#include <limits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "products.h"

// The models that share a kernel; arrays are (n_models, n_rows, n_source).
template <class T> struct Group {
  Kernel<T> kernel;
  int64_t n_models;
  const T *histograms;
  T *u_mantissas, *u_exponents;  // null if nobody asks
};

template <class T> struct Tile {
  int64_t n_models, n_rows, n_target, n_groups;
  const Group<T> *groups;
  const T *weights;         // of each model, and what they sum to above 1
  int64_t weight_steps[3];  // over models, rows and labels; 0 where they do not differ
  double order, exponent;
  T *v_mantissas, *v_exponents;  // (n_models, n_rows, n_target)
  const T *omega;                // (n_rows,), or null: steps as they are
  int64_t starts_at_one;         // whether v is 1 and not what is in the arrays
  int64_t keeps_v;               // whether the last v is asked for
  const int32_t *components;     // (n_target,), or null: one
  int64_t n_components;          // 0: residuals compare marginals as they are
  T *consensus;                  // (n_rows, n_target)
  double *residuals;             // (n_rows,), or null
  uint8_t *flags;                // (n_rows,)
};

constexpr uint8_t untrusted = 1;  // numbers left the range, now or earlier
constexpr uint8_t has_mass = 2;   // some label has a consensus above 0, however small
constexpr uint8_t overflown = 4;  // some label has a consensus too large for its type

// Numbers of one array of the samples that are swept together.
constexpr int64_t together = 1 << 13;

// Rows of a dense product that make up for the way of a large kernel through the caches, and from
// how many entries on a kernel is large.
constexpr int64_t rows_of_large = 48, large_kernel = 1 << 15;

// An order from which on powers are taken relative to the largest number of a mean, so that none
// overflows; below it relative to the middle, so that their sum is near 1.
constexpr double large_order = 0.25;

// Memory for the samples that are swept together, in pieces at whole cache lines.
class Room {
  static constexpr size_t large_page = 1 << 21;
  char *start_ = nullptr;
  size_t used_ = 0;

 public:
  Room() = default;
  Room(const Room &) = delete;
  Room &operator=(const Room &) = delete;
  ~Room() { std::free(start_); }
  // Called twice: the first time to count, then, after `open`, to share out.
  template <class A> A *take(int64_t count) {
    size_t at = used_;
    used_ += ((size_t)count * sizeof(A) + 63) / 64 * 64;
    return start_ ? (A *)(start_ + at) : nullptr;
  }
  bool open() {
    // Sparse products jump about in it: with large pages they need not look for each page.
    size_t page = used_ < 8 * large_page ? 64 : large_page, size = (used_ / page + 1) * page;
    start_ = (char *)std::aligned_alloc(page, size);
#if defined(MADV_HUGEPAGE)
    if (start_ && page == large_page) madvise(start_, size, MADV_HUGEPAGE);
#endif
    used_ = 0;
    return start_ != nullptr;
  }
};

template <class T> class Sweeper {
  typedef Vector<T> V;
  typedef Mask<T> I;
  static constexpr int step = lanes<T>;

  const Tile<T> &tile_;
  Factor<T> order_, exponent_, mean_, power_;  // order, f, 1 / order, f / order
  bool balanced_, relaxed_, keeps_u_;
  int64_t n_samples_, width_, wide_;  // at once; padded target labels; the most source labels
  Room room_;
  // (models, samples, labels), padded; those of sources group by group.
  T *v_mantissas_, *v_exponents_, *images_;
  T *source_mantissas_, *source_exponents_, *u_mantissas_, *u_exponents_;
  T *sources_, *between_, *turned_, *before_, *after_;
  V *parts_;
  Row<T> *rows_;
  double *sums_;
  bool *is_bad_;
  uint8_t *found_;  // of the consensus: flags

 public:
  explicit Sweeper(const Tile<T> &tile)
      : tile_(tile), order_(tile.order), exponent_(tile.exponent),
        mean_(tile.order > 0 ? 1 / tile.order : 0),
        power_(tile.order > 0 ? tile.exponent / tile.order : 0), balanced_(tile.order == 0),
        relaxed_(tile.omega != nullptr), keeps_u_(tile.groups[0].u_mantissas != nullptr) {
    width_ = padded<T>(tile.n_target);
    wide_ = 0;
    for (int64_t g = 0; g < tile.n_groups; g++) {
      int64_t n = padded<T>(tile.groups[g].kernel.n_source);
      wide_ = wide_ > n ? wide_ : n;
    }
    int64_t numbers = tile.n_models * (width_ > wide_ ? width_ : wide_);
    n_samples_ = at_least(at_least(1, together / numbers), samples_for_products());
    n_samples_ = n_samples_ < tile.n_rows ? n_samples_ : tile.n_rows;
  }

  // Sweep every sample; the flags of all of them together, -1 if there is no memory.
  int run(int64_t n_sweeps) {
    if (!make_room()) return -1;
    int flags = 0;
    for (int64_t first = 0; first < tile_.n_rows; first += n_samples_) {
      int64_t left = tile_.n_rows - first;
      flags |= sweep_some(first, left < n_samples_ ? left : n_samples_, n_sweeps);
    }
    return flags;
  }

  // Mark the rows with mass that no entry of its kernel takes to a label where v is above 0.
  bool find_stuck(uint8_t *stuck) {
    if (!make_room()) return false;
    for (int64_t first = 0; first < tile_.n_rows; first += n_samples_) {
      int64_t left = tile_.n_rows - first;
      find_some_stuck(first, left < n_samples_ ? left : n_samples_, stuck);
    }
    return true;
  }

 private:
  static bool turns(const Matrix<T> &matrix) { return matrix.entries != nullptr; }

  bool needs_turning() const {
    for (int64_t g = 0; g < tile_.n_groups; g++)
      if (turns(tile_.groups[g].kernel.to_source[0])) return true;
    return false;
  }

  static int64_t at_least(int64_t least, int64_t n) { return n > least ? n : least; }

  // Samples that make up for what their products read.
  int64_t samples_for_products() const {
    // A sparse product wants whole vectors of rows, no more than two.
    int64_t n = needs_turning() ? 2 * step / tile_.n_models : 1;
    for (int64_t g = 0; g < tile_.n_groups; g++) {
      const Matrix<T> &matrix = tile_.groups[g].kernel.to_source[0];
      if (!turns(matrix) && matrix.n_in * matrix.n_out > large_kernel)
        n = at_least(n, rows_of_large / tile_.groups[g].n_models);
    }
    return n;
  }

  bool make_room() {
    share_out();
    if (!room_.open()) return false;
    share_out();
    return true;
  }

  void share_out() {
    int64_t n_rows = tile_.n_models * n_samples_, n_targets = n_rows * width_, n_sources = 0;
    int64_t most_rows = 0, rank = 0, longest = width_ > wide_ ? width_ : wide_;
    for (int64_t g = 0; g < tile_.n_groups; g++) {
      const Group<T> &group = tile_.groups[g];
      int64_t rows = group.n_models * n_samples_;
      n_sources += rows * padded<T>(group.kernel.n_source);
      most_rows = most_rows > rows ? most_rows : rows;
      if (group.kernel.n_factors == 2) {
        int64_t n = padded<T>(group.kernel.to_source[0].n_out);
        rank = rank > n ? rank : n;
      }
    }
    longest = longest > rank ? longest : rank;
    v_mantissas_ = room_.take<T>(n_targets);
    v_exponents_ = room_.take<T>(n_targets);
    images_ = room_.take<T>(n_targets);
    source_mantissas_ = room_.take<T>(n_sources);
    source_exponents_ = room_.take<T>(n_sources);
    u_mantissas_ = room_.take<T>(keeps_u_ ? n_sources : wide_);
    u_exponents_ = room_.take<T>(keeps_u_ ? n_sources : wide_);
    sources_ = room_.take<T>(most_rows * wide_);
    between_ = room_.take<T>(most_rows * rank);
    turned_ = room_.take<T>(needs_turning() ? 2 * step * longest : 0);
    bool watched = tile_.residuals != nullptr;
    before_ = room_.take<T>(watched ? tile_.n_models * width_ : 0);
    after_ = room_.take<T>(watched ? tile_.n_models * width_ : 0);
    sums_ = room_.take<double>(watched ? 2 * tile_.n_components : 0);
    parts_ = room_.take<V>(5 * tile_.n_models);
    rows_ = room_.take<Row<T>>(n_rows);
    is_bad_ = room_.take<bool>(n_samples_);
    found_ = room_.take<uint8_t>(n_samples_);
  }

  // Of the arrays of one group, the first row and the number of source labels, padded.
  struct Part {
    const Group<T> *group;
    int64_t first_model, offset, width;
  };
  template <class Call> void each_group(int64_t count, Call call) {
    int64_t model = 0, offset = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++) {
      const Group<T> &group = tile_.groups[g];
      int64_t width = padded<T>(group.kernel.n_source);
      call(Part{&group, model, offset, width});
      model += group.n_models;
      offset += group.n_models * count * width;
    }
  }

  int sweep_some(int64_t first, int64_t count, int64_t n_sweeps) {
    for (int64_t s = 0; s < count; s++) is_bad_[s] = false, found_[s] = 0;
    each_group(count, [&](Part part) { read_sources(part, first, count); });
    read_targets(first, count);
    for (int64_t sweep = 0; sweep < n_sweeps; sweep++) {
      bool at_one = sweep == 0 && tile_.starts_at_one, is_last = sweep == n_sweeps - 1;
      each_group(count, [&](Part part) {
        const Kernel<T> &kernel = part.group->kernel;
        int64_t n_rows = part.group->n_models * count;
        Row<T> *rows = rows_ + part.first_model * count;
        T *images = images_ + part.first_model * count * width_;
        bool summed = at_one && kernel.sums;
        if (summed) use_sums(kernel, rows, n_rows);
        else
          apply(kernel, kernel.to_source, images, width_, sources_, part.width, n_rows, rows,
                between_, turned_);
        line_u(part, first, count, summed);
        apply(kernel, kernel.to_target, sources_, part.width, images, width_, n_rows, rows,
              between_, turned_);
      });
      for (int64_t s = 0; s < count; s++) lines_p_and_v(first, s, count, is_last);
    }
    write_back(first, count);
    int flags = 0;
    for (int64_t s = 0; s < count; s++) flags |= tile_.flags[first + s];
    return flags;
  }

  void use_sums(const Kernel<T> &kernel, Row<T> *rows, int64_t n_rows) {
    for (int64_t row = 0; row < n_rows; row++) {
      rows[row] = Row<T>{(T)(-kernel.top - kernel.scale), (T)kernel.top, false, false};
      rows[row].is_sure = kernel.n_factors == 1 && keeps_all(kernel.to_source[0], rows[row]);
    }
  }

  // Histograms as mantissas (their logs, if they are raised to powers) and exponents.
  void read_sources(Part part, int64_t first, int64_t count) {
    int64_t n_source = part.group->kernel.n_source;
    for (int64_t m = 0; m < part.group->n_models; m++)
      for (int64_t s = 0; s < count; s++) {
        const T *from = part.group->histograms + (m * tile_.n_rows + first + s) * n_source;
        int64_t row = m * count + s, at = part.offset + row * part.width;
        bool in_logs = !balanced_ || is_longer(first + s);
        I odd = I{};
        for (int64_t i = 0; i < part.width; i += step) {
          V x = load_some<T>(from + i, n_source - i, 0), mantissa, exponent;
          I normal = is_normal<T>(x);
          odd |= ((I)x != 0) & ~normal;
          split<T>(normal ? x : all<T>(1), mantissa, exponent);
          store(source_mantissas_ + at + i, in_logs ? log2_of(mantissa) : mantissa);
          store(source_exponents_ + at + i, normal ? exponent : all<T>(Type<T>::none));
        }
        is_bad_[s] |= any(odd);  // below the normal numbers: digits are missing; or no number
        if (is_longer(first + s)) read_u(part, m, first, s, row);
      }
  }

  void read_u(Part part, int64_t m, int64_t first, int64_t s, int64_t row) {
    int64_t n_source = part.group->kernel.n_source;
    int64_t from = (m * tile_.n_rows + first + s) * n_source, at = part.offset + row * part.width;
    for (int64_t i = 0; i < part.width; i += step) {
      const T *mantissas = part.group->u_mantissas, *exponents = part.group->u_exponents;
      V mantissa = load_some<T>(mantissas + from + i, n_source - i, 1);
      V exponent = load_some<T>(exponents + from + i, n_source - i, Type<T>::none);
      to_logs(mantissa, exponent);
      store(u_mantissas_ + at + i, mantissa);
      store(u_exponents_ + at + i, exponent);
    }
  }

  MEMBER bool is_longer(int64_t row) const { return relaxed_ && tile_.omega[row] != 1; }

  static MEMBER void to_logs(V &mantissa, V &exponent) {
    V m, e;
    split<T>(mantissa, m, e);
    mantissa = log2_of(m);
    exponent += e;
  }

  static MEMBER void from_logs(V &mantissa, V &exponent) {
    V whole = nearest_whole<T>(mantissa);
    mantissa = exp2_of(mantissa - whole);
    exponent += whole;
  }

  void read_targets(int64_t first, int64_t count) {
    int64_t n_target = tile_.n_target, model = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++)
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++)
        for (int64_t s = 0; s < count; s++) {
          int64_t from = (model * tile_.n_rows + first + s) * n_target;
          int64_t row = model * count + s, at = row * width_;
          V most = all<T>(Type<T>::none);
          for (int64_t j = 0; j < width_; j += step) {
            V mantissa = all<T>(1), exponent = labels_from(j) ? V{} : all<T>(Type<T>::none);
            if (!tile_.starts_at_one) {
              mantissa = load_some<T>(tile_.v_mantissas + from + j, n_target - j, 1);
              exponent =
                  load_some<T>(tile_.v_exponents + from + j, n_target - j, Type<T>::none);
            }
            if (is_longer(first + s)) to_logs(mantissa, exponent);
            store(v_mantissas_ + at + j, mantissa);
            store(v_exponents_ + at + j, exponent);
            most = largest(most, exponent);
          }
          rows_[row] = to_scale(tile_.groups[g].kernel, v_mantissas_ + at, v_exponents_ + at,
                                images_ + at, width_, largest_of<T>(most), is_longer(first + s));
        }
  }

  // A row of ordinary numbers for a product, the largest of them near 2^top. How small the others
  // are is asked for only where 0 must be told from what was lost.
  static Row<T> to_scale(const Kernel<T> &kernel, const T *mantissas, const T *exponents, T *to,
                         int64_t width, T most, bool in_logs) {
    constexpr T unknown = (T)(4 * lowest<T>), nothing = (T)Type<T>::bias;
    if (most < Type<T>::none / 2) {
      memset(to, 0, width * sizeof(T));
      return Row<T>{0, nothing, false, false};
    }
    T shift = most - (T)kernel.top;
    bool asked = kernel.has_zeros;
    auto scale = in_logs ? asked ? scale_row<true, true> : scale_row<false, true>
                         : asked ? scale_row<true, false> : scale_row<false, false>;
    T least = scale(mantissas, exponents, to, width, shift);
    return Row<T>{shift, asked ? least - 1 : unknown, false, false};
  }

  template <bool asked, bool in_logs>
  static T scale_row(const T *mantissas, const T *exponents, T *to, int64_t width, T shift) {
    V least = all<T>((T)Type<T>::bias);
    for (int64_t i = 0; i < width; i += step) {
      V exponent = load(exponents + i), below = exponent - shift;
      if (asked) least = smallest(least, is_none<T>(exponent) ? least : below);
      V mantissa = load(mantissas + i);
      if (in_logs) mantissa = exp2_of(mantissa);
      store(to + i, join<T>(mantissa, below));  // none is 0, whatever the shift
    }
    return asked ? smallest_of<T>(least) : 0;
  }

  // u = (mu / K v)^f of the rows of a group, brought to scale (Alg. 1 and 2, line u).
  void line_u(Part part, int64_t first, int64_t count, bool summed) {
    const Kernel<T> &kernel = part.group->kernel;
    for (int64_t m = 0; m < part.group->n_models; m++)
      for (int64_t s = 0; s < count; s++) {
        int64_t row = m * count + s, at = part.offset + row * part.width;
        int64_t own = keeps_u_ ? at : 0;
        T *scaled = sources_ + row * part.width;
        Row<T> &known = rows_[part.first_model * count + row];
        const T *kv = summed ? kernel.sums : scaled;
        bool longer = is_longer(first + s);
        T omega = longer ? tile_.omega[first + s] : (T)1;
        auto u_of = longer ? balanced_ ? &Sweeper::u_of_row<true, true>
                                       : &Sweeper::u_of_row<false, true>
                           : balanced_ ? &Sweeper::u_of_row<true, false>
                                       : &Sweeper::u_of_row<false, false>;
        T most = (this->*u_of)(kv, at, own, part.width, kernel, known, omega, s);
        known = to_scale(kernel, u_mantissas_ + own, u_exponents_ + own, scaled, part.width, most,
                         longer);
      }
  }

  template <bool balanced, bool longer>
  T u_of_row(const T *kv, int64_t at, int64_t own, int64_t width, const Kernel<T> &kernel,
             const Row<T> &known, T omega, int64_t s) {
    V most = all<T>(Type<T>::none);
    I lost = I{};
    T sure = known.is_sure ? (T)0 : (T)kernel.sure;
    int64_t whole = kernel.n_source / step * step;
    whole = is_whole(kv, source_exponents_ + at, whole, sure) ? whole : 0;
    u_of_some<balanced, longer, true>(kv, at, own, 0, whole, sure, known, omega, most, lost);
    u_of_some<balanced, longer, false>(kv, at, own, whole, width, sure, known, omega, most, lost);
    is_bad_[s] |= any(lost) || known.is_lost;
    return largest_of<T>(most);
  }

  // Whether some sums are above 0 and sure, and so are the numbers of which these are exponents.
  static bool is_whole(const T *sums, const T *exponents, int64_t count, T sure) {
    V least = all<T>((T)INFINITY), lowest_exponent = least;
    for (int64_t i = 0; i < count; i += step) {
      least = smallest(least, load(sums + i));
      if (exponents) lowest_exponent = smallest(lowest_exponent, load(exponents + i));
    }
    return smallest_of<T>(least) >= (sure > 0 ? sure : std::numeric_limits<T>::min()) &&
           smallest_of<T>(lowest_exponent) > Type<T>::none / 2;
  }

  // Where all is `whole`, nobody need look for zeros and for what was lost.
  template <bool balanced, bool longer, bool whole>
  MEMBER void u_of_some(const T *kv, int64_t at, int64_t own, int64_t start, int64_t stop, T sure,
                        const Row<T> &known, T omega, V &most, I &lost) {
    V lowest_exponent = V{};
    for (int64_t i = start; i < stop; i += step) {
      V y = load(kv + i), of_mu = load(source_exponents_ + at + i), m, e, mantissa, exponent;
      I none = I{};
      if constexpr (!whole) {
        none = is_none<T>(of_mu);
        lost |= (y < sure) & ~none;
        none |= y == 0;
        y = y == 0 ? all<T>(1) : y;
      }
      split<T>(y, m, e);
      V mu = load(source_mantissas_ + at + i);
      exponent = of_mu - (e + known.shift);
      mantissa = balanced && !longer ? mu / m : mu - log2_of(m);
      if (!balanced) {
        raise<T>(exponent, mantissa, exponent_, mantissa, exponent);
        if (!longer) mantissa = exp2_of(mantissa);
      }
      if constexpr (!whole) {
        exponent = none ? all<T>(Type<T>::none) : exponent;
        mantissa = none ? all<T>(longer ? 0 : 1) : mantissa;
      }
      if (longer)
        stretch(load(u_mantissas_ + own + i), load(u_exponents_ + own + i), omega, mantissa,
                exponent);
      store(u_mantissas_ + own + i, mantissa);
      store(u_exponents_ + own + i, exponent);
      most = largest(most, exponent);
      if (whole && !longer) lowest_exponent = smallest(lowest_exponent, exponent);
      else lost |= is_far<T>(exponent);
    }
    if (whole && !longer) lost |= is_far<T>(most) | is_far<T>(lowest_exponent);
  }

  // old^(1 - omega) new^omega, mantissas as logs: a longer step. Numbers that are 0 are left so.
  static MEMBER void stretch(V old_log, V old_exponent, T omega, V &log, V &exponent) {
    I none = is_none<T>(old_exponent) | is_none<T>(exponent);
    V more = omega * ((exponent - old_exponent) + (log - old_log));
    V total = none ? log : old_log + more, whole = nearest_whole<T>(total);
    log = total - whole;
    exponent = (none ? exponent : old_exponent) + whole;
  }

  MEMBER V weight(int64_t model, int64_t row, int64_t j) const {
    const int64_t *steps = tile_.weight_steps;
    const T *from = tile_.weights + model * steps[0] + row * steps[1];
    return steps[2] ? load_some<T>(from + j, tile_.n_target - j, 0) : all<T>(from[0]);
  }

  // The consensus of one sample and the new v of its models (lines p and v).
  void lines_p_and_v(int64_t first, int64_t s, int64_t count, bool is_last) {
    bool longer = is_longer(first + s);
    auto new_v = longer ? balanced_ ? &Sweeper::new_v<true, true> : &Sweeper::new_v<false, true>
                        : balanced_ ? &Sweeper::new_v<true, false> : &Sweeper::new_v<false, false>;
    (this->*new_v)(first, s, count, is_last);
    if (is_last) {
      if (tile_.residuals) tile_.residuals[first + s] = residual(first + s, found_[s] & has_mass);
      return;
    }
    int64_t model = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++)
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++) {
        int64_t row = model * count + s, at = row * width_;
        T most = largest_of<T>(parts_[4 * tile_.n_models + model]);
        rows_[row] = to_scale(tile_.groups[g].kernel, v_mantissas_ + at, v_exponents_ + at,
                              images_ + at, width_, most, longer);
      }
  }

  template <bool balanced, bool longer>
  void new_v(int64_t first, int64_t s, int64_t count, bool is_last) {
    V *most = parts_ + 4 * tile_.n_models;
    Found found{};
    for (int64_t m = 0; m < tile_.n_models; m++) most[m] = all<T>(Type<T>::none);
    int64_t whole = has_whole_images(first, s, count) ? tile_.n_target / step * step : 0;
    new_v_of_some<balanced, longer, true>(first, s, count, is_last, 0, whole, found);
    new_v_of_some<balanced, longer, false>(first, s, count, is_last, whole, width_, found);
    found_[s] = (uint8_t)((any(found.some) ? has_mass : 0) | (any(found.large) ? overflown : 0));
    is_bad_[s] |= any(found.lost);
  }

  // What the labels of a sample show.
  struct Found {
    I lost, some, large;
  };

  // Whether the images of all models are above 0 and sure, and every model has a vote on every
  // label.
  bool has_whole_images(int64_t first, int64_t s, int64_t count) const {
    const int64_t *steps = tile_.weight_steps;
    if (steps[2]) return false;
    int64_t model = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++)
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++) {
        int64_t row = model * count + s;
        T sure = rows_[row].is_sure ? (T)0 : (T)tile_.groups[g].kernel.sure;
        if (!(tile_.weights[model * steps[0] + (first + s) * steps[1]] > 0) ||
            !is_whole(images_ + row * width_, nullptr, tile_.n_target / step * step, sure))
          return false;
      }
    return true;
  }

  // Where all is `whole`, nobody need look for zeros and for what was lost.
  template <bool balanced, bool longer, bool whole>
  MEMBER void new_v_of_some(int64_t first, int64_t s, int64_t count, bool is_last, int64_t start,
                            int64_t stop, Found &found) {
    int64_t n_models = tile_.n_models;
    V *mantissas = parts_, *exponents = parts_ + n_models, *powers = parts_ + 2 * n_models;
    V *raised = parts_ + 3 * n_models, *most = parts_ + 4 * n_models, lowest_exponent = V{};
    bool watched = is_last && tile_.residuals;
    T omega = longer ? tile_.omega[first + s] : (T)1;
    for (int64_t j = start; j < stop; j += step) {
      V near = read_images<whole>(s, count, j, first + s, mantissas, exponents, found.lost);
      V mantissa, exponent, p_mantissa, p_exponent;  // of p^f 2^(order near), and of p; in logs
      if (balanced)
        geometric<longer, whole>(first + s, j, near, mantissas, exponents, powers, mantissa,
                                 exponent);
      else
        power_mean<longer, whole>(first + s, j, near, mantissas, exponents, powers, raised,
                                  mantissa, exponent, p_mantissa, p_exponent, is_last, found.lost);
      if (is_last) {
        T *to = tile_.consensus + (first + s) * tile_.n_target + j;
        if (balanced) p_mantissa = mantissa, p_exponent = exponent;
        p_mantissa = exp2_of(p_mantissa);
        V p = join<T>(p_mantissa, p_exponent, Type<T>::bias);
        store_some(to, p, tile_.n_target - j);
        I some = ~is_none<T>(p_exponent);
        found.some |= some;
        found.large |= p == (T)INFINITY;
        if (any(some & (p == 0))) store_tiny(to, tile_.n_target - j, p_mantissa, p_exponent, some);
      }
      if (is_last && !tile_.keeps_v) continue;
      if (!longer) mantissa = exp2_of(mantissa);
      I out = is_none<T>(exponent);
      for (int64_t m = 0; m < n_models; m++) {
        int64_t at = (m * count + s) * width_ + j;
        V new_mantissa = longer ? mantissa + powers[m] : mantissa / mantissas[m];
        V new_exponent = exponent - exponents[m];
        if (!balanced) new_exponent += raised[m];
        if (!balanced && !longer) new_mantissa *= powers[m];
        if constexpr (!whole) {
          I none = out | is_none<T>(exponents[m]);
          new_exponent = none ? all<T>(Type<T>::none) : new_exponent;
          new_mantissa = none ? all<T>(longer ? 0 : 1) : new_mantissa;
        }
        if (watched || longer) {
          V old_mantissa = load(v_mantissas_ + at), old_exponent = load(v_exponents_ + at);
          if (watched) {
            store(before_ + m * width_ + j, marginal<longer>(old_mantissa, old_exponent, m));
            store(after_ + m * width_ + j, marginal<longer>(new_mantissa, new_exponent, m));
          }
          if (longer) stretch(old_mantissa, old_exponent, omega, new_mantissa, new_exponent);
        }
        store(v_mantissas_ + at, new_mantissa);
        store(v_exponents_ + at, new_exponent);
        most[m] = largest(most[m], new_exponent);
        if (whole && !longer) lowest_exponent = smallest(lowest_exponent, new_exponent);
        else found.lost |= is_far<T>(new_exponent);
      }
    }
    if (!whole || longer) return;
    found.lost |= is_far<T>(lowest_exponent);
    for (int64_t m = 0; m < n_models; m++) found.lost |= is_far<T>(most[m]);
  }

  // Numbers of the consensus that are below the normal ones.
  static void store_tiny(T *to, int64_t count, V mantissa, V exponent, I some) {
    for (int64_t lane = 0; lane < step && lane < count; lane++)
      if (some[lane] && exponent[lane] <= lowest<T>) {
        T tiny = join_tiny(mantissa[lane], exponent[lane]);
        memcpy(to + lane, &tiny, sizeof tiny);
      }
  }

  // K^T u v of one model at the labels at hand.
  template <bool in_logs> MEMBER V marginal(V mantissa, V exponent, int64_t m) const {
    V image = parts_[tile_.n_models + m];
    I none = is_none<T>(exponent) | is_none<T>(image);
    if (in_logs) from_logs(mantissa, exponent);
    return none ? V{} : join<T>(mantissa * parts_[m], exponent + image);
  }

  // Images of all models at some labels; returns a whole exponent near that of their mean, the
  // largest one for an order of which powers might grow too large.
  template <bool whole>
  MEMBER V read_images(int64_t s, int64_t count, int64_t j, int64_t row, V *mantissas,
                       V *exponents, I &lost) {
    V top = all<T>(Type<T>::none), sum = V{}, votes = V{};
    I inside = labels_from(j);
    int64_t model = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++) {
      T threshold = (T)tile_.groups[g].kernel.sure;
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++) {
        const Row<T> &known = rows_[model * count + s];
        V y = load(images_ + (model * count + s) * width_ + j), exponent;
        V w = weight(model, row, j);
        if (known.is_lost) is_bad_[s] = true;
        if constexpr (whole) {
          split<T>(y, mantissas[model], exponent);
          exponents[model] = exponent + known.shift;
          top = largest(top, exponents[model]);
          sum += w * exponents[model];
          continue;
        }
        lost |= (y < (known.is_sure ? (T)0 : threshold)) & inside;
        I none = y == 0;
        split<T>(none ? all<T>(1) : y, mantissas[model], exponent);
        exponents[model] = none ? all<T>(Type<T>::none) : exponent + known.shift;
        top = largest(top, w > 0 ? exponents[model] : top);
        w = none ? V{} : w;
        sum += w * (none ? V{} : exponents[model]);
        votes += w;
      }
    }
    if (tile_.order >= large_order) return top;
    if (whole) return nearest_whole<T>(sum);  // weights sum to 1
    return is_none<T>(top) ? top : nearest_whole<T>(sum / votes);
  }

  MEMBER I labels_from(int64_t j) const {
    return count_up<T>() < (typename Type<T>::Bits)(tile_.n_target - j);
  }

  // Line p of Algorithm 1, in logs. Products of weights with exponents come in two parts, as in
  // `raise`. Longer steps ask for the logs of 1 / image as well, in `powers`.
  template <bool longer, bool all_there>
  MEMBER void geometric(int64_t row, int64_t j, V near, const V *mantissas, const V *exponents,
                        V *powers, V &log, V &exponent) {
    constexpr T unit = (T)(1ull << Type<T>::fraction);
    V high = V{}, rest = V{};
    I vetoed = is_none<T>(near);
    for (int64_t m = 0; m < tile_.n_models; m++) {
      V w = weight(m, row, j), part = nearest_whole<T>(w * unit) / unit;
      V distance = exponents[m] - near;
      if constexpr (!all_there) {
        I none = is_none<T>(exponents[m]);
        vetoed |= none & (w > 0);
        distance = none ? V{} : distance;
      }
      high += part * distance;
      V log_image = log2_of(mantissas[m]);
      if (longer) powers[m] = -log_image;
      rest += (w - part) * distance + w * log_image;
    }
    V whole = nearest_whole<T>(high + rest);
    log = (high - whole) + rest;
    exponent = near + whole;
    if constexpr (all_there) return;
    log = vetoed ? V{} : log;
    exponent = vetoed ? all<T>(Type<T>::none) : exponent;
  }

  // Line p of Algorithm 2, in logs: with S the weighted sum of (image / 2^near)^order, p is
  // 2^near S^(1 / order). What line v needs of it is p^f 2^(order near) = 2^near S^(f / order). Of a
  // small order powers are near 1, and only by how much they are above it says something: S - 1 is
  // summed up as well. `powers` and `whole` are image^order; for longer steps image^order / image,
  // mantissas in logs.
  template <bool longer, bool all_there>
  MEMBER void power_mean(int64_t row, int64_t j, V near, const V *mantissas, const V *exponents,
                         V *powers, V *whole, V &log, V &exponent, V &p_log, V &p_exponent,
                         bool asked, I &lost) {
    V sum = V{}, above = weight(tile_.n_models, row, j);  // what weights have more than 1
    I empty = is_none<T>(near);
    for (int64_t m = 0; m < tile_.n_models; m++) {
      V w = weight(m, row, j), fraction;
      V distance = exponents[m] - near;
      I none = I{};
      if constexpr (!all_there) {
        none = is_none<T>(exponents[m]) | empty;
        distance = none ? V{} : distance;
        none |= w == 0;
      }
      V log_image = log2_of(mantissas[m]);
      raise<T>(distance, log_image, order_, fraction, whole[m]);
      V more = exp2_minus_one(fraction);
      powers[m] = longer ? fraction - log_image : more + 1;
      if constexpr (all_there) {
        V unit = join<T>(all<T>(1), whole[m]);
        sum += w * (unit * (more + 1));
        above += w * (unit * more + (unit - 1));
      } else {
        V unit = join<T>(all<T>(1), none ? V{} : whole[m]);
        sum += w * (none ? V{} : unit * (more + 1));
        above += w * (none ? all<T>(-1) : unit * more + (unit - 1));
      }
    }
    constexpr T least = sizeof(T) == 4 ? (T)0x1p-60 : (T)0x1p-500;
    I wrong = ~(sum > least) | (sum == (T)INFINITY);
    lost |= wrong & ~empty;
    V m, e;
    split<T>(wrong ? all<T>(1) : sum, m, e);
    V log2_mantissa = log2_of_one_plus((e == 0) & ~wrong ? above : m - 1);
    raise<T>(e, log2_mantissa, power_, log, exponent);
    lost |= ((exponent < -Type<T>::limit) | (exponent > Type<T>::limit)) & ~empty;
    exponent = empty ? all<T>(Type<T>::none) : exponent + near;
    if (!asked) return;
    raise<T>(e, log2_mantissa, mean_, p_log, p_exponent);
    p_exponent = empty ? all<T>(Type<T>::none) : p_exponent + near;
  }

  // How far the marginals of the model that moved most are from where they were, over the mass of
  // the consensus; in shares of each component, if there are any.
  double residual(int64_t row, bool seen) {
    const T *p = tile_.consensus + row * tile_.n_target;
    double most = 0, total = sum_over_labels([&](int64_t j) { return (double)p[j]; });
    for (int64_t m = 0; m < tile_.n_models; m++) {
      T *before = before_ + m * width_, *after = after_ + m * width_;
      if (tile_.n_components) take_shares(before, after);
      double moved =
          sum_over_labels([&](int64_t j) { return std::fabs((double)before[j] - after[j]); });
      if (!(moved <= most)) most = moved;
    }
    if (total == 0 && seen) return INFINITY;  // too small to be seen, and not at rest
    if (most == 0 && std::isfinite(total)) return 0;
    return most / total;
  }

  // In several chains, so that no term waits for the last.
  template <class Term> double sum_over_labels(Term term) const {
    double sums[8] = {};
    int64_t j = 0;
    for (; j + 8 <= tile_.n_target; j += 8)
#pragma GCC unroll 8
      for (int chain = 0; chain < 8; chain++) sums[chain] += term(j + chain);
    for (; j < tile_.n_target; j++) sums[0] += term(j);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }

  // `before` with the mass of `after` in each component.
  void take_shares(T *before, const T *after) {
    if (tile_.components) sum_components(before, after);
    else {
      sums_[0] = sum_over_labels([&](int64_t j) { return (double)before[j]; });
      sums_[1] = sum_over_labels([&](int64_t j) { return (double)after[j]; });
    }
    for (int64_t c = 0; c < tile_.n_components; c++) {
      double share = sums_[2 * c + 1] / sums_[2 * c];
      sums_[2 * c] = std::isfinite(share) ? share : 0;
    }
    for (int64_t j = 0; j < tile_.n_target; j++)
      before[j] = (T)(before[j] * sums_[2 * (tile_.components ? tile_.components[j] : 0)]);
  }

  void sum_components(const T *before, const T *after) {
    for (int64_t c = 0; c < 2 * tile_.n_components; c++) sums_[c] = 0;
    for (int64_t j = 0; j < tile_.n_target; j++) {
      sums_[2 * tile_.components[j]] += before[j];
      sums_[2 * tile_.components[j] + 1] += after[j];
    }
  }

  void write_back(int64_t first, int64_t count) {
    for (int64_t m = 0; tile_.keeps_v && m < tile_.n_models; m++)
      for (int64_t s = 0; s < count; s++) {
        int64_t to = (m * tile_.n_rows + first + s) * tile_.n_target, at = (m * count + s) * width_;
        if (is_longer(first + s)) take_powers(v_mantissas_ + at, width_);
        memcpy(tile_.v_mantissas + to, v_mantissas_ + at, tile_.n_target * sizeof(T));
        memcpy(tile_.v_exponents + to, v_exponents_ + at, tile_.n_target * sizeof(T));
      }
    if (keeps_u_) each_group(count, [&](Part part) { write_u(part, first, count); });
    for (int64_t s = 0; s < count; s++) {
      uint8_t kept = tile_.starts_at_one ? 0 : tile_.flags[first + s] & untrusted;
      tile_.flags[first + s] = (uint8_t)(kept | (is_bad_[s] ? untrusted : 0) | found_[s]);
    }
  }

  // Mantissas from their logs, in place.
  static void take_powers(T *logs, int64_t width) {
    for (int64_t i = 0; i < width; i += step) store(logs + i, exp2_of(load(logs + i)));
  }

  void write_u(Part part, int64_t first, int64_t count) {
    int64_t n_source = part.group->kernel.n_source;
    for (int64_t m = 0; m < part.group->n_models; m++)
      for (int64_t s = 0; s < count; s++) {
        int64_t to = (m * tile_.n_rows + first + s) * n_source;
        int64_t at = part.offset + (m * count + s) * part.width;
        if (is_longer(first + s)) take_powers(u_mantissas_ + at, part.width);
        memcpy(part.group->u_mantissas + to, u_mantissas_ + at, n_source * sizeof(T));
        memcpy(part.group->u_exponents + to, u_exponents_ + at, n_source * sizeof(T));
      }
  }

  void find_some_stuck(int64_t first, int64_t count, uint8_t *stuck) {
    read_targets(first, count);
    each_group(count, [&](Part part) {
      const Kernel<T> &kernel = part.group->kernel;
      int64_t n_rows = part.group->n_models * count, n_source = kernel.n_source;
      bool summed = mark_targets(part, count) && kernel.sums;
      if (!summed)
        apply(kernel, kernel.to_source, images_ + part.first_model * count * width_, width_,
              sources_, part.width, n_rows, rows_ + part.first_model * count, between_, turned_);
      for (int64_t m = 0; m < part.group->n_models; m++)
        for (int64_t s = 0; s < count; s++) {
          const T *mu = part.group->histograms + (m * tile_.n_rows + first + s) * n_source;
          const T *kv = summed ? kernel.sums : sources_ + (m * count + s) * part.width;
          int found = 0;
          for (int64_t i = 0; i < n_source; i++) found |= (mu[i] > 0) & !(kv[i] > 0);
          stuck[first + s] |= (uint8_t)found;
        }
    });
  }

  // 2^top wherever v is above 0; whether that is everywhere.
  bool mark_targets(Part part, int64_t count) {
    T top = (T)std::ldexp(1.0, (int)part.group->kernel.top);
    I missing = I{};
    int64_t start = part.first_model * count, stop = start + part.group->n_models * count;
    for (int64_t row = start; row < stop; row++) {
      for (int64_t j = 0; j < width_; j += step) {
        I none = is_none<T>(load(v_exponents_ + row * width_ + j));
        missing |= none & labels_from(j);
        store(images_ + row * width_ + j, none ? V{} : all<T>(top));
      }
      rows_[row].least = (T)part.group->kernel.top;
    }
    return !any(missing);
  }
};
