// Programs that all ranks launch together: the same bits everywhere, and an
// error everywhere when a rank does something else, fails or ends. On our
// engine and XLA's; under the thread sanitizer too.
#include <math.h>
#include <time.h>

#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/nn.h"
#include "calx/optim.h"
#include "lines.h"
#include "ops/ops.h"
#include "support/ranks.h"

static void run(int n, ranks_fn *fn, void *user)
{
  calx_metrics_clear();
  ranks_run(n, fn, user);
}

// Records and syncs the sum over the ranks of `value`; what the step came to.
static calx_status *sum_step(double value, double *out)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *sum = calx_all_reduce(RANK_VECTOR(value), CALX_REDUCE_SUM);
  calx_sync(sum);
  if (out != NULL) *out = calx_item(sum);
  return calx_scope_end(step);
}

// All ranks are of one mind again.
static void check_alive(ranks_one *r)
{
  double sum = 0;
  calx_status *status = sum_step(r->rank + 1, &sum);
  RANK_OK(r, status);
  RANK_CHECK(r, sum == r->n * (r->n + 1) / 2.0);
}

// ---- who does something else ------------------------------------------------

static calx_status *other_collective(ranks_one *r)
{
  calx_tensor *w = calx_take(RANK_VECTOR(1, 2));
  calx_sync(w);
  calx_scope *step = calx_scope_begin();
  bool odd = r->rank == r->n - 1;
  calx_tensor *t =
      odd ? calx_all_gather(w, 0) : calx_all_reduce(w, CALX_REDUCE_SUM);
  calx_assign(w, calx_sum(t));
  calx_sync(t);
  char last[24];
  snprintf(last, sizeof last, "rank %d", r->n - 1);
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step),
              "the ranks' programs differ", "together.c:", "all_gather at",
              "all_reduce at", last);
  // The step changed nothing.
  RANK_VALUES(r, w, 0, 1, 2);
  calx_release(w);
  // Who was out of step once is not trusted to be in step again.
  RANK_STATUS(r, CALX_ABORTED, sum_step(1, NULL), "the ranks' programs differ",
              "all_gather at", last);
  return NULL;
}

static calx_status *other_shape(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = r->rank == 0 ? RANK_VECTOR(1, 2) : RANK_VECTOR(1, 2, 3);
  calx_sync(calx_all_reduce(x, CALX_REDUCE_SUM));
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step), "all_reduce at ",
              "together.c:", "f32[2] on rank 0", "f32[3] on rank 1");
  return NULL;
}

static calx_status *other_type(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_reduce_type type = r->rank == 0 ? CALX_REDUCE_MIN : CALX_REDUCE_MAX;
  calx_sync(calx_all_reduce(RANK_VECTOR(1), type));
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step), "all_reduce at ",
              "min of 2 ranks on rank 0", "max of 2 ranks on rank 1");
  return NULL;
}

static calx_status *more_ops(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *y = calx_all_reduce(RANK_VECTOR(1), CALX_REDUCE_SUM);
  if (r->rank == 1) y = calx_neg(y);
  calx_sync(y);
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step), "only rank 1 has neg at ");
  return NULL;
}

// Rank 1 leaves out a step, and comes to the next with the others' first.
static calx_status *skips(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(1);
  if (r->rank != 1) {
    calx_sync(calx_all_gather(x, 0));
    RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step), "rank 1", "all_gather",
                "collective_permute");
    return NULL;
  }
  calx_sync(calx_collective_permute(x, (int64_t[]){ 0, 1 }, 1));
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step), "rank ", "all_gather",
              "collective_permute");
  return NULL;
}

static void test_ranks_differ(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) run(n, other_collective, NULL);
  run(2, other_shape, NULL);
  run(2, other_type, NULL);
  run(2, more_ops, NULL);
  for (int n = 2; n <= 4; n++) run(n, skips, NULL);
}

// ---- who is not there -------------------------------------------------------

