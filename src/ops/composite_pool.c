// ops/composite_pool: average pools, adaptive pools and pools of one dimension,
// composed of public ops and window_sum.
//
// Adaptive pools treat one dimension after the other. Where
// the results are sums of x's elements with fixed weights, they are a product
// with a matrix of these weights, which is a constant of the program.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "ops/composite.h"
#include "ops/gather.h"
#include "ops/window_sum.h"

bool cx_ops_take_images(const char *op, int n, calx_tensor **x,
                        bool *out_single)
{
  if (cx_ops_unfit(op, x, 1, x)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(*x);
  *out_single = s->rank == (uint32_t)n + 1;
  if ((*out_single || s->rank == (uint32_t)n + 2) &&
      cx_dtype_is_float(s->dtype)) {
    if (*out_single) *x = calx_unsqueeze(*x, 0);
    return true;
  }
  *x = cx_ops_invalid(
      "%s: %s, floating images with %d spatial dimensions behind "
      "N and C, or C, are wanted",
      op, cx_graph_shape_str(s), n);
  return false;
}

calx_tensor *cx_ops_give_images(calx_tensor *y, bool single)
{
  return single && !cx_lazy_tensor_poisoned(y) ? calx_squeeze(y, 0) : y;
}

// ---- average pools ----------------------------------------------------------

typedef struct average {
  const char *op;
  int n;
  const int64_t *kernel, *stride, *padding;
  bool ceil_mode, no_count_include_pad;
  int64_t divisor_override;
} average;

// False: `why` says what is wrong. *out_beyond: a window ends past the padding.
static bool read_average(const average *p, const cx_graph_shape *x,
                         cx_ops_windows *w, bool *out_beyond, cx_text *why)
{
  memset(w, 0, sizeof *w);
  w->n = p->n;
  for (int i = 0; i < p->n; i++) {
    int64_t in = x->dims[2 + i], k = cx_ops_pair(p->kernel, i, 0);
    int64_t pad = cx_ops_pair(p->padding, i, 0);
    int64_t step = cx_ops_pair(p->stride, i, k);
    if (!cx_ops_in_range(why, "kernel_size", k, 1, INT32_MAX) ||
        !cx_ops_in_range(why, "stride", step, 1, INT32_MAX) ||
        !cx_ops_in_range(why, "padding, at most half the kernel,", pad, 0,
                         k / 2)) {
      return false;
    }
    w->window[i] = k;
    w->stride[i] = step;
    w->dilation[i] = 1;
    w->low[i] = w->high[i] = pad;
    int64_t room = in + 2 * pad - k;
    if (!p->ceil_mode || room < 0 || room % step == 0) continue;
    // The last window must begin inside the image or its left padding.
    int64_t last = room / step + 1;
    if (last * step >= in + pad) continue;
    w->high[i] += (last * step) - room;
    *out_beyond = true;
  }
  return true;
}

// How many elements each window has, without x's batch and channels. Elements
// past the padding never count.
static calx_tensor *window_counts(const average *p, const calx_tensor *x,
                                  cx_ops_windows w)
{
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  s.dims[0] = s.dims[1] = 1;
  calx_create_options o = { .size = sizeof o,
                            .dtype = s.dtype,
                            .device = calx_tensor_device(x) };
  calx_tensor *ones = calx_ones_with(cx_ops_dims_of(&s), &o);
  int64_t pad[2 * CX_OPS_MOST_SPATIAL];
  for (int i = 0; i < p->n; i++) {
    int64_t each = cx_ops_pair(p->padding, i, 0);
    int at = 2 * (p->n - 1 - i);
    pad[at] = pad[at + 1] = p->no_count_include_pad ? 0 : each;
    w.low[i] -= pad[at];
    w.high[i] -= pad[at];
  }
  calx_pad_options fill = { .size = sizeof fill, .value = 1 };
  ones = calx_pad_with(ones, calx_dims_of(pad, 2 * (size_t)p->n), &fill);
  return cx_ops_record(&cx_ops_window_sum, &ones, 1, &w);
}

static calx_tensor *average_pool(calx_tensor *x, const average *p)
{
  bool single, beyond = false;
  if (!cx_ops_take_images(p->op, p->n, &x, &single)) return x;
  cx_ops_windows w;
  cx_text why = { 0 };
  if (!read_average(p, cx_lazy_tensor_shape(x), &w, &beyond, &why)) {
    x = cx_ops_invalid("%s: %s", p->op, cx_text_str(&why));
    cx_text_free(&why);
    return x;
  }
  calx_tensor *sum = cx_ops_record(&cx_ops_window_sum, &x, 1, &w);
  double count = 1;
  for (int i = 0; i < p->n; i++) count *= (double)w.window[i];
  if (p->divisor_override != 0) count = (double)p->divisor_override;
  bool varies = p->divisor_override == 0 && (beyond || p->no_count_include_pad);
  calx_tensor *divisor = varies ? window_counts(p, x, w) : cx_ops_number(count);
  return cx_ops_give_images(calx_div(sum, divisor), single);
}

#define AVERAGE(name, n_spatial, address)                                   \
  calx_tensor *calx_##name##_with(calx_tensor *x,                           \
                                  const calx_##name##_options *o)           \
  {                                                                         \
    CX_OPS_COMPOSITE(#name);                                                \
    CX_OPS_TAKE_OPTIONS(name, o, x);                                        \
    return average_pool(                                                    \
        x, &(average){ #name, n_spatial, address o->kernel_size,            \
                       address o->stride, address o->padding, o->ceil_mode, \
                       o->no_count_include_pad, o->divisor_override });     \
  }
AVERAGE(avg_pool1d, 1, &)
AVERAGE(avg_pool2d, 2, )
AVERAGE(avg_pool3d, 3, )

calx_tensor *calx_max_pool1d_with(calx_tensor *x, int64_t kernel_size,
                                  const calx_max_pool1d_options *o)
{
  CX_OPS_COMPOSITE("max_pool1d");
  CX_OPS_TAKE_OPTIONS(max_pool1d, o, x);
  if (cx_ops_unfit("max_pool1d", &x, 1, &x)) return x;
  calx_max_pool2d_options wide = {
    .size = sizeof wide,
    .stride = { 1, o->stride == 0 ? kernel_size : o->stride },
    .padding = { 0, o->padding },
    .dilation = { 1, o->dilation == 0 ? 1 : o->dilation },
    .ceil_mode = o->ceil_mode,
    .out_indices = o->out_indices,
    .kernel_width = kernel_size
  };
  calx_tensor *y = calx_max_pool2d_with(calx_unsqueeze(x, -2), 1, &wide);
  if (cx_lazy_tensor_poisoned(y)) return y;
  if (o->out_indices != NULL)
    *o->out_indices = calx_squeeze(*o->out_indices, -2);
  return calx_squeeze(y, -2);
}

// ---- one dimension after the other ------------------------------------------

static calx_tensor *count_to(const calx_tensor *x, int64_t n, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = calx_tensor_device(x) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// The bins of an adaptive pool from n to `bins`: bin i has the elements from
// floor(i n / bins) to ceil((i + 1) n / bins). (n, bins), bool.
static calx_tensor *bin_mask(const calx_tensor *x, int64_t n, int64_t bins)
{
  calx_div_options down = { .size = sizeof down, .rounding = CALX_ROUND_FLOOR };
  calx_tensor *size = calx_scalar_int(n), *many = calx_scalar_int(bins);
  calx_tensor *i = count_to(x, bins, CALX_I64);
  calx_tensor *at = calx_unsqueeze(count_to(x, n, CALX_I64), 1);
  calx_tensor *start = calx_div_with(calx_mul(i, size), many, &down);
  calx_tensor *next = calx_mul(cx_ops_plus(i, calx_scalar_int(1)), size);
  next = cx_ops_plus(next, calx_scalar_int(bins - 1));
  calx_tensor *end = calx_div_with(next, many, &down);
  return calx_bitwise_and(calx_ge(at, start), calx_lt(at, end));
}

// x along dimension d, times a matrix (n, m).
static calx_tensor *times(calx_tensor *x, uint32_t d, calx_tensor *matrix)
{
  matrix = calx_to_dtype(matrix, cx_lazy_tensor_shape(x)->dtype);
  x = calx_matmul(calx_movedim(x, (int)d, -1), matrix);
  return calx_movedim(x, -1, (int)d);
}

static calx_tensor *average_bins(calx_tensor *x, uint32_t d, int64_t bins,
                                 calx_tensor **at)
{
  (void)at;
  int64_t n = cx_lazy_tensor_shape(x)->dims[d], dim = (int64_t)d + 1, rows = 0;
  if (bins == n) return x;
  if (n % bins == 0) {
    int64_t sizes[2] = { bins, n / bins };
    calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&dim, 1) };
    return calx_mean_with(calx_unflatten(x, (int)d, calx_dims_of(sizes, 2)),
                          &o);
  }
  calx_tensor *mask = calx_to_dtype(bin_mask(x, n, bins), CALX_F32);
  calx_reduce_options o = { .size = sizeof o, .dims = calx_dims_of(&rows, 1) };
  return times(x, d, calx_div(mask, calx_sum_with(mask, &o)));
}

// *at: where each element of x came from, or NULL.
static calx_tensor *greatest_of_bins(calx_tensor *x, uint32_t d, int64_t bins,
                                     calx_tensor **at)
{
  int64_t n = cx_lazy_tensor_shape(x)->dims[d];
  if (bins == n) return x;
  calx_tensor *in_bin = NULL;
  x = calx_unsqueeze(calx_movedim(x, (int)d, -1), -1);
  x = calx_where(bin_mask(x, n, bins), x, cx_ops_number(-(double)INFINITY));
  x = calx_max_dim(x, -2, false, at != NULL ? &in_bin : NULL);
  if (at != NULL) {
    calx_tensor *from = calx_movedim(*at, (int)d, -1);
    *at = calx_movedim(calx_take_along_dim(from, in_bin, -1), -1, (int)d);
  }
  return calx_movedim(x, -1, (int)d);
}

typedef calx_tensor *pool_fn(calx_tensor *x, uint32_t d, int64_t bins,
                             calx_tensor **at);

// The positions of x's elements in its spatial dimensions, of x's shape.
static calx_tensor *positions_in(const calx_tensor *x)
{
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  int64_t n = 1;
  for (uint32_t i = 2; i < s.rank; i++) n *= s.dims[i];
  calx_dims whole = cx_ops_dims_of(&s);
  s.dims[0] = s.dims[1] = 1;
  return calx_expand(cx_ops_reshape_to(count_to(x, n, CALX_I64), &s), whole);
}

// The last dimension first, so that the index of several equal maxima is that
// of the first in row-major order.
static calx_tensor *adaptive(const char *op, calx_tensor *x, calx_dims sizes,
                             pool_fn *pool, calx_tensor **out_indices)
{
  bool single;
  if (sizes.count < 1 || sizes.count > CX_OPS_MOST_SPATIAL) {
    return cx_ops_invalid(
        "%s: %zu sizes, one for each spatial dimension is "
        "wanted",
        op, sizes.count);
  }
  if (!cx_ops_take_images(op, (int)sizes.count, &x, &single)) return x;
  calx_tensor *at = out_indices != NULL ? positions_in(x) : NULL;
  for (uint32_t i = (uint32_t)sizes.count; i-- > 0;) {
    int64_t n = cx_lazy_tensor_shape(x)->dims[2 + i], bins = sizes.values[i];
    if (bins == -1) bins = n;
    if (bins < 1 || n < 1) {
      return cx_ops_invalid("%s: %lld elements into %lld", op, (long long)n,
                            (long long)bins);
    }
    x = pool(x, 2 + i, bins, at != NULL ? &at : NULL);
    if (cx_lazy_tensor_poisoned(x)) return x;
  }
  if (out_indices != NULL) *out_indices = cx_ops_give_images(at, single);
  return cx_ops_give_images(x, single);
}

calx_tensor *calx_adaptive_avg_pool(calx_tensor *x, calx_dims output_size)
{
  CX_OPS_COMPOSITE("adaptive_avg_pool");
  return adaptive("adaptive_avg_pool", x, output_size, average_bins, NULL);
}

calx_tensor *calx_adaptive_max_pool(calx_tensor *x, calx_dims output_size)
{
  CX_OPS_COMPOSITE("adaptive_max_pool");
  return adaptive("adaptive_max_pool", x, output_size, greatest_of_bins, NULL);
}

calx_tensor *calx_adaptive_max_pool_with_indices(calx_tensor *x,
                                                 calx_dims output_size,
                                                 calx_tensor **out_indices)
{
  CX_OPS_COMPOSITE("adaptive_max_pool");
  return adaptive("adaptive_max_pool", x, output_size, greatest_of_bins,
                  out_indices);
}

// ---- unfold -----------------------------------------------------------------

calx_tensor *calx_unfold_with(calx_tensor *x, calx_dims kernel_size,
                              const calx_unfold_options *o)
{
  enum { MOST = 1024 };
  CX_OPS_COMPOSITE("unfold");
  CX_OPS_TAKE_OPTIONS(unfold, o, x);
  bool single;
  if (!cx_ops_take_images("unfold", 2, &x, &single)) return x;
  int64_t k[2], stride[2], dilation[2], pad[4];
  for (size_t i = 0; i < 2; i++) {
    k[i] = kernel_size.count > i    ? kernel_size.values[i]
           : kernel_size.count != 0 ? kernel_size.values[0]
                                    : 0;
    stride[i] = cx_ops_pair(o->stride, (int)i, 1);
    dilation[i] = cx_ops_pair(o->dilation, (int)i, 1);
    pad[2 - 2 * i] = pad[3 - 2 * i] = cx_ops_pair(o->padding, (int)i, 0);
  }
  x = calx_pad_with(x, calx_dims_of(pad, 4), NULL);
  if (cx_lazy_tensor_poisoned(x)) return x;
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  int64_t out[2] = { 0, 0 };
  bool fits = k[0] >= 1 && k[1] >= 1 && k[0] <= MOST && k[1] <= MOST / k[0];
  for (int i = 0; i < 2 && fits; i++) {
    fits = stride[i] >= 1 && dilation[i] >= 1 && dilation[i] <= INT32_MAX;
    if (fits) out[i] = s.dims[2 + i] - dilation[i] * (k[i] - 1) - 1;
    fits = fits && out[i] >= 0;
    if (fits) out[i] = out[i] / stride[i] + 1;
  }
  if (!fits) {
    return cx_ops_invalid(
        "unfold: a kernel of %lld by %lld, at most %d elements "
        "and no larger than the padded image %s, is wanted",
        (long long)k[0], (long long)k[1], MOST, cx_graph_shape_str(&s));
  }
  calx_tensor *parts[MOST];
  size_t n = 0;
  for (int64_t u = 0; u < k[0]; u++) {
    for (int64_t v = 0; v < k[1]; v++) {
      int64_t row = u * dilation[0], column = v * dilation[1];
      calx_tensor *y =
          calx_slice(x, 2, row, row + (out[0] - 1) * stride[0] + 1, stride[0]);
      parts[n++] = calx_slice(y, 3, column,
                              column + (out[1] - 1) * stride[1] + 1, stride[1]);
    }
  }
  int64_t dims[3] = { s.dims[0], s.dims[1] * (int64_t)n, out[0] * out[1] };
  return cx_ops_give_images(
      calx_reshape(calx_stack(parts, n, 2), calx_dims_of(dims, 3)), single);
}
