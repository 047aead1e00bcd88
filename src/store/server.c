// store/server: connects the core to sockets, on one thread.
//
// Anybody who can reach the port can connect. So a connection that has not sent
// a valid HELLO (a guest) gets little: one message of at most
// CX_STORE_HELLO_BYTES, and GUEST_MS of time. There are at most MAX_GUESTS
// guests; a new one replaces the oldest. A guest whose HELLO is refused
// receives the reason and keeps the rest of its time to read it. The owner of
// an abstract socket's other end is known; TCP relies on the token.
#include "store/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/thread.h"
#include "store/connection.h"
#include "store/core.h"
#include "store/socket.h"

enum {
  MAX_GUESTS = 128,
  GUEST_MS = 5000,
  ACCEPTS = 64,    // connections accepted at once
  PAUSE_MS = 100,  // without accepts, where there is no free descriptor
  MAX_WAIT_MS = 500,
  READS = 64,  // of one connection before the next one's turn
  // While a connection has so many unsent bytes nothing is read from it; it is
  // closed if they become too many.
  FULL = 1 << 20,
  MAX_UNSENT = 256 << 20
};

// The data of an epoll event: a client's id, or one of these.
#define EVENT_LISTENER UINT64_MAX
#define EVENT_WAKE (UINT64_MAX - 1)

typedef struct client {
  cx_store_connection connection;
  uint32_t id;  // its index + 1
  bool other_user;
  bool guest;
  bool refused;   // guest: it has its reply, and nothing more is read
  bool finished;  // guest: nothing more is sent either
  uint32_t interest;
  int64_t since;  // ms
} client;

struct cx_store_server {
  int listener, wake, events;
  cx_mutex lock;  // protects all fields below
  cx_store_core *core;
  cx_thread thread;
  bool stopping;
  client **clients;  // by index; NULL: free
  size_t client_count, client_capacity;
  client *guests[MAX_GUESTS];  // the oldest first
  size_t guest_count;
  bool some_lost;        // a client's connection is lost
  int64_t paused_until;  // ms; 0: accepts are not paused
};

int64_t cx_store_heartbeat_ms(void)
{
  return cx_env_ms("CALX_HEARTBEAT_S", true, 5);
}

// ---- events -----------------------------------------------------------------

static bool poll_for(const cx_store_server *s, int fd, uint64_t data,
                     uint32_t interest)
{
  struct epoll_event event = { .events = interest, .data.u64 = data };
  return epoll_ctl(s->events, EPOLL_CTL_ADD, fd, &event) == 0 ||
         (errno == EEXIST &&
          epoll_ctl(s->events, EPOLL_CTL_MOD, fd, &event) == 0);
}

static void poll_client(cx_store_server *s, client *c)
{
  cx_store_connection *l = &c->connection;
  size_t unsent = cx_store_connection_pending(l);
  uint32_t interest =
      (unsent > 0 ? EPOLLOUT : 0u) | (unsent < FULL ? (uint32_t)EPOLLIN : 0u);
  if (unsent > MAX_UNSENT) l->lost = true;
  s->some_lost = s->some_lost || l->lost;
  if (l->lost || interest == c->interest) return;
  c->interest = interest;
  if (!poll_for(s, l->fd, c->id, interest)) l->lost = true;
}

// ---- clients ----------------------------------------------------------------

static void remove_guest(cx_store_server *s, const client *c)
{
  size_t i = 0;
  while (i < s->guest_count && s->guests[i] != c) i++;
  if (i == s->guest_count) return;
  s->guest_count--;
  memmove(&s->guests[i], &s->guests[i + 1],
          (s->guest_count - i) * sizeof(client *));
}

static void end_client(cx_store_server *s, client *c)
{
  s->clients[c->id - 1] = NULL;
  // A forked copy of the descriptor would keep it in the set after a close.
  epoll_ctl(s->events, EPOLL_CTL_DEL, c->connection.fd, NULL);
  if (c->guest) remove_guest(s, c);
  cx_store_connection_free(&c->connection);
  cx_store_core_closed(s->core, c->id, cx_now_ms());
  cx_free(c);
}

