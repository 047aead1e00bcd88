// sync_batch_norm: a SyncBatchNorm over N ranks' batches is a BatchNorm over
// the whole batch: output, gradients, running statistics.
#include "calx/autograd.h"
#include "ranks.h"
#include "state.h"
#include "support/long.h"

enum { CHANNELS = 3, WHOLE = 24, MOST_RANKS = 8 };
enum { MOST_NUMBERS = 4096 };  // of a rank's rows, of a model

typedef struct shape {
  size_t rank;
  int64_t rest[3];  // after (N, C)
  calx_dtype dtype;
  double tolerance, eps;
} shape;

// What came of it on each rank; in memory that processes share.
typedef struct result {
  const shape *s;
  bool convert;  // a BatchNorm2d that is converted
  state_numbers out[MOST_RANKS], model[MOST_RANKS];
  double numbers[2 * MOST_RANKS][MOST_NUMBERS];
} result;

static result *new_result(const shape *s, bool convert)
{
  result *r = state_shared(sizeof *r);
  assert_non_null(r);
  r->s = s;
  r->convert = convert;
  for (int i = 0; i < MOST_RANKS; i++) {
    r->out[i] = (state_numbers){ .values = r->numbers[2 * i],
                                 .capacity = MOST_NUMBERS };
    r->model[i] = (state_numbers){ .values = r->numbers[2 * i + 1],
                                   .capacity = MOST_NUMBERS };
  }
  return r;
}

static int64_t row_size(const shape *s)
{
  int64_t n = CHANNELS;
  for (size_t i = 2; i < s->rank; i++) n *= s->rest[i - 2];
  return n;
}

// Of an offset that a sum of squares would lose digits to.
static double number(int64_t i, int step)
{
  return 100 + sin((double)i * 0.37 + step) * (1 + (double)(i % 7));
}

static calx_tensor *rows(const shape *s, double (*of)(int64_t, int), int step)
{
  int64_t n = WHOLE / calx_world_size(), size = row_size(s);
  int64_t dims[5] = { n, CHANNELS, s->rest[0], s->rest[1], s->rest[2] };
  int64_t first = calx_global_ordinal() * n * size;
  double values[WHOLE * CHANNELS * 32];
  for (int64_t i = 0; i < n * size; i++) values[i] = of(first + i, step);
  calx_tensor *t =
      calx_tensor_from(values, CALX_F64, calx_dims_of(dims, s->rank));
  return calx_to_dtype(t, s->dtype);
}

static double factor(int64_t i, int step)
{
  return cos((double)i * 0.91 + step);
}

static calx_status *step(calx_module *bn, result *r, int index, int n)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *x = rows(r->s, number, n);
  calx_requires_grad(x, true);
  calx_tensor *y = calx_forward(bn, x);
  calx_tensor *w = rows(r->s, factor, n);
  calx_backward(calx_sum(calx_mul(y, w)));
  calx_tensor *grad = calx_grad(x), *weight = calx_module_find(bn, "weight");
  calx_tensor *gamma = calx_grad(weight);
  calx_tensor *beta = calx_grad(calx_module_find(bn, "bias"));
  if (calx_world_size() > 1) {  // as the parameters' gradients are in training
    calx_tensor *both[] = { gamma, beta };
    calx_all_reduce_list_with(both, 2, CALX_REDUCE_SUM, NULL);
  }
  calx_sync(y, grad, gamma, beta);
  if (calx_scope_error() == NULL) {
    state_add(&r->out[index], y);
    state_add(&r->out[index], grad);
    state_add(&r->model[index], gamma);
    state_add(&r->model[index], beta);
  }
  calx_zero_grad(weight);
  calx_zero_grad(calx_module_find(bn, "bias"));
  return calx_scope_end(scope);
}

