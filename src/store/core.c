// store/core: connected processes, their requests, and the job's failure.
//
// A connection belongs to a process, or to a host's launcher, once its HELLO
// has brought the token, the job's name, an unused number, and the number of
// processes. All processes of a host must come from the first start of its
// command. A process or launcher is lost if it closes its connection without
// BYE, or is silent for longer than the heartbeat limit. A loss fails the job.
// The first failure ends every request that waits.
#include "store/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/core_internal.h"

enum { TICK_MS = 500, MAX_PEERS = 1 << 21, MAX_EVENTS = 1 << 20 };

static const char closed[] = "its connection closed";

// ---- replies ----------------------------------------------------------------

static void reply_failure(core *c, const cx_store_reply_address *to)
{
  cx_store_reply reply = { CX_STORE_REPLY_FAILURE, c->failed, c->failure,
                           strlen(c->failure) };
  c->send(c->user, to, &reply);
}

static void reply_event(core *c, const cx_store_reply_address *to, size_t index)
{
  const event *e = &c->events[index];
  cx_store_reply reply = { CX_STORE_REPLY_EVENT, CALX_OK, e->bytes, e->size };
  c->send(c->user, to, &reply);
}

// ---- failures ---------------------------------------------------------------

void cx_store_core_fail(core *c, calx_code code, const char *message)
{
  if (c->failed != CALX_OK) return;
  c->failed = code != CALX_OK ? code : CALX_ABORTED;
  snprintf(c->failure, sizeof c->failure, "%s", message);
  while (c->waiting != NULL) {
    reply_failure(c, &c->waiting->from);
    cx_store_core_unlink(c, &c->waiting);
  }
  cx_store_core_exchanges_free(c);
}

// A process of one rank is called by its rank. The number of ranks of each
// process is the value of a key.
static void append_process(const core *c, int process, cx_text *out)
{
  const cx_store_entry *entry =
      cx_store_table_find(&c->table, CX_STORE_DEVICES_KEY);
  long devices = entry != NULL ? strtol(entry->value, NULL, 10) : 0;
  cx_text_format(out, devices == 1 ? "rank %d" : "process %d", process);
  if (devices > 1) {
    cx_text_format(out, " (ranks %ld to %ld)", process * devices,
                   (process + 1) * devices - 1);
  }
}

static void fail_lost(core *c, int process, const char *why)
{
  cx_text text = { 0 };
  if (process < 0) {
    cx_text_format(&text, "the launcher of host %d", -1 - process);
  } else {
    append_process(c, process, &text);
  }
  cx_text_format(&text, " was lost (%s)", why);
  cx_store_core_fail(c, CALX_ABORTED, cx_text_str(&text));
  cx_text_free(&text);
}

// Reports the processes whose grace period is over.
static void check_lost(core *c, int64_t now_ms)
{
  for (int i = 0; c->failed == CALX_OK && i < c->options.processes; i++) {
    if (c->report_at[i] >= 0 && c->report_at[i] <= now_ms) {
      fail_lost(c, i, closed);
    }
  }
}

// ---- connections ------------------------------------------------------------

static peer *find_peer(const core *c, uint32_t connection)
{
  for (size_t i = 0; i < c->peer_count; i++) {
    if (c->peers[i].connection == connection) return &c->peers[i];
  }
  return NULL;
}

static calx_status *take_hello(core *c, const incoming *in)
{
  cx_store_origin origin;
  CALX_TRY(cx_store_core_check_hello(c, in, &origin));
  if (find_peer(c, in->from.connection) != NULL) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "this connection has sent a HELLO already");
  }
  if (c->peer_count >= MAX_PEERS ||
      !cx_grow(&c->peers, &c->peer_capacity, c->peer_count + 1,
               sizeof *c->peers)) {
    return cx_out_of_memory();
  }
  c->peers[c->peer_count++] = (peer){ .connection = in->from.connection,
                                      .process = in->r.a,
                                      .alive_at = in->now_ms };
  *cx_store_core_presence(c, in->r.a) = PRESENT;
  host *h = cx_store_core_host(c, &origin);
  if (h != NULL) h->launch = origin.launch;
  cx_store_core_reply(c, &in->from, CALX_OK, c->options.name,
                      strlen(c->options.name));
  return NULL;
}

