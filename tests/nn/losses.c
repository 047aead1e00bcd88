// losses: each loss of torch.nn as a layer beside PyTorch's. This program makes
// them and writes what they are and compute to a file, which losses_torch.py
// compares with torch.nn. Then what they refuse, and what hooks see.
#include "calx/autograd.h"
#include "calx/calx.h"
#include "support/torch.h"

static calx_value *rows;

static void put(calx_value *to, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(to, key, v));
}

static void put_copy(void *user, const char *path, calx_entry_kind kind,
                     calx_tensor *t)
{
  (void)kind;
  put(user, path, calx_value_tensor(calx_cpu(t)));
}

// The sum of y's elements, each times its number from 1.
static calx_tensor *objective(calx_tensor *y)
{
  size_t n = (size_t)calx_tensor_numel(y);
  double v[64] = { 0 };
  assert_true(n <= 64);
  for (size_t i = 0; i < n; i++) v[i] = (double)(i + 1);
  return calx_sum(
      calx_mul(y, support_tensor(CALX_F32, calx_tensor_shape(y), v)));
}

static calx_tensor *numbers(calx_dims shape, int shift)
{
  double v[64];
  size_t n = 1;
  for (size_t i = 0; i < shape.count; i++) n *= (size_t)shape.values[i];
  for (size_t i = 0; i < n; i++) v[i] = sin(1.3 * (double)i + shift) * 1.5;
  return support_tensor(CALX_F32, shape, v);
}

static calx_tensor *positive(calx_dims shape, int shift)
{
  return calx_add(calx_abs(numbers(shape, shift)), 0.25);
}

static calx_tensor *below_one(calx_dims shape, int shift)
{
  return calx_sigmoid(numbers(shape, shift));
}

#define INTEGERS(...)                                                         \
  support_tensor(CALX_I64, CALX_SHAPE(sizeof((double[]){ __VA_ARGS__ }) / 8), \
                 (double[]){ __VA_ARGS__ })

// What AdaptiveLogSoftmaxWithLoss has beside its loss.
static void put_adaptive(calx_value *row, calx_module *m, calx_tensor **in)
{
  calx_tensor *loss;
  put(row, "output",
      calx_value_tensor(
          calx_cpu(calx_adaptive_log_softmax_forward(m, in[0], in[1], &loss))));
  put(row, "loss", calx_value_tensor(calx_cpu(loss)));
  put(row, "log_prob",
      calx_value_tensor(
          calx_cpu(calx_adaptive_log_softmax_log_prob(m, in[0]))));
  put(row, "predict",
      calx_value_tensor(calx_cpu(calx_adaptive_log_softmax_predict(m, in[0]))));
  calx_tensor *one = calx_adaptive_log_softmax_forward(
      m, calx_select(in[0], 0, 0), calx_select(in[1], 0, 0), NULL);
  put(row, "one", calx_value_tensor(calx_cpu(one)));
}

static void add(const char *code, calx_module *m, calx_tensor *const *in,
                size_t n)
{
  CHECK_STATUS_OK(calx_module_error(m));
  calx_value *row = calx_value_container(CALX_KIND_DICT);
  calx_value *inputs = calx_value_container(CALX_KIND_LIST);
  calx_value *weights = calx_value_container(CALX_KIND_DICT);
  put(row, "code", calx_value_string(code));
  char *text = calx_module_str(m);
  put(row, "text", calx_value_string(text));
  calx_string_free(text);
  calx_tensor *x = calx_detach(in[0]), *used[4] = { x, in[1] };
  calx_requires_grad(x, true);
  for (size_t i = 2; i < n; i++) used[i] = in[i];
  calx_tensor *y = calx_forward_n(m, used, n);
  calx_backward(objective(y));
  for (size_t i = 0; i < n; i++) {
    CHECK_STATUS_OK(
        calx_value_append(inputs, calx_value_tensor(calx_cpu(used[i]))));
  }
  if (strncmp(code, "Adaptive", 8) == 0) put_adaptive(row, m, used);
  calx_module_visit(m, put_copy, weights);
  put(row, "state", weights);
  put(row, "inputs", inputs);
  put(row, "y", calx_value_tensor(calx_cpu(y)));
  put(row, "dx", calx_value_tensor(calx_cpu(calx_grad(x))));
  CHECK_STATUS_OK(calx_value_append(rows, row));
  calx_module_free(m);
}

