// ops/composite_fft: torch.fft's transforms, composed of ops/fft.c's over the
// last dimensions: the dimensions are moved there, and more than three go in
// turns.
#include <math.h>

#include "base/dtype.h"
#include "calx/fft.h"
#include "ops/composite.h"
#include "ops/fft.h"

typedef struct plan {
  const char *op;
  cx_hlo_fft_kind kind;
  calx_fft_norm norm;
  uint32_t n;
  uint32_t dims[CALX_MAX_RANK];
  // Numbers that are transformed; of IRFFT's last dimension those of the
  // result.
  int64_t sizes[CALX_MAX_RANK];
} plan;

static bool is_inverse(const plan *p)
{
  return p->kind == CX_HLO_IFFT || p->kind == CX_HLO_IRFFT;
}

// ---- operands ---------------------------------------------------------------

// Makes x what the transform takes. False: *out is what the function returns.
static bool prepare(const plan *p, calx_tensor **x, calx_tensor **out)
{
  const calx_dtype dtype = cx_lazy_tensor_shape(*x)->dtype;
  const char *shape = cx_graph_shape_str(cx_lazy_tensor_shape(*x));
  if (dtype == CALX_BF16 || dtype == CALX_F16) {
    *out = cx_ops_invalid(
        "%s: %s has no transform; convert it with calx_to_dtype(x, CALX_F32)",
        p->op, shape);
    return false;
  }
  if (p->kind == CX_HLO_RFFT && cx_dtype_is_complex(dtype)) {
    *out = cx_ops_invalid(
        "%s: %s is complex, real numbers are wanted; use calx_fft", p->op,
        shape);
    return false;
  }
  calx_dtype to = cx_dtype_is_inexact(dtype) ? dtype : CALX_F32;
  if (p->kind != CX_HLO_RFFT) to = cx_dtype_complex_of(to);
  *x = calx_to_dtype(*x, to);
  return true;
}

// Fills in the dimensions and their lengths; a length of -1 is the operand's.
static bool plan_dims(plan *p, calx_tensor *x, const int64_t *dims,
                      const int64_t *sizes, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  for (uint32_t i = 0; i < p->n; i++) {
    if (s->rank == 0 || !cx_ops_dim(dims[i], s->rank, &p->dims[i])) {
      *out = cx_ops_no_dim(p->op, "dim", dims[i], s->rank, s);
      return false;
    }
    for (uint32_t k = 0; k < i; k++) {
      if (p->dims[k] != p->dims[i]) continue;
      *out = cx_ops_invalid("%s: dim %lld of %s is given twice", p->op,
                            (long long)dims[i], cx_graph_shape_str(s));
      return false;
    }
    const int64_t have = s->dims[p->dims[i]];
    const bool halved = p->kind == CX_HLO_IRFFT && i + 1 == p->n;
    p->sizes[i] = sizes[i] != -1 ? sizes[i] : halved ? 2 * (have - 1) : have;
    if (p->sizes[i] >= 1 && p->sizes[i] <= INT32_MAX) continue;
    *out = cx_ops_invalid(
        "%s: %lld numbers along dim %u of %s, 1 to 2^31 - 1 are possible",
        p->op, (long long)p->sizes[i], p->dims[i], cx_graph_shape_str(s));
    return false;
  }
  return true;
}

// ---- transforms -------------------------------------------------------------

// order: the dimensions [first, first + n) of the plan behind all others.
static void order_of(const plan *p, uint32_t first, uint32_t n, uint32_t rank,
                     int64_t *order, int64_t *back)
{
  uint32_t at = 0;
  for (uint32_t d = 0; d < rank; d++) {
    bool taken = false;
    for (uint32_t i = first; i < first + n; i++) taken |= p->dims[i] == d;
    if (!taken) order[at++] = d;
  }
  for (uint32_t i = first; i < first + n; i++) order[at++] = p->dims[i];
  for (uint32_t d = 0; d < rank; d++) back[order[d]] = d;
}

