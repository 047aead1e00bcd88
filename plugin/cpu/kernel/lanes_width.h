// kernel/lanes_width: the loops of lanes.h for one vector width, with
//   LANES_NAME     the table of functions
//   LANES_BYTES    of a vector: 16, 32 or 64. The 16 lanes are 4, 2 or 1 parts,
//                  one after the other, so that sums stay in registers
//   LANES_PIXELS   most results that the forward loop computes at a time: 2, 4
//   LANES_WIDE     1: there are 32 vector registers, so gradients take 5
//   results
//                  of 4 or 5 out features; 0: there are 16, so they take 5 of 2
//                  or 3 of 4
#include <stdbool.h>
#include <string.h>

#include "kernel/lanes.h"

typedef float cpu_kernel_lane_vec
    __attribute__((vector_size(LANES_BYTES), aligned(4)));
#define VEC cpu_kernel_lane_vec
#define WIDTH (LANES_BYTES / (int)sizeof(float))
// Sums stay in registers if loops over them are unrolled as a whole. Of a loop
// over many elements the counters would take part of the ports that multiply.
#define UNROLL(n) UNROLL_(GCC unroll n)
#define UNROLL_(words) _Pragma(#words)
#define EACH_PART for (int64_t part = 0; part < CPU_KERNEL_LANES; part += WIDTH)

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
    UNROLL(4)                                                                 \
    for (int p = 0; p < PIXELS; p++) {                                        \
      UNROLL(5)                                                               \
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
        UNROLL(2)                                                             \
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
    UNROLL(5)                                                                 \
    for (int o = 0; o < CPU_KERNEL_LANES_OUTS; o++) {                         \
      if (o >= outs) continue;                                                \
      UNROLL(4)                                                               \
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
    if (left >= 2) {
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
                    int64_t lo, int64_t hi, float *y)
{
  const int64_t each =
      l->channels * l->taps[0] * l->taps[1] * CPU_KERNEL_LANES_OUTS;
  for (int64_t o = 0; o < l->outs; o += CPU_KERNEL_LANES_OUTS) {
    for (int64_t row = lo; row < hi; row++) {
      EACH_PART forward_row(l, x + part, w, row, y + part, l->outs - o);
    }
    w += each;
    y += CPU_KERNEL_LANES_OUTS * CPU_KERNEL_LANES;
  }
}

// ---- gradient ---------------------------------------------------------------

// A sum of many products in f32 is inaccurate. So the taps are divided into
// blocks of rows, of about BLOCK products, whose sums are added to the sum of
// the blocks; the caller adds up those of all images. The blocks are the
// outermost loop, because g may come from memory.
#define BLOCK 96

// Of a part of the lanes, of the rows [lo, hi) of taps, of one row of results
// and of its channels' run: sums [k, k + RUN) and EACH out features.
#define GRADIENT(name, RUN, EACH)                                              \
  static inline void name(const cpu_kernel_lanes *l, const float *x,           \
                          const float *g, int64_t row, int64_t lo, int64_t hi, \
                          float *sums)                                         \
  {                                                                            \
    const int64_t pixel = l->channels * CPU_KERNEL_LANES;                      \
    const int64_t step = l->dilation[1] * pixel;                               \
    const int64_t outs = l->outs * CPU_KERNEL_LANES;                           \
    VEC acc[RUN][EACH];                                                        \
    UNROLL(5)                                                                  \
    for (int r = 0; r < RUN; r++) {                                            \
      UNROLL(5)                                                                \
      for (int o = 0; o < EACH; o++) acc[r][o] = (VEC){ 0 };                   \
    }                                                                          \
    for (int64_t t = lo; t < hi; t++) {                                        \
      const int64_t at = cpu_kernel_lanes_row(l, row, t);                      \
      if (at < 0) continue;                                                    \
      const float *from = x + at * l->width * pixel;                           \
      const float *by = g + t * l->taps[1] * outs;                             \
      UNROLL(4)                                                                \
      for (int64_t u = 0; u < l->taps[1]; u++) {                               \
        VEC v[EACH];                                                           \
        UNROLL(5)                                                              \
        for (int o = 0; o < EACH; o++) {                                       \
          v[o] = *(const VEC *)(by + u * outs + o * CPU_KERNEL_LANES);         \
        }                                                                      \
        UNROLL(5)                                                              \
        for (int r = 0; r < RUN; r++) {                                        \
          const VEC f =                                                        \
              *(const VEC *)(from + u * step + r * CPU_KERNEL_LANES);          \
          UNROLL(5)                                                            \
          for (int o = 0; o < EACH; o++) acc[r][o] += v[o] * f;                \
        }                                                                      \
      }                                                                        \
    }                                                                          \
    UNROLL(5)                                                                  \
    for (int r = 0; r < RUN; r++) {                                            \
      UNROLL(5)                                                                \
      for (int o = 0; o < EACH; o++) {                                         \
        *(VEC *)(sums + r * outs + o * CPU_KERNEL_LANES) += acc[r][o];         \
      }                                                                        \
    }                                                                          \
  }

typedef void cpu_kernel_lanes_gradient_fn(const cpu_kernel_lanes *l,
                                          const float *x, const float *g,
                                          int64_t row, int64_t lo, int64_t hi,
                                          float *sums);

// The loops for two numbers of out features at a time and runs of 5, 3 and 1
// results. Their sums fill the registers, and are so many that no addition
// waits for the one before.
typedef struct cpu_kernel_lanes_gradients {
  int64_t each;  // out features of one call
  cpu_kernel_lanes_gradient_fn *run;
} cpu_kernel_lanes_gradients;

#if LANES_WIDE
GRADIENT(gradient_5_5, 5, 5)
GRADIENT(gradient_3_5, 3, 5)
GRADIENT(gradient_1_5, 1, 5)
GRADIENT(gradient_5_4, 5, 4)
GRADIENT(gradient_3_4, 3, 4)
GRADIENT(gradient_1_4, 1, 4)

#define GRADIENT_OUTS \
  {                   \
    4, 5              \
  }
static const cpu_kernel_lanes_gradients gradients[2][3] = {
  { { 4, gradient_5_4 }, { 4, gradient_3_4 }, { 4, gradient_1_4 } },
  { { 5, gradient_5_5 }, { 5, gradient_3_5 }, { 5, gradient_1_5 } }
};
#else
GRADIENT(gradient_5_2, 5, 2)
GRADIENT(gradient_3_2, 3, 2)
GRADIENT(gradient_1_2, 1, 2)
GRADIENT(gradient_3_4, 3, 4)
GRADIENT(gradient_1_4, 1, 4)

#define GRADIENT_OUTS \
  {                   \
    4, 2              \
  }
static const cpu_kernel_lanes_gradients gradients[2][3] = {
  { { 2, gradient_5_2 }, { 4, gradient_3_4 }, { 4, gradient_1_4 } },
  { { 2, gradient_5_2 }, { 2, gradient_3_2 }, { 2, gradient_1_2 } }
};
#endif

// A run of n sums; `by`: which of the two numbers of out features. Neighbouring
// sums read mostly the same pixels of x, which then stay in the first cache.
static void gradient_run(const cpu_kernel_lanes *l, int by, int64_t n,
                         const float *x, const float *g, int64_t row,
                         int64_t lo, int64_t hi, float *sums)
{
  static const int64_t sizes[3] = { 5, 3, 1 };
  int64_t first = 0, end = 0;
  for (int which = 0; which < 3; which++, first = end) {
    const int64_t size = sizes[which];
    const cpu_kernel_lanes_gradients *of = &gradients[by][which];
    end = first + (n - first) / size * size;
    for (int64_t o = 0; o < l->outs && end > first; o += of->each) {
      for (int64_t k = first; k < end; k += size) {
        EACH_PART of->run(l, x + k * CPU_KERNEL_LANES + part,
                          g + o * CPU_KERNEL_LANES + part, row, lo, hi,
                          sums + (k * l->outs + o) * CPU_KERNEL_LANES + part);
      }
    }
  }
}

// Of the rows [lo, hi) of taps.
static void gradient_block(const cpu_kernel_lanes *l, int by, const float *x,
                           const float *g, const int64_t rows[2], int64_t lo,
                           int64_t hi, float *sums)
{
  const bool merged = l->stride[1] == 1;
  const int64_t runs = merged ? 1 : l->results[1];
  const int64_t n = l->channels * (merged ? l->results[1] : 1);
  for (int64_t row = rows[0]; row < rows[1]; row++) {
    for (int64_t r = 0; r < runs; r++) {
      const int64_t sum = (row * l->results[1] + r) * l->channels * l->outs;
      gradient_run(l, by, n,
                   x + r * l->stride[1] * l->channels * CPU_KERNEL_LANES, g,
                   row, lo, hi, sums + sum * CPU_KERNEL_LANES);
    }
  }
}

static void gradient(const cpu_kernel_lanes *l, int by, const float *x,
                     const float *g, int64_t lo, int64_t hi, float *sums)
{
  const int64_t rows[2] = { lo, hi };
  const int64_t each = (BLOCK + l->taps[1] - 1) / l->taps[1];
  for (int64_t t = 0; t < l->taps[0]; t += each) {
    const int64_t end = t + each < l->taps[0] ? t + each : l->taps[0];
    gradient_block(l, by, x, g, rows, t, end, sums);
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
    EACH_PART IN_RUNS(depthwise, l, x + part, g + part, row, first, to + part)
  }
}

// ---- transposition ----------------------------------------------------------

// Exchanges the off-diagonal blocks of size S of each pair of rows.
#define LOW(S, j) (((j) & (S)) == 0 ? (j) : WIDTH + (j) - (S))
#define HIGH(S, j) (((j) & (S)) == 0 ? (j) + (S) : WIDTH + (j))
#define FOUR(F, S, j) F(S, j), F(S, j + 1), F(S, j + 2), F(S, j + 3)
#if LANES_BYTES == 64
#define ALL(F, S) FOUR(F, S, 0), FOUR(F, S, 4), FOUR(F, S, 8), FOUR(F, S, 12)
#elif LANES_BYTES == 32
#define ALL(F, S) FOUR(F, S, 0), FOUR(F, S, 4)
#else
#define ALL(F, S) FOUR(F, S, 0)
#endif
#define STAGE(S)                                              \
  for (int i = 0; i < WIDTH; i++) {                           \
    if ((i & (S)) != 0) continue;                             \
    const VEC a = r[i], b = r[i + (S)];                       \
    r[i] = __builtin_shufflevector(a, b, ALL(LOW, S));        \
    r[i + (S)] = __builtin_shufflevector(a, b, ALL(HIGH, S)); \
  }

// As many rows as a vector has elements.
static inline void transpose_block(const float *from, int64_t from_step,
                                   float *to, int64_t to_step)
{
  VEC r[WIDTH];
  for (int i = 0; i < WIDTH; i++) r[i] = *(const VEC *)(from + i * from_step);
  STAGE(1)
  STAGE(2)
#if LANES_BYTES >= 32
  STAGE(4)
#endif
#if LANES_BYTES >= 64
  STAGE(8)
#endif
  for (int i = 0; i < WIDTH; i++) *(VEC *)(to + i * to_step) = r[i];
}

static void transpose(const float *from, int64_t from_step, float *to,
                      int64_t to_step)
{
  for (int64_t i = 0; i < CPU_KERNEL_LANES; i += WIDTH) {
    EACH_PART transpose_block(from + i * from_step + part, from_step,
                              to + part * to_step + i, to_step);
  }
}

const cpu_kernel_lanes_loops LANES_NAME = { GRADIENT_OUTS, forward, gradient,
                                            depthwise, transpose };