bool cx_store_core_is_known(const core *c, uint32_t connection)
{
  return find_peer(c, connection) != NULL;
}

void cx_store_core_note_alive(core *c, uint32_t connection, int64_t now_ms)
{
  peer *p = find_peer(c, connection);
  if (p != NULL) p->alive_at = now_ms;
}

void cx_store_core_closed(core *c, uint32_t connection, int64_t now_ms)
{
  peer *p = find_peer(c, connection);
  if (p == NULL) return;
  int32_t process = p->process;
  *p = c->peers[--c->peer_count];
  for (pending **at = &c->waiting; *at != NULL;) {
    if ((*at)->from.connection != connection) {
      at = &(*at)->next;
      continue;
    }
    if (cx_store_core_is_exchange((*at)->op)) cx_store_core_withdraw(c, *at);
    cx_store_core_unlink(c, at);
  }
  presence *here = cx_store_core_presence(c, process);
  if (*here != PRESENT) return;
  *here = LOST;
  if (process < 0) {
    fail_lost(c, process, closed);
    return;
  }
  c->report_at[process] = now_ms + c->options.grace_ms;
  check_lost(c, now_ms);
}

int cx_store_core_count_open(const core *c)
{
  int open = 0;
  for (int i = 0; i < c->options.processes; i++) {
    presence p = c->processes[i];
    open += p == PRESENT || (p == AWAITED && c->failed == CALX_OK);
  }
  return open;
}

static void check_heartbeats(core *c, int64_t now_ms)
{
  int64_t limit = c->options.heartbeat_ms;
  // If this process itself was stopped, the others could not reach it.
  bool stopped = c->ticked != 0 && now_ms - c->ticked > limit / 2;
  c->ticked = now_ms;
  for (size_t i = 0; limit > 0 && i < c->peer_count; i++) {
    peer *p = &c->peers[i];
    presence *here = cx_store_core_presence(c, p->process);
    if (stopped) p->alive_at = now_ms;
    if (*here != PRESENT || now_ms - p->alive_at <= limit) continue;
    char why[128];
    snprintf(why, sizeof why,
             "silent for %.3g s: stopped, or its host is unreachable",
             (double)limit / 1000);
    *here = LOST;
    fail_lost(c, p->process, why);
  }
}

// ---- requests ---------------------------------------------------------------

// Each function here returns NULL if it has replied or the request waits. Else
// its status is the reply.

static calx_status *take_put(core *c, const incoming *in)
{
  CALX_TRY(cx_store_table_put(&c->table, in->r.name, in->r.value, in->r.size));
  cx_store_core_reply(c, &in->from, CALX_OK, NULL, 0);
  const cx_store_entry *entry = cx_store_table_find(&c->table, in->r.name);
  for (pending **at = &c->waiting; *at != NULL;) {
    pending *p = *at;
    if (p->op == CX_STORE_OP_GET && strcmp(p->name, in->r.name) == 0) {
      cx_store_core_reply(c, &p->from, CALX_OK, entry->value, entry->size);
      cx_store_core_unlink(c, at);
    } else {
      at = &p->next;
    }
  }
  return NULL;
}

static calx_status *take_get(core *c, const incoming *in)
{
  const cx_store_entry *entry = cx_store_table_find(&c->table, in->r.name);
  if (entry != NULL) {
    cx_store_core_reply(c, &in->from, CALX_OK, entry->value, entry->size);
    return NULL;
  }
  return in->r.op == CX_STORE_OP_GET ? cx_store_core_wait(c, in)
                                     : cx_store_table_no_key(in->r.name);
}

