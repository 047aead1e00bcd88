// world/shut: nng_close on a thread of its own.
//
// In nng 1.5 a connection that is closed just while a message is on its way can
// leave an operation behind that never completes, and nng_close waits for it
// (seen in one of some dozens of closes of a busy server; the connections
// themselves are closed before that). So the wait has a limit, and past it the
// socket's remains are left to the end of the process.
#include "world/shut.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"

enum { LIMIT_MS = 1000 };

typedef struct closing {
  cx_mutex lock;
  cx_cond done;
  nng_socket socket;
  bool closed, left;
} closing;

static _Atomic int sockets_left;

int cx_shut_left(void)
{
  return atomic_load(&sockets_left);
}

static void release(closing *c)
{
  cx_mutex_free(&c->lock);
  cx_cond_free(&c->done);
  cx_free(c);
}

static void close_socket(void *user)
{
  closing *c = user;
  nng_close(c->socket);
  cx_lock(&c->lock);
  c->closed = true;
  bool left = c->left;
  cx_cond_signal(&c->done);
  cx_unlock(&c->lock);
  if (left) release(c);
}

// Whether it was closed in time.
static bool wait_for(closing *c)
{
  int64_t until = cx_now_ns() + (int64_t)LIMIT_MS * 1000000;
  cx_lock(&c->lock);
  while (!c->closed && cx_now_ns() < until) {
    cx_cond_wait_ms(&c->done, &c->lock, LIMIT_MS);
  }
  bool closed = c->closed;
  c->left = !closed;
  cx_unlock(&c->lock);
  return closed;
}

bool cx_shut_socket(nng_socket socket)
{
  closing *c = cx_calloc(1, sizeof *c);
  cx_thread thread = { 0 };
  if (c == NULL) return nng_close(socket) == 0;
  cx_mutex_init(&c->lock);
  cx_cond_init(&c->done);
  c->socket = socket;
  calx_status *status = cx_thread_start(&thread, close_socket, c);
  if (status != NULL) {
    calx_status_free(status);
    release(c);
    return nng_close(socket) == 0;
  }
  bool closed = wait_for(c);
  if (closed) {
    cx_thread_join(&thread);
    release(c);
  } else {
    atomic_fetch_add(&sockets_left, 1);
    pthread_detach(thread.handle);
  }
  return closed;
}
