// bench/measure: see measure.h.
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/options.h"

int64_t bench_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void bench_add(bench_series *s, double value)
{
  s->values[s->count++ % BENCH_SAMPLES] = value;
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_quantile(bench_series *s, double q)
{
  size_t n = s->count < BENCH_SAMPLES ? s->count : BENCH_SAMPLES;
  if (n == 0) return (double)NAN;
  qsort(s->values, n, sizeof *s->values, by_value);
  size_t at = (size_t)(q * (double)n);
  return s->values[at < n ? at : n - 1];
}

double bench_median(bench_series *s)
{
  return bench_quantile(s, 0.5);
}

double bench_peak_mib(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss / 1024;
}

double bench_cpu_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void bench_need(calx_status *status)
{
  if (status == NULL) return;
  calx_status_print(stderr, status);
  exit(1);
}

// The value of "--name=value"; NULL: not that option.
static const char *value_of(const char *argument, const char *name)
{
  size_t n = strlen(name);
  if (strncmp(argument, "--", 2) != 0 || strncmp(argument + 2, name, n) != 0) {
    return NULL;
  }
  return argument[2 + n] == '=' ? argument + 3 + n : NULL;
}

const char *bench_string(int argc, char **argv, const char *name,
                         const char *otherwise)
{
  const char *found = otherwise;
  for (int i = 1; i < argc; i++) {
    const char *text = value_of(argv[i], name);
    if (text != NULL) found = text;
  }
  return found;
}

double bench_option(int argc, char **argv, const char *name, double otherwise,
                    double least, double most)
{
  const char *text = bench_string(argc, argv, name, NULL);
  if (text == NULL) return otherwise;
  char *end;
  double value = strtod(text, &end);
  if (end != text && *end == '\0' && value >= least && value <= most) {
    return value;
  }
  fprintf(stderr, "%s: --%s wants a number from %g to %g, found '%s'\n",
          argv[0], name, least, most, text);
  exit(2);
}

long bench_count(int argc, char **argv, const char *name, long otherwise,
                 long least, long most)
{
  const char *text = bench_string(argc, argv, name, NULL);
  int64_t value = otherwise;
  if (text == NULL || cx_read_int(text, least, most, &value)) {
    return (long)value;
  }
  fprintf(stderr, "%s: --%s wants a whole number from %ld to %ld, found '%s'\n",
          argv[0], name, least, most, text);
  exit(2);
}

void bench_check_options(int argc, char **argv, const char *const *names,
                         const char *usage)
{
  for (int i = 1; i < argc; i++) {
    size_t k = 0;
    while (names[k] != NULL && value_of(argv[i], names[k]) == NULL) k++;
    if (names[k] != NULL) continue;
    bool help = strcmp(argv[i], "--help") == 0;
    if (!help) {
      fprintf(stderr, "%s: there is no option '%s'\n", argv[0], argv[i]);
    }
    fprintf(help ? stdout : stderr, "usage: %s\n", usage);
    exit(help ? 0 : 2);
  }
}

void bench_files(int *argc, char ***argv, int n, const char *missing,
                 const char *usage, const char **out)
{
  char **from = *argv;
  if (*argc <= n || from[1][0] == '-') {
    const bool help = *argc == 2 && strcmp(from[1], "--help") == 0;
    if (!help) fprintf(stderr, "%s: %s\n", from[0], missing);
    fprintf(help ? stdout : stderr, "usage: %s", usage);
    exit(help ? 0 : 2);
  }
  for (int i = 0; i < n; i++) out[i] = from[i + 1];
  from[n] = from[0];
  *argc -= n;
  *argv += n;
}
