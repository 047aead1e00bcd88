// sharding: what the tests of tensors that are split among devices share.
#ifndef CX_TESTS_LAZY_SHARDING_H
#define CX_TESTS_LAZY_SHARDING_H

#include "calx/calx.h"
#include "engine.h"

enum { DEVICES = 4 };

static inline calx_mesh *sharding_begin(calx_dims shape, calx_axes axes)
{
  CHECK_STATUS_OK(calx_use_spmd());
  assert_int_equal(calx_device_count(), 1);
  assert_int_equal(calx_spmd_device_count(), DEVICES);
  calx_mesh *mesh = calx_mesh_new(shape, axes);
  CHECK_STATUS_OK(calx_scope_take_error());
  assert_non_null(mesh);
  return mesh;
}

static inline void sharding_check(const calx_tensor *t, const char *wanted)
{
  char *spec = calx_sharding_spec(t);
  if (wanted == NULL) {
    assert_null(spec);
  } else {
    assert_string_equal(spec, wanted);
  }
  calx_string_free(spec);
}

static inline calx_tensor *sharding_matrix(calx_dtype dtype, int64_t rows,
                                           int64_t columns)
{
  double values[4096];
  const int64_t n = rows * columns;
  assert_true(n <= 4096);
  for (int64_t i = 0; i < n; i++) {
    values[i] = (double)(i * 2654435761 % 1009) / 1009 - 0.5;
  }
  return support_tensor(dtype, CALX_SHAPE(rows, columns), values);
}

static inline int sharding_setup(void **state)
{
  setenv("CPU_NUM_DEVICES", "4", 1);
  return engine_setup(state);
}

#endif
