// What is refused when a program is compiled.
#include "world.h"

#define GROUPS(text) "replica_groups = " text
#define CHANNEL \
  ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"

static void check(uint32_t n_replicas, uint32_t n_partitions, const char *op,
                  const char *attributes, const char *in, const char *out,
                  const char *piece)
{
  const bool reduces =
      strcmp(op, "all_reduce") == 0 || strcmp(op, "reduce_scatter") == 0;
  cx_hlo_module *m = world_one(
      op, 1, attributes, reduces ? BODY("stablehlo.add", "f32") : "", in, out);
  calx_status *status = cpu_coll_check(world_op(m), n_replicas, n_partitions);
  const char *said = status == NULL ? "" : calx_status_message(status);
  if ((piece[0] == '\0') != (status == NULL) || strstr(said, piece) == NULL) {
    fail_msg("%s %s: '%s', not '%s'", op, attributes, said, piece);
  }
  calx_status_free(status);
  cx_hlo_module_free(m);
}

static void sum(uint32_t n_replicas, uint32_t n_partitions,
                const char *attributes, const char *piece)
{
  check(n_replicas, n_partitions, "all_reduce", attributes, "4xf32", "4xf32",
        piece);
}

static void test_ids(void **state)
{
  (void)state;
  sum(2, 1, GROUPS("dense<[[0, 1]]> : tensor<1x2xi64>"), "");
  sum(2, 1, GROUPS("dense<> : tensor<0x0xi64>"), "");
  sum(2, 1, GROUPS("dense<[[0, 2]]> : tensor<1x2xi64>"),
      "the groups have the number 2 of 2 replicas");
  sum(3, 1, GROUPS("dense<[[0, 1]]> : tensor<1x2xi64>"),
      "the groups hold only 2 of 3 replicas");
  sum(1, 1, GROUPS("dense<-1> : tensor<1000000x1000000xi64>"),
      "the groups hold only 0 of 1 replicas");
  sum(1, 1, GROUPS("dense<0> : tensor<1x1xi64>"), "");
  sum(2, 2,
      GROUPS("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>") CHANNEL
      ", use_global_device_ids",
      "");
  sum(2, 2, GROUPS("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>") CHANNEL,
      "the groups have the number 2 of 2 replicas");
  sum(2, 1,
      GROUPS("dense<[[0, 1]]> : tensor<1x2xi64>") ", use_global_device_ids",
      "use_global_device_ids needs a channel_handle");
}

static void test_counts(void **state)
{
  (void)state;
  const char *groups = GROUPS("dense<> : tensor<0x0xi64>");
  sum(0, 1, groups, "0 replicas of 1 partitions");
  sum(1, 0, groups, "1 replicas of 0 partitions");
  sum(4294967295u, 4294967295u, groups, "more than 65536 devices");
  sum(256, 256, groups, "");
}

static void test_sizes(void **state)
{
  (void)state;
  check(2, 1, "all_gather",
        "all_gather_dim = 0 : i64, " GROUPS("dense<> : tensor<0x0xi64>"),
        "2xf32", "4xf32", "");
  check(3, 1, "all_gather",
        "all_gather_dim = 0 : i64, " GROUPS("dense<> : tensor<0x0xi64>"),
        "2xf32", "4xf32", "a group of 3 makes no f32[4] of f32[2]");
  check(3, 1, "all_gather",
        "all_gather_dim = 0 : i64, " GROUPS(
            "dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>"),
        "2xf32", "4xf32", "a group of 1 makes no f32[4] of f32[2]");
  check(2, 1, "reduce_scatter",
        "scatter_dimension = 0 : i64, " GROUPS("dense<> : tensor<0x0xi64>"),
        "6xf32", "2xf32", "a group of 2 makes no f32[2] of f32[6]");
  check(3, 1, "all_to_all",
        "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = "
        "2 : i64, " GROUPS("dense<> : tensor<0x0xi64>"),
        "4xf32", "4xf32", "a group of 3 makes no");
}

static void test_others(void **state)
{
  (void)state;
  check(2, 1, "collective_permute",
        "source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>", "f32", "f32",
        "the number 2 of 2 replicas");
  check(2, 1, "collective_permute",
        "source_target_pairs = dense<1> : tensor<1x2xi64>", "f32", "f32", "");
  check(2, 1, "collective_permute",
        "source_target_pairs = dense<> : tensor<0x2xi64>", "f32", "f32", "");
  check(3, 1, "collective_broadcast",
        GROUPS("dense<[[0, 1]]> : tensor<1x2xi64>"), "f32", "f32", "");
  check(3, 1, "collective_broadcast",
        GROUPS("dense<-1> : tensor<100000x100000xi64>"), "f32", "f32", "");
}

static void test_dynamic_root(void **state)
{
  (void)state;
  cx_hlo_module *m = world_parse(
      "\"builtin.module\"() ({\n\"func.func\"() <{sym_name = \"main\", "
      "function_type = (tensor<f32>, tensor<i32>) -> tensor<f32>}> ({\n"
      "^bb0(%a: tensor<f32>, %b: tensor<i32>):\n"
      "%r = \"stablehlo.collective_broadcast\"(%a, %b) <{replica_groups = "
      "dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root}> : (tensor<f32>, "
      "tensor<i32>) -> tensor<f32>\n"
      "\"func.return\"(%r) : (tensor<f32>) -> ()\n"
      "}) : () -> ()\n}) : () -> ()\n");
  calx_status *status = cpu_coll_check(world_op(m), 2, 1);
  assert_int_equal(calx_status_code(status), CALX_UNIMPLEMENTED);
  calx_status_free(status);
  cx_hlo_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ids),          cmocka_unit_test(test_counts),
    cmocka_unit_test(test_sizes),        cmocka_unit_test(test_others),
    cmocka_unit_test(test_dynamic_root),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
