// ref/fft: discrete Fourier transforms of any length.
//
// Powers of two by the radix-2 algorithm; other lengths as a convolution of a
// power of two (L. Bluestein, 1970). Everything in double.
#include <math.h>
#include <string.h>

#include "ref/inner.h"

typedef struct fft_plan {
  size_t n;     // length
  size_t wide;  // n, or the power of two of the convolution
  bool inverse;
  double complex *line;   // n
  double complex *chirp;  // n: e^(-+ i pi k^2 / n)
  double complex *a, *b;  // wide
} fft_plan;

static double complex turn(double part)  // e^(2 pi i part)
{
  const double angle = 2 * acos(-1.0) * part;
  return cpu_ref_pair(cos(angle), sin(angle));
}

static double complex times(double complex a, double complex b)
{
  return cpu_ref_pair(creal(a) * creal(b) - cimag(a) * cimag(b),
                      creal(a) * cimag(b) + cimag(a) * creal(b));
}

static void radix2(double complex *x, size_t n, bool inverse)
{
  for (size_t i = 1, j = 0; i < n; i++) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    const double complex swap = x[i];
    x[i] = x[j];
    x[j] = swap;
  }
  for (size_t width = 2; width <= n; width *= 2) {
    const size_t half = width / 2;
    for (size_t k = 0; k < half; k++) {
      const double part = (double)k / (double)width;
      const double complex w = turn(inverse ? part : -part);
      for (size_t i = k; i < n; i += width) {
        const double complex odd = times(w, x[i + half]);
        x[i + half] = x[i] - odd;
        x[i] += odd;
      }
    }
  }
}

// 2 j k = j^2 + k^2 - (j - k)^2 makes the sum a convolution with a chirp.
static void bluestein(const fft_plan *p)
{
  const size_t n = p->n;
  memset(p->a, 0, p->wide * sizeof *p->a);
  memset(p->b, 0, p->wide * sizeof *p->b);
  for (size_t k = 0; k < n; k++) {
    p->a[k] = times(p->line[k], p->chirp[k]);
    p->b[k] = conj(p->chirp[k]);
    if (k != 0) p->b[p->wide - k] = p->b[k];
  }
  radix2(p->a, p->wide, false);
  radix2(p->b, p->wide, false);
  for (size_t k = 0; k < p->wide; k++) p->a[k] = times(p->a[k], p->b[k]);
  radix2(p->a, p->wide, true);
  for (size_t k = 0; k < n; k++) {
    const double complex x = times(p->a[k], p->chirp[k]);
    p->line[k] =
        cpu_ref_pair(creal(x) / (double)p->wide, cimag(x) / (double)p->wide);
  }
}

static void transform(const fft_plan *p)
{
  if (p->wide == p->n) {
    radix2(p->line, p->n, p->inverse);
  } else {
    bluestein(p);
  }
  for (size_t k = 0; p->inverse && k < p->n; k++) {
    p->line[k] = cpu_ref_pair(creal(p->line[k]) / (double)p->n,
                              cimag(p->line[k]) / (double)p->n);
  }
}

static calx_status *plan_open(const cpu_ref_call *c, size_t n, bool inverse,
                              fft_plan *out, cpu_ref_buffer **memory)
{
  *out = (fft_plan){ .n = n, .wide = 1, .inverse = inverse };
  while (out->wide < n) out->wide *= 2;
  if (out->wide != n) out->wide *= 2;
  CALX_TRY(cpu_ref_scratch(c, 2 * n + 2 * out->wide, sizeof(double complex),
                           memory));
  out->line = (double complex *)(void *)(*memory)->data;
  out->chirp = out->line + n;
  out->a = out->chirp + n;
  out->b = out->a + out->wide;
  for (size_t k = 0; k < n; k++) {
    // k^2 modulo 2n keeps the angle exact.
    const size_t square = k % (2 * n) * k % (2 * n);
    const double part = (double)square / (double)(2 * n);
    out->chirp[k] = turn(inverse ? part : -part);
  }
  return NULL;
}

