// kernel/attention_width: attention's inner loops for one vector width. Each of
// attention_16.c, attention_32.c and attention_64.c is this text, compiled for
// other processors, with
//   ATTENTION_NAME    the loops
//   ATTENTION_BYTES   of a vector
//   ATTENTION_NV      vectors of columns that a tile of the product has
#include <math.h>
#include <string.h>

#include "kernel/attention.h"

#define LANES ((int64_t)(ATTENTION_BYTES / sizeof(float)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
typedef float cpu_kernel_attention_floats
    __attribute__((vector_size(ATTENTION_BYTES), aligned(4)));
typedef int32_t cpu_kernel_attention_ints
    __attribute__((vector_size(ATTENTION_BYTES), aligned(4)));
typedef uint8_t cpu_kernel_attention_bytes
    __attribute__((vector_size(ATTENTION_BYTES / 4), aligned(1)));

// ---- products ---------------------------------------------------------------

// Rows of a tile, and inner elements that are added up at a time.
#define TILE_ROWS 6
#define TILE_INNER 256

// c (MR, NV vectors) += or = rows of a by a panel of b.
#define TILE(name, MR, NV)                                                     \
  static void name(int64_t k, const float *restrict a, int64_t a_row,          \
                   int64_t a_column, const float *restrict b, int64_t b_row,   \
                   float *restrict c, int64_t c_row, bool add)                 \
  {                                                                            \
    cpu_kernel_attention_floats acc[MR][NV];                                   \
    for (int i = 0; i < (MR); i++) {                                           \
      for (int j = 0; j < (NV); j++) {                                         \
        acc[i][j] =                                                            \
            add ? *(const cpu_kernel_attention_floats *)(c + i * c_row +       \
                                                         j * LANES)            \
                : (cpu_kernel_attention_floats){ 0 };                          \
      }                                                                        \
    }                                                                          \
    for (int64_t p = 0; p < k; p++) {                                          \
      cpu_kernel_attention_floats row[NV];                                     \
      for (int j = 0; j < (NV); j++) {                                         \
        row[j] =                                                               \
            *(const cpu_kernel_attention_floats *)(b + p * b_row + j * LANES); \
      }                                                                        \
      for (int i = 0; i < (MR); i++) {                                         \
        const float x = a[i * a_row + p * a_column];                           \
        for (int j = 0; j < (NV); j++) acc[i][j] += row[j] * x;                \
      }                                                                        \
    }                                                                          \
    for (int i = 0; i < (MR); i++) {                                           \
      for (int j = 0; j < (NV); j++) {                                         \
        *(cpu_kernel_attention_floats *)(c + i * c_row + j * LANES) =          \
            acc[i][j];                                                         \
      }                                                                        \
    }                                                                          \
  }

TILE(tile_wide, TILE_ROWS, ATTENTION_NV)
TILE(tile_half, TILE_ROWS, ATTENTION_NV / 2)
TILE(tile_one, TILE_ROWS, 1)
TILE(row_wide, 1, ATTENTION_NV)
TILE(row_half, 1, ATTENTION_NV / 2)
TILE(row_one, 1, 1)
#undef TILE

static void multiply_columns(const cpu_kernel_attention_product *p, int64_t j,
                             int64_t vectors, int64_t lo, int64_t k)
{
  const float *b = p->b + j / CPU_KERNEL_ATTENTION_PANEL * p->b_panel +
                   j % CPU_KERNEL_ATTENTION_PANEL + lo * p->b_row;
  const bool add = p->add || lo > 0;
  for (int64_t i = 0; i < p->m;) {
    const float *a = p->a + i * p->a_row + lo * p->a_column;
    float *c = p->c + i * p->c_row + j;
    const bool tile = p->m - i >= TILE_ROWS;
    (vectors == ATTENTION_NV ? (tile ? tile_wide : row_wide)
     : vectors > 1           ? (tile ? tile_half : row_half)
                             : (tile ? tile_one : row_one))(
        k, a, p->a_row, p->a_column, b, p->b_row, c, p->c_row, add);
    i += tile ? TILE_ROWS : 1;
  }
}

