// store/core: who is connected, their losses, and the time limits.
//
// A connection belongs to a process, or to a host's launcher, once its HELLO
// has brought the token, the job's name, an unused number, and the number of
// processes. All processes of a host must come from the first start of its
// command. A process or launcher is lost if it closes its connection without
// BYE, or is silent for longer than the heartbeat limit. A loss fails the job.
// The first failure ends every request that waits.
#include "store/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "store/core_internal.h"

enum { TICK_MS = 500 };

// ---- losses -----------------------------------------------------------------

// A process of one rank is called by its rank. The number of ranks of each
// process is the value of a key.
static void append_process(const cx_store_core *c, int process, cx_text *out)
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

// silent_ms: the limit that it exceeded; 0: its connection closed.
static void fail_lost(cx_store_core *c, int number, int64_t silent_ms)
{
  cx_text text = { 0 };
  char why[CX_STORE_LOSS_BYTES];
  cx_store_wire_format_loss(silent_ms, why);
  if (number < 0) {
    cx_text_format(&text, "the launcher of host %d", -1 - number);
  } else {
    append_process(c, number, &text);
  }
  cx_text_format(&text, " was lost (%s)", why);
  cx_store_core_fail(c, CALX_ABORTED, cx_text_str(&text));
  cx_text_free(&text);
}

// Fails the job if a peer is silent, or was lost and its grace period is over.
// Returns the end of the next grace period, or `next` if that is earlier.
static int64_t check_peers(cx_store_core *c, int64_t now_ms, int64_t next)
{
  int64_t limit = c->options.heartbeat_ms;
  // If this process itself was stopped, the others could not reach it.
  bool stopped = c->ticked != 0 && now_ms - c->ticked > limit / 2;
  c->ticked = now_ms;
  for (int i = -c->options.hosts; i < c->options.processes; i++) {
    cx_store_peer *p = cx_store_core_peer(c, i);
    if (stopped) p->alive_at = now_ms;
    if (p->presence == CX_STORE_LOST && c->failed == CALX_OK) {
      if (p->report_at <= now_ms) fail_lost(c, i, 0);
      next = p->report_at < next ? p->report_at : next;
    }
    if (p->presence == CX_STORE_PRESENT && limit > 0 &&
        now_ms - p->alive_at > limit) {
      p->presence = CX_STORE_LOST;
      fail_lost(c, i, limit);
    }
  }
  return next;
}

// ---- connections ------------------------------------------------------------

static cx_store_peer *find_peer(const cx_store_core *c, uint32_t connection)
{
  for (int i = 0; i < c->options.hosts + c->options.processes; i++) {
    cx_store_peer *p = &c->peers[i];
    if (p->connected && p->connection == connection) return p;
  }
  return NULL;
}

static calx_status *take_hello(cx_store_core *c, const cx_store_incoming *in)
{
  cx_store_origin origin;
  CALX_TRY(cx_store_core_check_hello(c, in, &origin));
  if (find_peer(c, in->from.connection) != NULL) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "this connection has sent a HELLO already");
  }
  cx_store_peer *p = cx_store_core_peer(c, in->r.a);
  p->presence = CX_STORE_PRESENT;
  p->connected = true;
  p->connection = in->from.connection;
  p->alive_at = in->now_ms;
  cx_store_peer *launcher = cx_store_core_launcher(c, &origin);
  if (launcher != NULL) launcher->launch = origin.launch;
  cx_store_core_reply_text(c, &in->from, CALX_OK, c->options.name);
  return NULL;
}

bool cx_store_core_is_known(const cx_store_core *c, uint32_t connection)
{
  return find_peer(c, connection) != NULL;
}

void cx_store_core_note_alive(cx_store_core *c, uint32_t connection,
                              int64_t now_ms)
{
  cx_store_peer *p = find_peer(c, connection);
  if (p != NULL) p->alive_at = now_ms;
}

