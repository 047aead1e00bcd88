// store/server: the desk behind plain sockets, on one thread.
//
// Whoever can reach the port can connect, so little is held for one who has not
// said a right HELLO yet (a guest): a message of at most CX_STORE_HELLO_BYTES,
// some seconds, and one of few places, of which the longest held one goes to
// the next who comes. One whose HELLO was refused hears why and has the rest of
// these seconds to read it. Abstract sockets of other users are strangers; TCP
// cannot tell, and relies on the token.
#include "store/server.h"
#include "base/env.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "store/connection.h"
#include "store/core.h"
#include "store/socket.h"

enum {
  MOST_GUESTS = 128,
  GUEST_MS = 5000,
  ACCEPTED_AT_ONCE = 64,
  PAUSE_MS = 100,  // where there is no descriptor for one who comes
  LONGEST_WAIT_MS = 500,
  READ_AT_ONCE = 64,  // pieces of one connection before the next one's turn
  // No more is read from who does not read his answers; later he is dropped.
  FULL = 1 << 20,
  DROPPED = 256 << 20
};

// What an event is of: a connection's place, or one of these.
#define EVENT_LISTENER UINT64_MAX
#define EVENT_WAKE (UINT64_MAX - 1)

typedef struct visitor {
  cx_store_connection link;
  uint32_t pipe;  // its place + 1
  bool strange;
  bool guest;     // has not said who it is
  bool refused;   // guest: has been answered, and nothing more is taken
  bool finished;  // guest: nothing more is sent either
  uint32_t interest;
  int64_t since;  // ms
} visitor;

struct cx_store_server {
  int listener, wake, events;
  cx_store_core *desk;  // under the lock, as all below
  cx_mutex lock;
  cx_thread thread;
  bool stopping;
  visitor **visitors;  // by place; NULL: free
  size_t visitor_count, visitor_capacity;
  visitor *guests[MOST_GUESTS];  // the longest here first
  size_t guest_count;
  bool lost_some;        // a link is to be swept
  int64_t paused_until;  // ms; 0: not
};

static int64_t now_ms(void)
{
  return cx_now_ns() / 1000000;
}

int64_t cx_store_heartbeat_ms(void)
{
  return cx_env_ms("CALX_HEARTBEAT_S", true, 5);
}

// ---- events -----------------------------------------------------------------

static bool await(const cx_store_server *s, int fd, uint64_t what,
                  uint32_t interest)
{
  struct epoll_event event = { .events = interest, .data.u64 = what };
  return epoll_ctl(s->events, EPOLL_CTL_ADD, fd, &event) == 0 ||
         (errno == EEXIST &&
          epoll_ctl(s->events, EPOLL_CTL_MOD, fd, &event) == 0);
}

static void await_visitor(cx_store_server *s, visitor *v)
{
  size_t waits = cx_store_connection_pending(&v->link);
  uint32_t interest =
      (waits > 0 ? EPOLLOUT : 0u) | (waits < FULL ? (uint32_t)EPOLLIN : 0u);
  if (waits > DROPPED) v->link.lost = true;
  s->lost_some = s->lost_some || v->link.lost;
  if (v->link.lost || interest == v->interest) return;
  v->interest = interest;
  if (!await(s, v->link.fd, v->pipe, interest)) v->link.lost = true;
}

// ---- coming and going -------------------------------------------------------

static void forget_guest(cx_store_server *s, const visitor *v)
{
  size_t i = 0;
  while (i < s->guest_count && s->guests[i] != v) i++;
  if (i == s->guest_count) return;
  s->guest_count--;
  memmove(&s->guests[i], &s->guests[i + 1],
          (s->guest_count - i) * sizeof(visitor *));
}

// The desk hears of the end after all that came before it.
static void end_visitor(cx_store_server *s, visitor *v)
{
  s->visitors[v->pipe - 1] = NULL;
  // Closing does not do it where a fork has a copy.
  epoll_ctl(s->events, EPOLL_CTL_DEL, v->link.fd, NULL);
  if (v->guest) forget_guest(s, v);
  cx_store_connection_free(&v->link);
  cx_store_core_closed(s->desk, v->pipe, now_ms());
  cx_free(v);
}

static void sweep(cx_store_server *s)
{
  while (s->lost_some) {
    s->lost_some = false;
    for (size_t i = 0; i < s->visitor_count; i++) {
      visitor *v = s->visitors[i];
      // The end of one is news for others, whose links may break by it.
      if (v != NULL && v->link.lost) end_visitor(s, v);
    }
  }
}

