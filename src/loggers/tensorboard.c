// loggers/tensorboard: event files as Lightning's TensorBoardLogger makes them,
// by torch.utils.tensorboard.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "image/image.h"
#include "loggers/events.h"
#include "loggers/logger.h"
#include "loggers/summary.h"

typedef struct tensorboard {
  cx_loggers_run run;
  bool default_metric;
  char *events;  // the event file; NULL: not yet made
} tensorboard;

static calx_status *begin(tensorboard *l)
{
  bool first;
  CALX_TRY(cx_loggers_run_begin(&l->run, NULL, &first));
  if (l->events != NULL) return NULL;
  return cx_loggers_events_begin(&l->run.folder, &l->events);
}

// Frees the summary.
static calx_status *add(tensorboard *l, cx_text *summary, int64_t step)
{
  calx_status *status = begin(l);
  if (status != NULL) {
    cx_text_free(summary);
    return status;
  }
  return cx_loggers_events_add(l->events, summary, step);
}

// ---- the functions ----------------------------------------------------------

static void put_metric(cx_text *summary, const char *prefix,
                       const calx_logged_value *value)
{
  cx_text tag = { 0 };
  cx_text_append(&tag, prefix);
  cx_text_append(&tag, value->name);
  cx_loggers_put_scalar(summary, cx_text_str(&tag), value->value);
  summary->failed |= tag.failed;
  cx_text_free(&tag);
}

static calx_status *log_metrics(void *user, const calx_logged_value *values,
                                size_t count, int64_t step)
{
  tensorboard *l = user;
  cx_text summary = { 0 };
  for (size_t i = 0; i < count; i++) {
    bool replaced = false;
    for (size_t k = i + 1; k < count && !replaced; k++) {
      replaced = strcmp(values[i].name, values[k].name) == 0;
    }
    if (!replaced) put_metric(&summary, l->run.prefix, &values[i]);
  }
  return count == 0 ? begin(l) : add(l, &summary, step);
}

// The three parts of a session; the metrics' tags are those that the scalars
// have. (Lightning leaves out the prefix here, and TensorBoard finds none.)
static calx_status *add_session(tensorboard *l,
                                const calx_hyperparameter *values, size_t count,
                                const calx_logged_value *metrics,
                                size_t n_metrics, int64_t step)
{
  cx_text summary = { 0 }, names = { 0 };
  const char **tags = cx_calloc(n_metrics + 1, sizeof *tags);
  if (tags == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n_metrics; i++) {
    cx_text_append(&names, l->run.prefix);
    cx_text_append_n(&names, metrics[i].name, strlen(metrics[i].name) + 1);
  }
  const char *at = cx_text_str(&names);
  for (size_t i = 0; i < n_metrics && !names.failed; i++) {
    tags[i] = at;
    at += strlen(at) + 1;
  }
  summary.failed = names.failed;
  if (!names.failed) {
    cx_loggers_put_experiment(&summary, values, count, tags, n_metrics);
    cx_loggers_put_session_start(&summary, values, count);
    cx_loggers_put_session_end(&summary);
  }
  cx_free(tags);
  cx_text_free(&names);
  return add(l, &summary, step);
}

static calx_status *remember(tensorboard *l, const calx_hyperparameter *values,
                             size_t count)
{
  for (size_t i = 0; i < count; i++) {
    CALX_TRY(
        cx_loggers_hyperparameters_set(&l->run.hyperparameters, &values[i]));
  }
  return NULL;
}

static calx_status *log_hyperparams(void *user,
                                    const calx_hyperparameter *values,
                                    size_t count)
{
  tensorboard *l = user;
  const calx_logged_value metric = { "hp_metric", -1, true };
  CALX_TRY(remember(l, values, count));
  if (!l->default_metric) return NULL;
  CALX_TRY(log_metrics(l, &metric, 1, 0));
  return add_session(l, values, count, &metric, 1, 0);
}

static calx_status *save(void *user)
{
  tensorboard *l = user;
  CALX_TRY(begin(l));
  char *path = cx_loggers_folder_file(&l->run.folder, "hparams.yaml");
  if (path == NULL) return cx_out_of_memory();
  const bool exists = cx_file_exists(path);
  cx_free(path);
  return exists ? NULL : cx_loggers_run_write_yaml(&l->run);
}

static calx_status *finalize(void *user, const char *status)
{
  tensorboard *l = user;
  return l->run.has_begun && strcmp(status, "success") == 0 ? save(l) : NULL;
}

// Markdown keeps the lines of what is indented.
static calx_status *log_text(void *user, const char *name, const char *text,
                             int64_t step)
{
  cx_text lines = { 0 }, summary = { 0 };
  for (const char *p = text; *p != '\0';) {
    const size_t n = strcspn(p, "\n");
    cx_text_append(&lines, "    ");
    cx_text_append_n(&lines, p, n);
    cx_text_char(&lines, '\n');
    p += n + (p[n] == '\n');
  }
  cx_loggers_put_text(&summary, name, cx_text_str(&lines));
  summary.failed |= lines.failed;
  cx_text_free(&lines);
  return add(user, &summary, step);
}

static void tensorboard_free(void *user)
{
  tensorboard *l = user;
  cx_loggers_run_end(&l->run);
  cx_free(l->events);
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
  .free = tensorboard_free,
  .log_text = log_text,
};

