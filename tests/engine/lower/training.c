// Steps of training whose sums overlap, with loops that fill buckets and change
// parameters where they are: bits and memory as without; and collectives in
// regions, in their order among those that overlap.
#include "devices.h"

static void updates(uint32_t n, int layers)
{
  cx_text text = { 0 };
  chain_text(&text, layers, n, CHAIN_UPDATES);
  devices plain, beside;
  devices_new(&plain, n, cx_text_str(&text), true);
  devices_new(&beside, n, cx_text_str(&text), false);
  print_message("%zu overlap, %zu and %zu bytes\n", beside.info->n_overlapped,
                plain.info->arena_bytes, beside.info->arena_bytes);
  assert_int_equal(plain.info->n_overlapped, 0);
  assert_true(beside.info->n_overlapped >= (size_t)layers / 2 - 1);
  assert_true(beside.info->arena_bytes <= plain.info->arena_bytes);
  // Each step goes on from what the one before left in the same memory.
  for (int i = 0; i < 5; i++) {
    devices_run_well(&plain);
    devices_run_well(&beside);
    devices_same(&plain, &beside);
  }
  devices_free(&plain);
  devices_free(&beside);
  cx_text_free(&text);
}

static void same_updates(void **unused)
{
  (void)unused;
  updates(2, 8);
  updates(3, 6);
}

// What is summed is read again while its sum is made, and after it.
static void read_meanwhile(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @main(%a: tensor<256x128xf32>, %b: "
                 "tensor<128x128xf32>) -> (tensor<128x128xf32>, "
                 "tensor<256x128xf32>, tensor<128x128xf32>) {\n"
                 "%m = stablehlo.multiply %b, %b : tensor<128x128xf32>\n");
  chain_all_reduce(&text, "%s", "%m", "tensor<128x128xf32>", 2);
  cx_text_append(
      &text,
      "%u = stablehlo.add %s, %b : tensor<128x128xf32>\n"
      "%c = stablehlo.dot_general %a, %m, contracting_dims = [1] x [0] : "
      "(tensor<256x128xf32>, tensor<128x128xf32>) -> tensor<256x128xf32>\n"
      "%n = stablehlo.negate %m : tensor<128x128xf32>\n"
      "%d = stablehlo.dot_general %c, %n, contracting_dims = [1] x [0] : "
      "(tensor<256x128xf32>, tensor<128x128xf32>) -> tensor<256x128xf32>\n"
      "%e = stablehlo.subtract %s, %m : tensor<128x128xf32>\n"
      "return %u, %d, %e : tensor<128x128xf32>, tensor<256x128xf32>, "
      "tensor<128x128xf32> }");
  devices plain, beside;
  devices_new(&plain, 2, cx_text_str(&text), true);
  devices_new(&beside, 2, cx_text_str(&text), false);
  assert_int_equal(beside.info->n_overlapped, 1);
  devices_run_well(&plain);
  devices_run_well(&beside);
  devices_same(&plain, &beside);
  devices_free(&plain);
  devices_free(&beside);
  cx_text_free(&text);
}

// %b is summed three times in a loop, and once before and behind it.
static void in_loops(void **unused)
{
  (void)unused;
  cx_text text = { 0 };
  cx_text_append(&text,
                 "func.func @main(%a: tensor<256x128xf32>, %b: "
                 "tensor<128x128xf32>) -> (tensor<128x128xf32>, "
                 "tensor<128x128xf32>, tensor<256x128xf32>, "
                 "tensor<128x128xf32>) {\n"
                 "%k = stablehlo.constant dense<0> : tensor<i32>\n"
                 "%l = stablehlo.constant dense<3> : tensor<i32>\n"
                 "%one = stablehlo.constant dense<1> : tensor<i32>\n");
  chain_all_reduce(&text, "%s", "%b", "tensor<128x128xf32>", 2);
  cx_text_append(
      &text,
      "%c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<256x128xf32>, tensor<128x128xf32>) -> tensor<256x128xf32>\n"
      "%r:2 = stablehlo.while(%i = %k, %v = %b) : tensor<i32>, "
      "tensor<128x128xf32>\n"
      "cond { %p = stablehlo.compare LT, %i, %l : (tensor<i32>, tensor<i32>) "
      "-> tensor<i1>\n stablehlo.return %p : tensor<i1> }\n"
      "do { %j = stablehlo.add %i, %one : tensor<i32>\n");
  chain_all_reduce(&text, "%t", "%v", "tensor<128x128xf32>", 2);
  cx_text_append(&text,
                 "stablehlo.return %j, %t : tensor<i32>, tensor<128x128xf32> "
                 "}\n");
  chain_all_reduce(&text, "%o", "%r#1", "tensor<128x128xf32>", 2);
  cx_text_append(
      &text,
      "%d = stablehlo.dot_general %c, %b, contracting_dims = [1] x [0] : "
      "(tensor<256x128xf32>, tensor<128x128xf32>) -> tensor<256x128xf32>\n"
      "return %s, %r#1, %d, %o : tensor<128x128xf32>, tensor<128x128xf32>, "
      "tensor<256x128xf32>, tensor<128x128xf32> }");
  devices plain, beside;
  devices_new(&plain, 2, cx_text_str(&text), true);
  devices_new(&beside, 2, cx_text_str(&text), false);
  assert_true(beside.info->n_overlapped >= 1);
  assert_true(beside.info->n_overlapped <= 2);
  for (int i = 0; i < 5; i++) {
    devices_run_well(&plain);
    devices_run_well(&beside);
    devices_same(&plain, &beside);
  }
  const float *b = beside.d[1].args[1], *s = beside.d[1].results[0],
              *t = beside.d[1].results[1];
  for (int i = 0; i < 128 * 128; i++) {
    assert_true(s[i] == 2 * b[i] && t[i] == 8 * b[i]);
  }
  devices_free(&plain);
  devices_free(&beside);
  cx_text_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_updates),
    cmocka_unit_test(read_meanwhile),
    cmocka_unit_test(in_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
