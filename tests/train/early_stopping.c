// Early stopping beside Lightning's: rows E14 and E15 of its acceptance list.
#include "boring.h"

typedef struct plan {
  const double *values;
  size_t count;
} plan;

static void log_value(calx_trainer *t, void *self)
{
  (void)self;
  const plan *p = calx_trainer_user(t);
  const size_t epoch = (size_t)calx_trainer_current_epoch(t);
  const double value = p->values[epoch < p->count ? epoch : p->count - 1];
  calx_trainer_log(t, "loss", calx_full(CALX_SHAPE(1), value));
}

// The epoch at whose end training stopped; the last one, where it did not.
static int64_t stops(calx_callback *callback, plan p)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step,
                            .hooks = { .on_validation_epoch_end = log_value });
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = (int64_t)p.count,
                       BORING_ALONE, .num_sanity_val_steps = 0,
                       .callbacks = &callback, .n_callbacks = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  const int64_t epoch = calx_trainer_current_epoch(t) - 1;
  calx_trainer_free(t);
  calx_callback_free(callback);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return epoch;
}

#define PLAN(...)                                   \
  (plan)                                            \
  {                                                 \
    (const double[]){ __VA_ARGS__ },                \
        sizeof((const double[]){ __VA_ARGS__ }) / 8 \
  }

static void test_row_E14(void **state)
{
  (void)state;
  assert_int_equal(
      stops(calx_early_stopping(.monitor = "loss"), PLAN(6, 5, 5, 5, 5, 5)), 4);
  assert_int_equal(stops(calx_early_stopping(.monitor = "loss", .patience = 1),
                         PLAN(6, 5, 4, 4, 3, 3)),
                   3);
  assert_int_equal(stops(calx_early_stopping(.monitor = "loss", .patience = 3),
                         PLAN(6, 5, 6, 5, 5, 5)),
                   4);
  assert_int_equal(stops(calx_early_stopping(.monitor = "loss", .patience = 2,
                                             .mode = "max"),
                         PLAN(1, 2, 2, 1, 5, 6)),
                   3);
}

static void test_row_E15(void **state)
{
  (void)state;
  assert_int_equal(stops(calx_early_stopping(.monitor = "loss"),
                         PLAN(8, 4, 2, 3, 4, 5, 8, 10)),
                   5);
  assert_int_equal(
      stops(calx_early_stopping(.monitor = "loss", .stopping_threshold = 2.9),
            PLAN(9, 8, 7, 6, 5, 6, 4, 3, 2, 1)),
      8);
  assert_int_equal(stops(calx_early_stopping(.monitor = "loss",
                                             .divergence_threshold = 15.9),
                         PLAN(9, 4, 2, 16, 32, 64)),
                   3);
  assert_int_equal(
      stops(calx_early_stopping(.monitor = "loss"), PLAN(3, 2, INFINITY, 1)),
      2);
  assert_int_equal(
      stops(calx_early_stopping(.monitor = "loss"), PLAN(3, 2, NAN, 1)), 2);
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    calx_early_stopping_options options;
    const char *text;
  } rows[] = {
    { { .size = sizeof rows->options }, "no monitor" },
    { { .size = sizeof rows->options, .monitor = "x", .mode = "avg" },
      "`mode` can be min, max but got avg" },
    { { .size = sizeof rows->options, .monitor = "x", .patience = -1 },
      "patience is -1" },
  };
  for (size_t i = 0; i < 3; i++) {
    calx_callback *c = calx_early_stopping_with(&rows[i].options);
    calx_trainer *t =
        calx_trainer_new(.max_epochs = 1, .callbacks = &c, .n_callbacks = 1);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), rows[i].text);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  calx_callback *c = calx_early_stopping(.monitor = "nope");
  calx_trainer *t = calx_trainer_new(.devices = 1, .max_epochs = 1,
                                     .callbacks = &c, .n_callbacks = 1,
                                     .num_sanity_val_steps = 0, BORING_ALONE);
  const double one = 1;
  plan p = { &one, 1 };
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step,
                            .hooks = { .on_validation_epoch_end = log_value });
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS(CALX_NOT_FOUND,
               calx_trainer_fit(t, &module, .train_dataloader = loader,
                                .val_dataloader = loader),
               "Early stopping conditioned on metric `nope` which is not "
               "available. Pass in or modify your `EarlyStopping` callback to "
               "use any of the following: `loss`");
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_E14),
    SUPPORT_TEST(test_row_E15),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
