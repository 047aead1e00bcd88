// kernel/fft: runs a described fft: one pass over the lines of each dimension,
// of which the last comes first, or last for IRFFT.
#include "kernel/fft.h"

#include <math.h>

#include "base/alloc.h"
#include "kernel/fft_plan.h"

// Longer lines are left to the interpreter: the tables would be too large.
#define LONGEST ((int64_t)1 << 24)
// Numbers whose transform is worth a thread.
#define THREAD_WORTH 4096

enum { FFT, IFFT, RFFT, IRFFT };

typedef struct transform_plan {
  cpu_kernel_fft_desc d;
  const cpu_kernel_fft_fns *fns;
  int64_t size;                  // bytes of a real number
  cpu_kernel_fft_line lines[3];  // of the dimensions
  cpu_kernel_fft_form forms[2];  // of the last one's lines
  double scale;                  // of the last pass
  bool inside;      // the threads share each line of the last dimension
  size_t half_at;   // IRFFT: the other dimensions' results
  size_t rows_at, rows_each;      // two rows of numbers for each thread
  size_t blocks_at, blocks_each;  // for each thread
} transform_plan;

// ---- describing -------------------------------------------------------------

bool cpu_kernel_fft_describe(const cx_hlo_op *op, cpu_kernel_fft_desc *out)
{
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_ints length = cx_hlo_op_ints(op, CX_HLO_A_FFT_LENGTH);
  if (!cpu_kernel_fits(x)) return false;
  *out = (cpu_kernel_fft_desc){
    .kind = CPU_KERNEL_FFT,
    .how = cx_hlo_op_int(op, CX_HLO_A_FFT_TYPE),
    .wide = x->elem == CX_HLO_F64 || x->elem == CX_HLO_C128 ? 1 : 0,
    .batch = 1,
    .n_dims = (int64_t)length.n
  };
  for (size_t i = 0; i + length.n < x->rank; i++) out->batch *= x->dims[i];
  for (size_t i = 0; i < length.n; i++) out->length[i] = length.v[i];
  return cpu_kernel_fft_is_sound(out);
}

static int64_t half_of(int64_t n)
{
  return n == 0 ? 0 : n / 2 + 1;
}

bool cpu_kernel_fft_is_sound(const cpu_kernel_fft_desc *d)
{
  int64_t bound = 4, n;
  if (d->how < FFT || d->how > IRFFT || d->wide < 0 || d->wide > 1 ||
      d->n_dims < 1 || d->n_dims > 3) {
    return false;
  }
  for (int64_t i = 0; i < d->n_dims; i++) {
    if (d->length[i] < 0 || d->length[i] > LONGEST) return false;
  }
  return cpu_kernel_count(1, &d->batch, &bound, &n) &&
         cpu_kernel_count(d->n_dims, d->length, &bound, &n);
}

// The numbers of one operand or result, whose last dimension may be halved.
static int64_t count(const cpu_kernel_fft_desc *d, bool halved)
{
  int64_t n = d->batch;
  for (int64_t i = 0; i < d->n_dims; i++) {
    const bool half = halved && i + 1 == d->n_dims;
    n *= half ? half_of(d->length[i]) : d->length[i];
  }
  return n;
}

double cpu_kernel_fft_flops(const cpu_kernel_fft_desc *d)
{
  if (!cpu_kernel_fft_is_sound(d)) return 0;
  double flops = 0;
  for (int64_t i = 0; i < d->n_dims; i++) {
    flops += 5 * (double)count(d, false) * log2((double)d->length[i] + 1);
  }
  return flops;
}

// ---- passes over all lines of a dimension -----------------------------------

typedef struct fft_run {
  const transform_plan *p;
  cpu_threads *pool;
  unsigned char *scratch;
} fft_run;

// What is divided among the threads: blocks, or vectors of a row.
typedef struct part {
  const fft_run *run;
  const cpu_kernel_fft_blocks *blocks;
  cpu_kernel_fft_row_fn *fn;
  const cpu_kernel_fft_row *row;
} part;

static void run_blocks(void *user, int64_t lo, int64_t hi)
{
  const part *s = user;
  const transform_plan *p = s->run->p;
  const size_t rank = (size_t)cpu_kernel_rank(s->run->pool);
  p->fns->run(s->blocks, lo, hi,
              s->run->scratch + p->blocks_at + rank * p->blocks_each);
}

static void run_row(void *user, int64_t lo, int64_t hi)
{
  const part *s = user;
  s->fn(s->row, lo, hi);
}

static int64_t grain(int64_t numbers)
{
  return THREAD_WORTH / (numbers + 1) + 1;
}

