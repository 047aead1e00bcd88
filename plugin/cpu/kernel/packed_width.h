// kernel/packed_width: products with packed operands for one vector width. Each
// of packed_16.c, packed_32.c and packed_64.c is this text, with
//   PACKED_NAME            the table of functions
//   PACKED_BYTES           of a vector
//   PACKED_MR, PACKED_NV   the most rows and vectors of a tile
#include <string.h>

#include "kernel/lanes.h"
#include "kernel/packed.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define LANES ((int64_t)(PACKED_BYTES / sizeof(float)))
#define ROWS CPU_KERNEL_PACKED_ROWS
#define INNER CPU_KERNEL_PACKED_INNER
#define INLINE static inline __attribute__((always_inline))

typedef float cpu_kernel_packed_vec
    __attribute__((vector_size(PACKED_BYTES), aligned(4)));

// ---- panels -----------------------------------------------------------------

// Vectors of columns [lo, hi) in panels, the first `wider` of `width` + 1
// vectors, the others of `width`.
typedef struct cpu_kernel_packed_part {
  int64_t lo, hi, width, wider;
} cpu_kernel_packed_part;

static cpu_kernel_packed_part part_of(const cpu_kernel_packed *p,
                                      int64_t number)
{
  const int64_t vectors = (p->n + LANES - 1) / LANES;
  cpu_kernel_packed_part x = { .lo = vectors * number / p->parts,
                               .hi = vectors * (number + 1) / p->parts };
  const int64_t n = x.hi - x.lo;
  const int64_t panels = (n + PACKED_NV - 1) / PACKED_NV;
  if (panels > 0) {
    x.width = n / panels;
    x.wider = n % panels;
  }
  return x;
}

static int64_t width_of(const cpu_kernel_packed_part *x, int64_t panel)
{
  return x->width + (panel < x->wider ? 1 : 0);
}

// Packs n columns of b, dense, whose number is known where this is inlined.
INLINE void copy_panel(const float *b, int64_t row, int64_t k, int64_t n,
                       int64_t width, float *to)
{
  for (int64_t q = 0; q < k; q++) {
    memcpy(to + q * width, b + q * row, sizeof *to * (size_t)n);
  }
}

static void pack_panel(const float *b, int64_t row, int64_t column, int64_t k,
                       int64_t n, int64_t width, float *to)
{
  if (n < width) memset(to, 0, sizeof *to * (size_t)(width * k));
  if (column == 1) {
    if (n == PACKED_NV * LANES) {
      copy_panel(b, row, k, PACKED_NV * LANES, width, to);
    } else {
      copy_panel(b, row, k, n, width, to);
    }
    return;
  }
  // Squares are transposed in registers, to read and write whole cache lines.
  const int64_t squares = CPU_KERNEL_LANES;
  const int64_t full_n = row == 1 ? n - n % squares : 0;
  const int64_t full_k = row == 1 ? k - k % squares : 0;
  for (int64_t j = 0; j < full_n; j += squares) {
    for (int64_t q = 0; q < full_k; q += squares) {
      cpu_kernel_lanes_get()->transpose(b + q + j * column, column,
                                        to + q * width + j, width);
    }
  }
  for (int64_t j = 0; j < n; j++) {
    for (int64_t q = j < full_n ? full_k : 0; q < k; q++) {
      to[q * width + j] = b[q * row + j * column];
    }
  }
}

static void pack(const cpu_kernel_packed *p, int64_t number)
{
  const cpu_kernel_packed_part x = part_of(p, number);
  int64_t at = x.lo;
  for (int64_t i = 0; at < x.hi; i++) {
    const int64_t width = width_of(&x, i) * LANES;
    const int64_t column = at * LANES;
    pack_panel(p->b + column * p->b_column, p->b_row, p->b_column, p->k,
               MIN(width, p->n - column), width, p->packed + column * p->k);
    at += width_of(&x, i);
  }
}

// ---- rows -------------------------------------------------------------------

// Packs (rows, k) to [k][ROWS]; rows <= ROWS.
static void pack_group(const float *a, int64_t row, int64_t column,
                       int64_t rows, int64_t k, float *to)
{
  int64_t q = 0;
  if (row == 1) {
    if (rows == ROWS) {
      for (; q < k; q++) memcpy(to + q * ROWS, a + q * column, 4 * ROWS);
    }
    for (; q < k; q++) {
      memcpy(to + q * ROWS, a + q * column, sizeof *to * (size_t)rows);
    }
    return;
  }
  float square[ROWS * ROWS] = { 0 };
  for (; column == 1 && q + ROWS <= k; q += ROWS) {
    const float *from = a + q;
    int64_t step = row;
    if (rows < ROWS) {
      for (int64_t i = 0; i < rows; i++) {
        memcpy(square + i * ROWS, from + i * row, 4 * ROWS);
      }
      from = square;
      step = ROWS;
    }
    cpu_kernel_lanes_get()->transpose(from, step, to + q * ROWS, ROWS);
  }
  for (; q < k; q++) {
    for (int64_t i = 0; i < rows; i++) {
      to[q * ROWS + i] = a[i * row + q * column];
    }
  }
}

