// The mathematical functions of the code generator: against the C library's in
// higher precision, on every 80021st float, on doubles of all sizes, and on all
// special values, for every target that this CPU runs and several widths.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// after those that it needs
#include <cmocka.h>

#include "kernel.h"
#include "ulp.h"

// Of the bits of floats, the arguments: prime, so that it meets all exponents
// with all kinds of fractions.
#ifndef FLOAT_STRIDE
#define FLOAT_STRIDE 80021
#endif
#ifndef DOUBLES
#define DOUBLES 14000
#endif

static double logistic(double x)
{
  return 1 / (1 + exp(-x));
}
static double rsqrt(double x)
{
  return 1 / sqrt(x);
}
static long double logisticl(long double x)
{
  return 1 / (1 + expl(-x));
}
static long double rsqrtl(long double x)
{
  return 1 / sqrtl(x);
}

// The y of erf(y) = x, by Newton's method: monotone from below, as the slope
// falls.
static long double erf_invl(long double x)
{
  const long double a = fabsl(x);
  if (!(a < 1))
    return a == 1 ? copysignl((long double)INFINITY, x) : (long double)NAN;
  const long double slope = 1.1283791670955125738961589031215452L;
  long double y = a / slope, before = -1;
  for (int i = 0; i < 400 && y > before; i++) {
    before = y;
    long double off = a < 0.5L ? a - erfl(y) : erfcl(y) - (1 - a);
    y += off / (slope * expl(-y * y));
  }
  return copysignl(y, x);
}
static double erf_inv(double x)
{
  return (double)erf_invl((long double)x);
}

typedef struct function {
  const char *name;
  double (*narrow)(double);  // for float
  long double (*wide)(long double);
  double (*narrow_two)(double, double);
  long double (*wide_two)(long double, long double);
} function;

static const function functions[CPU_JIT_FUNCTIONS] = {
  [CPU_JIT_EXP] = { "exp", exp, expl, NULL, NULL },
  [CPU_JIT_EXPM1] = { "expm1", expm1, expm1l, NULL, NULL },
  [CPU_JIT_LOG] = { "log", log, logl, NULL, NULL },
  [CPU_JIT_LOG1P] = { "log1p", log1p, log1pl, NULL, NULL },
  [CPU_JIT_LOGISTIC] = { "logistic", logistic, logisticl, NULL, NULL },
  [CPU_JIT_TANH] = { "tanh", tanh, tanhl, NULL, NULL },
  [CPU_JIT_SIN] = { "sin", sin, sinl, NULL, NULL },
  [CPU_JIT_COS] = { "cos", cos, cosl, NULL, NULL },
  [CPU_JIT_TAN] = { "tan", tan, tanl, NULL, NULL },
  [CPU_JIT_SQRT] = { "sqrt", sqrt, sqrtl, NULL, NULL },
  [CPU_JIT_RSQRT] = { "rsqrt", rsqrt, rsqrtl, NULL, NULL },
  [CPU_JIT_CBRT] = { "cbrt", cbrt, cbrtl, NULL, NULL },
  [CPU_JIT_POW] = { "pow", NULL, NULL, pow, powl },
  [CPU_JIT_ATAN2] = { "atan2", NULL, NULL, atan2, atan2l },
  [CPU_JIT_ERF] = { "erf", erf, erfl, NULL, NULL },
  [CPU_JIT_ERFC] = { "erfc", erfc, erfcl, NULL, NULL },
  [CPU_JIT_ERF_INV] = { "erf_inv", erf_inv, erf_invl, NULL, NULL },
  [CPU_JIT_ASIN] = { "asin", asin, asinl, NULL, NULL },
  [CPU_JIT_ACOS] = { "acos", acos, acosl, NULL, NULL },
  [CPU_JIT_ATAN] = { "atan", atan, atanl, NULL, NULL },
  [CPU_JIT_ASINH] = { "asinh", asinh, asinhl, NULL, NULL },
  [CPU_JIT_ACOSH] = { "acosh", acosh, acoshl, NULL, NULL },
  [CPU_JIT_ATANH] = { "atanh", atanh, atanhl, NULL, NULL },
  [CPU_JIT_SINH] = { "sinh", sinh, sinhl, NULL, NULL },
  [CPU_JIT_COSH] = { "cosh", cosh, coshl, NULL, NULL },
};

// Units in f64; 0: as many as in f32.
static const double wide_bounds[CPU_JIT_FUNCTIONS] = {
  [CPU_JIT_ERFC] = 6,
  [CPU_JIT_ERF_INV] = 4,
};

// Arguments, as long double that hold them exactly, and the right results.
typedef struct batch {
  size_t n, room;
  long double *x, *y, *want;
} batch;

