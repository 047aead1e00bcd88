// What the parser refuses, and how it says so.
#include "hlo/check.h"

int parse_errors(void);

static void check_refused(const char *text, const char *piece)
{
  cx_hlo_module *m = NULL;
  calx_status *status = cx_hlo_parse(text, strlen(text), "f.mlir", &m);
  if (status == NULL) print_error("accepted: %s\n", text);
  assert_null(m);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, status, piece);
}

// Inside of a function.
static void check_op_refused(const char *line, const char *piece)
{
  cx_text text = { 0 };
  cx_text_format(&text,
                 "\"func.func\"() <{function_type = () -> (), sym_name = "
                 "\"main\"}> ({\n%s\n}) : () -> ()",
                 line);
  check_refused(cx_text_str(&text), piece);
  cx_text_free(&text);
}

static void check_attr_refused(const char *attr, const char *piece)
{
  char line[1024];
  snprintf(line, sizeof line, "\"x.y\"() {a = %s} : () -> ()", attr);
  check_op_refused(line, piece);
}

// File, line, column, the line and a caret.
static void test_message(void **state)
{
  (void)state;
  const char *text =
      "\"builtin.module\"() ({\n  \"func.func\"() <{function_type = () -> (), "
      "sym_name = \"main\"}> ({\n\t%0 = \"stablehlo.abs\"(%x) : (tensor<f32>) "
      "-> tensor<f32>\n  }) : () -> ()\n}) : () -> ()\n";
  check_refused(text,
                "f.mlir:3:23: '%x' is not defined here\n"
                " %0 = \"stablehlo.abs\"(%x) : (tensor<f32>) -> tensor<f32>\n"
                "                      ^");
  check_refused("", "f.mlir:1:1: expected a module, found the end\n\n^");
  cx_hlo_module *m = NULL;
  CHECK_FAILS(CALX_UNIMPLEMENTED, cx_hlo_parse("x", 1, NULL, &m),
              "text:1:1: 'x' is no operation of StableHLO; others are read in "
              "generic form only: \"dialect.name\"(…)\nx\n^");
}

// A long line is shown around the place.
static void test_long_line(void **state)
{
  (void)state;
  cx_text text = { 0 };
  for (int i = 0; i < 100; i++) cx_text_append(&text, "          ");
  cx_text_append(&text, "?");
  for (int i = 0; i < 100; i++) cx_text_append(&text, "xxxxxxxxxx");
  check_refused(cx_text_str(&text), "f.mlir:1:1001: expected an operation");
  cx_text_free(&text);
}

static void test_structure(void **state)
{
  (void)state;
  check_op_refused("\"x.y\" : () -> ()", "expected '('");
  check_op_refused("\"x.y\"(1) : () -> ()", "expected a value");
  check_op_refused("\"x.y\"()", "expected ':'");
  check_op_refused("\"x.y\"() : i32", "expected '('");
  check_op_refused("\"x.y\"() : ()", "expected '->'");
  check_op_refused("\"x.y\"() ({ : () -> ()", "expected an operation");
  check_op_refused("\"x.y\"() () : () -> ()", "expected '{'");
  check_op_refused("\"x.y\"() <{} : () -> ()", "expected '>'");
  check_op_refused("%0 \"x.y\"() : () -> i32", "expected '='");
  check_op_refused("%0:0 = \"x.y\"() : () -> i32", "a value has no results");
  check_op_refused("%0:2 = \"x.y\"() : () -> i32",
                   "more names than the 1 results");
  check_op_refused("%0 = \"x.y\"() : () -> (i32, i32)",
                   "1 names for 2 results");
  check_op_refused("%0, %0 = \"x.y\"() : () -> (i32, i32)",
                   "'%0' is defined already");
  check_op_refused("% = \"x.y\"() : () -> i32", "a value needs a name");
  check_op_refused("\"x.y\"(%0) : (i32) -> ()", "'%0' is not defined here");
  check_op_refused("%0 = \"x.y\"() : () -> i32\n\"x.y\"(%0#1) : (i32) -> ()",
                   "'%0' has 1 values");
  check_op_refused("%0 = \"x.y\"() : () -> i32\n\"x.y\"(%0) : () -> ()",
                   "1 operands, but 0 types for them");
  check_op_refused(
      "%0 = \"x.y\"() : () -> tensor<f32>\n\"x.y\"(%0) : "
      "(tensor<f64>) -> ()",
      "the value is f32[], its type here another");
  check_op_refused(
      "\"x.y\"() ({ %0 = \"x.y\"() : () -> i32 }) : () -> ()\n"
      "\"x.y\"(%0) : (i32) -> ()",
      "'%0' is not defined here");
  check_op_refused("%0 = \"x.y\"() ({ \"x.y\"(%0) : (i32) -> () }) : () -> i32",
                   "'%0' is not defined here");
  check_op_refused("\"x.y\"() ({ ^: }) : () -> ()", "expected a block's name");
  check_op_refused("\"x.y\"() ({ ^a(%0: i32, %0: i32): }) : () -> ()",
                   "'%0' is defined already");
  check_op_refused("\"x.y\"() ({ ^a(%0): }) : () -> ()", "expected ':'");
  check_op_refused(
      "\"func.func\"() <{function_type = () -> (), sym_name = "
      "\"f\"}> ({}) : () -> ()",
      "func.func stands inside of an operation");
  check_op_refused(
      "\"stablehlo.transpose\"() <{permutation = array<i64>}> "
      "{permutation = array<i64>} : () -> ()",
      "the attribute 'permutation' is there twice");
}

