// The loop, by row of Lightning's acceptance list: hooks of runs that go on,
// when it validates, what validation and the sanity check leave alone.
#include <unistd.h>

#include "boring.h"
#include "saving.h"

#define MODULE(...)                                                \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),               \
                        .configure_model = boring_model,           \
                        .configure_optimizers = boring_optimizers, \
                        .training_step = boring_step,              \
                        .validation_step = boring_step,            \
                        .test_step = boring_step, __VA_ARGS__)
#define TRAINER(...) \
  calx_trainer_new(.devices = 1, .barebones = true, __VA_ARGS__)

static calx_status *fit_from(const calx_lightning_module *m, calx_trainer *t,
                             int64_t samples, bool shuffles,
                             const char *ckpt_path)
{
  calx_dataset *data = boring_dataset(samples);
  calx_loader *loader = calx_loader_new(data, .shuffle = shuffles);
  calx_status *status =
      calx_trainer_fit(t, m, .train_dataloader = loader,
                       .val_dataloader = loader, .ckpt_path = ckpt_path);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

static void fit(const calx_lightning_module *m, calx_trainer *t,
                int64_t samples)
{
  CHECK_STATUS_OK(fit_from(m, t, samples, false, NULL));
}

// ---- what is called ---------------------------------------------------------

static char order[4096];

static void note(const char *what)
{
  const size_t at = strlen(order);
  snprintf(order + at, sizeof order - at, "%s ", what);
}

#define NOTED(name)                             \
  static void name(calx_trainer *t, void *self) \
  {                                             \
    (void)t, (void)self;                        \
    note(#name);                                \
  }
#define NOTED_BATCH(name)                                                \
  static void name(calx_trainer *t, void *self, const calx_batch *batch, \
                   int64_t i)                                            \
  {                                                                      \
    (void)t, (void)self, (void)batch;                                    \
    char text[64];                                                       \
    snprintf(text, sizeof text, "%s(%lld)", #name, (long long)i);        \
    note(text);                                                          \
  }
#define EACH(D, D_BATCH)             \
  D(setup)                           \
  D(on_fit_start)                    \
  D(on_train_start)                  \
  D(on_train_epoch_start)            \
  D_BATCH(on_train_batch_start)      \
  D_BATCH(on_train_batch_end)        \
  D(on_train_epoch_end)              \
  D(on_train_end)                    \
  D(on_validation_model_eval)        \
  D(on_validation_start)             \
  D(on_validation_epoch_start)       \
  D_BATCH(on_validation_batch_start) \
  D_BATCH(on_validation_batch_end)   \
  D(on_validation_epoch_end)         \
  D(on_validation_end)               \
  D(on_validation_model_train)       \
  D(on_test_model_eval)              \
  D(on_test_start)                   \
  D(on_test_epoch_start)             \
  D_BATCH(on_test_batch_start)       \
  D_BATCH(on_test_batch_end)         \
  D(on_test_epoch_end)               \
  D(on_test_end)                     \
  D(on_test_model_train)             \
  D(on_fit_end)                      \
  D(teardown)
EACH(NOTED, NOTED_BATCH)
#define FIELD(name) .name = name,

// The hooks of an evaluation, without batches too. Those of predict are
// train_predict's.
static void test_row_B2(void **state)
{
  (void)state;
  const calx_lightning_module m = MODULE(.hooks = { EACH(FIELD, FIELD) });
#define PASS(x)                                         \
  "setup on_" x "_model_eval on_" x "_start on_" x      \
  "_epoch_start "                                       \
  "on_" x "_batch_start(0) on_" x "_batch_end(0) on_" x \
  "_epoch_end "                                         \
  "on_" x "_end on_" x "_model_train teardown "
  static const char *const wanted[] = { PASS("validation"), PASS("test") };
  calx_dataset *data = boring_dataset(1);
  calx_loader *loader = calx_loader_new(data);
  for (int i = 0; i < 4; i++) {
    const bool none = i >= 2;
    calx_trainer *t = TRAINER(.limit_val_batches = none ? 0 : CALX_DEFAULT,
                              .limit_test_batches = none ? 0 : CALX_DEFAULT);
    order[0] = '\0';
    CHECK_STATUS_OK(i % 2 == 0
                        ? calx_trainer_validate(t, &m, .val_dataloader = loader,
                                                .not_verbose = true)
                        : calx_trainer_test(t, &m, .test_dataloader = loader,
                                            .not_verbose = true));
    assert_string_equal(order, none ? "setup teardown " : wanted[i % 2]);
    calx_trainer_free(t);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- row B3 -----------------------------------------------------------------

static void module_loads(calx_trainer *t, void *self, calx_value *checkpoint)
{
  (void)t, (void)self, (void)checkpoint;
  note("on_load_checkpoint");
}

static void callback_loads(calx_trainer *t, void *self, calx_value *checkpoint)
{
  (void)t, (void)self, (void)checkpoint;
  note("Callback.on_load_checkpoint");
}

static void put_state(calx_trainer *t, void *self, calx_value *state)
{
  (void)t, (void)self;
  CHECK_STATUS_OK(calx_value_set(state, "x", calx_value_int(1)));
}

static void take_state(calx_trainer *t, void *self, const calx_value *state)
{
  (void)t, (void)self;
  assert_int_equal(calx_value_as_int(calx_value_get(state, "x")), 1);
  note("Callback.load_state_dict");
}

static void noted_optimizers(calx_trainer *t, void *self)
{
  note("configure_optimizers");
  boring_optimizers(t, self);
}

// 2 batches an epoch: step 2 is an epoch's end, step 1 is inside of one.
static void save_each(calx_trainer *t, void *self, const calx_batch *batch,
                      int64_t i)
{
  (void)self, (void)batch, (void)i;
  char name[32];
  snprintf(name, sizeof name, "step=%d.ckpt", (int)calx_trainer_global_step(t));
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, saving_path(name)));
}

static void test_row_B3(void **state)
{
  (void)state;
#define LOADED                                                  \
  "setup on_load_checkpoint Callback.on_load_checkpoint "       \
  "Callback.load_state_dict configure_optimizers on_fit_start " \
  "on_train_start "
  static const char *const wanted[] = {
    LOADED
    "on_train_batch_start(1) on_train_batch_end(1) "
    "on_train_epoch_end on_train_end on_fit_end teardown ",
    LOADED
    "on_train_epoch_start on_train_batch_start(0) "
    "on_train_batch_end(0) on_train_batch_start(1) "
    "on_train_batch_end(1) on_train_epoch_end on_train_end on_fit_end "
    "teardown "
  };
  calx_lightning_module m =
      MODULE(.hooks = { .on_train_batch_end = save_each });
  m.validation_step = NULL;
  for (int k = 0; k < 3; k++) {
    calx_callback *c =
        calx_callback_new(.state_key = "Noted", .state_dict = put_state,
                          .load_state_dict = take_state,
                          .hooks = { .on_load_checkpoint = callback_loads });
    calx_trainer *t =
        calx_trainer_new(.devices = 1, .max_epochs = k == 2 ? 2 : 1,
                         BORING_ALONE, .no_model_summary = true,
                         .callbacks = &c, .n_callbacks = 1);
    char name[32];
    snprintf(name, sizeof name, "step=%d.ckpt", k);
    order[0] = '\0';
    CHECK_STATUS_OK(
        fit_from(&m, t, 2, false, k > 0 ? saving_path(name) : NULL));
    if (k > 0) assert_string_equal(order, wanted[k - 1]);
    calx_trainer_free(t);
    calx_callback_free(c);
    m.configure_optimizers = noted_optimizers;
    m.hooks = (calx_trainer_hooks){ EACH(FIELD, FIELD).on_load_checkpoint =
                                        module_loads };
  }
}

// ---- rows B16, B18 ----------------------------------------------------------

typedef struct seen {
  double samples[64];
  int n;
  int64_t validated[16];  // the batches that were over, or an epoch's step
  int n_validated;
} seen;

static void note_sample(calx_trainer *t, void *self, const calx_batch *batch,
                        int64_t i)
{
  (void)self, (void)i;
  seen *s = calx_trainer_user(t);
  s->samples[s->n++] =
      calx_item(calx_select(calx_select(batch->data, 0, 0), 0, 0));
}

static void note_validation(calx_trainer *t, void *self)
{
  (void)self;
  seen *s = calx_trainer_user(t);
  if (!calx_trainer_sanity_checking(t)) s->validated[s->n_validated++] = s->n;
}

static void test_row_B16(void **state)
{
  (void)state;
  for (int64_t k = 1; k <= 2; k++) {
    seen s = { .n = 0 };
    const calx_lightning_module m =
        MODULE(.user = &s, .hooks = { .on_train_batch_end = note_sample,
                                      .on_validation_start = note_validation });
    calx_trainer *t =
        TRAINER(.max_epochs = 3, .check_val_every_n_epoch = -1,
                .val_check_interval = 3, .accumulate_grad_batches = k);
    fit(&m, t, 4);
    assert_int_equal(s.n_validated, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(s.validated[i], 3 * (i + 1));
    assert_int_equal(calx_trainer_global_step(t), k == 1 ? 12 : 6);
    calx_trainer_free(t);
  }
}

static calx_tensor *draw(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)t, (void)i;
  return calx_mul(boring_loss(self, batch), calx_rand(CALX_SHAPE(1)));
}

// What the sanity check draws changes neither the samples nor the draws.
static void test_row_B18(void **state)
{
  (void)state;
  seen s[2] = { { .n = 0 }, { .n = 0 } };
  double loss[2];
  for (int k = 0; k < 2; k++) {
    calx_lightning_module m =
        MODULE(.user = &s[k], .hooks = { .on_train_batch_start = note_sample });
    m.training_step = m.validation_step = draw;
    calx_trainer *t =
        calx_trainer_new(.devices = 1, .max_epochs = 2, .seed = 123,
                         BORING_ALONE, .no_model_summary = true,
                         .num_sanity_val_steps = k == 0 ? 0 : 2);
    CHECK_STATUS_OK(fit_from(&m, t, 8, true, NULL));
    calx_scope *scope = calx_scope_begin();
    boring b;
    calx_module *model = boring_model(NULL, &b);
    CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
    loss[k] = calx_item(calx_sum(calx_module_find(model, "layer.weight")));
    CHECK_STATUS_OK(calx_scope_end(scope));
    calx_module_free(model);
    calx_trainer_free(t);
  }
  assert_int_equal(s[0].n, 16);
  assert_memory_equal(s[0].samples, s[1].samples, sizeof s[0].samples);
  assert_true(loss[0] == loss[1]);
}

// ---- row B23 ----------------------------------------------------------------

typedef struct gradients {
  bool are_there[8];
  int n;
} gradients;

static void note_gradient(calx_trainer *t, void *self)
{
  (void)self;
  gradients *g = calx_trainer_user(t);
  calx_tensor *weight = calx_module_find(calx_trainer_model(t), "layer.weight");
  g->are_there[g->n++] = calx_grad(weight) != NULL;
}

// 6 batches of which 3 are a step, validation after each second: in the middle
// of an accumulation gradients stay.
static void test_row_B23(void **state)
{
  (void)state;
  gradients g = { .n = 0 };
  const calx_lightning_module m =
      MODULE(.user = &g, .hooks = { .on_validation_start = note_gradient });
  calx_trainer *t = TRAINER(.max_epochs = 1, .accumulate_grad_batches = 3,
                            .val_check_interval = 2);
  fit(&m, t, 6);
  assert_int_equal(g.n, 3);
  assert_true(g.are_there[0] && g.are_there[1] && !g.are_there[2]);
  assert_int_equal(calx_trainer_global_step(t), 2);
  calx_trainer_free(t);
}

// ---- row E12 ----------------------------------------------------------------

// A loader goes on after the batches that the checkpoint was taken after.
static void test_row_E12(void **state)
{
  (void)state;
  seen s = { .n = 0 };
  calx_lightning_module m =
      MODULE(.user = &s, .hooks = { .on_train_batch_start = note_sample,
                                    .on_train_batch_end = save_each });
  m.validation_step = NULL;
  calx_trainer *t = TRAINER(.max_steps = 2, .max_epochs = -1);
  fit(&m, t, 4);
  calx_trainer_free(t);
  t = TRAINER(.max_epochs = 1);
  CHECK_STATUS_OK(fit_from(&m, t, 4, false, saving_path("step=2.ckpt")));
  calx_trainer_free(t);
  assert_int_equal(s.n, 4);
  for (int i = 0; i < 4; i++) CHECK_CLOSE(s.samples[i], sin(i), 1e-6);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_B2),  SAVING_TEST(test_row_B3),
    SUPPORT_TEST(test_row_B16), SUPPORT_TEST(test_row_B18),
    SUPPORT_TEST(test_row_B23), SAVING_TEST(test_row_E12),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
