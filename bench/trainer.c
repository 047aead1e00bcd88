// bench/trainer: what the trainer adds to a step of a loop by hand.
//
// The same small model, loader and optimiser: by hand, by the trainer alone
// (barebones), and by the trainer with a value logged by the step and by the
// epoch, a CSV logger, the progress bar and checkpoints. Epochs in turn, of
// which the first is not counted; the medians of microseconds a step.
#include <stdio.h>
#include <stdlib.h>

#include "calx/calx.h"
#include "measure.h"

enum { FEATURES = 32, BATCH = 8 };

typedef struct net {
  calx_module *root;
} net;

typedef struct setup {
  long steps;
  bool logs;
  int64_t begin;
  bench_series *series;  // of the epochs after the first
} setup;

static calx_module *make(void)
{
  return calx_nn_linear(NULL, "", FEATURES, FEATURES);
}

static calx_tensor *loss_of(calx_module *root, const calx_batch *batch)
{
  return calx_mse_loss(calx_forward(root, batch->data), batch->target);
}

static calx_loader *make_loader(long steps)
{
  calx_scope *scope = calx_scope_begin();
  static float data[BATCH * FEATURES];
  calx_tensor *x =
      calx_host_tensor(data, CALX_F32, CALX_SHAPE(BATCH, FEATURES));
  calx_loader *loader = calx_sample_generator(x, x, steps);
  bench_need(calx_scope_end(scope));
  return loader;
}

// ---- by hand ----------------------------------------------------------------

static void by_hand(long steps, long epochs, bench_series *series)
{
  calx_module *root = make();
  calx_optimizer *opt = calx_sgd(root, .lr = 0.01, .momentum = 0.9);
  calx_loader *loader = make_loader(steps);
  for (long epoch = 0; epoch <= epochs; epoch++) {
    const int64_t begin = bench_now();
    calx_batch batch;
    while (calx_loader_next(loader, &batch)) {
      calx_scope *scope = calx_scope_begin();
      calx_optimizer_zero_grad(opt);
      calx_tensor *loss = loss_of(root, &batch);
      calx_backward(loss);
      calx_optimizer_step(opt);
      calx_sync(loss);
      bench_need(calx_scope_end(scope));
    }
    bench_need(calx_scope_take_error());
    bench_need(calx_device_wait(NULL));
    if (epoch == 0) continue;
    bench_add(series, (double)(bench_now() - begin) * 1e-3 / (double)steps);
  }
  calx_loader_free(loader);
  calx_optimizer_free(opt);
  calx_module_free(root);
}

// ---- by the trainer ---------------------------------------------------------

static calx_module *configure_model(calx_trainer *t, void *self)
{
  (void)t;
  return ((net *)self)->root = make();
}

static void configure_optimizers(calx_trainer *t, void *self)
{
  calx_trainer_add_optimizer(
      t, calx_sgd(((net *)self)->root, .lr = 0.01, .momentum = 0.9));
}

static calx_tensor *training_step(calx_trainer *t, void *self,
                                  const calx_batch *batch, int64_t i)
{
  (void)i;
  const setup *s = calx_trainer_user(t);
  calx_tensor *loss = loss_of(((net *)self)->root, batch);
  if (s->logs) {
    calx_trainer_log(t, "loss", loss, .on_epoch = 1, .prog_bar = true);
  }
  return loss;
}

static void begin_epoch(calx_trainer *t, void *self)
{
  (void)self;
  setup *s = calx_trainer_user(t);
  s->begin = bench_now();
}

static void end_epoch(calx_trainer *t, void *self)
{
  (void)self;
  setup *s = calx_trainer_user(t);
  bench_need(calx_device_wait(NULL));
  if (calx_trainer_current_epoch(t) == 0) return;
  bench_add(s->series,
            (double)(bench_now() - s->begin) * 1e-3 / (double)s->steps);
}

static void by_trainer(long steps, long epochs, bool logs, bench_series *series)
{
  setup s = { .steps = steps, .logs = logs, .series = series };
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(net), .user = &s,
                            .configure_model = configure_model,
                            .configure_optimizers = configure_optimizers,
                            .training_step = training_step,
                            .hooks = { .on_train_epoch_start = begin_epoch,
                                       .on_train_epoch_end = end_epoch });
  char folder[] = "/tmp/bench_trainer_XXXXXX";
  if (mkdtemp(folder) == NULL) abort();
  calx_logger *logger = calx_csv_logger(folder);
  calx_loader *loader = make_loader(steps);
  calx_trainer *t =
      calx_trainer_new(.devices = 1, .max_epochs = epochs + 1,
                       .barebones = !logs, .loggers = &logger,
                       .n_loggers = logs ? 1 : 0, .default_root_dir = folder);
  bench_need(calx_trainer_fit(t, &module, .train_dataloader = loader));
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_logger_free(logger);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) fprintf(stderr, "%s is left\n", folder);
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "steps", "epochs", "rounds", NULL };
  bench_check_options(argc, argv, names,
                      "trainer [--steps=N] [--epochs=N] [--rounds=N]");
  const long steps = bench_count(argc, argv, "steps", 2000, 1, 1000000);
  const long epochs = bench_count(argc, argv, "epochs", 5, 1, 1000);
  const long rounds = bench_count(argc, argv, "rounds", 3, 1, 1000);
  static bench_series hand, plain, logging;
  for (long i = 0; i < rounds; i++) {
    by_hand(steps, epochs, &hand);
    by_trainer(steps, epochs, false, &plain);
    by_trainer(steps, epochs, true, &logging);
  }
  const double base = bench_median(&hand);
  fprintf(stderr, "\n%-24s %8s %8s\n", "us a step", "median", "more");
  fprintf(stderr, "%-24s %8.1f\n", "by hand", base);
  fprintf(stderr, "%-24s %8.1f %8.1f\n", "trainer", bench_median(&plain),
          bench_median(&plain) - base);
  fprintf(stderr, "%-24s %8.1f %8.1f\n", "with all that is shown",
          bench_median(&logging), bench_median(&logging) - base);
  calx_shutdown();
  return 0;
}
