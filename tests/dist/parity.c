// parity: N ranks with batches of b are one rank with a batch of N b, and all
// ranks hold the same bits.
//
//   test_dist_parity [STEPS]    of the convolutional network; 12, and 100 with
//                               CALX_TEST_LONG=1
//
// Rounding is what is left of the difference. In f64 it stays small; in f32
// training itself enlarges it, so there the network is a linear layer.
#include "calx/autograd.h"
#include "calx/data.h"
#include "ranks.h"
#include "state.h"
#include "support/long.h"
#include "support/mnist_net.h"

enum { MOST_RANKS = 8, WHOLE = 24, PIXELS = 28 * 28, SAMPLES = 504 };
enum { MOST_NUMBERS = 1 << 15 };  // of a model

static long steps;
static double *pixels;
static int64_t *labels;

typedef calx_optimizer *make_optimizer(calx_module *model);

static calx_optimizer *sgd(calx_module *m)
{
  return calx_sgd(m, .lr = 0.05);
}

static calx_optimizer *momentum(calx_module *m)
{
  return calx_sgd(m, .lr = 0.01, .momentum = 0.5);
}

static calx_optimizer *adamw(calx_module *m)
{
  return calx_adamw(m, .lr = 1e-3);
}

static calx_optimizer *adam(calx_module *m)
{
  return calx_adam(m, .lr = 1e-3);
}

// user: the plain one.
static calx_optimizer *of_shards(void *user, calx_module *shards)
{
  return (*(make_optimizer **)user)(shards);
}

static calx_optimizer *zero(calx_module *m, make_optimizer *plain)
{
  return calx_zero_redundancy_optimizer(m, .make = of_shards, .user = &plain);
}

static calx_optimizer *zero_sgd(calx_module *m)
{
  return zero(m, momentum);
}

static calx_optimizer *zero_adam(calx_module *m)
{
  return zero(m, adam);
}

static calx_optimizer *zero_adamw(calx_module *m)
{
  return zero(m, adamw);
}

// One training, and what came of it on each rank; in memory that processes
// share.
typedef struct training {
  make_optimizer *optimizer;
  state_numbers state[MOST_RANKS];
  double losses[128];  // rank 0's
  double numbers[MOST_RANKS][MOST_NUMBERS];
} training;

static training *new_training(make_optimizer *optimizer)
{
  training *t = state_shared(sizeof *t);
  assert_non_null(t);
  t->optimizer = optimizer;
  for (int i = 0; i < MOST_RANKS; i++) {
    t->state[i] =
        (state_numbers){ .values = t->numbers[i], .capacity = MOST_NUMBERS };
  }
  return t;
}

// ---- the convolutional network ----------------------------------------------

static calx_status *train_step(mnist_net *m, calx_optimizer *opt, long step,
                               double *loss)
{
  int64_t b = WHOLE / calx_world_size();
  int64_t first = (step * WHOLE + calx_global_ordinal() * b) % SAMPLES;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = calx_tensor_from(pixels + first * PIXELS, CALX_F64,
                                    CALX_SHAPE(b, 1, 28, 28));
  calx_tensor *y = calx_tensor_from(labels + first, CALX_I64, CALX_SHAPE(b));
  calx_optimizer_zero_grad(opt);
  calx_tensor *l = calx_nll_loss(calx_forward(m->root, x), y);
  calx_backward(l);
  *loss = calx_item(calx_dist_step(opt, l));
  return calx_scope_end(scope);
}

static calx_status *train(int index, void *user)
{
  training *t = user;
  mnist_net m;
  calx_manual_seed(7);
  CALX_TRY(mnist_net_make(&m, CALX_F64));
  calx_convert_sync_batchnorm(m.root);
  calx_optimizer *opt = t->optimizer(m.root);
  calx_status *status = calx_optimizer_error(opt);
  for (long s = 0; s < steps && status == NULL; s++) {
    double loss;
    status = train_step(&m, opt, s, &loss);
    if (index == 0 && s < 128) t->losses[s] = loss;
  }
  state_add_model(&t->state[index], m.root);
  if (status == NULL) status = t->state[index].status;
  calx_optimizer_free(opt);
  calx_module_free(m.root);
  return status;
}

// ---- a linear layer in f32 --------------------------------------------------

// One sample of ten numbers.
static double sample(long step, int64_t i)
{
  return cos((double)(step % 5) * 17 + (double)i * 1.7);
}

static calx_status *linear_step(calx_module *fc, calx_optimizer *opt, long step,
                                double *loss)
{
  int64_t b = WHOLE / calx_world_size(), first = calx_global_ordinal() * b * 10;
  float x[WHOLE * 10], y[WHOLE * 10];
  for (int64_t i = 0; i < b * 10; i++) {
    x[i] = (float)sample(step, first + i);
    y[i] = (float)sample(step + 3, first + i);
  }
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *out =
      calx_forward(fc, calx_tensor_from(x, CALX_F32, CALX_SHAPE(b, 10)));
  calx_tensor *target = calx_tensor_from(y, CALX_F32, CALX_SHAPE(b, 10));
  calx_tensor *l = calx_mean(calx_square(calx_sub(out, target)));
  calx_backward(l);
  *loss = calx_item(calx_dist_step(opt, l));
  return calx_scope_end(scope);
}

static calx_optimizer *linear_sgd(calx_module *m)
{
  return calx_sgd(m, .lr = 0.1);
}

