// The training loop beside Lightning's: the order of hooks, when it ends, when
// it validates, what accumulation and clipping do. The numbers are those of
// Lightning's own tests, by row of its acceptance list.
#include "boring.h"
#include "said.h"

// ---- what is called ---------------------------------------------------------

typedef struct journal {
  char text[8192];
} journal;

static journal calls;

static void note(const char *who, const char *what)
{
  size_t at = strlen(calls.text);
  snprintf(calls.text + at, sizeof calls.text - at, "%s%s\n", who, what);
}

#define NOTED(who, name)                                \
  static void who##_##name(calx_trainer *t, void *self) \
  {                                                     \
    (void)t, (void)self;                                \
    note(#who " ", #name);                              \
  }
#define NOTED_BATCH(who, name)                                   \
  static void who##_##name(calx_trainer *t, void *self,          \
                           const calx_batch *batch, int64_t i)   \
  {                                                              \
    (void)t, (void)self, (void)batch;                            \
    char text[64];                                               \
    snprintf(text, sizeof text, "%s %lld", #name, (long long)i); \
    note(#who " ", text);                                        \
  }
#define EACH(D, D_BATCH, who)             \
  D(who, setup)                           \
  D(who, on_post_move_to_device)          \
  D(who, on_validation_model_zero_grad)   \
  D(who, on_fit_start)                    \
  D(who, on_sanity_check_start)           \
  D(who, on_sanity_check_end)             \
  D(who, on_train_start)                  \
  D(who, on_train_epoch_start)            \
  D_BATCH(who, on_train_batch_start)      \
  D(who, on_before_zero_grad)             \
  D(who, on_before_backward)              \
  D(who, on_after_backward)               \
  D(who, on_before_optimizer_step)        \
  D_BATCH(who, on_train_batch_end)        \
  D(who, on_train_epoch_end)              \
  D(who, on_train_end)                    \
  D(who, on_validation_model_eval)        \
  D(who, on_validation_start)             \
  D(who, on_validation_epoch_start)       \
  D_BATCH(who, on_validation_batch_start) \
  D_BATCH(who, on_validation_batch_end)   \
  D(who, on_validation_epoch_end)         \
  D(who, on_validation_end)               \
  D(who, on_validation_model_train)       \
  D(who, on_test_start)                   \
  D_BATCH(who, on_test_batch_start)       \
  D(who, on_test_end)                     \
  D(who, on_exception)                    \
  D(who, on_fit_end)                      \
  D(who, teardown)
EACH(NOTED, NOTED_BATCH, Callback)
EACH(NOTED, NOTED_BATCH, Module)
#define FIELD(who, name) .name = who##_##name,

#define NOTED_TRANSFER(who)                                                  \
  static void who##_transfer(calx_trainer *t, void *self, calx_batch *batch) \
  {                                                                          \
    (void)t, (void)self, (void)batch;                                        \
    note(#who " ", "on_after_batch_transfer");                               \
  }
NOTED_TRANSFER(Callback)
NOTED_TRANSFER(Module)

static calx_module *noted_model(calx_trainer *t, void *self)
{
  note("Module ", "configure_model");
  return boring_model(t, self);
}

static void noted_optimizers(calx_trainer *t, void *self)
{
  note("Module ", "configure_optimizers");
  boring_optimizers(t, self);
}

static calx_tensor *noted_step(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  note("Module ", "training_step");
  return boring_step(t, self, batch, i);
}

static calx_tensor *noted_validation(calx_trainer *t, void *self,
                                     const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  note("Module ", "validation_step");
  return boring_loss(self, batch);
}

#define BOTH(name) "Callback " name "\nModule " name "\n"
#define VALIDATION_BATCH(i)            \
  BOTH("on_after_batch_transfer")      \
  BOTH("on_validation_batch_start " i) \
  "Module validation_step\n" BOTH("on_validation_batch_end " i)
#define VALIDATION                  \
  BOTH("on_validation_model_eval")  \
  BOTH("on_validation_start")       \
  BOTH("on_validation_epoch_start") \
  VALIDATION_BATCH("0")             \
  VALIDATION_BATCH("1")             \
  BOTH("on_validation_epoch_end")   \
  BOTH("on_validation_end") BOTH("on_validation_model_train")
#define TRAINING_BATCH(i)                                  \
  BOTH("on_after_batch_transfer")                          \
  BOTH("on_train_batch_start " i)                          \
  "Module training_step\n" BOTH("on_before_zero_grad")     \
      BOTH("on_before_backward") BOTH("on_after_backward") \
          BOTH("on_before_optimizer_step") BOTH("on_train_batch_end " i)

// 2 batches of training and 2 of validation.
static const char *const fit_calls = BOTH("setup") "Module configure_model\n" BOTH(
    "on_post_move_to_device") "Module configure_optimizers\n" BOTH("on_fit_start")
    BOTH("on_sanity_check_start") VALIDATION BOTH("on_sanity_check_end")
        BOTH("on_train_start") BOTH("on_train_epoch_start") TRAINING_BATCH("0")
            TRAINING_BATCH("1") BOTH("on_validation_model_zero_grad")
                VALIDATION BOTH("on_train_epoch_end") BOTH("on_train_end")
                    BOTH("on_fit_end") BOTH("teardown");

static void test_row_B1(void **state)
{
  (void)state;
  calls.text[0] = '\0';
  static const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = noted_model,
                            .configure_optimizers = noted_optimizers,
                            .training_step = noted_step,
                            .validation_step = noted_validation,
                            .hooks = { .on_after_batch_transfer =
                                           Module_transfer,
                                       EACH(FIELD, FIELD, Module) });
  calx_callback *callback =
      calx_callback_new(.hooks = { .on_after_batch_transfer = Callback_transfer,
                                   EACH(FIELD, FIELD, Callback) });
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = 1, .limit_train_batches = 2,
                       .limit_val_batches = 2, BORING_ALONE,
                       .callbacks = &callback, .n_callbacks = 1);
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  assert_string_equal(calls.text, fit_calls);
  calx_trainer_free(t);
  calx_callback_free(callback);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static calx_tensor *noted_test(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)t, (void)i;
  note("Module ", "test_step");
  return boring_loss(self, batch);
}

// With no batches only the outer hooks run.
static void test_row_B2(void **state)
{
  (void)state;
  static const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = noted_model,
                            .test_step = noted_test,
                            .hooks = { EACH(FIELD, FIELD, Module) });
  static const char *const wanted[] = {
    "Module setup\nModule configure_model\nModule on_post_move_to_device\n"
    "Module on_test_start\n"
    "Module on_test_batch_start 0\nModule test_step\nModule on_test_end\n"
    "Module teardown\n",
    "Module setup\nModule configure_model\nModule on_post_move_to_device\n"
    "Module teardown\n",
  };
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  for (int i = 0; i < 2; i++) {
    calls.text[0] = '\0';
    calx_trainer *t =
        calx_trainer_new(.devices = 1, .max_epochs = 1, BORING_ALONE,
                         .limit_test_batches = i == 0 ? CALX_DEFAULT : 0.0);
    CHECK_STATUS_OK(calx_trainer_test(t, &module, .test_dataloader = loader));
    assert_string_equal(calls.text, wanted[i]);
    calx_trainer_free(t);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- runs -------------------------------------------------------------------

// What a run did, and what it is to do.
typedef struct plan {
  int64_t stop_at, skip_at;  // at this batch of each epoch; -1: never
  int64_t steps, validations, last_step, last_epoch;
  int64_t changed;  // bit i: after batch i the weights were others
  double before;
} plan;

static double first_weight(calx_trainer *t)
{
  float w[2 * BORING_FEATURES];
  calx_tensor *weight = calx_module_find(calx_trainer_model(t), "layer.weight");
  CHECK_STATUS_OK(calx_tensor_read(weight, w, sizeof w));
  return (double)w[3];
}

static void on_batch_start(calx_trainer *t, void *self, const calx_batch *batch,
                           int64_t i)
{
  (void)self, (void)batch;
  plan *p = calx_trainer_user(t);
  if (i == p->skip_at) calx_trainer_skip_epoch(t);
}

static void on_batch_end(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)self, (void)batch;
  plan *p = calx_trainer_user(t);
  const double now = first_weight(t);
  if (p->steps < 63) p->changed |= (int64_t)(now != p->before) << p->steps;
  p->steps++;
  p->before = now;
  if (i == p->stop_at) calx_trainer_stop(t);
}

static void on_validation_end(calx_trainer *t, void *self)
{
  (void)self;
  plan *p = calx_trainer_user(t);
  if (calx_trainer_sanity_checking(t)) return;
  p->validations++;
  p->last_step = calx_trainer_global_step(t);
  p->last_epoch = calx_trainer_current_epoch(t);
}

// Trains on `samples` batches of one.
static plan run(calx_trainer *t, plan p, int64_t samples)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step,
                            .hooks = { .on_train_batch_start = on_batch_start,
                                       .on_train_batch_end = on_batch_end,
                                       .on_validation_end =
                                           on_validation_end });
  calx_dataset *data = boring_dataset(samples);
  calx_loader *loader = calx_loader_new(data);
  p.before = NAN;
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  calx_loader_free(loader);
  calx_dataset_free(data);
  return p;
}

