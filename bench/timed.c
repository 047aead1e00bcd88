// bench/timed: a table in front of the plugin's own; see timed.h.
#include "timed.h"

#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "pjrt/internal.h"

static PJRT_Api inner;  // the plugin's, as far as we know it
static PJRT_Api outer;
static _Thread_local bench_inside spent;
static _Thread_local bench_inside spent_before_launch;
static _Thread_local int64_t launched_at;

static void count(int64_t start)
{
  spent.ns += bench_now() - start;
  spent.calls++;
}

#define TIMED(name)                                  \
  static PJRT_Error *timed_##name(name##_Args *args) \
  {                                                  \
    int64_t start = bench_now();                     \
    PJRT_Error *error = inner.name(args);            \
    count(start);                                    \
    return error;                                    \
  }
#define TIMED_VOID(name)                      \
  static void timed_##name(name##_Args *args) \
  {                                           \
    int64_t start = bench_now();              \
    inner.name(args);                         \
    count(start);                             \
  }
CX_PJRT_FUNCTIONS(TIMED, TIMED_VOID)

static PJRT_Error *execute(PJRT_LoadedExecutable_Execute_Args *args)
{
  spent_before_launch = spent;
  launched_at = bench_now();
  PJRT_Error *error = inner.PJRT_LoadedExecutable_Execute(args);
  count(launched_at);
  return error;
}

// ---- callbacks --------------------------------------------------------------

typedef struct waiter {
  void (*callback)(PJRT_Error *error, void *user);
  void *user;
} waiter;

// On a thread of the plugin's own this only makes its own sum negative.
static void call_back(PJRT_Error *error, void *user)
{
  waiter w = *(waiter *)user;
  free(user);
  int64_t start = bench_now();
  w.callback(error, w.user);
  spent.ns -= bench_now() - start;
}

static PJRT_Error *on_ready(PJRT_Event_OnReady_Args *args)
{
  int64_t start = bench_now();
  waiter *w = malloc(sizeof *w);
  if (w == NULL) abort();
  *w = (waiter){ args->callback, args->user_arg };
  args->callback = call_back;
  args->user_arg = w;
  PJRT_Error *error = inner.PJRT_Event_OnReady(args);
  if (error != NULL) free(w);
  count(start);
  return error;
}

// ---- opening ----------------------------------------------------------------

#define PUT(name) \
  if (inner.name != NULL) outer.name = timed_##name;

calx_status *bench_timed_open(void)
{
  cx_pjrt_plugin *plugin;
  CALX_TRY(cx_pjrt_plugin_open(NULL, &plugin));
  size_t known = plugin->api->struct_size;
  if (known > sizeof inner) known = sizeof inner;
  memcpy(&inner, plugin->api, known);
  inner.struct_size = known;
  outer = inner;
  CX_PJRT_FUNCTIONS(PUT, PUT)
  if (inner.PJRT_Event_OnReady != NULL) outer.PJRT_Event_OnReady = on_ready;
  if (inner.PJRT_LoadedExecutable_Execute != NULL) {
    outer.PJRT_LoadedExecutable_Execute = execute;
  }
  plugin->api = &outer;
  return NULL;
}

bench_inside bench_inside_now(void)
{
  return spent;
}

int64_t bench_launched_at(bench_inside *out_before)
{
  *out_before = spent_before_launch;
  return launched_at;
}

double bench_timed_cost(void)
{
  enum { TIMES = 10000 };
  bench_inside before = spent;
  int64_t start = bench_now();
  for (int i = 0; i < TIMES; i++) count(bench_now());
  int64_t all = bench_now() - start - (spent.ns - before.ns);
  spent = before;
  return (double)all / TIMES;
}
