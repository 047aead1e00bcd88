// Mistakes that programs make: what the trainer says of each, and where; none
// of them may write over memory or train on.
#include "boring.h"
#include "said.h"

// A fit of four batches with what is wrong.
static calx_status *fit(const calx_lightning_module *m,
                        const calx_trainer_options *o)
{
  calx_dataset *data = boring_dataset(4);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = calx_trainer_new_with(o);
  calx_status *status = calx_trainer_fit(t, m, .train_dataloader = loader);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

#define OPTIONS(...)                                                 \
  &CALX_TRAINER_OPTIONS(.devices = 1, .max_epochs = 1, BORING_ALONE, \
                        .no_model_summary = true, __VA_ARGS__)
#define MODULE(...)                                                \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),               \
                        .configure_model = boring_model,           \
                        .configure_optimizers = boring_optimizers, \
                        .training_step = boring_step, __VA_ARGS__)

// ---- the size of self -------------------------------------------------------

static calx_module *large_model(calx_trainer *t, void *self)
{
  memset(self, 0, sizeof(boring));
  return boring_model(t, self);
}

static void test_self_size(void **state)
{
  (void)state;
  const calx_lightning_module none =
      MODULE(.self_size = 0, .configure_model = large_model);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(&none, OPTIONS()),
               "`configure_model()` wrote behind its `self`, which has 0 bytes",
               "`.self_size`");
  const calx_lightning_module pointer =
      MODULE(.self_size = sizeof(boring *), .configure_model = large_model);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(&pointer, OPTIONS()),
               "which has 8 bytes");
}

// ---- errors before the first batch ------------------------------------------

static int steps;

static calx_tensor *counted_step(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  steps++;
  return boring_step(t, self, batch, i);
}

static void refuse(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  calx_scope_set_error(calx_status_new(CALX_INTERNAL, "refused"));
}

static void test_no_training_after_an_error(void **state)
{
  (void)state;
  steps = 0;
  calx_lightning_module m =
      MODULE(.training_step = counted_step, .hooks.on_train_start = refuse);
  CHECK_STATUS(CALX_INTERNAL, fit(&m, OPTIONS()), "refused");
  assert_int_equal(steps, 0);
  m = (calx_lightning_module)MODULE(.training_step = counted_step);
  calx_callback *monitor = calx_learning_rate_monitor();
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               fit(&m, OPTIONS(.callbacks = &monitor, .n_callbacks = 1)),
               "Cannot use `LearningRateMonitor` callback with `Trainer` that "
               "has no logger.");
  assert_int_equal(steps, 0);
  calx_callback_free(monitor);
}

static void test_sanity_check_start(void **state)
{
  (void)state;
  steps = 0;
  const calx_lightning_module m = MODULE(.validation_step = counted_step,
                                         .hooks.on_sanity_check_start = refuse);
  calx_dataset *data = boring_dataset(4);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = calx_trainer_new_with(OPTIONS());
  CHECK_STATUS(CALX_INTERNAL,
               calx_trainer_fit(t, &m, .train_dataloader = loader,
                                .val_dataloader = loader),
               "refused");
  assert_int_equal(steps, 0);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- where an error is ------------------------------------------------------

static void no_optimizer(calx_trainer *t, void *self)
{
  (void)t, (void)self;
}

static bool is_in(const calx_status *status, const char *function)
{
  const calx_site *site = calx_status_site(status);
  return site != NULL && strcmp(site->func, function) == 0;
}

// What the trainer and the library's callbacks find is told of the call of
// calx_trainer_fit(), not of the last operation before it.
static void test_site(void **state)
{
  (void)state;
  const calx_lightning_module boring_module = MODULE(),
                              none =
                                  MODULE(.configure_optimizers = no_optimizer);
  calx_callback *stopping =
      calx_early_stopping(.monitor = "loss", .check_on_train_epoch_end = true);
  calx_status *found[] = {
    fit(&none, OPTIONS()),
    fit(&boring_module, OPTIONS(.limit_train_batches = 0.01)),
    fit(&boring_module, OPTIONS(.callbacks = &stopping, .n_callbacks = 1))
  };
  for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
    assert_non_null(found[i]);
    if (!is_in(found[i], "fit")) fail_msg("%s", calx_status_message(found[i]));
    calx_status_free(found[i]);
  }
  calx_callback_free(stopping);
}

// ---- what is wrong with an argument -----------------------------------------

