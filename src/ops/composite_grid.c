// ops/composite_grid: images at coordinates, composed of public ops.
//
// A coordinate becomes a position between elements; the result is the sum over
// the elements around it, each read from the image's elements in one dimension
// (a gather) and times its weight.
#include <math.h>

#include "base/dtype.h"
#include "calx/creation.h"
#include "ops/composite.h"

enum { MOST_DIMS = 3, MOST_TAPS = 4 };

static calx_tensor *number(double value)
{
  return cx_ops_number(value);
}

// ---- affine_grid ------------------------------------------------------------

// The coordinates of n elements along one of the dimensions.
static calx_tensor *coordinates(const calx_tensor *theta, int64_t n, bool align)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = calx_tensor_dtype(theta),
                            .device = calx_tensor_device(theta) };
  double edge = align ? 1 : ((double)n - 1) / (double)n;
  if (n == 1) edge = 0;
  return calx_linspace_with(-edge, edge, n, &o);
}

calx_tensor *calx_affine_grid_with(calx_tensor *theta, calx_dims sizes,
                                   const calx_affine_grid_options *o)
{
  CX_OPS_COMPOSITE("affine_grid");
  CX_OPS_TAKE_OPTIONS(affine_grid, o, theta);
  if (cx_ops_unfit("affine_grid", &theta, 1, &theta)) return theta;
  const cx_graph_shape *s = cx_lazy_tensor_shape(theta);
  size_t n = sizes.count >= 2 ? sizes.count - 2 : 0;
  bool fits = (n == 2 || n == 3) && s->rank == 3 && s->dims[1] == (int64_t)n &&
              s->dims[2] == (int64_t)n + 1 && s->dims[0] == sizes.values[0] &&
              cx_dtype_is_float(s->dtype);
  int64_t count = 1, dims[5];
  for (size_t i = 0; fits && i < n; i++) {
    fits = sizes.values[2 + i] >= 1 && sizes.values[2 + i] <= INT32_MAX / count;
    count *= sizes.values[2 + i];
  }
  if (!fits) {
    return cx_ops_invalid(
        "affine_grid: floating theta (N, 2, 3) and sizes (N, C, H, W), or (N, "
        "3, 4) and (N, C, D, H, W), are wanted; got %s and %zu sizes",
        cx_graph_shape_str(s), sizes.count);
  }
  calx_tensor *base[MOST_DIMS + 1];
  for (size_t i = 0; i < n; i++) {  // x belongs to the last dimension
    calx_tensor *c =
        coordinates(theta, sizes.values[1 + n - i], o->align_corners);
    int64_t one[MOST_DIMS] = { 1, 1, 1 };
    one[n - 1 - i] = -1;
    c = calx_expand(calx_reshape(c, calx_dims_of(one, n)),
                    calx_dims_of(sizes.values + 2, n));
    base[i] = calx_reshape(c, CALX_SHAPE(count));
  }
  calx_create_options create = { .size = sizeof create,
                                 .dtype = s->dtype,
                                 .device = calx_tensor_device(theta) };
  base[n] = calx_ones_with(CALX_SHAPE(count), &create);
  calx_tensor *y =
      calx_matmul(calx_stack(base, n + 1, 1), calx_transpose(theta, 1, 2));
  dims[0] = sizes.values[0];
  for (size_t i = 0; i < n; i++) dims[1 + i] = sizes.values[2 + i];
  dims[1 + n] = (int64_t)n;
  return calx_reshape(y, calx_dims_of(dims, n + 2));
}

// ---- positions --------------------------------------------------------------

typedef struct sampling {
  int n;                       // spatial dimensions
  int64_t size[MOST_DIMS];     // of the image: H, W or D, H, W
  calx_tensor *x;              // (N, C, elements)
  calx_tensor *at[MOST_DIMS];  // (N, Q): positions along each dimension
  calx_grid_padding padding;
  bool align;
} sampling;

// A position reflected at the image's edges until it is inside.
static calx_tensor *reflected(calx_tensor *p, int64_t size, bool align)
{
  double low = align ? 0 : -0.5;
  double span = align ? (double)size - 1 : (double)size;
  if (span <= 0) return calx_mul(p, number(0));
  p = calx_abs(cx_ops_minus(p, number(low)));
  calx_tensor *turns = calx_floor(calx_div_with(p, number(span), NULL));
  calx_tensor *extra = calx_fmod(p, number(span));
  calx_tensor *odd = calx_ne(calx_fmod(turns, number(2)), number(0));
  extra = calx_where(odd, cx_ops_minus(number(span), extra), extra);
  return cx_ops_plus(extra, number(low));
}

