// train/finetuning: freezes parts of a model, and gives them to an optimiser
// later. Source: lightning.pytorch.callbacks.BaseFinetuning.
#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "nn/batch_norm.h"
#include "optim/optimizer.h"
#include "train/internal.h"

// ---- one module, without those below it -------------------------------------

static void set_parameter(void *user, const char *path, calx_entry_kind kind,
                          calx_tensor *parameter)
{
  (void)path, (void)kind;
  calx_requires_grad(parameter, *(const bool *)user);
}

static void set_trainable(calx_module *m, bool on)
{
  if (cx_nn_is_batch_norm(m)) ((cx_nn_batch_norm *)m->state)->is_frozen = !on;
  cx_nn_visit_own(m, CALX_PARAMETER, set_parameter, &on);
}

static void freeze_all(void *user, const char *path, calx_module *m)
{
  (void)user, (void)path;
  set_trainable(m, false);
}

static void freeze_but_norms(void *user, const char *path, calx_module *m)
{
  (void)user, (void)path;
  set_trainable(m, cx_nn_is_batch_norm(m));
}

static void unfreeze(void *user, const char *path, calx_module *m)
{
  (void)user, (void)path;
  set_trainable(m, true);
}

static bool is_module(const char *call, const calx_module *m)
{
  if (m != NULL) return true;
  cx_lazy_scope_pin(cx_invalid("%s: the module is NULL", call));
  return false;
}

void calx_finetuning_freeze_with(calx_module *module,
                                 const calx_finetuning_freeze_options *options)
{
  calx_finetuning_freeze_options o;
  calx_status *status =
      cx_options_take("finetuning_freeze", options, &o, sizeof o);
  if (status != NULL || !is_module("finetuning_freeze", module)) {
    cx_lazy_scope_pin(status);
    return;
  }
  calx_module_apply(module, o.no_train_bn ? freeze_all : freeze_but_norms,
                    NULL);
}

void calx_finetuning_make_trainable(calx_module *module)
{
  if (!is_module("finetuning_make_trainable", module)) return;
  calx_module_apply(module, unfreeze, NULL);
}

// ---- a group of an optimiser ------------------------------------------------

typedef struct finetuning_list {
  const calx_optimizer *opt;
  bool has_norms;  // those of BatchNorm layers too
  calx_tensor **params;
  size_t n, capacity;
  size_t known;  // that the optimiser has already
  calx_status *status;
} finetuning_list;

static bool has_parameter(const calx_optimizer *opt, const calx_tensor *p)
{
  for (size_t k = 0; k < opt->n; k++) {
    if (opt->params[k].tensor == p) return true;
  }
  return false;
}

static bool is_listed(const finetuning_list *l, const calx_tensor *p)
{
  for (size_t k = 0; k < l->n; k++) {
    if (l->params[k] == p) return true;
  }
  return false;
}

static void list_parameter(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *parameter)
{
  (void)path, (void)kind;
  finetuning_list *l = user;
  if (l->status != NULL || !calx_tensor_requires_grad(parameter) ||
      is_listed(l, parameter)) {
    return;
  }
  if (has_parameter(l->opt, parameter)) {
    l->known++;
  } else if (cx_grow(&l->params, &l->capacity, l->n + 1, sizeof *l->params)) {
    l->params[l->n++] = parameter;
  } else {
    l->status = cx_out_of_memory();
  }
}

static void list_module(void *user, const char *path, calx_module *m)
{
  (void)path;
  const finetuning_list *l = user;
  if (cx_nn_is_batch_norm(m) && !l->has_norms) return;
  cx_nn_visit_own(m, CALX_PARAMETER, list_parameter, user);
}

// calx_module_apply() comes to children first; the group is in the model's
// order.
static void list_modules(finetuning_list *l, calx_module *m)
{
  list_module(l, "", m);
  for (size_t i = 0; i < calx_module_child_count(m); i++) {
    list_modules(l, calx_module_child_at(m, i));
  }
}

static void report_known(const calx_optimizer *opt)
{
  if (calx_global_ordinal() != 0) return;
  cx_log(
      "The provided params to be frozen already exist within another group of "
      "this optimizer. Those parameters will be skipped.\nHINT: freeze them "
      "before the %s is made: an optimiser leaves out what requires no gradient",
      opt->rule->name);
}

static calx_status *add_group(calx_module *module, calx_optimizer *opt,
                              const calx_finetuning_unfreeze_options *given,
                              size_t *out_group)
{
  calx_finetuning_unfreeze_options o;
  CALX_TRY(cx_options_take("finetuning_unfreeze_and_add_param_group", given, &o,
                           sizeof o));
  CALX_TRY(calx_optimizer_error(opt));
  finetuning_list l = { .opt = opt, .has_norms = !o.no_train_bn };
  list_modules(&l, module);
  if (l.known > 0) report_known(opt);
  const double divisor = cx_or_default(o.initial_denom_lr, 10);
  const double lr =
      cx_is_default(o.lr) ? calx_optimizer_lr(opt) / divisor : o.lr;
  if (l.status == NULL && l.n > 0) {
    *out_group = calx_optimizer_add_param_group(
        opt, NULL, .lr = lr, .params = l.params, .n_params = l.n);
  }
  cx_free(l.params);
  return l.status;
}

size_t calx_finetuning_unfreeze_and_add_param_group_with(
    calx_module *module, calx_optimizer *optimizer,
    const calx_finetuning_unfreeze_options *options)
{
  size_t group = SIZE_MAX;
  if (!is_module("finetuning_unfreeze_and_add_param_group", module)) {
    return group;
  }
  calx_finetuning_make_trainable(module);
  cx_lazy_scope_pin(add_group(module, optimizer, options, &group));
  return group;
}
