// base/trace: the table of listeners, and what reports and listeners share.
#include "base/trace.h"

// ---- listeners --------------------------------------------------------------

enum { KINDS = 3 };

atomic_int cx_trace_kinds_wanted;

static cx_mutex lock = CX_MUTEX_INIT;
static int wanted[KINDS];  // how many listeners want each kind
// The first `n_listeners` stay as they are: reports read them without the lock.
static const cx_trace_listener *listeners[CX_TRACE_MOST_LISTENERS];
static atomic_int n_listeners;

void cx_trace_want(int kinds, bool on)
{
  int now = 0;
  cx_lock(&lock);
  for (int k = 0; k < KINDS; k++) {
    if ((kinds & (1 << k)) != 0) wanted[k] += on ? 1 : -1;
    CX_ASSERT(wanted[k] >= 0);
    if (wanted[k] > 0) now |= 1 << k;
  }
  atomic_store(&cx_trace_kinds_wanted, now);
  cx_unlock(&lock);
}

void cx_trace_listen(const cx_trace_listener *listener)
{
  cx_lock(&lock);
  int n = atomic_load(&n_listeners), i = 0;
  while (i < n && listeners[i] != listener) i++;
  if (i == n) {
    CX_ASSERT(n < CX_TRACE_MOST_LISTENERS);
    listeners[n] = listener;
    atomic_store_explicit(&n_listeners, n + 1, memory_order_release);
  }
  cx_unlock(&lock);
}

#define EMIT(event, ...)                                                 \
  for (int i = 0,                                                        \
           n = atomic_load_explicit(&n_listeners, memory_order_acquire); \
       i < n; i++) {                                                     \
    if (listeners[i]->event != NULL) listeners[i]->event(__VA_ARGS__);   \
  }

void cx_trace_emit_span(const cx_trace_span *span)
{
  EMIT(span, span)
}

void cx_trace_emit_compile(const cx_trace_program *program)
{
  EMIT(compile, program)
}

void cx_trace_emit_compiled(const cx_trace_program *program,
                            const cx_trace_sizes *sizes)
{
  EMIT(compiled, program, sizes)
}

void cx_trace_emit_execute(const cx_trace_program *program)
{
  EMIT(execute, program)
}

void cx_trace_emit_recompile(int device, const char *why)
{
  EMIT(recompile, device, why)
}

void cx_trace_emit_step(int device)
{
  EMIT(step, device)
}

// ---- the ranks of this process ----------------------------------------------

static cx_trace_ranks ranks_here = { 0, 1, true };

void cx_trace_set_ranks(const cx_trace_ranks *ranks)
{
  cx_lock(&lock);
  ranks_here = *ranks;
  cx_unlock(&lock);
}

cx_trace_ranks cx_trace_ranks_here(void)
{
  cx_lock(&lock);
  cx_trace_ranks ranks = ranks_here;
  cx_unlock(&lock);
  return ranks;
}

// ---- the calling thread -----------------------------------------------------

static _Thread_local struct {
  cx_trace_cause cause;
  int number;
  int n_regions;
  int own_depth;
  int64_t own;  // ns
  cx_trace_region regions[CX_TRACE_MOST_REGIONS];
} self;

cx_trace_cause cx_trace_set_cause(cx_trace_cause cause)
{
  cx_trace_cause before = self.cause;
  self.cause = cause;
  return before;
}

cx_trace_cause cx_trace_cause_now(void)
{
  return self.cause;
}

int cx_trace_thread(void)
{
  static atomic_int threads;
  if (self.number == 0) self.number = atomic_fetch_add(&threads, 1) + 1;
  return self.number;
}

int64_t cx_trace_own_begin(void)
{
  int64_t start = cx_trace_start();
  if (start == 0) return 0;
  return self.own_depth++ == 0 ? start : -1;
}

void cx_trace_own_end(int64_t begin)
{
  if (begin == 0) return;
  self.own_depth--;
  if (begin > 0) self.own += cx_now_ns() - begin;
}

int64_t cx_trace_own_take(void)
{
  int64_t own = self.own;
  self.own = 0;
  return own;
}

bool cx_trace_region_push(const char *name)
{
  if (self.n_regions == CX_TRACE_MOST_REGIONS) return false;
  self.regions[self.n_regions++] =
      (cx_trace_region){ name != NULL ? name : "?", cx_trace_start() };
  return true;
}

bool cx_trace_region_pop(cx_trace_region *out)
{
  if (self.n_regions == 0) return false;
  *out = self.regions[--self.n_regions];
  return true;
}

int cx_trace_region_count(void)
{
  return self.n_regions;
}

void cx_trace_region_cut(int count)
{
  if (self.n_regions > count) self.n_regions = count;
}

const char *cx_trace_region_name(void)
{
  return self.n_regions > 0 ? self.regions[self.n_regions - 1].name : NULL;
}
