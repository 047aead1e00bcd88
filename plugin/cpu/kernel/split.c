// kernel/split: see split.h.
//
// c is divided into parts, which are computed by one thread each. A part's
// inner elements are divided into blocks. Of a block the thread packs the
// part's columns of b in panels of 32, which stay in its second cache. Then it
// packs the part's rows of a in bands of 32, each of which it multiplies with
// all panels at once.
//
// For each step of 32 inner elements a panel or band has six tiles: the first
// parts of 16 columns or rows, their second and third parts; the same of the
// next 16. Pairs are of inner elements that are 16 apart.
#include "kernel/split.h"

#if defined(__x86_64__)

#include "kernel/amx.h"

#define PARTS 3
#define STEP_BYTES (2 * PARTS * TILE)
#define MOST_STEPS (CPU_KERNEL_SPLIT_INNER / STEP)  // of a block
#define MOST_PANELS 16                              // of a part: 1.1 MB
#define AHEAD 16                                    // rows that are read ahead
#define LARGEST 50  // exponent of a panel's or band's largest number

typedef struct packed {
  _Alignas(64) float exponent;  // of what its numbers were multiplied by
  _Alignas(64) unsigned char tiles[MOST_STEPS * STEP_BYTES];
} packed;

typedef struct scratch {
  packed band, panels[MOST_PANELS];
  _Alignas(64) float gathered[BAND * CPU_KERNEL_SPLIT_INNER];
} scratch;

typedef struct job {
  const cpu_kernel_split *s;
  cpu_threads *pool;
  scratch *scratch;      // of each thread
  int64_t down, across;  // parts, one below the other and side by side
  _Atomic bool special;  // an infinity or NaN was found
} job;

// What a thread works on: a part of c, a block of inner elements.
typedef struct split_block {
  int64_t band, last_band, panel, last_panel;
  int64_t k, inner;  // the first, how many
} split_block;

// ---- packing ----------------------------------------------------------------

// Up to 32 rows or columns of an operand ("lines") in a block.
typedef struct split_lines {
  const float *from;
  int64_t n, inner;     // how many there are
  int64_t apart, next;  // strides of lines and of inner elements
  bool pairs;           // tiles have pairs of inner elements as rows
} split_lines;

// `rows` rows of `n` numbers, up to 16 of each; zeros for those that miss.
static void load(const float *from, int64_t stride, int64_t rows, int64_t n,
                 __m512i out[SIDE])
{
  const __mmask16 mask = n > 0 ? (__mmask16)mask_of(least(n, SIDE)) : 0;
  for (int64_t i = 0; i < SIDE; i++) {
    const __mmask16 there = i < rows ? mask : 0;
    out[i] =
        _mm512_maskz_loadu_epi32(there, i < rows ? from + i * stride : from);
  }
}

// The exponent of the factor by which the numbers become at most 2^51, in all
// elements.
static bool exponent_of(const split_lines *l, float *out)
{
  const bool across = l->apart == 1;
  const int64_t rows = across ? l->inner : l->n;
  const int64_t n = across ? l->n : l->inner;
  const int64_t stride = across ? l->next : l->apart;
  __m512 most = _mm512_setzero_ps();
  for (int64_t i = 0; i < rows; i++) {
    const float *row = l->from + i * stride;
    const float *ahead = i + AHEAD < rows ? row + AHEAD * stride : row;
    for (int64_t j = 0; j < n; j += SIDE) {
      _mm_prefetch((const char *)(ahead + j), _MM_HINT_T0);
      const __mmask16 mask = (__mmask16)mask_of(least(n - j, SIDE));
      const __m512 x = _mm512_abs_ps(_mm512_maskz_loadu_ps(mask, row + j));
      // As integers: a NaN is the largest.
      most = (__m512)_mm512_max_epu32((__m512i)most, (__m512i)x);
    }
  }
  const uint32_t bits = _mm512_reduce_max_epu32((__m512i)most);
  const __m512 e = _mm512_getexp_ps((__m512)_mm512_set1_epi32((int)bits));
  *out = bits == 0 ? 0 : LARGEST - _mm512_cvtss_f32(e);
  return bits < 0x7f800000;
}

// The next part of both, in pairs, which it is subtracted from.
static inline __m512i take_part(__m512 *io_x, __m512 *io_y)
{
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11,
                                         26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high = _mm512_set1_epi32(-65536);
  const __m512i part = _mm512_permutexvar_epi16(
      order, (__m512i)_mm512_cvtne2ps_pbh(*io_y, *io_x));
  *io_x = _mm512_sub_ps(*io_x, (__m512)_mm512_slli_epi32(part, 16));
  *io_y = _mm512_sub_ps(*io_y, (__m512)_mm512_and_si512(part, high));
  return part;
}

