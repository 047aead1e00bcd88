// refused: layers and calls that do not fit are told, and nothing crashes. On
// the fake plugin: nothing here depends on numbers.
#include "calx/autograd.h"
#include "calx/calx.h"
#include "support/support.h"

#define L NULL, NULL

// The error names this line: that of the call.
#define check(make, call, told) check_at(make, call, told, __LINE__)

static void check_at(calx_module *m, const char *call, const char *told,
                     int line)
{
  calx_status *status = calx_module_error(m);
  const calx_site *site = calx_status_site(status);
  assert_non_null(site);
  if (line > 0) assert_int_equal(site->line, line);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, status, call, told, "refused.c:");
  calx_module_free(m);
}

// clang-format off
static void test_arguments(void **state)
{
  (void)state;
  check(calx_nn_bilinear(L, 0, 1, 2), "bilinear", "positive");
  check(calx_nn_conv1d(L, 2, 2, 1, .stride = { 1, 2 }), "conv1d", "stride has 2 numbers for 1");
  check(calx_nn_conv1d(L, 2, 2, 1, .kernel_width = 2), "conv1d", ".kernel_width");
  check(calx_nn_conv2d(L, 2, 2, 1, .kernel_height = 2), "conv2d", ".kernel_height");
  check(calx_nn_conv2d(L, 2, 2, 1, .output_padding = 1), "conv2d", ".output_padding");
  check(calx_nn_conv2d(L, 2, 2, 3, .stride = 2, .padding = CALX_PADDING_SAME), "conv2d", "wants stride 1, got 2");
  check(calx_nn_conv2d(L, 2, 2, 3, .padding_mode = (calx_pad_mode)9), "conv2d", ".padding_mode 9");
  check(calx_nn_conv3d(L, 2, 2, 3, .padding = -2), "conv3d", "padding -2");
  check(calx_nn_conv_transpose2d(L, 2, 2, 3, .padding = CALX_PADDING_SAME), "conv_transpose2d", "padding -1");
  check(calx_nn_conv_transpose2d(L, 2, 2, 3, .padding_mode = CALX_PAD_REFLECT), "conv_transpose2d", "pads with zeros");
  check(calx_nn_max_pool2d(L, 0), "max_pool2d", "a kernel of 0");
  check(calx_nn_max_pool2d(L, 2, .out_indices = &(calx_tensor *){ NULL }), "max_pool2d", ".out_indices");
  check(calx_nn_max_pool3d(L, 0), "max_pool3d", "a kernel of 0");
  check(calx_nn_avg_pool2d(L, .stride = 2), "avg_pool2d", "a kernel of 0");
  check(calx_nn_lp_pool1d(L, (double)NAN, .kernel_size = 2), "lp_pool1d", "type nan");
  check(calx_nn_lp_pool1d(L, 2), "lp_pool1d", "a kernel of 0");
  check(calx_nn_adaptive_avg_pool2d(L, CALX_SHAPE(1, 2, 3)), "adaptive_avg_pool2d", "one number or 2");
  check(calx_nn_adaptive_max_pool1d(L, CALX_SHAPE(-2)), "adaptive_max_pool1d", "a size or -1");
  check(calx_nn_zero_pad2d(L, CALX_SHAPE(1, 2)), "zero_pad2d", "2 numbers, 1 or 4");
  check(calx_nn_upsample(L), "upsample", "one of");
  check(calx_nn_upsample(L, .output_size = CALX_SHAPE(2), .scale_factor = 2), "upsample", "one of");
  check(calx_nn_upsample(L, .scale_factor = { (double)NAN }), "upsample", "nan");
  check(calx_nn_unfold(L, CALX_SHAPE(1, 2, 3)), "unfold", "3 sizes");
  check(calx_nn_pixel_shuffle(L, 0), "pixel_shuffle", "upscale_factor 0");
  check(calx_nn_channel_shuffle(L, -1), "channel_shuffle", "groups -1");
  check(calx_nn_batch_norm1d(L, 2, .eps = (double)NAN), "batch_norm1d", "eps nan");
  check(calx_nn_instance_norm2d(L, 0), "instance_norm2d", "0 features");
  check(calx_nn_layer_norm(L, CALX_SCALAR), "layer_norm", "0 sizes");
  check(calx_nn_layer_norm(L, CALX_SHAPE(2, 0)), "layer_norm", "size 0");
  check(calx_nn_rms_norm(L, CALX_SHAPE(2), .no_bias = true), "rms_norm", ".no_bias");
  check(calx_nn_group_norm(L, 3, 4), "group_norm", "3 groups do not divide 4");
  check(calx_nn_layer_norm(L, CALX_SHAPE(2), .eps = (double)NAN), "layer_norm", "eps");
  check(calx_nn_local_response_norm(L, 0), "local_response_norm", "0 channels");
  check(calx_nn_embedding(L, 5, 0), "embedding", "5 rows of 0");
  check(calx_nn_embedding(L, 5, 2, .padding_idx = 5), "embedding", "padding_idx 5");
  check(calx_nn_embedding(L, 5, 2, .padding_idx = -6), "embedding", "padding_idx -6");
  check(calx_nn_embedding(L, 5, 2, .max_norm = -1), "embedding", "max_norm -1");
  check(calx_nn_embedding(L, 5, 2, .dtype = CALX_I32), "embedding", "i32");
  check(calx_nn_embedding_bag(L, 5, 2, .mode = (calx_embedding_bag_mode)7), "embedding_bag", "mode 7");
  check(calx_nn_dropout2d(L, .p = 1.5), "dropout2d", "1.5 is not in [0, 1]");
  check(calx_nn_alpha_dropout(L, .p = (double)NAN), "alpha_dropout", "[0, 1]");
  check(calx_nn_prelu(L, .num_parameters = -1), "prelu", "-1 parameters");
  check(calx_nn_rrelu(L, .lower = 2, .upper = 1), "rrelu", "lower 2");
  check_at(calx_nn_gelu_with(L, &(calx_gelu_options){ .size = 4096 }), "gelu", "options of 4096 bytes", 0);
  check(calx_nn_unflatten(L, 1, CALX_SCALAR), "unflatten", "0 sizes");
}
// clang-format on

