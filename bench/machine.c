// bench/machine: what the machine gives at this moment.
//
//   machine [--threads=N]
//
// Prints the multiply-adds of f32 in registers (GFLOP/s, two a multiply-add) and
// the triad a = b + s c over 64 MB a thread (GB/s of the three arrays, as STREAM,
// McCalpin 1995), of N threads together: the best of some runs of 10 ms. bench/run
// has it before and after each row, to tell a busy machine from a slow program.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

enum { LANES = 16, CHAINS = 12, RUNS = 5, TURNS = 200000, MOST_THREADS = 256 };
enum { ELEMENTS = 64 << 20 >> 2 };  // of the three arrays of a thread

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

typedef struct worker {
  pthread_t thread;
  pthread_barrier_t *barrier;
  float *arrays;
  double flops, bytes;  // best rates
} worker;

static double multiply_adds(void)
{
  // Read at run time: known or equal chains would be computed once.
  static volatile float start_of[CHAINS + 2] = { [CHAINS] = 0.5f, 1e-3f };
  lanes sums[CHAINS];
  const lanes zero = { 0 };
  const lanes x = zero + start_of[CHAINS], y = zero + start_of[CHAINS + 1];
  for (int k = 0; k < CHAINS; k++) sums[k] = zero + start_of[k];
  const int64_t start = bench_now();
  for (int t = 0; t < TURNS; t++) {
    for (int k = 0; k < CHAINS; k++) sums[k] = sums[k] * x + y;
  }
  const double ns = (double)(bench_now() - start);
  volatile float keep = 0;
  for (int k = 0; k < CHAINS; k++) keep = keep + sums[k][0];
  return 2.0 * LANES * CHAINS * TURNS / ns;
}

static double triad(float *arrays)
{
  const size_t n = ELEMENTS / 3;
  float *restrict a = arrays;
  const float *restrict b = arrays + n, *restrict c = arrays + 2 * n;
  const int64_t start = bench_now();
  for (size_t i = 0; i < n; i++) a[i] = b[i] + 0.5f * c[i];
  const double ns = (double)(bench_now() - start);
  volatile float keep = a[n / 2];
  (void)keep;
  return 3.0 * sizeof *a * (double)n / ns;
}

static void *work(void *arg)
{
  worker *w = arg;
  for (size_t i = 0; i < ELEMENTS; i++) w->arrays[i] = 1;
  for (int i = 0; i < RUNS; i++) {
    pthread_barrier_wait(w->barrier);
    const double flops = multiply_adds();
    pthread_barrier_wait(w->barrier);
    const double bytes = triad(w->arrays);
    if (flops > w->flops) w->flops = flops;
    if (bytes > w->bytes) w->bytes = bytes;
  }
  return NULL;
}

int main(int argc, char **argv)
{
  const char *options[] = { "threads", NULL };
  bench_check_options(argc, argv, options, "machine [--threads=N]");
  const long n = bench_count(argc, argv, "threads", 1, 1, MOST_THREADS);
  static worker workers[MOST_THREADS];
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, (unsigned)n);
  for (long i = 0; i < n; i++) {
    workers[i].barrier = &barrier;
    workers[i].arrays = malloc(ELEMENTS * sizeof(float));
    if (workers[i].arrays == NULL ||
        pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
      fprintf(stderr, "machine: no memory or thread\n");
      return 1;
    }
  }
  double flops = 0, bytes = 0;
  for (long i = 0; i < n; i++) {
    pthread_join(workers[i].thread, NULL);
    free(workers[i].arrays);
    flops += workers[i].flops;
    bytes += workers[i].bytes;
  }
  printf("gflops=%.1f gbytes=%.2f threads=%ld\n", flops, bytes, n);
  return 0;
}
