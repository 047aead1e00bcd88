// base/trace: the switches that tellers and listeners share.
#include "base/trace.h"

atomic_int cx_trace_listeners;

// ---- where ------------------------------------------------------------------

static cx_mutex lock = CX_MUTEX_INIT;
static cx_trace_place here = { 0, 1, true };

void cx_trace_set_place(const cx_trace_place *place)
{
  cx_lock(&lock);
  here = *place;
  cx_unlock(&lock);
}

cx_trace_place cx_trace_here(void)
{
  cx_lock(&lock);
  cx_trace_place place = here;
  cx_unlock(&lock);
  return place;
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
