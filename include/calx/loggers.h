/**
 * calx/loggers.h: where the numbers of a run go: CSV, TensorBoard, JSON lines,
 * an HTML page, or a program's own. Names, folders and files are those of
 * Lightning 2.6.
 *
 *   calx_logger *logger = calx_csv_logger("logs", .name = "mnist");
 *   const calx_hyperparameter lr = CALX_HYPERPARAMETER("lr", 0.01);
 *   CALX_TRY(calx_logger_log_hyperparams(logger, &lr, 1));
 *   const calx_logged_value row = CALX_LOGGED("loss", loss);
 *   CALX_TRY(calx_logger_log_metrics(logger, &row, 1, step));
 *   CALX_TRY(calx_logger_finalize(logger, "success"));
 *   calx_logger_free(logger);
 *
 * The files are in SAVE_DIR/NAME/version_N, N one more than the highest that is
 * there. The folder is made when the first thing is logged or saved. On several
 * ranks the first one's loggers are called and no others.
 *
 * Functions that return a status give, beside what is said at them,
 * INVALID_ARGUMENT for a logger that is NULL, a logger's own error, and what
 * writing a file fails with.
 *
 * @threads one thread at a time calls a logger
 */
#ifndef CALX_LOGGERS_H
#define CALX_LOGGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_logger calx_logger;

/** A number and its name. */
typedef struct calx_logged_value {
  const char *name;
  double value;    /* of an f32, the double of its value */
  bool is_integer; /* written without a point, as an epoch is */
} calx_logged_value;

/** What a hyperparameter is. */
typedef enum calx_hyperparameter_kind {
  CALX_HYPERPARAMETER_NUMBER = 0,
  CALX_HYPERPARAMETER_INTEGER, /* .number, whole */
  CALX_HYPERPARAMETER_BOOL,    /* .number, 0 or 1 */
  CALX_HYPERPARAMETER_TEXT,    /* .text; NULL: Python's None */
} calx_hyperparameter_kind;

/** What a run was started with. */
typedef struct calx_hyperparameter {
  const char *name;
  calx_hyperparameter_kind kind;
  double number;
  const char *text;
} calx_hyperparameter;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_csv_logger_options {
  CALX_NAMED size_t size;
  /* the folder in save_dir; NULL = "lightning_logs", "": none */
  CALX_NAMED const char *name;
  /* NULL = the next; digits are the number of version_N, another text is the
     folder's name */
  CALX_NAMED const char *version;
  CALX_NAMED const char *prefix; /* of names, joined by "-" */
  /* rows are written after each n-th step and by calx_logger_save(); 0 = 100 */
  CALX_NAMED int64_t flush_logs_every_n_steps;
} calx_csv_logger_options;

/**
 * Writes metrics.csv and hparams.yaml. Columns are sorted, "step" is one of
 * them, a cell that was not logged is empty, and a name that comes later
 * rewrites the file with a wider header. In a folder that has files already, a
 * line says so and metrics.csv begins anew.
 * @param save_dir  copied
 * @return never NULL; calx_logger_error() tells what is wrong
 * @errors INVALID_ARGUMENT no save_dir, a bad option
 * @source lightning.pytorch.loggers.CSVLogger
 */
CALX_API calx_logger *calx_csv_logger_with(
    const char *save_dir, const calx_csv_logger_options *options);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_json_logger_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *name;    /* as calx_csv_logger */
  CALX_NAMED const char *version; /* as calx_csv_logger */
  CALX_NAMED const char *prefix;  /* as calx_csv_logger */
} calx_json_logger_options;

/**
 * Writes metrics.jsonl, one object a line: {"step": 4, "epoch": 0, "loss":
 * 0.5}, and hparams.yaml. Each line is in the file when
 * calx_logger_log_metrics() returns. A value that is not finite is "NaN",
 * "Infinity" or "-Infinity".
 * @errors as calx_csv_logger
 */
