// store/core_internal: what the desk's files share.
#ifndef CX_STORE_CORE_INTERNAL_H
#define CX_STORE_CORE_INTERNAL_H

#include "store/core.h"

// A request that waits for an answer.
typedef struct pending {
  struct pending *next;
  cx_store_reply_address from;
  cx_store_op op;
  int32_t index;      // of a meeting's member; of a watch: events seen
  int64_t due;        // when it is answered whatever happens
  int64_t waited_ms;  // the caller's limit
  char name[];
} pending;

typedef struct member {
  bool here;
  size_t size;
  char *value;
} member;

typedef struct meeting {
  struct meeting *next;
  int32_t count, here;
  bool all;  // its members are processes
  member *members;
  char name[];
} meeting;

typedef enum presence { AWAITED, PRESENT, LEFT, GONE } presence;

typedef struct peer {
  uint32_t pipe;
  int32_t process;  // -1 - H: the launcher of host H
  int64_t heard;    // ms
} peer;

// A host that has come: by a launcher of ours, or by one of its processes.
typedef struct host {
  cx_hash launch;     // 0: nobody has come yet
  presence launcher;  // never AWAITED again
} host;

typedef struct event {
  size_t size;
  char bytes[CX_STORE_EVENT_BYTES];
} event;

struct cx_store_core {
  cx_store_server_options options;  // its strings are the desk's own
  cx_store_core_send *send;
  void *user;
  cx_store_table table;
  pending *waiting;
  size_t waiting_count;
  meeting *meetings;
  presence *processes;
  int64_t *gone_at;  // of each process: its news is due; -1: not
  host *hosts;       // [options.hosts]
  peer *peers;
  size_t peer_count, peer_capacity;
  event *events;
  size_t event_count, event_capacity;
  calx_code failed;  // CALX_OK: no news
  char news[CX_STORE_FAILURE_BYTES];
  int64_t ticked;  // ms
};

void cx_store_core_answer(cx_store_core *d, const cx_store_reply_address *to,
                          calx_code code, const void *value, size_t size);
// With a status, which is freed; NULL is success.
void cx_store_core_answer_status(cx_store_core *d,
                                 const cx_store_reply_address *to,
                                 calx_status *status);
// Puts a request into the list; answers it and returns false where that cannot
// be.
bool cx_store_core_wait(cx_store_core *d, const cx_store_reply_address *from,
                        const cx_store_request *r, int64_t now_ms);
void cx_store_core_unlink(cx_store_core *d, pending **at);

// In a time that tells nothing of either token but its size.
bool cx_store_core_is_token(const char *ours, const char *theirs);
// Who says HELLO: NULL, or why it is refused.
calx_status *cx_store_core_check_hello(cx_store_core *d,
                                       const cx_store_request *r, bool stranger,
                                       cx_store_origin *out) CALX_MUST_USE;
// Of a launcher of ours that said where it is, or of its process; else NULL.
host *cx_store_core_host(cx_store_core *d, const cx_store_origin *o);
static inline presence cx_store_core_presence(const cx_store_core *d,
                                              int32_t process)
{
  return process < 0 ? d->hosts[-1 - process].launcher : d->processes[process];
}

static inline bool cx_store_core_is_exchange(cx_store_op op)
{
  return op == CX_STORE_OP_EXCHANGE || op == CX_STORE_OP_EXCHANGE_ALL;
}
void cx_store_core_exchange(cx_store_core *d,
                            const cx_store_reply_address *from,
                            const cx_store_request *r, int64_t now_ms);
// A member's time is over, or its connection closed: it is not there any more.
void cx_store_core_withdraw(cx_store_core *d, const pending *p);
// "processes 2, 5" of those that a meeting misses; `p` waits in it.
void cx_store_core_format_missing(cx_store_core *d, const pending *p,
                                  cx_text *out);
// A process left: meetings that wait for it will not come about.
void cx_store_core_note_left(cx_store_core *d, int32_t process);
void cx_store_core_exchanges_free(cx_store_core *d);

#endif
