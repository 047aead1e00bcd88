// kernel/fft: runs a described fft: one pass over the lines of each dimension,
// of which the last comes first, or last for IRFFT.
#include "kernel/fft.h"

#include <math.h>

#include "base/alloc.h"

// Longer lines are left to the interpreter: the tables would be too large.
#define LONGEST ((int64_t)1 << 24)
// Numbers of a line whose transform is worth a thread.
#define THREAD_WORTH 4096

enum { FFT, IFFT, RFFT, IRFFT };

typedef struct transform_plan {
  cpu_kernel_fft_desc d;
  cpu_kernel_math math;
  cpu_kernel_fft_fns fns;
  cpu_kernel_fft_line lines[3];  // of the dimensions
  size_t half_at;                // IRFFT: the other dimensions' results
  size_t blocks_at, blocks_each;
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

// ---- tables -----------------------------------------------------------------

// Sets the factors of `wide`; false: there are others than 2, 3 and 5.
static bool factor(int64_t n, cpu_kernel_fft_line *l)
{
  static const int primes[] = { 4, 2, 3, 5 };
  l->n_factors = 0;
  for (int i = 0; i < 4; i++) {
    for (; n > 1 && n % primes[i] == 0; n /= primes[i]) {
      l->factors[l->n_factors++] = primes[i];
    }
  }
  return n <= 1;
}

static void size_line(int64_t n, cpu_kernel_fft_line *l)
{
  l->n = l->wide = n;
  if (factor(n, l)) return;
  for (l->wide = 1; l->wide < 2 * n; l->wide *= 2) {
  }
  (void)factor(l->wide, l);
}

// Numbers of the tables of a line.
static size_t table_size(const cpu_kernel_fft_line *l)
{
  return (size_t)(l->wide == l->n ? l->n : 2 * l->wide + l->n);
}

static void put(cpu_kernel_math math, void *table, int64_t at, double re,
                double im)
{
  if (math == CPU_KERNEL_F64) {
    ((double *)table)[2 * at] = re;
    ((double *)table)[2 * at + 1] = im;
  } else {
    ((float *)table)[2 * at] = (float)re;
    ((float *)table)[2 * at + 1] = (float)im;
  }
}

// e^(2 pi i k / n), k at most 2 n; angles up to a quarter turn are exact
// enough.
static void turn(int64_t k, int64_t n, double out[2])
{
  const double angle = 2 * acos(-1.0) * ((double)k / (double)n);
  out[0] = cos(angle);
  out[1] = sin(angle);
}

// The transform of the chirp's conjugate, in double on one lane of a block.
static calx_status *fill_filter(const cpu_kernel_fft_line *l,
                                cpu_kernel_math math, bool inverse,
                                void *filter)
{
  const size_t wide = (size_t)l->wide;
  // roots, data, and 4 vectors of at most 64 bytes for each number.
  double *memory = cx_calloc(wide, 2 * 2 * sizeof(double));
  void *blocks = cx_calloc(wide, (size_t)4 * 64);
  double *roots = memory, *data = memory == NULL ? NULL : memory + 2 * wide;
  const bool ok = memory != NULL && blocks != NULL;
  for (int64_t k = 0; ok && k < l->wide; k++) {
    turn(-k, l->wide, roots + 2 * k);
  }
  for (int64_t k = 0; ok && k < l->n; k++) {
    double c[2];
    turn(inverse ? -(k * k % (2 * l->n)) : k * k % (2 * l->n), 2 * l->n, c);
    put(CPU_KERNEL_F64, data, k, c[0], c[1]);
    if (k > 0) put(CPU_KERNEL_F64, data, l->wide - k, c[0], c[1]);
  }
  if (ok) {
    cpu_kernel_fft_line plain = *l;
    plain.n = l->wide;
    plain.roots = roots;
    const cpu_kernel_fft_pass p = { .line = &plain,
                                    .from = data,
                                    .to = data,
                                    .lines = 1,
                                    .inner = 1,
                                    .have = l->wide,
                                    .keep = l->wide };
    cpu_kernel_fft_16[CPU_KERNEL_F64].run(&p, 0, 1, blocks);
  }
  for (int64_t k = 0; ok && k < l->wide; k++) {
    put(math, filter, k, data[2 * k], data[2 * k + 1]);
  }
  cx_free(blocks);
  cx_free(memory);
  return ok ? NULL : cx_out_of_memory();
}

static calx_status *fill_tables(cpu_kernel_fft_line *l, cpu_kernel_math math,
                                bool inverse, unsigned char *at)
{
  const size_t size = 2 * cpu_kernel_math_bytes(math);
  double c[2];
  l->roots = at;
  for (int64_t k = 0; k < l->wide; k++) {
    turn(-k, l->wide, c);
    put(math, at, k, c[0], c[1]);
  }
  if (l->wide == l->n) return NULL;
  at += (size_t)l->wide * size;
  l->chirp = at;
  for (int64_t k = 0; k < l->n; k++) {
    // k^2 modulo 2n keeps the angle exact.
    const int64_t square = k * k % (2 * l->n);
    turn(inverse ? square : -square, 2 * l->n, c);
    put(math, at, k, c[0], c[1]);
  }
  at += (size_t)l->n * size;
  l->filter = at;
  return fill_filter(l, math, inverse, at);
}

// ---- running ----------------------------------------------------------------

typedef struct fft_run {
  const transform_plan *p;
  cpu_threads *pool;
  unsigned char *scratch;
  cpu_kernel_fft_pass pass;
} fft_run;

static void run_blocks(void *user, int64_t lo, int64_t hi)
{
  const fft_run *r = user;
  const size_t rank = (size_t)cpu_kernel_rank(r->pool);
  r->p->fns.run(&r->pass, lo, hi,
                r->scratch + r->p->blocks_at + rank * r->p->blocks_each);
}

// All lines along dimension i of the described ones, `last` numbers being in
// the last dimension of those that are not lines.
static void run_pass(fft_run *r, int64_t i, int64_t last, const void *from,
                     void *to)
{
  const cpu_kernel_fft_desc *d = &r->p->d;
  const bool ends = i + 1 == d->n_dims;
  const int64_t n = d->length[i];
  int64_t outer = d->batch, inner = 1;
  for (int64_t k = 0; k < i; k++) outer *= d->length[k];
  for (int64_t k = i + 1; k < d->n_dims; k++) {
    inner *= k + 1 == d->n_dims ? last : d->length[k];
  }
  r->pass =
      (cpu_kernel_fft_pass){ .line = &r->p->lines[i],
                             .from = from,
                             .to = to,
                             .lines = outer * inner,
                             .inner = inner,
                             .have = n,
                             .keep = n,
                             .from_real = ends && d->how == RFFT,
                             .to_real = ends && d->how == IRFFT,
                             .inverse = d->how == IFFT || d->how == IRFFT };
  if (r->pass.from_real) r->pass.keep = half_of(n);
  if (r->pass.to_real) r->pass.have = half_of(n);
  const int64_t lanes = r->p->fns.lanes;
  cpu_threads_for(r->pool, (r->pass.lines + lanes - 1) / lanes,
                  THREAD_WORTH / (r->p->lines[i].wide * lanes) + 1, run_blocks,
                  r);
}

static calx_status *run_fft(const cpu_kernel *kernel, cpu_threads *pool,
                            const void *lhs, const void *rhs, void *out,
                            unsigned char *scratch)
{
  const transform_plan *p = kernel->plan;
  const cpu_kernel_fft_desc *d = &p->d;
  const int64_t end = d->n_dims - 1;
  fft_run r = { .p = p, .pool = pool, .scratch = scratch };
  (void)rhs;
  if (kernel->bytes[2] == 0) return NULL;
  const int64_t last = d->how == FFT || d->how == IFFT
                           ? d->length[end]
                           : half_of(d->length[end]);
  if (d->how != IRFFT) {
    run_pass(&r, end, last, lhs, out);
    for (int64_t i = 0; i < end; i++) run_pass(&r, i, last, out, out);
    return NULL;
  }
  const void *from = lhs;
  for (int64_t i = 0; i < end; i++) {
    run_pass(&r, i, last, from, scratch + p->half_at);
    from = scratch + p->half_at;
  }
  run_pass(&r, end, last, from, out);
  return NULL;
}

// ---- making -----------------------------------------------------------------

static cpu_kernel_fft_fns fns_of(cpu_kernel_math math)
{
  switch (cpu_kernel_vector_bytes()) {
    case 64: return cpu_kernel_fft_64[math];
    case 32: return cpu_kernel_fft_32[math];
    default: return cpu_kernel_fft_16[math];
  }
}

static void reserve(cpu_kernel *kernel, transform_plan *p)
{
  const cpu_kernel_fft_desc *d = &p->d;
  const size_t size = cpu_kernel_math_bytes(p->math);
  const bool to_half = d->how == RFFT, from_half = d->how == IRFFT;
  const size_t in = (size_t)count(d, from_half) * size;
  int64_t widest = 1;
  kernel->bytes[0] = to_half ? in : 2 * in;
  kernel->bytes[2] = (size_t)count(d, to_half) * size * (from_half ? 1 : 2);
  for (int64_t i = 0; i < d->n_dims; i++) {
    if (p->lines[i].wide > widest) widest = p->lines[i].wide;
  }
  p->half_at =
      cpu_kernel_reserve(kernel, from_half && d->n_dims > 1 ? 2 * in : 0);
  p->blocks_each = (size_t)widest * 4 * (size_t)p->fns.lanes * size;
  p->blocks_each = (p->blocks_each + 63) / 64 * 64;
  p->blocks_at =
      cpu_kernel_reserve(kernel, p->blocks_each * (size_t)kernel->threads);
}

calx_status *cpu_kernel_fft_new(cpu_kernel *kernel)
{
  const cpu_kernel_fft_desc d = kernel->fft;
  if (!cpu_kernel_fft_is_sound(&d)) {
    return cx_invalid("a description of an fft contradicts itself");
  }
  const cpu_kernel_math math = d.wide ? CPU_KERNEL_F64 : CPU_KERNEL_F32;
  const size_t size = 2 * cpu_kernel_math_bytes(math);
  const size_t head = (sizeof(transform_plan) + 63) / 64 * 64;
  cpu_kernel_fft_line lines[3] = { { 0 } };
  size_t n = 0;
  for (int64_t i = 0; i < d.n_dims; i++) {
    size_line(d.length[i], &lines[i]);
    n += table_size(&lines[i]);
  }
  transform_plan *p = cx_calloc(1, head + n * size);
  if (p == NULL) return cx_out_of_memory();
  cpu_kernel_set(kernel, run_fft, p, "loops");
  p->d = d;
  p->math = math;
  p->fns = fns_of(math);
  unsigned char *at = (unsigned char *)p + head;
  for (int64_t i = 0; i < d.n_dims; i++) {
    p->lines[i] = lines[i];
    CALX_TRY(
        fill_tables(&p->lines[i], math, d.how == IFFT || d.how == IRFFT, at));
    at += table_size(&lines[i]) * size;
  }
  reserve(kernel, p);
  return NULL;
}
