// Training with parameters that are split among four devices, as on one device,
// and what each device holds. On our engine and XLA's.
#include "sharding.h"
#include "support/long.h"

// ---- training ---------------------------------------------------------------

enum { BATCH = 8, IN = 12, HIDDEN = 16, OUT = 4, STEPS = 6 };
enum { NUMBERS = IN * HIDDEN + 2 * HIDDEN + HIDDEN + HIDDEN * OUT + OUT };

typedef enum how { ALONE, FSDP, TENSOR, BOTH } how;

typedef struct result {
  double losses[STEPS], numbers[NUMBERS];
  long compiles, late_compiles;  // in all, and from the third step on
} result;

static void mark_all(void *user, const char *path, calx_entry_kind kind,
                     calx_tensor *t)
{
  const calx_mesh *mesh = user;
  (void)path;
  (void)kind;
  if (calx_tensor_rank(t) == 2)
    calx_mark_sharding(t, mesh, CALX_AXES("data", NULL));
  else
    calx_mark_sharding(t, mesh, CALX_AXES("data"));
}

static void mark_model(calx_module *net, calx_mesh *mesh, how which)
{
  if (which == FSDP) calx_module_parameters(net, mark_all, mesh);
  if (which != TENSOR && which != BOTH) return;
  // Columns of the first layer, rows of the second: one sum over the devices.
  calx_mark_sharding(calx_module_find(net, "0.weight"), mesh,
                     CALX_AXES("model", which == BOTH ? "data" : NULL));
  calx_mark_sharding(calx_module_find(net, "0.bias"), mesh, CALX_AXES("model"));
  calx_mark_sharding(calx_module_find(net, "3.weight"), mesh,
                     CALX_AXES(NULL, "model"));
}

static calx_module *new_net(calx_dtype dtype)
{
  calx_manual_seed(7);
  calx_module *net = calx_nn_sequential(NULL, NULL);
  calx_nn_linear(net, NULL, IN, HIDDEN);
  calx_nn_gelu(net, NULL);
  calx_nn_layer_norm(net, NULL, CALX_SHAPE(HIDDEN));
  calx_nn_linear(net, NULL, HIDDEN, OUT);
  calx_module_to(net, dtype);
  return net;
}

static void take_numbers(void *user, const char *path, calx_entry_kind kind,
                         calx_tensor *t)
{
  double **at = user;
  size_t n;
  (void)path;
  (void)kind;
  double *values = support_read(t, &n);
  memcpy(*at, values, n * sizeof *values);
  *at += n;
  test_free(values);
}

static void steps(calx_module *net, calx_mesh *mesh, calx_dtype dtype,
                  calx_optimizer *opt, result *out)
{
  const int64_t classes[BATCH] = { 0, 1, 2, 3, 3, 2, 1, 0 };
  for (int i = 0; i < STEPS; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *x = sharding_matrix(dtype, BATCH, IN);
    calx_tensor *target =
        calx_tensor_from(classes, CALX_I64, CALX_SHAPE(BATCH));
    if (mesh != NULL) {
      calx_mark_sharding(x, mesh, CALX_AXES("data", NULL));
      calx_mark_sharding(target, mesh, CALX_AXES("data"));
    }
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = calx_cross_entropy(calx_forward(net, x), target);
    calx_backward(loss);
    calx_clip_grad_norm(opt, 1.0);
    calx_optimizer_step(opt);
    calx_sync(loss);
    out->losses[i] = calx_item(loss);
    CHECK_STATUS_OK(calx_scope_end(scope));
    if (i == 1) out->late_compiles = engine_compiles();
  }
  out->compiles = engine_compiles();
  out->late_compiles = out->compiles - out->late_compiles;
}