// Inside of a parallel loop this runs on the calling thread alone.
static void all_blocks(const fft_run *r, const cpu_kernel_fft_blocks *b,
                       int64_t groups)
{
  const int64_t lanes = r->p->fns->lanes;
  part s = { .run = r, .blocks = b };
  cpu_threads_for(r->pool, groups * ((b->lines + lanes - 1) / lanes),
                  grain(b->stages->n * lanes), run_blocks, &s);
}

static void all_of_row(const fft_run *r, const cpu_kernel_fft_row *row,
                       cpu_kernel_fft_row_fn *fn, int64_t numbers)
{
  const int64_t lanes = r->p->fns->lanes;
  part s = { .run = r, .fn = fn, .row = row };
  cpu_threads_for(r->pool, (numbers + lanes - 1) / lanes, grain(lanes), run_row,
                  &s);
}

// ---- one line of neighbours -------------------------------------------------

typedef struct ends {
  const void *from;
  void *to;
  bool swap_from, swap_to;
  double scale;
} ends;

// The matrix [first.n][second.n] of from, by its columns, to its transpose in
// `other`, and the columns of that.
static void run_split(const fft_run *r, const cpu_kernel_fft_line *l,
                      const ends *e, unsigned char *other)
{
  const int64_t a = l->first.n, b = l->second.n;
  const cpu_kernel_fft_blocks columns = {
    .line = l,
    .stages = &l->first,
    .from = { .at = (unsigned char *)(uintptr_t)e->from,
              .lane = 2,
              .step = 2 * b },
    .to = { .at = other, .lane = 2 * a, .step = 2 },
    .lines = b,
    .swap_from = e->swap_from,
    .turned = true,
    .scale = 1
  };
  const cpu_kernel_fft_blocks rows = {
    .line = l,
    .stages = &l->second,
    .from = { .at = other, .lane = 2, .step = 2 * a },
    .to = { .at = e->to, .lane = 2, .step = 2 * a },
    .lines = a,
    .swap_to = e->swap_to,
    .scale = e->scale
  };
  all_blocks(r, &columns, 1);
  all_blocks(r, &rows, 1);
}

// A convolution of the numbers in `work`, after the chirp.
static void convolve(const fft_run *r, const cpu_kernel_fft_row *row,
                     unsigned char *work, unsigned char *other)
{
  const cpu_kernel_fft_line *l = row->line;
  const ends e = { .from = work, .to = work, .scale = 1 };
  const cpu_kernel_fft_row in_place = { .line = l, .to = work };
  all_of_row(r, row, r->p->fns->chirp, l->wide);
  run_split(r, l, &e, other);
  all_of_row(r, &in_place, r->p->fns->filter, l->wide);
  run_split(r, l, &e, other);
}

// A line of the last dimension. The forms that are not NUMBERS are made to
// numbers in `work`, and made from those.
static void run_line(const fft_run *r, const void *from, void *to,
                     unsigned char *rows)
{
  const transform_plan *p = r->p;
  const cpu_kernel_fft_line *l = &p->lines[p->d.n_dims - 1];
  unsigned char *work = rows, *other = rows + p->rows_each / 2;
  const bool inverse = p->d.how == IFFT || p->d.how == IRFFT;
  const bool whole = p->forms[0] != CPU_KERNEL_FFT_HALF;
  ends e = { from, to, p->forms[0] == CPU_KERNEL_FFT_NUMBERS && inverse,
             whole && inverse, p->scale };
  if (p->forms[0] != CPU_KERNEL_FFT_NUMBERS) {
    const cpu_kernel_fft_row row = {
      .line = l, .form = p->forms[0], .from = from, .to = work
    };
    all_of_row(r, &row, p->fns->open,
               p->forms[0] == CPU_KERNEL_FFT_REAL ? l->n : l->n / 2 + 1);
    e.from = work;
  }
  const bool closes = p->forms[1] == CPU_KERNEL_FFT_REAL ||
                      p->forms[1] == CPU_KERNEL_FFT_HALF || l->wide != l->n;
  if (l->wide != l->n) {
    const cpu_kernel_fft_row row = {
      .line = l, .swap = e.swap_from, .from = e.from, .to = work
    };
    convolve(r, &row, work, other);
  } else {
    if (closes) e = (ends){ e.from, work, e.swap_from, false, 1 };
    run_split(r, l, &e, other);
  }
  const cpu_kernel_fft_row row = { .line = l,
                                   .form = p->forms[1],
                                   .swap = e.swap_to,
                                   .scale = p->scale,
                                   .from = work,
                                   .to = to };
  if (closes) all_of_row(r, &row, p->fns->close, l->n);
  if (p->forms[1] == CPU_KERNEL_FFT_PACKED) {
    all_of_row(r, &row, p->fns->unpack, l->n / 2 + 1);
  }
}

