// The table of choices: what is remembered, saved and loaded, and numbers that
// are none.
#include "kernel/choices.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { ENTRY = 1 + CPU_KERNEL_WORDS };

static cpu_kernel_desc desc_of(int64_t size, int64_t choice)
{
  return (cpu_kernel_desc){ .words = { 2, choice, size } };
}

static int64_t recalled(int threads, int64_t size)
{
  cpu_kernel_desc d = desc_of(size, 0);
  return cpu_kernel_choice_recall(threads, &d) ? d.words[1] : -1;
}

static void test_remembered(void **state)
{
  (void)state;
  const cpu_kernel_desc chosen = desc_of(5, 3), other = desc_of(5, 4);
  const cpu_kernel_desc none = desc_of(6, 0);
  assert_int_equal(recalled(2, 5), -1);
  cpu_kernel_choice_remember(2, &chosen);
  cpu_kernel_choice_remember(2, &other);  // the first stays
  cpu_kernel_choice_remember(2, &none);
  assert_int_equal(recalled(2, 5), 3);
  assert_int_equal(recalled(1, 5), -1);
  assert_int_equal(recalled(2, 6), -1);
}

static void test_saved(void **state)
{
  (void)state;
  int64_t *numbers;
  size_t count;
  assert_null(cpu_kernel_choices_save(&numbers, &count));
  assert_int_equal(count, ENTRY);
  numbers[0] = 7;  // as if it had been measured on so many threads
  assert_null(cpu_kernel_choices_load(numbers, count));
  assert_int_equal(recalled(7, 5), 3);
  calx_status *status = cpu_kernel_choices_load(numbers, count - 1);
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  calx_status_free(status);
  status = cpu_kernel_choices_load(numbers, (size_t)ENTRY * 100000);
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  calx_status_free(status);
  cx_free(numbers);
}

// Threads that there cannot be are left out.
static void test_hostile(void **state)
{
  (void)state;
  int64_t numbers[ENTRY] = { -1, 2, 3, 11 };
  assert_null(cpu_kernel_choices_load(numbers, ENTRY));
  numbers[0] = INT64_MAX;
  assert_null(cpu_kernel_choices_load(numbers, ENTRY));
  assert_int_equal(recalled(-1, 11), -1);
  assert_int_equal(recalled(INT_MAX, 11), -1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_remembered),
    cmocka_unit_test(test_saved),
    cmocka_unit_test(test_hostile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