static void plateau(calx_trainer *t, void *self)
{
  calx_optimizer *opt = calx_sgd(((boring *)self)->root, .lr = 0.1);
  calx_trainer_add_optimizer(t, opt,
                             .lr_scheduler = calx_reduce_lr_on_plateau(opt));
}

static void bad_rate(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_adam(((boring *)self)->root, .lr = -1));
}

static void null_optimizer(calx_trainer *t, void *self)
{
  (void)self;
  calx_trainer_add_optimizer(t, NULL);
}

static void test_arguments(void **state)
{
  (void)state;
  const calx_lightning_module a = MODULE(.configure_optimizers = plateau),
                              b = MODULE(.configure_optimizers =
                                             null_optimizer);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(&a, OPTIONS()),
               "must include a monitor when a `ReduceLROnPlateau` scheduler",
               "`.monitor`");
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(&b, OPTIONS()),
               "add_optimizer: the optimiser is NULL");
  const calx_lightning_module c = MODULE(.test_step = boring_step);
  const calx_lightning_module d = MODULE(.configure_optimizers = bad_rate);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(&d, OPTIONS()), "adam: lr -1");
  calx_trainer *t = calx_trainer_new_with(OPTIONS());
  const calx_loader *const loaders[2] = { NULL };
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      calx_trainer_test(t, &c, .dataloaders = loaders, .n_dataloaders = 2),
      "dataloaders[0] of 2 is NULL");
  calx_trainer_free(t);
  t = calx_trainer_new_with(OPTIONS());
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_predict(t, &c, NULL),
               "out_predictions is NULL");
  assert_int_equal(calx_trainer_exit_code(t), 1);
  calx_trainer_free(t);
}

// ---- lines ------------------------------------------------------------------

static calx_tensor *no_loss(calx_trainer *t, void *self,
                            const calx_batch *batch, int64_t i)
{
  (void)t, (void)self, (void)batch, (void)i;
  return NULL;
}

static calx_tensor *freeing_step(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  calx_trainer_free(t);
  return boring_step(t, self, batch, i);
}

static void check_line(const calx_lightning_module *m, bool has_val,
                       int64_t samples, const char *line)
{
  calx_dataset *data = boring_dataset(4), *part;
  part = calx_dataset_range(data, 0, samples);
  calx_loader *loader = calx_loader_new(part);
  calx_trainer *t = calx_trainer_new_with(OPTIONS());
  said_begin();
  CHECK_STATUS_OK(calx_trainer_fit(t, m, .train_dataloader = loader,
                                   .val_dataloader = has_val ? loader : NULL));
  said_end();
  if (said_count(line) == 0) fail_msg("'%s' in:\n%s", line, said_lines.text);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(part);
  calx_dataset_free(data);
}

static void test_lines(void **state)
{
  (void)state;
  calx_lightning_module m = MODULE();
  check_line(&m, true, 4,
             "You passed in a `val_dataloader` but have no `validation_step`. "
             "Skipping val loop.");
  check_line(&m, false, 0,
             "Total length of `DataLoader` across ranks is zero. Please make "
             "sure this was your intention.");
  m.validation_step = boring_step;
  check_line(&m, false, 4,
             "You defined a `validation_step` but have no `val_dataloader`. "
             "Skipping val loop.");
  m = (calx_lightning_module)MODULE(.training_step = no_loss);
  check_line(&m, false, 4, "`training_step` returned `None`.");
  assert_int_equal(said_count("`None`"), 1);
  m.training_step = freeing_step;
  check_line(&m, false, 4, "cannot free the trainer of its run");
}

// ---- NaN that is written down -----------------------------------------------

static calx_tensor *classes_step(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  calx_tensor *y = calx_forward(((boring *)self)->root, batch->data);
  calx_tensor *target = calx_zeros(CALX_SHAPE(batch->size), .dtype = CALX_I64);
  return calx_cross_entropy(y, target);
}

// cross_entropy has a NaN for classes that are out of range.
static void test_anomaly_of_classes(void **state)
{
  (void)state;
  const calx_lightning_module m = MODULE(.training_step = classes_step);
  CHECK_STATUS_OK(fit(&m, OPTIONS(.detect_anomaly = true)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_self_size),
    SUPPORT_TEST(test_no_training_after_an_error),
    SUPPORT_TEST(test_sanity_check_start),
    SUPPORT_TEST(test_site),
    SUPPORT_TEST(test_arguments),
    SUPPORT_TEST(test_lines),
    SUPPORT_TEST(test_anomaly_of_classes),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
