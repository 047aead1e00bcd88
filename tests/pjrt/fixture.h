// fixture: a client of the fake plugin, opened before each test and closed
// after it, with nothing left over on either side.
#ifndef CX_TESTS_PJRT_FIXTURE_H
#define CX_TESTS_PJRT_FIXTURE_H

#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "fake.h"
#include "pjrt/internal.h"
#include "programs.h"

#define FIXTURE_DEVICES 4

static fake plugin_control;
static cx_pjrt_plugin *plugin;
static cx_pjrt_client *client;

// Built as XLA's: calx's own overrides are for those.
static inline int fixture_load(void **state)
{
  (void)state;
  plugin_control = fake_open(CX_FAKE_PLUGIN);
  assert_non_null(plugin_control.set);
  assert_true(plugin_control.set("xla=1"));
  CHECK_OK(cx_pjrt_plugin_open(CX_FAKE_PLUGIN, &plugin));
  return 0;
}

static inline void fixture_set(const char *settings)
{
  assert_true(plugin_control.set(settings));
}

static inline int fixture_open(void **state)
{
  (void)state;
  fixture_set("reset");
  cx_pjrt_client_options options = { .device_count = FIXTURE_DEVICES };
  CHECK_OK(cx_pjrt_client_open(plugin, &options, &client));
  return 0;
}

static inline int fixture_close(void **state)
{
  fixture_set("reset");
  cx_pjrt_client_close(client);
  client = NULL;
  if (plugin_control.live() != 0) {
    print_error("left over in the plugin: %ld\n", plugin_control.live());
    return 1;
  }
  return check_nothing_left(state);
}

#define FIXTURE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

// ---- values ----

static inline cx_pjrt_shape vector(int64_t n)
{
  cx_pjrt_shape s;
  assert_true(cx_pjrt_shape_make(CALX_F32, &n, 1, &s));
  return s;
}

static inline cx_pjrt_buffer *floats(size_t device, size_t n, float first)
{
  float data[64];
  assert_true(n <= 64);
  for (size_t i = 0; i < n; i++) data[i] = first + (float)i;
  cx_pjrt_shape s = vector((int64_t)n);
  cx_pjrt_buffer *b = NULL;
  CHECK_OK(cx_pjrt_buffer_from_host(client, device, &s, data, CX_PJRT_COPY,
                                    NULL, NULL, &b));
  return b;
}

static inline void check_floats(cx_pjrt_buffer *b, size_t n, float first)
{
  float data[64] = { 0 };
  CHECK_OK(cx_pjrt_buffer_to_host(b, data, n * sizeof *data));
  for (size_t i = 0; i < n; i++) {
    assert_float_equal(data[i], first + (float)i, 0.0F);
  }
}

// f32[4] + f32[4], which the fake answers with the first. `donate`: the first.
static inline calx_status *try_compile(bool donate,
                                       const cx_pjrt_compile_options *options,
                                       cx_pjrt_executable **out)
{
  static const char plain[] = BINARY("add", "tensor<4xf32>");
  static const char donating[] = DONATING_ADD("tensor<4xf32>");
  cx_pjrt_shape shapes[] = { vector(4), vector(4) };
  bool donated[] = { donate, false };
  cx_pjrt_signature s = { .params = shapes,
                          .donated = donated,
                          .n_params = 2,
                          .results = shapes,
                          .n_results = 1 };
  const char *text = donate ? donating : plain;
  return cx_pjrt_compile(client, text, strlen(text), options, &s, out);
}

static inline cx_pjrt_executable *compile(bool donate)
{
  cx_pjrt_executable *e = NULL;
  CHECK_OK(try_compile(donate, NULL, &e));
  return e;
}

static inline calx_status *run(cx_pjrt_executable *e, cx_pjrt_buffer *a,
                               cx_pjrt_buffer *b, cx_pjrt_buffer **out,
                               cx_pjrt_event **done)
{
  cx_pjrt_buffer *args[] = { a, b };
  return cx_pjrt_execute(e, 0, args, 2, out, done);
}

static inline void count(void *user)
{
  atomic_fetch_add((atomic_int *)user, 1);
}

static inline void wait_until(atomic_int *counter, int wanted)
{
  while (atomic_load(counter) < wanted) usleep(1000);
}

#endif
