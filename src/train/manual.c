// train/manual: what a training step calls that does its optimisation itself,
// and optimisers as modules and callbacks see them.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/autograd.h"
#include "lazy/lazy.h"
#include "optim/scheduler.h"
#include "train/internal.h"

// ---- adding -----------------------------------------------------------------

static calx_status *take_schedule(const calx_trainer_optimizer_options *o,
                                  cx_train_optimizer *out)
{
  const char *interval = o->interval != NULL ? o->interval : "epoch";
  const bool each_step = strcmp(interval, "step") == 0;
  if (!each_step && strcmp(interval, "epoch") != 0) {
    return cx_invalid(
        "The \"interval\" key in lr scheduler dict must be \"step\" or "
        "\"epoch\" but is \"%s\"",
        interval);
  }
  if (o->frequency < 0) {
    return cx_invalid(
        "add_optimizer: the frequency is %lld, at least 1 is "
        "wanted",
        (long long)o->frequency);
  }
  if (o->monitor == NULL && o->lr_scheduler != NULL &&
      strcmp(o->lr_scheduler->rule->name, "ReduceLROnPlateau") == 0) {
    return cx_invalid(
        "`configure_optimizers` must include a monitor when a "
        "`ReduceLROnPlateau` scheduler is used: the `.monitor` of "
        "calx_trainer_add_optimizer() is the name of a logged value");
  }
  out->interval = each_step ? CX_TRAIN_EACH_STEP : CX_TRAIN_EACH_EPOCH;
  out->frequency = o->frequency != 0 ? o->frequency : 1;
  out->not_strict = o->not_strict;
  if (o->monitor == NULL) return NULL;
  out->monitor = cx_strdup(o->monitor);
  return out->monitor != NULL ? NULL : cx_out_of_memory();
}

static calx_status *add_optimizer(calx_trainer *t, calx_optimizer *optimizer,
                                  const calx_trainer_optimizer_options *given)
{
  calx_trainer_optimizer_options o;
  if (t == NULL) return cx_invalid("add_optimizer: the trainer is NULL");
  CALX_TRY(cx_options_take("add_optimizer", given, &o, sizeof o));
  if (optimizer == NULL) {
    return cx_invalid("add_optimizer: the optimiser is NULL");
  }
  if (!cx_grow(&t->optimizers, &t->optimizers_capacity, t->n_optimizers + 1,
               sizeof *t->optimizers)) {
    return cx_out_of_memory();
  }
  cx_train_optimizer *a = &t->optimizers[t->n_optimizers++];
  *a = (cx_train_optimizer){ .optimizer = optimizer,
                             .scheduler = o.lr_scheduler };
  CALX_TRY(calx_optimizer_error(optimizer));
  if (o.lr_scheduler != NULL) CALX_TRY(calx_lr_scheduler_error(o.lr_scheduler));
  return take_schedule(&o, a);
}

void calx_trainer_add_optimizer_with(
    calx_trainer *t, calx_optimizer *optimizer,
    const calx_trainer_optimizer_options *options)
{
  cx_lazy_scope_pin(add_optimizer(t, optimizer, options));
}

calx_optimizer *calx_trainer_optimizer(const calx_trainer *t, size_t i)
{
  return t != NULL && i < t->n_optimizers ? t->optimizers[i].optimizer : NULL;
}

calx_lr_scheduler *calx_trainer_lr_scheduler(const calx_trainer *t, size_t i)
{
  return t != NULL && i < t->n_optimizers ? t->optimizers[i].scheduler : NULL;
}

// ---- steps ------------------------------------------------------------------

static calx_status *check_manual(const calx_trainer *t, const char *call)
{
  CALX_TRY(cx_train_check_fit(t, call));
  if (t->module->manual_optimization) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: the module is optimised automatically. Set "
                  "`.manual_optimization = true`",
                  call);
}