// ---- passes -----------------------------------------------------------------

typedef struct lines {
  const fft_run *run;
  const unsigned char *from;
  unsigned char *to;
  int64_t from_line, to_line;  // bytes
} lines;

static void run_lines(void *user, int64_t lo, int64_t hi)
{
  const lines *s = user;
  const transform_plan *p = s->run->p;
  const size_t rank = p->inside ? 0 : (size_t)cpu_kernel_rank(s->run->pool);
  for (int64_t i = lo; i < hi; i++) {
    run_line(s->run, s->from + i * s->from_line, s->to + i * s->to_line,
             s->run->scratch + p->rows_at + rank * p->rows_each);
  }
}

// Real elements of a line of n numbers.
static int64_t elements(int64_t n, cpu_kernel_fft_form form)
{
  const int64_t parts = form == CPU_KERNEL_FFT_REAL ? 1 : 2;
  return parts * cpu_kernel_fft_count(n, form);
}

static int64_t product(const cpu_kernel_fft_desc *d, int64_t n)
{
  int64_t total = d->batch;
  for (int64_t i = 0; i < n; i++) total *= d->length[i];
  return total;
}

static void last_pass(const fft_run *r, const void *from, void *to)
{
  const transform_plan *p = r->p;
  const cpu_kernel_fft_line *l = &p->lines[p->d.n_dims - 1];
  const int64_t n = product(&p->d, p->d.n_dims - 1);
  const int64_t width[2] = { elements(l->n, p->forms[0]),
                             elements(l->n, p->forms[1]) };
  if (l->second.n > 1) {
    lines s = { r, from, to, width[0] * p->size, width[1] * p->size };
    if (p->inside) {
      run_lines(&s, 0, n);
    } else {
      cpu_threads_for(r->pool, n, grain(l->wide), run_lines, &s);
    }
    return;
  }
  const bool inverse = p->d.how == IFFT || p->d.how == IRFFT;
  const bool swaps = inverse && p->forms[0] != CPU_KERNEL_FFT_HALF;
  const cpu_kernel_fft_blocks b = {
    .line = l,
    .stages = &l->first,
    .from = { .at = (unsigned char *)(uintptr_t)from,
              .lane = width[0],
              .step = 2,
              .form = p->forms[0] },
    .to = { .at = to, .lane = width[1], .step = 2, .form = p->forms[1] },
    .lines = n,
    .swap_from = swaps,
    .swap_to = swaps,
    .scale = p->scale
  };
  all_blocks(r, &b, 1);
}

// Dimension i, which is not the last, of `last` numbers in the last one.
static void pass(const fft_run *r, int64_t i, int64_t last, const void *from,
                 void *to)
{
  const transform_plan *p = r->p;
  const cpu_kernel_fft_desc *d = &p->d;
  const bool inverse = d->how == IFFT || d->how == IRFFT;
  int64_t inner = last;
  for (int64_t k = i + 1; k + 1 < d->n_dims; k++) inner *= d->length[k];
  const cpu_kernel_fft_place place = { .at = (unsigned char *)(uintptr_t)from,
                                       .group = 2 * inner * d->length[i],
                                       .lane = 2,
                                       .step = 2 * inner };
  cpu_kernel_fft_blocks b = { .line = &p->lines[i],
                              .stages = &p->lines[i].first,
                              .from = place,
                              .to = place,
                              .lines = inner,
                              .swap_from = inverse,
                              .swap_to = inverse,
                              .scale = 1 };
  b.to.at = to;
  all_blocks(r, &b, product(d, i));
}

static calx_status *run_fft(const cpu_kernel *kernel, cpu_threads *pool,
                            const void *lhs, const void *rhs, void *out,
                            unsigned char *scratch)
{
  const transform_plan *p = kernel->plan;
  const cpu_kernel_fft_desc *d = &p->d;
  const int64_t end = d->n_dims - 1;
  const fft_run r = { .p = p, .pool = pool, .scratch = scratch };
  (void)rhs;
  if (kernel->bytes[2] == 0) return NULL;
  const int64_t last = d->how == FFT || d->how == IFFT
                           ? d->length[end]
                           : half_of(d->length[end]);
  if (d->how != IRFFT) {
    last_pass(&r, lhs, out);
    for (int64_t i = 0; i < end; i++) pass(&r, i, last, out, out);
    return NULL;
  }
  const void *from = lhs;
  for (int64_t i = 0; i < end; i++) {
    pass(&r, i, last, from, scratch + p->half_at);
    from = scratch + p->half_at;
  }
  last_pass(&r, from, out);
  return NULL;
}

