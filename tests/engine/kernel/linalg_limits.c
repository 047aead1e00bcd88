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
    calx_status *status = NULL;
    bool taken = desc_run_zeros(&desc, pool, &status);
    assert_null(status);
    made += taken;
    refused += !taken;
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
