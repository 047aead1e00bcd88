// kernel/gemm_type: the matrix product for one element type T, included by
// gemm_width.h once for each.

typedef T NAME(vec) __attribute__((vector_size(GEMM_BYTES), aligned(4)));
#define VEC NAME(vec)
#define LANES ((int64_t)(GEMM_BYTES / sizeof(T)))

// c[mr][lanes of nv] = rows of a, a_row and a_step apart, by a panel of b.
#define TILE(name, NV, A_STEP, A_ROW)                                       \
  static void NAME(name)(int64_t k, const T *restrict a, int64_t a_step,    \
                         int64_t a_row, const T *restrict b, T *restrict c, \
                         int64_t ldc, cpu_kernel_gemm_mode mode)            \
  {                                                                         \
    (void)a_step;                                                           \
    (void)a_row;                                                            \
    VEC acc[GEMM_MR][NV];                                                   \
    for (int i = 0; i < GEMM_MR; i++) {                                     \
      for (int j = 0; j < NV; j++) acc[i][j] = (VEC){ 0 };                  \
    }                                                                       \
    for (int64_t p = 0; p < k; p++) {                                       \
      VEC row[NV];                                                          \
      for (int j = 0; j < NV; j++) {                                        \
        row[j] = *(const VEC *)(b + (p * NV + j) * LANES);                  \
      }                                                                     \
      for (int i = 0; i < GEMM_MR; i++) {                                   \
        const T x = a[p * (A_STEP) + i * (A_ROW)];                          \
        for (int j = 0; j < NV; j++) acc[i][j] += row[j] * x;               \
      }                                                                     \
    }                                                                       \
    for (int i = 0; i < GEMM_MR; i++) {                                     \
      for (int j = 0; j < NV; j++) {                                        \
        VEC *to = (VEC *)(c + i * ldc + j * LANES);                         \
        if (mode == CPU_KERNEL_GEMM_SET) {                                  \
          *to = acc[i][j];                                                  \
        } else if (mode == CPU_KERNEL_GEMM_ADD) {                           \
          *to += acc[i][j];                                                 \
        } else {                                                            \
          *to -= acc[i][j];                                                 \
        }                                                                   \
      }                                                                     \
    }                                                                       \
  }

TILE(tile_wide, GEMM_NV, GEMM_MR, 1)
TILE(tile_one, 1, GEMM_MR, 1)
TILE(tile_wide_in_place, GEMM_NV, a_step, a_row)
TILE(tile_one_in_place, 1, a_step, a_row)
#undef TILE

// A few elements: a call of memcpy would take longer.
static inline void NAME(copy_few)(T *restrict to, const T *restrict from,
                                  int64_t n)
{
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) memcpy(to + j, from + j, 4 * sizeof(T));
  for (; j < n; j++) to[j] = from[j];
}

// Packs (rows, k) to panels [rows / MR][k][MR].
static void NAME(pack_a)(const T *a, int64_t row, int64_t column, int64_t rows,
                         int64_t k, T *to)
{
  for (int64_t i = 0; i < rows; i += GEMM_MR) {
    const int64_t here = MIN(GEMM_MR, rows - i);
    if (here < GEMM_MR) memset(to, 0, sizeof(T) * GEMM_MR * (size_t)k);
    for (int64_t r = 0; r < here; r++) {
      const T *from = a + (i + r) * row;
      for (int64_t p = 0; p < k; p++) to[p * GEMM_MR + r] = from[p * column];
    }
    to += GEMM_MR * k;
  }
}

// Packs (k, n) to one panel [k][width], n <= width.
static void NAME(pack_b)(const T *b, int64_t row, int64_t column, int64_t k,
                         int64_t n, int64_t width, T *to)
{
  if (n < width) memset(to, 0, sizeof(T) * (size_t)(width * k));
  if (column == 1 && n == GEMM_NV * LANES) {  // of a size that compilers know
    for (int64_t p = 0; p < k; p++) {
      memcpy(to + p * width, b + p * row, GEMM_NV * GEMM_BYTES);
    }
    return;
  }
  if (column == 1) {
    for (int64_t p = 0; p < k; p++) {
      NAME(copy_few)(to + p * width, b + p * row, n);
    }
    return;
  }
  // Squares are transposed in registers, to read and write whole cache lines.
  const bool squares = sizeof(T) == sizeof(float) && row == 1;
  const int64_t full_n = squares ? n - n % CPU_KERNEL_LANES : 0;
  const int64_t full_k = squares ? k - k % CPU_KERNEL_LANES : 0;
  for (int64_t j = 0; j < full_n; j += CPU_KERNEL_LANES) {
    for (int64_t p = 0; p < full_k; p += CPU_KERNEL_LANES) {
      cpu_kernel_lanes_get()->transpose((const float *)(b + p + j * column),
                                        column, (float *)(to + p * width + j),
                                        width);
    }
  }
  for (int64_t j = 0; j < n; j++) {
    for (int64_t p = j < full_n ? full_k : 0; p < k; p++) {
      to[p * width + j] = b[p * row + j * column];
    }
  }
}

