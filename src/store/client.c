// store/client: requests and their replies over one connection.
//
// The server keeps the time limits. The client's own limit is a little longer,
// and only ends a call to a server that does not reply at all. A connection
// that closes after the HELLO is not opened again: the server has already
// reported this process as lost.
#include "store/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/client_internal.h"
#include "store/socket.h"

enum {
  EXTRA_MS = 10000,  // beyond the server's limit
  FAIL_MS = 2000,
  BYE_MS = 2000,
  FAILURE_MS = 1000  // for the watch thread to find out why a call was lost
};

// ---- one call ---------------------------------------------------------------

typedef enum call_result { ANSWERED, LATE, LOST, NO_MEMORY } call_result;

// After the job's failure only ABORT and BYE are sent. The caller frees the
// bytes of `own`.
static call_result run_call(cx_store_client *c, const cx_store_request *r,
                            int64_t timeout_ms, cx_store_call *own)
{
  bool is_end = r->op == CX_STORE_OP_ABORT || r->op == CX_STORE_OP_BYE;
  int64_t until = cx_now_ms() + timeout_ms;
  call_result result = LOST;
  cx_lock(&c->lock);
  if (!c->connection.lost && (c->failed == CALX_OK || is_end)) {
    cx_store_client_send(c, own, r);
    result = LATE;
  }
  // A reply that arrived before the connection was lost is valid.
  while (result == LATE && !own->answered) {
    int64_t left = until - cx_now_ms();
    if (own->ended || c->connection.lost) result = LOST;
    if (result == LOST || left < 0) break;
    cx_cond_wait_ms(&c->changed, &c->lock, left + 1);
  }
  if (own->answered) result = own->bytes != NULL ? ANSWERED : NO_MEMORY;
  cx_store_client_remove(own);
  cx_unlock(&c->lock);
  return result;
}