static void test_functions(void **state)
{
  (void)state;
  check_refused("\"func.func\"() ({}) : () -> ()",
                "a function needs sym_name, function_type and one region");
  check_refused(
      "\"func.func\"() {sym_name = \"f\", function_type = i32} ({}) "
      ": () -> ()",
      "expected ':'");
  check_refused(
      "\"func.func\"() <{sym_name = \"f\", function_type = i32}> "
      "({}) : () -> ()",
      "a function needs");
  check_refused(
      "\"func.func\"() <{sym_name = \"f\", function_type = () -> "
      "()}> ({}) : () -> ()\n\"func.func\"() <{sym_name = \"f\", "
      "function_type = () -> ()}> ({}) : () -> ()",
      "f.mlir:2:1: the function 'f' is there already");
  check_refused(
      "\"func.func\"() <{sym_name = \"f\", function_type = () -> (), "
      "arg_attrs = [{}]}> ({}) : () -> ()",
      "arg_attrs has 1 dictionaries for 0 types");
  check_refused(
      "\"func.func\"() <{sym_name = \"f\", function_type = () -> "
      "(i32), res_attrs = [1]}> ({}) : () -> ()",
      "res_attrs must hold dictionaries");
  check_refused(
      "\"builtin.module\"() ({}) : () -> ()\n"
      "\"builtin.module\"() ({}) : () -> ()",
      "f.mlir:2:1: a file holds one module");
  check_refused("\"builtin.module\"() ({}) : () -> () \"x.y\"() : () -> ()",
                "expected the end");
  check_refused("#a = 1", "expected a module");
}

static void test_types(void **state)
{
  (void)state;
  check_attr_refused("tensor<2xfoo>", "expected an element type");
  check_attr_refused("tensor<2 x f32>", "expected 'x' behind the size");
  check_attr_refused("tensor<99999999999999999999xf32>",
                     "the size is too large");
  check_attr_refused("tensor<2xf32", "expected '>'");
  check_attr_refused("tensor<-1xf32>", "expected an element type");
  check_attr_refused("tensor<2xcomplex<f16>>", "expected an element type");
  check_attr_refused("!nobody", "there is no type alias '!nobody'");
  check_attr_refused("f33", "there is no type 'f33'");
  check_attr_refused("tuple<", "expected a type");
  check_attr_refused("memref<2xf32", "'}' does not close '>'");
}

