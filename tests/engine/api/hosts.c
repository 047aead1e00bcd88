// hosts: collectives between hosts, by MPI. What needs no rounding has the bits
// of one process; all ranks have the same bits in any case.
//
// The hosts are processes of this machine that share no memory. MPI's ranks
// come from the library's own PMI.
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "runs.h"
#include "world/world.h"

static const program *find(const char *name)
{
  for (int i = 0; i < n_programs; i++) {
    if (strcmp(programs[i].name, name) == 0) return &programs[i];
  }
  fail_msg("no program '%s'", name);
  return NULL;
}

// Regions that are not associative give what the order of the hosts makes.
static void check_exact(int hosts, const int *per_host, int devices)
{
  runs_exact = true;
  world w = world_of_hosts(hosts, per_host, devices, 0);
  const int n = w.processes * devices;
  world_free(&w);
  w = world_of_hosts(hosts, per_host, devices, all_bytes(n));
  world_start(&w, run_all, NULL);
  world_join(&w);
  PJRT_Client *client = host_client(n);
  unsigned char *wanted = malloc(all_bytes(n) + 1);
  size_t at = 0;
  int ran = 0;
  for (int i = 0; i < n_programs; i++) {
    const program *p = &programs[i];
    if (!fits(p, n)) continue;
    run_program(p, n, client, 0, n, wanted);
    const size_t bytes = (size_t)n * result_bytes(p);
    if (memcmp(wanted, w.shared + at, bytes) != 0 && p != find("any region")) {
      fail_msg("%s: other values than in one process", p->name);
    }
    at += bytes;
    ran++;
  }
  print_message("%d programs on %d devices of %d hosts\n", ran, n, hosts);
  free(wanted);
  host_client_free(client);
  world_free(&w);
}

// Sums of all that are rounded.
static void check_equal(int hosts, const int *per_host)
{
  static const char *const names[] = { "small", "large",  "bf16",      "f16",
                                       "f64",   "a list", "any region" };
  runs_exact = false;
  int n = 0;
  for (int i = 0; i < hosts; i++) n += per_host[i];
  world w = world_of_hosts(hosts, per_host, 1, all_bytes(n));
  world_start(&w, run_all, NULL);
  world_join(&w);
  size_t at = 0;
  for (int i = 0; i < n_programs; i++) {
    if (!fits(&programs[i], n)) continue;
    const size_t bytes = result_bytes(&programs[i]);
    bool checked = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      checked = checked || strcmp(names[k], programs[i].name) == 0;
    }
    for (int k = 1; k < n && checked; k++) {
      const unsigned char *first = w.shared + at;
      if (memcmp(first, first + (size_t)k * bytes, bytes) != 0) {
        fail_msg("%s: ranks 0 and %d differ", programs[i].name, k);
      }
    }
    at += (size_t)n * bytes;
  }
  world_free(&w);
}

static void test_one_and_one(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 1, 1 }, 1);
  check_equal(2, (int[]){ 1, 1 });
}

static void test_two_and_two(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 2, 2 }, 1);
  check_equal(2, (int[]){ 2, 2 });
}

static void test_three_and_one(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 3, 1 }, 1);
  check_equal(2, (int[]){ 1, 3 });
}

static void test_three_hosts(void **state)
{
  (void)state;
  check_exact(3, (int[]){ 1, 1, 1 }, 1);
  check_equal(3, (int[]){ 1, 1, 1 });
}

// Several devices in each process.
static void test_devices(void **state)
{
  (void)state;
  check_exact(2, (int[]){ 1, 1 }, 2);
}

// ---- what goes wrong ----

#define SUM(n, more)                                                         \
  "func.func @main(%0: tensor<" n "xf32>) -> tensor<" n                      \
  "xf32> {\n"                                                                \
  "%c = stablehlo.constant dense<" more "> : tensor<" n                      \
  "xf32>\n"                                                                  \
  "%s = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<[[0, 1, 2, "   \
  "3]]> : tensor<1x4xi64>}> " REGION("add", "f32") " : (tensor<" n           \
                                                   "xf32>) -> tensor<" n     \
                                                   "xf32>\n%r = "            \
                                                   "stablehlo.add %s, %c : " \
                                                   "tensor<" n               \
                                                   "xf32>\n"                 \
                                                   "return %r : tensor<" n   \
                                                   "xf32>\n}"
