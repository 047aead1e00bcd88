// transformer_rules: what attention and transformers refuse, their initial
// values, dropout, and the mask of what comes later.
#include "calx/autograd.h"
#include "calx/transformer.h"
#include "support/support.h"

static calx_tensor *f32(calx_dims shape)
{
  static double data[512];
  for (int i = 0; i < 512; i++) data[i] = sin(i + 1);
  return support_tensor(CALX_F32, shape, data);
}

#define INVALID(call, words)                                        \
  do {                                                              \
    calx_scope *s_ = calx_scope_begin();                            \
    (void)(call);                                                   \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s_), words); \
  } while (0)
#define BAD(make, words)                                               \
  do {                                                                 \
    calx_module *m_ = (make);                                          \
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m_), words); \
    calx_module_free(m_);                                              \
  } while (0)

static void test_refused_options(void **state)
{
  (void)state;
  BAD(calx_nn_multihead_attention(NULL, NULL, 6, 4), "a multiple");
  BAD(calx_nn_multihead_attention(NULL, NULL, 6, 0), "num_heads 0");
  BAD(calx_nn_multihead_attention(NULL, NULL, 6, 2, .dropout = 1.5), "1.5");
  BAD(calx_nn_multihead_attention(NULL, NULL, 6, 2, .kdim = -1), "kdim -1");
  BAD(calx_nn_multihead_attention(NULL, NULL, 6, 2, .dtype = CALX_I32), "i32");
  BAD(calx_nn_transformer_encoder_layer(NULL, NULL, 6, 4), "a multiple");
  BAD(calx_nn_transformer_encoder_layer(NULL, NULL, 6, 2, .activation = "tanh"),
      "'tanh', relu or gelu");
  BAD(calx_nn_transformer_encoder_layer(NULL, NULL, 6, 2, .final_norm = true),
      "options of the stacks");
  BAD(calx_nn_transformer_encoder(NULL, NULL, 6, 2, -1), "num_layers is -1");
  BAD(calx_nn_transformer_decoder(NULL, NULL, 6, 2, INT64_MAX), "num_layers");
  BAD(calx_nn_transformer_decoder(NULL, NULL, 6, 2, 1, .dropout = (double)NAN),
      "dropout nan");
  BAD(calx_nn_transformer(NULL, NULL, 6, 2, .layer_norm_eps = -1.0),
      "layer_norm_eps -1");
  BAD(calx_nn_transformer_decoder(NULL, NULL, 6, 2, 1, .num_encoder_layers = 1),
      "options of Transformer");
}

static void test_refused_operands(void **state)
{
  (void)state;
  calx_module *m = calx_nn_multihead_attention(NULL, NULL, 6, 2, .kdim = 3);
  calx_module *fc = calx_nn_linear(NULL, NULL, 6, 2);
  calx_tensor *q = f32(CALX_SHAPE(4, 2, 6)), *k = f32(CALX_SHAPE(5, 2, 3)),
              *v = f32(CALX_SHAPE(5, 2, 6)), *w = NULL;
#define CALL(...) calx_multihead_attention_forward(__VA_ARGS__)
  INVALID(CALL(m, f32(CALX_SHAPE(4, 2, 5)), k, v), "the query of layer");
  INVALID(CALL(m, q, v, v), "the key of layer 'MultiheadAttention'");
  INVALID(CALL(m, q, f32(CALX_SHAPE(5, 3)), v), "of the query's rank");
  INVALID(CALL(m, q, f32(CALX_SHAPE(5, 1, 3)), v), "the query's batch");
  INVALID(CALL(m, q, k, f32(CALX_SHAPE(4, 2, 6))), "the key's length");
  INVALID(CALL(m, q, k, NULL), "NULL");
  INVALID(CALL(m, NULL, k, v), "NULL");
  INVALID(CALL(NULL, q, k, v), "NULL");
  INVALID(CALL(fc, q, k, v), "is no MultiheadAttention");
  INVALID(CALL(m, q, k, v, .attn_mask = f32(CALX_SHAPE(5, 4))),
          "the attn_mask of layer");
  INVALID(CALL(m, q, k, v, .attn_mask = f32(CALX_SHAPE(2, 4, 5))),
          "(batch * heads, queries, keys)");
  INVALID(CALL(m, q, k, v,
               .attn_mask = calx_to_dtype(f32(CALX_SHAPE(4, 5)), CALX_I32)),
          "bool or floating");
  INVALID(CALL(m, q, k, v, .key_padding_mask = f32(CALX_SHAPE(5, 2))),
          "the key_padding_mask of layer");
  calx_scope *s = calx_scope_begin();
  CALL(m, q, v, v, .out_attn_weights = &w);
  assert_true(cx_lazy_tensor_poisoned(w));
  calx_status_free(calx_scope_end(s));
  calx_module_free(m);
  calx_module_free(fc);
}

