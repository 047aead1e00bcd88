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

static void OF_TYPE(solve)(const void *triangle, int64_t n, bool unit, void *b,
                           int64_t ldx, int64_t columns)
{
  const T *t = triangle;
  T *x = b;
  int64_t j = 0;
  for (; j + VECTORS * LANES <= columns; j += VECTORS * LANES) {
    OF_TYPE(solve_wide)(t, n, unit, x + j, ldx);
  }
  for (int64_t i = 0; i < n && j < columns; i++) {
    T *row = x + i * ldx;
    for (int64_t l = 0; l < i; l++) {
      const T *above = x + l * ldx;
      for (int64_t k = j; k < columns; k++)
        row[k] -= t[i * BLOCK + l] * above[k];
    }
    for (int64_t k = j; !unit && k < columns; k++) row[k] /= t[i * BLOCK + i];
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

#undef T
#undef ROOT
#undef OF_TYPE
#undef VEC
#undef LANES
#undef VECTORS
