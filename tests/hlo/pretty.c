// The pretty form: pretty.txt, line by line, against the generic form of the
// same; functions and modules; errors with their place.
#include "hlo/pretty.h"
#include "hlo/check.h"

// ---- operations ----

static char *field(char **rest)
{
  char *s = *rest;
  char *bar = strstr(s, " | ");
  if (s[0] == '|') {
    bar = s;
  } else if (bar == NULL) {
    *rest = s + strlen(s);
    return s;
  }
  *rest = bar + (*bar == '|' ? 2 : 3);
  *bar = '\0';
  return s;
}

static cx_hlo_module *read_in_function(const char *params, const char *line)
{
  cx_text text = { 0 };
  cx_text_format(&text, "func.func @main(%s) {\n  %s\n}\n", params, line);
  cx_hlo_module *m = check_parse(cx_text_str(&text));
  cx_text_free(&text);
  return m;
}

static bool check_line(size_t number, char *line)
{
  char *params = field(&line);
  char *pretty = field(&line);
  char *generic = field(&line);
  cx_text texts[2] = { { 0 } };
  cx_hlo_module *m[2] = { read_in_function(params, pretty),
                          read_in_function(params, generic) };
  check_identity(m[0]);
  for (size_t i = 0; i < 2; i++) {
    cx_hlo_print(m[i], &texts[i]);
    cx_hlo_module_free(m[i]);
  }
  const bool same = texts[0].size == texts[1].size &&
                    memcmp(texts[0].data, texts[1].data, texts[0].size) == 0;
  if (!same) {
    print_error("pretty.txt:%zu:\n%s\nwanted\n%s\n", number,
                cx_text_str(&texts[0]), cx_text_str(&texts[1]));
  }
  cx_text_free(&texts[0]);
  cx_text_free(&texts[1]);
  return same;
}

static void test_forms(void **state)
{
  (void)state;
  char *text = check_file("pretty.txt");
  size_t number = 0;
  size_t n = 0;
  size_t bad = 0;
  for (char *line = text; line != NULL && *line != '\0';) {
    char *end = strchr(line, '\n');
    if (end != NULL) *end = '\0';
    number++;
    if (line[0] != '#' && line[0] != '\0') {
      n++;
      // The parameters may be empty: " | pretty | generic".
      bad += !check_line(number, line[0] == ' ' ? line + 1 : line);
    }
    line = end == NULL ? NULL : end + 1;
  }
  cx_free(text);
  print_message("%zu forms\n", n);
  assert_true(n >= 128);
  assert_int_equal(bad, 0);
}

// No form is left out. Most of CHLO's are of one kind.
static void test_every_form(void **state)
{
  (void)state;
  char *text = check_file("pretty.txt");
  size_t forms = 0;
  size_t missing = 0;
  for (int k = CX_HLO_OP_OTHER + 1; k < CX_HLO_OP_CHLO_ACOS; k++) {
    if (cx_hlo_pretty_of((cx_hlo_op_kind)k)->types == CX_HLO_TYPES_NONE) {
      continue;
    }
    forms++;
    char word[64];
    snprintf(word, sizeof word, " %s",
             cx_hlo_op_info_of((cx_hlo_op_kind)k)->name);
    if (strstr(text, word) != NULL) continue;
    print_error("no form of%s\n", word);
    missing++;
  }
  cx_free(text);
  assert_int_equal(forms, 91);  // 89, func.return and func.call
  assert_int_equal(missing, 0);
}

// ---- modules ----

static void check_reads_as(const char *pretty, const char *generic)
{
  cx_text got = { 0 };
  cx_text want = { 0 };
  cx_hlo_module *a = check_parse(pretty);
  cx_hlo_module *b = check_parse(generic);
  check_identity(a);
  cx_hlo_print(a, &got);
  cx_hlo_print(b, &want);
  assert_string_equal(cx_text_str(&got), cx_text_str(&want));
  cx_hlo_module_free(a);
  cx_hlo_module_free(b);
  cx_text_free(&got);
  cx_text_free(&want);
}

