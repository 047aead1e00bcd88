// ops/composite_norm: normalisation over dimensions of each sample, composed of
// public ops.
#include <string.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

// (x - mean) / sqrt(var + eps) over these dimensions, with the biased variance.
static calx_tensor *standardized(calx_tensor *x, calx_dims dims, double eps)
{
  calx_reduce_options o = { .size = sizeof o, .dims = dims, .keepdim = true };
  calx_tensor *apart = cx_ops_minus(x, calx_mean_with(x, &o));
  calx_tensor *variance = calx_mean_with(calx_square(apart), &o);
  return calx_mul(apart, calx_rsqrt(cx_ops_plus(variance, cx_ops_number(eps))));
}

static calx_tensor *scaled(calx_tensor *y, calx_tensor *weight,
                           calx_tensor *bias)
{
  if (weight != NULL) y = calx_mul(y, weight);
  return bias != NULL ? cx_ops_plus(y, bias) : y;
}

// Whether x ends in these sizes, and the tensors (NULL: none) have them. False:
// *out is what the function returns.
static bool ends_in(const char *op, const calx_tensor *x, calx_dims sizes,
                    calx_tensor *const *own, calx_tensor **out)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  bool fits = sizes.count != 0 && sizes.count <= s->rank;
  for (size_t i = 0; fits && i < sizes.count; i++) {
    fits = s->dims[s->rank - sizes.count + i] == sizes.values[i];
  }
  for (int k = 0; fits && k < 2; k++) {
    const cx_graph_shape *w =
        own[k] != NULL ? cx_lazy_tensor_shape(own[k]) : NULL;
    fits = w == NULL ||
           (w->rank == sizes.count &&
            memcmp(w->dims, sizes.values, sizes.count * sizeof *w->dims) == 0);
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "%s: the last dimensions of %s, the weight and the bias "
      "must have the %zu sizes of normalized_shape",
      op, cx_graph_shape_str(s), sizes.count);
  return false;
}

static calx_dims last_dims(int64_t *room, size_t n)
{
  for (size_t i = 0; i < n; i++) room[i] = (int64_t)i - (int64_t)n;
  return calx_dims_of(room, n);
}

calx_tensor *calx_layer_norm_with(calx_tensor *x, calx_dims normalized_shape,
                                  const calx_layer_norm_options *o)
{
  CX_OPS_COMPOSITE("layer_norm");
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  int64_t room[CALX_MAX_RANK];
  if (!cx_ops_floating("layer_norm", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(layer_norm, o, bad);
  calx_tensor *own[2] = { o->weight, o->bias };
  if (!ends_in("layer_norm", x, normalized_shape, own, &bad)) return bad;
  double eps = cx_is_default(o->eps) ? 1e-5 : o->eps;
  calx_tensor *y =
      standardized(x, last_dims(room, normalized_shape.count), eps);
  return scaled(y, o->weight, o->bias);
}

calx_tensor *calx_rms_norm_with(calx_tensor *x, calx_dims normalized_shape,
                                const calx_layer_norm_options *o)
{
  CX_OPS_COMPOSITE("rms_norm");
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  int64_t room[CALX_MAX_RANK];
  if (!cx_ops_floating("rms_norm", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(layer_norm, o, bad);
  calx_tensor *own[2] = { o->weight, o->bias };
  if (!ends_in("rms_norm", x, normalized_shape, own, &bad)) return bad;
  calx_dtype dtype = cx_lazy_tensor_shape(x)->dtype;
  double eps = dtype == CALX_F64    ? 0x1p-52
               : dtype == CALX_BF16 ? 0x1p-7
               : dtype == CALX_F16  ? 0x1p-10
                                    : 0x1p-23;
  if (!cx_is_default(o->eps)) eps = o->eps;
  calx_reduce_options r = { .size = sizeof r,
                            .dims = last_dims(room, normalized_shape.count),
                            .keepdim = true };
  calx_tensor *square = calx_mean_with(calx_square(x), &r);
  calx_tensor *y =
      calx_mul(x, calx_rsqrt(cx_ops_plus(square, cx_ops_number(eps))));
  return scaled(y, o->weight, o->bias);
}

// (C) as (1, C, 1, …)
static calx_tensor *per_channel(calx_tensor *v, uint32_t rank)
{
  int64_t dims[CALX_MAX_RANK];
  if (v == NULL) return NULL;
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = i == 1 ? calx_tensor_numel(v) : 1;
  }
  return calx_reshape(v, calx_dims_of(dims, rank));
}

static calx_tensor *group_norm(const char *op, calx_tensor *x, int64_t groups,
                               const calx_layer_norm_options *o)
{
  static const int64_t dims[2] = { 2, 3 };
  const cx_graph_shape s = *cx_lazy_tensor_shape(x);
  bool fits = s.rank >= 2 && groups >= 1 && s.dims[1] % groups == 0;
  calx_tensor *own[2] = { o->weight, o->bias };
  for (int k = 0; fits && k < 2; k++) {
    fits = own[k] == NULL || (cx_lazy_tensor_shape(own[k])->rank == 1 &&
                              calx_tensor_numel(own[k]) == s.dims[1]);
  }
  if (!fits) {
    return cx_ops_invalid(
        "%s: %s in %lld groups: (N, C, …) is wanted, C a "
        "multiple of the groups, and a weight and bias (C)",
        op, cx_graph_shape_str(&s), (long long)groups);
  }
  double eps = cx_is_default(o->eps) ? 1e-5 : o->eps;
  int64_t rest = 1;
  for (uint32_t i = 2; i < s.rank; i++) rest *= s.dims[i];
  int64_t split[4] = { s.dims[0], groups, s.dims[1] / groups, rest };
  calx_tensor *y = standardized(calx_reshape(x, calx_dims_of(split, 4)),
                                calx_dims_of(dims, 2), eps);
  return scaled(cx_ops_reshape_to(y, &s), per_channel(o->weight, s.rank),
                per_channel(o->bias, s.rank));
}

calx_tensor *calx_group_norm_with(calx_tensor *x, int64_t num_groups,
                                  const calx_layer_norm_options *o)
{
  CX_OPS_COMPOSITE("group_norm");
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  if (!cx_ops_floating("group_norm", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(layer_norm, o, bad);
  return group_norm("group_norm", x, num_groups, o);
}

calx_tensor *calx_instance_norm_with(calx_tensor *x,
                                     const calx_layer_norm_options *o)
{
  CX_OPS_COMPOSITE("instance_norm");
  CX_OPS_AUTOCAST(CX_OPS_F32, &x);
  calx_tensor *bad;
  if (!cx_ops_floating("instance_norm", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(layer_norm, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  return group_norm("instance_norm", x, s->rank > 1 ? s->dims[1] : 1, o);
}
