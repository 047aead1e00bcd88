// Control flow, calls, limits, and what other modules call.
#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "hlo/parse.h"
#include "hlo/verify.h"
#include "program.h"

#define COUNT_TO(n)                                                           \
  "func.func @main() -> (tensor<i32>, tensor<i32>) {"                         \
  "\n%0 = stablehlo.constant dense<0> : tensor<i32>"                          \
  "\n%n = stablehlo.constant dense<" n                                        \
  "> : tensor<i32>"                                                           \
  "\n%one = stablehlo.constant dense<1> : tensor<i32>"                        \
  "\n%r = stablehlo.while(%i = %0) : tensor<i32>"                             \
  "\ncond {\n%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) " \
  "-> tensor<i1>\nstablehlo.return %c : tensor<i1>\n}"                        \
  " do {\n%k = stablehlo.add %i, %one : tensor<i32>"                          \
  "\nstablehlo.return %k : tensor<i32>\n}"                                    \
  "\nreturn %r, %n : tensor<i32>, tensor<i32>\n}"

static void test_while(void **state)
{
  (void)state;
  agrees(COUNT_TO("1000"));
  agrees(COUNT_TO("0"));
  // Carried values change places, and the loop's start stays as it was.
  agrees(
      "func.func @main() -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, "
      "tensor<2xi32>) {"
      "\n%a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>"
      "\n%z = stablehlo.add %a, %a : tensor<2xi32>"
      "\n%t = stablehlo.constant dense<true> : tensor<i1>"
      "\n%f = stablehlo.constant dense<false> : tensor<i1>"
      "\n%i = stablehlo.constant dense<0> : tensor<i32>"
      "\n%u = stablehlo.constant dense<[9]> : tensor<1xi32>"
      "\n%r:3 = stablehlo.while(%x = %a, %y = %z, %go = %t) : "
      "tensor<2xi32>, tensor<2xi32>, tensor<i1>"
      "\ncond {\nstablehlo.return %go : tensor<i1>\n} do {"
      "\n%k = stablehlo.dynamic_update_slice %y, %u, %i : (tensor<2xi32>, "
      "tensor<1xi32>, tensor<i32>) -> tensor<2xi32>"
      "\nstablehlo.return %k, %x, %f : tensor<2xi32>, tensor<2xi32>, "
      "tensor<i1>\n}"
      "\n%w = stablehlo.constant dense<[9, 4]> : tensor<2xi32>"
      "\n%v = stablehlo.constant dense<[2, 4]> : tensor<2xi32>"
      "\nreturn %r#0, %w, %z, %v : tensor<2xi32>, tensor<2xi32>, "
      "tensor<2xi32>, tensor<2xi32>\n}");
}

// An update in place must not be seen by who still holds the old value.
static void test_updates_do_not_leak(void **state)
{
  (void)state;
  agrees(
      "func.func @main() -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, "
      "tensor<2xi32>) {"
      "\n%a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>"
      "\n%b = stablehlo.add %a, %a : tensor<2xi32>"
      "\n%c = stablehlo.reshape %b : (tensor<2xi32>) -> tensor<2xi32>"
      "\n%i = stablehlo.constant dense<0> : tensor<i32>"
      "\n%u = stablehlo.constant dense<[9]> : tensor<1xi32>"
      "\n%d = stablehlo.dynamic_update_slice %b, %u, %i : (tensor<2xi32>, "
      "tensor<1xi32>, tensor<i32>) -> tensor<2xi32>"
      "\n%w = stablehlo.constant dense<[9, 4]> : tensor<2xi32>"
      "\n%v = stablehlo.constant dense<[2, 4]> : tensor<2xi32>"
      "\nreturn %d, %w, %c, %v : tensor<2xi32>, tensor<2xi32>, "
      "tensor<2xi32>, tensor<2xi32>\n}");
}

static void test_case_takes_the_last(void **state)
{
  (void)state;
#define CASE(at)                                                          \
  "%i = stablehlo.constant dense<" at                                     \
  "> : tensor<i32>"                                                       \
  "\n%a = stablehlo.constant dense<10> : tensor<i32>"                     \
  "\n%r = \"stablehlo.case\"(%i) ({\nstablehlo.return %a : tensor<i32>\n" \
  "}, {\n%b = stablehlo.negate %a : tensor<i32>"                          \
  "\nstablehlo.return %b : tensor<i32>\n}) : (tensor<i32>) -> tensor<i32>"
  gives(CASE("0"), "tensor<i32>", "10");
  gives(CASE("1"), "tensor<i32>", "-10");
  gives(CASE("-1"), "tensor<i32>", "-10");
  gives(CASE("7"), "tensor<i32>", "-10");
#undef CASE
}