// The three tiles of 16 lines and up to 32 inner elements from `k` on.
static void pack_tiles(const split_lines *l, int64_t line, int64_t k,
                       __m512 exponent, unsigned char *to)
{
  __m512i v[2 * SIDE];
  const int64_t n = l->n - line, inner = l->inner - k;
  const float *from = l->from + k * l->next + (n > 0 ? line * l->apart : 0);
  for (int64_t i = 0; i < 2; i++) {
    const int64_t left = inner - i * SIDE;
    const float *at = left > 0 ? from + i * SIDE * l->next : from;
    if (l->apart == 1) {
      load(at, l->next, left, n, v + i * SIDE);
    } else {
      load(at, l->apart, n, left, v + i * SIDE);
    }
    if ((l->apart == 1) != l->pairs) transpose(v + i * SIDE);
  }
  for (int64_t i = 0; i < SIDE; i++, to += 64) {
    __m512 x = _mm512_scalef_ps((__m512)v[i], exponent);
    __m512 y = _mm512_scalef_ps((__m512)v[i + SIDE], exponent);
    for (int64_t part = 0; part < PARTS; part++) {
      _mm512_store_si512(to + part * TILE, take_part(&x, &y));
    }
  }
}

static void pack(job *j, const split_lines *l, packed *to)
{
  if (!exponent_of(l, &to->exponent)) atomic_store(&j->special, true);
  const __m512 exponent = _mm512_set1_ps(to->exponent);
  unsigned char *at = to->tiles;
  for (int64_t k = 0; k < l->inner; k += STEP, at += STEP_BYTES) {
    pack_tiles(l, 0, k, exponent, at);
    pack_tiles(l, SIDE, k, exponent, at + PARTS * TILE);
  }
}

// Sets where the lines begin; copies them if there is a function for it.
static void find(const cpu_kernel_split *s, const float *operand,
                 cpu_kernel_split_gather *gather, int64_t first, int64_t k,
                 float *to, split_lines *io_l)
{
  if (gather == NULL) {
    io_l->from = operand + first * io_l->apart + k * io_l->next;
    return;
  }
  gather(s->user, first, io_l->n, k, io_l->inner, to);
  io_l->from = to;
  if (io_l->next == 1) {
    io_l->apart = io_l->inner;
  } else {
    io_l->next = BAND;
  }
}

static void pack_panel(job *j, const split_block *x, int64_t panel, scratch *t)
{
  const cpu_kernel_split *s = j->s;
  const int64_t first = panel * BAND;
  split_lines l = { .n = least(s->n - first, BAND),
                    .inner = x->inner,
                    .apart = s->b_column,
                    .next = s->b_row,
                    .pairs = true };
  find(s, s->b, s->gather_b, first, x->k, t->gathered, &l);
  pack(j, &l, &t->panels[panel - x->panel]);
}

static void pack_band(job *j, const split_block *x, int64_t band, scratch *t)
{
  const cpu_kernel_split *s = j->s;
  const int64_t first = band * BAND;
  split_lines l = { .n = least(s->m - first, BAND),
                    .inner = x->inner,
                    .apart = s->a_row,
                    .next = s->a_column };
  find(s, s->a, s->gather_a, first, x->k, t->gathered, &l);
  pack(j, &l, &t->band);
}

// ---- multiplying ------------------------------------------------------------

// Adds 32 x 32 sums to c, or those of them that c has; stores them if `first`.
static void write_sums(const cpu_kernel_split *s, bool first, const float *sums,
                       float exponent, int64_t m, int64_t n)
{
  const __m512 by = _mm512_set1_ps(-exponent);
  const int64_t rows = least(BAND, s->m - m);
  const __mmask32 mask = mask_of(least(BAND, s->n - n));
  for (int64_t i = 0; i < rows; i++, sums += BAND) {
    float *row = s->c + (s->c_rows != NULL ? s->c_rows[m + i] : (m + i) * s->n);
    for (int64_t half = 0; half < BAND; half += SIDE) {
      const __mmask16 there = (__mmask16)(mask >> half);
      if (there == 0) break;
      float *to = row + n + half;
      __m512 x = _mm512_scalef_ps(_mm512_load_ps(sums + half), by);
      if (!first) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, to));
      _mm512_mask_storeu_ps(to, there, x);
    }
  }
}

// Into the first cache: a part of the next step.
static inline void prefetch(const unsigned char *a, const unsigned char *b)
{
  for (int64_t i = 0; i < TILE; i += 64) {
    _mm_prefetch((const char *)a + STEP_BYTES + i, _MM_HINT_T0);
    _mm_prefetch((const char *)b + STEP_BYTES + i, _MM_HINT_T0);
  }
}

#define LOAD_A(part)                          \
  _tile_loadd(A0, a + ((part)-1) * TILE, 64); \
  _tile_loadd(A1, a + (PARTS + (part)-1) * TILE, 64)
#define LOAD_B(part)                          \
  _tile_loadd(B0, b + ((part)-1) * TILE, 64); \
  _tile_loadd(B1, b + (PARTS + (part)-1) * TILE, 64)
