// store/core_exchange: barriers and all-gathers. Each member brings a few
// bytes, and each receives those of all once the last member has arrived.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/core_internal.h"

static exchange **find(core *c, const char *name)
{
  exchange **at = &c->exchanges;
  while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
  return at;
}

static void free_at(exchange **at)
{
  exchange *e = *at;
  *at = e->next;
  for (int32_t i = 0; i < e->count; i++) cx_free(e->members[i].value);
  cx_free(e->members);
  cx_free(e);
}

void cx_store_core_exchanges_free(core *c)
{
  while (c->exchanges != NULL) free_at(&c->exchanges);
}

// ---- the end of an exchange -------------------------------------------------

// Replies to all its members, and frees it.
static void conclude(core *c, exchange **at, calx_code code, const char *value,
                     size_t size)
{
  for (pending **waiting = &c->waiting; *waiting != NULL;) {
    pending *p = *waiting;
    if (cx_store_core_is_exchange(p->op) && strcmp(p->name, (*at)->name) == 0) {
      cx_store_core_reply(c, &p->from, code, value, size);
      cx_store_core_unlink(c, waiting);
    } else {
      waiting = &p->next;
    }
  }
  free_at(at);
}

static void complete(core *c, exchange **at)
{
  static const char no_memory[] = "the store is out of memory";
  cx_text all = { 0 };
  for (int32_t i = 0; i < (*at)->count; i++) {
    const member *m = &(*at)->members[i];
    cx_store_wire_append(&all, m->value, m->size);
  }
  if (cx_text_failed(&all)) {
    conclude(c, at, CALX_RESOURCE_EXHAUSTED, no_memory, sizeof no_memory - 1);
  } else {
    conclude(c, at, CALX_OK, all.data, all.size);
  }
  cx_text_free(&all);
}

static void refuse(core *c, exchange **at, int32_t process)
{
  cx_text text = { 0 };
  cx_text_format(&text, "'%s': process %d has ended", (*at)->name,
                 (int)process);
  const char *message = cx_text_str(&text);
  conclude(c, at, CALX_ABORTED, message, strlen(message));
  cx_text_free(&text);
}

void cx_store_core_note_left(core *c, int32_t process)
{
  for (exchange **at = &c->exchanges; *at != NULL;) {
    if ((*at)->all && !(*at)->members[process].arrived) {
      refuse(c, at, process);
    } else {
      at = &(*at)->next;
    }
  }
}

// ---- members ----------------------------------------------------------------

static calx_status *check(const core *c, const cx_store_request *r,
                          const exchange *e)
{
  bool all = r->op == CX_STORE_OP_EXCHANGE_ALL;
  if (r->b < 1 || r->b > c->options.processes || r->a < 0 || r->a >= r->b ||
      (all && r->b != c->options.processes) ||
      r->size > CX_STORE_EXCHANGE_BYTES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s': member %d of %d with %zu bytes: at most %d "
                    "processes can exchange %d bytes each",
                    r->name, (int)r->a, (int)r->b, r->size,
                    c->options.processes, CX_STORE_EXCHANGE_BYTES);
  }
  if (e != NULL && (e->count != r->b || e->all != all)) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s': member %d expects %d members, others %d", r->name,
                    (int)r->a, (int)r->b, (int)e->count);
  }
  if (e != NULL && e->members[r->a].arrived) {
    return cx_error(CALX_ALREADY_EXISTS, "'%s': member %d has arrived already",
                    r->name, (int)r->a);
  }
  return NULL;
}

static calx_status *create(core *c, const cx_store_request *r)
{
  size_t length = strlen(r->name);
  int32_t count = r->b;
  exchange *e = cx_calloc(1, sizeof *e + length + 1);
  member *members = cx_calloc((size_t)count, sizeof *members);
  if (e == NULL || members == NULL) {
    cx_free(e);
    cx_free(members);
    return cx_out_of_memory();
  }
  *e = (exchange){ .next = c->exchanges,
                   .count = count,
                   .all = r->op == CX_STORE_OP_EXCHANGE_ALL,
                   .members = members };
  memcpy(e->name, r->name, length + 1);
  c->exchanges = e;
  return NULL;
}

static void withdraw(exchange **at, int32_t index)
{
  member *own = &(*at)->members[index];
  if (own->arrived) {
    cx_free(own->value);
    *own = (member){ 0 };
    (*at)->arrived--;
  }
  if ((*at)->arrived == 0) free_at(at);
}

static calx_status *arrive(core *c, exchange *e, const incoming *in)
{
  char *value = cx_strndup(in->r.size != 0 ? in->r.value : "", in->r.size);
  if (value == NULL) return cx_out_of_memory();
  e->members[in->r.a] = (member){ true, in->r.size, value };
  e->arrived++;
  return cx_store_core_wait(c, in);
}

calx_status *cx_store_core_exchange(core *c, const incoming *in)
{
  exchange **at = find(c, in->r.name);
  CALX_TRY(check(c, &in->r, *at));
  if (*at == NULL) {
    CALX_TRY(create(c, &in->r));
    at = &c->exchanges;
  }
  calx_status *status = arrive(c, *at, in);
  if (status != NULL) {
    withdraw(at, in->r.a);
    return status;
  }
  const exchange *e = *at;
  if (e->arrived == e->count) {
    complete(c, at);
    return NULL;
  }
  for (int32_t i = 0; e->all && i < e->count; i++) {
    if (e->members[i].arrived || c->processes[i] != LEFT) continue;
    refuse(c, at, i);
    break;
  }
  return NULL;
}

void cx_store_core_withdraw(core *c, const pending *p)
{
  exchange **at = find(c, p->name);
  if (*at != NULL) withdraw(at, p->index);
}

void cx_store_core_format_missing(core *c, const pending *p, cx_text *out)
{
  const exchange *e = *find(c, p->name);
  cx_text_numbers missing = { 0 };
  for (int32_t i = 0; e != NULL && i < e->count; i++) {
    if (!e->members[i].arrived) cx_text_numbers_add(&missing, i);
  }
  bool all = e != NULL && e->all;
  cx_text_append_numbers(out, all ? "process" : "member",
                         all ? "processes" : "members", &missing);
}