// What a position outside of the image stands for.
static calx_tensor *padded(const sampling *s, calx_tensor *p, int dim)
{
  if (s->padding == CALX_GRID_ZEROS) return p;
  if (s->padding == CALX_GRID_REFLECTION) {
    p = reflected(p, s->size[dim], s->align);
  }
  return calx_clamp(p, number(0), number((double)s->size[dim] - 1));
}

// Coordinate -1 is the image's first edge, 1 its last; with align_corners the
// centres of the elements there.
static calx_tensor *position_of(const sampling *s, calx_tensor *coordinate,
                                int dim)
{
  double size = (double)s->size[dim];
  calx_tensor *p = cx_ops_plus(coordinate, number(1));
  if (s->align) return calx_mul(p, number((size - 1) / 2));
  p = cx_ops_minus(calx_mul(p, number(size)), number(1));
  return calx_mul(p, number(0.5));
}

// ---- elements ---------------------------------------------------------------

// The elements (N, C, Q) at whole positions, 0 outside of the image.
static calx_tensor *elements_at(const sampling *s, calx_tensor *const *whole)
{
  calx_tensor *index = NULL, *inside = NULL;
  for (int i = 0; i < s->n; i++) {
    double last = (double)s->size[i] - 1;
    calx_tensor *in =
        calx_mul(calx_ge(whole[i], number(0)), calx_le(whole[i], number(last)));
    calx_tensor *p = calx_clamp(whole[i], number(0), number(last));
    // A NaN is no position; it becomes one outside.
    p = calx_to_dtype(calx_where(in, p, number(0)), CALX_I64);
    calx_tensor *size =
        cx_ops_weak_as(number((double)s->size[i]), CALX_I64, NULL);
    index = index == NULL ? p : cx_ops_plus(calx_mul(index, size), p);
    inside = inside == NULL ? in : calx_mul(inside, in);
  }
  const cx_graph_shape *x = cx_lazy_tensor_shape(s->x);
  int64_t samples = calx_tensor_dim(index, 1);
  index = calx_expand(calx_unsqueeze(index, 1),
                      CALX_SHAPE(x->dims[0], x->dims[1], samples));
  calx_tensor *y = calx_gather(s->x, 2, index);
  return calx_where(calx_unsqueeze(inside, 1), y, number(0));
}

// Along one dimension: the elements around a position, and their weights.
typedef struct taps {
  int n;
  calx_tensor *whole[MOST_TAPS], *weight[MOST_TAPS];
} taps;

// The cubic convolution of R. Keys (1981) with a = -0.75, at distance d of an
// element from the position.
static calx_tensor *cubic(calx_tensor *d, bool near)
{
  static const double a = -0.75;
  calx_tensor *y;
  if (near) {  // ((a + 2) d - (a + 3)) d d + 1
    y = cx_ops_minus(calx_mul(d, number(a + 2)), number(a + 3));
    y = calx_mul(calx_mul(y, d), d);
    return cx_ops_plus(y, number(1));
  }
  // ((a d - 5 a) d + 8 a) d - 4 a
  y = cx_ops_minus(calx_mul(d, number(a)), number(5 * a));
  y = cx_ops_plus(calx_mul(y, d), number(8 * a));
  return cx_ops_minus(calx_mul(y, d), number(4 * a));
}

static taps taps_of(const sampling *s, int dim, calx_grid_sample_mode mode)
{
  calx_tensor *p = s->at[dim];
  taps t = { .n = 1 };
  if (mode == CALX_GRID_NEAREST) {
    t.whole[0] = calx_round(padded(s, p, dim));
    return t;
  }
  if (mode == CALX_GRID_BILINEAR) p = padded(s, p, dim);
  calx_tensor *low = calx_floor(p);
  calx_tensor *part = cx_ops_minus(p, low);
  calx_tensor *rest = cx_ops_minus(number(1), part);
  if (mode == CALX_GRID_BILINEAR) {
    t.n = 2;
    t.whole[0] = low;
    t.whole[1] = cx_ops_plus(low, number(1));
    t.weight[0] = rest;
    t.weight[1] = part;
    return t;
  }
  t.n = 4;
  for (int i = 0; i < 4; i++) {
    t.whole[i] = padded(s, cx_ops_plus(low, number(i - 1)), dim);
  }
  t.weight[0] = cubic(cx_ops_plus(part, number(1)), false);
  t.weight[1] = cubic(part, true);
  t.weight[2] = cubic(rest, true);
  t.weight[3] = cubic(cx_ops_plus(rest, number(1)), false);
  return t;
}

