// store/watch: one thread per process that reads what the server tells.
//
// It asks the server for the next event; the server answers when there is one,
// when the job has failed, or when a heartbeat's pause is over. So one exchange
// is the news, the sign of life of this process and that of the server. It also
// takes the answers to all calls and sends what did not go at once.
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/client_internal.h"

enum { PAUSE_MS = 1000, PAUSE_WITHOUT_LIMIT_MS = 60000, LAST_ANSWERS_MS = 300 };

int64_t cx_store_watch_pause_ms(const cx_store_client *c)
{
  int64_t limit = c->options.heartbeat_ms;
  if (limit <= 0) return PAUSE_WITHOUT_LIMIT_MS;
  return limit / 5 < PAUSE_MS ? limit / 5 : PAUSE_MS;
}

// ---- what comes and goes ----------------------------------------------------

// One that nobody waits for any more is dropped.
static void hand_over(cx_store_client *c, uint32_t number, const void *bytes,
                      size_t size)
{
  call *k = c->calls;
  while (k != NULL && k->number != number) k = k->next;
  if (k == NULL || k->answered) return;
  k->answered = true;
  k->bytes = cx_alloc(size + 1);
  k->size = size;
  if (k->bytes != NULL && size != 0) memcpy(k->bytes, bytes, size);
}

// Under the lock; whether anything came.
static bool pump(cx_store_client *c)
{
  const void *bytes;
  size_t size, came = 1;
  uint32_t number;
  bool any = false;
  cx_store_connection_flush(&c->link);
  while (came > 0) {
    cx_store_connection_state word;
    came = cx_store_connection_receive(&c->link);
    any = any || came > 0;
    while (
        (word = cx_store_connection_next(&c->link, &number, &bytes, &size)) ==
        CX_STORE_CONNECTION_MESSAGE) {
      hand_over(c, number, bytes, size);
    }
    if (word == CX_STORE_CONNECTION_TOO_LONG) c->link.lost = true;
  }
  if (any || c->link.lost) cx_cond_broadcast(&c->changed);
  return any;
}

// Until something comes or can go, somebody wakes this thread, or the time is
// over. Whether anything came.
static bool wait_and_pump(cx_store_client *c, int64_t wait_ms)
{
  uint64_t ignored;
  struct pollfd list[2] = { { .fd = c->wake, .events = POLLIN },
                            { .fd = c->link.fd, .events = POLLIN } };
  cx_lock(&c->lock);
  if (cx_store_connection_pending(&c->link) > 0) list[1].events |= POLLOUT;
  cx_unlock(&c->lock);
  poll(list, 2, wait_ms > 0 ? (int)wait_ms : 0);
  if (list[0].revents != 0) (void)!read(c->wake, &ignored, sizeof ignored);
  cx_lock(&c->lock);
  bool any = pump(c);
  cx_unlock(&c->lock);
  return any;
}

static void ask(cx_store_client *c)
{
  cx_store_request r = { .op = CX_STORE_OP_WATCH,
                         .a = c->seen,
                         .wait_ms = cx_store_watch_pause_ms(c) };
  cx_lock(&c->lock);
  cx_store_client_send(c, &c->asked, &r);
  cx_unlock(&c->lock);
}

typedef enum heard {
  HEARD_NOTHING,
  HEARD_ANSWER,
  HEARD_LOSS,
  HEARD_SILENCE,
  HEARD_STOP
} heard;

static heard look(cx_store_client *c, bool late)
{
  heard what = HEARD_NOTHING;
  cx_lock(&c->lock);
  if (c->leaving) {
    what = HEARD_STOP;
  } else if (c->asked.answered) {
    what = HEARD_ANSWER;
  } else if (c->link.lost) {
    what = HEARD_LOSS;
  } else if (late) {
    what = HEARD_SILENCE;
    c->link.lost = true;
    cx_cond_broadcast(&c->changed);
  }
  cx_unlock(&c->lock);
  return what;
}

// Waits in slices: who was stopped itself has heard nobody, and sees it by a
// slice that took far longer.
static heard listen_for(cx_store_client *c)
{
  int64_t limit = c->options.heartbeat_ms;
  int64_t slice = limit > 0 ? limit / 4 + 1 : PAUSE_WITHOUT_LIMIT_MS;
  int64_t begun = cx_now_ns(), until = begun + limit * 1000000;
  for (;;) {
    int64_t now = cx_now_ns();
    if (now - begun > limit * 500000) until = now + limit * 1000000;
    begun = now;
    heard what = look(c, limit > 0 && now >= until);
    if (what != HEARD_NOTHING) return what;
    int64_t left = limit > 0 ? (until - now) / 1000000 + 1 : slice;
    if (wait_and_pump(c, left < slice ? left : slice)) {
      until = cx_now_ns() + limit * 1000000;
    }
  }
}

