// The entry's types, from both forms of text.
#include "hlo/check.h"

// "main(f32[2]) -> f32[], i1[]"
static void describe(const cx_hlo_signature *s, cx_text *out)
{
  cx_text_format(out, "%s(", s->name);
  for (size_t i = 0; i < s->n_params; i++) {
    cx_text_format(out, "%s%s", i == 0 ? "" : ", ",
                   cx_hlo_shape(&s->params[i]).s);
  }
  cx_text_append(out, ") ->");
  for (size_t i = 0; i < s->n_results; i++) {
    cx_text_format(out, "%s%s", i == 0 ? " " : ", ",
                   cx_hlo_shape(&s->results[i]).s);
  }
}

static void check_signature(const char *text, const char *want)
{
  cx_hlo_signature s;
  cx_text out = { 0 };
  CHECK_OK(cx_hlo_parse_signature(text, strlen(text), "f.mlir", &s));
  describe(&s, &out);
  assert_string_equal(cx_text_str(&out), want);
  cx_text_free(&out);
  cx_hlo_signature_free(&s);
}

static void check_refused(calx_code code, const char *text, const char *piece)
{
  cx_hlo_signature s;
  CHECK_FAILS(code, cx_hlo_parse_signature(text, strlen(text), "f.mlir", &s),
              piece);
  assert_int_equal(s.n_params, 0);
  assert_null(s.name);
}

static void test_pretty(void **state)
{
  (void)state;
  check_signature("func.func @f() { return }", "f() ->");
  check_signature(
      "func.func public @main(%arg0: tensor<2xf32> "
      "{tf.aliasing_output = 0 : i32} loc(\"a\":1:2), %arg1: "
      "tensor<i1>) -> (tensor<2xf32> {jax.result_info = \"x\"}, "
      "tensor<f32>) { return }",
      "main(f32[2], i1[]) -> f32[2], f32[]");
  check_signature("func.func @f(tensor<2xf32>, tensor<i8>) -> tensor<i8>",
                  "f(f32[2], i8[]) -> i8[]");
  check_signature(
      "func.func private @\"a b\"() -> () attributes {a.b = \"}\"} "
      "{\n  \"}\" // }\n { } }",
      "a b() ->");
  check_signature("func.func @f() -> tensor<2x3xcomplex<f32>> loc(unknown)",
                  "f() -> complex<f32>[2,3]");
  check_signature(
      "func.func @f(%a: tensor<?x3xf32, #stablehlo.bounds<4, ?>>) "
      "{ }",
      "f(f32[?,3]) ->");
}

static void test_modules(void **state)
{
  (void)state;
  const char *text =
      "// a comment\n#loc = loc(\"x\":1:1)\n!t = tensor<4xf32>\n"
      "module @jit attributes {mhlo.num_partitions = 2 : i32, "
      "mhlo.num_replicas = 8 : i32} {\n"
      "  sdy.mesh @mesh = <[\"x\"=2]>\n"
      "  func.func private @g(%a: tensor<f32>) -> tensor<f32> {\n"
      "    %0 = stablehlo.compare LT, %a, %a : (tensor<f32>) -> tensor<i1>\n"
      "    %1 = stablehlo.constant dense<\"0x}}\"> : tensor<f32>\n"
      "    return %a : tensor<f32>\n  }\n"
      "  func.func @main(%a: !t loc(#loc)) -> !t {\n    return %a : !t\n  } "
      "loc(#loc2)\n}\n#loc2 = loc(\"}\":2:2)\n{-# x: { y: \"0x00\" } #-}\n";
  cx_hlo_signature s;
  check_signature(text, "main(f32[4]) -> f32[4]");
  CHECK_OK(cx_hlo_parse_signature(text, strlen(text), "f", &s));
  assert_int_equal(s.num_replicas, 8);
  assert_int_equal(s.num_partitions, 2);
  cx_hlo_signature_free(&s);
  // The only function, whatever its name is.
  check_signature("module {\n  func.func @step() {\n  }\n}", "step() ->");
  check_signature("module @\"a b\" { func.func @step() { } }", "step() ->");
  check_signature("builtin.module @m { func.func @step() { } }", "step() ->");
}

