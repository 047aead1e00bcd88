// The trainer on several ranks: n devices with batches of b are one device with
// n b; logged values over the ranks; samples of an evaluation once each.
#include "boring.h"

enum { RANKS = 4, WEIGHTS = 2 * BORING_FEATURES };

// ---- the same weights -------------------------------------------------------

typedef struct plan {
  bool adam;
} plan;

static void optimizers(calx_trainer *t, void *self)
{
  const plan *p = calx_trainer_user(t);
  calx_module *root = ((boring *)self)->root;
  calx_trainer_add_optimizer(
      t, p->adam ? calx_adam(root, .lr = 0.01)
                 : calx_sgd(root, .lr = 0.1, .momentum = 0.9));
}

static void weights_of(const calx_trainer *t, double *out)
{
  calx_scope *scope = calx_scope_begin();
  boring b;
  calx_module *model = boring_model(NULL, &b);
  calx_module_to(model, CALX_F64);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "layer.weight"), out,
                                   WEIGHTS * sizeof *out));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
}

static void train(int devices, int64_t batch_size, plan p, int64_t accumulate,
                  double clip, double *out)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                            .configure_model = boring_model,
                            .configure_optimizers = optimizers,
                            .training_step = boring_step);
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader = calx_loader_new(data, .batch_size = batch_size);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 3,
                       .precision = "64-true",
                       .accumulate_grad_batches = accumulate,
                       .gradient_clip_val = clip, .seed = 7, BORING_ALONE);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  assert_int_equal(calx_trainer_global_step(t),
                   3 * BORING_SAMPLES / (devices * batch_size) / accumulate);
  weights_of(t, out);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
}

