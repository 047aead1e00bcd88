// execute: programs and launches on the fake plugin: what is checked before the
// plugin is called, what becomes of early and late failures, and who owns what
// meanwhile.
#include "base/thread.h"
#include "session.h"

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
  session_set("minor=71");  // which does not know of a peak
  CHECK_OK(cx_pjrt_executable_memory(e, &stats));
  assert_int_equal(stats.peak, -1);
  session_set("fail=PJRT_Executable_GetCompiledMemoryStats@1:12:no stats");
  CHECK_FAILS(CALX_UNIMPLEMENTED, cx_pjrt_executable_memory(e, &stats),
              "no stats");
  assert_int_equal(stats.code, -1);
  cx_pjrt_executable_retain(e);
  cx_pjrt_executable_release(e);
  cx_pjrt_executable_release(e);
  cx_pjrt_executable_release(NULL);
}

static void test_compile_fails(void **state)
{
  (void)state;
  cx_pjrt_executable *e = NULL;
  session_set("fail=PJRT_Client_Compile@1:2:-:4:7: error: nonsense");
  CHECK_FAILS(CALX_UNKNOWN, try_compile(false, NULL, &e),
              "PJRT_Client_Compile on plugin 'fake_pjrt.so'",
              "-:4:7: error: nonsense");
  session_set("lose=output");
  CHECK_FAILS(CALX_INTERNAL, try_compile(false, NULL, &e),
              "returned no executable");
  session_set("reset;outputs=3");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, try_compile(false, NULL, &e),
              "has 3 results", "signature has 1");
  session_set("outputs=0");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, try_compile(false, NULL, &e),
              "has 0 results");
  cx_pjrt_signature many = { .n_params = (size_t)1 << 40 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_compile(client, "", 0, NULL, &many, &e), "at most");
  assert_null(e);
}

// Where a plugin cannot tell types and dimensions, the count alone is compared.
static void test_results_that_are_not_told(void **state)
{
  (void)state;
  session_set(
      "null=PJRT_Executable_OutputElementTypes;"
      "null=PJRT_Executable_OutputDimensions");
  cx_pjrt_executable *e = compile(false);
  cx_pjrt_executable_release(e);
  session_set("reset;fail=PJRT_Executable_OutputDimensions@1:13:boom");
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
  cx_pjrt_compile_options any = { .any_device = true };
  CHECK_BYTES(&any, client, "\x1a\x04\x20\x01\x28\x01\x20\x01");
  cx_pjrt_override overrides[] = {
    { .name = "a", .type = CX_PJRT_OVERRIDE_STRING, .string_value = "xy" },
    { .name = "b", .type = CX_PJRT_OVERRIDE_BOOL, .int_value = 0 },
    { .name = "c", .type = CX_PJRT_OVERRIDE_INT, .int_value = 0 },
    { .name = "d", .type = CX_PJRT_OVERRIDE_DOUBLE, .double_value = 1.0 },
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
  session_set("platform=cpu");
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &client));
  assert_true(has_default(client));
  cx_pjrt_override fast = { .name = "xla_cpu_enable_fast_min_max",
                            .type = CX_PJRT_OVERRIDE_BOOL,
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
  session_set("refuse=xla_cpu_enable_fast_min_max");
  cx_pjrt_executable_release(compile(false));
  assert_int_equal(plugin_control.calls("PJRT_Client_Compile"), calls + 2);
  cx_pjrt_executable_release(compile(false));
  assert_int_equal(plugin_control.calls("PJRT_Client_Compile"), calls + 3);
  assert_false(has_default(client));
  cx_pjrt_executable *e = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, try_compile(false, &o, &e),
              "xla_cpu_enable_fast_min_max");  // the user's own is not dropped
}

// ---- arguments ----

