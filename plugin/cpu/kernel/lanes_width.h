// kernel/lanes_width: the loops of lanes.h for one vector width, with
//   LANES_NAME     the table of functions
//   LANES_PIXELS   most results that the forward loop computes at a time: 1, 2
//                  or 4
#include <stdbool.h>
#include <string.h>

#include "kernel/lanes.h"

typedef float cpu_kernel_lane_vec __attribute__((vector_size(64), aligned(4)));
#define VEC cpu_kernel_lane_vec

// ---- forward ----------------------------------------------------------------

// PIXELS results of a row, from `first` on, of OUTS out features: the taps
// [lo, hi) of each row of them. The channels of all taps of a row are one run,
// unless taps are dilated.
#define FORWARD(name, PIXELS)                                                 \
  static inline void name(const cpu_kernel_lanes *l, const float *x,          \
                          const float *w, int64_t row, int64_t first,         \
                          int64_t lo, int64_t hi, float *y, int64_t outs)     \
  {                                                                           \
    VEC acc[PIXELS][CPU_KERNEL_LANES_OUTS];                                   \
    for (int p = 0; p < PIXELS; p++) {                                        \
      for (int o = 0; o < CPU_KERNEL_LANES_OUTS; o++) acc[p][o] = (VEC){ 0 }; \
    }                                                                         \
    const int64_t pixel = l->channels * CPU_KERNEL_LANES;                     \
    const int64_t step = l->stride[1] * pixel;                                \
    const int64_t runs = l->dilation[1] == 1 && hi > lo ? 1 : hi - lo;        \
    const int64_t n = runs == 1 ? (hi - lo) * l->channels : l->channels;      \
    for (int64_t t = 0; t < l->taps[0]; t++) {                                \
      const int64_t at = cpu_kernel_lanes_row(l, row, t);                     \
      if (at < 0) continue;                                                   \
      for (int64_t u = lo; u < lo + runs; u++) {                              \
        const float *from = x + at * l->width * pixel + first * step +        \
                            u * l->dilation[1] * pixel;                       \
        const float *by =                                                     \
            w + (t * l->taps[1] + u) * l->channels * CPU_KERNEL_LANES_OUTS;   \
        for (int64_t k = 0; k < n; k++) {                                     \
          VEC v[PIXELS];                                                      \
          for (int p = 0; p < PIXELS; p++) {                                  \
            v[p] = *(const VEC *)(from + k * CPU_KERNEL_LANES + p * step);    \
          }                                                                   \
          for (int o = 0; o < CPU_KERNEL_LANES_OUTS; o++) {                   \
            const float f = by[k * CPU_KERNEL_LANES_OUTS + o];                \
            for (int p = 0; p < PIXELS; p++) acc[p][o] += v[p] * f;           \
          }                                                                   \
        }                                                                     \
      }                                                                       \
    }                                                                         \
    y += (row * l->results[1] + first) * l->outs * CPU_KERNEL_LANES;          \
    for (int o = 0; o < CPU_KERNEL_LANES_OUTS; o++) {                         \
      if (o >= outs) break;                                                   \
      for (int p = 0; p < PIXELS; p++) {                                      \
        *(VEC *)(y + (p * l->outs + o) * CPU_KERNEL_LANES) = acc[p][o];       \
      }                                                                       \
    }                                                                         \
  }

FORWARD(forward_four, 4)
FORWARD(forward_two, 2)
FORWARD(forward_one, 1)

// The taps [lo, hi) of a row that meet any element of it at results
// [first, first + n): the others meet only padding.
static void limit_taps(const cpu_kernel_lanes *l, int64_t first, int64_t n,
                       int64_t *out_lo, int64_t *out_hi)
{
  const int64_t end = l->low[1] + (l->in[1] - 1) * l->hole[1];
  int64_t lo = 0, hi = l->taps[1];
  while (lo < hi &&
         (first + n - 1) * l->stride[1] + lo * l->dilation[1] < l->low[1]) {
    lo++;
  }
  while (hi > lo && first * l->stride[1] + (hi - 1) * l->dilation[1] > end) {
    hi--;
  }
  *out_lo = lo;
  *out_hi = hi;
}

// One row of results. Near the padding, where two results meet fewer taps than
// four, fewer are computed at a time.
static void forward_row(const cpu_kernel_lanes *l, const float *x,
                        const float *w, int64_t row, float *y, int64_t outs)
{
  const int64_t n = l->results[1];
  int64_t lo, hi, lo2, hi2, lo4, hi4;
  for (int64_t first = 0; first < n;) {
    const int64_t left = n - first;
    if (LANES_PIXELS == 4 && left >= 4) {
      limit_taps(l, first, 4, &lo, &hi);
      limit_taps(l, first, 2, &lo2, &hi2);
      limit_taps(l, first + 2, 2, &lo4, &hi4);
      if (2 * (hi - lo) <= hi2 - lo2 + hi4 - lo4) {
        forward_four(l, x, w, row, first, lo, hi, y, outs);
        first += 4;
        continue;
      }
    }
    if (LANES_PIXELS >= 2 && left >= 2) {
      limit_taps(l, first, 2, &lo, &hi);
      forward_two(l, x, w, row, first, lo, hi, y, outs);
      first += 2;
      continue;
    }
    limit_taps(l, first, 1, &lo, &hi);
    forward_one(l, x, w, row, first, lo, hi, y, outs);
    first++;
  }
}

