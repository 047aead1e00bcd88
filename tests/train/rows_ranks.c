// The trainer on several ranks, by row of Lightning's acceptance list: what
// ranks exchange, what each of them reads, and what comes back.
#include "boring.h"
#include "saving.h"

enum { RANKS = 8 };

#define MODULE(...)                                                \
  CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),               \
                        .configure_model = boring_model,           \
                        .configure_optimizers = boring_optimizers, \
                        .training_step = boring_step, __VA_ARGS__)
#define TRAINER(...) \
  calx_trainer_new(.max_epochs = 1, .barebones = true, __VA_ARGS__)

// A fit of a batch for each rank, for what a hook of it does.
static void fit_once(const calx_lightning_module *m, int devices)
{
  calx_dataset *data = boring_dataset(devices);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = TRAINER(.devices = devices);
  CHECK_STATUS_OK(calx_trainer_fit(t, m, .train_dataloader = loader));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static calx_tensor *number(double value)
{
  return calx_full(CALX_SHAPE(1), value);
}

// ---- row C1 -----------------------------------------------------------------

typedef struct weights {
  float of[RANKS][WEIGHTS];
} weights;

static void keep_weights(calx_trainer *t, void *self)
{
  (void)self;
  weights *w = calx_trainer_user(t);
  CHECK_STATUS_OK(
      calx_tensor_read(calx_module_find(calx_trainer_model(t), "layer.weight"),
                       w->of[calx_global_ordinal()], sizeof w->of[0]));
}

static void adam(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(t, calx_adam(((boring *)self)->root, .lr = 0.01));
}

static void train_f32(bool adams, int devices, weights *out)
{
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = out,
                            .configure_model = boring_model,
                            .configure_optimizers =
                                adams ? adam : boring_optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_train_end = keep_weights });
  calx_dataset *data = boring_dataset(128);
  calx_loader *loader = calx_loader_new(data, .batch_size = 32 / devices);
  calx_trainer *t = calx_trainer_new(.max_epochs = 5, .barebones = true,
                                     .devices = devices, .seed = 7);
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader));
  assert_int_equal(calx_trainer_global_step(t), 20);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
}

// In f32; train_parity has the rest. All ranks have the same bits.
static void test_row_C1(void **state)
{
  (void)state;
  static weights one, many;
  for (int k = 0; k < 2; k++) {
    train_f32(k == 1, 1, &one);
    train_f32(k == 1, RANKS, &many);
    for (int i = 0; i < WEIGHTS; i++) {
      assert_true(fabsf(many.of[0][i] - one.of[0][i]) <= 1e-6f);
    }
    for (int r = 1; r < RANKS; r++) {
      assert_memory_equal(many.of[r], many.of[0], sizeof many.of[0]);
    }
  }
}

// ---- rows C4, C5, C6 --------------------------------------------------------

static void reduce_ones(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  static const struct {
    calx_reduce_type type;
    double wanted;
  } rows[] = { { CALX_REDUCE_SUM, RANKS },
               { CALX_REDUCE_MIN, 1 },
               { CALX_REDUCE_MAX, 1 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CHECK_CLOSE(calx_item(calx_all_reduce(number(1), rows[i].type)),
                rows[i].wanted, 0);
  }
  CHECK_CLOSE(calx_item(calx_all_reduce(number(1), CALX_REDUCE_SUM,
                                        .scale = 1.0 / RANKS)),
              1, 0);
}

static calx_tensor *log_median(calx_trainer *t, void *self,
                               const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_trainer_log(t, "x", number(1), .reduce_fx = "median", .sync_dist = true);
  return boring_loss(self, batch);
}

static void test_row_C4(void **state)
{
  (void)state;
  const calx_lightning_module m =
      MODULE(.hooks = { .on_train_start = reduce_ones });
  fit_once(&m, RANKS);
  calx_lightning_module other = MODULE(.user = NULL);
  other.training_step = log_median;
  calx_dataset *data = boring_dataset(RANKS);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = TRAINER(.devices = RANKS);
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_trainer_fit(t, &other, .train_dataloader = loader),
               "reduce_fx={min,max,mean,sum}", "median");
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// Texts of different sizes, from the first rank and from another.
static void send_texts(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  static const char *const texts[] = { "ver_0.5", "logger_name", "", "x" };
  const int rank = calx_global_ordinal();
  char *all[RANKS];
  size_t sizes[RANKS];
  for (int k = 0; k < 4; k++) {
    char text[64];
    snprintf(text, sizeof text, "%s %.*s%d", texts[k], rank, "--------", rank);
    CHECK_STATUS_OK(
        calx_rendezvous("texts", text, strlen(text) + 1, all, sizes));
    for (int r = 0; r < RANKS; r++) {
      snprintf(text, sizeof text, "%s %.*s%d", texts[k], r, "--------", r);
      assert_string_equal(all[r], text);
      assert_int_equal(sizes[r], strlen(text) + 1);
      calx_string_free(all[r]);
    }
  }
  calx_tensor *x = number(rank);
  calx_collective_broadcast(&x, 1, 3);
  CHECK_CLOSE(calx_item(x), 3, 0);
}

static void test_row_C5(void **state)
{
  (void)state;
  const calx_lightning_module m =
      MODULE(.hooks = { .on_train_start = send_texts });
  fit_once(&m, RANKS);
}

// The gradient of a gathered tensor is the sum of the ranks' parts of it.
static void gather(calx_trainer *t, void *self)
{
  (void)t, (void)self;
  const int rank = calx_global_ordinal();
  calx_tensor *scalar = calx_sum(number(rank));
  calx_tensor *all = calx_all_gather(scalar, 0);
  assert_int_equal(calx_tensor_rank(all), 1);
  CHECK_VALUES(all, 0, 0, 1, 2, 3, 4, 5, 6, 7);
  calx_tensor *x = calx_full(CALX_SHAPE(1, 2), rank);
  calx_requires_grad(x, true);
  all = calx_all_gather(x, 0);
  assert_int_equal(calx_tensor_shape(all).values[0], RANKS);
  assert_int_equal(calx_tensor_shape(all).values[1], 2);
  calx_backward(calx_sum(calx_square(all)));
  CHECK_VALUES(calx_grad(x), 0, 16 * rank, 16 * rank);
}

static void test_row_C6(void **state)
{
  (void)state;
  const calx_lightning_module m = MODULE(.hooks = { .on_train_start = gather });
  fit_once(&m, RANKS);
}

// ---- row C7 -----------------------------------------------------------------

static calx_module *model_by_rank(calx_trainer *t, void *self)
{
  calx_manual_seed(100 + (uint64_t)calx_global_ordinal());
  return boring_model(t, self);
}

static void test_row_C7(void **state)
{
  (void)state;
  static weights w;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &w,
                            .configure_model = model_by_rank,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .validation_step = boring_step,
                            .test_step = boring_step,
                            .hooks = { .on_train_start = keep_weights,
                                       .on_validation_start = keep_weights,
                                       .on_test_start = keep_weights });
  calx_dataset *data = boring_dataset(RANKS);
  calx_loader *loader = calx_loader_new(data);
  for (int k = 0; k < 3; k++) {
    memset(&w, 0, sizeof w);
    calx_trainer *t = TRAINER(.devices = RANKS);
    CHECK_STATUS_OK(k == 0 ? calx_trainer_fit(t, &m, .train_dataloader = loader)
                    : k == 1
                        ? calx_trainer_validate(t, &m, .val_dataloader = loader,
                                                .not_verbose = true)
                        : calx_trainer_test(t, &m, .test_dataloader = loader,
                                            .not_verbose = true));
    for (int r = 1; r < RANKS; r++) {
      assert_memory_equal(w.of[r], w.of[0], sizeof w.of[0]);
    }
    assert_true(w.of[0][0] != 0);
    calx_trainer_free(t);
  }
  calx_loader_free(loader);
  calx_dataset_free(data);
}

