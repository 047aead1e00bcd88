// Logged values beside Lightning's: names, levels, reductions, what is refused.
#include "boring.h"

// ---- one run ----------------------------------------------------------------

typedef struct plan {
  int64_t batches;
  const char *reduce_fx;
  int64_t steps;  // values that a callback saw on time
} plan;

static void fit(const calx_lightning_module *module, calx_trainer *t,
                int64_t samples)
{
  calx_dataset *data = boring_dataset(samples);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS_OK(calx_trainer_fit(t, module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  calx_loader_free(loader);
  calx_dataset_free(data);
}

#define TRAINER(...)                                                      \
  calx_trainer_new(.devices = 1, .no_progress_bar = true,                 \
                   .no_checkpointing = true, .num_sanity_val_steps = 0,   \
                   .default_root_dir = getenv("TMPDIR"), .max_epochs = 1, \
                   __VA_ARGS__)
#define MODULE(...)                                                \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),               \
                        .configure_model = boring_model,           \
                        .configure_optimizers = boring_optimizers, \
                        __VA_ARGS__)

static calx_tensor *number(double value)
{
  return calx_full(CALX_SHAPE(1), value);
}

// ---- names ------------------------------------------------------------------

static calx_tensor *log_names(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_log(t, "default", loss);
  calx_trainer_log(t, "l_s", loss, .on_step = 1, .on_epoch = 0);
  calx_trainer_log(t, "l_e", number((double)i), .on_step = 0, .on_epoch = 1);
  calx_trainer_log(t, "l_se", number((double)i), .on_step = 1, .on_epoch = 1);
  return loss;
}

// Row D1.
static void test_names(void **state)
{
  (void)state;
  const calx_lightning_module module = MODULE(.training_step = log_names);
  calx_trainer *t = TRAINER(.accumulate_grad_batches = 1);
  fit(&module, t, 4);
  static const char *const known[] = { "default",   "l_s",        "l_e",
                                       "l_se_step", "l_se_epoch", "l_se" };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    assert_true(calx_trainer_has_metric(t, known[i]));
  }
  assert_false(calx_trainer_has_metric(t, "l_e_epoch"));
  assert_false(calx_trainer_has_metric(t, "default_step"));
  assert_true(isnan(calx_trainer_callback_metric(t, "other")));
  assert_true(calx_trainer_callback_metric(t, "l_e") == 1.5);
  assert_true(calx_trainer_callback_metric(t, "l_se") == 1.5);
  assert_true(calx_trainer_callback_metric(t, "l_se_epoch") == 1.5);
  assert_true(calx_trainer_callback_metric(t, "l_se_step") == 3);
  calx_trainer_free(t);
}

// ---- reductions -------------------------------------------------------------

static calx_tensor *log_index(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  const plan *p = calx_trainer_user(t);
  calx_trainer_log(t, "index", number((double)i), .on_epoch = 1,
                   .reduce_fx = p->reduce_fx);
  return boring_loss(self, batch);
}

static void test_row_D3(void **state)
{
  (void)state;
  static const struct {
    int64_t batches;
    const char *reduce_fx;
    double wanted;
  } rows[] = { { 3, "min", 0 }, { 3, "max", 2 },  { 11, "max", 10 },
               { 5, "avg", 2 }, { 5, "SUM", 10 }, { 5, NULL, 2 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    plan p = { .reduce_fx = rows[i].reduce_fx };
    const calx_lightning_module module =
        MODULE(.user = &p, .training_step = log_index);
    calx_trainer *t = TRAINER(.max_epochs = 2);
    fit(&module, t, rows[i].batches);
    assert_true(calx_trainer_callback_metric(t, "index_epoch") ==
                rows[i].wanted);
    calx_trainer_free(t);
  }
}

static calx_tensor *log_weighted(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch;
  calx_trainer_log(t, "mean", number((double)i + 1),
                   .batch_size = (i + 1) * (i + 1));
  return NULL;
}

// Row D4: the mean is weighted with the sizes of the batches.
static void test_row_D4(void **state)
{
  (void)state;
  const calx_lightning_module module =
      MODULE(.training_step = boring_step, .validation_step = log_weighted);
  calx_trainer *t = TRAINER(.accumulate_grad_batches = 1);
  fit(&module, t, 9);
  assert_true(fabs(calx_trainer_callback_metric(t, "mean") - 2025.0 / 285) <
              1e-6);
  calx_trainer_free(t);
}

// Rows D2 and D7.
static void test_loaders(void **state)
{
  (void)state;
  const calx_lightning_module module =
      MODULE(.test_step = log_weighted, .training_step = boring_step);
  calx_dataset *data = boring_dataset(3), *more = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data), *other = calx_loader_new(more);
  calx_trainer *t = TRAINER(.accumulate_grad_batches = 1);
  CHECK_STATUS_OK(calx_trainer_test(
      t, &module, .dataloaders = (const calx_loader *const[]){ loader, other },
      .n_dataloaders = 2));
  assert_true(fabs(calx_trainer_callback_metric(t, "mean/dataloader_idx_0") -
                   36.0 / 14) < 1e-6);
  assert_true(fabs(calx_trainer_callback_metric(t, "mean/dataloader_idx_1") -
                   9.0 / 5) < 1e-6);
  assert_false(calx_trainer_has_metric(t, "mean"));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_loader_free(other);
  calx_dataset_free(data);
  calx_dataset_free(more);
}

