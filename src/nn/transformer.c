// nn/transformer: torch.nn.TransformerEncoderLayer and TransformerDecoderLayer.
#include "nn/transformer.h"

#include <string.h>

#include "nn/attention.h"
#include "nn/layer.h"

typedef struct transformer_layer {
  cx_nn_transformer base;
  bool norm_first, gelu;
  calx_module *self_attn, *cross_attn;  // cross: of a decoder
  calx_module *linear1, *dropout, *linear2;
  calx_module *norm[3], *drop[3];  // of each block
} transformer_layer;

// ---- calling ----------------------------------------------------------------

typedef calx_tensor *block_fn(const transformer_layer *l, calx_tensor *x,
                              calx_tensor *memory);

static calx_tensor *attend_self(const transformer_layer *l, calx_tensor *x,
                                calx_tensor *memory)
{
  const calx_transformer_forward_options *o = l->base.call;
  calx_multihead_attention_forward_options a = { .size = sizeof a };
  if (memory == NULL) {
    a.attn_mask = o->src_mask;
    a.key_padding_mask = o->src_key_padding_mask;
    a.is_causal = o->src_is_causal;
  } else {
    a.attn_mask = o->tgt_mask;
    a.key_padding_mask = o->tgt_key_padding_mask;
    a.is_causal = o->tgt_is_causal;
  }
  return calx_multihead_attention_forward_with(l->self_attn, x, x, x, &a);
}

static calx_tensor *attend_memory(const transformer_layer *l, calx_tensor *x,
                                  calx_tensor *memory)
{
  const calx_transformer_forward_options *o = l->base.call;
  calx_multihead_attention_forward_options a = {
    .size = sizeof a,
    .attn_mask = o->memory_mask,
    .key_padding_mask = o->memory_key_padding_mask,
    .is_causal = o->memory_is_causal,
  };
  return calx_multihead_attention_forward_with(l->cross_attn, x, memory, memory,
                                               &a);
}

static calx_tensor *feed_forward(const transformer_layer *l, calx_tensor *x,
                                 calx_tensor *memory)
{
  (void)memory;
  x = calx_forward(l->linear1, x);
  x = l->gelu ? calx_gelu_with(x, NULL) : calx_relu(x);
  return calx_forward(l->linear2, calx_forward(l->dropout, x));
}

// x + block(norm(x)), or norm(x + block(x)), for each block in turn.
static calx_tensor *run(const transformer_layer *l, calx_tensor *x,
                        calx_tensor *memory)
{
  block_fn *const blocks[3] = { attend_self, attend_memory, feed_forward };
  for (int i = 0, k = 0; i < 3; i++) {
    if (i == 1 && memory == NULL) continue;
    calx_tensor *y = l->norm_first ? calx_forward(l->norm[k], x) : x;
    y = calx_forward(l->drop[k], blocks[i](l, y, memory));
    x = calx_add_with(x, y, NULL);
    if (!l->norm_first) x = calx_forward(l->norm[k], x);
    k++;
  }
  return x;
}

static calx_tensor *encode(void *self, calx_tensor *x)
{
  transformer_layer *l = self;
  const calx_transformer_forward_options none = { .size = sizeof none };
  const calx_transformer_forward_options *given = l->base.call;
  if (given == NULL) l->base.call = &none;
  x = run(l, x, NULL);
  l->base.call = given;
  return x;
}

static calx_tensor *decode(void *self, calx_tensor *x, calx_tensor *memory)
{
  transformer_layer *l = self;
  const calx_transformer_forward_options none = { .size = sizeof none };
  const calx_transformer_forward_options *given = l->base.call;
  if (given == NULL) l->base.call = &none;
  x = run(l, x, memory);
  l->base.call = given;
  return x;
}

calx_tensor *cx_nn_transformer_wants_two(void *self, calx_tensor *x)
{
  (void)x;
  const cx_nn_transformer *t = self;
  return cx_lazy_tensor_poison(cx_invalid(
      "forward: layer '%s' (%s) takes two tensors: call calx_forward2 or "
      "calx_transformer_decoder_forward",
      cx_nn_module_path(t->m), t->m->kind));
}

// ---- making -----------------------------------------------------------------

calx_status *cx_nn_transformer_check(const char *call, int64_t d_model,
                                     int64_t nhead,
                                     const calx_nn_transformer_options *o)
{
  CALX_TRY(cx_options_check(call, o->size, sizeof *o));
  if (d_model <= 0 || nhead <= 0 || d_model % nhead != 0) {
    return cx_invalid(
        "%s: d_model %lld and nhead %lld: positive numbers are "
        "wanted, the first a multiple of the second",
        call, (long long)d_model, (long long)nhead);
  }
  if (o->dim_feedforward < 0 || !(o->layer_norm_eps >= 0)) {
    return cx_invalid(
        "%s: dim_feedforward %lld and layer_norm_eps %g are not "
        "to be negative",
        call, (long long)o->dim_feedforward, o->layer_norm_eps);
  }
  if (o->activation != NULL && strcmp(o->activation, "relu") != 0 &&
      strcmp(o->activation, "gelu") != 0) {
    return cx_invalid("%s: the activation is '%.40s', relu or gelu is wanted",
                      call, o->activation);
  }
  CALX_TRY(cx_nn_check_probability(call, o->dropout));
  return cx_nn_check_dtype(call, o->dtype);
}

