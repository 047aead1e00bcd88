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
  assert_true(cpu_kernel_choice_remember(2, &chosen));
  assert_true(cpu_kernel_choice_remember(2, &other));  // the first stays
  assert_false(cpu_kernel_choice_remember(2, &none));
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

static int chosen_of(const int64_t (*runs)[3], int n)
{
  cpu_kernel_times times[3];
  for (int i = 0; i < n; i++) {
    times[i] = (cpu_kernel_times){ INT64_MAX, INT64_MAX };
    for (int k = 0; k < 3 && runs[i][k] != 0; k++) {
      cpu_kernel_times_add(&times[i], runs[i][k]);
    }
  }
  return cpu_kernel_times_choose(times, n);
}

// The first candidate stays, unless another wins clearly and twice.
static void test_chosen(void **state)
{
  (void)state;
  static const int64_t faster[][3] = { { 100, 101, 102 }, { 80, 500, 81 } };
  assert_int_equal(chosen_of(faster, 2), 1);
  static const int64_t close[][3] = { { 100, 101 }, { 96, 95 } };
  assert_int_equal(chosen_of(close, 2), 0);
  // Once only: that run may have been cut short, or the others disturbed.
  static const int64_t once[][3] = { { 100, 101 }, { 50, 120 }, { 40 } };
  assert_int_equal(chosen_of(once, 3), 0);
  static const int64_t disturbed[][3] = { { 900, 100 }, { 99, 98 } };
  assert_int_equal(chosen_of(disturbed, 2), 0);
  static const int64_t three[][3] = { { 100, 100 }, { 80, 80 }, { 60, 60 } };
  assert_int_equal(chosen_of(three, 3), 2);
  static const int64_t failed[][3] = { { 0 }, { 80, 80 } };
  assert_int_equal(chosen_of(failed, 2), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_remembered),
    cmocka_unit_test(test_saved),
    cmocka_unit_test(test_hostile),
    cmocka_unit_test(test_chosen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
