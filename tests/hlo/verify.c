// What holds of whole programs; rules.txt has what holds of operations.
#include "hlo/check.h"

// A function with this type and body.
#define FUNC(name, type, body)                                     \
  "\"func.func\"() <{function_type = " type ", sym_name = \"" name \
  "\"}> ({\n" body "}) : () -> ()\n"
#define F32 "tensor<f32>"
#define RETURN(value) "\"func.return\"(" value ") : (" F32 ") -> ()\n"
#define CALL(result, operand, name)                                     \
  result " = \"func.call\"(" operand ") <{callee = @" name "}> : (" F32 \
         ") -> " F32 "\n"

static calx_status *verify(const char *text)
{
  cx_hlo_module *m = check_parse(text);
  calx_status *status = cx_hlo_verify(m);
  cx_hlo_module_free(m);
  return status;
}

static void check_refused(const char *text, const char *piece)
{
  CHECK_FAILS(CALX_INVALID_ARGUMENT, verify(text), piece);
}

static void test_entry(void **state)
{
  (void)state;
  const char *one =
      FUNC("f", "(" F32 ") -> " F32, "^a(%0: " F32 "):" RETURN("%0"));
  CHECK_OK(verify(one));
  check_refused(FUNC("f", "() -> ()", "\"func.return\"() : () -> ()\n")
                    FUNC("g", "() -> ()", "\"func.return\"() : () -> ()\n"),
                "the module has several functions, and none is called 'main'");
  check_refused("\"builtin.module\"() ({}) : () -> ()",
                "the module has no function");
  check_refused(
      "%0 = \"stablehlo.iota\"() <{iota_dimension = 0 : i64}> : () "
      "-> tensor<2xf32>\n" FUNC("f", "() -> ()",
                                "\"func.return\"() : () -> ()\n"),
      "iota: stands outside of a function");
  CHECK_OK(verify("\"sdy.mesh\"() {sym_name = \"m\"} : () -> ()\n" FUNC(
      "f", "() -> ()", "\"func.return\"() : () -> ()\n")));
}

static void test_functions(void **state)
{
  (void)state;
  check_refused(FUNC("main", "() -> ()", ""), "function 'main' has no body");
  check_refused(
      FUNC("main", "(" F32 ") -> ()", "\"func.return\"() : () -> ()\n"),
      "function 'main' has other parameters than its type says");
  check_refused(FUNC("main", "(" F32 ") -> ()",
                     "^a(%0: tensor<f64>): \"func.return\"() : () -> ()\n"),
                "has other parameters than its type says");
  check_refused(FUNC("main", "(" F32 ") -> ()", "^a(%0: " F32 "):"),
                "function 'main' does not end with func.return");
  check_refused(
      FUNC("main", "(" F32 ") -> ()",
           "^a(%0: " F32 "): \"stablehlo.return\"(%0) : (" F32 ") -> ()\n"),
      "return: a function ends with func.return; operation 1 of function "
      "'main'");
  check_refused(
      FUNC("main", "(" F32 ") -> ()", "^a(%0: " F32 "):" RETURN("%0")),
      "function 'main' returns 1 values, its type says 0");
  check_refused(
      FUNC("main", "(" F32 ") -> tensor<f64>", "^a(%0: " F32 "):" RETURN("%0")),
      "function 'main' returns f32[] as value 0, its type says f64[]");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              verify(FUNC("main", "() -> ()",
                          "\"func.return\"() : () -> () ^b: \"func.return\"() "
                          ": () -> ()\n")),
              "function 'main' has several blocks");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              verify(FUNC("main", "(tensor<?xf32>) -> ()",
                          "^a(%0: tensor<?xf32>): \"func.return\"() : () -> "
                          "()\n")),
              "f32[?] has a dynamic size");
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              verify(FUNC("main", "(memref<4xf32>) -> ()",
                          "^a(%0: memref<4xf32>): \"func.return\"() : () -> "
                          "()\n")),
              "the type memref<4xf32> is not supported");
}

