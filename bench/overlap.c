// bench/overlap: how much of the waiting in collectives a step hides.
//
//   overlap [--layers=N] [--width=W] [--rows=R] [--network=MB/s] [--seconds=S]
//
// Two devices of one thread in one process go forward and backward through a
// chain of products, whose gradients (25 MB each at the default width, and a
// small last one) are summed over the devices. Three forms of the step take
// turns: as it is, with CALX_COLLECTIVES=blocking, and without the sums.
//
// With --network each sum first sleeps as long as its bytes would take on such
// a connection: cpu_coll_run() is wrapped when this program is linked. Without,
// both devices' sums cost their own cores' time, so what overlap gains on a
// machine without idle cores is only the devices' waiting for each other.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/thread.h"
#include "lower/compile.h"
#include "measure.h"

#define USAGE                                                     \
  "overlap [--layers=N] [--width=W] [--rows=R] [--network=MB/s] " \
  "[--seconds=S]"

enum { DEVICES = 2, MOST_LAYERS = 32, INPUTS = 256 };

// ---- the network ----

static double network;  // bytes in a second; 0: none

calx_status *__real_cpu_coll_run(cpu_coll_launch *launch,
                                 const cx_hlo_module *m, const cx_hlo_op *op,
                                 const cpu_ref_tensor *operands,
                                 const cpu_ref_tensor *results);
calx_status *__wrap_cpu_coll_run(cpu_coll_launch *launch,
                                 const cx_hlo_module *m, const cx_hlo_op *op,
                                 const cpu_ref_tensor *operands,
                                 const cpu_ref_tensor *results);
calx_status *__wrap_cpu_coll_run(cpu_coll_launch *launch,
                                 const cx_hlo_module *m, const cx_hlo_op *op,
                                 const cpu_ref_tensor *operands,
                                 const cpu_ref_tensor *results)
{
  const double bytes = 4.0 * (double)cx_hlo_type_elements(&operands[0].type);
  if (network > 0) {
    const double s = bytes / network;
    const struct timespec t = { (time_t)s, (long)(fmod(s, 1) * 1e9) };
    nanosleep(&t, NULL);
  }
  return __real_cpu_coll_run(launch, m, op, operands, results);
}

// ---- the program ----

typedef struct chain {
  int layers, width, rows;
} chain;

static int inputs_of(const chain *c, int layer)
{
  return layer == 0 ? INPUTS : c->width;
}

static void put_type(cx_text *out, int rows, int columns)
{
  cx_text_format(out, "tensor<%dx%dxf32>", rows, columns);
}

// to = x · y, over dimension `a` of x and `b` of y.
static void put_product(cx_text *out, const char *names, const int *x,
                        const int *y, int a, int b)
{
  cx_text_format(out, "%s, contracting_dims = [%d] x [%d] : (", names, a, b);
  put_type(out, x[0], x[1]);
  cx_text_append(out, ", ");
  put_type(out, y[0], y[1]);
  cx_text_append(out, ") -> ");
  put_type(out, x[1 - a], y[1 - b]);
  cx_text_append(out, "\n");
}

static void put_chain(cx_text *out, const chain *c)
{
  char names[96];
  const int wide[2] = { c->rows, c->width };
  for (int i = 0; i < c->layers; i++) {
    const int x[2] = { c->rows, inputs_of(c, i) };
    const int w[2] = { inputs_of(c, i), c->width };
    snprintf(names, sizeof names, "%%h%d = stablehlo.dot_general %%h%d, %%w%d",
             i + 1, i, i);
    put_product(out, names, x, w, 1, 0);
  }
  for (int i = c->layers; i-- > 0;) {
    const char d = i == c->layers - 1 ? 'h' : 'd';
    const int x[2] = { c->rows, inputs_of(c, i) };
    const int w[2] = { inputs_of(c, i), c->width };
    snprintf(names, sizeof names, "%%g%d = stablehlo.dot_general %%h%d, %%%c%d",
             i, i, d, i + 1);
    put_product(out, names, x, wide, 0, 0);
    if (i == 0) break;
    snprintf(names, sizeof names, "%%d%d = stablehlo.dot_general %%%c%d, %%w%d",
             i, d, i + 1, i);
    put_product(out, names, wide, w, 1, 1);
  }
}

