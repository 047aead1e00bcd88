// nn/transformer_stack: torch.nn.TransformerEncoder and TransformerDecoder, and
// calls with masks.
#include <string.h>

#include "nn/layer.h"
#include "nn/transformer.h"

typedef struct transformer_stack {
  cx_nn_transformer base;
  calx_module *layers, *norm;  // norm: NULL: none
} transformer_stack;

enum { MOST_LAYERS = 4096 };

static calx_tensor *normed(const transformer_stack *s, calx_tensor *x)
{
  return s->norm != NULL ? calx_forward(s->norm, x) : x;
}

static calx_tensor *encode(void *self, calx_tensor *x)
{
  const transformer_stack *s = self;
  size_t n = calx_module_child_count(s->layers);
  for (size_t i = 0; i < n; i++) {
    x = calx_transformer_encoder_forward_with(
        calx_module_child_at(s->layers, i), x, s->base.call);
  }
  return normed(s, x);
}

static calx_tensor *decode(void *self, calx_tensor *x, calx_tensor *memory)
{
  const transformer_stack *s = self;
  size_t n = calx_module_child_count(s->layers);
  for (size_t i = 0; i < n; i++) {
    x = calx_transformer_decoder_forward_with(
        calx_module_child_at(s->layers, i), x, memory, s->base.call);
  }
  return normed(s, x);
}

// ---- calls with masks -------------------------------------------------------

// NULL, or what is wrong with the call of a module of this kind.
static calx_status *check_call(const char *call, const calx_module *m,
                               const char *prefix, bool wrong_masks,
                               const calx_transformer_forward_options *o)
{
  CALX_TRY(cx_options_check(call, o->size, sizeof *o));
  if (m == NULL || cx_nn_module_is_nil(m)) return NULL;
  if (strncmp(m->kind, prefix, strlen(prefix)) != 0 || m->layer == NULL) {
    return cx_invalid("%s: module '%s' (%s) is no %s or %sLayer", call,
                      cx_nn_module_path(m), m->kind, prefix, prefix);
  }
  if (!wrong_masks) return NULL;
  return cx_invalid(
      "%s: an encoder has use for the masks of src, a decoder "
      "for those of tgt and memory",
      call);
}

static calx_tensor *called(calx_module *m, calx_tensor *x, calx_tensor *memory,
                           const calx_transformer_forward_options *o,
                           calx_status *status, bool two)
{
  if (status != NULL) return cx_lazy_tensor_poison(status);
  cx_nn_transformer *t = m != NULL && !cx_nn_module_is_nil(m) ? m->state : NULL;
  if (t != NULL) t->call = o;
  calx_tensor *y = two ? calx_forward2(m, x, memory) : calx_forward(m, x);
  if (t != NULL) t->call = NULL;
  return y;
}

static const calx_transformer_forward_options no_masks = {
  .size = sizeof no_masks
};

calx_tensor *calx_transformer_encoder_forward_with(
    calx_module *m, calx_tensor *src, const calx_transformer_forward_options *o)
{
  if (o == NULL) o = &no_masks;
  bool wrong = o->tgt_mask != NULL || o->tgt_key_padding_mask != NULL ||
               o->tgt_is_causal || o->memory_mask != NULL ||
               o->memory_key_padding_mask != NULL || o->memory_is_causal;
  calx_status *status = check_call("transformer_encoder_forward", m,
                                   "TransformerEncoder", wrong, o);
  return called(m, src, NULL, o, status, false);
}

calx_tensor *calx_transformer_decoder_forward_with(
    calx_module *m, calx_tensor *tgt, calx_tensor *memory,
    const calx_transformer_forward_options *o)
{
  if (o == NULL) o = &no_masks;
  bool wrong = o->src_mask != NULL || o->src_key_padding_mask != NULL ||
               o->src_is_causal;
  calx_status *status = check_call("transformer_decoder_forward", m,
                                   "TransformerDecoder", wrong, o);
  return called(m, tgt, memory, o, status, true);
}

// ---- making -----------------------------------------------------------------

typedef calx_module *layer_fn(calx_module *, const char *, int64_t, int64_t,
                              const calx_nn_transformer_options *);

static calx_module *make(const cx_nn_layer *layer, layer_fn *make_layer,
                         calx_module *parent, const char *name,
                         const int64_t sizes[3],  // d_model, nhead, layers
                         const calx_nn_transformer_options *options)
{
  static const calx_nn_transformer_options none = { .size = sizeof none };
  const calx_nn_transformer_options *o = options != NULL ? options : &none;
  void *state;
  calx_module *m =
      cx_nn_make(layer, parent, name, sizeof(transformer_stack), &state);
  transformer_stack *s = state;
  if (s == NULL) return m;
  calx_status *status =
      cx_nn_transformer_check(layer->call, sizes[0], sizes[1], o);
  if (status == NULL &&
      (o->num_encoder_layers != 0 || o->num_decoder_layers != 0)) {
    status = cx_invalid(
        "%s: num_encoder_layers and num_decoder_layers are "
        "options of Transformer",
        layer->call);
  }
  if (status == NULL && (sizes[2] < 0 || sizes[2] > MOST_LAYERS)) {
    status = cx_invalid("%s: num_layers is %lld, 0 to %d are possible",
                        layer->call, (long long)sizes[2], MOST_LAYERS);
  }
  if (status != NULL) {
    cx_nn_module_fail(m, status);
    return m;
  }
  s->layers = calx_nn_module_list(m, "layers");
  calx_nn_transformer_options of_layer = *o;
  of_layer.final_norm = false;
  for (int64_t i = 0; i < sizes[2]; i++) {
    make_layer(s->layers, NULL, sizes[0], sizes[1], &of_layer);
  }
  if (o->final_norm) s->norm = cx_nn_transformer_norm(m, "norm", sizes[0], o);
  return m;
}

calx_module *calx_nn_transformer_encoder_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    int64_t num_layers, const calx_nn_transformer_options *o)
{
  static const cx_nn_layer layer = { .kind = "TransformerEncoder",
                                     .call = "transformer_encoder",
                                     .forward = encode };
  return make(&layer, calx_nn_transformer_encoder_layer_with, parent, name,
              (const int64_t[]){ d_model, nhead, num_layers }, o);
}

calx_module *calx_nn_transformer_decoder_with(
    calx_module *parent, const char *name, int64_t d_model, int64_t nhead,
    int64_t num_layers, const calx_nn_transformer_options *o)
{
  static const cx_nn_layer layer = { .kind = "TransformerDecoder",
                                     .call = "transformer_decoder",
                                     .forward = cx_nn_transformer_wants_two,
                                     .forward2 = decode };
  return make(&layer, calx_nn_transformer_decoder_layer_with, parent, name,
              (const int64_t[]){ d_model, nhead, num_layers }, o);
}