// The loss of one client sends messages to others, which may break their
// connections; so this repeats until none is lost.
static void end_lost_clients(cx_store_server *s)
{
  while (s->some_lost) {
    s->some_lost = false;
    for (size_t i = 0; i < s->client_count; i++) {
      client *c = s->clients[i];
      if (c != NULL && c->connection.lost) end_client(s, c);
    }
  }
}

static size_t free_index(cx_store_server *s)
{
  for (size_t i = 0; i < s->client_count; i++) {
    if (s->clients[i] == NULL) return i;
  }
  if (!cx_grow(&s->clients, &s->client_capacity, s->client_count + 1,
               sizeof(client *))) {
    return SIZE_MAX;
  }
  s->clients[s->client_count] = NULL;
  return s->client_count++;
}

static void add_client(cx_store_server *s, int fd, bool other_user)
{
  if (s->guest_count == MAX_GUESTS) end_client(s, s->guests[0]);
  size_t index = free_index(s);
  client *c = index != SIZE_MAX ? cx_calloc(1, sizeof *c) : NULL;
  if (c == NULL) {
    close(fd);
    return;
  }
  c->id = (uint32_t)index + 1;
  c->other_user = other_user;
  c->guest = true;
  c->since = cx_now_ms();
  cx_store_connection_init(&c->connection, fd, CX_STORE_HELLO_BYTES);
  s->clients[index] = c;
  s->guests[s->guest_count++] = c;
  poll_client(s, c);
}

// Where no descriptor is free the oldest guest gives its own; without guests
// the accepts pause.
static void accept_clients(cx_store_server *s)
{
  for (int i = 0; i < ACCEPTS; i++) {
    bool other_user;
    int fd = cx_store_socket_accept(s->listener, &other_user);
    if (fd >= 0) {
      add_client(s, fd, other_user);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (s->guest_count > 0) {
      end_client(s, s->guests[0]);
      continue;
    }
    s->paused_until = cx_now_ms() + PAUSE_MS;
    poll_for(s, s->listener, EVENT_LISTENER, 0);
    return;
  }
}

static void end_late_guests(cx_store_server *s, int64_t now)
{
  while (s->guest_count > 0 && now - s->guests[0]->since >= GUEST_MS) {
    end_client(s, s->guests[0]);
  }
  if (s->paused_until == 0 || now < s->paused_until) return;
  s->paused_until = 0;
  poll_for(s, s->listener, EVENT_LISTENER, EPOLLIN);
}

// ---- messages ---------------------------------------------------------------

static void send_reply(void *user, const cx_store_reply_address *to,
                       const cx_store_reply *reply)
{
  cx_store_server *s = user;
  client *c = s->clients[to->connection - 1];
  unsigned char head[CX_STORE_REPLY_HEAD];
  cx_store_wire_reply(reply, head);
  cx_store_connection_send(&c->connection, to->number, head, sizeof head,
                           reply->value, reply->size);
  poll_client(s, c);
}

// Returns whether more messages are taken: a guest's first one decides.
static bool take_message(cx_store_server *s, client *c,
                         const cx_store_message *m)
{
  cx_store_reply_address from = { .connection = c->id, .number = m->number };
  cx_store_core_receive(s->core, &from, m->bytes, m->size, c->other_user,
                        cx_now_ms());
  if (!c->guest) return true;
  if (!cx_store_core_is_known(s->core, c->id)) {
    c->refused = true;
    return false;
  }
  c->guest = false;
  c->connection.limit = CX_STORE_MESSAGE_BYTES;
  remove_guest(s, c);
  return true;
}

// Sends a refused guest's reply and ends the sending side. What the guest sends
// is read and dropped: closing the socket with unread bytes would discard the
// reply.
static void finish_guest(client *c)
{
  unsigned char dropped[4096];
  if (cx_store_connection_pending(&c->connection) == 0 && !c->finished) {
    c->finished = true;
    shutdown(c->connection.fd, SHUT_WR);
  }
  for (int i = 0; i < READS; i++) {
    ssize_t n = recv(c->connection.fd, dropped, sizeof dropped, MSG_DONTWAIT);
    if (n > 0) continue;
    bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
    c->connection.lost = c->connection.lost || !later;
    return;
  }
}

static void take_messages(cx_store_server *s, client *c)
{
  cx_store_connection *l = &c->connection;
  cx_store_message message;
  for (int i = 0; i < READS; i++) {
    size_t received = cx_store_connection_receive(l);
    bool any = false;
    while (cx_store_connection_next(l, &message)) {
      any = true;
      if (!take_message(s, c, &message)) return;
    }
    if (received > 0 && !any) {
      cx_store_core_note_alive(s->core, c->id, cx_now_ms());
    }
    if (received == 0 || l->lost || cx_store_connection_pending(l) >= FULL) {
      return;
    }
  }
}

static void take_event(cx_store_server *s, const struct epoll_event *event)
{
  eventfd_t ignored;
  if (event->data.u64 == EVENT_LISTENER) {
    accept_clients(s);
    return;
  }
  if (event->data.u64 == EVENT_WAKE) {
    (void)eventfd_read(s->wake, &ignored);
    return;
  }
  client *c = s->clients[event->data.u64 - 1];
  if (c == NULL) return;  // an earlier event of this round ended it
  if ((event->events & EPOLLOUT) != 0) {
    cx_store_connection_flush(&c->connection);
  }
  if ((event->events & ~(uint32_t)EPOLLOUT) != 0 && !c->refused) {
    take_messages(s, c);
  }
  if (c->refused) finish_guest(c);
  poll_client(s, c);
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
    end_late_guests(s, cx_now_ms());
    end_lost_clients(s);
    wait = cx_store_core_tick(s->core, cx_now_ms());
    end_lost_clients(s);
    if (s->guest_count > 0 || s->paused_until != 0) {
      wait = wait < PAUSE_MS ? wait : PAUSE_MS;
    }
    wait = wait < 1 ? 1 : wait < MAX_WAIT_MS ? wait : MAX_WAIT_MS;
    going = !s->stopping;
    cx_unlock(&s->lock);
  }
}

