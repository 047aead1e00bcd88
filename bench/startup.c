// bench/startup: from the start of a process to the end of its first and second
// trained step (both compile: the second has momentum), and its peak memory.
//
//   startup [--rounds=N] [--batch=B]
//
// Medians over N processes each, with an empty and with a filled disk cache, as
// lines of name=value pairs that bench/mnist reads. The files that a process maps
// are in the page cache: one round runs before the counted ones.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "step.h"

typedef struct outcome {
  double first, second;  // s
  double peak;           // MiB
} outcome;

// ---- the process that is timed ----------------------------------------------

// Writes when the two steps were done, by the clock that the parent reads too.
static int child_main(long batch)
{
  bench_step s;
  int64_t at[2];
  bench_step_init(&s, batch, false);
  for (int i = 0; i < 2; i++) {
    double loss;
    bench_step_run(&s, &loss);
    at[i] = bench_now();
    if (!isfinite(loss)) fprintf(stderr, "startup: the loss is %g\n", loss);
  }
  printf("%lld %lld\n", (long long)at[0], (long long)at[1]);
  fflush(stdout);
  bench_step_free(&s);
  calx_shutdown();
  return 0;
}

// ---- the process that times -------------------------------------------------

static bool read_times(int from, int64_t start, outcome *out)
{
  FILE *file = fdopen(from, "r");
  long long first, second;
  bool ok = file != NULL && fscanf(file, "%lld %lld", &first, &second) == 2;
  if (file != NULL) fclose(file);
  if (!ok) return false;
  out->first = (double)(first - start) / 1e9;
  out->second = (double)(second - start) / 1e9;
  return true;
}

static bool run_child(const char *program, long batch, outcome *out)
{
  int ends[2];
  char size[32];
  snprintf(size, sizeof size, "%ld", batch);
  if (pipe(ends) != 0) return false;
  int64_t start = bench_now();
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(program, program, "child", size, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  bool ok = child > 0 && read_times(ends[0], start, out);
  int status = 1;
  struct rusage usage = { 0 };
  ok = child > 0 && wait4(child, &status, 0, &usage) == child && status == 0 &&
       ok;
  out->peak = (double)usage.ru_maxrss / 1024;
  return ok;
}

static void remove_folder(const char *path)
{
  pid_t child = fork();
  if (child == 0) {
    execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
    _exit(127);
  }
  if (child > 0) waitpid(child, NULL, 0);
}

// Rounds on a cache that is emptied before each, or kept.
static bool run_rounds(const char *program, const char *cache, bool cold,
                       long rounds, long batch)
{
  static bench_series first, second, peak;
  first.count = second.count = peak.count = 0;
  for (long i = 0; i <= rounds; i++) {
    outcome out = { 0 };
    if (cold) remove_folder(cache);
    if (!run_child(program, batch, &out)) return false;
    if (i == 0) continue;
    bench_add(&first, out.first);
    bench_add(&second, out.second);
    bench_add(&peak, out.peak);
  }
  printf(
      "peer=calx cache=%s batch=%ld first_s=%.3f second_s=%.3f "
      "rss_mib=%.0f\n",
      cold ? "cold" : "warm", batch, bench_median(&first),
      bench_median(&second), bench_median(&peak));
  fflush(stdout);
  return true;
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "rounds", "batch", NULL };
  if (argc == 3 && strcmp(argv[1], "child") == 0) {
    return child_main(atol(argv[2]));
  }
  bench_check_options(argc, argv, names, "startup [--rounds=N] [--batch=B]");
  long rounds = bench_count(argc, argv, "rounds", 5, 1, 100000);
  long batch = bench_count(argc, argv, "batch", 128, 1, 1 << 20);
  char program[4096], folder[] = "/tmp/calx-startup-XXXXXX", cache[64];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  if (n < 0 || mkdtemp(folder) == NULL) {
    perror("startup");
    return 1;
  }
  program[n] = '\0';
  snprintf(cache, sizeof cache, "%s/programs", folder);
  setenv("CALX_CACHE_DIR", cache, 1);
  bool ok = run_rounds(program, cache, true, rounds, batch) &&
            run_rounds(program, cache, false, rounds, batch);
  remove_folder(folder);
  if (!ok) fprintf(stderr, "startup: a timed process failed\n");
  return ok ? 0 : 1;
}
