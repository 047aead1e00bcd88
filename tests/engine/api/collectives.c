// collectives: compiled programs whose devices meet, in one call and each from
// its own thread; and meetings that fail.
#include <pthread.h>

#include "host.h"

// %a times one more than the replica's number, summed over all.
#define SUM(n, groups)                                                        \
  "module attributes {mhlo.num_replicas = " #n                                \
  " : i32} {\n"                                                               \
  "func.func @main(%a: tensor<300xf32>) -> (tensor<300xf32>, tensor<ui32>) {" \
  "\n%r = stablehlo.replica_id : tensor<ui32>\n"                              \
  "%p = stablehlo.partition_id : tensor<ui32>\n"                              \
  "%f = stablehlo.convert %r : (tensor<ui32>) -> tensor<f32>\n"               \
  "%o = stablehlo.constant dense<1.0> : tensor<f32>\n"                        \
  "%g = stablehlo.add %f, %o : tensor<f32>\n"                                 \
  "%b = stablehlo.broadcast_in_dim %g, dims = [] : (tensor<f32>) -> "         \
  "tensor<300xf32>\n"                                                         \
  "%m = stablehlo.multiply %a, %b : tensor<300xf32>\n"                        \
  "%s = \"stablehlo.all_reduce\"(%m) <{replica_groups = dense<" groups        \
  "> : tensor<1x" #n                                                          \
  "xi64>}> ({\n"                                                              \
  "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"                                 \
  "%z = stablehlo.add %x, %y : tensor<f32>\n"                                 \
  "stablehlo.return %z : tensor<f32> }) : (tensor<300xf32>) -> "              \
  "tensor<300xf32>\n"                                                         \
  "%d = stablehlo.subtract %s, %m : tensor<300xf32>\n"                        \
  "%h = stablehlo.constant dense<16> : tensor<ui32>\n"                        \
  "%i = stablehlo.multiply %r, %h : tensor<ui32>\n"                           \
  "%j = stablehlo.add %i, %p : tensor<ui32>\n"                                \
  "return %d, %j : tensor<300xf32>, tensor<ui32> } }"

// Replica 1 asks for another size than it has, which is found as it runs.
#define FAILS_ON_1                                                            \
  "func.func @main(%a: tensor<300xf32>) -> (tensor<300xf32>, tensor<ui32>) {" \
  "\n%r = stablehlo.replica_id : tensor<ui32>\n"                              \
  "%i = stablehlo.convert %r : (tensor<ui32>) -> tensor<i32>\n"               \
  "%n = stablehlo.constant dense<300> : tensor<i32>\n"                        \
  "%k = stablehlo.subtract %n, %i : tensor<i32>\n"                            \
  "%m = stablehlo.set_dimension_size %a, %k, dim = 0 : (tensor<300xf32>, "    \
  "tensor<i32>) -> tensor<300xf32>\n"                                         \
  "%s = \"stablehlo.all_reduce\"(%m) <{replica_groups = dense<[[0, 1]]> : "   \
  "tensor<1x2xi64>}> ({\n"                                                    \
  "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"                                 \
  "%z = stablehlo.add %x, %y : tensor<f32>\n"                                 \
  "stablehlo.return %z : tensor<f32> }) : (tensor<300xf32>) -> "              \
  "tensor<300xf32>\n"                                                         \
  "return %s, %r : tensor<300xf32>, tensor<ui32> }"

// The largest element of all replicas: they meet in the body of a reduction,
// which is interpreted.
#define IN_A_REGION                                                           \
  "func.func @main(%a: tensor<300xf32>) -> (tensor<300xf32>, tensor<ui32>) {" \
  "\n%r = stablehlo.replica_id : tensor<ui32>\n"                              \
  "%o = stablehlo.constant dense<0.0> : tensor<f32>\n"                        \
  "%m = \"stablehlo.reduce\"(%a, %o) ({\n"                                    \
  "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"                                 \
  "%z = stablehlo.maximum %x, %y : tensor<f32>\n"                             \
  "%s = \"stablehlo.all_reduce\"(%z) <{replica_groups = dense<[[0, 1]]> : "   \
  "tensor<1x2xi64>}> ({\n"                                                    \
  "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"                                 \
  "%t = stablehlo.maximum %p, %q : tensor<f32>\n"                             \
  "stablehlo.return %t : tensor<f32> }) : (tensor<f32>) -> tensor<f32>\n"     \
  "stablehlo.return %s : tensor<f32> }) {dimensions = array<i64: 0>} : "      \
  "(tensor<300xf32>, tensor<f32>) -> tensor<f32>\n"                           \
  "%b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> "         \
  "tensor<300xf32>\n"                                                         \
  "return %b, %r : tensor<300xf32>, tensor<ui32> }"

#define SIZE 300
#define MOST 4

typedef struct group {
  PJRT_Client *client;
  PJRT_LoadedExecutable *program;
  size_t n;
  PJRT_Buffer *in[MOST], *out[MOST][2];
} group;

static int begin(void **state)
{
  int rc = host_begin(state);
  unsetenv("CALX_CPU_REF");
  return rc;
}

static group group_new(size_t n, const char *program)
{
  group g = { .client = host_client((int64_t)n), .n = n };
  host_options o = host_replicas((int)n, 1);
  HOST_OK(host_compile(g.client, program, o.bytes, o.size, &g.program));
  for (size_t i = 0; i < n; i++) {
    g.in[i] = host_floats(host_device(g.client, i), SIZE, (float)i);
  }
  return g;
}

