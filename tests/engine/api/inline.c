// inline: which launches the caller runs itself. The device's thread is held in
// a callback, so a launch that is complete when Execute returns was run by the
// caller, and one that is not was left to the device's thread. A caller that
// waits for such a launch runs it.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "host.h"

#define F4 "tensor<4xf32>"
#define ADD BINARY("add", F4)

// A loop whose state is a counter and a vector that grows by 1.
#define LOOP(condition)                                                       \
  "func.func @main(%x: " F4 ") -> " F4                                        \
  " {\n"                                                                      \
  "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"                     \
  "  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, " F4          \
  "\n"                                                                        \
  "   cond {\n"                                                               \
  "    %a = stablehlo.slice %v [0:1] : (" F4                                  \
  ") -> tensor<1xf32>\n"                                                      \
  "    %b = stablehlo.reshape %a : (tensor<1xf32>) -> tensor<f32>\n"          \
  "    %most = stablehlo.constant dense<20.0> : tensor<f32>\n"                \
  "    %small = stablehlo.compare LT, %b, %most : (tensor<f32>, tensor<f32>)" \
  " -> tensor<i1>\n" condition                                                \
  "    stablehlo.return %more : tensor<i1>\n"                                 \
  "   } do {\n"                                                               \
  "    %one = stablehlo.constant dense<1> : tensor<i32>\n"                    \
  "    %j = stablehlo.add %i, %one : tensor<i32>\n"                           \
  "    %ones = stablehlo.constant dense<1.0> : " F4                           \
  "\n"                                                                        \
  "    %w = stablehlo.add %v, %ones : " F4                                    \
  "\n"                                                                        \
  "    stablehlo.return %j, %w : tensor<i32>, " F4                            \
  "\n"                                                                        \
  "   }\n"                                                                    \
  "  return %0#1 : " F4 "\n}\n"

#define BELOW(limit)                                             \
  "    %limit = stablehlo.constant dense<" limit                 \
  "> : tensor<i32>\n"                                            \
  "    %few = stablehlo.compare LT, %i, %limit : (tensor<i32>, " \
  "tensor<i32>) -> tensor<i1>\n"
#define BOTH "    %more = stablehlo.and %few, %small : tensor<i1>\n"
#define ALWAYS_SMALL "    %more = stablehlo.and %small, %small : tensor<i1>\n"

typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool held, open;
} gate;

static void pass(PJRT_Error *error, void *user)
{
  gate *g = user;
  assert_null(error);
  pthread_mutex_lock(&g->lock);
  g->held = true;
  pthread_cond_broadcast(&g->changed);
  while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
  pthread_mutex_unlock(&g->lock);
}

static PJRT_Event *event_of(PJRT_Buffer *buffer)
{
  ARGS(args, PJRT_Buffer_ReadyEvent, .buffer = buffer);
  HOST_OK(api->PJRT_Buffer_ReadyEvent(&args));
  return args.event;
}

// Holds the device's thread in a callback.
static void hold(PJRT_Client *client, PJRT_LoadedExecutable *add, gate *g)
{
  host_pending p = host_promise(client, 0, 4);
  PJRT_Buffer *args[] = { p.buffer, p.buffer };
  PJRT_Buffer *sum = NULL;
  HOST_OK(host_run(add, NULL, args, 2, &sum));
  PJRT_Event *e = event_of(sum);
  HOST_OK(
      CALL(PJRT_Event_OnReady, .event = e, .callback = pass, .user_arg = g));
  host_fulfil(&p, 1);
  pthread_mutex_lock(&g->lock);
  while (!g->held) pthread_cond_wait(&g->changed, &g->lock);
  pthread_mutex_unlock(&g->lock);
  HOST_OK(CALL(PJRT_Event_Destroy, .event = e));
  host_free(p.buffer);
  host_free(sum);
}

