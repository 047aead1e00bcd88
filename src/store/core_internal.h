// store/core_internal: what the core's files share.
#ifndef CX_STORE_CORE_INTERNAL_H
#define CX_STORE_CORE_INTERNAL_H

#include "store/core.h"

typedef struct cx_store_core core;

// A request that has just arrived.
typedef struct incoming {
  cx_store_reply_address from;
  cx_store_request r;
  bool other_user;
  int64_t now_ms;
} incoming;

// A request that waits for its reply.
typedef struct pending {
  struct pending *next;
  cx_store_reply_address from;
  cx_store_op op;
  int32_t index;       // EXCHANGE: the member; WATCH: events received so far
  int64_t due;         // ms: the time limit
  int64_t timeout_ms;  // the same limit as the client gave it
  char name[];
} pending;

typedef struct member {
  bool arrived;
  size_t size;
  char *value;
} member;

// A barrier or an all-gather that is not complete.
typedef struct exchange {
  struct exchange *next;
  int32_t count, arrived;
  bool all;  // the members are the job's processes
  member *members;
  char name[];
} exchange;

typedef enum presence {
  AWAITED,
  PRESENT,
  LEFT,  // with a BYE
  LOST   // without one
} presence;

// A connection that has sent its HELLO.
typedef struct peer {
  uint32_t connection;
  int32_t process;   // -1 - H: the launcher of host H
  int64_t alive_at;  // ms: the last sign of life
} peer;

typedef struct host {
  cx_hash launch;     // of the first launcher or process; 0: none so far
  presence launcher;  // never AWAITED again
} host;

typedef struct event {
  size_t size;
  char bytes[CX_STORE_EVENT_BYTES];
} event;

struct cx_store_core {
  cx_store_server_options options;  // the core owns its strings
  cx_store_core_send *send;
  void *user;
  cx_store_table table;
  pending *waiting;
  size_t waiting_count;
  exchange *exchanges;
  presence *processes;
  int64_t *report_at;  // [processes] ms: its loss is reported then; -1: never
  host *hosts;         // [options.hosts]
  peer *peers;
  size_t peer_count, peer_capacity;
  event *events;
  size_t event_count, event_capacity;
  calx_code failed;  // CALX_OK: the job has not failed
  char failure[CX_STORE_FAILURE_BYTES];
  long refused;                          // HELLOs
  char refusal[CX_STORE_FAILURE_BYTES];  // of the last one: why
  int64_t ticked;                        // ms
};

void cx_store_core_reply(core *c, const cx_store_reply_address *to,
                         calx_code code, const void *value, size_t size);
// Adds the request to the list of those that wait.
calx_status *cx_store_core_wait(core *c, const incoming *in) CALX_MUST_USE;
void cx_store_core_unlink(core *c, pending **at);

// Compares tokens in a time that depends on neither token's text.
bool cx_store_core_is_token(const char *ours, const char *theirs);
// NULL if the HELLO is accepted, with *out set; else the reason.
calx_status *cx_store_core_check_hello(core *c, const incoming *in,
                                       cx_store_origin *out) CALX_MUST_USE;
// While some process has not joined: appends how many HELLOs were refused, and
// why the last one was.
void cx_store_core_format_refused(const core *c, cx_text *out);
// The host of a launcher, or of a process that our launcher started; else NULL.
host *cx_store_core_host(core *c, const cx_store_origin *o);
static inline presence *cx_store_core_presence(const core *c, int32_t process)
{
  return process < 0 ? &c->hosts[-1 - process].launcher
                     : &c->processes[process];
}

static inline bool cx_store_core_is_exchange(cx_store_op op)
{
  return op == CX_STORE_OP_EXCHANGE || op == CX_STORE_OP_EXCHANGE_ALL;
}
// Adds a member; the last one to arrive completes the exchange.
calx_status *cx_store_core_exchange(core *c, const incoming *in) CALX_MUST_USE;
// The member's time limit has passed, or its connection has closed.
void cx_store_core_withdraw(core *c, const pending *p);
// Appends the members that the exchange of `p` lacks: "processes 2, 5".
void cx_store_core_format_missing(core *c, const pending *p, cx_text *out);
// A process has left: exchanges that need it cannot complete.
void cx_store_core_note_left(core *c, int32_t process);
void cx_store_core_exchanges_free(core *c);

#endif
