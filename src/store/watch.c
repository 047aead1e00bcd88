// store/watch: the client's thread, which reads all that the server sends.
//
// It asks the server for the next event. The server replies when there is one,
// when the job has failed, or after an interval. So one exchange brings events
// and the failure, and proves to each side that the other one is alive. The
// thread also delivers the replies to all calls, and sends what a call could
// not send at once.
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/client_internal.h"

enum { INTERVAL_MS = 1000, INTERVAL_WITHOUT_LIMIT_MS = 60000, DRAIN_MS = 300 };

int64_t cx_store_watch_interval_ms(const cx_store_client *c)
{
  int64_t limit = c->options.heartbeat_ms;
  if (limit <= 0) return INTERVAL_WITHOUT_LIMIT_MS;
  return limit / 5 < INTERVAL_MS ? limit / 5 : INTERVAL_MS;
}

// ---- receiving and sending --------------------------------------------------

// A reply whose call has ended is dropped.
static void deliver(cx_store_client *c, uint32_t number, const void *bytes,
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

// The caller holds the lock. Returns whether anything arrived.
static bool transfer(cx_store_client *c)
{
  const void *bytes;
  size_t size, received = 1;
  uint32_t number;
  bool any = false;
  cx_store_connection_flush(&c->connection);
  while (received > 0) {
    cx_store_connection_state state;
    received = cx_store_connection_receive(&c->connection);
    any = any || received > 0;
    while ((state = cx_store_connection_next(&c->connection, &number, &bytes,
                                             &size)) ==
           CX_STORE_CONNECTION_MESSAGE) {
      deliver(c, number, bytes, size);
    }
    if (state == CX_STORE_CONNECTION_TOO_LONG) c->connection.lost = true;
  }
  if (any || c->connection.lost) cx_cond_broadcast(&c->changed);
  return any;
}

// Waits until the connection is ready, the thread is woken, or the time is
// over. Returns whether anything arrived.
static bool wait_and_transfer(cx_store_client *c, int64_t wait_ms)
{
  uint64_t ignored;
  struct pollfd list[2] = { { .fd = c->wake, .events = POLLIN },
                            { .fd = c->connection.fd, .events = POLLIN } };
  cx_lock(&c->lock);
  if (cx_store_connection_pending(&c->connection) > 0) {
    list[1].events |= POLLOUT;
  }
  cx_unlock(&c->lock);
  poll(list, 2, wait_ms > 0 ? (int)wait_ms : 0);
  if (list[0].revents != 0) (void)!read(c->wake, &ignored, sizeof ignored);
  cx_lock(&c->lock);
  bool any = transfer(c);
  cx_unlock(&c->lock);
  return any;
}

static void send_watch(cx_store_client *c)
{
  cx_store_request r = { .op = CX_STORE_OP_WATCH,
                         .a = c->events_received,
                         .wait_ms = cx_store_watch_interval_ms(c) };
  cx_lock(&c->lock);
  cx_store_client_send(c, &c->watch, &r);
  cx_unlock(&c->lock);
}

typedef enum watch_state {
  WATCH_WAITS,
  WATCH_ANSWERED,
  WATCH_LOST,
  WATCH_SILENT,
  WATCH_STOPPED
} watch_state;

static watch_state get_state(cx_store_client *c, bool late)
{
  watch_state state = WATCH_WAITS;
  cx_lock(&c->lock);
  if (c->stopping) {
    state = WATCH_STOPPED;
  } else if (c->watch.answered) {
    state = WATCH_ANSWERED;
  } else if (c->connection.lost) {
    state = WATCH_LOST;
  } else if (late) {
    state = WATCH_SILENT;
    c->connection.lost = true;
    cx_cond_broadcast(&c->changed);
  }
  cx_unlock(&c->lock);
  return state;
}

// Waits in slices. A slice that took much longer shows that this process itself
// was stopped; the limit then starts again.
static watch_state wait_for_change(cx_store_client *c)
{
  int64_t limit = c->options.heartbeat_ms;
  int64_t slice = limit > 0 ? limit / 4 + 1 : INTERVAL_WITHOUT_LIMIT_MS;
  int64_t begun = cx_now_ns(), until = begun + limit * 1000000;
  for (;;) {
    int64_t now = cx_now_ns();
    if (now - begun > limit * 500000) until = now + limit * 1000000;
    begun = now;
    watch_state state = get_state(c, limit > 0 && now >= until);
    if (state != WATCH_WAITS) return state;
    int64_t left = limit > 0 ? (until - now) / 1000000 + 1 : slice;
    if (wait_and_transfer(c, left < slice ? left : slice)) {
      until = cx_now_ns() + limit * 1000000;
    }
  }
}

// ---- events and failures ----------------------------------------------------

static void report(cx_store_client *c, calx_code code, const char *message)
{
  cx_lock(&c->lock);
  bool bye = c->bye;
  cx_unlock(&c->lock);
  if (bye) return;
  if (cx_store_client_note_failure(c, code, message) || !c->reported) {
    c->reported = true;
    c->options.on_failure(c->options.user, c->failed, c->failure);
  }
}

static void report_loss(cx_store_client *c, bool silent)
{
  char text[256], why[CX_STORE_LOSS_BYTES];
  cx_store_wire_format_loss(silent ? c->options.heartbeat_ms : 0, why);
  snprintf(text, sizeof text, "%s, which serves the store, was lost (%s)",
           c->server, why);
  report(c, CALX_ABORTED, text);
}

// Returns whether the watch goes on.
static bool take_reply(cx_store_client *c)
{
  cx_store_reply reply;
  bool goes_on = true;
  cx_lock(&c->lock);
  call own = c->watch;
  cx_store_client_remove(&c->watch);
  c->watch = (call){ 0 };
  cx_unlock(&c->lock);
  if (own.bytes == NULL) {
    report(c, CALX_RESOURCE_EXHAUSTED, "no memory for the store's message");
    return false;
  }
  if (!cx_store_wire_read_reply(own.bytes, own.size, &reply)) {
    report(c, CALX_ABORTED, "the store sent a reply that is damaged");
    goes_on = false;
  } else if (reply.kind == CX_STORE_REPLY_EVENT) {
    c->events_received++;
    c->options.on_event(c->options.user, reply.value, reply.size);
  } else if (reply.kind == CX_STORE_REPLY_FAILURE || reply.code != CALX_OK) {
    char text[CX_STORE_FAILURE_BYTES];
    cx_store_wire_copy_text(reply.value, reply.size, text, sizeof text);
    report(c, reply.code, text);
    goes_on = false;
  }
  cx_free(own.bytes);
  return goes_on;
}

// After a failure. The server ends the calls that wait by itself, and its
// earlier replies are still valid; so calls get DRAIN_MS to receive them. Later
// calls, at least the BYE, must not wait for a server that was lost.
static void drain(cx_store_client *c)
{
  int64_t until = cx_now_ns() + (int64_t)DRAIN_MS * 1000000;
  for (bool going = true; going;) {
    int64_t left = (until - cx_now_ns()) / 1000000;
    cx_lock(&c->lock);
    going = !c->connection.lost && !c->stopping;
    if (left <= 0 || !going) cx_store_client_end_calls(c);
    cx_unlock(&c->lock);
    // A call that begins now is ended after the next slice.
    if (going) wait_and_transfer(c, left > 0 ? left : DRAIN_MS);
  }
}

static void watch(void *user)
{
  cx_store_client *c = user;
  watch_state state;
  do {
    send_watch(c);
    state = wait_for_change(c);
  } while (state == WATCH_ANSWERED && take_reply(c));
  if (state == WATCH_LOST || state == WATCH_SILENT) {
    report_loss(c, state == WATCH_SILENT);
  }
  drain(c);
}

calx_status *cx_store_watch_start(cx_store_client *c)
{
  return cx_thread_start(&c->thread, watch, c);
}

void cx_store_watch_stop(cx_store_client *c)
{
  const uint64_t one = 1;
  cx_lock(&c->lock);
  c->stopping = true;
  cx_unlock(&c->lock);
  (void)!write(c->wake, &one, sizeof one);
  cx_thread_join(&c->thread);
  cx_store_client_remove(&c->watch);
  cx_free(c->watch.bytes);
}
