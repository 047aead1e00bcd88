// Runs that go on from a checkpoint: at an epoch's end and in the middle of
// one, bit for bit; with another number of ranks; what is refused. Each run is
// a process of its own, as it is after a crash.
#include <sys/wait.h>
#include <unistd.h>

#include "boring.h"

enum {
  SAMPLES = 32,
  BATCH = 8,  // over all ranks
  EPOCHS = 4,
  STEPS = EPOCHS * SAMPLES / BATCH,
  WEIGHTS = 2 * BORING_FEATURES
};

static char folder[] = "/tmp/calx-resume-XXXXXX";

// What a run is to do, and what it found.
typedef struct plan {
  int ranks;
  int64_t every;     // steps from one checkpoint to the next; 0: none
  const char *from;  // the checkpoint to begin with; NULL: none
  int64_t epochs;
  bool narrow;           // f32 with dropout; else f64 without
  int64_t batch, limit;  // of the loader and the run; 0: BATCH, none
} plan;

typedef struct found {
  double weights[WEIGHTS];
  int64_t first_epoch, first_step, epoch_starts, epoch, step;
} found;

static found result;  // of the first rank

static calx_tensor *forward(void *self, calx_tensor *x)
{
  return calx_forward(((boring *)self)->layer, calx_dropout(x, .p = 0.5));
}

static calx_module *model(calx_trainer *t, void *self)
{
  const plan *p = t != NULL ? calx_trainer_user(t) : NULL;
  if (p == NULL || !p->narrow) return boring_model(t, self);
  boring *b = self;
  b->root = calx_module_new("BoringModel", forward, b);
  b->layer = calx_nn_linear(b->root, "layer", BORING_FEATURES, 2);
  return b->root;
}

static void optimizers(calx_trainer *t, void *self)
{
  calx_optimizer *opt =
      calx_sgd(((boring *)self)->root, .lr = 0.1, .momentum = 0.9);
  calx_trainer_add_optimizer(t, opt, .lr_scheduler = calx_step_lr(opt, 1));
}

static void save(calx_trainer *t, void *self, const calx_batch *batch,
                 int64_t i)
{
  (void)self, (void)batch, (void)i;
  const plan *p = calx_trainer_user(t);
  const int64_t step = calx_trainer_global_step(t);
  if (p->every == 0 || step % p->every != 0) return;
  char path[128];
  snprintf(path, sizeof path, "%s/step=%lld.ckpt", folder, (long long)step);
  CHECK_STATUS_OK(calx_trainer_save_checkpoint(t, path));
}

static void on_train_start(calx_trainer *t, void *self)
{
  (void)self;
  if (!calx_trainer_is_global_zero(t)) return;
  result.first_epoch = calx_trainer_current_epoch(t);
  result.first_step = calx_trainer_global_step(t);
}

static void on_train_epoch_start(calx_trainer *t, void *self)
{
  (void)self;
  result.epoch_starts += calx_trainer_is_global_zero(t);
}

static calx_status *train(const plan *p)
{
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = (void *)p,
                            .configure_model = model,
                            .configure_optimizers = optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_train_start = on_train_start,
                                       .on_train_epoch_start =
                                           on_train_epoch_start,
                                       .on_train_batch_end = save });
  calx_dataset *data = boring_dataset(SAMPLES);
  const int64_t batch = p->batch > 0 ? p->batch : BATCH;
  calx_loader *loader = calx_loader_new(data, .batch_size = batch / p->ranks,
                                        .shuffle = true, .seed = 3);
  calx_trainer *t =
      calx_trainer_new(.max_epochs = p->epochs, .seed = 11, .barebones = true,
                       .precision = p->narrow ? "32" : "64",
                       .limit_train_batches =
                           p->limit > 0 ? (double)p->limit : (double)INFINITY);
  calx_status *status =
      calx_trainer_fit(t, &m, .train_dataloader = loader, .ckpt_path = p->from);
  result.epoch = calx_trainer_current_epoch(t);
  result.step = calx_trainer_global_step(t);
  boring b;
  calx_module *copy = boring_model(NULL, &b);
  calx_module_to(copy, CALX_F64);
  if (status == NULL) status = calx_trainer_load_weights(t, copy);
  if (status == NULL) {
    status = calx_tensor_read(calx_module_find(copy, "layer.weight"),
                              result.weights, sizeof result.weights);
  }
  calx_module_free(copy);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
  return status;
}

static found run(plan p)
{
  int ends[2], state;
  char devices[16];
  found out;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    snprintf(devices, sizeof devices, "%d", p.ranks);
    setenv("CPU_NUM_DEVICES", devices, 1);
    calx_status *status = train(&p);
    calx_status_print(stderr, status);
    const ssize_t n = sizeof result;
    _exit(!(status == NULL && write(ends[1], &result, sizeof result) == n));
  }
  close(ends[1]);
  assert_int_equal(read(ends[0], &out, sizeof out), sizeof out);
  close(ends[0]);
  assert_int_equal(waitpid(pid, &state, 0), pid);
  assert_int_equal(state, 0);
  return out;
}

