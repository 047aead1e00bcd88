// train/backbone: a part of the model that begins to train at an epoch, with a
// rate of its own.
#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "io/value.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"
#include "train/internal.h"

// Of the callback.
typedef struct backbone_options {
  calx_backbone_finetuning_options given;
  const char *path;  // owned
  int64_t epoch;
  double ratio, multiplier;
} backbone_options;

// Of a rank.
typedef struct backbone {
  const backbone_options *o;
  double rate;         // of the epoch before; NaN: it is frozen
  calx_value *loaded;  // groups of a checkpoint, until fit begins; NULL: none
} backbone;

static void begin(void *self, void *user)
{
  backbone *s = self;
  s->o = user;
  s->rate = (double)NAN;
}

static void end(void *self)
{
  calx_value_free(((backbone *)self)->loaded);
}

static calx_module *find(const calx_trainer *t, const backbone *s)
{
  return calx_module_get(t->model, s->o->path);
}

// Before the optimisers are made, which leave it out.
static void on_post_move_to_device(calx_trainer *t, void *self)
{
  const backbone *s = self;
  calx_module *m = find(t, s);
  if (m != NULL) {
    calx_finetuning_freeze(m);
    return;
  }
  cx_lazy_scope_pin(
      cx_invalid("The LightningModule should have a nn.Module `%s` attribute",
                 s->o->path));
}

// ---- epochs -----------------------------------------------------------------

static void report(const backbone *s, double current)
{
  if (!s->o->given.verbose || calx_global_ordinal() != 0) return;
  cx_log("Current lr: %.12g, Backbone lr: %.12g", current, s->rate);
}

static void unfreeze(calx_trainer *t, backbone *s, calx_optimizer *opt)
{
  const calx_backbone_finetuning_options *o = &s->o->given;
  const double current = calx_optimizer_lr(opt);
  s->rate = o->backbone_initial_lr != 0 ? o->backbone_initial_lr
                                        : current * s->o->ratio;
  calx_finetuning_unfreeze_and_add_param_group(
      find(t, s), opt, .lr = s->rate != 0 ? s->rate : CALX_ZERO,
      .no_train_bn = o->no_train_bn);
  report(s, current);
}

static void raise_rate(backbone *s, calx_optimizer *opt, int64_t epoch)
{
  const calx_backbone_finetuning_options *o = &s->o->given;
  const double current = calx_optimizer_lr(opt);
  s->rate *= o->lambda_func != NULL ? o->lambda_func(o->user, epoch + 1)
                                    : s->o->multiplier;
  if (!o->no_align && s->rate > current) s->rate = current;
  calx_optimizer_set_option(opt, calx_optimizer_param_groups(opt) - 1, "lr",
                            s->rate);
  report(s, current);
}

static void on_train_epoch_start(calx_trainer *t, void *self)
{
  backbone *s = self;
  const int64_t epoch = t->position.epoch;
  const bool is_frozen = isnan(s->rate);
  for (size_t i = 0; i < t->n_optimizers && epoch >= s->o->epoch; i++) {
    calx_optimizer *opt = t->optimizers[i].optimizer;
    if (is_frozen) {
      unfreeze(t, s, opt);
    } else {
      raise_rate(s, opt, epoch);
    }
  }
}

// ---- checkpoints ------------------------------------------------------------
// Lightning's: {'internal_optimizer_metadata': {0: [{'lr', …, 'params':
// ['fc.weight', …]}, …]}, 'previous_backbone_lr'}

static calx_status *name_params(const calx_optimizer *opt, size_t g,
                                calx_value *group)
{
  const cx_optim_group *of = opt->groups[g];
  calx_value *names = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(group, "params", names));
  for (size_t i = 0; i < of->n; i++) {
    const char *path = opt->params[of->first + i].path;
    CALX_TRY(calx_value_append(names, calx_value_string(path)));
  }
  return NULL;
}

static calx_status *put_groups(calx_optimizer *opt, int64_t i, calx_value *all)
{
  calx_value *dict;
  CALX_TRY(calx_optimizer_state_dict(opt, &dict));
  calx_value *groups = calx_value_get(dict, "param_groups");
  calx_status *status = NULL;
  for (size_t g = 0; g < opt->n_groups && status == NULL; g++) {
    status = name_params(opt, g, calx_value_item(groups, g));
  }
  cx_io_take_back(dict, groups);
  calx_value_free(dict);
  if (status == NULL) return calx_value_set_at(all, i, groups);
  calx_value_free(groups);
  return status;
}

static calx_status *put_state(calx_trainer *t, const backbone *s,
                              calx_value *state)
{
  calx_value *all = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(state, "internal_optimizer_metadata", all));
  for (size_t i = 0; i < t->n_optimizers; i++) {
    CALX_TRY(put_groups(t->optimizers[i].optimizer, (int64_t)i, all));
  }
  return calx_value_set(
      state, "previous_backbone_lr",
      isnan(s->rate) ? calx_value_none() : calx_value_float(s->rate));
}

static void state_dict(calx_trainer *t, void *self, calx_value *state)
{
  cx_lazy_scope_pin(put_state(t, self, state));
}

// The names of the parameters of each group, which is all that is wanted: the
// options are the optimiser's state.
static calx_status *keep_names(const calx_value *group, calx_value *groups)
{
  const calx_value *params = calx_value_get(group, "params");
  calx_value *names = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_append(groups, names));
  for (size_t i = 0; i < calx_value_count(params); i++) {
    const char *name = calx_value_as_string(calx_value_item(params, i));
    if (name == NULL) continue;
    CALX_TRY(calx_value_append(names, calx_value_string(name)));
  }
  return NULL;
}

