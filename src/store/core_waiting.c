// store/core_waiting: replies, and the list of requests that wait for one.
#include <string.h>

#include "base/alloc.h"
#include "store/core_internal.h"

enum { MAX_WAITING = 1 << 16, MAX_TIMEOUT_MS = 1000000000 };

void cx_store_core_reply(cx_store_core *c, const cx_store_reply_address *to,
                         calx_code code, const void *value, size_t size)
{
  cx_store_reply reply = { CX_STORE_REPLY_RESULT, code, value, size };
  c->send(c->user, to, &reply);
}

void cx_store_core_reply_text(cx_store_core *c,
                              const cx_store_reply_address *to, calx_code code,
                              const char *text)
{
  cx_store_core_reply(c, to, code, text, strlen(text));
}

void cx_store_core_unlink(cx_store_core *c, cx_store_pending **at)
{
  cx_store_pending *p = *at;
  *at = p->next;
  c->waiting_count--;
  cx_free(p);
}

calx_status *cx_store_core_wait(cx_store_core *c, const cx_store_incoming *in)
{
  const cx_store_request *r = &in->r;
  size_t name = strlen(r->name) + 1;
  size_t value = (CX_STORE_EXCHANGES >> r->op & 1) != 0 ? r->size : 0;
  cx_store_pending *p = c->waiting_count < MAX_WAITING
                            ? cx_alloc(sizeof *p + name + value)
                            : NULL;
  if (p == NULL) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "store: %zu requests wait already",
                    c->waiting_count);
  }
  int64_t timeout_ms = r->wait_ms < 0 ? 0 : r->wait_ms;
  if (timeout_ms > MAX_TIMEOUT_MS) timeout_ms = MAX_TIMEOUT_MS;
  *p = (cx_store_pending){ .next = c->waiting,
                           .from = in->from,
                           .op = r->op,
                           .a = r->a,
                           .b = r->b,
                           .due = in->now_ms + timeout_ms,
                           .timeout_ms = timeout_ms,
                           .size = value,
                           .value = p->name + name };
  memcpy(p->name, r->name, name);
  if (value != 0) memcpy(p->name + name, r->value, value);
  c->waiting = p;
  c->waiting_count++;
  return NULL;
}

void cx_store_core_answer(cx_store_core *c, unsigned ops, const char *name,
                          const cx_store_reply *reply)
{
  for (cx_store_pending **at = &c->waiting; *at != NULL;) {
    const cx_store_pending *p = *at;
    if ((ops >> p->op & 1) == 0 ||
        (name != NULL && strcmp(p->name, name) != 0)) {
      at = &(*at)->next;
      continue;
    }
    c->send(c->user, &p->from, reply);
    cx_store_core_unlink(c, at);
  }
}
