// bench/program: what a plugin takes to compile and to run one program.
//
//   program FILE [--plugin=NAME] [--seconds=S]
//
// Prints the parser's speed (ours), the time to compile, to serialise and to
// read back, the median step and the peak of memory, and for comparison the sum
// of the magnitudes of each of the first results after one step. Arguments are
// small random numbers of a fixed seed; results that take an argument's memory
// are the next step's arguments.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "calx/debug.h"
#include "hlo/parse.h"
#include "measure.h"
#include "pjrt/pjrt.h"

#define USAGE                                    \
  "program FILE [--plugin=NAME] [--seconds=S]\n" \
  "  --plugin   a plugin's name or path; else what the environment says\n"

typedef struct program {
  char *text;
  size_t size;
  cx_hlo_module *module;
  cx_pjrt_signature signature;
  cx_pjrt_shape *params, *results;
  bool *donated;
  int64_t *feeds;  // by parameter: the result that it takes; -1: none
} program;

static const char *text_option(int argc, char **argv, const char *name)
{
  size_t n = strlen(name);
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=') {
      return argv[i] + n + 1;
    }
  }
  return NULL;
}

static void shape_of(const cx_hlo_any *type, cx_pjrt_shape *out)
{
  if (!cx_pjrt_shape_make(cx_hlo_elem_dtype(type->tensor.elem),
                          type->tensor.dims, type->tensor.rank, out)) {
    fprintf(stderr, "program: a type that calx does not have\n");
    exit(1);
  }
}

static int64_t alias_of(const cx_hlo_func *f, size_t param)
{
  if (f->param_attrs == NULL) return -1;
  const cx_hlo_named_list *list = &f->param_attrs[param];
  for (size_t i = 0; i < list->n; i++) {
    if (cx_hlo_str_equal(list->items[i].name, "tf.aliasing_output")) {
      return list->items[i].attr->as.integer;
    }
  }
  return -1;
}

static void read_program(const char *path, program *p)
{
  bench_need(cx_file_read(path, 0, &p->text, &p->size));
  int64_t start = bench_now();
  bench_need(cx_hlo_parse(p->text, p->size, path, &p->module));
  double ms = (double)(bench_now() - start) / 1e6;
  printf("parse       %8.2f ms  %.0f MB/s of %.2f MB\n", ms,
         (double)p->size / 1e3 / ms, (double)p->size / 1e6);
  const cx_hlo_func *f = cx_hlo_entry(p->module);
  p->params = calloc(f->n_params + 1, sizeof *p->params);
  p->results = calloc(f->n_results + 1, sizeof *p->results);
  p->donated = calloc(f->n_params + 1, sizeof *p->donated);
  p->feeds = calloc(f->n_params + 1, sizeof *p->feeds);
  for (size_t i = 0; i < f->n_params; i++) {
    shape_of(&f->params[i], &p->params[i]);
    p->feeds[i] = alias_of(f, i);
    p->donated[i] = p->feeds[i] >= 0;
  }
  for (size_t i = 0; i < f->n_results; i++) {
    shape_of(&f->results[i], &p->results[i]);
  }
  p->signature = (cx_pjrt_signature){ p->params, p->donated, f->n_params,
                                      p->results, f->n_results };
}

// ---- data ----

static uint64_t state = 88172645463325252u;

static double uniform(void)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

static size_t count(const cx_pjrt_shape *s)
{
  size_t n = 1;
  for (size_t i = 0; i < s->rank; i++) n *= (size_t)s->dims[i];
  return n;
}

static cx_pjrt_buffer *random_buffer(cx_pjrt_client *c, const cx_pjrt_shape *s)
{
  calx_dtype d = cx_pjrt_dtype_of(s->type);
  size_t n = count(s), each = calx_dtype_size(d);
  char *data = calloc(n + 1, each);
  for (size_t i = 0; i < n; i++) {
    if (d == CALX_F32) {
      ((float *)(void *)data)[i] = (float)uniform() * 0.1f;
    } else if (d == CALX_I32) {
      ((int32_t *)(void *)data)[i] = (int32_t)(uniform() * 10);
    }
  }
  cx_pjrt_buffer *b = NULL;
  bench_need(
      cx_pjrt_buffer_from_host(c, 0, s, data, CX_PJRT_COPY, NULL, NULL, &b));
  free(data);
  return b;
}

static void print_results(const program *p, cx_pjrt_buffer **results)
{
  printf("magnitudes ");
  for (size_t i = 0; i < p->signature.n_results && i < 400; i++) {
    if (cx_pjrt_dtype_of(p->results[i].type) != CALX_F32) continue;
    size_t n = count(&p->results[i]);
    float *data = malloc((n + 1) * sizeof *data);
    bench_need(cx_pjrt_buffer_to_host(results[i], data, n * sizeof *data));
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += fabs((double)data[k]);
    free(data);
    if (i < 6 || i + 2 > p->signature.n_results) printf(" %.6g", sum);
  }
  printf("\n");
}

