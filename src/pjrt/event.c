// pjrt/event: a plugin's promise that something is done, or why it failed.
//
// An event's handle may be freed at any time: the plugin keeps what it needs,
// and a callback once registered still runs, once. An event of several devices
// is a list of theirs.
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
  calx_status *status = NULL;
  for (; e != NULL; e = e->next) {
    status = cx_status_first(status, await_raw(e->plugin, e->raw));
  }
  return status;
}

// An event that cannot be asked counts as ready: waiting for it tells why.
static bool is_ready(cx_pjrt_event *e)
{
  CX_PJRT_DECLARE(args, PJRT_Event_IsReady, .event = e->raw);
  calx_status *status = CX_PJRT_CALL(e->plugin, PJRT_Event_IsReady, &args);
  bool ready = status != NULL || args.is_ready;
  cx_pjrt_ignore(status);
  return ready;
}

bool cx_pjrt_event_is_ready(cx_pjrt_event *e)
{
  while (e != NULL && is_ready(e)) e = e->next;
  return e == NULL;
}

static void run_waiter(PJRT_Error *error, void *user_arg)
{
  event_waiter w = *(event_waiter *)user_arg;
  cx_free(user_arg);
  w.fn(w.user, cx_pjrt_take(w.plugin, "an event", error));
}

static calx_status *on_ready(cx_pjrt_event *e,
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

// The waiter for all events of a list: the last one to fire calls it.
typedef struct event_group {
  atomic_size_t left;
  _Atomic(calx_status *) failed;  // the first failure
  void (*fn)(void *user, calx_status *status);
  void *user;
} event_group;

static void one_of_group(void *user, calx_status *status)
{
  event_group *group = user;
  calx_status *none = NULL;
  if (status != NULL &&
      !atomic_compare_exchange_strong(&group->failed, &none, status)) {
    calx_status_free(status);
  }
  if (atomic_fetch_sub(&group->left, 1) != 1) return;
  void (*fn)(void *user, calx_status *status) = group->fn;
  void *fn_user = group->user;
  status = atomic_load(&group->failed);
  cx_free(group);
  fn(fn_user, status);
}

calx_status *cx_pjrt_event_on_ready(cx_pjrt_event *e,
                                    void (*fn)(void *user, calx_status *status),
                                    void *user)
{
  if (e->next == NULL) return on_ready(e, fn, user);
  event_group *group = cx_calloc(1, sizeof *group);
  if (group == NULL) return cx_out_of_memory();
  size_t n = 0;
  for (const cx_pjrt_event *each = e; each != NULL; each = each->next) n++;
  atomic_init(&group->left, n);
  group->fn = fn;
  group->user = user;
  for (; n > 0; n--) {  // the group may be gone behind the last one
    cx_pjrt_event *next = e->next;
    calx_status *status = on_ready(e, one_of_group, group);
    if (status != NULL) one_of_group(group, status);
    e = next;
  }
  return NULL;
}

void cx_pjrt_event_free(cx_pjrt_event *e)
{
  for (cx_pjrt_event *next; e != NULL; e = next) {
    next = e->next;
    cx_pjrt_event_destroy(e->plugin, e->raw);
    cx_pjrt_count(-1);
    cx_free(e);
  }
}