static void put_sums(cx_text *out, const chain *c)
{
  for (int i = c->layers; i-- > 0;) {
    cx_text_format(out,
                   "%%s%d = \"stablehlo.all_reduce\"(%%g%d) <{replica_groups "
                   "= dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n"
                   "^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n"
                   "%%z = stablehlo.add %%x, %%y : tensor<f32>\n"
                   "stablehlo.return %%z : tensor<f32> }) : (",
                   i, i);
    put_type(out, inputs_of(c, i), c->width);
    cx_text_append(out, ") -> ");
    put_type(out, inputs_of(c, i), c->width);
    cx_text_append(out, "\n");
  }
}

static void put_types(cx_text *out, const chain *c, const char *name)
{
  for (int i = 0; i < c->layers; i++) {
    if (i > 0) cx_text_append(out, ", ");
    if (name != NULL) cx_text_format(out, "%s%d: ", name, i);
    put_type(out, inputs_of(c, i), c->width);
  }
}

static void put_text(cx_text *out, const chain *c, bool sums)
{
  cx_text_append(out, "func.func @main(%h0: ");
  put_type(out, c->rows, INPUTS);
  cx_text_append(out, ", ");
  put_types(out, c, "%w");
  cx_text_append(out, ") -> (");
  put_types(out, c, NULL);
  cx_text_append(out, ") {\n");
  put_chain(out, c);
  if (sums) put_sums(out, c);
  cx_text_append(out, "return ");
  for (int i = 0; i < c->layers; i++) {
    cx_text_format(out, "%s%%%c%d", i > 0 ? ", " : "", sums ? 's' : 'g', i);
  }
  cx_text_append(out, " : ");
  put_types(out, c, NULL);
  cx_text_append(out, " }");
}

// ---- devices ----

typedef enum form { BESIDE, BLOCKING, ALONE, FORMS } form;

typedef struct device {
  struct bench *bench;
  uint32_t number;
  cpu_threads *pool;
  cpu_run_context *context;
  void *args[MOST_LAYERS + 1], *results[MOST_LAYERS];
  form form;
  calx_status *status;
} device;

typedef struct bench {
  cpu_run_program *programs[FORMS];
  cpu_coll *coll;
  uint64_t run;
  uint32_t device_group;
  device d[DEVICES];
} bench;

static cpu_run_program *compile(const chain *c, form f, cpu_threads *pool)
{
  setenv("CALX_COLLECTIVES", f == BLOCKING ? "blocking" : "", 1);
  cx_text text = { 0 };
  put_text(&text, c, f != ALONE);
  const cpu_lower_compile_options options = { .n_replicas =
                                                  f == ALONE ? 1 : DEVICES,
                                              .threads = pool };
  cpu_run_program *p = NULL;
  bench_need(cpu_lower_compile(cx_text_str(&text), text.size, &options, &p));
  cx_text_free(&text);
  return p;
}

static float *floats(const cx_hlo_type *type, uint64_t seed)
{
  const int64_t n = cx_hlo_type_elements(type);
  float *x = aligned_alloc(64, ((size_t)n * sizeof *x + 63) / 64 * 64);
  if (x == NULL) bench_need(cx_out_of_memory());
  const float scale = 2 / sqrtf((float)type->dims[0]);
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x[i] = ((float)(seed >> 40) / 16777216 - 0.5f) * scale;
  }
  return x;
}

static void device_new(bench *b, uint32_t i)
{
  const cpu_run_program_info *info =
      cpu_run_program_info_of(b->programs[BESIDE]);
  device *d = &b->d[i];
  *d = (device){ .bench = b, .number = i };
  bench_need(cpu_threads_new(1, &d->pool));
  bench_need(cpu_run_context_new(d->pool, &d->context));
  for (size_t k = 0; k < info->n_params; k++) {
    d->args[k] = floats(&info->params[k], k * DEVICES + i);
  }
  for (size_t k = 0; k < info->n_results; k++) {
    d->results[k] = floats(&info->results[k], 0);
  }
}