// ---- running ----

static void step(const program *p, cx_pjrt_executable *e, cx_pjrt_buffer **args,
                 cx_pjrt_buffer **results)
{
  bench_need(cx_pjrt_execute(e, 0, args, p->signature.n_params, results, NULL));
}

static void feed(const program *p, cx_pjrt_buffer **args,
                 cx_pjrt_buffer **results)
{
  for (size_t i = 0; i < p->signature.n_params; i++) {
    if (p->feeds[i] < 0) continue;
    cx_pjrt_buffer_release(args[i]);
    args[i] = results[p->feeds[i]];
    results[p->feeds[i]] = NULL;
  }
  for (size_t i = 0; i < p->signature.n_results; i++) {
    cx_pjrt_buffer_release(results[i]);
  }
}

static void run(const program *p, cx_pjrt_client *c, cx_pjrt_executable *e,
                double seconds)
{
  size_t n = p->signature.n_params, n_results = p->signature.n_results;
  cx_pjrt_buffer **args = calloc(n + 1, sizeof(cx_pjrt_buffer *));
  cx_pjrt_buffer **results = calloc(n_results + 1, sizeof(cx_pjrt_buffer *));
  for (size_t i = 0; i < n; i++) args[i] = random_buffer(c, &p->params[i]);
  int64_t begin = bench_now();
  step(p, e, args, results);
  for (size_t i = 0; i < n_results; i++) {
    bench_need(cx_pjrt_buffer_await(results[i]));
  }
  printf("first step  %8.2f ms\n", (double)(bench_now() - begin) / 1e6);
  print_results(p, results);
  feed(p, args, results);
  static bench_series series;
  begin = bench_now();
  while ((double)(bench_now() - begin) < seconds * 1e9 || series.count < 3) {
    int64_t start = bench_now();
    step(p, e, args, results);
    for (size_t i = 0; i < n_results; i++) {
      bench_need(cx_pjrt_buffer_await(results[i]));
    }
    bench_add(&series, (double)(bench_now() - start) / 1e6);
    feed(p, args, results);
  }
  printf("step        %8.4f ms  best %.4f, of %zu\n", bench_median(&series),
         bench_quantile(&series, 0), series.count);
  for (size_t i = 0; i < n; i++) cx_pjrt_buffer_release(args[i]);
  free(args);
  free(results);
}

static cx_pjrt_executable *compile(const program *p, cx_pjrt_client *c)
{
  cx_pjrt_compile_options options = { .num_replicas = 1 };
  cx_pjrt_executable *e = NULL, *again = NULL;
  int64_t start = bench_now();
  bench_need(cx_pjrt_compile(c, p->text, p->size, &options, &p->signature, &e));
  printf("compile     %8.2f ms\n", (double)(bench_now() - start) / 1e6);
  // Of our engine in this process.
  printf("attention   %8lld kernels\n",
         (long long)calx_counter_value("CpuAttentionKernels"));
  char *bytes = NULL;
  size_t size = 0;
  start = bench_now();
  calx_status *status = cx_pjrt_executable_serialize(e, &bytes, &size);
  if (status == NULL) {
    double wrote = (double)(bench_now() - start) / 1e6;
    start = bench_now();
    bench_need(cx_pjrt_executable_deserialize(c, bytes, size, &options,
                                              &p->signature, &again));
    printf("serialise   %8.2f ms  %zu bytes, read back in %.2f ms\n", wrote,
           size, (double)(bench_now() - start) / 1e6);
    cx_pjrt_executable_release(again);
  }
  calx_status_free(status);
  cx_free(bytes);
  return e;
}

int main(int argc, char **argv)
{
  if (argc < 2 || argv[1][0] == '-') {
    const bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (!help) fprintf(stderr, "%s: FILE is missing\n", argv[0]);
    fputs("usage: " USAGE, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  const char *options[] = { "plugin", "seconds", NULL };
  const char *file = argv[1];
  argv[1] = argv[0];
  bench_check_options(argc - 1, argv + 1, options, USAGE);
  const char *plugin = text_option(argc, argv, "--plugin");
  const double seconds =
      bench_option(argc - 1, argv + 1, "seconds", 3, 1e-3, 1e6);
  if (plugin != NULL) setenv("CALX_PLUGIN", plugin, 1);
  program p = { 0 };
  read_program(file, &p);
  cx_pjrt_plugin *opened = NULL;
  cx_pjrt_client *client = NULL;
  bench_need(cx_pjrt_plugin_open(NULL, &opened));
  bench_need(cx_pjrt_client_open(opened, NULL, &client));
  cx_pjrt_executable *e = compile(&p, client);
  run(&p, client, e, seconds);
  printf("peak memory %8.0f MiB\n", bench_peak_mib());
  cx_pjrt_executable_release(e);
  cx_pjrt_client_close(client);
  cx_hlo_module_free(p.module);
  cx_free(p.text);
  return 0;
}
