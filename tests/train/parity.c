// Eight devices with batches of 4 are one device with batches of 32: as threads
// and as processes, with accumulation, clipping and two optimisers. Each run is
// a process of its own, since ranks start before any device is used.
#include <sys/wait.h>
#include <unistd.h>

#include "boring.h"

enum {
  SAMPLES = 128,
  EPOCHS = 5,
  BATCH = 32,
  WEIGHTS = 2 * BORING_FEATURES + 2 * 2
};

// Two layers, since two optimisers have a part of the model each.
typedef struct net {
  calx_module *root, *body, *head;
} net;

static calx_tensor *forward(void *self, calx_tensor *x)
{
  net *n = self;
  return calx_forward(n->head, calx_tanh(calx_forward(n->body, x)));
}

static calx_module *model(calx_trainer *t, void *self)
{
  (void)t;
  net *n = self;
  n->root = calx_module_new("Net", forward, n);
  n->body = calx_nn_linear(n->root, "body", BORING_FEATURES, 2);
  n->head = calx_nn_linear(n->root, "head", 2, 2);
  return n->root;
}

typedef struct plan {
  const char *name;
  bool adam, manual;
  int64_t accumulate;
  double clip;
} plan;

static void optimizers(calx_trainer *t, void *self)
{
  const plan *p = calx_trainer_user(t);
  net *n = self;
  if (p->manual) {
    calx_trainer_add_optimizer(t, calx_sgd(n->body, .lr = 0.1));
    calx_trainer_add_optimizer(t, calx_adam(n->head, .lr = 0.01));
  } else {
    calx_trainer_add_optimizer(
        t, p->adam ? calx_adam(n->root, .lr = 0.01)
                   : calx_sgd(n->root, .lr = 0.1, .momentum = 0.9));
  }
}

static calx_tensor *loss_of(net *n, const calx_batch *batch)
{
  return calx_mean(
      calx_square(calx_sub(calx_forward(n->root, batch->data), 1)));
}

static calx_tensor *step(calx_trainer *t, void *self, const calx_batch *batch,
                         int64_t i)
{
  (void)i;
  const plan *p = calx_trainer_user(t);
  calx_tensor *loss = loss_of(self, batch);
  if (!p->manual) return loss;
  for (size_t k = 0; k < 2; k++) {
    calx_trainer_toggle_optimizer(t, k);
    calx_optimizer_zero_grad(calx_trainer_optimizer(t, k));
    calx_trainer_manual_backward(t, loss_of(self, batch));
    calx_trainer_clip_gradients(t, k, p->clip, "norm");
    calx_trainer_optimizer_step(t, k);
    calx_trainer_untoggle_optimizer(t, k);
  }
  return loss;
}

static calx_status *weights_of(const calx_trainer *t, double *out)
{
  static const char *const names[] = { "body.weight", "head.weight" };
  static const size_t sizes[] = { 2 * BORING_FEATURES, 4 };
  net n;
  calx_module *m = model(NULL, &n);
  calx_module_to(m, CALX_F64);
  calx_status *status = calx_trainer_load_weights(t, m);
  for (int i = 0; i < 2 && status == NULL; i++) {
    status = calx_tensor_read(calx_module_find(m, names[i]), out,
                              sizes[i] * sizeof *out);
    out += sizes[i];
  }
  calx_module_free(m);
  return status;
}

// ---- a process --------------------------------------------------------------

typedef struct world {
  const char *processes, *devices;
} world;

static calx_status *train(const plan *p, int ranks, double *out)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(net), .user = (void *)p,
                            .configure_model = model,
                            .configure_optimizers = optimizers,
                            .training_step = step,
                            .manual_optimization = p->manual);
  calx_dataset *data = boring_dataset(SAMPLES);
  calx_loader *loader =
      calx_loader_new(data, .batch_size = BATCH / ranks, .shuffle = true);
  calx_trainer *t =
      calx_trainer_new(.max_epochs = EPOCHS, .precision = "64-true",
                       .accumulate_grad_batches = p->accumulate,
                       .gradient_clip_val = p->manual ? 0 : p->clip, .seed = 7,
                       .barebones = true);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  if (status == NULL) status = weights_of(t, out);
  if (status == NULL) status = calx_scope_take_error();
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
  return status;
}

static void run(const plan *p, world w, int ranks, double *out)
{
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("CALX_PROCESSES", w.processes, 1);
    setenv("CPU_NUM_DEVICES", w.devices, 1);
    calx_status *status = train(p, ranks, out);
    calx_status_print(stderr, status);
    const ssize_t size = WEIGHTS * sizeof *out;
    const bool sent = status == NULL && write(ends[1], out, size) == size;
    _exit(!sent);
  }
  close(ends[1]);
  int state;
  assert_int_equal(read(ends[0], out, WEIGHTS * sizeof *out),
                   WEIGHTS * sizeof *out);
  close(ends[0]);
  assert_int_equal(waitpid(pid, &state, 0), pid);
  assert_int_equal(state, 0);
}

// ---- rows -------------------------------------------------------------------

static void compare(const plan *p, world w, const double *one)
{
  double many[WEIGHTS];
  run(p, w, 8, many);
  for (int k = 0; k < WEIGHTS; k++) {
    if (fabs(many[k] - one[k]) <= 1e-9 * (1 + fabs(one[k]))) continue;
    fail_msg("%s, %s processes of %s devices, weight %d: %.17g, on one %.17g",
             p->name, w.processes, w.devices, k, many[k], one[k]);
  }
}

// Rows C1, B22 and C16.
static void test_row_C1(void **state)
{
  (void)state;
  static const plan plans[] = {
    { "SGD", false, false, 1, 0 },
    { "Adam", true, false, 1, 0 },
    { "accumulation", false, false, 2, 0 },
    { "clipping", false, false, 1, 0.05 },
    { "Adam, accumulation and clipping", true, false, 2, 0.05 },
    { "two optimisers", false, true, 1, 0.05 },
  };
  for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
    double one[WEIGHTS];
    run(&plans[i], (world){ "1", "1" }, 1, one);
    compare(&plans[i], (world){ "1", "8" }, one);
    compare(&plans[i], (world){ "2", "4" }, one);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_row_C1) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
