// train/evaluate: a pass over the validation or test data: without gradients,
// the model in evaluation mode, no sample twice.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "calx/autocast.h"
#include "calx/autograd.h"
#include "lazy/lazy.h"
#include "train/internal.h"

// The hooks and the step of a kind of evaluation.
typedef struct evaluation {
  const cx_train_hook *model_eval, *start, *epoch_start, *batch_start;
  const cx_train_hook *batch_end, *epoch_end, *end, *model_train, *step;
} evaluation;

#define PASS(name)                                                        \
  {                                                                       \
    CX_TRAIN_HOOK(on_##name##_model_eval, NOT),                           \
        CX_TRAIN_HOOK(on_##name##_start, EPOCH),                          \
        CX_TRAIN_HOOK(on_##name##_epoch_start, EPOCH),                    \
        CX_TRAIN_HOOK(on_##name##_batch_start, EVALUATION),               \
        CX_TRAIN_HOOK(on_##name##_batch_end, EVALUATION),                 \
        CX_TRAIN_HOOK(on_##name##_epoch_end, EPOCH),                      \
        CX_TRAIN_HOOK(on_##name##_end, NOT),                              \
        CX_TRAIN_HOOK(on_##name##_model_train, NOT),                      \
        (&(const cx_train_hook){ #name "_step", 0, CX_TRAIN_EVALUATION }) \
  }
static const evaluation validation = PASS(validation), test = PASS(test);

static bool is_test(const calx_trainer *t)
{
  return t->asked == CX_TRAIN_TESTING;
}

// ---- loaders ----------------------------------------------------------------

calx_status *cx_train_open_evaluation(calx_trainer *t)
{
  const calx_trainer_data *d = t->data;
  const calx_loader *one = is_test(t) ? d->test_dataloader : d->val_dataloader;
  const calx_loader *const *all = one != NULL ? &one : d->dataloaders;
  const size_t n = one != NULL ? 1 : d->n_dataloaders;
  const cx_train_limit *limit = is_test(t) ? &t->config.test : &t->config.val;
  t->evaluated = cx_calloc(n + 1, sizeof *t->evaluated);
  if (t->evaluated == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(
        cx_train_open_loader(t, all[i], false, limit,
                             is_test(t) ? "test_dataloader" : "val_dataloader",
                             &t->evaluated[t->n_evaluated++]));
  }
  return NULL;
}

void cx_train_close_evaluation(calx_trainer *t)
{
  for (size_t i = 0; i < t->n_evaluated; i++) {
    cx_train_close_loader(&t->evaluated[i]);
  }
  cx_free(t->evaluated);
  t->evaluated = NULL;
  t->n_evaluated = 0;
}

bool cx_train_has_evaluation(const calx_trainer *t)
{
  for (size_t i = 0; i < t->n_evaluated; i++) {
    if (t->evaluated[i].batches != 0) return true;
  }
  return false;
}

// ---- batches ----------------------------------------------------------------

static calx_status *run_batch(calx_trainer *t, const evaluation *p,
                              const calx_batch *batch, int64_t i)
{
  calx_scope *scope = calx_scope_begin();
  calx_batch converted;
  cx_train_convert(t, batch, &converted);
  batch = &converted;
  t->batch_size = batch->size;
  cx_train_call_batch(t, p->batch_start, batch, i);
  if (t->config.autocast != CALX_DTYPE_DEFAULT) {
    calx_autocast_begin(t->config.autocast);
  }
  t->hook = p->step;
  calx_trainer_step_fn *step =
      is_test(t) ? t->module->test_step : t->module->validation_step;
  step(t, t->self, batch, i);
  t->hook = NULL;
  if (t->config.autocast != CALX_DTYPE_DEFAULT) calx_autocast_end();
  cx_train_call_batch(t, p->batch_end, batch, i);
  calx_sync(NULL);
  if (!t->sanity_checking) {
    cx_lazy_scope_pin(cx_train_results_step(t, &t->evaluation_results));
  }
  if (t->progress != NULL) calx_progress_step(t->progress, batch->size);
  return calx_scope_end(scope);
}

static calx_status *run_loader(calx_trainer *t, const evaluation *p, int index)
{
  cx_train_loader *l = &t->evaluated[index];
  t->dataloader_idx = index;
  const int64_t sanity = t->config.sanity_steps;
  int64_t most = l->batches;
  if (t->sanity_checking && sanity >= 0 && (most < 0 || sanity < most)) {
    most = sanity;
  }
  char label[64];
  snprintf(label, sizeof label, "%s DataLoader %d",
           t->sanity_checking ? "Sanity Checking"
           : is_test(t)       ? "Testing"
                              : "Validation",
           index);
  calx_progress *outer = t->progress;
  t->progress = t->config.no_progress_bar || outer != NULL
                    ? NULL
                    : calx_progress_new(label, most, .unit = "samples");
  calx_status *status = NULL;
  calx_batch batch;
  calx_loader_set_epoch(l->loader, t->epoch);
  for (int64_t i = 0; status == NULL && i != most; i++) {
    if (!calx_loader_next(l->loader, &batch)) break;
    status = run_batch(t, p, &batch, i);
  }
  calx_loader_end_epoch(l->loader);
  calx_progress_end(t->progress);
  t->progress = outer;
  return status != NULL ? status : calx_scope_take_error();
}

// A sanity check logs nothing.
static calx_status *end_results(calx_trainer *t)
{
  if (!t->sanity_checking) {
    return cx_train_results_end(t, &t->evaluation_results);
  }
  cx_train_results_begin(&t->evaluation_results);
  return NULL;
}

static calx_status *run_loaders(calx_trainer *t, const evaluation *p)
{
  cx_train_call(t, p->start);
  cx_train_call(t, p->epoch_start);
  for (int i = 0; (size_t)i < t->n_evaluated; i++) {
    CALX_TRY(run_loader(t, p, i));
  }
  t->batch_size = 0;
  CALX_TRY(end_results(t));
  cx_train_call(t, p->epoch_end);
  CALX_TRY(end_results(t));
  cx_train_call(t, p->end);
  return calx_scope_take_error();
}

calx_status *cx_train_evaluate(calx_trainer *t)
{
  const evaluation *p = is_test(t) ? &test : &validation;
  const cx_train_stage outer = t->stage;
  t->stage = is_test(t) ? CX_TRAIN_TESTING : CX_TRAIN_VALIDATING;
  const bool trains = calx_module_is_training(t->model);
  calx_module_train(t->model, false);
  cx_train_call(t, p->model_eval);
  cx_train_results_begin(&t->evaluation_results);
  calx_scope *scope = calx_scope_begin();
  calx_inference_mode_begin();  // ends with the scope
  calx_status *status = run_loaders(t, p);
  status = cx_status_first(status, calx_scope_end(scope));
  calx_module_train(t->model, trains);
  cx_train_call(t, p->model_train);
  t->stage = outer;
  return status;
}