static void forward(const cpu_kernel_lanes *l, const float *x, const float *w,
                    float *y)
{
  const int64_t each =
      l->channels * l->taps[0] * l->taps[1] * CPU_KERNEL_LANES_OUTS;
  for (int64_t o = 0; o < l->outs; o += CPU_KERNEL_LANES_OUTS) {
    for (int64_t row = 0; row < l->results[0]; row++) {
      forward_row(l, x, w, row, y, l->outs - o);
    }
    w += each;
    y += CPU_KERNEL_LANES_OUTS * CPU_KERNEL_LANES;
  }
}

// ---- gradient ---------------------------------------------------------------

// A sum of many products in f32 is inaccurate. So after BLOCK products it is
// added to the sum of the blocks; the caller adds up those of all images.
#define BLOCK 96

// Of one row of results and of its channels' run: sums [k, k + RUN) and EACH
// out features.
#define GRADIENT(name, RUN, EACH)                                        \
  static inline void name(const cpu_kernel_lanes *l, const float *x,     \
                          const float *g, int64_t row, float *sums)      \
  {                                                                      \
    const int64_t pixel = l->channels * CPU_KERNEL_LANES;                \
    const int64_t step = l->dilation[1] * pixel;                         \
    const int64_t outs = l->outs * CPU_KERNEL_LANES;                     \
    for (int64_t t = 0; t < l->taps[0];) {                               \
      VEC acc[RUN][EACH];                                                \
      for (int r = 0; r < RUN; r++) {                                    \
        for (int o = 0; o < EACH; o++) acc[r][o] = (VEC){ 0 };           \
      }                                                                  \
      int64_t added = 0;                                                 \
      for (; t < l->taps[0] && added < BLOCK; t++) {                     \
        const int64_t at = cpu_kernel_lanes_row(l, row, t);              \
        if (at < 0) continue;                                            \
        const float *from = x + at * l->width * pixel;                   \
        const float *by = g + t * l->taps[1] * outs;                     \
        for (int64_t u = 0; u < l->taps[1]; u++) {                       \
          VEC v[EACH];                                                   \
          for (int o = 0; o < EACH; o++) {                               \
            v[o] = *(const VEC *)(by + u * outs + o * CPU_KERNEL_LANES); \
          }                                                              \
          for (int r = 0; r < RUN; r++) {                                \
            const VEC f =                                                \
                *(const VEC *)(from + u * step + r * CPU_KERNEL_LANES);  \
            for (int o = 0; o < EACH; o++) acc[r][o] += v[o] * f;        \
          }                                                              \
        }                                                                \
        added += l->taps[1];                                             \
      }                                                                  \
      for (int r = 0; r < RUN; r++) {                                    \
        for (int o = 0; o < EACH; o++) {                                 \
          *(VEC *)(sums + r * outs + o * CPU_KERNEL_LANES) += acc[r][o]; \
        }                                                                \
      }                                                                  \
    }                                                                    \
  }

GRADIENT(gradient_5_5, 5, 5)
GRADIENT(gradient_3_5, 3, 5)
GRADIENT(gradient_1_5, 1, 5)
GRADIENT(gradient_5_4, 5, 4)
GRADIENT(gradient_3_4, 3, 4)
GRADIENT(gradient_1_4, 1, 4)

typedef void cpu_kernel_lanes_gradient_fn(const cpu_kernel_lanes *l,
                                          const float *x, const float *g,
                                          int64_t row, float *sums);

// A run of n sums.
static void gradient_run(const cpu_kernel_lanes *l, int each, int64_t n,
                         const float *x, const float *g, int64_t row,
                         float *sums)
{
  static cpu_kernel_lanes_gradient_fn *const loops[2][3] = {
    { gradient_5_4, gradient_3_4, gradient_1_4 },
    { gradient_5_5, gradient_3_5, gradient_1_5 }
  };
  for (int64_t k = 0; k < n;) {
    const int which = n - k >= 5 ? 0 : n - k >= 3 ? 1 : 2;
    for (int64_t o = 0; o < l->outs; o += each) {
      loops[each - 4][which](l, x + k * CPU_KERNEL_LANES,
                             g + o * CPU_KERNEL_LANES, row,
                             sums + (k * l->outs + o) * CPU_KERNEL_LANES);
    }
    k += which == 0 ? 5 : which == 1 ? 3 : 1;
  }
}

static void gradient(const cpu_kernel_lanes *l, int each, const float *x,
                     const float *g, int64_t lo, int64_t hi, float *sums)
{
  const bool merged = l->stride[1] == 1;
  const int64_t runs = merged ? 1 : l->results[1];
  const int64_t n = l->channels * (merged ? l->results[1] : 1);
  for (int64_t row = lo; row < hi; row++) {
    for (int64_t r = 0; r < runs; r++) {
      const int64_t sum = (row * l->results[1] + r) * l->channels * l->outs;
      gradient_run(l, each, n,
                   x + r * l->stride[1] * l->channels * CPU_KERNEL_LANES, g,
                   row, sums + sum * CPU_KERNEL_LANES);
    }
  }
}

