// faults: one rank, chosen at random, fails, leaves, skips a step or does
// something else at a random moment. All others get an error that names it, at
// once: within five times the second that is promised.
//
//   test_dist_faults [RUNS [SEED]]    1,000 runs
#include <unistd.h>

#include "base/thread.h"
#include "calx/autograd.h"
#include "ranks.h"
#include "support/long.h"

enum { MOST_RANKS = 4, STEPS = 4, HANG_S = 60, SOON_MS = 5000 };

static long runs = 1000;
static uint64_t seed = 1;

typedef enum kind { NONE, RAISE, SKIP, FEWER, MEET, REDUCE, KINDS } kind;
static const char *const names[] = { "none",  "raise", "skip",
                                     "fewer", "meet",  "reduce" };

typedef struct fault {
  kind kind;
  int rank, step;
  atomic_int told;     // ranks whose error is ABORTED and names the rank
  atomic_int wrong;    // ranks with another error
  _Atomic int64_t at;  // cx_now_ns() of the fault, of the last that was told
  _Atomic int64_t heard;
} fault;

static uint64_t chance(uint64_t below)  // after D. Knuth's MMIX
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (seed >> 33) % below;
}

static calx_status *train_step(calx_module *fc, calx_optimizer *opt)
{
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(opt);
  calx_tensor *y = calx_forward(fc, calx_ones(CALX_SHAPE(2, 4)));
  calx_tensor *loss = calx_mean(calx_square(y));
  calx_backward(loss);
  calx_dist_step(opt, loss);
  return calx_scope_end(scope);
}

// What the chosen rank does in place of its step.
static calx_status *misbehave(kind k)
{
  if (k == RAISE) return calx_status_new(CALX_DATA_LOSS, "the file is short");
  if (k == MEET) return calx_rendezvous("other", NULL, 0, NULL, NULL);
  if (k != REDUCE) return NULL;
  calx_scope *scope = calx_scope_begin();
  calx_sync(calx_all_reduce(calx_ones(CALX_SHAPE(3)), CALX_REDUCE_MAX));
  return calx_scope_end(scope);
}

static calx_status *train(calx_module *fc, calx_optimizer *opt, int index,
                          fault *f)
{
  CALX_TRY(calx_optimizer_error(opt));
  for (int s = 0; s < STEPS; s++) {
    if (f->kind == NONE || index != f->rank || s != f->step) {
      CALX_TRY(train_step(fc, opt));
      continue;
    }
    f->at = cx_now_ns();
    CALX_TRY(misbehave(f->kind));
    if (f->kind == FEWER) return NULL;
  }
  return NULL;
}

static calx_status *run_rank(int index, void *user)
{
  fault *f = user;
  calx_module *fc = calx_nn_linear(NULL, NULL, 4, 4);
  calx_optimizer *opt = calx_sgd(fc, .lr = 0.1);
  calx_status *status = train(fc, opt, index, f);
  calx_optimizer_free(opt);
  calx_module_free(fc);
  if (status == NULL || index == f->rank) return status;
  char name[16];
  snprintf(name, sizeof name, "rank %d", f->rank);
  bool told = calx_status_code(status) == CALX_ABORTED &&
              strstr(calx_status_message(status), name) != NULL;
  if (!told) print_error("rank %d: %s\n", index, calx_status_message(status));
  told ? f->told++ : f->wrong++;
  int64_t now = cx_now_ns(), before = f->heard;
  while (before < now &&
         !atomic_compare_exchange_weak(&f->heard, &before, now)) {
  }
  return status;
}

static void check(const fault *f, int ranks, calx_status *status)
{
  calx_code wanted = f->kind == NONE    ? CALX_OK
                     : f->kind == RAISE ? CALX_DATA_LOSS
                                        : CALX_ABORTED;
  int told = f->kind == NONE ? 0 : ranks - 1;
  int64_t late_ms = told > 0 ? (f->heard - f->at) / 1000000 : 0;
  bool right = calx_status_code(status) == wanted && f->told == told &&
               f->wrong == 0 && late_ms < SOON_MS;
  if (!right) {
    print_error("%s of rank %d of %d at step %d: %d told within %lld ms, %s\n",
                names[f->kind], f->rank, ranks, f->step, f->told,
                (long long)late_ms, calx_status_message(status));
  }
  calx_status_free(status);
  assert_true(right);
}

static void test_faults(void **state)
{
  (void)state;
  set_devices(MOST_RANKS);
  int of[KINDS] = { 0 };
  for (long i = 0; i < runs; i++) {
    int ranks = 2 + (int)chance(MOST_RANKS - 1);
    fault f = { .kind = (kind)chance(KINDS),
                .rank = (int)chance((uint64_t)ranks),
                .step = (int)chance(STEPS) };
    of[f.kind]++;
    alarm(HANG_S);
    check(&f, ranks, calx_launch(run_rank, &f, .devices = ranks));
  }
  alarm(0);
  for (int k = 0; k < KINDS; k++) print_message("  %s: %d\n", names[k], of[k]);
}

int main(int argc, char **argv)
{
  runs = long_or(20000, runs);
  if (argc > 1) runs = atol(argv[1]);
  if (argc > 2) seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_faults) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