// ---- tiles ------------------------------------------------------------------

// The sums of some rows by a panel of nv vectors.
typedef struct cpu_kernel_packed_sums {
  cpu_kernel_packed_vec of[PACKED_MR][PACKED_NV];
} cpu_kernel_packed_sums;

// c is fetched while the sums are computed.
INLINE void begin(cpu_kernel_packed_sums *sum, const float *c, int64_t ldc,
                  int rows, int nv)
{
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < nv; j++) {
      sum->of[i][j] = (cpu_kernel_packed_vec){ 0 };
      __builtin_prefetch(c + i * ldc + j * LANES, 1);
    }
  }
}

// c = or, with `add`, c += the sums.
INLINE void end(const cpu_kernel_packed_sums *sum, float *c, int64_t ldc,
                bool add, int rows, int nv)
{
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < nv; j++) {
      cpu_kernel_packed_vec *to =
          (cpu_kernel_packed_vec *)(c + i * ldc + j * LANES);
      *to = add ? *to + sum->of[i][j] : sum->of[i][j];
    }
  }
}

// Rows of a, packed.
INLINE void tile(int64_t k, const float *restrict a, const float *restrict b,
                 float *restrict c, int64_t ldc, bool add, int rows, int nv)
{
  cpu_kernel_packed_sums sum;
  begin(&sum, c, ldc, rows, nv);
  for (int64_t q = 0; q < k; q++) {
    cpu_kernel_packed_vec y[PACKED_NV];
    for (int j = 0; j < nv; j++) {
      y[j] = *(const cpu_kernel_packed_vec *)(b + (q * nv + j) * LANES);
    }
    for (int i = 0; i < rows; i++) {
      const float x = a[q * ROWS + i];
      for (int j = 0; j < nv; j++) sum.of[i][j] += y[j] * x;
    }
  }
  end(&sum, c, ldc, add, rows, nv);
}

// Rows as they are in memory.
INLINE void tile_at(int64_t n, const cpu_kernel_packed_segment *s,
                    const float *restrict b, float *restrict c, int64_t ldc,
                    bool add, int rows, int nv)
{
  cpu_kernel_packed_sums sum;
  begin(&sum, c, ldc, rows, nv);
  for (; n > 0; n--, s++) {
    const float *from[PACKED_MR];
    const int64_t k = s->k;
    for (int i = 0; i < rows; i++) from[i] = s->rows[i];
    for (int64_t q = 0; q < k; q++, b += nv * LANES) {
      cpu_kernel_packed_vec y[PACKED_NV];
      for (int j = 0; j < nv; j++) {
        y[j] = *(const cpu_kernel_packed_vec *)(b + j * LANES);
      }
      for (int i = 0; i < rows; i++) {
        const float x = from[i][q];
        for (int j = 0; j < nv; j++) sum.of[i][j] += y[j] * x;
      }
    }
  }
  end(&sum, c, ldc, add, rows, nv);
}

typedef void cpu_kernel_packed_tile_fn(int64_t k, const float *restrict a,
                                       const float *restrict b,
                                       float *restrict c, int64_t ldc,
                                       bool add);

typedef void cpu_kernel_packed_tile_at_fn(int64_t n,
                                          const cpu_kernel_packed_segment *s,
                                          const float *restrict b,
                                          float *restrict c, int64_t ldc,
                                          bool add);

#define TILE(nv, rows)                                                        \
  static void tile_##nv##_##rows(int64_t k, const float *restrict a,          \
                                 const float *restrict b, float *restrict c,  \
                                 int64_t ldc, bool add)                       \
  {                                                                           \
    tile(k, a, b, c, ldc, add, rows, nv);                                     \
  }                                                                           \
  static void tile_at_##nv##_##rows(                                          \
      int64_t n, const cpu_kernel_packed_segment *s, const float *restrict b, \
      float *restrict c, int64_t ldc, bool add)                               \
  {                                                                           \
    tile_at(n, s, b, c, ldc, add, rows, nv);                                  \
  }
#if PACKED_MR == 8
#define TILES(nv) \
  TILE(nv, 1)     \
  TILE(nv, 2)     \
  TILE(nv, 3) TILE(nv, 4) TILE(nv, 5) TILE(nv, 6) TILE(nv, 7) TILE(nv, 8)
