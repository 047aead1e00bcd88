// bench/trace: what recording costs, and what a cached sync costs outside of
// the plugin.
//
//   trace [--engine=1|2] [--samples=N]
//
// 1: the tests' fake plugin, which executes at once and without threads of its
// own; 2: the plugin that the environment chooses. Without it both, each in a
// process of its own. The time inside the plugin is taken off by timing each of
// its functions (timed.h), so both columns "outside" mean the same; they differ
// by what a plugin's threads and caches do to ours. Medians.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lazy/internal.h"
#include "measure.h"
#include "step.h"
#include "timed.h"

static double timing_cost;  // of one call into the plugin, ns
static long wanted_samples;

// ---- spans ------------------------------------------------------------------

typedef struct span {
  int64_t start;
  bench_inside inside;
} span;

static span span_begin(void)
{
  bench_inside inside = bench_inside_now();
  return (span){ bench_now(), inside };
}

// Microseconds from the span's start, without the plugin's share.
static double outside_us(span s, int64_t end, bench_inside now)
{
  double calls = (double)(now.calls - s.inside.calls);
  double ns = (double)(end - s.start - (now.ns - s.inside.ns));
  return (ns - calls * timing_cost) / 1e3;
}

// Adds microseconds: all, and without the plugin's share.
static void span_end(span s, bench_series *all, bench_series *outside)
{
  int64_t end = bench_now();
  bench_add(outside, outside_us(s, end, bench_inside_now()));
  if (all != NULL) bench_add(all, (double)(end - s.start) / 1e3);
}

// A sync, and in `before` its outside share up to the launch: what comes after
// runs beside the program.
static void time_sync(calx_tensor *t, bench_series *all, bench_series *outside,
                      bench_series *before)
{
  span s = span_begin();
  calx_sync(t);
  span_end(s, all, outside);
  bench_inside inside;
  int64_t launch = bench_launched_at(&inside);
  bench_add(before, outside_us(s, launch, inside));
}

static long samples_for(long ops)
{
  long n = 400000 / (ops + 100);
  if (n > 1000) n = 1000;
  if (n < 30) n = 30;
  return wanted_samples > 0 ? wanted_samples : n;
}

// ---- chains -----------------------------------------------------------------

typedef enum kind { ADD, MUL_NUMBER, RELU, MM, KINDS } kind;
static const char *const kind_names[] = { "add", "mul by a number", "relu",
                                          "mm" };

static calx_tensor *chain(kind k, calx_tensor *x, calx_tensor *y, long n)
{
  calx_tensor *t = x;
  switch (k) {
    case ADD:
      for (long i = 0; i < n; i++) t = calx_add(t, y);
      break;
    case MUL_NUMBER:
      for (long i = 0; i < n; i++) t = calx_mul(t, 0.999);
      break;
    case RELU:
      for (long i = 0; i < n; i++) t = calx_relu(t);
      break;
    default:
      for (long i = 0; i < n; i++) t = calx_mm(t, y);
      break;
  }
  return t;
}

// 8x8, on the device, kept.
static calx_tensor *square(bool grad)
{
  float v[64];
  for (int i = 0; i < 64; i++) v[i] = (float)i / 64;
  calx_tensor *t = calx_tensor_from(v, CALX_F32, CALX_DIMS(8, 8));
  calx_take(t);
  if (grad) calx_requires_grad(t, true);
  return t;
}

// ns per op: recording it, and giving its handle and node back with the scope.
static void time_recording(kind k, long n, bool grad, double out[2])
{
  static bench_series record, release;
  record.count = release.count = 0;
  calx_tensor *x = square(grad), *y = square(grad);
  for (long i = 0; i < samples_for(n); i++) {
    calx_scope *scope = calx_scope_begin();
    span s = span_begin();
    chain(k, x, y, n);
    span_end(s, NULL, &record);
    s = span_begin();
    bench_need(calx_scope_end(scope));
    span_end(s, NULL, &release);
    calx_sync(NULL);  // nothing is pending; begins the count of ops anew
  }
  calx_release(x);
  calx_release(y);
  out[0] = bench_median(&record) * 1e3 / (double)n;
  out[1] = bench_median(&release) * 1e3 / (double)n;
}

