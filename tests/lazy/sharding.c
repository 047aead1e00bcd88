// One program on four devices, with tensors that are split among them: the
// program's text, values, gradients and training as on one device, what each
// device holds, and what is refused. On our engine and XLA's.
#include <dirent.h>
#include <unistd.h>

#include "base/file.h"
#include "calx/calx.h"
#include "engine.h"

enum { DEVICES = 4 };

static calx_mesh *begin(calx_dims shape, calx_axes axes)
{
  CHECK_STATUS_OK(calx_use_spmd());
  assert_int_equal(calx_device_count(), 1);
  assert_int_equal(calx_spmd_device_count(), DEVICES);
  calx_mesh *mesh = calx_mesh_new(shape, axes);
  CHECK_STATUS_OK(calx_scope_take_error());
  assert_non_null(mesh);
  return mesh;
}

static void check_spec(const calx_tensor *t, const char *wanted)
{
  char *spec = calx_sharding_spec(t);
  if (wanted == NULL) {
    assert_null(spec);
  } else {
    assert_string_equal(spec, wanted);
  }
  calx_string_free(spec);
}

static calx_tensor *matrix(calx_dtype dtype, int64_t rows, int64_t columns)
{
  double values[4096];
  const int64_t n = rows * columns;
  assert_true(n <= 4096);
  for (int64_t i = 0; i < n; i++) {
    values[i] = (double)(i * 2654435761 % 1009) / 1009 - 0.5;
  }
  return support_tensor(dtype, CALX_SHAPE(rows, columns), values);
}

// ---- marks ------------------------------------------------------------------

