// module: the registry, its names and its failures. On the fake plugin: nothing
// here depends on numbers.
#include "calx/autograd.h"
#include "calx/nn.h"
#include "support/support.h"

// ---- names ------------------------------------------------------------------

typedef struct names {
  char text[2048];
  size_t n;
} names;

static void add_name(void *user, const char *path, calx_entry_kind kind,
                     calx_tensor *tensor)
{
  names *all = user;
  assert_non_null(tensor);
  all->n++;
  size_t used = strlen(all->text);
  snprintf(all->text + used, sizeof all->text - used, "%s%s%s",
           used != 0 ? " " : "", kind == CALX_BUFFER ? "=" : "", path);
}

static void check_names(calx_module *m, const char *wanted)
{
  names all = { "", 0 };
  calx_module_visit(m, add_name, &all);
  assert_string_equal(all.text, wanted);
}

// PyTorch's state dict of the same model, in its order.
static void test_state_dict_names(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_nn_conv2d(root, "conv1", 1, 10, 5);
  calx_nn_batch_norm2d(root, "bn1", 10);
  calx_module *head = calx_module_child(root, "head", "Head", NULL, NULL);
  calx_nn_linear(head, "fc", 320, 50);
  calx_nn_linear(head, "out", 50, 10, .no_bias = true);
  CHECK_STATUS_OK(calx_module_error(root));
  check_names(root,
              "conv1.weight conv1.bias bn1.weight bn1.bias =bn1.running_mean "
              "=bn1.running_var =bn1.num_batches_tracked head.fc.weight "
              "head.fc.bias head.out.weight");
  check_names(head, "fc.weight fc.bias out.weight");
  calx_tensor *weight = calx_module_find(root, "head.fc.weight");
  assert_ptr_equal(calx_module_find(head, "fc.weight"), weight);
  assert_null(calx_module_find(root, "fc.weight"));
  assert_null(calx_module_find(root, "head.fc"));
  assert_null(calx_module_find(root, NULL));
  assert_string_equal(cx_lazy_tensor_name(weight), "head.fc.weight");
  assert_string_equal(calx_module_kind(head), "Head");
  int64_t linear = 50 * 320 + 50 + 10 * 50;
  assert_int_equal(calx_module_param_count(root), 250 + 10 + 20 + linear);
  assert_int_equal(calx_module_param_count(head), linear);
  calx_module_free(head);  // a child: nothing happens
  calx_module_free(root);
  calx_module_free(NULL);
}

static void test_parameters_are_leaves(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_module *bn = calx_nn_batch_norm2d(root, "bn", 3);
  calx_tensor *weight = calx_module_find(bn, "weight");
  calx_tensor *mean = calx_module_find(bn, "running_mean");
  calx_tensor *tracked = calx_module_find(bn, "num_batches_tracked");
  assert_true(calx_tensor_requires_grad(weight));
  assert_false(calx_tensor_requires_grad(mean));
  assert_int_equal(calx_tensor_dtype(tracked), CALX_I64);
  assert_int_equal(calx_tensor_rank(tracked), 0);
  calx_module_free(root);
}

static void test_types_of_layers(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_nn_linear(root, "a", 2, 3, .dtype = CALX_BF16);
  calx_nn_conv2d(root, "b", 2, 3, 1, .dtype = CALX_F64);
  calx_nn_batch_norm2d(root, "c", 2, .dtype = CALX_F64);
  CHECK_STATUS_OK(calx_module_error(root));
  static const char *const f64[] = { "b.weight", "b.bias", "c.weight",
                                     "c.running_var" };
  for (size_t i = 0; i < 4; i++) {
    calx_tensor *t = calx_module_find(root, f64[i]);
    assert_int_equal(calx_tensor_dtype(t), CALX_F64);
  }
  calx_tensor *a = calx_module_find(root, "a.weight");
  assert_int_equal(calx_tensor_dtype(a), CALX_BF16);
  calx_module_free(root);
}

