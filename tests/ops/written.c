// A 0 that is written in an option of C's macros is 0, also where the option's
// default is another number, and also from a variable.
#include "calx/calx.h"
#include "support/support.h"

enum { ROWS = 2, COLUMNS = 3 };
static const int none = 0;

// x along its first dimension is x transposed along its last one.
static void equal_turned(calx_tensor *first, calx_tensor *last)
{
  assert_true(calx_equal(first, calx_transpose(last, 0, 1)));
}

static void test_dims(void **state)
{
  (void)state;
  static const float v[] = { 3, 1, 9, 2, 5, 4 };
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_tensor_from(v, CALX_F32, CALX_SHAPE(ROWS, COLUMNS));
  calx_tensor *y = calx_transpose(x, 0, 1), *xi, *yi;
  equal_turned(calx_sort(x, .dim = 0), calx_sort(y));
  equal_turned(calx_sort(x, .dim = none), calx_sort(y, .dim = -1));
  equal_turned(calx_argsort(x, .dim = 0), calx_argsort(y));
  equal_turned(calx_topk(x, 2, .dim = 0, .out_indices = &xi),
               calx_topk(y, 2, .out_indices = &yi));
  equal_turned(xi, yi);
  equal_turned(calx_diff(x, .dim = 0), calx_diff(y));
  equal_turned(calx_cumulative_trapezoid(x, .dim = 0),
               calx_cumulative_trapezoid(y));
  assert_true(calx_equal(calx_trapezoid(x, .dim = 0), calx_trapezoid(y)));
  equal_turned(calx_normalize(x, .dim = 0), calx_normalize(y));
  assert_true(calx_equal(calx_cosine_similarity(x, calx_square(x), .dim = none),
                         calx_cosine_similarity(y, calx_square(y))));
  equal_turned(calx_fft(x, .dim = 0), calx_fft(y));
  equal_turned(calx_rfft(x, .dim = 0), calx_rfft(y));
  // an absent one stays the last, and INT32_MIN is 0 still
  assert_int_equal(calx_tensor_dim(calx_topk(x, 1), 1), 1);
  assert_int_equal(calx_tensor_dim(calx_topk(x, 1, .dim = INT32_MIN), 0), 1);
  assert_null(calx_scope_end(scope));
}

static void test_probabilities(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_ones(CALX_SHAPE(4, 5, 6));
  assert_true(calx_equal(calx_dropout(x, .p = none), x));
  assert_true(calx_equal(calx_dropout1d(x, .p = 0), x));
  assert_true(calx_equal(calx_alpha_dropout(x, .p = 0), x));
  calx_module *m = calx_nn_sequential(NULL, NULL);
  calx_nn_dropout(m, NULL, .p = none);
  calx_nn_dropout1d(m, NULL, .p = 0);
  calx_nn_alpha_dropout(m, NULL, .p = 0);
  assert_true(calx_equal(calx_forward(m, x), x));
  calx_module_free(m);
  m = calx_nn_dropout(NULL, NULL);
  assert_false(calx_equal(calx_forward(m, x), x));
  calx_module_free(m);
  m = calx_nn_transformer_encoder_layer(NULL, NULL, 6, 2, .dropout = none,
                                        .dim_feedforward = 8);
  assert_true(calx_equal(calx_forward(m, x), calx_forward(m, x)));
  calx_module_free(m);
  m = calx_nn_transformer_encoder(NULL, NULL, 6, 2, 1, .dropout = 0,
                                  .dim_feedforward = 8);
  assert_true(calx_equal(calx_forward(m, x), calx_forward(m, x)));
  calx_module_free(m);
  m = calx_nn_transformer_encoder(NULL, NULL, 6, 2, 1, .dim_feedforward = 8);
  assert_false(calx_equal(calx_forward(m, x), calx_forward(m, x)));
  calx_module_free(m);
  assert_null(calx_scope_end(scope));
}

static void counted(calx_tensor *x, calx_dtype dtype, int64_t n, double sum)
{
  assert_int_equal(calx_tensor_dtype(x), dtype);
  assert_int_equal(calx_tensor_numel(x), n);
  assert_true(calx_item(calx_sum(x)) == sum);
}

static void test_arange(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  int five = 5;
  counted(calx_arange(five), CALX_I64, 5, 10);
  counted(calx_arange(5, .dtype = CALX_F32), CALX_F32, 5, 10);
  counted(calx_arange(2, five), CALX_I64, 3, 9);
  counted(calx_arange(2, 5, .dtype = CALX_I32), CALX_I32, 3, 9);
  counted(calx_arange(5, 0, -2), CALX_I64, 3, 9);
  counted(calx_arange(0, 1, 0.25, .dtype = CALX_F64), CALX_F64, 4, 1.5);
  counted(calx_arange(2.5), CALX_F32, 3, 3);
  counted(calx_arange(0, 0), CALX_I64, 0, 0);
  counted(calx_arange(0), CALX_I64, 0, 0);
  assert_true(
      calx_tensor_requires_grad(calx_arange(2.5, .requires_grad = true)));
  assert_null(calx_scope_end(scope));
}

static void check(const calx_optimizer *opt, size_t group, const char *name,
                  double wanted)
{
  double got = calx_optimizer_option(opt, group, name);
  if (got != wanted) fail_msg("%s is %g, not %g", name, got, wanted);
}

