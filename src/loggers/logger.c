// loggers/logger: the public calls, and what the loggers with files share.
#include "loggers/logger.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/text.h"

// ---- making and ending ------------------------------------------------------

static calx_logger no_memory;

calx_logger *cx_loggers_logger_new(const calx_logger_functions *functions,
                                   void *user, calx_status *error)
{
  calx_logger *logger = cx_calloc(1, sizeof *logger);
  if (user != NULL && (logger == NULL || error != NULL)) functions->free(user);
  if (logger == NULL) {
    calx_status_free(error);
    return &no_memory;
  }
  if (error == NULL) {
    logger->functions = *functions;
    logger->user = user;
  }
  logger->error = error;
  return logger;
}

calx_logger *calx_logger_new(const calx_logger_functions *functions, void *user)
{
  calx_logger_functions taken = { .size = 0 };
  calx_status *error = NULL;
  if (functions == NULL) {
    error = cx_invalid(
        "calx_logger_new: the functions are NULL: a struct whose .size is set "
        "is wanted");
  } else {
    error = cx_options_take("calx_logger_new", functions, &taken, sizeof taken);
  }
  calx_logger *logger = cx_loggers_logger_new(&taken, NULL, error);
  if (calx_logger_error(logger) == NULL) logger->user = user;
  return logger;
}

const calx_status *calx_logger_error(const calx_logger *logger)
{
  if (logger == NULL) return cx_absent(CX_ABSENT_LOGGER);
  return logger == &no_memory ? cx_out_of_memory() : logger->error;
}

void calx_logger_free(calx_logger *logger)
{
  if (logger == NULL || logger == &no_memory) return;
  if (logger->functions.free != NULL) logger->functions.free(logger->user);
  calx_status_free(logger->error);
  cx_free(logger);
}

// ---- calls ------------------------------------------------------------------

static calx_status *check(const calx_logger *logger)
{
  return cx_status_copy(calx_logger_error(logger));
}

static calx_status *no_name(const char *what, size_t i, size_t count)
{
  return cx_invalid("%s: value %zu of %zu has no name: it is NULL", what, i,
                    count);
}

calx_status *calx_logger_log_metrics(calx_logger *logger,
                                     const calx_logged_value *values,
                                     size_t count, int64_t step)
{
  CALX_TRY(check(logger));
  if (values == NULL && count > 0) {
    return cx_invalid("calx_logger_log_metrics: the values are NULL");
  }
  for (size_t i = 0; i < count; i++) {
    if (values[i].name == NULL) {
      return no_name("calx_logger_log_metrics", i, count);
    }
  }
  if (logger->functions.log_metrics == NULL) return NULL;
  return logger->functions.log_metrics(logger->user, values, count, step);
}

calx_status *calx_logger_log_hyperparams(calx_logger *logger,
                                         const calx_hyperparameter *values,
                                         size_t count)
{
  CALX_TRY(check(logger));
  if (values == NULL && count > 0) {
    return cx_invalid("calx_logger_log_hyperparams: the values are NULL");
  }
  for (size_t i = 0; i < count; i++) {
    if (values[i].name == NULL) {
      return no_name("calx_logger_log_hyperparams", i, count);
    }
  }
  if (logger->functions.log_hyperparams == NULL) return NULL;
  return logger->functions.log_hyperparams(logger->user, values, count);
}

calx_status *calx_logger_log_text(calx_logger *logger, const char *name,
                                  const char *text, int64_t step)
{
  CALX_TRY(check(logger));
  if (name == NULL || text == NULL) {
    return cx_invalid("calx_logger_log_text: the %s is NULL",
                      name == NULL ? "name" : "text");
  }
  if (logger->functions.log_text == NULL) return NULL;
  return logger->functions.log_text(logger->user, name, text, step);
}

calx_status *calx_logger_save(calx_logger *logger)
{
  CALX_TRY(check(logger));
  if (logger->functions.save == NULL) return NULL;
  return logger->functions.save(logger->user);
}