// ---- row C16 ----------------------------------------------------------------

static weights at_end;

static void keep_at_end(calx_trainer *t, void *self)
{
  (void)self;
  CHECK_STATUS_OK(
      calx_tensor_read(calx_module_find(calx_trainer_model(t), "layer.weight"),
                       at_end.of[calx_global_ordinal()], sizeof at_end.of[0]));
}

// What the caller has: the weights of the last step, the newest value, the best
// file and its value.
static void check_returned(calx_trainer *t, const calx_callback *c)
{
  assert_string_equal(calx_model_checkpoint_best_model_path(c),
                      saving_path("checkpoints/epoch=1.ckpt"));
  assert_true(calx_model_checkpoint_best_model_score(c) == 1);
  assert_true(calx_trainer_callback_metric(t, "loss") == 2);
  calx_scope *scope = calx_scope_begin();
  boring b;
  float w[WEIGHTS];
  calx_module *model = boring_model(NULL, &b);
  CHECK_STATUS_OK(calx_trainer_load_weights(t, model));
  CHECK_STATUS_OK(
      calx_tensor_read(calx_module_find(model, "layer.weight"), w, sizeof w));
  CHECK_STATUS_OK(calx_scope_end(scope));
  calx_module_free(model);
  assert_memory_equal(w, at_end.of[0], sizeof w);
}

static calx_tensor *log_test(calx_trainer *t, void *self,
                             const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  calx_trainer_log(t, "test_loss", loss, .sync_dist = true);
  return loss;
}

static void test_row_C16(void **state)
{
  (void)state;
  saving s = { VALUES(3, 1, 2) };
  calx_lightning_module m = saving_module(&s);
  m.hooks.on_train_end = keep_at_end;
  m.test_step = log_test;
  calx_callback *c =
      calx_model_checkpoint(.monitor = "loss", .filename = "{epoch}");
  calx_trainer *t =
      calx_trainer_new(.devices = RANKS, .max_epochs = 3,
                       .no_progress_bar = true, .no_model_summary = true,
                       .num_sanity_val_steps = 0,
                       .default_root_dir = saving_path(""), .no_logger = true,
                       .callbacks = &c, .n_callbacks = 1);
  calx_dataset *data = boring_dataset(2 * RANKS);
  calx_loader *loader = calx_loader_new(data);
  CHECK_STATUS_OK(calx_trainer_fit(t, &m, .train_dataloader = loader,
                                   .val_dataloader = loader));
  check_returned(t, c);
  CHECK_STATUS_OK(
      calx_trainer_test(t, &m, .test_dataloader = loader, .not_verbose = true));
  assert_true(calx_trainer_callback_metric(t, "test_loss") > 0);
  calx_trainer_free(t);
  calx_callback_free(c);
  calx_loader_free(loader);
  calx_dataset_free(data);
}

static int begin(void **state)
{
  setenv("CPU_NUM_DEVICES", "8", 1);
  return support_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_C1), SUPPORT_TEST(test_row_C4),
    SUPPORT_TEST(test_row_C5), SUPPORT_TEST(test_row_C6),
    SUPPORT_TEST(test_row_C7), SAVING_TEST(test_row_C16),
  };
  return cmocka_run_group_tests(tests, begin, NULL);
}
