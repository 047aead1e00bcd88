// mnist: the training and the test set of a folder, or what stands in for it.
#include <unistd.h>

#include "data/digits.h"
#include "idx.h"

static char folder[64];

static int make_folder(void **state)
{
  (void)state;
  const char *at = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/mnistXXXXXX", at != NULL ? at : "/tmp");
  return mkdtemp(folder) == NULL;
}

static const char *const names[] = { "train-images-idx3-ubyte",
                                     "train-labels-idx1-ubyte",
                                     "t10k-images-idx3-ubyte.gz",
                                     "t10k-labels-idx1-ubyte" };

static int remove_folder(void **state)
{
  (void)state;
  for (size_t k = 0; k < 4; k++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, names[k]);
    unlink(path);
  }
  return rmdir(folder);
}

static void write_file(const char *name, bytes b, bool packed)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (packed) {
    bytes plain = b;
    b = pack(plain.data, plain.size);
    drop(plain);
  }
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(b.data, 1, b.size, f), b.size);
  assert_int_equal(fclose(f), 0);
  drop(b);
}

// t10k with n images of one pixel; image i is i modulo 251, its label i mod 10.
static void write_test_set(uint32_t n)
{
  write_file(names[2], make_idx(3, (uint32_t[]){ n, 1, 1 }, n, 251), true);
  write_file(names[3], make_idx(1, &n, n, 10), false);
}

static int64_t label_of(calx_dataset *d, int64_t i, float *out_pixels)
{
  int64_t y = -1;
  CHECK_OK(calx_dataset_get(d, i, (void *const[]){ out_pixels, &y }));
  return y;
}

static void test_drawn(void **state)
{
  (void)state;
  calx_dataset *train, *test;
  CHECK_OK(calx_dataset_mnist(NULL, &train, &test));
  assert_int_equal(calx_dataset_size(train), 8000);
  assert_int_equal(calx_dataset_size(test), 2000);
  static float x[784];
  uint8_t pixels[784];
  assert_int_equal(label_of(train, 7999, x),
                   cx_data_digit_draw(1, 7999, pixels));
  assert_int_equal(label_of(test, 1, x), cx_data_digit_draw(1, 8001, pixels));
  assert_true(x[0] == ((float)pixels[0] / 255.0f - 0.1307f) / 0.3081f);
  calx_dataset_free(train);  // the other does not need it
  assert_int_equal(label_of(test, 1, x), cx_data_digit_draw(1, 8001, pixels));
  calx_dataset_free(test);
}

static void test_split(void **state)
{
  (void)state;
  write_test_set(8004);
  calx_dataset *train, *test;
  CHECK_OK(calx_dataset_mnist(folder, &train, &test));
  assert_int_equal(calx_dataset_size(train), 8000);
  assert_int_equal(calx_dataset_size(test), 4);
  float x;
  assert_int_equal(label_of(train, 7, &x), 7);
  assert_int_equal(label_of(test, 3, &x), 3);
  assert_true(x == ((float)(8003 % 251) / 255.0f - 0.1307f) / 0.3081f);
  calx_dataset_free(test);
  assert_int_equal(label_of(train, 12, &x), 2);
  calx_dataset_free(train);
  write_test_set(8000);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, calx_dataset_mnist(folder, &train, &test),
              "mnist.c:", "8000 images; more than 8000 are wanted");
  assert_null(train);
  assert_null(test);
}

static void test_whole(void **state)
{
  (void)state;
  write_test_set(3);
  write_file(names[0], make_idx(3, (uint32_t[]){ 5, 1, 1 }, 5, 9), false);
  write_file(names[1], make_idx(1, (uint32_t[]){ 5 }, 5, 10), false);
  calx_dataset *train, *test;
  CHECK_OK(calx_dataset_mnist(folder, &train, &test));
  assert_int_equal(calx_dataset_size(train), 5);
  assert_int_equal(calx_dataset_size(test), 3);
  calx_dataset_free(train);
  calx_dataset_free(test);
  // A training set is not replaced by another because it is damaged.
  write_file(names[1], make_idx(1, (uint32_t[]){ 4 }, 4, 10), false);
  CHECK_FAILS(CALX_DATA_LOSS, calx_dataset_mnist(folder, &train, &test),
              "train-labels-idx1-ubyte", "4 labels for the 5 images");
  assert_null(train);
  assert_null(test);
}

static void test_no_folder(void **state)
{
  (void)state;
  calx_dataset *train, *test;
  CHECK_FAILS(CALX_NOT_FOUND, calx_dataset_mnist("/nowhere", &train, &test),
              "'/nowhere/t10k-images-idx3-ubyte'", "nor is there");
  assert_null(train);
  assert_null(test);
}

// Whichever allocation fails, the sets are whole or not there.
static void test_no_memory(void **state)
{
  (void)state;
  write_test_set(3);
  write_file(names[1], make_idx(1, (uint32_t[]){ 5 }, 5, 10), false);
  const char *const places[] = { NULL, folder };
  for (size_t k = 0; k < 2; k++) {
    bool whole = false;
    for (int n = 0; !whole; n++) {
      assert_in_range(n, 0, 200);
      calx_dataset *train, *test;
      cx_alloc_fail_at(n);
      calx_status *status = calx_dataset_mnist(places[k], &train, &test);
      cx_alloc_fail_at(-1);
      whole = status == NULL;
      if (whole) {
        assert_int_equal(calx_dataset_size(train), k == 0 ? 8000 : 5);
        calx_dataset_free(train);
        calx_dataset_free(test);
      } else {
        CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, status, "memory");
        assert_null(train);
        assert_null(test);
      }
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_drawn),     CHECK_TEST(test_split),
    CHECK_TEST(test_whole),     CHECK_TEST(test_no_folder),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests_name("data_mnist", tests, make_folder,
                                     remove_folder);
}
