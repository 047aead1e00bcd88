// bench/all_reduce: the engine's sums over devices, against what memory allows.
//
//   all_reduce [--ranks=N] [--bytes=B] [--seconds=S]
//
// Ranks are threads of one process, then processes. The bound: all buffers are
// shared; each rank adds its slice by plain loads, then copies the other
// slices. A round's time is that of its slowest rank. Ours and the bound take
// turns, a few rounds each.
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "base/thread.h"
#include "coll/coll.h"
#include "hlo/parse.h"
#include "hlo/verify.h"
#include "kernel/half.h"
#include "measure.h"
#include "world/segment.h"

enum { MOST_RANKS = 8, BLOCK = 2048, TURN = 4, LINE = 64 };
static const size_t SIZES[] = { 4096, 1 << 20, 100 << 20 };

typedef struct shared {
  _Atomic uint32_t here, round;
  double us[MOST_RANKS];
  _Atomic int go;  // whether there is another turn
  bench_series ours, bound;
} shared;

typedef struct cell {
  int n;
  bool processes, bf16;
  size_t bytes;
  double seconds;
  shared *shared;
  unsigned char *in[MOST_RANKS], *out[MOST_RANKS];
  cx_hlo_module *module;
  cx_world_segment segment;
  cpu_coll *coll;  // of threads
} cell;

typedef struct rank {
  cell *cell;
  int me;
  cpu_coll *coll;
  uint64_t launches;
  uint32_t device_group;
} rank;

static void meet(const cell *c)
{
  shared *s = c->shared;
  const uint32_t round = atomic_load(&s->round);
  if (atomic_fetch_add(&s->here, 1) == (uint32_t)c->n - 1) {
    atomic_store(&s->here, 0);
    atomic_store(&s->round, round + 1);
    return;
  }
  for (int i = 0; atomic_load(&s->round) == round; i++) {
    if (i > 20000 || c->n > sysconf(_SC_NPROCESSORS_ONLN))
      (void)syscall(SYS_sched_yield);
  }
}

// ---- the bound ----

#if defined(__x86_64__)
#define WIDE \
  __attribute__((target_clones("arch=x86-64-v4", "arch=haswell", "default")))
#else
#define WIDE
#endif

WIDE static void add_f32(float *restrict sum, const float *restrict x, size_t n)
{
  for (size_t i = 0; i < n; i++) sum[i] += x[i];
}

WIDE static void add_bf16(float *restrict sum, const uint16_t *restrict x,
                          size_t n)
{
  for (size_t i = 0; i < n; i++) sum[i] += cpu_kernel_bf16_widen(x[i]);
}

WIDE static void round_bf16(const float *restrict sum, uint16_t *restrict y,
                            size_t n)
{
  for (size_t i = 0; i < n; i++) y[i] = cpu_kernel_bf16_round(sum[i]);
}

static void add_slice(const cell *c, int me, size_t lo, size_t hi)
{
  float sum[BLOCK];
  for (size_t at = lo; at < hi; at += BLOCK) {
    const size_t n = hi - at < BLOCK ? hi - at : BLOCK;
    memset(sum, 0, n * sizeof *sum);
    for (int i = 0; i < c->n; i++) {
      if (c->bf16) {
        add_bf16(sum, (const uint16_t *)(void *)c->in[i] + at, n);
      } else {
        add_f32(sum, (const float *)(void *)c->in[i] + at, n);
      }
    }
    if (c->bf16) {
      round_bf16(sum, (uint16_t *)(void *)c->out[me] + at, n);
    } else {
      memcpy((float *)(void *)c->out[me] + at, sum, n * sizeof *sum);
    }
  }
}

static void bound(rank *r)
{
  const cell *c = r->cell;
  const size_t size = c->bf16 ? 2 : 4;
  const size_t n = c->bytes / size, ranks = (size_t)c->n;
  const size_t share = ((n + ranks - 1) / ranks + LINE - 1) / LINE * LINE;
  size_t lo[MOST_RANKS + 1];
  for (size_t i = 0; i <= ranks; i++) lo[i] = share * i < n ? share * i : n;
  add_slice(c, r->me, lo[r->me], lo[r->me + 1]);
  meet(c);
  for (int i = 0; i < c->n; i++) {
    if (i == r->me) continue;
    memcpy(c->out[r->me] + lo[i] * size, c->out[i] + lo[i] * size,
           (lo[i + 1] - lo[i]) * size);
  }
}

// ---- ours ----

