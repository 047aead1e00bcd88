// train/trainer: the trainer's life: what a program gives it, and what it adds.
#include "calx/trainer.h"

#include <string.h>

#include "base/alloc.h"
#include "lazy/lazy.h"
#include "train/files.h"
#include "train/internal.h"
#include "train/options_table.h"

static calx_trainer nil = { .exit_code = 1 };  // without memory

static calx_status *take_callbacks(calx_trainer *t,
                                   const calx_trainer_options *o)
{
  const size_t n = o->n_callbacks;
  if (n > 0 && o->callbacks == NULL) {
    return cx_invalid("trainer: n_callbacks is %zu and callbacks is NULL", n);
  }
  t->callbacks = cx_calloc(n + 1, sizeof(calx_callback *));
  if (t->callbacks == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    calx_callback *c = o->callbacks[i];
    if (c == NULL) return cx_invalid("trainer: callback %zu is NULL", i);
    if (c->error != NULL) return cx_status_copy(c->error);
    if (c->options.size == 0) return cx_out_of_memory();
    t->callbacks[t->n_callbacks++] = c;
  }
  return NULL;
}

static calx_status *take_loggers(calx_trainer *t, const calx_trainer_options *o)
{
  const size_t n = o->n_loggers;
  if (n > 0 && o->loggers == NULL) {
    return cx_invalid("trainer: n_loggers is %zu and loggers is NULL", n);
  }
  t->loggers = cx_calloc(n + 1, sizeof(calx_logger *));
  if (t->loggers == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    if (o->loggers[i] == NULL)
      return cx_invalid("trainer: logger %zu is NULL", i);
    const calx_status *error = calx_logger_error(o->loggers[i]);
    if (error != NULL) return cx_status_copy(error);
    t->loggers[t->n_loggers++] = o->loggers[i];
  }
  return NULL;
}

// What the program wrote, and for the rest what the environment says.
static calx_status *take_options(calx_trainer *t,
                                 const calx_trainer_options *options)
{
  cx_train_given given;
  CALX_TRY(cx_train_given_begin(options, &given));
  given.size = sizeof given.options;
  CALX_TRY(cx_train_given_environment(&given));
  const calx_trainer_options *o = &given.options;
  CALX_TRY(cx_train_configure(o, &t->config));
  cx_train_report_options(o, &t->config);
  CALX_TRY(cx_train_expand_home(
      o->default_root_dir != NULL ? o->default_root_dir : ".",
      &t->default_root_dir));
  CALX_TRY(take_callbacks(t, o));
  CALX_TRY(take_loggers(t, o));
  return cx_train_add_defaults(t);
}

calx_trainer *calx_trainer_new_with(const calx_trainer_options *options)
{
  calx_trainer *t = cx_calloc(1, sizeof *t);
  if (t == NULL) return &nil;
  t->error = take_options(t, options);
  t->exit_code = t->error != NULL;
  return t;
}

calx_trainer *cx_train_refused(calx_status *error)
{
  calx_trainer *t = cx_calloc(1, sizeof *t);
  if (t == NULL) {
    calx_status_free(error);
    return &nil;
  }
  t->error = error;
  t->exit_code = 1;
  return t;
}

void calx_trainer_free(calx_trainer *t)
{
  if (t == NULL || t == &nil) return;
  if (t->module != NULL) {
    cx_log("trainer_free: a step or a hook cannot free the trainer of its run");
    return;
  }
  cx_train_free_metrics(t);
  calx_value_free(t->checkpoint);
  for (size_t i = 0; i < t->n_own_callbacks; i++) {
    calx_callback_free(t->own_callbacks[i]);
  }
  calx_logger_free(t->own_logger);
  cx_free(t->callbacks);
  cx_free(t->loggers);
  calx_string_free(t->default_root_dir);
  calx_status_free(t->error);
  cx_free(t);
}

calx_status *calx_trainer_error(const calx_trainer *t)
{
  if (t == NULL) return cx_invalid("the trainer is NULL");
  return t == &nil ? cx_out_of_memory() : cx_status_copy(t->error);
}

calx_status *calx_trainer_set_max_epochs(calx_trainer *t, int64_t max_epochs)
{
  CALX_TRY(calx_trainer_error(t));
  CALX_TRY(cx_train_check_end("max_epochs", max_epochs));
  t->config.max_epochs = max_epochs;
  return NULL;
}
