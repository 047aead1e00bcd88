// What a program may rely on: the modes of a model's parts, the length of a
// schedule, metrics that the trainer takes, the exit code.
#include "boring.h"

// ---- modes ------------------------------------------------------------------

typedef struct frozen {
  boring b;
  calx_module *backbone, *below;
  int batches, wrong;
} frozen;

static calx_module *frozen_model(calx_trainer *t, void *self)
{
  frozen *f = self;
  calx_module *root = boring_model(t, &f->b);
  f->backbone = calx_nn_sequential(root, "backbone");
  f->below = calx_nn_linear(f->backbone, "0", 2, 2);
  calx_module_train(f->backbone, false);
  return root;
}

static void frozen_optimizers(calx_trainer *t, void *self)
{
  boring_optimizers(t, &((frozen *)self)->b);
}

static calx_tensor *frozen_step(calx_trainer *t, void *self,
                                const calx_batch *batch, int64_t i)
{
  frozen *f = self;
  f->batches++;
  f->wrong += !calx_module_is_training(f->b.root) ||
              !calx_module_is_training(f->b.layer) ||
              calx_module_is_training(f->backbone) ||
              calx_module_is_training(f->below);
  return boring_step(t, &f->b, batch, i);
}

static calx_tensor *frozen_validation(calx_trainer *t, void *self,
                                      const calx_batch *batch, int64_t i)
{
  frozen *f = self;
  f->wrong +=
      calx_module_is_training(f->b.root) || calx_module_is_training(f->b.layer);
  return boring_step(t, &f->b, batch, i);
}

static void frozen_end(calx_trainer *t, void *self)
{
  const frozen *f = self;
  frozen *out = calx_trainer_user(t);
  *out = *f;
}

// A part in evaluation mode stays in it after a validation, the sanity check's
// too.
static void test_modes(void **state)
{
  (void)state;
  frozen found = { 0 };
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(frozen), .user = &found,
                            .configure_model = frozen_model,
                            .configure_optimizers = frozen_optimizers,
                            .training_step = frozen_step,
                            .validation_step = frozen_validation,
                            .hooks = { .on_train_end = frozen_end });
  calx_dataset *dataset = boring_dataset(4);
  calx_loader *loader = calx_loader_new(dataset);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 2, .no_logger = true,
                       .no_checkpointing = true, .no_progress_bar = true);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  assert_int_equal(found.batches, 8);
  assert_int_equal(found.wrong, 0);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(dataset);
}

// ---- schedules --------------------------------------------------------------

static void estimating_optimizers(calx_trainer *t, void *self)
{
  *(int64_t *)calx_trainer_user(t) = calx_trainer_estimated_stepping_batches(t);
  boring_optimizers(t, self);
}

static int64_t estimate(int64_t epochs, int64_t steps, int64_t accumulate,
                        double limit)
{
  int64_t found = -2;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &found,
                            .configure_model = boring_model,
                            .configure_optimizers = estimating_optimizers,
                            .training_step = boring_step);
  calx_dataset *dataset = boring_dataset(10);
  calx_loader *loader = calx_loader_new(dataset);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = epochs, .max_steps = steps,
                       .accumulate_grad_batches = accumulate,
                       .limit_train_batches = limit, .no_logger = true,
                       .no_checkpointing = true, .no_progress_bar = true);
  const int64_t before = calx_trainer_global_step(t);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  if (found >= 0) assert_int_equal(calx_trainer_global_step(t) - before, found);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(dataset);
  return found;
}

// As many as the run has. Source: Trainer.estimated_stepping_batches of
// Lightning 2.6, with 10 batches.
static void test_stepping_batches(void **state)
{
  (void)state;
  assert_int_equal(estimate(2, -1, 1, CALX_DEFAULT), 20);
  assert_int_equal(estimate(2, -1, 4, CALX_DEFAULT), 6);
  assert_int_equal(estimate(2, 5, 1, CALX_DEFAULT), 5);
  assert_int_equal(estimate(2, 50, 1, CALX_DEFAULT), 20);
  assert_int_equal(estimate(-1, 7, 1, CALX_DEFAULT), 7);
  assert_int_equal(estimate(3, -1, 1, 3), 9);
  assert_int_equal(calx_trainer_estimated_stepping_batches(NULL), 0);
}

// ---- metrics ----------------------------------------------------------------

static calx_module *measured_model(calx_trainer *t, void *self)
{
  calx_metric **mean = calx_trainer_user(t);
  calx_metric *taken = calx_trainer_add_metric(
      t, calx_metric_mean(.nan_strategy = *mean != NULL ? "error" : "maybe"));
  *mean = taken;
  return boring_model(t, self);
}

static calx_tensor *measured_step(calx_trainer *t, void *self,
                                  const calx_batch *batch, int64_t i)
{
  calx_metric *mean = *(calx_metric **)calx_trainer_user(t);
  calx_metric_update(mean, calx_scalar((double)i), NULL);
  calx_trainer_log_metric(t, "mean", mean, NULL);
  return boring_step(t, self, batch, i);
}

static void test_metric(void **state)
{
  (void)state;
  calx_metric *mean = NULL;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &mean,
                            .configure_model = measured_model,
                            .test_step = measured_step);
  calx_dataset *dataset = boring_dataset(5);
  calx_loader *loader = calx_loader_new(dataset);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .barebones = true, .max_epochs = 1);
  // Its error is there before a step.
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_test(t, &module, .test_dataloader = loader),
               "maybe");
  CHECK_STATUS_OK(calx_trainer_test(t, &module, .test_dataloader = loader,
                                    .not_verbose = true));
  assert_true(calx_trainer_callback_metric(t, "mean") == 2);
  assert_null(calx_trainer_add_metric(t, calx_metric_mean()));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_take_error(),
               "outside of a run");
  assert_null(calx_trainer_add_metric(t, NULL));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "NULL");
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(dataset);
}

// ---- the end ----------------------------------------------------------------

static void test_exit_code(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .test_step = boring_step);
  calx_dataset *dataset = boring_dataset(2);
  calx_loader *loader = calx_loader_new(dataset);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .barebones = true, .max_epochs = 1);
  assert_int_equal(calx_trainer_exit_code(t), 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &module, .train_dataloader = loader),
               "training_step");
  assert_int_equal(calx_trainer_exit_code(t), 1);
  CHECK_STATUS_OK(calx_trainer_test(t, &module, .test_dataloader = loader));
  assert_int_equal(calx_trainer_exit_code(t), 0);
  calx_trainer_free(t);
  t = calx_trainer_new(.precision = "7");
  assert_int_equal(calx_trainer_exit_code(t), 1);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(dataset);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_modes),
    cmocka_unit_test(test_stepping_batches),
    cmocka_unit_test(test_metric),
    cmocka_unit_test(test_exit_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
