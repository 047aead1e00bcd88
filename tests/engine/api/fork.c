// fork: a child of a process that has run programs runs its own.
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define F4 "tensor<4xf32>"

typedef struct fixture {
  PJRT_Client *client;
  PJRT_LoadedExecutable *program;
} fixture;

// Waits for its argument, so that the device's thread has to run it.
static void run_queued(fixture *f)
{
  host_pending p = host_promise(f->client, 0, 4);
  PJRT_Buffer *args[] = { p.buffer, p.buffer };
  PJRT_Buffer *sum = NULL;
  HOST_OK(host_run(f->program, NULL, args, 2, &sum));
  host_fulfil(&p, 1);
  host_check_floats(sum, 4, 2, 2);
  host_free(sum);
  host_free(p.buffer);
}

static void test_child(void **state)
{
  (void)state;
  fixture f = { .client = host_client(1) };
  f.program = host_program(f.client, BINARY("add", F4));
  run_queued(&f);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(20);
    run_queued(&f);
    run_queued(&f);
    host_program_free(f.program);
    host_client_free(f.client);
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  run_queued(&f);
  host_program_free(f.program);
  host_client_free(f.client);
}

int main(void)
{
  const struct CMUnitTest tests[] = { HOST_TEST(test_child) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
