// kernel/tiles: see tiles.h.
//
// A panel is 32 columns of b, a band 32 rows of a. Both have two tiles for each
// step of 32 inner elements.
#include "kernel/tiles.h"

#if defined(__x86_64__)

#include "kernel/amx.h"

#define CACHE 1000000  // bytes of packed panels that a thread works with

typedef struct packing {
  const cpu_kernel_matmul_shape *s;
  const uint16_t *a, *b;
  unsigned char *c;
  unsigned char *panels, *bands;  // packed; the bands follow the panels
  int64_t steps, n_panels, n_bands;
  int64_t first_packed;  // from this band on a is packed
  // A part of c is computed by one thread. It has so many bands and panels;
  // so many parts lie one below the other.
  int64_t part_bands, part_panels, parts_down;
} packing;

// Dense rows are read where they are, but for those of the last band if it has
// fewer, and if there are inner elements beside whole steps.
static int64_t first_packed_of(const cpu_kernel_matmul_shape *s)
{
  return s->a_column == 1 && s->k % STEP == 0 ? s->m / BAND : 0;
}

size_t cpu_kernel_tiles_scratch(const cpu_kernel_matmul_shape *s)
{
  const int64_t bands = parts_of(s->m, BAND) - first_packed_of(s);
  return (size_t)((parts_of(s->n, BAND) + bands) * parts_of(s->k, STEP) * 2 *
                  TILE);
}

// ---- packing ----------------------------------------------------------------

// 32 lines of up to 16 numbers, as pairs of two lines' numbers: of `lines` that
// are there, `stride` apart.
static void load_pairs(const uint16_t *from, int64_t stride, int64_t lines,
                       int64_t n, __m512i out[SIDE])
{
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11,
                                         26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __mmask16 mask = (__mmask16)mask_of(least(n, SIDE));
  for (int64_t i = 0; i < SIDE; i++) {
    const __mmask16 first = 2 * i < lines ? mask : 0;
    const __mmask16 second = 2 * i + 1 < lines ? mask : 0;
    const uint16_t *at = from + 2 * i * stride;
    const __m256i x = _mm256_maskz_loadu_epi16(first, at);
    const __m256i y =
        _mm256_maskz_loadu_epi16(second, second != 0 ? at + stride : at);
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1);
    out[i] = _mm512_permutexvar_epi16(order, both);
  }
}

// 16 lines of up to 32 numbers.
static void load_lines(const uint16_t *from, int64_t stride, int64_t lines,
                       int64_t n, __m512i out[SIDE])
{
  for (int64_t i = 0; i < SIDE; i++) {
    out[i] = _mm512_maskz_loadu_epi16(i < lines ? mask_of(n) : 0,
                                      i < lines ? from + i * stride : from);
  }
}

static void store(const __m512i v[SIDE], unsigned char *to)
{
  for (int i = 0; i < SIDE; i++) _mm512_store_si512(to + 64 * i, v[i]);
}

// Packs two tiles of each step, of 32 lines from `line` on: columns of b, or
// rows of a. Lines and the inner elements of a line are so far apart; one of
// both is 1. `pairs`: as pairs of inner elements, else as lines.
static void pack_lines(const packing *p, const uint16_t *from, int64_t line,
                       int64_t n_lines, int64_t apart, int64_t inner,
                       bool pairs, unsigned char *to)
{
  for (int64_t i = 0; i < 2 * p->steps; i++, to += TILE) {
    __m512i v[SIDE];
    const int64_t k = i / 2 * STEP, first = line + i % 2 * SIDE;
    const int64_t there = first < n_lines ? n_lines - first : 0;
    const uint16_t *at = from + k * inner + (there > 0 ? first : 0) * apart;
    const bool are_pairs = apart == 1;
    if (are_pairs) {
      load_pairs(at, inner, p->s->k - k, there, v);
    } else {
      load_lines(at, apart, there, p->s->k - k, v);
    }
    if (are_pairs != pairs) transpose(v);
    store(v, to);
  }
}

static void pack(void *user, int64_t lo, int64_t hi)
{
  const packing *p = user;
  const cpu_kernel_matmul_shape *s = p->s;
  for (int64_t i = lo; i < hi; i++) {
    const int64_t band = p->first_packed + i - p->n_panels;
    unsigned char *to = p->panels + i * p->steps * 2 * TILE;
    if (i < p->n_panels) {
      pack_lines(p, p->b, i * BAND, s->n, s->b_column, s->b_row, true, to);
    } else {
      pack_lines(p, p->a, band * BAND, s->m, s->a_row, s->a_column, false, to);
    }
  }
}

// ---- multiplying ------------------------------------------------------------

// 32 x 32 sums, which are written while the next ones are computed.
typedef struct tile_sums {
  _Alignas(64) float value[BAND * BAND];
  int64_t m, n;     // where in c
  int64_t written;  // rows that are in c
} tile_sums;

