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
    cpu_kernel_rows_vec sum[CPU_KERNEL_ROWS_MOST];
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
#if ROWS_BYTES == 64
  // All rows at once: with vectors this long, reading b's rows a second time
  // for the rest of a's takes as long as the sums. Elsewhere the code would
  // grow by more than that is worth.
  switch (r->m) {
    case 5: NAME(add_rows)(r, b, a, columns, 5, q, part); return;
    case 6: NAME(add_rows)(r, b, a, columns, 6, q, part); return;
    case 7: NAME(add_rows)(r, b, a, columns, 7, q, part); return;
    default: break;
  }
#endif
  for (; i + 4 <= r->m; i += 4) {
    NAME(add_rows)(r, b, a + i * r->a_row, columns, 4, q, part + i * COLUMNS);
  }
  a += i * r->a_row;
  part += i * COLUMNS;
  switch (r->m - i) {
    case 3: NAME(add_rows)(r, b, a, columns, 3, q, part); break;
    case 2: NAME(add_rows)(r, b, a, columns, 2, q, part); break;
    case 1: NAME(add_rows)(r, b, a, columns, 1, q, part); break;
    default: break;
  }
}

// q rows of b, n vectors of each, times m rows of a, set in `part`.
INLINE void NAME(set_panel)(const cpu_kernel_rows *r, const T *b,
                            const float *a, int m, int n, int64_t q,
                            float *part)
{
  cpu_kernel_rows_vec sum[PANEL_ROWS][PANEL];
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) sum[i][j] = (cpu_kernel_rows_vec){ 0 };
  }
  for (int64_t p = 0; p < q; p++) {
    for (int j = 0; j < n; j++) {
      const cpu_kernel_rows_vec x = NAME(load)(b + p * r->b_row + j * LANES);
      for (int i = 0; i < m; i++) sum[i][j] += x * a[i * r->a_row + p];
    }
  }
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      *(cpu_kernel_rows_vec *)(part + i * COLUMNS + j * LANES) = sum[i][j];
    }
  }
}

INLINE void NAME(set_panel_rows)(const cpu_kernel_rows *r, const T *b,
                                 const float *a, int n, int64_t q, float *part)
{
  int64_t i = 0;
  for (; i + PANEL_ROWS <= r->m; i += PANEL_ROWS) {
    NAME(set_panel)
    (r, b, a + i * r->a_row, PANEL_ROWS, n, q, part + i * COLUMNS);
  }
  if (i < r->m) {
    NAME(set_panel)(r, b, a + i * r->a_row, 1, n, q, part + i * COLUMNS);
  }
}

// Rows [p, p + q) of b, several side by side. Not inlined: it is called in two
// places, and is 12 to 33 KB. Without `restrict` the elements of a would be
// read again for each vector.
static __attribute__((noinline)) void NAME(add_long_rows)(
    const cpu_kernel_rows *r, const T *b, const float *a, int64_t columns,
    int64_t q, float *restrict part)
{
  int64_t p = 0;
  for (; p + BESIDE <= q; p += BESIDE) {
    NAME(add_all_rows)(r, b + p * r->b_row, a + p, columns, BESIDE, part);
  }
  for (; p < q; p++) {
    NAME(add_all_rows)(r, b + p * r->b_row, a + p, columns, 1, part);
  }
}

// Rows [p, p + q) of b in their order: short ones are one run of memory. The
// columns behind the last whole vector are added to `part`.
INLINE void NAME(set_short_rows)(const cpu_kernel_rows *r, const T *b,
                                 const float *a, int64_t columns, int64_t q,
                                 float *part)
{
  int64_t j = 0;
  for (; j + PANEL * LANES <= columns; j += PANEL * LANES) {
    NAME(set_panel_rows)(r, b + j, a, PANEL, q, part + j);
  }
  const int64_t rest = (columns - j) / LANES;
  switch (rest) {
    case 3: NAME(set_panel_rows)(r, b + j, a, 3, q, part + j); break;
    case 2: NAME(set_panel_rows)(r, b + j, a, 2, q, part + j); break;
    case 1: NAME(set_panel_rows)(r, b + j, a, 1, q, part + j); break;
    default: break;
  }
  j += rest * LANES;
  if (j < columns) NAME(add_long_rows)(r, b + j, a, columns - j, q, part + j);
}

