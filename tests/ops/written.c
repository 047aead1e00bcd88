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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dims),
    cmocka_unit_test(test_probabilities),
    cmocka_unit_test(test_arange),
    cmocka_unit_test(test_optimizers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
