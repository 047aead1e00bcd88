// LearningRateFinder beside Lightning's: what it tried, what it suggests and
// how training goes on are those of Lightning 2.6.6.
#include "base/file.h"
#include "normed.h"
#include "said.h"

enum { MOST = 40, STEPS = 8 };

static void optimizers(calx_trainer *t, void *self)
{
  calx_optimizer *opt =
      calx_sgd(((normed *)self)->root, .lr = 0.1, .momentum = 0.5);
  calx_trainer_add_optimizer(
      t, opt, .lr_scheduler = calx_step_lr(opt, 1, .gamma = 0.9));
}

typedef struct wanted_search {
  calx_learning_rate_finder_options options;
  int64_t accumulate;
  size_t count;
  double suggestion, lrs[MOST], losses[MOST], train[STEPS];
} wanted_search;

#define OPTIONS(...)                                               \
  {                                                                \
    .size = sizeof(calx_learning_rate_finder_options), __VA_ARGS__ \
  }

// Lightning's losses are those of a batch, divided by how many are accumulated.
static const wanted_search cases[] = {
  { OPTIONS(.num_training_steps = 40, .min_lr = 1e-4, .max_lr = 10),
    1,
    38,
    0.01333521432163324,
    { 0.0001,         0.000177827941, 0.000237137371, 0.000316227766,
      0.000421696503, 0.000562341325, 0.000749894209, 0.001,
      0.00133352143,  0.00177827941,  0.00237137371,  0.00316227766,
      0.00421696503,  0.00562341325,  0.00749894209,  0.01,
      0.0133352143,   0.0177827941,   0.0237137371,   0.0316227766,
      0.0421696503,   0.0562341325,   0.0749894209,   0.1,
      0.133352143,    0.177827941,    0.237137371,    0.316227766,
      0.421696503,    0.562341325,    0.749894209,    1,
      1.33352143,     1.77827941,     2.37137371,     3.16227766,
      4.21696503,     5.62341325 },
    { 0.461425602, 0.618202045, 0.695492545, 0.74223266,  0.771435867,
      0.793290832, 0.808666973, 0.820531556, 0.828204248, 0.834627883,
      0.838377064, 0.840771677, 0.840277589, 0.838986919, 0.834784271,
      0.828812785, 0.819005801, 0.807465922, 0.791427742, 0.771743678,
      0.747946753, 0.720226766, 0.691573427, 0.659742165, 0.628263054,
      0.601233325, 0.574535205, 0.549605669, 0.526827569, 0.504756971,
      0.483878914, 0.464176699, 0.446573949, 0.430215617, 0.415603717,
      0.410576587, 0.495492446, 2.08686137 },
    { 0.913622692, 0.878600163, 0.810507522, 0.747643789, 0.681781732,
      0.616322892, 0.576052745, 0.5135753 } },
  { OPTIONS(.num_training_steps = 30, .mode = "linear", .min_lr = 0.01,
            .max_lr = 0.5, .early_stop_threshold = CALX_ZERO),
    1,
    30,
    0.18966666666666665,
    { 0.01,        0.0426666667, 0.059, 0.0753333333, 0.0916666667, 0.108,
      0.124333333, 0.140666667,  0.157, 0.173333333,  0.189666667,  0.206,
      0.222333333, 0.238666667,  0.255, 0.271333333,  0.287666667,  0.304,
      0.320333333, 0.336666667,  0.353, 0.369333333,  0.385666667,  0.402,
      0.418333333, 0.434666667,  0.451, 0.467333333,  0.483666667,  0.5 },
    { 0.461425602, 0.607009319, 0.630377082, 0.591849772,  0.532981372,
      0.474572804, 0.421772635, 0.373339939, 0.33436448,   0.304734921,
      0.277887289, 0.254775828, 0.234426295, 0.217403767,  0.201991105,
      0.188358754, 0.17619291,  0.165441308, 0.155696426,  0.14682986,
      0.138749669, 0.131476921, 0.124720158, 0.118492241,  0.112815933,
      0.10757276,  0.102634672, 0.098084702, 0.0938333378, 0.0898743018 },
    { 0.913622692, 0.388504718, 0.106098886, 0.0676655202, 0.0833026496,
      0.0160689388, 0.034324088, 0.0147013991 } },
  { OPTIONS(.num_training_steps = 20, .min_lr = 1e-3, .max_lr = 1),
    2,
    20,
    0.04466835921509633,
    { 0.001,         0.00199526231, 0.00281838293, 0.00398107171, 0.00562341325,
      0.00794328235, 0.0112201845,  0.0158489319,  0.0223872114,  0.0316227766,
      0.0446683592,  0.0630957344,  0.0891250938,  0.125892541,   0.177827941,
      0.251188643,   0.354813389,   0.501187234,   0.707945784,   1 },
    { 0.233017042, 0.310101215, 0.347384811, 0.368149817, 0.379872159,
      0.385702849, 0.387103789, 0.38414133,  0.377609846, 0.367102372,
      0.352366711, 0.334020772, 0.312691221, 0.291369007, 0.27115892,
      0.253178155, 0.238008414, 0.22360882,  0.210348455, 0.19832071 },
    { 0.334437539, 0.329959544, 0.265589638, 0.242654883, 0.206536548,
      0.166464794, 0.160863123, 0.138378953 } },
};

