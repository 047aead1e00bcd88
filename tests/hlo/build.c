// The builder: result types, failures that stick, and no memory.
#include "hlo/build.h"

#include "hlo/build_op.h"
#include "hlo/check.h"
#include "hlo/programs.h"

static cx_hlo_builder *begin(const cx_hlo_type *params, size_t n)
{
  cx_hlo_builder *b = NULL;
  CHECK_OK(cx_hlo_builder_new("m", "main", params, n, &b));
  return b;
}

static cx_hlo_module *finish(cx_hlo_builder *b, cx_hlo_value *result)
{
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_builder_finish(b, &result, 1, &m));
  return m;
}

static void check_shape(const cx_hlo_value *v, const char *shape)
{
  assert_non_null(v);
  assert_string_equal(cx_hlo_shape(cx_hlo_value_type(v)).s, shape);
}

// ---- programs ----

static void test_programs(void **state)
{
  (void)state;
  for (size_t i = 0; i < n_programs; i++) {
    cx_hlo_module *m = NULL;
    CHECK_OK(program_module(&programs[i], &m));
    CHECK_OK(cx_hlo_verify(m));
    check_identity(m);
    cx_hlo_module_free(m);
  }
}

static void test_shapes(void **state)
{
  (void)state;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2, 3) }, 1);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  check_shape(x, "f32[2,3]");
  check_shape(cx_hlo_unary(b, CX_HLO_OP_IS_FINITE, x), "i1[2,3]");
  check_shape(cx_hlo_compare(b, CX_HLO_LT, x, x), "i1[2,3]");
  check_shape(cx_hlo_convert(b, x, CX_HLO_BF16), "bf16[2,3]");
  check_shape(cx_hlo_reshape(b, x, LIST(3, 2), 2), "f32[3,2]");
  check_shape(cx_hlo_transpose(b, x, LIST(1, 0)), "f32[3,2]");
  check_shape(cx_hlo_lowest(b, CX_HLO_UI8), "ui8[]");
  const cx_hlo_dot_dims d = { .lhs_contract = LIST(1),
                              .rhs_contract = LIST(1),
                              .n_contract = 1 };
  check_shape(cx_hlo_dot_general(b, x, x, &d, CX_HLO_INVALID), "f32[2,2]");
  check_shape(cx_hlo_dot_general(b, x, x, &d, CX_HLO_F64), "f64[2,2]");
  cx_hlo_module_free(finish(b, x));
  const cx_hlo_type *none = cx_hlo_value_type(NULL);
  assert_int_equal(none->elem, CX_HLO_INVALID);
  assert_int_equal(none->rank, 0);
}

// What the caller gave is copied: it may change afterwards.
static void test_copies(void **state)
{
  (void)state;
  int64_t dims[] = { 2, 3 };
  char name[] = "main";
  char file[] = "model.c";
  float data[] = { 1, 2, 3, 4, 5, 6 };
  const cx_hlo_type type = { CX_HLO_F32, 2, dims };
  cx_hlo_builder *b = NULL;
  CHECK_OK(cx_hlo_builder_new(name, name, &type, 1, &b));
  cx_hlo_builder_at(b, file, 3);
  cx_hlo_value *c = cx_hlo_constant(b, type, data, sizeof data);
  cx_hlo_value *x = cx_hlo_binary(b, CX_HLO_OP_ADD, c, cx_hlo_param(b, 0));
  int64_t order[] = { 1, 0 };
  cx_hlo_value *y = cx_hlo_transpose(b, x, order);
  memset(name, 'x', 4);
  memset(file, 'x', 7);
  memset(data, 0, sizeof data);
  memset(dims, 0, sizeof dims);
  memset(order, 0, sizeof order);
  cx_hlo_module *m = finish(b, y);
  cx_text text = { 0 };
  cx_hlo_print(m, &text);
  assert_non_null(strstr(text.data, "sym_name = \"main\""));
  assert_non_null(strstr(text.data, "loc(\"model.c\":3:0)"));
  assert_non_null(strstr(text.data, "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"));
  assert_non_null(strstr(text.data, "permutation = array<i64: 1, 0>"));
  assert_non_null(strstr(text.data, "-> tensor<3x2xf32>"));
  cx_text_free(&text);
  cx_hlo_module_free(m);
}