static void test_refused_calls(void **state)
{
  (void)state;
  calx_module *e =
      calx_nn_transformer_encoder(NULL, NULL, 6, 2, 1, .dim_feedforward = 4);
  calx_module *d =
      calx_nn_transformer_decoder_layer(NULL, NULL, 6, 2, .dim_feedforward = 4);
  calx_tensor *x = f32(CALX_SHAPE(4, 2, 6)), *mask = f32(CALX_SHAPE(4, 4));
  INVALID(calx_forward(d, x), "takes two tensors");
  INVALID(calx_transformer_encoder_forward(d, x), "is no TransformerEncoder");
  INVALID(calx_transformer_decoder_forward(e, x, x), "no TransformerDecoder");
  INVALID(calx_transformer_forward(e, x, x), "is no Transformer");
  INVALID(calx_transformer_encoder_forward(e, x, .tgt_mask = mask),
          "the masks of src");
  INVALID(calx_transformer_decoder_forward(d, x, x, .src_mask = mask),
          "the masks of src");
  INVALID(calx_transformer_decoder_forward(d, x, NULL), "NULL");
  INVALID(calx_transformer_encoder_forward(NULL, x), "NULL");
  INVALID(calx_transformer_encoder_forward(
              e, x, .src_key_padding_mask = f32(CALX_SHAPE(4, 2))),
          "layers.0.self_attn");
  calx_module_free(e);
  calx_module_free(d);
}

static void check_range(calx_module *m, const char *path, double bound)
{
  size_t n;
  double *v = support_read(calx_module_find(m, path), &n), low = 0, high = 0;
  for (size_t i = 0; i < n; i++) {
    low = fmin(low, v[i]);
    high = fmax(high, v[i]);
  }
  test_free(v);
  if (low < -bound || low > -0.9 * bound || high > bound ||
      high < 0.9 * bound) {
    print_error("%s: [%g, %g], +-%g is wanted\n", path, low, high, bound);
    fail();
  }
}

static void test_initial_values(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_nn_multihead_attention(root, "a", 40, 2, .add_bias_kv = true);
  calx_nn_multihead_attention(root, "b", 40, 2, .kdim = 10);
  calx_nn_transformer(root, "t", 40, 2, .dim_feedforward = 20,
                      .num_encoder_layers = 1, .num_decoder_layers = 1);
  calx_sync(NULL);
  CHECK_STATUS_OK(calx_module_error(root));
  check_range(root, "a.in_proj_weight", sqrt(6.0 / 160));
  check_range(root, "a.out_proj.weight", 1 / sqrt(40));
  check_range(root, "b.k_proj_weight", sqrt(6.0 / 50));
  check_range(root, "t.encoder.layers.0.linear1.weight", sqrt(6.0 / 60));
  check_range(root, "t.decoder.layers.0.multihead_attn.out_proj.weight",
              sqrt(6.0 / 80));
  CHECK_VALUES(calx_sum(calx_abs(calx_module_find(root, "a.in_proj_bias"))), 0,
               0);
  CHECK_VALUES(calx_sum(calx_abs(calx_module_find(root, "a.out_proj.bias"))), 0,
               0);
  size_t n;
  double *v = support_read(calx_module_find(root, "a.bias_k"), &n), sum = 0;
  for (size_t i = 0; i < n; i++) sum += v[i] * v[i];
  test_free(v);
  assert_int_equal(n, 40);  // deviation sqrt(1 / 40), so the sum is near 1
  assert_true(sum > 0.3 && sum < 2.2);
  calx_module_free(root);
}

static double difference(calx_tensor *a, calx_tensor *b)
{
  return calx_item(calx_sum(calx_abs(calx_sub(a, b))));
}

// Of the weights of attention and of each block, in training only.
static void test_dropout(void **state)
{
  (void)state;
  calx_module *m =
      calx_nn_transformer_encoder_layer(NULL, NULL, 6, 2, .dim_feedforward = 4);
  calx_module *a =
      calx_nn_multihead_attention(NULL, NULL, 6, 2, .dropout = 0.5);
  calx_module *both[2] = { m, a };
  calx_sync(NULL);
  calx_tensor *x = f32(CALX_SHAPE(4, 2, 6));
  for (int i = 0; i < 2; i++) {
    calx_manual_seed(1);
    calx_tensor *one = calx_forward(both[i], x);
    calx_manual_seed(1);
    calx_tensor *again = calx_forward(both[i], x);
    calx_tensor *other = calx_forward(both[i], x);
    assert_true(difference(one, again) == 0);
    assert_true(difference(one, other) > 0);
    calx_module_train(both[i], false);
    calx_tensor *still = calx_forward(both[i], x);
    assert_true(difference(still, one) > 0);
    assert_true(difference(still, calx_forward(both[i], x)) == 0);
    calx_module_free(both[i]);
  }
}

static void test_subsequent_mask(void **state)
{
  (void)state;
  const double no = -(double)INFINITY;
  calx_tensor *mask = calx_generate_square_subsequent_mask(3);
  CHECK_VALUES(mask, 0, 0, no, no, 0, 0, no, 0, 0, 0);
  mask = calx_generate_square_subsequent_mask(2, .dtype = CALX_F64);
  assert_int_equal(calx_tensor_dtype(mask), CALX_F64);
  INVALID(calx_generate_square_subsequent_mask(-1), "-1");
}

// No keys at all, and no queries, as an empty product is 0.
static void test_empty(void **state)
{
  (void)state;
  calx_module *m = calx_nn_multihead_attention(NULL, NULL, 6, 2);
  calx_tensor *y = calx_forward(m, f32(CALX_SHAPE(4, 0, 6)));
  assert_int_equal(calx_tensor_numel(y), 0);
  calx_backward(calx_sum(y));
  CHECK_VALUES(
      calx_sum(calx_abs(calx_grad(calx_module_find(m, "in_proj_weight")))), 0,
      0);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_refused_options), SUPPORT_TEST(test_refused_operands),
    SUPPORT_TEST(test_refused_calls),   SUPPORT_TEST(test_initial_values),
    SUPPORT_TEST(test_dropout),         SUPPORT_TEST(test_subsequent_mask),
    SUPPORT_TEST(test_empty),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
