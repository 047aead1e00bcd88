// store/core_internal: what the core's files share.
#ifndef CX_STORE_CORE_INTERNAL_H
#define CX_STORE_CORE_INTERNAL_H

#include "store/core.h"

// A request that has just arrived.
typedef struct cx_store_incoming {
  cx_store_reply_address from;
  cx_store_request r;
  bool other_user;
  int64_t now_ms;
} cx_store_incoming;

// A request that waits for its reply. An exchange is the list of those that
// wait with its name: each one is a member that has arrived, with its value.
typedef struct cx_store_pending {
  struct cx_store_pending *next;
  cx_store_reply_address from;
  cx_store_op op;
  int32_t a, b;        // of the request
  int64_t due;         // ms: the time limit
  int64_t timeout_ms;  // the same limit as the client gave it
  size_t size;
  const char *value;
  char name[];
} cx_store_pending;

typedef enum cx_store_presence {
  CX_STORE_AWAITED,
  CX_STORE_PRESENT,
  CX_STORE_LEFT,  // with a BYE
  CX_STORE_LOST   // without one
} cx_store_presence;

// A process of the job, or the launcher of a host.
typedef struct cx_store_peer {
  cx_store_presence presence;
  bool connected;
  uint32_t connection;
  int64_t alive_at;   // ms: the last sign of life
  int64_t report_at;  // ms: a loss is reported then
  cx_hash launch;     // of its host's first launcher or process; 0: none so far
} cx_store_peer;

typedef struct cx_store_event {
  size_t size;
  char bytes[CX_STORE_EVENT_BYTES];
} cx_store_event;

struct cx_store_core {
  cx_store_server_options options;  // the core owns its strings
  cx_store_core_send *send;
  void *user;
  cx_store_table table;
  cx_store_pending *waiting;
  size_t waiting_count;
  cx_store_peer *peers;  // [options.hosts + options.processes]
  cx_store_event *events;
  size_t event_count, event_capacity;
  calx_code failed;  // CALX_OK: the job has not failed
  char failure[CX_STORE_FAILURE_BYTES];
  long refused;                          // HELLOs
  char refusal[CX_STORE_FAILURE_BYTES];  // of the last one: why
  int64_t ticked;                        // ms
};

// number: of a process; -1 - H: the launcher of host H.
static inline cx_store_peer *cx_store_core_peer(const cx_store_core *c,
                                                int32_t number)
{
  CX_ASSERT(number >= -c->options.hosts && number < c->options.processes);
  return &c->peers[c->options.hosts + number];
}
static inline int32_t cx_store_core_number(const cx_store_core *c,
                                           const cx_store_peer *peer)
{
  return (int32_t)(peer - c->peers) - c->options.hosts;
}

// ---- core_waiting: replies, and the requests that wait for one --------------

void cx_store_core_reply(cx_store_core *c, const cx_store_reply_address *to,
                         calx_code code, const void *value, size_t size);
void cx_store_core_reply_text(cx_store_core *c,
                              const cx_store_reply_address *to, calx_code code,
                              const char *text);
// Adds the request to the front of the list of those that wait.
calx_status *cx_store_core_wait(cx_store_core *c,
                                const cx_store_incoming *in) CALX_MUST_USE;
// Removes a request from the list.
void cx_store_core_unlink(cx_store_core *c, cx_store_pending **at);
// Sends one reply to all requests that wait with this name, or with any if it
// is NULL, and whose operation is in the set `ops` of bits 1 << op.
void cx_store_core_answer(cx_store_core *c, unsigned ops, const char *name,
                          const cx_store_reply *reply);

// ---- core_hello -------------------------------------------------------------

// Compares tokens in a time that depends on neither token's text.
bool cx_store_core_is_token(const char *ours, const char *theirs);
// NULL if the HELLO is accepted, with *out set; else the reason.
calx_status *cx_store_core_check_hello(cx_store_core *c,
                                       const cx_store_incoming *in,
                                       cx_store_origin *out) CALX_MUST_USE;
// While some process has not joined: appends how many HELLOs were refused, and
// why the last one was.
void cx_store_core_format_refused(const cx_store_core *c, cx_text *out);
// The launcher of a process that our launcher started, or the launcher itself;
// else NULL.
cx_store_peer *cx_store_core_launcher(const cx_store_core *c,
                                      const cx_store_origin *o);

// ---- core_exchange ----------------------------------------------------------

enum {
  CX_STORE_EXCHANGES = 1 << CX_STORE_OP_EXCHANGE | 1 << CX_STORE_OP_EXCHANGE_ALL
};

// Adds a member; the last one to arrive completes the exchange.
calx_status *cx_store_core_exchange(cx_store_core *c,
                                    const cx_store_incoming *in) CALX_MUST_USE;
// Appends the members that the exchange of `p` lacks: "processes 2, 5".
void cx_store_core_format_missing(const cx_store_core *c,
                                  const cx_store_pending *p, cx_text *out);
// A process has left: exchanges that need it cannot complete.
void cx_store_core_note_left(cx_store_core *c, int32_t process);

// ---- core_requests: the requests of peers -----------------------------------

// NULL if the request has its reply or waits for it. Else the status is the
// reply.
calx_status *cx_store_core_request(cx_store_core *c,
                                   const cx_store_incoming *in,
                                   cx_store_peer *from) CALX_MUST_USE;

#endif
