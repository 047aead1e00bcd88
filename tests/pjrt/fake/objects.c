// fake/objects: errors, events and the plugin's own functions.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

atomic_long fake_live_objects;

// ---- errors ----

typedef struct fake_error_object {
  PJRT_Error base;
  int code;
  char text[512];
} fake_error_object;

PJRT_Error *fake_error(int code, const char *format, ...)
{
  fake_error_object *e = calloc(1, sizeof *e);
  if (e == NULL) abort();
  e->code = code;
  va_list list;
  va_start(list, format);
  vsnprintf(e->text, sizeof e->text, format, list);
  va_end(list);
  atomic_fetch_add(&fake_live_objects, 1);
  return &e->base;
}

static void error_destroy(PJRT_Error_Destroy_Args *args)
{
  if (args->error == NULL) return;
  atomic_fetch_sub(&fake_live_objects, 1);
  free(args->error);
}

static void error_message(PJRT_Error_Message_Args *args)
{
  const fake_error_object *e = (const fake_error_object *)args->error;
  args->message = e->text;
  args->message_size = strlen(e->text);
}

static PJRT_Error *error_get_code(PJRT_Error_GetCode_Args *args)
{
  args->code = (PJRT_Error_Code)((const fake_error_object *)args->error)->code;
  return NULL;
}

// ---- events ----

typedef struct waiter {
  struct waiter *next;
  PJRT_Event_OnReadyCallback callback;
  void *user;
} waiter;

struct PJRT_Event {
  atomic_int refs;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool ready;
  int code;
  char text[128];
  waiter *waiters;
};

PJRT_Event *fake_event_new(void)
{
  PJRT_Event *e = calloc(1, sizeof *e);
  if (e == NULL) abort();
  atomic_init(&e->refs, 1);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->changed, NULL);
  atomic_fetch_add(&fake_live_objects, 1);
  return e;
}

PJRT_Event *fake_event_keep(PJRT_Event *e)
{
  atomic_fetch_add(&e->refs, 1);
  return e;
}

void fake_event_release(PJRT_Event *e)
{
  if (e == NULL || atomic_fetch_sub(&e->refs, 1) != 1) return;
  pthread_mutex_destroy(&e->lock);
  pthread_cond_destroy(&e->changed);
  atomic_fetch_sub(&fake_live_objects, 1);
  free(e);
}

static PJRT_Error *event_result(const PJRT_Event *e)
{
  return e->code == 0 ? NULL : fake_error(e->code, "%s", e->text);
}

void fake_event_set(PJRT_Event *e, int code, const char *text)
{
  pthread_mutex_lock(&e->lock);
  e->code = code;
  if (text != NULL) snprintf(e->text, sizeof e->text, "%s", text);
  e->ready = true;
  waiter *w = e->waiters;
  e->waiters = NULL;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  while (w != NULL) {
    waiter *next = w->next;
    w->callback(event_result(e), w->user);
    free(w);
    w = next;
  }
}

int fake_event_wait(PJRT_Event *e, char out_text[128])
{
  pthread_mutex_lock(&e->lock);
  while (!e->ready) pthread_cond_wait(&e->changed, &e->lock);
  int code = e->code;
  if (out_text != NULL) memcpy(out_text, e->text, sizeof e->text);
  pthread_mutex_unlock(&e->lock);
  return code;
}

static PJRT_Error *event_destroy(PJRT_Event_Destroy_Args *args)
{
  fake_event_release(args->event);
  return NULL;
}

static PJRT_Error *event_is_ready(PJRT_Event_IsReady_Args *args)
{
  pthread_mutex_lock(&args->event->lock);
  args->is_ready = args->event->ready;
  pthread_mutex_unlock(&args->event->lock);
  return NULL;
}

static PJRT_Error *event_await(PJRT_Event_Await_Args *args)
{
  fake_event_wait(args->event, NULL);
  return event_result(args->event);
}

static PJRT_Error *event_error(PJRT_Event_Error_Args *args)
{
  return event_result(args->event);
}

static PJRT_Error *event_on_ready(PJRT_Event_OnReady_Args *args)
{
  PJRT_Event *e = args->event;
  pthread_mutex_lock(&e->lock);
  bool ready = e->ready;
  if (!ready) {
    waiter *w = calloc(1, sizeof *w);
    if (w == NULL) abort();
    *w = (waiter){ e->waiters, args->callback, args->user_arg };
    e->waiters = w;
  }
  pthread_mutex_unlock(&e->lock);
  if (ready) args->callback(event_result(e), args->user_arg);
  return NULL;
}

// ---- the plugin ----

static PJRT_Error *plugin_initialize(PJRT_Plugin_Initialize_Args *args)
{
  (void)args;
  return NULL;
}

#define NAMED(text)                                            \
  CX_PJRT_ARGS(PJRT_NamedValue), .name = text "(not its end)", \
                                 .name_size = sizeof text - 1

static PJRT_Error *plugin_attributes(PJRT_Plugin_Attributes_Args *args)
{
  static const int64_t version[] = { 1, 16, 1 };
  static const PJRT_NamedValue values[] = {
    { NAMED("xla_version"), .type = PJRT_NamedValue_kInt64, .int64_value = 2,
      .value_size = 1 },
    { NAMED("stablehlo_current_version"), .type = PJRT_NamedValue_kInt64List,
      .int64_array_value = version, .value_size = 3 },
    { NAMED("maker"), .type = PJRT_NamedValue_kString,
      .string_value = "tests(not its end)", .value_size = 5 },
    { NAMED("half"), .type = PJRT_NamedValue_kFloat, .float_value = 0.5F,
      .value_size = 1 },
    { NAMED("fake"), .type = PJRT_NamedValue_kBool, .bool_value = true,
      .value_size = 1 },
    { NAMED("odd"), .type = (PJRT_NamedValue_Type)99, .value_size = 1 },
  };
  size_t skipped = fake_is_xla() ? 0 : 1;
  args->attributes = values + skipped;
  args->num_attributes = sizeof values / sizeof *values - skipped;
  return NULL;
}

void fake_fill_objects(PJRT_Api *api)
{
  api->PJRT_Error_Destroy = error_destroy;
  api->PJRT_Error_Message = error_message;
  api->PJRT_Error_GetCode = error_get_code;
  api->PJRT_Event_Destroy = event_destroy;
  api->PJRT_Event_IsReady = event_is_ready;
  api->PJRT_Event_Await = event_await;
  api->PJRT_Event_Error = event_error;
  api->PJRT_Event_OnReady = event_on_ready;
  api->PJRT_Plugin_Initialize = plugin_initialize;
  api->PJRT_Plugin_Attributes = plugin_attributes;
}
