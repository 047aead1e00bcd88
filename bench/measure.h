// bench/measure: what the benchmarks share: a clock, samples and their
// quantiles, peak memory, and the end on an error.
#ifndef CX_BENCH_MEASURE_H
#define CX_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/status.h"

int64_t bench_now(void);  // ns, monotonic, the same clock in every process

// The newest BENCH_SAMPLES of a series.
enum { BENCH_SAMPLES = 4096 };
typedef struct bench_series {
  double values[BENCH_SAMPLES];
  size_t count;  // ever
} bench_series;
void bench_add(bench_series *s, double value);
// q in [0, 1]; NaN of an empty series. Sorts the samples.
double bench_quantile(bench_series *s, double q);
double bench_median(bench_series *s);

double bench_peak_mib(void);  // of this process so far
double bench_cpu_ms(void);    // of all its threads so far

// Prints a failure and ends the program with 1.
void bench_need(calx_status *status);

// A number given as "--name=value", from `least` to `most`; otherwise
// `otherwise`. Ends the program with 2 over any other value.
double bench_option(int argc, char **argv, const char *name, double otherwise,
                    double least, double most);
// The same of whole numbers.
long bench_count(int argc, char **argv, const char *name, long otherwise,
                 long least, long most);
// What "--name=" has after it; of several the last.
const char *bench_string(int argc, char **argv, const char *name,
                         const char *otherwise);
// Ends the program over an argument that is none of these options (NULL ends),
// with 2, or over --help with 0.
void bench_check_options(int argc, char **argv, const char *const *names,
                         const char *usage);
// Takes the first n arguments, which are files, off the list. Ends the program
// where they are missing, with 2 and the sentence `missing`, or over --help
// with 0.
void bench_files(int *argc, char ***argv, int n, const char *missing,
                 const char *usage, const char **out);

#endif
