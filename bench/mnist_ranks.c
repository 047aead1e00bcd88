// bench/mnist_ranks: images per second of the MNIST step on all ranks together.
//
//   CPU_NUM_DEVICES=2 CALX_CPU_THREADS=1 mnist_ranks [--batch=N] [--seconds=S]
//   CALX_PROCESSES=2 …      calx run -n 2 mnist_ranks …
//
// The batch is each rank's and lies on its device; a step reduces gradients
// over the ranks and gives the mean of their losses, as examples/mnist_dp.c.
// Every rank does the same number of groups of steps, of which only the last
// is waited for; rank 0 prints the median group's rate.
#include <stdio.h>

#include "calx/dist.h"
#include "measure.h"
#include "step.h"

enum { GROUP = 8 };

typedef struct settings {
  long batch;
  double seconds;
} settings;

static void step(bench_step *s)
{
  calx_scope *scope = calx_scope_begin();
  calx_optimizer_zero_grad(s->opt);
  calx_tensor *loss = bench_step_forward(s);
  calx_backward(loss);
  calx_dist_step(s->opt, loss);
  bench_need(calx_scope_end(scope));
}

static double group(bench_step *s)
{
  int64_t start = bench_now();
  for (int i = 0; i < GROUP; i++) step(s);
  bench_need(calx_device_wait(calx_device_current()));
  return (double)(bench_now() - start) / 1e9;
}

// Rank 0's clock decides for all when it is over.
static void take_first(const double *const *values, size_t ranks, size_t count,
                       double *out)
{
  (void)ranks;
  for (size_t i = 0; i < count; i++) out[i] = values[0][i];
}

static calx_status *rank(int index, void *user)
{
  const settings *set = user;
  static bench_series rates;
  bench_step s;
  bench_step_init(&s, set->batch, true);
  for (int i = 0; i < 3; i++) group(&s);
  int64_t end = bench_now() + (int64_t)(set->seconds * 1e9);
  for (double more = 1; more != 0;) {
    double images = (double)set->batch * GROUP * calx_world_size();
    double rate = images / group(&s);
    if (index == 0) bench_add(&rates, rate);
    if (index == 0) more = rates.count < 3 || bench_now() < end;
    CALX_TRY(calx_mesh_reduce("more", &more, 1, take_first, &more));
  }
  if (index == 0) {
    printf(
        "peer=calx ranks=%d processes=%d batch=%ld images_s=%.0f p10=%.0f "
        "p90=%.0f\n",
        calx_world_size(), calx_process_count(), set->batch,
        bench_median(&rates), bench_quantile(&rates, 0.1),
        bench_quantile(&rates, 0.9));
  }
  bench_step_free(&s);
  return NULL;
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "batch", "seconds", NULL };
  bench_check_options(argc, argv, names,
                      "mnist_ranks [--batch=N] [--seconds=S]");
  settings set = { .batch = bench_count(argc, argv, "batch", 128, 1, 1 << 20),
                   .seconds =
                       bench_option(argc, argv, "seconds", 3, 1e-3, 1e6) };
  bench_need(calx_launch(rank, &set));
  calx_shutdown();
  return 0;
}