calx_status *calx_logger_finalize(calx_logger *logger, const char *status)
{
  CALX_TRY(check(logger));
  if (status == NULL) {
    return cx_invalid(
        "calx_logger_finalize: the status is NULL; \"success\" or \"failed\" "
        "is wanted");
  }
  if (logger->functions.finalize == NULL) return NULL;
  return logger->functions.finalize(logger->user, status);
}

// ---- names ------------------------------------------------------------------

static const char *ask(calx_logger *logger, const char *(*question)(void *user))
{
  if (calx_logger_error(logger) != NULL || question == NULL) return NULL;
  return question(logger->user);
}

const char *calx_logger_save_dir(calx_logger *logger)
{
  return logger == NULL ? NULL : ask(logger, logger->functions.save_dir);
}

const char *calx_logger_name(calx_logger *logger)
{
  return logger == NULL ? NULL : ask(logger, logger->functions.name);
}

const char *calx_logger_version(calx_logger *logger)
{
  return logger == NULL ? NULL : ask(logger, logger->functions.version);
}

const char *calx_logger_log_dir(calx_logger *logger)
{
  return logger == NULL ? NULL : ask(logger, logger->functions.log_dir);
}

// ---- a run's files ----------------------------------------------------------

calx_status *cx_loggers_run_init(cx_loggers_run *run,
                                 const cx_loggers_options *o)
{
  cx_text prefix = { 0 };
  if (o->prefix != NULL && *o->prefix != '\0') {
    cx_text_format(&prefix, "%s-", o->prefix);
  } else {
    cx_text_append(&prefix, "");
  }
  run->prefix = cx_text_take(&prefix);
  cx_text_free(&prefix);
  if (run->prefix == NULL) return cx_out_of_memory();
  return cx_loggers_folder_init(&run->folder, o->what, o->save_dir, o->name,
                                o->version, o->sub_dir);
}

void cx_loggers_run_end(cx_loggers_run *run)
{
  cx_loggers_folder_free(&run->folder);
  cx_loggers_hyperparameters_free(&run->hyperparameters);
  cx_free(run->prefix);
}

calx_status *cx_loggers_run_begin(cx_loggers_run *run, const char *file,
                                  bool *out_first)
{
  *out_first = !run->has_begun;
  if (run->has_begun) return NULL;
  CALX_TRY(cx_loggers_folder_make(&run->folder, file));
  run->has_begun = true;
  return NULL;
}

calx_status *cx_loggers_run_write_yaml(cx_loggers_run *run)
{
  cx_text text = { 0 };
  cx_loggers_put_yaml(&text, &run->hyperparameters);
  char *path = cx_loggers_folder_file(&run->folder, "hparams.yaml");
  calx_status *status = cx_file_write_text(path, &text);
  cx_free(path);
  cx_text_free(&text);
  return status;
}

calx_status *cx_loggers_run_hyperparameters(cx_loggers_run *run,
                                            const calx_hyperparameter *values,
                                            size_t count)
{
  for (size_t i = 0; i < count; i++) {
    CALX_TRY(cx_loggers_hyperparameters_set(&run->hyperparameters, &values[i]));
  }
  return cx_loggers_run_write_yaml(run);
}

bool cx_loggers_is_replaced(const calx_logged_value *values, size_t count,
                            size_t i, const char *prefix)
{
  if (*prefix == '\0' && strcmp(values[i].name, "step") == 0) return true;
  for (size_t k = i + 1; k < count; k++) {
    if (strcmp(values[i].name, values[k].name) == 0) return true;
  }
  return false;
}

const char *cx_loggers_run_save_dir(void *user)
{
  return ((cx_loggers_run *)user)->folder.save_dir;
}

const char *cx_loggers_run_name(void *user)
{
  return ((cx_loggers_run *)user)->folder.name;
}

const char *cx_loggers_run_version(void *user)
{
  cx_loggers_run *run = user;
  cx_log_failure("calx_logger_version",
                 cx_loggers_folder_resolve(&run->folder));
  return run->folder.version;
}

const char *cx_loggers_run_log_dir(void *user)
{
  cx_loggers_run *run = user;
  cx_log_failure("calx_logger_log_dir",
                 cx_loggers_folder_resolve(&run->folder));
  return run->folder.path;
}