// A row: torch.nn's spelling, calx's spelling, the inputs.
#define ROW(code, make, ...)                        \
  add(code, make, (calx_tensor *[]){ __VA_ARGS__ }, \
      sizeof((calx_tensor *[]){ __VA_ARGS__ }) / sizeof(calx_tensor *))
#define L NULL, NULL

// clang-format off
static void of_two(void)
{
  const calx_dims s = CALX_SHAPE(4, 3);
  calx_tensor *x = numbers(s, 0), *y = numbers(s, 7), *p = below_one(s, 3), *q = below_one(s, 9);
  calx_tensor *sign = calx_sign(y), *classes = INTEGERS(2, 0, 1, 2), *weight = positive(CALX_SHAPE(3), 5);
  calx_tensor *lists = calx_reshape(INTEGERS(2, 0, -1, 1, -1, 0, -1, 1, 2, 0, 1, 2), CALX_DIMS(4, 3));
  calx_tensor *pairs = calx_reshape(INTEGERS(2, 0, 1, 2, 0, 0, 1, 1), CALX_DIMS(4, 2)), *spread = INTEGERS(8, 1, 2, 5);
  ROW("L1Loss()", calx_nn_l1_loss(L), x, y);
  ROW("L1Loss(reduction='sum')", calx_nn_l1_loss(L, .reduction = CALX_SUM), x, y);
  ROW("MSELoss()", calx_nn_mse_loss(L), x, y);
  ROW("MSELoss(reduction='none')", calx_nn_mse_loss(L, .reduction = CALX_NONE), x, y);
  ROW("SmoothL1Loss(beta=0.5)", calx_nn_smooth_l1_loss(L, .beta = 0.5), x, y);
  ROW("HuberLoss(delta=0.5)", calx_nn_huber_loss(L, .delta = 0.5), x, y);
  ROW("KLDivLoss(reduction='batchmean')", calx_nn_kl_div_loss(L, .reduction = CALX_BATCH_MEAN), x, p);
  ROW("KLDivLoss(log_target=True)", calx_nn_kl_div_loss(L, .log_target = true), x, y);
  ROW("PoissonNLLLoss()", calx_nn_poisson_nll_loss(L), x, p);
  ROW("PoissonNLLLoss(log_input=False, full=True)", calx_nn_poisson_nll_loss(L, .no_log_input = true, .full = true), positive(s, 1), positive(s, 8));
  ROW("SoftMarginLoss()", calx_nn_soft_margin_loss(L), x, sign);
  ROW("HingeEmbeddingLoss(margin=0.5)", calx_nn_hinge_embedding_loss(L, .margin = 0.5), x, sign);
  ROW("MultiLabelMarginLoss()", calx_nn_multi_label_margin_loss(L), x, lists);
  ROW("MultiLabelSoftMarginLoss()", calx_nn_multi_label_soft_margin_loss(L), x, p);
  ROW("MultiLabelSoftMarginLoss(weight)", calx_nn_multi_label_soft_margin_loss(L, .weight = weight), x, p);
  ROW("MultiMarginLoss(p=2, margin=0.5)", calx_nn_multi_margin_loss(L, .p = 2, .margin = 0.5), x, classes);
  ROW("MultiMarginLoss(weight=weight)", calx_nn_multi_margin_loss(L, .weight = weight), x, classes);
  ROW("NLLLoss()", calx_nn_nll_loss(L), x, classes);
  ROW("NLLLoss(weight, ignore_index=2)", calx_nn_nll_loss(L, .weight = weight, .ignore_index = 2), x, classes);
  ROW("CrossEntropyLoss()", calx_nn_cross_entropy_loss(L), x, classes);
  ROW("CrossEntropyLoss(weight, label_smoothing=0.1)", calx_nn_cross_entropy_loss(L, .weight = weight, .label_smoothing = 0.1), x, classes);
  ROW("CrossEntropyLoss(reduction='none')", calx_nn_cross_entropy_loss(L, .reduction = CALX_NONE), x, calx_softmax(y, 1));
  ROW("LinearCrossEntropyLoss(3, 5)", calx_nn_linear_cross_entropy_loss(L, 3, 5), x, classes);
  ROW("LinearCrossEntropyLoss(3, 3, bias=True, weight=weight, reduction='sum', ignore_index=0)", calx_nn_linear_cross_entropy_loss(L, 3, 3, .bias = true, .weight = weight, .reduction = CALX_SUM, .ignore_index = CALX_ZERO_INT), x, classes);
  ROW("LinearCrossEntropyLoss(3, 3, out_features=(2,), bias=True, label_smoothing=0.25, reduction='none')", calx_nn_linear_cross_entropy_loss(L, 3, 3, .out_features = CALX_DIMS(2), .bias = true, .label_smoothing = 0.25, .reduction = CALX_NONE), x, pairs);
  ROW("AdaptiveLogSoftmaxWithLoss(3, 9, [2])", calx_nn_adaptive_log_softmax_with_loss(L, 3, 9, CALX_DIMS(2)), x, classes);
  ROW("AdaptiveLogSoftmaxWithLoss(3, 9, [2], div_value=1.0)", calx_nn_adaptive_log_softmax_with_loss(L, 3, 9, CALX_DIMS(2), .div_value = 1), x, classes);
  ROW("AdaptiveLogSoftmaxWithLoss(3, 9, [2, 3, 6], div_value=1.4, head_bias=True)", calx_nn_adaptive_log_softmax_with_loss(L, 3, 9, CALX_DIMS(2, 3, 6), .div_value = 1.4, .head_bias = true), x, spread);
  ROW("BCELoss()", calx_nn_bce_loss(L), p, q);
  ROW("BCELoss(weight)", calx_nn_bce_loss(L, .weight = weight), p, q);
  ROW("BCEWithLogitsLoss()", calx_nn_bce_with_logits_loss(L), x, q);
  ROW("BCEWithLogitsLoss(weight=weight, pos_weight=pos_weight)", calx_nn_bce_with_logits_loss(L, .weight = weight, .pos_weight = calx_add(weight, 1)), x, q);
  ROW("BCEWithLogitsLoss(pos_weight=pos_weight, reduction='sum')", calx_nn_bce_with_logits_loss(L, .pos_weight = weight, .reduction = CALX_SUM), x, q);
}