static void test_calls(void **state)
{
  (void)state;
  agrees(
      "func.func private @twice(%x: tensor<i32>) -> tensor<i32> {"
      "\n%0 = stablehlo.add %x, %x : tensor<i32>\nreturn %0 : tensor<i32>\n}"
      "\nfunc.func @main() -> (tensor<i32>, tensor<i32>, tensor<i32>, "
      "tensor<i32>) {"
      "\n%0 = stablehlo.constant dense<5> : tensor<i32>"
      "\n%1 = call @twice(%0) : (tensor<i32>) -> tensor<i32>"
      "\n%2 = call @twice(%1) : (tensor<i32>) -> tensor<i32>"
      "\n%3 = stablehlo.composite \"my.op\" %0 {decomposition = @twice} : "
      "(tensor<i32>) -> tensor<i32>"
      "\n%w = stablehlo.constant dense<20> : tensor<i32>"
      "\n%v = stablehlo.constant dense<10> : tensor<i32>"
      "\nreturn %2, %w, %3, %v : tensor<i32>, tensor<i32>, tensor<i32>, "
      "tensor<i32>\n}");
}

static void test_values_that_pass(void **state)
{
  (void)state;
  agrees(
      "func.func @main() -> (tensor<i32>, tensor<i32>, tensor<i32>, "
      "tensor<i32>) {"
      "\n%0 = stablehlo.constant dense<5> : tensor<i32>"
      "\n%1 = stablehlo.constant dense<6> : tensor<i32>"
      "\n%t = stablehlo.create_token : !stablehlo.token"
      "\n%a = stablehlo.after_all %t : !stablehlo.token"
      "\n%2 = stablehlo.tuple %0, %1 : tuple<tensor<i32>, tensor<i32>>"
      "\n%3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<i32>, "
      "tensor<i32>>) -> tensor<i32>"
      "\n%4 = stablehlo.custom_call @Sharding(%0) : (tensor<i32>) -> "
      "tensor<i32>"
      "\n%5 = stablehlo.optimization_barrier %4 : tensor<i32>"
      "\nreturn %3, %1, %5, %0 : tensor<i32>, tensor<i32>, tensor<i32>, "
      "tensor<i32>\n}");
}

static void test_refusals(void **state)
{
  (void)state;
  fails(
      "func.func @main() -> tensor<i32> {"
      "\n%0 = stablehlo.custom_call @nothing() : () -> tensor<i32>"
      "\nreturn %0 : tensor<i32>\n}",
      CALX_UNIMPLEMENTED, "nothing");
  fails(
      "func.func @main() -> !stablehlo.token {"
      "\n%0 = stablehlo.create_token : !stablehlo.token"
      "\n%1 = \"stablehlo.outfeed\"(%0) <{outfeed_config = \"\"}> : "
      "(!stablehlo.token) -> !stablehlo.token"
      "\nreturn %1 : !stablehlo.token\n}",
      CALX_UNIMPLEMENTED, "outfeed");
  fails(
      "func.func @main() -> tensor<f32> {"
      "\n%0 = stablehlo.constant dense<1.0> : tensor<f32>"
      "\n%1 = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<0> : "
      "tensor<1x1xi64>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):"
      "\n%s = stablehlo.add %a, %b : tensor<f32>"
      "\nstablehlo.return %s : tensor<f32>\n}) : (tensor<f32>) -> "
      "tensor<f32>\nreturn %1 : tensor<f32>\n}",
      CALX_UNIMPLEMENTED, "all_reduce");
}

static void test_memory_limit(void **state)
{
  (void)state;
  const char *const huge =
      "func.func @main() -> tensor<i8> {"
      "\n%0 = stablehlo.constant dense<1> : tensor<i8>"
      "\n%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i8>) -> "
      "tensor<1073741824x1073741824xi8>"
      "\nreturn %0 : tensor<i8>\n}";
  fails(huge, CALX_RESOURCE_EXHAUSTED, "broadcast_in_dim");
  fails(huge, CALX_RESOURCE_EXHAUSTED, "i8[1073741824,1073741824]");
  const cpu_ref_context small = { .memory_limit = 1000 };
  fails_with(
      "func.func @main() -> tensor<i8> {"
      "\n%0 = stablehlo.iota dim = 0 : tensor<1001xi8>"
      "\n%1 = stablehlo.constant dense<1> : tensor<i8>"
      "\nreturn %1 : tensor<i8>\n}",
      &small, CALX_RESOURCE_EXHAUSTED, "1000");
  // What is not used any more is given back in time.
  program p = program_open(
      "func.func @main() -> tensor<400xi8> {"
      "\n%0 = stablehlo.iota dim = 0 : tensor<400xi8>"
      "\n%1 = stablehlo.negate %0 : tensor<400xi8>"
      "\n%2 = stablehlo.negate %1 : tensor<400xi8>"
      "\n%3 = stablehlo.negate %2 : tensor<400xi8>"
      "\nreturn %3 : tensor<400xi8>\n}",
      true);
  int8_t got[400];
  void *out[] = { got };
  assert_null(program_run(&p, NULL, out, &small));
  assert_int_equal(got[3], -3);
  program_close(&p);
}

