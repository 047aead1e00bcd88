// programs: compiling, its options, saving, and compiling ahead of time, on the
// fake plugin.
#include "fixture.h"

// ---- compiling ----

static void test_compile(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(true);
  assert_int_equal(cx_pjrt_executable_result_count(e), 1);
  cx_pjrt_executable_stats stats;
  CHECK_OK(cx_pjrt_executable_memory(e, &stats));
  assert_int_equal(stats.code, 7);
  assert_int_equal(stats.arguments, 32);
  assert_int_equal(stats.outputs, 16);
  assert_int_equal(stats.aliased, 16);
  assert_int_equal(stats.temporaries, 5);
  assert_int_equal(stats.peak, 9);
  fixture_set("minor=71");  // which does not know of a peak
  CHECK_OK(cx_pjrt_executable_memory(e, &stats));
  assert_int_equal(stats.peak, -1);
  fixture_set("fail=PJRT_Executable_GetCompiledMemoryStats@1:12:no stats");
  CHECK_FAILS(CALX_UNIMPLEMENTED, cx_pjrt_executable_memory(e, &stats),
              "no stats");
  assert_int_equal(stats.code, -1);
  cx_pjrt_executable_retain(e);
  cx_pjrt_executable_release(e);
  cx_pjrt_executable_release(e);
  cx_pjrt_executable_release(NULL);
}

static void test_cost(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(true);
  double flops;
  CHECK_OK(cx_pjrt_executable_cost(e, "flops", &flops));
  assert_float_equal(flops, 12, 0);
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_executable_cost(e, "flop", &flops),
              "no 'flop' among its 2 numbers");
  cx_pjrt_executable_release(e);
}

static void test_compile_fails(void **state)
{
  (void)state;
  cx_pjrt_executable *e = NULL;
  fixture_set("fail=PJRT_Client_Compile@1:2:-:4:7: error: nonsense");
  CHECK_FAILS(CALX_UNKNOWN, try_compile(false, NULL, &e),
              "PJRT_Client_Compile on plugin 'fake_pjrt.so'",
              "-:4:7: error: nonsense");
  fixture_set("lose=output");
  CHECK_FAILS(CALX_INTERNAL, try_compile(false, NULL, &e),
              "returned no executable");
  fixture_set("reset;outputs=3");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, try_compile(false, NULL, &e),
              "has 3 results", "signature has 1");
  fixture_set("outputs=0");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, try_compile(false, NULL, &e),
              "has 0 results");
  fixture_set("reset");
  static const char text[] = BINARY("add", "tensor<4xf32>");
  cx_pjrt_shape shapes[] = { vector(4), vector(4) };
  cx_pjrt_shape ints = { .type = PJRT_Buffer_Type_S32,
                         .rank = 1,
                         .dims = { 4 } };
  cx_pjrt_signature wrong = {
    .params = shapes, .n_params = 2, .results = &ints, .n_results = 1
  };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, text, strlen(text), NULL, &wrong, &e),
              "result 0 is i32[4] in the signature and f32[4]");
  cx_pjrt_signature many = { .n_params = (size_t)1 << 40 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, "", 0, NULL, &many, &e), "at most");
  assert_null(e);
}

// Where a plugin cannot tell types and dimensions, the count alone is compared.
static void test_results_that_are_not_told(void **state)
{
  (void)state;
  fixture_set(
      "null=PJRT_Executable_OutputElementTypes;"
      "null=PJRT_Executable_OutputDimensions");
  cx_pjrt_executable *e = compile(false);
  cx_pjrt_executable_release(e);
  fixture_set("reset;fail=PJRT_Executable_OutputDimensions@1:13:boom");
  CHECK_FAILS(CALX_INTERNAL, try_compile(false, NULL, &e), "boom");
}

// ---- compile options ----

static void check_bytes(const cx_pjrt_compile_options *options,
                        cx_pjrt_client *c, const char *wanted, size_t n)
{
  char *bytes = NULL;
  size_t size = 0;
  CHECK_OK(cx_pjrt_options_encode(options, c, &bytes, &size));
  assert_int_equal(size, n);
  assert_memory_equal(bytes, wanted, n);
  cx_free(bytes);
}
#define CHECK_BYTES(options, client, bytes) \
  check_bytes(options, client, bytes, sizeof(bytes) - 1)

