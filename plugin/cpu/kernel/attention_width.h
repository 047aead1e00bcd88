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
typedef float vec __attribute__((vector_size(ATTENTION_BYTES), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(ATTENTION_BYTES), aligned(4)));
typedef uint8_t bvec
    __attribute__((vector_size(ATTENTION_BYTES / 4), aligned(1)));

// ---- products ---------------------------------------------------------------

// Rows of a tile, and inner elements that are added up at a time.
#define TILE_ROWS 6
#define TILE_INNER 256

// c (MR, NV vectors) += or = rows of a by a panel of b.
#define TILE(name, MR, NV)                                                   \
  static void name(int64_t k, const float *restrict a, int64_t a_row,        \
                   int64_t a_column, const float *restrict b, int64_t b_row, \
                   float *restrict c, int64_t c_row, bool add)               \
  {                                                                          \
    vec acc[MR][NV];                                                         \
    for (int i = 0; i < (MR); i++) {                                         \
      for (int j = 0; j < (NV); j++) {                                       \
        acc[i][j] =                                                          \
            add ? *(const vec *)(c + i * c_row + j * LANES) : (vec){ 0 };    \
      }                                                                      \
    }                                                                        \
    for (int64_t p = 0; p < k; p++) {                                        \
      vec row[NV];                                                           \
      for (int j = 0; j < (NV); j++) {                                       \
        row[j] = *(const vec *)(b + p * b_row + j * LANES);                  \
      }                                                                      \
      for (int i = 0; i < (MR); i++) {                                       \
        const float x = a[i * a_row + p * a_column];                         \
        for (int j = 0; j < (NV); j++) acc[i][j] += row[j] * x;              \
      }                                                                      \
    }                                                                        \
    for (int i = 0; i < (MR); i++) {                                         \
      for (int j = 0; j < (NV); j++) {                                       \
        *(vec *)(c + i * c_row + j * LANES) = acc[i][j];                     \
      }                                                                      \
    }                                                                        \
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

static inline vec splat(float x)
{
  return x - (vec){ 0 };
}

static inline vec choose(ivec which, vec yes, vec no)
{
  return (vec)(((ivec)yes & which) | ((ivec)no & ~which));
}

// The lanes below n, which may be negative.
static inline ivec lanes_below(int64_t n)
{
  ivec index;
  for (int i = 0; i < LANES; i++) index[i] = i;
  return index < (int32_t)(n < 0 ? 0 : MIN(n, LANES));
}

static inline float largest(vec x)
{
  float most = x[0];
  for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
  return most;
}

static inline float sum(vec x)
{
  float total = 0;
  for (int i = 0; i < LANES; i++) total += x[i];
  return total;
}

// exp(x) for x <= 0, as 2^n exp(r) with |r| <= ln(2) / 2; the polynomial is
// that of Cephes' expf (S. Moshier). Below ln(2^-126) it is 0. A NaN stays one.
static inline vec exponential(vec x)
{
  const vec magic = splat(0x1.8p23F);
  const vec n = (x * 0x1.715476p0F + magic) - magic;
  const vec r = (x - n * 0x1.62ep-1F) - n * 0x1.0bfbe8p-15F;
  vec y = splat(1.9875691500e-4F);
  y = y * r + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * (r * r) + r + 1.0F;
  const ivec low = x < -87.33654F;
  // A lane that is too low or a NaN has no meaningful n.
  const vec fit = choose(low | (x != x), (vec){ 0 }, n);
  const ivec power = (__builtin_convertvector(fit, ivec) + 127) << 23;
  return choose(low, (vec){ 0 }, y * (vec)power);
}

// ---- softmax ----------------------------------------------------------------

// Bytes, or floats, at p, of which there are n: the rest is 0.
static inline bvec load_bytes(const unsigned char *p, int64_t n)
{
  if (n >= LANES) return *(const bvec *)p;
  bvec x = { 0 };
  for (int64_t i = 0; i < n; i++) x[i] = p[i];
  return x;
}

static inline vec load_floats(const float *p, int64_t n)
{
  if (n >= LANES) return *(const vec *)p;
  vec x = { 0 };
  for (int64_t i = 0; i < n; i++) x[i] = p[i];
  return x;
}

// The scores in x of one row from column j on, behind the mask.
static inline vec masked(const cpu_kernel_attention_strip *s, int64_t row,
                         int64_t j, vec x)
{
  const int64_t at = row * s->mask_row + j, n = s->keys - j;
  if (s->masking == CPU_KERNEL_ATTENTION_ADD) {
    return x + load_floats((const float *)s->mask + at, n);
  }
  const ivec is = __builtin_convertvector(
      load_bytes((const unsigned char *)s->mask + at, n), ivec);
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
  vec most = splat(-INFINITY);
  for (int64_t j = s->lo; j < s->hi; j += LANES) {
    vec here = *(vec *)(x + j) * s->scale;
    if (mask && j < s->keys) here = masked(s, row, j, here);
    if (j + LANES > s->keys) {
      here = choose(lanes_below(s->keys - j), here, splat(-INFINITY));
    }
    *(vec *)(x + j) = here;
    most = choose(here > most, here, most);
  }
  return largest(most);
}

static void softmax(const cpu_kernel_attention_strip *s)
{
  for (int64_t row = 0; row < s->rows; row++) {
    float *x = s->scores + row * s->row;
    const float most = finish_scores(s, row);
    vec total = { 0 };
    for (int64_t j = s->lo; j < s->hi; j += LANES) {
      vec e = exponential(*(vec *)(x + j) - most);
      if (j + LANES > s->keys) {
        e = choose(lanes_below(s->keys - j), e, (vec){ 0 });
      }
      *(vec *)(x + j) = e;
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
    vec total = { 0 };
    for (int64_t j = s->lo; j < s->hi; j += LANES) {
      const vec p = *(vec *)(x + j) * over;
      *(vec *)(x + j) = p;
      total += p * *(vec *)(g + j);
    }
    const float mean = sum(total);
    for (int64_t j = s->lo; j < s->hi; j += LANES) {
      vec d = *(vec *)(x + j) * (*(vec *)(g + j) - mean);
      if (hides && j < s->keys) d = masked(&gate, row, j, d);
      *(vec *)(g + j) = d;
    }
  }
}

static bool is_finite(const float *x, int64_t n)
{
  ivec bad = { 0 };
  for (int64_t i = 0; i < n; i += LANES) {
    bad |= (*(const ivec *)(x + i) & 0x7f800000) == 0x7f800000;
  }
  for (int i = 0; i < LANES; i++) {
    if (bad[i] != 0) return false;
  }
  return true;
}

const cpu_kernel_attention_loops ATTENTION_NAME = { multiply, softmax, gradient,
                                                    is_finite };