static void test_attributes(void **state)
{
  (void)state;
  check_attr_refused("", "expected an attribute");
  check_attr_refused("@", "expected a symbol's name");
  check_attr_refused("@a::b", "expected '@'");
  check_attr_refused("[1 2]", "expected ','");
  check_attr_refused("{1 = 2}", "expected an attribute's name");
  check_attr_refused("300 : i8", "the number does not fit into i8");
  check_attr_refused("1.5 : i8", "the number does not fit into i8");
  check_attr_refused("1 : tensor<f32>", "must be an element type");
  check_attr_refused("1 : complex<f32>", "does not fit into complex<f32>");
  check_attr_refused("99999999999999999999", "does not fit into 64 bits");
  check_attr_refused("-9223372036854775809", "does not fit into 64 bits");
  check_attr_refused("0x1FFFF : bf16", "bf16 has only 16 bits");
  check_attr_refused("-", "expected a number");
  check_attr_refused("array<i8: 300>", "the number does not fit into i8");
  check_attr_refused("array<i64: 1", "expected '>'");
  check_attr_refused("array<>", "expected a type");
  check_attr_refused("\"abc", "the string does not end on its line");
  check_attr_refused("\"a\\q\"", "no such escape");
  check_attr_refused("\"a\\4\"", "no such escape");
  check_attr_refused("#nobody", "there is no attribute alias '#nobody'");
  check_attr_refused("#x.y<(>", "'}' does not close ')'");
  check_attr_refused("#x.y<[)]>", "')' does not close ']'");
  check_refused("#a = #x.y<", "the bracket is not closed");
  check_attr_refused("loc(3)", "expected a location");
}

static void test_stablehlo(void **state)
{
  (void)state;
  check_attr_refused("#stablehlo<precision HUGE>",
                     "expected a value of precision");
  check_attr_refused("#stablehlo.precision<HIGH", "expected '>'");
  check_attr_refused("#stablehlo.dot<foo = [1]>", "dot has no field 'foo'");
  check_attr_refused("#stablehlo.dot<lhs_batching_dimensions = 1>",
                     "expected '['");
  check_attr_refused("#stablehlo.dot<lhs_batching_dimensions [1]>",
                     "expected '='");
  check_attr_refused("#stablehlo.dot<1>", "expected a field");
  check_attr_refused("#stablehlo.gather<index_vector_dim = x>",
                     "expected an integer");
  check_attr_refused("#stablehlo.dot_algorithm<lhs_precision_type = x>",
                     "expected an element type");
  check_attr_refused(
      "#stablehlo.dot_algorithm<allow_imprecise_accumulation = "
      "1>",
      "expected true or false");
  check_attr_refused("#stablehlo.result_accuracy<atol = x>",
                     "expected a number");
  check_attr_refused("#stablehlo.result_accuracy<mode = #a.b<X>>",
                     "expected #stablehlo.result_accuracy_mode");
  check_attr_refused("#stablehlo.result_accuracy<mode = X>",
                     "expected DEFAULT, HIGHEST or TOLERANCE");
  static const char *const convs[] = {
    "[b, f, 0]x[i, o, 0]->[b, 0]",    "[b, f, 0, 0]x[i, o, 0]->[b, f, 0]",
    "[b, b, 0]x[i, o, 0]->[b, f, 0]", "[b, f, 1]x[i, o, 0]->[b, f, 0]",
    "raw input_batch_dimension = 1",
  };
  for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
    char attr[256];
    snprintf(attr, sizeof attr, "#stablehlo.conv<%s>", convs[i]);
    check_attr_refused(attr, "has no meaning, or two");
  }
  check_attr_refused("#stablehlo.conv<[b, f, 70]x", "no spatial dimension");
  check_attr_refused("#stablehlo.conv<[b, f, x]>", "expected an integer");
  check_attr_refused("#stablehlo.conv<[b, f][i, o]>", "expected 'x'");
}