static void check_state(calx_module *net, calx_optimizer *opt, how which)
{
  calx_tensor *w = calx_module_find(net, "0.weight");
  calx_tensor *m = calx_optimizer_state(opt, 0, "exp_avg");
  assert_non_null(m);
  const calx_dims part = calx_shard_shape(w), of_state = calx_shard_shape(m);
  assert_int_equal(part.values[0], which == FSDP ? HIDDEN / 4 : HIDDEN / 2);
  assert_int_equal(part.values[1], which == BOTH ? IN / 2 : IN);
  assert_int_equal(of_state.values[0], part.values[0]);
  assert_int_equal(of_state.values[1], part.values[1]);
}

static void train(how which, calx_dtype dtype, result *out)
{
  calx_mesh *mesh = NULL;
  calx_metrics_clear();
  if (which == FSDP) mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("data"));
  if (which == TENSOR || which == BOTH) {
    mesh = sharding_begin(CALX_SHAPE(2, 2), CALX_AXES("data", "model"));
  }
  calx_module *net = new_net(dtype);
  mark_model(net, mesh, which);
  calx_optimizer *opt = calx_adamw(net, .lr = 0.01);
  steps(net, mesh, dtype, opt, out);
  if (mesh != NULL) check_state(net, opt, which);
  double *at = out->numbers;
  calx_module_parameters(net, take_numbers, &at);
  assert_int_equal(at - out->numbers, NUMBERS);
  calx_optimizer_free(opt);
  calx_module_free(net);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_shutdown();
}

static void compare(const result *one, how which, calx_dtype dtype,
                    double tolerance)
{
  static result many;
  train(which, dtype, &many);
  for (int i = 0; i < STEPS; i++) {
    CHECK_CLOSE(many.losses[i], one->losses[i], tolerance);
  }
  for (int i = 0; i < NUMBERS; i++) {
    CHECK_CLOSE(many.numbers[i], one->numbers[i], tolerance);
  }
  assert_true(one->losses[STEPS - 1] < one->losses[0]);
  assert_int_equal(many.late_compiles, 0);
}

// A sample has f32 with both axes alone.
static void test_training(void **state)
{
  (void)state;
  static result one;
  train(ALONE, CALX_F64, &one);
  for (how which = FSDP; which <= BOTH; which++) {
    compare(&one, which, CALX_F64, 1e-9);
  }
  train(ALONE, CALX_F32, &one);
  for (how which = (how)all_or_sample(FSDP, BOTH); which <= BOTH; which++) {
    compare(&one, which, CALX_F32, 2e-4);
  }
}

// ---- memory -----------------------------------------------------------------

static int64_t bytes_of_a_step(bool sharded)
{
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("data"));
  calx_module *net = calx_nn_sequential(NULL, NULL);
  calx_nn_linear(net, NULL, 512, 512);
  if (sharded) calx_module_parameters(net, mark_all, mesh);
  calx_optimizer *opt = calx_adam(net);
  for (int i = 0; i < 3; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *x = calx_ones(CALX_SHAPE(8, 512));
    calx_optimizer_zero_grad(opt);
    calx_tensor *loss = calx_mean(calx_forward(net, x));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  CHECK_STATUS_OK(calx_device_wait(calx_device_current()));
  calx_memory_info info;
  calx_status *status = calx_device_memory(calx_device_current(), &info);
  if (status != NULL && !support_own_engine()) info.bytes_in_use = 0;
  calx_status_free(status);
  calx_optimizer_free(opt);
  calx_module_free(net);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_shutdown();
  return info.bytes_in_use;
}

// Weight, and both states of Adam: 3 MiB whole, a quarter of it on each of
// four.
static void test_memory(void **state)
{
  (void)state;
  const int64_t whole = bytes_of_a_step(false), part = bytes_of_a_step(true);
  if (whole == 0) return;  // XLA's CPU keeps no statistics
  assert_true(whole >= 3 << 20);
  assert_true(part < whole * 27 / 100);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_training),
    SUPPORT_TEST(test_memory),
  };
  return cmocka_run_group_tests(tests, sharding_setup, NULL);
}
