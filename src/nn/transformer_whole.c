// nn/transformer_whole: torch.nn.Transformer.
#include "nn/attention.h"
#include "nn/layer.h"
#include "nn/transformer.h"

typedef struct transformer_whole {
  cx_nn_transformer base;
  calx_module *encoder, *decoder;
} transformer_whole;

static calx_tensor *forward(void *self, calx_tensor *src, calx_tensor *tgt)
{
  const transformer_whole *t = self;
  const calx_transformer_forward_options none = { .size = sizeof none };
  const calx_transformer_forward_options *o =
      t->base.call != NULL ? t->base.call : &none;
  calx_transformer_forward_options of_src = {
    .size = sizeof of_src,
    .src_mask = o->src_mask,
    .src_key_padding_mask = o->src_key_padding_mask,
    .src_is_causal = o->src_is_causal,
  };
  calx_transformer_forward_options of_tgt = *o;
  of_tgt.src_mask = of_tgt.src_key_padding_mask = NULL;
  of_tgt.src_is_causal = false;
  calx_tensor *memory =
      calx_transformer_encoder_forward_with(t->encoder, src, &of_src);
  return calx_transformer_decoder_forward_with(t->decoder, tgt, memory,
                                               &of_tgt);
}

static calx_tensor *wants_two(void *self, calx_tensor *x)
{
  (void)x;
  const transformer_whole *t = self;
  return cx_lazy_tensor_poison(
      cx_invalid("forward: layer '%s' (Transformer) takes two tensors: call "
                 "calx_forward2 or calx_transformer_forward",
                 cx_nn_module_path(t->base.m)));
}

calx_tensor *calx_transformer_forward_with(
    calx_module *m, calx_tensor *src, calx_tensor *tgt,
    const calx_transformer_forward_options *o)
{
  static const char call[] = "transformer_forward";
  static const calx_transformer_forward_options none = { .size = sizeof none };
  if (o == NULL) o = &none;
  calx_status *status = cx_options_check(call, o->size, sizeof *o);
  bool mine = m != NULL && m->layer != NULL && m->layer->forward2 == forward;
  if (status == NULL && m != NULL && !cx_nn_module_is_nil(m) && !mine) {
    status = cx_invalid("%s: module '%s' (%s) is no Transformer", call,
                        cx_nn_module_path(m), m->kind);
  }
  if (status != NULL) return cx_lazy_tensor_poison(status);
  cx_nn_transformer *t = mine ? m->state : NULL;
  if (t != NULL) t->call = o;
  calx_tensor *y = calx_forward2(m, src, tgt);
  if (t != NULL) t->call = NULL;
  return y;
}

static void draw_matrix(void *user, const char *path, calx_entry_kind kind,
                        calx_tensor *t)
{
  (void)user, (void)path, (void)kind;
  if (calx_tensor_rank(t) > 1) calx_init_xavier_uniform(t, 1);
}

calx_module *calx_nn_transformer_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *options)
{
  static const cx_nn_layer layer = { .kind = "Transformer",
                                     .call = "transformer",
                                     .forward = wants_two,
                                     .forward2 = forward };
  static const calx_nn_transformer_options none = { .size = sizeof none };
  const calx_nn_transformer_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m =
      cx_nn_make(&layer, parent, name, sizeof(transformer_whole), &state);
  transformer_whole *t = state;
  if (t == NULL) return m;
  calx_status *status = cx_nn_transformer_check(layer.call, d_model, nhead, o);
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  int64_t encoders = o->num_encoder_layers, decoders = o->num_decoder_layers;
  calx_nn_transformer_options of_stack = *o;
  of_stack.num_encoder_layers = of_stack.num_decoder_layers = 0;
  of_stack.final_norm = true;
  calx_scope *scope = calx_scope_begin();
  t->encoder = calx_nn_transformer_encoder_with(
      m, "encoder", d_model, nhead, encoders != 0 ? encoders : 6, &of_stack);
  t->decoder = calx_nn_transformer_decoder_with(
      m, "decoder", d_model, nhead, decoders != 0 ? decoders : 6, &of_stack);
  calx_module_parameters(m, draw_matrix, NULL);
  cx_nn_module_fail(m, calx_scope_end(scope));
  return m;
}