static void of_more(void)
{
  const calx_dims s = CALX_SHAPE(4, 3);
  calx_tensor *x = numbers(s, 0), *y = numbers(s, 7), *z = numbers(s, 11);
  calx_tensor *signs = INTEGERS(1, -1, -1, 1), *sign = calx_sign(y);
  calx_tensor *probs = calx_log_softmax(numbers(CALX_SHAPE(5, 2, 4), 3), 2);
  calx_tensor *labels = calx_reshape(INTEGERS(1, 2, 2, 3, 1, 1), CALX_DIMS(2, 3));
  ROW("MarginRankingLoss()", calx_nn_margin_ranking_loss(L), x, y, sign);
  ROW("MarginRankingLoss(0.3, reduction='none')", calx_nn_margin_ranking_loss(L, .margin = 0.3, .reduction = CALX_NONE), x, y, sign);
  ROW("CosineEmbeddingLoss()", calx_nn_cosine_embedding_loss(L), x, y, signs);
  ROW("CosineEmbeddingLoss(-0.3, reduction='sum')", calx_nn_cosine_embedding_loss(L, .margin = -0.3, .reduction = CALX_SUM), x, y, signs);
  ROW("TripletMarginLoss()", calx_nn_triplet_margin_loss(L), x, y, z);
  ROW("TripletMarginLoss(2.0, p=1.0, eps=0.0, swap=True)", calx_nn_triplet_margin_loss(L, .margin = 2, .p = 1, .eps = CALX_ZERO, .swap = true), x, y, z);
  ROW("TripletMarginWithDistanceLoss()", calx_nn_triplet_margin_with_distance_loss(L), x, y, z);
  ROW("TripletMarginWithDistanceLoss(margin=3.0, swap=True)", calx_nn_triplet_margin_with_distance_loss(L, .margin = 3, .swap = true), x, y, z);
  ROW("GaussianNLLLoss()", calx_nn_gaussian_nll_loss(L), x, y, positive(s, 4));
  ROW("GaussianNLLLoss(full=True, eps=0.5)", calx_nn_gaussian_nll_loss(L, .full = true, .eps = 0.5), x, y, positive(CALX_SHAPE(4, 1), 4));
  ROW("CTCLoss()", calx_nn_ctc_loss(L), probs, labels, INTEGERS(5, 4), INTEGERS(3, 2));
  ROW("CTCLoss(blank=3, reduction='none')", calx_nn_ctc_loss(L, .blank = 3, .reduction = CALX_NONE), probs, calx_sub(labels, 1), INTEGERS(5, 4), INTEGERS(2, 1));
  ROW("CTCLoss(reduction='sum', zero_infinity=True)", calx_nn_ctc_loss(L, .reduction = CALX_SUM, .zero_infinity = true), probs, labels, INTEGERS(5, 2), INTEGERS(3, 3));
}
// clang-format on

