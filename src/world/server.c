// world/server: the desk behind nng's raw REP socket, on one thread.
//
// nng's own threads only tell which connections closed; all else is the
// thread's. Abstract sockets of other users are strangers; TCP cannot tell, and
// relies on the token.
#include "world/server.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "world/desk.h"
#include "world/pipe.h"
#include "world/route.h"
#include "world/shut.h"

struct cx_server {
  nng_socket socket;
  nng_aio *receiving;
  cx_desk *desk;  // under the lock, as all below
  cx_mutex lock;
  cx_thread thread;
  bool stopping;
  uint32_t *closed;  // connections, for the thread
  size_t closed_count, closed_capacity;
};

static int64_t now_ms(void)
{
  return cx_now_ns() / 1000000;
}

int64_t cx_heartbeat_ms(void)
{
  return cx_place_seconds("CALX_HEARTBEAT_S", true, 5);
}

static void send_reply(void *user, const cx_ticket *to, const cx_reply *reply)
{
  cx_server *s = user;
  unsigned char head[CX_REPLY_HEAD];
  nng_msg *m;
  if (nng_msg_alloc(&m, 0) != 0) return;
  cx_wire_reply(reply, head);
  if (nng_msg_header_append(m, to->header, to->size) != 0 ||
      nng_msg_append(m, head, sizeof head) != 0 ||
      (reply->size != 0 && nng_msg_append(m, reply->value, reply->size) != 0) ||
      nng_sendmsg(s->socket, m, NNG_FLAG_NONBLOCK) != 0) {
    nng_msg_free(m);
  }
}

static void note_closed(nng_pipe pipe, nng_pipe_ev event, void *user)
{
  (void)event;
  cx_server *s = user;
  cx_lock(&s->lock);
  // Without memory the heartbeat finds it.
  if (cx_grow(&s->closed, &s->closed_capacity, s->closed_count + 1,
              sizeof *s->closed)) {
    s->closed[s->closed_count++] = (uint32_t)nng_pipe_id(pipe);
  }
  cx_unlock(&s->lock);
  nng_aio_cancel(s->receiving);
}

static void take(cx_server *s, nng_msg *m)
{
  nng_pipe pipe = nng_msg_get_pipe(m);
  cx_ticket from = { .pipe = (uint32_t)nng_pipe_id(pipe),
                     .size = (uint32_t)nng_msg_header_len(m) };
  if (from.size <= sizeof from.header) {
    memcpy(from.header, nng_msg_header(m), from.size);
    cx_desk_take(s->desk, &from, nng_msg_body(m), nng_msg_len(m),
                 cx_pipe_is_strange(pipe), now_ms());
  }
  nng_msg_free(m);
}

// A cancelled receive that had not begun costs at most this.
enum { MOST_MS = 100 };

static void serve(void *user)
{
  cx_server *s = user;
  int64_t wait = MOST_MS;
  for (bool going = true; going;) {
    nng_aio_set_timeout(s->receiving, (nng_duration)wait);
    nng_recv_aio(s->socket, s->receiving);
    nng_aio_wait(s->receiving);
    int result = nng_aio_result(s->receiving);
    cx_lock(&s->lock);
    if (result == 0) take(s, nng_aio_get_msg(s->receiving));
    for (size_t i = 0; i < s->closed_count; i++) {
      cx_desk_closed(s->desk, s->closed[i], now_ms());
    }
    s->closed_count = 0;
    wait = cx_desk_tick(s->desk, now_ms());
    wait = wait < 1 ? 1 : wait < MOST_MS ? wait : MOST_MS;
    going = !s->stopping && result != NNG_ECLOSED;
    cx_unlock(&s->lock);
  }
}

static calx_status *nng_failed(int error, const char *what, const char *url)
{
  return cx_error(CALX_UNAVAILABLE, "%s %s: %s", what, url,
                  nng_strerror(error));
}

static calx_status *listen_at(cx_server *s, const char *url)
{
  nng_listener listener;
  int error = nng_rep0_open_raw(&s->socket);
  if (error == 0) error = nng_aio_alloc(&s->receiving, NULL, NULL);
  if (error == 0) {
    error = nng_pipe_notify(s->socket, NNG_PIPE_EV_REM_POST, note_closed, s);
  }
  if (error == 0) {
    error = nng_socket_set_size(s->socket, NNG_OPT_RECVMAXSZ, CX_MESSAGE_BYTES);
  }
  if (error == 0) error = nng_socket_set_int(s->socket, NNG_OPT_SENDBUF, 4096);
  if (error == 0) error = nng_listener_create(&listener, s->socket, url);
  if (error == 0) {
    nng_listener_set_bool(listener, NNG_OPT_TCP_KEEPALIVE, true);
    error = nng_listener_start(listener, 0);
  }
  if (error == 0) return NULL;
  return nng_failed(error, "the store cannot be served at", url);
}

// What nng would not let go of stays.
static void release(cx_server *s)
{
  if (!cx_shut_socket(s->socket)) return;
  nng_aio_free(s->receiving);
  if (s->desk != NULL) cx_desk_free(s->desk);
  cx_mutex_free(&s->lock);
  cx_free(s->closed);
  cx_free(s);
}

calx_status *cx_server_start(const cx_server_options *options, cx_server **out)
{
  *out = NULL;
  cx_server *s = cx_calloc(1, sizeof *s);
  if (s == NULL) return cx_out_of_memory();
  cx_mutex_init(&s->lock);
  s->desk = cx_desk_new(options, send_reply, s);
  calx_status *status = s->desk == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = listen_at(s, options->url);
  if (status == NULL) status = cx_thread_start(&s->thread, serve, s);
  if (status != NULL) {
    release(s);
    return status;
  }
  *out = s;
  return NULL;
}

bool cx_server_drain(cx_server *s, int64_t timeout_ms)
{
  int64_t until = now_ms() + timeout_ms;
  for (;;) {
    cx_lock(&s->lock);
    int open = cx_desk_open(s->desk);
    cx_unlock(&s->lock);
    if (open == 0 || now_ms() >= until) return open == 0;
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
  }
}

void cx_server_stop(cx_server *s)
{
  cx_lock(&s->lock);
  s->stopping = true;
  cx_unlock(&s->lock);
  nng_aio_cancel(s->receiving);
  cx_thread_join(&s->thread);
  release(s);
}
