// What each collective computes, by the examples of the specification and by
// sums that can be checked by hand; groups; aliased memory. All of it between
// devices of one process, then of several with one and two devices each.
#include "world.h"

static const char one_group_2[] =
    "replica_groups = dense<[[0, 1]]> : "
    "tensor<1x2xi64>";

static void set(world_device *d, size_t n, const double *v)
{
  memcpy(d->in, v, n * sizeof *v);
}

static void expect(const world_device *d, size_t n, const double *v)
{
  if (d->status != NULL) fail_msg("%s", calx_status_message(d->status));
  for (size_t i = 0; i < n; i++) {
    if (d->out[i] == v[i]) continue;
    fail_msg("element %zu is %g, not %g", i, d->out[i], v[i]);
  }
}

#define SET(device, ...)                                            \
  set((device), sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), \
      (const double[]){ __VA_ARGS__ })
#define EXPECT(device, ...)                                            \
  expect((device), sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), \
         (const double[]){ __VA_ARGS__ })

static void all_have(world *w, const cx_hlo_module *m)
{
  for (uint32_t i = 0; i < w->n_replicas * w->n_partitions; i++) {
    w->devices[i].module = m;
    assert_null(cpu_coll_check(world_op(m), w->n_replicas, w->n_partitions));
  }
}

// ---- the examples of the specification ----