static calx_status *init(tensorboard *l, const char *save_dir,
                         const calx_tensorboard_logger_options *options)
{
  calx_tensorboard_logger_options o;
  CALX_TRY(cx_options_take("calx_tensorboard_logger", options, &o, sizeof o));
  l->default_metric = !o.no_default_hp_metric;
  return cx_loggers_run_init(
      &l->run, &(cx_loggers_options){ .what = "calx_tensorboard_logger",
                                      .save_dir = save_dir,
                                      .name = o.name,
                                      .version = o.version,
                                      .sub_dir = o.sub_dir,
                                      .prefix = o.prefix });
}

calx_logger *calx_tensorboard_logger_with(
    const char *save_dir, const calx_tensorboard_logger_options *options)
{
  tensorboard *l = cx_calloc(1, sizeof *l);
  calx_status *error =
      l == NULL ? cx_out_of_memory() : init(l, save_dir, options);
  return cx_loggers_logger_new(&functions, l, error);
}

// ---- what it shows besides --------------------------------------------------

static calx_status *check(const calx_logger *logger, const char *what)
{
  CALX_TRY(cx_status_copy(calx_logger_error(logger)));
  if (logger->functions.log_metrics == log_metrics) return NULL;
  return cx_invalid(
      "%s: the logger is none of TensorBoard's: calx_tensorboard_logger makes "
      "one",
      what);
}

static calx_status *check_tag(const calx_logger *logger, const char *what,
                              const char *tag)
{
  CALX_TRY(check(logger, what));
  return tag != NULL ? NULL : cx_invalid("%s: the tag is NULL", what);
}

calx_status *calx_tensorboard_log_hyperparams(calx_logger *logger,
                                              const calx_hyperparameter *values,
                                              size_t count,
                                              const calx_logged_value *metrics,
                                              size_t n_metrics, int64_t step)
{
  CALX_TRY(check(logger, "calx_tensorboard_log_hyperparams"));
  for (size_t i = 0; i < count; i++) {
    if (values != NULL && values[i].name != NULL) continue;
    return cx_invalid(
        "calx_tensorboard_log_hyperparams: value %zu of %zu has "
        "no name: it is NULL",
        i, count);
  }
  if (n_metrics > 0) {
    CALX_TRY(calx_logger_log_metrics(logger, metrics, n_metrics, step));
  }
  tensorboard *l = logger->user;
  CALX_TRY(remember(l, values, count));
  return n_metrics == 0
             ? NULL
             : add_session(l, values, count, metrics, n_metrics, step);
}

calx_status *calx_tensorboard_add_scalar(calx_logger *logger, const char *tag,
                                         double value, int64_t step)
{
  cx_text summary = { 0 };
  CALX_TRY(check_tag(logger, "calx_tensorboard_add_scalar", tag));
  cx_loggers_put_scalar(&summary, tag, value);
  return add(logger->user, &summary, step);
}

calx_status *calx_tensorboard_add_text(calx_logger *logger, const char *tag,
                                       const char *text, int64_t step)
{
  cx_text summary = { 0 };
  CALX_TRY(check_tag(logger, "calx_tensorboard_add_text", tag));
  if (text == NULL) {
    return cx_invalid("calx_tensorboard_add_text: the text '%s' is NULL", tag);
  }
  cx_loggers_put_text(&summary, tag, text);
  return add(logger->user, &summary, step);
}

calx_status *calx_tensorboard_add_histogram(calx_logger *logger,
                                            const char *tag,
                                            const double *values, size_t count,
                                            int64_t step)
{
  cx_text summary = { 0 };
  CALX_TRY(check_tag(logger, "calx_tensorboard_add_histogram", tag));
  if (values == NULL) count = 0;
  CALX_TRY(cx_annotate(cx_loggers_put_histogram(&summary, tag, values, count),
                       "calx_tensorboard_add_histogram"));
  return add(logger->user, &summary, step);
}

static calx_status *check_image(const char *tag, const uint8_t *pixels,
                                int64_t height, int64_t width, int64_t channels)
{
  if (pixels == NULL) {
    return cx_invalid("calx_tensorboard_add_image: the pixels of '%s' are NULL",
                      tag);
  }
  if (height > 0 && width > 0 && height <= CX_IMAGE_MAX_PIXELS / width &&
      channels >= 1 && channels <= 4) {
    return NULL;
  }
  return cx_invalid(
      "calx_tensorboard_add_image: '%s' has height %lld, width "
      "%lld and %lld channels; at least 1 x 1 and at most %lld "
      "pixels of 1 to 4 channels are wanted",
      tag, (long long)height, (long long)width, (long long)channels,
      (long long)CX_IMAGE_MAX_PIXELS);
}

calx_status *calx_tensorboard_add_image(calx_logger *logger, const char *tag,
                                        const uint8_t *pixels, int64_t height,
                                        int64_t width, int64_t channels,
                                        int64_t step)
{
  cx_text summary = { 0 };
  uint8_t *png;
  size_t size;
  CALX_TRY(check_tag(logger, "calx_tensorboard_add_image", tag));
  CALX_TRY(check_image(tag, pixels, height, width, channels));
  CALX_TRY(cx_image_encode_png(pixels, (uint32_t)height, (uint32_t)width,
                               (int)channels, &png, &size));
  cx_loggers_put_image(&summary, tag, height, width, channels, png, size);
  cx_free(png);
  return add(logger->user, &summary, step);
}