static void let_go(gate *g)
{
  pthread_mutex_lock(&g->lock);
  g->open = true;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

#define CLOSED_GATE                                                    \
  {                                                                    \
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .held = false \
  }

// Runs the program on 1, 2, 3, 4 while the device's thread is held.
static void check(const char *text, bool by_caller, float first)
{
  gate g = CLOSED_GATE;
  unsetenv("CALX_CPU_REF");  // what is interpreted is never run by the caller
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *add = host_program(client, ADD);
  PJRT_LoadedExecutable *program = host_program(client, text);
  hold(client, add, &g);
  PJRT_Buffer *x = host_floats(host_device(client, 0), 4, 1);
  PJRT_Buffer *out = NULL;
  HOST_OK(host_run(program, NULL, &x, 1, &out));
  const bool complete = host_is_ready(out);
  let_go(&g);
  assert_int_equal(complete, by_caller);
  host_check_floats(out, 4, first, 1);
  host_free(out);
  host_free(x);
  host_program_free(program);
  host_program_free(add);
  host_client_free(client);
}

static void test_bounded(void **state)
{
  (void)state;
  check(LOOP(BELOW("5") BOTH), true, 6);
  check(LOOP(BELOW("5") "    %more = stablehlo.and %few, %few : tensor<i1>\n"),
        true, 6);
}

static void test_unbounded(void **state)
{
  (void)state;
  check(LOOP(ALWAYS_SMALL), false, 20);
}

// The counter allows more than a caller waits for.
static void test_long(void **state)
{
  (void)state;
  check(LOOP(BELOW("1000000000") BOTH), false, 20);
}

// The caller waits while the device's thread is held: first for one result and
// then for a copy of the latest of two.
static void test_awaited(void **state)
{
  (void)state;
  gate g = CLOSED_GATE;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *add = host_program(client, ADD);
  PJRT_LoadedExecutable *program = host_program(client, LOOP(ALWAYS_SMALL));
  hold(client, add, &g);
  PJRT_Buffer *x = host_floats(host_device(client, 0), 4, 1);
  PJRT_Buffer *out[3];
  HOST_OK(host_run(program, NULL, &x, 1, &out[0]));
  assert_false(host_is_ready(out[0]));
  PJRT_Event *e = event_of(out[0]);
  HOST_OK(CALL(PJRT_Event_Await, .event = e));
  HOST_OK(CALL(PJRT_Event_Destroy, .event = e));
  assert_true(host_is_ready(out[0]));
  HOST_OK(host_run(program, NULL, &x, 1, &out[1]));
  HOST_OK(host_run(program, NULL, &out[1], 1, &out[2]));
  assert_false(host_is_ready(out[1]));
  host_check_floats(out[2], 4, 20, 1);
  assert_true(host_is_ready(out[1]));
  let_go(&g);
  host_check_floats(out[0], 4, 20, 1);
  for (int i = 0; i < 3; i++) host_free(out[i]);
  host_free(x);
  host_program_free(program);
  host_program_free(add);
  host_client_free(client);
}

static void sleep_ms(int ms)
{
  const struct timespec t = { .tv_nsec = ms * 1000000L };
  nanosleep(&t, NULL);
}

// After many launches that the caller ran because it waited for them, one that
// it does not wait for is run all the same: first while the device's thread
// looks at the queue, then after it has stopped doing so.
static void test_not_awaited(void **state)
{
  (void)state;
  PJRT_Client *client = host_client(1);
  PJRT_LoadedExecutable *program = host_program(client, LOOP(ALWAYS_SMALL));
  PJRT_Buffer *x = host_floats(host_device(client, 0), 4, 1);
  for (int pause_ms = 0; pause_ms <= 20; pause_ms += 20) {
    PJRT_Buffer *out;
    for (int i = 0; i < 50; i++) {
      HOST_OK(host_run(program, NULL, &x, 1, &out));
      host_check_floats(out, 4, 20, 1);
      host_free(out);
    }
    sleep_ms(pause_ms);
    HOST_OK(host_run(program, NULL, &x, 1, &out));
    for (int ms = 0; !host_is_ready(out); ms++) {
      assert_true(ms < 10000);
      sleep_ms(1);
    }
    host_free(out);
  }
  host_free(x);
  host_program_free(program);
  host_client_free(client);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    HOST_TEST(test_bounded), HOST_TEST(test_unbounded),   HOST_TEST(test_long),
    HOST_TEST(test_awaited), HOST_TEST(test_not_awaited),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