static void test_all_gather(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m =
      world_one("all_gather", 2,
                "all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : "
                "tensor<1x2xi64>",
                "", "2x2xi64", "2x4xi64");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2, 3, 4, 11, 12, 13, 14);
  SET(&w.devices[1], 5, 6, 7, 8, 15, 16, 17, 18);
  world_run(&w);
  for (int i = 0; i < 2; i++) {
    EXPECT(&w.devices[i], 1, 2, 5, 6, 3, 4, 7, 8, 11, 12, 15, 16, 13, 14, 17,
           18);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_all_reduce(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = world_one("all_reduce", 2, one_group_2,
                               BODY("stablehlo.add", "i64"), "4xi64", "4xi64");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2, 3, 4, 9, 10, 11, 12);
  SET(&w.devices[1], 5, 6, 7, 8, 13, 14, 15, 16);
  for (int way = 0; way < 3; way++) {
    w.devices[0].in_place = way > 0;
    w.devices[1].in_place = w.devices[1].shifted = way > 1;
    world_run(&w);
    EXPECT(&w.devices[0], 6, 8, 10, 12, 22, 24, 26, 28);
    EXPECT(&w.devices[1], 6, 8, 10, 12, 22, 24, 26, 28);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_reduce_scatter(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = world_one(
      "reduce_scatter", 1,
      "scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : "
      "tensor<1x2xi64>",
      BODY("stablehlo.add", "i64"), "2x4xi64", "2x2xi64");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2, 3, 4, 5, 6, 7, 8);
  SET(&w.devices[1], 9, 10, 11, 12, 13, 14, 15, 16);
  for (int way = 0; way < 2; way++) {
    w.devices[0].in_place = way > 0;
    world_run(&w);
    EXPECT(&w.devices[0], 10, 12, 18, 20);
    EXPECT(&w.devices[1], 14, 16, 22, 24);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_all_to_all(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = world_one(
      "all_to_all", 2,
      "split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 "
      ": i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>",
      "", "2x4xi64", "4x2xi64");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2, 3, 4, 5, 6, 7, 8, 17, 18, 19, 20, 21, 22, 23, 24);
  SET(&w.devices[1], 9, 10, 11, 12, 13, 14, 15, 16, 25, 26, 27, 28, 29, 30, 31,
      32);
  for (int way = 0; way < 2; way++) {
    w.devices[1].in_place = way > 0;
    world_run(&w);
    EXPECT(&w.devices[0], 1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22, 25, 26, 29,
           30);
    EXPECT(&w.devices[1], 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23, 24, 27, 28,
           31, 32);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

// The result's element [i…] by the definition, for 3-dimensional operands
// d * 100 + its number.
static double exchanged(const int64_t *dims, int split, int join, int n, int me,
                        const int64_t *at)
{
  const int64_t part = dims[split] / n;
  int64_t from[3] = { at[0], at[1], at[2] };
  const int64_t joined = split == join ? part : dims[join];
  const int64_t k = at[join] / joined;
  from[join] = at[join] % joined;
  from[split] += me * part;
  return (double)(k * 100 + (from[0] * dims[1] + from[1]) * dims[2] + from[2]);
}

static void check_exchange(int split, int join)
{
  static const int64_t dims[3] = { 2, 4, 2 };
  int64_t to[3] = { dims[0], dims[1], dims[2] };
  to[split] /= 2;
  to[join] *= 2;
  char attributes[256], in[64], out[64];
  snprintf(attributes, sizeof attributes,
           "split_dimension = %d : i64, concat_dimension = %d : i64, "
           "split_count = 2 : i64, %s",
           split, join, one_group_2);
  snprintf(in, sizeof in, "2x4x2xi16");
  snprintf(out, sizeof out, "%dx%dx%dxi16", (int)to[0], (int)to[1], (int)to[2]);
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = world_one("all_to_all", 1, attributes, "", in, out);
  all_have(&w, m);
  for (int d = 0; d < 2; d++) {
    for (int i = 0; i < 16; i++) w.devices[d].in[i] = d * 100 + i;
  }
  world_run(&w);
  for (int d = 0; d < 2; d++) {
    double want[16];
    for (int64_t i = 0; i < 16; i++) {
      const int64_t at[3] = { i / (to[1] * to[2]), i / to[2] % to[1],
                              i % to[2] };
      want[i] = exchanged(dims, split, join, 2, d, at);
    }
    expect(&w.devices[d], 16, want);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_all_to_all_dimensions(void **state)
{
  (void)state;
  for (int split = 0; split < 3; split++) {
    for (int join = 0; join < 3; join++) check_exchange(split, join);
  }
}

static void test_permute(void **state)
{
  (void)state;
  world w;
  world_start(&w, 3, 1);
  cx_hlo_module *m = world_one(
      "collective_permute", 1,
      "source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>", "",
      "2x2xi64", "2x2xi64");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2, 3, 4);
  SET(&w.devices[1], 5, 6, 7, 8);
  SET(&w.devices[2], 9, 10, 11, 12);
  for (int way = 0; way < 2; way++) {
    for (int i = 0; i < 3; i++) w.devices[i].in_place = way > 0;
    world_run(&w);
    EXPECT(&w.devices[0], 0, 0, 0, 0);
    EXPECT(&w.devices[1], 1, 2, 3, 4);
    EXPECT(&w.devices[2], 5, 6, 7, 8);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_broadcast(void **state)
{
  (void)state;
  world w;
  world_start(&w, 4, 1);
  cx_hlo_module *m =
      world_one("collective_broadcast", 1,
                "replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>", "",
                "1x2xi64", "1x2xi64");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2);
  SET(&w.devices[1], 3, 4);
  SET(&w.devices[2], 5, 6);
  SET(&w.devices[3], 7, 8);
  world_run(&w);
  EXPECT(&w.devices[0], 0, 0);
  EXPECT(&w.devices[1], 5, 6);
  EXPECT(&w.devices[2], 5, 6);
  EXPECT(&w.devices[3], 0, 0);
  cx_hlo_module_free(m);
  world_end(&w);
}

// ---- groups ----

// Sums of 1, 2, 4, 8 …: each device's result says who took part.
static void check_members(uint32_t n_replicas, uint32_t n_partitions,
                          const char *op, const char *attributes,
                          const double *want)
{
  world w;
  world_start(&w, n_replicas, n_partitions);
  const bool region = strcmp(op, "all_reduce") == 0;
  cx_hlo_module *m =
      world_one(op, 1, attributes, region ? BODY("stablehlo.add", "f32") : "",
                "f32", "f32");
  all_have(&w, m);
  for (uint32_t i = 0; i < n_replicas * n_partitions; i++) {
    w.devices[i].in[0] = (double)(1 << i);
  }
  world_run(&w);
  for (uint32_t i = 0; i < n_replicas * n_partitions; i++) {
    expect(&w.devices[i], 1, want + i);
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

#define MEMBERS(r, p, op, attributes, ...) \
  check_members((r), (p), (op), (attributes), (const double[]){ __VA_ARGS__ })
#define CHANNEL \
  ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"

static void test_groups(void **state)
{
  (void)state;
  MEMBERS(4, 1, "all_reduce",
          "replica_groups = dense<[[3, 1], [0, 2]]> : tensor<2x2xi64>", 5, 10,
          5, 10);
  MEMBERS(5, 1, "all_reduce",
          "replica_groups = dense<[[0, 1, 4], [3, 2, -1]]> : tensor<2x3xi64>",
          19, 19, 12, 12, 19);
  MEMBERS(8, 1, "all_reduce", "replica_groups = dense<> : tensor<0x0xi64>", 255,
          255, 255, 255, 255, 255, 255, 255);
  MEMBERS(1, 1, "all_reduce", "replica_groups = dense<0> : tensor<1x1xi64>", 1);
  MEMBERS(3, 1, "cross-replica-sum",
          "replica_groups = dense<[[0, 2], [1, -1]]> : tensor<2x2xi64>", 5, 2,
          5);
}

// Two replicas of two partitions: devices 0 and 1 are replica 0.
static void test_partitions(void **state)
{
  (void)state;
  MEMBERS(2, 2, "all_reduce",
          "replica_groups = dense<[[0, 1]]> : "
          "tensor<1x2xi64>",
          5, 10, 5, 10);
  MEMBERS(2, 2, "all_reduce",
          "replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>" CHANNEL, 3, 3,
          12, 12);
  MEMBERS(2, 2, "all_reduce",
          "replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>" CHANNEL
          ", use_global_device_ids",
          9, 6, 6, 9);
  MEMBERS(2, 2, "all_reduce",
          "replica_groups = dense<> : tensor<0x0xi64>" CHANNEL, 15, 15, 15, 15);
  MEMBERS(2, 2, "collective_permute",
          "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>", 4,
          8, 1, 2);
  MEMBERS(2, 2, "collective_permute",
          "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>" CHANNEL, 0,
          1, 0, 4);
  MEMBERS(2, 2, "collective_broadcast",
          "replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>" CHANNEL, 2, 2, 8,
          8);
}

// ---- what is reduced ----

static void check_pair(const char *op, const char *type, double a, double b,
                       double want)
{
  char region[512], tensor[32], full[32];
  snprintf(full, sizeof full, "stablehlo.%s", op);
  snprintf(region, sizeof region,
           "{\n^bb0(%%x: tensor<%s>, %%y: tensor<%s>):\n  %%s = \"%s\"(%%x, "
           "%%y) : (tensor<%s>, tensor<%s>) -> tensor<%s>\n  "
           "\"stablehlo.return\"(%%s) : (tensor<%s>) -> ()\n}",
           type, type, full, type, type, type, type);
  snprintf(tensor, sizeof tensor, "3x%s", type);
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m =
      world_one("all_reduce", 1, one_group_2, region, tensor, tensor);
  all_have(&w, m);
  SET(&w.devices[0], a, a, a);
  SET(&w.devices[1], b, b, b);
  world_run(&w);
  for (int d = 0; d < 2; d++) {
    if (w.devices[d].status != NULL) {
      fail_msg("%s", calx_status_message(w.devices[d].status));
    }
    for (int i = 0; i < 3; i++) {
      const double got = w.devices[d].out[i];
      if (got == want || (got != got && want != want)) continue;
      fail_msg("%s of %s %g and %g is %g, not %g", op, type, a, b, got, want);
    }
  }
  cx_hlo_module_free(m);
  world_end(&w);
}

static void test_reducers(void **state)
{
  (void)state;
  static const char *const types[] = {
    "i8",           "i16",          "i32",  "i64",     "ui8", "ui16",
    "ui32",         "ui64",         "bf16", "f16",     "f32", "f64",
    "complex<f32>", "complex<f64>", "i4",   "f8E4M3FN"
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    check_pair("add", types[i], 3, 2, 5);
    check_pair("multiply", types[i], 3, 2, 6);
    if (strchr(types[i], '<') != NULL) continue;
    check_pair("maximum", types[i], 3, 2, 3);
    check_pair("minimum", types[i], 3, 2, 2);
    if (strchr(types[i], 'f') != NULL) continue;
    check_pair("and", types[i], 6, 3, 2);
    check_pair("or", types[i], 6, 3, 7);
    check_pair("xor", types[i], 6, 3, 5);
  }
  check_pair("maximum", "i8", -3, 2, 2);
  check_pair("maximum", "ui8", 253, 2, 253);
  check_pair("add", "i8", 127, 1, -128);
  check_pair("add", "i1", 1, 1, 1);
  check_pair("multiply", "i1", 1, 0, 0);
  check_pair("maximum", "i1", 0, 1, 1);
  check_pair("and", "i1", 1, 0, 0);
  check_pair("xor", "i1", 1, 1, 0);
  check_pair("maximum", "f32", (double)NAN, 2, (double)NAN);
  check_pair("minimum", "f32", 2, (double)NAN, (double)NAN);
  check_pair("maximum", "bf16", (double)NAN, 2, (double)NAN);
  check_pair("add", "f16", 65504, 65504, (double)INFINITY);
  check_pair("add", "f16", 0x1p-24, 0x1p-24, 0x1p-23);
  check_pair("add", "bf16", 1, 0x1p-8, 1);
  check_pair("add", "f64", 1, 0x1p-52, 1 + 0x1p-52);
}

// A region that is not one operation: 2 (x + y); and one in a wider type.
static void test_regions(void **state)
{
  (void)state;
  world w;
  world_start(&w, 2, 1);
  cx_hlo_module *m = world_one(
      "all_reduce", 1, one_group_2,
      "{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
      "%s = \"stablehlo.add\"(%x, %y) : (tensor<f32>, tensor<f32>) -> "
      "tensor<f32>\n"
      "%t = \"stablehlo.add\"(%s, %s) : (tensor<f32>, tensor<f32>) -> "
      "tensor<f32>\n"
      "\"stablehlo.return\"(%t) : (tensor<f32>) -> ()\n}",
      "2xf32", "2xf32");
  all_have(&w, m);
  SET(&w.devices[0], 1, 2);
  SET(&w.devices[1], 3, 4);
  world_run(&w);
  EXPECT(&w.devices[0], 8, 12);
  EXPECT(&w.devices[1], 8, 12);
  cx_hlo_module_free(m);
  m = world_one("all_reduce", 1, one_group_2, BODY("stablehlo.add", "f32"),
                "2xbf16", "2xf32");
  all_have(&w, m);
  SET(&w.devices[0], 256, 2);
  SET(&w.devices[1], 1, 4);
  world_run(&w);
  EXPECT(&w.devices[0], 257, 6);
  EXPECT(&w.devices[1], 257, 6);
  cx_hlo_module_free(m);
  world_end(&w);
}

// Sizes beside the slices of eight members, many times in one launch.
static void test_many(void **state)
{
  (void)state;
  static const char *const types[] = { "0xf32", "1xf32", "7xf32", "64xf32" };
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    world w;
    world_start(&w, 8, 1);
    cx_hlo_module *m =
        world_one("all_reduce", 1, "replica_groups = dense<> : tensor<0x0xi64>",
                  BODY("stablehlo.add", "f32"), types[t], types[t]);
    all_have(&w, m);
    double want[MOST_VALUES];
    for (int i = 0; i < MOST_VALUES; i++) {
      want[i] = 28 + 8 * i;
      for (int d = 0; d < 8; d++) w.devices[d].in[i] = d + i;
    }
    for (int d = 0; d < 8; d++) w.devices[d].times = 20;
    w.devices[3].late_ms = 20;
    world_run(&w);
    for (int d = 0; d < 8; d++) {
      expect(&w.devices[d], (size_t)strtol(types[t], NULL, 10), want);
      assert_int_equal(w.devices[d].launch.n_done, 20);
    }
    cx_hlo_module_free(m);
    world_end(&w);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_all_gather),
    CHECK_TEST(test_all_reduce),
    CHECK_TEST(test_reduce_scatter),
    CHECK_TEST(test_all_to_all),
    CHECK_TEST(test_all_to_all_dimensions),
    CHECK_TEST(test_permute),
    CHECK_TEST(test_broadcast),
    CHECK_TEST(test_groups),
    CHECK_TEST(test_partitions),
    CHECK_TEST(test_reducers),
    CHECK_TEST(test_regions),
    CHECK_TEST(test_many),
  };
  int failed = 0;
  for (world_together = 0; world_together < 3; world_together++) {
    print_message("of a process: %u\n", (unsigned)world_together);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return failed;
}