static calx_status *ends(ranks_one *r)
{
  check_alive(r);
  if (r->rank == 1) return NULL;
  // Well before the time limit of all waits, which would say who is missing.
  calx_scope *step = calx_scope_begin();
  calx_sync(calx_all_reduce(RANK_VECTOR(1), CALX_REDUCE_MAX));
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step),
              "rank 1 has ended its function", "all_reduce at ", "together.c:");
  return NULL;
}

static calx_status *fails(ranks_one *r)
{
  check_alive(r);
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(1, 2);
  if (r->rank == 1) {
    // Its step holds an error, so it runs nothing.
    x = calx_add(x, RANK_VECTOR(1, 2, 3));
    calx_sync(calx_all_reduce(x, CALX_REDUCE_SUM));
    r->fails = true;
    return calx_scope_end(step);
  }
  calx_sync(calx_all_reduce(x, CALX_REDUCE_SUM));
  RANK_STATUS(r, CALX_ABORTED, calx_scope_end(step),
              "rank 1 failed: ", "add: ", "cannot broadcast");
  return NULL;
}

static calx_status *stays_away(ranks_one *r)
{
  static atomic_int gone;
  if (r->rank == 1) {
    while (atomic_load(&gone) < r->n - 1) {
      struct timespec moment = { .tv_nsec = 1000000 };
      nanosleep(&moment, NULL);
    }
    return NULL;
  }
  RANK_STATUS(r, CALX_DEADLINE_EXCEEDED, sum_step(1, NULL),
              "rank 1 did not arrive", "all_reduce at ");
  atomic_fetch_add(&gone, 1);
  return NULL;
}

static void test_ranks_missing(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) run(n, ends, NULL);
  for (int n = 2; n <= 4; n++) run(n, fails, NULL);
  // Of two, so that nobody else can be late and be missed as well.
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  run(2, stays_away, NULL);
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "60", 1);
}

// ---- what each may do alone -------------------------------------------------

static calx_status *alone_between(ranks_one *r)
{
  calx_tensor *total = calx_take(RANK_VECTOR(0));
  for (int i = 0; i < 10; i++) {
    calx_scope *step = calx_scope_begin();
    if (i % r->n == r->rank) {
      // A program of one rank runs while the others wait for it.
      calx_tensor *own = calx_exp(RANK_VECTOR(i, 0));
      RANK_VALUES(r, own, 1e-2, exp(i), 1);
    }
    calx_assign(total, calx_add(total, calx_all_reduce(RANK_VECTOR(i + r->rank),
                                                       CALX_REDUCE_MAX)));
    calx_sync(NULL);
    calx_status *status = calx_scope_end(step);
    RANK_OK(r, status);
  }
  RANK_VALUES(r, total, 0, 45 + 10 * (r->n - 1));
  calx_release(total);
  return NULL;
}

static void test_alone_between(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) run(n, alone_between, NULL);
}

// Values that are read before the sync, and eager mode.
static calx_status *reads(ranks_one *r)
{
  calx_scope *step = calx_scope_begin();
  double n = r->n;
  calx_tensor *sum = calx_all_reduce(RANK_VECTOR(2), CALX_REDUCE_SUM);
  RANK_CHECK(r, calx_item(sum) == 2 * n);
  calx_tensor *more = calx_all_reduce(calx_add(sum, 1), CALX_REDUCE_SUM);
  RANK_VALUES(r, more, 0, (2 * n + 1) * n);
  calx_sync(sum, more);
  RANK_CHECK(r, calx_item(sum) == 2 * n);
  return calx_scope_end(step);
}

static void test_reads(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) run(n, reads, NULL);
  setenv("CALX_EAGER", "1", 1);
  cx_lazy_mode_reload();
  for (int n = 2; n <= 4; n++) run(n, reads, NULL);
  unsetenv("CALX_EAGER");
  cx_lazy_mode_reload();
}

// ---- starts of slices that differ between ranks -----------------------------