// Replicas 0 to 2 sum, replica 3 does not.
#define BRANCH \
  "func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n"              \
  "%i = stablehlo.replica_id : tensor<ui32>\n"                           \
  "%c = stablehlo.constant dense<3> : tensor<ui32>\n"                    \
  "%p = stablehlo.compare LT, %i, %c : (tensor<ui32>, tensor<ui32>) -> " \
  "tensor<i1>\n"                                                         \
  "%r = \"stablehlo.if\"(%p) ({\n"                                       \
  "%s = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<[[0, 1, 2, " \
  "3]]> : tensor<1x4xi64>}> " REGION(                                      \
      "add", "f32") " : (tensor<4xf32>) -> tensor<4xf32>\n"              \
                    "stablehlo.return %s : tensor<4xf32>\n}, {\n"        \
                    "stablehlo.return %0 : tensor<4xf32>\n"              \
                    "}) : (tensor<i1>) -> tensor<4xf32>\n"               \
                    "return %r : tensor<4xf32>\n}"

static char said[1024];

// One run on f32[n]; the code, 0: the sum of all, or its operand where
// `comes` is not set, is right.
static int run_program_once(peer *self, PJRT_LoadedExecutable *e, size_t n,
                            bool comes)
{
  PJRT_Buffer *in =
      host_floats(host_device(self->client, 0), n, (float)self->process);
  PJRT_Buffer *const *args[] = { &in };
  PJRT_Buffer *out = NULL, **outs[] = { &out };
  HOST_OK(world_run(e, 1, 1, args, outs));
  const int code = host_take(host_ready(out));
  snprintf(said, sizeof said, "%s", host_words());
  if (code == 0) host_check_floats(out, n, comes ? 6 : 3, comes ? 4 : 1);
  host_free(out);
  host_free(in);
  return code;
}

static int run_once(peer *self, const char *text, size_t n, bool comes)
{
  PJRT_LoadedExecutable *e = world_program(self->client, text, 4);
  const int code = run_program_once(self, e, n, comes);
  host_program_free(e);
  return code;
}

static void failed(const peer *self, int code, const char *words)
{
  if (code != 0 && strstr(said, words) != NULL) return;
  fail_msg("process %d: code %d: '%s', not '%s'", self->process, code, said,
           words);
}

static void fails(peer *self, const char *text, size_t n, const char *words)
{
  failed(self, run_once(self, text, n, true), words);
}

// After each failure the world goes on.
static void go_wrong(peer *self)
{
  const bool last = self->process == 3;
  assert_int_equal(run_once(self, SUM("4", "0.0"), 4, true), 0);
  fails(self, last ? SUM("5", "0.0") : SUM("4", "0.0"), last ? 5 : 4,
        " has all_reduce of f32[4], replica 3 has all_reduce of f32[5]");
  assert_int_equal(run_once(self, SUM("4", "0.0"), 4, true), 0);
  fails(self, last ? SUM("4", "1.0") : SUM("4", "0.0"), 4,
        "of another program");
  assert_int_equal(run_once(self, SUM("4", "0.0"), 4, true), 0);
  if (last) {
    assert_int_equal(run_once(self, BRANCH, 4, false), 0);
  } else {
    fails(self, BRANCH, 4, "replica 3 ended its launch without arriving");
  }
  assert_int_equal(run_once(self, SUM("4", "0.0"), 4, true), 0);
}

static void test_wrong(void **state)
{
  (void)state;
  const int sizes[][2] = { { 2, 2 }, { 3, 1 }, { 1, 3 } };
  for (int i = 0; i < 3; i++) {
    world w = world_of_hosts(2, sizes[i], 1, 0);
    world_start(&w, go_wrong, NULL);
    world_join(&w);
    world_free(&w);
  }
}

