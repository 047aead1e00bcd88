// kernel/sort: runs a described sort, line by line, on a thread each or, of a
// few long lines, on all.
#include "kernel/sort.h"

#include "base/alloc.h"

#define THREAD_WORTH 8192  // elements
#define LONG 65536         // elements of a line that is worth all threads
#define MOST_CHUNKS 64
#define SELECT_PART 4   // of a line that selecting is for
#define CANDIDATES 256  // that are collected, at least

typedef struct sort_run {
  const cpu_kernel_sort_plan *p;
  cpu_threads *pool;
  const unsigned char *in[2];
  unsigned char *out[2];
  unsigned char *scratch;
} sort_run;

// ---- running ----

static void run_line(const sort_run *r, int64_t which, size_t rank)
{
  const cpu_kernel_sort_plan *p = r->p;
  const int64_t inner = p->d.inner;
  const int64_t first = which / inner * inner * p->d.n + which % inner;
  cpu_kernel_sort_line l = { .p = p };
  for (int i = 0; i < 2; i++) {
    const int64_t at = first * p->size[i];
    l.in[i] = r->in[i] == NULL ? NULL : r->in[i] + at;
    l.out[i] = r->out[i] == NULL ? NULL : r->out[i] + at;
    l.stride[i] = inner * p->size[i];
  }
  unsigned char *memory = r->scratch + rank * p->each;
  l.m = (cpu_kernel_sort_memory){
    .items = { memory, memory + p->items_each },
    .counts = (uint32_t *)(void *)(memory + 2 * p->items_each),
    .chunks = p->chunks,
    .pool = r->pool
  };
  cpu_kernel_sort_line_run(&l);
}

static void run_lines(void *user, int64_t lo, int64_t hi)
{
  const sort_run *r = user;
  const size_t rank = (size_t)cpu_kernel_rank(r->pool);
  for (int64_t i = lo; i < hi; i++) run_line(r, i, rank);
}

// The buffers are the keys, what lies beside them (or the keys again), one or
// two results, and scratch.
static calx_status *run_sort(const cpu_kernel *kernel, cpu_threads *pool,
                             void *const *buffers)
{
  const cpu_kernel_sort_plan *p = kernel->plan;
  const int n = kernel->n_buffers;
  sort_run r = { .p = p,
                 .pool = pool,
                 .in = { buffers[0], buffers[1] },
                 .out = { buffers[2], n == 4 ? buffers[3] : NULL },
                 .scratch = buffers[n] };
  const int64_t lines = p->d.outer * p->d.inner;
  if (p->chunks > 1) {
    for (int64_t i = 0; i < lines; i++) run_line(&r, i, 0);
  } else {
    cpu_threads_for(pool, lines, THREAD_WORTH / p->d.n + 1, run_lines, &r);
  }
  return NULL;
}

// ---- making ----

static const cpu_kernel_sort_fns *fns_of(bool wide)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return &cpu_kernel_sort_64[wide];
    case 32: return &cpu_kernel_sort_32[wide];
    default: return &cpu_kernel_sort_16[wide];
  }
}

static void set_plan(cpu_kernel_sort_plan *p, const cpu_kernel_sort_desc *d,
                     int threads)
{
  p->d = *d;
  for (int i = 0; i < 2; i++) {
    p->size[i] = (int64_t)cx_hlo_elem_bytes((cx_hlo_elem)d->types[i]);
  }
  p->order = cpu_kernel_sort_order_of(d);
  p->wide = p->size[0] > 4;
  p->fns = fns_of(p->wide);
  const int64_t keep = cpu_kernel_sort_kept(d);
  p->selects =
      d->n > CPU_KERNEL_SORT_SHORT && keep > 0 && keep <= d->n / SELECT_PART;
  p->room = d->n;
  if (p->selects) {
    p->room = 2 * keep + CANDIDATES + CPU_KERNEL_SORT_BLOCK;
  }
  const bool few = d->outer * d->inner < threads;
  p->chunks = 1;
  if (!p->selects && few && d->n >= LONG) {
    p->chunks = threads < MOST_CHUNKS ? threads : MOST_CHUNKS;
  }
}

static void reserve(cpu_kernel *kernel, cpu_kernel_sort_plan *p)
{
  const cpu_kernel_sort_desc *d = &p->d;
  const bool pairs =
      d->payload != CPU_KERNEL_SORT_ALONE || d->equal != 0 || p->selects;
  const size_t item = (p->wide ? 8 : 4) * (size_t)(pairs ? 2 : 1);
  const size_t total = (size_t)(d->outer * d->n * d->inner);
  kernel->bytes[0] = kernel->bytes[2] = total * (size_t)p->size[0];
  const size_t beside = total * (size_t)p->size[1];
  kernel->n_buffers = d->payload == CPU_KERNEL_SORT_ALONE ? 3 : 4;
  if (d->payload != CPU_KERNEL_SORT_ALONE) kernel->bytes[3] = beside;
  if (d->payload == CPU_KERNEL_SORT_BESIDE) kernel->bytes[1] = beside;
  if (d->n <= CPU_KERNEL_SORT_SHORT) return;
  p->items_each = ((size_t)p->room * item + 63) / 64 * 64;
  const int counts = p->chunks > 1 ? p->chunks : CPU_KERNEL_SORT_DIGITS;
  p->counts_each = ((size_t)counts * 4) << CPU_KERNEL_SORT_DIGIT;
  p->each = 2 * p->items_each + p->counts_each;
  const size_t users = p->chunks > 1 ? 1 : (size_t)kernel->threads;
  (void)cpu_kernel_reserve(kernel, p->each * users);
}

calx_status *cpu_kernel_sort_new(cpu_kernel *kernel)
{
  const cpu_kernel_sort_desc d = kernel->sort;
  if (!cpu_kernel_sort_is_sound(&d) || d.n < 1) {
    return cx_invalid("a description of a sort contradicts itself");
  }
  cpu_kernel_sort_plan *p = cx_calloc(1, sizeof *p);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, NULL, p, "sort");
  kernel->run_buffers = run_sort;
  set_plan(p, &d, kernel->threads);
  reserve(kernel, p);
  return NULL;
}
