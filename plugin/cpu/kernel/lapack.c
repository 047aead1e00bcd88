// kernel/lapack: runs a described call of LAPACK, its matrices divided among
// the threads.
#include <string.h>

#include "base/alloc.h"
#include "kernel/internal.h"
#include "kernel/small.h"

// Of small matrices: the flops that are worth waking a thread, and those that a
// matrix's own cost is worth.
#define SMALL_SHARE 30000.0
#define SMALL_CALL 200.0

typedef struct lapack_plan {
  cpu_lapack_plan call;
  cpu_kernel_small_kind small;
  size_t scratch_at, scratch_each;
  // Matrices of one thread's share at least: small ones do not pay for waking
  // it.
  int64_t grain;
} lapack_plan;

bool cpu_kernel_lapack_describe(const cx_hlo_op *op, cpu_lapack_desc *out)
{
  calx_status *status = cpu_lapack_describe(op, out);
  const bool described = status == NULL;
  calx_status_free(status);
  if (!described) memset(out, 0, sizeof *out);
  out->kind = CPU_KERNEL_LAPACK;
  return described;
}

typedef struct lapack_run {
  const lapack_plan *p;
  cpu_threads *pool;
  void *const *buffers;
  unsigned char *scratch;
} lapack_run;

static void run_some(void *user, int64_t lo, int64_t hi)
{
  const lapack_run *r = user;
  const size_t rank = (size_t)cpu_kernel_rank(r->pool);
  unsigned char *scratch = r->scratch + rank * r->p->scratch_each;
  if (r->p->small == CPU_KERNEL_SMALL_NONE) {
    cpu_lapack_run(&r->p->call, r->buffers, lo, hi, scratch);
  } else {
    cpu_kernel_small_run(r->p->small, &r->p->call, r->buffers, lo, hi, r->pool,
                         scratch);
  }
}

// A kernel of one operand has it twice.
static size_t is_twice(const lapack_plan *p)
{
  return p->call.n_operands == 1 ? 1 : 0;
}

static calx_status *run_lapack(const cpu_kernel *kernel, cpu_threads *pool,
                               void *const *buffers)
{
  const lapack_plan *p = kernel->plan;
  unsigned char *scratch = buffers[kernel->n_buffers];
  const lapack_run r = { p, pool, buffers + is_twice(p),
                         scratch + p->scratch_at };
  if (p->call.d.batch > 0) {
    cpu_threads_for(pool, p->call.d.batch, p->grain, run_some, (void *)&r);
  }
  return NULL;
}

static int64_t grain_of(const lapack_plan *p)
{
  const double batch = (double)p->call.d.batch;
  const double each = batch > 0 ? cpu_lapack_flops(&p->call.d) / batch : 0;
  if (p->small != CPU_KERNEL_SMALL_NONE) {
    return 1 + (int64_t)(SMALL_SHARE / (each + SMALL_CALL));
  }
  return each < 1000 ? 8 : each < 8000 ? 2 : 1;
}

calx_status *cpu_kernel_lapack_new(cpu_kernel *kernel)
{
  lapack_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, NULL, p, "lapack");
  kernel->run_buffers = run_lapack;
  CALX_TRY(cpu_lapack_plan_make(&kernel->lapack, &p->call));
  p->small = cpu_kernel_small_of(&p->call);
  p->grain = grain_of(p);
  cpu_lapack_plan_name(&p->call, kernel->name, sizeof kernel->name);
  const size_t twice = is_twice(p);
  for (size_t i = 0; i < p->call.n_tensors; i++) {
    kernel->bytes[i + twice] = cpu_lapack_plan_bytes(&p->call, i);
  }
  if (twice != 0) kernel->bytes[0] = kernel->bytes[1];
  kernel->n_buffers = (int)(p->call.n_tensors + twice);
  p->scratch_each = p->small == CPU_KERNEL_SMALL_NONE
                        ? p->call.scratch
                        : cpu_kernel_small_scratch(p->small, &p->call);
  p->scratch_at =
      cpu_kernel_reserve(kernel, p->scratch_each * (size_t)kernel->threads);
  return NULL;
}
