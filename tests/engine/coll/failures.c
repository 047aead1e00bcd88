// Members that never come, come late, die, or bring another operation: of one
// process, then each of its own.
#include "support/long.h"
#include "world.h"

static const char all[] = "replica_groups = dense<> : tensor<0x0xi64>";

static cx_hlo_module *sum(const char *type)
{
  return world_one("all_reduce", 1, all, BODY("stablehlo.add", "f32"), type,
                   type);
}

static void check_failed(world_device *d, calx_code code, const char *piece)
{
  CHECK_FAILS(code, d->status, piece);
  d->status = NULL;
}

static void check_well(const world_device *d, double want)
{
  if (d->status != NULL) fail_msg("%s", calx_status_message(d->status));
  assert_true(d->out[0] == want);
}

static void test_never_comes(void **state)
{
  (void)state;
  world w;
  world_start(&w, 4, 1);
  w.timeout_ms = 2000;  // between the two that come
  cx_hlo_module *m = sum("3xf32");
  w.devices[0].module = w.devices[2].module = m;
  // Whoever gives up first says it to the other, as the first error.
  world_run(&w);
  for (int i = 0; i < 4; i += 2) {
    check_failed(
        &w.devices[i], CALX_DEADLINE_EXCEEDED,
        "all_reduce of f32[3] (collective 0 of the program): after 2000 "
        "ms these have not arrived: replica 1, replica 3");
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

// Those whose time is over at once say the same, though one of them has left by
// then.
static void test_late_together(void **state)
{
  (void)state;
  world w;
  world_start(&w, 4, 1);
  w.timeout_ms = 20;
  cx_hlo_module *m = sum("3xf32");
  w.devices[0].module = w.devices[2].module = m;
  for (int i = 0; i < 40; i++) {
    world_run(&w);
    calx_status *a = w.devices[0].status, *b = w.devices[2].status;
    assert_int_equal(calx_status_code(a), CALX_DEADLINE_EXCEEDED);
    assert_string_equal(calx_status_message(a), calx_status_message(b));
    calx_status_free(a);
    calx_status_free(b);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_names_partitions(void **state)
{
  (void)state;
  world w;
  world_start(&w, 1, 2);
  w.timeout_ms = 1;
  cx_hlo_module *m =
      world_one("all_reduce", 1,
                "replica_groups = dense<0> : tensor<1x1xi64>, channel_handle = "
                "#stablehlo.channel_handle<handle = 1, type = 1>",
                BODY("stablehlo.add", "f32"), "f32", "f32");
  w.devices[0].module = m;
  world_run(&w);
  check_failed(&w.devices[0], CALX_DEADLINE_EXCEEDED, "replica 0 partition 1");
  cx_hlo_module_free(m);
  world_end(&w);
}

// Without a limit that would help: the end of the launch tells the others.
static void test_dies(void **state)
{
  (void)state;
  for (int late = 0; late < 2; late++) {
    world w;
    world_start(&w, 4, 1);
    cx_hlo_module *m = sum("f32");
    for (int i = 0; i < 4; i++) w.devices[i].module = m;
    w.devices[1].dies = "the disk is full";
    w.devices[late ? 1 : 3].late_ms = 30;
    world_run(&w);
    check_failed(&w.devices[1], CALX_INTERNAL, "the disk is full");
    for (int i = 0; i < 4; i++) {
      if (i == 1) continue;
      check_failed(&w.devices[i], CALX_ABORTED, "the disk is full");
    }
    cx_hlo_module_free(m);
    world_end(&w);
  }
}

static void test_ends_without_coming(void **state)
{
  (void)state;
  for (int late = 0; late < 2; late++) {
    world w;
    world_start(&w, 2, 1);
    cx_hlo_module *m = sum("f32");
    w.devices[0].module = w.devices[1].module = m;
    w.devices[1].skips = true;
    w.devices[late].late_ms = 20;
    world_run(&w);
    check_well(&w.devices[1], 0);
    check_failed(&w.devices[0], CALX_FAILED_PRECONDITION,
                 "replica 1 ended its launch without arriving");
    cx_hlo_module_free(m);
    world_end(&w);
  }
}

// One runs a collective more often than the others.
static void test_ends_early(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = sum("f32");
  w.devices[0].module = w.devices[1].module = m;
  w.devices[0].times = 3;
  w.devices[1].times = 2;
  world_run(&w);
  check_well(&w.devices[1], 0);
  check_failed(&w.devices[0], CALX_FAILED_PRECONDITION, "replica 1 ended");
  cx_hlo_module_free(m);
  world_end(&w);
}

static void check_mismatch(cx_hlo_module *a, cx_hlo_module *b,
                           const char *first, const char *second)
{
  world w;
  world_start(&w, 2, 1);
  w.devices[0].module = a;
  w.devices[1].module = b;
  world_run(&w);
  for (int i = 0; i < 2; i++) {
    assert_non_null(strstr(calx_status_message(w.devices[i].status), first));
    check_failed(&w.devices[i], CALX_FAILED_PRECONDITION, second);
  }
  world_end(&w);
}

static void test_mismatch(void **state)
{
  (void)state;
  cx_hlo_module *x = sum("2xf32");
  cx_hlo_module *shape = sum("3xf32");
  cx_hlo_module *body = world_one(
      "all_reduce", 1, all, BODY("stablehlo.maximum", "f32"), "2xf32", "2xf32");
  cx_hlo_module *kind =
      world_one("collective_permute", 1,
                "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>", "",
                "2xf32", "2xf32");
  check_mismatch(x, shape, "all_reduce of f32[2]", "all_reduce of f32[3]");
  check_mismatch(x, kind, "replica 0 has all_reduce of f32[2]",
                 "replica 1 has collective_permute of f32[2]");
  check_mismatch(x, body, "replica 0 has all_reduce", "replica 1 has all_red");
  cx_hlo_module_free(x);
  cx_hlo_module_free(shape);
  cx_hlo_module_free(body);
  cx_hlo_module_free(kind);
}

// Groups that overlap without being the same.
static void test_other_groups(void **state)
{
  (void)state;
  for (int late = 0; late < 2; late++) {
    world w;
    world_start(&w, 3, 1);
    cx_hlo_module *a =
        world_one("all_reduce", 1,
                  "replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>",
                  BODY("stablehlo.add", "f32"), "f32", "f32");
    cx_hlo_module *b =
        world_one("all_reduce", 1,
                  "replica_groups = dense<[[0, -1], [1, 2]]> : tensor<2x2xi64>",
                  BODY("stablehlo.add", "f32"), "f32", "f32");
    w.devices[0].module = a;
    w.devices[1].module = b;
    w.devices[late].late_ms = 20;
    world_run(&w);
    check_failed(&w.devices[0], CALX_FAILED_PRECONDITION, "group");
    check_failed(&w.devices[1], CALX_FAILED_PRECONDITION, "group");
    cx_hlo_module_free(a);
    cx_hlo_module_free(b);
    world_end(&w);
  }
}

// The same operation from two places of the text is no mismatch.
static void test_same_twice(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *a = sum("f32"), *b = sum("f32");
  w.devices[0].module = a;
  w.devices[1].module = b;
  w.devices[0].in[0] = 1;
  w.devices[1].in[0] = 2;
  world_run(&w);
  check_well(&w.devices[0], 3);
  check_well(&w.devices[1], 3);
  cx_hlo_module_free(a);
  cx_hlo_module_free(b);
  world_end(&w);
}

// A region that fails in one member's slice fails in all, and all leave.
static void test_region_fails(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = world_one(
      "all_reduce", 1, all,
      "{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
      "%s = \"stablehlo.custom_call\"(%x) <{call_target_name = \"nobody\"}> : "
      "(tensor<f32>) -> tensor<f32>\n"
      "\"stablehlo.return\"(%s) : (tensor<f32>) -> ()\n}",
      "2xf32", "2xf32");
  w.devices[0].module = w.devices[1].module = m;
  world_run(&w);
  for (int i = 0; i < 2; i++) {
    assert_non_null(w.devices[i].status);
    calx_status_free(w.devices[i].status);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

// A client that goes on after failures keeps little of them.
static void test_many_failures(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  w.timeout_ms = 1;
  cx_hlo_module *m = sum("f32");
  w.devices[0].module = m;
  const long before = cx_alloc_live();
  for (int i = 0; i < 200; i++) {
    world_run(&w);
    check_failed(&w.devices[0], CALX_DEADLINE_EXCEEDED, "replica 1");
  }
  assert_in_range(cx_alloc_live() - before, 0, 300);
  w.devices[1].module = m;
  w.timeout_ms = 600000;
  world_run(&w);
  check_well(&w.devices[0], 0);
  cx_hlo_module_free(m);
  world_end(&w);
}

// Whatever goes wrong with some, nobody waits for ever, nobody succeeds without
// all of its group, and the next run is a new one.
static void test_at_random(void **state)
{
  (void)state;
  enum { N = 4, WAYS = 3 };
  const long runs = long_or(20000, sanitized_or(150, 400));
  static const char *const groups[WAYS] = {
    "replica_groups = dense<> : tensor<0x0xi64>",
    "replica_groups = dense<[[0, 1], [3, 2]]> : tensor<2x2xi64>",
    "replica_groups = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>"
  };
  static const int partner[WAYS][N] = { { 0 }, { 1, 0, 3, 2 }, { 2, 3, 0, 1 } };
  cx_hlo_module *m[WAYS];
  for (int k = 0; k < WAYS; k++) {
    m[k] = world_one("all_reduce", 1, groups[k], BODY("stablehlo.add", "f32"),
                     "f32", "f32");
  }
  world w;
  world_start(&w, N, 1);
  uint32_t random = 1;
  for (long run = 0; run < runs; run++) {
    int way[N];
    bool same = true;
    for (int i = 0; i < N; i++) {
      random = random * 1664525 + 1013904223;
      const uint32_t r = random >> 12;
      world_device *d = &w.devices[i];
      way[i] = r % 8 == 0 ? (int)(r >> 3) % WAYS : 0;
      d->module = m[way[i]];
      d->dies = (r >> 8) % 8 == 0 ? "no more" : NULL;
      d->skips = (r >> 11) % 8 == 0;
      d->late_ms = (r >> 14) % 16 == 0;
      d->in[0] = (double)(1 << i);
      same = same && way[i] == way[0] && d->dies == NULL && !d->skips;
    }
    world_run(&w);
    for (int i = 0; i < N; i++) {
      world_device *d = &w.devices[i];
      double sum = 0;
      for (int k = 0; k < N; k++) {
        const bool with = way[i] == 0 || k == i || k == partner[way[i]][i];
        if (!with || d->status != NULL || d->skips) continue;
        assert_int_equal(way[k], way[i]);
        assert_true(w.devices[k].dies == NULL && !w.devices[k].skips);
        sum += (double)(1 << k);
      }
      if (d->status == NULL && !d->skips) assert_true(d->out[0] == sum);
      if (same) assert_null(d->status);
      calx_status_free(d->status);
    }
  }
  for (int k = 0; k < WAYS; k++) cx_hlo_module_free(m[k]);
  world_end(&w);
}

static void test_no_memory(void **state)
{
  (void)state;
  world w;
  world_start(&w, 1, 1);
  cx_hlo_module *m = sum("2xf32");
  const cx_hlo_op *op = world_op(m);
  float x[3] = { 1, 2, 3 };
  const cpu_ref_tensor in = { op->operands[0]->type.tensor, x };
  const cpu_ref_tensor out = { op->operands[0]->type.tensor, x + 1 };
  for (long n = 0;; n++) {
    cpu_coll_launch l = { .coll = w.coll, .n_replicas = 1, .n_partitions = 1 };
    cx_alloc_fail_at(n);
    calx_status *status = cpu_coll_run(&l, m, op, &in, &out);
    cx_alloc_fail_at(-1);
    cpu_coll_end(&l, status);
    if (status == NULL) break;
    assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    calx_status_free(status);
  }
  assert_true(x[1] == 1 && x[2] == 2);
  cx_hlo_module_free(m);
  world_end(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_never_comes),
    CHECK_TEST(test_late_together),
    CHECK_TEST(test_names_partitions),
    CHECK_TEST(test_dies),
    CHECK_TEST(test_ends_without_coming),
    CHECK_TEST(test_ends_early),
    CHECK_TEST(test_mismatch),
    CHECK_TEST(test_other_groups),
    CHECK_TEST(test_same_twice),
    CHECK_TEST(test_region_fails),
    CHECK_TEST(test_many_failures),
    CHECK_TEST(test_no_memory),
    CHECK_TEST(test_at_random),
  };
  int failed = 0;
  for (world_together = 0; world_together < 3; world_together++) {
    print_message("of a process: %u\n", (unsigned)world_together);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return failed;
}
