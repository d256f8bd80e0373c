// What Python calls: plain C, pointers and sizes that it has checked.
#include "means.h"
#include "sweeps.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

// Numbers below the normal ones are 0 as long as this lives: they would slow everything down,
// and what matters never depends on them.
class Flushing {
#if defined(__x86_64__)
  unsigned before_ = _mm_getcsr();

 public:
  Flushing() { _mm_setcsr(before_ | 0x8040); }
  ~Flushing() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  uint64_t before_;

 public:
  Flushing() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (1ull << 24)));
  }
  ~Flushing() { asm volatile("msr fpcr, %0" ::"r"(before_)); }
#endif
};

template <class T> int sweep(const Tile<T> *tile, int64_t n_sweeps) {
  Flushing flushing;
  return Sweeper<T>(*tile).run(n_sweeps);
}

template <class T> int approach(const Tile<T> *tile, const Approach *way) {
  Flushing flushing;
  return Sweeper<T>(*tile).approach(*way) ? 0 : 1;
}

template <class T> int find_stuck(const Tile<T> *tile, uint8_t *stuck) {
  Flushing flushing;
  return Sweeper<T>(*tile).find_stuck(stuck) ? 0 : 1;
}

template <class T> int means(const Mean<T> *mean) {
  Flushing flushing;
  return take_means(*mean) ? 0 : 1;
}

}  // namespace

extern "C" {

int sweep_float32(const Tile<float> *tile, int64_t n_sweeps) { return sweep(tile, n_sweeps); }
int sweep_float64(const Tile<double> *tile, int64_t n_sweeps) { return sweep(tile, n_sweeps); }
int approach_float32(const Tile<float> *tile, const Approach *way) { return approach(tile, way); }
int approach_float64(const Tile<double> *tile, const Approach *way) { return approach(tile, way); }
int find_stuck_float32(const Tile<float> *tile, uint8_t *stuck) { return find_stuck(tile, stuck); }
int find_stuck_float64(const Tile<double> *tile, uint8_t *stuck) { return find_stuck(tile, stuck); }

int means_float32(const Mean<float> *mean) { return means(mean); }
int means_float64(const Mean<double> *mean) { return means(mean); }

int vector_bytes() { return VECTOR_BYTES; }

// The levels of this processor as bits: 1 for AVX2 and what came with it, 2 for AVX-512.
int processor_levels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
             __builtin_cpu_supports("popcnt");
  int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512cd");
  return avx2 + 2 * avx512;
#else
  return 0;
#endif
}
}
