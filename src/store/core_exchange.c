// store/core_exchange: barriers and all-gathers. Each member brings a few
// bytes, and each receives those of all once the last member has arrived.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/core_internal.h"

static bool is_member(const cx_store_pending *p, const char *name)
{
  return (CX_STORE_EXCHANGES >> p->op & 1) != 0 && strcmp(p->name, name) == 0;
}

// The members that have arrived, by index. The caller frees the list; NULL:
// there was no memory.
static const cx_store_pending **find_members(const cx_store_core *c,
                                             const char *name, int32_t count)
{
  const cx_store_pending **members =
      cx_calloc((size_t)count, sizeof(cx_store_pending *));
  if (members == NULL) return NULL;
  for (const cx_store_pending *p = c->waiting; p != NULL; p = p->next) {
    if (!is_member(p, name)) continue;
    CX_ASSERT(p->b == count && p->a < count);  // check() has compared them
    members[p->a] = p;
  }
  return members;
}

// ---- the end of an exchange -------------------------------------------------

static void conclude(cx_store_core *c, const char *name, calx_code code,
                     const char *value, size_t size)
{
  cx_store_reply reply = { CX_STORE_REPLY_RESULT, code, value, size };
  cx_store_core_answer(c, CX_STORE_EXCHANGES, name, &reply);
}

static void complete(cx_store_core *c, const char *name, int32_t count,
                     const cx_store_pending *const *members)
{
  static const char no_memory[] = "the store is out of memory";
  cx_text all = { 0 };
  for (int32_t i = 0; i < count; i++) {
    cx_store_wire_append(&all, members[i]->value, members[i]->size);
  }
  if (cx_text_failed(&all)) {
    conclude(c, name, CALX_RESOURCE_EXHAUSTED, no_memory, sizeof no_memory - 1);
  } else {
    conclude(c, name, CALX_OK, all.data, all.size);
  }
  cx_text_free(&all);
}

static void refuse(cx_store_core *c, const char *name, int32_t process)
{
  cx_text text = { 0 };
  cx_text_format(&text, "'%s': process %d has ended", name, (int)process);
  const char *message = cx_text_str(&text);
  conclude(c, name, CALX_ABORTED, message, strlen(message));
  cx_text_free(&text);
}

static void conclude_if_possible(cx_store_core *c, const cx_store_request *r,
                                 const cx_store_pending *const *members)
{
  bool whole = true;
  for (int32_t i = 0; i < r->b; i++) {
    if (members[i] != NULL) continue;
    whole = false;
    if (r->op == CX_STORE_OP_EXCHANGE_ALL &&
        cx_store_core_peer(c, i)->presence == CX_STORE_LEFT) {
      refuse(c, r->name, i);
      return;
    }
  }
  if (whole) complete(c, r->name, r->b, members);
}

static bool has_arrived(const cx_store_core *c, const char *name,
                        int32_t process)
{
  const cx_store_pending *p = c->waiting;
  while (p != NULL && (p->a != process || !is_member(p, name))) p = p->next;
  return p != NULL;
}

void cx_store_core_note_left(cx_store_core *c, int32_t process)
{
  char name[CX_STORE_TABLE_KEY + 1];
  for (const cx_store_pending *p = c->waiting; p != NULL;) {
    if (p->op != CX_STORE_OP_EXCHANGE_ALL || has_arrived(c, p->name, process)) {
      p = p->next;
      continue;
    }
    memcpy(name, p->name, strlen(p->name) + 1);
    refuse(c, name, process);
    p = c->waiting;
  }
}

// ---- members ----------------------------------------------------------------

static calx_status *check(const cx_store_core *c, const cx_store_request *r)
{
  if (r->b < 1 || r->b > c->options.processes || r->a < 0 || r->a >= r->b ||
      (r->op == CX_STORE_OP_EXCHANGE_ALL && r->b != c->options.processes) ||
      r->size > CX_STORE_EXCHANGE_BYTES) {
    return cx_invalid(
        "'%s': member %d of %d with %zu bytes: at most %d processes can "
        "exchange %d bytes each",
        r->name, (int)r->a, (int)r->b, r->size, c->options.processes,
        CX_STORE_EXCHANGE_BYTES);
  }
  const cx_store_pending *other = c->waiting;
  while (other != NULL && !is_member(other, r->name)) other = other->next;
  if (other == NULL || (other->b == r->b && other->op == r->op)) return NULL;
  return cx_invalid("'%s': member %d expects %d members, others %d", r->name,
                    (int)r->a, (int)r->b, (int)other->b);
}

calx_status *cx_store_core_exchange(cx_store_core *c,
                                    const cx_store_incoming *in)
{
  const cx_store_request *r = &in->r;
  CALX_TRY(check(c, r));
  const cx_store_pending **members = find_members(c, r->name, r->b);
  if (members == NULL) return cx_out_of_memory();
  calx_status *status =
      members[r->a] == NULL
          ? cx_store_core_wait(c, in)
          : cx_error(CALX_ALREADY_EXISTS, "'%s': member %d has arrived already",
                     r->name, (int)r->a);
  if (status == NULL) {
    members[r->a] = c->waiting;
    conclude_if_possible(c, r, members);
  }
  cx_free(members);
  return status;
}

void cx_store_core_format_missing(const cx_store_core *c,
                                  const cx_store_pending *p, cx_text *out)
{
  bool all = p->op == CX_STORE_OP_EXCHANGE_ALL;
  cx_text_numbers missing = { 0 };
  const cx_store_pending **members = find_members(c, p->name, p->b);
  for (int32_t i = 0; members != NULL && i < p->b; i++) {
    if (members[i] == NULL) cx_text_numbers_add(&missing, i);
  }
  cx_free(members);
  cx_text_append_numbers(out, all ? "process" : "member",
                         all ? "processes" : "members", &missing);
}