// The width of the next panel, if n columns are left.
static int64_t NAME(width)(int64_t n)
{
  return n > LANES ? GEMM_NV * LANES : LANES;
}

// Rows of a for one panel: packed, or as they are in memory.
typedef struct NAME(rows) {
  const T *a;
  int64_t n, step, row;
  bool packed;
} NAME(rows);

static void NAME(tile)(int64_t k, const NAME(rows) * r, const T *b,
                       int64_t width, T *c, int64_t ldc,
                       cpu_kernel_gemm_mode mode)
{
  if (width > LANES) {
    (r->packed ? NAME(tile_wide) : NAME(tile_wide_in_place))(
        k, r->a, r->step, r->row, b, c, ldc, mode);
  } else {
    (r->packed ? NAME(tile_one) : NAME(tile_one_in_place))(
        k, r->a, r->step, r->row, b, c, ldc, mode);
  }
}

// One tile of c, with r->n rows and `columns` columns.
static void NAME(put_tile)(int64_t k, const NAME(rows) * r, const T *b,
                           int64_t width, T *c, int64_t ldc, int64_t columns,
                           cpu_kernel_gemm_mode mode)
{
  if (r->n == GEMM_MR && columns == width) {
    NAME(tile)(k, r, b, width, c, ldc, mode);
    return;
  }
  T part[GEMM_MR * GEMM_NV * LANES];
  NAME(tile)(k, r, b, width, part, width, CPU_KERNEL_GEMM_SET);
  for (int64_t i = 0; i < r->n; i++) {
    T *to = c + i * ldc;
    const T *from = part + i * width;
    if (mode == CPU_KERNEL_GEMM_SET) {
      NAME(copy_few)(to, from, columns);
      continue;
    }
    for (int64_t j = 0; j < columns; j++) {
      to[j] = mode == CPU_KERNEL_GEMM_ADD ? to[j] + from[j] : to[j] - from[j];
    }
  }
}

// Columns of the result that one pass over a row of a computes.
#define STRIP 4

// The same for p in [lo, hi), STRIP vectors of columns.
static void NAME(row_block)(const T *a, int64_t a_step, const T *b,
                            int64_t b_row, int64_t lo, int64_t hi, T *to)
{
  VEC acc[STRIP];
  for (int j = 0; j < STRIP; j++) acc[j] = (VEC){ 0 };
  for (int64_t p = lo; p < hi; p++) {
    const T x = a[p * a_step];
    for (int j = 0; j < STRIP; j++) {
      acc[j] += *(const VEC *)(b + p * b_row + j * LANES) * x;
    }
  }
  memcpy(to, acc, sizeof acc);
}

// c[j] = sum over p of a[p] * b[p][j], the rows of b dense: each is read once.
static void NAME(row_by_rows)(const cpu_kernel_gemm *g, int64_t lo,
                              int64_t columns, T *to)
{
  const T *a = g->a, *b = (const T *)g->b + lo;
  TOTAL totals[STRIP * GEMM_BYTES / sizeof(T)] = { 0 };
  for (int64_t p = 0; p < g->k; p += GEMM_BLOCK) {
    const int64_t end = MIN(p + GEMM_BLOCK, g->k);
    if (columns == STRIP * LANES) {
      NAME(row_block)(a, g->a_column, b, g->b_row, p, end, to);
    } else {
      memset(to, 0, sizeof(T) * (size_t)columns);
      for (int64_t q = p; q < end; q++) {
        const T x = a[q * g->a_column];
        for (int64_t j = 0; j < columns; j++) to[j] += b[q * g->b_row + j] * x;
      }
    }
    for (int64_t j = 0; j < columns; j++) totals[j] += (TOTAL)to[j];
  }
  for (int64_t j = 0; j < columns; j++) to[j] = (T)totals[j];
}

