// kernel/conv_tune: chooses the implementation of a convolution, by measuring
// if no rule decides.
//
// Compiling must not take long: only candidates that can win are made, large
// batches are measured on a part, and the number of runs is bounded (the sum
// over a program is in lower/choose_kernels.c). All candidates share one block
// of memory with arbitrary values, so that its pages are touched once.
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "kernel/choices.h"
#include "kernel/conv.h"

// Nanoseconds: after so much candidates are not run again.
#define TUNE_ENOUGH 8000000
#define TUNE_SHORT 3000000
// The most scratch memory of a candidate.
#define MOST_SCRATCH ((size_t)64 << 20)
#define ROUNDS 3
// The least operations per thread in a run.
#define TUNE_FLOPS 1e8

// ---- memory -----------------------------------------------------------------

#define SMALL_PAGE ((size_t)4 << 10)
#define KEPT_BYTES ((size_t)32 << 20)

typedef struct memory {
  unsigned char *at;
  size_t bytes;
} memory;

// One block is kept for the next convolution. Its first bytes have its size.
static _Atomic(unsigned char *) kept;

static void release(memory m)
{
  cx_free_pages(m.at, m.bytes);
}

static bool take_memory(size_t bytes, memory *out)
{
  unsigned char *at = atomic_exchange(&kept, NULL);
  if (at != NULL) {
    *out = (memory){ .at = at };
    memcpy(&out->bytes, at, sizeof out->bytes);
    if (out->bytes >= bytes) return true;
    release(*out);
  }
  *out =
      (memory){ .at = cx_alloc_pages(bytes), .bytes = cx_whole_pages(bytes) };
  if (out->at == NULL) return false;
  // Touched here, so that it does not count for the first candidate.
  for (size_t i = 0; i < out->bytes; i += SMALL_PAGE) out->at[i] = 1;
  return true;
}

static void give_memory(memory m)
{
  unsigned char *none = NULL;
  if (m.bytes <= KEPT_BYTES) {
    memcpy(m.at, &m.bytes, sizeof m.bytes);
    if (atomic_compare_exchange_strong(&kept, &none, m.at)) return;
  }
  release(m);
}

// ---- measuring --------------------------------------------------------------

// oneDNN's, lanes, implicit product, loops.
#define N_TRIALS (CPU_KERNEL_CONV_CANDIDATES + 3)

typedef struct trial {
  cpu_kernel kernel;
  int64_t choice;
} trial;

typedef struct trials {
  int n;
  trial of[N_TRIALS];
  cpu_kernel_times times[N_TRIALS];
} trials;

// Makes the same kernel with another choice.
static calx_status *try_choice(const cpu_kernel *like, cpu_threads *pool,
                               int64_t choice, cpu_kernel *out, bool *out_taken)
{
  *out = *like;
  out->conv.choice = choice;
  if (choice != CPU_KERNEL_CONV_CHOICE_LANES) {
    return cpu_kernel_conv_prepare(out, pool, out_taken);
  }
  // No other implementation in its place.
  CALX_TRY(cpu_kernel_conv_lanes_new(out, out_taken));
  return *out_taken ? NULL
                    : cpu_kernel_conv_depthwise_new(out, true, out_taken);
}

static void free_plan(cpu_kernel *k)
{
  if (k->free_plan != NULL) k->free_plan(k->plan);
  k->free_plan = NULL;
}

static calx_status *add_trial(trials *t, const cpu_kernel *like,
                              cpu_threads *pool, int64_t choice)
{
  trial *to = &t->of[t->n];
  bool taken;
  CALX_TRY(try_choice(like, pool, choice, &to->kernel, &taken));
  if (!taken || to->kernel.scratch > MOST_SCRATCH) {
    free_plan(&to->kernel);
    return NULL;
  }
  to->choice = choice;
  t->times[t->n++] = (cpu_kernel_times){ INT64_MAX, INT64_MAX };
  return NULL;
}

// The offsets of lhs, rhs, result and scratch, each a multiple of 64 bytes;
// returns their size.
static size_t lay_out(const cpu_kernel *k, size_t at[4])
{
  size_t bytes = 64;
  for (int i = 0; i < 4; i++) {
    const size_t part = i < 3 ? k->bytes[i] : k->scratch;
    at[i] = bytes;
    if (part > SIZE_MAX / 8) return SIZE_MAX;
    bytes += (part + 63) / 64 * 64;
  }
  return bytes;
}

