// The complex functions of the code generator: against the C library's in long
// double, the error measured against the size of the whole number; and where
// the values are infinite, zero or on a branch cut, by table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// after those that it needs
#include <cmocka.h>
#include <complex.h>

#include "kernel.h"
#include "ulp.h"

typedef long double complex number;

static number make(long double re, long double im)
{
  number z;
  long double parts[] = { re, im };
  memcpy(&z, parts, sizeof z);
  return z;
}

static number one_exp(number z, number w)
{
  (void)w;
  return cexpl(z);
}

static number one_expm1(number z, number w)
{
  (void)w;
  long double x = creall(z), y = cimagl(z), half = sinl(y / 2);
  return make(expm1l(x) * cosl(y) - 2 * half * half, expl(x) * sinl(y));
}

static number one_log(number z, number w)
{
  (void)w;
  return clogl(z);
}

static number one_log1p(number z, number w)
{
  (void)w;
  long double x = creall(z), y = cimagl(z);
  if (cabsl(z) > 1) return clogl(1 + z);
  return make(log1pl(x * (2 + x) + y * y) / 2, atan2l(y, 1 + x));
}

static number one_logistic(number z, number w)
{
  (void)w;
  return 1 / (1 + cexpl(-z));
}

static number one_tanh(number z, number w)
{
  (void)w;
  return ctanhl(z);
}

static number one_sin(number z, number w)
{
  (void)w;
  return csinl(z);
}

static number one_cos(number z, number w)
{
  (void)w;
  return ccosl(z);
}

static number one_tan(number z, number w)
{
  (void)w;
  return ctanl(z);
}

static number one_sqrt(number z, number w)
{
  (void)w;
  return csqrtl(z);
}

static number one_rsqrt(number z, number w)
{
  (void)w;
  return 1 / csqrtl(z);
}

static number one_cbrt(number z, number w)
{
  (void)w;
  long double angle = cargl(z) / 3, size = cbrtl(cabsl(z));
  return make(size * cosl(angle), size * sinl(angle));
}

static number one_pow(number z, number w)
{
  return cpowl(z, w);
}

static number multiply(number z, number w)
{
  return z * w;
}

static number divide(number z, number w)
{
  return z / w;
}

static number size_of(number z, number w)
{
  (void)w;
  return cabsl(z);
}

typedef struct function {
  const char *name;
  test_kind kind;
  cpu_jit_function fn;
  number (*right)(number, number);
  long double most;  // arguments are up to 2^most
  double bound;      // ulp of |result|, of f64; f32 has 1
} function;

static const function functions[] = {
  { "exp", TEST_COMPLEX, CPU_JIT_EXP, one_exp, 9.4L, 3 },
  { "expm1", TEST_COMPLEX, CPU_JIT_EXPM1, one_expm1, 9.4L, 4 },
  { "log", TEST_COMPLEX, CPU_JIT_LOG, one_log, 1000, 2 },
  { "log1p", TEST_COMPLEX, CPU_JIT_LOG1P, one_log1p, 1000, 2 },
  { "logistic", TEST_COMPLEX, CPU_JIT_LOGISTIC, one_logistic, 5, 8 },
  { "tanh", TEST_COMPLEX, CPU_JIT_TANH, one_tanh, 9, 8 },
  { "sin", TEST_COMPLEX, CPU_JIT_SIN, one_sin, 9.4L, 4 },
  { "cos", TEST_COMPLEX, CPU_JIT_COS, one_cos, 9.4L, 4 },
  { "tan", TEST_COMPLEX, CPU_JIT_TAN, one_tan, 9, 8 },
  { "sqrt", TEST_COMPLEX, CPU_JIT_SQRT, one_sqrt, 1023, 3 },
  { "rsqrt", TEST_COMPLEX, CPU_JIT_RSQRT, one_rsqrt, 1023, 5 },
  { "cbrt", TEST_COMPLEX, CPU_JIT_CBRT, one_cbrt, 1023, 4 },
  { "pow", TEST_COMPLEX, CPU_JIT_POW, one_pow, 1.5L, 30 },
  { "multiply", TEST_MULTIPLY, 0, multiply, 400, 2 },
  { "divide", TEST_DIVIDE, 0, divide, 1020, 3 },
  { "abs", TEST_ABS, 0, size_of, 1022, 2 },
};

