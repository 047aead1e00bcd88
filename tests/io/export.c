// export: a model's forward in files, and what runs them.
#include "calx/export.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "calx/debug.h"
#include "calx/io.h"
#include "files.h"

static const char *const names[] = { "manifest.json", "model.mlir",
                                     "weights.safetensors" };

typedef struct net {
  calx_module *root, *conv, *bn, *fc;
  calx_tensor *mask;  // no part of the model; NULL: none
} net;

static net n;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  (void)self;
  x = calx_relu(calx_forward(n.bn, calx_forward(n.conv, x)));
  x = calx_forward(n.fc,
                   calx_mul(calx_flatten(x, .start_dim = 1), calx_scalar(0.5)));
  return n.mask != NULL ? calx_mul(x, n.mask) : x;
}

static int begin(void **state)
{
  (void)state;
  n = (net){ 0 };
  calx_manual_seed(3);
  n.root = calx_module_new("Net", forward, &n);
  n.conv = calx_nn_conv2d(n.root, "conv", 1, 4, 3);
  n.bn = calx_nn_batch_norm2d(n.root, "bn", 4);
  n.fc = calx_nn_linear(n.root, "fc", 4 * 6 * 6, 10);
  calx_status *status = calx_module_error(n.root);
  calx_module_train(n.root, false);
  bool failed = status != NULL;
  calx_status_free(status);
  return failed;
}

static const char *folder(void)
{
  return file_in_folder("model");
}

static const char *in_folder(size_t i)
{
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", folder(), names[i]);
  return path;
}

static int end(void **state)
{
  (void)state;
  calx_module_free(n.root);
  for (size_t i = 0; i < 3; i++) remove(in_folder(i));
  remove(folder());
  return 0;
}

static calx_tensor *batch(void)
{
  return calx_rand(CALX_SHAPE(2, 1, 8, 8));
}

static void check_same(calx_tensor *a, calx_tensor *b)
{
  float x[64], y[64];
  size_t bytes = (size_t)calx_tensor_numel(a) * 4;
  assert_true(bytes <= sizeof x);
  CHECK_STATUS_OK(calx_tensor_read(a, x, bytes));
  CHECK_STATUS_OK(calx_tensor_read(b, y, bytes));
  for (size_t i = 0; i < bytes / 4; i++) CHECK_CLOSE(x[i], y[i], 1e-6);
}

// A run computes what the model does, of inputs that it was not exported with,
// and compiles nothing.
static void test_same(void **state)
{
  (void)state;
  calx_tensor *x = batch();
  CHECK_STATUS_OK(calx_export(n.root, &x, 1, folder()));
  calx_exported *e;
  CHECK_STATUS_OK(calx_exported_load(folder(), &e));
  assert_int_equal(calx_exported_input_count(e), 1);
  assert_int_equal(calx_exported_output_count(e), 1);
  assert_int_equal(calx_exported_input_shape(e, 0).count, 4);
  assert_int_equal(calx_exported_input_shape(e, 0).values[2], 8);
  assert_int_equal(calx_exported_input_dtype(e, 0), CALX_F32);
  assert_int_equal(calx_exported_output_shape(e, 0).values[1], 10);
  assert_int_equal(calx_exported_output_dtype(e, 0), CALX_F32);
  int64_t programs = 0;
  for (int i = 0; i < 3; i++) {
    x = batch();
    calx_tensor *y = calx_exported_forward(e, x);
    check_same(y, calx_forward(n.root, x));
    if (i == 0) programs = calx_counter_value("UncachedCompile");
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), programs);
  // The results are tensors like others.
  check_same(calx_add(calx_exported_forward(e, x), calx_scalar(1)),
             calx_add(calx_forward(n.root, x), calx_scalar(1)));
  calx_exported_free(e);
}

static void both(void *user, calx_tensor *const *in, calx_tensor **out)
{
  (void)user;
  out[0] = calx_forward(n.root, calx_add(in[0], in[2]));
  out[1] = in[1];
  out[2] = calx_sum(in[0]);
}

