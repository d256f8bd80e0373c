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
#include <mutex>

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

// Sweeps from one leap to the next, and as many steps as a leap looks back on. How log2 of v moved:
// by the last sweep of the cycle before, by the leap since, and by each sweep.
constexpr int cycle = 4, n_moves = cycle + 2;

// Leaps that brought a row farther off before it leaps no more; cycles without getting nearer, by
// a tenth, before it is left as it is.
constexpr int most_failures = 8, most_idle = 12;

// Where rows go that approach their fixed points.
struct Approach {
  int64_t first, last;           // these rows of the tile
  int64_t patience, max_sweeps;  // how many sweeps a row may have here, and in all
  double goal;                   // of the residual
  int64_t *n_sweeps;             // (n_rows,): what rows have had, here too in the end
  uint8_t *arrived;              // (n_rows,)
};

// Numbers of one array of the samples that are swept together.
constexpr int64_t together = 1 << 13;

// Numbers of all models that go through lines p and v side by side; rows that go through line u.
constexpr int64_t side_by_side = 1 << 10;
constexpr int rows_side_by_side = 8;

// Rows of a dense product that make up for the way of a large kernel through the caches, and from
// how many entries on a kernel is large.
constexpr int64_t rows_of_large = 48, large_kernel = 1 << 15;

// An order from which on powers are taken relative to the largest number of a mean, so that none
// overflows; below it relative to the middle, so that their sum is near 1.
constexpr double large_order = 0.25;

// Blocks of memory that nobody uses at the moment. Were each call to give them back to the system
// and ask for them again, pages would be cleared every time, which takes longer than some sweeps.
class Spare {
  static constexpr size_t most = 1 << 26;  // in all
  static constexpr int most_blocks = 16;
  struct Block {
    char *start;
    size_t size;
  };
  std::mutex lock_;
  Block blocks_[most_blocks];
  int n_blocks_ = 0;
  size_t total_ = 0;

 public:
  // Of the process, and never destroyed: a thread may outlive the end of it.
  static Spare &own() {
    static Spare *spare = new Spare;
    return *spare;
  }
  // A block of at least this size and not of more than twice it, whose size it becomes; null if
  // there is none. Nobody waits: a child that was forked meanwhile might do so for ever.
  char *take(size_t &size) {
    std::unique_lock<std::mutex> locked(lock_, std::try_to_lock);
    if (!locked) return nullptr;
    for (int i = 0; i < n_blocks_; i++) {
      Block found = blocks_[i];
      if (found.size < size || found.size / 2 > size) continue;
      blocks_[i] = blocks_[--n_blocks_];
      total_ -= found.size;
      size = found.size;
      return found.start;
    }
    return nullptr;
  }
  void give(char *start, size_t size) {
    std::unique_lock<std::mutex> locked(lock_, std::try_to_lock);
    if (!locked || n_blocks_ == most_blocks || total_ + size > most) return std::free(start);
    blocks_[n_blocks_++] = Block{start, size};
    total_ += size;
  }
};

// Memory for the samples that are swept together, in pieces at whole cache lines.
class Room {
  static constexpr size_t large_page = 1 << 21;
  char *start_ = nullptr;
  size_t used_ = 0, size_ = 0;

 public:
  Room() = default;
  Room(const Room &) = delete;
  Room &operator=(const Room &) = delete;
  ~Room() {
    if (start_) Spare::own().give(start_, size_);
  }
  // Called twice: the first time to count, then, after `open`, to share out.
  template <class A> A *take(int64_t count) {
    size_t at = used_;
    used_ += ((size_t)count * sizeof(A) + 63) / 64 * 64;
    return start_ ? (A *)(start_ + at) : nullptr;
  }
  bool open() {
    // Sparse products jump about in it: with large pages they need not look for each page.
    size_t page = used_ < 8 * large_page ? 64 : large_page;
    size_ = (used_ / page + 1) * page;
    start_ = Spare::own().take(size_);
    if (!start_) {
      start_ = (char *)std::aligned_alloc(page, size_);
#if defined(MADV_HUGEPAGE)
      if (start_ && page == large_page) madvise(start_, size_, MADV_HUGEPAGE);
#endif
    }
    used_ = 0;
    return start_ != nullptr;
  }
};