static calx_status *slices(ranks_one *r)
{
  for (int i = 0; i < 6; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *x = RANK_VECTOR(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    // Equal on all ranks at first, then each its own, then equal again.
    int from = i < 2 ? 1 : i < 4 ? r->rank + i : 1;
    calx_tensor *sum =
        calx_all_reduce(calx_slice(x, 0, from, from + 2, 1), CALX_REDUCE_SUM);
    calx_sync(sum);
    double first = i < 2 || i >= 4 ? r->n : r->n * i + r->n * (r->n - 1) / 2.0;
    RANK_VALUES(r, sum, 0, first, first + r->n);
    calx_status *status = calx_scope_end(step);
    RANK_OK(r, status);
  }
  return NULL;
}

static void test_slices(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) {
    run(n, slices, NULL);
    assert_int_equal(calx_counter_value("UncachedCompile"), 2);
  }
}

// ---- training ---------------------------------------------------------------

typedef struct net {
  calx_module *root, *fc1, *fc2;
  calx_tensor *params[8];
  size_t n_params;
} net;

static calx_tensor *net_forward(void *self, calx_tensor *x)
{
  net *m = self;
  return calx_forward(m->fc2, calx_relu(calx_forward(m->fc1, x)));
}

static void net_visit(void *user, const char *path, calx_entry_kind kind,
                      calx_tensor *t)
{
  net *m = user;
  (void)path;
  if (kind == CALX_PARAMETER) m->params[m->n_params++] = t;
}

enum { WEIGHTS = 4 * 16 + 16 + 16 * 2 + 2 };

typedef struct training {
  float weights[RANKS_MOST][WEIGHTS];
  double losses[RANKS_MOST];
} training;

static void reduce_gradients(net *m, int n)
{
  calx_tensor *grads[8], *means[8];
  for (size_t i = 0; i < m->n_params; i++) grads[i] = calx_grad(m->params[i]);
  cx_lazy_no_grad_begin();
  cx_ops_all_reduce_bucket(grads, m->n_params, 1.0 / n, NULL, means);
  for (size_t i = 0; i < m->n_params; i++) {
    cx_lazy_tensor_set_value(grads[i], means[i]);
  }
  cx_lazy_no_grad_end();
}

static calx_status *train_step(ranks_one *r, net *m, calx_optimizer *opt, int i)
{
  calx_scope *step = calx_scope_begin();
  double x[5 * 4], y[5 * 2];
  for (int k = 0; k < 5 * 4; k++) x[k] = sin(k + 20.0 * (i * r->n + r->rank));
  for (int k = 0; k < 5; k++) y[2 * k] = y[2 * k + 1] = x[4 * k] * x[4 * k + 1];
  calx_tensor *out =
      calx_forward(m->root, rank_tensor(CALX_F32, CALX_SHAPE(5, 4), x));
  calx_tensor *error =
      calx_sub(out, rank_tensor(CALX_F32, CALX_SHAPE(5, 2), y));
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = calx_mean(calx_square(error));
  calx_backward(loss);
  reduce_gradients(m, r->n);
  calx_optimizer_step(opt);
  calx_tensor *mean =
      calx_all_reduce(loss, CALX_REDUCE_SUM, .scale = 1.0 / r->n);
  calx_sync(mean);
  ((training *)r->user)->losses[r->rank] = calx_item(mean);
  return calx_scope_end(step);
}

static calx_status *trains(ranks_one *r)
{
  training *all = r->user;
  net m = { 0 };
  calx_manual_seed(3);
  m.root = calx_module_new("net", net_forward, &m);
  m.fc1 = calx_nn_linear(m.root, "fc1", 4, 16);
  m.fc2 = calx_nn_linear(m.root, "fc2", 16, 2);
  calx_module_visit(m.root, net_visit, &m);
  calx_optimizer *opt = calx_sgd(m.root, .lr = 0.05, .momentum = 0.9);
  calx_sync(NULL);
  calx_status *status = NULL;
  for (int i = 0; i < 100 && status == NULL; i++) {
    status = train_step(r, &m, opt, i);
  }
  size_t at = 0;
  for (size_t i = 0; status == NULL && i < m.n_params; i++) {
    size_t n = (size_t)calx_tensor_numel(m.params[i]);
    status = calx_tensor_read(m.params[i], &all->weights[r->rank][at],
                              n * sizeof(float));
    at += n;
  }
  RANK_CHECK(r, status != NULL || at == WEIGHTS);
  calx_optimizer_free(opt);
  calx_module_free(m.root);
  return status;
}

