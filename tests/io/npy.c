// npy: numpy's files. `test_io_npy FROM TO …` reads each FROM and writes it to
// TO, for npy_numpy.py, which compares with numpy.
#include "calx/io.h"
#include "everything.h"
#include "files.h"

static void put_npy(const char *path, const char *header, const void *data,
                    size_t bytes)
{
  char file[512] = "\x93NUMPY\x01";
  size_t n = strlen(header);
  file[8] = (char)n;
  memcpy(file + 10, header, n);
  memcpy(file + 10 + n, data, bytes);
  write_file(path, file, 10 + n + bytes);
}

static void test_forms(void **state)
{
  (void)state;
  const char *path = file_in_folder("a.npy");
  const unsigned char data[] = { 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6 };
  const int16_t expected[] = { 1, 3, 5, 2, 4, 6 };
  calx_value *v;
  // Keys in another order and in other quotes, big-endian, column-major, and
  // bytes after the elements, which numpy does not read.
  put_npy(path, "{\"shape\" : ( 2,3 ),'fortran_order':True , 'descr': '>i2'}\n",
          data, sizeof data);
  CHECK_STATUS_OK(calx_load(path, &v));
  const calx_tensor *t = calx_value_as_tensor(v);
  assert_int_equal(calx_tensor_dtype(t), CALX_I16);
  assert_int_equal(calx_tensor_rank(t), 2);
  assert_int_equal(calx_tensor_dim(t, 1), 3);
  assert_memory_equal(calx_host_data(t), expected, sizeof expected);
  calx_value_free(v);
  put_npy(path, "{'descr': '|b1', 'fortran_order': False, 'shape': (3L,), }",
          data + 1, 4);
  CHECK_STATUS_OK(calx_load(path, &v));
  t = calx_value_as_tensor(v);
  assert_memory_equal(calx_host_data(t), "\1\0\1", 3);  // of 1, 0, 2
  calx_value_free(v);
  files_in_folder(true);
}

static void check_refused(const char *header, calx_code code, const char *says)
{
  const char *path = file_in_folder("bad.npy");
  const char data[16] = { 0 };
  calx_value *v;
  put_npy(path, header, data, sizeof data);
  CHECK_STATUS(code, calx_load(path, &v), says);
  assert_null(v);
}

#define BAD CALX_DATA_LOSS
#define OTHER CALX_UNIMPLEMENTED
#define DICT(descr, order, shape) \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static void test_refused(void **state)
{
  (void)state;
  check_refused("", BAD, "no '{'");
  check_refused("{'descr': '<f4'", BAD, "no ',' after a value");
  check_refused("{'descr': '<f4', 'shape': (), }", BAD, "it lacks");
  check_refused("{'descr': '<f4', 'descr': '<f4', }", BAD, "there twice");
  check_refused("{'x': 1}", BAD, "a key that is not");
  check_refused(DICT("'<f4'", "False", "(2,)") "x", BAD, "text after");
  check_refused(DICT("'<f4'", "0", "(2,)"), BAD, "neither True nor False");
  check_refused(DICT("'<f4'", "False", "2"), BAD, "no tuple");
  check_refused(DICT("'<f4'", "False", "(2)"), BAD, "no tuple");
  check_refused(DICT("'<f4'", "False", "(-2,)"), BAD, "no number");
  check_refused(DICT("'<f4'", "False", "(2, 2 2)"), BAD,
                "the shape has no ')'");
  check_refused(DICT("'<f4'", "False", "(99999999999999999999,)"), BAD,
                "too large");
  check_refused(DICT("'<f4'", "False", "(4294967296, 4294967296, 8)"), BAD,
                "more than the 16 bytes");
  check_refused(DICT("'<f4'", "False", "(5,)"), BAD, "f32[5]");
  check_refused(DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), OTHER,
                "more than 8 dimensions");
  check_refused(DICT("'|O'", "False", "()"), OTHER, "nothing in a file is run");
  check_refused(DICT("'<U3'", "False", "()"), OTHER, "texts");
  check_refused(DICT("'<c32'", "False", "()"), OTHER, "complex numbers");
  check_refused(DICT("'<f16'", "False", "()"), OTHER, "another size");
  check_refused(DICT("[('a', '<f4')]", "False", "()"), OTHER, "records");
  files_in_folder(true);
}

