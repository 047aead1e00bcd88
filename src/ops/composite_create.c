// ops/composite_create: tensors of numbers in order and of random numbers,
// composed of public ops.
#include "calx/creation.h"

#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

static calx_dtype dtype_or(const calx_create_options *o, calx_dtype d)
{
  return o != NULL && o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : d;
}

// What a part of the composition is made with.
static calx_create_options part(const calx_create_options *o, calx_dtype dtype)
{
  return (calx_create_options){ .size = sizeof(calx_create_options),
                                .dtype = dtype,
                                .device = o != NULL ? o->device : NULL };
}

// The result as the options want it: of their type, and a leaf.
static calx_tensor *finish(calx_tensor *t, const calx_create_options *o,
                           calx_dtype dtype)
{
  t = calx_to_dtype(t, dtype_or(o, dtype));
  if (o == NULL || !o->requires_grad || cx_lazy_tensor_poisoned(t)) return t;
  if (!cx_dtype_is_inexact(cx_lazy_tensor_shape(t)->dtype)) {
    return cx_ops_invalid(
        "requires_grad: only floating and complex types have gradients, not "
        "%s; give a floating .dtype",
        cx_graph_shape_str(cx_lazy_tensor_shape(t)));
  }
  t = cx_lazy_tensor_detached(t);
  if (!cx_lazy_tensor_poisoned(t)) cx_lazy_tensor_set_requires_grad(t, true);
  return t;
}

// ---- numbers in order -------------------------------------------------------

// In f64 where f32 would lose digits of the result.
static calx_dtype wide_for(calx_dtype dtype)
{
  return cx_dtype_is_float(dtype) && dtype != CALX_F64 ? CALX_F32 : CALX_F64;
}

// False: *out is what the function returns.
static bool steps_fit(const char *op, double start, double end, int64_t steps,
                      const calx_create_options *o, calx_tensor **out)
{
  calx_dims dims = calx_dims_of(&steps, 1);
  calx_dtype dtype = dtype_or(o, CALX_F32);
  if (!cx_ops_good_shape(op, dims, dtype, o, out)) return false;
  calx_status *status = cx_ops_check_number(op, start, dtype);
  if (status == NULL) status = cx_ops_check_number(op, end, dtype);
  if (status == NULL) return true;
  *out = cx_lazy_tensor_poison(status);
  return false;
}

// From each end up to the middle, so that both are exact.
static calx_tensor *spaced(double start, double end, int64_t steps,
                           const calx_create_options *o)
{
  calx_create_options wide = part(o, wide_for(dtype_or(o, CALX_F32)));
  calx_tensor *at = calx_arange_with(0, (double)steps, 1, &wide);
  if (steps < 2) return cx_ops_plus(at, calx_scalar(start));
  calx_tensor *step = calx_scalar((end - start) / (double)(steps - 1));
  calx_tensor *left = cx_ops_minus(calx_scalar((double)(steps - 1)), at);
  return calx_where(calx_lt(at, calx_scalar((double)(steps / 2))),
                    cx_ops_plus(calx_mul(at, step), calx_scalar(start)),
                    cx_ops_minus(calx_scalar(end), calx_mul(left, step)));
}

calx_tensor *calx_linspace_with(double start, double end, int64_t steps,
                                const calx_create_options *o)
{
  CX_OPS_COMPOSITE("linspace");
  calx_tensor *bad;
  if (!steps_fit("linspace", start, end, steps, o, &bad)) return bad;
  return finish(spaced(start, end, steps, o), o, CALX_F32);
}

calx_tensor *calx_logspace_with(double start, double end, int64_t steps,
                                double base, const calx_create_options *o)
{
  CX_OPS_COMPOSITE("logspace");
  calx_tensor *bad;
  if (!steps_fit("logspace", start, end, steps, o, &bad)) return bad;
  calx_create_options wide = part(o, CALX_F64);
  calx_tensor *power =
      calx_pow(calx_scalar(base), spaced(start, end, steps, &wide));
  return finish(power, o, CALX_F32);
}

// Column less row of each element of (rows, columns).
static calx_tensor *columns_less_rows(int64_t rows, int64_t columns,
                                      const calx_create_options *o)
{
  calx_create_options whole = part(o, CALX_I64);
  calx_tensor *row = calx_arange_with(0, (double)rows, 1, &whole);
  calx_tensor *column = calx_arange_with(0, (double)columns, 1, &whole);
  return cx_ops_minus(column, calx_unsqueeze(row, 1));
}

calx_tensor *calx_eye_with(int64_t n, int64_t m, const calx_create_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("eye");
  int64_t sizes[2] = { n, m };
  calx_tensor *bad;
  if (!cx_ops_good_shape("eye", calx_dims_of(sizes, 2), dtype_or(o, CALX_F32),
                         o, &bad)) {
    return bad;
  }
  return finish(calx_eq(columns_less_rows(n, m, o), calx_scalar_int(0)), o,
                CALX_F32);
}

static int64_t clamped(int64_t x, int64_t low, int64_t high)
{
  return x < low ? low : x > high ? high : x;
}

// How many elements of a matrix lie on or below its diagonal `offset`, or on or
// above it.
static int64_t in_triangle(int64_t rows, int64_t columns, int64_t offset,
                           bool upper)
{
  // Row i has i + first elements to the left of the edge, but at least 0 and at
  // most `columns`.
  int64_t first = offset + 1 - upper;
  int64_t from = clamped(-first, 0, rows);
  int64_t full = clamped(columns - first, from, rows);
  int64_t below = (full - from) * (from + full - 1 + 2 * first) / 2 +
                  (rows - full) * columns;
  return upper ? rows * columns - below : below;
}

