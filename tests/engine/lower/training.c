// Training steps whose sums run in background, with loops that fill buckets and
// update parameters in place: bits and memory are those of the plain order.
// Also collectives in regions, in order among those in background.
#include "devices.h"
#include "support/long.h"

static void updates(uint32_t n, int layers)
{
  cx_text text = { 0 };
  chain_text(&text, layers, n, CHAIN_UPDATES);
  twins both;
  twins_new(&both, n, &text);
  print_message("%zu overlap, %zu and %zu bytes\n",
                both.beside.info->n_overlapped, both.plain.info->arena_bytes,
                both.beside.info->arena_bytes);
  assert_true(both.beside.info->n_overlapped >= (size_t)layers / 2 - 1);
  assert_true(both.beside.info->arena_bytes <= both.plain.info->arena_bytes);
  // Each step continues with the memory of the one before.
  for (int i = 0; i < 5; i++) {
    assert_true(twins_run(&both));
  }
  twins_free(&both);
  cx_text_free(&text);
}

static void same_updates(void **unused)
{
  (void)unused;
  updates(2, 8);
  updates(3, 6);
}

// The operand of a sum is read while the sum is running, and after it.
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
  twins both;
  twins_new(&both, 2, &text);
  assert_int_equal(both.beside.info->n_overlapped, 1);
  assert_true(twins_run(&both));
  twins_free(&both);
  cx_text_free(&text);
}

// %b is summed three times in a loop, and once before and after it.
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
  twins both;
  twins_new(&both, 2, &text);
  assert_true(both.beside.info->n_overlapped >= 1);
  assert_true(both.beside.info->n_overlapped <= 2);
  for (int i = 0; i < 5; i++) {
    assert_true(twins_run(&both));
  }
  const float *b = both.beside.d[1].args[1], *s = both.beside.d[1].results[0],
              *t = both.beside.d[1].results[1];
  for (int i = 0; i < 128 * 128; i++) {
    assert_true(s[i] == 2 * b[i] && t[i] == 8 * b[i]);
  }
  twins_free(&both);
  cx_text_free(&text);
}

// ---- random programs ----

#define T "tensor<128x128xf32>"

typedef struct dice {
  uint64_t state;
} dice;

static int roll(dice *d, int sides)
{
  d->state = d->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((d->state >> 33) % (uint64_t)sides);
}

// %v0 to %v3 are arguments; each value reads some of those before it, more
// often near ones. Two of the results share memory with arguments.
static void random_text(cx_text *out, uint64_t seed)
{
  enum { VALUES = 40, ARGS_N = 4, RESULTS = 5 };
  dice d = { seed };
  cx_text_append(out, "func.func @main(%v0: " T ", %v1: " T
                      " {tf.aliasing_output = 0 : i32}, %v2: " T
                      " {tf.aliasing_output = 3 : i32}, %v3: " T ") -> (" T);
  for (int i = 1; i < RESULTS; i++) cx_text_append(out, ", " T);
  cx_text_append(out, ") {\n%k = stablehlo.constant dense<0.015625> : " T "\n");
  for (int i = ARGS_N; i < VALUES; i++) {
    const int far = roll(&d, 3) == 0 ? i : i < 8 ? i : 8;
    const int a = i - 1 - roll(&d, far), b = i - 1 - roll(&d, i < 8 ? i : 8);
    char to[16], from[16];
    snprintf(to, sizeof to, "%%v%d", i);
    snprintf(from, sizeof from, "%%v%d", a);
    switch (roll(&d, 6)) {
      case 0:
      case 1: chain_all_reduce(out, to, from, T, 2); break;
      case 2:
      case 3:
        cx_text_format(out,
                       "%%p%d = stablehlo.dot_general %%v%d, %%v%d, "
                       "contracting_dims = [1] x [0] : (" T ", " T ") -> " T
                       "\n%%v%d = stablehlo.multiply %%p%d, %%k : " T "\n",
                       i, a, b, i, i);
        break;
      case 4:
        cx_text_format(out, "%%v%d = stablehlo.subtract %%v%d, %%v%d : " T "\n",
                       i, a, b);
        break;
      default:
        cx_text_format(out, "%%v%d = stablehlo.negate %%v%d : " T "\n", i, a);
        break;
    }
  }
  cx_text_append(out, "return ");
  for (int i = 0; i < RESULTS; i++) {
    cx_text_format(out, "%s%%v%d", i > 0 ? ", " : "",
                   VALUES - 1 - roll(&d, 30));
  }
  cx_text_append(out, " : " T);
  for (int i = 1; i < RESULTS; i++) cx_text_append(out, ", " T);
  cx_text_append(out, " }");
}

static void random_programs(void **unused)
{
  (void)unused;
  const char *asked = getenv("CALX_TEST_PROGRAMS");
  const int n = asked == NULL ? (int)long_or(2500, 25) : atoi(asked);
  size_t overlapped = 0;
  for (int i = 0; i < n; i++) {
    cx_text text = { 0 };
    random_text(&text, (uint64_t)i);
    twins both;
    twins_new(&both, 2, &text);
    overlapped += both.beside.info->n_overlapped;
    for (int k = 0; k < 2; k++) {
      if (!twins_run(&both)) {
        fail_msg("program %d differs:\n%s", i, cx_text_str(&text));
      }
    }
    twins_free(&both);
    cx_text_free(&text);
  }
  print_message("%d programs, %zu overlap\n", n, overlapped);
  assert_true(overlapped >= (size_t)n);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_updates),
    cmocka_unit_test(read_meanwhile),
    cmocka_unit_test(in_loops),
    cmocka_unit_test(random_programs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