static void test_marks(void **state)
{
  (void)state;
  calx_mesh *mesh = begin(CALX_SHAPE(2, 2), CALX_AXES("data", "model"));
  calx_tensor *t = calx_take(support_tensor(
      CALX_F32, CALX_SHAPE(4, 2), (const double[]){ 1, 2, 3, 4, 5, 6, 7, 8 }));
  check_spec(t, "{replicated}");
  assert_ptr_equal(calx_mark_sharding(t, mesh, CALX_AXES("data", NULL)), t);
  check_spec(t, "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}");
  assert_int_equal(calx_shard_shape(t).values[0], 2);
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  // What is computed from it stays split, and is read whole.
  calx_tensor *y = calx_mul(t, 2);
  check_spec(y, NULL);
  calx_sync(y);
  check_spec(y, "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}");
  CHECK_VALUES(y, 0, 2, 4, 6, 8, 10, 12, 14, 16);
  calx_clear_sharding(t);
  check_spec(t, "{replicated}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  // Several axes of one dimension, and both dimensions.
  calx_mark_sharding(t, mesh, CALX_AXES("model,data", NULL));
  check_spec(t, "{devices=[4,1]0,2,1,3}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  calx_clear_sharding(t);
  calx_mark_sharding(t, mesh, CALX_AXES("model", "data"));
  check_spec(t, "{devices=[2,2]0,2,1,3}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  CHECK_VALUES(calx_sum(t), 0, 36);
  calx_release(t);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

static void test_device_ids(void **state)
{
  (void)state;
  CHECK_STATUS_OK(calx_use_spmd());
  const int64_t ids[] = { 3, 1, 0, 2 };
  calx_mesh *mesh =
      calx_mesh_new(CALX_SHAPE(4), CALX_AXES("x"), .device_ids = ids);
  calx_tensor *t = calx_take(VECTOR(1, 2, 3, 4, 5, 6, 7, 8));
  calx_mark_sharding(t, mesh, CALX_AXES("x"));
  check_spec(t, "{devices=[4]3,1,0,2}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  calx_tensor *y = calx_add(t, VECTOR(8, 7, 6, 5, 4, 3, 2, 1));
  calx_sync(y);
  check_spec(y, "{devices=[4]3,1,0,2}");
  CHECK_VALUES(y, 0, 9, 9, 9, 9, 9, 9, 9, 9);
  calx_release(t);
  calx_mesh_free(mesh);
}

// A pending value: an op more, through which gradients go.
static void test_intermediate(void **state)
{
  (void)state;
  calx_mesh *mesh = begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_tensor *w = calx_take(VECTOR(1, 2, 3, 4));
  calx_requires_grad(w, true);
  calx_tensor *y = calx_mul(w, w);
  calx_mark_sharding(y, mesh, CALX_AXES("x"));
  check_spec(y, "{devices=[4]0,1,2,3}");
  calx_tensor *loss = calx_sum(calx_mul(y, 3));
  calx_backward(loss);
  calx_sync(loss, y);
  CHECK_VALUES(loss, 0, 90);
  CHECK_VALUES(calx_grad(w), 0, 6, 12, 18, 24);
  check_spec(y, "{devices=[4]0,1,2,3}");
  check_spec(loss, "{replicated}");
  calx_release(w);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

// ---- the program's text -----------------------------------------------------

static char *dumped(const char *folder)
{
  char path[512] = "";
  DIR *all = opendir(folder);
  assert_non_null(all);
  for (struct dirent *e; (e = readdir(all)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
  }
  closedir(all);
  char *text;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 1 << 20, &text, &size));
  remove(path);
  return text;
}

static void test_text(void **state)
{
  (void)state;
  char folder[] = "/tmp/calx-sharding-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("CALX_DUMP", folder, 1);
  calx_mesh *mesh = begin(CALX_SHAPE(2, 2), CALX_AXES("data", "model"));
  calx_tensor *x = calx_take(matrix(CALX_F32, 4, 8));
  calx_tensor *w = calx_take(matrix(CALX_F32, 8, 2));
  calx_mark_sharding(x, mesh, CALX_AXES("data", NULL));
  calx_mark_sharding(w, mesh, CALX_AXES(NULL, "model"));
  calx_tensor *y = calx_relu(calx_mm(x, w));
  calx_mark_sharding(y, mesh, CALX_AXES("data", NULL));
  calx_sync(y);
  unsetenv("CALX_DUMP");
  char *text = dumped(folder);
  rmdir(folder);
  assert_non_null(strstr(text, "mhlo.num_partitions = 4"));
  assert_non_null(strstr(text, "#sdy.mesh<[\"data\"=2, \"model\"=2]>"));
  assert_non_null(
      strstr(text,
             "{sdy.sharding = #sdy.sharding<@mesh, [{\"data\"}, {}]>}, "
             "{sdy.sharding = #sdy.sharding<@mesh, [{}, {\"model\"}]>}"));
  assert_non_null(strstr(text, "\"sdy.sharding_constraint\""));
  assert_non_null(strstr(text,
                         "res_attrs = [{sdy.sharding = "
                         "#sdy.sharding<@mesh, [{\"data\"}, {}]>}]"));
  cx_free(text);
  calx_release(x);
  calx_release(w);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

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
    calx_tensor *x = matrix(dtype, BATCH, IN);
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
  if (which == FSDP) mesh = begin(CALX_SHAPE(4), CALX_AXES("data"));
  if (which == TENSOR || which == BOTH) {
    mesh = begin(CALX_SHAPE(2, 2), CALX_AXES("data", "model"));
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

static void compare(how which, calx_dtype dtype, double tolerance)
{
  static result one, many;
  train(ALONE, dtype, &one);
  train(which, dtype, &many);
  for (int i = 0; i < STEPS; i++) {
    CHECK_CLOSE(many.losses[i], one.losses[i], tolerance);
  }
  for (int i = 0; i < NUMBERS; i++) {
    CHECK_CLOSE(many.numbers[i], one.numbers[i], tolerance);
  }
  assert_true(one.losses[STEPS - 1] < one.losses[0]);
  assert_int_equal(many.late_compiles, 0);
}

static void test_training(void **state)
{
  (void)state;
  for (how which = FSDP; which <= BOTH; which++) {
    compare(which, CALX_F64, 1e-9);
    compare(which, CALX_F32, 2e-4);
  }
}

// ---- memory -----------------------------------------------------------------

static int64_t bytes_of_a_step(bool sharded)
{
  calx_mesh *mesh = begin(CALX_SHAPE(4), CALX_AXES("data"));
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

// ---- what is refused --------------------------------------------------------

#define CHECK_REFUSED(code, call, ...)                        \
  do {                                                        \
    (void)(call);                                             \
    CHECK_STATUS(code, calx_scope_take_error(), __VA_ARGS__); \
  } while (0)

static void test_refused_meshes(void **state)
{
  (void)state;
  const int64_t twice[] = { 0, 1, 1, 2 }, beyond[] = { 0, 1, 2, 4 };
  CHECK_REFUSED(CALX_FAILED_PRECONDITION,
                calx_mesh_new(CALX_SHAPE(4), CALX_AXES("x")),
                "calx_use_spmd() first");
  CHECK_STATUS_OK(calx_use_spmd());
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mesh_new(CALX_SHAPE(8), CALX_AXES("x")),
                "a mesh of 8 devices", "there are 4");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mesh_new(CALX_SHAPE(2, 2), CALX_AXES("x")),
                "2 sizes and 1 names");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mesh_new(CALX_SHAPE(2, 2), CALX_AXES("x", "x")),
                "two axes are named 'x'");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mesh_new(CALX_SHAPE(4), CALX_AXES("a\"b")),
                "letters, digits and _");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mesh_new(CALX_SHAPE(-4, -1), CALX_AXES("x", "y")),
                "size -4");
  CHECK_REFUSED(
      CALX_INVALID_ARGUMENT,
      calx_mesh_new(CALX_SHAPE(4), CALX_AXES("x"), .device_ids = twice),
      "device 1 is there twice");
  CHECK_REFUSED(
      CALX_INVALID_ARGUMENT,
      calx_mesh_new(CALX_SHAPE(4), CALX_AXES("x"), .device_ids = beyond),
      "device 4", "0 to 3");
}

static void test_refused_marks(void **state)
{
  (void)state;
  calx_mesh *mesh = begin(CALX_SHAPE(2, 2), CALX_AXES("x", "y"));
  calx_tensor *t = calx_take(matrix(CALX_F32, 4, 6));
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(t, mesh, CALX_AXES("z", NULL)),
                "{\"x\"=2, \"y\"=2} has no axis 'z'");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(t, mesh, CALX_AXES("x,", NULL)),
                "has no axis ''");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(t, mesh, CALX_AXES("x", "x")),
                "'x' is there twice");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(t, mesh, CALX_AXES("x")), "1 entries",
                "f32[4,6] has 2 dimensions");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(t, mesh, CALX_AXES(NULL, "x,y")),
                "dimension 1 of f32[4,6] into 4 parts");
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(t, NULL, CALX_AXES("x", NULL)),
                "the mesh is NULL");
  calx_tensor *host = calx_cpu(t);
  CHECK_REFUSED(CALX_INVALID_ARGUMENT,
                calx_mark_sharding(host, mesh, CALX_AXES("x", NULL)),
                "on the host");
  check_spec(t, "{replicated}");  // nothing has happened
  calx_mark_sharding(t, mesh, CALX_AXES("x", NULL));
  calx_mark_sharding(t, mesh, CALX_AXES("x", NULL));  // the same again
  CHECK_STATUS_OK(calx_scope_take_error());
  CHECK_REFUSED(CALX_FAILED_PRECONDITION,
                calx_mark_sharding(t, mesh, CALX_AXES(NULL, "x")),
                "is marked {devices=[2,1,2]", "calx_clear_sharding() first");
  calx_release(t);
  calx_mesh_free(mesh);
}