static void put(batch *b, long double x, long double y)
{
  if (b->n == b->room) {
    b->room = b->room ? 2 * b->room : 1 << 16;
    b->x = realloc(b->x, b->room * sizeof *b->x);
    b->y = realloc(b->y, b->room * sizeof *b->y);
    b->want = realloc(b->want, b->room * sizeof *b->want);
    assert_true(b->x && b->y && b->want);
  }
  b->x[b->n] = x;
  b->y[b->n++] = y;
}

static void empty(batch *b)
{
  free(b->x);
  free(b->y);
  free(b->want);
}

static long double of_bits(uint64_t bits, bool wide)
{
  if (wide) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return (long double)x;
  }
  uint32_t low = (uint32_t)bits;
  float x;
  memcpy(&x, &low, sizeof x);
  return (long double)x;
}

static long double as_type(long double x, bool wide)
{
  return wide ? (long double)(double)x : (long double)(float)x;
}

static uint64_t random_bits(void)
{
  static uint64_t state = 1;
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// In [-1, 1).
static long double random_unit(void)
{
  return (long double)(int64_t)random_bits() * 0x1p-63L;
}

// Ends of ranges, thresholds, and numbers where functions have a special value.
static const double known[] = {
  0,
  1,
  2,
  3,
  4,
  5,
  0.5,
  1.5,
  2.5,
  10,
  0.6,
  0.93,
  0.25,
  1e-3,
  1e-8,
  1e-20,
  1e10,
  1e20,
  1e30,
  100,
  88.72,
  88.73,
  89,
  103.97,
  103.98,
  104,
  87.33,
  87.34,
  709.78,
  709.79,
  745.1,
  745.2,
  746,
  708.39,
  708.4,
  16777216,
  16777215,
  8388609,
  8388607.5,
  4503599627370497,
  9007199254740991,
  9007199254740992,
  0.41421356237309503,
  0.7071067811865476,
  1.4142135623730951,
  3.141592653589793,
  1.5707963267948966,
  0.7853981633974483,
  6.283185307179586,
  0x1p-23,
  0x1p-24,
  0x1p-25,
  0x1p-52,
  0x1p-53,
  0x1p-54,
  0x1p-13,
  0x1p-27,
  0x1p20,
  0x1p22,
  1048575.9,
  6381956970095103.0 * 0x1p797,
  0.34657359027997264,
  1.0397207708399179,
  0.34657361,
  20,
  18.7,
  9.01,
  6,
  4,
};

// The table's, and those of the format, with both signs.
static size_t special_values(long double *out, bool wide)
{
  size_t n = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    out[n++] = as_type((long double)known[i], wide);
  out[n++] = wide ? (long double)DBL_MAX : (long double)FLT_MAX;
  out[n++] = wide ? (long double)DBL_MIN : (long double)FLT_MIN;
  out[n++] = of_bits(1, wide);
  out[n++] = of_bits(3, wide);
  out[n++] = of_bits(wide ? 0x000fffffffffffff : 0x007fffff, wide);
  out[n++] = of_bits(wide ? 0x3fefffffffffffff : 0x3f7fffff, wide);
  out[n++] = of_bits(wide ? 0x3ff0000000000001 : 0x3f800001, wide);
  out[n++] = (long double)INFINITY;
  out[n++] = (long double)NAN;
  for (size_t i = 0; i < n; i++) out[n + i] = -out[i];
  return 2 * n;
}

#define MOST_SPECIALS 200

static void put_random_double(batch *b)
{
  put(b, of_bits(random_bits(), true), 0);
  put(b, as_type(30 * random_unit(), true), 0);
  put(b, as_type(random_unit(), true), 0);
  put(b, as_type(1 + random_unit() * 0.01L, true), 0);
  put(b, as_type(800 * random_unit(), true), 0);
  put(b, as_type(exp2l(40 * random_unit()), true), 0);
  // near the zeros of sin and cos
  put(b, as_type(floorl(1e6L * random_unit()) * 1.57079632679489661923L, true),
      0);
}

static void one_argument(batch *b, bool wide)
{
  long double specials[MOST_SPECIALS];
  size_t n = special_values(specials, wide);
  for (size_t i = 0; i < n; i++) put(b, specials[i], 0);
  if (wide)
    for (int i = 0; i < DOUBLES / 7; i++) put_random_double(b);
  else
    for (uint64_t i = 0; i < (uint64_t)1 << 32; i += FLOAT_STRIDE)
      put(b, of_bits(i, false), 0);
}

// Pairs of all sizes, pairs of about the same size or with a denormal, and
// powers that are neither 0 nor infinite.
static void two_arguments(batch *b, bool wide)
{
  long double specials[MOST_SPECIALS];
  size_t n = special_values(specials, wide);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) put(b, specials[i], specials[j]);
  for (int i = 0; i < DOUBLES / 5; i++) {
    put(b, of_bits(random_bits(), wide), of_bits(random_bits(), wide));
    // a denormal and a number that is not much larger, or is
    put(b, of_bits(random_bits() >> (wide ? 12 : 41), wide),
        as_type(exp2l((wide ? -500 : -70) * (1 + random_unit())), wide));
    put(b, as_type(10 * random_unit(), wide),
        as_type(10 * random_unit(), wide));
    long double x = as_type(exp2l(20 * random_unit() * random_unit()), wide);
    long double size = wide ? 745 : 104;
    put(b, x, as_type(size * random_unit() / logl(x + (x == 1)), wide));
    put(b, as_type(10 * random_unit(), wide), floorl(20 * random_unit()));
  }
}