static uint64_t random_bits(void)
{
  static uint64_t state = 7;
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Signed, in size from 2^-most to 2^most.
static long double random_number(long double most)
{
  long double exponent = most * (long double)(int64_t)random_bits() * 0x1p-63L;
  long double x = exp2l(exponent);
  return random_bits() & 1 ? x : -x;
}

#define N 8000

// The parts of N numbers as floats or doubles.
typedef struct numbers {
  void *part[2];
  bool wide;
} numbers;

static numbers new_numbers(bool wide)
{
  numbers s = { { calloc(N, 8), calloc(N, 8) }, wide };
  assert_true(s.part[0] && s.part[1]);
  return s;
}

static void free_numbers(numbers *s)
{
  free(s->part[0]);
  free(s->part[1]);
}

static void set(numbers *s, size_t i, int part, long double x)
{
  if (s->wide)
    ((double *)s->part[part])[i] = (double)x;
  else
    ((float *)s->part[part])[i] = (float)x;
}

static number get(const numbers *s, size_t i)
{
  if (s->wide)
    return make((long double)((double *)s->part[0])[i],
                (long double)((double *)s->part[1])[i]);
  return make((long double)((float *)s->part[0])[i],
              (long double)((float *)s->part[1])[i]);
}

static void run(const test_target *target, const function *f, unsigned lanes,
                const numbers *x, const numbers *y, numbers *out)
{
  test_kernel kernel = test_compile(target, f->kind, f->fn, x->wide, lanes);
  const void *a[] = { x->part[0], x->part[1] };
  const void *b[] = { y->part[0], y->part[1] };
  kernel.run(a, b, out->part, N);
  test_unload(&kernel);
}

static const test_target targets[] = { { "x86-64", false },
                                       { "x86-64-v3", true },
                                       { "x86-64-v4", true } };
static const unsigned widths[] = { 4, 0, 16 };

// |got - want| in units of the last place of |want|. Results out of the range
// are left to the table.
static double error_of(number got, number want, bool wide)
{
  long double size = cabsl(want);
  long double most = wide ? (long double)DBL_MAX : (long double)FLT_MAX;
  if (!(size < most / 2)) return 0;
  long double gap = cabsl(got - want);
  return isnan(gap) ? (double)INFINITY : test_ulps(size + gap, size, wide);
}

static int check(const function *f, bool wide)
{
  numbers x = new_numbers(wide), y = new_numbers(wide), out = new_numbers(wide);
  long double most = f->most;
  if (!wide && most > 9) most = most > 100 ? most / 8.1L : 6.4L;
  for (size_t i = 0; i < N; i++)
    for (int part = 0; part < 2; part++) {
      // half of them of about size 1
      set(&x, i, part, random_number(i & 1 ? most : 1.5L));
      set(&y, i, part, random_number(i & 2 ? most : 1.5L));
    }
  double bound = wide ? f->bound : f->kind == TEST_MULTIPLY ? 2 : 1;
  int wrong = 0;
  double worst = 0;
  for (int t = 0; t < 3; t++) {
    if (!test_target_runs(&targets[t])) continue;
    run(&targets[t], f, widths[t], &x, &y, &out);
    for (size_t i = 0; i < N; i++) {
      number z = get(&x, i), w = get(&y, i), got = get(&out, i);
      if (f->kind == TEST_ABS) got = creall(got);
      number want = f->right(z, w);
      double ulps = error_of(got, want, wide);
      if (ulps > worst) worst = ulps;
      if (ulps > bound && wrong++ == 0)
        print_message(
            "%s(%.17Lg %+.17Lgi, %.17Lg %+.17Lgi) = %.17Lg %+.17Lgi, "
            "not %.17Lg %+.17Lgi\n",
            f->name, creall(z), cimagl(z), creall(w), cimagl(w), creall(got),
            cimagl(got), creall(want), cimagl(want));
    }
  }
  print_message("%-8s complex<f%d>: %.3f ulp\n", f->name, wide ? 64 : 32,
                worst);
  free_numbers(&x);
  free_numbers(&y);
  free_numbers(&out);
  return wrong;
}

static void values(void **state)
{
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    wrong += check(&functions[i], false);
    wrong += check(&functions[i], true);
  }
  assert_int_equal(wrong, 0);
}

// Results at the ends of the range; what is NaN here may be anything.
typedef struct special {
  const char *name;
  double x[2], y[2], want[2];
} special;

#define PI 3.14159265358979324
#define INF (double)INFINITY
#define ANY (double)NAN

