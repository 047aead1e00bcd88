// kernel/rows_type: products of few rows for one element type T of b, included
// by rows_width.h once for each. load(p) widens a vector, one(p) an element.

// ---- rows of b are dense ----

// Adds rows [p, p + q) of b times m rows of a to `part`, whose rows are COLUMNS
// apart. q is 1 or BESIDE.
INLINE void NAME(add_rows)(const cpu_kernel_rows *r, const T *b, const float *a,
                           int64_t columns, int m, int q, float *part)
{
  int64_t j = 0;
  for (; j + LANES <= columns; j += LANES) {
    cpu_kernel_rows_vec sum[TOGETHER];
    for (int i = 0; i < m; i++) sum[i] = load_f32(part + i * COLUMNS + j);
    for (int p = 0; p < q; p++) {
      const cpu_kernel_rows_vec x = NAME(load)(b + p * r->b_row + j);
      for (int i = 0; i < m; i++) sum[i] += x * a[i * r->a_row + p];
    }
    for (int i = 0; i < m; i++)
      *(cpu_kernel_rows_vec *)(part + i * COLUMNS + j) = sum[i];
  }
  for (; j < columns; j++) {
    for (int p = 0; p < q; p++) {
      const float x = NAME(one)(b + p * r->b_row + j);
      for (int i = 0; i < m; i++) {
        part[i * COLUMNS + j] += x * a[i * r->a_row + p];
      }
    }
  }
}

INLINE void NAME(add_all_rows)(const cpu_kernel_rows *r, const T *b,
                               const float *a, int64_t columns, int q,
                               float *part)
{
  int64_t i = 0;
  for (; i + 4 <= r->m; i += 4) {
    NAME(add_rows)(r, b, a + i * r->a_row, columns, 4, q, part + i * COLUMNS);
  }
  if (i + 2 <= r->m) {
    NAME(add_rows)(r, b, a + i * r->a_row, columns, 2, q, part + i * COLUMNS);
    i += 2;
  }
  if (i < r->m) {
    NAME(add_rows)(r, b, a + i * r->a_row, columns, 1, q, part + i * COLUMNS);
  }
}

static void NAME(by_rows)(const cpu_kernel_rows *r, int64_t lo, int64_t columns)
{
  float part[CPU_KERNEL_ROWS_MOST * COLUMNS];
  double total[CPU_KERNEL_ROWS_MOST * COLUMNS];
  const T *b = (const T *)r->b + lo;
  for (int64_t i = 0; i < r->m; i++) {
    memset(total + i * COLUMNS, 0, (size_t)columns * sizeof *total);
  }
  for (int64_t p = 0; p < r->k;) {
    const int64_t end = MIN(p + BLOCK, r->k);
    for (int64_t i = 0; i < r->m; i++) {
      memset(part + i * COLUMNS, 0, (size_t)columns * sizeof *part);
    }
    for (; p + BESIDE <= end; p += BESIDE) {
      NAME(add_all_rows)(r, b + p * r->b_row, r->a + p, columns, BESIDE, part);
    }
    for (; p < end; p++) {
      NAME(add_all_rows)(r, b + p * r->b_row, r->a + p, columns, 1, part);
    }
    for (int64_t i = 0; i < r->m * COLUMNS; i += COLUMNS) {
      for (int64_t j = 0; j < columns; j++) total[i + j] += (double)part[i + j];
    }
  }
  for (int64_t i = 0; i < r->m; i++) {
    for (int64_t j = 0; j < columns; j++) {
      r->c[i * r->c_row + (lo + j) * r->c_column] =
          (float)total[i * COLUMNS + j];
    }
  }
}

// ---- columns of b are dense ----

// n columns from b on times m rows from a on, to c.
INLINE void NAME(dot_columns)(const cpu_kernel_rows *r, const T *b,
                              const float *a, int m, int n, float *c)
{
  double total[TOGETHER][COLUMNS_BESIDE] = { { 0 } };
  int64_t p = 0;
  while (p + LANES <= r->k) {
    const int64_t end = MIN(p + BLOCK * LANES, r->k);
    cpu_kernel_rows_vec sum[TOGETHER][COLUMNS_BESIDE];
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < n; j++) sum[i][j] = (cpu_kernel_rows_vec){ 0 };
    }
    for (; p + LANES <= end; p += LANES) {
      for (int j = 0; j < n; j++) {
        const cpu_kernel_rows_vec x = NAME(load)(b + j * r->b_column + p);
        for (int i = 0; i < m; i++) {
          sum[i][j] += x * load_f32(a + i * r->a_row + p);
        }
      }
    }
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < n; j++) {
        total[i][j] += (double)sum_lanes(sum[i][j]);
      }
    }
  }
  for (; p < r->k; p++) {
    for (int j = 0; j < n; j++) {
      const float x = NAME(one)(b + j * r->b_column + p);
      for (int i = 0; i < m; i++) {
        total[i][j] += (double)(x * a[i * r->a_row + p]);
      }
    }
  }
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      c[i * r->c_row + j * r->c_column] = (float)total[i][j];
    }
  }
}

INLINE void NAME(dot_all_rows)(const cpu_kernel_rows *r, int64_t column, int n)
{
  const T *b = (const T *)r->b + column * r->b_column;
  float *c = r->c + column * r->c_column;
  int64_t i = 0;
  for (; i + 4 <= r->m; i += 4) {
    NAME(dot_columns)(r, b, r->a + i * r->a_row, 4, n, c + i * r->c_row);
  }
  if (i + 2 <= r->m) {
    NAME(dot_columns)(r, b, r->a + i * r->a_row, 2, n, c + i * r->c_row);
    i += 2;
  }
  if (i < r->m) {
    NAME(dot_columns)(r, b, r->a + i * r->a_row, 1, n, c + i * r->c_row);
  }
}

static void NAME(multiply)(const cpu_kernel_rows *r)
{
  if (r->b_column == 1) {
    for (int64_t j = 0; j < r->n; j += COLUMNS) {
      NAME(by_rows)(r, j, MIN(COLUMNS, r->n - j));
    }
    return;
  }
  int64_t j = 0;
  for (; j + COLUMNS_BESIDE <= r->n; j += COLUMNS_BESIDE) {
    NAME(dot_all_rows)(r, j, COLUMNS_BESIDE);
  }
  for (; j < r->n; j++) NAME(dot_all_rows)(r, j, 1);
}

#undef T
#undef NAME