// The wire format by hand: field * 8 + kind, then a number or a length.
static void test_option_bytes(void **state)
{
  (void)state;
  CHECK_BYTES(NULL, NULL, "\x1a\x04\x20\x01\x28\x01");
  cx_pjrt_compile_options two = { .num_replicas = 2 };
  CHECK_BYTES(&two, NULL, "\x1a\x04\x20\x02\x28\x01");
  // Ids are looked up in the client; the fake's start at 10.
  CHECK_BYTES(&two, client,
              "\x1a\x10\x20\x02\x28\x01\x4a\x0a"
              "\x08\x02\x10\x01\x1a\x04\x0a\x02\x0a\x0b");
  int64_t devices[] = { 3, 1 };
  two.devices = devices;
  CHECK_BYTES(&two, client,
              "\x1a\x10\x20\x02\x28\x01\x4a\x0a"
              "\x08\x02\x10\x01\x1a\x04\x0a\x02\x0d\x0b");
  CHECK_BYTES(&two, NULL,
              "\x1a\x10\x20\x02\x28\x01\x4a\x0a"
              "\x08\x02\x10\x01\x1a\x04\x0a\x02\x03\x01");
  // Of a world of one process; world.c has larger ones.
  cx_pjrt_compile_options world = { .num_replicas = 2, .everywhere = true };
  CHECK_BYTES(&world, client,
              "\x1a\x10\x20\x02\x28\x01\x4a\x0a"
              "\x08\x02\x10\x01\x1a\x04\x0a\x02\x0a\x0b");
  cx_pjrt_compile_options any = { .any_device = true };
  CHECK_BYTES(&any, client, "\x1a\x04\x20\x01\x28\x01\x20\x01");
  cx_pjrt_option overrides[] = {
    { .name = "a", .type = CX_PJRT_STRING, .string_value = "xy" },
    { .name = "b", .type = CX_PJRT_BOOL, .int_value = 0 },
    { .name = "c", .type = CX_PJRT_INT, .int_value = 0 },
    { .name = "d", .type = CX_PJRT_FLOAT, .float_value = 1.0 },
  };
  cx_pjrt_compile_options all = { .overrides = overrides, .n_overrides = 4 };
  CHECK_BYTES(&all, NULL,
              "\x1a\x04\x20\x01\x28\x01"
              "\x3a\x09\x0a\x01"
              "a\x12\x04\x0a\x02xy"
              "\x3a\x07\x0a\x01"
              "b\x12\x02\x10\x00"
              "\x3a\x07\x0a\x01"
              "c\x12\x02\x18\x00"
              "\x3a\x0e\x0a\x01"
              "d\x12\x09\x21\x00\x00\x00\x00\x00\x00\xf0\x3f");
}

static void test_bad_options(void **state)
{
  (void)state;
  char *bytes = NULL;
  size_t size = 1;
  cx_pjrt_compile_options o = { .num_replicas = -1 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_options_encode(&o, client, &bytes, &size), "num_replicas",
              "-1");
  o.num_replicas = 2;
  o.any_device = true;
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_options_encode(&o, client, &bytes, &size), "any device",
              "found 2");
  o = (cx_pjrt_compile_options){ .num_replicas = 5 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_options_encode(&o, client, &bytes, &size),
              "replica 4 wants device 4", "has 4 here");
  o.everywhere = true;
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_options_encode(&o, client, &bytes, &size),
              "5 replicas are wanted", "4 devices here and 4 in all");
  int64_t minus = -1;
  o = (cx_pjrt_compile_options){ .devices = &minus };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_options_encode(&o, client, &bytes, &size),
              "replica 0 wants device -1");
  assert_null(bytes);
  assert_int_equal(size, 0);
}

static bool has_default(cx_pjrt_client *c)
{
  char *bytes = NULL;
  size_t size = 0;
  CHECK_OK(cx_pjrt_options_encode(NULL, c, &bytes, &size));
  static const char key[] = "xla_cpu_enable_fast_min_max\x12\x02\x10";
  const char *found = memmem(bytes, size, key, sizeof key - 1);
  // Off, that is.
  bool has = found != NULL && found + sizeof key - 1 < bytes + size &&
             found[sizeof key - 1] == '\0';
  cx_free(bytes);
  return has;
}

