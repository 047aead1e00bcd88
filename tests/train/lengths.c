// Epochs whose length is not known before they end, batches without a loss, and
// what schedules do with either.
#include "boring.h"

enum { WEIGHTS = 2 * BORING_FEATURES };

// What a run is to do, and what it did.
typedef struct length_plan {
  int64_t skipped;  // the batch without a loss; -1: none
  int64_t stops;    // the batch that ends the run; -1: none
  calx_trainer_optimizer_options schedule;
  int64_t validations;
  double lr;  // at the end
} length_plan;

// ---- data -------------------------------------------------------------------

typedef struct stream {
  int64_t count, at;
} stream;

static calx_status *begin_stream(void *user, const calx_worker_info *info,
                                 void **out)
{
  (void)info;
  ((stream *)user)->at = 0;
  *out = user;
  return NULL;
}

static calx_status *next_sample(void *iterator, void *const *fields, bool *over)
{
  stream *s = iterator;
  *over = s->at == s->count;
  if (*over) return NULL;
  float *row = fields[0];
  for (int k = 0; k < BORING_FEATURES; k++) {
    row[k] = sinf((float)(s->at + k));
  }
  s->at++;
  return NULL;
}

// The samples of boring_dataset().
static calx_dataset *stream_dataset(stream *s)
{
  static const calx_iterable functions = { begin_stream, next_sample, NULL };
  const calx_field field = {
    .name = "data", .dtype = CALX_F32, .rank = 1, .dims = { BORING_FEATURES }
  };
  return calx_dataset_iterable(&field, 1, &functions, s, NULL);
}

// ---- a module ---------------------------------------------------------------

static calx_tensor *step(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  const length_plan *p = calx_trainer_user(t);
  if (i == p->stops) calx_trainer_stop(t);
  return i != p->skipped ? boring_loss(self, batch) : NULL;
}

// Never steps by itself.
static calx_tensor *step_manually(calx_trainer *t, void *self,
                                  const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_manual_backward(t, loss);
  return loss;
}

static calx_tensor *validate(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  length_plan *p = calx_trainer_user(t);
  p->validations += i == 0;
  return boring_loss(self, batch);
}

static void optimizers(calx_trainer *t, void *self)
{
  const length_plan *p = calx_trainer_user(t);
  calx_optimizer *opt = calx_sgd(((boring *)self)->root, .lr = 0.1);
  calx_trainer_optimizer_options o = p->schedule;
  o.size = sizeof o;
  o.lr_scheduler = o.monitor != NULL ? calx_reduce_lr_on_plateau(
                                           opt, .factor = 0.5, .patience = 0)
                                     : calx_step_lr(opt, 1, .gamma = 0.5);
  calx_trainer_add_optimizer_with(t, opt, &o);
}

static void log_same(calx_trainer *t, void *self, const calx_batch *batch,
                     int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_trainer_log_number(t, "same", 1);
}

static void note_lr(calx_trainer *t, void *self)
{
  (void)self;
  length_plan *p = calx_trainer_user(t);
  p->lr = calx_optimizer_lr(calx_trainer_optimizer(t, 0));
}

static calx_lightning_module module_of(length_plan *p)
{
  return (calx_lightning_module)CALX_LIGHTNING_MODULE(
          .self_size = sizeof(boring), .user = p,
          .configure_model = boring_model, .configure_optimizers = optimizers,
          .training_step = step,
          .hooks = { .on_train_batch_end = log_same, .on_train_end = note_lr });
}

// Over `samples` samples; `streams`: whose number is not known.
static calx_trainer *fit(const calx_lightning_module *m, bool streams,
                         int64_t samples, int64_t accumulate, int64_t limit)
{
  stream s = { .count = samples };
  calx_dataset *data = streams ? stream_dataset(&s) : boring_dataset(samples);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .seed = 3,
                       .num_sanity_val_steps = 0,
                       .limit_train_batches =
                           limit > 0 ? (double)limit : (double)INFINITY,
                       .accumulate_grad_batches = accumulate, BORING_ALONE);
  CHECK_STATUS_OK(calx_trainer_fit(
      t, m, .train_dataloader = loader,
      .val_dataloader = m->validation_step != NULL ? loader : NULL));
  calx_loader_free(loader);
  calx_dataset_free(data);
  return t;
}

static int64_t steps_of(const calx_lightning_module *m, bool streams,
                        int64_t samples, int64_t accumulate, float *out)
{
  calx_trainer *t = fit(m, streams, samples, accumulate, 0);
  calx_scope *scope = calx_scope_begin();
  boring b;
  calx_module *model = boring_model(NULL, &b);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  CHECK_STATUS_OK(calx_tensor_read(calx_module_find(model, "layer.weight"), out,
                                   WEIGHTS * sizeof *out));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
  const int64_t steps = calx_trainer_global_step(t);
  calx_trainer_free(t);
  return steps;
}

// ---- batches without a loss -------------------------------------------------

