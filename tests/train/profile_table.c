// profile_table: the simple profiler's table, byte for byte as Lightning's.
#include "train/profile_table.h"

#include "loggers/number.h"
#include "support/support.h"

#define NONE ((double)NAN)

typedef struct profile_case {
  const char *name;
  cx_train_profile profile;  // without its rows
  cx_train_profile_row rows[12];
  const char *text;
} profile_case;

#include "lightning_profile.h"

static void check(const cx_train_profile *profile, const char *wanted)
{
  cx_text out = { 0 };
  cx_train_put_profile(&out, profile);
  assert_false(cx_text_failed(&out));
  assert_string_equal(cx_text_str(&out), wanted);
  cx_text_free(&out);
}

static void test_row_D12(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_train_profile profile = cases[i].profile;
    profile.rows = cases[i].rows;
    check(&profile, cases[i].text);
  }
}

#define DASHES "------------------------------------------"
#define LINE DASHES DASHES DASHES DASHES DASHES "\n"

static void test_parts(void **state)
{
  (void)state;
  const cx_train_profile_row rows[] = {
    { "a", 2, 0.5, { 0.125, NONE, NONE, NONE } },
    { "bc", 1, 1.5, { 1, 0.25, 1e-5, 0 } },
  };
  static const char wanted[] =  // five lines of dashes and four rows
      "Profiler Report\n\n" LINE
      "|  Action\t|  Mean duration (s)\t|  Num calls      \t"
      "|  Total time (s) \t|  Percentage %   \t|  Trace (s)      \t"
      "|  Compile (s)    \t|  Execute wait (s)\t|  Transfer (s)   \t|\n" LINE
      "|  Total\t|  -              \t|  3              \t"
      "|  2.0            \t|  100 %          \t|  -              \t"
      "|  -              \t|  -              \t|  -              \t|\n" LINE
      "|  bc\t|  1.5            \t|  1              \t"
      "|  1.5            \t|  75.0           \t|  1.0            \t"
      "|  0.25           \t|  1e-05          \t|  0.0            \t|\n"
      "|  a \t|  0.25           \t|  2              \t"
      "|  0.5            \t|  25.0           \t|  0.125          \t"
      "|  -              \t|  -              \t|  -              \t|\n" LINE;
  check(
      &(cx_train_profile){
          .total = 2, .rows = rows, .n_rows = 2, .has_parts = true },
      wanted);
}

static void test_rounded(void **state)
{
  (void)state;
  static const struct {
    double value;
    int digits;
    const char *text;  // Python's format(value, ".5")
  } numbers[] = {
    { 7, 5, "7.0" },
    { -0.0, 5, "-0.0" },
    { 123.456789, 3, "1.23e+02" },
    { 99.96, 3, "1e+02" },
    { 12.3, 3, "12.3" },
    { NONE, 5, "nan" },
    { -HUGE_VAL, 5, "-inf" },
    { -1e-300, 5, "-1e-300" },
    { 0.1, 17, "0.10000000000000001" },
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    cx_text out = { 0 };
    cx_loggers_put_rounded(&out, numbers[i].value, numbers[i].digits);
    assert_string_equal(cx_text_str(&out), numbers[i].text);
    cx_text_free(&out);
  }
}

static void test_no_memory(void **state)
{
  (void)state;
  cx_train_profile profile = cases[0].profile;
  profile.rows = cases[0].rows;
  long n = 0;
  for (bool failed = true; failed; n++) {
    cx_text out = { 0 };
    cx_alloc_fail_at(n);
    cx_train_put_profile(&out, &profile);
    cx_alloc_fail_at(-1);
    failed = cx_text_failed(&out);
    cx_text_free(&out);
  }
  assert_in_range(n, 10, 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_row_D12),
    cmocka_unit_test(test_parts),
    cmocka_unit_test(test_rounded),
    SUPPORT_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
