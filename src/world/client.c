// world/client: requests over nng's REQ contexts.
//
// The server keeps the time of what waits; the limit here is a little longer
// and only ends a wait for a server that does not answer at all. A connection
// that closes after the greeting is not made anew: the server has told
// everybody that this process has gone.
#include "world/client.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "world/client_parts.h"
#include "world/pipe.h"
#include "world/shut.h"

enum { BACKSTOP_MS = 10000, FAIL_MS = 2000, BYE_MS = 2000, NEWS_MS = 1000 };

// ---- news -------------------------------------------------------------------

void cx_client_end_calls(cx_client *c)
{
  for (call *k = c->calls; k != NULL; k = k->next) nng_ctx_close(k->context);
  cx_cond_broadcast(&c->changed);
}

bool cx_client_note(cx_client *c, calx_code code, const char *news)
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

calx_status *cx_client_news(cx_client *c)
{
  cx_lock(&c->lock);
  calx_status *status =
      c->failed != CALX_OK ? cx_error(c->failed, "%s", c->news) : NULL;
  cx_unlock(&c->lock);
  return status;
}

// ---- one exchange -----------------------------------------------------------

nng_msg *cx_client_message(const cx_request *r)
{
  unsigned char head[CX_REQUEST_HEAD + CX_TABLE_KEY];
  size_t size = cx_wire_request(r, head);
  nng_msg *m;
  if (nng_msg_alloc(&m, 0) != 0) return NULL;
  if (nng_msg_append(m, head, size) != 0 ||
      (r->size != 0 && nng_msg_append(m, r->value, r->size) != 0)) {
    nng_msg_free(m);
    return NULL;
  }
  return m;
}

// Sends and receives; the message is taken. 0, or nng's error.
static int exchange(nng_ctx context, nng_aio *aio, nng_msg *message,
                    nng_msg **out)
{
  nng_aio_set_msg(aio, message);
  nng_ctx_send(context, aio);
  nng_aio_wait(aio);
  int error = nng_aio_result(aio);
  if (error != 0) {
    nng_msg_free(message);
    return error;
  }
  nng_ctx_recv(context, aio);
  nng_aio_wait(aio);
  error = nng_aio_result(aio);
  if (error == 0) *out = nng_aio_get_msg(aio);
  return error;
}

static void enlist(cx_client *c, call *k)
{
  k->next = c->calls;
  k->at = &c->calls;
  if (c->calls != NULL) c->calls->at = &k->next;
  c->calls = k;
}

// `despite`: also where the job has failed.
static int run_call(cx_client *c, const cx_request *r, int64_t timeout_ms,
                    bool despite, nng_msg **out)
{
  nng_aio *aio = NULL;
  nng_msg *message = cx_client_message(r);
  call own = { 0 };
  if (message == NULL) return NNG_ENOMEM;
  int error = nng_aio_alloc(&aio, NULL, NULL);
  if (error == 0) error = nng_ctx_open(&own.context, c->socket);
  if (error != 0) {
    nng_msg_free(message);
    nng_aio_free(aio);
    return error;
  }
  nng_aio_set_timeout(aio, (nng_duration)timeout_ms);
  cx_lock(&c->lock);
  bool refused = c->lost || (c->failed != CALX_OK && !despite);
  if (!refused) enlist(c, &own);
  cx_unlock(&c->lock);
  if (refused) {
    nng_msg_free(message);
    error = NNG_ECONNRESET;
  } else {
    error = exchange(own.context, aio, message, out);
    cx_lock(&c->lock);
    *own.at = own.next;
    if (own.next != NULL) own.next->at = own.at;
    cx_unlock(&c->lock);
  }
  nng_ctx_close(own.context);
  nng_aio_free(aio);
  return error;
}