// Also with accumulation and clipping.
static void test_same_as_one(void **state)
{
  (void)state;
  static const struct {
    plan plan;
    int64_t accumulate;
    double clip;
  } rows[] = { { { false }, 1, 0 },
               { { true }, 1, 0 },
               { { false }, 2, 0 },
               { { false }, 1, 0.05 },
               { { true }, 2, 0.05 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double one[WEIGHTS], many[WEIGHTS];
    train(1, 8, rows[i].plan, rows[i].accumulate, rows[i].clip, one);
    train(RANKS, 8 / RANKS, rows[i].plan, rows[i].accumulate, rows[i].clip,
          many);
    for (int k = 0; k < WEIGHTS; k++) {
      if (!(fabs(many[k] - one[k]) <= 1e-9 * (1 + fabs(one[k])))) {
        fail_msg("row %zu, weight %d: %.17g on one device, %.17g on %d", i, k,
                 one[k], many[k], RANKS);
      }
    }
  }
}

// ---- logged values ----------------------------------------------------------

static calx_tensor *number(double value)
{
  return calx_full(CALX_SHAPE(1), value);
}

// A value of each row, as it is logged in training: 1 + rank, 2, the batch's
// number, or that + rank.
typedef enum what { RANK, TWO, BATCH, BATCH_RANK } what;

typedef struct logged_row {
  const char *name, *reduce_fx;
  what what;
  int on_step, on_epoch;
} logged_row;

static const logged_row logged_rows[] = {
  { "step_sum", "sum", RANK, 1, 0 },       { "step_sum_2", "sum", TWO, 1, 0 },
  { "step_mean_2", "mean", TWO, 1, 0 },    { "step_mean", "mean", RANK, 1, 0 },
  { "step_max", "max", BATCH_RANK, 1, 0 }, { "epoch_sum", "sum", RANK, 0, 1 },
  { "epoch_sum_2", "sum", TWO, 0, 1 },     { "epoch_mean", "mean", RANK, 0, 1 },
  { "epoch_max", "max", BATCH, 0, 1 },     { "both", "mean", BATCH_RANK, 1, 1 },
};

static calx_tensor *log_ranks(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  const double rank = calx_global_ordinal();
  const double values[] = { 1 + rank, 2, (double)i, (double)i + rank };
  for (size_t k = 0; k < sizeof logged_rows / sizeof *logged_rows; k++) {
    const logged_row *r = &logged_rows[k];
    calx_trainer_log(t, r->name, number(values[r->what]),
                     .reduce_fx = r->reduce_fx, .sync_dist = true,
                     .on_step = r->on_step, .on_epoch = r->on_epoch);
  }
  return boring_loss(self, batch);
}

static calx_tensor *log_evaluation(calx_trainer *t, void *self,
                                   const calx_batch *batch, int64_t i)
{
  (void)self;
  calx_trainer_log(t, "samples", number((double)batch->size),
                   .reduce_fx = "sum", .sync_dist = true);
  calx_tensor *first = calx_select(batch->data, 1, 0);
  calx_trainer_log(t, "data", calx_sum(first), .reduce_fx = "sum",
                   .sync_dist = true);
  calx_trainer_log(t, "val_sum", number(1), .reduce_fx = "sum",
                   .sync_dist = true);
  calx_trainer_log(t, "val_max", number((double)i + calx_global_ordinal()),
                   .reduce_fx = "max", .sync_dist = true);
  return NULL;
}

// Each rank has 3 batches of training and of validation, of odd samples.
static void log_on(int devices)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = log_ranks,
                            .validation_step = log_evaluation);
  const int samples = 6 * devices - 1;
  calx_dataset *data = boring_dataset(3 * devices),
               *odd = boring_dataset(samples);
  calx_loader *loader = calx_loader_new(data),
              *val = calx_loader_new(odd, .batch_size = 2);
  calx_trainer *t =
      calx_trainer_new(.devices = devices, .max_epochs = 1, BORING_ALONE);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = val));
  const struct {
    const char *name;
    double values[2];  // on one device, on two
  } rows[] = { { "step_sum", { 1, 3 } },     { "step_sum_2", { 2, 4 } },
               { "step_mean_2", { 2, 2 } },  { "step_mean", { 1, 1.5 } },
               { "step_max", { 2, 3 } },     { "epoch_sum", { 3, 9 } },
               { "epoch_sum_2", { 6, 12 } }, { "epoch_mean", { 1, 1.5 } },
               { "epoch_max", { 2, 2 } },    { "both_step", { 2, 2.5 } },
               { "both_epoch", { 1, 1.5 } }, { "val_sum", { 3, 6 } },
               { "val_max", { 2, 3 } },      { "samples", { 5, 11 } } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const double value = calx_trainer_callback_metric(t, rows[i].name);
    if (value != rows[i].values[devices - 1]) {
      fail_msg("%s on %d devices is %g", rows[i].name, devices, value);
    }
  }
  double sum = 0;
  for (int i = 0; i < samples; i++) sum += sin(i);
  CHECK_CLOSE(calx_trainer_callback_metric(t, "data"), sum, 1e-5);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_loader_free(val);
  calx_dataset_free(data);
  calx_dataset_free(odd);
  calx_shutdown();
}

static void test_row_D5(void **state)
{
  (void)state;
  log_on(1);
  log_on(2);
}

static calx_tensor *log_in_turn(calx_trainer *t, void *self,
                                const calx_batch *batch, int64_t i)
{
  const bool is_even = (calx_global_ordinal() + i) % 2 == 0;
  const char *name = is_even ? "even" : "odd";
  calx_trainer_log(t, name, number(is_even ? 2 : 1), .reduce_fx = "sum",
                   .sync_dist = true, .on_step = 0, .on_epoch = 1);
  const double rank = calx_global_ordinal();
  calx_trainer_log(t, "nan", number(rank == 2 ? (double)NAN : rank),
                   .reduce_fx = "min", .sync_dist = true, .on_step = 0,
                   .on_epoch = 1);
  return boring_loss(self, batch);
}

// Ranks that log in different orders: of each name there are 4 of 8 batches.
static void test_orders(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = log_in_turn);
  calx_dataset *data = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = RANKS, .max_epochs = 1, BORING_ALONE);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  assert_true(calx_trainer_callback_metric(t, "even") == 8);
  assert_true(calx_trainer_callback_metric(t, "odd") == 4);
  assert_true(isnan(calx_trainer_callback_metric(t, "nan")));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// Two of four ranks have a sample, and all of them the values.
