// The parser: every form of types, attributes, places and structure; errors
// with their place; text that means harm.
#include "hlo/check.h"

// ---- attributes and types ----

// The module around one operation; prefix goes before it.
static void wrap(cx_text *out, const char *prefix, const char *line)
{
  cx_text_format(out,
                 "%s\"builtin.module\"() ({\n  \"func.func\"() "
                 "<{function_type = () -> (), sym_name = \"main\"}> ({\n    "
                 "%s\n    \"func.return\"() : () -> ()\n  }) : () -> ()\n}) : "
                 "() -> ()\n",
                 prefix, line);
}

// What `line` is after reading and printing, without its indentation.
static void check_line(const char *prefix, const char *line, const char *want)
{
  cx_text text = { 0 };
  cx_text out = { 0 };
  wrap(&text, prefix, line);
  cx_hlo_module *m = check_parse(cx_text_str(&text));
  check_identity(m);
  cx_hlo_print(m, &out);
  char *got = strstr(out.data, "}> ({\n    ");
  assert_non_null(got);
  got += strlen("}> ({\n    ");
  char *end = strstr(got, "\n    \"func.return\"");
  assert_non_null(end);
  *end = '\0';
  assert_string_equal(got, want);
  cx_hlo_module_free(m);
  cx_text_free(&out);
  cx_text_free(&text);
}

static void check_attr(const char *attr, const char *want)
{
  char line[2048];
  char wanted[2048];
  snprintf(line, sizeof line, "\"x.y\"() {a = %s} : () -> ()", attr);
  snprintf(wanted, sizeof wanted, "\"x.y\"() {a = %s} : () -> ()",
           want == NULL ? attr : want);
  check_line("#map = affine_map<(d0) -> (d0 + 1)>\n#five = 5 : i8\n", line,
             wanted);
}

static void check_attrs(const char *const (*cases)[2], size_t n)
{
  for (size_t i = 0; i < n; i++) check_attr(cases[i][0], cases[i][1]);
}

// What is read, and what is printed; NULL: the same.
static const char *const attributes[][2] = {
  { "true", NULL },
  { "false", NULL },
  { "1 : i1", "true" },
  { "12", "12 : i64" },
  { "-3 : i8", NULL },
  { "0xFF : ui8", "255 : ui8" },
  { "18446744073709551615 : ui64", NULL },
  { "-9223372036854775808", "-9223372036854775808 : i64" },
  { "4 : index", NULL },
  { "1.5", "1.5 : f64" },
  { "1.5e-3 : f32", "0.0015 : f32" },
  { "1 : f32", "1.0 : f32" },
  { "0x7F800000 : f32", NULL },
  { "-2.5 : bf16", NULL },
  { "\"a\\n\\t\\\"\\\\\\C3\\A4\"", "\"a\\0A\\09\\22\\5C\\C3\\A4\"" },
  { "\"\"", NULL },
  { "\"x\" : i32", NULL },
  { "@f", NULL },
  { "@\"a b\"", NULL },
  { "@\"plain\"", "@plain" },
  { "@a::@b::@\"c d\"", NULL },
  { "[]", NULL },
  { "[1 : i32, [true], {}]", NULL },
  { "{b, c = 1 : i8, \"d e\" = \"f\"}", NULL },
  { "{\"g\" = 1}", "{g = 1 : i64}" },
  { "array<i64>", NULL },
  { "array<i64: 1, -2>", NULL },
  { "array<i1: true, false>", NULL },
  { "array<i8: 0x7f>", "array<i8: 127>" },
  { "array<f32: 1.0, 2.0>", NULL },
  { "i32", NULL },
  { "tensor<2x?x0x3xf8E4M3FN>", NULL },
  { "tensor<f32>", NULL },
  { "tensor< 2x3xcomplex<f64> >", "tensor<2x3xcomplex<f64>>" },
  { "tensor<?x4xf32, #stablehlo.bounds<?, 8>>", NULL },
  { "tensor<*xf32>", NULL },
  { "tensor<4x!quant.uniform<i8:f32, 0.1:3>>", NULL },
  { "memref<4xf32>", NULL },
  { "vector<4xf32>", NULL },
  { "none", NULL },
  { "complex<f32>", NULL },
  { "complex<i8>", NULL },
  { "!stablehlo.token", NULL },
  { "!stablehlo.future<tensor<f32>, !stablehlo.token>", NULL },
  { "tuple<tensor<f32>, tuple<>>", NULL },
  { "(i32, f32) -> ()", NULL },
  { "() -> (i32)", "() -> i32" },
  { "() -> (() -> ())", NULL },
  { "(tensor<f32>) -> (tensor<f32>, i1)", NULL },
  { "!other.type", NULL },
  { "!other.type<a, \"<\", [b]>", NULL },
  { "affine_map<(d0, d1) -> (d1)>", NULL },
  { "#map", "affine_map<(d0) -> (d0 + 1)>" },
  { "#five", "5 : i8" },
  { "loc(\"a.py\":1:2)", NULL },
  { "#sdy.sharding<@mesh, [{\"x\"}, {}]>", NULL },
  { "#other.plain", NULL },
  { "#other<a -> b>", NULL },
  { "distinct[0]<unit>", NULL },
};

