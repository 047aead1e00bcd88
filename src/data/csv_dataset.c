// data/csv_dataset: columns of a CSV file as a dataset of numbers.
//
// All cells become numbers when the dataset is made, so that a sample cannot
// fail later; the texts are dropped then.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "data/csv_number.h"
#include "data/dataset.h"

typedef struct csv_rows {
  size_t n_columns;  // of the data
  size_t *columns;   // which they are
  bool has_target;
  size_t target;
  calx_field fields[2];
  size_t n_fields;
  size_t n_rows;
  size_t row_bytes[2];
  char *data[2];  // (rows, …)
  cx_data_csv_missing missing;
} csv_rows;

static bool is_real(calx_dtype dtype)
{
  return cx_dtype_valid(dtype) && !cx_dtype_is_complex(dtype);
}

static void free_rows(void *user)
{
  csv_rows *r = user;
  cx_free(r->columns);
  cx_free(r->data[0]);
  cx_free(r->data[1]);
  cx_free(r);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const csv_rows *r = user;
  for (size_t k = 0; k < r->n_fields; k++) {
    if (r->row_bytes[k] == 0) continue;
    memcpy(fields[k], r->data[k] + (size_t)index * r->row_bytes[k],
           r->row_bytes[k]);
  }
  return NULL;
}

static calx_status *take_options(const calx_csv_options *given,
                                 calx_csv_options *out)
{
  CALX_TRY(cx_options_take("csv dataset", given, out, sizeof *out));
  if (out->delimiter == '\0') out->delimiter = ',';
  if (out->delimiter == '"' || out->delimiter == '\n' ||
      out->delimiter == '\r') {
    return cx_invalid("csv dataset: a quote or a line's end as delimiter");
  }
  if (out->dtype == CALX_DTYPE_DEFAULT) out->dtype = CALX_F32;
  if (out->target_dtype == CALX_DTYPE_DEFAULT) out->target_dtype = out->dtype;
  if (!is_real(out->dtype) || !is_real(out->target_dtype)) {
    return cx_invalid(
        "csv dataset: there is no such real dtype as %d",
        (int)(is_real(out->dtype) ? out->target_dtype : out->dtype));
  }
  if ((out->columns == NULL) != (out->n_columns == 0)) {
    return cx_invalid("csv dataset: columns is %s, n_columns is %zu",
                      out->columns == NULL ? "NULL" : "given", out->n_columns);
  }
  return NULL;
}

// A missing value is allowed where `missing` is not the plain 0.
static calx_status *take_missing(const calx_csv_options *o, csv_rows *r)
{
  r->missing = (cx_data_csv_missing){ !cx_is_default(o->missing), o->missing };
  if (!r->missing.allowed) return NULL;
  if (r->missing.value == 0) r->missing.value = 0;  // CALX_ZERO is -0
  const calx_dtype dtypes[] = { o->dtype, o->target_dtype };
  for (size_t k = 0; k < 2; k++) {
    char element[8];
    cx_store_double(dtypes[k], element, o->missing);
    bool same = cx_load_double(dtypes[k], element) == o->missing;
    if (cx_dtype_is_float(dtypes[k]) || same) continue;
    return cx_invalid("csv dataset: missing is %g, which %s does not have",
                      o->missing, calx_dtype_name(dtypes[k]));
  }
  return NULL;
}

static calx_status *choose_columns(const cx_data_csv *csv,
                                   const calx_csv_options *o, csv_rows *r)
{
  if (o->target != NULL) {
    CALX_TRY(cx_data_csv_column(csv, o->target, &r->target));
    r->has_target = true;
  }
  size_t most = o->columns != NULL ? o->n_columns : csv->n_columns;
  r->columns = cx_calloc(most + 1, sizeof *r->columns);
  if (r->columns == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < most; i++) {
    size_t column = i;
    if (o->columns != NULL) {
      CALX_TRY(cx_data_csv_column(csv, o->columns[i], &column));
    } else if (r->has_target && column == r->target) {
      continue;
    }
    r->columns[r->n_columns++] = column;
  }
  return NULL;
}

static calx_status *convert(const cx_data_csv *csv, csv_rows *r, size_t row)
{
  const calx_field *f = r->fields;
  char *out = r->data[0] + row * r->row_bytes[0];
  for (size_t i = 0; i < r->n_columns; i++) {
    CALX_TRY(cx_data_csv_number(csv, row, r->columns[i], f[0].dtype,
                                &r->missing, out));
    out += calx_dtype_size(f[0].dtype);
  }
  if (!r->has_target) return NULL;
  return cx_data_csv_number(csv, row, r->target, f[1].dtype, &r->missing,
                            r->data[1] + row * r->row_bytes[1]);
}

static calx_status *fill(const cx_data_csv *csv, const calx_csv_options *o,
                         csv_rows *r)
{
  CALX_TRY(take_missing(o, r));
  CALX_TRY(choose_columns(csv, o, r));
  r->fields[0] = (calx_field){ .name = "data",
                               .dtype = o->dtype,
                               .rank = 1,
                               .dims = { (int64_t)r->n_columns } };
  r->fields[1] = (calx_field){ .name = "target", .dtype = o->target_dtype };
  r->n_fields = r->has_target ? 2 : 1;
  r->n_rows = csv->n_rows;
  for (size_t k = 0; k < r->n_fields; k++) {
    size_t elements = k == 0 ? r->n_columns : 1, bytes;
    r->row_bytes[k] = elements * calx_dtype_size(r->fields[k].dtype);
    if (!cx_mul_size(r->row_bytes[k], r->n_rows, &bytes) ||
        (r->data[k] = cx_alloc(bytes)) == NULL) {
      return cx_out_of_memory();
    }
  }
  for (size_t row = 0; row < r->n_rows; row++) CALX_TRY(convert(csv, r, row));
  return NULL;
}

static calx_status *read_rows(const char *path, const calx_csv_options *given,
                              csv_rows *r)
{
  calx_csv_options o;
  cx_data_csv csv;
  if (path == NULL) return cx_invalid("csv dataset: the path is NULL");
  CALX_TRY(take_options(given, &o));
  CALX_TRY(cx_data_csv_read(path, o.delimiter, !o.no_header, &csv));
  calx_status *status = fill(&csv, &o, r);
  cx_data_csv_free(&csv);
  return status;
}

calx_dataset *calx_dataset_csv_with(const char *path,
                                    const calx_csv_options *options)
{
  csv_rows *r = cx_calloc(1, sizeof *r);
  if (r == NULL) return cx_data_failed(cx_out_of_memory());
  calx_status *status = read_rows(path, options, r);
  if (status != NULL) {
    free_rows(r);
    return cx_data_failed(status);
  }
  return calx_dataset_new((int64_t)r->n_rows, r->fields, r->n_fields, get, r,
                          free_rows);
}