static const uint32_t devices[MOST_RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void ours(rank *r)
{
  const cell *c = r->cell;
  const cx_hlo_op *op = cx_hlo_entry(c->module)->body.first->first;
  const cx_hlo_type *type = &op->operands[0]->type.tensor;
  const cpu_ref_tensor in = { *type, c->in[r->me] };
  const cpu_ref_tensor out = { *type, c->out[r->me] };
  r->launches++;
  cpu_coll_launch l = { .coll = r->coll,
                        .replica = (uint32_t)r->me,
                        .n_replicas = (uint32_t)c->n,
                        .n_partitions = 1,
                        .devices = devices,
                        .device_group = r->device_group,
                        .number = r->launches };
  bench_need(cpu_coll_run(&l, c->module, op, &in, &out));
  cpu_coll_end(&l, NULL);
}

// ---- rounds ----

static void run_round(rank *r, void (*fn)(rank *), bench_series *series)
{
  shared *s = r->cell->shared;
  meet(r->cell);
  const int64_t begun = bench_now();
  fn(r);
  s->us[r->me] = (double)(bench_now() - begun) / 1e3;
  meet(r->cell);
  if (r->me != 0) return;
  double slowest = 0;
  for (int i = 0; i < r->cell->n; i++) {
    if (s->us[i] > slowest) slowest = s->us[i];
  }
  bench_add(series, slowest);
}

// Two ranks on one core wait for each other's time slices.
static void stay(const rank *r)
{
  const unsigned long cores = 1ul
                              << (r->me % (int)sysconf(_SC_NPROCESSORS_ONLN));
  (void)syscall(SYS_sched_setaffinity, 0, sizeof cores, &cores);
}

static void run_rank(void *user)
{
  rank *r = user;
  stay(r);
  shared *s = r->cell->shared;
  static bench_series dropped;
  const int64_t until = bench_now() + (int64_t)(r->cell->seconds * 1e9);
  for (int turn = 0; turn < 3 || atomic_load(&s->go); turn++) {
    const bool warm = turn > 0;
    for (int i = 0; i < TURN; i++) {
      run_round(r, bound, warm ? &s->bound : &dropped);
    }
    for (int i = 0; i < TURN; i++) {
      run_round(r, ours, warm ? &s->ours : &dropped);
    }
    if (r->me == 0) atomic_store(&s->go, bench_now() < until);
    meet(r->cell);
  }
}

static void run_threads(cell *c)
{
  cx_thread threads[MOST_RANKS] = { { 0 } };
  rank ranks[MOST_RANKS];
  const uint32_t n = (uint32_t)c->n;
  const cpu_coll_topology topology = { .fd = -1, .n_host = n, .n_own = n };
  uint32_t device_group = 0;
  bench_need(cpu_coll_new(&topology, &c->coll));
  bench_need(cpu_coll_device_group(c->coll, devices, n, &device_group));
  for (int i = 0; i < c->n; i++) {
    ranks[i] = (rank){
      .cell = c, .me = i, .coll = c->coll, .device_group = device_group
    };
    bench_need(cx_thread_start(&threads[i], run_rank, &ranks[i]));
  }
  for (int i = 0; i < c->n; i++) cx_thread_join(&threads[i]);
  cpu_coll_free(c->coll);
}

static void live(cell *c, int me)
{
  rank r = { .cell = c, .me = me };
  const cpu_coll_topology topology = { .fd = c->segment.fd,
                                       .n_host = (uint32_t)c->n,
                                       .own_first = (uint32_t)me,
                                       .n_own = 1 };
  bench_need(cpu_coll_new(&topology, &r.coll));
  bench_need(
      cpu_coll_device_group(r.coll, devices, (size_t)c->n, &r.device_group));
  run_rank(&r);
  cpu_coll_free(r.coll);
}

static void run_processes(cell *c)
{
  const pid_t parent = getpid();
  bench_need(cx_world_segment_create(c->n, &c->segment));
  for (int i = 0; i < c->n; i++) {
    const pid_t child = fork();
    if (child < 0) {
      perror("fork");
      exit(1);
    }
    if (child != 0) continue;
    // One that fails ends us, and we the others, which wait for it.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    live(c, i);
    _exit(0);
  }
  for (int i = 0; i < c->n; i++) {
    int status = 0;
    (void)wait(&status);
    if (status != 0) exit(1);
  }
  cx_world_segment_close(&c->segment);
}

// ---- one cell of the table ----

static void *map(size_t bytes)
{
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED) return at;
  perror("mmap");
  exit(1);
}

static void fill(const cell *c, int i)
{
  for (size_t k = 0; k < c->bytes / (c->bf16 ? 2 : 4); k++) {
    const float x = (float)((k + (size_t)i) % 7);
    if (c->bf16) {
      ((uint16_t *)(void *)c->in[i])[k] = cpu_kernel_bf16_round(x);
    } else {
      ((float *)(void *)c->in[i])[k] = x;
    }
  }
}