// Several inputs, one of which is a result and none of which is used alone; a
// tensor that the model does not hold.
static void test_several(void **state)
{
  (void)state;
  n.mask = calx_retain(calx_rand(CALX_SHAPE(10)));
  calx_sync(NULL);
  calx_tensor *in[3] = { batch(), calx_rand(CALX_SHAPE(3)), batch() }, *out[3];
  CHECK_STATUS_OK(
      calx_export(n.root, in, 3, folder(), .forward = both, .outputs = 3));
  calx_exported *e;
  CHECK_STATUS_OK(calx_exported_load(folder(), &e));
  calx_exported_run(e, in, 3, out, 3);
  check_same(out[0], calx_forward(n.root, calx_add(in[0], in[2])));
  check_same(out[1], in[1]);
  check_same(out[2], calx_sum(in[0]));
  calx_exported_free(e);
  calx_value *weights;
  CHECK_STATUS_OK(calx_load(in_folder(2), &weights));
  assert_non_null(calx_value_get(weights, "conv.weight"));
  assert_non_null(calx_value_get(weights, "captured.0"));
  assert_null(calx_value_get(weights, "bn.num_batches_tracked"));
  calx_value_free(weights);
  calx_release(n.mask);
}

static void changes(void *user, calx_tensor *const *in, calx_tensor **out)
{
  (void)user;
  calx_tensor *b = calx_module_find(n.root, "fc.bias");
  calx_assign(b, calx_add(b, calx_scalar(1)));
  out[0] = calx_forward(n.root, in[0]);
}

static void none(void *user, calx_tensor *const *in, calx_tensor **out)
{
  (void)user;
  (void)in;
  (void)out;
}

static void test_export_errors(void **state)
{
  (void)state;
  calx_tensor *x = batch(), *two[2] = { x, NULL };
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_export(NULL, &x, 1, folder()),
               "export: there is no model");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_export(n.root, &x, 1, ""),
               "export: there is no folder");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_export(n.root, two, 2, folder()),
               "wanted are 2 and 1", ".forward");
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      calx_export(n.root, two, 2, folder(), .forward = none, .outputs = 1),
      "input 1 is NULL");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_export(n.root, &x, 1, folder(), .forward = none),
               "does not set output 0 of 1");
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               calx_export(n.root, &x, 1, folder(), .forward = changes),
               "changes the model's 'fc.bias'");
  calx_module_train(n.bn, true);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_export(n.root, &x, 1, folder()),
               "in training", "calx_module_train(model, false)");
  calx_module_train(n.root, true);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_export(n.root, &x, 1, folder()),
               "the model is in training");
  calx_module_train(n.root, false);
  x = calx_rand(CALX_SHAPE(2, 3, 8, 8));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_export(n.root, &x, 1, folder()),
               "layer 'conv'");
  struct stat info;
  assert_int_not_equal(stat(folder(), &info), 0);
}

static void check_run(calx_exported *e, calx_tensor *x, const char *what)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *y = calx_exported_forward(e, x);
  assert_non_null(calx_tensor_error(y));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), what);
}

static void test_run_errors(void **state)
{
  (void)state;
  calx_tensor *x = batch(), *out[2];
  CHECK_STATUS_OK(calx_export(n.root, &x, 1, folder()));
  calx_exported *e;
  CHECK_STATUS_OK(calx_exported_load(folder(), &e));
  check_run(NULL, x, "exported_forward: the exported model is NULL");
  check_run(e, NULL, "input 0 is NULL");
  check_run(e, calx_rand(CALX_SHAPE(3, 1, 8, 8)),
            "input 0 is f32[3,1,8,8], it was exported for f32[2,1,8,8]");
  check_run(e, calx_to_dtype(x, CALX_F64), "input 0 is f64[2,1,8,8]");
  check_run(e, calx_tensor_from((float[1]){ 0 }, CALX_F32, CALX_SHAPE(1)),
            "input 0 is f32[1]");
  calx_scope *scope = calx_scope_begin();
  calx_exported_run(e, &x, 1, out, 2);
  assert_non_null(calx_tensor_error(out[1]));
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT, calx_scope_end(scope),
      "exported_run: the program takes 1 and gives 1 tensors, got room "
      "for 1 and 2");
  calx_exported_free(e);
  calx_exported_free(NULL);
}