// What the message says of the place: the source's, or the operation's number.
static void test_place(void **state)
{
  (void)state;
  check_refused(
      FUNC("main", "(" F32 ") -> ()",
           "^a(%0: " F32 "): %1 = \"stablehlo.abs\"(%0) : (" F32 ") -> " F32
           "\n%2 = \"stablehlo.abs\"(%1) : (" F32 ") -> tensor<f64>\n"
           "\"func.return\"() : () -> ()\n"),
      "abs: result 0 is declared f64[], it must be f32[]; operation 2 of "
      "function 'main'");
  check_refused(
      FUNC("main", "(" F32 ") -> ()",
           "^a(%0: " F32 "): %2 = \"stablehlo.abs\"(%0) : (" F32
           ") -> tensor<f64> loc(\"model.py\":31:4)\n"
           "\"func.return\"() : () -> ()\n"),
      "abs: result 0 is declared f64[], it must be f32[]; at model.py:31");
}

// Names are the parser's to find; values are told by who made them.
static void test_dominance(void **state)
{
  (void)state;
  // The module's own values are not the functions'.
  const char *text =
      "\"builtin.module\"() ({\n%0 = \"x.y\"() : () -> " F32
      "\n" FUNC("main", "() -> ()",
                "%1 = \"stablehlo.abs\"(%0) : (" F32 ") -> " F32
                "\n\"func.return\"() : () -> ()\n") "}) : () -> ()\n";
  cx_hlo_module *m = NULL;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_parse(text, strlen(text), "f", &m),
              "'%0' is not defined here");
  // An earlier function's value, moved by hand.
  m = check_parse(
      FUNC("main", "(" F32 ") -> " F32, "^a(%0: " F32 "):" RETURN("%0"))
          FUNC("g", "(" F32 ") -> " F32,
               "^a(%0: " F32 "): %1 = \"stablehlo.abs\"(%0) : (" F32 ") -> " F32
               "\n" RETURN("%1")));
  cx_hlo_op *abs = m->first->next->body.first->first;
  abs->operands[0] = &m->first->body.first->args[0];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_verify(m),
              "abs: operand 0 is used where it is not defined");
  // Its own result.
  abs->operands[0] = &abs->results[0];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_verify(m), "not defined");
  abs->operands[0] = &m->first->next->body.first->args[0];
  CHECK_OK(cx_hlo_verify(m));
  cx_hlo_module_free(m);
}

