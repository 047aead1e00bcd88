// When two programs are alike but for extents and numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "novelty.h"

// An argument's attributes, the type, and what the second line does with what.
#define PROGRAM(ATTRIBUTES, TYPE, SECOND)                          \
  "\"func.func\"() <{arg_attrs = [" ATTRIBUTES                     \
  "], sym_name = \"main\"}> ({\n"                                  \
  "  ^bb0(%arg0: " TYPE ", %arg1: " TYPE                           \
  "):\n"                                                           \
  "    %0 = \"stablehlo.add\"(%arg0, %arg1) : (" TYPE ") -> " TYPE \
  " loc(\"a.c\":7:0)\n" SECOND "    \"func.return\"(%1) : (" TYPE  \
  ") -> ()\n"                                                      \
  "  }) : () -> ()\n"

#define SUB(ARGS, TYPE) \
  "    %1 = \"stablehlo.subtract\"(" ARGS ") : (" TYPE ") -> " TYPE "\n"
#define PAD(LOW) \
  "    %1 = \"stablehlo.pad\"(%0) <{low = array<i64: " LOW ">}> : (t) -> t\n"

#define F32 "tensor<4xf32>"
static void test_forms(void **state)
{
  (void)state;
  seen_forms seen = { 0 };
#define IS_NEW(...) assert_true(has_new_form(&seen, __VA_ARGS__, 1))
#define IS_ALIKE(...) assert_false(has_new_form(&seen, __VA_ARGS__, 1))
  IS_NEW(PROGRAM("{}, {}", F32, SUB("%0, %arg1", F32)));
  IS_ALIKE(PROGRAM("{}, {}", F32, SUB("%0, %arg1", F32)));
  IS_ALIKE(
      PROGRAM("{}, {}", "tensor<77xf32>", SUB("%0, %arg1", "tensor<77xf32>")));
  // Each line of these was seen, or differs in one thing.
  IS_NEW(PROGRAM("{}, {}", F32, SUB("%arg1, %0", F32)));
  IS_NEW(PROGRAM("{}, {}", F32, SUB("%0, %0", F32)));
  IS_NEW(
      PROGRAM("{}, {}", "tensor<4xbf16>", SUB("%0, %arg1", "tensor<4xbf16>")));
  IS_NEW(PROGRAM("{}, {}", "tensor<4x4xf32>",
                 SUB("%0, %arg1", "tensor<4x4xf32>")));
  IS_NEW(PROGRAM("{tf.aliasing_output = 0 : i32}, {}", F32,
                 SUB("%0, %arg1", F32)));
  IS_NEW(PROGRAM("{}, {tf.aliasing_output = 0 : i32}", F32,
                 SUB("%0, %arg1", F32)));
  IS_NEW(PROGRAM("{}, {}", F32, SUB("%0, %arg1", F32) SUB("%0, %arg1", F32)));
  IS_NEW(PROGRAM("{}, {}", F32, PAD("1, 2")));
  IS_ALIKE(PROGRAM("{}, {}", F32, PAD("-3, 4")));
  // For so many devices.
  assert_true(has_new_form(&seen, PROGRAM("{}, {}", F32, PAD("1, 2")), 2));
  seen_forms_free(&seen);
}

static void test_many(void **state)
{
  (void)state;
  seen_forms seen = { 0 };
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 1; i <= 10000; i++) {
      assert_int_equal(has_new_form(&seen, "module\n", i), pass == 0);
    }
  }
  seen_forms_free(&seen);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forms),
    cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
