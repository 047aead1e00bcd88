// ops/composite_fractional: max pools whose windows are at drawn positions. The
// windows' elements are gathered along one dimension after the other.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

typedef struct fractional {
  const char *op;
  int n;  // spatial dimensions
  int64_t in[3], kernel[3], out[3];
  calx_tensor *samples;     // (N, C, n)
  calx_tensor *covered[3];  // i64 (N, C, out kernel): what windows cover
} fractional;

// Number i of a list for all dimensions or for each; 0: there is none.
static int64_t of_list(const calx_dims *list, size_t i)
{
  return list->count == 0 ? 0 : list->values[list->count == 1 ? 0 : i];
}

// The windows' sizes and how many there are. False: *out is what the function
// returns.
static bool take_sizes(fractional *f, calx_tensor *x, const calx_dims *kernel,
                       const calx_fractional_max_pool_options *o,
                       calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  const size_t n = (size_t)f->n, k = kernel->count, m = o->output_size.count;
  const bool ratio = m == 0;
  if ((k != 1 && k != n) || (m != 0 && m != 1 && m != n) ||
      (ratio == (o->output_ratio[0] == 0))) {
    *out = cx_ops_invalid(
        "%s: kernel_size has %zu numbers, .output_size %zu: 1 or %zu are "
        "wanted, and .output_ratio in place of .output_size or not at all",
        f->op, k, m, n);
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    const double r =
        o->output_ratio[i] == 0 ? o->output_ratio[0] : o->output_ratio[i];
    f->in[i] = s->dims[2 + i];
    f->kernel[i] = of_list(kernel, i);
    f->out[i] = ratio && r > 0 && r < 1 ? (int64_t)((double)f->in[i] * r)
                                        : of_list(&o->output_size, i);
    if (f->kernel[i] > 0 && f->out[i] > 0 && f->kernel[i] <= f->in[i] &&
        f->out[i] - 1 <= f->in[i] - f->kernel[i]) {
      continue;
    }
    *out = cx_ops_invalid(
        "%s: %lld windows of %lld along size %lld of %s: 1 or more with out + "
        "kernel - 1 <= in are wanted, or a ratio in (0, 1)",
        f->op, (long long)f->out[i], (long long)f->kernel[i],
        (long long)f->in[i], cx_graph_shape_str(s));
    return false;
  }
  return true;
}

static bool take_samples(fractional *f, calx_tensor *x,
                         const calx_fractional_max_pool_options *o,
                         calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  cx_graph_shape want = { .dtype = s->dtype,
                          .rank = 3,
                          .dims = { s->dims[0], s->dims[1], f->n } };
  if (o->random_samples == NULL) {
    calx_create_options like = { .size = sizeof like,
                                 .dtype = s->dtype,
                                 .device = calx_tensor_device(x) };
    f->samples = calx_rand_with(cx_ops_dims_of(&want), &like);
    return true;
  }
  f->samples = o->random_samples;
  if (cx_ops_unfit(f->op, &f->samples, 1, out)) return false;
  const cx_graph_shape *got = cx_lazy_tensor_shape(f->samples);
  if (cx_graph_shape_equal(got, &want)) return true;
  *out = cx_ops_invalid("%s: .random_samples are %s, %s are wanted", f->op,
                        cx_graph_shape_str(got), cx_graph_shape_str(&want));
  return false;
}

// Where the windows along dimension i begin, i64 (N, C, out): the last one at
// the end, the others at floor((k + u) a) - floor(u a) with a = (in - kernel) /
// (out - 1), in x's type, so that the numbers are PyTorch's.
static calx_tensor *starts_of(const fractional *f, int i)
{
  const int column = f->n == 2 ? 1 - i : i;
  const int64_t most = f->in[i] - f->kernel[i], n = f->out[i];
  const cx_graph_shape *s = cx_lazy_tensor_shape(f->samples);
  calx_create_options whole = { .size = sizeof whole,
                                .dtype = CALX_I64,
                                .device = calx_tensor_device(f->samples) };
  calx_tensor *at = calx_arange_with(0, (double)n, 1, &whole);
  calx_tensor *u = calx_narrow(calx_detach(f->samples), 2, column, 1);
  const double a = n == 1 ? 0 : (double)most / (double)(n - 1);
  calx_tensor *step = cx_ops_number(a);
  calx_tensor *begin =
      calx_floor(calx_mul(cx_ops_plus(calx_to_dtype(at, s->dtype), u), step));
  begin = cx_ops_minus(begin, calx_floor(calx_mul(u, step)));
  begin = calx_where(calx_eq(at, calx_scalar_int(n - 1)),
                     cx_ops_number((double)most), begin);
  // Rounding, and samples outside of [0, 1), must not leave the image.
  begin = calx_clamp(begin, cx_ops_number(0), cx_ops_number((double)most));
  return calx_to_dtype(begin, CALX_I64);
}