static size_t free_place(cx_store_server *s)
{
  for (size_t i = 0; i < s->visitor_count; i++) {
    if (s->visitors[i] == NULL) return i;
  }
  if (!cx_grow(&s->visitors, &s->visitor_capacity, s->visitor_count + 1,
               sizeof(visitor *))) {
    return SIZE_MAX;
  }
  s->visitors[s->visitor_count] = NULL;
  return s->visitor_count++;
}

static void welcome(cx_store_server *s, int fd, bool strange)
{
  if (s->guest_count == MOST_GUESTS) end_visitor(s, s->guests[0]);
  size_t place = free_place(s);
  visitor *v = place != SIZE_MAX ? cx_calloc(1, sizeof *v) : NULL;
  if (v == NULL) {
    close(fd);
    return;
  }
  v->pipe = (uint32_t)place + 1;
  v->strange = strange;
  v->guest = true;
  v->since = now_ms();
  cx_store_connection_init(&v->link, fd, CX_STORE_HELLO_BYTES);
  s->visitors[place] = v;
  s->guests[s->guest_count++] = v;
  await_visitor(s, v);
}

// Without a descriptor the longest guest's is taken; where there is none, those
// who come wait a moment.
static void accept_some(cx_store_server *s)
{
  for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
    bool strange;
    int fd = cx_store_socket_accept(s->listener, &strange);
    if (fd >= 0) {
      welcome(s, fd, strange);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (s->guest_count > 0) {
      end_visitor(s, s->guests[0]);
      continue;
    }
    s->paused_until = now_ms() + PAUSE_MS;
    await(s, s->listener, EVENT_LISTENER, 0);
    return;
  }
}

static void end_late_guests(cx_store_server *s, int64_t now)
{
  while (s->guest_count > 0 && now - s->guests[0]->since >= GUEST_MS) {
    end_visitor(s, s->guests[0]);
  }
  if (s->paused_until == 0 || now < s->paused_until) return;
  s->paused_until = 0;
  await(s, s->listener, EVENT_LISTENER, EPOLLIN);
}

// ---- messages ---------------------------------------------------------------

static void send_reply(void *user, const cx_store_reply_address *to,
                       const cx_store_reply *reply)
{
  cx_store_server *s = user;
  visitor *v = s->visitors[to->pipe - 1];
  unsigned char head[CX_STORE_REPLY_HEAD];
  cx_store_wire_reply(reply, head);
  cx_store_connection_send(&v->link, to->number, head, sizeof head,
                           reply->value, reply->size);
  await_visitor(s, v);
}

// Whether it goes on: the first message of a guest decides.
static bool take_message(cx_store_server *s, visitor *v, uint32_t number,
                         const void *bytes, size_t size)
{
  cx_store_reply_address from = { .pipe = v->pipe, .number = number };
  cx_store_core_receive(s->desk, &from, bytes, size, v->strange, now_ms());
  if (!v->guest) return true;
  if (cx_store_core_is_known(s->desk, v->pipe)) {
    v->guest = false;
    v->link.most = CX_STORE_MESSAGE_BYTES;
    forget_guest(s, v);
    return true;
  }
  v->refused = true;
  return false;
}

// A refused guest's answer goes out; then it is told that no more comes, and
// what it sends is dropped, since closing before it has read would take the
// answer from it.
static void finish_guest(visitor *v)
{
  unsigned char dropped[4096];
  if (cx_store_connection_pending(&v->link) == 0 && !v->finished) {
    v->finished = true;
    shutdown(v->link.fd, SHUT_WR);
  }
  for (int i = 0; i < READ_AT_ONCE; i++) {
    ssize_t n = recv(v->link.fd, dropped, sizeof dropped, MSG_DONTWAIT);
    if (n > 0) continue;
    bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
    v->link.lost = v->link.lost || !later;
    return;
  }
}

static void take_messages(cx_store_server *s, visitor *v)
{
  const void *bytes;
  size_t size;
  uint32_t number;
  for (int i = 0; i < READ_AT_ONCE; i++) {
    size_t came = cx_store_connection_receive(&v->link);
    bool some = false;
    for (;;) {
      cx_store_connection_state word =
          cx_store_connection_next(&v->link, &number, &bytes, &size);
      if (word == CX_STORE_CONNECTION_TOO_LONG) v->link.lost = true;
      if (word != CX_STORE_CONNECTION_MESSAGE) break;
      some = true;
      if (!take_message(s, v, number, bytes, size)) return;
    }
    // The parts of a long message are signs of life too.
    if (came > 0 && !some && !v->guest) {
      cx_store_core_note_alive(s->desk, v->pipe, now_ms());
    }
    if (came == 0 || v->link.lost ||
        cx_store_connection_pending(&v->link) >= FULL)
      return;
  }
}