// ---- what it means ----------------------------------------------------------

static void tell(cx_store_client *c, calx_code code, const char *news)
{
  cx_lock(&c->lock);
  bool bye = c->bye;
  cx_unlock(&c->lock);
  if (bye) return;
  if (cx_store_client_note_failure(c, code, news) || !c->told) {
    c->told = true;
    c->options.on_news(c->options.user, c->failed, c->news);
  }
}

// Whether to go on.
static bool take_answer(cx_store_client *c)
{
  cx_store_reply reply;
  bool go_on = true;
  cx_lock(&c->lock);
  call own = c->asked;
  cx_store_client_drop(&c->asked);
  c->asked = (call){ 0 };
  cx_unlock(&c->lock);
  if (own.bytes == NULL) {
    tell(c, CALX_RESOURCE_EXHAUSTED, "no memory for what the store says");
    return false;
  }
  if (!cx_store_wire_read_reply(own.bytes, own.size, &reply)) {
    tell(c, CALX_ABORTED, "the store answers what is no answer");
    go_on = false;
  } else if (reply.kind == CX_STORE_REPLY_EVENT) {
    c->seen++;
    c->options.on_event(c->options.user, reply.value, reply.size);
  } else if (reply.kind == CX_STORE_REPLY_FAILURE || reply.code != CALX_OK) {
    char text[CX_STORE_FAILURE_BYTES];
    int n = reply.size < sizeof text ? (int)reply.size : (int)sizeof text - 1;
    snprintf(text, sizeof text, "%.*s", n, n != 0 ? reply.value : "");
    tell(c, reply.code, text);
    go_on = false;
  }
  cx_free(own.bytes);
  return go_on;
}

// After the last news. The server answers what waits by itself, and what it
// answered before the news still counts, so calls have a moment to hear it. One
// that comes later, the farewell at least, must not wait for a server that has
// gone.
static void wait_for_loss(cx_store_client *c)
{
  int64_t until = cx_now_ns() + (int64_t)LAST_ANSWERS_MS * 1000000;
  for (bool going = true; going;) {
    int64_t left = (until - cx_now_ns()) / 1000000;
    cx_lock(&c->lock);
    going = !c->link.lost && !c->leaving;
    if (left <= 0 || !going) cx_store_client_end_calls(c);
    cx_unlock(&c->lock);
    // A call that comes now is ended after the next slice.
    if (going) wait_and_pump(c, left > 0 ? left : LAST_ANSWERS_MS);
  }
}

static void watch(void *user)
{
  cx_store_client *c = user;
  char text[256];
  ask(c);
  for (bool going = true; going;) {
    switch (listen_for(c)) {
      case HEARD_ANSWER:
        going = take_answer(c);
        if (going) ask(c);
        break;
      case HEARD_LOSS:
        snprintf(text, sizeof text,
                 "%s, which serves the store, has gone (its connection closed)",
                 c->served_by);
        tell(c, CALX_ABORTED, text);
        going = false;
        break;
      case HEARD_SILENCE:
        snprintf(text, sizeof text,
                 "%s, which serves the store, has gone (no sign of it for %.3g "
                 "s: stopped, or its host is unreachable)",
                 c->served_by, (double)c->options.heartbeat_ms / 1000);
        tell(c, CALX_ABORTED, text);
        going = false;
        break;
      case HEARD_NOTHING:
      case HEARD_STOP: going = false; break;
    }
  }
  wait_for_loss(c);
}

calx_status *cx_store_watch_start(cx_store_client *c)
{
  return cx_thread_start(&c->thread, watch, c);
}

void cx_store_watch_stop(cx_store_client *c)
{
  const uint64_t one = 1;
  cx_lock(&c->lock);
  c->leaving = true;
  cx_unlock(&c->lock);
  (void)!write(c->wake, &one, sizeof one);
  cx_thread_join(&c->thread);
  cx_store_client_drop(&c->asked);
  cx_free(c->asked.bytes);
}
