// kernels/internal: see internal.h.
#include "kernels/internal.h"

bool cx_kernel_fits(const cx_hlo_type *t)
{
  int64_t n = 1;
  for (size_t i = 0; i < t->rank; i++) {
    if (t->dims[i] < 0 || t->dims[i] >= CX_KERNEL_MOST) return false;
    if (t->dims[i] == 0) continue;
    if (n >= CX_KERNEL_MOST / t->dims[i]) return false;
    n *= t->dims[i];
  }
  return true;
}

size_t cx_kernel_reserve(cx_kernel *kernel, size_t bytes)
{
  size_t at = kernel->scratch;
  if (at == SIZE_MAX || bytes > ((size_t)1 << 50) - at) {
    kernel->scratch = SIZE_MAX;
    return SIZE_MAX;
  }
  kernel->scratch += (bytes + 63) / 64 * 64;
  return at;
}

int cx_kernel_rank(const cx_pool *pool)
{
  const cx_pool_place here = cx_pool_here();
  return here.pool == pool ? here.rank : 0;
}