static void test_attributes(void **state)
{
  (void)state;
  check_attrs(attributes, sizeof attributes / sizeof *attributes);
}

// A unit attribute is its name alone.
static void test_units(void **state)
{
  (void)state;
  check_line("", "\"x.y\"() {a, b = unit, \"c d\", e = [unit]} : () -> ()",
             "\"x.y\"() {a, b, \"c d\", e = [unit]} : () -> ()");
}

static const char *const stablehlo_attributes[][2] = {
  { "#stablehlo<precision HIGHEST>", NULL },
  { "#stablehlo.precision<HIGH>", "#stablehlo<precision HIGH>" },
  { "#stablehlo<transpose ADJOINT>", NULL },
  { "#stablehlo.dot<>", NULL },
  { "#stablehlo.dot<rhs_contracting_dimensions = [0], "
    "lhs_contracting_dimensions = [1], lhs_batching_dimensions = []>",
    "#stablehlo.dot<lhs_contracting_dimensions = [1], "
    "rhs_contracting_dimensions = [0]>" },
  { "#stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], "
    "operand_batching_dims = [3], start_indices_batching_dims = [0], "
    "start_index_map = [0], index_vector_dim = 1>",
    NULL },
  { "#stablehlo.scatter<update_window_dims = [1], index_vector_dim = 0>",
    NULL },
  { "#stablehlo.gather<>", "#stablehlo.gather<index_vector_dim = 0>" },
  { "#stablehlo.conv<[b, f, 0, 1]x[o, 1, i, 0]->[1, b, f, 0]>", NULL },
  { "#stablehlo.conv<[b,f]x[i,o]->[b,f]>",
    "#stablehlo.conv<[b, f]x[i, o]->[b, f]>" },
  { "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension "
    "= 1, input_spatial_dimensions = [2], kernel_output_feature_dimension = "
    "0, kernel_input_feature_dimension = 1, kernel_spatial_dimensions = [2], "
    "output_batch_dimension = 2, output_feature_dimension = 1, "
    "output_spatial_dimensions = [0]>",
    "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[0, f, b]>" },
  { "#stablehlo.channel_handle<handle = 1, type = 2>", NULL },
  { "#stablehlo.output_operand_alias<output_tuple_indices = [], "
    "operand_index = 1, operand_tuple_indices = [0, 2]>",
    NULL },
  { "#stablehlo.dot_algorithm<lhs_precision_type = bf16, "
    "rhs_precision_type = tf32, accumulation_type = f32, "
    "lhs_component_count = 1, rhs_component_count = 2, "
    "num_primitive_operations = 3, allow_imprecise_accumulation = true>",
    NULL },
  { "#stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.0, ulps = 2, mode = "
    "#stablehlo.result_accuracy_mode<TOLERANCE>>",
    "#stablehlo.result_accuracy<atol = 0.00001, rtol = 0.0, ulps = 2, mode = "
    "#stablehlo.result_accuracy_mode<TOLERANCE>>" },
  { "#stablehlo.result_accuracy<rtol = 1.5e-20, mode = <HIGHEST>>",
    "#stablehlo.result_accuracy<atol = 0.0, rtol = 1.5000000000000001e-20, "
    "ulps = 0, mode = #stablehlo.result_accuracy_mode<HIGHEST>>" },
  { "#stablehlo.bounds<?, 8>", NULL },
  { "#stablehlo.type_extensions", NULL },
  { "#stablehlo<unknown X>", NULL },
};

