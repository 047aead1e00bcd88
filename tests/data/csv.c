// csv: the reader of tables and the dataset of their numbers.
//
// `test_data_csv FILE` prints the cells of a file, for csv_python.
#include <math.h>

#include "calx/dataset.h"
#include "calx/ops.h"
#include "check.h"
#include "data/csv.h"

// ---- tables -----------------------------------------------------------------

static calx_status *decode(const char *text, bool has_header, cx_data_csv *csv)
{
  char *copy = cx_strdup(text);
  assert_non_null(copy);
  return cx_data_csv_decode("t.csv", copy, strlen(text), ',', has_header, csv);
}

static void test_cells(void **state)
{
  (void)state;
  const char text[] =
      "\xef\xbb\xbf"
      "name,\"a \"\"b\"\"\",c\r\n"
      "\r\n\n"
      "x \"y\" z, 1 ,\"two\nlines, one cell\"\r"
      ",,last";
  const char *const cells[] = { "x \"y\" z", " 1 ", "two\nlines, one cell",
                                "",          "",    "last" };
  cx_data_csv csv;
  CHECK_OK(decode(text, true, &csv));
  assert_int_equal(csv.n_rows, 2);
  assert_int_equal(csv.n_columns, 3);
  assert_string_equal(cx_data_csv_title(&csv, 1), "a \"b\"");
  for (size_t i = 0; i < 6; i++) {
    assert_string_equal(cx_data_csv_cell(&csv, i / 3, i % 3), cells[i]);
  }
  assert_int_equal(cx_data_csv_line(&csv, 0), 4);
  assert_int_equal(cx_data_csv_line(&csv, 1), 6);
  size_t column;
  CHECK_OK(cx_data_csv_column(&csv, "c", &column));
  assert_int_equal(column, 2);
  CHECK_OK(cx_data_csv_column(&csv, "0", &column));
  assert_int_equal(column, 0);
  CHECK_FAILS(CALX_NOT_FOUND, cx_data_csv_column(&csv, "3", &column),
              "no column is called '3'; there are 3");
  CHECK_FAILS(CALX_NOT_FOUND, cx_data_csv_column(&csv, "d", &column), "'d'");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_data_csv_column(&csv, NULL, &column),
              "NULL");
  cx_data_csv_free(&csv);
}

static void test_titles(void **state)
{
  (void)state;
  cx_data_csv csv;
  size_t column;
  CHECK_OK(decode("1,0,x,x\n", true, &csv));
  assert_int_equal(csv.n_rows, 0);
  CHECK_OK(cx_data_csv_column(&csv, "0", &column));  // a title first
  assert_int_equal(column, 1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_data_csv_column(&csv, "x", &column),
              "2 columns are called 'x'");
  cx_data_csv_free(&csv);
  CHECK_OK(decode("", false, &csv));
  assert_int_equal(csv.n_rows, 0);
  CHECK_FAILS(CALX_NOT_FOUND, cx_data_csv_column(&csv, "0", &column),
              "there is no header");
  cx_data_csv_free(&csv);
}

static void check_refused(const char *text, const char *says)
{
  cx_data_csv csv;
  CHECK_FAILS(CALX_DATA_LOSS, decode(text, true, &csv), "'t.csv': ", says);
  assert_null(csv.text);
}

static void test_refused(void **state)
{
  (void)state;
  check_refused("", "line 1: there is no header");
  check_refused("\n\n", "there is no header");
  check_refused("a,b\n1,2\n\n1\n", "line 4: 1 cells, line 1 has 2");
  check_refused("a\n\"b\n\nc", "line 2: a quote is opened and never closed");
  check_refused("a\n\"b\"\"", "line 2: a quote is opened and never closed");
  check_refused("a\n\"b\"c\n", "line 2: text after a closing quote");
  char zero[] = "a\nb_c";
  zero[3] = '\0';
  cx_data_csv csv;
  char *copy = cx_alloc(sizeof zero);
  memcpy(copy, zero, sizeof zero);
  CHECK_FAILS(CALX_DATA_LOSS,
              cx_data_csv_decode("t.csv", copy, 5, ',', true, &csv),
              "line 2: a zero byte");
}