static calx_status *keep_groups(const calx_value *all, calx_value *out)
{
  for (size_t i = 0; i < calx_value_count(all); i++) {
    const calx_value *from = calx_value_item(all, i);
    calx_value *groups = calx_value_container(CALX_KIND_LIST);
    CALX_TRY(calx_value_set_at(out, calx_value_key_number(all, i), groups));
    for (size_t g = 0; g < calx_value_count(from); g++) {
      CALX_TRY(keep_names(calx_value_item(from, g), groups));
    }
  }
  return NULL;
}

static void load_state_dict(calx_trainer *t, void *self,
                            const calx_value *state)
{
  (void)t;
  backbone *s = self;
  calx_value_free(s->loaded);
  s->loaded = calx_value_container(CALX_KIND_DICT);
  s->rate = calx_value_as_float(calx_value_get(state, "previous_backbone_lr"));
  cx_lazy_scope_pin(
      s->loaded == NULL
          ? cx_out_of_memory()
          : keep_groups(calx_value_get(state, "internal_optimizer_metadata"),
                        s->loaded));
}

// ---- where a run begins -----------------------------------------------------

static calx_status *add_named(calx_trainer *t, calx_optimizer *opt,
                              const calx_value *names)
{
  const size_t n = calx_value_count(names);
  calx_tensor **params = cx_calloc(n + 1, sizeof *params);
  calx_status *status = params != NULL ? NULL : cx_out_of_memory();
  for (size_t i = 0; i < n && status == NULL; i++) {
    const char *name = calx_value_as_string(calx_value_item(names, i));
    params[i] = calx_module_find(t->model, name);
    if (params[i] == NULL) {
      status = cx_invalid(
          "BackboneFinetuning: the checkpoint's optimiser has a parameter "
          "'%s', which the model lacks",
          name);
    } else {
      calx_requires_grad(params[i], true);
    }
  }
  if (status == NULL) {
    calx_optimizer_add_param_group(opt, NULL, .params = params, .n_params = n);
    status = cx_status_copy(calx_scope_error());
  }
  cx_free(params);
  return status;
}

// The groups that the run of the checkpoint had added, for their states.
static calx_status *add_loaded(calx_trainer *t, const backbone *s)
{
  for (size_t i = 0; i < t->n_optimizers; i++) {
    calx_optimizer *opt = t->optimizers[i].optimizer;
    const calx_value *groups = calx_value_get_at(s->loaded, (int64_t)i);
    for (size_t g = opt->n_groups; g < calx_value_count(groups); g++) {
      CALX_TRY(add_named(t, opt, calx_value_item(groups, g)));
    }
  }
  return NULL;
}

static void on_fit_start(calx_trainer *t, void *self)
{
  backbone *s = self;
  if (s->loaded == NULL) {
    s->rate = (double)NAN;
    return;
  }
  if (!isnan(s->rate)) {
    calx_finetuning_make_trainable(find(t, s));
    cx_lazy_scope_pin(add_loaded(t, s));
  }
  calx_value_free(s->loaded);
  s->loaded = NULL;
}

// ---- the callback -----------------------------------------------------------

static void free_own(void *own)
{
  backbone_options *o = own;
  cx_free((char *)o->path);
  cx_free(o);
}

static calx_status *take(const calx_backbone_finetuning_options *options,
                         backbone_options *out)
{
  calx_backbone_finetuning_options *o = &out->given;
  CALX_TRY(cx_options_take("backbone_finetuning", options, o, sizeof *o));
  const int64_t epoch = o->unfreeze_backbone_at_epoch;
  out->epoch = epoch == INT64_MIN ? 0 : epoch == 0 ? 10 : epoch;
  out->ratio = cx_or_default(o->backbone_initial_ratio_lr, 0.1);
  out->multiplier = cx_or_default(o->multiplier, 2);
  out->path = cx_strdup(o->backbone != NULL ? o->backbone : "backbone");
  if (out->path == NULL) return cx_out_of_memory();
  if (out->epoch >= 0 && out->ratio >= 0 && out->multiplier >= 0 &&
      o->backbone_initial_lr >= 0) {
    return NULL;
  }
  return cx_invalid(
      "backbone_finetuning: unfreeze_backbone_at_epoch is %lld, "
      "backbone_initial_ratio_lr %g, backbone_initial_lr %g, multiplier %g: "
      "numbers of 0 or more are wanted",
      (long long)out->epoch, out->ratio, o->backbone_initial_lr,
      out->multiplier);
}

calx_callback *calx_backbone_finetuning_with(
    const calx_backbone_finetuning_options *options)
{
  backbone_options *o = cx_calloc(1, sizeof *o);
  calx_status *status = o != NULL ? take(options, o) : cx_out_of_memory();
  calx_callback *c = calx_callback_new(
          .self_size = sizeof(backbone), .user = o, .begin = begin, .end = end,
          .state_key = "BackboneFinetuning", .state_dict = state_dict,
          .load_state_dict = load_state_dict,
          .hooks = { .on_post_move_to_device = on_post_move_to_device,
                     .on_fit_start = on_fit_start,
                     .on_train_epoch_start = on_train_epoch_start });
  return cx_train_callback_finish(c, "BackboneFinetuning",
                                  CX_TRAIN_CALLBACK_OTHER, status, o, free_own);
}