static void test_shapes_of_layers(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_nn_conv2d(root, "a", 4, 6, 3, .kernel_width = 5, .groups = 2,
                 .no_bias = true);
  calx_nn_batch_norm2d(root, "b", 4, .no_affine = true);
  calx_nn_batch_norm2d(root, "c", 4, .no_track_running_stats = true);
  CHECK_STATUS_OK(calx_module_error(root));
  check_names(root,
              "a.weight =b.running_mean =b.running_var =b.num_batches_tracked "
              "c.weight c.bias");
  calx_dims d = calx_tensor_shape(calx_module_find(root, "a.weight"));
  static const int64_t wanted[] = { 6, 2, 3, 5 };
  assert_int_equal(d.count, 4);
  assert_memory_equal(d.values, wanted, sizeof wanted);
  calx_module_free(root);
}

// ---- failures ---------------------------------------------------------------

// The root's first failure stays, wherever it happened, and nothing crashes.
static void test_names_that_are_refused(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_module *a = calx_module_child(root, "a", "Block", NULL, NULL);
  calx_nn_linear(a, "fc", 2, 2);
  calx_module *again = calx_nn_linear(a, "fc", 3, 3);
  assert_non_null(again);
  calx_nn_linear(a, "b.c", 2, 2);
  CHECK_STATUS(CALX_ALREADY_EXISTS, calx_module_error(root),
               "the name 'fc' is used twice in 'a' (Block)");
  CHECK_STATUS(CALX_ALREADY_EXISTS, calx_module_error(a), "'fc'");
  check_names(root, "a.fc.weight a.fc.bias");
  calx_scope *s = calx_scope_begin();
  calx_forward(again, calx_ones(CALX_SHAPE(1, 3)));
  CHECK_STATUS(CALX_ALREADY_EXISTS, calx_scope_end(s), "'fc' is used twice",
               "so there is no forward of");
  calx_module_free(root);

  static const char *const bad[] = { "b.c", "", NULL };
  static const char *const told[] = { "'b.c' in 'Net' (Net) has a dot",
                                      "needs a name", "needs a name" };
  for (int i = 0; i < 3; i++) {
    root = calx_module_new("Net", NULL, NULL);
    calx_module_child(root, bad[i], "Block", NULL, NULL);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(root), told[i]);
    calx_module_free(root);
  }
}

static void test_tensors_that_are_refused(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  float v[2] = { 1, 2 };
  calx_tensor *host = calx_host_tensor(v, CALX_F32, CALX_SHAPE(2));
  calx_tensor *whole = calx_arange(0, 2, 1);
  struct {
    calx_tensor *init;
    const char *told;
  } cases[] = { { NULL, "the value is NULL" },
                { host, "Input tensor is not an XLA tensor" },
                { whole, "the value is i64[2]" } };
  for (int i = 0; i < 3; i++) {
    calx_module *m = calx_module_new("Net", NULL, NULL);
    calx_tensor *t = calx_module_param(m, "w", cases[i].init);
    assert_true(cx_lazy_tensor_poisoned(t));
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), cases[i].told,
                 "in making 'w'");
    check_names(m, "");
    calx_module_free(m);
  }
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_module_buffer(m, "count", whole);  // a buffer may be of any type
  CHECK_STATUS_OK(calx_module_error(m));
  calx_module_param(m, "count", calx_ones(CALX_SHAPE(1)));
  CHECK_STATUS(CALX_ALREADY_EXISTS, calx_module_error(m), "'count'");
  calx_module_free(m);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// What is registered is a value of its own: no weak number, nothing on a tape.
static void test_parameter_takes_the_value(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_tensor *w = calx_module_param(m, "w", calx_ones(CALX_SHAPE(2)));
  calx_tensor *copy = calx_module_param(m, "copy", calx_neg(w));
  calx_tensor *buffer = calx_module_buffer(m, "buffer", calx_neg(w));
  calx_tensor *scale = calx_module_param(m, "scale", calx_scalar(2));
  CHECK_STATUS_OK(calx_module_error(m));
  assert_false(cx_lazy_tensor_is(scale, CX_LAZY_T_WEAK));
  assert_false(calx_tensor_requires_grad(buffer));
  calx_backward(calx_sum(calx_mul(calx_mul(copy, buffer), scale)));
  assert_non_null(calx_grad(copy));
  assert_non_null(calx_grad(scale));
  assert_null(calx_grad(w));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_module_free(m);
}

