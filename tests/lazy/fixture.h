// fixture: what the core's tests on the fake plugin share: the plugin's
// settings, the lines that the library logs, its counts, and small tensors.
//
// The fake computes nothing: a result is a copy of the first argument of its
// type and shape, or zeros. Values are tested on real plugins, see engine.h.
#ifndef CX_TESTS_LAZY_FIXTURE_H
#define CX_TESTS_LAZY_FIXTURE_H

#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/ops.h"
#include "calx/scope.h"
#include "lines.h"
#include "pjrt/fake.h"
#include "support/support.h"

static fake lazy_fake;

static inline void lazy_set(const char *settings)
{
  assert_true(lazy_fake.set(settings));
}

// ---- counts -----------------------------------------------------------------

static inline long lazy_launches(void)
{
  return lazy_fake.calls("PJRT_LoadedExecutable_Execute");
}

static inline long lazy_compiles(void)
{
  return lazy_fake.calls("PJRT_Client_Compile");
}

static inline long lazy_uploads(void)
{
  return lazy_fake.calls("PJRT_Client_BufferFromHostBuffer");
}

// Samples of a metric, and their sum.
static inline long lazy_samples(const char *metric)
{
  calx_metric_data data;
  calx_metric_value(metric, &data);
  return (long)data.samples;
}

static inline double lazy_sum(const char *metric)
{
  calx_metric_data data;
  calx_metric_value(metric, &data);
  return data.accumulator;
}

// ---- tensors ----------------------------------------------------------------

// f32[n]: first, first + 1, …; at most 64.
static inline calx_tensor *lazy_vector(int64_t n, float first)
{
  float data[64];
  for (int64_t i = 0; i < n; i++) data[i] = first + (float)i;
  return calx_tensor_from(data, CALX_F32, CALX_SHAPE(n));
}

// The same with one owner and no scope.
static inline calx_tensor *lazy_durable(int64_t n, float first)
{
  return calx_take(lazy_vector(n, first));
}

// Whether the elements are first, first + 1, …
static inline bool lazy_holds(calx_tensor *t, float first)
{
  float data[64];
  int64_t n = calx_tensor_numel(t);
  CHECK_STATUS_OK(calx_tensor_read(t, data, (size_t)n * sizeof *data));
  bool right = true;
  for (int64_t i = 0; i < n; i++) right &= data[i] == first + (float)i;
  return right;
}

// ---- the tests' frame -------------------------------------------------------

static inline int lazy_setup(void **state)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  lazy_fake = fake_open(CX_FAKE_PLUGIN);
  if (lazy_fake.set == NULL) return 1;
  calx_log_set(lines_take, NULL);
  return support_setup(state);
}

static inline int lazy_begin(void **state)
{
  (void)state;
  lazy_set("reset");
  cx_lazy_mode_reload();
  calx_metrics_clear();
  lines_clear();
  return 0;
}

static inline int lazy_end(void **state)
{
  lazy_set("hold=0");
  int left = support_nothing_left(state);
  lazy_set("reset");
  if (lazy_fake.live() != 0) {
    print_error("left over in the plugin: %ld\n", lazy_fake.live());
    left = 1;
  }
  return left;
}

#define LAZY_TEST(function) \
  cmocka_unit_test_setup_teardown(function, lazy_begin, lazy_end)

#endif
