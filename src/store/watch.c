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
#include <sys/eventfd.h>

#include "base/alloc.h"
#include "store/client_internal.h"

enum { INTERVAL_MS = 1000, INTERVAL_WITHOUT_LIMIT_MS = 60000, DRAIN_MS = 300 };

// ---- receiving and sending --------------------------------------------------

// A reply whose call has ended is dropped.
static void deliver(cx_store_client *c, const cx_store_message *m)
{
  cx_store_call *k = c->calls;
  while (k != NULL && k->number != m->number) k = k->next;
  if (k == NULL || k->answered) return;
  k->answered = true;
  k->bytes = cx_strndup(m->bytes, m->size);
  k->size = m->size;
}

// The caller holds the lock. Returns whether anything arrived.
static bool transfer(cx_store_client *c)
{
  cx_store_message message;
  bool any = false;
  cx_store_connection_flush(&c->connection);
  while (cx_store_connection_receive(&c->connection) > 0) {
    any = true;
    while (cx_store_connection_next(&c->connection, &message)) {
      deliver(c, &message);
    }
  }
  if (any || c->connection.lost) cx_cond_broadcast(&c->changed);
  return any;
}

// Waits until the connection is ready, the thread is woken, or the time is
// over. Returns whether anything arrived.
static bool wait_and_transfer(cx_store_client *c, int64_t wait_ms)
{
  eventfd_t ignored;
  struct pollfd list[2] = { { .fd = c->wake, .events = POLLIN },
                            { .fd = c->connection.fd, .events = POLLIN } };
  cx_lock(&c->lock);
  if (cx_store_connection_pending(&c->connection) > 0) {
    list[1].events |= POLLOUT;
  }
  cx_unlock(&c->lock);
  poll(list, 2, wait_ms > 0 ? (int)wait_ms : 0);
  if (list[0].revents != 0) (void)eventfd_read(c->wake, &ignored);
  cx_lock(&c->lock);
  bool any = transfer(c);
  cx_unlock(&c->lock);
  return any;
}

// The server replies after an interval in any case.
static void send_watch(cx_store_client *c)
{
  int64_t limit = c->options.heartbeat_ms, interval = INTERVAL_WITHOUT_LIMIT_MS;
  if (limit > 0) interval = limit / 5 < INTERVAL_MS ? limit / 5 : INTERVAL_MS;
  cx_store_request r = { .op = CX_STORE_OP_WATCH,
                         .a = c->events_received,
                         .wait_ms = interval };
  cx_lock(&c->lock);
  cx_store_client_send(c, &c->watch, &r);
  cx_unlock(&c->lock);
}

// Whether the wait for the reply to the WATCH has ended. late: the server is
// silent, so the connection is given up.
static bool has_ended(cx_store_client *c, bool late)
{
  cx_lock(&c->lock);
  bool ended = c->watch.answered || c->stopping || c->connection.lost;
  if (late && !ended) {
    ended = c->silent = c->connection.lost = true;
    cx_cond_broadcast(&c->changed);
  }
  cx_unlock(&c->lock);
  return ended;
}

// Waits in slices. A slice that took much longer shows that this process itself
// was stopped; the limit then starts again.
static void wait_for_reply(cx_store_client *c)
{
  int64_t limit = c->options.heartbeat_ms;
  int64_t slice = limit > 0 ? limit / 4 + 1 : INTERVAL_WITHOUT_LIMIT_MS;
  int64_t begun = cx_now_ms(), until = begun + limit;
  for (;;) {
    int64_t now = cx_now_ms();
    if (now - begun > limit / 2) until = now + limit;
    begun = now;
    if (has_ended(c, limit > 0 && now >= until)) return;
    int64_t left = limit > 0 ? until - now : slice;
    if (wait_and_transfer(c, left < slice ? left : slice)) {
      until = cx_now_ms() + limit;
    }
  }
}

// ---- events and failures ----------------------------------------------------

static void report(cx_store_client *c, calx_code code, const char *message)
{
  cx_lock(&c->lock);
  bool ends = c->bye || c->stopping;
  cx_unlock(&c->lock);
  if (ends) return;
  if (cx_store_client_note_failure(c, code, message) || !c->reported) {
    c->reported = true;
    c->options.on_failure(c->options.user, c->failed, c->failure);
  }
}

// After an earlier report this does nothing.
static void report_loss(cx_store_client *c)
{
  char text[256], why[CX_STORE_LOSS_BYTES];
  cx_store_wire_format_loss(c->silent ? c->options.heartbeat_ms : 0, why);
  snprintf(text, sizeof text, "%s, which serves the store, was lost (%s)",
           c->server, why);
  report(c, CALX_ABORTED, text);
}

// Returns whether the watch goes on.
static bool take_reply(cx_store_client *c)
{
  cx_store_reply reply;
  bool goes_on = false;
  cx_lock(&c->lock);
  cx_store_call own = c->watch;
  cx_store_client_remove(&c->watch);
  c->watch = (cx_store_call){ 0 };
  bool ends = c->stopping || !own.answered;
  cx_unlock(&c->lock);
  if (ends) {
    cx_free(own.bytes);
    return false;
  }
  if (own.bytes == NULL) {
    report(c, CALX_RESOURCE_EXHAUSTED, "no memory for the store's message");
  } else if (!cx_store_wire_read_reply(own.bytes, own.size, &reply)) {
    report(c, CALX_ABORTED, "the store sent a reply that is damaged");
  } else if (reply.kind == CX_STORE_REPLY_EVENT) {
    c->events_received++;
    c->options.on_event(c->options.user, reply.value, reply.size);
    goes_on = true;
  } else if (reply.kind == CX_STORE_REPLY_FAILURE || reply.code != CALX_OK) {
    char text[CX_STORE_FAILURE_BYTES];
    cx_store_wire_copy_text(reply.value, reply.size, text, sizeof text);
    report(c, reply.code, text);
  } else {
    goes_on = true;
  }
  cx_free(own.bytes);
  return goes_on;
}

// After a failure. The server ends the calls that wait by itself, and its
// earlier replies are still valid; so calls get DRAIN_MS to receive them. Later
// calls, at least the BYE, must not wait for a server that was lost.
static void drain(cx_store_client *c)
{
  int64_t until = cx_now_ms() + DRAIN_MS;
  for (bool going = true; going;) {
    int64_t left = until - cx_now_ms();
    cx_lock(&c->lock);
    going = !c->connection.lost && !c->stopping;
    if (left <= 0 || !going) cx_store_client_end_calls(c);
    cx_unlock(&c->lock);
    // A call that begins now is ended after the next slice.
    if (going) wait_and_transfer(c, left > 0 ? left : DRAIN_MS);
  }
}

void cx_store_watch(void *client)
{
  cx_store_client *c = client;
  do {
    send_watch(c);
    wait_for_reply(c);
  } while (take_reply(c));
  report_loss(c);
  drain(c);
}