// One is left out as if it were not there, wherever it is, and the end of an
// epoch that was not known steps with nothing that was stepped with before.
static void test_left_out(void **state)
{
  (void)state;
  static const struct {
    int64_t samples, accumulate, skipped, steps;
  } rows[] = { { 3, 1, 2, 2 }, { 4, 2, 2, 2 }, { 4, 2, 3, 2 },
               { 5, 2, 4, 2 }, { 5, 2, 3, 3 }, { 3, 4, 2, 1 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    length_plan p = { .skipped = rows[i].skipped, .stops = -1 };
    const calx_lightning_module m = module_of(&p);
    float known[WEIGHTS], streamed[WEIGHTS];
    assert_int_equal(
        steps_of(&m, false, rows[i].samples, rows[i].accumulate, known),
        rows[i].steps);
    assert_int_equal(
        steps_of(&m, true, rows[i].samples, rows[i].accumulate, streamed),
        rows[i].steps);
    for (int k = 0; k < WEIGHTS; k++) {
      assert_true(fabsf(known[k] - streamed[k]) <= 1e-6f);
    }
  }
}

// The gradients of the accumulation before are not in the next one.
static void test_left_out_first(void **state)
{
  (void)state;
  length_plan all = { .skipped = 2, .stops = -1 };
  float w[WEIGHTS], before[WEIGHTS];
  // Batch 2 begins the second accumulation and has no loss; batch 3 alone is
  // it. Half of its gradient is added, and nothing of batches 0 and 1.
  const calx_lightning_module m = module_of(&all);
  assert_int_equal(steps_of(&m, false, 4, 2, w), 2);
  assert_int_equal(steps_of(&m, false, 2, 2, before), 1);
  calx_scope *scope = calx_scope_begin();
  boring b;
  calx_module *model = boring_model(NULL, &b);
  calx_trainer *t = fit(&m, false, 2, 2, 0);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  float x[BORING_FEATURES];
  for (int k = 0; k < BORING_FEATURES; k++) x[k] = sinf((float)(3 + k));
  const calx_batch batch = { .data = calx_tensor_from(
                                 x, CALX_F32, CALX_SHAPE(1, BORING_FEATURES)) };
  calx_backward(boring_loss(&b, &batch));
  float gradient[WEIGHTS];
  CHECK_STATUS_OK(
      calx_tensor_read(calx_grad(calx_module_find(model, "layer.weight")),
                       gradient, sizeof gradient));
  for (int k = 0; k < WEIGHTS; k++) {
    assert_true(fabsf(w[k] - (before[k] - 0.05f * gradient[k])) <= 1e-5f);
  }
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
  calx_trainer_free(t);
}

// ---- the end of an epoch that was not known ---------------------------------

static void test_manual(void **state)
{
  (void)state;
  length_plan p = { .skipped = -1, .stops = -1 };
  calx_lightning_module m = module_of(&p);
  m.training_step = step_manually;
  m.manual_optimization = true;
  calx_trainer *t = fit(&m, true, 3, 1, 0);
  assert_int_equal(calx_trainer_global_step(t), 0);
  calx_trainer_free(t);
}

// A limit that the data do not reach, and a run that ends before they do.
static void test_validations(void **state)
{
  (void)state;
  static const struct {
    int64_t limit, stops, validations;
    double lr;
  } rows[] = { { 0, -1, 1, 0.05 }, { 9, -1, 1, 0.05 }, { 0, 2, 1, 0.1 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    length_plan p = { .skipped = -1, .stops = rows[i].stops };
    calx_lightning_module m = module_of(&p);
    m.validation_step = validate;
    calx_trainer_free(fit(&m, true, 5, 1, rows[i].limit));
    assert_int_equal(p.validations, rows[i].validations);
    assert_true(fabs(p.lr - rows[i].lr) < 1e-7);
  }
}

// ---- schedules --------------------------------------------------------------

// One that has a monitor steps with the optimiser, not with each batch: of four
// equal values three are no better than the first one.
static void test_plateau(void **state)
{
  (void)state;
  length_plan p = { .skipped = -1,
                    .stops = -1,
                    .schedule = { .interval = "step", .monitor = "same" } };
  const calx_lightning_module m = module_of(&p);
  calx_trainer_free(fit(&m, false, 8, 2, 0));
  assert_true(fabs(p.lr - 0.1 / 8) < 1e-7);
}

// With manual optimisation the step also steps schedules.
// Source: _TrainingEpochLoop._update_learning_rates.
static void test_manual_schedule(void **state)
{
  (void)state;
  length_plan p = { .skipped = -1, .stops = -1 };
  calx_lightning_module m = module_of(&p);
  m.training_step = step_manually;
  m.manual_optimization = true;
  calx_trainer_free(fit(&m, false, 3, 1, 0));
  assert_true(fabs(p.lr - 0.1) < 1e-7);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_left_out), SUPPORT_TEST(test_left_out_first),
    SUPPORT_TEST(test_manual),   SUPPORT_TEST(test_validations),
    SUPPORT_TEST(test_plateau),  SUPPORT_TEST(test_manual_schedule),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