static void test_two_meshes(void **state)
{
  (void)state;
  calx_mesh *a = begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_mesh *b = calx_mesh_new(CALX_SHAPE(2, 2), CALX_AXES("x", "y"));
  calx_tensor *t = calx_take(VECTOR(1, 2, 3, 4));
  calx_tensor *u = calx_take(VECTOR(5, 6, 7, 8));
  calx_mark_sharding(t, a, CALX_AXES("x"));
  calx_mark_sharding(u, b, CALX_AXES("y"));
  calx_sync(calx_add(t, u));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "two meshes",
               "{\"x\"=4} of ", "{\"x\"=2, \"y\"=2} of ", "sharding.c:");
  // An equal mesh is the same one.
  calx_mesh *c = calx_mesh_new(CALX_SHAPE(4), CALX_AXES("x"));
  calx_clear_sharding(u);
  calx_mark_sharding(u, c, CALX_AXES("x"));
  calx_tensor *sum = calx_add(t, u);
  calx_sync(sum);
  CHECK_VALUES(sum, 0, 6, 8, 10, 12);
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_release(t);
  calx_release(u);
  calx_mesh_free(a);
  calx_mesh_free(b);
  calx_mesh_free(c);
}

static calx_status *no_rank(int index, void *user)
{
  (void)index;
  (void)user;
  return NULL;
}

static void test_ranks(void **state)
{
  (void)state;
  CHECK_STATUS_OK(calx_use_spmd());
  CHECK_STATUS_OK(calx_use_spmd());
  assert_true(calx_is_spmd());
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_launch(no_rank, NULL),
               "calx_use_spmd() was called");
  calx_shutdown();
  assert_false(calx_is_spmd());
  assert_int_equal(calx_device_count(), DEVICES);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_use_spmd(),
               "a device was used before");
  calx_tensor *t = VECTOR(1, 2, 3, 4);
  CHECK_REFUSED(CALX_FAILED_PRECONDITION,
                calx_mark_sharding(t, NULL, CALX_AXES("x")),
                "calx_use_spmd() first");
  check_spec(t, NULL);
}

static int setup(void **state)
{
  setenv("CPU_NUM_DEVICES", "4", 1);
  return engine_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_marks),          SUPPORT_TEST(test_device_ids),
    SUPPORT_TEST(test_intermediate),   SUPPORT_TEST(test_text),
    SUPPORT_TEST(test_training),       SUPPORT_TEST(test_memory),
    SUPPORT_TEST(test_refused_meshes), SUPPORT_TEST(test_refused_marks),
    SUPPORT_TEST(test_two_meshes),     SUPPORT_TEST(test_ranks),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
