// Prefix scans: along each dimension, from both ends, of each operation and
// type; what looks like a scan and is none. Rows that are cut into blocks are
// in tests/engine/lower/direct.c.
#include "engine/jit/harness.h"

typedef struct form {
  const char *size, *window, *low, *high;
} form;

static const form forms[] = {
  { "17", "17", "16", "0" },
  { "100", "100", "99", "0" },
  { "128", "128", "0", "127" },
  { "301", "301", "0", "300" },
  { "5x30", "1, 30", "0, 29", "0, 0" },
  { "70x20", "70, 1", "69, 0", "0, 0" },
  { "200x7", "200, 1", "0, 0", "199, 0" },
  { "2x150x2x20", "1, 150, 1, 1", "0, 149, 0, 0", "0, 0, 0, 0" },
  { "2x17x130", "1, 17, 1", "0, 0, 0", "0, 16, 0" },
};

static size_t pairs(char *out, const char *low, const char *high)
{
  size_t n = 0;
  out[0] = 0;
  for (;;) {
    char *end;
    const long a = strtol(low, &end, 10);
    low = end;
    const long b = strtol(high, &end, 10);
    high = end;
    sprintf(out + strlen(out), "%s[%ld, %ld]", n == 0 ? "" : ", ", a, b);
    n++;
    if (*low != ',') return n;
    low++;
    high++;
  }
}

static void scan(const form *f, const char *body, const char *elem,
                 const char *init, double tolerance, int fill)
{
  char text[4096];
  char padding[256];
  const size_t rank = pairs(padding, f->low, f->high);
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<%sx%s>) -> tensor<%sx%s> {\n"
           "  %%i = stablehlo.constant dense<%s> : tensor<%s>\n"
           "  %%0 = \"stablehlo.reduce_window\"(%%x, %%i) <{window_dimensions "
           "= array<i64: %s>, padding = dense<[%s]> : tensor<%zux2xi64>}> ({\n"
           "  ^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n"
           "%s"
           "    stablehlo.return %%c : tensor<%s>\n"
           "  }) : (tensor<%sx%s>, tensor<%s>) -> tensor<%sx%s>\n"
           "  return %%0 : tensor<%sx%s>\n}",
           f->size, elem, f->size, elem, init, elem, f->window, padding, rank,
           elem, elem, body, elem, f->size, elem, elem, f->size, elem, f->size,
           elem);
  harness_check(&(harness_case){ text, tolerance, fill });
}

static void simple(const form *f, const char *op, const char *elem,
                   const char *init, double tolerance, int fill)
{
  char body[128];
  snprintf(body, sizeof body, "    %%c = stablehlo.%s %%a, %%b : tensor<%s>\n",
           op, elem);
  scan(f, body, elem, init, tolerance, fill);
}

static const char logaddexp[] =
    "    %m = stablehlo.maximum %a, %b : tensor<f32>\n"
    "    %d = stablehlo.subtract %a, %b : tensor<f32>\n"
    "    %n = stablehlo.compare NE, %d, %d, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %s = stablehlo.add %a, %b : tensor<f32>\n"
    "    %e = stablehlo.abs %d : tensor<f32>\n"
    "    %g = stablehlo.negate %e : tensor<f32>\n"
    "    %h = stablehlo.exponential %g : tensor<f32>\n"
    "    %l = stablehlo.log_plus_one %h : tensor<f32>\n"
    "    %t = stablehlo.add %m, %l : tensor<f32>\n"
    "    %c = stablehlo.select %n, %s, %t : tensor<i1>, tensor<f32>\n";

static void test_forms(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    const form *f = &forms[i];
    simple(f, "add", "f32", "0.0", 1e-5, HARNESS_POSITIVE);
    simple(f, "add", "f32", "-0.0", 0, HARNESS_COUNT);
    simple(f, "add", "f64", "0.0", 1e-12, HARNESS_POSITIVE);
    simple(f, "add", "bf16", "0.0", 1e-2, HARNESS_POSITIVE);
    simple(f, "add", "i32", "0", 0, HARNESS_SPECIAL);
    simple(f, "add", "i64", "0", 0, HARNESS_SPECIAL);
    simple(f, "add", "ui8", "0", 0, HARNESS_SPECIAL);
    simple(f, "multiply", "i32", "1", 0, HARNESS_PLAIN);
    simple(f, "maximum", "f32", "0xFF800000", 0, HARNESS_SPECIAL);
    simple(f, "minimum", "f16", "0x7C00", 0, HARNESS_SPECIAL);
    simple(f, "minimum", "i32", "3", 0, HARNESS_SPECIAL);
    simple(f, "or", "i1", "false", 0, HARNESS_PLAIN);
    simple(f, "xor", "i32", "0", 0, HARNESS_SPECIAL);
    scan(f, logaddexp, "f32", "0xFF800000", 1e-5, HARNESS_PLAIN);
  }
}

// Initial values that are counted for each place of the padding, and operations
// that are not associative.
static void test_no_scan(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    simple(&forms[i], "add", "i32", "7", 0, HARNESS_SPECIAL);
    simple(&forms[i], "subtract", "i32", "0", 0, HARNESS_SPECIAL);
    simple(&forms[i], "multiply", "i32", "3", 0, HARNESS_PLAIN);
    scan(&forms[i], logaddexp, "f32", "0.0", 1e-5, HARNESS_PLAIN);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_forms),
                                      cmocka_unit_test(test_no_scan) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