static calx_status *take_event(core *c, const incoming *in)
{
  if (in->r.size > CX_STORE_EVENT_BYTES || c->event_count >= MAX_EVENTS ||
      !cx_grow(&c->events, &c->event_capacity, c->event_count + 1,
               sizeof *c->events)) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "store: an event of %zu bytes after %zu others", in->r.size,
                    c->event_count);
  }
  event *e = &c->events[c->event_count++];
  e->size = in->r.size;
  if (in->r.size != 0) memcpy(e->bytes, in->r.value, in->r.size);
  for (pending **at = &c->waiting; *at != NULL;) {
    pending *p = *at;
    if (p->op == CX_STORE_OP_WATCH && (size_t)p->index < c->event_count) {
      reply_event(c, &p->from, (size_t)p->index);
      cx_store_core_unlink(c, at);
    } else {
      at = &p->next;
    }
  }
  cx_store_core_reply(c, &in->from, CALX_OK, NULL, 0);
  return NULL;
}

static calx_status *take_watch(core *c, const incoming *in)
{
  if (in->r.a < 0 || (size_t)in->r.a > c->event_count) {
    return cx_error(CALX_OUT_OF_RANGE, "store: %d events received of %zu",
                    (int)in->r.a, c->event_count);
  }
  if ((size_t)in->r.a == c->event_count) {
    return cx_store_core_wait(c, in);
  }
  reply_event(c, &in->from, (size_t)in->r.a);
  return NULL;
}

static calx_status *take_bye(core *c, const incoming *in, int32_t process)
{
  presence *here = cx_store_core_presence(c, process);
  if (*here == PRESENT) {
    *here = LEFT;
    if (process >= 0) cx_store_core_note_left(c, process);
  }
  cx_store_core_reply(c, &in->from, CALX_OK, NULL, 0);
  return NULL;
}

static calx_status *take_abort(core *c, const incoming *in)
{
  char message[CX_STORE_FAILURE_BYTES];  // terminals show it
  cx_text_plain(in->r.size != 0 ? in->r.value : "", in->r.size, message,
                sizeof message);
  bool known = in->r.a > CALX_OK && in->r.a <= CALX_UNAUTHENTICATED;
  cx_store_core_fail(c, known ? (calx_code)in->r.a : CALX_ABORTED, message);
  reply_failure(c, &in->from);
  return NULL;
}

// Requests that wait for another process, or whose reply another process waits
// for, fail with the job.
static bool fails_with_job(cx_store_op op)
{
  return op == CX_STORE_OP_GET || op == CX_STORE_OP_TRY ||
         cx_store_core_is_exchange(op) || op == CX_STORE_OP_WATCH;
}

static calx_status *take_request(core *c, const incoming *in, int32_t process)
{
  if (c->failed != CALX_OK && fails_with_job(in->r.op)) {
    reply_failure(c, &in->from);
    return NULL;
  }
  switch (in->r.op) {
    case CX_STORE_OP_PUT: return take_put(c, in);
    case CX_STORE_OP_GET:
    case CX_STORE_OP_TRY: return take_get(c, in);
    case CX_STORE_OP_DROP:
      cx_store_table_drop(&c->table, in->r.name);
      cx_store_core_reply(c, &in->from, CALX_OK, NULL, 0);
      break;
    case CX_STORE_OP_EXCHANGE:
    case CX_STORE_OP_EXCHANGE_ALL: return cx_store_core_exchange(c, in);
    case CX_STORE_OP_ABORT: return take_abort(c, in);
    case CX_STORE_OP_EVENT: return take_event(c, in);
    case CX_STORE_OP_WATCH: return take_watch(c, in);
    case CX_STORE_OP_BYE: return take_bye(c, in, process);
    case CX_STORE_OP_HELLO: break;
  }
  return NULL;
}

static calx_status *take_message(core *c, const void *bytes, size_t size,
                                 incoming *in)
{
  if (!cx_store_wire_read_request(bytes, size, &in->r)) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the store does not understand this request of %zu bytes: "
                    "another version?",
                    size);
  }
  peer *p = find_peer(c, in->from.connection);
  if (p != NULL) p->alive_at = in->now_ms;
  if (in->r.op == CX_STORE_OP_HELLO) return take_hello(c, in);
  if (p != NULL) return take_request(c, in, p->process);
  return cx_error(CALX_UNAUTHENTICATED,
                  "the store wants a HELLO before other requests");
}

