// ops/composite_resize: interpolation, one dimension after the other. Where the
// results are sums of x's elements with fixed weights, they are a product with
// a matrix of these weights, which is a constant of the program.
#include <math.h>

#include "ops/composite.h"
#include "ops/conv.h"
#include "ops/gather.h"

// How one dimension of n elements gets m.
typedef struct resized {
  uint32_t dim;
  int64_t n, m;
  double step;  // from one result to the next one, in elements of x
  const calx_interpolate_options *o;
} resized;

static calx_tensor *count_to(const calx_tensor *x, int64_t n, calx_dtype dtype)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = calx_tensor_device(x) };
  return calx_arange_with(0, (double)n, 1, &o);
}

// x along dimension d, times a matrix (n, m).
static calx_tensor *times(calx_tensor *x, uint32_t d, calx_tensor *matrix)
{
  matrix = calx_to_dtype(matrix, cx_lazy_tensor_shape(x)->dtype);
  x = calx_matmul(calx_movedim(x, (int)d, -1), matrix);
  return calx_movedim(x, -1, (int)d);
}

// Where each of the results lies among x's elements.
static calx_tensor *source_positions(const calx_tensor *x, const resized *r)
{
  calx_tensor *i = count_to(x, r->m, CALX_F32);
  if (r->o->align_corners) {
    double step = r->m > 1 ? (double)(r->n - 1) / (double)(r->m - 1) : 0;
    return calx_mul(i, cx_ops_number(step));
  }
  calx_tensor *middle = cx_ops_plus(i, cx_ops_number(0.5));
  middle = calx_mul(middle, cx_ops_number(r->step));
  return cx_ops_minus(middle, cx_ops_number(0.5));
}

// Weight 1 - |distance| of the two nearest elements. (n, m)
static calx_tensor *linear_weights(const calx_tensor *x, const resized *r)
{
  calx_tensor *from = source_positions(x, r);
  from = calx_clamp(from, cx_ops_number(0), cx_ops_number((double)r->n - 1));
  calx_tensor *at = calx_unsqueeze(count_to(x, r->n, CALX_F32), 1);
  calx_tensor *distance = calx_abs(cx_ops_minus(from, at));
  return calx_relu(cx_ops_minus(cx_ops_number(1), distance));
}

// The cubic convolution kernel with a = -0.75 (R. Keys, 1981), of distances d.
static calx_tensor *cubic(calx_tensor *d)
{
  const double a = -0.75;
  d = calx_abs(d);
  // ((a + 2) d - (a + 3)) d d + 1 up to 1, ((d - 5) d + 8) d a - 4 a up to 2
  calx_tensor *near =
      cx_ops_minus(calx_mul(d, cx_ops_number(a + 2)), cx_ops_number(a + 3));
  near = cx_ops_plus(calx_mul(calx_mul(near, d), d), cx_ops_number(1));
  calx_tensor *rest = calx_mul(cx_ops_minus(d, cx_ops_number(5)), d);
  rest = calx_mul(cx_ops_plus(rest, cx_ops_number(8)), d);
  rest = calx_mul(cx_ops_minus(rest, cx_ops_number(4)), cx_ops_number(a));
  calx_tensor *far =
      calx_where(calx_lt(d, cx_ops_number(2)), rest, cx_ops_number(0));
  return calx_where(calx_le(d, cx_ops_number(1)), near, far);
}

// Weights of the four nearest elements; those past an edge are the edge's.
static calx_tensor *cubic_weights(const calx_tensor *x, const resized *r)
{
  calx_tensor *from = source_positions(x, r);
  calx_tensor *first = calx_floor(from), *sum = NULL;
  calx_tensor *at = calx_unsqueeze(count_to(x, r->n, CALX_F32), 1);
  calx_tensor *last = cx_ops_number((double)r->n - 1);
  for (int k = -1; k <= 2; k++) {
    calx_tensor *tap = cx_ops_plus(first, cx_ops_number(k));
    calx_tensor *weight = cubic(cx_ops_minus(from, tap));
    tap = calx_clamp(tap, cx_ops_number(0), last);
    calx_tensor *part = calx_where(calx_eq(at, tap), weight, cx_ops_number(0));
    sum = sum == NULL ? part : cx_ops_plus(sum, part);
  }
  return sum;
}

// By sizes the integers are exact; a factor's reciprocal is rounded to f32, as
// PyTorch's is.
static calx_tensor *nearest(calx_tensor *x, const resized *r)
{
  bool exact = r->o->mode == CALX_INTERPOLATE_NEAREST_EXACT;
  calx_tensor *i;
  if (!exact && r->step == (double)r->n / (double)r->m) {
    calx_div_options down = { .size = sizeof down,
                              .rounding = CALX_ROUND_FLOOR };
    i = calx_mul(count_to(x, r->m, CALX_I64), calx_scalar_int(r->n));
    i = calx_div_with(i, calx_scalar_int(r->m), &down);
  } else {
    i = count_to(x, r->m, CALX_F32);
    if (exact) i = cx_ops_plus(i, cx_ops_number(0.5));
    i = calx_floor(calx_mul(i, cx_ops_number(r->step)));
    i = calx_clamp(i, cx_ops_number(0), cx_ops_number((double)r->n - 1));
    i = calx_to_dtype(i, CALX_I64);
  }
  return cx_ops_take(x, i, r->dim);
}