#define LIST(name, nv)                                                    \
  {                                                                       \
    name##nv##_1, name##nv##_2, name##nv##_3, name##nv##_4, name##nv##_5, \
        name##nv##_6, name##nv##_7, name##nv##_8                          \
  }
#else
#define TILES(nv) TILE(nv, 1) TILE(nv, 2) TILE(nv, 3) TILE(nv, 4)
#define LIST(name, nv)                                     \
  {                                                        \
    name##nv##_1, name##nv##_2, name##nv##_3, name##nv##_4 \
  }
#endif
TILES(1)
TILES(2)
#if PACKED_NV == 3
TILES(3)
#define LISTS(name)                             \
  {                                             \
    LIST(name, 1), LIST(name, 2), LIST(name, 3) \
  }
#else
#define LISTS(name)              \
  {                              \
    LIST(name, 1), LIST(name, 2) \
  }
#endif

// By vectors and rows, less one.
static cpu_kernel_packed_tile_fn *const tiles[PACKED_NV][PACKED_MR] =
    LISTS(tile_);
static cpu_kernel_packed_tile_at_fn *const tiles_at[PACKED_NV][PACKED_MR] =
    LISTS(tile_at_);

// A tile of which only some columns are stored, from one in which all are.
typedef struct cpu_kernel_packed_whole {
  float at[PACKED_MR * PACKED_NV * PACKED_BYTES / sizeof(float)];
} cpu_kernel_packed_whole;

static void store_part(const cpu_kernel_packed_whole *whole, int64_t rows,
                       int64_t width, int64_t columns, float *c, int64_t ldc,
                       bool add)
{
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      const float sum = whole->at[i * width + j];
      c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
    }
  }
}

// A group of rows of a by a panel.
static void multiply_group(int64_t k, const float *a, int64_t rows,
                           const float *b, int64_t nv, int64_t columns,
                           float *c, int64_t ldc, bool add)
{
  const int64_t n = (rows + PACKED_MR - 1) / PACKED_MR;
  for (int64_t i = 0; i < n; i++) {
    const int64_t lo = rows * i / n, here = rows * (i + 1) / n - lo;
    const int64_t width = nv * LANES;
    if (columns == width) {
      tiles[nv - 1][here - 1](k, a + lo, b, c + lo * ldc, ldc, add);
    } else {
      cpu_kernel_packed_whole whole;
      tiles[nv - 1][here - 1](k, a + lo, b, whole.at, width, false);
      store_part(&whole, here, width, columns, c + lo * ldc, ldc, add);
    }
  }
}

static void multiply_at(int64_t n, const cpu_kernel_packed_segment *s,
                        int64_t rows, const float *b, int64_t nv,
                        int64_t columns, float *c, int64_t ldc, bool add)
{
  const int64_t width = nv * LANES;
  if (columns == width) {
    tiles_at[nv - 1][rows - 1](n, s, b, c, ldc, add);
  } else {
    cpu_kernel_packed_whole whole;
    tiles_at[nv - 1][rows - 1](n, s, b, whole.at, width, false);
    store_part(&whole, rows, width, columns, c, ldc, add);
  }
}

static void run(const cpu_kernel_packed *p, int64_t row, int64_t rows,
                int64_t number, float *scratch)
{
  const cpu_kernel_packed_part x = part_of(p, number);
  const int64_t groups = (rows + ROWS - 1) / ROWS;
  for (int64_t q = 0; q < p->k; q += INNER) {
    const int64_t k = MIN(INNER, p->k - q);
    for (int64_t g = 0; g < groups; g++) {
      const int64_t lo = rows * g / groups;
      pack_group(p->a + (row + lo) * p->a_row + q * p->a_column, p->a_row,
                 p->a_column, rows * (g + 1) / groups - lo, k,
                 scratch + g * ROWS * k);
    }
    int64_t at = x.lo;
    for (int64_t i = 0; at < x.hi; i++) {
      const int64_t nv = width_of(&x, i), column = at * LANES;
      const float *b = p->packed + column * p->k + q * nv * LANES;
      for (int64_t g = 0; g < groups; g++) {
        const int64_t lo = rows * g / groups;
        multiply_group(k, scratch + g * ROWS * k, rows * (g + 1) / groups - lo,
                       b, nv, MIN(nv * LANES, p->n - column),
                       p->c + (row + lo) * p->ldc + column, p->ldc, q > 0);
      }
      at += nv;
    }
  }
}

const cpu_kernel_packed_loops PACKED_NAME = { .lanes = LANES,
                                              .rows = PACKED_MR,
                                              .vectors = PACKED_NV,
                                              .pack = pack,
                                              .run = run,
                                              .panel = pack_panel,
                                              .multiply = multiply_group,
                                              .multiply_at = multiply_at };