static void multiply(const cpu_kernel_attention_product *p)
{
  for (int64_t lo = 0; lo < p->k; lo += TILE_INNER) {
    const int64_t k = MIN(TILE_INNER, p->k - lo);
    for (int64_t j = 0; j < p->n;) {
      const int64_t left = (p->n - j) / LANES;
      const int64_t vectors = left >= ATTENTION_NV       ? ATTENTION_NV
                              : left >= ATTENTION_NV / 2 ? ATTENTION_NV / 2
                                                         : 1;
      multiply_columns(p, j, vectors, lo, k);
      j += vectors * LANES;
    }
  }
}

// ---- vectors ----------------------------------------------------------------

static inline cpu_kernel_attention_floats splat(float x)
{
  return x - (cpu_kernel_attention_floats){ 0 };
}

static inline cpu_kernel_attention_floats choose(
    cpu_kernel_attention_ints which, cpu_kernel_attention_floats yes,
    cpu_kernel_attention_floats no)
{
  return (
      cpu_kernel_attention_floats)(((cpu_kernel_attention_ints)yes & which) |
                                   ((cpu_kernel_attention_ints)no & ~which));
}

// The lanes below n, which may be negative.
static inline cpu_kernel_attention_ints lanes_below(int64_t n)
{
  cpu_kernel_attention_ints index;
  for (int i = 0; i < LANES; i++) index[i] = i;
  return index < (int32_t)(n < 0 ? 0 : MIN(n, LANES));
}

static inline float largest(cpu_kernel_attention_floats x)
{
  float most = x[0];
  for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
  return most;
}

static inline float sum(cpu_kernel_attention_floats x)
{
  float total = 0;
  for (int i = 0; i < LANES; i++) total += x[i];
  return total;
}

// exp(x) for x <= 0, as 2^n exp(r) with |r| <= ln(2) / 2; the polynomial is
// that of Cephes' expf (S. Moshier). Below ln(2^-126) it is 0. A NaN stays one.
static inline cpu_kernel_attention_floats exponential(
    cpu_kernel_attention_floats x)
{
  const cpu_kernel_attention_floats magic = splat(0x1.8p23F);
  const cpu_kernel_attention_floats n = (x * 0x1.715476p0F + magic) - magic;
  const cpu_kernel_attention_floats r =
      (x - n * 0x1.62ep-1F) - n * 0x1.0bfbe8p-15F;
  cpu_kernel_attention_floats y = splat(1.9875691500e-4F);
  y = y * r + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * (r * r) + r + 1.0F;
  const cpu_kernel_attention_ints low = x < -87.33654F;
  // A lane that is too low or a NaN has no meaningful n.
  const cpu_kernel_attention_floats fit =
      choose(low | (x != x), (cpu_kernel_attention_floats){ 0 }, n);
  const cpu_kernel_attention_ints power =
      (__builtin_convertvector(fit, cpu_kernel_attention_ints) + 127) << 23;
  return choose(low, (cpu_kernel_attention_floats){ 0 },
                y * (cpu_kernel_attention_floats)power);
}

// ---- softmax ----------------------------------------------------------------

// Bytes, or floats, at p, of which there are n: the rest is 0.
static inline cpu_kernel_attention_bytes load_bytes(const unsigned char *p,
                                                    int64_t n)
{
  if (n >= LANES) return *(const cpu_kernel_attention_bytes *)p;
  cpu_kernel_attention_bytes x = { 0 };
  for (int64_t i = 0; i < n; i++) x[i] = p[i];
  return x;
}

static inline cpu_kernel_attention_floats load_floats(const float *p, int64_t n)
{
  if (n >= LANES) return *(const cpu_kernel_attention_floats *)p;
  cpu_kernel_attention_floats x = { 0 };
  for (int64_t i = 0; i < n; i++) x[i] = p[i];
  return x;
}