static calx_tensor *resize(calx_tensor *x, const resized *r)
{
  switch (r->o->mode) {
    case CALX_INTERPOLATE_LINEAR: return times(x, r->dim, linear_weights(x, r));
    case CALX_INTERPOLATE_BICUBIC: return times(x, r->dim, cubic_weights(x, r));
    default: return nearest(x, r);
  }
}

// ---- options ----------------------------------------------------------------

static double factor_of(const calx_interpolate_options *o, size_t i)
{
  double factor = o->scale_factor[i];
  return factor == 0 ? o->scale_factor[0] : factor;
}

// The sizes that factors make; NULL, or what the function returns.
static calx_tensor *scale(const calx_tensor *x,
                          const calx_interpolate_options *o, calx_dims *sizes)
{
  size_t rank = cx_lazy_tensor_shape(x)->rank;
  if (sizes->count != 0 || rank < 3 || rank > 2 + CX_OPS_MOST_SPATIAL) {
    return cx_ops_invalid(
        "interpolate: %s, %zu sizes and .scale_factor: one of both is wanted, "
        "and with factors x is (N, C, …) of 1 to 3 spatial dimensions",
        cx_graph_shape_str(cx_lazy_tensor_shape(x)), sizes->count);
  }
  sizes->count = rank - 2;
  for (size_t i = 0; i < sizes->count; i++) {
    double factor = factor_of(o, i);
    double size = (double)cx_lazy_tensor_shape(x)->dims[2 + i] * factor;
    if (!(factor > 0) || !(size < 1e15)) {
      return cx_ops_invalid(
          "interpolate: a factor of %g for %s, a positive number is wanted",
          factor, cx_graph_shape_str(cx_lazy_tensor_shape(x)));
    }
    sizes->values[i] = (int64_t)floor(size);
  }
  return NULL;
}

// NULL, or what the function returns.
static calx_tensor *unusable(const calx_interpolate_options *o,
                             const calx_dims *sizes)
{
  if (sizes->count < 1 || sizes->count > CX_OPS_MOST_SPATIAL ||
      (unsigned)o->mode > CALX_INTERPOLATE_NEAREST_EXACT) {
    return cx_ops_invalid(
        "interpolate: %zu sizes and mode %d: a size for each "
        "spatial dimension, or .scale_factor, and one of calx_interpolation "
        "are wanted",
        sizes->count, (int)o->mode);
  }
  if (o->align_corners && o->mode != CALX_INTERPOLATE_LINEAR &&
      o->mode != CALX_INTERPOLATE_BICUBIC) {
    return cx_ops_invalid(
        "interpolate: align_corners option can only be set with the "
        "interpolating modes: CALX_INTERPOLATE_LINEAR and "
        "CALX_INTERPOLATE_BICUBIC");
  }
  return NULL;
}

// What PyTorch copies; with a factor beside 1, other modes move the elements.
static bool is_copy(const resized *r, size_t spatial)
{
  if (r->n != r->m) return false;
  return r->step == 1 || r->o->align_corners ||
         r->o->mode == CALX_INTERPOLATE_LINEAR ||
         (r->o->mode == CALX_INTERPOLATE_NEAREST && spatial == 2);
}

calx_tensor *calx_interpolate_with(calx_tensor *x, calx_dims sizes,
                                   const calx_interpolate_options *o)
{
  CX_OPS_COMPOSITE("interpolate");
  CX_OPS_TAKE_OPTIONS(interpolate, o, x);
  calx_tensor *refused;
  bool single, scaled = o->scale_factor[0] != 0;
  if (cx_ops_unfit("interpolate", &x, 1, &refused)) return refused;
  refused = scaled ? scale(x, o, &sizes) : NULL;
  if (refused == NULL) refused = unusable(o, &sizes);
  if (refused != NULL) return refused;
  if (o->mode == CALX_INTERPOLATE_AREA) return calx_adaptive_avg_pool(x, sizes);
  if (!cx_ops_take_images("interpolate", (int)sizes.count, &x, &single))
    return x;
  for (uint32_t i = 0; i < sizes.count; i++) {
    resized r = { .dim = 2 + i, .m = sizes.values[i], .o = o };
    r.n = cx_lazy_tensor_shape(x)->dims[2 + i];
    if (r.n < 1 || r.m < 1) {
      return cx_ops_invalid("interpolate: from %lld elements to %lld",
                            (long long)r.n, (long long)r.m);
    }
    r.step = scaled && !o->recompute_scale_factor ? 1 / factor_of(o, i)
                                                  : (double)r.n / (double)r.m;
    if (is_copy(&r, sizes.count)) continue;
    x = resize(x, &r);
    if (cx_lazy_tensor_poisoned(x)) return x;
  }
  return cx_ops_give_images(x, single);
}