static calx_status *train_linear(int index, void *user)
{
  training *t = user;
  calx_manual_seed(7);
  calx_module *fc = calx_nn_linear(NULL, NULL, 10, 10);
  CALX_TRY(calx_module_error(fc));
  calx_optimizer *opt = t->optimizer(fc);
  calx_status *status = calx_optimizer_error(opt);
  for (long s = 0; s < 100 && status == NULL; s++) {
    double loss;
    status = linear_step(fc, opt, s, &loss);
    if (index == 0) t->losses[s] = loss;
  }
  state_add_model(&t->state[index], fc);
  if (status == NULL) status = t->state[index].status;
  calx_optimizer_free(opt);
  calx_module_free(fc);
  return status;
}

// ---- comparing --------------------------------------------------------------

static double loss_distance(const training *a, const training *b, long n)
{
  double most = 0;
  for (long s = 0; s < n && s < 128; s++) {
    double d = fabs(a->losses[s] - b->losses[s]);
    if (!(d <= most)) most = d == d ? d : HUGE_VAL;
  }
  return most;
}

static void check(const char *name, int n, const training *one,
                  const training *many, long n_losses, double tolerance)
{
  double weights = state_distance(&one->state[0], &many->state[0]);
  double losses = loss_distance(one, many, n_losses);
  print_message("  %-12s %d ranks: weights %.2e, losses %.2e\n", name, n,
                weights, losses);
  assert_true(weights <= tolerance && losses <= tolerance);
  for (int r = 1; r < n; r++) {
    assert_true(state_same_bits(&many->state[0], &many->state[r]));
  }
}

static const int worlds[] = { 2, 4, 3, 8 };

// The plain optimiser on one rank against `optimizer` on the first of the
// worlds.
static void compare(const char *name, calx_rank_fn *run, make_optimizer *plain,
                    make_optimizer *optimizer, size_t n_worlds,
                    double tolerance)
{
  set_devices(MOST_RANKS);
  training *one = new_training(plain);
  CHECK_STATUS_OK(calx_launch(run, one, .devices = 1));
  for (size_t i = 0; i < n_worlds; i++) {
    training *many = new_training(optimizer);
    CHECK_STATUS_OK(calx_launch(run, many, .devices = worlds[i]));
    check(name, worlds[i], one, many, run == train ? steps : 100, tolerance);
    munmap(many, sizeof *many);
  }
  munmap(one, sizeof *one);
}

// The same between processes. All of them first, since a process with threads
// starts no others.
static void test_processes(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    calx_rank_fn *run;
    make_optimizer *optimizer;
    int processes, devices;
    double tolerance;
  } all[] = {
    { "linear sgd", train_linear, linear_sgd, 2, 1, 1e-5 },
    { "linear sgd", train_linear, linear_sgd, 3, 1, 1e-5 },
    { "linear sgd", train_linear, linear_sgd, 4, 1, 1e-5 },
    { "linear sgd", train_linear, linear_sgd, 8, 1, 1e-5 },
    { "linear sgd", train_linear, linear_sgd, 2, 2, 1e-5 },
    { "momentum", train, momentum, 2, 1, 1e-9 },
    { "momentum", train, momentum, 2, 2, 1e-9 },
  };
  enum { N = sizeof all / sizeof *all };
  training *many[N];
  for (size_t i = 0; i < N; i++) {
    many[i] = new_training(all[i].optimizer);
    set_devices(all[i].devices);
    CHECK_STATUS_OK(
        calx_launch(all[i].run, many[i], .processes = all[i].processes));
  }
  training *one = NULL;
  for (size_t i = 0; i < N; i++) {
    if (i == 0 || all[i].run != all[i - 1].run) {
      one = new_training(all[i].optimizer);
      CHECK_STATUS_OK(calx_launch(all[i].run, one, .devices = 1));
    }
    check(all[i].name, all[i].processes * all[i].devices, one, many[i], 100,
          all[i].tolerance);
    munmap(many[i], sizeof *many[i]);
  }
  calx_shutdown();  // with the one device
}

static void test_network(void **state)
{
  (void)state;
  compare("sgd", train, sgd, sgd, 2, 1e-9);
  compare("momentum", train, momentum, momentum, 4, 1e-9);
  compare("adamw", train, adamw, adamw, 2, 1e-9);
}

static void test_zero(void **state)
{
  (void)state;
  compare("zero sgd", train, momentum, zero_sgd, 2, 1e-9);
  compare("zero adam", train, adam, zero_adam, 2, 1e-9);
  compare("zero adamw", train, adamw, zero_adamw, 2, 1e-9);
}

static void test_linear(void **state)
{
  (void)state;
  compare("linear sgd", train_linear, linear_sgd, linear_sgd, 4, 1e-5);
}

static int setup(void **state)
{
  calx_dataset *digits = calx_dataset_digits(SAMPLES, 1);
  pixels = malloc(SAMPLES * PIXELS * sizeof *pixels);
  labels = malloc(SAMPLES * sizeof *labels);
  float image[PIXELS];
  for (int64_t i = 0; i < SAMPLES; i++) {
    void *fields[] = { image, &labels[i] };
    CHECK_STATUS_OK(calx_dataset_get(digits, i, fields));
    for (int k = 0; k < PIXELS; k++) pixels[i * PIXELS + k] = (double)image[k];
  }
  calx_dataset_free(digits);
  return support_setup(state);
}

static int teardown(void **state)
{
  (void)state;
  free(pixels);
  free(labels);
  return 0;
}

int main(int argc, char **argv)
{
  steps = argc > 1 ? atol(argv[1]) : long_or(100, 12);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_processes),
    SUPPORT_TEST(test_linear),
    SUPPORT_TEST(test_network),
    SUPPORT_TEST(test_zero),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
