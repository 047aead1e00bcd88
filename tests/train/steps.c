// What a step is: manual optimisation, several steps in one program, what must
// be finite, the same few batches, ties.
#include "calx/debug.h"

#include "boring.h"

static calx_status *fit(calx_trainer *t, const calx_lightning_module *m,
                        int64_t batch_size)
{
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader =
      calx_loader_new(data, .batch_size = batch_size, .shuffle = true);
  calx_status *status = calx_trainer_fit(t, m, .train_dataloader = loader);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

static void weights_of(const calx_trainer *t, float *out)
{
  calx_scope *scope = calx_scope_begin();
  boring b;
  calx_module *model = boring_model(NULL, &b);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "layer.weight"), out,
                                   2 * BORING_FEATURES * sizeof *out));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
}

// ---- manual optimisation ----------------------------------------------------

typedef struct manual_plan {
  int64_t calls, changes;
  double before;
} manual_plan;

static calx_tensor *step_twice_of_three(calx_trainer *t, void *self,
                                        const calx_batch *batch, int64_t i)
{
  manual_plan *p = calx_trainer_user(t);
  calx_optimizer_zero_grad(calx_trainer_optimizer(t, 0));
  assert_null(
      calx_grad(calx_module_find(calx_trainer_model(t), "layer.weight")));
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_manual_backward(t, loss);
  if (i % 3 != 2) calx_trainer_optimizer_step(t, 0);
  p->calls++;
  return loss;
}

static void count_changes(calx_trainer *t, void *self, const calx_batch *batch,
                          int64_t i)
{
  (void)self, (void)batch;
  manual_plan *p = calx_trainer_user(t);
  float w[2 * BORING_FEATURES];
  CHECK_STATUS_OK(calx_tensor_read(
      calx_module_find(calx_trainer_model(t), "layer.weight"), w, sizeof w));
  const bool changed = (double)w[3] != p->before;
  assert_int_equal(changed, i % 3 != 2);
  p->changes += changed;
  p->before = (double)w[3];
}

// Row C14.
static void test_row_C14(void **state)
{
  (void)state;
  manual_plan p = { 0 };
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = step_twice_of_three,
                            .manual_optimization = true,
                            .hooks = { .on_train_batch_end = count_changes });
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .limit_train_batches = 3,
                       .barebones = true);
  CHECK_STATUS_OK(fit(t, &m, 1));
  assert_int_equal(p.calls, 3);
  assert_int_equal(p.changes, 2);
  assert_int_equal(calx_trainer_global_step(t), 2);
  calx_trainer_free(t);
}

static void two_optimizers(calx_trainer *t, void *self)
{
  boring_optimizers(t, self);
  boring_optimizers(t, self);
}

static calx_tensor *manual_in_automatic(calx_trainer *t, void *self,
                                        const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_trainer_manual_backward(t, boring_loss(self, batch));
  return NULL;
}

static void test_manual_refused(void **state)
{
  (void)state;
  calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = two_optimizers,
                            .training_step = boring_step);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(t, &m, 1),
               "only supported with manual optimization");
  m.configure_optimizers = boring_optimizers;
  m.training_step = manual_in_automatic;
  CHECK_STATUS(CALX_FAILED_PRECONDITION, fit(t, &m, 1), "manual_backward",
               "optimised automatically");
  calx_trainer_free(t);
  m.manual_optimization = true;
  m.training_step = boring_step;
  t = calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true,
                       .gradient_clip_val = 1);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(t, &m, 1),
               "Automatic gradient clipping is not supported for manual");
  calx_trainer_free(t);
  t = calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true,
                       .accumulate_grad_batches = 2);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(t, &m, 1),
               "Automatic gradient accumulation is not supported for manual");
  calx_trainer_free(t);
}

// ---- several steps in one program -------------------------------------------

static void log_loss(calx_trainer *t, void *self, const calx_batch *batch,
                     int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_trainer_log(t, "loss", calx_trainer_step_output(t), .on_epoch = 1);
}

