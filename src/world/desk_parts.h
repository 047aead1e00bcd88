// world/desk_parts: what the desk's files share.
#ifndef CX_WORLD_DESK_PARTS_H
#define CX_WORLD_DESK_PARTS_H

#include "world/desk.h"

// A request that waits for an answer.
typedef struct pending {
  struct pending *next;
  cx_ticket from;
  cx_op op;
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
  char bytes[CX_EVENT_VALUE];
} event;

struct cx_desk {
  cx_server_options options;  // its strings are the desk's own
  cx_desk_send *send;
  void *user;
  cx_table table;
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
  char news[CX_NEWS_TEXT];
  int64_t ticked;  // ms
};

void cx_desk_answer(cx_desk *d, const cx_ticket *to, calx_code code,
                    const void *value, size_t size);
// With a status, which is freed; NULL is success.
void cx_desk_answer_status(cx_desk *d, const cx_ticket *to,
                           calx_status *status);
// Puts a request into the list; answers it and returns false where that cannot
// be.
bool cx_desk_wait(cx_desk *d, const cx_ticket *from, const cx_request *r,
                  int64_t now_ms);
void cx_desk_unlink(cx_desk *d, pending **at);

// In a time that tells nothing of either token but its size.
bool cx_desk_is_token(const char *ours, const char *theirs);
// Who says HELLO: NULL, or why it is refused.
calx_status *cx_desk_check_hello(cx_desk *d, const cx_request *r, bool stranger,
                                 cx_origin *out) CALX_MUST_USE;
// Of a launcher of ours that said where it is, or of its process; else NULL.
host *cx_desk_host(cx_desk *d, const cx_origin *o);
static inline presence cx_desk_presence(const cx_desk *d, int32_t process)
{
  return process < 0 ? d->hosts[-1 - process].launcher : d->processes[process];
}

static inline bool cx_desk_meets(cx_op op)
{
  return op == CX_OP_MEET || op == CX_OP_MEET_ALL;
}
void cx_desk_meet(cx_desk *d, const cx_ticket *from, const cx_request *r,
                  int64_t now_ms);
// A member's time is over, or its connection closed: it is not there any more.
void cx_desk_withdraw(cx_desk *d, const pending *p);
// "processes 2, 5" of those that a meeting misses; `p` waits in it.
void cx_desk_say_missing(cx_desk *d, const pending *p, cx_text *out);
// A process left: meetings that wait for it will not come about.
void cx_desk_left(cx_desk *d, int32_t process);
void cx_desk_meetings_free(cx_desk *d);

#endif