static void check_results(const calx_callback *c, const wanted_search *w)
{
  const double *lrs, *losses;
  assert_int_equal(calx_learning_rate_finder_results(c, &lrs, &losses),
                   w->count);
  for (size_t k = 0; k < w->count; k++) {
    CHECK_CLOSE(lrs[k], w->lrs[k], 1e-8 * w->lrs[k]);
    CHECK_CLOSE(losses[k] / (double)w->accumulate, w->losses[k],
                1e-6 * (1 + w->losses[k]));
  }
  CHECK_CLOSE(calx_learning_rate_finder_suggestion(c), w->suggestion,
              1e-12 * w->suggestion);
}

static void test_as_lightning(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wanted_search *w = &cases[i];
    normed_run run = { .n_train = 0 };
    const calx_lightning_module module =
        NORMED_MODULE(&run, .configure_optimizers = optimizers);
    calx_callback *c = calx_learning_rate_finder_with(&w->options);
    calx_trainer *t = NORMED_TRAINER(c, .max_steps = STEPS,
                                     .accumulate_grad_batches = w->accumulate);
    said_begin();
    CHECK_STATUS_OK(normed_fit(t, &module));
    said_end();
    check_results(c, w);
    assert_int_equal(said_count("Learning rate set to 0."), 1);
    assert_int_equal(said_count("set to 0.01333521432163324\n"), i == 0);
    assert_int_equal(said_count("LR finder stopped early after 38 steps due to "
                                "diverging loss."),
                     i == 0);
    // The module's hooks saw the search's batches too.
    const double *trained = &run.train[run.n_train - STEPS];
    for (int k = 0; k < STEPS; k++) {
      CHECK_CLOSE(trained[k], w->train[k], 1e-6);
    }
    assert_int_equal(calx_trainer_global_step(t), STEPS);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
}

// ---- what is left -----------------------------------------------------------

static calx_tensor *noisy_step(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)i;
  const normed *n = self;
  calx_tensor *h = calx_relu(calx_forward(n->fc1, batch->data));
  h = calx_dropout(h, .p = 0.5);
  calx_tensor *loss = calx_mean(calx_square(calx_forward(n->fc2, h)));
  calx_trainer_log(t, "loss", loss, .on_step = 1, .on_epoch = 1);
  return loss;
}

static void adam(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_adam(((normed *)self)->root, .lr = 0.01));
}

static void keep_loss(calx_trainer *t, void *self)
{
  (void)self;
  double *losses = calx_trainer_user(t);
  losses[calx_trainer_current_epoch(t)] =
      calx_trainer_callback_metric(t, "loss_epoch");
}

static void fit_noisy(calx_callback *c, int devices, double *losses)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed), .user = losses,
                            .configure_model = normed_make,
                            .configure_optimizers = adam,
                            .training_step = noisy_step,
                            .hooks = { .on_train_epoch_end = keep_loss });
  calx_dataset *data = boring_dataset(32);
  calx_loader *loader =
      calx_loader_new(data, .batch_size = 4, .shuffle = true, .seed = 3);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 3, BORING_ALONE,
                       .seed = 5, .callbacks = &c, .n_callbacks = c != NULL);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// Weights, Adam's moments, dropout's numbers, the order of the samples: a run