void cx_store_core_closed(cx_store_core *c, uint32_t connection, int64_t now_ms)
{
  cx_store_peer *p = find_peer(c, connection);
  if (p == NULL) return;
  p->connected = false;
  for (cx_store_pending **at = &c->waiting; *at != NULL;) {
    if ((*at)->from.connection == connection) {
      cx_store_core_unlink(c, at);
    } else {
      at = &(*at)->next;
    }
  }
  if (p->presence != CX_STORE_PRESENT) return;
  int number = cx_store_core_number(c, p);
  int64_t grace_ms = number < 0 ? 0 : c->options.grace_ms;
  p->presence = CX_STORE_LOST;
  p->report_at = now_ms + grace_ms;
  if (grace_ms == 0) fail_lost(c, number, 0);
}

int cx_store_core_count_open(const cx_store_core *c)
{
  int open = 0;
  for (int i = 0; i < c->options.processes; i++) {
    cx_store_presence p = cx_store_core_peer(c, i)->presence;
    open += p == CX_STORE_PRESENT ||
            (p == CX_STORE_AWAITED && c->failed == CALX_OK);
  }
  return open;
}

// ---- requests ---------------------------------------------------------------

static calx_status *take_message(cx_store_core *c, const void *bytes,
                                 size_t size, cx_store_incoming *in)
{
  if (!cx_store_wire_read_request(bytes, size, &in->r)) {
    return cx_invalid(
        "the store does not understand this request of %zu bytes: another "
        "version?",
        size);
  }
  cx_store_peer *p = find_peer(c, in->from.connection);
  if (p != NULL) p->alive_at = in->now_ms;
  if (in->r.op == CX_STORE_OP_HELLO) return take_hello(c, in);
  if (p != NULL) return cx_store_core_request(c, in, p);
  return cx_error(CALX_UNAUTHENTICATED,
                  "the store wants a HELLO before other requests");
}

void cx_store_core_receive(cx_store_core *c, const cx_store_reply_address *from,
                           const void *bytes, size_t size, bool other_user,
                           int64_t now_ms)
{
  cx_store_incoming in = { .from = *from,
                           .other_user = other_user,
                           .now_ms = now_ms };
  calx_status *status = take_message(c, bytes, size, &in);
  if (status == NULL) return;
  cx_store_core_reply_text(c, from, calx_status_code(status),
                           cx_status_sentence(status));
  calx_status_free(status);
}

// ---- time -------------------------------------------------------------------

static void reply_late(cx_store_core *c, const cx_store_pending *p)
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
  cx_store_core_reply_text(c, &p->from, CALX_DEADLINE_EXCEEDED,
                           cx_text_str(&text));
  cx_text_free(&text);
}

int64_t cx_store_core_tick(cx_store_core *c, int64_t now_ms)
{
  int64_t next = check_peers(c, now_ms, now_ms + TICK_MS);
  // All replies come before the first removal: members of an exchange whose
  // limits pass together then all report the same missing members.
  for (const cx_store_pending *p = c->waiting; p != NULL; p = p->next) {
    if (p->due <= now_ms) {
      reply_late(c, p);
    } else if (p->due < next) {
      next = p->due;
    }
  }
  for (cx_store_pending **at = &c->waiting; *at != NULL;) {
    if ((*at)->due <= now_ms) {
      cx_store_core_unlink(c, at);
    } else {
      at = &(*at)->next;
    }
  }
  return next > now_ms ? next - now_ms : 0;
}

// ---- creation ---------------------------------------------------------------

cx_store_core *cx_store_core_new(const cx_store_server_options *options,
                                 cx_store_core_send *send, void *user)
{
  cx_store_core *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  c->options = *options;
  c->options.url = NULL;
  c->options.token = cx_strdup(options->token != NULL ? options->token : "");
  c->options.name = cx_strdup(options->name);
  c->send = send;
  c->user = user;
  c->peers = cx_calloc((size_t)options->hosts + (size_t)options->processes,
                       sizeof *c->peers);
  if (c->options.token == NULL || c->options.name == NULL || c->peers == NULL) {
    cx_store_core_free(c);
    return NULL;
  }
  return c;
}

void cx_store_core_free(cx_store_core *c)
{
  while (c->waiting != NULL) cx_store_core_unlink(c, &c->waiting);
  cx_store_table_free(&c->table);
  cx_free((char *)c->options.token);
  cx_free((char *)c->options.name);
  cx_free(c->peers);
  cx_free(c->events);
  cx_free(c);
}
