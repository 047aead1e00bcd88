// train/update: the step of an optimiser: sums over the ranks, clipping,
// update.
#include <string.h>

#include "calx/optim.h"
#include "lazy/lazy.h"
#include "train/internal.h"

calx_status *cx_train_check_fit(const calx_trainer *t, const char *call)
{
  if (t == NULL || t->module == NULL || t->asked != CX_TRAIN_FITTING) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "%s: it is called outside of a fit", call);
  }
  return NULL;
}

calx_status *cx_train_check_optimizer(const calx_trainer *t, const char *call,
                                      size_t i)
{
  CALX_TRY(cx_train_check_fit(t, call));
  if (i < t->n_optimizers) return NULL;
  return cx_invalid(
      "%s: there is no optimiser %zu, configure_optimizers() "
      "added %zu",
      call, i, t->n_optimizers);
}

// ---- gradients --------------------------------------------------------------

void cx_train_reduce_gradients(calx_trainer *t, size_t i)
{
  cx_train_optimizer *o = &t->optimizers[i];
  if (calx_world_size() > 1 && !o->is_reduced) {
    calx_reduce_gradients(o->optimizer);
  }
  o->is_reduced = true;
}

void calx_trainer_clip_gradients(calx_trainer *t, size_t i, double value,
                                 const char *algorithm)
{
  calx_status *status = cx_train_check_optimizer(t, "clip_gradients", i);
  const bool by_value = algorithm != NULL && strcmp(algorithm, "value") == 0;
  if (status == NULL && !by_value && algorithm != NULL &&
      strcmp(algorithm, "norm") != 0) {
    status = cx_invalid(
        "`gradient_clip_algorithm` %s is invalid. Allowed algorithms: ['value', "
        "'norm'].",
        algorithm);
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  if (!(value > 0)) return;
  cx_train_reduce_gradients(t, i);
  calx_optimizer *opt = t->optimizers[i].optimizer;
  if (by_value) {
    calx_clip_grad_value(opt, value);
  } else {
    calx_clip_grad_norm(opt, value);
  }
}

// ---- the step ---------------------------------------------------------------

static void clip(calx_trainer *t)
{
  if (t->module->configure_gradient_clipping != NULL) {
    t->module->configure_gradient_clipping(t, t->self);
    return;
  }
  calx_trainer_clip_gradients(t, 0, t->config.clip,
                              t->config.clips_values ? "value" : "norm");
}

void cx_train_step_optimizer(calx_trainer *t, size_t i)
{
  calx_optimizer *opt = t->optimizers[i].optimizer;
  cx_train_reduce_gradients(t, i);
  cx_train_call(t, CX_TRAIN_HOOK(on_before_optimizer_step, STEP));
  if (!t->module->manual_optimization) clip(t);
  cx_train_profile_begin(t, NULL, "optimizer_step");
  calx_optimizer_step(opt);
  cx_train_profile_end(t);
  t->optimizers[i].is_reduced = false;
  if (calx_scope_error() == NULL) t->position.global_step++;
}

void cx_train_update(calx_trainer *t)
{
  cx_train_step_optimizer(t, 0);
  t->has_gradients = false;
}