// ---- what is refused --------------------------------------------------------

typedef struct wrong {
  int kind;
} wrong;

static calx_tensor *log_wrong(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  (void)i;
  const wrong *w = calx_trainer_user(t);
  calx_tensor *loss = boring_loss(self, batch);
  switch (w->kind) {
    case 0: calx_trainer_log(t, "x", batch->data); break;
    case 1: calx_trainer_log(t, "x", loss, .on_step = 0, .on_epoch = 0); break;
    case 2: calx_trainer_log(t, "x", loss, .reduce_fx = "median"); break;
    case 3:
      calx_trainer_log(t, "x", loss);
      calx_trainer_log(t, "x", loss, .prog_bar = true);
      break;
    case 4: calx_trainer_log(t, NULL, loss); break;
    case 5: calx_trainer_log(t, "x", NULL); break;
    default: break;
  }
  return loss;
}

static void log_on_epoch_start(calx_trainer *t, void *self)
{
  (void)self;
  const wrong *w = calx_trainer_user(t);
  if (w->kind == 6) calx_trainer_log(t, "x", number(1), .on_step = 1);
}

static void log_on_fit_start(calx_trainer *t, void *self)
{
  (void)self;
  const wrong *w = calx_trainer_user(t);
  if (w->kind == 7) calx_trainer_log(t, "x", number(1));
}

static void test_row_D6(void **state)
{
  (void)state;
  static const char *const texts[] = {
    "the tensor must have a single element",
    "`self.log(on_step=False, on_epoch=False)` is not useful.",
    "Only `self.log(..., reduce_fx={min,max,mean,sum})` are supported. Found: "
    "median",
    "You called `self.log(x, ...)` twice in `training_step` with different "
    "arguments. This is not allowed",
    "the name is NULL",
    "the value of 'x' is NULL",
    "You can't `self.log(on_step=True)` inside `on_train_epoch_start`, must be "
    "one of (False,).",
    "You can't `self.log()` inside `on_fit_start`.",
  };
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  for (int i = 0; i < 8; i++) {
    wrong w = { i };
    const calx_lightning_module module =
        MODULE(.user = &w, .training_step = log_wrong,
               .hooks = { .on_train_epoch_start = log_on_epoch_start,
                          .on_fit_start = log_on_fit_start });
    calx_trainer *t = TRAINER(.accumulate_grad_batches = 1);
    CHECK_STATUS(CALX_INVALID_ARGUMENT,
                 calx_trainer_fit(t, &module, .train_dataloader = loader),
                 "log.c:", texts[i]);
    assert_int_equal(calx_trainer_global_step(t), 0);
    calx_trainer_free(t);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- loggers ----------------------------------------------------------------

typedef struct written {
  int64_t steps[64], epochs[64];
  double values[64];  // of "index", or NaN
  size_t n;
  char ended[16];
} written;

static calx_status *write(void *user, const calx_logged_value *values,
                          size_t count, int64_t step)
{
  written *w = user;
  w->steps[w->n] = step;
  w->values[w->n] = NAN;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(values[i].name, "epoch") == 0) {
      w->epochs[w->n] = (int64_t)values[i].value;
    } else if (strncmp(values[i].name, "index", 5) == 0) {
      w->values[w->n] = values[i].value;
    }
  }
  w->n++;
  return NULL;
}

static calx_status *finish(void *user, const char *status)
{
  snprintf(((written *)user)->ended, 16, "%s", status);
  return NULL;
}

static const calx_logger_functions functions = { .size = sizeof functions,
                                                 .log_metrics = write,
                                                 .finalize = finish };