static void test_layers_that_are_refused(void **state)
{
  (void)state;
  calx_module *m = calx_nn_linear(NULL, NULL, -1, 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "linear", "-1");
  calx_module_free(m);
  m = calx_nn_linear(NULL, NULL, 1, 2, .dtype = CALX_I32);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "linear", "i32");
  calx_module_free(m);
  m = calx_nn_linear_with(NULL, NULL, 1, 2,
                          &(calx_linear_options){ .size = 4096 });
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m),
               "options of 4096 bytes");
  calx_module_free(m);
  m = calx_nn_conv2d(NULL, NULL, 3, 8, 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "conv2d",
               "a kernel of 0");
  calx_module_free(m);
  m = calx_nn_conv2d(NULL, NULL, 3, 8, 1, .groups = 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "2 groups",
               "3 channels");
  calx_module_free(m);
  m = calx_nn_conv2d(NULL, NULL, 3, 8, 1, .stride = { -1 });
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "stride -1");
  calx_module_free(m);
  m = calx_nn_conv2d(NULL, NULL, 3, 8, 1, .dtype = CALX_BOOL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "bool");
  calx_module_free(m);
  m = calx_nn_batch_norm2d(NULL, NULL, 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "0 features");
  calx_module_free(m);
  m = calx_nn_batch_norm2d(NULL, NULL, 2, .eps = -1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "eps -1");
  calx_module_free(m);
  m = calx_nn_linear(NULL, NULL, INT64_C(1) << 40, INT64_C(1) << 40);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(m), "size");
  calx_module_free(m);
}

static void test_depth_is_bounded(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL), *m = root;
  for (int i = 0; i < 100; i++) {
    m = calx_module_child(m, "m", "Block", NULL, NULL);
  }
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(root), "64 deep");
  calx_module_free(root);
}

// ---- calling ----------------------------------------------------------------

static calx_tensor *negate(void *self, calx_tensor *x)
{
  *(int *)self += 1;
  return calx_neg(x);
}

static calx_tensor *nothing(void *self, calx_tensor *x)
{
  (void)self;
  (void)x;
  return NULL;
}

static void test_forward(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  int calls = 0;
  calx_module *root = calx_module_new("Net", negate, &calls);
  calx_module *inner = calx_module_child(root, "inner", "Neg", negate, &calls);
  calx_tensor *y = calx_forward(inner, calx_ones(CALX_SHAPE(2)));
  assert_int_equal(calls, 1);
  assert_string_equal(cx_lazy_tensor_value(y).node->module, "inner");
  assert_null(cx_lazy_tensor_value(calx_neg(y)).node->module);
  y = calx_forward(root, y);
  assert_null(cx_lazy_tensor_value(y).node->module);
  CHECK_STATUS_OK(calx_scope_end(s));

  s = calx_scope_begin();
  calx_module *plain = calx_module_child(root, "plain", "Block", NULL, NULL);
  calx_forward(plain, NULL);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(s),
               "module 'plain' (Block) was made without a function");
  s = calx_scope_begin();
  calx_module *empty = calx_module_child(root, "empty", "B", nothing, NULL);
  calx_forward(empty, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "'empty' (B) gave NULL");
  s = calx_scope_begin();
  calx_forward(NULL, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "NULL");
  calx_module_free(root);
}

