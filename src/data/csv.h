// data/csv: a table of texts, read whole from a CSV file.
//
// RFC 4180, and what is met beside it: a byte-order mark, lines that end with
// CR LF, LF or CR, empty lines (left out), a last line without an end. A quote
// inside a cell that does not begin with one is a character like any other.
#ifndef CX_DATA_CSV_H
#define CX_DATA_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct cx_data_csv {
  const char *name;  // of the file, for messages; borrowed
  size_t n_rows;     // without the header
  size_t n_columns;  // of every row
  bool has_header;
  char *text;     // all cells, each zero-terminated
  size_t *cells;  // where each cell begins in the text; the header's first
  size_t *lines;  // of the file, from 1, where each row begins, as above
  size_t room_cells, room_lines;
} cx_data_csv;

// `text` has size + 1 bytes of cx_alloc(), which the table takes, also on
// failure. On failure there is nothing to free.
// @errors DATA_LOSS an open quote, text after a closing one, a zero byte, rows
//         of different lengths: with the line
calx_status *cx_data_csv_decode(const char *name, char *text, size_t size,
                                char delimiter, bool has_header,
                                cx_data_csv *out_csv) CALX_MUST_USE;
// The same for a regular file of at most 4 GiB.
calx_status *cx_data_csv_read(const char *path, char delimiter, bool has_header,
                              cx_data_csv *out_csv) CALX_MUST_USE;
void cx_data_csv_free(cx_data_csv *csv);

// A cell's text, zero-terminated; it has no zero inside.
const char *cx_data_csv_cell(const cx_data_csv *csv, size_t row, size_t column);
// The header's text of a column; NULL: there is no header.
const char *cx_data_csv_title(const cx_data_csv *csv, size_t column);
// The line of the file, from 1, where the row begins.
size_t cx_data_csv_line(const cx_data_csv *csv, size_t row);

// The column of this title; else, where `column` is a number, the one of this
// number, 0 being the first.
// @errors NOT_FOUND no such column  INVALID_ARGUMENT NULL, two of this title
calx_status *cx_data_csv_column(const cx_data_csv *csv, const char *column,
                                size_t *out_column) CALX_MUST_USE;

// DATA_LOSS: "'leaves.csv': line 3, column 'label': 'x' is WHAT".
CX_COLD calx_status *cx_data_csv_bad_cell(const cx_data_csv *csv, size_t row,
                                          size_t column,
                                          const char *what) CALX_MUST_USE;

#endif