static calx_status *copy_value(const cx_store_reply *reply, char **out,
                               size_t *out_size)
{
  if (out == NULL) return NULL;
  *out = cx_strndup(reply->size != 0 ? reply->value : "", reply->size);
  *out_size = reply->size;
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *read_reply(cx_store_client *c, const char *bytes,
                               size_t size, char **out, size_t *out_size)
{
  cx_store_reply reply;
  if (!cx_store_wire_read_reply(bytes, size, &reply) ||
      reply.kind == CX_STORE_REPLY_EVENT) {
    return cx_error(CALX_DATA_LOSS,
                    "the store at %s sent %zu bytes that are no reply to this "
                    "request",
                    c->url, size);
  }
  if (reply.kind == CX_STORE_REPLY_RESULT && reply.code == CALX_OK) {
    return copy_value(&reply, out, out_size);
  }
  char text[CX_STORE_FAILURE_BYTES + 1];
  cx_store_wire_copy_text(reply.value, reply.size, text, sizeof text);
  if (reply.kind == CX_STORE_REPLY_FAILURE) {
    cx_store_client_note_failure(c, reply.code, text);
  }
  return cx_error(reply.code, "%s", text);
}

// The watch thread is about to find out why the connection was lost.
static void wait_for_failure(cx_store_client *c)
{
  int64_t until = cx_now_ms() + FAILURE_MS;
  cx_lock(&c->lock);
  while (c->failed == CALX_OK && !c->bye && cx_now_ms() < until) {
    cx_cond_wait_ms(&c->changed, &c->lock, FAILURE_MS);
  }
  cx_unlock(&c->lock);
}

static calx_status *no_reply(cx_store_client *c, call_result why,
                             const cx_store_request *r)
{
  if (why == NO_MEMORY) return cx_out_of_memory();
  if (why == LOST) wait_for_failure(c);
  calx_status *failure = cx_store_client_failure(c);
  if (failure != NULL) return failure;
  if (why == LATE) {
    return cx_error(CALX_DEADLINE_EXCEEDED,
                    "the store at %s does not answer%s%s%s", c->url,
                    r->name[0] != '\0' ? " to '" : "", r->name,
                    r->name[0] != '\0' ? "'" : "");
  }
  return cx_error(CALX_UNAVAILABLE, "the store at %s: the connection is closed",
                  c->url);
}

static calx_status *call_for(cx_store_client *c, const cx_store_request *r,
                             int64_t timeout_ms, char **out, size_t *out_size)
{
  cx_store_call own = { 0 };
  call_result result = run_call(c, r, timeout_ms, &own);
  if (result != ANSWERED) return no_reply(c, result, r);
  calx_status *status = read_reply(c, own.bytes, own.size, out, out_size);
  cx_free(own.bytes);
  return status;
}

calx_status *cx_store_client_call(cx_store_client *c, const cx_store_request *r,
                                  char **out, size_t *out_size)
{
  int64_t most = INT32_MAX - EXTRA_MS;
  if (out != NULL) *out = NULL;
  return call_for(c, r, (r->wait_ms < most ? r->wait_ms : most) + EXTRA_MS, out,
                  out_size);
}

calx_status *cx_store_client_request(cx_store_op op, const char *name,
                                     cx_store_request *out)
{
  size_t length = strlen(name);
  if (length == 0 || length > CX_STORE_TABLE_KEY) {
    return cx_invalid(
        "store: keys of 1 to %d bytes are taken, found one of %zu",
        CX_STORE_TABLE_KEY, length);
  }
  out->op = op;
  out->a = out->b = 0;
  out->wait_ms = 0;
  out->value = NULL;
  out->size = 0;
  memcpy(out->name, name, length + 1);
  return NULL;
}

calx_status *cx_store_client_fail(cx_store_client *c, calx_code code,
                                  const char *message)
{
  size_t size = strlen(message), limit = CX_STORE_FAILURE_BYTES - 1;
  cx_store_request r = { .op = CX_STORE_OP_ABORT,
                         .a = (int32_t)code,
                         .value = message,
                         .size = size < limit ? size : limit };
  calx_status_free(call_for(c, &r, FAIL_MS, NULL, NULL));
  // Where the server cannot be reached, this process uses its own failure.
  cx_store_client_note_failure(c, code, message);
  return cx_store_client_failure(c);
}

// ---- the connection ---------------------------------------------------------

// The attempts to connect, for the error message.
typedef struct attempts {
  int64_t until;  // ms: the limit of all attempts
  bool other_user;
  char why[200];  // the last one failed
} attempts;

enum { ONE_CONNECT_MS = 3000, FIRST_PAUSE_MS = 10, LAST_PAUSE_MS = 200 };

static int64_t left_ms(const attempts *a)
{
  int64_t left = a->until - cx_now_ms();
  return left > 0 ? left : 0;
}

static calx_status *no_store(const cx_store_client *c, int64_t timeout_ms,
                             const attempts *a)
{
  int process = c->options.process;
  char name[64];
  if (process < 0) {
    snprintf(name, sizeof name, "the launcher of host %d", -1 - process);
  } else {
    snprintf(name, sizeof name, "process %d of %d", process,
             c->options.processes);
  }
  return cx_error(
      CALX_DEADLINE_EXCEEDED,
      "%s: nobody serves the store at %s within %.3g s%s%s", name, c->url,
      (double)timeout_ms / 1000, a->why[0] != '\0' ? "; " : "",
      a->other_user ? "the process there belongs to another user" : a->why);
}

static bool connect_once(cx_store_client *c, attempts *a)
{
  int64_t limit = left_ms(a) < ONE_CONNECT_MS ? left_ms(a) : ONE_CONNECT_MS;
  int fd = -1;
  calx_status *status = cx_store_socket_connect(c->url, limit, &fd);
  snprintf(a->why, sizeof a->why, "%s",
           status != NULL ? cx_status_sentence(status) : "it does not answer");
  calx_status_free(status);
  if (fd < 0) return false;
  cx_store_connection_init(&c->connection, fd, 2 * CX_STORE_MESSAGE_BYTES);
  a->other_user = cx_store_socket_is_other_user(fd);
  return !a->other_user;
}

// Reads the reply to the HELLO; its bytes belong to the connection. False: the
// connection closed, or the time is over.
static bool read_first(cx_store_connection *l, const attempts *a,
                       cx_store_message *out)
{
  while (left_ms(a) > 0 && !l->lost) {
    struct pollfd p = { .fd = l->fd, .events = POLLIN };
    poll(&p, 1, (int)left_ms(a));
    cx_store_connection_receive(l);
    if (cx_store_connection_next(l, out)) return true;
  }
  return false;
}

static calx_status *write_hello(const cx_store_client *c, cx_store_request *out,
                                unsigned char origin[CX_STORE_ORIGIN_BYTES])
{
  const char *token = c->options.token != NULL ? c->options.token : "";
  if (strlen(token) > CX_STORE_TOKEN_BYTES) {
    return cx_invalid("the token has %zu bytes, at most %d are taken",
                      strlen(token), CX_STORE_TOKEN_BYTES);
  }
  cx_store_wire_origin(&c->options.origin, origin);
  *out = (cx_store_request){ .op = CX_STORE_OP_HELLO,
                             .a = c->options.process,
                             .b = c->options.processes,
                             .value = (const char *)origin,
                             .size = CX_STORE_ORIGIN_BYTES };
  memcpy(out->name, token, strlen(token) + 1);
  return NULL;
}

// One attempt. False: another attempt may succeed.
static bool send_hello(cx_store_client *c, const cx_store_request *hello,
                       attempts *a, calx_status **out)
{
  unsigned char head[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY];
  cx_store_message reply;
  size_t size;
  *out = NULL;
  if (!connect_once(c, a)) return false;
  cx_store_connection_send(&c->connection, 0, head,
                           cx_store_wire_request(hello, head), hello->value,
                           hello->size);
  if (!read_first(&c->connection, a, &reply)) return false;
  *out = read_reply(c, reply.bytes, reply.size, &c->server, &size);
  return true;
}

// Processes may start before the server does. A busy server may also close a
// connection before it reads the HELLO.
static calx_status *find_store(cx_store_client *c, int64_t timeout_ms)
{
  attempts a = { .until = cx_now_ms() + timeout_ms };
  unsigned char origin[CX_STORE_ORIGIN_BYTES];
  cx_store_request hello;
  calx_status *status;
  CALX_TRY(cx_store_socket_check(c->url));
  CALX_TRY(write_hello(c, &hello, origin));
  for (int64_t pause = FIRST_PAUSE_MS;; pause *= 2) {
    if (send_hello(c, &hello, &a, &status)) return status;
    cx_store_connection_free(&c->connection);
    if (left_ms(&a) == 0) return no_store(c, timeout_ms, &a);
    if (pause > LAST_PAUSE_MS) pause = LAST_PAUSE_MS;
    int64_t now = pause < left_ms(&a) ? pause : left_ms(&a);
    nanosleep(&(struct timespec){ .tv_nsec = (long)now * 1000000 }, NULL);
  }
}

static void release(cx_store_client *c)
{
  cx_store_connection_free(&c->connection);
  if (c->wake >= 0) close(c->wake);
  cx_mutex_free(&c->lock);
  cx_cond_free(&c->changed);
  cx_free(c->url);
  cx_free(c->server);
  cx_free(c);
}

calx_status *cx_store_client_open(const cx_store_client_options *options,
                                  int64_t timeout_ms, cx_store_client **out)
{
  *out = NULL;
  cx_store_client *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return cx_out_of_memory();
  c->options = *options;
  c->connection.fd = -1;
  cx_mutex_init(&c->lock);
  cx_cond_init(&c->changed);
  c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  c->url = cx_strdup(options->url);
  calx_status *status = c->url == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL && c->wake < 0) {
    status = cx_error(CALX_RESOURCE_EXHAUSTED, "the store at %s: %s", c->url,
                      strerror(errno));
  }
  if (status == NULL) status = find_store(c, timeout_ms);
  c->options.url = c->options.token = NULL;
  if (status == NULL) {
    status = cx_thread_start(&c->thread, cx_store_watch, c);
  }
  if (status != NULL) {
    release(c);
    return status;
  }
  *out = c;
  return NULL;
}

void cx_store_client_close(cx_store_client *c, bool bye)
{
  if (bye) {
    // The server may stop without a reply once the last process has left.
    cx_lock(&c->lock);
    c->bye = true;
    cx_unlock(&c->lock);
    cx_store_request r = { .op = CX_STORE_OP_BYE };
    calx_status_free(call_for(c, &r, BYE_MS, NULL, NULL));
  }
  cx_lock(&c->lock);
  c->stopping = true;
  cx_unlock(&c->lock);
  (void)eventfd_write(c->wake, 1);
  cx_thread_join(&c->thread);
  release(c);
}