static void test_literals(void **state)
{
  (void)state;
  check_attr_refused("dense<1>", "expected ':'");
  check_attr_refused("dense<1> : i32", "must be a tensor of known size");
  check_attr_refused("dense<1> : tensor<?xi32>", "of known size");
  check_attr_refused("dense<1> : tensor<9999999999x9999999999xi32>",
                     "of known size");
  check_attr_refused("dense<x> : tensor<i32>", "expected an integer");
  check_attr_refused("dense<x> : tensor<f32>", "expected a number");
  check_attr_refused("dense<> : tensor<2xi32>", "expected an integer");
  check_attr_refused("dense<1 2> : tensor<i32>", "expected '>'");
  check_attr_refused("dense<[1, 2]> : tensor<3xi32>", "expected ','");
  check_attr_refused("dense<[1, 2, 3]> : tensor<2xi32>", "expected ']'");
  check_attr_refused("dense<[[1, 2]]> : tensor<2xi32>", "expected an integer");
  check_attr_refused("dense<[1, 2]> : tensor<1x2xi32>", "expected '['");
  check_attr_refused("dense<[1, 2]> : tensor<99999999xi32>",
                     "the list is too short for i32[99999999]");
  check_attr_refused("dense<[1]> : tensor<0xi32>", "i32[0] has no elements");
  check_attr_refused("dense<300> : tensor<i8>", "does not fit into i8");
  check_attr_refused("dense<0x100> : tensor<i8>", "does not fit into i8");
  check_attr_refused("dense<false> : tensor<i8>", "i8 has no 'false'");
  check_attr_refused("dense<0x100000000> : tensor<f32>", "only 32 bits");
  check_attr_refused("dense<1.0> : tensor<complex<f32>>", "expected '('");
  check_attr_refused("dense<(1.0)> : tensor<complex<f32>>", "expected ','");
  check_attr_refused("dense<\"0x0\"> : tensor<i8>", "no list of bytes");
  check_attr_refused("dense<\"0xzz\"> : tensor<i8>", "no list of bytes");
  check_attr_refused("dense<\"00\"> : tensor<i8>", "no list of bytes");
  check_attr_refused("dense<\"0x0000\"> : tensor<3xi8>",
                     "2 bytes are not those of i8[3]");
  check_attr_refused("dense<\"0x0000\"> : tensor<2xf32>",
                     "2 bytes are not those of f32[2]");
  check_attr_refused("dense<\"0x\"> : tensor<2xf32>", "0 bytes");
  check_refused("#a = dense<1", "expected '>', found the end");
}

static void test_locations(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
    { "loc", "expected '('" },
    { "loc()", "expected a location" },
    { "loc(\"a\":1)", "expected ':'" },
    { "loc(\"a\":-1:2)", "no line or column is negative" },
    { "loc(\"a\"(unknown)", "expected ')'" },
    { "loc(callsite(unknown, unknown))", "expected 'at'" },
    { "loc(fused[unknown unknown])", "expected ']'" },
    { "loc(fused<[unknown])", "does not close" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[256];
    snprintf(line, sizeof line, "\"x.y\"() : () -> () %s", cases[i][0]);
    check_op_refused(line, cases[i][1]);
  }
  check_refused("{-# \"a\"", "the metadata is not closed");
  check_refused("# = 1", "expected an alias");
  check_refused("#a 1", "expected '='");
}

static void test_unsupported(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
    { "\"func.func\"() <{function_type = () -> (), sym_name = \"f\"}> ({ "
      "\"cf.br\"()[^bb0] : () -> () }) : () -> ()",
      "StableHLO has no branches to blocks" },
    { "\"builtin.module\"() ({ \"builtin.module\"() ({}) : () -> () }) : () -> "
      "()",
      "a module inside of a module" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_hlo_module *m = NULL;
    CHECK_FAILS(CALX_UNIMPLEMENTED,
                cx_hlo_parse(cases[i][0], strlen(cases[i][0]), "f", &m),
                cases[i][1]);
  }
}

int parse_errors(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_message),   CHECK_TEST(test_long_line),
    CHECK_TEST(test_structure), CHECK_TEST(test_functions),
    CHECK_TEST(test_types),     CHECK_TEST(test_attributes),
    CHECK_TEST(test_stablehlo), CHECK_TEST(test_literals),
    CHECK_TEST(test_locations), CHECK_TEST(test_unsupported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
