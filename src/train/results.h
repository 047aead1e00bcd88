// train/results: logged values: of steps and of epochs, for callbacks, the
// progress bar and loggers.
#ifndef CX_TRAIN_RESULTS_H
#define CX_TRAIN_RESULTS_H

#include "base/status.h"
#include "calx/trainer.h"

typedef enum cx_train_reduction {
  CX_TRAIN_MEAN,
  CX_TRAIN_SUM,
  CX_TRAIN_MIN,
  CX_TRAIN_MAX
} cx_train_reduction;

// One name in one hook.
typedef struct cx_train_logged {
  char *name;
  const char *hook;
  int dataloader;  // -1: there is one loader, or its number is not shown
  int loader;      // of evaluation, that the value is of; -1: of none
  bool prog_bar, logger, on_step, on_epoch, sync_dist;
  cx_train_reduction reduction;
  calx_metric
      *metric;  // the epoch's value is what it computes; NULL: no metric
  calx_tensor *latest;  // the step's value, owned
  calx_tensor *total;   // of the epoch so far, owned; f32, or f64 of f64
  double weight;        // of the epoch so far
  bool is_set;          // in this epoch
} cx_train_logged;

// A value that is known by a name, on the device until somebody asks for it.
typedef struct cx_train_metric {
  char *name;
  calx_tensor *tensor;  // owned; NULL: `value` is it
  double value;
} cx_train_metric;

// A value that the progress bar shows. The newest steps' are kept, since they
// may not be computed yet.
enum { CX_TRAIN_NEWEST = 3 };
typedef struct cx_train_bar_value {
  char *name;
  calx_tensor *newest[CX_TRAIN_NEWEST];  // owned, the newest first
  double value;                          // the newest that was read
  bool is_known;
} cx_train_bar_value;

typedef struct cx_train_row cx_train_row;

typedef struct cx_train_results {
  cx_train_logged *logged;
  size_t n_logged, logged_capacity;
} cx_train_results;

// Before an epoch of a loop.
void cx_train_results_begin(cx_train_results *r);
// What was logged is forgotten.
void cx_train_results_drop(cx_train_results *r);
// Reduces the epoch's values, over the ranks too, and makes them metrics.
calx_status *cx_train_results_end(calx_trainer *t,
                                  cx_train_results *r) CALX_MUST_USE;
// After a batch: its values become metrics, also of the progress bar.
calx_status *cx_train_results_step(calx_trainer *t,
                                   cx_train_results *r) CALX_MUST_USE;
void cx_train_results_free(cx_train_results *r);

// What is kept of an epoch's value.
enum {
  CX_TRAIN_PART_KIND,  // a cx_train_reduction
  CX_TRAIN_PART_TOTAL,
  CX_TRAIN_PART_WEIGHT,
  CX_TRAIN_PARTS
};
// Those of all ranks, where values are to be reduced over them; logged[i] has
// parts[i * CX_TRAIN_PARTS] and the next ones. A value that this rank has not
// logged, as one without a batch, becomes a metric of it.
calx_status *cx_train_exchange(calx_trainer *t, const cx_train_results *r,
                               double *parts) CALX_MUST_USE;
void cx_train_free_metrics(calx_trainer *t);
void cx_train_free_own_metrics(calx_trainer *t);  // objects, not values
// The name under which a level of a value is known: "loss_step".
void cx_train_full_name(const cx_train_logged *l, const char *level, char *out,
                        size_t size);
// What the progress bar shows of t->bar[i]: the newest value that is computed,
// waiting only for one that is older than two steps. False: none yet.
bool cx_train_bar_read(calx_trainer *t, size_t i, double *out);
calx_status *cx_train_bar_set(calx_trainer *t, const char *name,
                              calx_tensor *tensor, double value) CALX_MUST_USE;
void cx_train_bar_free(calx_trainer *t);

// ---- loggers ----------------------------------------------------------------

// After a batch of training, before its values are forgotten.
calx_status *cx_train_log_step(calx_trainer *t,
                               const cx_train_results *r) CALX_MUST_USE;
// The same of an evaluation, after each batch.
calx_status *cx_train_log_evaluated(calx_trainer *t, const cx_train_results *r,
                                    int64_t batch) CALX_MUST_USE;
// The epoch's values: that of logged[i] is values[i * stride].
calx_status *cx_train_log_epoch(calx_trainer *t, const cx_train_results *r,
                                const double *values,
                                size_t stride) CALX_MUST_USE;
// Numbers of the host in a row of their own at the step under way, without the
// epoch, as Lightning's trainer.logger.log_metrics; nothing where loggers are
// off.
calx_status *cx_train_log_row(calx_trainer *t, const calx_logged_value *values,
                              size_t count) CALX_MUST_USE;
// Whether a batch of this step is one whose values are written; and whether
// this rank writes them.
bool cx_train_is_logged_step(const calx_trainer *t);
bool cx_train_logs_now(const calx_trainer *t);
// Writes the rows whose values are there; waits: all.
calx_status *cx_train_write_rows(calx_trainer *t, bool waits) CALX_MUST_USE;
void cx_train_drop_rows(calx_trainer *t);
calx_status *cx_train_finish_loggers(calx_trainer *t,
                                     bool succeeded) CALX_MUST_USE;
// Takes the tensor's reference; NULL: the value.
calx_status *cx_train_set_metric(calx_trainer *t, const char *name,
                                 calx_tensor *tensor,
                                 double value) CALX_MUST_USE;
#endif