// Crops the last n dimensions or adds zeros.
static calx_tensor *resized(const plan *p, uint32_t first, uint32_t n,
                            bool halved, calx_tensor *x)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t by[2 * CX_OPS_FFT_DIMS] = { 0 };
  bool any = false;
  for (uint32_t i = 0; i < n; i++) {
    const bool half = halved && i + 1 == n;
    const int64_t size = p->sizes[first + i];
    const int64_t want = half ? size / 2 + 1 : size;
    by[2 * (n - 1 - i) + 1] = want - s->dims[s->rank - n + i];
    any |= by[2 * (n - 1 - i) + 1] != 0;
  }
  return any ? calx_pad_with(x, calx_dims_of(by, 2 * n), NULL) : x;
}

// The plan's dimensions [first, first + n).
static calx_tensor *turn(const plan *p, cx_hlo_fft_kind kind, uint32_t first,
                         uint32_t n, calx_tensor *x)
{
  if (cx_lazy_tensor_poisoned(x)) return x;
  const uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  int64_t order[CALX_MAX_RANK], back[CALX_MAX_RANK];
  order_of(p, first, n, rank, order, back);
  x = calx_permute(x, calx_dims_of(order, rank));
  x = resized(p, first, n, kind == CX_HLO_IRFFT, x);
  if (cx_lazy_tensor_poisoned(x)) return x;
  x = cx_ops_transform(kind, x, n, p->sizes[first + n - 1]);
  return calx_permute(x, calx_dims_of(back, rank));
}

static double factor_of(const plan *p)
{
  double n = 1;
  for (uint32_t i = 0; i < p->n; i++) n *= (double)p->sizes[i];
  const bool inverse = is_inverse(p);
  switch (p->norm) {
    case CALX_FFT_ORTHO: return inverse ? sqrt(n) : 1 / sqrt(n);
    case CALX_FFT_FORWARD: return inverse ? n : 1 / n;
    default: return 1;
  }
}

// The real transform is the first one of the last dimensions; its inverse comes
// last.
static calx_tensor *transform(const plan *p, calx_tensor *x)
{
  const uint32_t most = CX_OPS_FFT_DIMS;
  const uint32_t last = p->n < most ? p->n : most;
  const bool real_last = p->kind == CX_HLO_IRFFT;
  const cx_hlo_fft_kind others = is_inverse(p) ? CX_HLO_IFFT : CX_HLO_FFT;
  if (p->n == 0) return x;
  if (!real_last) x = turn(p, p->kind, p->n - last, last, x);
  for (uint32_t left = p->n - last; left > 0;) {
    const uint32_t n = left < most ? left : most;
    left -= n;
    x = turn(p, others, left, n, x);
  }
  if (real_last) x = turn(p, p->kind, p->n - last, last, x);
  const double factor = factor_of(p);
  return factor == 1 ? x : calx_mul(x, cx_ops_number(factor));
}

static bool norm_fits(const plan *p, calx_tensor **out)
{
  if (p->norm >= CALX_FFT_BACKWARD && p->norm <= CALX_FFT_FORWARD) return true;
  *out =
      cx_ops_invalid("%s: .norm is %d, no calx_fft_norm", p->op, (int)p->norm);
  return false;
}

// ---- one dimension ----------------------------------------------------------

static calx_tensor *one(const char *op, cx_hlo_fft_kind kind, calx_tensor *x,
                        const calx_fft_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  plan p = { .op = op, .kind = kind, .norm = o->norm, .n = 1 };
  const int64_t dim = o->dim == 0 ? -1 : o->dim == INT32_MIN ? 0 : o->dim;
  const int64_t size = o->n == 0 ? -1 : o->n == -1 ? 0 : o->n;
  if (!norm_fits(&p, &bad) || !prepare(&p, &x, &bad) ||
      !plan_dims(&p, x, &dim, &size, &bad)) {
    return bad;
  }
  return transform(&p, x);
}

