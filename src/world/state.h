// world/state: what this process has joined. Written by joining, ranks and
// leaving, which one thread calls; read by all.
#ifndef CX_WORLD_STATE_H
#define CX_WORLD_STATE_H

#include "base/thread.h"
#include "world/agreement.h"
#include "world/rank_info.h"

struct cx_store_client;
struct cx_store_server;

typedef struct cx_world_state {
  cx_world_info place;
  bool joined;
  cx_mutex lock;  // of head and board, where the watching thread uses them
  struct cx_store_client *client;  // NULL: a world of one process
  struct cx_store_server *server;  // where this process serves the store
  calx_window *head;               // the news; never NULL
  cx_world_segment window;    // shared with the other processes of this host
  cx_world_agreement *board;  // NULL until the ranks are known
  void *board_memory;         // where it is on the heap
  // The part of the world that shares this board: a host, or this process
  // alone. groups > 1: the rest is met through the store.
  int group, groups;
  bool launched;    // its ranks are expected to agree
  int ranks_calls;  // meetings about the number of ranks
  int *group_of;    // of each process; NULL: all are in group 0
} cx_world_state;

extern cx_world_state cx_world_global;

static inline int cx_world_group_of(int process)
{
  return cx_world_global.group_of == NULL ? 0
                                          : cx_world_global.group_of[process];
}

static inline bool cx_world_is_local(int rank)
{
  const cx_world_state *w = &cx_world_global;
  return cx_world_group_of(rank / w->place.devices) == w->group;
}

// Tells all processes, and this one's waiting calls, that the job has failed.
// Whoever was first in the whole job is heard; cx_world_global.head has it
// after.
void cx_world_fail(calx_code code, const char *news);

// Forgets the board; where it lies in the window, for good.
void cx_world_agreement_close(void);

#endif