// ---- start and stop ---------------------------------------------------------

static calx_status *open_events(cx_store_server *s)
{
  s->events = epoll_create1(EPOLL_CLOEXEC);
  s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->events >= 0 && s->wake >= 0 &&
      poll_for(s, s->wake, EVENT_WAKE, EPOLLIN) &&
      poll_for(s, s->listener, EVENT_LISTENER, EPOLLIN)) {
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
  for (size_t i = 0; i < s->client_count; i++) {
    client *c = s->clients[i];
    if (c == NULL) continue;
    // The last processes leave without waiting for these replies.
    cx_store_connection_flush(&c->connection);
    cx_store_connection_free(&c->connection);
    cx_free(c);
  }
  if (s->listener >= 0) close(s->listener);
  if (s->events >= 0) close(s->events);
  if (s->wake >= 0) close(s->wake);
  if (s->core != NULL) cx_store_core_free(s->core);
  cx_mutex_free(&s->lock);
  cx_free(s->clients);
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
  s->core = cx_store_core_new(options, send_reply, s);
  calx_status *status = s->core == NULL ? cx_out_of_memory() : NULL;
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
  int64_t until = cx_now_ms() + timeout_ms;
  for (;;) {
    cx_lock(&s->lock);
    int open = cx_store_core_count_open(s->core);
    cx_unlock(&s->lock);
    if (open == 0 || cx_now_ms() >= until) return open == 0;
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
  }
}

void cx_store_server_stop(cx_store_server *s)
{
  cx_lock(&s->lock);
  s->stopping = true;
  cx_unlock(&s->lock);
  (void)eventfd_write(s->wake, 1);
  cx_thread_join(&s->thread);
  release(s);
}
