// api/event: events, waiting for them, and their callbacks.
//
// An event is counted: the code that will set it and each handle of the caller
// hold it, so destroying a handle cancels nothing. The lock guards the change
// from pending to ready and the list of callbacks. A ready event no longer
// changes. Callbacks run in the order of their registration, in the thread that
// sets the event. No lock is held then, and a callback may destroy the event.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

typedef struct waiter {
  struct waiter *next;
  cpu_api_callback *fn;  // NULL: `callers` is called
  PJRT_Event_OnReadyCallback callers;
  void *user;
} waiter;

struct PJRT_Event {
  atomic_long refs;
  atomic_bool ready;
  cx_mutex lock;
  cx_cond changed;
  calx_status *error;
  waiter *first, **last;
  cpu_api_maker maker;
  PJRT_Event *source;  // held: the event of what is copied. Or NULL
};

// Static events are not counted and always ready: one is set without an error,
// the other stands for an error for which there was no memory.
static PJRT_Event always = { .ready = true };
static PJRT_Event no_memory = { .ready = true };

PJRT_Event *cpu_api_event_ready(void)
{
  return &always;
}

PJRT_Event *cpu_api_event_new(void)
{
  PJRT_Event *e = cx_calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  atomic_init(&e->refs, 1);
  atomic_init(&e->ready, false);
  cx_mutex_init(&e->lock);
  cx_cond_init(&e->changed);
  e->last = &e->first;
  return e;
}

PJRT_Event *cpu_api_event_made_by(const cpu_api_maker *maker)
{
  PJRT_Event *e = cpu_api_event_new();
  if (e != NULL) e->maker = *maker;
  return e;
}

PJRT_Event *cpu_api_event_after(PJRT_Event *source)
{
  PJRT_Event *e = cpu_api_event_new();
  if (e != NULL) e->source = cpu_api_event_retain(source);
  return e;
}

static bool is_static(const PJRT_Event *event)
{
  return event == &always || event == &no_memory;
}

PJRT_Event *cpu_api_event_done(calx_status *error)
{
  if (error == NULL) return &always;
  PJRT_Event *e = cpu_api_event_new();
  if (e == NULL) {
    calx_status_free(error);
    return &no_memory;
  }
  cpu_api_event_set(e, error);
  return e;
}

PJRT_Event *cpu_api_event_retain(PJRT_Event *event)
{
  if (!is_static(event)) cpu_api_ref(&event->refs);
  return event;
}

void cpu_api_event_release(PJRT_Event *event)
{
  if (event == NULL || is_static(event) || !cpu_api_unref(&event->refs)) return;
  while (event->first != NULL) {  // it was never set, and no longer can be
    waiter *w = event->first;
    event->first = w->next;
    cx_free(w);
  }
  cpu_api_event_release(event->source);
  if (event->maker.release != NULL) event->maker.release(event->maker.user);
  calx_status_free(event->error);
  cx_cond_free(&event->changed);
  cx_mutex_free(&event->lock);
  cx_free(event);
}

bool cpu_api_event_is_ready(const PJRT_Event *event)
{
  return atomic_load_explicit(&event->ready, memory_order_acquire);
}

const calx_status *cpu_api_event_error(const PJRT_Event *event)
{
  if (event != &no_memory) return event->error;
  return cx_out_of_memory();
}

static void call(const waiter *w, const calx_status *error)
{
  if (w->fn != NULL) {
    w->fn(w->user, error);
  } else {
    w->callers(cpu_api_error(cx_status_copy(error)), w->user);
  }
}

bool cpu_api_event_set(PJRT_Event *event, calx_status *error)
{
  // A callback may release the last other reference.
  cpu_api_event_retain(event);
  cx_lock(&event->lock);
  bool first = !cpu_api_event_is_ready(event);
  waiter *list = NULL;
  if (first) {
    list = event->first;
    event->first = NULL;
    event->error = error;
    atomic_store_explicit(&event->ready, true, memory_order_release);
    cx_cond_broadcast(&event->changed);
  }
  cx_unlock(&event->lock);
  if (!first) calx_status_free(error);
  while (list != NULL) {
    waiter *w = list;
    list = w->next;
    call(w, event->error);
    cx_free(w);
  }
  cpu_api_event_release(event);
  return first;
}

void cpu_api_event_wait(PJRT_Event *event)
{
  if (cpu_api_event_is_ready(event)) return;
  cx_lock(&event->lock);
  while (!cpu_api_event_is_ready(event)) {
    cx_cond_wait(&event->changed, &event->lock);
  }
  cx_unlock(&event->lock);
}

static calx_status *add(PJRT_Event *event, const waiter *what)
{
  waiter *w = NULL;
  if (!cpu_api_event_is_ready(event)) {
    w = cx_alloc(sizeof *w);
    if (w == NULL) return cx_out_of_memory();
    *w = *what;
    w->next = NULL;
    cx_lock(&event->lock);
    bool kept = !cpu_api_event_is_ready(event);
    if (kept) {
      *event->last = w;
      event->last = &w->next;
    }
    cx_unlock(&event->lock);
    if (kept) return NULL;
  }
  cx_free(w);
  call(what, cpu_api_event_error(event));
  return NULL;
}

calx_status *cpu_api_event_then(PJRT_Event *event, cpu_api_callback *fn,
                                void *user)
{
  return add(event, &(waiter){ .fn = fn, .user = user });
}

// ---- PJRT's functions ----

PJRT_Error *cpu_api_PJRT_Event_Destroy(PJRT_Event_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_Event_Destroy, struct_size);
  cpu_api_event_release(args->event);
  return NULL;
}

CPU_API_GET(PJRT_Event_IsReady, event, is_ready,
            cpu_api_event_is_ready(args->event))

static calx_status *error_of(const PJRT_Event *event)
{
  if (cpu_api_event_is_ready(event)) {
    return cx_status_copy(cpu_api_event_error(event));
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "PJRT_Event_Error: the event is not ready");
}

CPU_API_CALL(PJRT_Event_Error, event, error_of(args->event))

static calx_status *await(PJRT_Event *event)
{
  const PJRT_Event *made = event->source != NULL ? event->source : event;
  if (made->maker.help != NULL && !cpu_api_event_is_ready(made)) {
    made->maker.help(made->maker.user, made);
  }
  cpu_api_event_wait(event);
  return error_of(event);
}

CPU_API_CALL(PJRT_Event_Await, event, await(args->event))

CPU_API_CALL2(PJRT_Event_OnReady, event, callback,
              add(args->event, &(waiter){ .callers = args->callback,
                                          .user = args->user_arg }))

static calx_status *create(PJRT_Event **out)
{
  *out = cpu_api_event_new();
  return *out == NULL ? cx_out_of_memory() : NULL;
}

CPU_API_CALL(PJRT_Event_Create, struct_size, create(&args->event))

static calx_status *set(const PJRT_Event_Set_Args *args)
{
  calx_status *error = cpu_api_callers_error(
      args->error_code, args->error_message, args->error_message_size);
  if (is_static(args->event)) {
    calx_status_free(error);
  } else if (cpu_api_event_set(args->event, error)) {
    return NULL;
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "PJRT_Event_Set: the event is set already");
}

CPU_API_CALL(PJRT_Event_Set, event, set(args))