static void test_module(void **state)
{
  (void)state;
  check_reads_as(
      "#loc = loc(\"f.py\":1:2)\n"
      "#s = \"{replicated}\"\n"
      "!t = tensor<2xf32>\n"
      "module @jit_f attributes {mhlo.num_replicas = 8 : i32} {\n"
      "  sdy.mesh @mesh = <[\"x\"=2]>\n"
      "  func.func public @main(%arg0: !t {mhlo.sharding = #s} loc(#loc), "
      "%arg1: tensor<i1>) -> (!t {jax.result_info = \"[0]\"}, tensor<i1>) "
      "attributes {a.b} {\n"
      "    return %arg0, %arg1 : !t, tensor<i1>\n"
      "  } loc(#loc)\n"
      "  func.func private @\"<lambda>_1\"(%a: !t) -> !t {\n"
      "    %0 = call @None(%a) : (!t) -> !t loc(#loc)\n"
      "    func.return %0 : !t\n"
      "  }\n"
      "  func.func nested @None(%a: !t) -> !t {\n return %a : !t }\n"
      "  func.func private @declared(tensor<f32>) -> tensor<f32>\n"
      "} loc(unknown)\n",
      "\"builtin.module\"() <{sym_name = \"jit_f\"}> ({\n"
      "\"sdy.mesh\"() {mesh = #sdy.mesh<[\"x\"=2]>, sym_name = \"mesh\"} : () "
      "-> ()\n"
      "\"func.func\"() <{arg_attrs = [{mhlo.sharding = \"{replicated}\"}, {}], "
      "function_type = (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, "
      "tensor<i1>), res_attrs = [{jax.result_info = \"[0]\"}, {}], sym_name = "
      "\"main\", sym_visibility = \"public\"}> ({\n"
      "^bb0(%arg0: tensor<2xf32>, %arg1: tensor<i1>):\n"
      "\"func.return\"(%arg0, %arg1) : (tensor<2xf32>, tensor<i1>) -> ()\n"
      "}) {a.b} : () -> () loc(\"f.py\":1:2)\n"
      "\"func.func\"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, "
      "sym_name = \"<lambda>_1\", sym_visibility = \"private\"}> ({\n"
      "^bb0(%a: tensor<2xf32>):\n"
      "%0 = \"func.call\"(%a) <{callee = @None}> : (tensor<2xf32>) -> "
      "tensor<2xf32> loc(\"f.py\":1:2)\n"
      "\"func.return\"(%0) : (tensor<2xf32>) -> ()\n}) : () -> ()\n"
      "\"func.func\"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, "
      "sym_name = \"None\", sym_visibility = \"nested\"}> ({\n"
      "^bb0(%a: tensor<2xf32>):\n"
      "\"func.return\"(%a) : (tensor<2xf32>) -> ()\n}) : () -> ()\n"
      "\"func.func\"() <{function_type = (tensor<f32>) -> tensor<f32>, "
      "sym_name = \"declared\", sym_visibility = \"private\"}> ({}) : () -> "
      "()\n"
      "}) {mhlo.num_replicas = 8 : i32} : () -> ()\n");
}

// Both forms in one function; a module without a line of its own.
static void test_mixture(void **state)
{
  (void)state;
  check_reads_as(
      "// a comment\nfunc.func @f() -> tensor<f32> { // another\n"
      "  %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
      "  %0 = \"stablehlo.abs\"(%c) : (tensor<f32>) -> tensor<f32>\n"
      "  return %0#0 : tensor<f32>\n}\n",
      "\"func.func\"() <{function_type = () -> tensor<f32>, sym_name = \"f\"}> "
      "({ %c = \"stablehlo.constant\"() <{value = dense<1.0> : tensor<f32>}> : "
      "() -> tensor<f32> %0 = \"stablehlo.abs\"(%c) : (tensor<f32>) -> "
      "tensor<f32> \"func.return\"(%0) : (tensor<f32>) -> () }) : () -> ()");
}

static void test_resources(void **state)
{
  (void)state;
  const char *generic =
      "func.func @f() { %a = stablehlo.constant dense<[1.0, 2.0]> : "
      "tensor<2xf32> %b = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32> "
      "%c = stablehlo.constant dense<[true, false, true]> : tensor<3xi1> }";
  check_reads_as(
      "func.func @f() { %a = stablehlo.constant dense_resource<w-1> : "
      "tensor<2xf32> %b = stablehlo.constant dense_resource<w-1> : "
      "tensor<2xf32> %c = stablehlo.constant dense_resource<\"b\"> : "
      "tensor<3xi1> }\n"
      "{-#\n  external_resources: { x: { a: \"{-#\" } },\n"
      "  dialect_resources: {\n    other: { z: \"0x00\" },\n    builtin: {\n"
      "      w-1: \"0x040000000000803F00000040\",\n"
      "      \"b\": \"0x01000000010001\"\n    }\n  }\n#-}\n",
      generic);
}

// ---- errors ----

static void check_refused(calx_code code, const char *line, const char *piece)
{
  cx_text text = { 0 };
  cx_text_format(&text,
                 "func.func @main(%%x: tensor<2xf32>, %%y: tensor<f32>) {\n"
                 "  %s\n}\n",
                 line);
  cx_hlo_module *m = NULL;
  CHECK_FAILS(code, cx_hlo_parse(cx_text_str(&text), text.size, "f.mlir", &m),
              piece);
  assert_null(m);
  cx_text_free(&text);
}

