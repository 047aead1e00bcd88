// nn/pool: layers of max and average pools.
#include <string.h>

#include "nn/layer.h"
#include "ops/ops.h"

enum { MOST = 3 };

// An option list with what it stands for.
typedef struct sizes {
  int64_t values[MOST];
} sizes;

static sizes resolve(const int64_t *list, int n, const int64_t *or_else,
                     int64_t number)
{
  sizes s;
  for (int i = 0; i < n; i++) {
    s.values[i] = cx_ops_pair(list, i, or_else != NULL ? or_else[i] : number);
  }
  return s;
}

// "kernel_size=2, stride=2, padding=0".
static void write_sizes(cx_text *out, int n, const int64_t *kernel,
                        const int64_t *stride, const int64_t *padding,
                        bool tuples)
{
  struct {
    const char *name;
    sizes s;
  } parts[] = { { "kernel_size=", resolve(kernel, n, NULL, 0) },
                { ", stride=", resolve(stride, n, kernel, 0) },
                { ", padding=", resolve(padding, n, NULL, 0) } };
  parts[1].s = resolve(stride, n, parts[0].s.values, 0);
  for (size_t i = 0; i < 3; i++) {
    cx_text_append(out, parts[i].name);
    if (tuples)
      cx_nn_repr_tuple(out, parts[i].s.values, (size_t)n);
    else
      cx_nn_repr_sizes(out, parts[i].s.values, (size_t)n);
  }
}

static void write_max(cx_text *out, int n, const int64_t *kernel,
                      const int64_t *stride, const int64_t *padding,
                      const int64_t *dilation, bool ceil_mode)
{
  write_sizes(out, n, kernel, stride, padding, false);
  cx_text_append(out, ", dilation=");
  sizes d = resolve(dilation, n, NULL, 1);
  cx_nn_repr_sizes(out, d.values, (size_t)n);
  cx_text_format(out, ", ceil_mode=%s", cx_nn_repr_bool(ceil_mode));
}

static calx_status *check_max(const char *call, int64_t kernel,
                              bool wants_indices)
{
  if (wants_indices) {
    return cx_invalid(
        "%s: a layer has one result: .out_indices is the "
        "function's",
        call);
  }
  if (kernel > 0) return NULL;
  return cx_invalid("%s: a kernel of %lld, a positive number is wanted", call,
                    (long long)kernel);
}

// ---- max_pool1d and 2d ------------------------------------------------------

