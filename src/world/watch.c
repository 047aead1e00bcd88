// world/watch: one thread per process that waits for what the server tells.
//
// It asks the server for the next event; the server answers when there is one,
// when the job has failed, or when a heartbeat's pause is over. So one exchange
// is the news, the sign of life of this process and that of the server. nng's
// callbacks only note how far the exchange is and ring; the thread looks.
#include <stdio.h>

#include "world/client_parts.h"

enum { PAUSE_MS = 1000, PAUSE_WITHOUT_LIMIT_MS = 60000, LAST_ANSWERS_MS = 300 };

int64_t cx_watch_pause_ms(const cx_client *c)
{
  int64_t limit = c->options.heartbeat_ms;
  if (limit <= 0) return PAUSE_WITHOUT_LIMIT_MS;
  return limit / 5 < PAUSE_MS ? limit / 5 : PAUSE_MS;
}

static void finish(cx_client *c, int result, nng_msg *answer)
{
  c->sending = false;
  c->answered = true;
  c->result = result;
  c->answer = answer;
  cx_cond_broadcast(&c->changed);
}

static void step(void *user)
{
  cx_client *c = user;
  int result = nng_aio_result(c->aio);
  cx_lock(&c->lock);
  bool sent = c->sending && result == 0;
  if (sent) {
    c->sending = false;
  } else if (c->sending) {
    nng_msg_free(nng_aio_get_msg(c->aio));
    finish(c, result, NULL);
  } else {
    finish(c, result, result == 0 ? nng_aio_get_msg(c->aio) : NULL);
  }
  cx_unlock(&c->lock);
  if (sent) nng_ctx_recv(c->context, c->aio);
}

static bool ask(cx_client *c)
{
  cx_request r = { .op = CX_OP_WATCH,
                   .a = c->seen,
                   .wait_ms = cx_watch_pause_ms(c) };
  nng_msg *m = cx_client_message(&r);
  if (m == NULL) return false;
  cx_lock(&c->lock);
  c->sending = true;
  c->answered = false;
  cx_unlock(&c->lock);
  nng_aio_set_msg(c->aio, m);
  nng_ctx_send(c->context, c->aio);
  return true;
}

typedef enum heard {
  HEARD_ANSWER,
  HEARD_LOSS,
  HEARD_SILENCE,
  HEARD_STOP
} heard;

// Waits in slices: who was stopped itself has heard nobody, and sees it by a
// slice that took far longer.
static heard listen_for(cx_client *c)
{
  int64_t limit = c->options.heartbeat_ms, slice = limit / 4 + 1;
  int64_t begun = cx_now_ns(), until = begun + limit * 1000000;
  heard what = HEARD_STOP;
  cx_lock(&c->lock);
  for (;;) {
    int64_t now = cx_now_ns();
    if (now - begun > limit * 500000) until = now + limit * 1000000;
    int64_t left = (until - now) / 1000000 + 1;
    begun = now;
    if (c->leaving) break;
    bool lost = c->lost || (c->answered && c->result != 0);
    c->lost = lost;
    what = lost ? HEARD_LOSS : c->answered ? HEARD_ANSWER : HEARD_SILENCE;
    if (what != HEARD_SILENCE) break;
    if (limit > 0 && now >= until) {
      c->lost = true;
      break;
    }
    if (limit <= 0) left = slice = 60000;
    cx_cond_wait_ms(&c->changed, &c->lock, left < slice ? left : slice);
    what = HEARD_STOP;
  }
  cx_unlock(&c->lock);
  return what;
}

static void tell(cx_client *c, calx_code code, const char *news)
{
  cx_lock(&c->lock);
  bool bye = c->bye;
  cx_unlock(&c->lock);
  if (bye) return;
  if (cx_client_note(c, code, news) || !c->told) {
    c->told = true;
    c->options.on_news(c->options.user, c->failed, c->news);
  }
}

// Whether to go on.
static bool take_answer(cx_client *c)
{
  cx_reply reply;
  bool go_on = true;
  if (!cx_wire_read_reply(nng_msg_body(c->answer), nng_msg_len(c->answer),
                          &reply)) {
    tell(c, CALX_ABORTED, "the store answers what is no answer");
    go_on = false;
  } else if (reply.kind == CX_REPLY_EVENT) {
    c->seen++;
    c->options.on_event(c->options.user, reply.value, reply.size);
  } else if (reply.kind == CX_REPLY_NEWS || reply.code != CALX_OK) {
    char text[CX_NEWS_TEXT];
    int n = reply.size < sizeof text ? (int)reply.size : (int)sizeof text - 1;
    snprintf(text, sizeof text, "%.*s", n, n != 0 ? reply.value : "");
    tell(c, reply.code, text);
    go_on = false;
  }
  nng_msg_free(c->answer);
  c->answer = NULL;
  return go_on;
}

// After the last news. The server answers what waits by itself, and what it
// answered before the news still counts, so calls have a moment to hear it. One
// that comes later, the farewell at least, must not wait for a server that has
// gone.
static void wait_for_loss(cx_client *c)
{
  int64_t until = cx_now_ns() + (int64_t)LAST_ANSWERS_MS * 1000000;
  cx_lock(&c->lock);
  while (!c->lost && !c->leaving) {
    int64_t left = (until - cx_now_ns()) / 1000000;
    if (left > 0) {
      cx_cond_wait_ms(&c->changed, &c->lock, left);
    } else {
      cx_client_end_calls(c);
      cx_cond_wait(&c->changed, &c->lock);
    }
  }
  cx_client_end_calls(c);
  cx_unlock(&c->lock);
}

static void watch(void *user)
{
  cx_client *c = user;
  char text[256];
  for (bool going = ask(c); going;) {
    switch (listen_for(c)) {
      case HEARD_ANSWER: going = take_answer(c) && ask(c); break;
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
      case HEARD_STOP: going = false; break;
    }
  }
  wait_for_loss(c);
}

calx_status *cx_watch_start(cx_client *c)
{
  int error = nng_aio_alloc(&c->aio, step, c);
  if (error == 0) error = nng_ctx_open(&c->context, c->socket);
  calx_status *status =
      error != 0 ? cx_error(CALX_RESOURCE_EXHAUSTED, "the store at %s: %s",
                            c->url, nng_strerror(error))
                 : cx_thread_start(&c->thread, watch, c);
  if (status == NULL) return NULL;
  if (error == 0) nng_ctx_close(c->context);
  nng_aio_free(c->aio);
  c->aio = NULL;
  return status;
}

void cx_watch_stop(cx_client *c)
{
  cx_lock(&c->lock);
  c->leaving = true;
  cx_cond_broadcast(&c->changed);
  cx_unlock(&c->lock);
  cx_thread_join(&c->thread);
  nng_ctx_close(c->context);
  nng_aio_stop(c->aio);
  if (c->answer != NULL) nng_msg_free(c->answer);
  nng_aio_free(c->aio);
}
