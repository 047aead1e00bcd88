// Damaged descriptions of factorisations and systems.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "linalg_case.h"

// A description from a file is refused or runs inside the sizes that it tells.
static void hostile_descriptions(void **state)
{
  (void)state;
  cpu_threads *pool = NULL;
  assert_null(cpu_threads_new(2, &pool));
  static const int64_t values[] = {
    0, 1, 2, 3, 40, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 22, (int64_t)1 << 43
  };
  enum { N = sizeof values / sizeof *values };
  size_t made = 0, refused = 0;
  pick_seed(1);
  for (int i = 0; i < 4000; i++) {
    problem p = { .type = "f32",
                  .batch = 2,
                  .n = 37,
                  .others = 5,
                  .solves = i % 2 == 0,
                  .left = true };
    cpu_kernel_desc desc;
    problem_describe(&p, &desc);
    for (unsigned k = 1 + pick(2); k > 0; k--) {
      desc.words[2 + pick(8)] = values[pick(N)];
    }
    (void)cpu_kernel_flops(&desc);
    cpu_kernel *kernel = NULL;
    calx_status *status = cpu_kernel_new(&desc, pool, false, &kernel);
    made += status == NULL;
    refused += status != NULL;
    calx_status_free(status);
    size_t bytes[4] = { 0 };
    void *memory[4] = { NULL };
    if (kernel == NULL) continue;
    cpu_kernel_sizes(kernel, &bytes[0], &bytes[1], &bytes[2]);
    bytes[3] = cpu_kernel_scratch(kernel);
    bool small = cpu_kernel_flops(&desc) < 1e7;
    for (int k = 0; k < 4; k++) small = small && bytes[k] < 1 << 22;
    for (int k = 0; small && k < 4; k++) {
      memory[k] = aligned_alloc(64, (bytes[k] / 64 + 1) * 64);
      memset(memory[k], 0, bytes[k]);
    }
    if (small) {
      assert_null(cpu_kernel_run(kernel, pool, memory[0], memory[1], memory[2],
                                 memory[3]));
    }
    for (int k = 0; k < 4; k++) free(memory[k]);
    cpu_kernel_free(kernel);
  }
  assert_true(made > 500 && refused > 500);
  cpu_threads_free(pool);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hostile_descriptions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