// The sum over all combinations of the dimensions' taps.
static calx_tensor *combine(const sampling *s, calx_grid_sample_mode mode)
{
  taps t[MOST_DIMS];
  int count = 1;
  for (int i = 0; i < s->n; i++) {
    t[i] = taps_of(s, i, mode);
    count *= t[i].n;
  }
  calx_tensor *sum = NULL;
  for (int k = 0; k < count; k++) {
    calx_tensor *whole[MOST_DIMS], *weight = NULL;
    for (int i = 0, rest = k; i < s->n; rest /= t[i].n, i++) {
      int which = rest % t[i].n;
      calx_tensor *w = t[i].weight[which];
      whole[i] = t[i].whole[which];
      if (w != NULL) weight = weight == NULL ? w : calx_mul(weight, w);
    }
    calx_tensor *y = elements_at(s, whole);
    if (weight != NULL) y = calx_mul(y, calx_unsqueeze(weight, 1));
    sum = sum == NULL ? y : cx_ops_plus(sum, y);
  }
  return sum;
}

// ---- entry ------------------------------------------------------------------

static bool fits(const cx_graph_shape *x, const cx_graph_shape *grid,
                 const calx_grid_sample_options *o)
{
  if ((x->rank != 4 && x->rank != 5) || grid->rank != x->rank ||
      grid->dims[grid->rank - 1] != (int64_t)x->rank - 2 ||
      grid->dims[0] != x->dims[0] || !cx_dtype_is_float(x->dtype) ||
      grid->dtype != x->dtype) {
    return false;
  }
  for (uint32_t i = 2; i < x->rank; i++) {
    if (x->dims[i] < 1) return false;
  }
  return (unsigned)o->mode <= CALX_GRID_BICUBIC &&
         (unsigned)o->padding_mode <= CALX_GRID_REFLECTION &&
         (o->mode != CALX_GRID_BICUBIC || x->rank == 4);
}

calx_tensor *calx_grid_sample_with(calx_tensor *x, calx_tensor *grid,
                                   const calx_grid_sample_options *o)
{
  CX_OPS_COMPOSITE("grid_sample");
  CX_OPS_TAKE_OPTIONS(grid_sample, o, x);
  calx_tensor *in[2] = { x, grid }, *bad;
  if (cx_ops_unfit("grid_sample", in, 2, &bad)) return bad;
  const cx_graph_shape a = *cx_lazy_tensor_shape(x),
                       g = *cx_lazy_tensor_shape(grid);
  if (!fits(&a, &g, o)) {
    return cx_ops_invalid(
        "grid_sample: floating (N, C, H, W) with elements and a grid (N, H', "
        "W', 2) of its type are wanted, or (N, C, D, H, W) and (N, D', H', W', "
        "3) without CALX_GRID_BICUBIC; got %s and %s",
        cx_graph_shape_str(&a), cx_graph_shape_str(&g));
  }
  sampling s = { .n = (int)a.rank - 2,
                 .padding = o->padding_mode,
                 .align = o->align_corners };
  int64_t elements = 1, samples = 1;
  for (int i = 0; i < s.n; i++) {
    s.size[i] = a.dims[2 + i];
    elements *= a.dims[2 + i];
    samples *= g.dims[1 + i];
  }
  s.x = calx_reshape(x, CALX_SHAPE(a.dims[0], a.dims[1], elements));
  grid = calx_reshape(grid, CALX_SHAPE(g.dims[0], samples, s.n));
  for (int i = 0; i < s.n; i++) {
    s.at[i] = position_of(&s, calx_select(grid, 2, s.n - 1 - i), i);
  }
  cx_graph_shape to = a;
  for (int i = 0; i < s.n; i++) to.dims[2 + i] = g.dims[1 + i];
  return cx_ops_reshape_to(combine(&s, o->mode), &to);
}