static void test_arguments(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(false);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *far = floats(1, 4, 1);
  cx_pjrt_buffer *small = floats(0, 3, 1);
  cx_pjrt_shape s = { .type = PJRT_Buffer_Type_S32, .rank = 1, .dims = { 4 } };
  cx_pjrt_buffer *ints = NULL;
  int32_t data[] = { 1, 2, 3, 4 };
  CHECK_OK(cx_pjrt_buffer_from_host(client, 0, &s, data, CX_PJRT_COPY, NULL,
                                    NULL, &ints));
  long calls = plugin_control.calls("PJRT_LoadedExecutable_Execute");
  cx_pjrt_buffer *out = a;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, a, ints, &out, NULL),
              "argument 1: wants f32[4], got i32[4]");
  assert_null(out);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, small, a, &out, NULL),
              "argument 0: wants f32[4], got f32[3]");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, a, far, &out, NULL),
              "argument 1: wants a buffer on device 0, got one on device 1");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, NULL, a, &out, NULL),
              "argument 0: no buffer");
  cx_pjrt_buffer *three[] = { a, a, a };
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute(e, 0, three, 3, &out, NULL),
              "wants 2 arguments, got 3");
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute(e, 2, three, 2, &out, NULL),
              "not compiled for device 2, but for device 0");
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute(e, 99, three, 2, &out, NULL), "device 99");
  assert_int_equal(plugin_control.calls("PJRT_LoadedExecutable_Execute"),
                   calls);
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(far);
  cx_pjrt_buffer_release(small);
  cx_pjrt_buffer_release(ints);
  cx_pjrt_executable_release(e);
}

static void test_foreign_buffer(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(false);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_client *mine = client;
  CHECK_OK(cx_pjrt_client_open(plugin, NULL, &client));
  cx_pjrt_buffer *b = floats(0, 4, 1);
  cx_pjrt_buffer *out = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, a, b, &out, NULL),
              "argument 1: its buffer belongs to another client");
  cx_pjrt_buffer_release(b);
  cx_pjrt_client_close(client);
  client = mine;
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

// ---- donation ----

static void test_donation(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(true);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  cx_pjrt_buffer *out = NULL;
  cx_pjrt_buffer *none = NULL;
  CHECK_OK(run(e, a, b, &out, NULL));
  assert_true(cx_pjrt_buffer_is_deleted(a));
  check_floats(out, 4, 1);
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run(e, a, b, &none, NULL),
              "argument 0: the buffer f32[4] was donated");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run(e, b, a, &none, NULL),
              "argument 1: the buffer f32[4] was donated");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, b, b, &none, NULL),
              "argument 1: the same buffer is also argument 0");
  assert_false(cx_pjrt_buffer_is_deleted(b));
  float back[4];
  cx_pjrt_event *event = NULL;
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_to_host(a, back, sizeof back), "gone");
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_to_host_async(a, back, sizeof back, &event),
              "gone");
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_copy_to_device(a, 1, &none), "gone");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_buffer_await(a), "gone");
  assert_true(cx_pjrt_buffer_is_ready(a));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(out);
  cx_pjrt_executable_release(e);
}

// A launch that failed gives its donated arguments back.
static void test_failed_launch_keeps_the_arguments(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(true);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  cx_pjrt_buffer *out = NULL;
  cx_pjrt_event *done = NULL;
  session_set("fail=PJRT_LoadedExecutable_Execute@1:8:no room");
  CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, run(e, a, b, &out, &done),
              "PJRT_LoadedExecutable_Execute", "no room");
  assert_null(out);
  assert_null(done);
  assert_false(cx_pjrt_buffer_is_deleted(a));
  CHECK_OK(run(e, a, b, &out, &done));
  cx_pjrt_event_free(done);
  cx_pjrt_buffer_release(out);
  // One that had begun may have taken them: here it did.
  cx_pjrt_buffer *c = floats(0, 4, 1);
  session_set("lose=output");
  CHECK_FAILS(CALX_INTERNAL, run(e, c, b, &out, NULL),
              "returned no buffer for result 0");
  assert_null(out);
  session_set("reset");
  assert_true(cx_pjrt_buffer_is_deleted(c));
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run(e, c, b, &out, NULL), "gone");
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(c);
  cx_pjrt_executable_release(e);
}