// A layer with a root of its own, called with a tensor of ones of this shape.
static void check_call(calx_module *m, calx_dims shape, const char *wanted)
{
  CHECK_STATUS_OK(calx_module_error(m));
  calx_scope *s = calx_scope_begin();
  calx_forward(m, calx_ones(shape));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), wanted);
  s = calx_scope_begin();
  calx_forward(m, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(s), "NULL");
  calx_module_free(m);
}

static void test_tensors(void **state)
{
  (void)state;
  const calx_dims x = CALX_SHAPE(2, 3, 4);
  check_call(calx_nn_linear(L, 5, 2), x, "wants (…, 5), got f32[2,3,4]");
  check_call(calx_nn_conv1d(L, 2, 2, 1), x, "wants (N, 2, L)");
  check_call(calx_nn_conv_transpose2d(L, 3, 2, 1), x, "wants (N, 3, H, W)");
  check_call(calx_nn_conv3d(L, 3, 2, 1), x, "wants (N, 3, D, H, W)");
  check_call(calx_nn_batch_norm1d(L, 2), x, "wants (N, 2) or with L");
  check_call(calx_nn_batch_norm3d(L, 3), x, "wants (N, 3, D, H, W)");
  check_call(calx_nn_instance_norm2d(L, 3), x, "wants (N, 3, H, W)");
  check_call(calx_nn_layer_norm(L, CALX_SHAPE(3, 5)), x, "wants (…, 3, 5)");
  check_call(calx_nn_rms_norm(L, CALX_SHAPE(1, 2, 3, 4)), x, "wants (…, 1");
  check_call(calx_nn_group_norm(L, 2, 4), x, "wants (N, 4, …)");
  check_call(calx_nn_local_response_norm(L, 2), CALX_SHAPE(2, 3), "(N, C, L");
  check_call(calx_nn_dropout3d(L), x, "wants (N, C, D, H, W)");
  check_call(calx_nn_feature_alpha_dropout(L), CALX_SHAPE(3), "wants (N, C, …");
  check_call(calx_nn_softmax2d(L), CALX_SHAPE(2, 3), "wants (N, C, H, W)");
  check_call(calx_nn_max_pool3d(L, 1), x,
             "max_pool3d: f32[2,3,4], floating images with 3 spatial");
  check_call(calx_nn_max_pool3d(L, 2, .padding = 2), CALX_SHAPE(1, 4, 4, 4),
             "max_pool3d: a kernel of 2: kernel, stride and dilation");
  check_call(calx_nn_max_pool2d(L, 9), x, "max_pool2d");
  check_call(calx_nn_avg_pool1d(L, .kernel_size = 9), x, "avg_pool1d");
  check_call(calx_nn_adaptive_avg_pool3d(L, CALX_SHAPE(1)), CALX_SHAPE(2, 3),
             "adaptive_avg_pool");
  check_call(calx_nn_reflection_pad1d(L, CALX_SHAPE(1)), CALX_SHAPE(4),
             "wants (N, C, L)");
  check_call(calx_nn_upsample(L, .output_size = CALX_SHAPE(2, 2)), x,
             "wants (N, C, H, W)");
  check_call(calx_nn_pixel_unshuffle(L, 3), x, "wants (…, C, H 3, W 3)");
  check_call(calx_nn_channel_shuffle(L, 2), x, "wants (N, 2 C, …)");
  check_call(calx_nn_embedding(L, 2, 2), x, "embedding");
  check_call(
      calx_nn_embedding_bag(L, 2, 2), x,
      "embedding_bag: the index f32[2,3,4] and the weight f32[2,2]: integers (bags, indices)");
  check_call(calx_nn_identity(L), CALX_SHAPE(-1), "");
}