static void test_stablehlo_attributes(void **state)
{
  (void)state;
  check_attrs(stablehlo_attributes,
              sizeof stablehlo_attributes / sizeof *stablehlo_attributes);
}

static const char *const literals[][2] = {
  { "dense<1> : tensor<i32>", NULL },
  { "dense<> : tensor<0xf32>", NULL },
  { "dense<[]> : tensor<0xf32>", "dense<> : tensor<0xf32>" },
  { "dense<[[], []]> : tensor<2x0xf32>", "dense<> : tensor<2x0xf32>" },
  { "dense<1.0> : tensor<0xf32>", "dense<> : tensor<0xf32>" },
  { "dense<[1, 1, 1]> : tensor<3xi8>", "dense<1> : tensor<3xi8>" },
  { "dense<[[1, 2], [-3, 0x7]]> : tensor<2x2xi8>",
    "dense<[[1, 2], [-3, 7]]> : tensor<2x2xi8>" },
  { "dense<0xFF> : tensor<i8>", "dense<-1> : tensor<i8>" },
  { "dense<[true, false]> : tensor<2xi1>", NULL },
  { "dense<1> : tensor<i1>", "dense<true> : tensor<i1>" },
  { "dense<[1, 0]> : tensor<2xi1>", "dense<[true, false]> : tensor<2xi1>" },
  { "dense<0x7FC00000> : tensor<f32>", NULL },
  { "dense<[0x7F800000, 1.0e0, -0.0]> : tensor<3xf32>",
    "dense<[0x7F800000, 1.0, -0.0]> : tensor<3xf32>" },
  { "dense<2> : tensor<f32>", "dense<2.0> : tensor<f32>" },
  { "dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>", NULL },
  { "dense<[(1.0, 0x7F800000), (0.0, 0.5)]> : tensor<2xcomplex<f32>>", NULL },
  { "dense<\"0x0000803F00000040\"> : tensor<2xf32>",
    "dense<[1.0, 2.0]> : tensor<2xf32>" },
  { "dense<\"0x0000803F\"> : tensor<2xf32>", "dense<1.0> : tensor<2xf32>" },
  { "dense<\"0x0100\"> : tensor<2xi1>", "dense<[true, false]> : tensor<2xi1>" },
  // Eight of them in a byte: what older MLIR writes.
  { "dense<\"0x0502\"> : tensor<10xi1>",
    "dense<[true, false, true, false, false, false, false, false, false, "
    "true]> : tensor<10xi1>" },
  { "dense<\"0xFF\"> : tensor<8xi1>", "dense<true> : tensor<8xi1>" },
  { "dense<\"0x0FF1\"> : tensor<2xi4>", "dense<[-1, 1]> : tensor<2xi4>" },
  { "dense<\"0x01F2\"> : tensor<2xui4>", "dense<[1, 2]> : tensor<2xui4>" },
  { "dense<[1, 2]> : tensor<2xindex>", NULL },
  { "dense<18446744073709551615> : tensor<ui64>", NULL },
};

static void test_literals(void **state)
{
  (void)state;
  check_attrs(literals, sizeof literals / sizeof *literals);
}

// ---- places ----

