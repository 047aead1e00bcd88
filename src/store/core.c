// store/core: who is here, what they ask for, and the first news.
//
// A connection is a process, or a host's launcher, once its HELLO brought the
// token, the job's name, a number that nobody had before, and the same count of
// processes. All of a host come from one start of its command: the first. A
// process that closes without BYE, or is silent for longer than the heartbeat's
// limit, has gone, and that is news; so it is with a host's launcher. The first
// news answers every request that waits.
#include "store/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/core_internal.h"

enum {
  TICK_MS = 500,
  MOST_WAITING = 1 << 16,
  MOST_PEERS = 1 << 21,
  MOST_EVENTS = 1 << 20,
  LONGEST_MS = 1000000000
};

static const char closed[] = "its connection closed";

// ---- answers ----------------------------------------------------------------

void cx_store_core_answer(cx_store_core *d, const cx_store_reply_address *to,
                          calx_code code, const void *value, size_t size)
{
  cx_store_reply reply = { CX_STORE_REPLY_RESULT, code, value, size };
  d->send(d->user, to, &reply);
}

void cx_store_core_answer_status(cx_store_core *d,
                                 const cx_store_reply_address *to,
                                 calx_status *status)
{
  const char *text = status != NULL ? cx_status_sentence(status) : "";
  cx_store_core_answer(d, to, calx_status_code(status), text, strlen(text));
  calx_status_free(status);
}

static void answer_news(cx_store_core *d, const cx_store_reply_address *to)
{
  cx_store_reply reply = { CX_STORE_REPLY_FAILURE, d->failed, d->news,
                           strlen(d->news) };
  d->send(d->user, to, &reply);
}

void cx_store_core_unlink(cx_store_core *d, pending **at)
{
  pending *p = *at;
  *at = p->next;
  d->waiting_count--;
  cx_free(p);
}

bool cx_store_core_wait(cx_store_core *d, const cx_store_reply_address *from,
                        const cx_store_request *r, int64_t now_ms)
{
  size_t length = strlen(r->name);
  pending *p =
      d->waiting_count < MOST_WAITING ? cx_alloc(sizeof *p + length + 1) : NULL;
  if (p == NULL) {
    cx_store_core_answer_status(
        d, from,
        cx_error(CALX_RESOURCE_EXHAUSTED, "store: %zu requests wait already",
                 d->waiting_count));
    return false;
  }
  int64_t wait = r->wait_ms < 0 ? 0 : r->wait_ms;
  if (wait > LONGEST_MS) wait = LONGEST_MS;
  *p = (pending){ .next = d->waiting,
                  .from = *from,
                  .op = r->op,
                  .index = r->a,
                  .due = now_ms + wait,
                  .waited_ms = wait };
  memcpy(p->name, r->name, length + 1);
  d->waiting = p;
  d->waiting_count++;
  return true;
}

// ---- news -------------------------------------------------------------------

void cx_store_core_fail(cx_store_core *d, calx_code code, const char *news)
{
  if (d->failed != CALX_OK) return;
  d->failed = code != CALX_OK ? code : CALX_ABORTED;
  snprintf(d->news, sizeof d->news, "%s", news);
  while (d->waiting != NULL) {
    answer_news(d, &d->waiting->from);
    cx_store_core_unlink(d, &d->waiting);
  }
  cx_store_core_exchanges_free(d);
}

// Processes of one rank are called by it; how many each has is told by a key.
static void name_process(const cx_store_core *d, int process, cx_text *out)
{
  const cx_store_entry *entry =
      cx_store_table_find(&d->table, CX_STORE_DEVICES_KEY);
  long devices = entry != NULL ? strtol(entry->value, NULL, 10) : 0;
  if (devices == 1) {
    cx_text_format(out, "rank %d", process);
  } else if (devices > 1) {
    cx_text_format(out, "process %d (ranks %ld to %ld)", process,
                   process * devices, (process + 1) * devices - 1);
  } else {
    cx_text_format(out, "process %d", process);
  }
}

static void fail_gone(cx_store_core *d, int process, const char *why)
{
  cx_text text = { 0 };
  if (process < 0) {
    cx_text_format(&text, "the launcher of host %d", -1 - process);
  } else {
    name_process(d, process, &text);
  }
  cx_text_format(&text, " has gone (%s)", why);
  cx_store_core_fail(d, CALX_ABORTED, cx_text_str(&text));
  cx_text_free(&text);
}

static void check_gone(cx_store_core *d, int64_t now_ms)
{
  for (int i = 0; d->failed == CALX_OK && i < d->options.processes; i++) {
    if (d->gone_at[i] < 0 || d->gone_at[i] > now_ms) continue;
    fail_gone(d, i, closed);
  }
}

// ---- who is here ------------------------------------------------------------