// The scores in x of one row from column j on, behind the mask.
static inline cpu_kernel_attention_floats masked(
    const cpu_kernel_attention_strip *s, int64_t row, int64_t j,
    cpu_kernel_attention_floats x)
{
  const int64_t at = row * s->mask_row + j, n = s->keys - j;
  if (s->masking == CPU_KERNEL_ATTENTION_ADD) {
    return x + load_floats((const float *)s->mask + at, n);
  }
  const cpu_kernel_attention_ints is = __builtin_convertvector(
      load_bytes((const unsigned char *)s->mask + at, n),
      cpu_kernel_attention_ints);
  const bool keep = s->masking == CPU_KERNEL_ATTENTION_KEEP;
  return choose(is == 0, keep ? splat(s->hidden) : x,
                keep ? x : splat(s->hidden));
}

// Scales and masks the scores of a row; returns the largest one. What is behind
// the keys becomes minus infinity.
static float finish_scores(const cpu_kernel_attention_strip *s, int64_t row)
{
  float *x = s->scores + row * s->row;
  const bool mask = s->masking != CPU_KERNEL_ATTENTION_NO_MASK;
  cpu_kernel_attention_floats most = splat(-INFINITY);
  for (int64_t j = s->lo; j < s->hi; j += LANES) {
    cpu_kernel_attention_floats here =
        *(cpu_kernel_attention_floats *)(x + j) * s->scale;
    if (mask && j < s->keys) here = masked(s, row, j, here);
    if (j + LANES > s->keys) {
      here = choose(lanes_below(s->keys - j), here, splat(-INFINITY));
    }
    *(cpu_kernel_attention_floats *)(x + j) = here;
    most = choose(here > most, here, most);
  }
  return largest(most);
}

static void softmax(const cpu_kernel_attention_strip *s)
{
  for (int64_t row = 0; row < s->rows; row++) {
    float *x = s->scores + row * s->row;
    const float most = finish_scores(s, row);
    cpu_kernel_attention_floats total = { 0 };
    for (int64_t j = s->lo; j < s->hi; j += LANES) {
      cpu_kernel_attention_floats e =
          exponential(*(cpu_kernel_attention_floats *)(x + j) - most);
      if (j + LANES > s->keys) {
        e = choose(lanes_below(s->keys - j), e,
                   (cpu_kernel_attention_floats){ 0 });
      }
      *(cpu_kernel_attention_floats *)(x + j) = e;
      total += e;
    }
    s->most[row] = most;
    s->total[row] = sum(total);
  }
}

// ds = p * (dp - sum of p * dp). Where a mask hides the score it is 0: p is 0
// there already but in rows in which all scores are hidden.
static void gradient(const cpu_kernel_attention_strip *s, float *grads)
{
  const bool hides = s->masking == CPU_KERNEL_ATTENTION_KEEP ||
                     s->masking == CPU_KERNEL_ATTENTION_HIDE;
  cpu_kernel_attention_strip gate = *s;
  gate.hidden = 0;
  for (int64_t row = 0; row < s->rows; row++) {
    float *x = s->scores + row * s->row, *g = grads + row * s->row;
    const float over = 1 / s->total[row];
    cpu_kernel_attention_floats total = { 0 };
    for (int64_t j = s->lo; j < s->hi; j += LANES) {
      const cpu_kernel_attention_floats p =
          *(cpu_kernel_attention_floats *)(x + j) * over;
      *(cpu_kernel_attention_floats *)(x + j) = p;
      total += p * *(cpu_kernel_attention_floats *)(g + j);
    }
    const float mean = sum(total);
    for (int64_t j = s->lo; j < s->hi; j += LANES) {
      cpu_kernel_attention_floats d =
          *(cpu_kernel_attention_floats *)(x + j) *
          (*(cpu_kernel_attention_floats *)(g + j) - mean);
      if (hides && j < s->keys) d = masked(&gate, row, j, d);
      *(cpu_kernel_attention_floats *)(g + j) = d;
    }
  }
}

static bool is_finite(const float *x, int64_t n)
{
  cpu_kernel_attention_ints bad = { 0 };
  for (int64_t i = 0; i < n; i += LANES) {
    bad |= (*(const cpu_kernel_attention_ints *)(x + i) & 0x7f800000) ==
           0x7f800000;
  }
  for (int i = 0; i < LANES; i++) {
    if (bad[i] != 0) return false;
  }
  return true;
}

const cpu_kernel_attention_loops ATTENTION_NAME = { multiply, softmax, gradient,
                                                    is_finite };
