// kernel/triangle_type: small triangles for one element type T, included by
// triangle_width.h once for each.

typedef T OF_TYPE(vec)
    __attribute__((vector_size(TRIANGLE_BYTES), aligned(sizeof(T))));
#define VEC OF_TYPE(vec)
#define LANES ((int64_t)(TRIANGLE_BYTES / sizeof(T)))
#define VECTORS 4

// VECTORS vectors of each row stay in registers while the rows above are
// subtracted.
static void OF_TYPE(solve_wide)(const T *t, int64_t n, bool unit, T *x,
                                int64_t ldx)
{
  for (int64_t i = 0; i < n; i++) {
    VEC sum[VECTORS];
    VEC *row = (VEC *)(x + i * ldx);
    for (int k = 0; k < VECTORS; k++) sum[k] = row[k];
    for (int64_t l = 0; l < i; l++) {
      const VEC *above = (const VEC *)(x + l * ldx);
      const T factor = t[i * BLOCK + l];
      for (int k = 0; k < VECTORS; k++) sum[k] -= above[k] * factor;
    }
    for (int k = 0; k < VECTORS; k++) {
      row[k] = unit ? sum[k] : sum[k] / t[i * BLOCK + i];
    }
  }
}

// One vector of each row.
static void OF_TYPE(solve_vector)(const T *t, int64_t n, bool unit, T *x,
                                  int64_t ldx)
{
  for (int64_t i = 0; i < n; i++) {
    VEC *row = (VEC *)(x + i * ldx);
    VEC sum = *row;
    for (int64_t l = 0; l < i; l++) {
      sum -= *(const VEC *)(x + l * ldx) * t[i * BLOCK + l];
    }
    *row = unit ? sum : sum / t[i * BLOCK + i];
  }
}

static void OF_TYPE(solve)(const void *triangle, int64_t n, bool unit, void *b,
                           int64_t ldx, int64_t columns)
{
  const T *t = triangle;
  T *x = b;
  int64_t j = 0;
  for (; j + VECTORS * LANES <= columns; j += VECTORS * LANES) {
    OF_TYPE(solve_wide)(t, n, unit, x + j, ldx);
  }
  for (; j + LANES <= columns; j += LANES) {
    OF_TYPE(solve_vector)(t, n, unit, x + j, ldx);
  }
  if (j == columns) return;
  // What is left is a part of a vector.
  T some[BLOCK * LANES];
  memset(some, 0, (size_t)(n * LANES) * sizeof *some);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = j; k < columns; k++) {
      some[i * LANES + k - j] = x[i * ldx + k];
    }
  }
  OF_TYPE(solve_vector)(t, n, unit, some, LANES);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = j; k < columns; k++) {
      x[i * ldx + k] = some[i * LANES + k - j];
    }
  }
}

// Works on U = L^T, whose rows are vectors. What is left of the diagonal is
// computed too, and not used.
static void OF_TYPE(factor)(void *matrix, int64_t n, int64_t lda)
{
  T *a = matrix;
  T u[BLOCK][BLOCK];
  memset(u, 0, sizeof u);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j <= i; j++) u[j][i] = a[i * lda + j];
  }
  for (int64_t j = 0; j < n; j++) {
    const T root = u[j][j] > 0 ? ROOT(u[j][j]) : (T)NAN;
    for (int64_t k = j; k < n; k++) u[j][k] /= root;
    u[j][j] = root;
    for (int64_t i = j + 1; i < n; i++) {
      const T factor = u[j][i];
      for (int64_t k = i / LANES * LANES; k < BLOCK; k += LANES) {
        *(VEC *)&u[i][k] -= *(const VEC *)&u[j][k] * factor;
      }
    }
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j <= i; j++) a[i * lda + j] = u[j][i];
  }
}

// The row of the largest number of column j from row j on; of equal ones the
// first. A NaN is the largest only where it stands first, as in LAPACK's iamax.
static int64_t OF_TYPE(pivot)(const T u[][LU_MOST], int64_t m, int64_t j)
{
  int64_t row = j;
  T most = ABSOLUTE(u[j][j]);
  for (int64_t i = j + 1; i < m; i++) {
    const T size = ABSOLUTE(u[i][j]);
    if (size > most) {
      most = size;
      row = i;
    }
  }
  return row;
}

// Rows j and p of L, of which j columns are known, and of what is left.
static void OF_TYPE(swap_rows)(T *l, int64_t n, T u[][LU_MOST], int64_t j,
                               int64_t p)
{
  for (int64_t k = 0; k < j; k++) {
    const T x = l[j * n + k];
    l[j * n + k] = l[p * n + k];
    l[p * n + k] = x;
  }
  for (int64_t k = j / LANES * LANES; k < n; k += LANES) {
    const VEC x = *(const VEC *)&u[j][k];
    *(VEC *)&u[j][k] = *(const VEC *)&u[p][k];
    *(VEC *)&u[p][k] = x;
  }
}

// What is left is in u, whose rows are whole vectors; L is in its place.
static void OF_TYPE(lu)(const void *matrix, int64_t m, int64_t n, void *factors,
                        int32_t *pivots, int32_t *info)
{
  T u[LU_MOST][LU_MOST];
  const T *a = matrix;
  T *l = factors;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t k = 0; k < n; k++) u[i][k] = a[i * n + k];
    for (int64_t k = n; k % LANES != 0; k++) u[i][k] = 0;
  }
  *info = 0;
  for (int64_t j = 0; j < m && j < n; j++) {
    const int64_t p = OF_TYPE(pivot)((const T(*)[LU_MOST])u, m, j);
    pivots[j] = (int32_t)(p + 1);
    if (p != j) OF_TYPE(swap_rows)(l, n, u, j, p);
    const T pivot = u[j][j];
    if (pivot == 0 && *info == 0) *info = (int32_t)(j + 1);
    // The reciprocal of a subnormal number overflows.
    const bool divides = ABSOLUTE(pivot) < LEAST_NORMAL && pivot != 0;
    const T by = pivot == 0 || divides ? 1 : 1 / pivot;
    for (int64_t i = j + 1; i < m; i++) {
      const T factor = divides ? u[i][j] / pivot : u[i][j] * by;
      l[i * n + j] = factor;
      for (int64_t k = (j + 1) / LANES * LANES; k < n; k += LANES) {
        *(VEC *)&u[i][k] -= *(const VEC *)&u[j][k] * factor;
      }
    }
  }
  for (int64_t i = 0; i < m; i++) {
    for (int64_t k = i; k < n; k++) l[i * n + k] = u[i][k];
  }
}

#undef T
#undef ROOT
#undef ABSOLUTE
#undef LEAST_NORMAL
#undef OF_TYPE
#undef VEC
#undef LANES
#undef VECTORS
