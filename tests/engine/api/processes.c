// processes: collectives of devices of several processes give the same bits as
// those of one process, for every operation, type and group.
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs.h"

// All programs in processes, then in this one alone.
static void check_world(int processes, int devices)
{
  const int n = processes * devices;
  world w = world_new(processes, devices, all_bytes(n));
  world_start(&w, run_all, NULL);
  world_join(&w);
  compare_with_one(&w);
  world_free(&w);
}

static void test_two(void **state)
{
  (void)state;
  check_world(2, 1);
}

static void test_three(void **state)
{
  (void)state;
  check_world(3, 1);
}

static void test_four(void **state)
{
  (void)state;
  check_world(4, 1);
}

static void test_two_by_two(void **state)
{
  (void)state;
  check_world(2, 2);
}

// ---- many ranks on few cores ----

#define ROUNDS 20

static void run_rounds(peer *self)
{
  static const program sizes[] = {
    { "4 KB", 0, REDUCE(ALL, "add", "f32", "1000xf32"), SAME("1000xf32") },
    { "1 MB", 0, REDUCE(ALL, "add", "f32", "250000xf32"), SAME("250000xf32") },
  };
  unsigned char *out = malloc(1 << 20);
  for (int i = 0; i < ROUNDS; i++) {
    run_program(&sizes[i & 1], self->world->processes, self->client,
                self->process, 1, out);
  }
  free(out);
}

static void test_eight(void **state)
{
  (void)state;
  world w = world_new(8, 1, 0);
  world_start(&w, run_rounds, NULL);
  world_join(&w);
  world_free(&w);
}

// ---- memory ----

static void gather_much(peer *self)
{
  static const program p = {
    "much",
    0,
    "%r = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, "
    "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : "
    "(tensor<6000000xf32>) -> tensor<12000000xf32>\nreturn %r : "
    "tensor<12000000xf32>",
    { "6000000xf32" },
    { "12000000xf32" }
  };
  unsigned char *out = malloc(48000000);
  run_program(&p, 2, self->client, self->process, 1, out);
  free(out);
}

static int files_in_shm(void)
{
  int n = 0;
  DIR *folder = opendir("/dev/shm");
  while (folder != NULL && readdir(folder) != NULL) n++;
  if (folder != NULL) closedir(folder);
  return n;
}

// Of two operands of 24 MB no more than 16 MB each stay, and pieces and states.
static void test_memory(void **state)
{
  (void)state;
  const int files = files_in_shm();
  world w = world_new(2, 1, 0);
  world_start(&w, gather_much, NULL);
  world_join(&w);
  struct stat file;
  assert_int_equal(fstat(w.segment.fd, &file), 0);
  print_message("%ld KB stay\n", (long)file.st_blocks / 2);
  assert_true(file.st_blocks * 512 < 36 << 20);
  world_free(&w);
  assert_int_equal(files_in_shm(), files);
}

// ---- a process that is killed ----

static void run_until_lost(peer *self)
{
  static const program p = { "sum", 0, REDUCE(ALL, "add", "f32", "250000xf32"),
                             SAME("250000xf32") };
  char text[4096];
  write_text(&p, 3, text);
  PJRT_LoadedExecutable *e = world_program(self->client, text, 3);
  PJRT_Device *device = host_device(self->client, 0);
  PJRT_Buffer *in = make_argument(device, self->process, 0, p.types[0]);
  PJRT_Buffer *const *args[] = { &in };
  for (int i = 0;; i++) {
    PJRT_Buffer *out = NULL, **outs[] = { &out };
    if (self->process == 1 && i == 5) raise(SIGKILL);
    HOST_OK(world_run(e, 1, 1, args, outs));
    const int code = host_take(host_ready(out));
    const bool told = strstr(host_words(), "process 1: Killed") != NULL;
    host_free(out);
    if (code == 0) continue;
    assert_true(told);
    assert_int_equal(i, 5);
    break;
  }
  host_free(in);
  host_program_free(e);
}

// The others wait for it until its failure is reported; nothing is left of it.
static void test_killed(void **state)
{
  (void)state;
  const int files = files_in_shm();
  world w = world_new(3, 1, 0);
  world_start(&w, run_until_lost, NULL);
  world_lost(&w, 1, SIGKILL);
  cx_world_segment_fail(w.segment.head, CALX_ABORTED, "process 1: Killed");
  world_join(&w);
  world_free(&w);
  assert_int_equal(files_in_shm(), files);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_two),        HOST_TEST(test_three), HOST_TEST(test_four),
    HOST_TEST(test_two_by_two), HOST_TEST(test_eight), HOST_TEST(test_memory),
    HOST_TEST(test_killed)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
