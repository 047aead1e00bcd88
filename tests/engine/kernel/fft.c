// Fourier transforms against their definition in long double, and damaged
// descriptions.
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "hlo/parse.h"
#include "hlo/verify.h"
#include "linalg_case.h"
#include "support/long.h"

typedef long double complex pair;

enum { FFT, IFFT, RFFT, IRFFT };

typedef struct transform {
  int how;
  bool wide;        // double
  size_t n_dims;    // 1 to 3
  int64_t dims[4];  // the batch, then the lengths; 1 for those without
} transform;

static int64_t half(int64_t n)
{
  return n == 0 ? 0 : n / 2 + 1;
}

static void type_text(const transform *t, bool result, char *out, size_t size)
{
  const bool real = result ? t->how == IRFFT : t->how == RFFT;
  const bool halved = result ? t->how == RFFT : t->how == IRFFT;
  const char *const names[2][2] = { { "complex<f32>", "complex<f64>" },
                                    { "f32", "f64" } };
  int at = snprintf(out, size, "tensor<");
  for (size_t i = 0; i <= t->n_dims; i++) {
    const int64_t n = halved && i == t->n_dims ? half(t->dims[i]) : t->dims[i];
    at += snprintf(out + at, size - (size_t)at, "%lldx", (long long)n);
  }
  snprintf(out + at, size - (size_t)at, "%s>", names[real][t->wide]);
}

static bool describe(const transform *t, cpu_kernel_desc *out)
{
  static const char *const how[] = { "FFT", "IFFT", "RFFT", "IRFFT" };
  char in[100], result[100], length[60] = "", text[600];
  type_text(t, false, in, sizeof in);
  type_text(t, true, result, sizeof result);
  for (size_t i = 1, at = 0; i <= t->n_dims; i++) {
    at += (size_t)snprintf(length + at, sizeof length - at, "%s%lld",
                           i > 1 ? ", " : "", (long long)t->dims[i]);
  }
  snprintf(text, sizeof text,
           "func.func @main(%%a: %s) -> %s {\n%%r = stablehlo.fft %%a, type = "
           "%s, length = [%s] : (%s) -> %s\nreturn %%r : %s\n}",
           in, result, how[t->how], length, in, result, result);
  cx_hlo_module *m = NULL;
  assert_null(cx_hlo_parse(text, strlen(text), "text", &m));
  assert_null(cx_hlo_verify(m));
  memset(out, 0, sizeof *out);
  bool ok = cpu_kernel_describe(cx_hlo_entry(m)->body.first->first, out);
  cx_hlo_module_free(m);
  return ok;
}

static double load(const transform *t, const void *from, int64_t i)
{
  return t->wide ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static void store(const transform *t, void *to, int64_t i, double v)
{
  if (t->wide) {
    ((double *)to)[i] = v;
  } else {
    ((float *)to)[i] = (float)v;
  }
}

// The definition, along one dimension of [outer][n][inner].
static void transform_dim(pair *z, int64_t outer, int64_t n, int64_t inner,
                          bool inverse)
{
  pair *line = malloc(sizeof *line * (size_t)(n + 1));
  pair *root = malloc(sizeof *root * (size_t)(n + 1));
  const long double turn = 2 * acosl(-1.0L) * (inverse ? 1 : -1);
  for (int64_t k = 0; k < n; k++) {
    const long double angle = turn * (long double)k / (long double)n;
    root[k] = cosl(angle) + sinl(angle) * (pair)I;
  }
  for (int64_t l = 0; l < outer * inner; l++) {
    pair *at = z + l / inner * n * inner + l % inner;
    for (int64_t k = 0; k < n; k++) {
      line[k] = 0;
      for (int64_t j = 0; j < n; j++) {
        line[k] += at[j * inner] * root[k * j % n];
      }
    }
    for (int64_t k = 0; k < n; k++) {
      at[k * inner] = inverse ? line[k] / (long double)n : line[k];
    }
  }
  free(line);
  free(root);
}

// Makes and runs the kernel; `out` and `in` have room for it.
static void run(const transform *t, cpu_threads *pool, const void *in,
                void *out)
{
  cpu_kernel_desc desc;
  assert_true(describe(t, &desc));
  cpu_kernel *k = NULL;
  assert_null(cpu_kernel_new(&desc, pool, true, &k));
  const size_t room = (cpu_kernel_scratch(k) / 64 + 1) * 64;
  void *scratch = aligned_alloc(64, room);
  memset(scratch, 0xff, room);  // NaN: nothing there may be read
  assert_null(kernel_run(k, pool, in, in, out, scratch));
  free(scratch);
  cpu_kernel_free(k);
}

// The input of the definition, complete; and what of it the kernel gets.
static void fill(const transform *t, pair *z, void *in, int64_t rows)
{
  const int64_t n = t->dims[t->n_dims];
  const bool real = t->how == RFFT;
  const int64_t have = t->how == IRFFT ? half(n) : n;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t k = 0; k < have; k++) {
      const double re = ((double)pick(2001) - 1000) / 1000;
      const double im = real ? 0 : ((double)pick(2001) - 1000) / 1000;
      const int64_t i = r * have + k;
      store(t, in, real ? i : 2 * i, re);
      if (!real) store(t, in, 2 * i + 1, im);
      z[r * n + k] = (long double)load(t, in, real ? i : 2 * i) +
                     (real ? 0 : (long double)load(t, in, 2 * i + 1)) * (pair)I;
    }
  }
}

