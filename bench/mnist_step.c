// bench/mnist_step: milliseconds of one MNIST training step, the batch on the
// device, through the plugin that the environment chooses.
//
//   mnist_step [--batch=N] [--seconds=S]
//
// Without --batch: 128, then 8, each in a process of its own. One line each, of
// name=value pairs that bench/mnist reads:
//   ms       median step when steps are launched one after the other and only
//            the last of a group is waited for, as a training loop does
//   cpu_ms   processor time of a step, of all threads: other programs on the
//            machine change it less than the time that passes
//   waiting  median step when each is waited for
//   losses   of the first five steps: equal to the peers'
//   rss_mib  peak memory of the process
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "step.h"

static double run_group(bench_step *s, long steps)
{
  int64_t start = bench_now();
  for (long i = 0; i < steps; i++) bench_step_run(s, NULL);
  bench_need(calx_device_wait(NULL));
  return (double)(bench_now() - start) / 1e6 / (double)steps;
}

// Groups of at least 20 ms, for that many seconds and at least three of them.
static void run_for(bench_step *s, double seconds, long steps,
                    bench_series *out)
{
  int64_t end = bench_now() + (int64_t)(seconds * 1e9);
  while (out->count < 3 || bench_now() < end) {
    bench_add(out, run_group(s, steps));
  }
}

static void measure(long batch, double seconds)
{
  static bench_series grouped, waiting;
  bench_step s;
  double losses[5];
  bench_step_init(&s, batch, true);
  for (int i = 0; i < 5; i++) bench_step_run(&s, &losses[i]);
  long steps = lround(ceil(20 / run_group(&s, 3)));
  double cpu = bench_cpu_ms();
  run_for(&s, seconds, steps, &grouped);
  cpu = (bench_cpu_ms() - cpu) / (double)grouped.count / (double)steps;
  run_for(&s, seconds / 3, 1, &waiting);
  printf(
      "peer=calx batch=%ld ms=%.3f p10=%.3f p90=%.3f cpu_ms=%.3f "
      "waiting=%.3f losses=%.5f,%.5f,%.5f,%.5f,%.5f rss_mib=%.0f\n",
      batch, bench_median(&grouped), bench_quantile(&grouped, 0.1),
      bench_quantile(&grouped, 0.9), cpu, bench_median(&waiting), losses[0],
      losses[1], losses[2], losses[3], losses[4], bench_peak_mib());
  bench_step_free(&s);
  calx_shutdown();
}

// In a process of its own, so that memory is this batch's alone.
static int measure_apart(long batch, double seconds)
{
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    measure(batch, seconds);
    exit(0);
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) < 0) perror("mnist_step");
  return status;
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "batch", "seconds", NULL };
  bench_check_options(argc, argv, names,
                      "mnist_step [--batch=N] [--seconds=S]");
  long batch = bench_count(argc, argv, "batch", 0, 1, 1 << 20);
  double seconds = bench_option(argc, argv, "seconds", 3, 1e-3, 1e6);
  if (batch > 0) {
    measure(batch, seconds);
    return 0;
  }
  return measure_apart(128, seconds) != 0 || measure_apart(8, seconds) != 0;
}
