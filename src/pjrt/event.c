// pjrt/event: a plugin's promise that something is done, or why it failed.
//
// An event's handle may be freed at any time: the plugin keeps what it needs,
// and a callback once registered still runs, once.
#include "base/alloc.h"
#include "pjrt/internal.h"

typedef struct event_waiter {
  cx_pjrt_plugin *plugin;
  void (*fn)(void *user, calx_status *status);
  void *user;
} event_waiter;

void cx_pjrt_event_destroy(cx_pjrt_plugin *p, PJRT_Event *raw)
{
  if (raw == NULL) return;
  CX_PJRT_DESTROY(p, PJRT_Event, .event = raw);
}

cx_pjrt_event *cx_pjrt_event_new(cx_pjrt_plugin *p)
{
  cx_pjrt_event *e = cx_calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  e->plugin = p;
  cx_pjrt_count(1);
  return e;
}

static calx_status *await_raw(cx_pjrt_plugin *p, PJRT_Event *raw)
{
  CX_PJRT_DECLARE(args, PJRT_Event_Await, .event = raw);
  return CX_PJRT_CALL(p, PJRT_Event_Await, &args);
}

calx_status *cx_pjrt_event_finish(cx_pjrt_plugin *p, PJRT_Event *raw)
{
  if (raw == NULL) return NULL;
  calx_status *status = await_raw(p, raw);
  cx_pjrt_event_destroy(p, raw);
  return status;
}

calx_status *cx_pjrt_event_await(cx_pjrt_event *e)
{
  return await_raw(e->plugin, e->raw);
}

// An event that cannot be asked counts as ready: waiting for it tells why.
bool cx_pjrt_event_is_ready(cx_pjrt_event *e)
{
  CX_PJRT_DECLARE(args, PJRT_Event_IsReady, .event = e->raw);
  calx_status *status = CX_PJRT_CALL(e->plugin, PJRT_Event_IsReady, &args);
  bool ready = status != NULL || args.is_ready;
  cx_pjrt_ignore(status);
  return ready;
}

static void run_waiter(PJRT_Error *error, void *user_arg)
{
  event_waiter w = *(event_waiter *)user_arg;
  cx_free(user_arg);
  w.fn(w.user, cx_pjrt_take(w.plugin, "an event", error));
}

calx_status *cx_pjrt_event_on_ready(cx_pjrt_event *e,
                                    void (*fn)(void *user, calx_status *status),
                                    void *user)
{
  event_waiter *w = cx_alloc(sizeof *w);
  if (w == NULL) return cx_out_of_memory();
  *w = (event_waiter){ .plugin = e->plugin, .fn = fn, .user = user };
  CX_PJRT_DECLARE(args, PJRT_Event_OnReady, .event = e->raw,
                  .callback = run_waiter, .user_arg = w);
  calx_status *status = CX_PJRT_CALL(e->plugin, PJRT_Event_OnReady, &args);
  if (status != NULL) cx_free(w);
  return status;
}

void cx_pjrt_event_free(cx_pjrt_event *e)
{
  if (e == NULL) return;
  cx_pjrt_event_destroy(e->plugin, e->raw);
  cx_pjrt_count(-1);
  cx_free(e);
}