static void test_errors(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
    { "%0 = stablehlo.abs %z : tensor<2xf32>",
      "f.mlir:2:22: '%z' is not defined here\n"
      "  %0 = stablehlo.abs %z : tensor<2xf32>\n"
      "                     ^" },
    { "%0 = stablehlo.abs %x tensor<2xf32>", "expected ':'" },
    { "%0 = stablehlo.abs %x : tensor<3xf32>",
      "the value is f32[2], its type here another" },
    { "%0 = stablehlo.add %x, : tensor<2xf32>", "expected a value" },
    { "%0 = stablehlo.reshape %x : tensor<2xf32>", "expected '->'" },
    { "%0 = stablehlo.select %y, %x, %x : tensor<f32>",
      "expected 2 types, found 1" },
    { "%0 = stablehlo.abs %x : tensor<2xf32>, tensor<2xf32>",
      "expected 1 types, found 2" },
    { "stablehlo.return %x, %y : tensor<2xf32>", "expected 2 types, found 1" },
    { "%0 = stablehlo.if %x : tensor<2xf32>", "has only the generic form" },
    { "%0 = stablehlo.iota dims = 0 : tensor<2xf32>", "expected dim" },
    { "%0 = stablehlo.compare LTE, %x, %x : i1",
      "expected a value of comparison_direction" },
    { "%0 = stablehlo.constant 1 : i32", "must be a dense literal" },
    { "%0 = stablehlo.constant()", "expected ':'" },
    { "%0 = stablehlo.slice %x [0-2] : tensor<f32>", "expected ':'" },
    { "%0 = stablehlo.reduce_precision %x, format = 5 : tensor<f32>",
      "expected a format like e5m10" },
    { "%0 = stablehlo.reduce(%x init: %y) applies stablehlo.abs across "
      "dimensions = [0] : tensor<f32>",
      "'stablehlo.abs' is no operation on two values" },
    { "%0 = stablehlo.reduce(%x init: %y) across dimensions = [0] : "
      "(tensor<2xf32>, tensor<f32>) -> tensor<f32> {}",
      "expected reducer" },
    { "%0 = stablehlo.reduce(%x init: %y) across dimensions = [0] : "
      "(tensor<2xf32>, tensor<f32>) -> tensor<f32> reducer(%a: tensor<f32>) {}",
      "expected two arguments" },
    { "%0 = stablehlo.while(%a = %x) : tensor<2xf32> do {}", "expected cond" },
    { "%0 = stablehlo.while(%a = %x) : () -> tensor<2xf32> cond {} do {}",
      "1 values, but 0 types for them" },
    { "%0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f]x[i, o]->[b, "
      "f], window = {strides = [1]}",
      "a window has no 'strides'" },
    { "%0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f]x[i, o]->[b, "
      "f], window = {pad = [[1]]}",
      "expected two numbers" },
    { "%0 = stablehlo.constant dense_resource<a> : tensor<f32>",
      "there is no resource 'a'" },
    { "func.func @g() {}", "func.func stands inside of an operation" },
    { "module {}", "module stands inside of an operation" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_refused(CALX_INVALID_ARGUMENT, cases[i][0], cases[i][1]);
  }
  check_refused(CALX_UNIMPLEMENTED, "foo.bar %x : tensor<2xf32>",
                "'foo.bar' is no operation of StableHLO");
  check_refused(CALX_UNIMPLEMENTED,
                "%0 = stablehlo.constant dense<1> : "
                "tensor<2x!quant.uniform<i8:f32, 0.5>>",
                "literals of the type tensor<2x!quant.uniform<i8:f32, 0.5>> "
                "are not supported");
}

static void test_function_errors(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
    { "func.func main() {}", "expected '@'" },
    { "func.func @f(%a: tensor<f32>, tensor<f32>) {}",
      "a function with a body names its parameters" },
    { "func.func @f()\nfunc.func @f()", "f.mlir:2:11: the function 'f'" },
    { "module { func.func @f() {}", "expected an operation, found the end" },
    { "module {} module {}", "f.mlir:1:11: a file holds one module" },
    { "func.func @f() { \"a.b\"() : () -> ()", "expected an operation" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_hlo_module *m = NULL;
    CHECK_FAILS(CALX_INVALID_ARGUMENT,
                cx_hlo_parse(cases[i][0], strlen(cases[i][0]), "f.mlir", &m),
                cases[i][1]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_forms),           CHECK_TEST(test_every_form),
    CHECK_TEST(test_module),          CHECK_TEST(test_mixture),
    CHECK_TEST(test_resources),       CHECK_TEST(test_errors),
    CHECK_TEST(test_function_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
