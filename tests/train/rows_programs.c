// What a run compiles, executes and reads: logged values, a bar, loggers,
// early stopping and checkpoints are part of the step's program. By row of
// Lightning's acceptance list.
#include <unistd.h>

#include "calx/debug.h"

#include "boring.h"
#include "said.h"

enum { SAMPLES = 26, BATCH = 4, BATCHES = 7, EPOCHS = 4 };

// ---- counts -----------------------------------------------------------------

typedef struct counts {
  int64_t compiled, executed, marked, read;
} counts;

static counts now(void)
{
  return (counts){ calx_counter_value("UncachedCompile"),
                   calx_counter_value("ExecuteComputation"),
                   calx_counter_value("MarkStep"),
                   calx_counter_value("aten::_local_scalar_dense") };
}

typedef struct plan {
  bool logs, grows;
  counts begun, after[EPOCHS * BATCHES];
  int n;
} plan;

static void count(calx_trainer *t, void *self, const calx_batch *batch,
                  int64_t i)
{
  (void)self, (void)batch, (void)i;
  plan *p = calx_trainer_user(t);
  if (p->n < EPOCHS * BATCHES) p->after[p->n++] = now();
}

static void log_values(calx_trainer *t, calx_tensor *loss, const char *prefix)
{
  static const char *const names[] = { "a", "b", "c" };
  static const char *const reductions[] = { "mean", "max", "sum" };
  const plan *p = calx_trainer_user(t);
  char name[32];
  for (int k = 0; k < 3 && p->logs; k++) {
    snprintf(name, sizeof name, "%s%s", prefix, names[k]);
    calx_trainer_log(t, name, loss, .on_step = 1, .on_epoch = 1,
                     .prog_bar = k == 0, .reduce_fx = reductions[k]);
  }
}

static calx_tensor *training_step(calx_trainer *t, void *self,
                                  const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  log_values(t, loss, "");
  return loss;
}

static calx_tensor *validation_step(calx_trainer *t, void *self,
                                    const calx_batch *batch, int64_t i)
{
  (void)i;
  calx_tensor *loss = boring_loss(self, batch);
  log_values(t, loss, "val_");
  return loss;
}

// With `grows` each batch of training has another number of rows.
static void grow(calx_trainer *t, void *self, calx_batch *batch)
{
  (void)self;
  const plan *p = calx_trainer_user(t);
  if (!p->grows) return;
  batch->data = calx_repeat(batch->data, CALX_SHAPE(p->n + 1, 1));
}

static calx_lightning_module module_of(plan *p)
{
  return (calx_lightning_module)
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = training_step,
                            .validation_step = validation_step,
                            .hooks = { .on_after_batch_transfer = grow,
                                       .on_train_batch_end = count });
}

// Frees the trainer. The last batch has two samples.
static void fit(plan *p, calx_trainer *t)
{
  const calx_lightning_module module = module_of(p);
  calx_dataset *data = boring_dataset(SAMPLES);
  calx_loader *loader = calx_loader_new(data, .batch_size = BATCH);
  p->begun = now();
  CHECK_STATUS_OK(calx_trainer_fit(t, &module, .train_dataloader = loader,
                                   .val_dataloader = loader));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();  // and its programs
}

// ---- rows -------------------------------------------------------------------

static void fit_with_all(plan *p)
{
  calx_logger *logger = calx_csv_logger(getenv("TMPDIR"));
  calx_callback *callbacks[] = {
    calx_early_stopping(.monitor = "val_a", .patience = 9),
    calx_model_checkpoint(.monitor = "val_a", .save_top_k = -1),
    calx_tqdm_progress_bar(.refresh_rate = 1),
  };
  fit(p, calx_trainer_new(.devices = 1, .max_epochs = EPOCHS,
                          .num_sanity_val_steps = 0, .loggers = &logger,
                          .n_loggers = 1, .log_every_n_steps = 1,
                          .callbacks = callbacks, .n_callbacks = 3,
                          .default_root_dir = getenv("TMPDIR")));
  for (int i = 0; i < 3; i++) calx_callback_free(callbacks[i]);
  calx_logger_free(logger);
}