static const uint32_t numbers[DEVICES] = { 0, 1 };

static void run_device(void *user)
{
  device *d = user;
  cpu_coll_launch launch = { .coll = d->bench->coll,
                             .devices = numbers,
                             .device_group = d->bench->device_group,
                             .number = d->bench->run,
                             .replica = d->number,
                             .n_replicas = DEVICES,
                             .n_partitions = 1 };
  d->status = cpu_run_program_run(d->bench->programs[d->form], d->context,
                                  d->form == ALONE ? NULL : &launch, d->args,
                                  d->results);
  if (d->form != ALONE) cpu_coll_end(&launch, d->status);
}

// In ms, from the first's start to the last's end.
static double run(bench *b, form f)
{
  cx_thread threads[DEVICES];
  b->run++;
  const int64_t start = bench_now();
  for (int i = 0; i < DEVICES; i++) {
    b->d[i].form = f;
    bench_need(cx_thread_start(&threads[i], run_device, &b->d[i]));
  }
  for (int i = 0; i < DEVICES; i++) cx_thread_join(&threads[i]);
  const double ms = (double)(bench_now() - start) / 1e6;
  for (int i = 0; i < DEVICES; i++) bench_need(b->d[i].status);
  return ms;
}

static void print(const bench *b, const chain *c, double *ms)
{
  double bytes = 0;
  for (int i = 0; i < c->layers; i++) {
    bytes += 4.0 * inputs_of(c, i) * c->width;
  }
  const double sleeps = network > 0 ? bytes / network * 1e3 : 0;
  printf("computation alone  %8.1f ms\n", ms[ALONE]);
  printf("blocking           %8.1f ms  %d sums of %.1f MB in all\n",
         ms[BLOCKING], c->layers, bytes / 1e6);
  printf("overlapped         %8.1f ms  %zu sums beside other steps\n",
         ms[BESIDE],
         cpu_run_program_info_of(b->programs[BESIDE])->n_overlapped);
  printf("hidden             %8.1f %%   of what blocking adds\n",
         100 * (ms[BLOCKING] - ms[BESIDE]) / (ms[BLOCKING] - ms[ALONE]));
  if (network > 0) {
    printf("                   %8.1f %%   of %.1f ms on the network\n",
           100 * (ms[BLOCKING] - ms[BESIDE]) / sleeps, sleeps);
  }
  printf("peak               %8.0f MiB\n", bench_peak_mib());
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "layers",  "width",   "rows",
                                       "network", "seconds", NULL };
  bench_check_options(argc, argv, names, USAGE);
  const chain c = { (int)bench_count(argc, argv, "layers", 7, 1, MOST_LAYERS),
                    (int)bench_count(argc, argv, "width", 2560, 1, 1 << 20),
                    (int)bench_count(argc, argv, "rows", 256, 1, 1 << 20) };
  const double seconds = bench_option(argc, argv, "seconds", 30, 1e-3, 1e6);
  network = bench_option(argc, argv, "network", 0, 0, 1e9) * 1e6;
  static bench b;
  cpu_threads *pool = NULL;
  bench_need(cpu_threads_new(1, &pool));
  for (int f = 0; f < FORMS; f++) b.programs[f] = compile(&c, (form)f, pool);
  const cpu_coll_topology topology = { .fd = -1,
                                       .n_host = DEVICES,
                                       .n_own = DEVICES };
  bench_need(cpu_coll_new(&topology, &b.coll));
  bench_need(cpu_coll_device_group(b.coll, numbers, DEVICES, &b.device_group));
  for (uint32_t i = 0; i < DEVICES; i++) device_new(&b, i);
  static bench_series series[FORMS];
  for (int f = 0; f < FORMS; f++) run(&b, (form)f);
  const int64_t until = bench_now() + (int64_t)(seconds * 1e9);
  do {
    for (int f = 0; f < FORMS; f++) bench_add(&series[f], run(&b, (form)f));
  } while (bench_now() < until);
  double ms[FORMS];
  for (int f = 0; f < FORMS; f++) ms[f] = bench_median(&series[f]);
  print(&b, &c, ms);
  return 0;
}
