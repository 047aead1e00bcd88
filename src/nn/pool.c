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

// ---- max_pool1d to 3d -------------------------------------------------------

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

// The kernel's size along each dimension: the last ones may have their own.
static const int64_t *kernel_of(int64_t size, int64_t own, int64_t last,
                                int64_t *out)
{
  out[0] = size;
  out[1] = own != 0 ? own : size;
  out[2] = last != 0 ? last : size;
  return out;
}

MAX_POOL(1, write_max(out, 1, &p->kernel, &p->o.stride, &p->o.padding,
                      &p->o.dilation, p->o.ceil_mode))
MAX_POOL(2, write_max(out, 2,
                      kernel_of(p->kernel, p->o.kernel_width, 0,
                                (int64_t[MOST]){ 0 }),
                      p->o.stride, p->o.padding, p->o.dilation, p->o.ceil_mode))
MAX_POOL(3, write_max(out, 3,
                      kernel_of(p->kernel, p->o.kernel_height,
                                p->o.kernel_width, (int64_t[MOST]){ 0 }),
                      p->o.stride, p->o.padding, p->o.dilation, p->o.ceil_mode))

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