#define ONE(name, kind)                                                      \
  calx_tensor *calx_##name##_with(calx_tensor *x, const calx_fft_options *o) \
  {                                                                          \
    CX_OPS_COMPOSITE_COMPLEX(#name);                                         \
    calx_tensor *bad;                                                        \
    CX_OPS_TAKE_OPTIONS(fft, o, bad);                                        \
    return one(#name, kind, x, o);                                           \
  }
ONE(fft, CX_HLO_FFT)
ONE(ifft, CX_HLO_IFFT)
ONE(rfft, CX_HLO_RFFT)
ONE(irfft, CX_HLO_IRFFT)

// The factor of the other direction.
static calx_fft_norm swapped(calx_fft_norm norm)
{
  return norm == CALX_FFT_BACKWARD  ? CALX_FFT_FORWARD
         : norm == CALX_FFT_FORWARD ? CALX_FFT_BACKWARD
                                    : norm;
}

calx_tensor *calx_hfft_with(calx_tensor *x, const calx_fft_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("hfft");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(fft, o, bad);
  fft_taken.norm = swapped(o->norm);
  return one("hfft", CX_HLO_IRFFT, calx_conj(x), &fft_taken);
}

calx_tensor *calx_ihfft_with(calx_tensor *x, const calx_fft_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("ihfft");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(fft, o, bad);
  fft_taken.norm = swapped(o->norm);
  return calx_conj(one("ihfft", CX_HLO_RFFT, x, &fft_taken));
}

// ---- several dimensions -----------------------------------------------------

// How many dimensions, which, and how long; `few`: without a choice the last
// `few` of them.
static bool several_dims(plan *p, calx_tensor *x, const calx_fftn_options *o,
                         uint32_t few, calx_tensor **out)
{
  const uint32_t rank = cx_lazy_tensor_shape(x)->rank;
  int64_t dims[CALX_MAX_RANK], sizes[CALX_MAX_RANK];
  const size_t s = o->s.count, d = o->dims.count;
  size_t n = d != 0 ? d : s != 0 && few == 0 ? s : few != 0 ? few : rank;
  if (n > CALX_MAX_RANK || (s != 0 && s != n)) {
    *out = cx_ops_invalid(
        "%s: %zu lengths and %zu dimensions are given: as many are wanted, %d "
        "at most",
        p->op, s, d != 0 ? d : few, CALX_MAX_RANK);
    return false;
  }
  if (d == 0 && n > rank) {
    *out =
        cx_ops_invalid("%s: %s has %u dimensions, %zu are transformed", p->op,
                       cx_graph_shape_str(cx_lazy_tensor_shape(x)), rank, n);
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    dims[i] = d != 0 ? o->dims.values[i] : (int64_t)(rank - n + i);
    sizes[i] = s != 0 ? o->s.values[i] : -1;
  }
  p->n = (uint32_t)n;
  return plan_dims(p, x, dims, sizes, out);
}

static calx_tensor *several(const char *op, cx_hlo_fft_kind kind,
                            calx_tensor *x, uint32_t few,
                            const calx_fftn_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  plan p = { .op = op, .kind = kind, .norm = o->norm };
  if (!norm_fits(&p, &bad) || !prepare(&p, &x, &bad) ||
      !several_dims(&p, x, o, few, &bad)) {
    return bad;
  }
  if (p.n == 0 && (kind == CX_HLO_RFFT || kind == CX_HLO_IRFFT)) {
    return cx_ops_invalid("%s: %s has no dimension to transform", op,
                          cx_graph_shape_str(cx_lazy_tensor_shape(x)));
  }
  return transform(&p, x);
}

#define SEVERAL(name, kind, few)                                              \
  calx_tensor *calx_##name##_with(calx_tensor *x, const calx_fftn_options *o) \
  {                                                                           \
    CX_OPS_COMPOSITE_COMPLEX(#name);                                          \
    calx_tensor *bad;                                                         \
    CX_OPS_TAKE_OPTIONS(fftn, o, bad);                                        \
    return several(#name, kind, x, few, o);                                   \
  }
SEVERAL(fftn, CX_HLO_FFT, 0)
SEVERAL(ifftn, CX_HLO_IFFT, 0)
SEVERAL(rfftn, CX_HLO_RFFT, 0)
SEVERAL(irfftn, CX_HLO_IRFFT, 0)
SEVERAL(fft2, CX_HLO_FFT, 2)
SEVERAL(ifft2, CX_HLO_IFFT, 2)
SEVERAL(rfft2, CX_HLO_RFFT, 2)
SEVERAL(irfft2, CX_HLO_IRFFT, 2)

// The inverse transform of the conjugate is the conjugate of the other one.
#define HERMITIAN(name, kind, in, out, few)                                   \
  calx_tensor *calx_##name##_with(calx_tensor *x, const calx_fftn_options *o) \
  {                                                                           \
    CX_OPS_COMPOSITE_COMPLEX(#name);                                          \
    calx_tensor *bad;                                                         \
    CX_OPS_TAKE_OPTIONS(fftn, o, bad);                                        \
    fftn_taken.norm = swapped(o->norm);                                       \
    return out(several(#name, kind, in(x), few, o));                          \
  }
HERMITIAN(hfftn, CX_HLO_IRFFT, calx_conj, , 0)
HERMITIAN(ihfftn, CX_HLO_RFFT, , calx_conj, 0)
HERMITIAN(hfft2, CX_HLO_IRFFT, calx_conj, , 2)
HERMITIAN(ihfft2, CX_HLO_RFFT, , calx_conj, 2)

// ---- frequencies ------------------------------------------------------------

// k / (n d) of k from `low` to `high`.
static calx_tensor *over(int64_t low, int64_t high, int64_t n,
                         const calx_fftfreq_options *o)
{
  calx_create_options whole = { .size = sizeof whole,
                                .dtype = CALX_I64,
                                .device = o->device };
  calx_dtype dtype = o->dtype == CALX_DTYPE_DEFAULT ? CALX_F32 : o->dtype;
  calx_tensor *k = calx_arange_with((double)low, (double)high, 1, &whole);
  const double d = cx_is_default(o->d) ? 1 : o->d;
  return calx_mul(calx_to_dtype(k, dtype), calx_scalar(1 / ((double)n * d)));
}

static bool freq_fits(const char *op, int64_t n, const calx_fftfreq_options *o,
                      calx_tensor **out)
{
  const bool real =
      o->dtype == CALX_DTYPE_DEFAULT || cx_dtype_is_float(o->dtype);
  if (n >= 1 && n < INT64_C(1) << 52 && real && o->d == o->d) return true;
  *out = cx_ops_invalid(
      "%s: n is %lld, .d %g, .dtype %d: n >= 1, a number and a floating type "
      "are wanted",
      op, (long long)n, o->d, (int)o->dtype);
  return false;
}

calx_tensor *calx_fftfreq_with(int64_t n, const calx_fftfreq_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("fftfreq");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(fftfreq, o, bad);
  if (!freq_fits("fftfreq", n, o, &bad)) return bad;
  // From n/2 on the frequencies are negative.
  calx_tensor *halves[2] = { over(0, (n + 1) / 2, n, o),
                             over(-(n / 2), 0, n, o) };
  return calx_cat(halves, 2, 0);
}

calx_tensor *calx_rfftfreq_with(int64_t n, const calx_fftfreq_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("rfftfreq");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(fftfreq, o, bad);
  if (!freq_fits("rfftfreq", n, o, &bad)) return bad;
  return over(0, n / 2 + 1, n, o);
}

static calx_tensor *shifted(const char *op, calx_tensor *x, bool up,
                            const calx_fftshift_options *o)
{
  calx_tensor *bad;
  if (cx_ops_unfit(op, &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_dims dims = o->dims, by;
  if (dims.count == 0) {
    dims.count = s->rank;
    for (uint32_t i = 0; i < s->rank; i++) dims.values[i] = i;
  }
  if (dims.count > CALX_MAX_RANK) {
    return cx_ops_invalid("%s: %zu dimensions, at most %d are possible", op,
                          dims.count, CALX_MAX_RANK);
  }
  by.count = dims.count;
  for (size_t i = 0; i < dims.count; i++) {
    uint32_t d;
    if (s->rank == 0 || !cx_ops_dim(dims.values[i], s->rank, &d)) {
      return cx_ops_no_dim(op, "dim", dims.values[i], s->rank, s);
    }
    by.values[i] = (s->dims[d] + !up) / 2;
  }
  return dims.count == 0 ? x : calx_roll(x, by, dims);
}

calx_tensor *calx_fftshift_with(calx_tensor *x, const calx_fftshift_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("fftshift");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(fftshift, o, bad);
  return shifted("fftshift", x, true, o);
}

calx_tensor *calx_ifftshift_with(calx_tensor *x, const calx_fftshift_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("ifftshift");
  calx_tensor *bad;
  CX_OPS_TAKE_OPTIONS(fftshift, o, bad);
  return shifted("ifftshift", x, false, o);
}