static void test_lost_event(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(false);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *out = NULL;
  cx_pjrt_event *done = NULL;
  session_set("lose=event");
  CHECK_FAILS(CALX_INTERNAL, run(e, a, a, &out, &done), "returned no event");
  assert_null(out);
  assert_null(done);
  CHECK_OK(run(e, a, a, &out, NULL));  // nobody asked for one
  cx_pjrt_buffer_release(out);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

typedef struct racer {
  cx_pjrt_executable *e;
  cx_pjrt_buffer *donated;
  cx_pjrt_buffer *other;
  bool won;
} racer;

static void race(void *user)
{
  racer *r = user;
  cx_pjrt_buffer *out = NULL;
  calx_status *status = run(r->e, r->donated, r->other, &out, NULL);
  r->won = status == NULL;
  calx_status_free(status);
  cx_pjrt_buffer_release(out);
}

// Of launches in several threads that want one buffer, one gets it.
static void test_donation_race(void **state)
{
  (void)state;
  session_set("async=1");
  cx_pjrt_executable *e = compile(true);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  for (int round = 0; round < 20; round++) {
    cx_pjrt_buffer *a = floats(0, 4, 1);
    racer racers[4];
    cx_thread threads[4] = { 0 };
    int won = 0;
    for (size_t i = 0; i < 4; i++) {
      racers[i] = (racer){ .e = e, .donated = a, .other = b };
      CHECK_OK(cx_thread_start(&threads[i], race, &racers[i]));
    }
    for (size_t i = 0; i < 4; i++) cx_thread_join(&threads[i]);
    for (size_t i = 0; i < 4; i++) won += racers[i].won;
    assert_int_equal(won, 1);
    cx_pjrt_buffer_release(a);
  }
  cx_pjrt_buffer_release(b);
  cx_pjrt_executable_release(e);
}

// ---- asynchronous launches ----

static void test_release_while_running(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(true);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  cx_pjrt_buffer *out = NULL;
  cx_pjrt_event *done = NULL;
  session_set("async=1;hold=1");
  CHECK_OK(run(e, a, b, &out, &done));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_executable_release(e);
  assert_false(cx_pjrt_event_is_ready(done));
  assert_false(cx_pjrt_buffer_is_ready(out));
  session_set("hold=0");
  CHECK_OK(cx_pjrt_event_await(done));
  check_floats(out, 4, 1);
  cx_pjrt_event_free(done);
  cx_pjrt_buffer_release(out);
}

static void test_late_error(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile(false);
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *good = NULL;
  cx_pjrt_buffer *bad = NULL;
  cx_pjrt_buffer *after = NULL;
  cx_pjrt_event *done = NULL;
  session_set("async=1;late=2:13:the chip caught fire");
  CHECK_OK(run(e, a, a, &good, NULL));
  CHECK_OK(run(e, a, a, &bad, &done));  // launched without complaint
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_event_await(done), "fake_pjrt.so",
              "the chip caught fire");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_event_await(done), "caught fire");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_buffer_await(bad), "caught fire");
  assert_true(cx_pjrt_buffer_is_ready(bad));
  float back[4];
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_buffer_to_host(bad, back, sizeof back),
              "caught fire");
  CHECK_OK(run(e, bad, a, &after, NULL));  // what uses it fails as well
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_buffer_await(after), "caught fire");
  check_floats(good, 4, 1);
  cx_pjrt_event_free(done);
  cx_pjrt_buffer_release(good);
  cx_pjrt_buffer_release(bad);
  cx_pjrt_buffer_release(after);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

// ---- several devices ----

static cx_pjrt_executable *compile_replicas(const int64_t *devices)
{
  cx_pjrt_executable *e = NULL;
  cx_pjrt_compile_options o = { .num_replicas = SESSION_DEVICES,
                                .devices = devices };
  CHECK_OK(try_compile(false, &o, &e));
  return e;
}

static void test_execute_all(void **state)
{
  (void)state;
  int64_t order[] = { 2, 0, 3, 1 };
  cx_pjrt_executable *e = compile_replicas(order);
  cx_pjrt_buffer *args[2 * SESSION_DEVICES];
  cx_pjrt_buffer *out[SESSION_DEVICES];
  cx_pjrt_event *done[SESSION_DEVICES];
  for (size_t r = 0; r < SESSION_DEVICES; r++) {
    args[2 * r] = floats((size_t)order[r], 4, (float)r);
    args[2 * r + 1] = floats((size_t)order[r], 4, 100);
  }
  CHECK_OK(cx_pjrt_execute_all(e, args, 8, out, done));
  for (size_t r = 0; r < SESSION_DEVICES; r++) {
    CHECK_OK(cx_pjrt_event_await(done[r]));
    cx_pjrt_event_free(done[r]);
    assert_int_equal(cx_pjrt_buffer_device(out[r]), order[r]);
    check_floats(out[r], 4, (float)r);
    cx_pjrt_buffer_release(out[r]);
  }
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_execute_all(e, args, 2, out, NULL),
              "wants 8 arguments, got 2");
  cx_pjrt_buffer *swap = args[3];
  args[3] = args[5];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_execute_all(e, args, 8, out, done),
              "replica 1, argument 1: wants a buffer on device 0, got one on "
              "device 3");
  args[3] = swap;
  session_set("fail=PJRT_LoadedExecutable_Execute@1:13:boom");
  CHECK_FAILS(CALX_INTERNAL, cx_pjrt_execute_all(e, args, 8, out, done),
              "boom");
  for (size_t i = 0; i < 8; i++) cx_pjrt_buffer_release(args[i]);
  cx_pjrt_executable_release(e);
}

