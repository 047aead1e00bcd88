// data/csv: the reader, which unquotes the cells where they lie.
//
// A cell is never longer than its place in the file, and the delimiter after it
// makes room for its end, so the file's own bytes become the cells. The content
// is hostile: what is kept of it beside its bytes is bounded by its size, one
// number for each cell and each row.
//
// Source: RFC 4180.
#include "data/csv.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/text.h"

#define MOST_BYTES ((size_t)4 << 30)

typedef struct csv_reader {
  cx_data_csv *csv;
  size_t size;  // of the file
  size_t from;  // the next byte of the file
  size_t to;    // where the next byte of a cell goes; never above `from`
  size_t line;
  size_t n_cells, n_lines;
  char delimiter;
} csv_reader;

static bool at_end(const csv_reader *r)
{
  return r->from == r->size;
}

static calx_status *failed(const csv_reader *r, size_t line, const char *what)
{
  return cx_error(CALX_DATA_LOSS, "'%s': line %zu: %s", r->csv->name, line,
                  what);
}

static bool ends_line(char c)
{
  return c == '\n' || c == '\r';
}

static void pass_line_end(csv_reader *r)
{
  const char *text = r->csv->text;
  bool both = text[r->from] == '\r' && r->from + 1 < r->size &&
              text[r->from + 1] == '\n';
  r->from += both ? 2 : 1;
  r->line++;
}

// The text up to the closing quote, of which two stand for one.
static calx_status *read_quoted(csv_reader *r)
{
  char *text = r->csv->text;
  size_t begin = r->line;
  bool closed = false;
  for (r->from++; !at_end(r); r->from++) {
    char c = text[r->from];
    if (c == '"') {
      r->from++;
      closed = at_end(r) || text[r->from] != '"';
      if (closed) break;
    } else if (c == '\n') {
      r->line++;
    } else if (c == '\0') {
      return failed(r, r->line, "a zero byte");
    }
    text[r->to++] = c;
  }
  if (!closed) return failed(r, begin, "a quote is opened and never closed");
  if (at_end(r) || text[r->from] == r->delimiter || ends_line(text[r->from])) {
    return NULL;
  }
  return failed(r, r->line, "text after a closing quote");
}

static calx_status *read_plain(csv_reader *r)
{
  char *text = r->csv->text;
  for (; !at_end(r); r->from++) {
    char c = text[r->from];
    if (c == r->delimiter || ends_line(c)) break;
    if (c == '\0') return failed(r, r->line, "a zero byte");
    text[r->to++] = c;
  }
  return NULL;
}

// Reads one cell and what ends it; *out_last: it was the row's last one.
static calx_status *read_cell(csv_reader *r, bool *out_last)
{
  cx_data_csv *csv = r->csv;
  if (!cx_grow(&csv->cells, &csv->room_cells, r->n_cells + 1,
               sizeof *csv->cells)) {
    return cx_out_of_memory();
  }
  csv->cells[r->n_cells++] = r->to;
  bool quoted = !at_end(r) && csv->text[r->from] == '"';
  CALX_TRY(quoted ? read_quoted(r) : read_plain(r));
  *out_last = at_end(r) || csv->text[r->from] != r->delimiter;
  if (!*out_last) {
    r->from++;
  } else if (!at_end(r)) {
    pass_line_end(r);
  }
  csv->text[r->to++] = '\0';
  return NULL;
}

static calx_status *read_row(csv_reader *r)
{
  cx_data_csv *csv = r->csv;
  size_t line = r->line, first = r->n_cells;
  if (!cx_grow(&csv->lines, &csv->room_lines, r->n_lines + 1,
               sizeof *csv->lines)) {
    return cx_out_of_memory();
  }
  csv->lines[r->n_lines++] = line;
  for (bool last = false; !last;) CALX_TRY(read_cell(r, &last));
  size_t columns = r->n_cells - first;
  if (r->n_lines == 1) csv->n_columns = columns;
  if (columns == csv->n_columns) return NULL;
  return cx_error(CALX_DATA_LOSS, "'%s': line %zu: %zu cells, line %zu has %zu",
                  csv->name, line, columns, csv->lines[0], csv->n_columns);
}