// Equal elements are one element, however they were given.
static void test_equal_elements(void **state)
{
  (void)state;
  const float same[] = { 2, 2, 2, 2 };
  const bool mask[] = { true, true };
  cx_hlo_builder *b = begin(NULL, 0);
  cx_hlo_value *x = cx_hlo_constant(b, TYPE(F32, 2, 2), same, sizeof same);
  const cx_hlo_attr *value = cx_hlo_op_attr(x->op, CX_HLO_A_VALUE);
  assert_true(value->as.elements.splat);
  assert_int_equal(value->as.elements.size, sizeof(float));
  cx_hlo_value *y = cx_hlo_constant(b, TYPE(I1, 2), mask, sizeof mask);
  assert_true(cx_hlo_op_attr(y->op, CX_HLO_A_VALUE)->as.elements.splat);
  cx_hlo_value *z = cx_hlo_constant(b, SCALAR(F32), same, sizeof *same);
  assert_false(cx_hlo_op_attr(z->op, CX_HLO_A_VALUE)->as.elements.splat);
  cx_hlo_module_free(finish(b, x));
}

static void test_exact_integers(void **state)
{
  (void)state;
  cx_hlo_builder *b = begin(NULL, 0);
  cx_hlo_value *x = cx_hlo_splat_int(b, SCALAR(I64), INT64_MIN + 1);
  const cx_hlo_attr *value = cx_hlo_op_attr(x->op, CX_HLO_A_VALUE);
  assert_int_equal(cx_hlo_elements_int(&value->as.elements, 0), INT64_MIN + 1);
  cx_hlo_value *y = cx_hlo_splat_int(b, SCALAR(F16), -3);
  value = cx_hlo_op_attr(y->op, CX_HLO_A_VALUE);
  assert_int_equal(value->as.elements.data[1], 0xc2);
  cx_hlo_value *z = cx_hlo_splat_int(b, SCALAR(I1), 4);
  value = cx_hlo_op_attr(z->op, CX_HLO_A_VALUE);
  assert_int_equal(value->as.elements.data[0], 1);
  cx_hlo_module_free(finish(b, x));
}

// ---- failures ----

// The first failure is what finish returns; after it everything is NULL.
static void test_first_failure(void **state)
{
  (void)state;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2), TYPE(F32, 3) }, 2);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_value *y = cx_hlo_param(b, 1);
  cx_hlo_value *z = cx_hlo_binary(b, CX_HLO_OP_ADD, x, y);
  assert_null(z);
  z = cx_hlo_binary(b, CX_HLO_OP_ADD, z, x);
  assert_null(cx_hlo_param(b, 0));
  assert_null(cx_hlo_reshape(b, z, LIST(7), 1));
  assert_null(cx_hlo_transpose(b, z, LIST(1, 0)));
  assert_null(cx_hlo_splat(b, SCALAR(F32), 1));
  assert_null(cx_hlo_dynamic_slice(b, z, NULL, NULL));
  cx_hlo_value *out[2] = { x, x };
  cx_hlo_optimization_barrier(b, out, 2, out);
  assert_null(out[0]);
  cx_hlo_rng_bit_generator(b, x, TYPE(F32, 2), &out[0], &out[1]);
  assert_null(out[1]);
  cx_hlo_param_alias(b, 0, 0);
  cx_hlo_builder_at(b, "x", 1);
  cx_hlo_module_attr_int(b, "x.y", 1);
  cx_hlo_module *m = (cx_hlo_module *)b;
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, &z, 1, &m),
              "add: operands have different types: f32[2] and f32[3]");
  assert_null(m);
}

static void test_failures(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  cx_hlo_builder *b = begin(NULL, 0);
  cx_hlo_value *none = NULL;
  CHECK_FAILS(CALX_INTERNAL, cx_hlo_builder_finish(b, &none, 1, &m),
              "return: operand 0 is NULL");
  b = begin(NULL, 0);
  assert_null(cx_hlo_param(b, 0));
  CHECK_FAILS(CALX_INTERNAL, cx_hlo_builder_finish(b, NULL, 0, &m),
              "parameter 0 of 0");
  b = begin(NULL, 0);
  cx_hlo_param_alias(b, 1, 0);
  CHECK_FAILS(CALX_INTERNAL, cx_hlo_builder_finish(b, NULL, 0, &m),
              "parameter 1 of 0");
  b = begin(NULL, 0);
  cx_hlo_constant(b, TYPE(F32, 2), "1234567", 7);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, NULL, 0, &m),
              "constant: 7 bytes for f32[2]");
  b = begin(NULL, 0);
  cx_hlo_splat(b, TYPE(F32, 2, -1), 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, NULL, 0, &m),
              "constant: there is no literal of f32[2,?]");
  b = begin(NULL, 0);
  cx_hlo_lowest(b, CX_HLO_C64);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, NULL, 0, &m),
              "complex<f32> has no lowest or highest value");
  b = begin(NULL, 0);
  cx_hlo_builder_fail(b, cx_error(CALX_NOT_FOUND, "one"));
  cx_hlo_builder_fail(b, cx_error(CALX_NOT_FOUND, "two"));
  CHECK_FAILS(CALX_NOT_FOUND, cx_hlo_builder_finish(b, NULL, 0, &m), "one");
  b = begin(NULL, 0);
  cx_hlo_builder_fail(b, cx_error(CALX_NOT_FOUND, "one"));
  cx_hlo_builder_free(b);
  cx_hlo_builder_free(NULL);
}

