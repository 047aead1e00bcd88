// ops/composite_random: draws from distributions, composed of calx_rand and
// calx_randn.
#include "calx/creation.h"

#include "base/dtype.h"
#include "ops/composite.h"

static calx_create_options part(calx_device *device, calx_dtype dtype)
{
  return (calx_create_options){ .size = sizeof(calx_create_options),
                                .dtype = dtype,
                                .device = device };
}

static calx_dtype dtype_or(const calx_create_options *o, calx_dtype d)
{
  return o != NULL && o->dtype != CALX_DTYPE_DEFAULT ? o->dtype : d;
}

// False: *out is what the function returns.
static bool no_gradient(const char *op, const calx_create_options *o,
                        calx_dtype dtype, calx_tensor **out)
{
  if (o == NULL || !o->requires_grad) return true;
  if (cx_dtype_is_float(dtype_or(o, dtype))) return true;
  *out = cx_ops_invalid("%s: .requires_grad of %s, a floating .dtype is wanted",
                        op, calx_dtype_name(dtype_or(o, dtype)));
  return false;
}

static calx_tensor *as_leaf(calx_tensor *t, const calx_create_options *o)
{
  if (o == NULL || !o->requires_grad || cx_lazy_tensor_poisoned(t)) return t;
  t = cx_lazy_tensor_detached(t);
  if (!cx_lazy_tensor_poisoned(t)) cx_lazy_tensor_set_requires_grad(t, true);
  return t;
}

calx_tensor *calx_randint_with(int64_t low, int64_t high, calx_dims shape,
                               const calx_create_options *o)
{
  CX_OPS_COMPOSITE("randint");
  calx_tensor *bad;
  calx_dtype dtype = dtype_or(o, CALX_I64);
  int64_t range;
  if (!cx_ops_good_shape("randint", shape, dtype, o, &bad) ||
      !no_gradient("randint", o, CALX_I64, &bad)) {
    return bad;
  }
  if (low >= high || __builtin_sub_overflow(high, low, &range) ||
      range > (int64_t)1 << 53) {
    return cx_ops_invalid(
        "randint: from %lld to before %lld: the end must be above the start, by "
        "2^53 at most",
        (long long)low, (long long)high);
  }
  calx_status *status = cx_ops_check_number("randint", (double)low, dtype);
  if (status == NULL) {
    status = cx_ops_check_number("randint", (double)(high - 1), dtype);
  }
  if (status != NULL) return cx_lazy_tensor_poison(status);
  calx_create_options u = part(o != NULL ? o->device : NULL, CALX_F64);
  calx_tensor *x =
      calx_mul(calx_rand_with(shape, &u), calx_scalar((double)range));
  x = cx_ops_plus(calx_to_dtype(calx_floor(x), CALX_I64), calx_scalar_int(low));
  return as_leaf(calx_to_dtype(x, dtype), o);
}

calx_tensor *calx_randperm_with(int64_t n, const calx_create_options *o)
{
  CX_OPS_COMPOSITE("randperm");
  calx_tensor *bad;
  calx_dtype dtype = dtype_or(o, CALX_I64);
  calx_dims dims = calx_dims_of(&n, 1);
  if (!cx_ops_good_shape("randperm", dims, dtype, o, &bad) ||
      !no_gradient("randperm", o, CALX_I64, &bad)) {
    return bad;
  }
  calx_status *status =
      cx_ops_check_number("randperm", n > 0 ? (double)(n - 1) : 0, dtype);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  calx_create_options u = part(o != NULL ? o->device : NULL, CALX_F64);
  calx_tensor *order = calx_argsort_with(calx_rand_with(dims, &u), NULL);
  return as_leaf(calx_to_dtype(order, dtype), o);
}