void cx_store_core_receive(core *c, const cx_store_reply_address *from,
                           const void *bytes, size_t size, bool other_user,
                           int64_t now_ms)
{
  incoming in = { .from = *from, .other_user = other_user, .now_ms = now_ms };
  calx_status *status = take_message(c, bytes, size, &in);
  if (status == NULL) return;
  const char *text = cx_status_sentence(status);
  cx_store_core_reply(c, from, calx_status_code(status), text, strlen(text));
  calx_status_free(status);
}

// ---- time -------------------------------------------------------------------

static void reply_late(core *c, const pending *p)
{
  cx_text text = { 0 };
  if (p->op == CX_STORE_OP_WATCH) {
    cx_store_core_reply(c, &p->from, CALX_OK, NULL, 0);
    return;
  }
  if (p->op == CX_STORE_OP_GET) {
    cx_store_table_format_late(p->name, p->timeout_ms, &text);
  } else {
    cx_text_format(&text, "'%s': ", p->name);
    cx_store_core_format_missing(c, p, &text);
    cx_text_format(&text, " did not arrive within %lld ms",
                   (long long)p->timeout_ms);
    cx_store_core_format_refused(c, &text);
  }
  const char *message = cx_text_str(&text);
  cx_store_core_reply(c, &p->from, CALX_DEADLINE_EXCEEDED, message,
                      strlen(message));
  cx_text_free(&text);
}

int64_t cx_store_core_tick(core *c, int64_t now_ms)
{
  check_heartbeats(c, now_ms);
  check_lost(c, now_ms);
  int64_t next = now_ms + TICK_MS;
  // All replies come before the first withdrawal: members of an exchange whose
  // limits pass together then all report the same missing members.
  for (pending *p = c->waiting; p != NULL; p = p->next) {
    if (p->due <= now_ms) {
      reply_late(c, p);
    } else if (p->due < next) {
      next = p->due;
    }
  }
  for (pending **at = &c->waiting; *at != NULL;) {
    if ((*at)->due > now_ms) {
      at = &(*at)->next;
      continue;
    }
    if (cx_store_core_is_exchange((*at)->op)) cx_store_core_withdraw(c, *at);
    cx_store_core_unlink(c, at);
  }
  for (int i = 0; c->failed == CALX_OK && i < c->options.processes; i++) {
    if (c->report_at[i] >= 0 && c->report_at[i] < next) next = c->report_at[i];
  }
  return next - now_ms;
}

// ---- creation ---------------------------------------------------------------

cx_store_core *cx_store_core_new(const cx_store_server_options *options,
                                 cx_store_core_send *send, void *user)
{
  core *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  c->options = *options;
  c->options.url = NULL;
  c->options.token = cx_strdup(options->token != NULL ? options->token : "");
  c->options.name = cx_strdup(options->name);
  c->send = send;
  c->user = user;
  size_t n = (size_t)options->processes;
  c->processes = cx_calloc(n, sizeof *c->processes);
  c->report_at = cx_calloc(n, sizeof *c->report_at);
  c->hosts = cx_calloc((size_t)options->hosts, sizeof *c->hosts);
  if (c->options.token == NULL || c->options.name == NULL ||
      c->processes == NULL || c->report_at == NULL || c->hosts == NULL) {
    cx_store_core_free(c);
    return NULL;
  }
  for (size_t i = 0; i < n; i++) c->report_at[i] = -1;
  return c;
}

void cx_store_core_free(core *c)
{
  while (c->waiting != NULL) cx_store_core_unlink(c, &c->waiting);
  cx_store_core_exchanges_free(c);
  cx_store_table_free(&c->table);
  cx_free((char *)c->options.token);
  cx_free((char *)c->options.name);
  cx_free(c->processes);
  cx_free(c->report_at);
  cx_free(c->hosts);
  cx_free(c->peers);
  cx_free(c->events);
  cx_free(c);
}
