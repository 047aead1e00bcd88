// ops/composite_pool3d: the max pool of three dimensions, and power-average
// pools.
#include <math.h>

#include "ops/composite.h"

// ---- max_pool3d -------------------------------------------------------------

typedef struct pool_box {
  int64_t kernel[3];
  const calx_max_pool3d_options *o;
} pool_box;

// A list's fields `at` and `at + 1` as max_pool2d takes them.
static void copy_pair(int64_t *to, const int64_t *list, int at, int64_t usual)
{
  for (int i = 0; i < 2; i++) {
    to[i] = cx_ops_pair(list, at + i, usual);
    if (to[i] == 0) to[i] = CALX_ZERO_INT;
  }
}

// The greatest element of a box is the greatest of its planes' greatest
// elements. Of several equal ones the first plane's first wins in both. So one
// pool runs over (H, W) and another over D. (N, C, D, H, W) becomes (N C, 1, D,
// h w); so do the indices into H W.
static calx_tensor *pool_planes(const pool_box *p, calx_tensor *x,
                                int64_t plane[2], calx_tensor **indices)
{
  calx_dims s = calx_tensor_shape(x);
  calx_max_pool2d_options o = { .size = sizeof o,
                                .ceil_mode = p->o->ceil_mode,
                                .out_indices = indices,
                                .kernel_width = p->kernel[2] };
  copy_pair(o.padding, p->o->padding, 1, 0);
  copy_pair(o.dilation, p->o->dilation, 1, 1);
  o.stride[0] = cx_ops_pair(p->o->stride, 1, p->kernel[1]);
  o.stride[1] = cx_ops_pair(p->o->stride, 2, p->kernel[2]);
  int64_t images = s.values[0] * s.values[1];
  x = calx_reshape(x,
                   CALX_SHAPE(images, s.values[2], s.values[3], s.values[4]));
  x = calx_max_pool2d_with(x, p->kernel[1], &o);
  if (cx_lazy_tensor_poisoned(x)) return x;
  plane[0] = calx_tensor_dim(x, -2);
  plane[1] = calx_tensor_dim(x, -1);
  calx_dims rows = CALX_SHAPE(images, 1, s.values[2], plane[0] * plane[1]);
  if (indices != NULL) *indices = calx_reshape(*indices, rows);
  return calx_reshape(x, rows);
}

static calx_tensor *pool_depth(const pool_box *p, calx_tensor *x,
                               calx_tensor **indices)
{
  calx_max_pool2d_options o = {
    .size = sizeof o,
    .stride = { cx_ops_pair(p->o->stride, 0, p->kernel[0]), 1 },
    .padding = { cx_ops_pair(p->o->padding, 0, 0), CALX_ZERO_INT },
    .dilation = { cx_ops_pair(p->o->dilation, 0, 1), 1 },
    .ceil_mode = p->o->ceil_mode,
    .out_indices = indices,
    .kernel_width = 1
  };
  return calx_max_pool2d_with(x, p->kernel[0], &o);
}

// Why the sizes do not fit; NULL: they do.
static calx_tensor *misfit(const pool_box *p)
{
  for (int i = 0; i < 3; i++) {
    int64_t padding = cx_ops_pair(p->o->padding, i, 0), k = p->kernel[i];
    if (k > 0 && k <= INT32_MAX && cx_ops_pair(p->o->stride, i, 1) > 0 &&
        cx_ops_pair(p->o->dilation, i, 1) > 0 && padding >= 0 &&
        padding <= k / 2) {
      continue;
    }
    return cx_ops_invalid(
        "max_pool3d: a kernel of %lld: kernel, stride and dilation are "
        "positive, padding is at most half the kernel",
        (long long)k);
  }
  return NULL;
}

// The indices into D H W of those into D and, at each of them, into H W.
static calx_tensor *box_indices(calx_tensor *depth, calx_tensor *plane,
                                int64_t width, int64_t plane_size)
{
  calx_div_options down = { .size = sizeof down, .rounding = CALX_ROUND_FLOOR };
  calx_tensor *d = calx_div_with(depth, calx_scalar_int(width), &down);
  return cx_ops_plus(calx_take_along_dim(plane, d, 2),
                     calx_mul(d, calx_scalar_int(plane_size)));
}

