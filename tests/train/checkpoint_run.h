// checkpoint_run: a training in plain calls, which can stop after any batch and
// go on elsewhere; and its checkpoint. checkpoint_lightning.py does the same in
// Lightning, with the same numbers in f64.
#ifndef CX_TESTS_TRAIN_CHECKPOINT_RUN_H
#define CX_TESTS_TRAIN_CHECKPOINT_RUN_H

#include "calx/autograd.h"
#include "calx/calx.h"
#include "io/files.h"
#include "support/support.h"
#include "train/checkpoint.h"

enum { RUN_BATCHES = 5, RUN_SIZE = 4, RUN_FEATURES = 6 };

// How the run steps: with one optimiser and a schedule, or, as Lightning's
// manual optimisation, with two and none.
typedef enum run_kind { RUN_SGD, RUN_ADAM, RUN_MANUAL } run_kind;

typedef struct run {
  calx_module *model, *hidden, *head;
  calx_optimizer *opts[2];
  size_t n_opts;
  calx_lr_scheduler *schedule;  // NULL: none
  cx_train_progress at;
} run;

static inline void run_make_optimizers(run *r, run_kind kind)
{
  r->n_opts = kind == RUN_MANUAL ? 2 : 1;
  if (kind == RUN_MANUAL) {
    r->opts[0] = calx_sgd(r->hidden, .lr = 0.05, .momentum = 0.9);
    r->opts[1] = calx_adam(r->head, .lr = 0.05);
    return;
  }
  r->opts[0] = kind == RUN_ADAM
                   ? calx_adam(r->model, .lr = 0.05)
                   : calx_sgd(r->model, .lr = 0.05, .momentum = 0.9);
  r->schedule = calx_step_lr(r->opts[0], 1, .gamma = 0.5);
  CHECK_STATUS_OK(calx_lr_scheduler_error(r->schedule));
}

static inline run run_begin(run_kind kind, int64_t accumulate, uint64_t seed)
{
  run r = { .at = { .accumulate = accumulate,
                    .is_manual = kind == RUN_MANUAL } };
  calx_manual_seed(seed);
  r.model = calx_module_new("Net", NULL, NULL);
  r.hidden = calx_nn_linear(r.model, "hidden", RUN_FEATURES, 8);
  r.head = calx_nn_linear(r.model, "head", 8, 1);
  calx_module_to(r.model, CALX_F64);
  run_make_optimizers(&r, kind);
  CHECK_STATUS_OK(calx_module_error(r.model));
  return r;
}

static inline void run_end(run *r)
{
  calx_lr_scheduler_free(r->schedule);
  for (size_t i = 0; i < r->n_opts; i++) calx_optimizer_free(r->opts[i]);
  calx_module_free(r->model);
}

static inline calx_tensor *run_loss(const run *r)
{
  double x[RUN_SIZE][RUN_FEATURES], y[RUN_SIZE];
  for (int i = 0; i < RUN_SIZE; i++) {
    for (int j = 0; j < RUN_FEATURES; j++) {
      int64_t n = r->at.epoch * 31 + r->at.batch_idx * 7 + i * 5 + j * j;
      x[i][j] = (double)(n % 13) / 13;
    }
    y[i] = x[i][0] + 2 * x[i][1] - x[i][2];
  }
  const calx_dims shape = CALX_SHAPE(RUN_SIZE, RUN_FEATURES);
  calx_tensor *in = calx_to(calx_host_tensor(x, CALX_F64, shape), NULL);
  calx_tensor *target =
      calx_to(calx_host_tensor(y, CALX_F64, CALX_SHAPE(RUN_SIZE, 1)), NULL);
  calx_tensor *hidden = calx_tanh(calx_forward(r->hidden, in));
  calx_tensor *out = calx_forward(r->head, hidden);
  return calx_mean(calx_square(calx_sub(out, target)));
}

// One batch, and the end of the epoch after the last one, which is_epoch_end
// marks until the next begins.
static inline void run_batch(run *r)
{
  cx_train_progress *at = &r->at;
  const int64_t k = at->accumulate;
  if (at->is_epoch_end) {
    at->epoch++;
    at->batch_idx = 0;
    at->is_epoch_end = false;
  }
  calx_scope *s = calx_scope_begin();
  for (size_t i = 0; at->batch_idx % k == 0 && i < r->n_opts; i++) {
    calx_optimizer_zero_grad(r->opts[i]);
  }
  calx_backward(calx_div(run_loss(r), (double)k));
  at->batch_idx++;
  at->batches_seen++;
  at->is_epoch_end = at->batch_idx == RUN_BATCHES;
  if (at->batch_idx % k == 0 || at->is_epoch_end) {
    for (size_t i = 0; i < r->n_opts; i++) calx_optimizer_step(r->opts[i]);
    at->global_step += (int64_t)r->n_opts;
    at->batches_stepped++;
  }
  calx_sync(NULL);
  if (at->is_epoch_end && r->schedule != NULL) {
    calx_lr_scheduler_step(r->schedule);
  }
  CHECK_STATUS_OK(calx_scope_end(s));
}

// Up to so many epochs and batches of the next.
static inline void run_until(run *r, int64_t epochs, int64_t batches)
{
  while (r->at.batches_seen < epochs * RUN_BATCHES + batches) run_batch(r);
}

// In Lightning the module is self.net.
static inline cx_train_states run_states(run *r)
{
  return (cx_train_states){ .model = r->model,
                            .optimizers = r->opts,
                            .n_optimizers = r->n_opts,
                            .schedulers = &r->schedule,
                            .n_schedulers = r->schedule != NULL,
                            .prefix = "net." };
}

static inline calx_value *run_checkpoint(run *r)
{
  const cx_train_own own = { { r->at.epoch, 7 }, 1, 2, 1 };
  cx_train_states states = run_states(r);
  calx_value *checkpoint = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(cx_train_loops_put(&r->at, checkpoint));
  CHECK_STATUS_OK(cx_train_states_put(&states, false, checkpoint));
  CHECK_STATUS_OK(cx_train_own_put(&own, checkpoint));
  return checkpoint;
}

// Goes on from a checkpoint.
static inline void run_restore(run *r, const calx_value *checkpoint)
{
  cx_train_states states = run_states(r);
  const cx_train_progress made = r->at;
  CHECK_STATUS_OK(cx_train_states_get(&states, false, checkpoint));
  CHECK_STATUS_OK(cx_train_loops_get(checkpoint, &r->at));
  r->at.accumulate = made.accumulate;
  r->at.is_manual = made.is_manual;
}

// The weights beside those of a state dict whose names begin with "net.".
static inline void run_check(run *r, const calx_value *weights, double within)
{
  static const char *const names[] = { "hidden.weight", "hidden.bias",
                                       "head.weight", "head.bias" };
  for (size_t i = 0; i < 4; i++) {
    char key[64];
    double a[64], b[64];
    snprintf(key, sizeof key, "net.%s", names[i]);
    calx_tensor *own = calx_module_find(r->model, names[i]);
    calx_tensor *other = calx_value_as_tensor(calx_value_get(weights, key));
    assert_non_null(other);
    size_t n = (size_t)calx_tensor_numel(own);
    assert_int_equal(calx_tensor_numel(other), n);
    CHECK_STATUS_OK(calx_tensor_read(own, a, n * sizeof *a));
    CHECK_STATUS_OK(calx_tensor_read(other, b, n * sizeof *b));
    for (size_t j = 0; j < n; j++) CHECK_CLOSE(a[j], b[j], within);
  }
}

#endif