static const special specials[] = {
  { "exp", { -INF, INF }, { 0, 0 }, { 0, 0 } },
  { "exp", { INF, 0 }, { 0, 0 }, { INF, 0 } },
  { "exp", { 800, 1 }, { 0, 0 }, { INF, INF } },
  { "expm1", { 0, 0 }, { 0, 0 }, { 0, 0 } },
  { "expm1", { -INF, 1 }, { 0, 0 }, { -1, 0 } },
  { "log", { 0, 0 }, { 0, 0 }, { -INF, 0 } },
  { "log", { -1, 0 }, { 0, 0 }, { 0, PI } },
  { "log", { -1, -0.0 }, { 0, 0 }, { 0, -PI } },
  { "log", { -INF, 1 }, { 0, 0 }, { INF, PI } },
  { "log1p", { -1, 0 }, { 0, 0 }, { -INF, 0 } },
  { "sqrt", { -4, 0 }, { 0, 0 }, { 0, 2 } },
  { "sqrt", { -4, -0.0 }, { 0, 0 }, { 0, -2 } },
  { "sqrt", { 0, 0 }, { 0, 0 }, { 0, 0 } },
  { "sqrt", { 1, -INF }, { 0, 0 }, { INF, -INF } },
  { "sqrt", { -INF, 1 }, { 0, 0 }, { 0, INF } },
  { "sqrt", { INF, -1 }, { 0, 0 }, { INF, -0.0 } },
  { "rsqrt", { 0, 0 }, { 0, 0 }, { INF, ANY } },
  { "rsqrt", { INF, 1 }, { 0, 0 }, { 0, -0.0 } },
  { "rsqrt", { 4, 0 }, { 0, 0 }, { 0.5, -0.0 } },
  { "tanh", { INF, 1 }, { 0, 0 }, { 1, 0 } },
  { "tanh", { -400, 1 }, { 0, 0 }, { -1, 0 } },
  { "tan", { 1, INF }, { 0, 0 }, { 0, 1 } },
  { "sin", { 0, INF }, { 0, 0 }, { 0, INF } },
  { "cos", { 0, INF }, { 0, 0 }, { INF, -0.0 } },
  { "logistic", { -1000, 0 }, { 0, 0 }, { 0, ANY } },
  { "logistic", { 1000, 0 }, { 0, 0 }, { 1, ANY } },
  { "logistic", { 0, 0 }, { 0, 0 }, { 0.5, ANY } },
  { "pow", { 0, 0 }, { 2, 0 }, { 0, 0 } },
  { "pow", { 0, 0 }, { 0, 0 }, { 1, 0 } },
  { "pow", { 3, 0 }, { 0, 0 }, { 1, 0 } },
  { "divide", { 1, 0 }, { 0, 0 }, { INF, ANY } },
  { "divide", { -1, 2 }, { INF, 0 }, { -0.0, 0 } },
  { "divide", { INF, 0 }, { 1, 0 }, { INF, ANY } },
  { "divide", { 1e300, 1e300 }, { 1e300, 1e300 }, { 1, 0 } },
  { "divide", { 1e-300, 0 }, { 1e-300, 0 }, { 1, 0 } },
  { "abs", { 3, -4 }, { 0, 0 }, { 5, ANY } },
  { "abs", { INF, ANY }, { 0, 0 }, { INF, ANY } },
  { "abs", { 1e308, 0 }, { 0, 0 }, { 1e308, ANY } },
  { "abs", { 5e-324, 0 }, { 0, 0 }, { 5e-324, ANY } },
};

static void special_values(void **state)
{
  (void)state;
  numbers x = new_numbers(true), y = new_numbers(true), out = new_numbers(true);
  int wrong = 0;
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    const special *s = &specials[i];
    size_t f = 0;
    while (strcmp(functions[f].name, s->name)) f++;
    for (int part = 0; part < 2; part++) {
      set(&x, 0, part, (long double)s->x[part]);
      set(&y, 0, part, (long double)s->y[part]);
    }
    run(&targets[0], &functions[f], 2, &x, &y, &out);
    number got = get(&out, 0);
    long double parts[] = { creall(got), cimagl(got) };
    for (int part = 0; part < 2; part++)
      if (!isnan(s->want[part]) &&
          test_ulps(parts[part], (long double)s->want[part], true) > 2) {
        wrong++;
        print_message("%s(%g %+gi, %g %+gi) = %Lg %+Lgi, not %g %+gi\n",
                      s->name, s->x[0], s->x[1], s->y[0], s->y[1], parts[0],
                      parts[1], s->want[0], s->want[1]);
        break;
      }
  }
  free_numbers(&x);
  free_numbers(&y);
  free_numbers(&out);
  assert_int_equal(wrong, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(values),
                                      cmocka_unit_test(special_values) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
