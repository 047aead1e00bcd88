// store/client: requests and their answers over one connection.
//
// The server keeps the time of what waits; the limit here is a little longer
// and only ends a wait for a server that does not answer at all. A connection
// that closes after the greeting is not made anew: the server has told
// everybody that this process has gone.
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

enum { BACKSTOP_MS = 10000, FAIL_MS = 2000, BYE_MS = 2000, NEWS_MS = 1000 };

// ---- news -------------------------------------------------------------------

void cx_store_client_end_calls(cx_store_client *c)
{
  for (call *k = c->calls; k != NULL; k = k->next) k->ended = true;
  cx_cond_broadcast(&c->changed);
}

bool cx_store_client_note_failure(cx_store_client *c, calx_code code,
                                  const char *news)
{
  cx_lock(&c->lock);
  bool first = c->failed == CALX_OK;
  if (first) {
    c->failed = code;
    snprintf(c->news, sizeof c->news, "%s", news);
    cx_cond_broadcast(&c->changed);
  }
  cx_unlock(&c->lock);
  return first;
}

calx_status *cx_store_client_failure(cx_store_client *c)
{
  cx_lock(&c->lock);
  calx_status *status =
      c->failed != CALX_OK ? cx_error(c->failed, "%s", c->news) : NULL;
  cx_unlock(&c->lock);
  return status;
}

// ---- one exchange -----------------------------------------------------------

void cx_store_client_send(cx_store_client *c, call *k,
                          const cx_store_request *r)
{
  unsigned char head[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY];
  size_t size = cx_store_wire_request(r, head);
  const uint64_t one = 1;
  *k = (call){ .next = c->calls, .at = &c->calls, .number = ++c->number };
  if (c->calls != NULL) c->calls->at = &k->next;
  c->calls = k;
  cx_store_connection_send(&c->link, k->number, head, size, r->value, r->size);
  if (c->link.lost || cx_store_connection_pending(&c->link) > 0) {
    (void)!write(c->wake, &one, sizeof one);
  }
}

void cx_store_client_drop(call *k)
{
  if (k->at == NULL) return;
  *k->at = k->next;
  if (k->next != NULL) k->next->at = k->at;
  k->at = NULL;
}

typedef enum outcome { ANSWERED, LATE, LOST, NO_MEMORY } outcome;

// `despite`: also where the job has failed. *out (cx_free() it) where it was
// answered.
static outcome run_call(cx_store_client *c, const cx_store_request *r,
                        int64_t timeout_ms, bool despite, char **out,
                        size_t *out_size)
{
  call own = { 0 };
  int64_t until = cx_now_ns() + timeout_ms * 1000000;
  outcome result = LOST;
  cx_lock(&c->lock);
  if (!c->link.lost && (c->failed == CALX_OK || despite)) {
    cx_store_client_send(c, &own, r);
    result = LATE;
  }
  // What was answered before the end counts.
  while (result == LATE && !own.answered) {
    int64_t left = (until - cx_now_ns()) / 1000000;
    if (own.ended || c->link.lost) result = LOST;
    if (result == LOST || left < 0) break;
    cx_cond_wait_ms(&c->changed, &c->lock, left + 1);
  }
  if (own.answered) result = own.bytes != NULL ? ANSWERED : NO_MEMORY;
  cx_store_client_drop(&own);
  cx_unlock(&c->lock);
  *out = own.bytes;
  *out_size = own.size;
  return result;
}

static calx_status *take_value(const cx_store_reply *reply, char **out,
                               size_t *out_size)
{
  if (out == NULL) return NULL;
  *out = cx_alloc(reply->size + 1);
  if (*out == NULL) return cx_out_of_memory();
  if (reply->size != 0) memcpy(*out, reply->value, reply->size);
  (*out)[reply->size] = '\0';
  *out_size = reply->size;
  return NULL;
}

// *out_news: these are the job's, whatever their code is.
static calx_status *read_answer(const cx_store_client *c, const char *bytes,
                                size_t size, char **out, size_t *out_size,
                                bool *out_news)
{
  cx_store_reply reply;
  *out_news = false;
  if (!cx_store_wire_read_reply(bytes, size, &reply)) {
    return cx_error(CALX_DATA_LOSS,
                    "the store at %s answered %zu bytes that are no answer",
                    c->url, size);
  }
  if (reply.kind == CX_STORE_REPLY_RESULT && reply.code == CALX_OK) {
    return take_value(&reply, out, out_size);
  }
  if (reply.kind == CX_STORE_REPLY_EVENT) {
    return cx_error(CALX_DATA_LOSS, "the store at %s answered with an event",
                    c->url);
  }
  *out_news = reply.kind == CX_STORE_REPLY_FAILURE;
  int n = reply.size < CX_STORE_FAILURE_BYTES ? (int)reply.size
                                              : CX_STORE_FAILURE_BYTES;
  return cx_error(reply.code, "%.*s", n, n != 0 ? reply.value : "");
}