static void print_recording(void)
{
  static const long lengths[] = { 10, 100, 1000 };
  printf("recording, ns per op: record + release (8x8 f32)\n%-18s", "chain of");
  for (int i = 0; i < 3; i++) printf("%14ld", lengths[i]);
  printf("%14ld with grad: ", lengths[0]);
  printf("%ld, %ld\n", lengths[1], lengths[2]);
  for (int k = 0; k < KINDS; k++) {
    printf("%-18s", kind_names[k]);
    for (int i = 0; i < 6; i++) {
      double ns[2];
      time_recording((kind)k, lengths[i % 3], i >= 3, ns);
      printf("   %5.0f + %3.0f", ns[0], ns[1]);
    }
    printf("\n");
  }
}

// ---- cached syncs -----------------------------------------------------------

static void print_sync(long n)
{
  static bench_series all, outside, before, end;
  calx_tensor *x = square(false), *y = square(false);
  for (long i = -3; i < samples_for(n); i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *t = chain(ADD, x, y, n);
    if (i <= 0) all.count = outside.count = before.count = end.count = 0;
    time_sync(t, &all, &outside, &before);
    bench_need(calx_device_wait(NULL));
    span s = span_begin();
    bench_need(calx_scope_end(scope));
    span_end(s, NULL, &end);
  }
  calx_release(x);
  calx_release(y);
  printf("%-10ld %10.1f %10.1f %10.1f %10.1f %12.1f\n", n, bench_median(&all),
         bench_median(&outside), bench_median(&before),
         bench_median(&outside) * 1e3 / (double)n, bench_median(&end));
}

static void print_syncs(void)
{
  static const long lengths[] = { 1, 10, 100, 1000, 4000 };
  printf(
      "\ncached sync of a chain of adds, us; to launch: the part of outside "
      "that the program waits for\n%-10s %10s %10s %10s %10s %12s\n",
      "adds", "sync", "outside", "to launch", "ns/node", "scope's end");
  for (int i = 0; i < 5; i++) print_sync(lengths[i]);
}

// ---- the MNIST step ---------------------------------------------------------

enum { FORWARD, BACKWARD, OPTIMIZER, SYNC, END, PARTS };

typedef struct part {
  bench_series all, outside;
  int64_t ops;
} part;

static void time_step(bench_step *s, part *parts, bench_series *to_launch)
{
  calx_scope *scope = calx_scope_begin();
  int64_t before = cx_lazy_self.recorded;
  span at = span_begin();
  calx_tensor *loss = bench_step_forward(s);
  span_end(at, &parts[FORWARD].all, &parts[FORWARD].outside);
  parts[FORWARD].ops = cx_lazy_self.recorded - before;
  before = cx_lazy_self.recorded;
  at = span_begin();
  calx_backward(loss);
  span_end(at, &parts[BACKWARD].all, &parts[BACKWARD].outside);
  parts[BACKWARD].ops = cx_lazy_self.recorded - before;
  before = cx_lazy_self.recorded;
  at = span_begin();
  calx_optimizer_step(s->opt);
  span_end(at, &parts[OPTIMIZER].all, &parts[OPTIMIZER].outside);
  parts[OPTIMIZER].ops = cx_lazy_self.recorded - before;
  time_sync(loss, &parts[SYNC].all, &parts[SYNC].outside, to_launch);
  bench_need(calx_device_wait(NULL));
  at = span_begin();
  bench_need(calx_scope_end(scope));
  span_end(at, &parts[END].all, &parts[END].outside);
}