static void test_one_share(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_replicas(NULL);
  cx_pjrt_buffer *a = floats(3, 4, 5);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *out = NULL;
  CHECK_OK(cx_pjrt_execute(e, 3, args, 2, &out, NULL));
  assert_int_equal(cx_pjrt_buffer_device(out), 3);
  check_floats(out, 4, 5);
  cx_pjrt_buffer_release(out);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_execute(e, 2, args, 2, &out, NULL),
              "wants a buffer on device 2, got one on device 3");
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
}

static void test_any_device(void **state)
{
  (void)state;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_compile_options o = { .any_device = true };
  CHECK_OK(try_compile(false, &o, &e));
  for (size_t d = 0; d < SESSION_DEVICES; d++) {
    cx_pjrt_buffer *a = floats(d, 4, (float)d);
    cx_pjrt_buffer *args[] = { a, a };
    cx_pjrt_buffer *out = NULL;
    CHECK_OK(cx_pjrt_execute(e, d, args, 2, &out, NULL));
    check_floats(out, 4, (float)d);
    cx_pjrt_buffer_release(out);
    cx_pjrt_buffer_release(a);
  }
  CHECK_FAILS(CALX_INVALID_ARGUMENT,
              cx_pjrt_execute_all(e, NULL, 0, NULL, NULL), "any device");
  cx_pjrt_executable_release(e);
}

// More pointers than the launch keeps on its stack.
static void test_many_arguments(void **state)
{
  (void)state;
  enum { N = 200 };
  cx_text text = { 0 };
  cx_text_append(&text,
                 "\"builtin.module\"() ({\n  \"func.func\"() "
                 "<{function_type = (");
  for (int i = 0; i < N; i++) {
    cx_text_append(&text, i == 0 ? "tensor<4xf32>" : ", tensor<4xf32>");
  }
  cx_text_append(&text,
                 ") -> tensor<4xf32>, sym_name = \"main\"}> ({\n"
                 "  }) : () -> ()\n}) : () -> ()\n");
  cx_pjrt_shape shapes[N];
  cx_pjrt_buffer *args[N];
  cx_pjrt_buffer *a = floats(0, 4, 1);
  for (int i = 0; i < N; i++) shapes[i] = vector(4);
  for (int i = 0; i < N; i++) args[i] = a;
  cx_pjrt_signature s = {
    .params = shapes, .n_params = N, .results = shapes, .n_results = 1
  };
  cx_pjrt_executable *e = NULL;
  CHECK_OK(
      cx_pjrt_compile(client, cx_text_str(&text), text.size, NULL, &s, &e));
  cx_pjrt_buffer *out = NULL;
  CHECK_OK(cx_pjrt_execute(e, 0, args, N, &out, NULL));
  check_floats(out, 4, 1);
  cx_pjrt_buffer_release(out);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
  cx_text_free(&text);
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
  session_set("null=PJRT_Executable_GetCompiledMemoryStats");
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
  session_set("fail=PJRT_Executable_Serialize@1:12:cannot be saved");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text,
                                  strlen(text), NULL, &bytes, &size, &stats),
              "cannot be saved");
  session_set("cut=PJRT_TopologyDescription_Create");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              cx_pjrt_compile_for(plugin, "fake:2x2", NULL, 0, text,
                                  strlen(text), NULL, &bytes, &size, &stats),
              "PJRT_TopologyDescription_Create");
  assert_null(bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SESSION_TEST(test_compile),
    SESSION_TEST(test_compile_fails),
    SESSION_TEST(test_results_that_are_not_told),
    SESSION_TEST(test_option_bytes),
    SESSION_TEST(test_bad_options),
    SESSION_TEST(test_arguments),
    SESSION_TEST(test_foreign_buffer),
    SESSION_TEST(test_donation),
    SESSION_TEST(test_failed_launch_keeps_the_arguments),
    SESSION_TEST(test_lost_event),
    SESSION_TEST(test_donation_race),
    SESSION_TEST(test_release_while_running),
    SESSION_TEST(test_late_error),
    SESSION_TEST(test_execute_all),
    SESSION_TEST(test_one_share),
    SESSION_TEST(test_any_device),
    SESSION_TEST(test_many_arguments),
    SESSION_TEST(test_serialize),
    SESSION_TEST(test_compile_for),
    // The last: what it learns of the plugin stays.
    SESSION_TEST(test_default_overrides),
  };
  return cmocka_run_group_tests(tests, session_load, NULL);
}
