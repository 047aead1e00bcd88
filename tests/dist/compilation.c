// compilation: a process that cannot compile what all are about to run, which
// the others are told as that.
#include "calx/collective.h"
#include "calx/ops.h"
#include "lazy/run/program.h"
#include "ranks.h"

static bool fails;  // in this process

calx_status *__real_cx_lazy_program_get(cx_lazy_execution *p,
                                        cx_lazy_choice choice);
calx_status *__wrap_cx_lazy_program_get(cx_lazy_execution *p,
                                        cx_lazy_choice choice);
calx_status *__wrap_cx_lazy_program_get(cx_lazy_execution *p,
                                        cx_lazy_choice choice)
{
  if (!fails) return __real_cx_lazy_program_get(p, choice);
  return cx_error(CALX_RESOURCE_EXHAUSTED, "no room for the program");
}

static calx_status *sum_ranks(int index, void *user)
{
  fails = index == *(const int *)user;
  calx_scope *scope = calx_scope_begin();
  calx_sync(calx_all_reduce(calx_ones(CALX_SHAPE(2)), CALX_REDUCE_SUM));
  calx_status *status = calx_scope_end(scope);
  if (fails) {
    return rank_wants(status, CALX_RESOURCE_EXHAUSTED,
                      "no room for the program");
  }
  char piece[64];
  snprintf(piece, sizeof piece, "rank %d submits a failed compilation: no room",
           *(const int *)user);
  return rank_wants(status, CALX_ABORTED, piece);
}

static void test_one_fails(void **state)
{
  (void)state;
  set_devices(1);
  for (int bad = 1; bad < 3; bad++) {
    CHECK_STATUS_OK(calx_launch(sum_ranks, &bad, .processes = bad + 1));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_one_fails) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
