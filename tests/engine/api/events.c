// events: who waits, who is called, in which thread and order.
#include <pthread.h>
#include <stdatomic.h>

#include "host.h"

static PJRT_Event *event_new(void)
{
  ARGS(args, PJRT_Event_Create, 0);
  HOST_OK(api->PJRT_Event_Create(&args));
  return args.event;
}

static PJRT_Error *event_set(PJRT_Event *event, int code, const char *text)
{
  return CALL(PJRT_Event_Set, .event = event,
              .error_code = (PJRT_Error_Code)code, .error_message = text,
              .error_message_size = strlen(text));
}

static bool is_ready(PJRT_Event *event)
{
  ARGS(args, PJRT_Event_IsReady, .event = event);
  HOST_OK(api->PJRT_Event_IsReady(&args));
  return args.is_ready;
}

static void event_free(PJRT_Event *event)
{
  HOST_OK(CALL(PJRT_Event_Destroy, .event = event));
}

static void test_life(void **state)
{
  (void)state;
  PJRT_Event *e = event_new();
  assert_false(is_ready(e));
  HOST_FAILS(9, CALL(PJRT_Event_Error, .event = e), "not ready");
  HOST_OK(event_set(e, 0, ""));
  assert_true(is_ready(e));
  HOST_OK(CALL(PJRT_Event_Error, .event = e));
  HOST_OK(CALL(PJRT_Event_Await, .event = e));
  HOST_FAILS(9, event_set(e, 0, ""), "set already");
  event_free(e);
  e = event_new();
  HOST_OK(event_set(e, PJRT_Error_Code_ABORTED, "it broke"));
  // Each asker gets an error of his own.
  HOST_FAILS(10, CALL(PJRT_Event_Await, .event = e), "it broke");
  HOST_FAILS(10, CALL(PJRT_Event_Error, .event = e), "it broke");
  event_free(e);
  e = event_new();
  HOST_OK(event_set(e, 99, "a code that is none"));
  HOST_FAILS(2, CALL(PJRT_Event_Await, .event = e), "a code that is none");
  event_free(e);
  event_free(NULL);
}

// ---- callbacks ----

typedef struct heard {
  char order[16];
  int codes[16];
  size_t n;
  pthread_t thread;
} heard;

typedef struct listener {
  heard *heard;
  char name;
  PJRT_Event *destroys;
} listener;

static void hear(PJRT_Error *error, void *user)
{
  listener *l = user;
  l->heard->codes[l->heard->n] = host_take(error);
  l->heard->order[l->heard->n++] = l->name;
  l->heard->thread = pthread_self();
  if (l->destroys != NULL) event_free(l->destroys);
}

static void listen(PJRT_Event *event, listener *l)
{
  HOST_OK(CALL(PJRT_Event_OnReady, .event = event, .callback = hear,
               .user_arg = l));
}

static void test_callbacks(void **state)
{
  (void)state;
  heard h = { .n = 0 };
  PJRT_Event *e = event_new();
  listener a = { &h, 'a', NULL };
  listener b = { &h, 'b', e };  // the event may go away in a callback
  listener c = { &h, 'c', NULL };
  listen(e, &a);
  listen(e, &b);
  listen(e, &c);
  assert_int_equal(h.n, 0);
  HOST_OK(event_set(e, PJRT_Error_Code_INTERNAL, "late"));
  assert_string_equal(h.order, "abc");
  for (int i = 0; i < 3; i++) assert_int_equal(h.codes[i], 13);
  // At once, and here, when it is ready.
  e = event_new();
  HOST_OK(event_set(e, 0, ""));
  listener d = { &h, 'd', NULL };
  listen(e, &d);
  assert_string_equal(h.order, "abcd");
  assert_int_equal(h.codes[3], 0);
  assert_true(pthread_equal(h.thread, pthread_self()));
  event_free(e);
  e = event_new();
  HOST_FAILS(3, CALL(PJRT_Event_OnReady, .event = e), "callback");
  event_free(e);
}

// ---- threads ----

static void *wait_for(void *user)
{
  return (void *)(intptr_t)host_take(CALL(PJRT_Event_Await, .event = user));
}

static void test_waiters(void **state)
{
  (void)state;
  PJRT_Event *e = event_new();
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, wait_for, e), 0);
  }
  HOST_OK(event_set(e, PJRT_Error_Code_CANCELLED, ""));
  for (int i = 0; i < 3; i++) {
    void *code = NULL;
    pthread_join(threads[i], &code);
    assert_int_equal((intptr_t)code, 1);
  }
  event_free(e);
}

static atomic_int calls;

static void count(PJRT_Error *error, void *user)
{
  (void)user;
  (void)host_take(error);
  atomic_fetch_add(&calls, 1);
}

static void *register_some(void *user)
{
  for (int i = 0; i < 100; i++) {
    HOST_OK(CALL(PJRT_Event_OnReady, .event = user, .callback = count));
  }
  return NULL;
}

// Each callback runs once, whether it came before or after.
static void test_registering_while_set(void **state)
{
  (void)state;
  PJRT_Event *e = event_new();
  pthread_t thread;
  atomic_store(&calls, 0);
  assert_int_equal(pthread_create(&thread, NULL, register_some, e), 0);
  HOST_OK(event_set(e, 0, ""));
  pthread_join(thread, NULL);
  assert_int_equal(atomic_load(&calls), 100);
  event_free(e);
}

// What the callback gets of a buffer that fails.
static void test_of_a_buffer(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  host_pending p = host_promise(client, 0, 4);
  ARGS(ready, PJRT_Buffer_ReadyEvent, .buffer = p.buffer);
  HOST_OK(api->PJRT_Buffer_ReadyEvent(&ready));
  heard h = { .n = 0 };
  listener a = { &h, 'a', NULL };
  listen(ready.event, &a);
  event_free(ready.event);  // cancels nothing
  assert_int_equal(h.n, 0);
  host_break(&p, "no more");
  assert_int_equal(h.n, 1);
  assert_int_equal(h.codes[0], PJRT_Error_Code_ABORTED);
  HOST_FAILS(10, host_ready(p.buffer), "no more");
  host_free(p.buffer);
  host_client_free(client);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_life),        HOST_TEST(test_callbacks),
    HOST_TEST(test_waiters),     HOST_TEST(test_registering_while_set),
    HOST_TEST(test_of_a_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