// An operation that is not what the call is for.
static void test_wrong_kind(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2) }, 1);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_unary(b, CX_HLO_OP_ADD, x);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, &x, 1, &m),
              "add: takes 2 operands, got 1");
  b = begin((cx_hlo_type[]){ TYPE(F32, 2) }, 1);
  x = cx_hlo_param(b, 0);
  cx_hlo_binary(b, CX_HLO_OP_COMPARE, x, x);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, &x, 1, &m),
              "compare: needs the attribute 'comparison_direction'");
  b = begin((cx_hlo_type[]){ TYPE(F32, 2) }, 1);
  x = cx_hlo_param(b, 0);
  cx_hlo_unary(b, CX_HLO_OP_UNIFORM_QUANTIZE, x);
  CHECK_FAILS(CALX_UNIMPLEMENTED, cx_hlo_builder_finish(b, &x, 1, &m),
              "uniform_quantize: there is no shape rule yet");
}

static void test_operand_types(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2, -1) }, 1);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_unary(b, CX_HLO_OP_ABS, x);
  CHECK_FAILS(CALX_UNIMPLEMENTED, cx_hlo_builder_finish(b, &x, 1, &m),
              "abs: operand 0 is f32[2,?]; dynamic sizes are not supported");
  b = begin((cx_hlo_type[]){ TYPE(F32, 2), TYPE(F64, 2) }, 2);
  x = cx_hlo_param(b, 0);
  const cx_hlo_dot_dims d = { 0 };
  cx_hlo_value *wide =
      cx_hlo_dot_general(b, x, cx_hlo_param(b, 1), &d, CX_HLO_F64);
  check_shape(wide, "f64[2,2]");
  cx_hlo_dot_general(b, x, cx_hlo_param(b, 1), &d, CX_HLO_INVALID);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, &x, 1, &m),
              "dot_general: operands have different element types: lhs f32[2], "
              "rhs f64[2]");
}

// Operations at one place share what says where that is.
static void test_places(void **state)
{
  (void)state;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2) }, 1);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_value *at[4];
  cx_hlo_builder_at(b, "a.c", 3);
  at[0] = cx_hlo_unary(b, CX_HLO_OP_ABS, x);
  cx_hlo_builder_at(b, "a.c", 3);
  at[1] = cx_hlo_unary(b, CX_HLO_OP_ABS, x);
  cx_hlo_builder_at(b, "a.c", 4);
  at[2] = cx_hlo_unary(b, CX_HLO_OP_ABS, x);
  cx_hlo_builder_at(b, NULL, 0);
  at[3] = cx_hlo_unary(b, CX_HLO_OP_ABS, x);
  assert_ptr_equal(at[0]->op->loc, at[1]->op->loc);
  assert_int_equal(at[2]->op->loc->line, 4);
  assert_ptr_equal(at[0]->op->loc->file.s, at[2]->op->loc->file.s);
  assert_null(at[3]->op->loc);
  cx_hlo_module_free(finish(b, x));
}

static void no_result(cx_hlo_builder *b, void *user, cx_hlo_value *const *args,
                      cx_hlo_value **out)
{
  (void)b;
  (void)user;
  (void)args;
  out[0] = NULL;
}

static void test_body_without_result(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2) }, 1);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_value *init = cx_hlo_splat(b, SCALAR(F32), 0);
  cx_hlo_value *out = x;
  cx_hlo_reduce(b, 1, &x, &init, LIST(0), 1, no_result, NULL, &out);
  assert_null(out);
  CHECK_FAILS(CALX_INTERNAL, cx_hlo_builder_finish(b, &x, 1, &m),
              "return: operand 0 is NULL");
}