static void group_free(group *g)
{
  for (size_t i = 0; i < g->n; i++) host_free(g->in[i]);
  host_program_free(g->program);
  host_client_free(g->client);
}

static PJRT_Error *run_all(group *g)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  PJRT_Buffer *const *lists[MOST];
  PJRT_Buffer **outs[MOST];
  for (size_t i = 0; i < g->n; i++) {
    lists[i] = &g->in[i];
    outs[i] = g->out[i];
  }
  return CALL(PJRT_LoadedExecutable_Execute, .executable = g->program,
              .options = &options, .argument_lists = lists, .num_devices = g->n,
              .num_args = 1, .output_lists = outs);
}

static PJRT_Error *run_one(group *g, size_t i)
{
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions) };
  PJRT_Buffer *const *lists[] = { &g->in[i] };
  PJRT_Buffer **outs[] = { g->out[i] };
  return CALL(PJRT_LoadedExecutable_Execute, .executable = g->program,
              .options = &options, .argument_lists = lists, .num_devices = 1,
              .num_args = 1, .output_lists = outs,
              .execute_device = host_device(g->client, i));
}

// Element k of replica i: sum over r of (r + 1)(r + k), less its own.
static void check_one(group *g, size_t i)
{
  float found[SIZE];
  uint32_t id = 0;
  host_read(g->out[i][0], found, sizeof found);
  host_read(g->out[i][1], &id, sizeof id);
  assert_int_equal(id, 16 * i);
  for (size_t k = 0; k < SIZE; k++) {
    size_t sum = 0;
    for (size_t r = 0; r < g->n; r++) sum += (r + 1) * (r + k);
    sum -= (i + 1) * (i + k);
    assert_true(found[k] == (float)sum);
  }
}

static void free_one(group *g, size_t i)
{
  host_free(g->out[i][0]);
  host_free(g->out[i][1]);
}

static void check_all(group *g)
{
  HOST_OK(run_all(g));
  for (size_t i = 0; i < g->n; i++) {
    check_one(g, i);
    free_one(g, i);
  }
}

typedef struct member {
  group *group;
  size_t i;
} member;

static void *run_member(void *user)
{
  member *m = user;
  for (int k = 0; k < 5; k++) {
    HOST_OK(run_one(m->group, m->i));
    check_one(m->group, m->i);
    free_one(m->group, m->i);
  }
  return NULL;
}

static void check_group(size_t n, const char *program)
{
  group g = group_new(n, program);
  pthread_t threads[MOST];
  member members[MOST];
  for (int i = 0; i < 3; i++) check_all(&g);
  for (size_t i = 0; i < n; i++) {
    members[i] = (member){ &g, i };
    assert_int_equal(pthread_create(&threads[i], NULL, run_member, &members[i]),
                     0);
  }
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
  check_all(&g);
  group_free(&g);
}

static void two(void **unused)
{
  (void)unused;
  check_group(2, SUM(2, "[[0, 1]]"));
}

static void four(void **unused)
{
  (void)unused;
  check_group(4, SUM(4, "[[2, 0, 3, 1]]"));
}

// All that came hear which one did not; the group can meet again.
static void one_missing(void **unused)
{
  (void)unused;
  setenv("CALX_COLLECTIVE_TIMEOUT_S", "1", 1);
  group g = group_new(4, SUM(4, "[[0, 1, 2, 3]]"));
  unsetenv("CALX_COLLECTIVE_TIMEOUT_S");
  for (size_t i = 0; i < 4; i++) {
    if (i != 2) HOST_OK(run_one(&g, i));
  }
  for (size_t i = 0; i < 4; i++) {
    if (i == 2) continue;
    assert_int_not_equal(host_take(host_ready(g.out[i][0])), 0);
    print_message("%s\n", host_words());
    assert_non_null(strstr(host_words(), "replica 2"));
    assert_null(strstr(host_words(), "replica 3"));
    assert_int_not_equal(host_take(host_ready(g.out[i][1])), 0);
    free_one(&g, i);
  }
  check_all(&g);
  // The one that comes late meets nobody.
  HOST_OK(run_one(&g, 2));
  assert_int_not_equal(host_take(host_ready(g.out[2][0])), 0);
  free_one(&g, 2);
  check_all(&g);
  group_free(&g);
}

static void one_fails(void **unused)
{
  (void)unused;
  group g = group_new(2, FAILS_ON_1);
  for (int k = 0; k < 2; k++) {
    HOST_OK(run_all(&g));
    for (size_t i = 0; i < 2; i++) {
      assert_int_not_equal(host_take(host_ready(g.out[i][0])), 0);
      print_message("%s\n", host_words());
      assert_non_null(strstr(host_words(), "set_dimension_size"));
      free_one(&g, i);
    }
  }
  group_free(&g);
}

static void in_a_region(void **unused)
{
  (void)unused;
  group g = group_new(2, IN_A_REGION);
  for (int k = 0; k < 2; k++) {
    HOST_OK(run_all(&g));
    for (size_t i = 0; i < 2; i++) {
      float found[SIZE];
      host_read(g.out[i][0], found, sizeof found);
      for (size_t n = 0; n < SIZE; n++) assert_true(found[n] == SIZE);
      free_one(&g, i);
    }
  }
  group_free(&g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(two, begin, host_end),
    cmocka_unit_test_setup_teardown(four, begin, host_end),
    cmocka_unit_test_setup_teardown(one_missing, begin, host_end),
    cmocka_unit_test_setup_teardown(one_fails, begin, host_end),
    cmocka_unit_test_setup_teardown(in_a_region, begin, host_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