CALX_API calx_logger *calx_json_logger_with(
    const char *save_dir, const calx_json_logger_options *options);

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_tensorboard_logger_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *name;    /* as calx_csv_logger */
  CALX_NAMED const char *version; /* as calx_csv_logger */
  CALX_NAMED const char *sub_dir; /* a folder in that of the version */
  CALX_NAMED const char *prefix;  /* of metrics, as calx_csv_logger */
  /* hyperparameters without metrics are not sent to TensorBoard; else with the
     metric hp_metric, which is -1 */
  CALX_NAMED bool no_default_hp_metric;
} calx_tensorboard_logger_options;

/**
 * Writes an event file, which TensorBoard shows while the run goes on: each
 * metric is a scalar. calx_logger_save() and the end of a run that succeeded
 * write hparams.yaml where there is none. What is logged is in the file when
 * the call returns.
 * @errors as calx_csv_logger
 * @source lightning.pytorch.loggers.TensorBoardLogger
 */
CALX_API calx_logger *calx_tensorboard_logger_with(
    const char *save_dir, const calx_tensorboard_logger_options *options);

/**
 * Hyperparameters as calx_logger_log_hyperparams() takes them, with the metrics
 * that TensorBoard compares runs by. The metrics are logged too.
 * @errors INVALID_ARGUMENT a name that is NULL, a logger of another kind
 * @source TensorBoardLogger.log_hyperparams
 */
CALX_API calx_status *calx_tensorboard_log_hyperparams(
    calx_logger *logger, const calx_hyperparameter *values, size_t count,
    const calx_logged_value *metrics, size_t n_metrics,
    int64_t step) CALX_MUST_USE;
/** A number, f32 in the file.
 *  @errors INVALID_ARGUMENT a tag that is NULL, a logger of another kind
 *  @source torch.utils.tensorboard.SummaryWriter.add_scalar */
CALX_API calx_status *calx_tensorboard_add_scalar(calx_logger *logger,
                                                  const char *tag, double value,
                                                  int64_t step) CALX_MUST_USE;
/** How values are spread, in TensorFlow's buckets.
 *  @errors as calx_tensorboard_add_scalar; INVALID_ARGUMENT no value between
 *          -1e20 and 1e20
 *  @source torch.utils.tensorboard.SummaryWriter.add_histogram */
CALX_API calx_status *calx_tensorboard_add_histogram(
    calx_logger *logger, const char *tag, const double *values, size_t count,
    int64_t step) CALX_MUST_USE;
/** An image of the host: bytes in the order of rows, pixels, channels.
 *  @param channels  1 grey, 2 grey and alpha, 3 RGB, 4 RGBA
 *  @errors as calx_tensorboard_add_scalar; INVALID_ARGUMENT sizes that are not
 *          positive, more than 89478485 pixels  UNIMPLEMENTED calx was built
 *          without libspng
 *  @source torch.utils.tensorboard.SummaryWriter.add_image, dataformats HWC */
CALX_API calx_status *calx_tensorboard_add_image(
    calx_logger *logger, const char *tag, const uint8_t *pixels, int64_t height,
    int64_t width, int64_t channels, int64_t step) CALX_MUST_USE;
/** A text, which TensorBoard reads as Markdown.
 *  @errors as calx_tensorboard_add_scalar
 *  @source torch.utils.tensorboard.SummaryWriter.add_text */
CALX_API calx_status *calx_tensorboard_add_text(calx_logger *logger,
                                                const char *tag,
                                                const char *text,
                                                int64_t step) CALX_MUST_USE;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_html_logger_options {
  CALX_NAMED size_t size;
  CALX_NAMED const char *name;    /* as calx_csv_logger */
  CALX_NAMED const char *version; /* as calx_csv_logger */
  CALX_NAMED const char *prefix;  /* as calx_csv_logger */
  CALX_NAMED const char *title;   /* of the page; NULL = NAME/version_N */
  /* the time of the steps is not recorded: the advice is of counters alone */
  CALX_NAMED bool no_profile;
} calx_html_logger_options;