static void test_layers_say_what_they_want(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_module *fc = calx_nn_linear(root, "fc1", 300, 50);
  calx_module *conv = calx_nn_conv2d(root, "conv1", 3, 8, 3);
  calx_module *bn = calx_nn_batch_norm2d(root, "bn1", 8);
  CHECK_STATUS_OK(calx_module_error(root));
  calx_scope *s = calx_scope_begin();
  calx_tensor *x =
      calx_flatten(calx_ones(CALX_SHAPE(128, 20, 4, 4)), .start_dim = 1);
  calx_forward(fc, x);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "module.c:",
               "layer 'fc1' (Linear) wants (…, 300), got f32[128,320] (made "
               "by ",
               "module.c:");
  s = calx_scope_begin();
  calx_forward(conv, calx_ones(CALX_SHAPE(2, 4, 8, 8)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "layer 'conv1' (Conv2d) wants (N, 3, H, W), got f32[2,4,8,8]");
  s = calx_scope_begin();
  calx_forward(conv, calx_ones(CALX_SHAPE(3, 8)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "f32[3,8]");
  s = calx_scope_begin();
  calx_forward(bn, calx_ones(CALX_SHAPE(2, 8)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s),
               "layer 'bn1' (BatchNorm2d) wants (N, 8, H, W), got f32[2,8]");
  s = calx_scope_begin();
  calx_forward(fc, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "linear", "NULL");
  calx_module_free(root);
}

static void test_train_and_eval(void **state)
{
  (void)state;
  calx_module *root = calx_module_new("Net", NULL, NULL);
  calx_module *block = calx_module_child(root, "block", "Block", NULL, NULL);
  calx_module *bn = calx_nn_batch_norm2d(block, "bn", 2);
  assert_true(calx_module_is_training(bn));
  calx_module_train(root, false);
  assert_false(calx_module_is_training(root));
  assert_false(calx_module_is_training(block));
  assert_false(calx_module_is_training(bn));
  calx_module *late = calx_nn_batch_norm2d(block, "late", 2);
  assert_false(calx_module_is_training(late));
  calx_module_train(block, true);
  assert_false(calx_module_is_training(root));
  assert_true(calx_module_is_training(bn));
  assert_false(calx_module_is_training(NULL));
  calx_module_free(root);
}

// A model outlives a step that fails, even its first.
static void test_failed_first_step(void **state)
{
  (void)state;
  calx_module *fc = calx_nn_linear(NULL, NULL, 3, 2);
  calx_tensor *w = calx_module_find(fc, "weight");
  const cx_graph_node *initial = cx_lazy_tensor_value(w).node;
  calx_scope *s = calx_scope_begin();
  calx_sync(calx_forward(fc, calx_ones(CALX_SHAPE(1, 4))));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "wants (…, 3)");
  assert_ptr_equal(cx_lazy_tensor_value(w).node, initial);
  s = calx_scope_begin();
  calx_sync(calx_forward(fc, calx_ones(CALX_SHAPE(1, 3))));
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_true((cx_graph_node_flags(cx_lazy_tensor_value(w).node) &
               CX_GRAPH_NODE_DATA) != 0);
  calx_module_free(fc);
}

// ---- no memory --------------------------------------------------------------

static void test_out_of_memory(void **state)
{
  (void)state;
  calx_device *device;
  CHECK_STATUS_OK(calx_device_open("xla", &device));
  long failures = 0;
  for (bool failed = true; failed; failures += failed) {
    calx_scope *s = calx_scope_begin();
    cx_alloc_fail_at(failures);
    calx_module *root = calx_module_new("Net", NULL, NULL);
    calx_module *block = calx_module_child(root, "block", "B", NULL, NULL);
    calx_module *conv = calx_nn_conv2d(block, "conv", 1, 2, 3);
    calx_nn_batch_norm2d(block, "bn", 2);
    calx_nn_linear(root, "fc", 2, 2);
    cx_alloc_fail_at(-1);
    calx_status *status = calx_module_error(root);
    failed = status != NULL;
    if (failed) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
      calx_forward(conv, calx_ones(CALX_SHAPE(1, 1, 4, 4)));
      assert_non_null(calx_scope_error());
    }
    calx_status_free(status);
    calx_module_train(conv, false);
    calx_module_free(root);
    calx_status_free(calx_scope_end(s));
  }
  print_message("  %ld allocations failed, one at a time\n", failures);
  assert_true(failures > 50);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_state_dict_names),
    SUPPORT_TEST(test_parameters_are_leaves),
    SUPPORT_TEST(test_types_of_layers),
    SUPPORT_TEST(test_shapes_of_layers),
    SUPPORT_TEST(test_names_that_are_refused),
    SUPPORT_TEST(test_tensors_that_are_refused),
    SUPPORT_TEST(test_parameter_takes_the_value),
    SUPPORT_TEST(test_layers_that_are_refused),
    SUPPORT_TEST(test_depth_is_bounded),
    SUPPORT_TEST(test_forward),
    SUPPORT_TEST(test_layers_say_what_they_want),
    SUPPORT_TEST(test_train_and_eval),
    SUPPORT_TEST(test_failed_first_step),
    SUPPORT_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
