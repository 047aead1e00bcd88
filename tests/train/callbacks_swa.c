// StochasticWeightAveraging beside Lightning's: the numbers are those of
// Lightning 2.6.6 for the same model, data and options, but for the update that
// it makes when the pass for BatchNorm's statistics is over: with the gradients
// that the last epoch left. It was left out there.
#include "normed.h"
#include "said.h"

enum { MOST_EPOCHS = 6 };

typedef struct plan {
  normed_run run;
  bool has_schedule;
  double rates[MOST_EPOCHS];  // of each epoch's first batch
} plan;

static void optimizers(calx_trainer *t, void *self)
{
  const plan *p = calx_trainer_user(t);
  calx_module *root = ((normed *)self)->root;
  if (!p->has_schedule) {
    calx_trainer_add_optimizer(t, calx_sgd(root, .lr = 0.1, .momentum = 0.5));
    return;
  }
  calx_optimizer *opt = calx_sgd(root, .lr = 0.1, .momentum = 0.5);
  calx_trainer_add_optimizer(
      t, opt, .lr_scheduler = calx_step_lr(opt, 1, .gamma = 0.9));
}

static void note_rate(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch;
  plan *p = calx_trainer_user(t);
  if (i != 0) return;
  p->rates[calx_trainer_current_epoch(t)] =
      calx_optimizer_lr(calx_trainer_optimizer(t, 0));
}

// ---- as Lightning -----------------------------------------------------------

typedef struct wanted_run {
  calx_stochastic_weight_averaging_options options;
  bool has_norm, has_schedule;
  int64_t epochs;
  double rates[MOST_EPOCHS], last_loss;  // of training
  double weight[8], bias[4], mean[4], var[4];
} wanted_run;

#define OPTIONS(...)                                                      \
  {                                                                       \
    .size = sizeof(calx_stochastic_weight_averaging_options), __VA_ARGS__ \
  }

static const wanted_run cases[] = {
  { OPTIONS(.swa_lrs = 0.02, .swa_epoch_start = 0.5, .annealing_epochs = 2),
    true,
    true,
    6,
    { 0.1, 0.09, 0.081, 0.0505, 0.02, 0.02 },
    0.0144111666,
    { 0.168281808, 0.221123844, 0.230262771, 0.137997299, 0.218140766,
      0.12162137, 0.136747986, 0.201238617 },
    { -0.0399999991, 0.100000001, 0.0199999996, -0.0599999987 },
    { 0.109546802, 0.175047351, -0.100926361, -0.0957237185 },
    { 0.751512912, 0.175747526, 0.429313423, 0.236956423 } },
  { OPTIONS(.swa_lrs = 0.3, .swa_epoch_start = 2, .annealing_epochs = 3,
            .annealing_strategy = "linear"),
    false,
    false,
    5,
    { 0.1, 0.1, 0.166666667, 0.233333333, 0.3 },
    0.000700605433,
    { -0.025403237, 0.213310197, 0.0569300167, -0.0320236683, 0.0913807377,
      0.122468308, -0.0477318428, 0.0824736282 },
    { -0.0310334507, 0.184354499, 0.00983597804, -0.0586272031 },
    { 0 },
    { 0 } },
  { OPTIONS(.swa_lrs = 0.05),
    true,
    true,
    5,
    { 0.1, 0.09, 0.081, 0.0729, 0.0723395971 },
    0.0117810735,
    { 0.162140399, 0.211450204, 0.231284872, 0.135492817, 0.21236226,
      0.113502376, 0.139442176, 0.196263865 },
    { -0.0399999991, 0.100000001, 0.0199999996, -0.0599999987 },
    { 0.10922116, 0.182201969, -0.104830488, -0.0977169023 },
    { 0.764372027, 0.222911063, 0.464346529, 0.248542032 } },
};

// Lightning keeps the mean in f32.
static void check_left(const calx_trainer *t, const wanted_run *w)
{
  normed_check_left(t, "fc2.weight", w->weight, 8, 1e-6);
  normed_check_left(t, "fc1.bias", w->bias, 4, 1e-6);
  if (!w->has_norm) return;
  const double tracked = 4;
  normed_check_left(t, "bn.running_mean", w->mean, 4, 1e-6);
  normed_check_left(t, "bn.running_var", w->var, 4, 1e-6);
  normed_check_left(t, "bn.num_batches_tracked", &tracked, 1, 0);
}

static void test_as_lightning(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wanted_run *w = &cases[i];
    plan p = { .has_schedule = w->has_schedule };
    normed_has_no_norm = !w->has_norm;
    const calx_lightning_module module =
        CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = &p,
                              .configure_model = normed_make,
                              .configure_optimizers = optimizers,
                              .training_step = normed_step,
                              .hooks = { .on_train_batch_start = note_rate,
                                         .on_train_batch_end =
                                             normed_keep_train });
    calx_callback *c = calx_stochastic_weight_averaging_with(&w->options);
    calx_trainer *t = NORMED_TRAINER(c, .max_epochs = w->epochs);
    said_begin();
    CHECK_STATUS_OK(normed_fit(t, &module));
    said_end();
    assert_int_equal(said_count("Swapping scheduler `StepLR` for `SWALR`"),
                     w->has_schedule);
    assert_int_equal(calx_trainer_current_epoch(t), w->epochs);
    assert_int_equal(p.run.n_train, w->epochs * 4);
    CHECK_CLOSE(p.run.train[w->epochs * 4 - 1], w->last_loss, 1e-8);
    for (int k = 0; k < w->epochs; k++) {
      CHECK_CLOSE(p.rates[k], w->rates[k], 1e-9);
    }
    check_left(t, w);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  normed_has_no_norm = false;
}

// ---- what is refused --------------------------------------------------------

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    calx_stochastic_weight_averaging_options options;
    const char *text;
  } rows[] = {
    { OPTIONS(.swa_lrs = 0), "The `swa_lrs` should a positive float" },
    { OPTIONS(.swa_lrs = 1, .swa_epoch_start = 1.5),
      "swa_epoch_start should be a >0 integer or a float between 0 and 1." },
    { OPTIONS(.swa_lrs = 1, .annealing_strategy = "exp"),
      "anneal_strategy must by one of 'cos' or 'linear', instead got exp" },
    { OPTIONS(.swa_lrs = 1, .annealing_epochs = -1),
      "anneal_epochs must be equal or greater than 0, got -1" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_callback *c = calx_stochastic_weight_averaging_with(&rows[i].options);
    calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 1);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), rows[i].text);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  plan p = { .has_schedule = false };
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = &p,
                            .configure_model = normed_make,
                            .configure_optimizers = optimizers,
                            .training_step = normed_step);
  calx_callback *c = calx_stochastic_weight_averaging(.swa_lrs = 1);
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = -1, .max_steps = 4);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, normed_fit(t, &module),
               "SWA with `swa_epoch_start` as a float is not supported when "
               "`max_epochs=-1`.");
  calx_trainer_free(t);
  calx_callback_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_as_lightning),
    SUPPORT_TEST(test_refused),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