// Any strides: a sum for each column.
static T NAME(row_by_column)(const cpu_kernel_gemm *g, int64_t column)
{
  const T *a = g->a, *b = (const T *)g->b + column * g->b_column;
  TOTAL total = 0;
  int64_t p = 0;
  while (g->a_column == 1 && g->b_row == 1 && p + STRIP * LANES <= g->k) {
    VEC acc[STRIP];
    for (int j = 0; j < STRIP; j++) acc[j] = (VEC){ 0 };
    const int64_t end = MIN(p + GEMM_BLOCK * STRIP * LANES, g->k);
    for (; p + STRIP * LANES <= end; p += STRIP * LANES) {
      for (int j = 0; j < STRIP; j++) {
        acc[j] += *(const VEC *)(a + p + j * LANES) *
                  *(const VEC *)(b + p + j * LANES);
      }
    }
    for (int j = 1; j < STRIP; j++) acc[0] += acc[j];
    for (int64_t i = 0; i < LANES; i++) total += (TOTAL)acc[0][i];
  }
  while (p < g->k) {
    T sum = 0;
    const int64_t end = MIN(p + GEMM_BLOCK, g->k);
    for (; p < end; p++) sum += a[p * g->a_column] * b[p * g->b_row];
    total += (TOTAL)sum;
  }
  return (T)total;
}

// A single row of results, `step` apart. Packing does not pay.
static void NAME(multiply_row)(const cpu_kernel_gemm *g, int64_t step)
{
  T part[STRIP * GEMM_BYTES / sizeof(T)];
  const int64_t most = g->b_column == 1 ? STRIP * LANES : 1;
  for (int64_t lo = 0; lo < g->n; lo += most) {
    const int64_t columns = MIN(most, g->n - lo);
    if (g->b_column == 1) {
      NAME(row_by_rows)(g, lo, columns, part);
    } else {
      part[0] = NAME(row_by_column)(g, lo);
    }
    for (int64_t j = 0; j < columns; j++) {
      T *to = (T *)g->c + (lo + j) * step;
      *to = g->mode == CPU_KERNEL_GEMM_SET   ? part[j]
            : g->mode == CPU_KERNEL_GEMM_ADD ? *to + part[j]
                                             : *to - part[j];
    }
  }
}

// Rows of a times the packed block of b, of nc columns, to c. For a few panels
// packing the rows does not pay.
static void NAME(multiply_rows)(const cpu_kernel_gemm *g, const T *a,
                                int64_t rows, const T *pb, int64_t kc,
                                int64_t nc, T *pa, T *c,
                                cpu_kernel_gemm_mode mode)
{
  const bool few = nc <= GEMM_IN_PLACE * GEMM_NV * LANES;
  const int64_t first = few ? rows - rows % GEMM_MR : 0;
  NAME(pack_a)
  (a + first * g->a_row, g->a_row, g->a_column, rows - first, kc, pa);
  const T *panel = pb;
  for (int64_t j = 0; j < nc;) {
    const int64_t width = NAME(width)(nc - j);
    for (int64_t i = 0; i < rows; i += GEMM_MR) {
      const NAME(rows)
          r = { .a = i < first ? a + i * g->a_row : pa + (i - first) * kc,
                .n = MIN(GEMM_MR, rows - i),
                .step = g->a_column,
                .row = g->a_row,
                .packed = i >= first };
      NAME(put_tile)
      (kc, &r, panel, width, c + i * g->ldc + j, g->ldc, MIN(width, nc - j),
       mode);
    }
    panel += width * kc;
    j += width;
  }
}

static void NAME(multiply_blocks)(const cpu_kernel_gemm *g, void *panels)
{
  const int64_t block_k = MIN(g->k, CPU_KERNEL_GEMM_INNER);
  const int64_t block_n = MIN(g->n, CPU_KERNEL_GEMM_COLUMNS);
  T *pb = panels;
  T *pa = pb + ROUND_UP(block_n, GEMM_NV * LANES) * block_k;
  for (int64_t jc = 0; jc < g->n; jc += block_n) {
    const int64_t nc = MIN(block_n, g->n - jc);
    for (int64_t pc = 0; pc < g->k; pc += block_k) {
      const int64_t kc = MIN(block_k, g->k - pc);
      const cpu_kernel_gemm_mode mode =
          pc != 0 && g->mode == CPU_KERNEL_GEMM_SET ? CPU_KERNEL_GEMM_ADD
                                                    : g->mode;
      T *panel = pb;
      for (int64_t j = 0; j < nc;) {
        const int64_t width = NAME(width)(nc - j);
        NAME(pack_b)
        ((const T *)g->b + pc * g->b_row + (jc + j) * g->b_column, g->b_row,
         g->b_column, kc, MIN(width, nc - j), width, panel);
        panel += width * kc;
        j += width;
      }
      for (int64_t ic = 0; ic < g->m; ic += CPU_KERNEL_GEMM_ROWS) {
        NAME(multiply_rows)
        (g, (const T *)g->a + ic * g->a_row + pc * g->a_column,
         MIN(CPU_KERNEL_GEMM_ROWS, g->m - ic), pb, kc, nc, pa,
         (T *)g->c + ic * g->ldc + jc, mode);
      }
    }
  }
}

