// reasons: trains slowly for one of the reasons that Lightning's page on TPUs
// lists, on purpose; none: nothing is wrong.
//
//   reasons none|batch|item|shapes|link|compile|interpreted|input
#include <calx/calx.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FEATURES = 512, STEPS = 60, DEEP = 40, UPLOADED = 16 << 20 };

typedef struct net {
  calx_module *root, *layer[DEEP];
  int layers;
} net;

static bool wants(const char *reason, const char *name)
{
  return strcmp(reason, name) == 0;
}

static calx_tensor *forward(void *self, calx_tensor *x)
{
  net *n = self;
  for (int i = 0; i < n->layers; i++) {
    x = calx_relu(calx_forward(n->layer[i], x));
  }
  return x;
}

static void make(net *n, int layers, int64_t width)
{
  n->root = calx_module_new("Net", forward, n);
  n->layers = layers;
  for (int i = 0; i < layers; i++) {
    char name[16];
    snprintf(name, sizeof name, "layer%d", i);
    n->layer[i] = calx_nn_linear(n->root, name, width, width);
  }
}

// What the model sees in a step. `link`: most of it is uploaded, and not used.
static calx_tensor *batch_of(const char *reason, int64_t step, int64_t size,
                             int64_t width)
{
  if (wants(reason, "shapes")) size -= step;
  if (!wants(reason, "link")) return calx_randn(CALX_SHAPE(size, width));
  static float data[UPLOADED];
  calx_tensor *all = calx_tensor_from(data, CALX_F32, CALX_SHAPE(UPLOADED));
  return calx_add(calx_randn(CALX_SHAPE(size, width)), calx_mean(all));
}

// A long loop that was recorded without a sync: many loops of the program, each
// of a size of its own.
static calx_tensor *long_chain(void)
{
  calx_tensor *sum = calx_zeros(CALX_SHAPE(1));
  for (int64_t i = 1; i <= 200; i++) {
    calx_tensor *x = calx_sin(calx_randn(CALX_SHAPE(i, 7)));
    sum = calx_add(sum, calx_sum(calx_cumprod(x, 0)));
  }
  return sum;
}

// The engine has no loops for remainders of f64.
static calx_tensor *remainders(void)
{
  calx_tensor *x = calx_to_dtype(calx_randn(CALX_SHAPE(1000)), CALX_F64);
  return calx_to_dtype(calx_mean(calx_fmod(x, 3)), CALX_F32);
}

static void step(net *n, calx_optimizer *opt, calx_tensor *x,
                 const char *reason)
{
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = calx_mean(calx_square(calx_forward(n->root, x)));
  if (wants(reason, "interpreted")) loss = calx_add(loss, remainders());
  calx_backward(loss);
  calx_optimizer_step(opt);
  calx_sync(loss);
  if (wants(reason, "item")) calx_item(loss);
}

static void train(const char *reason)
{
  // A deep model of few features: the program has much to record, the device
  // little to do for a single sample.
  const bool small = wants(reason, "batch");
  const int64_t width = small ? 2 : FEATURES, size = small ? 1 : 256;
  net n;
  make(&n, small ? DEEP : 3, width);
  calx_optimizer *opt = calx_sgd(n.root, .lr = 1e-6);
  for (int64_t i = 0; i < STEPS; i++) {
    calx_scope *scope = calx_scope_begin();
    step(&n, opt, batch_of(reason, i, size, width), reason);
    if (i == 0 && wants(reason, "compile")) calx_sync(long_chain());
    calx_status_print(stderr, calx_scope_end(scope));
  }
  calx_optimizer_free(opt);
  calx_module_free(n.root);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  (void)user, (void)index;
  memset(fields[0], 0, FEATURES * sizeof(float));
  nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  return NULL;
}

// Each sample takes a millisecond to make.
static void train_on_slow_input(void)
{
  net n;
  make(&n, 3, FEATURES);
  calx_optimizer *opt = calx_sgd(n.root, .lr = 1e-6);
  const calx_field field = { "data", CALX_F32, 1, { FEATURES } };
  calx_dataset *set = calx_dataset_new(16 * STEPS, &field, 1, get, NULL, NULL);
  calx_loader *loader =
      calx_loader_new(set, .batch_size = 16, .num_workers = 1);
  calx_batch batch;
  while (calx_loader_next(loader, &batch)) {
    calx_scope *scope = calx_scope_begin();
    step(&n, opt, batch.data, "input");
    calx_status_print(stderr, calx_scope_end(scope));
  }
  calx_loader_free(loader);
  calx_dataset_free(set);
  calx_optimizer_free(opt);
  calx_module_free(n.root);
}

int main(int argc, char **argv)
{
  const char *reason = argc > 1 ? argv[1] : "none";
  if (wants(reason, "input")) {
    train_on_slow_input();
  } else {
    train(reason);
  }
  calx_shutdown();
  return 0;
}