static void test_generic(void **state)
{
  (void)state;
  char *text = check_file("sample.mlir");
  cx_hlo_signature s;
  check_signature(text, "main(f32[2,3], ui64[2]) -> f32[2], ui64[2], ui32[2]");
  CHECK_OK(cx_hlo_parse_signature(text, strlen(text), "f", &s));
  assert_int_equal(s.num_replicas, 4);
  assert_int_equal(s.num_partitions, 1);
  cx_hlo_signature_free(&s);
  cx_free(text);
  // Attributes behind the regions, and of the module in front of them.
  const char *late =
      "\"builtin.module\"() <{sym_name = \"m\", mhlo.num_replicas = 3 : "
      "i32}> ({ \"func.func\"() ({ ^bb0(%a: tensor<f32>): any thing }) "
      "{sym_name = \"f\", function_type = (tensor<f32>) -> ()} : () -> () "
      "}) : () -> ()";
  check_signature(late, "f(f32[]) ->");
  CHECK_OK(cx_hlo_parse_signature(late, strlen(late), "f", &s));
  assert_int_equal(s.num_replicas, 3);
  cx_hlo_signature_free(&s);
}

static void test_refused(void **state)
{
  (void)state;
  const calx_code bad = CALX_INVALID_ARGUMENT;
  check_refused(bad, "", "f.mlir:1:1: expected a module, found the end");
  check_refused(CALX_UNIMPLEMENTED, "not a program", "no operation");
  check_refused(bad, "module {}", "0 functions, and none is called 'main'");
  check_refused(bad, "func.func @f() { } func.func @g() { }",
                "f.mlir: 2 functions, and none is called 'main'");
  check_refused(bad, "func.func @main() { }\nfunc.func @main() { }",
                "f.mlir:2:11: the function 'main' is there already");
  check_refused(bad, "func.func f() { }", "f.mlir:1:11: expected '@'");
  check_refused(bad, "func.func @f(%a tensor<f32>) { }", "expected ':'");
  check_refused(bad, "func.func @f(tensor<f32> { }", "expected ','");
  check_refused(bad, "func.func @f() { ", "the brace is not closed");
  check_refused(bad, "func.func @f() { \"", "does not end on its line");
  check_refused(bad, "func.func @f() -> (tensor<f32>, { }", "expected a type");
  check_refused(bad, "func.func @f() attributes { ", "an attribute's name");
  check_refused(bad, "module @m {", "found the end");
  check_refused(bad, "module @m attributes {a = 1 func.func @f() { } }",
                "expected ','");
  check_refused(bad, "module (", "expected '{'");
  check_refused(bad, "\"func.func\"() ({}) : () -> ()",
                "a function needs sym_name, function_type");
  check_refused(bad,
                "\"func.func\"() <{sym_name = 1, function_type = () -> "
                "()}> ({}) : () -> ()",
                "a function needs");
  check_refused(bad, "\"builtin.module\"() <{}> x", "expected '('");
  check_refused(bad, "#a = ", "expected an attribute");
  const calx_code other = CALX_UNIMPLEMENTED;
  check_refused(other, "func.func @f(%a: tensor<2xf32>, %b: memref<4xi8>) { }",
                "parameter 1 of 'f' is memref<4xi8>, which is no "
                "plain tensor");
  check_refused(other, "func.func @f() -> !stablehlo.token",
                "result 0 of 'f' is token[], which is no plain tensor");
  check_refused(other, "func.func @f() -> tuple<tensor<f32>>",
                "result 0 of 'f' is tuple<tensor<f32>>, which is no");
}

static void test_truncated(void **state)
{
  (void)state;
  static const char *const names[] = { "sample.mlir", "forms.mlir" };
  for (size_t i = 0; i < 2; i++) {
    char *text = check_file(names[i]);
    const size_t size = strlen(text);
    for (size_t n = 0; n < size; n++) {
      char *exact = malloc(n + 1);
      memcpy(exact, text, n);
      cx_hlo_signature s;
      calx_status_free(cx_hlo_parse_signature(exact, n, "f", &s));
      cx_hlo_signature_free(&s);
      free(exact);
    }
    cx_free(text);
  }
}

static void test_no_memory(void **state)
{
  (void)state;
  char *text = check_file("sample.mlir");
  bool done = false;
  for (long n = 0; !done; n++) {
    cx_hlo_signature s;
    cx_alloc_fail_at(n);
    calx_status *status = cx_hlo_parse_signature(text, strlen(text), "f", &s);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
    cx_hlo_signature_free(&s);
  }
  cx_free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_pretty),    CHECK_TEST(test_modules),
    CHECK_TEST(test_generic),   CHECK_TEST(test_refused),
    CHECK_TEST(test_truncated), CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
