// Each pass on programs before and after.
#include "cases.h"

#define FILE_TEST(name)                        \
  static void test_##name(void **state)        \
  {                                            \
    (void)state;                               \
    const size_t n = run_cases(#name ".mlir"); \
    print_message("%zu cases\n", n);           \
    assert_true(n > 0);                        \
    assert_int_equal(cx_alloc_live(), 0);      \
    assert_int_equal(cx_status_live(), 0);     \
  }

FILE_TEST(inline)
FILE_TEST(decompose)
FILE_TEST(algebra)
FILE_TEST(shapes)
FILE_TEST(fold)
FILE_TEST(move)
FILE_TEST(products)
FILE_TEST(loops)
FILE_TEST(reuse)
FILE_TEST(short_rows)
FILE_TEST(all)

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_inline),     cmocka_unit_test(test_decompose),
    cmocka_unit_test(test_algebra),    cmocka_unit_test(test_shapes),
    cmocka_unit_test(test_fold),       cmocka_unit_test(test_move),
    cmocka_unit_test(test_loops),      cmocka_unit_test(test_reuse),
    cmocka_unit_test(test_all),        cmocka_unit_test(test_products),
    cmocka_unit_test(test_short_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