/**
 * Writes report.html, one page that needs nothing but itself: the curves of all
 * metrics, those of training, validation and test in one plot, their last,
 * least and greatest values, hyperparameters, the texts of
 * calx_logger_log_text(), the program, machine and devices, and what `calx
 * report` says of the run's speed. calx_logger_save() and
 * calx_logger_finalize() write it, and each writes it whole. Of a metric 1024
 * values are kept, evenly spaced; of more than 512 metrics the first ones.
 * Writes hparams.yaml too.
 *
 * While the logger is there, the process records the time of its steps, as with
 * CALX_REPORT, unless .no_profile.
 * @errors as calx_csv_logger
 */
CALX_API calx_logger *calx_html_logger_with(
    const char *save_dir, const calx_html_logger_options *options);

/** What a program's own logger does. A function that is NULL does nothing;
 *  `user` is what calx_logger_new() was given. Failures are reported by
 *  calx_status_new(). */
typedef struct CALX_OPTIONS calx_logger_functions {
  CALX_NAMED size_t size;
  CALX_NAMED calx_status *(*log_metrics)(void *user,
                                         const calx_logged_value *values,
                                         size_t count, int64_t step);
  CALX_NAMED calx_status *(*log_hyperparams)(void *user,
                                             const calx_hyperparameter *values,
                                             size_t count);
  CALX_NAMED calx_status *(*save)(void *user);
  CALX_NAMED calx_status *(*finalize)(void *user, const char *status);
  /* texts that live as long as the logger */
  CALX_NAMED const char *(*save_dir)(void *user);
  CALX_NAMED const char *(*name)(void *user);
  CALX_NAMED const char *(*version)(void *user);
  CALX_NAMED const char *(*log_dir)(void *user);
  CALX_NAMED void (*free)(void *user);
  CALX_NAMED calx_status *(*log_text)(void *user, const char *name,
                                      const char *text, int64_t step);
} calx_logger_functions;

/** A logger of the program's own. The functions are copied.
 *  @errors INVALID_ARGUMENT no functions, or of a newer version
 *  @source lightning.pytorch.loggers.Logger */
CALX_API calx_logger *calx_logger_new(const calx_logger_functions *functions,
                                      void *user);

/** Why it is of no use; NULL: it is. Owned by it. */
CALX_API const calx_status *calx_logger_error(const calx_logger *logger);
/** Ends it and frees it; rows that were not saved are lost. NULL is accepted.
 */
CALX_API void calx_logger_free(calx_logger *logger);

/**
 * One row of values. Of a name that is given twice the last value counts.
 * @param values  the names are copied
 * @errors INVALID_ARGUMENT a name that is NULL
 */
CALX_API calx_status *calx_logger_log_metrics(calx_logger *logger,
                                              const calx_logged_value *values,
                                              size_t count,
                                              int64_t step) CALX_MUST_USE;
/** Hyperparameters, which are added to those that were given before. The files'
 *  loggers write hparams.yaml: `lr: 0.01`.
 *  @errors INVALID_ARGUMENT a name that is NULL */
CALX_API calx_status *calx_logger_log_hyperparams(
    calx_logger *logger, const calx_hyperparameter *values,
    size_t count) CALX_MUST_USE;
/**
 * A text: a model's summary, a note. TensorBoard shows its lines as they are,
 * the HTML page the newest text of each name. CSV files and JSON lines have no
 * place for one: it is left out there.
 * @errors INVALID_ARGUMENT a name or a text that is NULL
 */
CALX_API calx_status *calx_logger_log_text(calx_logger *logger,
                                           const char *name, const char *text,
                                           int64_t step) CALX_MUST_USE;
/** Writes what is not yet in the files. */
CALX_API calx_status *calx_logger_save(calx_logger *logger) CALX_MUST_USE;
/** The run is over. What was logged is saved; a logger that was never used
 * makes no folder. It may be used again.
 *  @param status  "success" or "failed" */
CALX_API calx_status *calx_logger_finalize(calx_logger *logger,
                                           const char *status) CALX_MUST_USE;

/** The folder that it was made with; NULL: it has none. Owned by it, as are the
 *  texts below. */
CALX_API const char *calx_logger_save_dir(calx_logger *logger);
/** The name that it was made with; NULL: it has none. */
CALX_API const char *calx_logger_name(calx_logger *logger);
/** "0" of version_0, or the text that it was made with; NULL: it has none. The
 *  first call looks for the next one. */