static calx_tensor *log_step(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  calx_trainer_log(t, "index", number((double)i));
  calx_trainer_log(t, "hidden", number(1), .no_logger = true);
  return boring_loss(self, batch);
}

static void test_row_D8(void **state)
{
  (void)state;
  static const struct {
    int64_t batches, steps, every, count, first;
  } rows[] = { { 10, 10, 1, 10, 0 }, { 3, 10, 1, 10, 0 }, { 3, 10, 5, 2, 4 } };
  const calx_lightning_module module = MODULE(.training_step = log_step);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    written w = { 0 };
    calx_logger *logger = calx_logger_new(&functions, &w);
    calx_trainer *t = TRAINER(.max_epochs = -1, .max_steps = rows[k].steps,
                              .loggers = &logger, .n_loggers = 1,
                              .log_every_n_steps = rows[k].every);
    fit(&module, t, rows[k].batches);
    assert_int_equal(w.n, rows[k].count);
    for (size_t i = 0; i < w.n; i++) {
      const int64_t step = rows[k].first + (int64_t)i * rows[k].every;
      assert_int_equal(w.steps[i], step);
      assert_int_equal(w.epochs[i], step / rows[k].batches);
      assert_true(w.values[i] == (double)(step % rows[k].batches));
    }
    assert_string_equal(w.ended, "success");
    calx_trainer_free(t);
    calx_logger_free(logger);
  }
}

// The epoch's values are written with the last step's number.
static void test_epochs(void **state)
{
  (void)state;
  plan p = { .reduce_fx = "max" };
  const calx_lightning_module module =
      MODULE(.user = &p, .training_step = log_index);
  written w = { 0 };
  calx_logger *logger = calx_logger_new(&functions, &w);
  calx_trainer *t = TRAINER(.max_epochs = 2, .loggers = &logger, .n_loggers = 1,
                            .log_every_n_steps = 4);
  fit(&module, t, 5);
  static const int64_t steps[] = { 3, 4, 7, 9 };
  static const double values[] = { 3, 4, 2, 4 };
  assert_int_equal(w.n, 4);
  for (size_t i = 0; i < w.n; i++) {
    assert_int_equal(w.steps[i], steps[i]);
    assert_true(w.values[i] == values[i]);
  }
  calx_trainer_free(t);
  calx_logger_free(logger);
}

// A run that fails ends its loggers with that.
static void test_row_E24(void **state)
{
  (void)state;
  wrong x = { 0 };
  const calx_lightning_module module =
      MODULE(.user = &x, .training_step = log_wrong);
  written w = { 0 };
  calx_logger *logger = calx_logger_new(&functions, &w);
  calx_trainer *t = TRAINER(.loggers = &logger, .n_loggers = 1);
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &module, .train_dataloader = loader),
               "single element");
  assert_string_equal(w.ended, "failed");
  assert_int_equal(w.n, 0);
  calx_trainer_free(t);
  calx_logger_free(logger);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- programs ---------------------------------------------------------------

static calx_tensor *log_much(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_log(t, "a", loss, .on_epoch = 1, .prog_bar = true);
  calx_trainer_log(t, "b", loss, .on_epoch = 1, .reduce_fx = "max");
  return loss;
}

static long compilations(void)
{
  calx_metric_data data;
  calx_metric_value("CompileTime", &data);
  return (long)data.samples;
}

typedef struct counts {
  long first, last;
} counts;

static void count(calx_trainer *t, void *self)
{
  (void)self;
  counts *c = calx_trainer_user(t);
  if (calx_trainer_current_epoch(t) == 0) c->first = compilations();
  c->last = compilations();
}

// Row C2: nothing is compiled after the first epoch.
static void test_programs(void **state)
{
  (void)state;
  counts c = { 0 };
  const calx_lightning_module module =
      MODULE(.user = &c, .training_step = log_much, .validation_step = log_much,
             .hooks = { .on_train_epoch_end = count });
  calx_trainer *t = TRAINER(.max_epochs = 4);
  fit(&module, t, 6);
  assert_true(c.first > 0);
  assert_int_equal(c.last, c.first);
  calx_trainer_free(t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_names),    SUPPORT_TEST(test_row_D3),
    SUPPORT_TEST(test_row_D4),   SUPPORT_TEST(test_loaders),
    SUPPORT_TEST(test_row_D6),   SUPPORT_TEST(test_row_D8),
    SUPPORT_TEST(test_epochs),   SUPPORT_TEST(test_row_E24),
    SUPPORT_TEST(test_programs),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