void(calx_trainer_manual_backward)(calx_trainer *t, calx_tensor *loss)
{
  calx_status *status = check_manual(t, "manual_backward");
  if (status == NULL && loss == NULL) {
    status = cx_invalid("manual_backward: the loss is NULL");
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  cx_train_call(t, CX_TRAIN_HOOK(on_before_backward, STEP));
  calx_backward(loss);
  for (size_t i = 0; i < t->n_optimizers; i++) {
    t->optimizers[i].is_reduced = false;
  }
  cx_train_call(t, CX_TRAIN_HOOK(on_after_backward, STEP));
}

void(calx_trainer_optimizer_step)(calx_trainer *t, size_t i)
{
  calx_status *status = check_manual(t, "optimizer_step");
  if (status == NULL) status = cx_train_check_optimizer(t, "optimizer_step", i);
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  cx_train_step_optimizer(t, i);
}

// ---- which parameters collect gradients -------------------------------------

static bool has_parameter(const calx_optimizer *opt, const calx_tensor *p)
{
  for (size_t k = 0; k < opt->n; k++) {
    if (opt->params[k].tensor == p) return true;
  }
  return false;
}

static calx_status *freeze(calx_trainer *t, calx_tensor *parameter)
{
  if (!calx_tensor_requires_grad(parameter)) return NULL;
  if (!cx_grow(&t->frozen, &t->frozen_capacity, t->n_frozen + 1,
               sizeof *t->frozen)) {
    return cx_out_of_memory();
  }
  t->frozen[t->n_frozen++] = calx_retain(parameter);
  calx_requires_grad(parameter, false);
  return NULL;
}

static calx_status *toggle(calx_trainer *t, size_t i)
{
  CALX_TRY(cx_train_check_optimizer(t, "toggle_optimizer", i));
  const calx_optimizer *kept = t->optimizers[i].optimizer;
  for (size_t j = 0; j < t->n_optimizers; j++) {
    const calx_optimizer *other = t->optimizers[j].optimizer;
    for (size_t k = 0; k < other->n; k++) {
      calx_tensor *p = other->params[k].tensor;
      if (!has_parameter(kept, p)) CALX_TRY(freeze(t, p));
    }
  }
  return NULL;
}

void calx_trainer_toggle_optimizer(calx_trainer *t, size_t i)
{
  cx_lazy_scope_pin(toggle(t, i));
}

static void unfreeze(calx_trainer *t)
{
  for (size_t k = 0; k < t->n_frozen; k++) {
    calx_requires_grad(t->frozen[k], true);
    calx_release(t->frozen[k]);
  }
  t->n_frozen = 0;
}

void calx_trainer_untoggle_optimizer(calx_trainer *t, size_t i)
{
  calx_status *status = cx_train_check_optimizer(t, "untoggle_optimizer", i);
  if (status == NULL) unfreeze(t);
  cx_lazy_scope_pin(status);
}

void cx_train_free_optimizers(calx_trainer *t)
{
  for (size_t k = 0; k < t->n_frozen; k++) calx_release(t->frozen[k]);
  cx_free(t->frozen);
  for (size_t i = 0; i < t->n_optimizers; i++) {
    calx_lr_scheduler_free(t->optimizers[i].scheduler);
    calx_optimizer_free(t->optimizers[i].optimizer);
    cx_free(t->optimizers[i].monitor);
  }
  cx_free(t->optimizers);
}

// ---- accumulation -----------------------------------------------------------

void calx_trainer_set_accumulate_grad_batches(calx_trainer *t, int64_t batches)
{
  calx_status *status = cx_train_check_fit(t, "set_accumulate_grad_batches");
  if (status == NULL && batches < 1) {
    status = cx_invalid(
        "`accumulate_grad_batches` must be an integer of 1 or more, got %lld",
        (long long)batches);
  }
  if (status == NULL && batches > 1 && t->module->manual_optimization) {
    status = cx_invalid(
        "Automatic gradient accumulation is not supported for manual "
        "optimization.");
  }
  if (status == NULL) t->accumulate = batches;
  cx_lazy_scope_pin(status);
}
