// kernel/many_type: many products of tiny matrices for one element type T,
// included by gemm_width.h once for each. Without packing and without a call
// for each product.

// K inner elements and N columns, which the compiler knows: b stays in
// registers for all rows of a product.
INLINE void NAME(products_of)(const cpu_kernel_many *q, int64_t K, int64_t N)
{
  const T *a = q->one.a, *b = q->one.b;
  T *c = q->one.c;
  for (int64_t i = 0; i < q->products; i++) {
    T right[MANY_MOST * MANY_MOST];
    for (int64_t p = 0; p < K; p++) {
      for (int64_t j = 0; j < N; j++) {
        right[p * N + j] = b[p * q->one.b_row + j * q->one.b_column];
      }
    }
    for (int64_t r = 0; r < q->one.m; r++) {
      T left[MANY_MOST];
      for (int64_t p = 0; p < K; p++) {
        left[p] = a[r * q->one.a_row + p * q->one.a_column];
      }
      for (int64_t j = 0; j < N; j++) {
        T sum = 0;  // so that products of -0 add to 0, as in gemm_type.h
        for (int64_t p = 0; p < K; p++) sum += left[p] * right[p * N + j];
        c[r * N + j] = sum;
      }
    }
    a += q->a_step;
    b += q->b_step;
    c += q->one.m * N;
  }
}

INLINE void NAME(products_of_inner)(const cpu_kernel_many *q, int64_t K)
{
  switch (q->one.n) {
    case 1: NAME(products_of)(q, K, 1); break;
    case 2: NAME(products_of)(q, K, 2); break;
    case 3: NAME(products_of)(q, K, 3); break;
    default: NAME(products_of)(q, K, 4); break;
  }
}

static void NAME(products)(const cpu_kernel_many *q)
{
  switch (q->one.k) {
    case 1: NAME(products_of_inner)(q, 1); break;
    case 2: NAME(products_of_inner)(q, 2); break;
    case 3: NAME(products_of_inner)(q, 3); break;
    default: NAME(products_of_inner)(q, 4); break;
  }
}

#undef T
#undef NAME
