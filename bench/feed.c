// bench/feed: steps of one program on values from a file.
//
//   feed FILE ARGUMENTS RESULTS [--plugin=NAME] [--steps=N]
//
// ARGUMENTS has the arguments' bytes, one after the other, dense. RESULTS gets
// the results of the last of N steps (1) in the same form. Results that take an
// argument's memory are the next step's argument. Prints the last result of
// each step where that is one f32, as a training step's loss.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "measure.h"
#include "text.h"

#define USAGE "feed FILE ARGUMENTS RESULTS [--plugin=NAME] [--steps=N]\n"

static size_t bytes_of(const cx_pjrt_shape *s)
{
  return bench_shape_elements(s) * calx_dtype_size(cx_pjrt_dtype_of(s->type));
}

static void read_arguments(bench_run *r, const char *path)
{
  const cx_pjrt_signature *s = &r->program->signature;
  char *bytes = NULL;
  size_t size = 0, at = 0;
  bench_need(cx_file_read(path, 0, &bytes, &size));
  for (size_t i = 0; i < s->n_params; i++) {
    const size_t n = bytes_of(&s->params[i]);
    if (n > size - at) {
      fprintf(stderr, "feed: %s ends in argument %zu\n", path, i);
      exit(1);
    }
    cx_pjrt_buffer_release(r->args[i]);
    r->args[i] = NULL;
    bench_need(cx_pjrt_buffer_from_host(r->client, 0, &s->params[i], bytes + at,
                                        CX_PJRT_COPY, NULL, NULL, &r->args[i]));
    at += n;
  }
  cx_free(bytes);
}

static void print_last(const bench_run *r)
{
  const cx_pjrt_signature *s = &r->program->signature;
  const size_t last = s->n_results - 1;
  float value = 0;
  if (cx_pjrt_dtype_of(s->results[last].type) != CALX_F32 ||
      bench_shape_elements(&s->results[last]) != 1) {
    return;
  }
  bench_need(cx_pjrt_buffer_to_host(r->results[last], &value, sizeof value));
  printf("%.9g\n", (double)value);
}

static void write_results(const bench_run *r, const char *path)
{
  const cx_pjrt_signature *s = &r->program->signature;
  FILE *out = fopen(path, "wb");
  bool written = out != NULL;
  for (size_t i = 0; i < s->n_results && written; i++) {
    const size_t n = bytes_of(&s->results[i]);
    char *bytes = malloc(n + 1);
    if (bytes == NULL) abort();
    bench_need(cx_pjrt_buffer_to_host(r->results[i], bytes, n));
    written = fwrite(bytes, 1, n, out) == n;
    free(bytes);
  }
  if (out == NULL || fclose(out) != 0 || !written) {
    fprintf(stderr, "feed: %s cannot be written\n", path);
    exit(1);
  }
}

int main(int argc, char **argv)
{
  const char *options[] = { "plugin", "steps", NULL };
  const char *files[3];
  bench_files(&argc, &argv, 3, "three files are wanted", USAGE, files);
  bench_check_options(argc, argv, options, USAGE);
  const char *plugin = bench_string(argc, argv, "plugin", "calx");
  const long steps = bench_count(argc, argv, "steps", 1, 1, 1000000);
  bench_text p;
  bench_text_read(files[0], &p);
  cx_pjrt_plugin *opened = NULL;
  cx_pjrt_client *client = NULL;
  bench_need(cx_pjrt_plugin_open(plugin, &opened));
  bench_need(cx_pjrt_client_open(opened, NULL, &client));
  bench_run r;
  bench_need(bench_run_open(&p, client, &r));
  read_arguments(&r, files[1]);
  double ms = 0;
  for (long i = 0; i < steps; i++) {
    bench_need(bench_run_step(&r, &ms));
    print_last(&r);
    if (i + 1 < steps) bench_run_feed(&r);
  }
  write_results(&r, files[2]);
  bench_run_close(&r);
  cx_pjrt_client_close(client);
  bench_text_free(&p);
  return 0;
}
