// loggers/csv_table: rows of named numbers, and their text as Python's csv
// module writes it.
#ifndef CX_LOGGERS_CSV_TABLE_H
#define CX_LOGGERS_CSV_TABLE_H

#include <stdint.h>

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"
#include "calx/loggers.h"

typedef struct cx_loggers_column {
  char *name;
  bool is_written;  // a column of the file
} cx_loggers_column;

typedef struct cx_loggers_cell {
  size_t column;
  double value;
  bool is_integer;
} cx_loggers_cell;

typedef struct cx_loggers_row {
  int64_t step;
  size_t first, count;  // of the cells
} cx_loggers_row;

// The rows that are not yet written, and all columns so far.
typedef struct cx_loggers_table {
  cx_loggers_column *columns;  // sorted, and "step" among them
  size_t n_columns, columns_capacity;
  cx_loggers_cell *cells;
  size_t n_cells, cells_capacity;
  cx_loggers_row *rows;
  size_t n_rows, rows_capacity;
} cx_loggers_table;

// Adds a row. On failure there is none more, but maybe more columns.
calx_status *cx_loggers_table_add(cx_loggers_table *table, const char *prefix,
                                  const calx_logged_value *values, size_t count,
                                  int64_t step) CALX_MUST_USE;
void cx_loggers_table_free(cx_loggers_table *table);
// Whether a column is not in the file.
bool cx_loggers_table_grew(const cx_loggers_table *table);
// What was put is in the file: the rows go.
void cx_loggers_table_written(cx_loggers_table *table);

// The line of the column's names; `written`: of those in the file alone.
void cx_loggers_table_put_header(cx_text *out, const cx_loggers_table *table,
                                 bool written);
void cx_loggers_table_put_rows(cx_text *out, const cx_loggers_table *table);
// The lines of the file behind its header, with empty cells for the columns
// that it lacks.
void cx_loggers_table_widen(cx_text *out, const cx_loggers_table *table,
                            const char *lines, size_t size);

#endif