// ---- datasets ---------------------------------------------------------------

static const char *write_file(const char *text)
{
  static char path[256];
  const char *folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/t.csv", folder != NULL ? folder : "/tmp");
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
  assert_int_equal(fclose(f), 0);
  return path;
}

static void test_dataset(void **state)
{
  (void)state;
  const char *path = write_file(
      "id,height,width,label\n"
      "7, 1.5 ,-2e1,3\n"
      "8,\"0.1\",inf,-1\n");
  float row[3];
  int64_t label;
  void *fields[] = { row, &label };
  calx_dataset *d =
      calx_dataset_csv(path, .target = "label", .target_dtype = CALX_I64);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_size(d), 2);
  assert_int_equal(calx_dataset_field(d, 0)->dims[0], 3);
  assert_int_equal(calx_dataset_field(d, 1)->rank, 0);
  CHECK_OK(calx_dataset_get(d, 1, fields));
  assert_true(row[0] == 8 && row[1] == 0.1f && isinf(row[2]));
  assert_int_equal(label, -1);
  calx_dataset_free(d);
  const char *const columns[] = { "width", "1" };
  d = calx_dataset_csv(path, .columns = columns, .n_columns = 2);
  assert_null(calx_dataset_error(d));
  assert_int_equal(calx_dataset_field_count(d), 1);
  CHECK_OK(calx_dataset_get(d, 0, fields));
  assert_true(row[0] == -20 && row[1] == 1.5f);
  calx_dataset_free(d);
  path = write_file("1;2\n3;4\n");
  d = calx_dataset_csv(path, .no_header = true, .delimiter = ';',
                       .target = "0");
  assert_int_equal(calx_dataset_size(d), 2);
  float target;
  CHECK_OK(calx_dataset_get(d, 1, (void *[]){ row, &target }));
  assert_true(row[0] == 4 && target == 3);
  calx_dataset_free(d);
}

static void test_missing(void **state)
{
  (void)state;
  const char *path = write_file("a,b\n1,\n NA ,2\n");
  calx_dataset *d = calx_dataset_csv(path);
  CHECK_SAYS(CALX_DATA_LOSS, calx_dataset_error(d),
             "line 2, column 'b': '' is missing");
  calx_dataset_free(d);
  const double fills[] = { (double)NAN, CALX_ZERO, -1 };
  for (int i = 0; i < 3; i++) {
    float row[2];
    d = calx_dataset_csv(path, .missing = fills[i]);
    assert_null(calx_dataset_error(d));
    CHECK_OK(calx_dataset_get(d, 0, (void *[]){ row }));
    assert_true(row[0] == 1);
    if (i == 0) {
      assert_true(isnan(row[1]));
    } else {
      assert_true((double)row[1] == fills[i] && !(i == 1 && signbit(row[1])));
    }
    calx_dataset_free(d);
  }
  d = calx_dataset_csv(path, .missing = 300, .dtype = CALX_I8);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), "missing is 300");
  calx_dataset_free(d);
  d = calx_dataset_csv(path, .missing = (double)NAN, .dtype = CALX_I64);
  CHECK_SAYS(CALX_INVALID_ARGUMENT, calx_dataset_error(d), "missing is nan");
  calx_dataset_free(d);
}

static void check_cell(const char *cell, calx_dtype dtype, const char *says)
{
  char text[64];
  snprintf(text, sizeof text, "x\n%s\n", cell);
  calx_dataset *d = calx_dataset_csv(write_file(text), .dtype = dtype);
  if (says == NULL) {
    assert_null(calx_dataset_error(d));
  } else {
    CHECK_SAYS(CALX_DATA_LOSS, calx_dataset_error(d), "line 2, column 'x': '",
               says);
  }
  calx_dataset_free(d);
}

