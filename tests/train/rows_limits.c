// How much a run does, and what clipping leaves, by row of Lightning's
// acceptance list.
#include <unistd.h>

#include "boring.h"
#include "said.h"
#include "saving.h"

typedef struct seen {
  int64_t training, validation, test, sanity;
  int64_t epochs[8], n_epochs;
  double before, after;  // the weights' sums
} seen;

static void count_training(calx_trainer *t, void *self, const calx_batch *batch,
                           int64_t i)
{
  (void)self, (void)batch, (void)i;
  seen *s = calx_trainer_user(t);
  s->training += calx_trainer_is_global_zero(t);
}

static void count_validation(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  seen *s = calx_trainer_user(t);
  s->sanity += calx_trainer_sanity_checking(t);
  s->validation += !calx_trainer_sanity_checking(t);
}

static void count_test(calx_trainer *t, void *self, const calx_batch *batch,
                       int64_t i)
{
  (void)self, (void)batch, (void)i;
  ((seen *)calx_trainer_user(t))->test++;
}

static void note_epoch(calx_trainer *t, void *self)
{
  (void)self;
  seen *s = calx_trainer_user(t);
  if (!calx_trainer_is_global_zero(t)) return;
  s->epochs[s->n_epochs++ % 8] = calx_trainer_current_epoch(t);
}

static double weights(calx_trainer *t)
{
  calx_tensor *w = calx_module_find(calx_trainer_model(t), "layer.weight");
  return calx_item(calx_sum(w));
}

static void weigh_before(calx_trainer *t, void *self)
{
  (void)self;
  const double sum = weights(t);
  if (!calx_trainer_is_global_zero(t)) return;
  ((seen *)calx_trainer_user(t))->before = sum;
}

static void weigh_after(calx_trainer *t, void *self)
{
  (void)self;
  const double sum = weights(t);
  if (!calx_trainer_is_global_zero(t)) return;
  ((seen *)calx_trainer_user(t))->after = sum;
}

static calx_tensor *log_validation(calx_trainer *t, void *self,
                                   const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_log(t, "val", loss);
  return loss;
}

