// ops/composite_patch: patches and pooled elements put back at their positions,
// channels in another order, composed of public ops.
#include <string.h>

#include "base/dtype.h"
#include "ops/composite.h"

static calx_tensor *whole(int64_t value)
{
  return cx_ops_weak_as(cx_ops_number((double)value), CALX_I64, NULL);
}

// 0, step, … in n numbers, along dimension `dim` of four.
static calx_tensor *ramp(const calx_tensor *x, int64_t n, int64_t step, int dim)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(x) };
  int64_t dims[4] = { 1, 1, 1, 1 };
  dims[dim] = n;
  calx_tensor *t = calx_arange_with(0, (double)n, 1, &o);
  return calx_reshape(calx_mul(t, whole(step)), calx_dims_of(dims, 4));
}

// ---- fold -------------------------------------------------------------------

typedef struct folding {
  int64_t size[2], kernel[2], dilation[2], padding[2], stride[2];
  int64_t patches[2], padded[2];  // along each dimension
} folding;

static int64_t of_dims(calx_dims d, size_t i)
{
  return d.count > i ? d.values[i] : d.count == 1 ? d.values[0] : 0;
}

// False: the numbers do not fit x.
static bool read_folding(folding *f, calx_dims size, calx_dims kernel,
                         const calx_fold_options *o, const cx_graph_shape *x)
{
  if ((x->rank != 2 && x->rank != 3) || !cx_dtype_is_float(x->dtype) ||
      size.count == 0 || size.count > 2 || kernel.count == 0 ||
      kernel.count > 2) {
    return false;
  }
  for (int i = 0; i < 2; i++) {
    f->size[i] = of_dims(size, (size_t)i);
    f->kernel[i] = of_dims(kernel, (size_t)i);
    f->dilation[i] = cx_ops_pair(o->dilation, i, 1);
    f->padding[i] = cx_ops_pair(o->padding, i, 0);
    f->stride[i] = cx_ops_pair(o->stride, i, 1);
    const int64_t all[5] = { f->size[i], f->kernel[i], f->dilation[i],
                             f->padding[i], f->stride[i] };
    for (int k = 0; k < 5; k++) {
      if (all[k] < (k == 3 ? 0 : 1) || all[k] > INT32_MAX) return false;
    }
    f->padded[i] = f->size[i] + 2 * f->padding[i];
    int64_t rest = f->padded[i] - f->dilation[i] * (f->kernel[i] - 1) - 1;
    if (rest < 0) return false;
    f->patches[i] = rest / f->stride[i] + 1;
  }
  int64_t patch = f->kernel[0] * f->kernel[1];
  return x->dims[x->rank - 2] % patch == 0 &&
         x->dims[x->rank - 1] == f->patches[0] * f->patches[1];
}

// Where in the padded image each element of each patch is.
static calx_tensor *positions(const folding *f, const calx_tensor *x)
{
  calx_tensor *row = cx_ops_plus(ramp(x, f->kernel[0], f->dilation[0], 0),
                                 ramp(x, f->patches[0], f->stride[0], 2));
  calx_tensor *column = cx_ops_plus(ramp(x, f->kernel[1], f->dilation[1], 1),
                                    ramp(x, f->patches[1], f->stride[1], 3));
  calx_tensor *at = cx_ops_plus(calx_mul(row, whole(f->padded[1])), column);
  return calx_reshape(at, CALX_SHAPE(-1));
}

