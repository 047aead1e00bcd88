// world/state: what this process has joined. One thread writes it (join, ranks,
// leave); all threads read it.
#ifndef CX_WORLD_STATE_H
#define CX_WORLD_STATE_H

#include "base/thread.h"
#include "world/agreement.h"
#include "world/rank_info.h"

struct cx_store_client;
struct cx_store_server;

typedef struct cx_world_state {
  cx_world_info info;
  bool joined;
  cx_mutex lock;  // for head and agreement, which the watch thread uses too
  struct cx_store_client *client;  // NULL: the world is this process alone
  struct cx_store_server *server;  // if this process serves the store
  calx_segment_head *head;         // holds the job's failure; never NULL
  cx_world_segment segment;        // shared with this host's other processes
  cx_world_agreement *agreement;   // NULL until the number of ranks is known
  void *agreement_memory;          // its block, if it is on the heap
  // The processes that share the agreement's memory are a group: all of a host,
  // or this process alone. groups > 1: groups agree through the store.
  int group, groups;
  bool launched;    // its ranks are expected to agree
  int ranks_calls;  // exchanges about the number of ranks
  int *group_of;    // [processes]; NULL: all are in group 0
} cx_world_state;

extern cx_world_state cx_world_global;

static inline int cx_world_group_of(int process)
{
  const int *group_of = cx_world_global.group_of;
  return group_of == NULL ? 0 : group_of[process];
}

// Whether the rank shares this process's agreement memory.
static inline bool cx_world_is_local(int rank)
{
  const cx_world_state *w = &cx_world_global;
  return cx_world_group_of(rank / w->info.devices) == w->group;
}

// The state of a process that has joined nothing.
void cx_world_state_reset(void);
// Replaces the agreement; `memory` is its heap block, or NULL.
void cx_world_state_set_agreement(cx_world_agreement *agreement, void *memory,
                                  int devices);

// Records a failure that the store has reported, and wakes all that wait.
void cx_world_take_failure(void *user, calx_code code, const char *message);
// Fails the job: all processes, and this one's calls that wait. The job's first
// failure stays; it is in cx_world_global.head on return.
void cx_world_fail(calx_code code, const char *message);

// All processes bring a value and receive those of all, as a list for
// cx_store_wire_next().
calx_status *cx_world_exchange(const char *name, const void *value, size_t size,
                               int64_t timeout_ms, char **out,
                               size_t *out_size) CALX_MUST_USE;
// Copies the next value of the list, of `size` bytes. False: there is none, or
// it has another size.
bool cx_world_exchange_next(const char **list, size_t *left, void *out,
                            size_t size);

#endif
