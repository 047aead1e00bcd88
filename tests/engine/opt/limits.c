// Programs that would become too large, and passes that run out of memory.
#include "../../hlo/check.h"
#include "hlo/build.h"
#include "opt/opt.h"

static calx_status *optimize(cx_hlo_module *m)
{
  const cpu_opt_options options = { .check = true };
  return cpu_opt_run(m, &options);
}

// f0 has `n` operations; each further function calls the one before `calls`
// times, up to main.
static cx_text chain(int depth, int n, int calls)
{
  cx_text text = { 0 };
  for (int f = 0; f <= depth; f++) {
    char name[16];
    snprintf(name, sizeof name, f == depth ? "main" : "f%d", f);
    cx_text_format(&text, "func.func @%s(%%v0: tensor<f32>) -> tensor<f32> {\n",
                   name);
    const int ops = f == 0 ? n : calls;
    for (int i = 0; i < ops; i++) {
      if (f == 0) {
        cx_text_format(&text, "%%v%d = stablehlo.sine %%v%d : tensor<f32>\n",
                       i + 1, i);
      } else {
        cx_text_format(&text,
                       "%%v%d = func.call @f%d(%%v%d) : (tensor<f32>) -> "
                       "tensor<f32>\n",
                       i + 1, f - 1, i);
      }
    }
    cx_text_format(&text, "return %%v%d : tensor<f32>\n}\n", ops);
  }
  return text;
}

static size_t count(const cx_hlo_module *m)
{
  size_t n = 0;
  const cx_hlo_op *op = cx_hlo_entry(m)->body.first->first;
  for (; op != NULL; op = op->next) n++;
  return n;
}

static void test_growth(void **state)
{
  (void)state;
  cx_text text = chain(2, 10, 10);
  cx_hlo_module *m = check_parse(cx_text_str(&text));
  CHECK_OK(optimize(m));
  assert_int_equal(count(m), 1001);  // with the return
  assert_true(m->first == m->last);
  assert_int_equal(m->n_values, 1001);  // with the argument
  cx_hlo_module_free(m);
  cx_text_free(&text);
  // 10^30 operations in 300 lines.
  text = chain(30, 10, 10);
  m = check_parse(cx_text_str(&text));
  CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, optimize(m),
              "function 'main' with all that it calls has more than 4194304 "
              "operations");
  cx_hlo_module_free(m);
  cx_text_free(&text);
  // A long chain of calls does not nest.
  text = chain(5000, 2, 1);
  m = check_parse(cx_text_str(&text));
  CHECK_OK(optimize(m));
  assert_int_equal(count(m), 3);
  cx_hlo_module_free(m);
  cx_text_free(&text);
  assert_int_equal(cx_alloc_live(), 0);
}

// Branches in branches: each function calls the next within an if.
static void test_depth(void **state)
{
  (void)state;
  cx_text text = { 0 };
  const int depth = 300;
  for (int f = 0; f <= depth; f++) {
    char name[16];
    snprintf(name, sizeof name, f == 0 ? "main" : "f%d", f);
    cx_text_format(&text,
                   "func.func @%s(%%x: tensor<f32>, %%p: tensor<i1>) -> "
                   "tensor<f32> {\n",
                   name);
    if (f < depth) {
      cx_text_format(&text,
                     "%%0 = \"stablehlo.if\"(%%p) ({\n"
                     "%%1 = func.call @f%d(%%x, %%p) : (tensor<f32>, "
                     "tensor<i1>) -> tensor<f32>\n"
                     "stablehlo.return %%1 : tensor<f32>\n}, {\n"
                     "stablehlo.return %%x : tensor<f32>\n"
                     "}) : (tensor<i1>) -> tensor<f32>\n",
                     f + 1);
    }
    cx_text_format(&text, "return %%%s : tensor<f32>\n}\n",
                   f < depth ? "0" : "x");
  }
  cx_hlo_module *m = check_parse(cx_text_str(&text));
  CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, optimize(m),
              "nests deeper than 256 regions");
  cx_hlo_module_free(m);
  cx_text_free(&text);
}

// One of everything: each allocation fails once.
static const char everything[] =
    "func.func @main(%x: tensor<2x3xf32>, %k: tensor<i32>) -> "
    "(tensor<2x3xf32>, tensor<2x1xf32>) {\n"
    "  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> "
    "tensor<3x2xf32>\n"
    "  %d = stablehlo.dot %x, %t : (tensor<2x3xf32>, tensor<3x2xf32>) -> "
    "tensor<2x2xf32>\n"
    "  %e = chlo.erf %x : tensor<2x3xf32> -> tensor<2x3xf32>\n"
    "  %f = func.call @f(%e) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
    "  %v, %i = chlo.top_k(%d, k = 1) : tensor<2x2xf32> -> "
    "(tensor<2x1xf32>, tensor<2x1xi32>)\n"
    "  %0:2 = stablehlo.while(%j = %k, %a = %f) : tensor<i32>, "
    "tensor<2x3xf32>\n"
    "    cond {\n"
    "      %1 = stablehlo.constant dense<3> : tensor<i32>\n"
    "      %2 = stablehlo.compare LT, %j, %1 : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "      stablehlo.return %2 : tensor<i1>\n"
    "    } do {\n"
    "      %1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "      %2 = stablehlo.add %j, %1 : tensor<i32>\n"
    "      %3 = stablehlo.cosine %x : tensor<2x3xf32>\n"
    "      %4 = stablehlo.add %3, %a : tensor<2x3xf32>\n"
    "      stablehlo.return %2, %4 : tensor<i32>, tensor<2x3xf32>\n"
    "    }\n"
    "  return %0#1, %v : tensor<2x3xf32>, tensor<2x1xf32>\n"
    "}\n"
    "func.func private @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
    "  %c = stablehlo.constant dense<2.0> : tensor<f32>\n"
    "  %s = stablehlo.sqrt %c : tensor<f32>\n"
    "  %w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> "
    "tensor<2x3xf32>\n"
    "  %0 = stablehlo.divide %x, %w : tensor<2x3xf32>\n"
    "  return %0 : tensor<2x3xf32>\n"
    "}\n";

static void test_no_memory(void **state)
{
  (void)state;
  long failures = 0;
  cx_alloc_set_exact(true);
  for (long n = 0;; n++) {
    cx_hlo_module *m = check_parse(everything);
    CHECK_OK(cx_hlo_verify(m));
    const long before = cx_alloc_count();
    cx_alloc_fail_at(n);
    calx_status *status = optimize(m);
    cx_alloc_fail_at(-1);
    const bool done = status == NULL && cx_alloc_count() - before <= n;
    if (status != NULL) {
      // Folding without memory leaves the operation as it is.
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
      failures++;
    }
    calx_status_free(status);
    cx_hlo_module_free(m);
    if (done) break;
    n += n / 50;  // a sample of thousands
  }
  cx_alloc_set_exact(false);
  print_message("%ld allocations failed\n", failures);
  assert_true(failures > 10);
  assert_int_equal(cx_alloc_live(), 0);
  assert_int_equal(cx_status_live(), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_growth),
                                      cmocka_unit_test(test_depth),
                                      cmocka_unit_test(test_no_memory) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