calx_tensor *calx_fold_with(calx_tensor *x, calx_dims output_size,
                            calx_dims kernel_size, const calx_fold_options *o)
{
  CX_OPS_COMPOSITE("fold");
  CX_OPS_TAKE_OPTIONS(fold, o, x);
  if (cx_ops_unfit("fold", &x, 1, &x)) return x;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  folding f;
  if (!read_folding(&f, output_size, kernel_size, o, s)) {
    return cx_ops_invalid(
        "fold: (N, C k k, patches) or (C k k, patches) is wanted, with one "
        "patch for each position of a kernel of k k elements in an image of "
        "output_size; got %s",
        cx_graph_shape_str(s));
  }
  bool single = s->rank == 2;
  int64_t batch = single ? 1 : s->dims[0], patch = f.kernel[0] * f.kernel[1];
  int64_t channels = s->dims[s->rank - 2] / patch;
  int64_t count = s->dims[s->rank - 1], area = f.padded[0] * f.padded[1];
  calx_create_options create = { .size = sizeof create,
                                 .dtype = s->dtype,
                                 .device = calx_tensor_device(x) };
  calx_tensor *y = calx_zeros_with(CALX_SHAPE(batch, channels, area), &create);
  y = calx_index_add_with(
      y, 2, positions(&f, x),
      calx_reshape(x, CALX_SHAPE(batch, channels, patch * count)), NULL);
  y = calx_reshape(y, CALX_SHAPE(batch, channels, f.padded[0], f.padded[1]));
  for (int i = 0; i < 2; i++) {
    y = calx_slice(y, 2 + i, f.padding[i], f.padding[i] + f.size[i], 1);
  }
  return single ? calx_squeeze(y, 0) : y;
}

// ---- max_unpool -------------------------------------------------------------

// NULL: the sizes of the result are in out.
static calx_tensor *unpooled(const char *op, size_t n, const cx_graph_shape *x,
                             calx_dims kernel, const calx_max_unpool_options *o,
                             int64_t *out)
{
  size_t skip = x->rank - n, given = o->output_size.count;
  bool fits = kernel.count == 1 || kernel.count == n;
  fits = fits && (given == 0 || given == n || given == x->rank);
  for (size_t i = 0; fits && i < n; i++) {
    int64_t k = of_dims(kernel, i), pad = of_dims(o->padding, i);
    int64_t step = o->stride.count != 0 ? of_dims(o->stride, i) : k;
    fits = k >= 1 && step >= 1 && pad >= 0 && k <= INT32_MAX &&
           step <= INT32_MAX && pad <= INT32_MAX;
    if (!fits) break;
    int64_t usual = (x->dims[skip + i] - 1) * step - 2 * pad + k;
    out[i] = usual;
    if (given != 0) out[i] = o->output_size.values[given - n + i];
    fits = out[i] > 0 && out[i] > usual - step - (given == 0) &&
           out[i] < usual + step;
  }
  if (fits) return NULL;
  return cx_ops_invalid(
      "%s: kernel_size, stride and padding of %zu dimensions, or of one for "
      "all, and an output_size within stride of the usual are wanted for %s",
      op, n, cx_graph_shape_str(x));
}