static void test_optimizers(void **state)
{
  (void)state;
  calx_module *m = calx_nn_linear(NULL, NULL, 2, 2);
  calx_module *other = calx_nn_linear(NULL, NULL, 2, 2);
  calx_optimizer *opt = calx_adamw(m, .weight_decay = 0.25);
  calx_optimizer_add_param_group(opt, other, .weight_decay = none);
  check(opt, 0, "weight_decay", 0.25);
  check(opt, 1, "weight_decay", 0);
  calx_optimizer_free(opt);
  opt = calx_adamw(m, .weight_decay = 0, .betas = { 0, 0.9 });
  check(opt, 0, "weight_decay", 0);
  check(opt, 0, "betas[0]", 0);
  check(opt, 0, "betas[1]", 0.9);
  calx_optimizer_add_param_group(opt, other);
  check(opt, 1, "betas[0]", 0);
  check(opt, 1, "betas[1]", 0.9);
  calx_optimizer_free(opt);
  opt = calx_adamw(m, .betas = { 0.5 });
  check(opt, 0, "betas[0]", 0.5);
  check(opt, 0, "betas[1]", 0.999);
  check(opt, 0, "weight_decay", 0.01);
  calx_optimizer_add_param_group(opt, other, .betas[1] = 0.7);
  check(opt, 1, "betas[0]", 0.5);
  check(opt, 1, "betas[1]", 0.7);
  calx_optimizer_free(opt);
  opt = calx_sgd(m, .momentum = 0.9);
  calx_optimizer_add_param_group(opt, other, .momentum = 0);
  check(opt, 0, "momentum", 0.9);
  check(opt, 1, "momentum", 0);
  calx_optimizer_free(opt);
  calx_module_free(m);
  calx_module_free(other);
}

// Options of functions whose default is another number.
static void test_functions(void **state)
{
  (void)state;
  static const float v[] = { -2, 4 }, w[] = { 1, 1 };
  static const int64_t classes[] = { 0, 1 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_tensor_from(v, CALX_F32, CALX_SHAPE(2));
  calx_tensor *y = calx_tensor_from(w, CALX_F32, CALX_SHAPE(2));
  calx_tensor *n = calx_tensor_from(classes, CALX_I64, CALX_SHAPE(2));
  calx_tensor *square = calx_eye(2, 2), *scores = calx_zeros(CALX_SHAPE(2, 2));
  CHECK_VALUES(calx_var(x), 1e-6, 18);
  CHECK_VALUES(calx_var(x, .correction = none), 1e-6, 9);
  CHECK_VALUES(calx_leaky_relu(x, .negative_slope = 0), 0, 0, 4);
  CHECK_VALUES(calx_hardtanh(x, .min_val = 0, .max_val = 3), 0, 0, 3);
  CHECK_VALUES(calx_hardshrink(calx_mul(x, 0.1), .lambd = 0), 1e-6, -0.2, 0.4);
  CHECK_VALUES(calx_norm(x, .p = 0), 0, 2);
  CHECK_VALUES(calx_isclose(y, calx_add(y, 1e-7), .rtol = 0, .atol = 0), 0, 0,
               0);
  CHECK_VALUES(calx_addmm(scores, square, square, .alpha = 0), 0, 0, 0, 0, 0);
  CHECK_VALUES(calx_addmm(square, square, square, .beta = none), 0, 1, 0, 0, 1);
  CHECK_VALUES(calx_add(x, y, .alpha = 0), 0, -2, 4);
  CHECK_VALUES(calx_addcmul(x, y, y, .value = 0), 0, -2, 4);
  CHECK_VALUES(calx_smooth_l1_loss(x, y, .beta = 0), 1e-6, 3);
  CHECK_VALUES(calx_hinge_embedding_loss(calx_neg(y), calx_neg(y), .margin = 0),
               1e-6, 1);
  // Class 0 does not count, and row 0 has no gradient.
  CHECK_VALUES(
      calx_cross_entropy(square, n, .ignore_index = 0, .reduction = CALX_SUM),
      1e-5, 0.313262);
  calx_tensor *table = calx_ones(CALX_SHAPE(2, 1), .requires_grad = true);
  calx_backward(calx_sum(calx_embedding(n, table, .padding_idx = none)));
  CHECK_VALUES(calx_grad(table), 0, 0, 1);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// Options of layers and schedules.
static void test_layers(void **state)
{
  (void)state;
  calx_module *flat = calx_nn_flatten(NULL, NULL, .start_dim = 0);
  calx_module *norm = calx_nn_batch_norm1d(NULL, NULL, 1, .momentum = none);
  calx_module *table = calx_nn_embedding(NULL, NULL, 2, 1, .padding_idx = 0);
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = calx_full(CALX_SHAPE(4, 1), 7);
  assert_int_equal(calx_tensor_rank(calx_forward(flat, x)), 1);
  calx_module_train(norm, true);
  calx_forward(norm, x);
  CHECK_VALUES(calx_module_find(norm, "running_mean"), 0, 0);
  CHECK_VALUES(calx_select(calx_module_find(table, "weight"), 0, 0), 0, 0);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_optimizer *opt = calx_sgd(norm, .lr = 1);
  calx_lr_scheduler *r = calx_reduce_lr_on_plateau(opt, .patience = 0);
  calx_lr_scheduler_step_metric(r, 1);
  calx_lr_scheduler_step_metric(r, 2);
  assert_true(fabs(calx_optimizer_lr(opt) - 0.1) < 1e-12);
  calx_lr_scheduler_free(r);
  calx_optimizer_free(opt);
  calx_module_free(flat);
  calx_module_free(norm);
  calx_module_free(table);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dims),      cmocka_unit_test(test_probabilities),
    cmocka_unit_test(test_arange),    cmocka_unit_test(test_optimizers),
    cmocka_unit_test(test_functions), cmocka_unit_test(test_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
