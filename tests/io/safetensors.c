// safetensors: files written and read, and files that are refused.
#include "io/safetensors.h"
#include "calx/io.h"
#include "everything.h"
#include "files.h"

// One of each type, rank 0, empty, odd sizes.
static calx_value *mixed(void)
{
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  for (int t = CALX_BOOL; t <= CALX_C64; t++) {
    CHECK_STATUS_OK(calx_value_set(d, calx_dtype_name((calx_dtype)t),
                                   host((calx_dtype)t, CALX_SHAPE(3, 5))));
  }
  CHECK_STATUS_OK(calx_value_set(d, "rank 0", host(CALX_F64, CALX_SCALAR)));
  CHECK_STATUS_OK(calx_value_set(d, "empty", host(CALX_F32, CALX_SHAPE(0, 4))));
  CHECK_STATUS_OK(calx_value_set(d, "a \"quoted\"\tna\\me é",
                                 host(CALX_U8, CALX_SHAPE(7))));
  CHECK_STATUS_OK(calx_value_set(
      d, "rank 8", host(CALX_I16, CALX_SHAPE(1, 2, 1, 2, 1, 2, 1, 2))));
  return d;
}

static void test_round(void **state)
{
  (void)state;
  const char *path = file_in_folder("a.safetensors");
  calx_value *d = mixed(), *read, *metadata;
  calx_value *m = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(m, "format", calx_value_string("pt")));
  CHECK_STATUS_OK(calx_value_set(m, "q\"", calx_value_string("é\n")));
  CHECK_STATUS_OK(calx_save(d, path, .metadata = m));
  CHECK_STATUS_OK(calx_load(path, &read, .out_metadata = &metadata));
  check_equal(d, read);
  assert_int_equal(calx_value_count(metadata), 2);
  assert_string_equal(calx_value_as_string(calx_value_get(metadata, "q\"")),
                      "é\n");
  // They lie in one map, each aligned.
  const calx_tensor *x = calx_value_as_tensor(calx_value_get(read, "f64"));
  const calx_tensor *y = calx_value_as_tensor(calx_value_get(read, "f32"));
  const calx_tensor *z = calx_value_as_tensor(calx_value_get(read, "bf16"));
  uintptr_t px = (uintptr_t)calx_host_data(x);
  uintptr_t py = (uintptr_t)calx_host_data(y);
  uintptr_t pz = (uintptr_t)calx_host_data(z);
  assert_true(px < py && py < pz && pz - px < 4096);
  assert_int_equal((px % 8) + (py % 4) + (pz % 2), 0);
  calx_value_free(metadata);
  calx_value_free(m);
  // The file may be replaced meanwhile, also by what was read from it.
  CHECK_STATUS_OK(calx_save(read, path));
  check_equal(d, read);
  calx_value_free(read);
  CHECK_STATUS_OK(calx_load(path, &read));
  check_equal(d, read);
  calx_value_free(read);
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_save(d, path));
  CHECK_STATUS_OK(calx_load(path, &read, .out_metadata = &metadata));
  assert_int_equal(calx_value_count(read) + calx_value_count(metadata), 0);
  calx_value_free(metadata);
  calx_value_free(read);
  calx_value_free(d);
  assert_int_equal(files_in_folder(true), 1);
}

static void test_unwritable(void **state)
{
  (void)state;
  const char *path = file_in_folder("b.safetensors");
  write_file(path, "old", 3);
  calx_value *d = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(d, "epoch", calx_value_int(3)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, path), "'epoch' is int",
               ".pt", "b.safetensors' was not saved");
  CHECK_STATUS_OK(calx_value_set(d, "epoch", host(CALX_U8, CALX_SHAPE(2))));
  CHECK_STATUS_OK(calx_value_set(d, "bad\xff", host(CALX_U8, CALX_SHAPE(2))));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, path), "UTF-8");
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(d, "z", host(CALX_C128, CALX_SHAPE(2))));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, path),
               "safetensors has no c128; convert 'z'");
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set_at(d, 1, host(CALX_U8, CALX_SHAPE(2))));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, path), "a number");
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_LIST);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, path), "not list");
  calx_value_free(d);
  d = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, ""), "no name");
  CHECK_STATUS(CALX_NOT_FOUND, calx_save(d, "/nowhere/x.safetensors"), "");
  calx_value *m = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(m, "epoch", calx_value_int(3)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_save(d, path, .metadata = m),
               "item 0 is int");
  calx_value_free(m);
  calx_value_free(d);
  char *data;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 0, &data, &size));
  assert_string_equal(data, "old");
  cx_free(data);
  assert_int_equal(files_in_folder(true), 1);
}

