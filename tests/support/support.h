// support: what the tests above the lazy core share.
//
// A test ends with nothing left: no tensor, node, status, plugin handle or
// block of memory. The device is closed after each test for that, so each
// starts with an empty cache of programs and the default seed.
//
//   static void test_sum(void **state) { … }
//   int main(void)
//   {
//     const struct CMUnitTest tests[] = { SUPPORT_TEST(test_sum) };
//     return cmocka_run_group_tests(tests, support_setup, NULL);
//   }
#ifndef CX_TESTS_SUPPORT_SUPPORT_H
#define CX_TESTS_SUPPORT_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "calx/device.h"
#include "calx/tensor.h"
#include "lazy/lazy.h"
#include "pjrt/pjrt.h"
#include "support/long.h"

// ---- the engine -------------------------------------------------------------

// Whether the test runs on the library's own engine: XLA's is chosen by a path.
static inline bool support_own_engine(void)
{
  const char *plugin = getenv("CALX_PLUGIN");
  return plugin == NULL || strcmp(plugin, "calx") == 0;
}

// `all` on our own engine and where all is asked for; else a sample, because
// XLA compiles for seconds.
static inline long all_or_sample(long all, long sample)
{
  return support_own_engine() ? all : long_or(all, sample);
}

// ---- statuses ---------------------------------------------------------------

#define CHECK_STATUS_OK(expression) support_ok((expression), __FILE__, __LINE__)
// Fails with this code and a message that holds every given piece.
#define CHECK_STATUS(code, expression, ...)                \
  support_status((code), (expression), __FILE__, __LINE__, \
                 (const char *const[]){ __VA_ARGS__, NULL })

static inline void support_ok(calx_status *status, const char *file, int line)
{
  if (status == NULL) return;
  print_error("%s\n", calx_status_message(status));
  calx_status_free(status);
  _fail(file, line);
}

static inline void support_status(calx_code code, calx_status *status,
                                  const char *file, int line,
                                  const char *const *pieces)
{
  bool right = calx_status_code(status) == code;
  for (; right && *pieces != NULL; pieces++) {
    if (strstr(calx_status_message(status), *pieces) == NULL) break;
  }
  right = right && *pieces == NULL;
  if (!right) {
    print_error("wanted %s with '%s', got %s: %s\n", calx_code_name(code),
                *pieces == NULL ? "" : *pieces,
                calx_code_name(calx_status_code(status)),
                calx_status_message(status));
  }
  calx_status_free(status);
  if (!right) _fail(file, line);
}

// ---- values -----------------------------------------------------------------

// |actual - expected| <= tolerance; NaN is close to NaN only.
#define CHECK_CLOSE(actual, expected, tolerance) \
  support_close((actual), (expected), (tolerance), __FILE__, __LINE__)
// All elements of a tensor, in row-major order.
#define CHECK_VALUES(tensor, tolerance, ...)                               \
  support_values((tensor), (const double[]){ __VA_ARGS__ },                \
                 sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double), \
                 (tolerance), __FILE__, __LINE__)

static inline bool support_is_close(double a, double b, double tolerance)
{
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabs(a - b) <= tolerance;
}

static inline void support_close(double actual, double expected,
                                 double tolerance, const char *file, int line)
{
  if (support_is_close(actual, expected, tolerance)) return;
  print_error("got %.9g, wanted %.9g within %g\n", actual, expected, tolerance);
  _fail(file, line);
}

// The elements as doubles, computed if need be; test_free() them.
// A complex element is two numbers.
static inline double *support_read(calx_tensor *t, size_t *out_n)
{
  calx_dtype d = cx_dtype_part(calx_tensor_dtype(t));
  size_t n = (size_t)calx_tensor_numel(t), size = calx_dtype_size(d);
  if (d != calx_tensor_dtype(t)) n *= 2;
  unsigned char *bytes = test_malloc(n * size + 1);
  double *values = test_malloc(n * sizeof *values + 1);
  support_ok(calx_tensor_read(t, bytes, n * size), __FILE__, __LINE__);
  for (size_t i = 0; i < n; i++)
    values[i] = cx_load_double(d, bytes + i * size);
  test_free(bytes);
  *out_n = n;
  return values;
}

static inline void support_values(calx_tensor *t, const double *wanted,
                                  size_t count, double tolerance,
                                  const char *file, int line)
{
  size_t n;
  double *got = support_read(t, &n);
  bool right = n == count;
  if (!right) print_error("got %zu elements, wanted %zu\n", n, count);
  for (size_t i = 0; right && i < n; i++) {
    right = support_is_close(got[i], wanted[i], tolerance);
    if (!right) {
      print_error("element %zu: got %.9g, wanted %.9g within %g\n", i, got[i],
                  wanted[i], tolerance);
    }
  }
  test_free(got);
  if (!right) _fail(file, line);
}

// f32 and f64 tensors of the current scope.
static inline calx_tensor *support_tensor(calx_dtype dtype, calx_dims shape,
                                          const double *values)
{
  int64_t n;
  size_t bytes, size = calx_dtype_size(dtype);
  assert_true(cx_dims_bytes(dtype, shape.values, shape.count, &n, &bytes));
  unsigned char *data = test_malloc(bytes + 1);
  for (int64_t i = 0; i < n; i++) {
    cx_store_double(dtype, data + (size_t)i * size, values[i]);
  }
  calx_tensor *t = calx_tensor_from(data, dtype, shape);
  test_free(data);
  return t;
}

// ---- nothing left -----------------------------------------------------------

#define SUPPORT_TEST(function) \
  cmocka_unit_test_setup_teardown(function, NULL, support_nothing_left)

// Blocks that stay for the process's life: the loaded plugin and the like.
static long support_kept;

static inline int support_nothing_left(void **state)
{
  (void)state;
  calx_shutdown();
  long blocks = cx_alloc_live() - support_kept;
  if (cx_lazy_tensor_live() == 0 && cx_graph_node_live() == 0 &&
      cx_lazy_scope_live() == 0 && cx_status_live() == 0 &&
      cx_pjrt_live() == 0 && blocks == 0) {
    return 0;
  }
  print_error(
      "left over: %ld tensors, %ld nodes, %ld scopes, %ld statuses, "
      "%ld plugin handles, %ld blocks\n",
      cx_lazy_tensor_live(), cx_graph_node_live(), cx_lazy_scope_live(),
      cx_status_live(), cx_pjrt_live(), blocks);
  return 1;
}

// Once for a group of tests: opens and closes the device.
static inline int support_setup(void **state)
{
  (void)state;
  calx_device *device;
  support_ok(calx_device_open("xla", &device), __FILE__, __LINE__);
  calx_shutdown();
  support_kept = cx_alloc_live();
  return 0;
}

#ifdef CX_FAKE_PLUGIN  // cx_use_fake(NAME) in CMake
// The same on the fake plugin, which records and launches all, and whose
// results are copies or zeros.
static inline int support_setup_fake(void **state)
{
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  return support_setup(state);
}
#endif

#endif
