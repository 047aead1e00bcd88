// One program on four devices, with tensors that are split among them: marks,
// the program's text, values and gradients, and what is refused. On our engine
// and XLA's.
#include "sharding.h"

#include <dirent.h>
#include <unistd.h>

#include "base/file.h"

// ---- marks ------------------------------------------------------------------

static void test_marks(void **state)
{
  (void)state;
  calx_mesh *mesh =
      sharding_begin(CALX_SHAPE(2, 2), CALX_AXES("data", "model"));
  calx_tensor *t = calx_take(support_tensor(
      CALX_F32, CALX_SHAPE(4, 2), (const double[]){ 1, 2, 3, 4, 5, 6, 7, 8 }));
  sharding_check(t, "{replicated}");
  assert_ptr_equal(calx_mark_sharding(t, mesh, CALX_AXES("data", NULL)), t);
  sharding_check(t, "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}");
  assert_int_equal(calx_shard_shape(t).values[0], 2);
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  // What is computed from it stays split, and is read whole.
  calx_tensor *y = calx_mul(t, 2);
  sharding_check(y, NULL);
  calx_sync(y);
  sharding_check(y, "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}");
  CHECK_VALUES(y, 0, 2, 4, 6, 8, 10, 12, 14, 16);
  calx_clear_sharding(t);
  sharding_check(t, "{replicated}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  // Several axes of one dimension, and both dimensions.
  calx_mark_sharding(t, mesh, CALX_AXES("model,data", NULL));
  sharding_check(t, "{devices=[4,1]0,2,1,3}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  calx_clear_sharding(t);
  calx_mark_sharding(t, mesh, CALX_AXES("model", "data"));
  sharding_check(t, "{devices=[2,2]0,2,1,3}");
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
  sharding_check(t, "{devices=[4]3,1,0,2}");
  CHECK_VALUES(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  calx_tensor *y = calx_add(t, VECTOR(8, 7, 6, 5, 4, 3, 2, 1));
  calx_sync(y);
  sharding_check(y, "{devices=[4]3,1,0,2}");
  CHECK_VALUES(y, 0, 9, 9, 9, 9, 9, 9, 9, 9);
  calx_release(t);
  calx_mesh_free(mesh);
}

// A pending value: an op more, through which gradients go.
static void test_intermediate(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_tensor *w = calx_take(VECTOR(1, 2, 3, 4));
  calx_requires_grad(w, true);
  calx_tensor *y = calx_mul(w, w);
  calx_mark_sharding(y, mesh, CALX_AXES("x"));
  sharding_check(y, "{devices=[4]0,1,2,3}");
  calx_tensor *loss = calx_sum(calx_mul(y, 3));
  calx_backward(loss);
  calx_sync(loss, y);
  CHECK_VALUES(loss, 0, 90);
  CHECK_VALUES(calx_grad(w), 0, 6, 12, 18, 24);
  sharding_check(y, "{devices=[4]0,1,2,3}");
  sharding_check(loss, "{replicated}");
  calx_release(w);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

// ---- values that come later -------------------------------------------------

// A mark changes no value, so it changes no history either.
static void test_without_gradients(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_tensor *w = calx_take(VECTOR(1, 2, 3, 4));
  calx_requires_grad(w, true);
  calx_tensor *y = calx_mul(w, w);
  calx_no_grad_begin();
  calx_mark_sharding(y, mesh, CALX_AXES("x"));
  calx_no_grad_end();
  calx_backward(calx_sum(y));
  CHECK_VALUES(calx_grad(w), 0, 2, 4, 6, 8);
  calx_release(w);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

// A value that no program computes is split as its tensor is marked.
static void test_assigned(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_tensor *w = calx_take(VECTOR(1, 2, 3, 4));
  calx_mark_sharding(w, mesh, CALX_AXES("x"));
  calx_assign(w, VECTOR(5, 6, 7, 8));
  calx_sync(w);
  sharding_check(w, "{devices=[4]0,1,2,3}");
  calx_assign(w, calx_zeros(CALX_SHAPE(4)));
  CHECK_VALUES(w, 0, 0, 0, 0, 0);
  calx_sync(w);
  sharding_check(w, "{devices=[4]0,1,2,3}");
  calx_release(w);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

static void mark_rows(void *user, const char *path, calx_entry_kind kind,
                      calx_tensor *t)
{
  (void)path;
  (void)kind;
  if (calx_tensor_rank(t) == 2) {
    calx_mark_sharding(t, user, CALX_AXES("x", NULL));
  } else {
    calx_mark_sharding(t, user, CALX_AXES("x"));
  }
}

static void test_loaded(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_module *net = calx_nn_linear(NULL, NULL, 3, 8);
  calx_module *other = calx_nn_linear(NULL, NULL, 3, 8);
  calx_value *saved;
  CHECK_STATUS_OK(calx_module_state_dict(other, &saved));
  calx_module_parameters(net, mark_rows, mesh);
  CHECK_STATUS_OK(calx_module_load_state_dict(net, saved));
  sharding_check(calx_module_find(net, "weight"), "{devices=[4,1]0,1,2,3}");
  sharding_check(calx_module_find(net, "bias"), "{devices=[4]0,1,2,3}");
  calx_value_free(saved);
  calx_module_free(other);
  calx_module_free(net);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

// A file has the whole of a split tensor; what is loaded takes the shards of
// what it is loaded into.
static void test_saved(void **state)
{
  (void)state;
  char path[] = "/tmp/calx-shards-XXXXXX.pt";
  close(mkstemps(path, 3));
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_module *net = calx_nn_linear(NULL, NULL, 3, 8);
  calx_module *other = calx_nn_linear(NULL, NULL, 3, 8);
  calx_tensor *weight = calx_module_find(net, "weight");
  size_t n;
  calx_value *dict;
  calx_module_parameters(net, mark_rows, mesh);
  calx_module_parameters(other, mark_rows, mesh);
  CHECK_STATUS_OK(calx_module_state_dict(net, &dict));
  CHECK_STATUS_OK(calx_save(dict, path));
  calx_value_free(dict);
  sharding_check(weight, "{devices=[4,1]0,1,2,3}");
  double *wanted = support_read(weight, &n);
  assert_int_equal(n, 24);
  CHECK_STATUS_OK(calx_load(path, &dict));
  CHECK_STATUS_OK(calx_module_load_state_dict(other, dict));
  calx_value_free(dict);
  weight = calx_module_find(other, "weight");
  sharding_check(weight, "{devices=[4,1]0,1,2,3}");
  support_values(weight, wanted, n, 0, __FILE__, __LINE__);
  test_free(wanted);
  unlink(path);
  calx_module_free(other);
  calx_module_free(net);
  calx_mesh_free(mesh);
  CHECK_STATUS_OK(calx_scope_take_error());
}

// What was computed from split tensors can be made whole without a mark.
static void test_cleared(void **state)
{
  (void)state;
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
  calx_tensor *w = calx_take(VECTOR(1, 2, 3, 4));
  calx_mark_sharding(w, mesh, CALX_AXES("x"));
  calx_tensor *y = calx_take(calx_mul(w, 2));
  calx_sync(y);
  sharding_check(y, "{devices=[4]0,1,2,3}");
  calx_clear_sharding(y);
  sharding_check(y, "{replicated}");
  CHECK_VALUES(y, 0, 2, 4, 6, 8);
  calx_release(y);
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
  calx_mesh *mesh =
      sharding_begin(CALX_SHAPE(2, 2), CALX_AXES("data", "model"));
  calx_tensor *x = calx_take(sharding_matrix(CALX_F32, 4, 8));
  calx_tensor *w = calx_take(sharding_matrix(CALX_F32, 8, 2));
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
  calx_mesh *mesh = sharding_begin(CALX_SHAPE(2, 2), CALX_AXES("x", "y"));
  calx_tensor *t = calx_take(sharding_matrix(CALX_F32, 4, 6));
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
  sharding_check(t, "{replicated}");  // nothing has happened
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
  calx_mesh *a = sharding_begin(CALX_SHAPE(4), CALX_AXES("x"));
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
  sharding_check(t, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_marks),         SUPPORT_TEST(test_device_ids),
    SUPPORT_TEST(test_intermediate),  SUPPORT_TEST(test_without_gradients),
    SUPPORT_TEST(test_assigned),      SUPPORT_TEST(test_loaded),
    SUPPORT_TEST(test_saved),         SUPPORT_TEST(test_cleared),
    SUPPORT_TEST(test_text),          SUPPORT_TEST(test_refused_meshes),
    SUPPORT_TEST(test_refused_marks), SUPPORT_TEST(test_two_meshes),
    SUPPORT_TEST(test_ranks),
  };
  return cmocka_run_group_tests(tests, sharding_setup, NULL);
}