// As many programs and executions as without all of it, and nothing is compiled
// after the first epoch and its validation. The last batch is one program more.
static void test_row_C2(void **state)
{
  (void)state;
  plan bare = { .logs = false }, all = { .logs = true };
  fit(&bare,
      calx_trainer_new(.devices = 1, .max_epochs = EPOCHS, .barebones = true));
  fit_with_all(&all);
  assert_int_equal(all.n, EPOCHS * BATCHES);
  for (int i = 0; i < EPOCHS * BATCHES; i++) {
    assert_int_equal(all.after[i].compiled - all.begun.compiled,
                     bare.after[i].compiled - bare.begun.compiled);
    assert_int_equal(all.after[i].executed - all.begun.executed,
                     bare.after[i].executed - bare.begun.executed);
  }
  const int64_t step = all.after[BATCHES - 2].compiled,
                last = all.after[BATCHES - 1].compiled,
                end = all.after[EPOCHS * BATCHES - 1].compiled;
  assert_int_equal(step - all.after[0].compiled, 0);
  assert_int_equal(last - step, 1);
  assert_int_equal(end - last, 2);  // validation's batches
  assert_int_equal(end - all.after[BATCHES].compiled, 0);
}

// Nothing is read in a step, and with a logger only what has been computed: no
// advice says that values are read too often. That a bar's value is at most two
// steps old is train_progress_bar's.
static void test_row_C3(void **state)
{
  (void)state;
  plan p = { .logs = true };
  fit(&p,
      calx_trainer_new(.devices = 1, .max_epochs = EPOCHS, .no_logger = true,
                       .num_sanity_val_steps = 0, .no_checkpointing = true));
  for (int i = 0; i < EPOCHS * BATCHES; i++) {
    if (i % BATCHES == 0) continue;
    assert_int_equal(p.after[i].read, p.after[i - 1].read);
  }
  calx_logger *logger = calx_csv_logger(getenv("TMPDIR"));
  said_begin();
  fit(&p, calx_trainer_new(.devices = 1, .max_epochs = EPOCHS,
                           .loggers = &logger, .n_loggers = 1,
                           .log_every_n_steps = 1, .no_checkpointing = true));
  said_end();
  calx_logger_free(logger);
  assert_int_equal(said_count("`max_epochs=4` reached"), 1);
  assert_int_equal(said_count("too frequent"), 0);
}

// One execution and one end of a step for each step of the optimiser.
static void test_row_C15(void **state)
{
  (void)state;
  plan p = { .logs = true };
  fit(&p,
      calx_trainer_new(.devices = 1, .max_epochs = EPOCHS, .no_logger = true,
                       .num_sanity_val_steps = 0, .no_checkpointing = true));
  for (int i = 0; i < EPOCHS * BATCHES; i++) {
    if (i % BATCHES == 0) continue;
    assert_int_equal(p.after[i].executed - p.after[i - 1].executed, 1);
    assert_int_equal(p.after[i].marked - p.after[i - 1].marked, 1);
  }
}

// ---- the strategy that debugs -----------------------------------------------

// What a debugged fit writes to standard error.
static const char *errors_of(calx_trainer *t, plan *p)
{
  static char text[1 << 16];
  char path[256];
  snprintf(path, sizeof path, "%s/errors-%d", getenv("TMPDIR"), (int)getpid());
  const int kept = dup(STDERR_FILENO);
  assert_non_null(freopen(path, "w", stderr));
  fit(p, t);
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  unlink(path);
  return text;
}

// The report; and each program after the first two has a line with what
// changed.
static void test_row_C13(void **state)
{
  (void)state;
  plan p = { .grows = true };
  said_begin();
  const char *text = errors_of(
      calx_trainer_new(.devices = 1, .strategy = "xla_debug", .max_epochs = 1,
                       .limit_val_batches = 0, .no_progress_bar = true,
                       .no_logger = true, .no_checkpointing = true),
      &p);
  said_end();
  assert_int_equal(said_count("recompile at "), BATCHES - 2);
  assert_int_equal(said_count("f32[1,5,128], is f32[1,6,128]"), 1);
  static const char *const wanted[] = { "Metric: CompileTime",
                                        "Metric: ExecuteTime",
                                        "Metric: TransferToDeviceTime",
                                        "Counter: UncachedCompile" };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    assert_non_null(strstr(text, wanted[i]));
  }
}

int main(void)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_row_C2),
    SUPPORT_TEST(test_row_C3),
    SUPPORT_TEST(test_row_C13),
    SUPPORT_TEST(test_row_C15),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
