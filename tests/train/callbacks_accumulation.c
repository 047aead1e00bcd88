// GradientAccumulationScheduler beside Lightning's.
#include "boring.h"

enum { EPOCHS = 4, BATCHES = 5 };

static void note_step(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch;
  int *steps = calx_trainer_user(t);
  steps[calx_trainer_current_epoch(t) * BATCHES + i] =
      (int)calx_trainer_global_step(t);
}

static calx_tensor *manual_step(calx_trainer *t, void *self,
                                const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  return boring_loss(self, batch);
}

static calx_status *fit(calx_callback *c, bool by_hand, int64_t accumulate,
                        int *steps)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = steps,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .manual_optimization = by_hand,
                            .training_step =
                                by_hand ? manual_step : boring_step,
                            .hooks = { .on_train_batch_end = note_step });
  calx_dataset *data = boring_dataset(BATCHES);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = EPOCHS, BORING_ALONE,
                       .accumulate_grad_batches = accumulate, .callbacks = &c,
                       .n_callbacks = 1);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

// The optimiser's steps after each batch, as Lightning 2.6.6 counted them.
static void test_steps(void **state)
{
  (void)state;
  static const struct {
    calx_gradient_accumulation_scheduler_options options;
    int steps[EPOCHS * BATCHES];
  } rows[] = {
    { { .size = sizeof rows->options,
        .epochs = { .count = 2, .values = { 1, 3 } },
        .factors = { .count = 2, .values = { 2, 4 } } },
      { 1, 2, 3, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 10, 11, 11, 11, 11, 12, 13 } },
    { { .size = sizeof rows->options,
        .epochs = { .count = 2, .values = { 2, 0 } },
        .factors = { .count = 2, .values = { 1, 3 } } },
      { 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 } },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int steps[EPOCHS * BATCHES] = { 0 };
    CHECK_STATUS_OK(
        fit(calx_gradient_accumulation_scheduler_with(&rows[i].options), false,
            1, steps));
    for (int k = 0; k < EPOCHS * BATCHES; k++) {
      assert_int_equal(steps[k], rows[i].steps[k]);
    }
  }
}

static void test_refused(void **state)
{
  (void)state;
  int steps[EPOCHS * BATCHES];
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      fit(calx_gradient_accumulation_scheduler(.epochs = CALX_DIMS(1),
                                               .factors = CALX_DIMS(2)),
          true, 1, steps),
      "not supported for manual optimization");
  CHECK_STATUS(
      CALX_INVALID_ARGUMENT,
      fit(calx_gradient_accumulation_scheduler(.epochs = CALX_DIMS(1),
                                               .factors = CALX_DIMS(2)),
          false, 2, steps),
      "You have set `accumulate_grad_batches` and are using the "
      "`GradientAccumulationScheduler` callback.");
  static const struct {
    calx_dims epochs, factors;
    const char *text;
  } rows[] = {
    { { .count = 0 }, { .count = 0 }, "0 epochs and 0 factors" },
    { { .count = 1, .values = { 1 } },
      { .count = 2, .values = { 1, 2 } },
      "1 epochs and 2 factors" },
    { { .count = 1, .values = { -1 } },
      { .count = 1, .values = { 2 } },
      "Epoch should be an int greater than or equal to 0. Got -1." },
    { { .count = 1, .values = { 1 } },
      { .count = 1, .values = { 0 } },
      "Accumulation factor should be an int greater than 0. Got 0." },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CHECK_STATUS(
        CALX_INVALID_ARGUMENT,
        fit(calx_gradient_accumulation_scheduler(.epochs = rows[i].epochs,
                                                 .factors = rows[i].factors),
            false, 1, steps),
        rows[i].text);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_steps),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