// What a region saw last is given back, too.
static void test_captured_values_are_freed(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main() -> tensor<1xi8> {"
      "\n%c = stablehlo.constant dense<true> : tensor<i1>"
      "\n%0 = stablehlo.iota dim = 0 : tensor<600xi8>"
      "\n%1 = \"stablehlo.if\"(%c) ({"
      "\n%a = stablehlo.slice %0 [7:8] : (tensor<600xi8>) -> tensor<1xi8>"
      "\nstablehlo.return %a : tensor<1xi8>\n}, {"
      "\n%a = stablehlo.slice %0 [8:9] : (tensor<600xi8>) -> tensor<1xi8>"
      "\nstablehlo.return %a : tensor<1xi8>\n}) : (tensor<i1>) -> tensor<1xi8>"
      "\n%2 = stablehlo.iota dim = 0 : tensor<700xi8>"
      "\nreturn %1 : tensor<1xi8>\n}",
      true);
  const cpu_ref_context small = { .memory_limit = 1000 };
  int8_t got = 0;
  void *out[] = { &got };
  assert_null(program_run(&p, NULL, out, &small));
  assert_int_equal(got, 7);
  program_close(&p);
}

static calx_status *give_up(void *user)
{
  int *left = user;
  return (*left)-- > 0 ? NULL : cx_error(CALX_CANCELLED, "enough");
}

static void test_interrupt(void **state)
{
  (void)state;
  int left = 50;
  const cpu_ref_context context = { .interrupt = give_up, .user = &left };
  // Without end, but for the interrupt.
  fails_with(
      "func.func @main() -> tensor<i1> {"
      "\n%0 = stablehlo.constant dense<true> : tensor<i1>"
      "\n%1 = stablehlo.while(%x = %0) : tensor<i1>"
      "\ncond {\nstablehlo.return %x : tensor<i1>\n} do {"
      "\nstablehlo.return %x : tensor<i1>\n}"
      "\nreturn %1 : tensor<i1>\n}",
      &context, CALX_CANCELLED, "enough");
  assert_int_equal(left, -1);
}

static calx_status *doubled(void *user, const cx_hlo_op *op,
                            const cpu_ref_tensor *operands,
                            const cpu_ref_tensor *results)
{
  (void)user;
  assert_int_equal(op->kind, CX_HLO_OP_ALL_GATHER);
  const float *x = operands->data;
  float *y = results->data;
  y[0] = x[0];
  y[1] = x[0] * 2;
  return NULL;
}

static void test_devices(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main() -> (tensor<2xf32>, tensor<ui32>, tensor<ui32>) {"
      "\n%0 = stablehlo.constant dense<3.0> : tensor<1xf32>"
      "\n%1 = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, "
      "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1xf32>) "
      "-> tensor<2xf32>"
      "\n%2 = stablehlo.replica_id : tensor<ui32>"
      "\n%3 = stablehlo.partition_id : tensor<ui32>"
      "\nreturn %1, %2, %3 : tensor<2xf32>, tensor<ui32>, tensor<ui32>\n}",
      true);
  const cpu_ref_context context = { .replica = 4,
                                    .partition = 7,
                                    .collective = doubled };
  float gathered[2];
  uint32_t replica = 0;
  uint32_t partition = 0;
  void *out[] = { gathered, &replica, &partition };
  assert_null(program_run(&p, NULL, out, &context));
  assert_true(gathered[0] == 3.0f && gathered[1] == 6.0f);
  assert_int_equal(replica, 4);
  assert_int_equal(partition, 7);
  program_close(&p);
}