static calx_tensor *unpool(const char *op, size_t n, calx_tensor *x,
                           calx_tensor *indices, calx_dims kernel,
                           const calx_max_unpool_options *o)
{
  calx_tensor *in[2] = { x, indices }, *bad;
  if (cx_ops_unfit(op, in, 2, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x),
                       *t = cx_lazy_tensor_shape(indices);
  bool same = s->rank == t->rank && cx_dtype_is_int(t->dtype);
  for (uint32_t i = 0; same && i < s->rank; i++) {
    same = s->dims[i] == t->dims[i];
  }
  if (!same || (s->rank != n + 1 && s->rank != n + 2)) {
    return cx_ops_invalid(
        "%s: an operand with %zu spatial dimensions behind N "
        "and C, or C, and i64 indices of its sizes are "
        "wanted; got %s and %s",
        op, n, cx_graph_shape_str(s), cx_graph_shape_str(t));
  }
  int64_t out[3], count = 1, area = 1, rows = 1;
  if ((bad = unpooled(op, n, s, kernel, o, out)) != NULL) return bad;
  cx_graph_shape result = *s;
  for (size_t i = 0; i < s->rank - n; i++) rows *= s->dims[i];
  for (size_t i = 0; i < n; i++) {
    count *= s->dims[s->rank - n + i];
    area *= out[i];
    result.dims[s->rank - n + i] = out[i];
  }
  if (!cx_ops_check_indices(op, false, indices, area, 0)) {
    return cx_lazy_tensor_poison(cx_status_copy(calx_scope_error()));
  }
  calx_create_options create = { .size = sizeof create,
                                 .dtype = s->dtype,
                                 .device = calx_tensor_device(x) };
  calx_dims flat = CALX_SHAPE(rows, count);
  calx_tensor *y =
      calx_scatter(calx_zeros_with(CALX_SHAPE(rows, area), &create), 1,
                   calx_to_dtype(calx_reshape(indices, flat), CALX_I64),
                   calx_reshape(x, flat));
  return cx_ops_reshape_to(y, &result);
}

#define UNPOOL(n)                                                      \
  calx_tensor *calx_max_unpool##n##d_with(                             \
      calx_tensor *x, calx_tensor *indices, calx_dims kernel_size,     \
      const calx_max_unpool_options *o)                                \
  {                                                                    \
    CX_OPS_COMPOSITE("max_unpool" #n "d");                             \
    CX_OPS_TAKE_OPTIONS(max_unpool, o, x);                             \
    return unpool("max_unpool" #n "d", n, x, indices, kernel_size, o); \
  }
UNPOOL(1)
UNPOOL(2)
UNPOOL(3)

// ---- channels ---------------------------------------------------------------

calx_tensor *calx_pixel_unshuffle(calx_tensor *x, int64_t r)
{
  CX_OPS_COMPOSITE("pixel_unshuffle");
  if (cx_ops_unfit("pixel_unshuffle", &x, 1, &x)) return x;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  const int64_t *last = s.dims + s.rank;
  if (s.rank < 3 || r < 1 || last[-1] % r != 0 || last[-2] % r != 0) {
    return cx_ops_invalid(
        "pixel_unshuffle: (…, C, H, W) with H and W multiples "
        "of the factor %lld is wanted, got %s",
        (long long)r, cx_graph_shape_str(&s));
  }
  int64_t c = last[-3], h = last[-2] / r, w = last[-1] / r, before = 1;
  for (uint32_t i = 0; i + 3 < s.rank; i++) before *= s.dims[i];
  x = calx_reshape(x, CALX_SHAPE(before, c, h, r, w, r));
  x = calx_permute(x, CALX_DIMS(0, 1, 3, 5, 2, 4));
  cx_graph_shape to = s;
  to.dims[s.rank - 3] = c * r * r;
  to.dims[s.rank - 2] = h;
  to.dims[s.rank - 1] = w;
  return cx_ops_reshape_to(x, &to);
}

calx_tensor *calx_channel_shuffle(calx_tensor *x, int64_t groups)
{
  CX_OPS_COMPOSITE("channel_shuffle");
  if (cx_ops_unfit("channel_shuffle", &x, 1, &x)) return x;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  if (s.rank < 3 || groups < 1 || s.dims[1] % groups != 0) {
    return cx_ops_invalid(
        "channel_shuffle: (N, C, L, …) with C a multiple of "
        "the %lld groups is wanted, got %s",
        (long long)groups, cx_graph_shape_str(&s));
  }
  int64_t each = s.dims[1] / groups, rest = 1;
  for (uint32_t i = 2; i < s.rank; i++) rest *= s.dims[i];
  x = calx_reshape(x, CALX_SHAPE(s.dims[0], groups, each, rest));
  x = calx_transpose(x, 1, 2);
  return cx_ops_reshape_to(x, &s);
}

// ---- others -----------------------------------------------------------------

calx_tensor *calx_local_response_norm_with(
    calx_tensor *x, int64_t channels, const calx_local_response_norm_options *o)
{
  CX_OPS_COMPOSITE("local_response_norm");
  CX_OPS_TAKE_OPTIONS(local_response_norm, o, x);
  if (cx_ops_unfit("local_response_norm", &x, 1, &x)) return x;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank < 3 || channels < 1 || channels > INT32_MAX ||
      !cx_dtype_is_float(s->dtype)) {
    return cx_ops_invalid(
        "local_response_norm: floating (N, C, L, …) and a "
        "positive number of channels are wanted, got %s and "
        "%lld",
        cx_graph_shape_str(s), (long long)channels);
  }
  int64_t rest = 1;
  for (uint32_t i = 2; i < s->rank; i++) rest *= s->dims[i];
  calx_tensor *m =
      calx_reshape(calx_square(x), CALX_SHAPE(s->dims[0], 1, s->dims[1], rest));
  // The window begins channels / 2 before.
  int64_t before = channels / 2, after = (channels - 1) / 2;
  m = calx_pad_with(m, CALX_DIMS(0, 0, before, after), NULL);
  calx_avg_pool2d_options pool = { .size = sizeof pool,
                                   .kernel_size = { channels, 1 },
                                   .stride = { 1, 1 } };
  m = cx_ops_reshape_to(calx_avg_pool2d_with(m, &pool), s);
  m = calx_mul(m, cx_ops_given(o->alpha, 1e-4));
  m = cx_ops_plus(m, cx_ops_given(o->k, 1));
  return calx_div_with(x, calx_pow(m, cx_ops_given(o->beta, 0.75)), NULL);
}

// x W is one product, (n, in1) (in1, out in2).
calx_tensor *calx_bilinear(calx_tensor *x, calx_tensor *y, calx_tensor *weight,
                           calx_tensor *bias)
{
  CX_OPS_COMPOSITE("bilinear");
  calx_tensor *in[4] = { x, y, weight, bias }, *bad;
  if (cx_ops_unfit("bilinear", in, bias != NULL ? 4 : 3, &bad)) return bad;
  const cx_graph_shape a = *cx_lazy_tensor_shape(x),
                       b = *cx_lazy_tensor_shape(y),
                       w = *cx_lazy_tensor_shape(weight);
  bool fits = w.rank == 3 && a.rank != 0 && a.rank == b.rank &&
              a.dims[a.rank - 1] == w.dims[1] &&
              b.dims[b.rank - 1] == w.dims[2];
  for (uint32_t i = 0; fits && i + 1 < a.rank; i++) {
    fits = a.dims[i] == b.dims[i];
  }
  if (fits && bias != NULL) {
    const cx_graph_shape *c = cx_lazy_tensor_shape(bias);
    fits = c->rank == 1 && c->dims[0] == w.dims[0];
  }
  if (!fits) {
    return cx_ops_invalid(
        "bilinear: (…, in1), (…, in2), a weight (out, in1, "
        "in2) and a bias (out) are wanted, got %s, %s and %s",
        cx_graph_shape_str(&a), cx_graph_shape_str(&b), cx_graph_shape_str(&w));
  }
  int64_t rows = 1;
  for (uint32_t i = 0; i + 1 < a.rank; i++) rows *= a.dims[i];
  weight = calx_reshape(calx_permute(weight, CALX_DIMS(1, 0, 2)),
                        CALX_SHAPE(w.dims[1], w.dims[0] * w.dims[2]));
  x = calx_matmul(calx_reshape(x, CALX_SHAPE(rows, w.dims[1])), weight);
  x = calx_reshape(x, CALX_SHAPE(rows, w.dims[0], w.dims[2]));
  y = calx_reshape(y, CALX_SHAPE(rows, w.dims[2], 1));
  cx_graph_shape to = a;
  to.dims[a.rank - 1] = w.dims[0];
  x = cx_ops_reshape_to(calx_matmul(x, y), &to);
  return bias != NULL ? cx_ops_plus(x, bias) : x;
}
