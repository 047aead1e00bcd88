// store/core_exchange: barriers and exchanges: those that meet bring a few
// bytes each, and all get all of them once the last has come.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/core_internal.h"

static meeting **find(cx_store_core *d, const char *name)
{
  meeting **at = &d->meetings;
  while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
  return at;
}

static void free_at(meeting **at)
{
  meeting *m = *at;
  *at = m->next;
  for (int32_t i = 0; i < m->count; i++) cx_free(m->members[i].value);
  cx_free(m->members);
  cx_free(m);
}

void cx_store_core_exchanges_free(cx_store_core *d)
{
  while (d->meetings != NULL) free_at(&d->meetings);
}

static meeting *make(cx_store_core *d, const cx_store_request *r)
{
  size_t length = strlen(r->name);
  int32_t count = r->b;
  meeting *m = cx_calloc(1, sizeof *m + length + 1);
  member *members = cx_calloc((size_t)count, sizeof *members);
  if (m == NULL || members == NULL) {
    cx_free(m);
    cx_free(members);
    return NULL;
  }
  *m = (meeting){ .next = d->meetings,
                  .count = count,
                  .all = r->op == CX_STORE_OP_EXCHANGE_ALL,
                  .members = members };
  memcpy(m->name, r->name, length + 1);
  d->meetings = m;
  return m;
}

// ---- answering --------------------------------------------------------------

// Every request that waits in this meeting.
static void answer_all(cx_store_core *d, const char *name, calx_code code,
                       const char *value, size_t size)
{
  for (pending **at = &d->waiting; *at != NULL;) {
    pending *p = *at;
    if (cx_store_core_is_exchange(p->op) && strcmp(p->name, name) == 0) {
      cx_store_core_answer(d, &p->from, code, value, size);
      cx_store_core_unlink(d, at);
    } else {
      at = &p->next;
    }
  }
}

static void conclude(cx_store_core *d, meeting **at)
{
  cx_text all = { 0 };
  meeting *m = *at;
  for (int32_t i = 0; i < m->count; i++) {
    cx_store_wire_append(&all, m->members[i].value, m->members[i].size);
  }
  if (cx_text_failed(&all)) {
    const char *text = "the store is out of memory";
    answer_all(d, m->name, CALX_RESOURCE_EXHAUSTED, text, strlen(text));
  } else {
    answer_all(d, m->name, CALX_OK, all.data, all.size);
  }
  cx_text_free(&all);
  free_at(at);
}

static void refuse_left(cx_store_core *d, meeting **at, int32_t process)
{
  cx_text text = { 0 };
  cx_text_format(&text, "'%s': process %d has ended", (*at)->name,
                 (int)process);
  const char *said = cx_text_str(&text);
  answer_all(d, (*at)->name, CALX_ABORTED, said, strlen(said));
  cx_text_free(&text);
  free_at(at);
}

void cx_store_core_note_left(cx_store_core *d, int32_t process)
{
  for (meeting **at = &d->meetings; *at != NULL;) {
    if ((*at)->all && !(*at)->members[process].here) {
      refuse_left(d, at, process);
    } else {
      at = &(*at)->next;
    }
  }
}

// ---- coming and going -------------------------------------------------------

static calx_status *check(const cx_store_core *d, const cx_store_request *r,
                          const meeting *m)
{
  bool all = r->op == CX_STORE_OP_EXCHANGE_ALL;
  if (r->b < 1 || r->b > d->options.processes || r->a < 0 || r->a >= r->b ||
      (all && r->b != d->options.processes) ||
      r->size > CX_STORE_EXCHANGE_BYTES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s': number %d of %d with %zu bytes: at most %d "
                    "processes can meet with %d bytes each",
                    r->name, (int)r->a, (int)r->b, r->size,
                    d->options.processes, CX_STORE_EXCHANGE_BYTES);
  }
  if (m != NULL && (m->count != r->b || m->all != all)) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s': number %d expects %d to meet, others %d", r->name,
                    (int)r->a, (int)r->b, (int)m->count);
  }
  if (m != NULL && m->members[r->a].here) {
    return cx_error(CALX_ALREADY_EXISTS, "'%s': number %d is there already",
                    r->name, (int)r->a);
  }
  return NULL;
}

static calx_status *come(cx_store_core *d, const cx_store_request *r,
                         meeting ***out_at)
{
  *out_at = find(d, r->name);
  CALX_TRY(check(d, r, **out_at));
  meeting *m = **out_at;
  if (m == NULL) m = make(d, r);
  if (m == NULL) return cx_out_of_memory();
  *out_at = find(d, r->name);
  member *own = &m->members[r->a];
  own->value = cx_strndup(r->size != 0 ? r->value : "", r->size);
  if (own->value == NULL) {
    if (m->here == 0) free_at(*out_at);
    return cx_out_of_memory();
  }
  own->size = r->size;
  own->here = true;
  m->here++;
  return NULL;
}

static void withdraw(meeting **at, int32_t index)
{
  member *own = &(*at)->members[index];
  if (!own->here) return;
  cx_free(own->value);
  *own = (member){ 0 };
  (*at)->here--;
  if ((*at)->here == 0) free_at(at);
}

void cx_store_core_exchange(cx_store_core *d,
                            const cx_store_reply_address *from,
                            const cx_store_request *r, int64_t now_ms)
{
  meeting **at;
  calx_status *status = come(d, r, &at);
  if (status != NULL) {
    cx_store_core_answer_status(d, from, status);
    return;
  }
  if (!cx_store_core_wait(d, from, r, now_ms)) {
    withdraw(at, r->a);
    return;
  }
  meeting *m = *at;
  if (m->here == m->count) {
    conclude(d, at);
    return;
  }
  for (int32_t i = 0; m->all && i < m->count; i++) {
    if (m->members[i].here || d->processes[i] != LEFT) continue;
    refuse_left(d, at, i);
    return;
  }
}

void cx_store_core_withdraw(cx_store_core *d, const pending *p)
{
  meeting **at = find(d, p->name);
  if (*at != NULL) withdraw(at, p->index);
}

void cx_store_core_format_missing(cx_store_core *d, const pending *p,
                                  cx_text *out)
{
  enum { NAMED = 16 };
  const meeting *m = *find(d, p->name);
  int missing = 0;
  if (m == NULL) return;
  cx_text_append(out, m->all ? "process" : "number");
  if (m->count - m->here > 1) cx_text_append(out, m->all ? "es" : "s");
  for (int32_t i = 0; i < m->count; i++) {
    if (m->members[i].here) continue;
    if (missing < NAMED) cx_text_format(out, missing > 0 ? ", %d" : " %d", i);
    missing++;
  }
  if (missing > NAMED) cx_text_format(out, " and %d more", missing - NAMED);
}
