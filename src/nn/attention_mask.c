// nn/attention_mask: the masks of torch.nn.MultiheadAttention.
#include <math.h>

#include "nn/attention.h"
#include "nn/layer.h"
#include "ops/ops.h"

calx_tensor *calx_generate_square_subsequent_mask_with(
    int64_t size, const calx_create_options *options)
{
  static const calx_create_options none = { .size = sizeof none };
  const calx_create_options *o = options != NULL ? options : &none;
  calx_tensor *zeros = calx_zeros_with(CALX_SHAPE(size, size), o);
  if (cx_lazy_tensor_poisoned(zeros)) return zeros;
  calx_create_options i = { .size = sizeof i,
                            .dtype = CALX_I64,
                            .device = calx_tensor_device(zeros) };
  calx_tensor *at = calx_arange_with(0, (double)size, 1, &i);
  calx_tensor *above = calx_lt(calx_unsqueeze(at, 1), at);
  return calx_where(above, calx_scalar(-(double)INFINITY), zeros);
}

// ---- checks -----------------------------------------------------------------

calx_tensor *cx_nn_attention_refuse(const calx_module *m, const char *which,
                                    const calx_tensor *x, const char *wanted)
{
  return cx_lazy_tensor_poison(cx_invalid(
      "forward: the %s of layer '%s' (MultiheadAttention) is %s, %s is wanted",
      which, cx_nn_module_path(m), cx_graph_shape_str(cx_lazy_tensor_shape(x)),
      wanted));
}

static bool has(const calx_tensor *x, const int64_t *dims, size_t rank)
{
  calx_dims d = calx_tensor_shape(x);
  bool same = d.count == rank;
  for (size_t i = 0; same && i < rank; i++) same = d.values[i] == dims[i];
  return same;
}

static bool is_mask(const calx_tensor *t)
{
  calx_dtype d = cx_lazy_tensor_shape(t)->dtype;
  return d == CALX_BOOL || cx_dtype_is_float(d);
}

calx_tensor *cx_nn_attention_check_masks(
    const calx_module *m, const cx_nn_attention_sizes *s,
    const calx_multihead_attention_forward_options *o)
{
  calx_tensor *padding = o->key_padding_mask, *mask = o->attn_mask, *bad;
  const int64_t pad_dims[2] = { s->batch, s->keys };
  const int64_t dims[3] = { s->batch * s->heads, s->length, s->keys };
  if (padding != NULL) {
    if (cx_ops_unfit("key_padding_mask", &padding, 1, &bad)) return bad;
    bool fits =
        s->batched ? has(padding, pad_dims, 2) : has(padding, pad_dims + 1, 1);
    if (!fits || !is_mask(padding)) {
      return cx_nn_attention_refuse(
          m, "key_padding_mask", padding,
          "bool or floating (batch, keys), or (keys) without batch,");
    }
  }
  if (mask == NULL) return NULL;
  if (cx_ops_unfit("attn_mask", &mask, 1, &bad)) return bad;
  if ((has(mask, dims, 3) || has(mask, dims + 1, 2)) && is_mask(mask)) {
    return NULL;
  }
  return cx_nn_attention_refuse(
      m, "attn_mask", mask,
      "bool or floating (queries, keys) or (batch * heads, queries, "
      "keys)");
}

// ---- masks ------------------------------------------------------------------

static calx_tensor *added(calx_tensor *mask, calx_dtype dtype)
{
  if (cx_lazy_tensor_shape(mask)->dtype != CALX_BOOL) {
    return calx_to_dtype(mask, dtype);
  }
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = calx_tensor_device(mask) };
  calx_tensor *zero = calx_zeros_with(CALX_SCALAR, &o);
  return calx_where(mask, calx_scalar(-(double)INFINITY), zero);
}

// A column for each key that the layer adds itself, which every query sees.
static calx_tensor *widened(calx_tensor *mask, int64_t more)
{
  if (more == 0) return mask;
  calx_dims shape = calx_tensor_shape(mask);
  shape.values[shape.count - 1] = more;
  calx_create_options o = { .size = sizeof o,
                            .dtype = cx_lazy_tensor_shape(mask)->dtype,
                            .device = calx_tensor_device(mask) };
  calx_tensor *both[2] = { mask, calx_zeros_with(shape, &o) };
  return calx_cat(both, 2, -1);
}

calx_tensor *cx_nn_attention_mask(
    const cx_nn_attention_sizes *s,
    const calx_multihead_attention_forward_options *o, const calx_tensor *q,
    int64_t more)
{
  calx_dtype dtype = cx_lazy_tensor_shape(q)->dtype;
  calx_tensor *mask = o->attn_mask, *padding = o->key_padding_mask;
  if (mask == NULL && o->is_causal) {
    calx_create_options i = { .size = sizeof i,
                              .dtype = CALX_I64,
                              .device = calx_tensor_device(q) };
    mask = calx_lt(
        calx_unsqueeze(calx_arange_with(0, (double)s->length, 1, &i), 1),
        calx_arange_with(0, (double)s->keys, 1, &i));
  }
  if (mask != NULL) {
    mask = widened(added(mask, dtype), more);
    if (calx_tensor_rank(mask) == 3) {
      mask = calx_reshape(
          mask, CALX_SHAPE(s->batch, s->heads, s->length, s->keys + more));
    }
  }
  if (padding == NULL) return mask;
  padding = widened(added(padding, dtype), more);
  padding = calx_reshape(padding, CALX_SHAPE(s->batch, 1, 1, s->keys + more));
  return mask != NULL ? calx_add_with(mask, padding, NULL) : padding;
}
