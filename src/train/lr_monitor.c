// train/lr_monitor: learning rates, and what is beside them, as logged values.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "calx/callbacks_training.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"
#include "train/internal.h"

// Which schedules' rates are written.
typedef enum lr_interval { ANY, OF_STEPS, OF_EPOCHS } lr_interval;

typedef struct lr_monitor {
  bool logs_steps, logs_epochs;  // both: each schedule at its own interval
  bool momentum, weight_decay;
} lr_monitor;

// ---- names ------------------------------------------------------------------

// PyTorch's class of an optimiser's rule.
static const char *class_of(const calx_optimizer *opt)
{
  static const char *const names[][2] = {
    { "sgd", "SGD" },
    { "adam", "Adam" },
    { "adamw", "AdamW" },
    { "adadelta", "Adadelta" },
    { "adagrad", "Adagrad" },
    { "adafactor", "Adafactor" },
    { "adamax", "Adamax" },
    { "asgd", "ASGD" },
    { "lamb", "Lamb" },
    { "lars", "LARS" },
    { "lbfgs", "LBFGS" },
    { "lion", "Lion" },
    { "muon", "Muon" },
    { "nadam", "NAdam" },
    { "radam", "RAdam" },
    { "rmsprop", "RMSprop" },
    { "rprop", "Rprop" },
    { "zero_redundancy_optimizer", "ZeroRedundancyOptimizer" },
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(opt->rule->name, names[i][0]) == 0) return names[i][1];
  }
  return opt->rule->name;
}

// Optimisers with a schedule come first.
static bool precedes(const calx_trainer *t, size_t a, size_t b)
{
  const bool has_a = t->optimizers[a].scheduler != NULL;
  const bool has_b = t->optimizers[b].scheduler != NULL;
  return has_a != has_b ? has_a : a < b;
}

// "lr-Adam", "lr-Adam-1" for the second one, "lr-Adam/pg1" of several groups.
static void write_name(const calx_trainer *t, size_t i, size_t group, char *out,
                       size_t size)
{
  const calx_optimizer *opt = t->optimizers[i].optimizer;
  int earlier = 0;
  for (size_t k = 0; k < t->n_optimizers; k++) {
    const calx_optimizer *other = t->optimizers[k].optimizer;
    earlier += other->rule == opt->rule && precedes(t, k, i);
  }
  char number[16] = "", part[32] = "";
  if (earlier > 0) snprintf(number, sizeof number, "-%d", earlier);
  if (calx_optimizer_param_groups(opt) > 1) {
    snprintf(part, sizeof part, "/pg%zu", group + 1);
  }
  snprintf(out, size, "lr-%s%s%s", class_of(opt), number, part);
}

// ---- values -----------------------------------------------------------------

typedef struct lr_values {
  calx_logged_value *list;  // the names are owned
  size_t n, capacity;
} lr_values;

static calx_status *put(lr_values *v, const char *name, const char *suffix,
                        double value)
{
  char full[128];
  snprintf(full, sizeof full, "%s%s", name, suffix);
  char *copy = cx_strdup(full);
  if (copy == NULL ||
      !cx_grow(&v->list, &v->capacity, v->n + 1, sizeof *v->list)) {
    cx_free(copy);
    return cx_out_of_memory();
  }
  v->list[v->n++] = (calx_logged_value){ .name = copy, .value = value };
  return NULL;
}

// NaN: the optimiser has neither betas nor a momentum.
static double momentum_of(const calx_optimizer *opt, size_t group)
{
  const double beta = calx_optimizer_option(opt, group, "betas[0]");
  return isnan(beta) ? calx_optimizer_option(opt, group, "momentum") : beta;
}

static calx_status *put_optimizer(const calx_trainer *t, const lr_monitor *m,
                                  size_t i, lr_values *out)
{
  const calx_optimizer *opt = t->optimizers[i].optimizer;
  for (size_t g = 0; g < calx_optimizer_param_groups(opt); g++) {
    char name[96];
    write_name(t, i, g, name, sizeof name);
    CALX_TRY(put(out, name, "", calx_optimizer_option(opt, g, "lr")));
    const double momentum = momentum_of(opt, g);
    if (m->momentum) {
      CALX_TRY(put(out, name, "-momentum", isnan(momentum) ? 0 : momentum));
    }
    const double decay = calx_optimizer_option(opt, g, "weight_decay");
    if (m->weight_decay && !isnan(decay)) {
      CALX_TRY(put(out, name, "-weight_decay", decay));
    }
  }
  return NULL;
}