static calx_status *take_value(const cx_reply *reply, char **out,
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
static calx_status *read_answer(cx_client *c, nng_msg *m, char **out,
                                size_t *out_size, bool *out_news)
{
  cx_reply reply;
  *out_news = false;
  if (!cx_wire_read_reply(nng_msg_body(m), nng_msg_len(m), &reply)) {
    return cx_error(CALX_DATA_LOSS,
                    "the store at %s answered %zu bytes that are no answer",
                    c->url, nng_msg_len(m));
  }
  if (reply.kind == CX_REPLY_RESULT && reply.code == CALX_OK) {
    return take_value(&reply, out, out_size);
  }
  if (reply.kind == CX_REPLY_EVENT) {
    return cx_error(CALX_DATA_LOSS, "the store at %s answered with an event",
                    c->url);
  }
  *out_news = reply.kind == CX_REPLY_NEWS;
  int n = reply.size < CX_NEWS_TEXT ? (int)reply.size : CX_NEWS_TEXT;
  return cx_error(reply.code, "%.*s", n, n != 0 ? reply.value : "");
}

// A call ended with its connection: the watch is about to say why.
static void wait_for_news(cx_client *c)
{
  int64_t until = cx_now_ns() + (int64_t)NEWS_MS * 1000000;
  cx_lock(&c->lock);
  while (c->greeted && c->failed == CALX_OK && !c->bye && cx_now_ns() < until) {
    cx_cond_wait_ms(&c->changed, &c->lock, NEWS_MS);
  }
  cx_unlock(&c->lock);
}

static calx_status *failed_exchange(cx_client *c, int error,
                                    const cx_request *r)
{
  if (error == NNG_ENOMEM) return cx_out_of_memory();
  if (error != NNG_ETIMEDOUT) wait_for_news(c);
  calx_status *news = cx_client_news(c);
  if (news != NULL) return news;
  if (error == NNG_ETIMEDOUT) {
    return cx_error(CALX_DEADLINE_EXCEEDED,
                    "the store at %s does not answer%s%s%s", c->url,
                    r->name[0] != '\0' ? " to '" : "", r->name,
                    r->name[0] != '\0' ? "'" : "");
  }
  return cx_error(CALX_UNAVAILABLE, "the store at %s: %s", c->url,
                  nng_strerror(error));
}

static calx_status *call_for(cx_client *c, const cx_request *r,
                             int64_t timeout_ms, bool despite, char **out,
                             size_t *out_size, bool *out_news)
{
  nng_msg *answer = NULL;
  *out_news = false;
  int error = run_call(c, r, timeout_ms, despite, &answer);
  if (error != 0) return failed_exchange(c, error, r);
  calx_status *status = read_answer(c, answer, out, out_size, out_news);
  nng_msg_free(answer);
  return status;
}

calx_status *cx_client_call(cx_client *c, const cx_request *r, char **out,
                            size_t *out_size)
{
  bool news;
  if (out != NULL) *out = NULL;
  int64_t limit = r->wait_ms < INT32_MAX - BACKSTOP_MS
                      ? r->wait_ms
                      : INT32_MAX - BACKSTOP_MS;
  return call_for(c, r, limit + BACKSTOP_MS, false, out, out_size, &news);
}

calx_status *cx_client_request(cx_op op, const char *name, cx_request *out)
{
  size_t length = strlen(name);
  if (length == 0 || length > CX_TABLE_KEY) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "store: keys of 1 to %d bytes are taken, found one of %zu",
                    CX_TABLE_KEY, length);
  }
  out->op = op;
  out->a = out->b = 0;
  out->wait_ms = 0;
  out->value = NULL;
  out->size = 0;
  memcpy(out->name, name, length + 1);
  return NULL;
}

calx_status *cx_client_fail(cx_client *c, calx_code code, const char *news)
{
  size_t size = strlen(news);
  cx_request r = { .op = CX_OP_ABORT,
                   .a = (int32_t)code,
                   .value = news,
                   .size = size < CX_NEWS_TEXT ? size : CX_NEWS_TEXT - 1 };
  bool heard;
  calx_status *first = call_for(c, &r, FAIL_MS, true, NULL, NULL, &heard);
  if (heard) {
    cx_client_note(c, calx_status_code(first), cx_status_sentence(first));
    return first;
  }
  // Nobody can be told; what this process knows is then its own news.
  calx_status_free(first);
  cx_client_note(c, code, news);
  return cx_client_news(c);
}

// ---- the connection ---------------------------------------------------------

static void note_pipe(nng_pipe pipe, nng_pipe_ev event, void *user)
{
  cx_client *c = user;
  if (event == NNG_PIPE_EV_ADD_PRE) {
    bool stranger = cx_pipe_is_strange(pipe);
    cx_lock(&c->lock);
    bool again = c->greeted;
    c->stranger = c->stranger || stranger;
    cx_unlock(&c->lock);
    if (stranger || again) nng_pipe_close(pipe);
    return;
  }
  cx_lock(&c->lock);
  c->removed = (uint32_t)nng_pipe_id(pipe);
  c->lost = c->lost || (c->greeted && c->removed == c->pipe);
  cx_cond_broadcast(&c->changed);
  cx_unlock(&c->lock);
}