static void fill(batch *b, cpu_jit_function fn, bool wide)
{
  const function *f = &functions[fn];
  if (f->narrow)
    one_argument(b, wide);
  else
    two_arguments(b, wide);
  while (b->n % 32) put(b, 1, 1);
  for (size_t i = 0; i < b->n; i++) {
    long double x = b->x[i], y = b->y[i];
    if (f->narrow)
      b->want[i] = wide ? f->wide(x) : (long double)f->narrow((double)x);
    else
      b->want[i] = wide ? f->wide_two(x, y)
                        : (long double)f->narrow_two((double)x, (double)y);
  }
}

typedef struct numbers {
  void *x, *y, *out;
  bool wide;
} numbers;

static void set(const numbers *s, void *at, size_t i, long double x)
{
  if (s->wide)
    ((double *)at)[i] = (double)x;
  else
    ((float *)at)[i] = (float)x;
}

static long double get(const numbers *s, size_t i)
{
  return s->wide ? (long double)((double *)s->out)[i]
                 : (long double)((float *)s->out)[i];
}

// The largest error, of which the first beyond the bound is printed.
static double worst_of(const batch *b, const numbers *s, const char *name,
                       double bound)
{
  double worst = 0;
  bool said = false;
  for (size_t i = 0; i < b->n; i++) {
    double ulps = test_ulps(get(s, i), b->want[i], s->wide);
    if (ulps > worst) worst = ulps;
    if (ulps > bound && !said) {
      said = true;
      print_message(
          "%s(%La = %.9Lg, %La = %.9Lg) = %.17Lg, not %.17Lg: %g ulp\n", name,
          b->x[i], b->x[i], b->y[i], b->y[i], get(s, i), b->want[i], ulps);
    }
  }
  return worst;
}

static const test_target targets[] = { { "x86-64", false },
                                       { "x86-64-v3", true },
                                       { "x86-64-v4", true } };

// The lanes of f32 that are tried on each, 0 being scalar; f64 has half.
static const unsigned widths[3][3] = { { 4, 0, 16 },
                                       { 8, 0, 4 },
                                       { 16, 32, 0 } };

static void check_all(bool wide, double most)
{
  int wrong = 0;
  for (int fn = 0; fn < CPU_JIT_FUNCTIONS; fn++) {
    const double other = wide_bounds[fn];
    const double bound = wide && other != 0 ? other : most;
    batch b = { 0 };
    fill(&b, (cpu_jit_function)fn, wide);
    numbers s = { calloc(b.n, 8), calloc(b.n, 8), calloc(b.n, 8), wide };
    for (size_t i = 0; i < b.n; i++) {
      set(&s, s.x, i, b.x[i]);
      set(&s, s.y, i, b.y[i]);
    }
    double worst[3] = { 0 };
    for (int t = 0; t < 3; t++) {
      if (!test_target_runs(&targets[t])) continue;
      for (int w = 0; w < 3; w++) {
        unsigned lanes = wide ? widths[t][w] / 2 : widths[t][w];
        test_kernel kernel = test_compile(&targets[t], TEST_REAL,
                                          (cpu_jit_function)fn, wide, lanes);
        const void *x[] = { s.x, s.x }, *y[] = { s.y, s.y };
        void *out[] = { s.out, s.out };
        memset(s.out, 0xee, b.n * 8);
        kernel.run(x, y, out, (int64_t)b.n);
        test_unload(&kernel);
        double ulps = worst_of(&b, &s, functions[fn].name, bound);
        if (ulps > worst[t]) worst[t] = ulps;
      }
    }
    print_message(
        "%-8s %s %8zu arguments: %.3f ulp without fma, %.3f with, "
        "%.3f at 512 bits\n",
        functions[fn].name, wide ? "f64" : "f32", b.n, worst[0], worst[1],
        worst[2]);
    for (int t = 0; t < 3; t++) wrong += worst[t] > bound;
    free(s.x);
    free(s.y);
    free(s.out);
    empty(&b);
  }
  assert_int_equal(wrong, 0);
}

static void floats(void **state)
{
  (void)state;
  check_all(false, 2);
}

static void doubles(void **state)
{
  (void)state;
  check_all(true, 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(floats),
                                      cmocka_unit_test(doubles) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