static void take_event(cx_store_server *s, const struct epoll_event *event)
{
  uint64_t ignored;
  if (event->data.u64 == EVENT_LISTENER) {
    accept_some(s);
    return;
  }
  if (event->data.u64 == EVENT_WAKE) {
    (void)!read(s->wake, &ignored, sizeof ignored);
    return;
  }
  visitor *v = s->visitors[event->data.u64 - 1];
  if (v == NULL) return;  // ended by an event before this one
  if ((event->events & EPOLLOUT) != 0) cx_store_connection_flush(&v->link);
  if ((event->events & ~(uint32_t)EPOLLOUT) != 0 && !v->refused) {
    take_messages(s, v);
  }
  if (v->refused) finish_guest(v);
  await_visitor(s, v);
}

static void serve(void *user)
{
  enum { EVENTS = 64 };
  cx_store_server *s = user;
  struct epoll_event list[EVENTS];
  int64_t wait = 0;
  for (bool going = true; going;) {
    int n = epoll_wait(s->events, list, EVENTS, (int)wait);
    cx_lock(&s->lock);
    for (int i = 0; i < n; i++) take_event(s, &list[i]);
    end_late_guests(s, now_ms());
    sweep(s);
    wait = cx_store_core_tick(s->desk, now_ms());
    sweep(s);
    if (s->guest_count > 0 || s->paused_until != 0) {
      wait = wait < PAUSE_MS ? wait : PAUSE_MS;
    }
    wait = wait < 1 ? 1 : wait < LONGEST_WAIT_MS ? wait : LONGEST_WAIT_MS;
    going = !s->stopping;
    cx_unlock(&s->lock);
  }
}

// ---- starting and stopping --------------------------------------------------

static calx_status *open_events(cx_store_server *s)
{
  s->events = epoll_create1(EPOLL_CLOEXEC);
  s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->events >= 0 && s->wake >= 0 &&
      await(s, s->wake, EVENT_WAKE, EPOLLIN) &&
      await(s, s->listener, EVENT_LISTENER, EPOLLIN)) {
    return NULL;
  }
  return cx_error(CALX_RESOURCE_EXHAUSTED, "no descriptors for the store: %s",
                  strerror(errno));
}

static calx_status *listen_at(cx_store_server *s, const char *url)
{
  calx_status *why = cx_store_socket_listen(url, &s->listener);
  if (why == NULL) return NULL;
  calx_status *status = cx_error(
      CALX_UNAVAILABLE,
      "the store cannot be served at %s: %s; where another job has this "
      "port, or this command runs already, CALX_PORT or MASTER_PORT choose "
      "another one",
      url, cx_status_sentence(why));
  calx_status_free(why);
  return status;
}

static void release(cx_store_server *s)
{
  for (size_t i = 0; i < s->visitor_count; i++) {
    visitor *v = s->visitors[i];
    if (v == NULL) continue;
    // What the last ones were told: they leave without waiting for it.
    cx_store_connection_flush(&v->link);
    cx_store_connection_free(&v->link);
    cx_free(v);
  }
  if (s->listener >= 0) close(s->listener);
  if (s->events >= 0) close(s->events);
  if (s->wake >= 0) close(s->wake);
  if (s->desk != NULL) cx_store_core_free(s->desk);
  cx_mutex_free(&s->lock);
  cx_free(s->visitors);
  cx_free(s);
}

calx_status *cx_store_server_start(const cx_store_server_options *options,
                                   cx_store_server **out)
{
  *out = NULL;
  cx_store_server *s = cx_calloc(1, sizeof *s);
  if (s == NULL) return cx_out_of_memory();
  s->listener = s->events = s->wake = -1;
  cx_mutex_init(&s->lock);
  s->desk = cx_store_core_new(options, send_reply, s);
  calx_status *status = s->desk == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = listen_at(s, options->url);
  if (status == NULL) status = open_events(s);
  if (status == NULL) status = cx_thread_start(&s->thread, serve, s);
  if (status != NULL) {
    release(s);
    return status;
  }
  *out = s;
  return NULL;
}

bool cx_store_server_drain(cx_store_server *s, int64_t timeout_ms)
{
  int64_t until = now_ms() + timeout_ms;
  for (;;) {
    cx_lock(&s->lock);
    int open = cx_store_core_count_open(s->desk);
    cx_unlock(&s->lock);
    if (open == 0 || now_ms() >= until) return open == 0;
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
  }
}

void cx_store_server_stop(cx_store_server *s)
{
  const uint64_t one = 1;
  cx_lock(&s->lock);
  s->stopping = true;
  cx_unlock(&s->lock);
  (void)!write(s->wake, &one, sizeof one);
  cx_thread_join(&s->thread);
  release(s);
}
