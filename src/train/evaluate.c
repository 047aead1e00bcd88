// train/evaluate: a pass over the data of validation, test or prediction:
// without gradients, the model in evaluation mode, no sample twice.
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

#define PASS(name, outer, inner, train)                                \
  {                                                                    \
    CX_TRAIN_HOOK(on_##name##_model_eval, NOT),                        \
        CX_TRAIN_HOOK(on_##name##_start, outer),                       \
        CX_TRAIN_HOOK(on_##name##_epoch_start, outer),                 \
        CX_TRAIN_HOOK(on_##name##_batch_start, inner),                 \
        CX_TRAIN_HOOK(on_##name##_batch_end, inner),                   \
        CX_TRAIN_HOOK(on_##name##_epoch_end, outer),                   \
        CX_TRAIN_HOOK(on_##name##_end, NOT), train,                    \
        (&(const cx_train_hook){ #name "_step", 0, CX_TRAIN_##inner }) \
  }
static const evaluation validation =
                            PASS(validation, EPOCH, EVALUATION,
                                 CX_TRAIN_HOOK(on_validation_model_train, NOT)),
                        test = PASS(test, EPOCH, EVALUATION,
                                    CX_TRAIN_HOOK(on_test_model_train, NOT)),
                        predict = PASS(predict, NOT, NOT, NULL);

static const evaluation *kind_of(const calx_trainer *t)
{
  return t->asked == CX_TRAIN_PREDICTING ? &predict
         : t->asked == CX_TRAIN_TESTING  ? &test
                                         : &validation;
}

static cx_train_stage stage_of(const calx_trainer *t)
{
  return t->asked == CX_TRAIN_FITTING ? CX_TRAIN_VALIDATING : t->asked;
}

// ---- batches ----------------------------------------------------------------

// Predictions are the model's forward where the module says nothing else.
static calx_tensor *call_step(calx_trainer *t, const calx_batch *batch,
                              int64_t i)
{
  const calx_lightning_module *m = t->module;
  calx_trainer_step_fn *step = t->asked == CX_TRAIN_PREDICTING ? m->predict_step
                               : t->asked == CX_TRAIN_TESTING
                                   ? m->test_step
                                   : m->validation_step;
  if (step != NULL) return step(t, t->self, batch, i);
  return calx_forward(t->model, batch->data);
}

static void run_step(calx_trainer *t, const evaluation *p,
                     const calx_batch *batch, int64_t i)
{
  const bool autocasts = t->config.autocast != CALX_DTYPE_DEFAULT;
  if (autocasts) calx_autocast_begin(t->config.autocast);
  t->hook = p->step;
  cx_train_profile_begin(t, NULL, p->step->name);
  cx_train_set_output(t, call_step(t, batch, i));
  cx_train_profile_end(t);
  t->hook = NULL;
  if (autocasts) calx_autocast_end();
  if (t->asked == CX_TRAIN_PREDICTING) {
    cx_lazy_scope_pin(cx_train_keep_prediction(t, batch, t->output));
  }
}

static calx_status *run_batch(calx_trainer *t, const evaluation *p,
                              const calx_batch *given, int64_t i)
{
  calx_scope *scope = calx_scope_begin();
  calx_batch batch;
  cx_train_receive(t, given, &batch);
  t->batch_size = batch.size;
  cx_train_call_batch(t, p->batch_start, &batch, i);
  run_step(t, p, &batch, i);
  calx_sync(t->output);
  if (!t->sanity_checking) {
    cx_lazy_scope_pin(cx_train_log_evaluated(t, &t->evaluation_results, i));
    cx_lazy_scope_pin(cx_train_results_step(t, &t->evaluation_results));
  }
  cx_train_call_batch(t, p->batch_end, &batch, i);
  cx_train_set_output(t, NULL);
  return calx_scope_end(scope);
}

static calx_status *run_loader(calx_trainer *t, const evaluation *p, int index)
{
  cx_train_loader *l = &t->evaluated[index];
  t->dataloader_idx = index;
  const int64_t most = calx_trainer_num_eval_batches(t, (size_t)index);
  calx_status *status = NULL;
  calx_batch batch;
  calx_loader_set_epoch(l->loader, t->position.epoch);
  for (int64_t i = 0; status == NULL && i != most; i++) {
    if (!calx_loader_next(l->loader, &batch)) break;
    status = run_batch(t, p, &batch, i);
    if (status == NULL) status = cx_train_check_evaluation_signals(t);
  }
  calx_loader_end_epoch(l->loader);
  return status != NULL ? status : calx_scope_take_error();
}

// A sanity check logs nothing.
static calx_status *end_results(calx_trainer *t)
{
  if (!t->sanity_checking) {
    return cx_train_results_end(t, &t->evaluation_results);
  }
  cx_train_results_drop(&t->evaluation_results);
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

// ---- the modes of the model's parts -----------------------------------------

// A part may be in evaluation mode while the model trains, as a frozen
// backbone. Source: lightning.pytorch.loops.utilities._ModuleMode.
typedef struct part_mode {
  calx_module *part;
  bool trains;
} part_mode;

typedef struct mode_list {
  part_mode *list;  // each module after its children
  size_t n, capacity;
  bool failed;
} mode_list;

static void keep_mode(void *user, const char *path, calx_module *module)
{
  (void)path;
  mode_list *m = user;
  if (!cx_grow(&m->list, &m->capacity, m->n + 1, sizeof *m->list)) {
    m->failed = true;
    return;
  }
  m->list[m->n++] = (part_mode){ module, calx_module_is_training(module) };
}

// calx_module_train() sets all below a module too, so those come after it.
static void restore_modes(mode_list *m)
{
  for (size_t i = m->n; i-- > 0;) {
    calx_module_train(m->list[i].part, m->list[i].trains);
  }
  cx_free(m->list);
}

calx_status *cx_train_evaluate(calx_trainer *t)
{
  const evaluation *p = kind_of(t);
  const cx_train_stage outer = t->stage;
  t->stage = stage_of(t);
  mode_list modes = { 0 };
  calx_module_apply(t->model, keep_mode, &modes);
  calx_module_train(t->model, false);
  cx_train_call(t, p->model_eval);
  cx_train_results_begin(&t->evaluation_results);
  calx_scope *scope = calx_scope_begin();
  calx_inference_mode_begin();  // ends with the scope
  calx_status *status = modes.failed ? cx_out_of_memory() : run_loaders(t, p);
  status = cx_status_first(status, calx_scope_end(scope));
  restore_modes(&modes);
  if (p->model_train != NULL) cx_train_call(t, p->model_train);
  t->stage = outer;
  return status;
}
