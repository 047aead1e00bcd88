// A communication thread's device in a forked child.
#include <sys/wait.h>

#include "comm.h"

// A child has no thread of its parent's, and makes its own; also when it was
// forked in the middle of a run.
static void forked(void **unused)
{
  (void)unused;
  cpu_run_comm *c = NULL;
  CHECK_STATUS_OK(cpu_run_comm_new(&c));
  work w = { .fails = -1 };
  in_order(c, &w);
  for (int open = 0; open < 2; open++) {
    atomic_store(&w.n, 0);
    atomic_store(&w.held, true);
    begin(c, &w, open * 3);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      alarm(20);
      atomic_store(&w.held, false);
      cpu_run_comm_renew(c);
      in_order(c, &w);
      in_order(c, &w);
      cpu_run_comm_free(c);
      _exit(0);
    }
    atomic_store(&w.held, false);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    CHECK_STATUS_OK(cpu_run_comm_drain(c));
    cpu_run_comm_finish(c);
  }
  in_order(c, &w);
  cpu_run_comm_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(forked) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
