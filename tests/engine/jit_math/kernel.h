// Loops over one mathematical function, compiled and loaded for the tests.
#ifndef TESTS_ENGINE_JIT_MATH_KERNEL_H
#define TESTS_ENGINE_JIT_MATH_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "jit/math.h"
#include "run/object.h"

// A CPU to compile for and whether it has FMA.
typedef struct test_target {
  const char *cpu;
  bool has_fma;
} test_target;

// What is computed: a function of the real numbers, of the complex ones, or
// another operation of theirs.
typedef enum test_kind {
  TEST_REAL,
  TEST_COMPLEX,
  TEST_MULTIPLY,
  TEST_DIVIDE,
  TEST_ABS
} test_kind;

// out[i] = fn(x[i], y[i]) for i < n, a multiple of the lanes. The numbers are
// floats or doubles; of complex ones [0] are the real parts and [1] the others.
typedef void test_loop(const void *const x[2], const void *const y[2],
                       void *const out[2], int64_t n);

typedef struct test_kernel {
  cpu_run_object *code;
  size_t size;  // of the object file
  test_loop *run;
} test_kernel;

bool test_target_runs(const test_target *target);

// lanes 0: scalar. The engine's loader links nothing but memset, memcpy and
// memmove: a kernel that calls a library does not load, and the test fails.
test_kernel test_compile(const test_target *target, test_kind kind,
                         cpu_jit_function fn, bool wide, unsigned lanes);
void test_unload(test_kernel *kernel);

#endif