// ---- making -----------------------------------------------------------------

const cpu_kernel_fft_fns *cpu_kernel_fft_get(cpu_kernel_math math)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return &cpu_kernel_fft_64[math];
    case 32: return &cpu_kernel_fft_32[math];
    default: return &cpu_kernel_fft_16[math];
  }
}

// The last dimension's line: a real one of an even length has half the numbers.
static int64_t shape_last(transform_plan *p)
{
  const int64_t n = p->d.length[p->d.n_dims - 1];
  if (p->d.how == FFT || p->d.how == IFFT) return n;
  const bool even = n % 2 == 0;
  p->forms[p->d.how == RFFT ? 1 : 0] =
      even ? CPU_KERNEL_FFT_PACKED : CPU_KERNEL_FFT_HALF;
  p->forms[p->d.how == RFFT ? 0 : 1] =
      even ? CPU_KERNEL_FFT_NUMBERS : CPU_KERNEL_FFT_REAL;
  return even ? n / 2 : n;
}

static void reserve(cpu_kernel *kernel, transform_plan *p)
{
  const cpu_kernel_fft_desc *d = &p->d;
  const bool to_half = d->how == RFFT, from_half = d->how == IRFFT;
  const cpu_kernel_fft_line *last = &p->lines[d->n_dims - 1];
  const size_t size = (size_t)p->size, threads = (size_t)kernel->threads;
  const size_t in = (size_t)count(d, from_half) * size;
  int64_t most = 0;
  kernel->bytes[0] = to_half ? in : 2 * in;
  kernel->bytes[2] = (size_t)count(d, to_half) * size * (from_half ? 1 : 2);
  for (int64_t i = 0; i < d->n_dims; i++) {
    const int64_t vectors = cpu_kernel_fft_block_vectors(&p->lines[i]);
    if (vectors > most) most = vectors;
  }
  p->half_at =
      cpu_kernel_reserve(kernel, from_half && d->n_dims > 1 ? 2 * in : 0);
  p->blocks_each = (size_t)(most * p->fns->lanes) * size;
  p->blocks_at = cpu_kernel_reserve(kernel, p->blocks_each * threads);
  if (last->second.n == 1) return;
  const size_t row = ((size_t)last->wide * 2 * size + 128 + 63) / 64 * 64;
  p->inside = product(d, d->n_dims - 1) < kernel->threads;
  p->rows_each = 2 * row;
  p->rows_at =
      cpu_kernel_reserve(kernel, p->rows_each * (p->inside ? 1 : threads));
}

static int64_t size_lines(transform_plan *p, cpu_kernel_math math,
                          size_t *out_bytes)
{
  const cpu_kernel_fft_desc *d = &p->d;
  const int64_t last = shape_last(p);
  int64_t numbers = 1;
  for (int64_t i = 0; i < d->n_dims; i++) numbers *= d->length[i];
  for (int64_t i = 0; numbers > 0 && i < d->n_dims; i++) {
    const bool final = i + 1 == d->n_dims;
    cpu_kernel_fft_line_set(final ? last : d->length[i], math, final,
                            final && last < d->length[i], &p->lines[i]);
    out_bytes[i] = cpu_kernel_fft_line_bytes(&p->lines[i], math);
  }
  return numbers;
}

calx_status *cpu_kernel_fft_new(cpu_kernel *kernel)
{
  const cpu_kernel_fft_desc d = kernel->fft;
  if (!cpu_kernel_fft_is_sound(&d)) {
    return cx_invalid("a description of an fft contradicts itself");
  }
  const cpu_kernel_math math = d.wide ? CPU_KERNEL_F64 : CPU_KERNEL_F32;
  transform_plan plan = { .d = d,
                          .fns = cpu_kernel_fft_get(math),
                          .size = (int64_t)cpu_kernel_math_bytes(math),
                          .scale = 1 };
  const size_t head = (sizeof plan + 63) / 64 * 64;
  size_t bytes[3] = { 0 };
  const int64_t numbers = size_lines(&plan, math, bytes);
  if (d.how == IFFT || d.how == IRFFT) plan.scale = 1.0 / (double)numbers;
  transform_plan *p = cx_calloc(1, head + bytes[0] + bytes[1] + bytes[2]);
  if (p == NULL) return cx_out_of_memory();
  *p = plan;
  cpu_kernel_set(kernel, run_fft, p, "loops");
  unsigned char *at = (unsigned char *)p + head;
  for (int64_t i = 0; numbers > 0 && i < d.n_dims; i++) {
    CALX_TRY(cpu_kernel_fft_line_fill(&p->lines[i], math, at));
    at += bytes[i];
  }
  reserve(kernel, p);
  return NULL;
}