static void test_random_state(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main() -> tensor<2xf32> {"
      "\n%a = stablehlo.constant dense<0.0> : tensor<f32>"
      "\n%b = stablehlo.constant dense<1.0> : tensor<f32>"
      "\n%n = stablehlo.constant dense<[2]> : tensor<1xi64>"
      "\n%0 = stablehlo.rng %a, %b, %n, distribution = NORMAL : (tensor<f32>, "
      "tensor<f32>, tensor<1xi64>) -> tensor<2xf32>"
      "\nreturn %0 : tensor<2xf32>\n}",
      true);
  uint64_t words[2] = { 1, 0 };
  const cpu_ref_context context = { .rng_state = words };
  float first[2];
  float second[2];
  void *out[] = { first };
  void *again[] = { second };
  assert_null(program_run(&p, NULL, out, &context));
  assert_int_equal(words[1], 4);
  assert_null(program_run(&p, NULL, again, &context));
  assert_true(memcmp(first, second, sizeof first) != 0);
  words[1] = 0;
  assert_null(program_run(&p, NULL, again, &context));
  assert_memory_equal(first, second, sizeof first);
  program_close(&p);
}

// ---- single operations and regions ----

static const cx_hlo_op *find_op(const program *p, cx_hlo_op_kind kind)
{
  const cx_hlo_op *op = p->main->body.first->first;
  while (op != NULL && op->kind != kind) op = op->next;
  assert_non_null(op);
  return op;
}

static void test_single_operations(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main(%x: tensor<3xi32>, %i: tensor<i32>) -> (tensor<i32>, "
      "tensor<3xi32>) {"
      "\n%0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across "
      "dimensions = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<i32>"
      "\n%1 = stablehlo.add %x, %x : tensor<3xi32>"
      "\n%2 = stablehlo.optimization_barrier %1 : tensor<3xi32>"
      "\nreturn %0, %2 : tensor<i32>, tensor<3xi32>\n}",
      true);
  int32_t x[3] = { 1, 2, 3 };
  int32_t init = 10;
  int32_t sum = 0;
  int32_t y[3] = { 0 };
  const cx_hlo_type vector = p.main->params[0].tensor;
  const cx_hlo_type scalar = p.main->params[1].tensor;
  const cpu_ref_tensor in[] = { { vector, x }, { scalar, &init } };
  const cpu_ref_tensor twice[] = { { vector, x }, { vector, x } };
  const cpu_ref_tensor to_sum = { scalar, &sum };
  const cpu_ref_tensor to_y = { vector, y };
  assert_null(
      cpu_ref_op(p.module, find_op(&p, CX_HLO_OP_REDUCE), in, &to_sum, NULL));
  assert_int_equal(sum, 16);
  assert_null(
      cpu_ref_op(p.module, find_op(&p, CX_HLO_OP_ADD), twice, &to_y, NULL));
  assert_int_equal(y[2], 6);
  assert_null(cpu_ref_op(p.module, find_op(&p, CX_HLO_OP_OPTIMIZATION_BARRIER),
                         in, &to_y, NULL));
  assert_int_equal(y[2], 3);
  program_close(&p);
}

// Every cx_calloc of the interpreter (--wrap).
static size_t asked_bytes;
void *__real_cx_calloc(size_t count, size_t bytes);
void *__wrap_cx_calloc(size_t count, size_t bytes);
void *__wrap_cx_calloc(size_t count, size_t bytes)
{
  asked_bytes += count * bytes;
  return __real_cx_calloc(count, bytes);
}

// What one operation costs does not depend on the size of the module: else
// folding all of a module's operations takes quadratic time.
static void test_single_operation_in_a_large_module(void **state)
{
  (void)state;
  enum { MANY = 5000 };
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @main(%x: tensor<3xi32>, %i: tensor<i32>) -> "
                 "tensor<i32> {\n%0 = stablehlo.add %i, %i : tensor<i32>");
  for (int k = 1; k < MANY; k++) {
    cx_text_format(&text, "\n%%%d = stablehlo.add %%%d, %%i : tensor<i32>", k,
                   k - 1);
  }
  cx_text_append(&text,
                 "\n%r = stablehlo.reduce(%x init: %i) applies stablehlo.add "
                 "across dimensions = [0] : (tensor<3xi32>, tensor<i32>) -> "
                 "tensor<i32>\nreturn %r : tensor<i32>\n}");
  program p = program_open(cx_text_str(&text), true);
  cx_text_free(&text);
  int32_t x[3] = { 1, 2, 3 };
  int32_t init = 10;
  int32_t sum = 0;
  const cpu_ref_tensor in[] = { { p.main->params[0].tensor, x },
                                { p.main->params[1].tensor, &init } };
  const cpu_ref_tensor to_sum = { p.main->params[1].tensor, &sum };
  asked_bytes = 0;
  assert_null(
      cpu_ref_op(p.module, find_op(&p, CX_HLO_OP_REDUCE), in, &to_sum, NULL));
  assert_int_equal(sum, 16);
  assert_true(asked_bytes < MANY);
  program_close(&p);
}

