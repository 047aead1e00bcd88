// The timer: row E21 of Lightning's acceptance list.
#include <time.h>

#include "boring.h"
#include "said.h"
#include "train/internal.h"

// A batch takes some milliseconds, on the second rank more.
static calx_tensor *slow_step(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  const long ms = 5 + 5 * calx_global_ordinal();
  nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
  return boring_loss(self, batch);
}

static void fit(calx_trainer *t, calx_trainer_step_fn *step)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = step,
                            .validation_step = boring_step);
  calx_dataset *data = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  calx_loader_free(loader);
  calx_dataset_free(data);
}

#define TRAINER(...) \
  calx_trainer_new(BORING_ALONE, .callbacks = &c, .n_callbacks = 1, __VA_ARGS__)

// No time: no step, but for those that there must be. The time is over once.
static void test_row_E21(void **state)
{
  (void)state;
  static const struct {
    const char *interval;
    int64_t min_steps, min_epochs, steps;
  } rows[] = { { "step", 0, 0, 0 },
               { "step", 3, 0, 3 },
               { "step", 0, 2, 16 },
               { "epoch", 9, 0, 9 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_callback *c =
        calx_timer(.duration = "00:00:00:00", .interval = rows[i].interval);
    calx_trainer *t = TRAINER(.devices = 1, .min_steps = rows[i].min_steps,
                              .min_epochs = rows[i].min_epochs);
    said_begin();
    fit(t, boring_step);
    said_end();
    assert_int_equal(calx_trainer_global_step(t), rows[i].steps);
    assert_int_equal(said_count("Time limit reached. Elapsed time is 0:00:00. "
                                "Signaling Trainer to stop."),
                     1);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// What a checkpoint's run used counts, as Lightning's checkpoints have it.
static void test_row_E21_resumed(void **state)
{
  (void)state;
  calx_callback *c = calx_timer(.duration = "02:00:00:10");
  calx_value *saved = calx_value_container(CALX_KIND_DICT),
             *times = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(saved, "time_elapsed", times));
  CHECK_STATUS_OK(
      calx_value_set(times, "train", calx_value_float(2 * 86400 + 9)));
  calx_trainer *t = TRAINER(.devices = 1, .max_epochs = 1);
  fit(t, boring_step);
  void *self = calx_callback_self(c);
  c->options.load_state_dict(t, self, saved);
  assert_true(calx_timer_time_elapsed(c, "train") >= 2 * 86400 + 9);
  assert_true(calx_timer_time_remaining(c) <= 1);
  calx_value *again = calx_value_container(CALX_KIND_DICT);
  c->options.state_dict(t, self, again);
  const calx_value *out = calx_value_get(again, "time_elapsed");
  assert_true(calx_value_as_float(calx_value_get(out, "train")) >=
              2 * 86400 + 9);
  CHECK_STATUS_OK(
      calx_value_set(times, "train", calx_value_float(2 * 86400 + 3605)));
  c->options.load_state_dict(t, self, saved);
  calx_trainer_free(t);
  t = TRAINER(.devices = 1);
  said_begin();
  fit(t, boring_step);
  said_end();
  assert_int_equal(calx_trainer_global_step(t), 0);
  assert_int_equal(said_count("Elapsed time is 2 days, 1:00:05."), 1);
  calx_value_free(saved);
  calx_value_free(again);
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_stages(void **state)
{
  (void)state;
  calx_callback *c = calx_timer();
  assert_true(calx_timer_time_elapsed(c, NULL) == 0);
  assert_true(isinf(calx_timer_time_remaining(c)));
  calx_trainer *t = TRAINER(.devices = 1, .max_epochs = 2);
  fit(t, slow_step);
  assert_int_equal(calx_trainer_global_step(t), 16);
  const double trained = calx_timer_time_elapsed(c, "train");
  assert_true(trained >= 0.08 && trained < 60);
  assert_true(calx_timer_time_elapsed(c, NULL) == trained);
  assert_true(calx_timer_time_elapsed(c, "validate") > 0);
  assert_true(calx_timer_time_elapsed(c, "validate") < trained);
  assert_true(calx_timer_time_elapsed(c, "test") == 0);
  assert_true(isnan(calx_timer_time_elapsed(c, "sleep")));
  calx_trainer_free(t);
  calx_callback_free(c);
}

// All ranks stop at one batch: else the run would wait for one of them. A limit
// of time needs no number of epochs.
static void test_ranks_and_max_time(void **state)
{
  (void)state;
  calx_callback *c = NULL;
  said_begin();
  calx_trainer *t =
      TRAINER(.devices = 2, .n_callbacks = 0, .max_time = "00:00:00:01");
  fit(t, slow_step);
  said_end();
  const int64_t steps = calx_trainer_global_step(t);
  assert_in_range(steps, 2, 100);
  assert_int_equal(said_count("Time limit reached. Elapsed time is 0:00:01. "),
                   1);
  assert_int_equal(said_count("`max_epochs` was not set"), 0);
  calx_trainer_free(t);
  c = calx_timer(.duration = "01:00:00:00");
  said_begin();
  t = TRAINER(.max_time = "00:00:00:01");
  said_end();
  assert_int_equal(
      said_count("Ignoring `Trainer(max_time=...)`, callbacks list "
                 "already contains a Timer."),
      1);
  calx_trainer_free(t);
  calx_callback_free(c);
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    const char *duration, *interval, *text;
  } rows[] = {
    { "1:2:3", NULL,
      "`Timer(duration='1:2:3')` is not a valid duration. Expected a string in "
      "the format DD:HH:MM:SS." },
    { "00:00:00:01", "batch",
      "Unsupported parameter value `Timer(interval=batch)`" },
  };
  for (size_t i = 0; i < 2; i++) {
    calx_callback *c =
        calx_timer(.duration = rows[i].duration, .interval = rows[i].interval);
    calx_trainer *t = TRAINER(.max_epochs = 1);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), rows[i].text);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_E21), SUPPORT_TEST(test_row_E21_resumed),
    SUPPORT_TEST(test_stages),  SUPPORT_TEST(test_ranks_and_max_time),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
