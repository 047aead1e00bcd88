// coll/link_state: what the two halves of a link share.
#ifndef CPU_COLL_LINK_STATE_H
#define CPU_COLL_LINK_STATE_H

#include "base/thread.h"
#include "coll/link.h"

// The MPI of this process.
typedef struct cpu_coll_mpi_state {
  bool busy;  // a link uses it, or its initialisation does not return
  const cpu_coll_mpi_api *api;
  int rank, size, max_tag;
  // Transfers of closed links that MPI is not done with. They are never freed.
  cpu_coll_transfer *abandoned;
  bool receiving;  // a receive of a message is pending
  cpu_coll_mpi_request request;
  unsigned char message[CPU_COLL_MESSAGE_BYTES];
} cpu_coll_mpi_state;
extern cpu_coll_mpi_state cpu_coll_mpi;

typedef enum cpu_coll_link_stage {
  CPU_COLL_LINK_STARTING,
  CPU_COLL_LINK_RUNS,
  CPU_COLL_LINK_FAILED
} cpu_coll_link_stage;

struct cpu_coll_link {
  cpu_coll_link_options options;
  cx_thread thread;
  cx_mutex lock;
  cx_cond changed;
  cpu_coll_link_stage stage;
  bool stops;
  // opening: the thread is in MPI's initialisation, which cannot be
  // interrupted. orphaned: the caller has stopped waiting for it. Then the
  // options are invalid and the thread owns the link.
  bool opening, orphaned;
  calx_status *failed;
  cpu_coll_transfer *posted, **last_posted;
  atomic_uint pollers;
  atomic_bool broken, has_posts;
  _Atomic uint32_t wake_word, sleepers;
  atomic_flag inside;  // a thread makes progress
  atomic_uint polls;   // by other threads than the link's
  // For the thread that makes progress:
  cpu_coll_transfer *active;
  unsigned seen;  // for the link's thread: the last value of `polls`
};

// Takes what MPI said: false, and the link is broken, where that is an error.
bool cpu_coll_link_check(cpu_coll_link *link, const char *wrong);
// Whether anything was done. One thread at a time.
bool cpu_coll_link_progress(cpu_coll_link *link);
// The same, unless another thread makes progress.
bool cpu_coll_link_try_progress(cpu_coll_link *link);

static inline cpu_coll_transfer **cpu_coll_link_end_of(cpu_coll_transfer **list)
{
  while (*list != NULL) list = &(*list)->next;
  return list;
}

#endif
