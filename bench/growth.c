// bench/growth: how the cost of compiling grows with the size of a program.
//
// First table: AdamW on n parameters of 16 elements. The first step, which
// makes the state and compiles, in its parts; `update` is
// calx_optimizer_step(), `sync` the compilation and the run. Second table: a
// program with n reductions of literals, which the engine folds while it
// compiles. Where cost is linear, the last column, microseconds for each
// parameter or reduction, does not grow.
//
// The disk cache would answer instead of the compiler: it is turned off.
#include <stdio.h>
#include <stdlib.h>

#include "calx/calx.h"
#include "measure.h"

static double ms_since(int64_t *at)
{
  const int64_t now = bench_now();
  const double ms = (double)(now - *at) * 1e-6;
  *at = now;
  return ms;
}

static calx_tensor *loss_of(calx_tensor **params, int n)
{
  calx_tensor *loss = calx_sum(calx_square(params[0]));
  for (int i = 1; i < n; i++) {
    loss = calx_add(loss, calx_sum(calx_square(params[i])));
  }
  return loss;
}

static void first_step(calx_optimizer *opt, calx_tensor **params, int n)
{
  calx_scope *scope = calx_scope_begin();
  int64_t at = bench_now();
  calx_optimizer_zero_grad(opt);
  calx_tensor *loss = loss_of(params, n);
  calx_backward(loss);
  const double record = ms_since(&at);
  calx_optimizer_step(opt);
  const double update = ms_since(&at);
  calx_sync(loss);
  calx_item(loss);
  const double sync = ms_since(&at);
  bench_need(calx_scope_end(scope));
  printf("%10d %12.1f %12.1f %12.1f %12.1f\n", n, record, update, sync,
         (record + update + sync) * 1e3 / n);
}

static void adamw(int n)
{
  calx_scope *scope = calx_scope_begin();
  calx_module *model = calx_module_new("Model", NULL, NULL);
  calx_tensor **params = calloc((size_t)n, sizeof *params);
  if (params == NULL) abort();
  for (int i = 0; i < n; i++) {
    char name[32];
    snprintf(name, sizeof name, "p%d", i);
    params[i] = calx_module_param(model, name, calx_ones(CALX_SHAPE(16)));
  }
  calx_optimizer *opt = calx_adamw(model, .lr = 0.1);
  calx_sync_n(params, (size_t)n);
  first_step(opt, params, n);
  calx_optimizer_free(opt);
  calx_module_free(model);
  bench_need(calx_scope_end(scope));
  free(params);
}

// Sums over what is known while compiling: ones that differ in their number.
static void reductions(int n)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *total = calx_rand(CALX_SHAPE(1));
  int64_t at = bench_now();
  for (int i = 0; i < n; i++) {
    calx_tensor *known = calx_ones(CALX_SHAPE(1 + i % 50));
    total = calx_add(total, calx_sum(known));
  }
  const double record = ms_since(&at);
  calx_sync(total);
  calx_item(total);
  const double sync = ms_since(&at);
  bench_need(calx_scope_end(scope));
  printf("%10d %12.1f %12s %12.1f %12.1f\n", n, record, "-", sync,
         (record + sync) * 1e3 / n);
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "most", NULL };
  bench_check_options(argc, argv, names, "growth [--most=8000]");
  const int most = (int)bench_count(argc, argv, "most", 8000, 1000, 1 << 20);
  setenv("CALX_CACHE_DIR", "off", 1);
  printf("%10s %12s %12s %12s %12s\n", "parameters", "record ms", "update ms",
         "sync ms", "us each");
  for (int n = 1000; n <= most; n *= 2) adamw(n);
  printf("%10s %12s %12s %12s %12s\n", "reductions", "record ms", "", "sync ms",
         "us each");
  for (int n = 1000; n <= 2 * most; n *= 2) reductions(n);
  return 0;
}