// Processor time of the calling thread, so that other work of the machine does
// not count. Threads that wait for others sleep.
static int64_t own_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_once(trials *t, int i, cpu_threads *pool, const memory *m)
{
  const cpu_kernel *k = &t->of[i].kernel;
  size_t at[4];
  (void)lay_out(k, at);
  const int64_t begin = own_ns();
  calx_status *s = k->run(k, pool, m->at + at[0], m->at + at[1], m->at + at[2],
                          m->at + at[3]);
  if (s == NULL) cpu_kernel_times_add(&t->times[i], own_ns() - begin);
  calx_status_free(s);
}

// Runs each candidate once, and short ones again, because the first run warms
// up; then in turn the first one and those that are near the best, so that each
// that may be chosen has run twice.
static void measure(trials *t, cpu_threads *pool, const memory *m)
{
  const int64_t begin = cx_now_ns();
  int64_t best = INT64_MAX;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < t->n; i++) {
      const int64_t *least = &t->times[i].least;
      const bool first_again = i == 0 && round == 1;
      if (round > 0 && !first_again && *least / 3 * 2 > best) continue;
      run_once(t, i, pool, m);
      if (round == 0 && *least < TUNE_SHORT) run_once(t, i, pool, m);
      if (*least < best) best = *least;
    }
    if (round > 0 && cx_now_ns() - begin > TUNE_ENOUGH) break;
  }
}

static int64_t choose(trials *t, cpu_threads *pool)
{
  size_t bytes = 0, at[4];
  for (int i = 0; i < t->n; i++) {
    const size_t each = lay_out(&t->of[i].kernel, at);
    if (each > bytes) bytes = each;
  }
  memory m;
  if (bytes == SIZE_MAX || !take_memory(bytes, &m)) return t->of[0].choice;
  measure(t, pool, &m);
  give_memory(m);
  return t->of[cpu_kernel_times_choose(t->times, t->n)].choice;
}

// ---- a part of the batch ----------------------------------------------------

// Halves the number of images, with which the time grows; false: it cannot.
static bool halve_images(cpu_kernel_conv_desc *d, bool by_weights,
                         int64_t least)
{
  int64_t *n = by_weights ? &d->features : &d->batch;
  if (*n % 2 != 0 || *n / 2 < least || d->feature_groups != 1 ||
      d->batch_groups != 1) {
    return false;
  }
  *n /= 2;
  if (by_weights) d->kernel_in = *n;
  return true;
}

// The least columns that are measured: panels and blocks of each candidate are
// full.
#define TUNE_COLUMNS 128

// Takes fewer images, as long as each thread has enough work and the weights,
// whose number stays, take little of the time; then fewer columns.
static void shrink(cpu_kernel *kernel, bool by_weights)
{
  cpu_kernel part = *kernel;
  const double flops = TUNE_FLOPS * kernel->threads;
  while (cpu_kernel_conv_flops(&part.conv) / 2 >= flops &&
         halve_images(&part.conv, by_weights, kernel->threads)) {
    if (!cpu_kernel_conv_size(&part, &part.conv)) break;
    const size_t *b = part.bytes;
    const size_t images = b[0] + (by_weights ? b[1] : b[2]);
    if (images / 4 < (by_weights ? b[2] : b[1])) break;
    *kernel = part;
  }
  part = *kernel;
  while (cpu_kernel_conv_flops(&part.conv) / 2 >= flops &&
         part.conv.kernel_out / 2 >= TUNE_COLUMNS &&
         part.conv.kernel_out % 2 == 0 && part.conv.feature_groups == 1 &&
         part.conv.batch_groups == 1) {
    part.conv.kernel_out /= 2;
    if (!cpu_kernel_conv_size(&part, &part.conv)) return;
    *kernel = part;
  }
}

// ---- choosing ---------------------------------------------------------------