static peer *find_peer(cx_store_core *d, uint32_t pipe)
{
  for (size_t i = 0; i < d->peer_count; i++) {
    if (d->peers[i].pipe == pipe) return &d->peers[i];
  }
  return NULL;
}

static void note_presence(cx_store_core *d, int32_t process, presence p)
{
  if (process < 0) {
    d->hosts[-1 - process].launcher = p;
  } else {
    d->processes[process] = p;
  }
}

static void take_hello(cx_store_core *d, const cx_store_reply_address *from,
                       const cx_store_request *r, bool stranger, int64_t now_ms)
{
  peer *known = find_peer(d, from->pipe);
  cx_store_origin origin;
  calx_status *status = cx_store_core_check_hello(d, r, stranger, &origin);
  if (status == NULL && known != NULL) {
    status = cx_error(CALX_ALREADY_EXISTS, "this connection said who it is");
  }
  if (status == NULL && (d->peer_count >= MOST_PEERS ||
                         !cx_grow(&d->peers, &d->peer_capacity,
                                  d->peer_count + 1, sizeof *d->peers))) {
    status = cx_out_of_memory();
  }
  if (status != NULL) {
    cx_store_core_answer_status(d, from, status);
    return;
  }
  d->peers[d->peer_count++] =
      (peer){ .pipe = from->pipe, .process = r->a, .heard = now_ms };
  note_presence(d, r->a, PRESENT);
  host *h = cx_store_core_host(d, &origin);
  if (h != NULL) h->launch = origin.launch;
  cx_store_core_answer(d, from, CALX_OK, d->options.who,
                       strlen(d->options.who));
}

static void drop_requests(cx_store_core *d, uint32_t pipe)
{
  for (pending **at = &d->waiting; *at != NULL;) {
    if ((*at)->from.pipe != pipe) {
      at = &(*at)->next;
      continue;
    }
    if (cx_store_core_is_exchange((*at)->op)) cx_store_core_withdraw(d, *at);
    cx_store_core_unlink(d, at);
  }
}

bool cx_store_core_is_known(const cx_store_core *d, uint32_t pipe)
{
  for (size_t i = 0; i < d->peer_count; i++) {
    if (d->peers[i].pipe == pipe) return true;
  }
  return false;
}

void cx_store_core_note_alive(cx_store_core *d, uint32_t pipe, int64_t now_ms)
{
  peer *p = find_peer(d, pipe);
  if (p != NULL) p->heard = now_ms;
}

void cx_store_core_closed(cx_store_core *d, uint32_t pipe, int64_t now_ms)
{
  peer *p = find_peer(d, pipe);
  if (p == NULL) return;
  int32_t process = p->process;
  *p = d->peers[--d->peer_count];
  drop_requests(d, pipe);
  if (cx_store_core_presence(d, process) != PRESENT) return;
  note_presence(d, process, GONE);
  if (process < 0) {
    fail_gone(d, process, closed);
    return;
  }
  d->gone_at[process] = now_ms + d->options.grace_ms;
  check_gone(d, now_ms);
}

int cx_store_core_count_open(const cx_store_core *d)
{
  int open = 0;
  for (int i = 0; i < d->options.processes; i++) {
    presence p = d->processes[i];
    open += p == PRESENT || (p == AWAITED && d->failed == CALX_OK);
  }
  return open;
}

static void check_heartbeats(cx_store_core *d, int64_t now_ms)
{
  int64_t limit = d->options.heartbeat_ms;
  // Who was stopped itself has heard nobody.
  bool slept = d->ticked != 0 && now_ms - d->ticked > limit / 2;
  d->ticked = now_ms;
  for (size_t i = 0; limit > 0 && i < d->peer_count; i++) {
    peer *p = &d->peers[i];
    if (slept) p->heard = now_ms;
    bool here = cx_store_core_presence(d, p->process) == PRESENT;
    if (!here || now_ms - p->heard <= limit) continue;
    char why[128];
    snprintf(why, sizeof why,
             "no sign of it for %.3g s: stopped, or its host is unreachable",
             (double)limit / 1000);
    note_presence(d, p->process, GONE);
    fail_gone(d, p->process, why);
  }
}

// ---- requests ---------------------------------------------------------------

static void answer_gets(cx_store_core *d, const char *name)
{
  const cx_store_entry *entry = cx_store_table_find(&d->table, name);
  for (pending **at = &d->waiting; *at != NULL && entry != NULL;) {
    pending *p = *at;
    if (p->op == CX_STORE_OP_GET && strcmp(p->name, name) == 0) {
      cx_store_core_answer(d, &p->from, CALX_OK, entry->value, entry->size);
      cx_store_core_unlink(d, at);
    } else {
      at = &p->next;
    }
  }
}