// The ranks begin alike, without a broadcast, and stay alike to the last bit.
static void test_training(void **state)
{
  (void)state;
  static training all;
  for (int n = 2; n <= 4; n++) {
    memset(&all, 0, sizeof all);
    run(n, trains, &all);
    for (int i = 1; i < n; i++) {
      assert_memory_equal(all.weights[0], all.weights[i],
                          sizeof all.weights[0]);
      assert_true(all.losses[i] == all.losses[0]);
    }
    assert_true(all.losses[0] < 0.2);
    // The threads share what they compile: a program for the beginning, one
    // for the first step, whose momentum is new, one for the others.
    assert_true(calx_counter_value("UncachedCompile") <= 3);
  }
}

// ---- the disk cache ---------------------------------------------------------

static calx_status *one_sum(ranks_one *r)
{
  check_alive(r);
  return NULL;
}

// Kept as any other program; of another world it is another one.
static void test_disk_cache(void **state)
{
  (void)state;
  char folder[] = "/tmp/calx-together-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("CALX_CACHE_DIR", folder, 1);
  for (int again = 0; again < 2; again++) {
    for (int n = 2; n <= 3; n++) {
      run(n, one_sum, NULL);
      bool kept = again != 0;
      assert_int_equal(calx_counter_value("PersistentCacheMiss"), !kept);
      assert_int_equal(calx_counter_value("PersistentCacheHit"), kept);
    }
    calx_shutdown();
  }
  setenv("CALX_CACHE_DIR", "off", 1);
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

// ---- random numbers ---------------------------------------------------------

static calx_status *draws(ranks_one *r)
{
  float *own = (float *)r->user + r->rank;
  calx_scope *step = calx_scope_begin();
  calx_manual_seed(7);
  calx_tensor *t = calx_rand(CALX_SHAPE(1));
  calx_module *m = calx_nn_linear(NULL, "fc", 3, 3);
  calx_module_free(m);
  calx_status *status = calx_tensor_read(t, own, sizeof *own);
  RANK_OK(r, status);
  return calx_scope_end(step);
}

static void test_ranks_draw_their_own(void **state)
{
  (void)state;
  float two[RANKS_MOST] = { 0 }, four[RANKS_MOST] = { 0 };
  run(2, draws, two);
  run(4, draws, four);
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < i; k++) assert_true(four[i] != four[k]);
  }
  // A rank's numbers do not depend on how many there are.
  assert_true(two[0] == four[0] && two[1] == four[1]);
}

// ---- far ahead --------------------------------------------------------------

static calx_status *runs_ahead(ranks_one *r)
{
  calx_tensor *x = calx_take(RANK_VECTOR(1, 1, 1, 1));
  for (int i = 0; i < 60; i++) {
    calx_scope *step = calx_scope_begin();
    calx_assign(x, calx_all_reduce(x, CALX_REDUCE_SUM, .scale = 1.0 / r->n));
    calx_sync(NULL);
    calx_status *status = calx_scope_end(step);
    RANK_OK(r, status);
  }
  RANK_VALUES(r, x, 1e-4, 1, 1, 1, 1);
  calx_release(x);
  return NULL;
}

static void test_runs_ahead(void **state)
{
  (void)state;
  for (int n = 2; n <= 4; n++) {
    run(n, runs_ahead, NULL);
    assert_int_equal(calx_counter_value("UncachedCompile"), 1);
  }
}

static int setup(void **state)
{
  calx_log_set(lines_take, NULL);
  return ranks_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    RANKS_TEST(test_ranks_differ),  RANKS_TEST(test_ranks_missing),
    RANKS_TEST(test_alone_between), RANKS_TEST(test_reads),
    RANKS_TEST(test_slices),        RANKS_TEST(test_training),
    RANKS_TEST(test_disk_cache),    RANKS_TEST(test_ranks_draw_their_own),
    RANKS_TEST(test_runs_ahead),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