static int dial(cx_client *c)
{
  int error = nng_req0_open(&c->socket);
  if (error != 0) return error;
  error = nng_pipe_notify(c->socket, NNG_PIPE_EV_ADD_PRE, note_pipe, c);
  if (error == 0) {
    error = nng_pipe_notify(c->socket, NNG_PIPE_EV_REM_POST, note_pipe, c);
  }
  if (error == 0) {
    error = nng_socket_set_ms(c->socket, NNG_OPT_REQ_RESENDTIME,
                              NNG_DURATION_INFINITE);
  }
  if (error == 0) {
    error = nng_socket_set_size(c->socket, NNG_OPT_RECVMAXSZ,
                                (size_t)2 * CX_MESSAGE_BYTES);
  }
  if (error == 0) error = nng_dialer_create(&c->dialer, c->socket, c->url);
  if (error != 0) return error;
  nng_dialer_set_ms(c->dialer, NNG_OPT_RECONNMINT, 10);
  nng_dialer_set_ms(c->dialer, NNG_OPT_RECONNMAXT, 200);
  nng_dialer_set_bool(c->dialer, NNG_OPT_TCP_KEEPALIVE, true);
  return nng_dialer_start(c->dialer, NNG_FLAG_NONBLOCK);
}

// There is one connection and no second: one that comes while either side
// closes its socket can hang nng 1.5 (its issue 1498).
static void dial_no_more(cx_client *c)
{
  const nng_duration day = 24 * 3600 * 1000;
  nng_dialer_set_ms(c->dialer, NNG_OPT_RECONNMAXT, day);
  nng_dialer_set_ms(c->dialer, NNG_OPT_RECONNMINT, day);
}

static calx_status *no_store(cx_client *c, int64_t timeout_ms)
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
                  "%s: nobody serves the store at %s within %.3g s%s", who,
                  c->url, (double)timeout_ms / 1000,
                  c->stranger ? "; what is there is another user's" : "");
}

static calx_status *greet(cx_client *c, int64_t timeout_ms)
{
  cx_request r = { .op = CX_OP_HELLO,
                   .a = c->options.process,
                   .b = c->options.processes };
  const char *token = c->options.token != NULL ? c->options.token : "";
  if (strlen(token) > CX_TABLE_KEY) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the token is of %zu bytes, at most %d are taken",
                    strlen(token), CX_TABLE_KEY);
  }
  memcpy(r.name, token, strlen(token) + 1);
  nng_msg *answer = NULL;
  int error = run_call(c, &r, timeout_ms, false, &answer);
  if (error == NNG_ETIMEDOUT) return no_store(c, timeout_ms);
  if (error != 0) return failed_exchange(c, error, &(cx_request){ 0 });
  size_t size = 0;
  bool news;
  calx_status *status = read_answer(c, answer, &c->served_by, &size, &news);
  cx_lock(&c->lock);
  c->pipe = (uint32_t)nng_pipe_id(nng_msg_get_pipe(answer));
  c->greeted = status == NULL;
  c->lost = c->removed == c->pipe;
  cx_unlock(&c->lock);
  nng_msg_free(answer);
  dial_no_more(c);
  return status;
}

// What nng would not let go of stays.
static void release(cx_client *c)
{
  if (!cx_shut_socket(c->socket)) return;
  cx_mutex_free(&c->lock);
  cx_cond_free(&c->changed);
  cx_free(c->url);
  cx_free(c->served_by);
  cx_free(c);
}

calx_status *cx_client_open(const cx_client_options *options,
                            int64_t timeout_ms, cx_client **out)
{
  *out = NULL;
  cx_client *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return cx_out_of_memory();
  c->options = *options;
  cx_mutex_init(&c->lock);
  cx_cond_init(&c->changed);
  c->url = cx_strdup(options->url);
  calx_status *status = c->url == NULL ? cx_out_of_memory() : NULL;
  int error = status == NULL ? dial(c) : 0;
  if (error != 0) {
    status = cx_error(CALX_UNAVAILABLE, "the store at %s: %s", c->url,
                      nng_strerror(error));
  }
  if (status == NULL) status = greet(c, timeout_ms);
  c->options.url = c->options.token = NULL;
  if (status == NULL) status = cx_watch_start(c);
  if (status != NULL) {
    release(c);
    return status;
  }
  *out = c;
  return NULL;
}

void cx_client_close(cx_client *c, bool bye)
{
  if (bye) {
    // The server may stop at once when the last has left, without an answer.
    cx_lock(&c->lock);
    c->bye = true;
    cx_unlock(&c->lock);
    cx_request r = { .op = CX_OP_BYE };
    bool news;
    calx_status_free(call_for(c, &r, BYE_MS, true, NULL, NULL, &news));
  }
  cx_watch_stop(c);
  release(c);
}
