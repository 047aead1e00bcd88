// engine: what the core's tests on real plugins share.
#ifndef CX_TESTS_LAZY_ENGINE_H
#define CX_TESTS_LAZY_ENGINE_H

#include "calx/autograd.h"
#include "calx/debug.h"
#include "calx/ops.h"
#include "lines.h"
#include "support/support.h"
#include "support/wait.h"

static inline calx_tensor *engine_tensor(calx_dims shape, const double *values)
{
  return support_tensor(CALX_F32, shape, values);
}

// f32 of rank 1, in the current scope; or durable.
#define VECTOR(...)                                                         \
  engine_tensor(                                                            \
      CALX_SHAPE(sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)), \
      (const double[]){ __VA_ARGS__ })
#define DURABLE(...) calx_take(VECTOR(__VA_ARGS__))

static inline long engine_samples(const char *metric)
{
  calx_metric_data data;
  calx_metric_value(metric, &data);
  return (long)data.samples;
}

static inline double engine_sum(const char *metric)
{
  calx_metric_data data;
  calx_metric_value(metric, &data);
  return data.accumulator;
}

static inline long engine_compiles(void)
{
  return (long)calx_counter_value("UncachedCompile");
}

static inline int engine_setup(void **state)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  calx_log_set(lines_take, NULL);
  return support_setup(state);
}

static inline int engine_begin(void **state)
{
  (void)state;
  cx_lazy_mode_reload();
  calx_metrics_clear();
  lines_clear();
  return 0;
}

// A plugin's callbacks may come a moment after what they tell of: waits for
// them before anything is counted. What a failed assertion left stays: the wait
// ends where nothing has changed for a while, and later tests do not wait.
enum { ENGINE_STILL_S = 10 };
static inline void engine_wait(void)
{
  static bool gave_up;
  int64_t begin = wait_seconds(), changed = begin;
  long live = cx_alloc_live();
  while (!gave_up && live != support_kept) {
    wait_moment();
    long before = live;
    int64_t now = wait_seconds();
    live = cx_alloc_live();
    if (live != before) changed = now;
    gave_up = now >= changed + ENGINE_STILL_S || now >= begin + WAIT_LIMIT_S;
  }
}

static inline int engine_end(void **state)
{
  calx_shutdown();
  engine_wait();
  return support_nothing_left(state);
}

#define ENGINE_TEST(function) \
  cmocka_unit_test_setup_teardown(function, engine_begin, engine_end)

#endif