static const char *step_path(int64_t step, char path[128])
{
  snprintf(path, 128, "%s/step=%lld.ckpt", folder, (long long)step);
  return path;
}

// ---- the same bits ----------------------------------------------------------

// Rows B3, E10 and E12: from each checkpoint the run ends with the same bits.
static void test_row_E10(void **state)
{
  (void)state;
  char path[128];
  static const int ranks[] = { 1, 4 };
  for (int i = 0; i < 4; i++) {
    const bool narrow = i >= 2;
    const plan whole = {
      .ranks = ranks[i % 2], .every = 2, .epochs = EPOCHS, .narrow = narrow
    };
    const found all = run(whole);
    assert_int_equal(all.step, STEPS);
    assert_int_equal(all.epoch_starts, EPOCHS);
    for (int64_t step = 2; step <= STEPS; step += 2) {
      plan rest = whole;
      rest.every = 0;
      rest.from = step_path(step, path);
      const found f = run(rest);
      const int64_t per_epoch = SAMPLES / BATCH;
      assert_int_equal(f.first_step, step);
      assert_int_equal(f.first_epoch, step / per_epoch);
      // The epoch that was begun is not begun again.
      assert_int_equal(f.epoch_starts,
                       EPOCHS - (step + per_epoch - 1) / per_epoch);
      assert_int_equal(f.step, STEPS);
      assert_int_equal(f.epoch, EPOCHS);
      assert_memory_equal(f.weights, all.weights, sizeof f.weights);
    }
  }
}

// Row E11.
static void test_row_E11(void **state)
{
  (void)state;
  char path[128];
  const plan two = { .ranks = 1, .every = 1, .epochs = 2 };
  assert_int_equal(run(two).step, 8);
  const plan four = { .ranks = 1, .epochs = 4, .from = step_path(8, path) };
  const found f = run(four);
  assert_int_equal(f.first_epoch, 2);
  assert_int_equal(f.first_step, 8);
  assert_int_equal(f.epoch, 4);
  assert_int_equal(f.step, 16);
}

// A run of four ranks goes on with two, one and eight.
static void test_elastic(void **state)
{
  (void)state;
  char path[128];
  const plan whole = { .ranks = 4, .every = 2, .epochs = EPOCHS };
  const found all = run(whole);
  static const int ranks[] = { 1, 2, 8 };
  for (int i = 0; i < 3; i++) {
    for (int64_t step = 2; step < STEPS; step += 4) {
      const plan rest = { .ranks = ranks[i],
                          .epochs = EPOCHS,
                          .from = step_path(step, path) };
      const found f = run(rest);
      assert_int_equal(f.step, STEPS);
      for (int k = 0; k < WEIGHTS; k++) {
        assert_true(fabs(f.weights[k] - all.weights[k]) <= 1e-6);
      }
    }
  }
}

// A run goes on with batches of another size after the same sample, and with a
// lower limit does no more of the epoch than that. An epoch has 32 samples.
static void test_other_batches(void **state)
{
  (void)state;
  char path[128];
  static const struct {
    int64_t batch, limit, steps, epoch_starts;
  } rows[] = { { 4, 0, 4 + 8, 1 },  // after 2 batches of 8
               { 16, 0, 1 + 2, 1 }, { 32, 0, 1 + 1, 1 }, { 8, 3, 1 + 3, 1 },
               { 8, 2, 0 + 2, 1 },  { 8, 1, 0 + 1, 1 } };
  run((plan){ .ranks = 1, .every = 2, .epochs = 1 });
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const found f = run((plan){ .ranks = 1,
                                .epochs = 2,
                                .from = step_path(2, path),
                                .batch = rows[i].batch,
                                .limit = rows[i].limit });
    assert_int_equal(f.step - 2, rows[i].steps);
    assert_int_equal(f.epoch_starts, rows[i].epoch_starts);
    assert_int_equal(f.epoch, 2);
  }
}

// ---- what is refused --------------------------------------------------------

static void check_refused(plan p, calx_code code, const char *text)
{
  calx_status *status = train(&p);
  CHECK_STATUS(code, status, text);
}

// Row E13.
static void test_row_E13(void **state)
{
  (void)state;
  char path[128];
  run((plan){ .ranks = 1, .every = 4, .epochs = 2 });
  check_refused(
      (plan){ .ranks = 1, .epochs = 1, .from = step_path(8, path) },
      CALX_INVALID_ARGUMENT,
      "You restored a checkpoint with current_epoch=2, but you have set "
      "Trainer(max_epochs=1).");
  check_refused((plan){ .ranks = 1, .epochs = 1, .from = "/no/such.ckpt" },
                CALX_NOT_FOUND, "/no/such.ckpt");
}

static int begin(void **state)
{
  (void)state;
  setenv("CPU_NUM_DEVICES", "1", 1);
  return mkdtemp(folder) == NULL;
}

static int end(void **state)
{
  (void)state;
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_row_E10), cmocka_unit_test(test_row_E11),
    cmocka_unit_test(test_elastic), cmocka_unit_test(test_other_batches),
    cmocka_unit_test(test_row_E13),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
