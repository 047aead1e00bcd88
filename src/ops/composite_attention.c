// ops/composite_attention: scaled dot product attention and dropout, composed
// of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/composite.h"

// x times 1 / (1 - p) where a draw keeps it, else 0.
static calx_tensor *dropped(calx_tensor *x, double p)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_F32,
                            .device = calx_tensor_device(x) };
  calx_tensor *keep =
      calx_ge(calx_rand_with(cx_ops_dims_of(s), &o), calx_scalar(p));
  double scale = p < 1 ? 1 / (1 - p) : 0;
  return calx_where(keep, calx_mul(x, calx_scalar(scale)), cx_ops_number(0));
}

// False: *out is what the function returns.
static bool is_probability(const char *op, double p, calx_tensor **out)
{
  if (p >= 0 && p <= 1) return true;
  *out = cx_ops_invalid("%s: the probability %g is not in [0, 1]", op, p);
  return false;
}

calx_tensor *calx_dropout_with(calx_tensor *x, const calx_dropout_options *o)
{
  CX_OPS_COMPOSITE("dropout");
  CX_OPS_TAKE_OPTIONS(dropout, o, x);
  if (!cx_ops_floating("dropout", &x, 1, &x)) return x;
  double p = cx_is_default(o->p) ? 0.5 : o->p;
  if (!is_probability("dropout", p, &x)) return x;
  return o->eval || p == 0 ? x : dropped(x, p);
}

// Each head of k and v serves several heads of q (dimension -3).
static calx_tensor *repeat_heads(calx_tensor *x, const calx_tensor *q)
{
  int64_t have = calx_tensor_dim(x, -3), want = calx_tensor_dim(q, -3);
  if (have < 1 || want % have != 0) return x;  // matmul says what does not fit
  return calx_repeat_interleave(x, want / have, -3);
}

// True where a query may see a key: not past its own place. (L, S)
static calx_tensor *causal_mask(const calx_tensor *q, const calx_tensor *k)
{
  int64_t sizes[2] = { calx_tensor_dim(q, -2), calx_tensor_dim(k, -2) };
  calx_create_options o = { .size = sizeof o,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(q) };
  calx_tensor *rows =
      calx_unsqueeze(calx_arange_with(0, (double)sizes[0], 1, &o), 1);
  return calx_ge(rows, calx_arange_with(0, (double)sizes[1], 1, &o));
}

static calx_tensor *masked(calx_tensor *scores, calx_tensor *mask)
{
  if (cx_lazy_tensor_shape(mask)->dtype != CALX_BOOL) {
    return cx_ops_plus(scores, mask);
  }
  return calx_where(mask, scores, cx_ops_number(-(double)INFINITY));
}

// Softmax of scores and a mask. A query that sees no key has weights of 0 and
// no gradient, where a softmax has NaN.
static calx_tensor *masked_softmax(calx_tensor *scores, calx_tensor *mask)
{
  scores = masked(scores, mask);
  if (calx_tensor_numel(scores) == 0) return calx_softmax(scores, -1);
  const calx_reduce_options last = { .size = sizeof last,
                                     .dims = CALX_DIMS(-1),
                                     .keepdim = true };
  calx_tensor *most = calx_amax_with(scores, &last);
  calx_tensor *sees_none = calx_eq(most, cx_ops_number(-(double)INFINITY));
  scores = calx_where(sees_none, cx_ops_number(0), scores);
  return calx_where(sees_none, cx_ops_number(0), calx_softmax(scores, -1));
}

calx_tensor *calx_scaled_dot_product_attention_with(
    calx_tensor *query, calx_tensor *key, calx_tensor *value,
    const calx_attention_options *o)
{
  static const char op[] = "scaled_dot_product_attention";
  static const calx_attention_options none = { .size = sizeof none };
  CX_OPS_COMPOSITE("scaled_dot_product_attention");
  calx_tensor *in[4] = { query, key, value, o != NULL ? o->attn_mask : NULL };
  calx_tensor *bad;
  if (cx_ops_unfit(op, in, in[3] != NULL ? 4 : 3, &bad)) return bad;
  if (o == NULL) o = &none;
  if (!cx_ops_options_fit(op, o->size, sizeof *o, &bad) ||
      !is_probability(op, o->dropout_p, &bad)) {
    return bad;
  }
  for (int i = 0; i < 3; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(in[i]);
    if (s->rank >= 2 && cx_dtype_is_float(s->dtype) &&
        (!o->enable_gqa || s->rank >= 3)) {
      continue;
    }
    return cx_ops_invalid(
        "%s: operand %d is %s, a floating (…, length, size) is "
        "wanted",
        op, i, cx_graph_shape_str(s));
  }
  if (o->is_causal && o->attn_mask != NULL) {
    return cx_ops_invalid("%s: attn_mask and is_causal exclude each other", op);
  }
  if (o->enable_gqa) {
    key = repeat_heads(key, query);
    value = repeat_heads(value, query);
  }
  double size = (double)calx_tensor_dim(query, -1);
  double scale = cx_is_default(o->scale) ? 1 / sqrt(size) : o->scale;
  calx_tensor *scores = calx_matmul(calx_mul(query, cx_ops_number(scale)),
                                    calx_transpose(key, -2, -1));
  if (cx_lazy_tensor_poisoned(scores)) return scores;
  if (o->is_causal) scores = masked(scores, causal_mask(query, key));
  calx_tensor *weights = o->attn_mask != NULL
                             ? masked_softmax(scores, o->attn_mask)
                             : calx_softmax(scores, -1);
  if (o->dropout_p > 0) weights = dropped(weights, o->dropout_p);
  return calx_matmul(weights, value);
}