// ---- files that are refused -------------------------------------------------

// A file with this header and so many bytes of elements.
static calx_status *decode(const char *header, int64_t size, size_t elements)
{
  unsigned char file[1024] = { 0 };
  size_t n = strlen(header);
  uint64_t told = size >= 0 ? (uint64_t)size : n;
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)(told >> (8 * i));
  memcpy(file + 8, header, n);
  cx_io_map *map;
  calx_value *dict, *metadata;
  CHECK_STATUS_OK(cx_io_map_memory("file", file, 8 + n + elements, &map));
  calx_status *status = cx_io_safetensors_read(map, &dict, &metadata);
  assert_true((dict == NULL) == (status != NULL));
  assert_true((metadata == NULL) == (status != NULL));
  calx_value_free(dict);
  calx_value_free(metadata);
  cx_io_map_release(map);
  return status;
}

#define T(dtype, shape, begin, end)                                       \
  "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin \
  "," end "]}"

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    const char *header;
    int64_t size;
    size_t elements;
    calx_code code;
    const char *message;
  } cases[] = {
    { "{}", -1, 0, CALX_OK, "" },
    { "{}   ", -1, 0, CALX_OK, "" },
    { "{\"a\":" T("F32", "[2]", "0", "8") "}", -1, 8, CALX_OK, "" },
    { "{\"a\":" T("F32", "[0]", "4", "4") ",\"b\":" T("U8", "[4]", "0",
                                                      "4") "}",
      -1, 4, CALX_OK, "" },
    { "{\"b\":" T("I64", "[1]", "1", "9") ",\"a\":" T("U8", "[]", "0", "1") "}",
      -1, 9, CALX_OK, "" },
    { "", -1, 0, CALX_DATA_LOSS, "does not begin with '{'" },
    { "{}", 3, 0, CALX_DATA_LOSS, "a header of 3 bytes, the file has 2" },
    { "{}", 100000001, 0, CALX_DATA_LOSS, "100000000 are allowed" },
    { "{}", INT64_MAX, 0, CALX_DATA_LOSS, "a header of" },
    { " {}", -1, 0, CALX_DATA_LOSS, "does not begin with '{'" },
    { "{\"a\":}", -1, 0, CALX_DATA_LOSS, "byte" },
    { "{\"a\":1}", -1, 0, CALX_DATA_LOSS, "'a': it has no dtype" },
    { "{\"a\":{},\"a\":{}}", -1, 0, CALX_DATA_LOSS, "duplicate" },
    { "{\"a\":" T("F8_E4M3", "[1]", "0", "1") "}", -1, 1, CALX_UNIMPLEMENTED,
      "'F8_E4M3'" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", -1, 4, CALX_DATA_LOSS,
      "it must have" },
    { "{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", -1, 4,
      CALX_UNIMPLEMENTED, "rank 9" },
    { "{\"a\":" T("F32", "3", "0", "4") "}", -1, 4, CALX_DATA_LOSS, "no list" },
    { "{\"a\":" T("F32", "[-1]", "0", "4") "}", -1, 4, CALX_DATA_LOSS,
      "no natural number" },
    { "{\"a\":" T("F32", "[1.0]", "0", "4") "}", -1, 4, CALX_DATA_LOSS,
      "no natural number" },
    { "{\"a\":" T("F32", "[2]", "0", "4") "}", -1, 4, CALX_DATA_LOSS,
      "f32[2] has 8 bytes, its data_offsets [0, 4] have 4" },
    { "{\"a\":" T("F32", "[4294967296,4294967296,4]", "0", "0") "}", -1, 0,
      CALX_DATA_LOSS, "too large" },
    { "{\"a\":" T("F32", "[1]", "4", "0") "}", -1, 4, CALX_DATA_LOSS,
      "no two rising numbers" },
    { "{\"a\":" T("F32", "[1]", "1", "5") "}", -1, 5, CALX_DATA_LOSS,
      "begins at 1, what is before it ends at 0" },
    { "{\"a\":" T("U8", "[2]", "0", "2") ",\"b\":" T("U8", "[2]", "1", "3") "}",
      -1, 3, CALX_DATA_LOSS, "'b' begins at 1, what is before it ends at 2" },
    { "{\"a\":" T("U8", "[2]", "0", "2") "}", -1, 3, CALX_DATA_LOSS,
      "end at 2, the file has 3" },
    { "{\"a\":" T("U8", "[2]", "0", "2") "}", -1, 1, CALX_DATA_LOSS,
      "end at 2, the file has 1" },
    { "{\"__metadata__\":{\"a\":1}}", -1, 0, CALX_DATA_LOSS, "not all text" },
    { "{\"__metadata__\":[]}", -1, 0, CALX_DATA_LOSS, "no object" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calx_status *status =
        decode(cases[i].header, cases[i].size, cases[i].elements);
    if (calx_status_code(status) != cases[i].code) {
      print_error("case %zu: %s\n", i, cases[i].header);
    }
    CHECK_STATUS(cases[i].code, status, cases[i].message);
  }
  write_file(file_in_folder("short"), "1234567", 7);
  calx_value *v;
  CHECK_STATUS(
      CALX_DATA_LOSS,
      calx_load(file_in_folder("short"), &v, .format = CALX_FORMAT_SAFETENSORS),
      "7 bytes");
  CHECK_STATUS(CALX_NOT_FOUND, calx_load(file_in_folder("none"), &v), "");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_load(file_in_folder(""), &v),
               "no regular file");
  files_in_folder(true);
}