// The same weights and metrics by fewer executions.
static void test_steps_per_execution(void **state)
{
  (void)state;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_train_batch_start = NULL,
                                       .on_train_batch_end = log_loss });
  static const int64_t steps[] = { 1, 4, 5 };
  float first[2 * BORING_FEATURES], w[2 * BORING_FEATURES];
  double loss = 0;
  int64_t executions = 0;
  for (int i = 0; i < 3; i++) {
    calx_trainer *t =
        calx_trainer_new(.devices = 1, .max_epochs = 2, .barebones = true,
                         .seed = 5, .steps_per_execution = steps[i]);
    const int64_t before = calx_counter_value("ExecuteComputation");
    CHECK_STATUS_OK(fit(t, &m, 4));
    const int64_t ran = calx_counter_value("ExecuteComputation") - before;
    weights_of(t, i == 0 ? first : w);
    if (i == 0) {
      executions = ran;
      loss = calx_trainer_callback_metric(t, "loss_epoch");
    } else {
      for (int k = 0; k < 2 * BORING_FEATURES; k++) {
        assert_true(fabsf(w[k] - first[k]) <= 1e-6f);
      }
      assert_true(fabs(calx_trainer_callback_metric(t, "loss_epoch") - loss) <
                  1e-5);
      assert_true(ran < executions / 2);
    }
    calx_trainer_free(t);
  }
}

// ---- hooks that look inside -------------------------------------------------

static void read_gradient(calx_trainer *t, void *self)
{
  (void)self;
  calx_tensor *weight = calx_module_find(calx_trainer_model(t), "layer.weight");
  assert_true(isfinite(calx_item(calx_sum(calx_grad(weight)))));
}

// Each such step is two programs, and is counted.
static void test_splits(void **state)
{
  (void)state;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_after_backward = read_gradient });
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true);
  const int64_t before = calx_counter_value("TrainerStepSplits");
  CHECK_STATUS_OK(fit(t, &m, 16));
  assert_int_equal(calx_counter_value("TrainerStepSplits") - before, 4);
  calx_trainer_free(t);
}

// ---- what must be finite ----------------------------------------------------

static calx_tensor *bad_loss(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)t;
  calx_tensor *loss = boring_loss(self, batch);
  return i == 2 ? calx_log(calx_neg(calx_square(loss))) : loss;
}

// Its value is finite, its gradient is not.
static calx_tensor *bad_gradient(calx_trainer *t, void *self,
                                 const calx_batch *batch, int64_t i)
{
  (void)t;
  calx_tensor *loss = boring_loss(self, batch);
  return i == 2 ? calx_sqrt(calx_mul(loss, 0)) : loss;
}

// Row E20.
static void test_row_E20(void **state)
{
  (void)state;
  calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = bad_loss);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true,
                       .terminate_on_nan = true);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(t, &m, 1),
               "The loss returned in `training_step` is nan");
  m.training_step = bad_gradient;
  CHECK_STATUS(CALX_INVALID_ARGUMENT, fit(t, &m, 1),
               "Detected nan and/or inf values in `layer.weight`");
  m.training_step = boring_step;
  CHECK_STATUS_OK(fit(t, &m, 1));
  calx_trainer_free(t);
  t = calx_trainer_new(.devices = 1, .max_epochs = 1, .detect_anomaly = true,
                       .no_logger = true, .no_checkpointing = true);
  m.training_step = bad_loss;
  CHECK_STATUS(CALX_FAILED_PRECONDITION, fit(t, &m, 1),
               "anomaly: log returned nan values");
  calx_trainer_free(t);
}

// ---- the same few batches ---------------------------------------------------

typedef struct seen {
  double first[32];
  int n;
} seen;

static void note_sample(calx_trainer *t, void *self, const calx_batch *batch,
                        int64_t i)
{
  (void)self, (void)i;
  seen *s = calx_trainer_user(t);
  s->first[s->n++] =
      calx_item(calx_select(calx_select(batch->data, 0, 0), 0, 0));
}

// Row B21.
static void test_row_B21(void **state)
{
  (void)state;
  seen s = { .n = 0 };
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &s,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step,
                            .hooks = { .on_train_batch_start = note_sample,
                                       .on_validation_batch_start =
                                           note_sample });
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader = calx_loader_new(data, .shuffle = true);
  calx_trainer *t = calx_trainer_new(.devices = 1, .max_epochs = 2,
                                     .overfit_batches = 2, .barebones = true);
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader,
                                   .val_dataloader = loader));
  assert_int_equal(s.n, 8);  // 2 of training, 2 of validation, twice
  for (int i = 0; i < 8; i++) {
    assert_true(fabs(s.first[i] - sin(i % 2)) < 1e-6);
  }
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- ties -------------------------------------------------------------------

