// loggers/json: metrics.jsonl, one object a line.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/options.h"
#include "base/text.h"
#include "loggers/logger.h"
#include "loggers/number.h"

#define FILE_NAME "metrics.jsonl"

static void put_value(cx_text *line, const calx_logged_value *v)
{
  if (isfinite(v->value)) {
    cx_loggers_put_number(line, v->value, v->is_integer);
  } else {
    cx_json_string(line, isnan(v->value) ? "NaN"
                         : v->value < 0  ? "-Infinity"
                                         : "Infinity");
  }
}

static void put_key(cx_text *line, const char *prefix, const char *name)
{
  cx_text key = { 0 };
  cx_text_append(&key, prefix);
  cx_text_append(&key, name);
  cx_text_append(line, ", ");
  cx_json_string(line, cx_text_str(&key));
  cx_text_append(line, ": ");
  line->failed |= key.failed;
  cx_text_free(&key);
}

static bool is_epoch(const calx_logged_value *v)
{
  return strcmp(v->name, "epoch") == 0;
}

// The step, the epoch, and what else there is in the order that it is given in.
static void put_line(cx_text *line, const char *prefix,
                     const calx_logged_value *values, size_t count,
                     int64_t step)
{
  cx_text_append(line, "{\"step\": ");
  cx_text_int(line, step);
  for (int epochs = 1; epochs >= 0; epochs--) {
    for (size_t i = 0; i < count; i++) {
      if (is_epoch(&values[i]) != (epochs == 1)) continue;
      if (cx_loggers_is_replaced(values, count, i, prefix)) continue;
      put_key(line, prefix, values[i].name);
      put_value(line, &values[i]);
    }
  }
  cx_text_append(line, "}\n");
}

static calx_status *log_metrics(void *user, const calx_logged_value *values,
                                size_t count, int64_t step)
{
  cx_loggers_run *run = user;
  cx_text line = { 0 };
  bool first;
  CALX_TRY(cx_loggers_run_begin(run, FILE_NAME, &first));
  put_line(&line, run->prefix, values, count, step);
  calx_status *status = NULL;
  char *path = cx_loggers_folder_file(&run->folder, FILE_NAME);
  if (cx_text_failed(&line)) {
    status = cx_out_of_memory();
  } else {
    status = cx_loggers_append(path, cx_text_str(&line), line.size, true);
  }
  cx_free(path);
  cx_text_free(&line);
  return status;
}

static calx_status *log_hyperparams(void *user,
                                    const calx_hyperparameter *values,
                                    size_t count)
{
  bool first;
  CALX_TRY(cx_loggers_run_begin(user, FILE_NAME, &first));
  return cx_loggers_run_hyperparameters(user, values, count);
}

static calx_status *save(void *user)
{
  bool first;
  return cx_loggers_run_begin(user, FILE_NAME, &first);
}

static void json_free(void *user)
{
  cx_loggers_run_end(user);
  cx_free(user);
}

static const calx_logger_functions functions = {
  .size = sizeof functions,
  .log_metrics = log_metrics,
  .log_hyperparams = log_hyperparams,
  .save = save,
  .save_dir = cx_loggers_run_save_dir,
  .name = cx_loggers_run_name,
  .version = cx_loggers_run_version,
  .log_dir = cx_loggers_run_log_dir,
  .free = json_free,
};

calx_logger *calx_json_logger_with(const char *save_dir,
                                   const calx_json_logger_options *options)
{
  calx_json_logger_options o;
  cx_loggers_run *run = cx_calloc(1, sizeof *run);
  calx_status *error = run == NULL ? cx_out_of_memory() : NULL;
  if (error == NULL) {
    error = cx_options_take("calx_json_logger", options, &o, sizeof o);
  }
  if (error == NULL) {
    error = cx_loggers_run_init(
        run, &(cx_loggers_options){ .what = "calx_json_logger",
                                    .save_dir = save_dir,
                                    .name = o.name,
                                    .version = o.version,
                                    .prefix = o.prefix });
  }
  return cx_loggers_logger_new(&functions, run, error);
}
