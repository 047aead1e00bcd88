// bench/versus: one program on two plugins, in turn.
//
//   versus FILE [--plugin=NAME] [--other=NAME] [--rounds=N] [--ms=T]
//
// Prints one line: the median step of each, of N rounds (7) in which each runs
// for T ms (4) or three steps, the ratio (over 1: the first is faster), the
// time to compile on each, and how far apart the results of the first step are:
// the largest difference of an element over the largest magnitude in its
// result, NaN where only one has a NaN or an infinity; of integers and booleans
// the share of elements that differ.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo/number.h"
#include "measure.h"
#include "text.h"

#define USAGE \
  "versus FILE [--plugin=NAME] [--other=NAME] [--rounds=N] [--ms=T]\n"

enum { N_SIDES = 2 };

typedef struct side {
  bench_run run;
  bench_series rounds;
} side;

// ---- values ----

static char *read_result(const bench_run *r, size_t i)
{
  const cx_pjrt_shape *s = &r->program->results[i];
  const size_t bytes =
      bench_shape_elements(s) * calx_dtype_size(cx_pjrt_dtype_of(s->type));
  char *data = malloc(bytes + 1);
  if (data == NULL) abort();
  bench_need(cx_pjrt_buffer_to_host(r->results[i], data, bytes));
  return data;
}

static double float_distance(cx_hlo_elem e, size_t n, const char *a,
                             const char *b)
{
  const size_t each = cx_hlo_elem_bytes(e);
  double largest = 0, apart = 0;
  for (size_t i = 0; i < n; i++) {
    const double x = cx_hlo_load_real(e, a + i * each);
    const double y = cx_hlo_load_real(e, b + i * each);
    if (isfinite(x) != isfinite(y) || isnan(x) != isnan(y)) return (double)NAN;
    if (!isfinite(x)) continue;
    largest = fmax(largest, fabs(y));
    apart = fmax(apart, fabs(x - y));
  }
  return apart == 0 ? 0 : apart / fmax(largest, 1e-30);
}

static double distance(const bench_run *x, const bench_run *y, size_t i)
{
  const cx_pjrt_shape *s = &x->program->results[i];
  calx_dtype d = cx_pjrt_dtype_of(s->type);
  size_t n = bench_shape_elements(s);
  char *a = read_result(x, i), *b = read_result(y, i);
  double apart = 0;
  if (d == CALX_C64) {
    n *= 2;
    d = CALX_F32;
  }
  if (d >= CALX_BF16) {
    apart = float_distance(cx_hlo_elem_of(d), n, a, b);
  } else {
    const size_t each = calx_dtype_size(d);
    size_t differ = 0;
    for (size_t k = 0; k < n; k++) {
      differ += memcmp(a + k * each, b + k * each, each) != 0;
    }
    apart = n == 0 ? 0 : (double)differ / (double)n;
  }
  free(a);
  free(b);
  return apart;
}

static double first_step(side *sides)
{
  double ms = 0, apart = 0;
  for (int k = 0; k < N_SIDES; k++)
    bench_need(bench_run_step(&sides[k].run, &ms));
  for (size_t i = 0; i < sides[0].run.program->signature.n_results; i++) {
    const double d = distance(&sides[0].run, &sides[1].run, i);
    if (isnan(d) || d > apart) apart = d;
    if (isnan(d)) break;
  }
  for (int k = 0; k < N_SIDES; k++) bench_run_feed(&sides[k].run);
  return apart;
}

// ---- time ----

static void one_round(side *s, double length)
{
  // The other's idle threads may still wait actively.
  const struct timespec pause = { .tv_nsec = 2000000 };
  nanosleep(&pause, NULL);
  static bench_series steps;
  steps.count = 0;
  double spent = 0, ms = 0;
  while (spent < length || steps.count < 3) {
    bench_need(bench_run_step(&s->run, &ms));
    bench_run_feed(&s->run);
    bench_add(&steps, ms);
    spent += ms;
  }
  bench_add(&s->rounds, bench_median(&steps));
}

static void report(side *sides, double apart, const char *file)
{
  const double ours = bench_median(&sides[0].rounds);
  const double theirs = bench_median(&sides[1].rounds);
  printf(
      "ms=%.5f other_ms=%.5f ratio=%.3f compile_ms=%.1f "
      "other_compile_ms=%.1f apart=%.2g file=%s\n",
      ours, theirs, theirs / ours, sides[0].run.compile_ms,
      sides[1].run.compile_ms, apart, file);
}

int main(int argc, char **argv)
{
  const char *options[] = { "plugin", "other", "rounds", "ms", NULL };
  const char *file = NULL;
  bench_files(&argc, &argv, 1, "FILE is missing", USAGE, &file);
  bench_check_options(argc, argv, options, USAGE);
  const char *names[N_SIDES] = {
    bench_string(argc, argv, "plugin", "calx"),
    bench_string(argc, argv, "other", "xla-cpu"),
  };
  const long rounds = bench_count(argc, argv, "rounds", 7, 1, 1000);
  const double length = bench_option(argc, argv, "ms", 4, 0, 1e6);
  bench_text p;
  bench_text_read(file, &p);
  static side sides[N_SIDES];
  cx_pjrt_client *clients[N_SIDES] = { NULL };
  for (int k = 0; k < N_SIDES; k++) {
    cx_pjrt_plugin *opened = NULL;
    bench_need(cx_pjrt_plugin_open(names[k], &opened));
    bench_need(cx_pjrt_client_open(opened, NULL, &clients[k]));
    bench_need(bench_run_open(&p, clients[k], &sides[k].run));
  }
  const double apart = first_step(sides);
  for (long i = 0; i < rounds; i++) {
    for (int k = 0; k < N_SIDES; k++) one_round(&sides[k], length);
  }
  report(sides, apart, file);
  for (int k = 0; k < N_SIDES; k++) {
    bench_run_close(&sides[k].run);
    cx_pjrt_client_close(clients[k]);
  }
  bench_text_free(&p);
  return 0;
}