// ---- compiled ahead ---------------------------------------------------------

// For this machine by the engine's own compiler, loaded without compiling.
static void test_ahead(void **state)
{
  (void)state;
  calx_tensor *x = batch();
  const char *path = file_in_folder("program.bin");
  CHECK_STATUS_OK(calx_export(n.root, &x, 1, folder()));
  CHECK_STATUS_OK(
      calx_compile_ahead(folder(), "calx_cpu", path, .plugin = "calx"));
  calx_exported *e;
  if (strcmp(getenv("CALX_PLUGIN"), "calx") == 0) {
    int64_t programs = calx_counter_value("UncachedCompile");
    CHECK_STATUS_OK(calx_exported_load(folder(), &e, .executable = path));
    assert_int_equal(calx_counter_value("UncachedCompile"), programs);
    check_same(calx_exported_forward(e, x), calx_forward(n.root, x));
    calx_exported_free(e);
  }
  CHECK_STATUS(CALX_NOT_FOUND,
               calx_compile_ahead(folder(), "v9", path, .plugin = "calx"),
               "no topology is called 'v9'");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_compile_ahead(NULL, "cpu", path),
               "compile_ahead: there is no folder");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_compile_ahead(folder(), NULL, path),
               "there is no topology");
  CHECK_STATUS(
      CALX_NOT_FOUND,
      calx_compile_ahead("/nowhere", "calx_cpu", path, .plugin = "calx"),
      "/nowhere/manifest.json");
  CHECK_STATUS(CALX_NOT_FOUND,
               calx_exported_load(folder(), &e, .executable = "/nowhere"),
               "/nowhere");
  write_file(path, "damaged", 7);
  calx_status *status = calx_exported_load(folder(), &e, .executable = path);
  assert_non_null(status);
  assert_non_null(strstr(calx_status_message(status), path));
  calx_status_free(status);
}

// ---- calx hlo run FOLDER ----------------------------------------------------

// The exit status of "calx hlo run FOLDER ARGUMENTS".
static int run_program(const char *arguments)
{
  char command[1024];
  snprintf(command, sizeof command, "'%s' hlo run '%s' %s", CX_CALX, folder(),
           arguments);
  return WEXITSTATUS(system(command));
}

static void test_program(void **state)
{
  (void)state;
  calx_tensor *x = batch();
  float in[128], wanted[20], *out;
  char arguments[512];
  size_t size;
  CHECK_STATUS_OK(calx_export(n.root, &x, 1, folder()));
  CHECK_STATUS_OK(calx_tensor_read(x, in, sizeof in));
  CHECK_STATUS_OK(
      calx_tensor_read(calx_forward(n.root, x), wanted, sizeof wanted));
  write_file(file_in_folder("x.bin"), in, sizeof in);
  snprintf(arguments, sizeof arguments, "--input '%s' --output '%s'",
           file_in_folder("x.bin"), file_in_folder("out"));
  assert_int_equal(run_program(arguments), 0);
  CHECK_STATUS_OK(
      cx_file_read(file_in_folder("out/0.bin"), 0, (char **)&out, &size));
  assert_int_equal(size, sizeof wanted);
  for (int i = 0; i < 20; i++) CHECK_CLOSE(out[i], wanted[i], 1e-6);
  cx_free(out);
  remove(file_in_folder("out/0.bin"));
  remove(file_in_folder("out"));
  // One input too few; an option that is not for a folder; no export.
  assert_int_equal(run_program("2>/dev/null"), 5);
  assert_int_equal(run_program("--replicas 2 2>/dev/null"), 2);
  write_file(in_folder(1), "", 0);
  assert_int_equal(run_program("--input /dev/null 2>/dev/null"), 3);
  remove(file_in_folder("x.bin"));
}