static void test_torch(void **state)
{
  (void)state;
  rows = calx_value_container(CALX_KIND_LIST);
  calx_scope *s = calx_scope_begin();
  of_two();
  of_more();
  CHECK_STATUS_OK(calx_scope_end(s));
  torch_check(rows, "losses_torch.py");
}

// ---- what is refused --------------------------------------------------------

static void assert_adaptive_refused(calx_module *m, calx_tensor *x,
                                    calx_tensor *target, const char *words)
{
  calx_scope *s = calx_scope_begin();
  calx_adaptive_log_softmax_forward(m, x, target, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), words);
}

static void test_adaptive_refused(void **state)
{
  (void)state;
  static const calx_dims cutoffs[] = { { .count = 0 },
                                       { .count = 1, .values = { 0 } },
                                       { .count = 1, .values = { 9 } },
                                       { .count = 2, .values = { 3, 3 } },
                                       { .count = 2, .values = { 4, 3 } } };
  calx_module *m;
  for (size_t i = 0; i < sizeof cutoffs / sizeof *cutoffs; i++) {
    m = calx_nn_adaptive_log_softmax_with_loss(L, 4, 9, cutoffs[i]);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "cutoffs",
                 "between 1 and the last class");
    assert_adaptive_refused(m, NULL, NULL, "is no AdaptiveLogSoftmax");
    calx_module_free(m);
  }
  m = calx_nn_adaptive_log_softmax_with_loss(L, 4, 9, CALX_DIMS(3));
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = numbers(CALX_SHAPE(2, 4), 0), *classes = INTEGERS(0, 8);
  assert_adaptive_refused(m, numbers(CALX_SHAPE(2, 3), 0), classes, "(N, 4)");
  assert_adaptive_refused(m, x, INTEGERS(0, 8, 1), "(N, 4)");
  assert_adaptive_refused(m, x, calx_to_dtype(classes, CALX_F32), "i64");
  assert_adaptive_refused(m, x, NULL, "NULL");
  assert_adaptive_refused(NULL, x, classes, "is no AdaptiveLogSoftmax");
  assert_true(isnan(calx_item(calx_forward2(m, x, INTEGERS(0, 9)))));
  assert_true(isnan(calx_item(calx_forward2(m, x, INTEGERS(-1, 0)))));
  assert_true(isfinite(calx_item(calx_forward2(m, x, classes))));
  assert_null(calx_scope_end(s));
  calx_module_free(m);
  m = calx_nn_linear_cross_entropy_loss(L, 3, 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "num_classes 0");
  calx_module_free(m);
  m = calx_nn_linear_cross_entropy_loss(L, 3, 2, .label_smoothing = 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), ".label_smoothing");
  calx_module_free(m);
  m = calx_nn_fractional_max_pool2d(L, CALX_DIMS(2));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), ".output_ratio");
  calx_module_free(m);
}