// Ours came last: its results are there.
static void check(const cell *c)
{
  for (size_t k = 0; k < c->bytes / (c->bf16 ? 2 : 4); k += 97) {
    float wanted = 0;
    for (int i = 0; i < c->n; i++) wanted += (float)((k + (size_t)i) % 7);
    for (int i = 0; i < c->n; i++) {
      const void *y = c->out[i];
      const float found = c->bf16
                              ? cpu_kernel_bf16_widen(((const uint16_t *)y)[k])
                              : ((const float *)y)[k];
      if (found == wanted) continue;
      fprintf(stderr, "rank %d, element %zu: %g, not %g\n", i, k, (double)found,
              (double)wanted);
      exit(1);
    }
  }
}

static void run_cell(cell *c)
{
  char text[512];
  const char *type = c->bf16 ? "bf16" : "f32";
  const int size = snprintf(
      text, sizeof text,
      "func.func @main(%%a: tensor<%zux%s>) -> tensor<%zux%s> {\n"
      "%%r = \"stablehlo.all_reduce\"(%%a) <{replica_groups = dense<> : "
      "tensor<0x0xi64>}> ({\n^bb0(%%x: tensor<%s>, %%y: tensor<%s>):\n"
      "%%z = stablehlo.add %%x, %%y : tensor<%s>\n"
      "stablehlo.return %%z : tensor<%s>\n}) : (tensor<%zux%s>) -> "
      "tensor<%zux%s>\nreturn %%r : tensor<%zux%s>\n}",
      c->bytes / (c->bf16 ? 2 : 4), type, c->bytes / (c->bf16 ? 2 : 4), type,
      type, type, type, type, c->bytes / (c->bf16 ? 2 : 4), type,
      c->bytes / (c->bf16 ? 2 : 4), type, c->bytes / (c->bf16 ? 2 : 4), type);
  bench_need(cx_hlo_parse(text, (size_t)size, "all_reduce", &c->module));
  bench_need(cx_hlo_verify(c->module));
  c->shared = map(sizeof *c->shared);
  for (int i = 0; i < c->n; i++) {
    c->in[i] = map(c->bytes);
    c->out[i] = map(c->bytes);
    fill(c, i);
    memset(c->out[i], 0, c->bytes);
  }
  if (c->processes) {
    run_processes(c);
  } else {
    run_threads(c);
  }
  check(c);
  shared *s = c->shared;
  const double o[] = { bench_quantile(&s->ours, 0), bench_median(&s->ours) };
  const double b[] = { bench_quantile(&s->bound, 0), bench_median(&s->bound) };
  printf(
      "%d %-9s %-4s %9zu bytes: ours %9.1f / %9.1f us, bound %9.1f / %9.1f "
      "us; bound / ours %.2f / %.2f\n",
      c->n, c->processes ? "processes" : "threads", type, c->bytes, o[0], o[1],
      b[0], b[1], b[0] / o[0], b[1] / o[1]);
  fflush(stdout);
  for (int i = 0; i < c->n; i++) {
    munmap(c->in[i], c->bytes);
    munmap(c->out[i], c->bytes);
  }
  munmap(c->shared, sizeof *c->shared);
  cx_hlo_module_free(c->module);
}

int main(int argc, char **argv)
{
  static const char *const names[] = { "ranks", "bytes", "seconds", NULL };
  bench_check_options(argc, argv, names,
                      "all_reduce [--ranks=N] [--bytes=B] [--seconds=S]");
  const int ranks = (int)bench_count(argc, argv, "ranks", 0, 2, MOST_RANKS);
  const size_t given = (size_t)bench_count(argc, argv, "bytes", 0, 4, 1 << 30);
  const double seconds = bench_option(argc, argv, "seconds", 0.5, 1e-3, 1e6);
  if (given % 4 != 0) {
    fprintf(stderr, "%s: --bytes wants a multiple of 4, found '%zu'\n", argv[0],
            given);
    return 2;
  }
  const size_t *sizes = given != 0 ? &given : SIZES;
  const size_t n_sizes = given != 0 ? 1 : sizeof SIZES / sizeof *SIZES;
  printf("smallest / median\n");
  for (int n = ranks != 0 ? ranks : 2; n <= (ranks != 0 ? ranks : MOST_RANKS);
       n *= 2) {
    for (int way = 0; way < 4; way++) {
      for (size_t i = 0; i < n_sizes; i++) {
        cell c = { .n = n,
                   .processes = (way & 1) != 0,
                   .bf16 = (way & 2) != 0,
                   .bytes = sizes[i],
                   .seconds = seconds };
        run_cell(&c);
      }
    }
  }
  return 0;
}