#define MULTIPLY(number)                          \
  prefetch(a + (number)*TILE, b + (number)*TILE); \
  _tile_dpbf16ps(C00, A0, B0);                    \
  _tile_dpbf16ps(C01, A0, B1);                    \
  _tile_dpbf16ps(C10, A1, B0);                    \
  _tile_dpbf16ps(C11, A1, B1)

// Small products come first, so that adding them loses fewer bits.
static void multiply_tiles(const job *j, const split_block *x,
                           const packed *band, const packed *panel, int64_t m,
                           int64_t n)
{
  const unsigned char *a = band->tiles, *b = panel->tiles;
  _tile_zero(C00);
  _tile_zero(C01);
  _tile_zero(C10);
  _tile_zero(C11);
  for (int64_t k = 0; k < x->inner; k += STEP) {
    LOAD_A(1);
    LOAD_B(3);
    MULTIPLY(0);
    LOAD_B(2);
    MULTIPLY(1);
    LOAD_A(2);
    MULTIPLY(2);
    LOAD_B(1);
    MULTIPLY(3);
    LOAD_A(3);
    MULTIPLY(4);
    LOAD_A(1);
    MULTIPLY(5);
    a += STEP_BYTES;
    b += STEP_BYTES;
  }
  _Alignas(64) float sums[BAND * BAND];
  _tile_stored(C00, sums, BAND * sizeof *sums);
  _tile_stored(C01, sums + SIDE, BAND * sizeof *sums);
  _tile_stored(C10, sums + SIDE * BAND, BAND * sizeof *sums);
  _tile_stored(C11, sums + SIDE * BAND + SIDE, BAND * sizeof *sums);
  write_sums(j->s, x->k == 0, sums, band->exponent + panel->exponent, m, n);
}

static void multiply_block(job *j, const split_block *x, scratch *t)
{
  for (int64_t p = x->panel; p < x->last_panel; p++) pack_panel(j, x, p, t);
  for (int64_t i = x->band; i < x->last_band; i++) {
    pack_band(j, x, i, t);
    finish_stores();
    for (int64_t p = x->panel; p < x->last_panel; p++) {
      multiply_tiles(j, x, &t->band, &t->panels[p - x->panel], i * BAND,
                     p * BAND);
    }
  }
}

static void multiply_parts(void *user, int64_t lo, int64_t hi)
{
  job *j = user;
  const int64_t n_bands = parts_of(j->s->m, BAND);
  const int64_t n_panels = parts_of(j->s->n, BAND);
  const int64_t steps = parts_of(j->s->k, STEP);
  const int64_t blocks = parts_of(steps, MOST_STEPS);
  configure();
  for (int64_t i = lo; i < hi; i++) {
    const int64_t across = i / j->down, down = i % j->down;
    split_block x = { .band = n_bands * down / j->down,
                      .last_band = n_bands * (down + 1) / j->down,
                      .panel = n_panels * across / j->across,
                      .last_panel = n_panels * (across + 1) / j->across };
    for (int64_t b = 0; b < blocks && !atomic_load(&j->special); b++) {
      x.k = steps * b / blocks * STEP;
      x.inner = least(steps * (b + 1) / blocks * STEP, j->s->k) - x.k;
      multiply_block(j, &x, &j->scratch[cpu_kernel_rank(j->pool)]);
    }
  }
  _tile_release();
}

// ---- running ----------------------------------------------------------------

size_t cpu_kernel_split_scratch(int threads)
{
  return sizeof(scratch) * (size_t)threads;
}

// Every thread gets as many parts, unless they are many. Each more part costs
// packing rows or columns again.
#define MANY_PARTS 4  // for each thread

static void divide(job *j)
{
  const int64_t bands = parts_of(j->s->m, BAND);
  const int64_t panels = parts_of(j->s->n, BAND);
  const int64_t threads = cpu_threads_size(j->pool);
  j->down = 1;
  j->across = parts_of(panels, MOST_PANELS);
  while (j->down * j->across % threads != 0 &&
         j->down * j->across < MANY_PARTS * threads &&
         (j->down < bands || j->across < panels)) {
    if (bands / j->down >= panels / j->across) {
      j->down++;
    } else {
      j->across++;
    }
  }
}

bool cpu_kernel_split_run(const cpu_kernel_split *s, cpu_threads *pool,
                          unsigned char *memory)
{
  job j = { .s = s, .pool = pool, .scratch = (scratch *)(void *)memory };
  divide(&j);
  cpu_threads_for(pool, j.down * j.across, 1, multiply_parts, &j);
  return !atomic_load(&j.special);
}

#else

size_t cpu_kernel_split_scratch(int threads)
{
  (void)threads;
  return 0;
}

bool cpu_kernel_split_run(const cpu_kernel_split *s, cpu_threads *pool,
                          unsigned char *memory)
{
  (void)s;
  (void)pool;
  (void)memory;
  return false;
}

#endif