static void come_late(peer *self)
{
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  host_client_free(self->client);
  self->client = world_client(self->world, self->process);
  PJRT_LoadedExecutable *e = world_program(self->client, SUM("4", "0.0"), 4);
  atomic_int *gave_up = (atomic_int *)(void *)self->world->shared;
  assert_null(cx_world_barrier("ready", 60000));
  while (self->process == 3 && atomic_load(gave_up) < 3) usleep(1000);
  failed(self, run_program_once(self, e, 4, true),
         "these have not arrived: replica 3");
  atomic_fetch_add(gave_up, 1);
  assert_null(cx_world_barrier("late", 60000));
  assert_int_equal(run_program_once(self, e, 4, true), 0);
  host_program_free(e);
}

// A client that is opened again meets the others again.
static void test_late(void **state)
{
  (void)state;
  world w = world_of_hosts(2, (int[]){ 2, 2 }, 1, sizeof(atomic_int));
  world_start(&w, come_late, NULL);
  world_join(&w);
  world_free(&w);
}

// ---- much ----

// Runs of every kind of more than a transfer, and than what stays in memory.
static const program large[] = {
  { "much", 4, REDUCE(ALL, "add", "f32", "1500000xf32"), SAME("1500000xf32") },
  { "gather",
    4,
    "%r = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, "
    "replica_groups = " ALL
    "}> : (tensor<700000xf32>) -> "
    "tensor<2800000xf32>\nreturn %r : tensor<2800000xf32>",
    { "700000xf32" },
    { "2800000xf32" } },
  { "scatter",
    4,
    "%r = \"stablehlo.reduce_scatter\"(%0) <{scatter_dimension = 1 : i64, "
    "replica_groups = dense<[[2, 0, 3, 1]]> : tensor<1x4xi64>}> " REGION(
        "add", "f32") " : (tensor<5x400000xf32>) -> tensor<5x100000xf32>\n"
                      "return %r : tensor<5x100000xf32>",
    { "5x400000xf32" },
    { "5x100000xf32" } },
  { "to all",
    4,
    "%r = \"stablehlo.all_to_all\"(%0) <{split_dimension = 0 : i64, "
    "concat_dimension = 1 : i64, split_count = 4 : i64, replica_groups = "
    "dense<[[3, 1, 0, 2]]> : tensor<1x4xi64>}> : (tensor<8x300000xf32>) -> "
    "tensor<2x1200000xf32>\nreturn %r : tensor<2x1200000xf32>",
    { "8x300000xf32" },
    { "2x1200000xf32" } },
  { "permute", 4,
    "%r = \"stablehlo.collective_permute\"(%0) <{source_target_pairs = "
    "dense<[[0, 2], [3, 1], [1, 0]]> : tensor<3x2xi64>}> : "
    "(tensor<2300000xi64>) -> tensor<2300000xi64>\nreturn %r : "
    "tensor<2300000xi64>",
    SAME("2300000xi64") },
};
enum { N_LARGE = sizeof large / sizeof *large };

static void run_large(peer *self)
{
  unsigned char *to = self->world->shared;
  for (int i = 0; i < N_LARGE; i++) {
    const size_t bytes = result_bytes(&large[i]);
    run_program(&large[i], 4, self->client, self->process, 1,
                to + (size_t)self->process * bytes);
    to += 4 * bytes;
  }
}

static void test_large(void **state)
{
  (void)state;
  size_t total = 0;
  for (int i = 0; i < N_LARGE; i++) total += 4 * result_bytes(&large[i]);
  runs_exact = true;
  world w = world_of_hosts(2, (int[]){ 2, 2 }, 1, total);
  world_start(&w, run_large, NULL);
  world_join(&w);
  PJRT_Client *client = host_client(4);
  const unsigned char *found = w.shared;
  for (int i = 0; i < N_LARGE; i++) {
    const size_t bytes = 4 * result_bytes(&large[i]);
    unsigned char *wanted = malloc(bytes);
    run_program(&large[i], 4, client, 0, 4, wanted);
    if (memcmp(found, wanted, bytes) != 0) {
      fail_msg("%s: other values than in one process", large[i].name);
    }
    free(wanted);
    found += bytes;
  }
  host_client_free(client);
  world_free(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_one_and_one),   HOST_TEST(test_two_and_two),
    HOST_TEST(test_three_and_one), HOST_TEST(test_three_hosts),
    HOST_TEST(test_devices),       HOST_TEST(test_wrong),
    HOST_TEST(test_late),          HOST_TEST(test_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