static calx_status *run(int index, void *user)
{
  result *r = user;
  calx_module *bn;
  if (r->convert) {
    bn = calx_nn_batch_norm2d(NULL, NULL, CHANNELS, .dtype = r->s->dtype);
    calx_convert_sync_batchnorm(bn);
  } else {
    bn = calx_nn_sync_batch_norm(NULL, NULL, CHANNELS, .dtype = r->s->dtype,
                                 .eps = r->s->eps, .momentum = 0.3);
  }
  CALX_TRY(calx_module_error(bn));
  RANK_CHECK(strcmp(calx_module_kind(bn), "SyncBatchNorm") == 0);
  calx_status *status = NULL;
  for (int n = 0; n < 3 && status == NULL; n++) {
    status = step(bn, r, index, n);
  }
  if (status == NULL) {
    state_add_model(&r->model[index], bn);
    status = r->model[index].status;
  }
  calx_module_free(bn);
  return status;
}

// The ranks' rows of all steps, back in the order of the whole batch.
static void check_rows(const result *one, const result *many, int ranks,
                       double tolerance)
{
  size_t whole = one->out[0].n / 6, part = whole / (size_t)ranks;
  for (size_t k = 0; k < 6; k++) {
    for (size_t i = 0; i < whole; i++) {
      const state_numbers *rank = &many->out[i / part];
      CHECK_CLOSE(rank->values[k * part + i % part],
                  one->out[0].values[k * whole + i], tolerance);
    }
  }
}

static void check(const result *one, const result *many, int n)
{
  const shape *s = one->s;
  check_rows(one, many, n, s->tolerance);
  double d = state_distance(&one->model[0], &many->model[0]);
  print_message("  (%d, C%s) over %d ranks: %.2e\n", WHOLE,
                s->rank == 2 ? "" : ", …", n, d);
  assert_true(d <= s->tolerance);
  for (int r = 1; r < n; r++) {
    assert_true(state_same_bits(&many->model[0], &many->model[r]));
  }
}

static const int worlds[] = { 2, 3, 4, 8 };
enum { WORLDS = sizeof worlds / sizeof *worlds };

// A sample has each shape in one of the worlds, the nth.
static void check_shape(const shape *s, bool convert, size_t n)
{
  const bool all = all_or_sample(1, 0) == 1;
  set_devices(MOST_RANKS);
  result *one = new_result(s, convert);
  CHECK_STATUS_OK(calx_launch(run, one, .devices = 1));
  for (size_t i = 0; i < WORLDS; i++) {
    if (!all && i != n % WORLDS) continue;
    result *many = new_result(s, convert);
    CHECK_STATUS_OK(calx_launch(run, many, .devices = worlds[i]));
    check(one, many, worlds[i]);
    munmap(many, sizeof *many);
  }
  munmap(one, sizeof *one);
}

// First, because a process with threads starts no others. Processes work
// together on our engine only: on others this is no case.
static void test_processes(void **state)
{
  (void)state;
  static const shape s = { 4, { 3, 2, 1 }, CALX_F64, .tolerance = 1e-11 };
  result *many[WORLDS];
  set_devices(1);
  for (int i = 0; i < WORLDS; i++) {
    many[i] = new_result(&s, false);
    CHECK_STATUS_OK(calx_launch(run, many[i], .processes = worlds[i]));
  }
  result *one = new_result(&s, false);
  CHECK_STATUS_OK(calx_launch(run, one, .devices = 1));
  for (int i = 0; i < WORLDS; i++) {
    check(one, many[i], worlds[i]);
    munmap(many[i], sizeof *many[i]);
  }
  munmap(one, sizeof *one);
  calx_shutdown();
}