typedef struct tied {
  calx_module *root, *one, *two, *three;
} tied;

static calx_tensor *tied_forward(void *self, calx_tensor *x)
{
  tied *m = self;
  x = calx_forward(m->two, calx_forward(m->one, x));
  return calx_forward(m->three, x);
}

static calx_module *tied_model(calx_trainer *t, void *self)
{
  (void)t;
  tied *m = self;
  m->root = calx_module_new("WeightSharingModule", tied_forward, m);
  m->one = calx_nn_linear(m->root, "layer_1", 32, 10, .no_bias = true);
  m->two = calx_nn_linear(m->root, "layer_2", 10, 32, .no_bias = true);
  m->three = calx_nn_linear(m->root, "layer_3", 32, 10, .no_bias = true);
  return m->root;
}

static void tie(calx_trainer *t, void *self)
{
  (void)t;
  tied *m = self;
  calx_module_tie(m->root, "layer_3.weight",
                  calx_module_find(m->root, "layer_1.weight"));
}

static void tied_optimizers(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_sgd(((tied *)self)->root, .lr = 0.1));
}

static calx_tensor *tied_step(calx_trainer *t, void *self,
                              const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  return calx_mean(
      calx_square(calx_forward(((tied *)self)->root, batch->data)));
}

static void check_tie(calx_trainer *t, void *self)
{
  tied *m = self;
  assert_ptr_equal(calx_module_find(m->root, "layer_1.weight"),
                   calx_module_find(m->root, "layer_3.weight"));
  assert_int_equal(calx_module_param_count(m->root), 640);
  (void)t;
}

// Row C8, as the seed writes it: tied in on_post_move_to_device.
static void test_row_C8(void **state)
{
  (void)state;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(tied),
                            .configure_model = tied_model,
                            .configure_optimizers = tied_optimizers,
                            .training_step = tied_step,
                            .hooks = { .on_post_move_to_device = tie,
                                       .on_train_end = check_tie });
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .precision = "bf16-true",
                       .barebones = true);
  CHECK_STATUS_OK(fit(t, &m, 4));
  calx_trainer_free(t);
}

// A tie that is broken after the model was made would train as two weights.
static calx_module *made_tied(calx_trainer *t, void *self)
{
  calx_module *root = tied_model(t, self);
  tie(t, self);
  return root;
}

static void break_tie(calx_trainer *t, void *self)
{
  (void)t;
  tied *m = self;
  calx_module *other =
      calx_nn_linear(m->root, "other", 32, 10, .no_bias = true);
  calx_module_tie(m->root, "layer_3.weight", calx_module_find(other, "weight"));
}

static char lines[4096];

static void keep_line(void *user, const char *line)
{
  (void)user;
  strncat(lines, line, sizeof lines - 1 - strlen(lines));
}

static void test_broken_tie(void **state)
{
  (void)state;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(tied),
                            .configure_model = made_tied,
                            .configure_optimizers = tied_optimizers,
                            .training_step = tied_step,
                            .hooks = { .on_post_move_to_device = break_tie });
  calx_log_set(keep_line, NULL);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .barebones = true);
  CHECK_STATUS_OK(fit(t, &m, 4));
  calx_log_set(NULL, NULL);
  assert_non_null(strstr(lines,
                         "The model layers do not match after moving to the "
                         "target device."));
  assert_non_null(strstr(lines, "Layer count: [Before: 2 After: 3]"));
  calx_trainer_free(t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_C14),
    SUPPORT_TEST(test_manual_refused),
    SUPPORT_TEST(test_steps_per_execution),
    SUPPORT_TEST(test_splits),
    SUPPORT_TEST(test_row_E20),
    SUPPORT_TEST(test_row_B21),
    SUPPORT_TEST(test_row_C8),
    SUPPORT_TEST(test_broken_tie),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
