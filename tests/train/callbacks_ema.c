// EMAWeightAveraging beside Lightning's: the numbers are those of Lightning
// 2.6.6 for the same model, data and options.
#include "normed.h"

enum { TRAINED = 16, VALIDATED = 9 };

// Averages change nothing of training.
static const double losses[TRAINED] = {
  0.913622692,  0.612295233,  0.293271933,   0.0853535984,
  0.208563559,  0.36692618,   0.4114937,     0.226581271,
  0.0981924824, 0.0283624852, 0.00656520769, 0.0190052875,
  0.0306776342, 0.0418205757, 0.0378658241,  0.0245965713
};

typedef struct wanted_average {
  calx_ema_weight_averaging_options options;
  double val[VALIDATED], weight[4], mean[4], tracked;
} wanted_average;

static const wanted_average cases[] = {
  { { .size = sizeof(calx_ema_weight_averaging_options), .decay = 0.9 },
    { 0.930858367, 0.52852188, 0.54099642, 0.145291389, 0.135014298,
      0.0703713133, 0.0365680213, 0.0711484507, 0.0413217715 },
    { 0.0698941946, 0.0259675793, 0.167182237, 0.0163878053 },
    { 0.140448898, 0.113622874, -0.118229002, -0.080210261 },
    6 },
  { { .size = sizeof(calx_ema_weight_averaging_options),
      .decay = 0.8,
      .update_every_n_steps = 3,
      .update_starting_at_step = 2,
      .no_buffers = true },
    { 0.930858367, 0.129642622, 0.0854540867, 0.131542479, 0.0978826703,
      0.0455274606, 0.0357942288, 0.01868689, 0.00738671634 },
    { 0.141837314, 0.105505385, 0.226323321, 0.0946162418 },
    { 0.338169366, 0.23253645, -0.316488564, -0.210837886 },
    16 },
  { { .size = sizeof(calx_ema_weight_averaging_options),
      .decay = 0.7,
      .update_every_n_steps = INT64_MIN,  // a 0 that was written
      .update_starting_at_epoch = 1 },
    { 0.930858367, 0.930858367, 0.943964957, 0.930858367, 0.943964957,
      0.222575836, 0.406684709, 0.0471121625, 0.154859805 },
    { 0.109564677, 0.00635312358, 0.21896854, 0.0445809364 },
    { 0.203578442, 0.150852725, -0.171945199, -0.110893629 },
    11 },
};

static void test_as_lightning(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wanted_average *w = &cases[i];
    normed_run run = { .n_train = 0 };
    const calx_lightning_module module =
        NORMED_MODULE(&run, .configure_optimizers = normed_optimizers);
    calx_callback *c = calx_ema_weight_averaging_with(&w->options);
    calx_trainer *t =
        NORMED_TRAINER(c, .max_epochs = 4, .num_sanity_val_steps = 1);
    CHECK_STATUS_OK(normed_fit(t, &module));
    assert_int_equal(run.n_train, TRAINED);
    assert_int_equal(run.n_val, VALIDATED);
    for (int k = 0; k < TRAINED; k++) {
      CHECK_CLOSE(run.train[k], losses[k], 1e-7);
    }
    for (int k = 0; k < VALIDATED; k++) {
      CHECK_CLOSE(run.val[k], w->val[k], 1e-7);
    }
    normed_check_left(t, "fc2.weight", w->weight, 4, 1e-7);
    normed_check_left(t, "bn.running_mean", w->mean, 4, 1e-7);
    normed_check_left(t, "bn.num_batches_tracked", &w->tracked, 1, 0);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// ---- programs ---------------------------------------------------------------

static void plain_sgd(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_sgd(((normed *)self)->root, .lr = 0.1));
}

static void count_programs(calx_trainer *t, void *self, const calx_batch *batch,
                           int64_t i)
{
  (void)self, (void)batch, (void)i;
  int64_t *counts = calx_trainer_user(t);
  const int64_t step = calx_trainer_global_step(t);
  if (step == 9) counts[0] = calx_counter_value("ExecuteComputation");
  if (step == 12) counts[1] = calx_counter_value("ExecuteComputation");
  if (step == 9) counts[2] = calx_counter_value("UncachedCompile");
  if (step == 12) counts[3] = calx_counter_value("UncachedCompile");
}

// Averaging is no launch of its own, and compiles nothing after the warm-up.
static void test_programs(void **state)
{
  (void)state;
  int64_t counts[4] = { 0 };
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = counts,
                            .configure_model = normed_make,
                            .configure_optimizers = plain_sgd,
                            .training_step = normed_step,
                            .validation_step = normed_step,
                            .hooks = { .on_train_batch_end = count_programs });
  calx_callback *c = calx_ema_weight_averaging(.decay = 0.9);
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 4);
  CHECK_STATUS_OK(normed_fit(t, &module));
  assert_int_equal(counts[1] - counts[0], 3);
  assert_int_equal(counts[3] - counts[2], 0);
  calx_trainer_free(t);
  calx_callback_free(c);
}

// ---- ranks ------------------------------------------------------------------

// Two ranks with batches of two average what one does with batches of four, by
// steps and at the end of epochs.
static void fit_on(int devices, calx_callback *c, double *out)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed),
                            .configure_model = normed_make,
                            .configure_optimizers = plain_sgd,
                            .training_step = normed_step);
  calx_dataset *data = boring_dataset(16);
  calx_loader *loader = calx_loader_new(data, .batch_size = 4 / devices);
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 3, .devices = devices);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  normed_read_left(t, "fc2.weight", out);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
}

static void test_ranks(void **state)
{
  (void)state;
  normed_has_no_norm = true;
  for (int i = 0; i < 2; i++) {
    double one[8], two[8];
    for (int devices = 1; devices <= 2; devices++) {
      fit_on(devices,
             i == 0 ? calx_ema_weight_averaging(.decay = 0.9,
                                                .update_starting_at_epoch = 1)
                    : calx_stochastic_weight_averaging(.swa_lrs = 0.05,
                                                       .swa_epoch_start = 2),
             devices == 1 ? one : two);
    }
    for (int k = 0; k < 8; k++) CHECK_CLOSE(two[k], one[k], 1e-9);
  }
  normed_has_no_norm = false;
}

static void test_refused(void **state)
{
  (void)state;
  calx_callback *c = calx_ema_weight_averaging(.decay = 1.5);
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "Invalid decay value 1.5 provided. Please provide a value in "
               "[0,1] range.");
  calx_trainer_free(t);
  calx_callback_free(c);
  c = calx_ema_weight_averaging(.update_every_n_steps = -2);
  t = NORMED_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t),
               "update_every_n_steps is -2");
  calx_trainer_free(t);
  calx_callback_free(c);
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_as_lightning),
    SUPPORT_TEST(test_programs),
    SUPPORT_TEST(test_ranks),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