static void test_two_tensors(void **state)
{
  (void)state;
  calx_module *m = calx_nn_bilinear(L, 3, 4, 2), *one = calx_nn_relu(L);
  calx_tensor *x = calx_ones(CALX_SHAPE(2, 3)),
              *y = calx_ones(CALX_SHAPE(2, 5));
  calx_forward2(m, x, y);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "wants (…, 3) and (…, 4), got f32[2,5]");
  calx_forward(m, x);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "calx_forward2");
  calx_forward2(m, x, NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  calx_forward2(one, x, y);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "takes one tensor");
  calx_forward2(NULL, x, y);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  calx_module_free(m);
  calx_module_free(one);
}

static void test_ties(void **state)
{
  (void)state;
  struct {
    const char *path, *told;
  } cases[] = { { "b.bias", "is f32[3], what it is to share is f32[3,2]" },
                { "c.weight", "has no module 'c'" },
                { "b", "is no parameter but a module" },
                { "bn.running_mean", "is no parameter but a buffer" },
                { NULL, "the path is NULL" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calx_module *m = calx_module_new("Net", NULL, NULL);
    calx_nn_linear(m, "a", 2, 3);
    calx_nn_linear(m, "b", 2, 3);
    calx_nn_batch_norm1d(m, "bn", 3);
    calx_module_tie(m, cases[i].path, calx_module_find(m, "a.weight"));
    check_at(m, "module_tie", cases[i].told, 0);
  }
  calx_module *m = calx_nn_linear(L, 2, 3);
  calx_module_tie(m, "weight", calx_ones(CALX_SHAPE(3, 2)));
  check_at(m, "module_tie", "no parameter of a model", 0);
  m = calx_nn_linear(L, 2, 3);
  calx_module_tie(m, "weight", NULL);
  check_at(m, "module_tie", "the tensor is NULL", 0);
  calx_module_tie(NULL, "weight", NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
}

static void test_parametrizations(void **state)
{
  (void)state;
  calx_module *m = calx_nn_linear(L, 2, 3);
  calx_weight_norm(m, .name = "scale");
  check_at(m, "weight_norm", "has no parameter 'scale'", 0);
  m = calx_nn_linear(L, 2, 3);
  calx_weight_norm(m, .dim = 2);
  check_at(m, "weight_norm", "has no dimension 2", 0);
  m = calx_nn_linear(L, 2, 3);
  calx_weight_norm(m);
  calx_spectral_norm(m);
  check_at(m, "spectral_norm", "but a computed one", 0);
  m = calx_nn_linear(L, 2, 3);
  calx_spectral_norm(m, .n_power_iterations = -1);
  check_at(m, "spectral_norm", "-1 iterations", 0);
  m = calx_nn_linear(L, 2, 3);
  calx_remove_parametrizations(m, "weight");
  check_at(m, "remove_parametrizations", "computes no parameter 'weight'", 0);
  calx_weight_norm(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
}

static void test_initial_values(void **state)
{
  (void)state;
  calx_tensor *vector = calx_ones(CALX_SHAPE(3));
  calx_tensor *whole = calx_arange(0, 3, 1);
  calx_tensor *matrix = calx_ones(CALX_SHAPE(3, 3));
  calx_init_ones(NULL);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "init_ones");
  calx_init_zeros(whole);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "init_zeros",
               "i64[3]");
  calx_init_xavier_normal(vector, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "rank 2");
  calx_init_dirac(matrix, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "rank 3 to 5");
  calx_init_dirac(calx_ones(CALX_SHAPE(3, 2, 2)), 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "groups");
  calx_init_uniform(matrix, 2, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "a <= b");
  calx_init_normal(matrix, 0, (double)NAN);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "init_normal");
  calx_init_trunc_normal(matrix, 0, 1, 2, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "a < b");
  calx_init_sparse(matrix, 1.5, 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "sparsity");
  calx_init_kaiming_normal(matrix, .nonlinearity = (calx_nonlinearity)40);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "nonlinearity 40");
  calx_init_orthogonal(matrix, (double)INFINITY);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "finite");
}