static cx_hlo_value *kept;

static void keep_argument(cx_hlo_builder *b, void *user,
                          cx_hlo_value *const *args, cx_hlo_value **out)
{
  (void)user;
  kept = args[0];
  out[0] = cx_hlo_binary(b, CX_HLO_OP_ADD, args[0], args[1]);
}

// A region's value outside of it: the verifier's to find.
static void test_value_outside(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  cx_hlo_builder *b = begin((cx_hlo_type[]){ TYPE(F32, 2) }, 1);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  cx_hlo_value *init = cx_hlo_splat(b, SCALAR(F32), 0);
  cx_hlo_value *out = NULL;
  cx_hlo_reduce(b, 1, &x, &init, LIST(0), 1, keep_argument, NULL, &out);
  out = cx_hlo_binary(b, CX_HLO_OP_ADD, out, kept);
  calx_status *status = cx_hlo_builder_finish(b, &out, 1, &m);
  if (status == NULL) status = cx_hlo_verify(m);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, status,
              "add: operand 1 is used where it is not defined");
  cx_hlo_module_free(m);
}

// A convolution's numbers come from callers, not only from text.
static void test_convolution_numbers(void **state)
{
  (void)state;
  cx_hlo_module *m = NULL;
  const cx_hlo_type types[] = { TYPE(F32, 1, 2, 5), TYPE(F32, 3, 2, 3) };
  cx_hlo_builder *b = begin(types, 2);
  cx_hlo_value *x = cx_hlo_param(b, 0);
  const cx_hlo_conv_dims d = { .n_spatial = 1,
                               .input_feature = 1,
                               .input_spatial = LIST(1),
                               .kernel_input = 1,
                               .kernel_spatial = LIST(2),
                               .output_feature = 1,
                               .output_spatial = LIST(2) };
  cx_hlo_convolution(b, x, cx_hlo_param(b, 1), &d);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_hlo_builder_finish(b, &x, 1, &m),
              "convolution: input has dimension 1 twice");
}

// ---- no memory ----

// Fails one allocation after the other: an error or a program, never a crash,
// and nothing is left.
static void test_no_memory(void **state)
{
  (void)state;
  for (size_t i = 0; i < n_programs; i++) {
    bool done = false;
    for (long n = 0; !done; n++) {
      cx_hlo_module *m = NULL;
      cx_text text = { 0 };
      cx_alloc_fail_at(n);
      calx_status *status = program_module(&programs[i], &m);
      if (status == NULL) cx_hlo_print(m, &text);
      done = status == NULL && !cx_text_failed(&text);
      cx_alloc_fail_at(-1);
      if (status != NULL) {
        assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
      }
      calx_status_free(status);
      cx_text_free(&text);
      cx_hlo_module_free(m);
    }
  }
}

// The same for every piece of the module's arena.
static void test_no_arena(void **state)
{
  (void)state;
  for (size_t i = 0; i < n_programs; i++) {
    bool done = false;
    for (size_t limit = 1; !done; limit += 48) {
      cx_hlo_builder *b = begin(NULL, 0);
      cx_hlo_value *results[32] = { NULL };
      cx_hlo_module *m = NULL;
      b->module->arena.limit = b->module->arena.used + limit;
      const size_t n = programs[i].build(b, results);
      cx_hlo_builder_at(b, "x.c", 1);
      cx_hlo_module_attr_int(b, "x.y", 1);
      calx_status *status = cx_hlo_builder_finish(b, results, n, &m);
      done = status == NULL;
      if (status != NULL) {
        assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
      }
      calx_status_free(status);
      cx_hlo_module_free(m);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_programs),
    CHECK_TEST(test_shapes),
    CHECK_TEST(test_copies),
    CHECK_TEST(test_equal_elements),
    CHECK_TEST(test_exact_integers),
    CHECK_TEST(test_first_failure),
    CHECK_TEST(test_failures),
    CHECK_TEST(test_wrong_kind),
    CHECK_TEST(test_operand_types),
    CHECK_TEST(test_places),
    CHECK_TEST(test_body_without_result),
    CHECK_TEST(test_value_outside),
    CHECK_TEST(test_convolution_numbers),
    CHECK_TEST(test_no_memory),
    CHECK_TEST(test_no_arena),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