static void test_shapes(void **state)
{
  (void)state;
  static const shape shapes[] = {
    { 2, { 1, 1, 1 }, CALX_F64, .tolerance = 1e-11 },
    { 3, { 5, 1, 1 }, CALX_F64, .tolerance = 1e-11 },
    { 4, { 3, 2, 1 }, CALX_F64, .tolerance = 1e-11 },
    { 5, { 2, 2, 2 }, CALX_F64, .tolerance = 1e-11 },
    { 4, { 3, 2, 1 }, CALX_F32, .tolerance = 2e-3 },
    { 4, { 3, 2, 1 }, CALX_BF16, .tolerance = 1 },
    { 4, { 3, 2, 1 }, CALX_F64, .tolerance = 1e-11, .eps = 0.5 },
    { 4, { 3, 2, 1 }, CALX_F64, .tolerance = 1e-11, .eps = CALX_ZERO },
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check_shape(&shapes[i], false, i);
  }
}

static void test_converted(void **state)
{
  (void)state;
  static const shape s = { 4, { 3, 2, 1 }, CALX_F64, .tolerance = 1e-11 };
  check_shape(&s, true, 0);
}

// ---- evaluation -------------------------------------------------------------

static calx_status *evaluate(int index, void *user)
{
  static const shape s = { 4, { 3, 2, 1 }, CALX_F64, .tolerance = 0 };
  (void)user;
  calx_module *bn =
      calx_nn_sync_batch_norm(NULL, NULL, CHANNELS, .dtype = CALX_F64);
  calx_module_train(bn, false);
  calx_scope *scope = calx_scope_begin();
  if (index == 1) {  // by itself: no rank takes part in it
    calx_tensor *x = rows(&s, number, 0);
    calx_tensor *d = calx_sub(calx_forward(bn, x), calx_div(x, sqrt(1 + 1e-5)));
    double most = calx_item(calx_amax(calx_abs(d)));
    calx_module_free(bn);
    CALX_TRY(calx_scope_end(scope));
    RANK_CHECK(most < 1e-12);
    return NULL;
  }
  calx_module_free(bn);
  return calx_scope_end(scope);
}

static void test_evaluation(void **state)
{
  (void)state;
  set_devices(2);
  CHECK_STATUS_OK(calx_launch(evaluate, NULL));
}

// ---- refused ----------------------------------------------------------------

static void test_refused(void **state)
{
  (void)state;
  calx_module *bn = calx_nn_sync_batch_norm(NULL, NULL, 3);
  calx_forward(bn, calx_ones(CALX_SHAPE(3)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "SyncBatchNorm",
               "(N, 3, …)", "f32[3]");
  calx_forward(bn, calx_ones(CALX_SHAPE(4, 2)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_take_error(), "f32[4,2]");
  calx_module_free(bn);
  bn = calx_nn_sync_batch_norm(NULL, NULL, 0);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_module_error(bn),
               "sync_batch_norm: 0 features");
  calx_module_free(bn);
  calx_convert_sync_batchnorm(NULL);
}

// Layers of other kinds stay what they are.
static void test_convert_model(void **state)
{
  (void)state;
  calx_module *m = calx_module_new("Net", NULL, NULL);
  calx_module *block = calx_module_child(m, "block", "Block", NULL, NULL);
  calx_module *bn = calx_nn_batch_norm2d(block, "bn", 4);
  calx_module *fc = calx_nn_linear(m, "fc", 2, 2);
  const calx_tensor *weight = calx_module_find(m, "block.bn.weight");
  calx_convert_sync_batchnorm(m);
  assert_string_equal(calx_module_kind(bn), "SyncBatchNorm");
  assert_string_equal(calx_module_kind(block), "Block");
  assert_string_equal(calx_module_kind(fc), "Linear");
  assert_ptr_equal(calx_module_find(m, "block.bn.weight"), weight);
  calx_module_free(m);
}

int main(void)
{
  const struct CMUnitTest processes[] = { SUPPORT_TEST(test_processes) };
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_shapes),        SUPPORT_TEST(test_converted),
    SUPPORT_TEST(test_evaluation),    SUPPORT_TEST(test_refused),
    SUPPORT_TEST(test_convert_model),
  };
  int failed = 0;
  if (support_own_engine()) {
    failed = cmocka_run_group_tests(processes, support_setup, NULL);
  }
  return failed + cmocka_run_group_tests(tests, support_setup, NULL);
}