static void complete(const transform *t, pair *z, int64_t rows)
{
  const int64_t n = t->dims[t->n_dims];
  for (int64_t r = 0; r < rows; r++) {
    pair *line = z + r * n;
    for (int64_t k = half(n); k < n; k++) line[k] = conjl(line[n - k]);
    line[0] = creall(line[0]);
    if (n % 2 == 0) line[n / 2] = creall(line[n / 2]);
  }
}

// The largest error, in parts of the root of the mean square of the result.
static double try_transform(const transform *t, cpu_threads *pool)
{
  const int64_t *d = t->dims, last = d[t->n_dims];
  const bool inverse = t->how == IFFT || t->how == IRFFT;
  int64_t rows = 1;
  for (size_t i = 0; i < t->n_dims; i++) rows *= d[i];
  const size_t room = (size_t)(rows * (last + 2) + 1);
  pair *z = calloc(room, sizeof *z);
  void *in = calloc(room, 16), *out = calloc(room, 16);
  fill(t, z, in, rows);
  // Of IRFFT the last dimension has half its numbers, in rows of `last`.
  int64_t outer = d[0], inner = rows / d[0] * last;
  for (size_t i = 1; i < t->n_dims; i++) {
    inner /= d[i];
    transform_dim(z, outer, d[i], inner, inverse);
    outer *= d[i];
  }
  if (t->how == IRFFT) complete(t, z, rows);
  transform_dim(z, rows, last, 1, inverse);
  run(t, pool, in, out);
  const int64_t keep = t->how == RFFT ? half(last) : last;
  double worst = 0, squares = 0;
  for (int64_t i = 0; i < rows * keep; i++) {
    const pair want = z[i / keep * last + i % keep];
    const double re = load(t, out, t->how == IRFFT ? i : 2 * i);
    const double im = t->how == IRFFT ? 0 : load(t, out, 2 * i + 1);
    const double error = hypot(re - (double)creall(want),
                               t->how == IRFFT ? 0 : im - (double)cimagl(want));
    if (!(error <= worst)) worst = error;
    squares +=
        (double)(creall(want) * creall(want) + cimagl(want) * cimagl(want));
  }
  free(z);
  free(in);
  free(out);
  return worst / (sqrt(squares / (double)(rows * keep)) + 1e-3);
}

static void check(const transform *t, cpu_threads *pool)
{
  const double error = try_transform(t, pool);
  if (error <= (t->wide ? 1e-14 : 4e-6)) return;
  fail_msg("how %d wide %d dims %lld: %lld %lld %lld: error %g", t->how,
           t->wide, (long long)t->dims[0], (long long)t->dims[1],
           (long long)t->dims[2], (long long)t->dims[3], error);
}

