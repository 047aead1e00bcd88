// store/core_requests: the requests of peers, and the job's failure.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/core_internal.h"

enum { MAX_EVENTS = 1 << 20 };

// ---- replies ----------------------------------------------------------------

// NULL, as the status of a request that has its reply.
static calx_status *accept(cx_store_core *c, const cx_store_incoming *in)
{
  cx_store_core_reply(c, &in->from, CALX_OK, NULL, 0);
  return NULL;
}

static cx_store_reply failure(const cx_store_core *c)
{
  return (cx_store_reply){ CX_STORE_REPLY_FAILURE, c->failed, c->failure,
                           strlen(c->failure) };
}

static calx_status *reply_failure(cx_store_core *c, const cx_store_incoming *in)
{
  cx_store_reply reply = failure(c);
  c->send(c->user, &in->from, &reply);
  return NULL;
}

static cx_store_reply value_of(const cx_store_entry *entry)
{
  return (cx_store_reply){ CX_STORE_REPLY_RESULT, CALX_OK, entry->value,
                           entry->size };
}

static cx_store_reply event_at(const cx_store_core *c, size_t index)
{
  const cx_store_event *e = &c->events[index];
  return (cx_store_reply){ CX_STORE_REPLY_EVENT, CALX_OK, e->bytes, e->size };
}

// ---- failures ---------------------------------------------------------------

void cx_store_core_fail(cx_store_core *c, calx_code code, const char *message)
{
  if (c->failed != CALX_OK) return;
  c->failed = code != CALX_OK ? code : CALX_ABORTED;
  snprintf(c->failure, sizeof c->failure, "%s", message);
  cx_store_reply reply = failure(c);
  cx_store_core_answer(c, ~0u, NULL, &reply);
}

// ---- requests ---------------------------------------------------------------

static calx_status *take_put(cx_store_core *c, const cx_store_incoming *in)
{
  CALX_TRY(cx_store_table_put(&c->table, in->r.name, in->r.value, in->r.size));
  cx_store_reply reply = value_of(cx_store_table_find(&c->table, in->r.name));
  cx_store_core_answer(c, 1 << CX_STORE_OP_GET, in->r.name, &reply);
  return accept(c, in);
}

static calx_status *take_get(cx_store_core *c, const cx_store_incoming *in)
{
  const cx_store_entry *entry = cx_store_table_find(&c->table, in->r.name);
  if (entry == NULL) {
    return in->r.op == CX_STORE_OP_GET ? cx_store_core_wait(c, in)
                                       : cx_store_table_no_key(in->r.name);
  }
  cx_store_reply reply = value_of(entry);
  c->send(c->user, &in->from, &reply);
  return NULL;
}

// A WATCH waits only for the event after the last one, so the new event is the
// reply to all that wait.
static calx_status *take_event(cx_store_core *c, const cx_store_incoming *in)
{
  if (in->r.size > CX_STORE_EVENT_BYTES || c->event_count >= MAX_EVENTS ||
      !cx_grow(&c->events, &c->event_capacity, c->event_count + 1,
               sizeof *c->events)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "store: an event of %zu bytes after %zu others", in->r.size,
                    c->event_count);
  }
  cx_store_event *e = &c->events[c->event_count++];
  e->size = in->r.size;
  if (in->r.size != 0) memcpy(e->bytes, in->r.value, in->r.size);
  cx_store_reply reply = event_at(c, c->event_count - 1);
  cx_store_core_answer(c, 1 << CX_STORE_OP_WATCH, NULL, &reply);
  return accept(c, in);
}

static calx_status *take_watch(cx_store_core *c, const cx_store_incoming *in)
{
  if (in->r.a < 0 || (size_t)in->r.a > c->event_count) {
    return cx_error(CALX_OUT_OF_RANGE, "store: %d events received of %zu",
                    (int)in->r.a, c->event_count);
  }
  if ((size_t)in->r.a == c->event_count) return cx_store_core_wait(c, in);
  cx_store_reply reply = event_at(c, (size_t)in->r.a);
  c->send(c->user, &in->from, &reply);
  return NULL;
}

static calx_status *take_bye(cx_store_core *c, const cx_store_incoming *in,
                             cx_store_peer *from)
{
  int32_t process = cx_store_core_number(c, from);
  if (from->presence == CX_STORE_PRESENT) {
    from->presence = CX_STORE_LEFT;
    if (process >= 0) cx_store_core_note_left(c, process);
  }
  return accept(c, in);
}

static calx_status *take_abort(cx_store_core *c, const cx_store_incoming *in)
{
  char message[CX_STORE_FAILURE_BYTES];  // terminals show it
  cx_text_plain(in->r.size != 0 ? in->r.value : "", in->r.size, message,
                sizeof message);
  bool known = in->r.a > CALX_OK && in->r.a <= CALX_UNAUTHENTICATED;
  cx_store_core_fail(c, known ? (calx_code)in->r.a : CALX_ABORTED, message);
  return reply_failure(c, in);
}

calx_status *cx_store_core_request(cx_store_core *c,
                                   const cx_store_incoming *in,
                                   cx_store_peer *from)
{
  // Requests that wait for another process, or whose reply another process
  // waits for, fail with the job.
  const unsigned fail_with_job = 1 << CX_STORE_OP_GET | 1 << CX_STORE_OP_TRY |
                                 1 << CX_STORE_OP_WATCH | CX_STORE_EXCHANGES;
  if (c->failed != CALX_OK && (fail_with_job >> in->r.op & 1) != 0) {
    return reply_failure(c, in);
  }
  switch (in->r.op) {
    case CX_STORE_OP_PUT: return take_put(c, in);
    case CX_STORE_OP_GET:
    case CX_STORE_OP_TRY: return take_get(c, in);
    case CX_STORE_OP_DROP:
      cx_store_table_drop(&c->table, in->r.name);
      return accept(c, in);
    case CX_STORE_OP_EXCHANGE:
    case CX_STORE_OP_EXCHANGE_ALL: return cx_store_core_exchange(c, in);
    case CX_STORE_OP_ABORT: return take_abort(c, in);
    case CX_STORE_OP_EVENT: return take_event(c, in);
    case CX_STORE_OP_WATCH: return take_watch(c, in);
    case CX_STORE_OP_BYE: return take_bye(c, in, from);
    case CX_STORE_OP_HELLO: break;
  }
  return NULL;
}
