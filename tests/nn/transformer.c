// transformer: attention and transformers against PyTorch from the same
// weights: names, outputs, weights of attention and gradients, with each mask.
#include <unistd.h>

#include "calx/transformer.h"
#include "torch_cases.h"

static const char *kind_of(const torch_case *c)
{
  return calx_value_as_string(calx_value_get(c->all, "kind"));
}

static bool flag(const torch_case *c, const char *name)
{
  return calx_value_as_bool(case_get(c, "call", name));
}

static bool without_bias(const torch_case *c)
{
  const calx_value *v = case_get(c, "options", "bias");
  return v != NULL && !calx_value_as_bool(v);
}

// ---- attention --------------------------------------------------------------

static void run_attention(torch_case *c)
{
  static const char *const names[3] = { "query", "key", "value" };
  c->layer = calx_nn_multihead_attention(
      NULL, NULL, 6, 2, .no_bias = without_bias(c),
      .add_bias_kv = case_int(c, "add_bias_kv") != 0,
      .add_zero_attn = case_int(c, "add_zero_attn") != 0,
      .kdim = case_int(c, "kdim"), .vdim = case_int(c, "vdim"),
      .batch_first = case_int(c, "batch_first") != 0, .dtype = case_dtype(c));
  CHECK_STATUS_OK(calx_module_error(c->layer));
  case_load(c);
  calx_tensor *in[3], *weights = NULL;
  for (int i = 0; i < 3; i++) in[i] = case_in(c, names[i]);
  calx_tensor *key = in[1] != NULL ? in[1] : in[0];
  bool wanted = case_get(c, "out", "weights") != NULL;
  calx_tensor *y = calx_multihead_attention_forward(
      c->layer, in[0], key, in[2] != NULL ? in[2] : key,
      .attn_mask = case_in(c, "attn_mask"),
      .key_padding_mask = case_in(c, "key_padding_mask"),
      .is_causal = flag(c, "is_causal"),
      .no_average_attn_weights = !flag(c, "average"),
      .out_attn_weights = wanted ? &weights : NULL);
  calx_tensor *loss = case_term(c, "y", y);
  if (wanted) loss = calx_add(loss, case_term(c, "weights", weights));
  calx_backward(loss);
  calx_sync_n((calx_tensor *[]){ y, wanted ? weights : y }, 2);
  case_check(c, "out", "y", y);
  if (wanted) case_check(c, "out", "weights", weights);
  case_check_grads(c, in, names, 3);
  calx_module_free(c->layer);
}

// ---- transformers -----------------------------------------------------------

static calx_module *make(const torch_case *c)
{
  double dropout = calx_value_as_float(case_get(c, "options", "dropout"));
  const calx_value *eps = case_get(c, "options", "layer_norm_eps");
  calx_nn_transformer_options o = {
    .size = sizeof o,
    .dim_feedforward = case_int(c, "dim_feedforward"),
    .dropout = dropout != 0 ? dropout : CALX_ZERO,
    .activation = case_text(c, "activation"),
    .layer_norm_eps = eps != NULL ? calx_value_as_float(eps) : 0,
    .batch_first = case_int(c, "batch_first") != 0,
    .norm_first = case_int(c, "norm_first") != 0,
    .no_bias = without_bias(c),
    .final_norm = case_int(c, "final") != 0,
    .dtype = case_dtype(c),
  };
  if (strcmp(kind_of(c), "Transformer") == 0) {
    o.num_encoder_layers = 2;
    o.num_decoder_layers = 1;
    return calx_nn_transformer_with(NULL, NULL, 6, 2, &o);
  }
  int64_t layers = case_int(c, "layers");
  bool decoder = strncmp(kind_of(c), "TransformerDecoder", 18) == 0;
  if (layers == 0) {
    return decoder
               ? calx_nn_transformer_decoder_layer_with(NULL, NULL, 6, 2, &o)
               : calx_nn_transformer_encoder_layer_with(NULL, NULL, 6, 2, &o);
  }
  return decoder
             ? calx_nn_transformer_decoder_with(NULL, NULL, 6, 2, layers, &o)
             : calx_nn_transformer_encoder_with(NULL, NULL, 6, 2, layers, &o);
}

static void run_transformer(torch_case *c)
{
  static const char *const names[2] = { "x", "memory" };
  c->layer = make(c);
  CHECK_STATUS_OK(calx_module_error(c->layer));
  case_load(c);
  calx_module_train(c->layer, case_int(c, "evaluate") == 0);
  calx_tensor *in[2] = { case_in(c, names[0]), case_in(c, names[1]) }, *y;
  if (strcmp(kind_of(c), "Transformer") == 0) {
    y = calx_transformer_forward(
        c->layer, in[0], in[1], .src_mask = case_in(c, "src_mask"),
        .src_key_padding_mask = case_in(c, "src_key_padding_mask"),
        .src_is_causal = flag(c, "src_is_causal"),
        .tgt_mask = case_in(c, "tgt_mask"),
        .tgt_key_padding_mask = case_in(c, "tgt_key_padding_mask"),
        .tgt_is_causal = flag(c, "tgt_is_causal"),
        .memory_mask = case_in(c, "memory_mask"),
        .memory_key_padding_mask = case_in(c, "memory_key_padding_mask"));
  } else if (in[1] == NULL) {
    y = calx_transformer_encoder_forward(
        c->layer, in[0], .src_mask = case_in(c, "src_mask"),
        .src_key_padding_mask = case_in(c, "src_key_padding_mask"),
        .src_is_causal = flag(c, "src_is_causal"));
  } else {
    y = calx_transformer_decoder_forward(
        c->layer, in[0], in[1], .tgt_mask = case_in(c, "tgt_mask"),
        .tgt_key_padding_mask = case_in(c, "tgt_key_padding_mask"),
        .tgt_is_causal = flag(c, "tgt_is_causal"),
        .memory_mask = case_in(c, "memory_mask"),
        .memory_key_padding_mask = case_in(c, "memory_key_padding_mask"));
  }
  calx_backward(case_term(c, "y", y));
  calx_sync(y);
  case_check(c, "out", "y", y);
  case_check_grads(c, in, names, 2);
  calx_module_free(c->layer);
}

static void run(torch_case *c)
{
  if (strcmp(kind_of(c), "MultiheadAttention") == 0) {
    run_attention(c);
  } else {
    run_transformer(c);
  }
}

static void test_pytorch(void **state)
{
  (void)state;
  run_cases("transformer_torch.py", run);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_pytorch) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
