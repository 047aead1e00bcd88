// loggers/csv: metrics.csv, byte for byte as Lightning's CSVLogger writes it.
//
// Rows wait in memory until the next save. Those that bring no new column are
// added to the file; else the file is written anew, whole or not at all.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/text.h"
#include "loggers/csv_table.h"
#include "loggers/logger.h"

#define FILE_NAME "metrics.csv"

typedef struct csv {
  cx_loggers_run run;
  cx_loggers_table table;
  int64_t flush_every;
} csv;

// ---- writing ----------------------------------------------------------------

// The content with new columns, from what the file has: `old`, if not NULL.
static calx_status *put_whole(cx_text *out, const csv *l, const char *path,
                              const char *old, size_t size)
{
  cx_loggers_table_put_header(out, &l->table, false);
  if (old != NULL) {
    cx_text header = { 0 };
    cx_loggers_table_put_header(&header, &l->table, true);
    bool same = header.size <= size &&
                memcmp(cx_text_str(&header), old, header.size) == 0;
    size_t skip = header.size;
    bool failed = cx_text_failed(&header);
    cx_text_free(&header);
    if (failed) return cx_out_of_memory();
    if (!same) {
      return cx_error(CALX_FAILED_PRECONDITION,
                      "'%s' has other columns than this logger wrote: "
                      "something else has written it. Move it away, or give "
                      "this logger another version",
                      path);
    }
    cx_loggers_table_widen(out, &l->table, old + skip, size - skip);
  }
  cx_loggers_table_put_rows(out, &l->table);
  return NULL;
}

static calx_status *write_whole(const csv *l, const char *path, bool exists)
{
  cx_text text = { 0 };
  char *old = NULL;
  size_t size = 0;
  calx_status *status = NULL;
  if (exists) status = cx_file_read_regular(path, 0, &old, &size);
  if (status == NULL) status = put_whole(&text, l, path, old, size);
  if (status == NULL) status = cx_file_write_text(path, &text);
  cx_free(old);
  cx_text_free(&text);
  return status;
}

static calx_status *append_rows(const csv *l, const char *path)
{
  cx_text text = { 0 };
  cx_loggers_table_put_rows(&text, &l->table);
  calx_status *status = NULL;
  if (cx_text_failed(&text)) {
    status = cx_out_of_memory();
  } else {
    status = cx_loggers_append(path, cx_text_str(&text), text.size, false);
  }
  cx_text_free(&text);
  return status;
}

static calx_status *write_rows(csv *l)
{
  if (l->table.n_rows == 0) return NULL;
  char *path = cx_loggers_folder_file(&l->run.folder, FILE_NAME);
  if (path == NULL) return cx_out_of_memory();
  const bool exists = cx_file_exists(path);
  calx_status *status = exists && !cx_loggers_table_grew(&l->table)
                            ? append_rows(l, path)
                            : write_whole(l, path, exists);
  if (status == NULL) cx_loggers_table_written(&l->table);
  cx_free(path);
  return status;
}

// ---- the functions ----------------------------------------------------------

static calx_status *log_metrics(void *user, const calx_logged_value *values,
                                size_t count, int64_t step)
{
  csv *l = user;
  bool first;
  CALX_TRY(cx_loggers_run_begin(&l->run, FILE_NAME, &first));
  CALX_TRY(cx_loggers_table_add(&l->table, l->run.prefix, values, count, step));
  const bool flush = (step % l->flush_every + 1) % l->flush_every == 0;
  return flush ? write_rows(l) : NULL;
}

static calx_status *log_hyperparams(void *user,
                                    const calx_hyperparameter *values,
                                    size_t count)
{
  csv *l = user;
  bool first;
  CALX_TRY(cx_loggers_run_begin(&l->run, FILE_NAME, &first));
  return cx_loggers_run_hyperparameters(&l->run, values, count);
}

static calx_status *save(void *user)
{
  csv *l = user;
  bool first;
  CALX_TRY(cx_loggers_run_begin(&l->run, FILE_NAME, &first));
  return write_rows(l);
}

static calx_status *finalize(void *user, const char *status)
{
  csv *l = user;
  (void)status;
  return l->run.has_begun ? write_rows(l) : NULL;
}

static void csv_free(void *user)
{
  csv *l = user;
  cx_loggers_run_end(&l->run);
  cx_loggers_table_free(&l->table);
  cx_free(l);
}

static const calx_logger_functions functions = {
  .size = sizeof functions,
  .log_metrics = log_metrics,
  .log_hyperparams = log_hyperparams,
  .save = save,
  .finalize = finalize,
  .save_dir = cx_loggers_run_save_dir,
  .name = cx_loggers_run_name,
  .version = cx_loggers_run_version,
  .log_dir = cx_loggers_run_log_dir,
  .free = csv_free,
};

static calx_status *init(csv *l, const char *save_dir,
                         const calx_csv_logger_options *options)
{
  calx_csv_logger_options o;
  CALX_TRY(cx_options_take("calx_csv_logger", options, &o, sizeof o));
  if (o.flush_logs_every_n_steps < 0) {
    return cx_invalid(
        "calx_csv_logger: .flush_logs_every_n_steps is %lld; a "
        "positive number is wanted, or 0 for 100",
        (long long)o.flush_logs_every_n_steps);
  }
  l->flush_every =
      o.flush_logs_every_n_steps != 0 ? o.flush_logs_every_n_steps : 100;
  return cx_loggers_run_init(&l->run,
                             &(cx_loggers_options){ .what = "calx_csv_logger",
                                                    .save_dir = save_dir,
                                                    .name = o.name,
                                                    .version = o.version,
                                                    .prefix = o.prefix });
}

calx_logger *calx_csv_logger_with(const char *save_dir,
                                  const calx_csv_logger_options *options)
{
  csv *l = cx_calloc(1, sizeof *l);
  calx_status *error =
      l == NULL ? cx_out_of_memory() : init(l, save_dir, options);
  return cx_loggers_logger_new(&functions, l, error);
}