static calx_tensor *triangle(const char *op, int64_t rows, int64_t columns,
                             int64_t offset, bool upper,
                             const calx_create_options *o)
{
  int64_t sizes[2] = { rows, columns };
  calx_tensor *bad;
  if (!cx_ops_good_shape(op, calx_dims_of(sizes, 2), dtype_or(o, CALX_I64), o,
                         &bad)) {
    return bad;
  }
  bool fits = rows >= 0 && columns >= 0;
  if (!fits || offset < -INT32_MAX || offset > INT32_MAX) {
    return cx_ops_invalid(
        "%s: %lld rows, %lld columns, offset %lld: sizes of 0 or more and an "
        "offset below 2^31 are wanted",
        op, (long long)rows, (long long)columns, (long long)offset);
  }
  int64_t count = in_triangle(rows, columns, offset, upper);
  calx_create_options whole = part(o, CALX_I64);
  int64_t none[2] = { 2, 0 };
  if (count == 0) {
    return finish(calx_zeros_with(calx_dims_of(none, 2), &whole), o, CALX_I64);
  }
  calx_tensor *apart = columns_less_rows(rows, columns, o);
  calx_tensor *edge = calx_scalar_int(offset);
  calx_select_options s = { .size = sizeof s, .limit = count };
  calx_tensor *inside = upper ? calx_ge(apart, edge) : calx_le(apart, edge);
  return finish(calx_t(calx_nonzero_with(inside, &s)), o, CALX_I64);
}

calx_tensor *calx_tril_indices_with(int64_t rows, int64_t columns,
                                    int64_t offset,
                                    const calx_create_options *o)
{
  CX_OPS_COMPOSITE("tril_indices");
  return triangle("tril_indices", rows, columns, offset, false, o);
}

calx_tensor *calx_triu_indices_with(int64_t rows, int64_t columns,
                                    int64_t offset,
                                    const calx_create_options *o)
{
  CX_OPS_COMPOSITE("triu_indices");
  return triangle("triu_indices", rows, columns, offset, true, o);
}

void calx_meshgrid(calx_tensor *const *tensors, size_t count,
                   calx_meshgrid_indexing indexing, calx_tensor **out)
{
  CX_OPS_COMPOSITE_COMPLEX("meshgrid");
  calx_tensor *bad = NULL;
  int64_t sizes[CALX_MAX_RANK];
  bool fits = tensors != NULL && count > 0 && count <= CALX_MAX_RANK &&
              (unsigned)indexing <= CALX_INDEXING_XY;
  if (fits && !cx_ops_unfit("meshgrid", tensors, (uint32_t)count, &bad)) {
    for (size_t i = 0; i < count; i++) {
      fits &= calx_tensor_rank(tensors[i]) < 2;
      sizes[i] = calx_tensor_numel(tensors[i]);
    }
  }
  if (!fits) {
    bad = cx_ops_invalid(
        "meshgrid: %zu tensors, indexing %d: 1 to %d of rank 0 or 1, and "
        "CALX_INDEXING_IJ or _XY, are wanted",
        count, (int)indexing, CALX_MAX_RANK);
  }
  bool swap = indexing == CALX_INDEXING_XY && count > 1;
  for (size_t i = 0; i < count; i++) {
    out[i] = bad;
    if (bad != NULL) continue;
    int64_t own[CALX_MAX_RANK];
    for (size_t k = 0; k < count; k++) own[k] = k == i ? sizes[k] : 1;
    out[i] = calx_expand(calx_reshape(tensors[i], calx_dims_of(own, count)),
                         calx_dims_of(sizes, count));
    if (swap) out[i] = calx_transpose(out[i], 0, 1);
  }
}

// ---- the sizes of another tensor --------------------------------------------

// False: *out is what the function returns.
static bool like(const char *op, calx_tensor *x, const calx_create_options *o,
                 calx_create_options *out_like, calx_tensor **out)
{
  if (cx_ops_unfit(op, &x, 1, out)) return false;
  *out_like = (calx_create_options){ .size = sizeof *out_like };
  if (o != NULL && !cx_ops_options_fit(op, o->size, sizeof *o, out)) {
    return false;
  }
  if (o != NULL) *out_like = *o;
  out_like->dtype = dtype_or(o, cx_lazy_tensor_shape(x)->dtype);
  if (out_like->device == NULL) out_like->device = calx_tensor_device(x);
  return true;
}

#define LIKE(name, ...)                                              \
  CX_OPS_COMPOSITE_COMPLEX(#name "_like");                           \
  calx_create_options as;                                            \
  calx_tensor *bad;                                                  \
  if (!like(#name "_like", x, o, &as, &bad)) return bad;             \
  return calx_##name##_with(cx_ops_dims_of(cx_lazy_tensor_shape(x)), \
                            __VA_ARGS__)

calx_tensor *calx_zeros_like_with(calx_tensor *x, const calx_create_options *o)
{
  LIKE(zeros, &as);
}

calx_tensor *calx_ones_like_with(calx_tensor *x, const calx_create_options *o)
{
  LIKE(ones, &as);
}

calx_tensor *calx_empty_like_with(calx_tensor *x, const calx_create_options *o)
{
  return calx_zeros_like_with(x, o);
}

calx_tensor *calx_full_like_with(calx_tensor *x, double value,
                                 const calx_create_options *o)
{
  LIKE(full, value, &as);
}

calx_tensor *calx_rand_like_with(calx_tensor *x, const calx_create_options *o)
{
  LIKE(rand, &as);
}

calx_tensor *calx_randn_like_with(calx_tensor *x, const calx_create_options *o)
{
  LIKE(randn, &as);
}
