// kernels/gemm_type: the matrix product for one element type T, included by
// gemm_width.h once for each.

typedef T NAME(vec) __attribute__((vector_size(GEMM_BYTES), aligned(4)));
#define VEC NAME(vec)
#define LANES ((int64_t)(GEMM_BYTES / sizeof(T)))

// c[mr][lanes of nv] = the product of two panels.
#define TILE(name, NV)                                                        \
  static void NAME(name)(int64_t k, const T *restrict a, const T *restrict b, \
                         T *restrict c, int64_t ldc, cx_gemm_mode mode)       \
  {                                                                           \
    VEC acc[GEMM_MR][NV];                                                     \
    for (int i = 0; i < GEMM_MR; i++) {                                       \
      for (int j = 0; j < NV; j++) acc[i][j] = (VEC){ 0 };                    \
    }                                                                         \
    for (int64_t p = 0; p < k; p++) {                                         \
      VEC row[NV];                                                            \
      for (int j = 0; j < NV; j++) {                                          \
        row[j] = *(const VEC *)(b + (p * NV + j) * LANES);                    \
      }                                                                       \
      for (int i = 0; i < GEMM_MR; i++) {                                     \
        const T x = a[p * GEMM_MR + i];                                       \
        for (int j = 0; j < NV; j++) acc[i][j] += row[j] * x;                 \
      }                                                                       \
    }                                                                         \
    for (int i = 0; i < GEMM_MR; i++) {                                       \
      for (int j = 0; j < NV; j++) {                                          \
        VEC *to = (VEC *)(c + i * ldc + j * LANES);                           \
        if (mode == CX_GEMM_SET) {                                            \
          *to = acc[i][j];                                                    \
        } else if (mode == CX_GEMM_ADD) {                                     \
          *to += acc[i][j];                                                   \
        } else {                                                              \
          *to -= acc[i][j];                                                   \
        }                                                                     \
      }                                                                       \
    }                                                                         \
  }

TILE(tile_wide, GEMM_NV)
TILE(tile_one, 1)
#undef TILE

// (rows, k) into panels [rows / MR][k][MR].
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

// (k, n) into one panel [k][width], n <= width.
static void NAME(pack_b)(const T *b, int64_t row, int64_t column, int64_t k,
                         int64_t n, int64_t width, T *to)
{
  if (n < width) memset(to, 0, sizeof(T) * (size_t)(width * k));
  if (column == 1) {
    for (int64_t p = 0; p < k; p++) {
      memcpy(to + p * width, b + p * row, sizeof(T) * (size_t)n);
    }
    return;
  }
  for (int64_t j = 0; j < n; j++) {
    for (int64_t p = 0; p < k; p++) {
      to[p * width + j] = b[p * row + j * column];
    }
  }
}

// The width of the panel that begins where n columns are left.
static int64_t NAME(width)(int64_t n)
{
  return n > LANES ? GEMM_NV * LANES : LANES;
}

// One tile of c, of which rows x columns exist.
static void NAME(put_tile)(int64_t k, const T *a, const T *b, int64_t width,
                           T *c, int64_t ldc, int64_t rows, int64_t columns,
                           cx_gemm_mode mode)
{
  const bool wide = width > LANES;
  if (rows == GEMM_MR && columns == width) {
    if (wide) {
      NAME(tile_wide)(k, a, b, c, ldc, mode);
    } else {
      NAME(tile_one)(k, a, b, c, ldc, mode);
    }
    return;
  }
  T part[GEMM_MR * GEMM_NV * LANES];
  if (wide) {
    NAME(tile_wide)(k, a, b, part, width, CX_GEMM_SET);
  } else {
    NAME(tile_one)(k, a, b, part, width, CX_GEMM_SET);
  }
  for (int64_t i = 0; i < rows; i++) {
    T *to = c + i * ldc;
    const T *from = part + i * width;
    for (int64_t j = 0; j < columns; j++) {
      to[j] = mode == CX_GEMM_SET   ? from[j]
              : mode == CX_GEMM_ADD ? to[j] + from[j]
                                    : to[j] - from[j];
    }
  }
}

// Columns of the result of a row of a at a time.
#define STRIP 4