static void print_step(void)
{
  static const char *const names[] = { "forward", "backward", "optimiser",
                                       "sync", "scope's end" };
  static part parts[PARTS];
  static bench_series to_launch;
  bench_step s;
  bench_step_init(&s, 8, true);
  long n = wanted_samples > 0 ? wanted_samples : 500;
  for (long i = -5; i < n; i++) {
    time_step(&s, parts, &to_launch);
    for (int k = 0; i == -1 && k < PARTS; k++) {
      parts[k].all.count = parts[k].outside.count = to_launch.count = 0;
    }
  }
  calx_metric_data nodes;
  calx_metric_value("TensorsGraphSize", &nodes);
  printf(
      "\nMNIST step, us (batch 8; %.0f nodes in its program)\n"
      "%-12s %8s %10s %10s %10s\n",
      nodes.median, "", "ops", "all", "outside", "ns/op");
  double sum = 0;
  for (int k = 0; k < PARTS; k++) {
    double outside = bench_median(&parts[k].outside);
    sum += outside;
    printf("%-12s %8lld %10.1f %10.1f", names[k], (long long)parts[k].ops,
           bench_median(&parts[k].all), outside);
    if (parts[k].ops == 0) {
      printf("\n");
      continue;
    }
    printf(" %10.0f\n", outside * 1e3 / (double)parts[k].ops);
  }
  printf("%-12s %8s %10s %10.1f\n", "together", "", "", sum);
  printf("of the sync, to launch %19.1f\n", bench_median(&to_launch));
  bench_step_free(&s);
}

// ---- an exported model ------------------------------------------------------

static calx_tensor *forward(void *self, calx_tensor *x)
{
  calx_module *const *m = self;
  return chain(ADD, x, calx_module_find(*m, "w"), 10);
}

// A chain of 10 adds, written to files and loaded again.
static calx_exported *export_chain(void)
{
  char folder[] = "/tmp/calx_bench_XXXXXX", path[64];
  static const char *const names[] = { "manifest.json", "model.mlir",
                                       "weights.safetensors", "" };
  if (mkdtemp(folder) == NULL) perror(folder);
  calx_module *m = calx_module_new("Chain", forward, &m);
  calx_tensor *x = square(false);
  calx_module_param(m, "w", x);
  calx_module_train(m, false);
  bench_need(calx_export(m, &x, 1, folder));
  calx_exported *e;
  bench_need(calx_exported_load(folder, &e));
  calx_module_free(m);
  calx_release(x);
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    remove(path);
  }
  return e;
}

static void print_exported(void)
{
  static bench_series all, outside, before;
  calx_exported *e = export_chain();
  calx_tensor *x = square(false);
  for (long i = -20; i < samples_for(10); i++) {
    calx_scope *scope = calx_scope_begin();
    if (i <= 0) all.count = outside.count = before.count = 0;
    span s = span_begin();
    calx_tensor *y = calx_exported_forward(e, x);
    span_end(s, &all, &outside);
    bench_inside inside;
    int64_t launch = bench_launched_at(&inside);
    bench_add(&before, outside_us(s, launch, inside));
    bench_need(calx_device_wait(NULL));
    if (calx_tensor_error(y) != NULL) exit(1);
    bench_need(calx_scope_end(scope));
  }
  printf(
      "\nrun of an exported chain of 10 adds, us: %.1f, outside %.1f, to "
      "launch %.1f\n",
      bench_median(&all), bench_median(&outside), bench_median(&before));
  calx_release(x);
  calx_exported_free(e);
}

// ---- the program ------------------------------------------------------------

// Chains of other lengths at one place are recompiles, which are told; here
// they are meant.
static void log_line(void *user, const char *line)
{
  (void)user;
  if (strncmp(line, "recompile", 9) != 0) fprintf(stderr, "%s\n", line);
}

static int run_engine(int engine)
{
  calx_log_set(log_line, NULL);
  if (engine == 1) setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  setenv("CALX_CACHE_DIR", "off", 1);
  bench_need(bench_timed_open());
  timing_cost = bench_timed_cost();
  if (calx_device_current() == NULL) bench_need(calx_scope_take_error());
  printf("== %s\n", engine == 1 ? "fake plugin, immediate"
                                : calx_device_platform(calx_device_current()));
  if (engine == 1) print_recording();
  print_syncs();
  print_step();
  if (engine != 1) print_exported();
  calx_shutdown();
  return 0;
}

static int run_apart(int engine)
{
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) exit(run_engine(engine));
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) < 0) perror("trace");
  return status;
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "engine", "samples", NULL };
  bench_check_options(argc, argv, names, "trace [--engine=1|2] [--samples=N]");
  wanted_samples = bench_count(argc, argv, "samples", 0, 1, 1 << 20);
  int engine = (int)bench_count(argc, argv, "engine", 0, 1, 2);
  if (engine != 0) return run_engine(engine);
  return run_apart(1) != 0 || run_apart(2) != 0;
}