// All lines along one dimension of z.
static calx_status *transform_dim(const cpu_ref_call *c, double complex *z,
                                  const cx_hlo_type *t, size_t d, bool inverse)
{
  fft_plan p;
  cpu_ref_buffer *memory = NULL;
  int64_t step[CPU_REF_RANK];
  int64_t dims[CPU_REF_RANK];
  int64_t at[CPU_REF_RANK] = { 0 };
  cpu_ref_strides(t, step);
  for (size_t i = 0; i < t->rank; i++) dims[i] = i == d ? 1 : t->dims[i];
  CALX_TRY(plan_open(c, (size_t)t->dims[d], inverse, &p, &memory));
  calx_status *status = NULL;
  do {
    int64_t first = 0;
    for (size_t i = 0; i < t->rank; i++) first += at[i] * step[i];
    for (size_t k = 0; k < p.n; k++) {
      p.line[k] = z[first + (int64_t)k * step[d]];
    }
    transform(&p);
    for (size_t k = 0; k < p.n; k++) {
      z[first + (int64_t)k * step[d]] = p.line[k];
    }
    status = cpu_ref_interrupted(c->machine);
  } while (status == NULL && cpu_ref_next(t->rank, dims, at));
  cpu_ref_buffer_release(c->machine, memory);
  return status;
}

// The lines of the last dimension grow from n/2+1 to n: what is missing is the
// conjugate of what mirrors it.
static void complete(const cpu_ref_tensor *in, size_t n,
                     const double complex *half, double complex *whole)
{
  const size_t have = (size_t)in->type.dims[in->type.rank - 1];
  const size_t lines = cpu_ref_count(in) / have;
  for (size_t l = 0; l < lines; l++) {
    for (size_t k = 0; k < n; k++) {
      whole[l * n + k] =
          k < have ? half[l * have + k] : conj(half[l * have + n - k]);
    }
    // A real line's first number is real, and its middle one.
    whole[l * n] = cpu_ref_pair(creal(whole[l * n]), 0);
    if (n % 2 == 0) {
      whole[l * n + n / 2] = cpu_ref_pair(creal(whole[l * n + n / 2]), 0);
    }
  }
}

static void store_result(const cpu_ref_tensor *out, const double complex *z,
                         size_t line)
{
  const cx_hlo_elem e = out->type.elem;
  const size_t have = (size_t)out->type.dims[out->type.rank - 1];
  const size_t n = cpu_ref_count(out);
  const size_t bytes = cx_hlo_elem_bytes(e);
  for (size_t i = 0; i < n; i++) {
    const double complex *from = &z[i / have * line + i % have];
    void *p = (char *)out->data + i * bytes;
    if (cx_hlo_elem_is_complex(e)) {
      cpu_ref_store_complex(e, p, 1, from);
    } else {
      const double x = creal(*from);
      cpu_ref_store_reals(e, p, 1, &x);
    }
  }
}

typedef enum direction { FFT, IFFT, RFFT, IRFFT } direction;

// All dimensions but the last, then that; IRFFT completes its lines between.
static calx_status *run(const cpu_ref_call *c, direction how, double complex *z,
                        double complex *w)
{
  const cpu_ref_tensor *in = c->in, *out = c->out;
  const cx_hlo_ints length = cx_hlo_op_ints(c->op, CX_HLO_A_FFT_LENGTH);
  const size_t rank = in->type.rank;
  const size_t last = rank - 1;
  const bool inverse = how == IFFT || how == IRFFT;
  cpu_ref_load_complex(in->type.elem, in->data, cpu_ref_count(in), z);
  // A real line is transformed before the others see it, to half of it.
  if (how != IRFFT) {
    CALX_TRY(transform_dim(c, z, &in->type, last, inverse));
  }
  for (size_t d = rank - length.n; d < last; d++) {
    CALX_TRY(transform_dim(c, z, &in->type, d, inverse));
  }
  if (how != IRFFT) {
    store_result(out, z, (size_t)in->type.dims[last]);
    return NULL;
  }
  complete(in, (size_t)out->type.dims[last], z, w);
  CALX_TRY(transform_dim(c, w, &out->type, last, true));
  store_result(out, w, (size_t)out->type.dims[last]);
  return NULL;
}

calx_status *cpu_ref_fft(const cpu_ref_call *c)
{
  const direction how = (direction)cx_hlo_op_int(c->op, CX_HLO_A_FFT_TYPE);
  const size_t n = cpu_ref_count(c->in);
  const size_t n_out = cpu_ref_count(c->out);
  cpu_ref_buffer *z = NULL;
  cpu_ref_buffer *w = NULL;
  if (n_out == 0) return NULL;
  if (n == 0) {
    return cpu_ref_zero(c->out);
  }
  CALX_TRY(cpu_ref_scratch(c, n, sizeof(double complex), &z));
  calx_status *status =
      cpu_ref_scratch(c, how == IRFFT ? n_out : 0, sizeof(double complex), &w);
  if (status == NULL) {
    status = run(c, how, (double complex *)(void *)z->data,
                 (double complex *)(void *)w->data);
  }
  cpu_ref_buffer_release(c->machine, w);
  cpu_ref_buffer_release(c->machine, z);
  return status;
}