static const plan plain = { .stop_at = -1, .skip_at = -1 };

#define TRAINER(...)                                                      \
  calx_trainer_new(.devices = 1, BORING_ALONE, .num_sanity_val_steps = 0, \
                   .limit_val_batches = 1, __VA_ARGS__)

// What ends first.
static void test_row_B5_B6_B7(void **state)
{
  (void)state;
  static const struct {
    int64_t epochs, steps, accumulate;
    double share;
    int64_t global_step, epoch;
  } rows[] = {
    { 3, 42, 1, 0.5, 42, 2 }, { 2, 192, 1, 0.5, 64, 2 },
    { -1, 3, 1, 0.5, 3, 1 },  { 5, 0, 1, 0.5, 0, 0 },
    { 0, -1, 1, 0.5, 0, 0 },  { -1, 42, 10, 0.5, 42, 11 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_trainer *t =
        TRAINER(.max_epochs = rows[i].epochs, .max_steps = rows[i].steps,
                .accumulate_grad_batches = rows[i].accumulate,
                .limit_train_batches = rows[i].share);
    run(t, plain, BORING_SAMPLES);
    assert_int_equal(calx_trainer_global_step(t), rows[i].global_step);
    assert_int_equal(calx_trainer_current_epoch(t), rows[i].epoch);
    calx_trainer_free(t);
  }
}

// Weights change with the steps of the optimiser only, and always with the last
// batch of an epoch.
static void test_row_B8(void **state)
{
  (void)state;
  static const struct {
    int64_t k, steps;
    double share;
    int64_t batches;
  } rows[] = { { 3, 4, 1.0, 10 }, { 3, 3, 0.8, 8 }, { 3, 3, 0.7, 7 },
               { 4, 3, 1.0, 10 }, { 4, 2, 0.8, 8 }, { 4, 2, 0.7, 7 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const bool all = rows[i].share == 1;
    calx_trainer *t =
        TRAINER(.max_epochs = 1, .accumulate_grad_batches = rows[i].k,
                .limit_train_batches = all ? CALX_DEFAULT : rows[i].share);
    const plan p = run(t, plain, 10);
    assert_int_equal(p.steps, rows[i].batches);
    assert_int_equal(calx_trainer_global_step(t), rows[i].steps);
    for (int64_t k = 1; k < p.steps;
         k++) {  // the first is compared with nothing
      const bool steps = (k + 1) % rows[i].k == 0 || k + 1 == p.steps;
      assert_int_equal((p.changed >> k) & 1, steps);
    }
    calx_trainer_free(t);
  }
}

// A stop at once, and what the least numbers make of it.
static void test_row_B9_B10(void **state)
{
  (void)state;
  static const struct {
    int64_t batches, epochs, steps, wanted;
  } rows[] = { { 2, 5, 0, 10 },  { 3, 0, 10, 10 }, { 5, 0, 10, 10 },
               { 3, 2, 0, 6 },   { 5, 2, 0, 10 },  { 3, 1, 10, 10 },
               { 5, 1, 10, 10 }, { 3, 3, 10, 10 }, { 5, 3, 10, 15 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_trainer *t = TRAINER(.max_epochs = 100, .min_epochs = rows[i].epochs,
                              .min_steps = rows[i].steps);
    plan p = plain;
    p.stop_at = 0;
    said_begin();
    p = run(t, p, rows[i].batches);
    said_end();
    assert_in_range(said_count("has not been met"), 0, 1);
    if (i == 0) assert_int_equal(said_count("has not been met"), 1);
    assert_int_equal(p.steps, rows[i].wanted);
    calx_trainer_free(t);
  }
}

static void test_row_B11(void **state)
{
  (void)state;
  static const struct {
    int64_t at, epochs, steps;
  } rows[] = { { 5, 2, 10 }, { 8, 3, 24 }, { 12, 4, 40 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_trainer *t = TRAINER(.max_epochs = rows[i].epochs);
    plan p = plain;
    p.skip_at = rows[i].at;
    run(t, p, 10);
    assert_int_equal(calx_trainer_global_step(t), rows[i].steps);
    calx_trainer_free(t);
  }
}

// Validation runs where training is stopped.
static void test_row_B12_B13(void **state)
{
  (void)state;
  plan p = plain;
  p.stop_at = 4;
  calx_trainer *t = TRAINER(.max_epochs = 5);
  p = run(t, p, 10);
  assert_int_equal(calx_trainer_global_step(t), 5);
  assert_int_equal(calx_trainer_current_epoch(t), 1);
  assert_int_equal(p.validations, 1);
  assert_int_equal(p.last_step, 5);
  assert_int_equal(p.last_epoch, 0);
  calx_trainer_free(t);
  static const struct {
    int64_t epochs, steps, validations;
  } rows[] = { { 3, 0, 3 }, { 0, 3, 2 } };
  for (size_t i = 0; i < 2; i++) {
    t = TRAINER(.max_epochs = 3, .min_epochs = rows[i].epochs,
                .min_steps = rows[i].steps);
    p = plain;
    p.stop_at = 1;
    p = run(t, p, 2);
    assert_int_equal(p.validations, rows[i].validations);
    calx_trainer_free(t);
  }
}

static void test_row_B14_B15(void **state)
{
  (void)state;
  static const struct {
    double interval;
    int64_t every, epochs, batches, validations;
  } rows[] = {
    { CALX_DEFAULT, 0, 1, 12, 1 }, { CALX_DEFAULT, 0, 3, 12, 3 },
    { 1.0 / 3, 0, 1, 12, 3 },      { 1.0 / 3, 0, 3, 12, 9 },
    { 0.25, 0, 1, 12, 4 },         { 0.25, 0, 3, 12, 12 },
    { CALX_DEFAULT, 2, 1, 4, 0 },  { CALX_DEFAULT, 2, 4, 4, 2 },
    { CALX_DEFAULT, 2, 5, 4, 2 },  { 3, -1, 3, 4, 4 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_trainer *t = TRAINER(.max_epochs = rows[i].epochs,
                              .val_check_interval = rows[i].interval,
                              .check_val_every_n_epoch = rows[i].every);
    assert_int_equal(run(t, plain, rows[i].batches).validations,
                     rows[i].validations);
    calx_trainer_free(t);
  }
}

// ---- sanity -----------------------------------------------------------------

static void count_sanity(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)self, (void)batch, (void)i;
  plan *p = calx_trainer_user(t);
  p->steps += calx_trainer_sanity_checking(t);
}

// Two loaders, of 8 and of 64 batches.
static void test_row_B17(void **state)
{
  (void)state;
  static const struct {
    int64_t steps;
    double limit;
    int64_t wanted;
  } rows[] = { { 4, 1, 2 },   { 4, CALX_DEFAULT, 8 }, { 4, 0.25, 6 },
               { 4, 5, 8 },   { 4, 0.5, 8 },          { 4, 0, 0 },
               { -1, 5, 10 }, { -1, 0.5, 36 },        { 0, CALX_DEFAULT, 0 } };
  calx_dataset *few = boring_dataset(8), *many = boring_dataset(64);
  calx_loader *a = calx_loader_new(few), *b = calx_loader_new(many);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    plan p = plain;
    const calx_lightning_module module =
        CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                              .configure_model = boring_model,
                              .configure_optimizers = boring_optimizers,
                              .training_step = boring_step,
                              .validation_step = boring_step,
                              .hooks = { .on_validation_batch_start =
                                             count_sanity });
    calx_trainer *t = calx_trainer_new(.devices = 1, .max_epochs = 1,
                                       .limit_train_batches = 1, BORING_ALONE,
                                       .num_sanity_val_steps = rows[i].steps,
                                       .limit_val_batches = rows[i].limit);
    CHECK_STATUS_OK(
        calx_trainer_fit(t, &module, .train_dataloader = a,
                         .dataloaders = (const calx_loader *const[]){ a, b },
                         .n_dataloaders = 2));
    assert_int_equal(p.steps, rows[i].wanted);
    calx_trainer_free(t);
  }
  calx_loader_free(a);
  calx_loader_free(b);
  calx_dataset_free(few);
  calx_dataset_free(many);
}

// ---- schedules --------------------------------------------------------------

typedef struct schedule {
  const char *interval, *monitor;
  int64_t frequency;
  bool plateau;
  double lr;  // at the end
} schedule;

static void schedules(calx_trainer *t, void *self)
{
  const schedule *s = calx_trainer_user(t);
  calx_optimizer *opt = calx_sgd(((boring *)self)->root, .lr = 1);
  calx_trainer_add_optimizer(
      t, opt,
      .lr_scheduler = s->plateau ? calx_reduce_lr_on_plateau(opt, .patience = 0)
                                 : calx_exponential_lr(opt, 0.5),
      .interval = s->interval, .monitor = s->monitor,
      .frequency = s->frequency);
}

static void read_rate(calx_trainer *t, void *self)
{
  (void)self;
  schedule *s = calx_trainer_user(t);
  s->lr = calx_optimizer_lr(calx_trainer_optimizer(t, 0));
}

static calx_tensor *log_one(calx_trainer *t, void *self,
                            const calx_batch *batch, int64_t i)
{
  (void)self, (void)batch, (void)i;
  calx_trainer_log(t, "val_loss", calx_full(CALX_SHAPE(1), 1.0));
  return NULL;
}

// 2 epochs of 4 batches.
static void test_row_B25(void **state)
{
  (void)state;
  static const struct {
    schedule s;
    double lr;
  } rows[] = { { { NULL, NULL, 0, false, 0 }, 0.25 },
               { { "epoch", NULL, 2, false, 0 }, 0.5 },
               { { "step", NULL, 1, false, 0 }, 1.0 / 256 },
               { { "step", NULL, 3, false, 0 }, 0.25 },
               { { NULL, "val_loss", 0, true, 0 }, 0.1 },
               { { NULL, "nope", 0, true, 0 }, 0 } };
  calx_dataset *data = boring_dataset(4);
  calx_loader *loader = calx_loader_new(data);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    schedule s = rows[i].s;
    const calx_lightning_module module =
        CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &s,
                              .configure_model = boring_model,
                              .configure_optimizers = schedules,
                              .training_step = boring_step,
                              .validation_step = log_one,
                              .hooks = { .on_fit_end = read_rate });
    calx_trainer *t = TRAINER(.max_epochs = 2);
    calx_status *status = calx_trainer_fit(
        t, &module, .train_dataloader = loader, .val_dataloader = loader);
    if (rows[i].lr == 0) {
      CHECK_STATUS(CALX_NOT_FOUND, status,
                   "ReduceLROnPlateau conditioned on metric nope which is not "
                   "available. Available metrics are: ['val_loss'].");
    } else {
      CHECK_STATUS_OK(status);
      assert_true(fabs(s.lr - rows[i].lr) < 1e-12);
    }
    calx_trainer_free(t);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- devices ----------------------------------------------------------------

static void test_accelerator(void **state)
{
  (void)state;
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step);
  calx_dataset *data = boring_dataset(2);
  calx_loader *loader = calx_loader_new(data);
  static const struct {
    const char *accelerator;
    int tpu_cores;
    const char *text;
  } rows[] = {
    { NULL, 1, "No TPU devices were found." },
    { "tpu", 0,
      "`accelerator='tpu'` can not run on your system since the "
      "accelerator is not available. The following accelerator(s) is "
      "available and can be passed into `accelerator` argument of "
      "`Trainer`: ['cpu']." },
    { "gpu", 0, "`accelerator='cuda'` can not run" },
    { "cpu", 0, NULL },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calx_trainer *t =
        calx_trainer_new(.accelerator = rows[i].accelerator, .devices = 1,
                         .tpu_cores = rows[i].tpu_cores, .max_epochs = 1,
                         BORING_ALONE);
    calx_status *status =
        calx_trainer_fit(t, &module, .train_dataloader = loader);
    if (rows[i].text == NULL) {
      CHECK_STATUS_OK(status);
    } else {
      CHECK_STATUS(CALX_FAILED_PRECONDITION, status, rows[i].text);
    }
    calx_trainer_free(t);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_B1),       SUPPORT_TEST(test_row_B2),
    SUPPORT_TEST(test_row_B5_B6_B7), SUPPORT_TEST(test_row_B8),
    SUPPORT_TEST(test_row_B9_B10),   SUPPORT_TEST(test_row_B11),
    SUPPORT_TEST(test_row_B12_B13),  SUPPORT_TEST(test_row_B14_B15),
    SUPPORT_TEST(test_row_B17),      SUPPORT_TEST(test_row_B25),
    SUPPORT_TEST(test_accelerator),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