// ---- files from outside -----------------------------------------------------

static void check_refused(calx_code code, const char *what)
{
  calx_exported *e;
  CHECK_STATUS(code, calx_exported_load(folder(), &e), what);
  assert_null(e);
}

// The file's text with `to` for `from`, and the folder refused.
static void check_changed(size_t file, const char *from, const char *to,
                          calx_code code, const char *what)
{
  char *text, changed[1 << 16];
  size_t size;
  CHECK_STATUS_OK(cx_file_read(in_folder(file), 0, &text, &size));
  const char *at = strstr(text, from);
  assert_non_null(at);
  int n_changed = snprintf(changed, sizeof changed, "%.*s%s%s",
                           (int)(at - text), text, to, at + strlen(from));
  write_file(in_folder(file), changed, (size_t)n_changed);
  check_refused(code, what);
  write_file(in_folder(file), text, size);
  cx_free(text);
}

static void test_damaged(void **state)
{
  (void)state;
  calx_tensor *x = batch();
  check_refused(CALX_NOT_FOUND, "manifest.json");
  CHECK_STATUS_OK(calx_export(n.root, &x, 1, folder()));
  check_changed(0, "calx-export", "other", CALX_DATA_LOSS, "no manifest");
  check_changed(0, "\"version\": 1", "\"version\": 7", CALX_UNIMPLEMENTED,
                "has version 7, this calx reads 1");
  check_changed(0, "{", "[", CALX_DATA_LOSS, "manifest.json");
  check_changed(0, "\"arguments\": [", "\"arguments\": [1, ", CALX_DATA_LOSS,
                "another number of arguments");
  check_changed(0, "\"input\": 0", "\"input\": 1", CALX_DATA_LOSS,
                "none of the program's");
  check_changed(0, "\"input\": 0", "\"input\": -1", CALX_DATA_LOSS,
                "none of the program's");
  check_changed(0, "conv.weight", "conv.bias", CALX_DATA_LOSS,
                "none of the program's");
  check_changed(0, "conv.weight", "../conv", CALX_DATA_LOSS,
                "none of the program's");
  check_changed(0, "\"f32\"", "\"f31\"", CALX_DATA_LOSS, "type is unknown");
  check_changed(0, " 8,", " -8,", CALX_DATA_LOSS, "a size is no number");
  check_changed(1, "stablehlo.add", "stablehlo.sub", CALX_DATA_LOSS,
                "its program is not the manifest's");
  // Of another export: the manifest and the program say so, the weights too.
  char *program, *manifest;
  size_t sizes[2];
  CHECK_STATUS_OK(cx_file_read(in_folder(0), 0, &manifest, &sizes[0]));
  CHECK_STATUS_OK(cx_file_read(in_folder(1), 0, &program, &sizes[1]));
  x = calx_rand(CALX_SHAPE(5, 1, 8, 8));
  CHECK_STATUS_OK(calx_export(n.root, &x, 1, folder()));
  write_file(in_folder(0), manifest, sizes[0]);
  write_file(in_folder(1), program, sizes[1]);
  check_refused(CALX_DATA_LOSS, "weights.safetensors");
  cx_free(program);
  cx_free(manifest);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_same, begin, end),
    cmocka_unit_test_setup_teardown(test_several, begin, end),
    cmocka_unit_test_setup_teardown(test_export_errors, begin, end),
    cmocka_unit_test_setup_teardown(test_run_errors, begin, end),
    cmocka_unit_test_setup_teardown(test_ahead, begin, end),
    cmocka_unit_test_setup_teardown(test_program, begin, end),
    cmocka_unit_test_setup_teardown(test_damaged, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, files_end);
}
