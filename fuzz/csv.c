// fuzz/csv: any bytes as a CSV file, with a header and without one.
//
// What is accepted must be whole: every cell a text inside the table. What is
// refused must say why and leave nothing. Built with -fsanitize=fuzzer this is
// libFuzzer's entry; fuzz/idx_main.c runs it over a corpus without one.
#include "data/csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/csv_number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

static void check_status(calx_status *status)
{
  calx_code code = calx_status_code(status);
  check(code == CALX_DATA_LOSS || code == CALX_RESOURCE_EXHAUSTED);
  check(calx_status_message(status)[0] != '\0');
  calx_status_free(status);
}

static void read_cells(const cx_data_csv *csv)
{
  static const calx_dtype dtypes[] = { CALX_F32, CALX_I8, CALX_U64, CALX_BOOL };
  const cx_data_csv_missing missing = { true, 1 };
  char out[8];
  for (size_t row = 0; row < csv->n_rows; row++) {
    check(cx_data_csv_line(csv, row) >= 1);
    for (size_t c = 0; c < csv->n_columns; c++) {
      const char *cell = cx_data_csv_cell(csv, row, c);
      check(strlen(cell) < SIZE_MAX);
      calx_status *status =
          cx_data_csv_number(csv, row, c, dtypes[(row + c) % 4], &missing, out);
      if (status != NULL) check_status(status);
    }
  }
}

static void decode(const uint8_t *data, size_t size, char delimiter,
                   bool has_header)
{
  long blocks = cx_alloc_live();
  char *text = cx_alloc(size + 1);
  check(text != NULL);
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  cx_data_csv csv;
  calx_status *status =
      cx_data_csv_decode("input", text, size, delimiter, has_header, &csv);
  if (status == NULL) {
    read_cells(&csv);
    cx_data_csv_free(&csv);
  } else {
    check(csv.text == NULL && csv.cells == NULL);
    check_status(status);
  }
  check(cx_alloc_live() == blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  decode(data, size, ',', true);
  decode(data, size, ';', false);
  return 0;
}