// c[j] = sum over p of a[p] * b[p][j], the rows of b dense: each is read once.
static void NAME(row_by_rows)(const cx_gemm *g, int64_t lo, int64_t columns,
                              T *to)
{
  const T *a = g->a, *b = (const T *)g->b + lo;
  VEC acc[STRIP];
  for (int j = 0; j < STRIP; j++) acc[j] = (VEC){ 0 };
  if (columns == STRIP * LANES) {
    for (int64_t p = 0; p < g->k; p++) {
      const T x = a[p * g->a_column];
      for (int j = 0; j < STRIP; j++) {
        acc[j] += *(const VEC *)(b + p * g->b_row + j * LANES) * x;
      }
    }
    memcpy(to, acc, sizeof acc);
    return;
  }
  memset(to, 0, sizeof acc);
  for (int64_t p = 0; p < g->k; p++) {
    const T x = a[p * g->a_column];
    for (int64_t j = 0; j < columns; j++) to[j] += b[p * g->b_row + j] * x;
  }
}

// Any strides: a sum for each column.
static T NAME(row_by_column)(const cx_gemm *g, int64_t column)
{
  const T *a = g->a, *b = (const T *)g->b + column * g->b_column;
  T sum = 0;
  int64_t p = 0;
  if (g->a_column == 1 && g->b_row == 1) {
    VEC acc[STRIP];
    for (int j = 0; j < STRIP; j++) acc[j] = (VEC){ 0 };
    for (; p + STRIP * LANES <= g->k; p += STRIP * LANES) {
      for (int j = 0; j < STRIP; j++) {
        acc[j] += *(const VEC *)(a + p + j * LANES) *
                  *(const VEC *)(b + p + j * LANES);
      }
    }
    for (int j = 1; j < STRIP; j++) acc[0] += acc[j];
    for (int64_t i = 0; i < LANES; i++) sum += acc[0][i];
  }
  for (; p < g->k; p++) sum += a[p * g->a_column] * b[p * g->b_row];
  return sum;
}

// A single row of results, `step` apart: nothing is worth packing.
static void NAME(multiply_row)(const cx_gemm *g, int64_t step)
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
      *to = g->mode == CX_GEMM_SET   ? part[j]
            : g->mode == CX_GEMM_ADD ? *to + part[j]
                                     : *to - part[j];
    }
  }
}

static void NAME(multiply)(const cx_gemm *g, void *panels)
{
  if (g->m == 1) {
    NAME(multiply_row)(g, 1);
    return;
  }
  if (g->n == 1) {
    cx_gemm turned = *g;
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
  const int64_t block_k = MIN(g->k, CX_GEMM_INNER);
  const int64_t block_n = MIN(g->n, CX_GEMM_COLUMNS);
  T *pb = panels;
  T *pa = pb + ROUND_UP(block_n, GEMM_NV * LANES) * block_k;
  for (int64_t jc = 0; jc < g->n; jc += block_n) {
    const int64_t nc = MIN(block_n, g->n - jc);
    for (int64_t pc = 0; pc < g->k; pc += block_k) {
      const int64_t kc = MIN(block_k, g->k - pc);
      const cx_gemm_mode mode =
          pc != 0 && g->mode == CX_GEMM_SET ? CX_GEMM_ADD : g->mode;
      T *panel = pb;
      for (int64_t j = 0; j < nc;) {
        const int64_t width = NAME(width)(nc - j);
        NAME(pack_b)
        ((const T *)g->b + pc * g->b_row + (jc + j) * g->b_column, g->b_row,
         g->b_column, kc, MIN(width, nc - j), width, panel);
        panel += width * kc;
        j += width;
      }
      for (int64_t ic = 0; ic < g->m; ic += CX_GEMM_ROWS) {
        const int64_t mc = MIN(CX_GEMM_ROWS, g->m - ic);
        NAME(pack_a)
        ((const T *)g->a + ic * g->a_row + pc * g->a_column, g->a_row,
         g->a_column, mc, kc, pa);
        panel = pb;
        for (int64_t j = 0; j < nc;) {
          const int64_t width = NAME(width)(nc - j);
          for (int64_t i = 0; i < mc; i += GEMM_MR) {
            NAME(put_tile)
            (kc, pa + i * kc, panel, width,
             (T *)g->c + (ic + i) * g->ldc + jc + j, g->ldc,
             MIN(GEMM_MR, mc - i), MIN(width, nc - j), mode);
          }
          panel += width * kc;
          j += width;
        }
      }
    }
  }
}

#undef STRIP
#undef VEC
#undef LANES
#undef T
#undef NAME