static calx_status *read_rows(csv_reader *r)
{
  if (r->size >= 3 && memcmp(r->csv->text, "\xef\xbb\xbf", 3) == 0) {
    r->from = 3;
  }
  while (!at_end(r)) {
    if (ends_line(r->csv->text[r->from])) {
      pass_line_end(r);
    } else {
      CALX_TRY(read_row(r));
    }
  }
  if (r->csv->has_header && r->n_lines == 0) {
    return failed(r, r->line, "there is no header");
  }
  r->csv->n_rows = r->n_lines - (r->csv->has_header ? 1 : 0);
  return NULL;
}

calx_status *cx_data_csv_decode(const char *name, char *text, size_t size,
                                char delimiter, bool has_header,
                                cx_data_csv *out_csv)
{
  *out_csv =
      (cx_data_csv){ .name = name, .has_header = has_header, .text = text };
  csv_reader r = {
    .csv = out_csv, .size = size, .line = 1, .delimiter = delimiter
  };
  calx_status *status = read_rows(&r);
  if (status != NULL) cx_data_csv_free(out_csv);
  return status;
}

calx_status *cx_data_csv_read(const char *path, char delimiter, bool has_header,
                              cx_data_csv *out_csv)
{
  char *text;
  size_t size;
  *out_csv = (cx_data_csv){ 0 };
  CALX_TRY(cx_file_read_regular(path, MOST_BYTES, &text, &size));
  return cx_data_csv_decode(path, text, size, delimiter, has_header, out_csv);
}

void cx_data_csv_free(cx_data_csv *csv)
{
  cx_free(csv->text);
  cx_free(csv->cells);
  cx_free(csv->lines);
  *csv = (cx_data_csv){ 0 };
}

// ---- asking it --------------------------------------------------------------

const char *cx_data_csv_cell(const cx_data_csv *csv, size_t row, size_t column)
{
  CX_ASSERT(row < csv->n_rows && column < csv->n_columns);
  size_t at = (row + (csv->has_header ? 1 : 0)) * csv->n_columns + column;
  return csv->text + csv->cells[at];
}

const char *cx_data_csv_title(const cx_data_csv *csv, size_t column)
{
  return csv->has_header ? csv->text + csv->cells[column] : NULL;
}

size_t cx_data_csv_line(const cx_data_csv *csv, size_t row)
{
  return csv->lines[row + (csv->has_header ? 1 : 0)];
}

calx_status *cx_data_csv_column(const cx_data_csv *csv, const char *column,
                                size_t *out_column)
{
  size_t found = 0;
  int64_t number;
  if (column == NULL) {
    return cx_invalid("'%s': a column's name is NULL", csv->name);
  }
  for (size_t c = 0; csv->has_header && c < csv->n_columns; c++) {
    if (strcmp(cx_data_csv_title(csv, c), column) != 0) continue;
    *out_column = c;
    found++;
  }
  if (found > 1) {
    return cx_invalid(
        "'%s': %zu columns are called '%.100s': say which by its number",
        csv->name, found, column);
  }
  if (found == 1) return NULL;
  bool is_number = csv->n_columns > 0 &&
                   cx_read_int(column, 0, (int64_t)csv->n_columns - 1, &number);
  if (!is_number) {
    return cx_error(
        CALX_NOT_FOUND, "'%s': no column is called '%.100s'%s; there are %zu",
        csv->name, column, csv->has_header ? "" : ", and there is no header",
        csv->n_columns);
  }
  *out_column = (size_t)number;
  return NULL;
}

calx_status *cx_data_csv_bad_cell(const cx_data_csv *csv, size_t row,
                                  size_t column, const char *what)
{
  char title[80], cell[48];
  const char *t = cx_data_csv_title(csv, column);
  const char *c = cx_data_csv_cell(csv, row, column);
  cx_text_plain(c, strlen(c), cell, sizeof cell);
  if (t != NULL) cx_text_plain(t, strlen(t), title, sizeof title);
  return t != NULL
             ? cx_error(CALX_DATA_LOSS,
                        "'%s': line %zu, column '%s': '%s' is %s", csv->name,
                        cx_data_csv_line(csv, row), title, cell, what)
             : cx_error(CALX_DATA_LOSS,
                        "'%s': line %zu, column %zu: '%s' is %s", csv->name,
                        cx_data_csv_line(csv, row), column, cell, what);
}
