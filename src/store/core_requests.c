// store/core_requests: replies, and the list of requests that wait for one.
#include <string.h>

#include "base/alloc.h"
#include "store/core_internal.h"

enum { MAX_WAITING = 1 << 16, MAX_TIMEOUT_MS = 1000000000 };

void cx_store_core_reply(core *c, const cx_store_reply_address *to,
                         calx_code code, const void *value, size_t size)
{
  cx_store_reply reply = { CX_STORE_REPLY_RESULT, code, value, size };
  c->send(c->user, to, &reply);
}

void cx_store_core_unlink(core *c, pending **at)
{
  pending *p = *at;
  *at = p->next;
  c->waiting_count--;
  cx_free(p);
}

calx_status *cx_store_core_wait(core *c, const incoming *in)
{
  size_t length = strlen(in->r.name);
  pending *p =
      c->waiting_count < MAX_WAITING ? cx_alloc(sizeof *p + length + 1) : NULL;
  if (p == NULL) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "store: %zu requests wait already",
                    c->waiting_count);
  }
  int64_t timeout_ms = in->r.wait_ms < 0 ? 0 : in->r.wait_ms;
  if (timeout_ms > MAX_TIMEOUT_MS) timeout_ms = MAX_TIMEOUT_MS;
  *p = (pending){ .next = c->waiting,
                  .from = in->from,
                  .op = in->r.op,
                  .index = in->r.a,
                  .due = in->now_ms + timeout_ms,
                  .timeout_ms = timeout_ms };
  memcpy(p->name, in->r.name, length + 1);
  c->waiting = p;
  c->waiting_count++;
  return NULL;
}
