// CHLO's decompositions compared with the C library's functions, in units of
// the last place, or checked by identities if it has none.
#include <math.h>

#include "../../hlo/check.h"
#include "hlo/number.h"
#include "opt/opt.h"
#include "ref/ref.h"

#define N 2000

static double xs[N];
static double ys[N];

// Computes `op` on xs in this type, to ys.
static void apply(const char *op, const char *type, cx_hlo_elem e)
{
  char text[512];
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<%dx%s>) -> tensor<%dx%s> {\n"
           "  %%0 = %s %%x : tensor<%dx%s> -> tensor<%dx%s>\n"
           "  return %%0 : tensor<%dx%s>\n}\n",
           N, type, N, type, op, N, type, N, type, N, type);
  cx_hlo_module *m = check_parse(text);
  CHECK_OK(cx_hlo_verify(m));
  const cpu_opt_options options = { .decompose_only = true, .check = true };
  CHECK_OK(cpu_opt_run(m, &options));
  const cx_hlo_func *f = cx_hlo_entry(m);
  const size_t one = cx_hlo_elem_bytes(e);
  char in[N * 8];
  char out[N * 8];
  for (size_t i = 0; i < N; i++) {
    cx_hlo_store_real(e, in + i * one, xs[i]);
    xs[i] = cx_hlo_load_real(e, in + i * one);
  }
  const cpu_ref_tensor arg = { f->params[0].tensor, in };
  const cpu_ref_tensor result = { f->results[0].tensor, out };
  const cpu_ref_context context = { 0 };
  CHECK_OK(cpu_ref_run(m, f, &arg, &result, &context));
  for (size_t i = 0; i < N; i++) ys[i] = cx_hlo_load_real(e, out + i * one);
  cx_hlo_module_free(m);
}

// Values from low to high, and special values.
static void choose_xs(double low, double high)
{
  static const double special[] = { 0.0, -0.0, 1.0, -1.0, 0.5, (double)NAN };
  for (int i = 0; i < N; i++) xs[i] = low + (high - low) * i / (N - 1);
  for (int i = 0; i < 6; i++) xs[i * 300 + 7] = special[i];
}

static double unit_of(cx_hlo_elem e, double v)
{
  const float f = fabsf((float)v);
  if (e == CX_HLO_BF16 || e == CX_HLO_F16) {
    const int last = e == CX_HLO_BF16 ? 7 : 10,
              least = e == CX_HLO_BF16 ? -133 : -24;
    return ldexp(1, ilogb(v) - last > least ? ilogb(v) - last : least);
  }
  if (e == CX_HLO_F32) return (double)(nextafterf(f, INFINITY) - f);
  return nextafter(fabs(v), HUGE_VAL) - fabs(v);
}

static void check_function(const char *op, double fn(double), double low,
                           double high, cx_hlo_elem e, double most)
{
  double worst = 0;
  double where = 0;
  choose_xs(low, high);
  apply(op, cx_hlo_elem_name(e), e);
  for (int i = 0; i < N; i++) {
    const double want = fn(xs[i]);
    if (isnan(want) || isinf(want) || want == 0) {
      const bool same = isnan(want) ? isnan(ys[i]) : ys[i] == want;
      if (!same) print_error("%s(%.17g) is %.17g\n", op, xs[i], ys[i]);
      assert_true(same);
      // A zero keeps its sign.
      if (want == 0) assert_int_equal(!signbit(want), !signbit(ys[i]));
      continue;
    }
    const double d = fabs(ys[i] - want) / unit_of(e, want);
    if (d <= worst) continue;
    worst = d;
    where = xs[i];
  }
  print_message("%s %s: %.2f at %.17g\n", op, cx_hlo_elem_name(e), worst,
                where);
  assert_true(worst <= most);
}