static void test_few_samples(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = log_ranks,
                            .validation_step = log_evaluation);
  calx_dataset *data = boring_dataset(8), *few = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data), *val = calx_loader_new(few);
  calx_callback *c = calx_early_stopping(.monitor = "samples");
  calx_trainer *t =
      calx_trainer_new(.devices = RANKS, .max_epochs = 1, .callbacks = &c,
                       .n_callbacks = 1, BORING_ALONE);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = val));
  assert_true(calx_trainer_callback_metric(t, "samples") == 2);
  assert_true(fabs(calx_trainer_callback_metric(t, "data") - sin(1)) < 1e-6);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_loader_free(val);
  calx_dataset_free(data);
  calx_dataset_free(few);
}

// ---- stopping ---------------------------------------------------------------

static void log_rank(calx_trainer *t, void *self)
{
  (void)self;
  // It improves on all ranks but on the last.
  const double epoch = (double)calx_trainer_current_epoch(t);
  const bool last = calx_global_ordinal() == RANKS - 1;
  calx_trainer_log(t, "loss", number(last ? 1 : 1 - epoch));
}

static void test_stop(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step,
                            .hooks = { .on_validation_epoch_end = log_rank });
  calx_dataset *data = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data);
  calx_callback *c = calx_early_stopping(.monitor = "loss", .patience = 2);
  calx_trainer *t =
      calx_trainer_new(.devices = RANKS, .max_epochs = 9, BORING_ALONE,
                       .callbacks = &c, .n_callbacks = 1);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  assert_int_equal(calx_trainer_current_epoch(t), 3);
  assert_int_equal(calx_early_stopping_stopped_epoch(c), 2);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- several steps in one program -------------------------------------------

static int64_t executions(int64_t per_execution)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step);
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = 2, .max_epochs = 2, .barebones = true,
                       .steps_per_execution = per_execution);
  const int64_t before = calx_counter_value("ExecuteComputation");
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  const int64_t ran = calx_counter_value("ExecuteComputation") - before;
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
  return ran;
}

// What the ranks tell each other in each program is not read before the program
// has run: two ranks have two epochs of 32 steps.
static void test_steps_per_execution(void **state)
{
  (void)state;
  const int64_t one = executions(1), four = executions(4);
  assert_int_equal(one - four, 2 * 2 * (32 - 8));
}

// ---- one device of several --------------------------------------------------

// The device that a program has chosen trains, and its run leaves what it did.
static void test_chosen_device(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step);
  calx_device *second, *before = calx_device_current();
  CHECK_STATUS_OK(calx_device_open("xla:1", &second));
  calx_device_set_current(second);
  calx_dataset *data = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data);
  calx_callback *c = calx_early_stopping(.monitor = "x", .not_strict = true);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .callbacks = &c,
                       .n_callbacks = 1, BORING_ALONE);
  calx_value *predictions;
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader));
  assert_int_equal(calx_trainer_global_step(t), 8);
  double weights[WEIGHTS];
  weights_of(t, weights);
  CHECK_STATUS_OK(calx_trainer_predict(t, &module, &predictions,
                                       .predict_dataloader = loader));
  assert_int_equal(calx_value_count(predictions), 1);
  assert_non_null(calx_callback_self(c));
  calx_value_free(predictions);
  calx_device_set_current(before);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- errors -----------------------------------------------------------------

static calx_tensor *fail_on_rank_1(calx_trainer *t, void *self,
                                   const calx_batch *batch, int64_t i)
{
  if (calx_global_ordinal() == 1 && i == 1) {
    calx_trainer_log(t, "x", NULL);
  }
  return boring_loss(self, batch);
}

static void test_failure(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = fail_on_rank_1);
  calx_dataset *data = boring_dataset(8);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = RANKS, .max_epochs = 9, BORING_ALONE);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &module, .train_dataloader = loader),
               "rank 1: ", "the value of 'x' is NULL");
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "4", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_same_as_one),   SUPPORT_TEST(test_row_D5),
    SUPPORT_TEST(test_stop),          SUPPORT_TEST(test_orders),
    SUPPORT_TEST(test_few_samples),   SUPPORT_TEST(test_steps_per_execution),
    SUPPORT_TEST(test_chosen_device), SUPPORT_TEST(test_failure),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
