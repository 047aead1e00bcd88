// data/image_csv: a CSV file of names and labels beside a folder of images.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"
#include "data/csv_number.h"
#include "data/dataset.h"
#include "data/image_list.h"

typedef struct labelled_files {
  const char *folder;
  calx_image_csv_options options;
  cx_data_csv csv;
  size_t names;     // the column
  size_t *columns;  // of the labels
  size_t n_columns;
  cx_data_image_list list;
} labelled_files;

// ---- options and columns ----------------------------------------------------

static calx_status *take_options(const calx_image_csv_options *given,
                                 labelled_files *l)
{
  calx_image_csv_options *o = &l->options;
  CALX_TRY(cx_options_take("image csv", given, o, sizeof *o));
  const calx_image_dataset_options common = { .size = sizeof common,
                                              .transform = o->transform,
                                              .seed = o->seed,
                                              .mode = o->mode,
                                              .max_pixels = o->max_pixels };
  CALX_TRY(cx_data_image_options("image csv", &common, &l->list));
  if (o->target_dtype == CALX_DTYPE_DEFAULT) o->target_dtype = CALX_I64;
  if (o->target_dtype != CALX_I64 && o->target_dtype != CALX_F32) {
    return cx_invalid(
        "image csv: target_dtype is i64, for classes, or f32, "
        "for numbers");
  }
  if ((o->label_columns == NULL) == (o->n_label_columns == 0)) return NULL;
  return cx_invalid("image csv: label_columns is %s, n_label_columns is %zu",
                    o->label_columns == NULL ? "NULL" : "given",
                    o->n_label_columns);
}

static calx_status *choose_columns(labelled_files *l)
{
  const calx_image_csv_options *o = &l->options;
  if (o->image_column != NULL) {
    CALX_TRY(cx_data_csv_column(&l->csv, o->image_column, &l->names));
  }
  size_t most = o->n_label_columns > l->csv.n_columns ? o->n_label_columns
                                                      : l->csv.n_columns;
  l->columns = cx_calloc(most, sizeof *l->columns);
  if (l->columns == NULL) return cx_out_of_memory();
  for (size_t k = 0; k < o->n_label_columns; k++) {
    CALX_TRY(cx_data_csv_column(&l->csv, o->label_columns[k], &l->columns[k]));
    l->n_columns++;
  }
  for (size_t k = 0; o->n_label_columns == 0 && k < l->csv.n_columns; k++) {
    if (k != l->names) l->columns[l->n_columns++] = k;
  }
  if (l->n_columns > 0 && l->csv.n_rows > 0) return NULL;
  return cx_error(CALX_DATA_LOSS, "'%s': there is no %s", l->csv.name,
                  l->n_columns == 0 ? "column of labels" : "row");
}

// ---- names ------------------------------------------------------------------

// A name may have folders in it, but stays below the folder given.
static bool leaves_folder(const char *name)
{
  if (name[0] == '/') return true;
  for (const char *at = name; at != NULL; at = strchr(at, '/')) {
    if (*at == '/') at++;
    if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0')) {
      return true;
    }
  }
  return false;
}

static calx_status *add_names(labelled_files *l)
{
  const char *suffix = l->options.suffix != NULL ? l->options.suffix : "";
  for (size_t row = 0; row < l->csv.n_rows; row++) {
    const char *name = cx_data_csv_cell(&l->csv, row, l->names);
    if (name[0] == '\0') {
      return cx_data_csv_bad_cell(&l->csv, row, l->names,
                                  "empty, an image's name is wanted");
    }
    if (leaves_folder(name)) {
      return cx_invalid(
          "'%s': line %zu: the name '%s' leads out of the folder "
          "of images",
          l->csv.name, cx_data_csv_line(&l->csv, row), name);
    }
    cx_text path = { 0 };
    cx_text_format(&path, "%s/%s%s", l->folder, name, suffix);
    CALX_TRY(cx_data_image_add(&l->list, cx_text_take(&path)));
  }
  return NULL;
}

// ---- labels -----------------------------------------------------------------

static const cx_data_csv_missing none_missing = { .allowed = false };

static calx_status *number(const labelled_files *l, size_t row, size_t k,
                           double *out)
{
  return cx_data_csv_number(&l->csv, row, l->columns[k], CALX_F64,
                            &none_missing, out);
}

static calx_status *take_numbers(labelled_files *l)
{
  size_t count;
  l->list.target_rank = l->n_columns > 1;
  l->list.target_count = (int64_t)l->n_columns;
  if (!cx_mul_size(l->csv.n_rows, l->n_columns, &count)) {
    return cx_out_of_memory();
  }
  l->list.numbers = cx_calloc(count, sizeof *l->list.numbers);
  if (l->list.numbers == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    CALX_TRY(cx_data_csv_number(&l->csv, i / l->n_columns,
                                l->columns[i % l->n_columns], CALX_F32,
                                &none_missing, &l->list.numbers[i]));
  }
  return NULL;
}