// Every length from 1 to 300: all mixtures of factors, and convolutions.
static void lengths(void **state)
{
  (void)state;
  cpu_threads *pool = NULL;
  assert_null(cpu_threads_new(2, &pool));
  for (int64_t n = 1; n <= 300; n++) {
    pick_seed((uint64_t)n);
    for (int how = FFT; how <= IRFFT; how++) {
      if (n > 64 && how != (int)(n % 4)) continue;
      check(&(transform){ how, n / 4 % 2, 1, { 1 + pick(3), n, 1, 1 } }, pool);
    }
  }
  cpu_threads_free(pool);
}

// Lines that are split, of full and of partly empty blocks; with a large prime
// factor; one, and more than a vector has lanes; whole on a thread, and shared.
static void long_lines(void **state)
{
  (void)state;
  static const int64_t n[] = { 512,  521,  666,  675,  1000, 1013,
                               1024, 1536, 2025, 2042, 3481, 4096 };
  cpu_threads *pool = NULL;
  assert_null(cpu_threads_new(3, &pool));
  const unsigned count = (unsigned)long_or(48, sanitized_or(12, 24));
  for (unsigned i = 0; i < count; i++) {
    pick_seed(300 + i);
    const int64_t lines = i % 12 < 7 && i < 24 ? 17 : 1 + i % 4;
    check(
        &(transform){
            (int)((i + i / 12) % 4), i / 2 % 2, 1, { lines, n[i % 12], 1, 1 } },
        pool);
  }
  cpu_threads_free(pool);
}

static void ranks(void **state)
{
  (void)state;
  for (int threads = 1; threads <= 3; threads++) {
    cpu_threads *pool = NULL;
    assert_null(cpu_threads_new(threads, &pool));
    for (unsigned i = 0; i < 60; i++) {
      pick_seed(900 + i);
      transform t = {
        (int)(i % 4), pick(2), 1 + pick(3), { 1 + pick(4), 1, 1, 1 }
      };
      for (size_t k = 1; k <= t.n_dims; k++) t.dims[k] = 1 + pick(17);
      check(&t, pool);
    }
    cpu_threads_free(pool);
  }
}

// Lines of no numbers and no lines at all; too long a line has no kernel.
static void limits(void **state)
{
  (void)state;
  cpu_threads *pool = NULL;
  assert_null(cpu_threads_new(2, &pool));
  double in[8] = { 0 }, out[8] = { 0 };
  for (int how = FFT; how <= IRFFT; how++) {
    run(&(transform){ how, true, 1, { 0, 5, 1, 1 } }, pool, in, out);
    run(&(transform){ how, true, 1, { 3, 0, 1, 1 } }, pool, in, out);
    run(&(transform){ how, true, 2, { 3, 0, 7, 1 } }, pool, in, out);
    run(&(transform){ how, true, 2, { 3, 7, 0, 1 } }, pool, in, out);
  }
  cpu_kernel_desc desc;
  assert_false(
      describe(&(transform){ FFT, true, 1, { 1, 1 << 25, 1, 1 } }, &desc));
  size_t made = 0, refused = 0;
  pick_seed(5);
  for (int i = 0; i < 2000; i++) {
    static const int64_t values[] = {
      0, 1, 2, 3, 4, 7, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 43
    };
    assert_true(
        describe(&(transform){ i % 4, true, 2, { 2, 6, 7, 1 } }, &desc));
    for (unsigned k = 1 + pick(2); k > 0; k--) {
      desc.words[2 + pick(7)] = values[pick(10)];
    }
    calx_status *status = NULL;
    bool taken = desc_run_zeros(&desc, pool, &status);
    assert_null(status);
    made += taken;
    refused += !taken;
  }
  assert_true(made > 200 && refused > 200);
  cpu_threads_free(pool);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(lengths),
                                      cmocka_unit_test(long_lines),
                                      cmocka_unit_test(ranks),
                                      cmocka_unit_test(limits) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