// What a constant says of sizes, the declared type must say too.
static void test_known_sizes(void **state)
{
  (void)state;
#define CONSTANT(value) \
  "%c = stablehlo.constant dense<" value "> : tensor<1xi64> "
#define SLICE(type)                                                     \
  "%r = stablehlo.real_dynamic_slice %x, %c, %d, %c : (tensor<6xf32>, " \
  "tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> " type
#define PAD(type)                                                    \
  "%r = stablehlo.dynamic_pad %x, %y, %c, %c, %c : (tensor<6xf32>, " \
  "tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> " type
#define CONV(type)                                                            \
  "%p = stablehlo.constant dense<1> : tensor<1x2xi64> %r = "                  \
  "\"stablehlo.dynamic_conv\"(%i, %k, %p) <{dimension_numbers = "             \
  "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 " \
  ": i64, batch_group_count = 1 : i64}> : (tensor<1x4x1xf32>, "               \
  "tensor<2x1x1xf32>, tensor<1x2xi64>) -> " type
#define GATHER(type)                                                     \
  "%g = \"stablehlo.dynamic_gather\"(%x, %c, %c) <{dimension_numbers = " \
  "#stablehlo.gather<offset_dims = [0], start_index_map = [0]>}> : "     \
  "(tensor<6xf32>, tensor<1xi64>, tensor<1xi64>) -> " type
  static const char *const cases[][2] = {
    { CONSTANT("6") "%r = stablehlo.dynamic_reshape %x, %c : (tensor<6xf32>, "
                    "tensor<1xi64>) -> tensor<6xf32>",
      "" },
    { CONSTANT("5") "%r = stablehlo.dynamic_reshape %x, %c : (tensor<6xf32>, "
                    "tensor<1xi64>) -> tensor<6xf32>",
      "dynamic_reshape: dimension 0 of f32[6] must be 5" },
    { CONSTANT("5") "%r = stablehlo.dynamic_iota %c, dim = 0 : "
                    "(tensor<1xi64>) -> tensor<6xf32>",
      "dynamic_iota: dimension 0 of f32[6] must be 5" },
    { CONSTANT("1") "%d = stablehlo.constant dense<4> : tensor<1xi64> " SLICE(
          "tensor<3xf32>"),
      "" },
    { CONSTANT("1") "%d = stablehlo.constant dense<4> : tensor<1xi64> " SLICE(
          "tensor<2xf32>"),
      "real_dynamic_slice: result 0 is declared f32[2], it must be f32[3]" },
    { CONSTANT("1") "%d = stablehlo.constant dense<7> : tensor<1xi64> " SLICE(
          "tensor<2xf32>"),
      "[1:7:1] is no part of dimension 0 of f32[6]" },
    { CONSTANT("1") PAD("tensor<13xf32>"), "" },
    { CONSTANT("1") PAD("tensor<12xf32>"), "it must be f32[13]" },
    { CONSTANT("-1") PAD("tensor<12xf32>"), "cannot be padded by -1, -1" },
    { CONV("tensor<1x5x1xf32>"), "" },
    { CONV("tensor<1x4x1xf32>"), "it must be f32[1,5,1]" },
    { CONSTANT("2") GATHER("tensor<2xf32>"), "" },
    { CONSTANT("2") GATHER("tensor<3xf32>"), "it must be f32[2]" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_text text = { 0 };
    cx_text_format(&text,
                   "func.func @main(%%x: tensor<6xf32>, %%y: tensor<f32>, %%i: "
                   "tensor<1x4x1xf32>, %%k: tensor<2x1x1xf32>) { %s return }",
                   cases[i][0]);
    cx_hlo_module *m = check_parse(cx_text_str(&text));
    calx_status *status = cx_hlo_verify(m);
    if (cases[i][1][0] == '\0') {
      CHECK_OK(status);
    } else {
      CHECK_FAILS(CALX_INVALID_ARGUMENT, status, cases[i][1]);
    }
    cx_hlo_module_free(m);
    cx_text_free(&text);
  }
}

// Values of a region end with it, also for the region after it.
static void test_regions(void **state)
{
  (void)state;
  cx_hlo_module *m =
      check_parse(FUNC("main", "(tensor<i1>, " F32 ") -> " F32,
                       "^a(%p: tensor<i1>, %x: " F32 "):\n"
                       "%r = \"stablehlo.if\"(%p) ({\n"
                       "  %a = \"stablehlo.abs\"(%x) : (" F32 ") -> " F32 "\n"
                       "  \"stablehlo.return\"(%a) : (" F32 ") -> ()\n}, {\n"
                       "  %b = \"stablehlo.abs\"(%x) : (" F32 ") -> " F32 "\n"
                       "  \"stablehlo.return\"(%b) : (" F32 ") -> ()\n"
                       "}) : (tensor<i1>) -> " F32 "\n" RETURN("%r")));
  CHECK_OK(cx_hlo_verify(m));
  cx_hlo_op *branch = m->first->body.first->first;
  cx_hlo_op *a = branch->regions[0].first->first;
  cx_hlo_op *b = branch->regions[1].first->first;
  b->next->operands[0] = &a->results[0];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_verify(m),
              "return: operand 0 is used where it is not defined");
  b->next->operands[0] = &b->results[0];
  m->first->body.first->last->operands[0] = &b->results[0];
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_verify(m), "not defined");
  m->first->body.first->last->operands[0] = &branch->results[0];
  CHECK_OK(cx_hlo_verify(m));
  cx_hlo_module_free(m);
  CHECK_FAILS(CALX_UNIMPLEMENTED,
              verify(FUNC("main", "(tensor<i1>) -> ()",
                          "^a(%p: tensor<i1>): \"stablehlo.if\"(%p) ({ "
                          "\"stablehlo.return\"() : () -> () ^b: "
                          "\"stablehlo.return\"() : () -> () }, { "
                          "\"stablehlo.return\"() : () -> () }) : "
                          "(tensor<i1>) -> ()\n\"func.return\"() : () -> "
                          "()\n")),
              "if: region 0 has several blocks");
}