// The column that has 1, where all others have 0.
static calx_status *take_marked(labelled_files *l)
{
  for (size_t row = 0; row < l->csv.n_rows; row++) {
    size_t ones = 0;
    for (size_t k = 0; k < l->n_columns; k++) {
      double value = 0;
      CALX_TRY(number(l, row, k, &value));
      if (value != 0 && value != 1) {
        return cx_data_csv_bad_cell(&l->csv, row, l->columns[k],
                                    "neither 0 nor 1");
      }
      if (value == 1) l->list.classes[row] = (int64_t)k;
      ones += value == 1;
    }
    if (ones != 1) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': line %zu: %zu of %zu labels are 1, one must be: "
                      "as numbers, .target_dtype = CALX_F32, any may be",
                      l->csv.name, cx_data_csv_line(&l->csv, row), ones,
                      l->n_columns);
    }
  }
  return NULL;
}

static int by_text(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// All texts in order, each once. @return how many
static size_t sort_texts(const char **texts, size_t count)
{
  size_t kept = 0;
  qsort(texts, count, sizeof *texts, by_text);
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || strcmp(texts[kept - 1], texts[i]) != 0) {
      texts[kept++] = texts[i];
    }
  }
  return kept;
}

static calx_status *name_classes(labelled_files *l, const char *const *texts,
                                 size_t count)
{
  l->list.class_names = cx_calloc(count, sizeof *l->list.class_names);
  if (l->list.class_names == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    l->list.class_names[i] = cx_strdup(texts[i]);
    if (l->list.class_names[i] == NULL) return cx_out_of_memory();
    l->list.n_classes++;
  }
  return NULL;
}

static calx_status *take_texts(labelled_files *l)
{
  size_t n = l->csv.n_rows;
  const char **texts = cx_calloc(n, sizeof *texts);
  if (texts == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  for (size_t row = 0; row < n; row++) {
    texts[row] = cx_data_csv_cell(&l->csv, row, l->columns[0]);
    if (texts[row][0] != '\0' || status != NULL) continue;
    status = cx_data_csv_bad_cell(&l->csv, row, l->columns[0],
                                  "empty, a label is wanted");
  }
  size_t count = sort_texts(texts, n);
  for (size_t row = 0; row < n; row++) {
    const char *text = cx_data_csv_cell(&l->csv, row, l->columns[0]);
    const char **found = bsearch(&text, texts, count, sizeof *texts, by_text);
    l->list.classes[row] = found - texts;
  }
  if (status == NULL) status = name_classes(l, texts, count);
  cx_free(texts);
  return status;
}

// One column: numbers of classes where all cells are numbers, else texts.
static calx_status *take_one(labelled_files *l)
{
  for (size_t row = 0; row < l->csv.n_rows; row++) {
    double value = 0;
    calx_status *status = number(l, row, 0, &value);
    bool is_text = calx_status_code(status) == CALX_DATA_LOSS;
    if (!is_text && status != NULL) return status;
    calx_status_free(status);
    if (is_text) return take_texts(l);
    if (!(value >= 0 && value < 0x1p53) || (double)(int64_t)value != value) {
      return cx_data_csv_bad_cell(&l->csv, row, l->columns[0],
                                  "no class: a whole number from 0, or texts "
                                  "in the column");
    }
    l->list.classes[row] = (int64_t)value;
  }
  return NULL;
}

static calx_status *take_labels(labelled_files *l)
{
  if (l->options.target_dtype == CALX_F32) return take_numbers(l);
  l->list.classes = cx_calloc(l->csv.n_rows, sizeof *l->list.classes);
  if (l->list.classes == NULL) return cx_out_of_memory();
  if (l->n_columns == 1) return take_one(l);
  CALX_TRY(take_marked(l));
  const char **titles = cx_calloc(l->n_columns, sizeof *titles);
  if (titles == NULL) return cx_out_of_memory();
  for (size_t k = 0; k < l->n_columns; k++) {
    titles[k] = cx_data_csv_title(&l->csv, l->columns[k]);
  }
  calx_status *status = name_classes(l, titles, l->n_columns);
  cx_free(titles);
  return status;
}

static calx_status *read_all(const char *path,
                             const calx_image_csv_options *options,
                             labelled_files *l)
{
  CALX_TRY(take_options(options, l));
  if (path == NULL || l->folder == NULL) {
    return cx_invalid("image csv: the path of the %s is NULL",
                      path == NULL ? "CSV file" : "folder");
  }
  CALX_TRY(cx_data_csv_read(path, ',', true, &l->csv));
  CALX_TRY(choose_columns(l));
  CALX_TRY(add_names(l));
  return take_labels(l);
}

calx_dataset *calx_dataset_image_csv_with(const char *csv, const char *folder,
                                          const calx_image_csv_options *options)
{
  labelled_files l = { .folder = folder };
  calx_status *status = read_all(csv, options, &l);
  cx_data_csv_free(&l.csv);
  cx_free(l.columns);
  return cx_data_image_dataset(status, &l.list);
}