static void test_functions(void **state)
{
  (void)state;
  static const struct {
    const char *op;
    double (*fn)(double);
    double low, high, f32, f64;  // the range, the errors allowed
  } rows[] = {
    { "chlo.erf", erf, -5, 5, 2, 3 },
    { "chlo.erfc", erfc, -5, 9, 1, 10 },
    { "chlo.asin", asin, -1.1, 1.1, 1, 3 },
    { "chlo.acos", acos, -1.1, 1.1, 1, 3 },
    { "chlo.atan", atan, -20, 20, 1, 2 },
    { "chlo.asinh", asinh, -20, 20, 1, 4 },
    { "chlo.asinh", asinh, -1e30, 1e30, 1, 4 },
    { "chlo.acosh", acosh, 0.5, 20, 1, 4 },
    { "chlo.atanh", atanh, -1.1, 1.1, 1, 4 },
    { "chlo.sinh", sinh, -20, 20, 1, 4 },
    { "chlo.cosh", cosh, -20, 20, 1, 4 },
    { "chlo.lgamma", lgamma, 2.5, 60, 1, 40 },
    { "chlo.tan", tan, -1.5, 1.5, 1, 2 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    check_function(rows[i].op, rows[i].fn, rows[i].low, rows[i].high,
                   CX_HLO_F32, rows[i].f32);
    check_function(rows[i].op, rows[i].fn, rows[i].low, rows[i].high,
                   CX_HLO_F64, rows[i].f64);
  }
  // Rounded to the nearest, but where what it is computed in is between two.
  check_function("chlo.erfc", erfc, -5, 9, CX_HLO_F32, 0.55);
  check_function("chlo.erfc", erfc, -4, 9, CX_HLO_BF16, 0.51);
  check_function("chlo.erfc", erfc, -4, 5.5, CX_HLO_F16, 0.56);
  assert_int_equal(cx_alloc_live(), 0);
}

// erf(erf_inv(x)) is x, digamma is the derivative of lgamma, and limits.
static void test_identities(void **state)
{
  (void)state;
  choose_xs(-0.999, 0.999);
  apply("chlo.erf_inv", "f64", CX_HLO_F64);
  for (int i = 0; i < N; i++) {
    if (isnan(xs[i])) {
      assert_true(isnan(ys[i]));
    } else if (fabs(xs[i]) == 1) {
      assert_true(ys[i] == xs[i] * HUGE_VAL);
    } else {
      assert_true(fabs(erf(ys[i]) - xs[i]) <= 1e-15);
    }
  }
  // f32's is f64's rounded, but where that is between two.
  choose_xs(-1, 1);
  for (int i = 1; i <= 24; i++) xs[i * 20] = 1 - ldexp(1, -i);
  apply("chlo.erf_inv", "f32", CX_HLO_F32);
  double single[N];
  memcpy(single, ys, sizeof single);
  apply("chlo.erf_inv", "f64", CX_HLO_F64);
  for (int i = 0; i < N; i++) {
    if (isnan(xs[i]) || isinf(ys[i])) {
      assert_true(isnan(ys[i]) ? isnan(single[i]) : single[i] == ys[i]);
      continue;
    }
    const double unit = unit_of(CX_HLO_F32, ys[i]);
    assert_true(fabs(single[i] - ys[i]) <= 0.55 * unit);
  }
  choose_xs(2, 30);
  apply("chlo.digamma", "f64", CX_HLO_F64);
  for (int i = 0; i < N; i++) {
    if (!(xs[i] >= 2)) continue;
    const double h = 1e-4;
    const double slope = (lgamma(xs[i] + h) - lgamma(xs[i] - h)) / (2 * h);
    assert_true(fabs(ys[i] - slope) <= 1e-7);
  }
  choose_xs(0, 60);
  apply("chlo.bessel_i1e", "f64", CX_HLO_F64);
  for (int i = 0; i < N; i++) {
    // The integral of exp(x (cos t - 1)) cos t from 0 to pi.
    double sum = 0;
    for (int k = 0; k < 400; k++) {
      const double t = M_PI * (k + 0.5) / 400;
      sum += exp(xs[i] * (cos(t) - 1)) * cos(t);
    }
    if (!(xs[i] >= 0) || i % 50 != 0) continue;
    assert_true(fabs(ys[i] - sum / 400) <= 1e-14);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_functions),
                                      cmocka_unit_test(test_identities) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