// A call ended with its connection: the watch is about to say why.
static void wait_for_news(cx_store_client *c)
{
  int64_t until = cx_now_ns() + (int64_t)NEWS_MS * 1000000;
  cx_lock(&c->lock);
  while (c->failed == CALX_OK && !c->bye && cx_now_ns() < until) {
    cx_cond_wait_ms(&c->changed, &c->lock, NEWS_MS);
  }
  cx_unlock(&c->lock);
}

static calx_status *failed_exchange(cx_store_client *c, outcome how,
                                    const cx_store_request *r)
{
  if (how == NO_MEMORY) return cx_out_of_memory();
  if (how == LOST) wait_for_news(c);
  calx_status *news = cx_store_client_failure(c);
  if (news != NULL) return news;
  if (how == LATE) {
    return cx_error(CALX_DEADLINE_EXCEEDED,
                    "the store at %s does not answer%s%s%s", c->url,
                    r->name[0] != '\0' ? " to '" : "", r->name,
                    r->name[0] != '\0' ? "'" : "");
  }
  return cx_error(CALX_UNAVAILABLE, "the store at %s: the connection is closed",
                  c->url);
}

static calx_status *call_for(cx_store_client *c, const cx_store_request *r,
                             int64_t timeout_ms, bool despite, char **out,
                             size_t *out_size, bool *out_news)
{
  char *answer = NULL;
  size_t size = 0;
  *out_news = false;
  outcome how = run_call(c, r, timeout_ms, despite, &answer, &size);
  if (how != ANSWERED) return failed_exchange(c, how, r);
  calx_status *status = read_answer(c, answer, size, out, out_size, out_news);
  cx_free(answer);
  return status;
}

calx_status *cx_store_client_call(cx_store_client *c, const cx_store_request *r,
                                  char **out, size_t *out_size)
{
  bool news;
  if (out != NULL) *out = NULL;
  int64_t limit = r->wait_ms < INT32_MAX - BACKSTOP_MS
                      ? r->wait_ms
                      : INT32_MAX - BACKSTOP_MS;
  return call_for(c, r, limit + BACKSTOP_MS, false, out, out_size, &news);
}