static void test_without_memory(void **state)
{
  (void)state;
  const char *path = file_in_folder("c.safetensors");
  calx_value *d = mixed(), *read;
  write_file(path, "old", 3);
  for (int loads = 0; loads < 2; loads++) {
    bool done = false;
    for (long n = 0; !done; n++) {
      assert_true(n < 1000);
      cx_alloc_fail_at(n);
      calx_status *status = loads ? calx_load(path, &read) : calx_save(d, path);
      cx_alloc_fail_at(-1);
      done = status == NULL;
      if (done && loads) calx_value_free(read);
      calx_status_free(status);
      CHECK_STATUS_OK(calx_scope_take_error());
    }
  }
  CHECK_STATUS_OK(calx_load(path, &read));
  check_equal(d, read);
  calx_value_free(read);
  calx_value_free(d);
  assert_int_equal(files_in_folder(true), 1);
}

static void test_foreign(void **state)
{
  (void)state;
  static const char *const held[] = { "GIF89a, a picture", "\x89PNG", "" };
  static const char *const told[] = {
    "17 bytes that begin with 47 49 46 38 39 61 2c 20 'GIF89a, '",
    "4 bytes that begin with 89 50 4e 47 '.PNG'", "0 bytes"
  };
  for (int i = 0; i < 3; i++) {
    const char *path = file_in_folder("foreign");
    write_file(path, held[i], strlen(held[i]));
    calx_value *read = NULL;
    CHECK_STATUS(CALX_DATA_LOSS, calx_load(path, &read),
                 "neither .pt, safetensors nor numpy's: ", told[i]);
    assert_null(read);
    assert_int_equal(remove(path), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_foreign),        SUPPORT_TEST(test_round),
    SUPPORT_TEST(test_unwritable),     SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, files_end);
}