static void take_get(cx_store_core *d, const cx_store_reply_address *from,
                     const cx_store_request *r, int64_t now_ms)
{
  const cx_store_entry *entry = cx_store_table_find(&d->table, r->name);
  if (entry != NULL) {
    cx_store_core_answer(d, from, CALX_OK, entry->value, entry->size);
  } else if (r->op == CX_STORE_OP_GET) {
    cx_store_core_wait(d, from, r, now_ms);
  } else {
    cx_store_core_answer_status(
        d, from,
        cx_error(CALX_NOT_FOUND, "store: there is no key '%s'", r->name));
  }
}

static void answer_event(cx_store_core *d, const cx_store_reply_address *to,
                         size_t seen)
{
  const event *e = &d->events[seen];
  cx_store_reply reply = { CX_STORE_REPLY_EVENT, CALX_OK, e->bytes, e->size };
  d->send(d->user, to, &reply);
}

static void take_event(cx_store_core *d, const cx_store_reply_address *from,
                       const cx_store_request *r)
{
  if (r->size > CX_STORE_EVENT_BYTES || d->event_count >= MOST_EVENTS ||
      !cx_grow(&d->events, &d->event_capacity, d->event_count + 1,
               sizeof *d->events)) {
    cx_store_core_answer_status(
        d, from,
        cx_error(CALX_RESOURCE_EXHAUSTED,
                 "store: an event of %zu bytes after %zu others", r->size,
                 d->event_count));
    return;
  }
  event *e = &d->events[d->event_count++];
  e->size = r->size;
  if (r->size != 0) memcpy(e->bytes, r->value, r->size);
  for (pending **at = &d->waiting; *at != NULL;) {
    pending *p = *at;
    if (p->op == CX_STORE_OP_WATCH && (size_t)p->index < d->event_count) {
      answer_event(d, &p->from, (size_t)p->index);
      cx_store_core_unlink(d, at);
    } else {
      at = &p->next;
    }
  }
  cx_store_core_answer(d, from, CALX_OK, NULL, 0);
}

static void take_watch(cx_store_core *d, const cx_store_reply_address *from,
                       const cx_store_request *r, int64_t now_ms)
{
  if (r->a < 0 || (size_t)r->a > d->event_count) {
    cx_store_core_answer_status(
        d, from,
        cx_error(CALX_OUT_OF_RANGE, "store: %d events seen of %zu", (int)r->a,
                 d->event_count));
  } else if ((size_t)r->a < d->event_count) {
    answer_event(d, from, (size_t)r->a);
  } else {
    cx_store_core_wait(d, from, r, now_ms);
  }
}

static void take_bye(cx_store_core *d, const cx_store_reply_address *from,
                     const peer *p)
{
  if (cx_store_core_presence(d, p->process) == PRESENT) {
    note_presence(d, p->process, LEFT);
    if (p->process >= 0) cx_store_core_note_left(d, p->process);
  }
  cx_store_core_answer(d, from, CALX_OK, NULL, 0);
}

// What waits, or tells what others would wait for, learns of the news instead.
static bool is_ended_by_news(cx_store_op op)
{
  return op == CX_STORE_OP_GET || op == CX_STORE_OP_TRY ||
         cx_store_core_is_exchange(op) || op == CX_STORE_OP_WATCH;
}

static void take_put(cx_store_core *d, const cx_store_reply_address *from,
                     const cx_store_request *r)
{
  cx_store_core_answer_status(
      d, from, cx_store_table_put(&d->table, r->name, r->value, r->size));
  answer_gets(d, r->name);
}

static void take_abort(cx_store_core *d, const cx_store_reply_address *from,
                       const cx_store_request *r)
{
  char news[CX_STORE_FAILURE_BYTES];  // terminals show it
  cx_text_plain(r->size != 0 ? r->value : "", r->size, news, sizeof news);
  bool known = r->a > CALX_OK && r->a <= CALX_UNAUTHENTICATED;
  cx_store_core_fail(d, known ? (calx_code)r->a : CALX_ABORTED, news);
  answer_news(d, from);
}

static void take_known(cx_store_core *d, const cx_store_reply_address *from,
                       const cx_store_request *r, const peer *p, int64_t now_ms)
{
  if (d->failed != CALX_OK && is_ended_by_news(r->op)) {
    answer_news(d, from);
    return;
  }
  switch (r->op) {
    case CX_STORE_OP_PUT: take_put(d, from, r); break;
    case CX_STORE_OP_GET:
    case CX_STORE_OP_TRY: take_get(d, from, r, now_ms); break;
    case CX_STORE_OP_DROP:
      cx_store_table_drop(&d->table, r->name);
      cx_store_core_answer(d, from, CALX_OK, NULL, 0);
      break;
    case CX_STORE_OP_EXCHANGE:
    case CX_STORE_OP_EXCHANGE_ALL:
      cx_store_core_exchange(d, from, r, now_ms);
      break;
    case CX_STORE_OP_ABORT: take_abort(d, from, r); break;
    case CX_STORE_OP_EVENT: take_event(d, from, r); break;
    case CX_STORE_OP_WATCH: take_watch(d, from, r, now_ms); break;
    case CX_STORE_OP_BYE: take_bye(d, from, p); break;
    case CX_STORE_OP_HELLO: break;
  }
}

