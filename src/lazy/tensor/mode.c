// lazy/tensor/mode: the environment's switches and the calling thread's state.
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "lazy/internal.h"

_Thread_local cx_lazy_thread_state cx_lazy_self;

int64_t cx_lazy_thread_programs(void)
{
  return cx_lazy_self.programs;
}

// -1: not read yet. Reading twice at the same time gives the same answer.
static atomic_int debug_flags = -1;
static atomic_int eager_flag = -1;
static atomic_llong limit = -1;

// A number is the level of the analysis, see debug/analysis.
static int parse_debug(const char *list)
{
  static const struct {
    const char *name;
    int flag;
  } known[] = { { "handles", CX_LAZY_DEBUG_HANDLES },
                { "indices", CX_LAZY_DEBUG_INDICES },
                { "donation", CX_LAZY_DEBUG_DONATION },
                { "nan", CX_LAZY_DEBUG_NAN },
                { "trap", CX_LAZY_DEBUG_TRAP },
                { "anomaly", CX_LAZY_DEBUG_ANOMALY },
                { "recompiles", CX_LAZY_DEBUG_RECOMPILES } };
  int flags = 0;
  for (const char *p = list; p != NULL && *p != '\0';) {
    size_t n = strcspn(p, ",");
    size_t k = 0;
    while (k < sizeof known / sizeof *known &&
           !(strlen(known[k].name) == n && strncmp(known[k].name, p, n) == 0)) {
      k++;
    }
    if (k < sizeof known / sizeof *known) {
      flags |= known[k].flag;
    } else if (n != 0 && strspn(p, "0123456789") < n) {
      cx_log(
          "CALX_DEBUG: '%.*s' is none of handles, indices, donation, nan, "
          "trap, anomaly, recompiles, and no number",
          (int)n, p);
    }
    p += n + (p[n] == ',');
  }
  return flags;
}

bool cx_lazy_debug_on(int which)
{
  int flags = atomic_load_explicit(&debug_flags, memory_order_relaxed);
  if (flags < 0) {
    flags = parse_debug(getenv("CALX_DEBUG"));
    atomic_store_explicit(&debug_flags, flags, memory_order_relaxed);
  }
  return (flags & which) != 0;
}

void cx_lazy_debug_set(int which, bool on)
{
  cx_lazy_debug_on(0);  // the environment has been read
  if (on) {
    atomic_fetch_or(&debug_flags, which);
  } else {
    atomic_fetch_and(&debug_flags, ~which);
  }
}

bool cx_lazy_eager(void)
{
  int on = atomic_load_explicit(&eager_flag, memory_order_relaxed);
  if (on < 0) {
    on = cx_lazy_env_int("CALX_EAGER", 0) != 0;
    atomic_store_explicit(&eager_flag, on, memory_order_relaxed);
  }
  return on != 0;
}

int64_t cx_lazy_pending_limit(void)
{
  int64_t n = atomic_load_explicit(&limit, memory_order_relaxed);
  if (n < 0) {
    n = cx_lazy_env_int("CALX_PENDING_LIMIT", 100000);
    if (n < 0) n = 0;
    atomic_store_explicit(&limit, n, memory_order_relaxed);
  }
  return n;
}

int64_t cx_lazy_env_int(const char *name, int64_t otherwise)
{
  const char *text = getenv(name);
  if (text == NULL || *text == '\0') return otherwise;
  int64_t value;
  if (cx_read_int(text, INT64_MIN, INT64_MAX, &value)) return value;
  cx_log_once_per_site(name, "%s: '%s' is not a number; %lld is used", name,
                       text, (long long)otherwise);
  return otherwise;
}

void cx_lazy_mode_reload(void)
{
  atomic_store(&debug_flags, -1);
  atomic_store(&eager_flag, -1);
  atomic_store(&limit, -1);
}

void cx_lazy_grad_mode_set(bool on)
{
  cx_lazy_self.grad_regions = on ? 0 : 1;
  cx_lazy_self.grad_bits = 0;
}

bool cx_lazy_grad_mode(void)
{
  return cx_lazy_self.grad_regions == 0 || (cx_lazy_self.grad_bits & 1) != 0;
}

static _Thread_local bool deferred;

void cx_lazy_sync_defer(bool on)
{
  deferred = on;
}

bool cx_lazy_sync_is_deferred(void)
{
  return deferred;
}

cx_lazy_composite_state cx_lazy_composite_begin(const char *name, bool real)
{
  const cx_lazy_composite_state before = cx_lazy_self.composite;
  if (before.name == NULL) cx_lazy_self.composite.name = name;
  if (real) cx_lazy_self.composite.real = true;
  return before;
}

void cx_lazy_composite_end(const cx_lazy_composite_state *before)
{
  cx_lazy_self.composite = *before;
}

const char *cx_lazy_composite(void)
{
  return cx_lazy_self.composite.name;
}

const char *cx_lazy_module_path_set(const char *path)
{
  const char *before = cx_lazy_self.module;
  cx_lazy_self.module = path;
  return before;
}

int cx_lazy_device_index_of_thread(void)
{
  return cx_lazy_self.device != NULL ? cx_lazy_self.device->index : 0;
}