static bool is_asked(const cx_train_optimizer *o, lr_interval interval)
{
  if (interval == ANY || o->scheduler == NULL) return true;
  return (o->interval == CX_TRAIN_EACH_STEP) == (interval == OF_STEPS);
}

static calx_status *collect(const calx_trainer *t, const lr_monitor *m,
                            lr_interval interval, lr_values *out)
{
  for (int scheduled = 1; scheduled >= 0; scheduled--) {
    for (size_t i = 0; i < t->n_optimizers; i++) {
      const cx_train_optimizer *o = &t->optimizers[i];
      if ((o->scheduler != NULL) != scheduled || !is_asked(o, interval)) {
        continue;
      }
      CALX_TRY(put_optimizer(t, m, i, out));
    }
  }
  return NULL;
}

static calx_status *log_rates(calx_trainer *t, const lr_monitor *m,
                              lr_interval interval)
{
  lr_values v = { 0 };
  calx_status *status = collect(t, m, interval, &v);
  for (size_t i = 0; i < v.n && status == NULL; i++) {
    status = cx_train_set_metric(t, v.list[i].name, NULL, v.list[i].value);
  }
  if (status == NULL) status = cx_train_log_row(t, v.list, v.n);
  for (size_t i = 0; i < v.n; i++) cx_free((char *)v.list[i].name);
  cx_free(v.list);
  return status;
}

// ---- hooks ------------------------------------------------------------------

static const lr_monitor *of(void *self)
{
  return *(const lr_monitor *const *)self;
}

static void begin(void *self, void *user)
{
  *(const lr_monitor **)self = user;
}

static void on_train_start(calx_trainer *t, void *self)
{
  if (t->n_loggers == 0 && t->config.fast_dev_run == 0) {
    cx_lazy_scope_pin(cx_invalid(
        "Cannot use `LearningRateMonitor` callback with `Trainer` that has no "
        "logger."));
  }
  if (!of(self)->momentum || !calx_trainer_is_global_zero(t)) return;
  for (size_t i = 0; i < t->n_optimizers; i++) {
    if (!isnan(momentum_of(t->optimizers[i].optimizer, 0))) continue;
    cx_log(
        "You have set log_momentum=True, but some optimizers do not have "
        "momentum. This will log a value 0 for the momentum.");
    return;
  }
}

static void on_train_batch_start(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t batch_idx)
{
  (void)batch, (void)batch_idx;
  const lr_monitor *m = of(self);
  if (!m->logs_steps || !cx_train_is_logged_step(t)) return;
  cx_lazy_scope_pin(log_rates(t, m, m->logs_epochs ? OF_STEPS : ANY));
}

static void on_train_epoch_start(calx_trainer *t, void *self)
{
  const lr_monitor *m = of(self);
  if (!m->logs_epochs) return;
  cx_lazy_scope_pin(log_rates(t, m, m->logs_steps ? OF_EPOCHS : ANY));
}

// ---- the callback -----------------------------------------------------------

static calx_status *take(const calx_learning_rate_monitor_options *given,
                         lr_monitor *out)
{
  calx_learning_rate_monitor_options o;
  CALX_TRY(cx_options_take("learning_rate_monitor", given, &o, sizeof o));
  const char *interval = o.logging_interval;
  const bool steps = interval != NULL && strcmp(interval, "step") == 0;
  const bool epochs = interval != NULL && strcmp(interval, "epoch") == 0;
  *out = (lr_monitor){ .logs_steps = steps || interval == NULL,
                       .logs_epochs = epochs || interval == NULL,
                       .momentum = o.log_momentum,
                       .weight_decay = o.log_weight_decay };
  if (out->logs_steps || out->logs_epochs) return NULL;
  return cx_invalid(
      "logging_interval should be `step` or `epoch` or `None`. It is '%s'",
      interval);
}

calx_callback *calx_learning_rate_monitor_with(
    const calx_learning_rate_monitor_options *options)
{
  lr_monitor *m = cx_calloc(1, sizeof *m);
  calx_status *status = m != NULL ? take(options, m) : cx_out_of_memory();
  calx_callback *c =
      calx_callback_new(.self_size = sizeof(lr_monitor *), .user = m,
                        .begin = begin,
                        .hooks = { .on_train_start = on_train_start,
                                   .on_train_epoch_start = on_train_epoch_start,
                                   .on_train_batch_start =
                                       on_train_batch_start });
  return cx_train_callback_finish(c, "LearningRateMonitor",
                                  CX_TRAIN_CALLBACK_OTHER, status, m, cx_free);
}