static void test_refused(void **state)
{
  (void)state;
  calx_module *m = calx_nn_triplet_margin_loss(NULL, NULL);
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = numbers(CALX_SHAPE(2), 0);
  calx_forward(m, x);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "TripletMarginLoss",
               "takes 3 tensors: call calx_forward_n");
  s = calx_scope_begin();
  calx_forward2(m, x, x);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "takes 3 tensors, got 2");
  s = calx_scope_begin();
  calx_forward3(m, x, x, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "the third tensor",
               "is NULL");
  s = calx_scope_begin();
  calx_forward_n(m, &x, 9);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "forward_n: 9 tensors");
  s = calx_scope_begin();
  calx_forward_n(m, NULL, 3);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "and no list");
  calx_module_free(m);
  m = calx_module_new("Odd", NULL, NULL);
  calx_module_set_forward_n(m, 1, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m),
               "module_set_forward_n", "'Odd'");
  calx_module_free(m);
}

// ---- modules of several tensors and their hooks -----------------------------

static calx_tensor *join(void *self, calx_tensor *const *in)
{
  ++*(int *)self;
  return calx_add(calx_mul(in[0], in[1]), in[2]);
}

typedef struct seen {
  size_t pre, post;
  double last;
} seen;

static calx_tensor *before(void *user, calx_module *m, calx_tensor *x)
{
  seen *s = user;
  (void)x;
  calx_tensor **in = calx_module_hook_inputs(m, &s->pre);
  in[2] = calx_mul(in[2], 10);
  return NULL;
}

static calx_tensor *after(void *user, calx_module *m, calx_tensor *x,
                          calx_tensor *y)
{
  seen *s = user;
  calx_tensor **in = calx_module_hook_inputs(m, &s->post);
  assert_ptr_equal(in[0], x);
  s->last = calx_item(in[2]);
  (void)y;
  return NULL;
}

static void test_hooks(void **state)
{
  (void)state;
  int calls = 0;
  seen s = { 0, 0, 0 };
  calx_module *m = calx_module_new("Join", NULL, &calls);
  calx_module_set_forward_n(m, 3, join);
  calx_module_register_forward_pre_hook(m, before, &s, NULL);
  calx_module_register_forward_hook(m, after, &s, NULL);
  calx_scope *scope = calx_scope_begin();
  calx_tensor *two = calx_full(CALX_SCALAR, 2);
  calx_tensor *y = calx_forward3(m, two, two, two);
  CHECK_CLOSE(calx_item(y), 24, 0);
  assert_int_equal(calls, 1);
  assert_int_equal(s.pre, 3);
  assert_int_equal(s.post, 3);
  CHECK_CLOSE(s.last, 20, 0);
  size_t none = 9;
  assert_null(calx_module_hook_inputs(m, &none));
  assert_int_equal(none, 0);
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_torch),
    SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_adaptive_refused),
    SUPPORT_TEST(test_hooks),
  };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