// Writes rows until `end` of them are in c.
static void write_sums(const packing *p, tile_sums *x, int64_t end)
{
  const cpu_kernel_matmul_shape *s = p->s;
  const int64_t columns = least(BAND, s->n - x->n);
  const __mmask32 mask = mask_of(columns);
  end = least(end, least(BAND, s->m - x->m));
  for (; x->written < end; x->written++) {
    const float *from = x->value + x->written * BAND;
    const __m512 low = _mm512_load_ps(from), high = _mm512_load_ps(from + SIDE);
    const int64_t at = (x->m + x->written) * s->ldc + x->n;
    if (s->wide) {
      float *to = (float *)(void *)p->c + at;
      _mm512_mask_storeu_ps(to, (__mmask16)mask, low);
      if (columns > SIDE) {
        _mm512_mask_storeu_ps(to + SIDE, (__mmask16)(mask >> SIDE), high);
      }
    } else {
      _mm512_mask_storeu_epi16((uint16_t *)(void *)p->c + at, mask,
                               (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
  }
}

// Computes sums of a band and a panel, and writes `before` meanwhile.
static void multiply_tiles(const packing *p, int64_t band, int64_t panel,
                           tile_sums *before, tile_sums *out)
{
  const cpu_kernel_matmul_shape *s = p->s;
  const int64_t each = p->steps * 2 * TILE, rows = parts_of(BAND, p->steps);
  const bool packed = band >= p->first_packed;
  const unsigned char *a =
      packed ? p->bands + (band - p->first_packed) * each
             : (const unsigned char *)(p->a + band * BAND * s->a_row);
  const int64_t stride = packed ? 64 : 2 * s->a_row;
  const int64_t next = packed ? 2 * TILE : 2 * STEP;
  const unsigned char *b = p->panels + panel * each;
  _tile_zero(C00);
  _tile_zero(C01);
  _tile_zero(C10);
  _tile_zero(C11);
  for (int64_t i = 0; i < p->steps; i++, a += next, b += 2 * TILE) {
    _tile_loadd(B0, b, 64);
    _tile_loadd(A0, a, stride);
    _tile_dpbf16ps(C00, A0, B0);
    _tile_loadd(B1, b + TILE, 64);
    _tile_dpbf16ps(C01, A0, B1);
    _tile_loadd(A1, a + SIDE * stride, stride);
    _tile_dpbf16ps(C10, A1, B0);
    _tile_dpbf16ps(C11, A1, B1);
    write_sums(p, before, before->written + rows);
  }
  _tile_stored(C00, out->value, BAND * sizeof(float));
  _tile_stored(C01, out->value + SIDE, BAND * sizeof(float));
  _tile_stored(C10, out->value + SIDE * BAND, BAND * sizeof(float));
  _tile_stored(C11, out->value + SIDE * BAND + SIDE, BAND * sizeof(float));
  out->m = band * BAND;
  out->n = panel * BAND;
  out->written = 0;
}

static void multiply(void *user, int64_t lo, int64_t hi)
{
  const packing *p = user;
  tile_sums buffers[2], *before = &buffers[0], *next = &buffers[1];
  before->m = before->n = 0;
  before->written = BAND;  // there are none
  configure();
  finish_stores();
  for (int64_t part = lo; part < hi; part++) {
    const int64_t band = part % p->parts_down * p->part_bands;
    const int64_t panel = part / p->parts_down * p->part_panels;
    const int64_t last_band = least(band + p->part_bands, p->n_bands);
    const int64_t last_panel = least(panel + p->part_panels, p->n_panels);
    for (int64_t i = band; i < last_band; i++) {
      for (int64_t j = panel; j < last_panel; j++) {
        multiply_tiles(p, i, j, before, next);
        tile_sums *written = before;
        before = next;
        next = written;
      }
    }
  }
  write_sums(p, before, BAND);
  _tile_release();
}

static void run_on(cpu_threads *pool, int64_t n, cpu_threads_body *body,
                   packing *p)
{
  if (pool == NULL) {
    body(p, 0, n);
  } else {
    cpu_threads_for(pool, n, 1, body, p);
  }
}

void cpu_kernel_tiles_run(const cpu_kernel_matmul_shape *s, cpu_threads *pool,
                          const void *a, const void *b, void *c,
                          unsigned char *scratch)
{
  packing p = { .s = s,
                .a = a,
                .b = b,
                .c = c,
                .panels = scratch,
                .steps = parts_of(s->k, STEP),
                .n_panels = parts_of(s->n, BAND),
                .n_bands = parts_of(s->m, BAND),
                .first_packed = first_packed_of(s) };
  p.bands = scratch + p.n_panels * p.steps * 2 * TILE;
  p.part_panels = least(p.n_panels, 1 + CACHE / (p.steps * 2 * TILE));
  const int64_t across = parts_of(p.n_panels, p.part_panels);
  const int64_t wanted = pool == NULL ? 1 : 4 * cpu_threads_size(pool);
  p.part_bands = parts_of(p.n_bands, parts_of(wanted, across));
  p.parts_down = parts_of(p.n_bands, p.part_bands);
  run_on(pool, p.n_panels + p.n_bands - p.first_packed, pack, &p);
  run_on(pool, across * p.parts_down, multiply, &p);
}

#endif