static void test_regions(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main(%x: tensor<3xi32>, %i: tensor<i32>) -> tensor<i32> {"
      "\n%0 = stablehlo.reduce(%x init: %i) across dimensions = [0] : "
      "(tensor<3xi32>, tensor<i32>) -> tensor<i32>"
      "\nreducer(%a: tensor<i32>, %b: tensor<i32>) {"
      "\n%c = stablehlo.constant dense<100> : tensor<i32>"
      "\n%d = stablehlo.multiply %a, %c : tensor<i32>"
      "\n%s = stablehlo.add %d, %b : tensor<i32>"
      "\nstablehlo.return %s : tensor<i32>\n}"
      "\nreturn %0 : tensor<i32>\n}",
      true);
  enum { MANY = 1000 };  // more than one chunk
  static int32_t a[MANY];
  static int32_t b[MANY];
  static int32_t c[MANY];
  for (int32_t i = 0; i < MANY; i++) {
    a[i] = i;
    b[i] = -i;
  }
  const cx_hlo_region *region = &find_op(&p, CX_HLO_OP_REDUCE)->regions[0];
  const cx_hlo_type scalar = { CX_HLO_I32, 0, NULL };
  const int64_t size = MANY;
  const cx_hlo_type vector = { CX_HLO_I32, 1, &size };
  const cpu_ref_tensor one[] = { { scalar, &a[3] }, { scalar, &b[5] } };
  const cpu_ref_tensor all[] = { { vector, a }, { vector, b } };
  assert_null(cpu_ref_region(p.module, region, one,
                             &(cpu_ref_tensor){ scalar, c }, NULL));
  assert_int_equal(c[0], 295);
  assert_null(cpu_ref_region(p.module, region, all,
                             &(cpu_ref_tensor){ vector, c }, NULL));
  for (int32_t i = 0; i < MANY; i++) assert_int_equal(c[i], 99 * i);
  program_close(&p);
}

static void test_can(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main() -> tensor<i32> {"
      "\n%0 = stablehlo.custom_call @nothing() : () -> tensor<i32>"
      "\n%1 = stablehlo.add %0, %0 : tensor<i32>"
      "\nreturn %1 : tensor<i32>\n}",
      true);
  assert_true(cpu_ref_can(find_op(&p, CX_HLO_OP_ADD)));
  assert_false(cpu_ref_can(find_op(&p, CX_HLO_OP_CUSTOM_CALL)));
  program_close(&p);
}

static void test_wrong_arguments(void **state)
{
  (void)state;
  program p = program_open(
      "func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {"
      "\nreturn %x : tensor<3xi32>\n}",
      true);
  int32_t x[3] = { 1, 2, 3 };
  const int64_t two = 2;
  const cpu_ref_tensor wrong = { { CX_HLO_I32, 1, &two }, x };
  const cpu_ref_tensor right = { p.main->params[0].tensor, x };
  calx_status *status = cpu_ref_run(p.module, p.main, &wrong, &right, NULL);
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  assert_non_null(strstr(calx_status_message(status), "i32[2]"));
  calx_status_free(status);
  program_close(&p);
}

// Whichever allocation fails: an error, and nothing is lost.
static void test_no_memory(void **state)
{
  (void)state;
  program p = program_open(COUNT_TO("3"), true);
  const long before = cx_alloc_live();
  int32_t a = 0;
  int32_t b = 0;
  void *out[] = { &a, &b };
  bool failed = true;
  for (long n = 0; failed && n < 1000; n++) {
    cx_alloc_fail_at(n);
    calx_status *status = program_run(&p, NULL, out, NULL);
    failed = status != NULL;
    calx_status_free(status);
    cx_alloc_fail_at(-1);
    assert_int_equal(cx_alloc_live(), before);
  }
  assert_false(failed);
  program_close(&p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_while),
    cmocka_unit_test(test_updates_do_not_leak),
    cmocka_unit_test(test_case_takes_the_last),
    cmocka_unit_test(test_calls),
    cmocka_unit_test(test_values_that_pass),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_memory_limit),
    cmocka_unit_test(test_captured_values_are_freed),
    cmocka_unit_test(test_interrupt),
    cmocka_unit_test(test_devices),
    cmocka_unit_test(test_random_state),
    cmocka_unit_test(test_single_operations),
    cmocka_unit_test(test_single_operation_in_a_large_module),
    cmocka_unit_test(test_regions),
    cmocka_unit_test(test_can),
    cmocka_unit_test(test_wrong_arguments),
    cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