void cx_store_core_receive(cx_store_core *d, const cx_store_reply_address *from,
                           const void *bytes, size_t size, bool stranger,
                           int64_t now_ms)
{
  cx_store_request r;
  if (!cx_store_wire_read_request(bytes, size, &r)) {
    cx_store_core_answer_status(
        d, from,
        cx_error(CALX_INVALID_ARGUMENT,
                 "the store does not understand this "
                 "request of %zu bytes: another version?",
                 size));
    return;
  }
  peer *p = find_peer(d, from->pipe);
  if (p != NULL) p->heard = now_ms;
  if (r.op == CX_STORE_OP_HELLO) {
    take_hello(d, from, &r, stranger, now_ms);
  } else if (p == NULL) {
    cx_store_core_answer_status(
        d, from,
        cx_error(CALX_UNAUTHENTICATED, "the store does not know who asks"));
  } else {
    take_known(d, from, &r, p, now_ms);
  }
}

// ---- time -------------------------------------------------------------------

static void answer_late(cx_store_core *d, const pending *p)
{
  cx_text text = { 0 };
  long long waited = (long long)p->waited_ms;
  if (p->op == CX_STORE_OP_GET) {
    cx_text_format(&text, "store: nobody put key '%s' within %lld ms", p->name,
                   waited);
  } else {
    cx_text_format(&text, "'%s': no word within %lld ms from ", p->name,
                   waited);
    cx_store_core_format_missing(d, p, &text);
  }
  const char *said = cx_text_str(&text);
  bool watch = p->op == CX_STORE_OP_WATCH;
  cx_store_core_answer(d, &p->from, watch ? CALX_OK : CALX_DEADLINE_EXCEEDED,
                       said, watch ? 0 : strlen(said));
  cx_text_free(&text);
}

int64_t cx_store_core_tick(cx_store_core *d, int64_t now_ms)
{
  check_heartbeats(d, now_ms);
  check_gone(d, now_ms);
  int64_t next = now_ms + TICK_MS;
  // Named first, withdrawn then: those of one meeting whose time is over
  // together all name the same.
  for (pending *p = d->waiting; p != NULL; p = p->next) {
    if (p->due <= now_ms)
      answer_late(d, p);
    else if (p->due < next)
      next = p->due;
  }
  for (pending **at = &d->waiting; *at != NULL;) {
    if ((*at)->due > now_ms) {
      at = &(*at)->next;
      continue;
    }
    if (cx_store_core_is_exchange((*at)->op)) cx_store_core_withdraw(d, *at);
    cx_store_core_unlink(d, at);
  }
  for (int i = 0; d->failed == CALX_OK && i < d->options.processes; i++) {
    if (d->gone_at[i] >= 0 && d->gone_at[i] < next) next = d->gone_at[i];
  }
  return next - now_ms;
}

// ---- making -----------------------------------------------------------------

cx_store_core *cx_store_core_new(const cx_store_server_options *options,
                                 cx_store_core_send *send, void *user)
{
  cx_store_core *d = cx_calloc(1, sizeof *d);
  if (d == NULL) return NULL;
  d->options = *options;
  d->options.url = NULL;
  d->options.token = cx_strdup(options->token != NULL ? options->token : "");
  d->options.who = cx_strdup(options->who);
  d->send = send;
  d->user = user;
  size_t n = (size_t)options->processes;
  d->processes = cx_calloc(n, sizeof *d->processes);
  d->gone_at = cx_calloc(n, sizeof *d->gone_at);
  d->hosts = cx_calloc((size_t)options->hosts, sizeof *d->hosts);
  if (d->options.token == NULL || d->options.who == NULL ||
      d->processes == NULL || d->gone_at == NULL || d->hosts == NULL) {
    cx_store_core_free(d);
    return NULL;
  }
  for (size_t i = 0; i < n; i++) d->gone_at[i] = -1;
  return d;
}

void cx_store_core_free(cx_store_core *d)
{
  while (d->waiting != NULL) cx_store_core_unlink(d, &d->waiting);
  cx_store_core_exchanges_free(d);
  cx_store_table_free(&d->table);
  cx_free((char *)d->options.token);
  cx_free((char *)d->options.who);
  cx_free(d->processes);
  cx_free(d->gone_at);
  cx_free(d->hosts);
  cx_free(d->peers);
  cx_free(d->events);
  cx_free(d);
}
