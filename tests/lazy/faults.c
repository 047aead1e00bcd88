// Random faults: at a random step one rank ends, fails, leaves a step out or
// runs another one. No run hangs, and all other ranks are told who it was.
#include "calx/debug.h"
#include "lines.h"
#include "support/long.h"
#include "support/ranks.h"

typedef enum fault { ENDS, FAILS, SKIPS, DIFFERS, DROPS, FAULTS } fault;

typedef struct run_of {
  fault fault;
  int victim, at, steps;
} run_of;

static const char *const names[] = { "ends", "fails", "skips", "differs",
                                     "drops" };

static calx_status *step_of(ranks_one *r, bool other, bool broken)
{
  calx_scope *step = calx_scope_begin();
  calx_tensor *x = RANK_VECTOR(r->rank, 1);
  if (broken) calx_add(x, RANK_VECTOR(1, 2, 3));
  calx_tensor *t = other ? calx_all_reduce(x, CALX_REDUCE_MAX)
                         : calx_all_reduce(x, CALX_REDUCE_SUM);
  calx_sync(t);
  if (!cx_lazy_scope_failed()) {
    double n = r->n;
    RANK_VALUES(r, t, 0, n * (n - 1) / 2, n);
  }
  return calx_scope_end(step);
}

static calx_status *victim_of(ranks_one *r, const run_of *run)
{
  for (int i = 0; i < run->steps; i++) {
    bool now = i == run->at;
    if (now && run->fault == ENDS) return NULL;
    if (now && run->fault == FAILS) {
      r->fails = true;
      return cx_error(CALX_DATA_LOSS, "the disk is full");
    }
    if (now && run->fault == SKIPS) continue;
    calx_status *status =
        step_of(r, now && run->fault == DIFFERS, now && run->fault == DROPS);
    if (now && run->fault == DROPS) {
      RANK_STATUS(r, CALX_INVALID_ARGUMENT, status, "add: ");
    } else if (now && run->fault == DIFFERS) {
      RANK_STATUS(r, CALX_ABORTED, status, "the ranks' programs differ");
      return NULL;
    } else {
      RANK_OK(r, status);
    }
  }
  return NULL;
}

static calx_status *one_of(ranks_one *r)
{
  const run_of *run = r->user;
  if (r->rank == run->victim) return victim_of(r, run);
  char who[24];
  snprintf(who, sizeof who, "rank %d", run->victim);
  for (int i = 0; i < run->steps; i++) {
    calx_status *status = step_of(r, false, false);
    if (status == NULL) continue;
    RANK_CHECK(r, i >= run->at);
    RANK_STATUS(r, CALX_ABORTED, status, who,
                run->fault == FAILS ? "the disk is full" : "");
    return NULL;
  }
  RANK_CHECK(r, !"told of it");
  return NULL;
}

static void test_random_faults(void **state)
{
  (void)state;
  const long runs = long_or(5000, 150);
  uint64_t x = 0x9e3779b97f4a7c15u;
  int counts[FAULTS] = { 0 };
  for (long i = 0; i < runs; i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    unsigned bits = (unsigned)(x >> 33);
    int n = 2 + (int)(bits % 3), steps = 2 + (int)(bits / 3 % 4);
    run_of run = { .fault = (fault)(bits / 12 % FAULTS),
                   .victim = (int)(bits / 60 % (unsigned)n),
                   .at = (int)(bits / 240 % (unsigned)steps),
                   .steps = steps };
    counts[run.fault]++;
    ranks_run(n, one_of, &run);
  }
  for (int i = 0; i < FAULTS; i++) {
    print_message("%d runs in which a rank %s\n", counts[i], names[i]);
    assert_true(counts[i] > 10);
  }
}

static int setup(void **state)
{
  calx_log_set(lines_take, NULL);
  return ranks_setup(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = { RANKS_TEST(test_random_faults) };
  return cmocka_run_group_tests(tests, setup, NULL);
}