#define MAX_POOL(n, write)                                                   \
  typedef struct max_pool##n {                                               \
    calx_module *m;                                                          \
    int64_t kernel;                                                          \
    calx_max_pool##n##d_options o;                                           \
  } max_pool##n;                                                             \
  static calx_tensor *max_forward##n(void *self, calx_tensor *x)             \
  {                                                                          \
    const max_pool##n *p = self;                                             \
    return calx_max_pool##n##d_with(x, p->kernel, &p->o);                    \
  }                                                                          \
  static void max_repr##n(const void *state, cx_text *out)                   \
  {                                                                          \
    const max_pool##n *p = state;                                            \
    write;                                                                   \
  }                                                                          \
  calx_module *calx_nn_max_pool##n##d_with(                                  \
      calx_module *parent, const char *name, int64_t kernel_size,            \
      const calx_max_pool##n##d_options *options)                            \
  {                                                                          \
    static const cx_nn_layer layer = { "MaxPool" #n "d", "max_pool" #n "d",  \
                                       max_forward##n, max_repr##n, NULL };  \
    void *state;                                                             \
    calx_module *m =                                                         \
        cx_nn_make(&layer, parent, name, sizeof(max_pool##n), &state);       \
    max_pool##n *p = state;                                                  \
    if (p == NULL) return m;                                                 \
    p->kernel = kernel_size;                                                 \
    calx_status *status =                                                    \
        cx_options_take(layer.call, options, &p->o, sizeof p->o);            \
    if (status == NULL) {                                                    \
      status = check_max(layer.call, kernel_size, p->o.out_indices != NULL); \
    }                                                                        \
    p->o.size = sizeof p->o;                                                 \
    cx_nn_module_fail(m, status);                                            \
    return m;                                                                \
  }

static const int64_t *kernel_of(int64_t height, int64_t width, int64_t *out)
{
  out[0] = height;
  out[1] = width != 0 ? width : height;
  return out;
}

MAX_POOL(1, write_max(out, 1, &p->kernel, &p->o.stride, &p->o.padding,
                      &p->o.dilation, p->o.ceil_mode))
MAX_POOL(2,
         write_max(out, 2,
                   kernel_of(p->kernel, p->o.kernel_width, (int64_t[2]){ 0 }),
                   p->o.stride, p->o.padding, p->o.dilation, p->o.ceil_mode))

// ---- max_pool3d -------------------------------------------------------------

typedef struct max_pool3 {
  calx_module *m;
  int64_t kernel[MOST];
  calx_nn_max_pool3d_options o;
} max_pool3;

// A list's fields `at` and `at + 1` as max_pool2d takes them.
static void copy_pair(int64_t *to, const int64_t *list, int at, int64_t usual)
{
  for (int i = 0; i < 2; i++) {
    to[i] = cx_ops_pair(list, at + i, usual);
    if (to[i] == 0) to[i] = CALX_ZERO_INT;
  }
}

// The greatest element of a box is that of its planes' greatest elements, and
// the first of equals is the first of the first plane's: so one pool runs over
// (H, W), another over D.
static calx_tensor *pool_planes(const max_pool3 *p, calx_tensor *x,
                                int64_t *plane)
{
  calx_dims s = calx_tensor_shape(x);
  calx_max_pool2d_options o = { .size = sizeof o,
                                .ceil_mode = p->o.ceil_mode,
                                .kernel_width = p->kernel[2] };
  copy_pair(o.padding, p->o.padding, 1, 0);
  copy_pair(o.dilation, p->o.dilation, 1, 1);
  o.stride[0] = cx_ops_pair(p->o.stride, 1, p->kernel[1]);
  o.stride[1] = cx_ops_pair(p->o.stride, 2, p->kernel[2]);
  calx_tensor *y =
      calx_reshape(x, CALX_SHAPE(s.values[0] * s.values[1], s.values[2],
                                 s.values[3], s.values[4]));
  y = calx_max_pool2d_with(y, p->kernel[1], &o);
  plane[0] = calx_tensor_dim(y, -2);
  plane[1] = calx_tensor_dim(y, -1);
  return calx_reshape(y, CALX_SHAPE(s.values[0] * s.values[1], 1, s.values[2],
                                    plane[0] * plane[1]));
}

static calx_tensor *pool_depth(const max_pool3 *p, calx_tensor *y)
{
  calx_max_pool2d_options o = {
    .size = sizeof o,
    .stride = { cx_ops_pair(p->o.stride, 0, p->kernel[0]), 1 },
    .padding = { cx_ops_pair(p->o.padding, 0, 0), CALX_ZERO_INT },
    .dilation = { cx_ops_pair(p->o.dilation, 0, 1), 1 },
    .ceil_mode = p->o.ceil_mode,
    .kernel_width = 1
  };
  return calx_max_pool2d_with(y, p->kernel[0], &o);
}

static calx_tensor *max_forward3(void *self, calx_tensor *x)
{
  const max_pool3 *p = self;
  size_t rank = cx_nn_has_shape(x) ? calx_tensor_rank(x) : 0;
  if (!cx_nn_has_shape(x)) return cx_nn_unusable(p->m, x);
  if (rank != 4 && rank != 5) {
    return cx_nn_module_refuse(p->m, x, "(N, C, D, H, W)");
  }
  if (rank == 4) x = calx_unsqueeze(x, 0);
  calx_dims s = calx_tensor_shape(x);
  int64_t plane[2] = { 0 };
  calx_tensor *y = pool_depth(p, pool_planes(p, x, plane));
  if (cx_lazy_tensor_poisoned(y)) return y;
  y = calx_reshape(y, CALX_SHAPE(s.values[0], s.values[1],
                                 calx_tensor_dim(y, 2), plane[0], plane[1]));
  return rank == 4 ? calx_squeeze(y, 0) : y;
}

static void max_repr3(const void *state, cx_text *out)
{
  const max_pool3 *p = state;
  write_max(out, 3, p->kernel, p->o.stride, p->o.padding, p->o.dilation,
            p->o.ceil_mode);
}

static calx_status *check_max3(const max_pool3 *p, const char *call)
{
  for (int i = 0; i < MOST; i++) {
    CALX_TRY(check_max(call, p->kernel[i], false));
    int64_t padding = cx_ops_pair(p->o.padding, i, 0);
    if (cx_ops_pair(p->o.stride, i, 1) > 0 &&
        cx_ops_pair(p->o.dilation, i, 1) > 0 && padding >= 0 &&
        padding <= p->kernel[i] / 2 && p->kernel[i] <= INT32_MAX) {
      continue;
    }
    return cx_invalid(
        "%s: stride and dilation are positive, padding is at most half the "
        "kernel's %lld",
        call, (long long)p->kernel[i]);
  }
  return NULL;
}

calx_module *calx_nn_max_pool3d_with(calx_module *parent, const char *name,
                                     int64_t kernel_size,
                                     const calx_nn_max_pool3d_options *options)
{
  static const cx_nn_layer layer = { "MaxPool3d", "max_pool3d", max_forward3,
                                     max_repr3, NULL };
  void *state;
  calx_module *m = cx_nn_make(&layer, parent, name, sizeof(max_pool3), &state);
  max_pool3 *p = state;
  if (p == NULL) return m;
  calx_status *status =
      cx_options_take(layer.call, options, &p->o, sizeof p->o);
  p->kernel[0] = kernel_size;
  p->kernel[1] = p->o.kernel_height != 0 ? p->o.kernel_height : kernel_size;
  p->kernel[2] = p->o.kernel_width != 0 ? p->o.kernel_width : kernel_size;
  if (status == NULL) status = check_max3(p, layer.call);
  cx_nn_module_fail(m, status);
  return m;
}

// ---- avg_pool1d to 3d -------------------------------------------------------

#define AVG_POOL(n, list)                                                   \
  typedef struct avg_pool##n {                                              \
    calx_module *m;                                                         \
    calx_avg_pool##n##d_options o;                                          \
  } avg_pool##n;                                                            \
  static calx_tensor *avg_forward##n(void *self, calx_tensor *x)            \
  {                                                                         \
    return calx_avg_pool##n##d_with(x, &((const avg_pool##n *)self)->o);    \
  }                                                                         \
  static void avg_repr##n(const void *state, cx_text *out)                  \
  {                                                                         \
    const avg_pool##n *p = state;                                           \
    write_sizes(out, n, list p->o.kernel_size, list p->o.stride,            \
                list p->o.padding, (n) == 1);                               \
  }                                                                         \
  calx_module *calx_nn_avg_pool##n##d_with(                                 \
      calx_module *parent, const char *name,                                \
      const calx_avg_pool##n##d_options *options)                           \
  {                                                                         \
    static const cx_nn_layer layer = { "AvgPool" #n "d", "avg_pool" #n "d", \
                                       avg_forward##n, avg_repr##n, NULL }; \
    void *state;                                                            \
    calx_module *m =                                                        \
        cx_nn_make(&layer, parent, name, sizeof(avg_pool##n), &state);      \
    avg_pool##n *p = state;                                                 \
    if (p == NULL) return m;                                                \
    calx_status *status =                                                   \
        cx_options_take(layer.call, options, &p->o, sizeof p->o);           \
    if (status == NULL) {                                                   \
      status = check_max(layer.call, *(list p->o.kernel_size), false);      \
    }                                                                       \
    p->o.size = sizeof p->o;                                                \
    cx_nn_module_fail(m, status);                                           \
    return m;                                                               \
  }
AVG_POOL(1, &)
AVG_POOL(2, )
AVG_POOL(3, )
