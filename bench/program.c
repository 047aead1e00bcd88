// bench/program: what a plugin takes to compile and to run one program.
//
//   program FILE [--plugin=NAME] [--seconds=S]
//
// Prints the parser's speed (ours), the time to compile, to serialise and to
// read back, what the step computes and what it reads and writes at least, the
// first step, the median step and the peak of memory, and for comparison the
// sum of the magnitudes of each of the first results after one step. Arguments:
// text.h.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "calx/debug.h"
#include "measure.h"
#include "text.h"

#define USAGE                                    \
  "program FILE [--plugin=NAME] [--seconds=S]\n" \
  "  --plugin   a plugin's name or path; else what the environment says\n"

static void print_results(const bench_run *r)
{
  const cx_pjrt_signature *s = &r->program->signature;
  printf("magnitudes ");
  for (size_t i = 0; i < s->n_results && i < 400; i++) {
    if (cx_pjrt_dtype_of(s->results[i].type) != CALX_F32) continue;
    size_t n = bench_shape_elements(&s->results[i]);
    float *data = malloc((n + 1) * sizeof *data);
    bench_need(cx_pjrt_buffer_to_host(r->results[i], data, n * sizeof *data));
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += fabs((double)data[k]);
    free(data);
    if (i < 6 || i + 2 > s->n_results) printf(" %.6g", sum);
  }
  printf("\n");
}

static void serialise(const bench_run *r)
{
  // Of our engine in this process.
  printf("attention   %8lld kernels\n",
         (long long)calx_counter_value("CpuAttentionKernels"));
  const cx_pjrt_compile_options options = { .num_replicas = 1 };
  char *bytes = NULL;
  size_t size = 0;
  int64_t start = bench_now();
  calx_status *status =
      cx_pjrt_executable_serialize(r->executable, &bytes, &size);
  if (status == NULL) {
    double wrote = (double)(bench_now() - start) / 1e6;
    cx_pjrt_executable *again = NULL;
    start = bench_now();
    bench_need(cx_pjrt_executable_deserialize(r->client, bytes, size, &options,
                                              &r->program->signature, &again));
    printf("serialise   %8.2f ms  %zu bytes, read back in %.2f ms\n", wrote,
           size, (double)(bench_now() - start) / 1e6);
    cx_pjrt_executable_release(again);
  }
  calx_status_free(status);
  cx_free(bytes);
}

// What the step cannot do without: its operations, and its arguments and
// results in memory.
static void print_work(const bench_run *r)
{
  double flops = 0;
  cx_pjrt_executable_stats bytes;
  calx_status *status = cx_pjrt_executable_cost(r->executable, "flops", &flops);
  if (status == NULL) status = cx_pjrt_executable_memory(r->executable, &bytes);
  if (status == NULL && bytes.arguments >= 0 && bytes.outputs >= 0 &&
      bytes.aliased >= 0) {
    printf("work        %8.6g GFLOP  %.6g MB of arguments and results\n",
           flops / 1e9,
           (double)(bytes.arguments + bytes.outputs - bytes.aliased) / 1e6);
  }
  calx_status_free(status);
}

static void run(bench_run *r, double seconds)
{
  double ms = 0;
  bench_need(bench_run_step(r, &ms));
  printf("first step  %8.2f ms\n", ms);
  print_results(r);
  bench_run_feed(r);
  static bench_series series;
  const int64_t begin = bench_now();
  while ((double)(bench_now() - begin) < seconds * 1e9 || series.count < 3) {
    bench_need(bench_run_step(r, &ms));
    bench_add(&series, ms);
    bench_run_feed(r);
  }
  printf("step        %8.4f ms  best %.4f, of %zu\n", bench_median(&series),
         bench_quantile(&series, 0), series.count);
}

int main(int argc, char **argv)
{
  const char *options[] = { "plugin", "seconds", NULL };
  const char *file = NULL;
  bench_files(&argc, &argv, 1, "FILE is missing", USAGE, &file);
  bench_check_options(argc, argv, options, USAGE);
  const char *plugin = bench_string(argc, argv, "plugin", NULL);
  const double seconds = bench_option(argc, argv, "seconds", 3, 1e-3, 1e6);
  bench_text p;
  bench_text_read(file, &p);
  printf("parse       %8.2f ms  %.0f MB/s of %.2f MB\n", p.parse_ms,
         (double)p.size / 1e3 / p.parse_ms, (double)p.size / 1e6);
  cx_pjrt_plugin *opened = NULL;
  cx_pjrt_client *client = NULL;
  bench_need(cx_pjrt_plugin_open(plugin, &opened));
  bench_need(cx_pjrt_client_open(opened, NULL, &client));
  bench_run r;
  bench_need(bench_run_open(&p, client, &r));
  printf("compile     %8.2f ms\n", r.compile_ms);
  print_work(&r);
  serialise(&r);
  run(&r, seconds);
  printf("peak memory %8.0f MiB\n", bench_peak_mib());
  bench_run_close(&r);
  cx_pjrt_client_close(client);
  bench_text_free(&p);
  return 0;
}