template <class T> class Sweeper {
  typedef Vector<T> V;
  typedef Mask<T> I;
  static constexpr int step = lanes<T>;

  // Line p at some labels, a vector of them.
  struct Place {
    V near;           // a whole exponent near that of the consensus
    V sum, rest;      // what models add up to, in two parts
    I empty;          // where the consensus is 0
    V log, exponent;  // of what line v takes of p
  };

  // A sample on its approach.
  struct Trail {
    int n_cycles, n_failures, n_idle;
    double nearest, last_length;
    bool left;
  };

  const Tile<T> &tile_;
  bool leaps_ = false;
  Factor<T> order_, exponent_, mean_, power_;  // order, f, 1 / order, f / order
  bool balanced_, relaxed_, keeps_u_;
  int64_t n_samples_, width_, wide_;  // at once; padded target labels; the most source labels
  int64_t n_places_;                  // vectors of labels at once
  Room room_;
  // (models, samples, labels), padded; those of sources group by group.
  T *v_mantissas_, *v_exponents_, *images_;
  T *source_mantissas_, *source_exponents_, *u_mantissas_, *u_exponents_;
  T *new_mantissas_, *new_exponents_;  // u of some rows
  T *sources_, *between_, *turned_, *before_, *after_;
  V *most_;  // of each model, the exponents of its new v
  // Of images at some places, by place and model: their logs, and image^order as 2^raised power.
  V *mantissas_, *exponents_, *logs_, *powers_, *raised_;
  Place *places_;
  Row<T> *rows_;
  double *sums_;
  bool *is_bad_, *has_zeros_;  // of samples; of histograms, at whole vectors of labels
  int64_t *place_;             // of samples: where they are in the tile
  Trail *trails_;              // of samples, if they leap
  T *moves_, *v_logs_;         // (samples, moves, models, labels), logs of v's mantissas
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
    n_places_ = at_least(1, side_by_side / (tile.n_models * step));
    n_places_ = n_places_ < width_ / step ? n_places_ : width_ / step;
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

  // Sweep samples until they are near their fixed points, with leaps to where their sweeps are
  // heading. Each leaves when it has arrived, and another one takes its place.
  bool approach(const Approach &way) {
    leaps_ = true;
    if (!make_room()) return false;
    int64_t next = way.first, count = way.last - way.first;
    count = count < n_samples_ ? count : n_samples_;
    int64_t n_open = count;
    for (int64_t s = 0; s < count; s++) start_approach(next++, s, count);
    while (n_open) {
      for (int sweep = 0; sweep < cycle; sweep++) {
        // A row that comes later has no sums that are known, and must not tell.
        lines_u(count, false);
        for (int64_t s = 0; s < count; s++) {
          lines_p_and_v(s, count, sweep == cycle - 1);
          note_step(sweep, s, count);
          if (sweep < cycle - 1) scale_targets(s, count, false);
        }
      }
      for (int64_t s = 0; s < count; s++) {
        Trail &trail = trails_[s];
        if (!trail.left && leaves(way, s)) {
          write_back(s, count);
          if (next < way.last) {
            start_approach(next++, s, count);
            continue;
          }
          trail.left = true;  // it sweeps on, and nobody looks
          n_open--;
        }
        leap(s, count);
        scale_targets(s, count, false);
      }
    }
    return true;
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
    u_mantissas_ = room_.take<T>(keeps_u_ ? n_sources : 0);
    u_exponents_ = room_.take<T>(keeps_u_ ? n_sources : 0);
    new_mantissas_ = room_.take<T>(rows_side_by_side * wide_);
    new_exponents_ = room_.take<T>(rows_side_by_side * wide_);
    sources_ = room_.take<T>(most_rows * wide_);
    between_ = room_.take<T>(most_rows * rank);
    turned_ = room_.take<T>(needs_turning() ? 2 * step * longest : 0);
    bool watched = tile_.residuals != nullptr;
    before_ = room_.take<T>(watched ? tile_.n_models * width_ : 0);
    after_ = room_.take<T>(watched ? tile_.n_models * width_ : 0);
    sums_ = room_.take<double>(watched ? 2 * tile_.n_components : 0);
    most_ = room_.take<V>(tile_.n_models);
    int64_t n_images = tile_.n_models * n_places_;
    mantissas_ = room_.take<V>(n_images);
    exponents_ = room_.take<V>(n_images);
    logs_ = room_.take<V>(n_images);
    powers_ = room_.take<V>(n_images);
    raised_ = room_.take<V>(n_images);
    places_ = room_.take<Place>(n_places_);
    rows_ = room_.take<Row<T>>(n_rows);
    is_bad_ = room_.take<bool>(n_samples_);
    place_ = room_.take<int64_t>(n_samples_);
    trails_ = room_.take<Trail>(leaps_ ? n_samples_ : 0);
    moves_ = room_.take<T>(leaps_ ? n_moves * n_targets : 0);
    v_logs_ = room_.take<T>(leaps_ ? 2 * n_targets : 0);
    has_zeros_ = room_.take<bool>(n_rows);
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
    bool at_one = tile_.starts_at_one;
    for (int64_t s = 0; s < count; s++) {
      read_sample(first + s, s, count, at_one);
      scale_targets(s, count, at_one);
    }
    for (int64_t sweep = 0; sweep < n_sweeps; sweep++) {
      bool is_last = sweep == n_sweeps - 1;
      lines_u(count, sweep == 0 && at_one);
      for (int64_t s = 0; s < count; s++) {
        lines_p_and_v(s, count, is_last);
        if (!is_last) scale_targets(s, count, false);
      }
    }
    int flags = 0;
    for (int64_t s = 0; s < count; s++) flags |= write_back(s, count);
    return flags;
  }

  // One sample to the place `s` of `count`, from v as it is in the tile or, `at_one`, v = 1.
  void read_sample(int64_t row, int64_t s, int64_t count, bool at_one) {
    place_[s] = row, is_bad_[s] = false, found_[s] = 0;
    each_group(count, [&](Part part) { read_sources(part, s, count); });
    read_targets(s, count, at_one);
  }

  void start_approach(int64_t row, int64_t s, int64_t count) {
    trails_[s] = Trail{0, 0, 0, INFINITY, INFINITY, false};
    read_sample(row, s, count, tile_.starts_at_one);
    memset(moves_of(s, 0, 0), 0, 2 * tile_.n_models * width_ * sizeof(T));
    for (int64_t m = 0; m < tile_.n_models; m++)
      for (int64_t j = 0; j < width_; j += step) {
        int64_t at = (m * count + s) * width_ + j;
        V log = load(v_mantissas_ + at), exponent = load(v_exponents_ + at);
        to_logs(log, exponent);
        keep_log(at, log, exponent);
      }
    scale_targets(s, count, false);
  }

  MEMBER T *moves_of(int64_t s, int64_t move, int64_t m) const {
    return moves_ + ((s * n_moves + move) * tile_.n_models + m) * width_;
  }

  // log2 of v in two parts, which together have all digits of its mantissa.
  MEMBER void keep_log(int64_t at, V log, V exponent) {
    store(v_logs_ + 2 * at, log);
    store(v_logs_ + 2 * at + step, exponent);
  }

  // How far the last sweep of a cycle moved log2 of v. Labels out of reach, or just cut off, stay.
  void note_step(int sweep, int64_t s, int64_t count) {
    for (int64_t m = 0; m < tile_.n_models; m++) {
      T *to = moves_of(s, 2 + sweep, m);
      for (int64_t j = 0; j < width_; j += step) {
        int64_t at = (m * count + s) * width_ + j;
        V old_log = load(v_logs_ + 2 * at), old_exponent = load(v_logs_ + 2 * at + step);
        V log = load(v_mantissas_ + at), exponent = load(v_exponents_ + at);
        I none = is_none<T>(old_exponent) | is_none<T>(exponent);
        to_logs(log, exponent);
        store(to + j, none ? V{} : (exponent - old_exponent) + (log - old_log));
        keep_log(at, log, exponent);
      }
    }
  }

  // Whether a sample leaves after a cycle: arrived, out of range, out of sweeps, or no nearer.
  bool leaves(const Approach &way, int64_t s) {
    Trail &trail = trails_[s];
    double residual = tile_.residuals[place_[s]];
    int64_t n_sweeps = way.n_sweeps[place_[s]] += cycle;
    bool arrived = residual <= way.goal && !is_bad_[s], is_nearer = residual < 0.9 * trail.nearest;
    trail.n_idle = is_nearer ? 0 : trail.n_idle + 1;
    if (is_nearer) trail.nearest = residual;
    bool may_go_on = ++trail.n_cycles * cycle + cycle <= way.patience &&
                     n_sweeps + cycle <= way.max_sweeps && trail.n_idle < most_idle;
    way.arrived[place_[s]] = arrived;
    return arrived || is_bad_[s] || !std::isfinite(residual) || !may_go_on;
  }

  // Take a sample from the end of a cycle to where its sweeps are heading (Anderson 1965; that a
  // leap every few sweeps does better than one after each: Pratapa, Suryanarayana, Pask 2016). A
  // combination of the last log v, with coefficients that sum to 1 and make the last step the
  // shortest there is. It may bring a sample farther off: then the next cycle ends without one.
  void leap(int64_t s, int64_t count) {
    double products[cycle + 1][cycle + 1], back[cycle];
    Trail &trail = trails_[s];
    multiply_steps(s, products);
    double length = products[cycle][cycle];
    bool grew = length > trail.last_length;
    trail.last_length = length;
    trail.n_failures += grew;
    bool leaps = !grew && trail.n_failures < most_failures && shortest_step(products, back);
    for (int64_t m = 0; m < tile_.n_models; m++) {
      T *moves = moves_of(s, 0, m);
      int64_t next = tile_.n_models * width_, from = (m * count + s) * width_;
      V most = all<T>(Type<T>::none);
      for (int64_t j = 0; j < width_; j += step) {
        V last = load(moves + (n_moves - 1) * next + j), ahead = V{};
        if (leaps) {
          ahead = -(T)back[0] * load(moves + next + j);
          for (int i = 0; i < cycle; i++) ahead -= (T)back[i] * load(moves + (i + 2) * next + j);
          V log = load(v_logs_ + 2 * (from + j)) + ahead, whole = nearest_whole<T>(log);
          V exponent = load(v_logs_ + 2 * (from + j) + step);
          exponent = is_none<T>(exponent) ? exponent : exponent + whole;
          keep_log(from + j, log - whole, exponent);
          store(v_mantissas_ + from + j, exp2_of(log - whole));
          store(v_exponents_ + from + j, exponent);
        }
        store(moves + j, last);
        store(moves + next + j, ahead);
        most = largest(most, load(v_exponents_ + from + j));
      }
      most_[m] = most;
    }
  }

  // Products of the changes from step to step and of the last step with each other. There is no
  // step before the first cycle.
  void multiply_steps(int64_t s, double (&products)[cycle + 1][cycle + 1]) const {
    int64_t next = tile_.n_models * width_;
    const T *moves = moves_of(s, 0, 0);
    T has_before = trails_[s].n_cycles > 1;
    V sums[cycle + 1][cycle + 1] = {};
    for (int64_t i = 0; i < next; i += step) {
      V changes[cycle + 1], before = load(moves + i);
#pragma GCC unroll 4
      for (int k = 0; k < cycle; k++) {
        V after = load(moves + (k + 2) * next + i);
        changes[k] = k ? after - before : has_before * (after - before);
        before = after;
      }
      changes[cycle] = before;
#pragma GCC unroll 5
      for (int a = 0; a <= cycle; a++)
#pragma GCC unroll 5
        for (int b = 0; b <= a; b++) sums[a][b] += changes[a] * changes[b];
    }
    for (int a = 0; a <= cycle; a++)
      for (int b = 0; b <= a; b++) {
        double sum = 0;
        for (int lane = 0; lane < step; lane++) sum += (double)sums[a][b][lane];
        products[a][b] = products[b][a] = sum;
      }
  }

  // With what coefficients changes from step to step make up the last step; by Cholesky. Changes
  // that rounding can make do not count, nor those in almost the same direction as others.
  bool shortest_step(const double (&products)[cycle + 1][cycle + 1],
                     double (&back)[cycle]) const {
    constexpr double damping = 1e-7, least_change = 1e-12;  // the latter as a square
    double unit = std::ldexp(1.0, 1 - Type<T>::digits);
    double rounding = unit * unit * tile_.n_models * width_ + least_change * products[cycle][cycle];
    double factor[cycle][cycle], lengths[cycle];
    for (int a = 0; a < cycle; a++) lengths[a] = products[a][a] > 0 ? std::sqrt(products[a][a]) : 1;
    for (int a = 0; a < cycle; a++) {
      double right = products[a][cycle] / lengths[a];
      for (int b = 0; b <= a; b++) {
        double sum = products[a][b] / lengths[a] / lengths[b];
        if (a == b) sum += damping + rounding / (lengths[a] * lengths[a]);
        for (int k = 0; k < b; k++) sum -= factor[a][k] * factor[b][k];
        if (a == b && !(sum > 0)) return false;
        factor[a][b] = a == b ? std::sqrt(sum) : sum / factor[b][b];
      }
      for (int k = 0; k < a; k++) right -= factor[a][k] * back[k];
      back[a] = right / factor[a][a];
    }
    for (int a = cycle - 1; a >= 0; a--) {
      for (int k = a + 1; k < cycle; k++) back[a] -= factor[k][a] * back[k];
      back[a] /= factor[a][a];
    }
    bool is_finite = true;
    for (int a = 0; a < cycle; a++) {
      back[a] /= lengths[a];
      is_finite &= std::isfinite(back[a]);
    }
    return is_finite;
  }

  // K v, line u and K^T u of all samples.
  void lines_u(int64_t count, bool at_one) {
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
      line_u(part, count, summed);
      apply(kernel, kernel.to_target, sources_, part.width, images, width_, n_rows, rows, between_,
            turned_);
    });
  }

  void use_sums(const Kernel<T> &kernel, Row<T> *rows, int64_t n_rows) {
    for (int64_t row = 0; row < n_rows; row++) {
      rows[row] = Row<T>{(T)(-kernel.top - kernel.scale), (T)kernel.top, false, false};
      rows[row].is_sure = kernel.n_factors == 1 && keeps_all(kernel.to_source[0], rows[row]);
    }
  }

  // Histograms as mantissas (their logs, if they are raised to powers) and exponents.
  void read_sources(Part part, int64_t s, int64_t count) {
    int64_t n_source = part.group->kernel.n_source;
    for (int64_t m = 0; m < part.group->n_models; m++) {
      const T *from = part.group->histograms + (m * tile_.n_rows + place_[s]) * n_source;
      int64_t row = m * count + s, at = part.offset + row * part.width;
      bool in_logs = !balanced_ || is_longer(s);
      I odd = I{}, zero = I{};
      for (int64_t i = 0; i < part.width; i += step) {
        V x = load_some<T>(from + i, n_source - i, 0), mantissa, exponent;
        I normal = is_normal<T>(x);
        odd |= ((I)x != 0) & ~normal;
        if (i + step <= n_source) zero |= ~normal;
        split<T>(normal ? x : all<T>(1), mantissa, exponent);
        store(source_mantissas_ + at + i, in_logs ? log2_of(mantissa) : mantissa);
        store(source_exponents_ + at + i, normal ? exponent : all<T>(Type<T>::none));
      }
      is_bad_[s] |= any(odd);  // below the normal numbers: digits are missing; or no number
      has_zeros_[part.first_model * count + row] = any(zero);
      if (is_longer(s)) read_u(part, m, s, row);
    }
  }

  void read_u(Part part, int64_t m, int64_t s, int64_t row) {
    int64_t n_source = part.group->kernel.n_source;
    int64_t from = (m * tile_.n_rows + place_[s]) * n_source, at = part.offset + row * part.width;
    for (int64_t i = 0; i < part.width; i += step) {
      const T *mantissas = part.group->u_mantissas, *exponents = part.group->u_exponents;
      V mantissa = load_some<T>(mantissas + from + i, n_source - i, 1);
      V exponent = load_some<T>(exponents + from + i, n_source - i, Type<T>::none);
      to_logs(mantissa, exponent);
      store(u_mantissas_ + at + i, mantissa);
      store(u_exponents_ + at + i, exponent);
    }
  }

  MEMBER bool is_longer(int64_t s) const { return relaxed_ && tile_.omega[place_[s]] != 1; }

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

  void read_targets(int64_t s, int64_t count, bool at_one) {
    int64_t n_target = tile_.n_target;
    for (int64_t m = 0; m < tile_.n_models; m++) {
      int64_t from = (m * tile_.n_rows + place_[s]) * n_target, at = (m * count + s) * width_;
      V most = all<T>(Type<T>::none);
      for (int64_t j = 0; j < width_; j += step) {
        V mantissa = all<T>(1), exponent = labels_from(j) ? V{} : all<T>(Type<T>::none);
        if (!at_one) {
          mantissa = load_some<T>(tile_.v_mantissas + from + j, n_target - j, 1);
          exponent = load_some<T>(tile_.v_exponents + from + j, n_target - j, Type<T>::none);
        }
        if (is_longer(s)) to_logs(mantissa, exponent);
        store(v_mantissas_ + at + j, mantissa);
        store(v_exponents_ + at + j, exponent);
        most = largest(most, exponent);
      }
      most_[m] = most;
    }
  }

  // The v of a sample, which was made last, for the next product; not where its sums are `known`.
  void scale_targets(int64_t s, int64_t count, bool known) {
    int64_t model = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++)
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++) {
        int64_t row = model * count + s, at = row * width_;
        if (known && tile_.groups[g].kernel.sums) continue;
        T most = largest_of<T>(most_[model]);
        rows_[row] = to_scale(tile_.groups[g].kernel, v_mantissas_ + at, v_exponents_ + at,
                              images_ + at, width_, most, is_longer(s));
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
  void line_u(Part part, int64_t count, bool summed) {
    int64_t n_rows = part.group->n_models * count;
    for (int64_t row = 0; row < n_rows;) {
      bool longer = is_longer(row % count);
      int64_t stop = row + 1, end = row + rows_side_by_side;
      end = end < n_rows ? end : n_rows;
      while (stop < end && is_longer(stop % count) == longer) stop++;
      auto u_of = longer ? balanced_ ? &Sweeper::u_of_rows<true, true>
                                     : &Sweeper::u_of_rows<false, true>
                         : balanced_ ? &Sweeper::u_of_rows<true, false>
                                     : &Sweeper::u_of_rows<false, false>;
      (this->*u_of)(part, count, row, stop, summed);
      row = stop;
    }
  }

  // A step is taken for all rows before the next one is: what one number waits for, others do not.
  template <bool balanced, bool longer>
  void u_of_rows(Part part, int64_t count, int64_t start, int64_t stop, bool summed) {
    const Kernel<T> &kernel = part.group->kernel;
    int64_t width = part.width, at = part.offset + start * width, wholes[rows_side_by_side];
    Row<T> *rows = rows_ + part.first_model * count + start;
    const bool *has_zeros = has_zeros_ + part.first_model * count + start;
    const T *sums = summed ? kernel.sums : sources_ + start * width;
    int64_t sums_step = summed ? 0 : width, n_rows = stop - start;
    // New scalings of longer steps must not take the place of old ones yet.
    bool in_place = keeps_u_ && !longer;
    T *mantissas = in_place ? u_mantissas_ + at : new_mantissas_;
    T *exponents = in_place ? u_exponents_ + at : new_exponents_;
    for (int64_t row = 0; row < n_rows; row++) {
      int64_t whole = longer || has_zeros[row] ? 0 : kernel.n_source / step * step;
      V least = divide_by_sums<balanced && !longer>(
          sums + row * sums_step, at + row * width, whole, width, rows[row].shift,
          mantissas + row * width, exponents + row * width);
      wholes[row] = are_sure(least, surely(kernel, rows[row])) ? whole : 0;
    }
    if (!balanced) {
      for (int64_t i = 0; i < n_rows * width; i += step) {
        V mantissa, exponent;
        raise<T>(load(exponents + i), load(mantissas + i), exponent_, mantissa, exponent);
        store(mantissas + i, mantissa);
        store(exponents + i, exponent);
      }
      if (!longer) take_powers(mantissas, n_rows * width);
    }
    for (int64_t row = 0; row < n_rows; row++) {
      int64_t s = (start + row) % count, own = row * width;
      V most = all<T>(Type<T>::none), least = V{};
      I lost = I{};
      for (int64_t i = own; i < own + wholes[row]; i += step) {
        V exponent = load(exponents + i);
        most = largest(most, exponent);
        least = smallest(least, exponent);
      }
      lost |= is_far<T>(most) | is_far<T>(least);
      finish_u<longer>(sums + row * sums_step, at + own, wholes[row], width,
                       surely(kernel, rows[row]), longer ? tile_.omega[place_[s]] : (T)1,
                       mantissas + own, exponents + own, most, lost);
      is_bad_[s] |= any(lost) || rows[row].is_lost;
      rows[row] = to_scale(kernel, mantissas + own, exponents + own,
                           sources_ + (start + row) * width, width, largest_of<T>(most), longer);
      if (longer) {
        memcpy(u_mantissas_ + at + own, mantissas + own, width * sizeof(T));
        memcpy(u_exponents_ + at + own, exponents + own, width * sizeof(T));
      }
    }
  }

  // mu / K v of a row, its mantissas in logs unless they are `plain`; mu as in `read_sources`. The
  // smallest of K v at the first `whole` labels.
  template <bool plain>
  MEMBER V divide_by_sums(const T *kv, int64_t at, int64_t whole, int64_t width, T shift,
                          T *mantissas, T *exponents) const {
    V least = all<T>((T)INFINITY);
    for (int64_t i = 0; i < width; i += step) {
      V y = load(kv + i), mu = load(source_mantissas_ + at + i), m, e;
      if (i < whole) least = smallest(least, y);
      split<T>(y == 0 ? all<T>(1) : y, m, e);
      store(mantissas + i, plain ? mu / m : mu - log2_of(m));
      store(exponents + i, load(source_exponents_ + at + i) - (e + shift));
    }
    return least;
  }

  // Labels without mass, and what was lost; of longer steps the rest of the way.
  template <bool longer>
  MEMBER void finish_u(const T *kv, int64_t at, int64_t start, int64_t stop, T sure, T omega,
                       T *mantissas, T *exponents, V &most, I &lost) {
    for (int64_t i = start; i < stop; i += step) {
      V y = load(kv + i), mantissa = load(mantissas + i), exponent = load(exponents + i);
      I none = is_none<T>(load(source_exponents_ + at + i));
      lost |= (y < sure) & ~none;
      none |= y == 0;
      exponent = none ? all<T>(Type<T>::none) : exponent;
      mantissa = none ? all<T>(longer ? 0 : 1) : mantissa;
      if (longer)
        stretch(load(u_mantissas_ + at + i), load(u_exponents_ + at + i), omega, mantissa,
                exponent);
      store(mantissas + i, mantissa);
      store(exponents + i, exponent);
      most = largest(most, exponent);
      lost |= is_far<T>(exponent);
    }
  }

  // Below it a sum of a row may have lost something.
  static MEMBER T surely(const Kernel<T> &kernel, const Row<T> &row) {
    return row.is_sure ? (T)0 : (T)kernel.sure;
  }

  // Of whole vectors of numbers.
  static MEMBER V smallest_in(const T *numbers, int64_t count) {
    V least = all<T>((T)INFINITY);
    for (int64_t i = 0; i < count; i += step) least = smallest(least, load(numbers + i));
    return least;
  }

  // Whether sums of which these are the smallest are above 0, and nothing of them was lost.
  static MEMBER bool are_sure(V least, T sure) {
    return smallest_of<T>(least) >= (sure > 0 ? sure : std::numeric_limits<T>::min());
  }

  // old^(1 - omega) new^omega, mantissas as logs: a longer step. Numbers that are 0 are left so.
  static MEMBER void stretch(V old_log, V old_exponent, T omega, V &log, V &exponent) {
    I none = is_none<T>(old_exponent) | is_none<T>(exponent);
    V more = omega * ((exponent - old_exponent) + (log - old_log));
    V total = none ? log : old_log + more, whole = nearest_whole<T>(total);
    log = total - whole;
    exponent = (none ? exponent : old_exponent) + whole;
  }

  // Where all is `whole`, labels have weights in common.
  template <bool whole = false> MEMBER V weight(int64_t model, int64_t row, int64_t j) const {
    const int64_t *steps = tile_.weight_steps;
    const T *from = tile_.weights + model * steps[0] + row * steps[1];
    if (whole || !steps[2]) return all<T>(from[0]);
    return load_some<T>(from + j, tile_.n_target - j, 0);
  }

  // The consensus of one sample and the new v of its models (lines p and v).
  void lines_p_and_v(int64_t s, int64_t count, bool is_last) {
    bool longer = is_longer(s);
    auto new_v = longer ? balanced_ ? &Sweeper::new_v<true, true> : &Sweeper::new_v<false, true>
                        : balanced_ ? &Sweeper::new_v<true, false> : &Sweeper::new_v<false, false>;
    (this->*new_v)(s, count, is_last);
    if (is_last && tile_.residuals)
      tile_.residuals[place_[s]] = residual(place_[s], found_[s] & has_mass);
  }

  template <bool balanced, bool longer>
  void new_v(int64_t s, int64_t count, bool is_last) {
    Found found{};
    for (int64_t m = 0; m < tile_.n_models; m++) most_[m] = all<T>(Type<T>::none);
    int64_t whole = has_whole_images(s, count) ? tile_.n_target / step * step : 0;
    new_v_of_some<balanced, longer, true>(s, count, is_last, 0, whole, found);
    new_v_of_some<balanced, longer, false>(s, count, is_last, whole, width_, found);
    found_[s] = (uint8_t)((any(found.some) ? has_mass : 0) | (any(found.large) ? overflown : 0));
    is_bad_[s] |= any(found.lost);
  }

  // What the labels of a sample show.
  struct Found {
    I lost, some, large;
  };

  // Whether the images of all models are above 0 and sure, and every model has a vote on every
  // label.
  bool has_whole_images(int64_t s, int64_t count) const {
    const int64_t *steps = tile_.weight_steps;
    if (steps[2]) return false;
    int64_t model = 0, whole = tile_.n_target / step * step;
    V least_known = all<T>((T)INFINITY);  // of rows that lost nothing
    for (int64_t g = 0; g < tile_.n_groups; g++) {
      V least = all<T>((T)INFINITY);
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++) {
        if (!(tile_.weights[model * steps[0] + place_[s] * steps[1]] > 0)) return false;
        int64_t row = model * count + s;
        V of_row = smallest_in(images_ + row * width_, whole);
        if (rows_[row].is_sure) least_known = smallest(least_known, of_row);
        else least = smallest(least, of_row);
      }
      if (!are_sure(least, (T)tile_.groups[g].kernel.sure)) return false;
    }
    return are_sure(least_known, 0);
  }

  // Where all is `whole`, nobody need look for zeros and for what was lost. A step is taken at some
  // places before the next one is, as in line u.
  template <bool balanced, bool longer, bool whole>
  MEMBER void new_v_of_some(int64_t s, int64_t count, bool is_last, int64_t start, int64_t stop,
                            Found &found) {
    int64_t row = place_[s], n_models = tile_.n_models;
    V lowest_exponent = V{};
    for (int64_t next = start; next < stop; next += n_places_ * step) {
      int64_t end = stop < next + n_places_ * step ? stop : next + n_places_ * step;
      int64_t n_places = (end - next) / step;
      for (int64_t place = 0; place < n_places; place++)
        places_[place].near = read_images<whole>(s, count, next + place * step, row,
                                                 place * n_models, found.lost);
      for (int64_t i = 0; i < n_places * n_models; i++) logs_[i] = log2_of(mantissas_[i]);
      if (!balanced) {
        for (int64_t place = 0; place < n_places; place++)
          raise_images<longer, whole>(place * n_models, places_[place].near);
        for (int64_t i = 0; i < n_places * n_models; i++) powers_[i] = exp2_minus_one(powers_[i]);
      }
      for (int64_t place = 0; place < n_places; place++) {
        if (balanced) sum_logs<longer, whole>(row, next + place * step, place * n_models,
                                              places_[place]);
        else sum_powers<longer, whole>(row, next + place * step, place * n_models, places_[place]);
      }
      for (int64_t place = 0; place < n_places; place++) {
        V p_log, p_exponent;
        Place &at = places_[place];
        if (balanced) {
          geometric<whole>(at);
          p_log = at.log, p_exponent = at.exponent;
        } else power_mean<whole>(at, p_log, p_exponent, is_last, found.lost);
        if (is_last) store_consensus(row, next + place * step, p_log, p_exponent, found);
        if (!longer) at.log = exp2_of(at.log);
      }
      if (is_last && !tile_.keeps_v) continue;
      for (int64_t m = 0; m < n_models; m++)
        divide_by_images<balanced, longer, whole>(row, m, (m * count + s) * width_, next, end,
                                                  is_last, lowest_exponent, found.lost);
    }
    if (!whole || longer) return;
    found.lost |= is_far<T>(lowest_exponent);
    for (int64_t m = 0; m < n_models; m++) found.lost |= is_far<T>(most_[m]);
  }

  void store_consensus(int64_t row, int64_t j, V log, V exponent, Found &found) {
    T *to = tile_.consensus + row * tile_.n_target + j;
    V mantissa = exp2_of(log), p = join<T>(mantissa, exponent, Type<T>::bias);
    store_some(to, p, tile_.n_target - j);
    I some = ~is_none<T>(exponent);
    found.some |= some;
    found.large |= p == (T)INFINITY;
    if (any(some & (p == 0))) store_tiny(to, tile_.n_target - j, mantissa, exponent, some);
  }

  // Line v of one model at some places.
  template <bool balanced, bool longer, bool whole>
  MEMBER void divide_by_images(int64_t row, int64_t m, int64_t at, int64_t start, int64_t stop,
                               bool is_last, V &lowest_exponent, I &lost) {
    bool watched = is_last && tile_.residuals;
    T omega = longer ? tile_.omega[row] : (T)1;
    T *v_mantissas = v_mantissas_ + at, *v_exponents = v_exponents_ + at;
    V most = most_[m], least = lowest_exponent;
    const Place *place = places_;
    int64_t i = m;
    for (int64_t j = start; j < stop; j += step, place++, i += tile_.n_models) {
      V image = mantissas_[i], of_image = exponents_[i];
      V mantissa = longer ? place->log + powers_[i] : place->log / image;
      V exponent = place->exponent - of_image;
      if (!balanced) exponent += raised_[i];
      if (!balanced && !longer) mantissa *= powers_[i];
      if constexpr (!whole) {
        I none = is_none<T>(place->exponent) | is_none<T>(of_image);
        exponent = none ? all<T>(Type<T>::none) : exponent;
        mantissa = none ? all<T>(longer ? 0 : 1) : mantissa;
      }
      if (watched || longer) {
        V old_mantissa = load(v_mantissas + j), old_exponent = load(v_exponents + j);
        if (watched) {
          store(before_ + m * width_ + j,
                marginal<longer>(old_mantissa, old_exponent, image, of_image));
          store(after_ + m * width_ + j, marginal<longer>(mantissa, exponent, image, of_image));
        }
        if (longer) stretch(old_mantissa, old_exponent, omega, mantissa, exponent);
      }
      store(v_mantissas + j, mantissa);
      store(v_exponents + j, exponent);
      most = largest(most, exponent);
      if (whole && !longer) least = smallest(least, exponent);
      else lost |= is_far<T>(exponent);
    }
    most_[m] = most;
    lowest_exponent = least;
  }

  // Numbers of the consensus that are below the normal ones.
  static void store_tiny(T *to, int64_t count, V mantissa, V exponent, I some) {
    for (int64_t lane = 0; lane < step && lane < count; lane++)
      if (some[lane] && exponent[lane] <= lowest<T>) {
        T tiny = join_tiny(mantissa[lane], exponent[lane]);
        memcpy(to + lane, &tiny, sizeof tiny);
      }
  }

  // K^T u v of one model.
  template <bool in_logs> static MEMBER V marginal(V v, V v_exponent, V image, V of_image) {
    I none = is_none<T>(v_exponent) | is_none<T>(of_image);
    if (in_logs) from_logs(v, v_exponent);
    return none ? V{} : join<T>(v * image, v_exponent + of_image);
  }

  // Images of all models at some labels; returns a whole exponent near that of their mean, the
  // largest one for an order of which powers might grow too large.
  template <bool whole>
  MEMBER V read_images(int64_t s, int64_t count, int64_t j, int64_t row, int64_t at, I &lost) {
    V *mantissas = mantissas_ + at, *exponents = exponents_ + at;
    V top = all<T>(Type<T>::none), sum = V{}, votes = V{};
    I inside = labels_from(j);
    int64_t model = 0;
    for (int64_t g = 0; g < tile_.n_groups; g++) {
      T threshold = (T)tile_.groups[g].kernel.sure;
      for (int64_t m = 0; m < tile_.groups[g].n_models; m++, model++) {
        const Row<T> &known = rows_[model * count + s];
        V y = load(images_ + (model * count + s) * width_ + j), exponent;
        V w = weight<whole>(model, row, j);
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

  // Of Algorithm 1, the weighted sum of the logs of images. Products of weights with exponents come
  // in two parts, as in `raise`. Longer steps ask for the logs of 1 / image as well, in `powers_`.
  template <bool longer, bool whole>
  MEMBER void sum_logs(int64_t row, int64_t j, int64_t at, Place &place) {
    constexpr T unit = (T)(1ull << Type<T>::fraction);
    V near = place.near, high = V{}, rest = V{};
    I vetoed = is_none<T>(near);
    for (int64_t m = 0; m < tile_.n_models; m++) {
      V w = weight<whole>(m, row, j), part = nearest_whole<T>(w * unit) / unit;
      V distance = exponents_[at + m] - near, log_image = logs_[at + m];
      if constexpr (!whole) {
        I none = is_none<T>(exponents_[at + m]);
        vetoed |= none & (w > 0);
        distance = none ? V{} : distance;
      }
      high += part * distance;
      rest += (w - part) * distance + w * log_image;
      if (longer) powers_[at + m] = -log_image;
    }
    place.sum = high;
    place.rest = rest;
    place.empty = vetoed;
  }

  // Line p of Algorithm 1, in logs.
  template <bool whole> static MEMBER void geometric(Place &place) {
    V exponent = nearest_whole<T>(place.sum + place.rest);
    place.log = (place.sum - exponent) + place.rest;
    place.exponent = place.near + exponent;
    if constexpr (whole) return;
    place.log = place.empty ? V{} : place.log;
    place.exponent = place.empty ? all<T>(Type<T>::none) : place.exponent;
  }

  // (image / 2^near)^order of all models at one place: 2^(raised + power), in whole numbers and the
  // rest. For longer steps `logs_` are those of image^order / image.
  template <bool longer, bool whole> MEMBER void raise_images(int64_t at, V near) {
    I empty = is_none<T>(near);
    for (int64_t i = at; i < at + tile_.n_models; i++) {
      V distance = exponents_[i] - near, log_image = logs_[i], fraction, raised;
      if (!whole) distance = is_none<T>(exponents_[i]) | empty ? V{} : distance;
      raise<T>(distance, log_image, order_, fraction, raised);
      raised_[i] = raised;
      powers_[i] = fraction;
      if (longer) logs_[i] = fraction - log_image;
    }
  }

  // Of Algorithm 2, S: the weighted sum of these powers. Of a small order they are near 1, and only
  // by how much they are above it says something: that is what `powers_` come as, and S - 1 is
  // summed up as well.
  template <bool longer, bool whole>
  MEMBER void sum_powers(int64_t row, int64_t j, int64_t at, Place &place) {
    V near = place.near, sum = V{};
    V above = weight<whole>(tile_.n_models, row, j);  // what weights have more than 1
    I empty = is_none<T>(near);
    for (int64_t m = 0; m < tile_.n_models; m++) {
      V w = weight<whole>(m, row, j), more = powers_[at + m], unit = raised_[at + m];
      if constexpr (whole) {
        unit = join<T>(all<T>(1), unit);
        sum += w * (unit * (more + 1));
        above += w * (unit * more + (unit - 1));
      } else {
        I none = is_none<T>(exponents_[at + m]) | empty | (w == 0);
        unit = join<T>(all<T>(1), none ? V{} : unit);
        sum += w * (none ? V{} : unit * (more + 1));
        above += w * (none ? all<T>(-1) : unit * more + (unit - 1));
      }
      powers_[at + m] = longer ? logs_[at + m] : more + 1;
    }
    place.sum = sum;
    place.rest = above;
    place.empty = empty;
  }

  // Line p of Algorithm 2, in logs: p is 2^near S^(1 / order). What line v needs of it is
  // p^f 2^(order near) = 2^near S^(f / order).
  template <bool whole>
  MEMBER void power_mean(Place &place, V &p_log, V &p_exponent, bool asked, I &lost) {
    constexpr T least = sizeof(T) == 4 ? (T)0x1p-60 : (T)0x1p-500;
    V sum = place.sum, m, e;
    I wrong = ~(sum > least) | (sum == (T)INFINITY), empty = whole ? I{} : place.empty;
    lost |= wrong & ~empty;
    split<T>(wrong ? all<T>(1) : sum, m, e);
    V log2_mantissa = log2_of_one_plus((e == 0) & ~wrong ? place.rest : m - 1);
    raise<T>(e, log2_mantissa, power_, place.log, place.exponent);
    // Not by `is_far`: one that is as small as that of 0 is far as well.
    I far = (place.exponent < -Type<T>::limit) | (place.exponent > Type<T>::limit);
    lost |= far & ~empty;
    place.exponent = empty ? all<T>(Type<T>::none) : place.exponent + place.near;
    if (!asked) return;
    raise<T>(e, log2_mantissa, mean_, p_log, p_exponent);
    p_exponent = empty ? all<T>(Type<T>::none) : p_exponent + place.near;
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

  // What the tile asks for of one sample; its flags.
  int write_back(int64_t s, int64_t count) {
    int64_t row = place_[s];
    for (int64_t m = 0; tile_.keeps_v && m < tile_.n_models; m++) {
      int64_t to = (m * tile_.n_rows + row) * tile_.n_target, at = (m * count + s) * width_;
      if (is_longer(s)) take_powers(v_mantissas_ + at, width_);
      memcpy(tile_.v_mantissas + to, v_mantissas_ + at, tile_.n_target * sizeof(T));
      memcpy(tile_.v_exponents + to, v_exponents_ + at, tile_.n_target * sizeof(T));
    }
    if (keeps_u_) each_group(count, [&](Part part) { write_u(part, s, count); });
    uint8_t kept = tile_.starts_at_one ? 0 : tile_.flags[row] & untrusted;
    tile_.flags[row] = (uint8_t)(kept | (is_bad_[s] ? untrusted : 0) | found_[s]);
    return tile_.flags[row];
  }

  // Mantissas from their logs, in place.
  static void take_powers(T *logs, int64_t width) {
    for (int64_t i = 0; i < width; i += step) store(logs + i, exp2_of(load(logs + i)));
  }

  void write_u(Part part, int64_t s, int64_t count) {
    int64_t n_source = part.group->kernel.n_source;
    for (int64_t m = 0; m < part.group->n_models; m++) {
      int64_t to = (m * tile_.n_rows + place_[s]) * n_source;
      int64_t at = part.offset + (m * count + s) * part.width;
      if (is_longer(s)) take_powers(u_mantissas_ + at, part.width);
      memcpy(part.group->u_mantissas + to, u_mantissas_ + at, n_source * sizeof(T));
      memcpy(part.group->u_exponents + to, u_exponents_ + at, n_source * sizeof(T));
    }
  }

  void find_some_stuck(int64_t first, int64_t count, uint8_t *stuck) {
    for (int64_t s = 0; s < count; s++) {
      place_[s] = first + s;
      read_targets(s, count, tile_.starts_at_one);
    }
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