calx_tensor *calx_max_pool3d_with(calx_tensor *x, int64_t kernel_size,
                                  const calx_max_pool3d_options *o)
{
  CX_OPS_COMPOSITE("max_pool3d");
  CX_OPS_TAKE_OPTIONS(max_pool3d, o, x);
  pool_box p = { { kernel_size, kernel_size, kernel_size }, o };
  if (o->kernel_height != 0) p.kernel[1] = o->kernel_height;
  if (o->kernel_width != 0) p.kernel[2] = o->kernel_width;
  bool single;
  calx_tensor **indices = o->out_indices;
  if (!cx_ops_take_images("max_pool3d", 3, &x, &single)) return x;
  calx_tensor *bad = misfit(&p);
  if (bad != NULL) return bad;
  calx_dims s = calx_tensor_shape(x);
  int64_t plane[2] = { 0 };
  calx_tensor *in_plane = NULL, *in_depth = NULL;
  x = pool_planes(&p, x, plane, indices != NULL ? &in_plane : NULL);
  if (!cx_lazy_tensor_poisoned(x)) {
    x = pool_depth(&p, x, indices != NULL ? &in_depth : NULL);
  }
  if (cx_lazy_tensor_poisoned(x)) return x;
  calx_dims out = CALX_SHAPE(s.values[0], s.values[1], calx_tensor_dim(x, 2),
                             plane[0], plane[1]);
  if (indices != NULL) {
    calx_tensor *all = box_indices(in_depth, in_plane, plane[0] * plane[1],
                                   s.values[3] * s.values[4]);
    *indices = cx_ops_give_images(calx_reshape(all, out), single);
  }
  return cx_ops_give_images(calx_reshape(x, out), single);
}

// ---- lp_pool ----------------------------------------------------------------

#define AVERAGE(n, kernel, step)                                               \
  calx_avg_pool##n##d_with(x, &(calx_avg_pool##n##d_options){                  \
                                  .size = sizeof(calx_avg_pool##n##d_options), \
                                  .kernel_size = kernel,                       \
                                  .stride = step,                              \
                                  .ceil_mode = o->ceil_mode })
#define LIST(...) \
  {               \
    __VA_ARGS__   \
  }

static calx_tensor *average(calx_tensor *x, int n,
                            const calx_lp_pool_options *o)
{
  const int64_t *k = o->kernel_size, *s = o->stride;
  if (n == 1) return AVERAGE(1, k[0], s[0]);
  if (n == 2) return AVERAGE(2, LIST(k[0], k[1]), LIST(s[0], s[1]));
  return AVERAGE(3, LIST(k[0], k[1], k[2]), LIST(s[0], s[1], s[2]));
}

// sign(a) relu(|a|), which PyTorch puts under the root, is a.
static calx_tensor *lp_pool(const char *op, int n, calx_tensor *x, double p,
                            const calx_lp_pool_options *o)
{
  double count = 1;
  if (cx_ops_unfit(op, &x, 1, &x)) return x;
  if (!(p > 0) || isinf(p)) {
    return cx_ops_invalid(
        "%s: a norm of type %g, a positive, finite number is wanted", op, p);
  }
  for (int i = 0; i < n; i++)
    count *= (double)cx_ops_pair(o->kernel_size, i, 1);
  calx_tensor *mean = average(calx_pow(x, calx_scalar(p)), n, o);
  return calx_pow(calx_mul(mean, calx_scalar(count)), calx_scalar(1 / p));
}

#define LP_POOL(n)                                                       \
  calx_tensor *calx_lp_pool##n##d_with(calx_tensor *x, double norm_type, \
                                       const calx_lp_pool_options *o)    \
  {                                                                      \
    CX_OPS_COMPOSITE("lp_pool" #n "d");                                  \
    CX_OPS_TAKE_OPTIONS(lp_pool, o, x);                                  \
    return lp_pool("lp_pool" #n "d", n, x, norm_type, o);                \
  }
LP_POOL(1)
LP_POOL(2)
LP_POOL(3)
