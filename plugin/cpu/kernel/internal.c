// kernel/internal: see internal.h.
#include "kernel/internal.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"

bool cpu_kernel_count(int64_t n, const int64_t *size, int64_t *io_bound,
                      int64_t *out)
{
  *out = 1;
  for (int64_t i = 0; i < n; i++) {
    if (size[i] < 0 || size[i] >= CPU_KERNEL_MOST) return false;
    if (size[i] != 0) {
      if (*io_bound >= CPU_KERNEL_MOST / size[i]) return false;
      *io_bound *= size[i];
    }
    *out *= size[i];  // at most the bound
  }
  return true;
}

bool cpu_kernel_fits(const cx_hlo_type *t)
{
  int64_t bound = 1, n;
  return cpu_kernel_count((int64_t)t->rank, t->dims, &bound, &n);
}

size_t cpu_kernel_reserve(cpu_kernel *kernel, size_t bytes)
{
  size_t at = kernel->scratch;
  if (at == SIZE_MAX || bytes > ((size_t)1 << 50) - at) {
    kernel->scratch = SIZE_MAX;
    return SIZE_MAX;
  }
  kernel->scratch += (bytes + 63) / 64 * 64;
  return at;
}

void cpu_kernel_set(cpu_kernel *kernel, cpu_kernel_run_fn *run, void *plan,
                    const char *name)
{
  kernel->run = run;
  kernel->plan = plan;
  kernel->free_plan = cx_free;
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
}

int cpu_kernel_vector_bytes(void)
{
  // Threads that come at the same time find the same.
  static _Atomic int bytes;
  int found = atomic_load_explicit(&bytes, memory_order_relaxed);
  if (found != 0) return found;
  found = 16;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // Every processor with AVX2 and FMA has F16C, which clang 14 cannot ask for.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    found = 64;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found = 32;
  }
#endif
  atomic_store_explicit(&bytes, found, memory_order_relaxed);
  return found;
}

int cpu_kernel_rank(const cpu_threads *pool)
{
  const cpu_threads_position here = cpu_threads_here();
  return here.threads == pool ? here.rank : 0;
}