// The choices that need no measuring: matrix products, convolutions where
// vectors of channels are mostly empty, large ones of few pixels, and those for
// which oneDNN has an algorithm with fewer operations.
static calx_status *choose_by_rule(const cpu_kernel *kernel, cpu_threads *pool,
                                   bool *out_lanes, int64_t *out)
{
  cpu_kernel k = *kernel;
  bool taken;
  calx_status *status = cpu_kernel_conv_dot_new(&k, pool, &taken);
  free_plan(&k);
  if (status != NULL || taken) {
    *out = CPU_KERNEL_CONV_CHOICE_DOT;
    return status;
  }
  status = cpu_kernel_conv_lanes_new(&k, out_lanes);
  bool sure = *out_lanes && cpu_kernel_conv_lanes_are_sure(&kernel->conv);
  if (status == NULL && !*out_lanes) {
    status = cpu_kernel_conv_depthwise_new(&k, false, &sure);
  }
  free_plan(&k);
  CALX_TRY(status);
  if (sure) {
    *out = CPU_KERNEL_CONV_CHOICE_LANES;
    return NULL;
  }
  if (cpu_kernel_conv_implicit_is_sure(&kernel->conv)) {
    *out = CPU_KERNEL_CONV_CHOICE_IMPLICIT;
    return NULL;
  }
  cpu_kernel_conv_candidates c;
  cpu_kernel_conv_onednn_candidates(&kernel->conv, &c);
  if (c.sure == CPU_KERNEL_CONV_CHOICE_NONE) return NULL;
  status = try_choice(kernel, pool, c.sure, &k, &taken);
  free_plan(&k);
  if (status == NULL && taken) *out = c.sure;
  return status;
}

static calx_status *list_onednn(const cpu_kernel *part, cpu_threads *pool,
                                const cpu_kernel_conv_candidates *c, bool lanes,
                                trials *t)
{
  for (int i = 0; i < c->n; i++) {
    // One candidate of oneDNN is enough beside lanes.
    if (lanes && t->n == 2) break;
    CALX_TRY(add_trial(t, part, pool, c->choices[i]));
    if (c->enough && t->n == 1 &&
        strstr(t->of[0].kernel.name, "gemm") == NULL) {
      break;
    }
  }
  return NULL;
}

// Of fewer operations oneDNN's copies may take longer than loops. Larger ones
// do not try loops: only the calling thread's time is measured, which is too
// short where an idle thread takes more of the loops, and a wrong choice would
// cost much.
#define SMALL_FLOPS 4e6

static calx_status *list_trials(const cpu_kernel *kernel, cpu_threads *pool,
                                bool lanes, trials *t)
{
  cpu_kernel_conv_candidates c;
  cpu_kernel_conv_onednn_candidates(&kernel->conv, &c);
  cpu_kernel part = *kernel;
  if (!lanes) shrink(&part, c.by_weights);
  CALX_TRY(add_trial(t, &part, pool, CPU_KERNEL_CONV_CHOICE_LANES));
  CALX_TRY(list_onednn(&part, pool, &c, lanes, t));
  if (cpu_kernel_conv_implicit_suits(&kernel->conv)) {
    CALX_TRY(add_trial(t, &part, pool, CPU_KERNEL_CONV_CHOICE_IMPLICIT));
  }
  return cpu_kernel_conv_flops(&kernel->conv) > SMALL_FLOPS
             ? NULL
             : add_trial(t, &part, pool, CPU_KERNEL_CONV_CHOICE_LOOPS);
}

calx_status *cpu_kernel_conv_tune(const cpu_kernel *kernel, cpu_threads *pool,
                                  int64_t *out)
{
  bool lanes = false;
  *out = CPU_KERNEL_CONV_CHOICE_NONE;
  CALX_TRY(choose_by_rule(kernel, pool, &lanes, out));
  if (*out != CPU_KERNEL_CONV_CHOICE_NONE) return NULL;
  trials t = { .n = 0 };
  calx_status *status = list_trials(kernel, pool, lanes, &t);
  if (status == NULL && t.n > 0) {
    *out = t.n == 1 ? t.of[0].choice : choose(&t, pool);
  }
  for (int i = 0; i < t.n; i++) free_plan(&t.of[i].kernel);
  CALX_TRY(status);
  // A part was measured, so check that the whole works too. Without a candidate
  // the rule chooses one, or loops remain.
  cpu_kernel k;
  bool taken;
  status = try_choice(kernel, pool, *out, &k, &taken);
  free_plan(&k);
  if (status == NULL && !taken) *out = CPU_KERNEL_CONV_CHOICE_LOOPS;
  return status;
}
