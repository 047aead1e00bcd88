// faults: one walk through the whole client, with each function of the table in
// turn missing, cut off or failing, and with each allocation failing. Every
// walk either succeeds or ends in a status; nothing crashes, nothing is left.
#include "fixture.h"
#include "support/wait.h"

// What the plugin cannot be asked to destroy stays in it: live() is compared
// where it can.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(
    void);
const char *__lsan_default_suppressions(void)
{
  return "leak:fake_pjrt.so\n";
}

#define TRY(expression)                        \
  do {                                         \
    if (status == NULL) status = (expression); \
  } while (0)

typedef struct walk {
  cx_pjrt_client *c;
  cx_pjrt_executable *e;
  cx_pjrt_executable *again;
  cx_pjrt_buffer *a;
  cx_pjrt_buffer *b;
  cx_pjrt_buffer *out;
  cx_pjrt_buffer *moved;
  cx_pjrt_event *done;
  char *bytes;
  size_t size;
} walk;

// Not in the walk: a client that could not be destroyed may still count.
static atomic_int uploads;

static calx_status *upload_two(walk *w)
{
  static _Alignas(64) const float data[16] = { 1, 2, 3, 4 };
  cx_pjrt_shape s = vector(4);
  CALX_TRY(cx_pjrt_buffer_from_host(w->c, 0, &s, data, CX_PJRT_BORROW, count,
                                    &uploads, &w->a));
  return cx_pjrt_buffer_from_host(w->c, 0, &s, data, CX_PJRT_ZERO_COPY, count,
                                  &uploads, &w->b);
}

static calx_status *make_programs(walk *w)
{
  static const char text[] = DONATING_ADD("tensor<4xf32>");
  cx_pjrt_shape shapes[] = { vector(4), vector(4) };
  bool donated[] = { true, false };
  cx_pjrt_signature s = { .params = shapes,
                          .donated = donated,
                          .n_params = 2,
                          .results = shapes,
                          .n_results = 1 };
  cx_pjrt_executable_stats stats;
  CALX_TRY(cx_pjrt_compile(w->c, text, strlen(text), NULL, &s, &w->e));
  CALX_TRY(cx_pjrt_executable_memory(w->e, &stats));
  CALX_TRY(cx_pjrt_executable_serialize(w->e, &w->bytes, &w->size));
  return cx_pjrt_executable_deserialize(w->c, w->bytes, w->size, NULL, &s,
                                        &w->again);
}

static calx_status *launch_and_read(walk *w)
{
  cx_pjrt_buffer *args[] = { w->a, w->b };
  float back[4] = { 0 };
  CALX_TRY(cx_pjrt_execute(w->again, 0, args, 2, &w->out, &w->done));
  CALX_TRY(cx_pjrt_event_await(w->done));
  CALX_TRY(cx_pjrt_buffer_await(w->out));
  (void)cx_pjrt_buffer_is_deleted(w->b);
  (void)cx_pjrt_buffer_is_ready(w->out);
  CALX_TRY(cx_pjrt_buffer_copy_to_device(w->out, 1, &w->moved));
  CALX_TRY(cx_pjrt_buffer_to_host(w->moved, back, sizeof back));
  if (back[3] == 4) return NULL;
  return cx_error(CALX_DATA_LOSS, "the data did not arrive");
}

static calx_status *go(void)
{
  walk w = { 0 };
  cx_pjrt_client_options two = { .device_count = 2 };
  cx_pjrt_memory_stats stats;
  calx_status *status = cx_pjrt_client_open(plugin, &two, &w.c);
  TRY(cx_pjrt_device_memory_stats(w.c, 0, &stats));
  TRY(upload_two(&w));
  TRY(make_programs(&w));
  TRY(launch_and_read(&w));
  cx_pjrt_event_free(w.done);
  cx_pjrt_buffer_release(w.moved);
  cx_pjrt_buffer_release(w.out);
  cx_pjrt_buffer_release(w.a);
  cx_pjrt_buffer_release(w.b);
  cx_pjrt_executable_release(w.again);
  cx_pjrt_executable_release(w.e);
  cx_free(w.bytes);
  cx_pjrt_client_close(w.c);
  return status;
}

