// loggers/csv_table: rows of named numbers, and their text as Python's csv
// module writes it.
#include "loggers/csv_table.h"

#include <string.h>

#include "base/alloc.h"
#include "loggers/number.h"

// ---- columns ----------------------------------------------------------------

// Where the column is, or where it is to be.
static size_t index_of(const cx_loggers_table *t, const char *name,
                       bool *out_found)
{
  size_t low = 0, high = t->n_columns;
  *out_found = false;
  while (low < high && !*out_found) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(t->columns[middle].name, name);
    *out_found = order == 0;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return high;
}

static calx_status *add_column(cx_loggers_table *t, const char *name)
{
  bool found;
  size_t at = index_of(t, name, &found);
  if (found) return NULL;
  char *copy = cx_strdup(name);
  if (copy == NULL || !cx_grow(&t->columns, &t->columns_capacity,
                               t->n_columns + 1, sizeof *t->columns)) {
    cx_free(copy);
    return cx_out_of_memory();
  }
  cx_loggers_column *column = &t->columns[at];
  memmove(column + 1, column, (t->n_columns++ - at) * sizeof *column);
  *column = (cx_loggers_column){ .name = copy };
  for (size_t i = 0; i < t->n_cells; i++) {
    if (t->cells[i].column >= at) t->cells[i].column++;
  }
  return NULL;
}

// "PREFIXname", which is `name` itself where there is no prefix.
static calx_status *full_name(cx_text *text, const char *prefix,
                              const char *name)
{
  cx_text_clear(text);
  cx_text_append(text, prefix);
  cx_text_append(text, name);
  return cx_text_failed(text) ? cx_out_of_memory() : NULL;
}

static calx_status *add_columns(cx_loggers_table *t, const char *prefix,
                                const calx_logged_value *values, size_t count)
{
  cx_text name = { 0 };
  calx_status *status = add_column(t, "step");
  for (size_t i = 0; status == NULL && i < count; i++) {
    status = full_name(&name, prefix, values[i].name);
    if (status == NULL) status = add_column(t, cx_text_str(&name));
  }
  cx_text_free(&name);
  return status;
}

// ---- rows -------------------------------------------------------------------

static void set_cell(cx_loggers_table *t, size_t first, size_t column,
                     const calx_logged_value *value)
{
  size_t i = first;
  while (i < t->n_cells && t->cells[i].column != column) i++;
  if (i == t->n_cells) t->n_cells++;
  t->cells[i] = (cx_loggers_cell){ column, value->value, value->is_integer };
}

static calx_status *add_cells(cx_loggers_table *t, const char *prefix,
                              const calx_logged_value *values, size_t count)
{
  const size_t first = t->n_cells;
  cx_text name = { 0 };
  calx_status *status = NULL;
  bool found;
  for (size_t i = 0; status == NULL && i < count; i++) {
    status = full_name(&name, prefix, values[i].name);
    if (status == NULL) {
      size_t column = index_of(t, cx_text_str(&name), &found);
      set_cell(t, first, column, &values[i]);
    }
  }
  cx_text_free(&name);
  if (status != NULL) t->n_cells = first;
  return status;
}

calx_status *cx_loggers_table_add(cx_loggers_table *t, const char *prefix,
                                  const calx_logged_value *values, size_t count,
                                  int64_t step)
{
  CALX_TRY(add_columns(t, prefix, values, count));
  if (!cx_grow(&t->cells, &t->cells_capacity, t->n_cells + count + 1,
               sizeof *t->cells) ||
      !cx_grow(&t->rows, &t->rows_capacity, t->n_rows + 1, sizeof *t->rows)) {
    return cx_out_of_memory();
  }
  const size_t first = t->n_cells;
  CALX_TRY(add_cells(t, prefix, values, count));
  t->rows[t->n_rows++] = (cx_loggers_row){ step, first, t->n_cells - first };
  return NULL;
}

void cx_loggers_table_free(cx_loggers_table *t)
{
  for (size_t i = 0; i < t->n_columns; i++) cx_free(t->columns[i].name);
  cx_free(t->columns);
  cx_free(t->cells);
  cx_free(t->rows);
}

bool cx_loggers_table_grew(const cx_loggers_table *t)
{
  for (size_t i = 0; i < t->n_columns; i++) {
    if (!t->columns[i].is_written) return true;
  }
  return false;
}

void cx_loggers_table_written(cx_loggers_table *t)
{
  for (size_t i = 0; i < t->n_columns; i++) t->columns[i].is_written = true;
  t->n_rows = t->n_cells = 0;
}

// ---- text -------------------------------------------------------------------

// In quotes where it has what ends a cell or a line (csv.QUOTE_MINIMAL).
static void put_name(cx_text *out, const char *name)
{
  if (strpbrk(name, ",\"\r\n") == NULL) {
    cx_text_append(out, name);
    return;
  }
  cx_text_char(out, '"');
  for (; *name != '\0'; name++) {
    if (*name == '"') cx_text_char(out, '"');
    cx_text_char(out, *name);
  }
  cx_text_char(out, '"');
}

void cx_loggers_table_put_header(cx_text *out, const cx_loggers_table *t,
                                 bool written)
{
  bool first = true;
  for (size_t i = 0; i < t->n_columns; i++) {
    if (written && !t->columns[i].is_written) continue;
    if (!first) cx_text_char(out, ',');
    first = false;
    put_name(out, t->columns[i].name);
  }
  cx_text_append(out, "\r\n");
}

static void put_cell(cx_text *out, const cx_loggers_table *t,
                     const cx_loggers_row *row, size_t column)
{
  if (strcmp(t->columns[column].name, "step") == 0) {
    cx_text_int(out, row->step);
    return;
  }
  for (size_t i = row->first; i < row->first + row->count; i++) {
    const cx_loggers_cell *cell = &t->cells[i];
    if (cell->column != column) continue;
    cx_loggers_put_number(out, cell->value, cell->is_integer);
    return;
  }
}

void cx_loggers_table_put_rows(cx_text *out, const cx_loggers_table *t)
{
  for (size_t r = 0; r < t->n_rows; r++) {
    for (size_t i = 0; i < t->n_columns; i++) {
      if (i > 0) cx_text_char(out, ',');
      put_cell(out, t, &t->rows[r], i);
    }
    cx_text_append(out, "\r\n");
  }
}

// The next cell of a line, which numbers alone are in.
static size_t cell_size(const char *at, const char *end)
{
  const char *p = at;
  while (p < end && *p != ',' && *p != '\r' && *p != '\n') p++;
  return (size_t)(p - at);
}

void cx_loggers_table_widen(cx_text *out, const cx_loggers_table *t,
                            const char *lines, size_t size)
{
  const char *at = lines, *end = lines + size;
  while (at < end) {
    for (size_t i = 0; i < t->n_columns; i++) {
      if (i > 0) cx_text_char(out, ',');
      if (!t->columns[i].is_written) continue;
      size_t n = cell_size(at, end);
      cx_text_append_n(out, at, n);
      at += n;
      if (at < end && *at == ',') at++;
    }
    cx_text_append(out, "\r\n");
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    at = line_end == NULL ? end : line_end + 1;
  }
}