calx_tensor *calx_normal_with(calx_tensor *mean, calx_tensor *std,
                              calx_dims shape, const calx_create_options *o)
{
  CX_OPS_COMPOSITE("normal");
  calx_tensor *in[2] = { mean, std }, *bad;
  double width = 0;
  if (cx_ops_unfit("normal", in, 2, &bad) ||
      !cx_ops_good_shape("normal", shape, dtype_or(o, CALX_F32), o, &bad)) {
    return bad;
  }
  if (cx_lazy_tensor_is(std, CX_LAZY_T_WEAK)) {
    cx_ops_weak_number(std, false, &width);
  }
  if (!(width >= 0)) {
    return cx_ops_invalid("normal: the standard deviation is %g", width);
  }
  calx_create_options n =
      part(o != NULL ? o->device : NULL, dtype_or(o, CALX_F32));
  for (int i = 0; i < 2; i++) {
    if (cx_lazy_tensor_is(in[i], CX_LAZY_T_WEAK)) continue;
    in[i] = calx_expand(calx_to_dtype(in[i], n.dtype), shape);
    if (n.device == NULL) n.device = calx_tensor_device(in[i]);
  }
  calx_tensor *x = calx_randn_with(shape, &n);
  return as_leaf(cx_ops_plus(calx_mul(x, in[1]), in[0]), o);
}

// False: *out is what the function returns.
static bool take_floats(const char *op, calx_tensor *x, uint32_t least,
                        uint32_t most, calx_tensor **out)
{
  if (cx_ops_unfit(op, &x, 1, out)) return false;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (cx_dtype_is_float(s->dtype) && s->rank >= least && s->rank <= most) {
    return true;
  }
  *out = cx_ops_invalid("%s: %s, floats of rank %u to %u are wanted", op,
                        cx_graph_shape_str(s), least, most);
  return false;
}

calx_tensor *calx_bernoulli(calx_tensor *x)
{
  CX_OPS_COMPOSITE("bernoulli");
  calx_tensor *bad;
  if (!take_floats("bernoulli", x, 0, CALX_MAX_RANK, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_create_options u =
      part(calx_tensor_device(x), s->dtype == CALX_F64 ? CALX_F64 : CALX_F32);
  calx_tensor *draw = calx_rand_with(cx_ops_dims_of(s), &u);
  return calx_to_dtype(calx_lt(draw, x), s->dtype);
}

calx_tensor *calx_multinomial_with(calx_tensor *x, int64_t num_samples,
                                   const calx_multinomial_options *o)
{
  CX_OPS_COMPOSITE("multinomial");
  calx_tensor *bad, *index = NULL;
  if (!take_floats("multinomial", x, 1, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(multinomial, o, bad);
  cx_graph_shape s = *cx_lazy_tensor_shape(x);
  int64_t n = s.dims[s.rank - 1];
  if (n == 0 || num_samples < 1 || (!o->replacement && num_samples > n)) {
    return cx_ops_invalid(
        "multinomial: %lld samples of %s: 1 or more, and without .replacement "
        "at most as many as there are, are wanted",
        (long long)num_samples, cx_graph_shape_str(&s));
  }
  calx_create_options u = part(calx_tensor_device(x), CALX_F64);
  x = calx_to_dtype(calx_detach(x), CALX_F64);
  if (!o->replacement) {
    // The k smallest of exponential times, of which the i-th has the rate x_i
    // (P. Efraimidis and P. Spirakis, 2006). 1 - u is in (0, 1].
    calx_tensor *draw = calx_rand_with(cx_ops_dims_of(&s), &u);
    draw = calx_neg(calx_log1p(calx_neg(draw)));
    calx_topk_options k = { .size = sizeof k,
                            .smallest = true,
                            .out_indices = &index };
    bad = calx_topk_with(calx_div(draw, x), num_samples, &k);
    return index != NULL ? index : bad;
  }
  calx_tensor *sums = calx_cumsum(x, -1);
  calx_tensor *whole = calx_narrow(sums, -1, n - 1, 1);
  s.dims[s.rank - 1] = num_samples;
  calx_tensor *at = calx_mul(calx_rand_with(cx_ops_dims_of(&s), &u), whole);
  calx_searchsorted_options right = { .size = sizeof right, .right = true };
  index = calx_searchsorted_with(sums, at, &right);
  // Rounding can reach the sum itself.
  return calx_minimum(index, calx_scalar_int(n - 1));
}