static void test_damaged(void **state)
{
  (void)state;
  const char *path = file_in_folder("bad.npy");
  calx_value *v;
  write_file(path, "\x93NUMPY\1", 7);
  CHECK_STATUS(BAD, calx_load(path, &v), "7 bytes");
  write_file(path, "\x93NUMPY\4\0\0\0\0\0", 12);
  CHECK_STATUS(OTHER, calx_load(path, &v), "version 4.0");
  write_file(path, "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
  CHECK_STATUS(BAD, calx_load(path, &v), "header of 4294967295 bytes");
  write_file(path, "\x93NUMPY\2\0\xff", 9);
  CHECK_STATUS(BAD, calx_load(path, &v), "'");
  write_file(path, "12345678", 8);
  CHECK_STATUS(BAD, calx_load(path, &v, .format = CALX_FORMAT_NPY),
               "no npy file");
  CHECK_STATUS(BAD, calx_load(path, &v, .format = CALX_FORMAT_NPZ),
               "no zip archive");
  files_in_folder(true);
}

static void test_saved(void **state)
{
  (void)state;
  const char *npy = file_in_folder("a.npy"), *npz = file_in_folder("a.npz");
  calx_value *all = calx_value_container(CALX_KIND_DICT), *read, *metadata;
  for (int t = CALX_BOOL; t <= CALX_C128; t++) {
    if (t == CALX_BF16) continue;
    calx_value *v = host((calx_dtype)t, CALX_SHAPE(3, 5));
    CHECK_STATUS_OK(calx_save(v, npy));
    CHECK_STATUS_OK(calx_load(npy, &read));
    check_equal(v, read);
    calx_value_free(read);
    CHECK_STATUS_OK(calx_value_set(all, calx_dtype_name((calx_dtype)t), v));
  }
  CHECK_STATUS_OK(calx_value_set(all, "a/b", host(CALX_F64, CALX_SCALAR)));
  CHECK_STATUS_OK(calx_value_set(all, "F32", host(CALX_F32, CALX_SHAPE(0, 2))));
  CHECK_STATUS_OK(calx_save(all, npz));
  CHECK_STATUS_OK(calx_load(npz, &read, .out_metadata = &metadata));
  assert_int_equal(calx_value_count(metadata), 0);
  check_equal(all, read);
  calx_value_free(metadata);
  calx_value_free(read);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(all, npy),
               ".npy holds a tensor, and the value is dict");
  CHECK_STATUS_OK(calx_value_set(all, "b", host(CALX_BF16, CALX_SCALAR)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(all, npz), "numpy has no bf16",
               "while saving 'b'");
  CHECK_STATUS_OK(calx_value_set(all, "b", calx_value_int(3)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(all, npz),
               ".npz holds a dict of tensors");
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_save(calx_value_get(all, "f32"), npz), "not Tensor");
  // What was there is there.
  CHECK_STATUS_OK(calx_load(npz, &read));
  assert_int_equal(calx_value_count(read), 16);
  calx_value_free(read);
  calx_value_free(all);
  files_in_folder(true);
}

static int copy(int n, char **paths)
{
  calx_status *status = NULL;
  for (int i = 0; i + 1 < n && status == NULL; i += 2) {
    calx_value *v;
    status = calx_load(paths[i], &v);
    if (status == NULL) status = calx_save(v, paths[i + 1]);
    calx_value_free(v);
  }
  if (status == NULL) return 0;
  printf("%s\n", calx_status_message(status));
  calx_status_free(status);
  return 1;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_forms),
    SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_damaged),
    SUPPORT_TEST(test_saved),
  };
  if (argc > 1) return copy(argc - 1, argv + 1);
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
