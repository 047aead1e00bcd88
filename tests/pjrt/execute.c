// execute: launches on the fake plugin: what is checked before the plugin is
// called, what becomes of early and late failures, and who owns what meanwhile.
#include "base/thread.h"
#include "fixture.h"

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
              cx_pjrt_buffer_to_host(a, back, sizeof back), "deleted");
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_to_host_async(a, back, sizeof back, &event),
              "deleted");
  CHECK_FAILS(CALX_FAILED_PRECONDITION,
              cx_pjrt_buffer_copy_to_device(a, 1, &none), "deleted");
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_buffer_await(a), "deleted");
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
  fixture_set("fail=PJRT_LoadedExecutable_Execute@1:8:no room");
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
  fixture_set("lose=output");
  CHECK_FAILS(CALX_INTERNAL, run(e, c, b, &out, NULL),
              "returned no buffer for result 0");
  assert_null(out);
  fixture_set("reset");
  assert_true(cx_pjrt_buffer_is_deleted(c));
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run(e, c, b, &out, NULL), "deleted");
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_buffer_release(c);
  cx_pjrt_executable_release(e);
}

// A claim that fails gives back the claims before it.
static void test_one_of_two_donations_is_gone(void **state)
{
  (void)state;
  static const char text[] =
      PROGRAM("(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
              ", arg_attrs = [{jax.buffer_donor = true}, "
              "{tf.aliasing_output = 0 : i32}]",
              "");
  cx_pjrt_shape shapes[] = { vector(4), vector(4) };
  bool donated[] = { true, true };
  cx_pjrt_signature s = { .params = shapes,
                          .donated = donated,
                          .n_params = 2,
                          .results = shapes,
                          .n_results = 1 };
  cx_pjrt_executable *e = NULL;
  CHECK_OK(cx_pjrt_compile(client, text, strlen(text), NULL, &s, &e));
  cx_pjrt_buffer *a = floats(0, 4, 1);
  cx_pjrt_buffer *b = floats(0, 4, 10);
  cx_pjrt_buffer *c = floats(0, 4, 20);
  cx_pjrt_buffer *out = NULL;
  CHECK_OK(run(e, a, b, &out, NULL));
  cx_pjrt_buffer_release(out);
  CHECK_FAILS(CALX_FAILED_PRECONDITION, run(e, c, b, &out, NULL),
              "argument 1: the buffer f32[4] was donated");
  assert_false(cx_pjrt_buffer_is_deleted(c));
  CHECK_FAILS(CALX_INVALID_ARGUMENT, run(e, c, c, &out, NULL),
              "argument 1: the same buffer is also argument 0");
  check_floats(c, 4, 20);
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
  fixture_set("lose=event");
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
  fixture_set("async=1");
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
  fixture_set("async=1;hold=1");
  CHECK_OK(run(e, a, b, &out, &done));
  cx_pjrt_buffer_release(a);
  cx_pjrt_buffer_release(b);
  cx_pjrt_executable_release(e);
  assert_false(cx_pjrt_event_is_ready(done));
  assert_false(cx_pjrt_buffer_is_ready(out));
  fixture_set("hold=0");
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
  fixture_set("async=1;late=2:13:the chip caught fire");
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
  cx_pjrt_compile_options o = { .num_replicas = FIXTURE_DEVICES,
                                .devices = devices };
  CHECK_OK(try_compile(false, &o, &e));
  return e;
}

static void test_execute_all(void **state)
{
  (void)state;
  int64_t order[] = { 2, 0, 3, 1 };
  cx_pjrt_executable *e = compile_replicas(order);
  cx_pjrt_buffer *args[2 * FIXTURE_DEVICES];
  cx_pjrt_buffer *out[FIXTURE_DEVICES];
  cx_pjrt_event *done[FIXTURE_DEVICES];
  for (size_t r = 0; r < FIXTURE_DEVICES; r++) {
    args[2 * r] = floats((size_t)order[r], 4, (float)r);
    args[2 * r + 1] = floats((size_t)order[r], 4, 100);
  }
  CHECK_OK(cx_pjrt_execute_all(e, args, 8, out, done));
  for (size_t r = 0; r < FIXTURE_DEVICES; r++) {
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
  fixture_set("fail=PJRT_LoadedExecutable_Execute@1:13:boom");
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

static int launch_share(cx_pjrt_executable *e, size_t device)
{
  cx_pjrt_buffer *a = floats(device, 4, 5);
  cx_pjrt_buffer *args[] = { a, a };
  cx_pjrt_buffer *out = NULL;
  CHECK_OK(cx_pjrt_execute(e, device, args, 2, &out, NULL));
  cx_pjrt_buffer_release(out);
  cx_pjrt_buffer_release(a);
  return plugin_control.launch();
}

// The shares of one launch bear one number, whoever launches them and when;
// the next launch bears another.
static void test_launch_numbers(void **state)
{
  (void)state;
  cx_pjrt_executable *e = compile_replicas(NULL);
  int first = launch_share(e, 0);
  int second = launch_share(e, 0);
  assert_int_not_equal(first, second);
  assert_int_equal(launch_share(e, 1), first);
  assert_int_equal(launch_share(e, 3), first);
  assert_int_equal(launch_share(e, 1), second);
  cx_pjrt_executable *same = compile_replicas(NULL);
  assert_int_equal(launch_share(same, 2), first);  // as in another process
  cx_pjrt_executable_release(same);
  cx_pjrt_executable_release(e);
}

static void test_any_device(void **state)
{
  (void)state;
  cx_pjrt_executable *e = NULL;
  cx_pjrt_compile_options o = { .any_device = true };
  CHECK_OK(try_compile(false, &o, &e));
  for (size_t d = 0; d < FIXTURE_DEVICES; d++) {
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    FIXTURE_TEST(test_arguments),
    FIXTURE_TEST(test_foreign_buffer),
    FIXTURE_TEST(test_donation),
    FIXTURE_TEST(test_failed_launch_keeps_the_arguments),
    FIXTURE_TEST(test_one_of_two_donations_is_gone),
    FIXTURE_TEST(test_lost_event),
    FIXTURE_TEST(test_donation_race),
    FIXTURE_TEST(test_release_while_running),
    FIXTURE_TEST(test_late_error),
    FIXTURE_TEST(test_execute_all),
    FIXTURE_TEST(test_one_share),
    FIXTURE_TEST(test_launch_numbers),
    FIXTURE_TEST(test_any_device),
    FIXTURE_TEST(test_many_arguments),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