static void test_locations(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
    { "loc(\"a.py\":3:4)", " loc(\"a.py\":3:4)" },
    { "loc(unknown)", "" },
    { "loc(\"name\")", "" },
    { "loc(\"name\"(\"a.py\":3:4))", " loc(\"a.py\":3:4)" },
    { "loc(\"a.py\":3:4 to :9)", " loc(\"a.py\":3:4)" },
    { "loc(\"a.py\":3:4 to 5:9)", " loc(\"a.py\":3:4)" },
    { "loc(fused[unknown, \"a.py\":3:4, \"b.py\":1:1])", " loc(\"a.py\":3:4)" },
    { "loc(fused<\"pass\">[\"x\", #l1])", " loc(\"late.py\":5:6)" },
    { "loc(callsite(\"f\"(\"a.py\":3:4) at \"b.py\":1:1))",
      " loc(\"a.py\":3:4)" },
    { "loc(callsite(unknown at \"b.py\":1:1))", " loc(\"b.py\":1:1)" },
    { "loc(#l1)", " loc(\"late.py\":5:6)" },
    { "loc(loc(\"a.py\":3:4))", " loc(\"a.py\":3:4)" },
    { "loc(#l2)", "" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[256];
    char want[256];
    snprintf(line, sizeof line, "\"x.y\"() : () -> () %s", cases[i][0]);
    snprintf(want, sizeof want, "\"x.y\"() : () -> ()%s", cases[i][1]);
    check_line("#l1 = loc(\"late.py\":5:6)\n#l2 = loc(unknown)\n", line, want);
  }
}

// ---- structure ----

static void check_file_text(const char *name, const char *expected)
{
  char *text = check_file(name);
  char *want = check_file(expected);
  cx_text out = { 0 };
  cx_hlo_module *m = check_parse(text);
  cx_hlo_print(m, &out);
  assert_string_equal(cx_text_str(&out), want);
  check_identity(m);
  cx_hlo_module_free(m);
  cx_text_free(&out);
  cx_free(text);
  cx_free(want);
}

static void test_structure(void **state)
{
  (void)state;
  check_file_text("forms.mlir", "forms.expect.mlir");
  check_file_text("forms.expect.mlir", "forms.expect.mlir");
}

// Functions alone, without a module around them.
static void test_no_module(void **state)
{
  (void)state;
  cx_hlo_module *m = check_parse(
      "// a comment\n\"func.func\"() ({\n^bb0(%x: tensor<f32>):\n"
      "\"func.return\"(%x) : (tensor<f32>) -> ()\n}) {function_type = "
      "(tensor<f32>) -> tensor<f32>, sym_name = \"f\"} : () -> () // the end");
  CHECK_OK(cx_hlo_verify(m));
  assert_int_equal(m->n_funcs, 1);
  assert_int_equal(m->first->n_params, 1);
  assert_ptr_equal(cx_hlo_entry(m), m->first);
  check_identity(m);
  cx_hlo_module_free(m);
}

// Lists of numbers were literals in older files.
static void test_older_attributes(void **state)
{
  (void)state;
  check_line("",
             "%0 = \"stablehlo.iota\"() {iota_dimension = 0 : i64} : () -> "
             "tensor<2x3xf32>\n    %1 = \"stablehlo.transpose\"(%0) "
             "{permutation = dense<[1, 0]> : tensor<2xi64>} : "
             "(tensor<2x3xf32>) -> tensor<3x2xf32>\n    %2 = "
             "\"stablehlo.reverse\"(%1) {dimensions = dense<0> : "
             "tensor<1xi64>} : (tensor<3x2xf32>) -> tensor<3x2xf32>",
             "%0 = \"stablehlo.iota\"() <{iota_dimension = 0 : i64}> : () -> "
             "tensor<2x3xf32>\n    %1 = \"stablehlo.transpose\"(%0) "
             "<{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> "
             "tensor<3x2xf32>\n    %2 = \"stablehlo.reverse\"(%1) "
             "<{dimensions = array<i64: 0>}> : (tensor<3x2xf32>) -> "
             "tensor<3x2xf32>");
}

int parse_errors(void);

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_attributes),
    CHECK_TEST(test_units),
    CHECK_TEST(test_stablehlo_attributes),
    CHECK_TEST(test_literals),
    CHECK_TEST(test_locations),
    CHECK_TEST(test_structure),
    CHECK_TEST(test_no_module),
    CHECK_TEST(test_older_attributes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) + parse_errors();
}
