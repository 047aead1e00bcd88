// EMAWeightAveraging beside Lightning's: the numbers are those of Lightning
// 2.6.6 for the same model, data and options.
#include "normed.h"
#include "said.h"
#include "train/internal.h"

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

// ---- checkpoints ------------------------------------------------------------

// What the run of a test is to do with a checkpoint.
typedef struct saving {
  normed_run run;
  calx_callback *callback;
  calx_value *saved;
  bool loads;
} saving;

static void fill_checkpoint(calx_trainer *t, calx_value *checkpoint)
{
  calx_value *dict, *copy = calx_value_container(CALX_KIND_DICT);
  CHECK_STATUS_OK(calx_value_set(checkpoint, "state_dict", copy));
  CHECK_STATUS_OK(calx_module_state_dict(calx_trainer_model(t), &dict));
  for (size_t i = 0; i < calx_value_count(dict); i++) {
    calx_tensor *p = calx_value_as_tensor(calx_value_item(dict, i));
    CHECK_STATUS_OK(calx_value_set(copy, calx_value_key(dict, i),
                                   calx_value_tensor(calx_cpu(p))));
  }
  calx_value_free(dict);
}

// At the end of the second epoch.
static void save(calx_trainer *t, void *self)
{
  (void)self;
  saving *s = calx_trainer_user(t);
  const calx_callback *c = s->callback;
  if (calx_trainer_global_step(t) != 8 || s->saved != NULL) return;
  s->saved = calx_value_container(CALX_KIND_DICT);
  fill_checkpoint(t, s->saved);
  c->options.hooks.on_save_checkpoint(t, calx_callback_self(c), s->saved);
}

static void load(calx_trainer *t, void *self)
{
  (void)self;
  saving *s = calx_trainer_user(t);
  const calx_callback *c = s->callback;
  if (!s->loads) return;
  c->options.hooks.on_load_checkpoint(t, calx_callback_self(c), s->saved);
}

static void load_weights(calx_trainer *t, void *self)
{
  (void)self;
  saving *s = calx_trainer_user(t);
  if (!s->loads) return;
  CHECK_STATUS_OK(calx_module_load_state_dict(
      calx_trainer_model(t), calx_value_get(s->saved, "state_dict")));
}

static void keep_train(calx_trainer *t, void *self, const calx_batch *batch,
                       int64_t i)
{
  (void)self, (void)batch, (void)i;
  saving *s = calx_trainer_user(t);
  s->run.train[s->run.n_train++] = calx_item(calx_trainer_step_output(t));
}

// Plain SGD has no state beside the weights.
static void plain_sgd(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_sgd(((normed *)self)->root, .lr = 0.1));
}

static calx_trainer *fit_saved(saving *s, int64_t epochs)
{
  s->run = (normed_run){ .n_train = 0 };
  s->callback = calx_ema_weight_averaging(.decay = 0.9);
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = s,
                            .configure_model = normed_make,
                            .configure_optimizers = plain_sgd,
                            .training_step = normed_step,
                            .hooks = { .setup = load,
                                       .on_post_move_to_device = load_weights,
                                       .on_train_epoch_end = save,
                                       .on_train_batch_end = keep_train });
  calx_trainer *t = NORMED_TRAINER(s->callback, .max_epochs = epochs);
  CHECK_STATUS_OK(normed_fit(t, &module));
  calx_callback_free(s->callback);
  return t;
}

static double first_of(const calx_value *dict, const char *name)
{
  const double *data =
      calx_host_data(calx_value_as_tensor(calx_value_get(dict, name)));
  return data[0];
}

// A checkpoint has the average as the weights, and goes on from both.
static void test_checkpoint(void **state)
{
  (void)state;
  saving s = { .saved = NULL };
  calx_trainer *whole = fit_saved(&s, 4);
  double rest[8];
  memcpy(rest, &s.run.train[8], sizeof rest);
  const double average =
      first_of(calx_value_get(s.saved, "state_dict"), "fc2.weight");
  const double current =
      first_of(calx_value_get(s.saved, "current_model_state"), "fc2.weight");
  assert_true(fabs(average - current) > 1e-3);
  s.loads = true;
  said_begin();
  calx_trainer *resumed = fit_saved(&s, 2);
  said_end();
  assert_int_equal(said_count("Found current_model_state in the checkpoint."),
                   1);
  for (int k = 0; k < 8; k++) CHECK_CLOSE(s.run.train[k], rest[k], 1e-12);
  double wanted[8];
  calx_scope *scope = calx_scope_begin();
  normed n = { 0 };
  calx_module *model = normed_make(NULL, &n);
  calx_module_to(model, CALX_F64);
  CHECK_STATUS_OK(calx_trainer_load_weights(whole, model));
  CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "fc2.weight"),
                                   wanted, sizeof wanted));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
  normed_check_left(resumed, "fc2.weight", wanted, 8, 1e-12);
  calx_value_free(s.saved);
  calx_trainer_free(whole);
  calx_trainer_free(resumed);
}

// ---- programs ---------------------------------------------------------------

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
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_as_lightning),
    SUPPORT_TEST(test_checkpoint),
    SUPPORT_TEST(test_programs),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