// A part of c of at most GEMM_LONG_ROWS x GEMM_LONG_COLUMNS: products of
// GEMM_LONG inner elements each, added up in type TOTAL.
static void NAME(multiply_part)(const cpu_kernel_gemm *g, void *panels)
{
  T part[GEMM_LONG_ROWS * GEMM_LONG_COLUMNS];
  TOTAL totals[GEMM_LONG_ROWS * GEMM_LONG_COLUMNS] = { 0 };
  cpu_kernel_gemm one = *g;
  one.c = part;
  one.ldc = g->n;
  one.mode = CPU_KERNEL_GEMM_SET;
  for (int64_t p = 0; p < g->k; p += GEMM_LONG) {
    one.a = (const T *)g->a + p * g->a_column;
    one.b = (const T *)g->b + p * g->b_row;
    one.k = MIN(GEMM_LONG, g->k - p);
    NAME(multiply_blocks)(&one, panels);
    for (int64_t i = 0; i < g->m * g->n; i++) totals[i] += (TOTAL)part[i];
  }
  for (int64_t i = 0; i < g->m; i++) {
    T *to = (T *)g->c + i * g->ldc;
    for (int64_t j = 0; j < g->n; j++) {
      const T sum = (T)totals[i * g->n + j];
      to[j] = g->mode == CPU_KERNEL_GEMM_SET   ? sum
              : g->mode == CPU_KERNEL_GEMM_ADD ? to[j] + sum
                                               : to[j] - sum;
    }
  }
}

static void NAME(multiply_long)(const cpu_kernel_gemm *g, void *panels)
{
  for (int64_t j = 0; j < g->n; j += GEMM_LONG_COLUMNS) {
    for (int64_t i = 0; i < g->m; i += GEMM_LONG_ROWS) {
      cpu_kernel_gemm part = *g;
      part.m = MIN(GEMM_LONG_ROWS, g->m - i);
      part.n = MIN(GEMM_LONG_COLUMNS, g->n - j);
      part.a = (const T *)g->a + i * g->a_row;
      part.b = (const T *)g->b + j * g->b_column;
      part.c = (T *)g->c + i * g->ldc + j;
      NAME(multiply_part)(&part, panels);
    }
  }
}

// So few multiplications that packing would take longer.
static void NAME(multiply_tiny)(const cpu_kernel_gemm *g)
{
  for (int64_t i = 0; i < g->m; i++) {
    const T *a = (const T *)g->a + i * g->a_row;
    T *to = (T *)g->c + i * g->ldc;
    for (int64_t j = 0; j < g->n; j++) {
      const T *b = (const T *)g->b + j * g->b_column;
      T sum = 0;
      for (int64_t p = 0; p < g->k; p++) {
        sum += a[p * g->a_column] * b[p * g->b_row];
      }
      to[j] = g->mode == CPU_KERNEL_GEMM_SET   ? sum
              : g->mode == CPU_KERNEL_GEMM_ADD ? to[j] + sum
                                               : to[j] - sum;
    }
  }
}

static void NAME(multiply)(const cpu_kernel_gemm *g, void *panels)
{
  if (g->k <= GEMM_TINY_INNER && g->m <= GEMM_TINY && g->n <= GEMM_TINY &&
      g->m * g->n * g->k <= GEMM_TINY) {
    NAME(multiply_tiny)(g);
    return;
  }
  if (g->m == 1) {
    NAME(multiply_row)(g, 1);
    return;
  }
  if (g->n == 1) {
    cpu_kernel_gemm turned = *g;
    turned.m = 1;
    turned.n = g->m;
    turned.a = g->b;
    turned.a_column = g->b_row;
    turned.b = g->a;
    turned.b_row = g->a_column;
    turned.b_column = g->a_row;
    NAME(multiply_row)(&turned, g->ldc);
    return;
  }
  if (sizeof(T) == sizeof(float) && g->k > 2 * GEMM_LONG) {
    NAME(multiply_long)(g, panels);
    return;
  }
  NAME(multiply_blocks)(g, panels);
}

#undef STRIP
#undef VEC
#undef LANES
#undef T
#undef TOTAL
#undef NAME