// after a search that sets nothing is the run without it.
static void test_row_E23(void **state)
{
  (void)state;
  double with[3], without[3];
  calx_callback *c = calx_learning_rate_finder(.num_training_steps = 20,
                                               .no_update_attr = true);
  fit_noisy(c, 1, with);
  fit_noisy(NULL, 1, without);
  for (int i = 0; i < 3; i++) assert_true(with[i] == without[i]);
  assert_false(isnan(calx_learning_rate_finder_suggestion(c)));
  calx_callback_free(c);
}

// All ranks find the first one's rate: their weights stay the same ones, which
// the trainer's sums of gradients rely on.
static void test_ranks(void **state)
{
  (void)state;
  double losses[3];
  calx_callback *c = calx_learning_rate_finder(.num_training_steps = 20);
  said_begin();
  fit_noisy(c, 2, losses);
  said_end();
  assert_int_equal(said_count("Learning rate set to"), 1);
  calx_callback_free(c);
}

// ---- the plot ---------------------------------------------------------------

static void test_plot(void **state)
{
  (void)state;
  char path[512], *text;
  size_t size;
  snprintf(path, sizeof path, "%s/lr.svg", getenv("TMPDIR"));
  calx_callback *c =
      calx_learning_rate_finder(.num_training_steps = 20, .min_lr = 1e-5);
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               calx_learning_rate_finder_plot(c, path),
               "no rate was tried yet");
  double losses[3];
  fit_noisy(c, 1, losses);
  CHECK_STATUS_OK(calx_learning_rate_finder_plot(c, path));
  CHECK_STATUS_OK(cx_file_read(path, 0, &text, &size));
  assert_non_null(strstr(text, "<svg"));
  assert_non_null(strstr(text, "Learning rate"));
  assert_non_null(strstr(text, "suggestion: "));
  cx_free(text);
  calx_callback_free(c);
}

// ---- what is refused --------------------------------------------------------

static void two_optimizers(calx_trainer *t, void *self)
{
  adam(t, self);
  adam(t, self);
}

static calx_tensor *no_step(calx_trainer *t, void *self,
                            const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  return normed_loss(self, batch);
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    calx_learning_rate_finder_options options;
    const char *text;
  } rows[] = {
    { OPTIONS(.mode = "cubic"),
      "`mode` should be either of ('linear', 'exponential'), got 'cubic'" },
    { OPTIONS(.min_lr = 2), "min_lr is 2, max_lr 1" },
    { OPTIONS(.num_training_steps = -1), "num_training_steps -1" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_callback *c = calx_learning_rate_finder_with(&rows[i].options);
    calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 1);
    CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_trainer_error(t), rows[i].text);
    calx_trainer_free(t);
    calx_callback_free(c);
  }
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(normed),
                            .configure_model = normed_make,
                            .configure_optimizers = two_optimizers,
                            .manual_optimization = true,
                            .training_step = no_step);
  calx_callback *c = calx_learning_rate_finder();
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, normed_fit(t, &module),
               "returned 2, but learning rate finder only works with single "
               "optimizer");
  calx_trainer_free(t);
  calx_callback_free(c);
}

// Too few points, and a run that only tries the program.
static void test_no_suggestion(void **state)
{
  (void)state;
  double losses[3];
  calx_callback *c = calx_learning_rate_finder(.num_training_steps = 12);
  said_begin();
  fit_noisy(c, 1, losses);
  said_end();
  assert_int_equal(said_count("Failed to compute suggestion for learning rate "
                              "because there are not enough points."),
                   1);
  assert_true(isnan(calx_learning_rate_finder_suggestion(c)));
  calx_trainer *t = NORMED_TRAINER(c, .max_epochs = 1, .fast_dev_run = 1);
  normed_run run = { .n_train = 0 };
  const calx_lightning_module module =
      NORMED_MODULE(&run, .configure_optimizers = optimizers);
  said_begin();
  CHECK_STATUS_OK(normed_fit(t, &module));
  said_end();
  assert_int_equal(said_count("Skipping learning rate finder since "
                              "`fast_dev_run` is enabled."),
                   1);
  assert_int_equal(run.n_train, 1);
  calx_trainer_free(t);
  calx_callback_free(c);
}

int main(void)
{
  setenv("CPU_NUM_DEVICES", "2", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_as_lightning), SUPPORT_TEST(test_row_E23),
    SUPPORT_TEST(test_ranks),        SUPPORT_TEST(test_plot),
    SUPPORT_TEST(test_refused),      SUPPORT_TEST(test_no_suggestion),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
