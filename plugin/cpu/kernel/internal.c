// kernel/internal: see internal.h.
#include "kernel/internal.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"

bool cpu_kernel_fits(const cx_hlo_type *t)
{
  int64_t n = 1;
  for (size_t i = 0; i < t->rank; i++) {
    if (t->dims[i] < 0 || t->dims[i] >= CPU_KERNEL_MOST) return false;
    if (t->dims[i] == 0) continue;
    if (n >= CPU_KERNEL_MOST / t->dims[i]) return false;
    n *= t->dims[i];
  }
  return true;
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
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
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