// (N, C, out kernel)
static calx_tensor *indices_of(const fractional *f, int i)
{
  calx_create_options whole = { .size = sizeof whole,
                                .dtype = CALX_I64,
                                .device = calx_tensor_device(f->samples) };
  calx_tensor *inside = calx_arange_with(0, (double)f->kernel[i], 1, &whole);
  calx_tensor *at = cx_ops_plus(calx_unsqueeze(starts_of(f, i), 3), inside);
  const cx_graph_shape *s = cx_lazy_tensor_shape(f->samples);
  return calx_reshape(
      at, CALX_SHAPE(s->dims[0], s->dims[1], f->out[i] * f->kernel[i]));
}

// The indices along dimension i beside all others.
static calx_tensor *spread(const fractional *f, int i, int rank)
{
  calx_tensor *at = f->covered[i];
  for (int d = 2; d < rank; d++) {
    if (d != i + 2) at = calx_unsqueeze(at, d);
  }
  return at;
}

// (N, C, o1 k1, o2 k2, …) as (N, C, o1, o2, …, k1 k2 …).
static calx_tensor *windows(const fractional *f, calx_tensor *x)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  int64_t apart[8] = { s.dims[0], s.dims[1] }, order[8] = { 0, 1 };
  int64_t joined[6] = { s.dims[0], s.dims[1] }, size = 1;
  const int n = f->n;
  for (int i = 0; i < n; i++) {
    apart[2 + 2 * i] = joined[2 + i] = f->out[i];
    apart[3 + 2 * i] = f->kernel[i];
    order[2 + i] = 2 + 2 * i;
    order[2 + n + i] = 3 + 2 * i;
    size *= f->kernel[i];
  }
  joined[2 + n] = size;
  x = calx_reshape(x, calx_dims_of(apart, 2 + 2 * (size_t)n));
  x = calx_permute(x, calx_dims_of(order, 2 + 2 * (size_t)n));
  return calx_reshape(x, calx_dims_of(joined, 3 + (size_t)n));
}

// The greatest of each window, and where in the image it is.
static calx_tensor *greatest(const fractional *f, calx_tensor *x,
                             calx_tensor **indices)
{
  const int rank = 2 + f->n;
  calx_tensor *at = NULL, *where;
  for (int i = 0; i < f->n; i++) {
    cx_graph_shape s = *cx_lazy_tensor_shape(x);
    s.dims[2 + i] = f->out[i] * f->kernel[i];
    calx_tensor *here = spread(f, i, rank);
    x = calx_gather(x, 2 + i, calx_expand(here, cx_ops_dims_of(&s)));
    at = at == NULL
             ? here
             : cx_ops_plus(calx_mul(at, calx_scalar_int(f->in[i])), here);
    if (cx_lazy_tensor_poisoned(x)) return *indices = x;
  }
  calx_tensor *y = calx_max_dim(windows(f, x), -1, false, &where);
  at = windows(f, calx_expand(at, calx_tensor_shape(x)));
  *indices = calx_squeeze(calx_gather(at, -1, calx_unsqueeze(where, -1)), -1);
  return y;
}

static calx_tensor *fractional_pool(const char *op, int n, calx_tensor *x,
                                    const calx_dims *kernel,
                                    const calx_fractional_max_pool_options *o)
{
  bool single;
  calx_tensor *bad, *indices;
  fractional f = { .op = op, .n = n };
  if (!cx_ops_take_images(op, n, &x, &single)) return x;
  if (!take_sizes(&f, x, kernel, o, &bad) || !take_samples(&f, x, o, &bad)) {
    return bad;
  }
  for (int i = 0; i < n; i++) f.covered[i] = indices_of(&f, i);
  calx_tensor *y = greatest(&f, x, &indices);
  if (o->out_indices != NULL) {
    *o->out_indices = cx_ops_give_images(indices, single);
  }
  return cx_ops_give_images(y, single);
}

#define FRACTIONAL(n)                                                        \
  calx_tensor *calx_fractional_max_pool##n##d_with(                          \
      calx_tensor *x, calx_dims kernel_size,                                 \
      const calx_fractional_max_pool_options *o)                             \
  {                                                                          \
    CX_OPS_COMPOSITE("fractional_max_pool" #n "d");                          \
    calx_tensor *bad;                                                        \
    CX_OPS_TAKE_OPTIONS(fractional_max_pool, o, bad);                        \
    return fractional_pool("fractional_max_pool" #n "d", n, x, &kernel_size, \
                           o);                                               \
  }
FRACTIONAL(2)
FRACTIONAL(3)