// ---- groups of one channel --------------------------------------------------

// Calls name_5, name_3 and name_1 for that many results of a row, from `first`
// on.
#define IN_RUNS(name, ...)                          \
  for (int64_t first = 0; first < l->results[1];) { \
    const int64_t left = l->results[1] - first;     \
    if (left >= 5) {                                \
      name##_5(__VA_ARGS__);                        \
    } else if (left >= 3) {                         \
      name##_3(__VA_ARGS__);                        \
    } else {                                        \
      name##_1(__VA_ARGS__);                        \
    }                                               \
    first += left >= 5 ? 5 : left >= 3 ? 3 : 1;     \
  }

#define DEPTHWISE(name, RESULTS)                                               \
  static inline void name(const cpu_kernel_lanes *l, const float *x,           \
                          const float *g, int64_t row, int64_t first,          \
                          float *to)                                           \
  {                                                                            \
    const int64_t step = l->stride[1] * CPU_KERNEL_LANES;                      \
    const int64_t tap_step = l->dilation[1] * CPU_KERNEL_LANES;                \
    to += (row * l->results[1] + first) * CPU_KERNEL_LANES;                    \
    VEC acc[RESULTS], block[RESULTS];                                          \
    int64_t added = 0;                                                         \
    for (int r = 0; r < RESULTS; r++) {                                        \
      acc[r] = (VEC){ 0 };                                                     \
      block[r] = *(const VEC *)(to + r * CPU_KERNEL_LANES);                    \
    }                                                                          \
    for (int64_t t = 0; t < l->taps[0]; t++) {                                 \
      const int64_t at = cpu_kernel_lanes_row(l, row, t);                      \
      if (at < 0) continue;                                                    \
      const float *from = x + at * l->width * CPU_KERNEL_LANES + first * step; \
      const float *by = g + t * l->taps[1] * CPU_KERNEL_LANES;                 \
      for (int64_t u = 0; u < l->taps[1]; u++) {                               \
        const VEC v = *(const VEC *)(by + u * CPU_KERNEL_LANES);               \
        for (int r = 0; r < RESULTS; r++) {                                    \
          acc[r] += *(const VEC *)(from + u * tap_step + r * step) * v;        \
        }                                                                      \
      }                                                                        \
      added += l->taps[1];                                                     \
      if (added < BLOCK) continue;                                             \
      added = 0;                                                               \
      for (int r = 0; r < RESULTS; r++) {                                      \
        block[r] += acc[r];                                                    \
        acc[r] = (VEC){ 0 };                                                   \
      }                                                                        \
    }                                                                          \
    for (int r = 0; r < RESULTS; r++) {                                        \
      *(VEC *)(to + r * CPU_KERNEL_LANES) = block[r] + acc[r];                 \
    }                                                                          \
  }

DEPTHWISE(depthwise_5, 5)
DEPTHWISE(depthwise_3, 3)
DEPTHWISE(depthwise_1, 1)

static void depthwise(const cpu_kernel_lanes *l, const float *x, const float *g,
                      float *to)
{
  for (int64_t row = 0; row < l->results[0]; row++) {
    IN_RUNS(depthwise, l, x, g, row, first, to)
  }
}

// ---- transposition ----------------------------------------------------------

// Exchanges the off-diagonal blocks of size S of each pair of rows.
#define LOW(S, j) (((j) & (S)) == 0 ? (j) : 16 + (j) - (S))
#define HIGH(S, j) (((j) & (S)) == 0 ? (j) + (S) : 16 + (j))
#define ALL(F, S)                                                         \
  F(S, 0), F(S, 1), F(S, 2), F(S, 3), F(S, 4), F(S, 5), F(S, 6), F(S, 7), \
      F(S, 8), F(S, 9), F(S, 10), F(S, 11), F(S, 12), F(S, 13), F(S, 14), \
      F(S, 15)
#define STAGE(S)                                              \
  for (int i = 0; i < 16; i++) {                              \
    if ((i & (S)) != 0) continue;                             \
    const VEC a = r[i], b = r[i + (S)];                       \
    r[i] = __builtin_shufflevector(a, b, ALL(LOW, S));        \
    r[i + (S)] = __builtin_shufflevector(a, b, ALL(HIGH, S)); \
  }

static void transpose(const float *from, int64_t from_step, float *to,
                      int64_t to_step)
{
  VEC r[16];
  for (int i = 0; i < 16; i++) r[i] = *(const VEC *)(from + i * from_step);
  STAGE(1)
  STAGE(2)
  STAGE(4)
  STAGE(8)
  for (int i = 0; i < 16; i++) *(VEC *)(to + i * to_step) = r[i];
}

const cpu_kernel_lanes_loops LANES_NAME = { forward, gradient, depthwise,
                                            transpose };