// ---- calls ----

#define ONE "(" F32 ") -> " F32
#define ARG "^a(%x: " F32 "):\n"

static void test_calls(void **state)
{
  (void)state;
  CHECK_OK(verify(FUNC(
      "main", ONE, ARG CALL("%1", "%x", "g") CALL("%2", "%1", "h") RETURN("%2"))
                      FUNC("g", ONE,
                           ARG CALL("%1", "%x", "h") CALL("%2", "%1", "h")
                               RETURN("%2")) FUNC("h", ONE, ARG RETURN("%x"))));
  check_refused(FUNC("main", ONE, ARG CALL("%1", "%x", "main") RETURN("%1")),
                "function 'main' calls itself, or functions that do");
  check_refused(
      FUNC("main", ONE, ARG CALL("%1", "%x", "g") RETURN("%1"))
          FUNC("f", ONE, ARG RETURN("%x"))
              FUNC("g", ONE,
                   ARG CALL("%1", "%x", "f") CALL("%2", "%1", "h") RETURN("%2"))
                  FUNC("h", ONE, ARG CALL("%1", "%x", "g") RETURN("%1")),
      "function 'main' calls itself, or functions that do");
  check_refused(
      FUNC("main", ONE, ARG RETURN("%x")) FUNC(
          "g", ONE,
          ARG
          "%1 = \"stablehlo.composite\"(%x) <{name = \"n\", decomposition = "
          "@g}> : (" F32 ") -> " F32 "\n" RETURN("%1")),
      "function 'g' calls itself");
}

// ---- size ----

// Regions that nest deeply are walked without recursion.
static void test_depth(void **state)
{
  (void)state;
  cx_text text = { 0 };
  cx_text_append(&text,
                 "\"func.func\"() <{function_type = (tensor<i32>) -> (), "
                 "sym_name = \"main\"}> ({ ^a(%i: tensor<i32>):\n");
  const int n = 100;
  for (int i = 0; i < n; i++) {
    cx_text_append(&text, "\"stablehlo.case\"(%i) ({\n");
  }
  for (int i = 0; i < n; i++) {
    cx_text_append(&text,
                   "\"stablehlo.return\"() : () -> ()\n}) : "
                   "(tensor<i32>) -> ()\n");
  }
  cx_text_append(&text, "\"func.return\"() : () -> ()\n}) : () -> ()\n");
  CHECK_OK(verify(cx_text_str(&text)));
  cx_text_free(&text);
}

static void test_no_memory(void **state)
{
  (void)state;
  cx_hlo_module *m =
      check_parse(FUNC("main", ONE, ARG CALL("%1", "%x", "g") RETURN("%1"))
                      FUNC("g", ONE, ARG RETURN("%x")));
  bool done = false;
  for (long n = 0; !done; n++) {
    cx_alloc_fail_at(n);
    calx_status *status = cx_hlo_verify(m);
    cx_alloc_fail_at(-1);
    done = status == NULL;
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
  }
  cx_hlo_module_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_entry),       CHECK_TEST(test_functions),
    CHECK_TEST(test_place),       CHECK_TEST(test_dominance),
    CHECK_TEST(test_regions),     CHECK_TEST(test_calls),
    CHECK_TEST(test_known_sizes), CHECK_TEST(test_depth),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