static void NAME(by_rows)(const cpu_kernel_rows *r, int64_t lo, int64_t columns)
{
  float part[CPU_KERNEL_ROWS_MOST * COLUMNS];
  double total[CPU_KERNEL_ROWS_MOST * COLUMNS];
  const T *b = (const T *)r->b + lo;
  for (int64_t i = 0; i < r->m; i++) {
    memset(total + i * COLUMNS, 0, (size_t)columns * sizeof *total);
  }
  const bool is_short =
      r->b_row * (int64_t)sizeof(T) <= SHORT_ROW && r->k >= BLOCK;
  for (int64_t p = 0; p < r->k; p += BLOCK) {
    const int64_t q = MIN(BLOCK, r->k - p);
    for (int64_t i = 0; i < r->m; i++) {
      memset(part + i * COLUMNS, 0, (size_t)columns * sizeof *part);
    }
    if (is_short) {
      NAME(set_short_rows)
      (r, b + p * r->b_row, r->a + p, columns, q, part);
    } else {
      NAME(add_long_rows)(r, b + p * r->b_row, r->a + p, columns, q, part);
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

// n columns from b on, `apart` elements of b from one to the next, times m rows
// from a on, to c.
INLINE void NAME(dot_columns)(const cpu_kernel_rows *r, const T *b,
                              int64_t apart, const float *a, int m, int n,
                              float *c, int64_t c_apart)
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
        const cpu_kernel_rows_vec x = NAME(load)(b + j * apart + p);
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
      const float x = NAME(one)(b + j * apart + p);
      for (int i = 0; i < m; i++) {
        total[i][j] += (double)(x * a[i * r->a_row + p]);
      }
    }
  }
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      c[i * r->c_row + j * c_apart] = (float)total[i][j];
    }
  }
}

// n columns, `step` columns from one to the next.
INLINE void NAME(dot_all_rows)(const cpu_kernel_rows *r, int64_t column,
                               int64_t step, int n)
{
  const T *b = (const T *)r->b + column * r->b_column;
  const int64_t apart = step * r->b_column, c_apart = step * r->c_column;
  float *c = r->c + column * r->c_column;
  int64_t i = 0;
  for (; i + 4 <= r->m; i += 4) {
    NAME(dot_columns)
    (r, b, apart, r->a + i * r->a_row, 4, n, c + i * r->c_row, c_apart);
  }
  if (i + 2 <= r->m) {
    NAME(dot_columns)
    (r, b, apart, r->a + i * r->a_row, 2, n, c + i * r->c_row, c_apart);
    i += 2;
  }
  if (i < r->m) {
    NAME(dot_columns)
    (r, b, apart, r->a + i * r->a_row, 1, n, c + i * r->c_row, c_apart);
  }
}

// The columns that are read side by side are far apart: each is the next of a
// quarter of the columns, which is read from its beginning to its end, so that
// the processor reads ahead. Of neighbours it would read ahead beyond the end
// of each, which is of no use.
static void NAME(by_columns)(const cpu_kernel_rows *r)
{
  const int64_t step = r->n / COLUMNS_BESIDE;
  for (int64_t j = 0; j < step; j++) {
    NAME(dot_all_rows)(r, j, step, COLUMNS_BESIDE);
  }
  for (int64_t j = step * COLUMNS_BESIDE; j < r->n; j++) {
    NAME(dot_all_rows)(r, j, 1, 1);
  }
}

static void NAME(multiply)(const cpu_kernel_rows *r)
{
  if (r->b_column != 1) {
    NAME(by_columns)(r);
    return;
  }
  for (int64_t j = 0; j < r->n; j += COLUMNS) {
    NAME(by_rows)(r, j, MIN(COLUMNS, r->n - j));
  }
}

#undef T
#undef NAME