calx_status *cx_store_client_request(cx_store_op op, const char *name,
                                     cx_store_request *out)
{
  size_t length = strlen(name);
  if (length == 0 || length > CX_STORE_TABLE_KEY) {
    return cx_error(CALX_INVALID_ARGUMENT,
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
                                  const char *news)
{
  size_t size = strlen(news);
  cx_store_request r = { .op = CX_STORE_OP_ABORT,
                         .a = (int32_t)code,
                         .value = news,
                         .size = size < CX_STORE_FAILURE_BYTES
                                     ? size
                                     : CX_STORE_FAILURE_BYTES - 1 };
  bool heard;
  calx_status *first = call_for(c, &r, FAIL_MS, true, NULL, NULL, &heard);
  if (heard) {
    cx_store_client_note_failure(c, calx_status_code(first),
                                 cx_status_sentence(first));
    return first;
  }
  // Nobody can be told; what this process knows is then its own news.
  calx_status_free(first);
  cx_store_client_note_failure(c, code, news);
  return cx_store_client_failure(c);
}

// ---- the connection ---------------------------------------------------------

// What the way to the store has been like; for the message at its end.
typedef struct attempt {
  int64_t until;  // of all attempts
  bool stranger;
  char why[200];  // of the last one
} attempt;

enum { ONE_CONNECT_MS = 3000, FIRST_PAUSE_MS = 10, LAST_PAUSE_MS = 200 };

static int64_t left_ms(const attempt *a)
{
  int64_t left = (a->until - cx_now_ns()) / 1000000;
  return left > 0 ? left : 0;
}

static calx_status *no_store(const cx_store_client *c, int64_t timeout_ms,
                             const attempt *a)
{
  int process = c->options.process;
  char who[64];
  if (process < 0) {
    snprintf(who, sizeof who, "the launcher of host %d", -1 - process);
  } else {
    snprintf(who, sizeof who, "process %d of %d", process,
             c->options.processes);
  }
  return cx_error(CALX_DEADLINE_EXCEEDED,
                  "%s: nobody serves the store at %s within %.3g s%s%s", who,
                  c->url, (double)timeout_ms / 1000,
                  a->why[0] != '\0' ? "; " : "",
                  a->stranger ? "what is there is another user's" : a->why);
}

static bool dial(cx_store_client *c, attempt *a)
{
  int64_t most = left_ms(a) < ONE_CONNECT_MS ? left_ms(a) : ONE_CONNECT_MS;
  int fd = -1;
  calx_status *status = cx_store_socket_connect(c->url, most, &fd);
  snprintf(a->why, sizeof a->why, "%s",
           status != NULL ? cx_status_sentence(status) : "it does not answer");
  calx_status_free(status);
  if (fd < 0) return false;
  cx_store_connection_init(&c->link, fd, 2 * CX_STORE_MESSAGE_BYTES);
  a->stranger = cx_store_socket_is_other_user(fd);
  return !a->stranger;
}

// The answer to the first request, before there is a watch; its bytes are the
// link's. False: the connection closed, or the time is over.
static bool await_first(cx_store_client *c, const attempt *a, const void **out,
                        size_t *out_size)
{
  cx_store_connection *l = &c->link;
  uint32_t number;
  while (left_ms(a) > 0) {
    struct pollfd p = { .fd = l->fd, .events = POLLIN };
    poll(&p, 1, (int)left_ms(a));
    cx_store_connection_receive(l);
    cx_store_connection_state word =
        cx_store_connection_next(l, &number, out, out_size);
    if (word == CX_STORE_CONNECTION_MESSAGE) return true;
    if (word == CX_STORE_CONNECTION_TOO_LONG || l->lost) return false;
  }
  return false;
}

static calx_status *write_hello(const cx_store_client *c, cx_store_request *out,
                                unsigned char origin[CX_STORE_ORIGIN_BYTES])
{
  const char *token = c->options.token != NULL ? c->options.token : "";
  if (strlen(token) > CX_STORE_TOKEN_BYTES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the token is of %zu bytes, at most %d are taken",
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

// One attempt; false: another one may find a store.
static bool greet(cx_store_client *c, const cx_store_request *hello, attempt *a,
                  calx_status **out)
{
  unsigned char head[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY];
  const void *bytes;
  size_t size;
  bool news;
  *out = NULL;
  if (!dial(c, a)) return false;
  cx_store_connection_send(&c->link, 0, head,
                           cx_store_wire_request(hello, head), hello->value,
                           hello->size);
  if (!await_first(c, a, &bytes, &size)) return false;
  *out = read_answer(c, bytes, size, &c->served_by, &size, &news);
  return true;
}

// Until the store is there: who comes first waits for who serves it. A store
// that has no place for guests takes one who comes again.
static calx_status *find_store(cx_store_client *c, int64_t timeout_ms)
{
  attempt a = { .until = cx_now_ns() + timeout_ms * 1000000 };
  unsigned char origin[CX_STORE_ORIGIN_BYTES];
  cx_store_request hello;
  calx_status *status;
  CALX_TRY(cx_store_socket_check(c->url));
  CALX_TRY(write_hello(c, &hello, origin));
  for (int64_t pause = FIRST_PAUSE_MS;; pause *= 2) {
    if (greet(c, &hello, &a, &status)) return status;
    cx_store_connection_free(&c->link);
    if (left_ms(&a) == 0) return no_store(c, timeout_ms, &a);
    if (pause > LAST_PAUSE_MS) pause = LAST_PAUSE_MS;
    int64_t now = pause < left_ms(&a) ? pause : left_ms(&a);
    nanosleep(&(struct timespec){ .tv_nsec = (long)now * 1000000 }, NULL);
  }
}

static void release(cx_store_client *c)
{
  cx_store_connection_free(&c->link);
  if (c->wake >= 0) close(c->wake);
  cx_mutex_free(&c->lock);
  cx_cond_free(&c->changed);
  cx_free(c->url);
  cx_free(c->served_by);
  cx_free(c);
}

calx_status *cx_store_client_open(const cx_store_client_options *options,
                                  int64_t timeout_ms, cx_store_client **out)
{
  *out = NULL;
  cx_store_client *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return cx_out_of_memory();
  c->options = *options;
  c->link.fd = -1;
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
  if (status == NULL) status = cx_store_watch_start(c);
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
    // The server may stop at once when the last has left, without an answer.
    cx_lock(&c->lock);
    c->bye = true;
    cx_unlock(&c->lock);
    cx_store_request r = { .op = CX_STORE_OP_BYE };
    bool news;
    calx_status_free(call_for(c, &r, BYE_MS, true, NULL, NULL, &news));
  }
  cx_store_watch_stop(c);
  release(c);
}