calx_module *cx_nn_transformer_norm(calx_module *m, const char *name,
                                    int64_t d_model,
                                    const calx_nn_transformer_options *o)
{
  calx_nn_layer_norm_options n = { .size = sizeof n,
                                   .eps = o->layer_norm_eps,
                                   .no_bias = o->no_bias,
                                   .dtype = o->dtype };
  return calx_nn_layer_norm_with(m, name, calx_dims_of(&d_model, 1), &n);
}

static double dropout_of(const calx_nn_transformer_options *o)
{
  return cx_is_default(o->dropout) ? 0.1 : o->dropout;
}

static calx_module *dropout(calx_module *m, const char *name,
                            const calx_nn_transformer_options *o)
{
  double p = dropout_of(o);
  calx_nn_dropout_options d = { .size = sizeof d, .p = p != 0 ? p : CALX_ZERO };
  return calx_nn_dropout_with(m, name, &d);
}

static calx_module *attention(calx_module *m, const char *name, int64_t d_model,
                              int64_t nhead,
                              const calx_nn_transformer_options *o)
{
  calx_nn_multihead_attention_options a = { .size = sizeof a,
                                            .dropout = dropout_of(o),
                                            .no_bias = o->no_bias,
                                            .batch_first = o->batch_first,
                                            .dtype = o->dtype };
  return calx_nn_multihead_attention_with(m, name, d_model, nhead, &a);
}

// In the order of PyTorch's state dict.
static void make_parts(transformer_layer *l, int64_t d_model, int64_t nhead,
                       bool decoder, const calx_nn_transformer_options *o)
{
  calx_module *m = l->base.m;
  int64_t wide = o->dim_feedforward != 0 ? o->dim_feedforward : 2048;
  calx_linear_options linear = { .size = sizeof linear,
                                 .no_bias = o->no_bias,
                                 .dtype = o->dtype };
  l->self_attn = attention(m, "self_attn", d_model, nhead, o);
  if (decoder) {
    l->cross_attn = attention(m, "multihead_attn", d_model, nhead, o);
  }
  l->linear1 = calx_nn_linear_with(m, "linear1", d_model, wide, &linear);
  l->dropout = dropout(m, "dropout", o);
  l->linear2 = calx_nn_linear_with(m, "linear2", wide, d_model, &linear);
  static const char *const norms[3] = { "norm1", "norm2", "norm3" };
  static const char *const drops[3] = { "dropout1", "dropout2", "dropout3" };
  for (int i = 0; i < (decoder ? 3 : 2); i++) {
    l->norm[i] = cx_nn_transformer_norm(m, norms[i], d_model, o);
  }
  for (int i = 0; i < (decoder ? 3 : 2); i++) {
    l->drop[i] = dropout(m, drops[i], o);
  }
}

static calx_module *make(const cx_nn_layer *layer, calx_module *parent,
                         const char *name, int64_t d_model, int64_t nhead,
                         const calx_nn_transformer_options *options)
{
  static const calx_nn_transformer_options none = { .size = sizeof none };
  const calx_nn_transformer_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m =
      cx_nn_make(layer, parent, name, sizeof(transformer_layer), &state);
  transformer_layer *l = state;
  if (l == NULL) return m;
  calx_status *status = cx_nn_transformer_check(layer->call, d_model, nhead, o);
  if (status == NULL && (o->final_norm || o->num_encoder_layers != 0 ||
                         o->num_decoder_layers != 0)) {
    status = cx_invalid(
        "%s: final_norm and numbers of layers are "
        "options of the stacks",
        layer->call);
  }
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  l->norm_first = o->norm_first;
  l->gelu = o->activation != NULL && strcmp(o->activation, "gelu") == 0;
  make_parts(l, d_model, nhead, layer->forward2 != NULL, o);
  return m;
}

calx_module *calx_nn_transformer_encoder_layer_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *o)
{
  static const cx_nn_layer layer = { .kind = "TransformerEncoderLayer",
                                     .call = "transformer_encoder_layer",
                                     .forward = encode };
  return make(&layer, parent, name, d_model, nhead, o);
}

calx_module *calx_nn_transformer_decoder_layer_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *o)
{
  static const cx_nn_layer layer = { .kind = "TransformerDecoderLayer",
                                     .call = "transformer_decoder_layer",
                                     .forward = cx_nn_transformer_wants_two,
                                     .forward2 = decode };
  return make(&layer, parent, name, d_model, nhead, o);
}