static void test_texts(void **state)
{
  (void)state;
  assert_null(calx_module_str(NULL));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "module_str");
  assert_null(calx_summary_str(NULL, CALX_SHAPE(1)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "no summary");
  calx_module *m = calx_nn_sequential(L);
  calx_module *bn = calx_nn_batch_norm2d(m, NULL, 3);
  assert_null(calx_summary_str(m, CALX_SHAPE(1, 2)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(),
               "layer '0' (BatchNorm2d) wants (N, 3, H, W)");
  assert_true(calx_module_is_training(bn));
  calx_module_free(m);
}

// Each function of a model takes NULL.
static void test_nothing(void **state)
{
  (void)state;
  assert_int_equal(calx_module_child_count(NULL), 0);
  assert_null(calx_module_child_at(NULL, 0));
  assert_null(calx_module_get(NULL, "a"));
  calx_module_apply(NULL, NULL, NULL);
  calx_module_parameters(NULL, NULL, NULL);
  calx_module_requires_grad(NULL, true);
  calx_module *m = calx_nn_linear(L, 1, 1);
  assert_null(calx_module_get(m, NULL));
  assert_ptr_equal(calx_module_get(m, ""), m);
  assert_null(calx_module_get(m, "weight"));
  assert_null(calx_module_child_at(m, 0));
  calx_module_free(m);
}

static void make_all(calx_module *m)
{
  calx_module *list = calx_nn_sequential(m, "list");
  calx_module *fc = calx_nn_linear(list, NULL, 2, 3);
  calx_nn_embedding(list, NULL, 3, 2, .padding_idx = 1);
  calx_nn_instance_norm1d(list, NULL, 2, .affine = true,
                          .track_running_stats = true);
  calx_weight_norm(fc);
  calx_module *tied = calx_nn_linear(m, "tied", 2, 3);
  calx_spectral_norm(calx_nn_conv1d(m, "conv", 2, 3, 2));
  calx_module_tie(m, "second", calx_module_find(tied, "weight"));
  calx_string_free(calx_module_str(m));
  calx_string_free(calx_summary_str(list, CALX_SHAPE(1, 2)));
  calx_remove_parametrizations(fc, "weight");
}

static void test_out_of_memory(void **state)
{
  (void)state;
  calx_device *device;
  CHECK_STATUS_OK(calx_device_open("xla", &device));
  // Some failures have no consequence: a text that only names a kind.
  long failures = 0, quiet = 0;
  for (long i = 0; quiet < 50 && i < 20000; i++) {
    calx_scope *s = calx_scope_begin();
    cx_alloc_fail_at(i);
    calx_module *root = calx_module_new("Net", NULL, NULL);
    make_all(root);
    cx_alloc_fail_at(-1);
    calx_status *status = calx_module_error(root);
    bool failed = status != NULL;
    calx_status_free(status);
    calx_module_free(root);
    status = calx_scope_end(s);
    failed = failed || calx_status_code(status) == CALX_RESOURCE_EXHAUSTED;
    calx_status_free(status);
    failures += failed;
    quiet = failed ? 0 : quiet + 1;
  }
  print_message("  %ld allocations failed, one at a time\n", failures);
  assert_in_range(failures, 300, 19000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_arguments),
    SUPPORT_TEST(test_tensors),
    SUPPORT_TEST(test_two_tensors),
    SUPPORT_TEST(test_ties),
    SUPPORT_TEST(test_parametrizations),
    SUPPORT_TEST(test_initial_values),
    SUPPORT_TEST(test_texts),
    SUPPORT_TEST(test_nothing),
    SUPPORT_TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, support_setup_fake, NULL);
}