CALX_API const char *calx_logger_version(calx_logger *logger);
/** SAVE_DIR/NAME/version_N, which need not be there yet; NULL: it has none. */
CALX_API const char *calx_logger_log_dir(calx_logger *logger);

#ifdef __cplusplus
}
#else
static inline calx_hyperparameter calx_hyperparameter_number_(const char *name,
                                                              double value)
{
  return (calx_hyperparameter){ name, CALX_HYPERPARAMETER_NUMBER, value, NULL };
}
static inline calx_hyperparameter calx_hyperparameter_integer_(const char *name,
                                                               double value)
{
  return (calx_hyperparameter){ name, CALX_HYPERPARAMETER_INTEGER, value,
                                NULL };
}
static inline calx_hyperparameter calx_hyperparameter_bool_(const char *name,
                                                            bool value)
{
  return (calx_hyperparameter){ name, CALX_HYPERPARAMETER_BOOL, value, NULL };
}
static inline calx_hyperparameter calx_hyperparameter_text_(const char *name,
                                                            const char *value)
{
  return (calx_hyperparameter){ name, CALX_HYPERPARAMETER_TEXT, 0, value };
}
static inline calx_logged_value calx_logged_real_(const char *name,
                                                  double value)
{
  return (calx_logged_value){ name, value, false };
}
static inline calx_logged_value calx_logged_whole_(const char *name,
                                                   double value)
{
  return (calx_logged_value){ name, value, true };
}
/** A value of a row, an integer where its type is one: CALX_LOGGED("loss",
 * 0.5), CALX_LOGGED("epoch", 3). */
#define CALX_LOGGED(name, value)        \
  _Generic((value), float               \
           : calx_logged_real_, double  \
           : calx_logged_real_, default \
           : calx_logged_whole_)(name, value)
/** A hyperparameter of the kind that the value's type has:
 *  CALX_HYPERPARAMETER("lr", 0.01), ("layers", 3), ("name", "adam"). */
#define CALX_HYPERPARAMETER(name, value) \
  _Generic((value), float                        \
           : calx_hyperparameter_number_, double \
           : calx_hyperparameter_number_, bool   \
           : calx_hyperparameter_bool_, char *   \
           : calx_hyperparameter_text_, const char * \
           : calx_hyperparameter_text_, default  \
           : calx_hyperparameter_integer_)(name, value)

#ifdef CALX_NO_SITES
#define CALX_LOGGER_SITE_
#else
#define CALX_LOGGER_SITE_ calx_at_(CALX_HERE),
#endif
#define CALX_CSV_LOGGER_(save_dir, ...)    \
  (CALX_LOGGER_SITE_ calx_csv_logger_with( \
      save_dir, &(calx_csv_logger_options){ __VA_ARGS__ }))
#define calx_csv_logger(...) \
  CALX_CSV_LOGGER_(__VA_ARGS__, .size = sizeof(calx_csv_logger_options))
#define CALX_TENSORBOARD_LOGGER_(save_dir, ...)    \
  (CALX_LOGGER_SITE_ calx_tensorboard_logger_with( \
      save_dir, &(calx_tensorboard_logger_options){ __VA_ARGS__ }))
#define calx_tensorboard_logger(...)    \
  CALX_TENSORBOARD_LOGGER_(__VA_ARGS__, \
                           .size = sizeof(calx_tensorboard_logger_options))
#define CALX_JSON_LOGGER_(save_dir, ...)    \
  (CALX_LOGGER_SITE_ calx_json_logger_with( \
      save_dir, &(calx_json_logger_options){ __VA_ARGS__ }))
#define calx_json_logger(...) \
  CALX_JSON_LOGGER_(__VA_ARGS__, .size = sizeof(calx_json_logger_options))
#define CALX_HTML_LOGGER_(save_dir, ...)    \
  (CALX_LOGGER_SITE_ calx_html_logger_with( \
      save_dir, &(calx_html_logger_options){ __VA_ARGS__ }))
#define calx_html_logger(...) \
  CALX_HTML_LOGGER_(__VA_ARGS__, .size = sizeof(calx_html_logger_options))
#endif
#endif