static void test_numbers(void **state)
{
  (void)state;
  check_cell("1.5x", CALX_F32, "no number");
  check_cell("0x10", CALX_F32, "no number");
  check_cell("1 2", CALX_F32, "no number");
  check_cell("1e99", CALX_F32, "too large");
  check_cell("1e99", CALX_F64, NULL);
  check_cell("-Infinity", CALX_F16, NULL);
  check_cell("1.0", CALX_I32, "no whole number");
  check_cell("128", CALX_I8, "not in the dtype's range");
  check_cell("-128", CALX_I8, NULL);
  check_cell("-1", CALX_U8, "not in the dtype's range");
  check_cell("-1", CALX_U64, "not in the dtype's range");
  check_cell("18446744073709551615", CALX_U64, NULL);
  check_cell("18446744073709551616", CALX_U64, "not in the dtype's range");
  check_cell("9223372036854775808", CALX_I64, "not in the dtype's range");
  check_cell("-9223372036854775808", CALX_I64, NULL);
  check_cell("True", CALX_BOOL, NULL);
  check_cell("2", CALX_BOOL, "neither true");
}

static void check_options(calx_dataset *d, calx_code code, const char *says)
{
  CHECK_SAYS(code, calx_dataset_error(d), says);
  calx_dataset_free(d);
}

static void test_options(void **state)
{
  (void)state;
  const char *path = write_file("a,b\n1,2\n");
  const char *const wrong[] = { "c" };
  const calx_code bad = CALX_INVALID_ARGUMENT;
  check_options(calx_dataset_csv(NULL), bad, "NULL");
  check_options(calx_dataset_csv("/nowhere/t.csv"), CALX_NOT_FOUND, "t.csv");
  check_options(calx_dataset_csv("/dev/null"), bad, "/dev/null");
  check_options(calx_dataset_csv(path, .delimiter = '"'), bad, "delimiter");
  check_options(calx_dataset_csv(path, .dtype = (calx_dtype)99), bad, "99");
  check_options(calx_dataset_csv(path, .n_columns = 2), bad, "columns is NULL");
  check_options(calx_dataset_csv(path, .columns = wrong, .n_columns = 1),
                CALX_NOT_FOUND, "'c'");
  check_options(calx_dataset_csv(path, .target = "c"), CALX_NOT_FOUND, "'c'");
}

static void test_no_memory(void **state)
{
  (void)state;
  const char *path = write_file("a,b\n1,2\n");
  bool whole = false;
  for (int n = 0; !whole; n++) {
    assert_in_range(n, 0, 40);
    cx_alloc_fail_at(n);
    calx_dataset *d = calx_dataset_csv(path, .target = "b");
    cx_alloc_fail_at(-1);
    const calx_status *error = calx_dataset_error(d);
    whole = error == NULL;
    if (!whole) CHECK_SAYS(CALX_RESOURCE_EXHAUSTED, error, "memory");
    calx_dataset_free(d);
  }
}

// Prints the numbers of rows and columns, and each cell behind its length.
static int dump(const char *path)
{
  cx_data_csv csv;
  calx_status *status = cx_data_csv_read(path, ',', false, &csv);
  if (status != NULL) {
    printf("%s\n", calx_status_message(status));
    calx_status_free(status);
    return 1;
  }
  printf("%zu %zu\n", csv.n_rows, csv.n_columns);
  for (size_t i = 0; i < csv.n_rows * csv.n_columns; i++) {
    const char *cell =
        cx_data_csv_cell(&csv, i / csv.n_columns, i % csv.n_columns);
    printf("%zu:%s\n", strlen(cell), cell);
  }
  cx_data_csv_free(&csv);
  return 0;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_cells),   CHECK_TEST(test_titles),
    CHECK_TEST(test_refused), CHECK_TEST(test_dataset),
    CHECK_TEST(test_missing), CHECK_TEST(test_numbers),
    CHECK_TEST(test_options), CHECK_TEST(test_no_memory),
  };
  if (argc > 1) return dump(argv[1]);
  return cmocka_run_group_tests_name("data_csv", tests, NULL, NULL);
}
