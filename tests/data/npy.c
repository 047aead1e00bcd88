// npy: rows of numpy's arrays as samples.
#include "calx/dataset.h"
#include "calx/io.h"
#include "check.h"

static const char *in_folder(const char *name)
{
  static char paths[8][256];
  static int next;
  const char *folder = getenv("TMPDIR");
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder != NULL ? folder : "/tmp",
           name);
  return path;
}

static const float x[6] = { 1, 2, 3, 4, 5, 6 };
static const int64_t y[3] = { 7, 8, 9 };

// x.npy (3, 2), y.npy (3), short.npy (1), xy.npz.
static void write_arrays(void)
{
  calx_value *v = calx_value_container(CALX_KIND_DICT);
  const struct {
    const char *key, *file;
    calx_tensor *tensor;
  } all[] = {
    { "x", "x.npy", calx_host_tensor(x, CALX_F32, CALX_SHAPE(3, 2)) },
    { "y", "y.npy", calx_host_tensor(y, CALX_I64, CALX_SHAPE(3)) },
    { "short", "short.npy", calx_host_tensor(y, CALX_I64, CALX_SHAPE(1)) },
    { "rank0", "rank0.npy", calx_host_tensor(y, CALX_I64, CALX_SCALAR) },
  };
  for (size_t i = 0; i < 4; i++) {
    CHECK_OK(calx_value_set(v, all[i].key, calx_value_tensor(all[i].tensor)));
    CHECK_OK(calx_save(calx_value_get(v, all[i].key), in_folder(all[i].file)));
  }
  CHECK_OK(calx_save(v, in_folder("xy.npz")));
  calx_value_free(v);
}

static void check_samples(calx_dataset *d)
{
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 3);
  assert_int_equal(calx_dataset_field(d, 0)->dims[0], 2);
  assert_int_equal(calx_dataset_field(d, 1)->rank, 0);
  for (int64_t i = 0; i < 3; i++) {
    float row[2];
    int64_t label;
    CHECK_OK(calx_dataset_get(d, i, (void *[]){ row, &label }));
    assert_true(row[0] == x[2 * i] && row[1] == x[2 * i + 1]);
    assert_int_equal(label, y[i]);
  }
  calx_dataset_free(d);
}

static void test_samples(void **state)
{
  (void)state;
  write_arrays();
  const char *const paths[] = { in_folder("x.npy"), in_folder("y.npy") };
  const char *const keys[] = { "x", "y" };
  check_samples(calx_dataset_npy(paths, 2));
  check_samples(calx_dataset_npz(in_folder("xy.npz"), keys, 2));
}

static void check_failed(calx_dataset *d, calx_code code, const char *says)
{
  CHECK_SAYS(code, calx_dataset_error(d), says);
  calx_dataset_free(d);
}

static void test_refused(void **state)
{
  (void)state;
  write_arrays();
  const char *paths[] = { in_folder("x.npy"), in_folder("short.npy") };
  const char *npz = in_folder("xy.npz");
  const calx_code bad = CALX_INVALID_ARGUMENT;
  check_failed(calx_dataset_npy(paths, 2), bad, "1 rows, tensor 0 has 3");
  paths[1] = in_folder("rank0.npy");
  check_failed(calx_dataset_npy(paths, 2), bad, "its rank is 0");
  paths[1] = in_folder("none.npy");
  check_failed(calx_dataset_npy(paths, 2), CALX_NOT_FOUND, "none.npy");
  paths[1] = npz;
  check_failed(calx_dataset_npy(paths, 2), CALX_DATA_LOSS, "no npy file");
  paths[1] = NULL;
  check_failed(calx_dataset_npy(paths, 2), bad, "name 1 is NULL");
  check_failed(calx_dataset_npy(NULL, 1), bad, "NULL");
  check_failed(calx_dataset_npy(paths, 0), bad, "of 0 arrays");
  check_failed(calx_dataset_npy(paths, 9), bad, "1 to 8");
  check_failed(calx_dataset_npz(npz, (const char *const[]){ "z" }, 1),
               CALX_NOT_FOUND, "has no array 'z'");
  check_failed(calx_dataset_npz(NULL, (const char *const[]){ "z" }, 1), bad,
               "NULL");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_samples),
    CHECK_TEST(test_refused),
  };
  return cmocka_run_group_tests_name("data_npy", tests, NULL, NULL);
}