// The trainer is for fit and test; it is the caller's.
static calx_status *run(calx_trainer *t, seen *s, int64_t samples, bool tests)
{
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = s,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = log_validation,
                            .test_step = boring_step,
                            .hooks = { .on_train_batch_start = count_training,
                                       .on_validation_batch_start =
                                           count_validation,
                                       .on_test_batch_start = count_test,
                                       .on_train_epoch_start = note_epoch,
                                       .on_train_start = weigh_before,
                                       .on_train_end = weigh_after });
  calx_dataset *data = boring_dataset(samples);
  calx_loader *loader = calx_loader_new(data, .shuffle = true);
  calx_status *status = calx_trainer_fit(t, &m, .train_dataloader = loader,
                                         .val_dataloader = loader);
  if (status == NULL && tests) {
    status = calx_trainer_test(t, &m, .test_dataloader = loader,
                               .not_verbose = true);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

// ---- rows B19, B20 ----------------------------------------------------------

// A limit of 0 turns a loop off, and fast_dev_run turns it on again.
static void test_row_B19(void **state)
{
  (void)state;
  for (int i = 0; i < 4; i++) {
    const bool of_training = i % 2 == 0, fast = i >= 2;
    seen s = { .training = 0 };
    calx_trainer *t =
        calx_trainer_new(.devices = 1, .max_epochs = 2, BORING_ALONE,
                         .no_model_summary = true,
                         .limit_train_batches = of_training ? 0 : CALX_DEFAULT,
                         .limit_val_batches = of_training ? CALX_DEFAULT : 0,
                         .fast_dev_run = fast);
    CHECK_STATUS_OK(run(t, &s, 4, false));
    if (fast) {
      assert_int_equal(s.training, 1);
      assert_int_equal(s.validation, 1);
      assert_int_equal(calx_trainer_current_epoch(t), 1);
    } else {
      assert_int_equal(s.training, of_training ? 0 : 8);
      assert_int_equal(s.validation, 0);
      assert_int_equal(s.sanity, of_training ? 2 : 0);
      assert_int_equal(calx_trainer_current_epoch(t), of_training ? 0 : 2);
    }
    assert_true((s.before == s.after) == (of_training && !fast));
    calx_trainer_free(t);
  }
}

static calx_status *refuse(void *user, const calx_logged_value *values,
                           size_t count, int64_t step)
{
  (void)user, (void)values, (void)count, (void)step;
  return cx_invalid("a logger of a fast_dev_run got values");
}

static void test_row_B20(void **state)
{
  (void)state;
  for (int n = 1; n <= 3; n += 2) {
    seen s = { .training = 0 };
    calx_logger *logger = calx_logger_new(
        &(calx_logger_functions){ .size = sizeof(calx_logger_functions),
                                  .log_metrics = refuse },
        NULL);
    calx_callback *callbacks[] = {
      calx_model_checkpoint(.monitor = "val"),
      calx_early_stopping(.monitor = "val", .stopping_threshold = 1e9)
    };
    calx_trainer *t =
        calx_trainer_new(.devices = 1, .max_epochs = 9, .fast_dev_run = n,
                         .no_progress_bar = true, .no_model_summary = true,
                         .default_root_dir = saving_path(""),
                         .loggers = &logger, .n_loggers = 1,
                         .callbacks = callbacks, .n_callbacks = 2,
                         .log_every_n_steps = 1);
    CHECK_STATUS_OK(run(t, &s, 8, true));
    assert_int_equal(s.training, n);
    assert_int_equal(s.validation, n);
    assert_int_equal(s.test, n);
    assert_int_equal(s.sanity, 0);
    assert_int_equal(calx_trainer_global_step(t), n);
    assert_int_equal(calx_trainer_current_epoch(t), 1);
    assert_int_equal(calx_early_stopping_stopped_epoch(callbacks[1]), 0);
    CHECK_FILES("", "");
    calx_trainer_free(t);
    for (int i = 0; i < 2; i++) calx_callback_free(callbacks[i]);
    calx_logger_free(logger);
  }
}

// Test has all of its batches where training overfits.
static void test_row_B21(void **state)
{
  (void)state;
  seen s = { .training = 0 };
  calx_trainer *t = calx_trainer_new(.devices = 1, .max_epochs = 2,
                                     .barebones = true, .overfit_batches = 2);
  CHECK_STATUS_OK(run(t, &s, 8, true));
  assert_int_equal(s.training, 4);
  assert_int_equal(s.validation, 4);
  assert_int_equal(s.test, 8);
  calx_trainer_free(t);
}

// ---- row B22 ----------------------------------------------------------------

typedef struct clipped {
  bool by_value;
  double norm, largest;  // of the newest step's gradients
  int n;
} clipped;

static void clip(calx_trainer *t, void *self)
{
  (void)self;
  clipped *c = calx_trainer_user(t);
  calx_trainer_clip_gradients(t, 0, c->by_value ? 1e-10 : 0.05,
                              c->by_value ? "value" : "norm");
  static const char *const names[] = { "layer.weight", "layer.bias" };
  double sum = 0, largest = 0;
  for (int i = 0; i < 2; i++) {
    calx_tensor *g =
        calx_grad(calx_module_find(calx_trainer_model(t), names[i]));
    sum += calx_item(calx_sum(calx_square(g)));
    largest = fmax(largest, calx_item(calx_max(calx_abs(g))));
  }
  if (!calx_trainer_is_global_zero(t)) return;
  *c = (clipped){ c->by_value, sqrt(sum), largest, c->n + 1 };
}

// On eight devices it is the norm of the reduced gradients.
static void test_row_B22(void **state)
{
  (void)state;
  for (int i = 0; i < 4; i++) {
    const int devices = i < 2 ? 1 : 8;
    clipped c = { .by_value = i % 2 == 1 };
    const calx_lightning_module m =
        CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &c,
                              .configure_model = boring_model,
                              .configure_optimizers = boring_optimizers,
                              .training_step = boring_step,
                              .configure_gradient_clipping = clip);
    calx_dataset *data = boring_dataset(2 * devices);
    calx_loader *loader = calx_loader_new(data);
    calx_trainer *t = calx_trainer_new(.devices = devices, .max_epochs = 1,
                                       .barebones = true);
    CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
    assert_int_equal(c.n, 2);
    if (c.by_value) {
      CHECK_CLOSE(c.largest, 1e-10, 1e-16);
    } else {
      CHECK_CLOSE(c.norm, 0.05, 0.05e-6);
    }
    calx_trainer_free(t);
    calx_loader_free(loader);
    calx_dataset_free(data);
    calx_shutdown();
  }
}

// ---- row B24 ----------------------------------------------------------------

// A second fit goes on, on eight devices too.
static void test_row_B24(void **state)
{
  (void)state;
  for (int devices = 1; devices <= 8; devices += 7) {
    seen s = { .training = 0 };
    calx_trainer *t =
        calx_trainer_new(.devices = devices, .max_epochs = 2, .barebones = true,
                         .limit_val_batches = 0);
    CHECK_STATUS_OK(run(t, &s, 2 * devices, false));
    assert_int_equal(s.n_epochs, 2);
    const double left = s.after;
    CHECK_STATUS_OK(calx_trainer_set_max_epochs(t, 4));
    CHECK_STATUS_OK(run(t, &s, 2 * devices, false));
    assert_true(s.before == left);
    assert_int_equal(s.n_epochs, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(s.epochs[i], i);
    assert_int_equal(calx_trainer_global_step(t), 8);
    assert_int_equal(s.training, 8);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_set_max_epochs(t, -2),
                 "`max_epochs` must be a non-negative integer or -1");
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_set_max_epochs(NULL, 2),
                 "is NULL");
    calx_trainer_free(t);
    calx_shutdown();
  }
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "8", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_B19), SAVING_TEST(test_row_B20),
    SUPPORT_TEST(test_row_B21), SUPPORT_TEST(test_row_B22),
    SUPPORT_TEST(test_row_B24),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