static const char *const functions[] = {
#define NAME(name) #name,
  CX_PJRT_FUNCTIONS(NAME, NAME)
#undef NAME
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

static bool is_release(const char *function)
{
  size_t n = strlen(function);
  return n > 8 && strcmp(function + n - 8, "_Destroy") == 0;
}

static void prepare(const char *pattern, const char *function, bool async)
{
  char settings[128];
  snprintf(settings, sizeof settings, pattern, function);
  fixture_set(async ? "reset;async=1" : "reset");
  fixture_set(settings);
}

// What runs in the plugin's own threads may end, and free what it holds, after
// the client is closed: also what an earlier walk began.
static bool live_is_at_most(long most)
{
  WAIT_UNTIL(plugin_control.live() <= most);
  return plugin_control.live() <= most;
}

// Errors cannot be read without these; a plugin that lacks them is not loaded.
#define FIRST_FUNCTION 3

static void test_missing_slots(void **state)
{
  (void)state;
  int refused = 0;
  for (size_t i = FIRST_FUNCTION; i < N_FUNCTIONS; i++) {
    prepare("null=%s", functions[i], i % 2 == 1);
    long live = plugin_control.live();
    calx_status *status = go();
    if (status != NULL) {
      refused++;
      CHECK_FAILS(CALX_UNIMPLEMENTED, status, functions[i], "fake_pjrt.so",
                  "does not have");
    }
    assert_int_equal(cx_pjrt_live(), 0);
    if (!is_release(functions[i])) {
      assert_true(live_is_at_most(live));
    }
  }
  print_message("missing: %d of %zu functions are needed\n", refused,
                N_FUNCTIONS);
  assert_true(refused > 15);
}

static void test_short_tables(void **state)
{
  (void)state;
  for (size_t i = FIRST_FUNCTION; i < N_FUNCTIONS; i++) {
    prepare("cut=%s", functions[i], i % 2 == 1);
    calx_status *status = go();
    if (status != NULL) {
      CHECK_FAILS(CALX_UNIMPLEMENTED, status, "fake_pjrt.so", "does not have");
    }
    assert_int_equal(cx_pjrt_live(), 0);
  }
}

static void test_failing_functions(void **state)
{
  (void)state;
  for (size_t i = FIRST_FUNCTION; i < N_FUNCTIONS; i++) {
    for (int k = 1; k <= 3; k++) {
      char pattern[64];
      snprintf(pattern, sizeof pattern, "fail=%%s@%d:15:boom", k);
      prepare(pattern, functions[i], k == 2);
      long live = plugin_control.live();
      calx_status *status = go();
      if (status != NULL) {
        CHECK_FAILS(CALX_DATA_LOSS, status, functions[i], "boom");
      }
      assert_int_equal(cx_pjrt_live(), 0);
      if (!is_release(functions[i])) {
        assert_true(live_is_at_most(live));
      }
    }
  }
}

static void test_failing_allocations(void **state)
{
  (void)state;
  fixture_set("reset");
  CHECK_OK(go());
  long blocks = cx_alloc_live();
  long objects = plugin_control.live();
  long n = 0;
  for (bool passed = false; !passed; n++) {
    assert_true(n < 1000);
    cx_alloc_fail_at(n);
    calx_status *status = go();
    cx_alloc_fail_at(-1);
    passed = status == NULL;
    if (!passed) CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, status, "memory");
    assert_int_equal(cx_pjrt_live(), 0);
    assert_int_equal(cx_alloc_live(), blocks);
    assert_int_equal(plugin_control.live(), objects);
  }
  print_message("allocations: %ld failed in turn\n", n - 1);
  assert_true(n > 30);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_missing_slots),
    CHECK_TEST(test_short_tables),
    CHECK_TEST(test_failing_functions),
    CHECK_TEST(test_failing_allocations),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