static void test_default_overrides(void **state)
{
  (void)state;
  assert_false(has_default(client));  // not a CPU
  cx_pjrt_client_close(client);
  fixture_set("platform=cpu");
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &client));
  assert_true(has_default(client));
  cx_pjrt_option fast = { .name = "xla_cpu_enable_fast_min_max",
                          .type = CX_PJRT_BOOL,
                          .int_value = 1 };
  cx_pjrt_compile_options o = { .overrides = &fast, .n_overrides = 1 };
  char *bytes = NULL;
  size_t size = 0;
  CHECK_OK(cx_pjrt_options_encode(&o, client, &bytes, &size));
  static const char key[] = "xla_cpu_enable_fast_min_max";
  char *first = memmem(bytes, size, key, sizeof key - 1);
  assert_non_null(first);
  size_t rest = size - (size_t)(first + 1 - bytes);
  assert_null(memmem(first + 1, rest, key, sizeof key - 1));
  cx_free(bytes);
  // A build without the key: tried once with it, then compiled without.
  long calls = plugin_control.calls("PJRT_Client_Compile");
  fixture_set("refuse=xla_cpu_enable_fast_min_max");
  cx_pjrt_executable_release(compile(false));
  assert_int_equal(plugin_control.calls("PJRT_Client_Compile"), calls + 2);
  cx_pjrt_executable_release(compile(false));
  assert_int_equal(plugin_control.calls("PJRT_Client_Compile"), calls + 3);
  assert_false(has_default(client));
  cx_pjrt_executable *e = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, try_compile(false, &o, &e),
              "xla_cpu_enable_fast_min_max");  // the user's own is not dropped
}

// ---- saving, and compiling ahead of time ----

static void test_serialize(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(true);
  char *bytes = NULL;
  size_t size = 0;
  CHECK_OK(cx_pjrt_executable_serialize(e, &bytes, &size));
  cx_pjrt_executable_release(e);
  cx_pjrt_shape shapes[] = { vector(4), vector(4) };
  cx_pjrt_signature s = {
    .params = shapes, .n_params = 2, .results = shapes, .n_results = 1
  };
  int64_t second = 1;
  cx_pjrt_compile_options o = { .devices = &second };
  CHECK_OK(cx_pjrt_executable_deserialize(client, bytes, size, &o, &s, &e));
  cx_pjrt_buffer *a = floats(1, 4, 1);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *out = NULL;
  CHECK_OK(cx_pjrt_execute(e, 1, args, 2, &out, NULL));
  check_floats(out, 4, 1);
  cx_pjrt_buffer_release(out);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
  shapes[0] = vector(3);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_executable_deserialize(client, bytes, size, NULL, &s, &e),
              "result 0 is f32[3] in the signature and f32[4]");
  CHECK_FAILS(
      CALX_INTERNAL,
      cx_pjrt_executable_deserialize(client, "rubbish", 7, NULL, &s, &e),
      "PJRT_Executable_DeserializeAndLoad");
  assert_null(e);
  cx_free(bytes);
}

static void test_compile_for(void **state)
{
  (void)state;
  static const char text[] = DONATING_ADD("tensor<4xf32>");
  char *bytes = NULL;
  size_t size = 0;
  cx_pjrt_executable_stats stats;
  CHECK_OK(cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text, strlen(text),
                               NULL, &bytes, &size, &stats));
  assert_true(size > 0);
  assert_int_equal(stats.aliased, 16);
  cx_free(bytes);
  CHECK_OK(cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text, strlen(text),
                               NULL, NULL, NULL, NULL));
  fixture_set("null=PJRT_Executable_GetCompiledMemoryStats");
  CHECK_OK(cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text, strlen(text),
                               NULL, NULL, NULL, &stats));
  assert_int_equal(stats.peak, -1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile_for(plugin, "fake:9", NULL, 0, text, strlen(text),
                                  NULL, &bytes, &size, &stats),
              "PJRT_TopologyDescription_Create", "topology 'fake:9'");
  CHECK_FAILS(CALX_UNKNOWN,
              cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, "rubbish", 7,
                                  NULL, &bytes, &size, &stats),
              "PJRT_Compile");
  fixture_set("fail=PJRT_Executable_Serialize@1:12:cannot be saved");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text,
                                  strlen(text), NULL, &bytes, &size, &stats),
              "cannot be saved");
  fixture_set("cut=PJRT_TopologyDescription_Create");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text,
                                  strlen(text), NULL, &bytes, &size, &stats),
              "PJRT_TopologyDescription_Create");
  assert_null(bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    FIXTURE_TEST(test_compile),
    FIXTURE_TEST(test_cost),
    FIXTURE_TEST(test_compile_fails),
    FIXTURE_TEST(test_results_that_are_not_told),
    FIXTURE_TEST(test_option_bytes),
    FIXTURE_TEST(test_bad_options),
    FIXTURE_TEST(test_serialize),
    FIXTURE_TEST(test_compile_for),
    // The last: what it learns of the plugin stays.
    FIXTURE_TEST(test_default_overrides),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
