// store/client_calls: the list of calls that wait for a reply, and the job's
// failure, which the client and its watch thread share.
#include <stdio.h>
#include <sys/eventfd.h>

#include "store/client_internal.h"

// ---- the job's failure ------------------------------------------------------

void cx_store_client_end_calls(cx_store_client *c)
{
  for (cx_store_call *k = c->calls; k != NULL; k = k->next) k->ended = true;
  cx_cond_broadcast(&c->changed);
}

bool cx_store_client_note_failure(cx_store_client *c, calx_code code,
                                  const char *message)
{
  cx_lock(&c->lock);
  bool first = c->failed == CALX_OK;
  if (first) {
    c->failed = code;
    snprintf(c->failure, sizeof c->failure, "%s", message);
    cx_cond_broadcast(&c->changed);
  }
  cx_unlock(&c->lock);
  return first;
}

calx_status *cx_store_client_failure(cx_store_client *c)
{
  cx_lock(&c->lock);
  calx_status *status =
      c->failed != CALX_OK ? cx_error(c->failed, "%s", c->failure) : NULL;
  cx_unlock(&c->lock);
  return status;
}

// ---- calls ------------------------------------------------------------------

void cx_store_client_send(cx_store_client *c, cx_store_call *k,
                          const cx_store_request *r)
{
  unsigned char head[CX_STORE_REQUEST_HEAD + CX_STORE_TABLE_KEY];
  size_t size = cx_store_wire_request(r, head);
  *k = (cx_store_call){ .next = c->calls,
                        .at = &c->calls,
                        .number = ++c->number };
  if (c->calls != NULL) c->calls->at = &k->next;
  c->calls = k;
  cx_store_connection_send(&c->connection, k->number, head, size, r->value,
                           r->size);
  if (c->connection.lost || cx_store_connection_pending(&c->connection) > 0) {
    (void)eventfd_write(c->wake, 1);
  }
}

void cx_store_client_remove(cx_store_call *k)
{
  if (k->at == NULL) return;
  *k->at = k->next;
  if (k->next != NULL) k->next->at = k->at;
  k->at = NULL;
}
