// world: who this process is among those that train together, and how they
// talk outside of any device: a key-value store, news of failures, and a board
// on which ranks agree before they launch a program with collectives.
//
// The environment tells the place: a launcher's own variables (place.c has the
// table of torchrun's, mpirun's and srun's), or calx's, set by its launcher:
//
//   CALX_RANK, CALX_WORLD              this process, and how many
//   CALX_LOCAL_RANK, CALX_LOCAL_WORLD  the same among those of this host
//   CALX_NODE_RANK, CALX_NNODES        this host, and how many
//   CALX_STORE      where the store is: tcp://host:port, abstract://name; under
//                   a launcher of others process 0 serves it there
//   CALX_TOKEN      what every process shows the store; without one, TCP takes
//                   whoever knows the port and a free number
//   CALX_LAUNCH     which start of this host's command it is: of two, the
//   second
//                   is refused
//   CALX_WINDOW_FD  the descriptor of the host's shared window (window.h)
//   CALX_RESTART    for the program: how often all were started again before
//
// and by the user:
//
//   CALX_JOB                   the job's name, the same on all hosts: two jobs
//                              that share address and token do not mix
//   CALX_PORT                  the store's port, before MASTER_PORT
//   CALX_HEARTBEAT_S           5: a process silent for so long has gone; 0: off
//   CALX_JOIN_TIMEOUT_S        60: to wait for the other processes at first;
//   300
//                              for host 0's launcher, which has only others'
//                              launchers to wait for
//   CALX_COLLECTIVE_TIMEOUT_S  1800: to wait for a rank that is alive
//
// It knows processes, ranks and hosts, no devices and no tensors. One world per
// process. A process that no launcher started is a world of its own, and needs
// no store. Every wait has a time limit and names who is missing.
#ifndef CX_WORLD_WORLD_H
#define CX_WORLD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

// ---- who am I ---------------------------------------------------------------

typedef enum cx_world_launcher {
  CX_WORLD_LAUNCHER_NONE,
  CX_WORLD_LAUNCHER_CALX,      // our own: calx_launch's processes, `calx run`
  CX_WORLD_LAUNCHER_TORCHRUN,  // RANK, WORLD_SIZE, MASTER_ADDR, …
  CX_WORLD_LAUNCHER_MPICH,     // PMI_RANK
  CX_WORLD_LAUNCHER_OPENMPI,   // OMPI_COMM_WORLD_*
  CX_WORLD_LAUNCHER_PMIX,      // PMIX_*: srun --mpi=pmix
  CX_WORLD_LAUNCHER_SLURM      // SLURM_*: plain srun
} cx_world_launcher;

typedef struct cx_world_info {
  cx_world_launcher launcher;
  int process, processes;              // this one, and how many
  int local_process, local_processes;  // of this host
  int host, hosts;
  int devices;  // ranks of each process: 1 until cx_world_ranks() says more
} cx_world_info;

// What the environment says, without touching anything. Fails on variables that
// contradict each other or are no numbers, with their names and values.
calx_status *cx_world_find(cx_world_info *out) CALX_MUST_USE;

// Joins the world that the environment tells: connects to the store (serves it,
// where that is this process's part), begins heartbeats. Without a launcher it
// only notes the place. A second call is an error.
calx_status *cx_world_join(void) CALX_MUST_USE;
// How many ranks (local devices) each process has; all processes must say the
// same, or all fail with who said what. Sets up the board.
calx_status *cx_world_ranks(int devices) CALX_MUST_USE;
// Leaves in good order: others that wait for this process are told that it
// ended. `how` (not taken) NULL: well; else it is the news that ends the job.
void cx_world_leave(const calx_status *how);
bool cx_world_joined(void);
const cx_world_info *cx_world_self(void);  // never NULL; a world of 1 before

// The processes that share memory, as the engine counts hosts: they follow each
// other. Where a launcher deals them out to the hosts in turns, or the memory
// cannot be shared, each process is by itself.
typedef struct cx_world_group {
  int group, groups;  // this one's, and how many
  int first, count;   // its processes
  int window_fd;      // -1: it has no window
} cx_world_group;
cx_world_group cx_world_local_group(void);

// The descriptor of the window that this host's processes share (for
// CALX_OPTION_WINDOW_FD); -1: they share none.
int cx_world_segment_fd(void);

static inline int cx_world_size(const cx_world_info *p)
{
  return p->processes * p->devices;
}

// CALX_COLLECTIVE_TIMEOUT_S in ms; 1800 s where it is not set.
int64_t cx_world_timeout_ms(void);

// ---- the store: binary keys' values, shared by all processes ----------------
// Thread-safe; a blocked call blocks only its thread. In a world of one process
// they work on a table in this process.

// ALREADY_EXISTS for a key that has another value.
calx_status *cx_world_store_put(const char *key, const void *value,
                                size_t size) CALX_MUST_USE;
// Waits for the key; the value is zero-terminated past its size and freed with
// cx_free(). DEADLINE_EXCEEDED with the key; ABORTED with the news.
calx_status *cx_world_store_get(const char *key, int64_t timeout_ms, char **out,
                                size_t *out_size) CALX_MUST_USE;
// NOT_FOUND at once.
calx_status *cx_world_store_try_get(const char *key, char **out,
                                    size_t *out_size) CALX_MUST_USE;
// Forgets a key that everybody has read. Nothing where there is none.
void cx_world_store_drop(const char *key);
// All processes. DEADLINE_EXCEEDED names those that did not come.
calx_status *cx_world_barrier(const char *name,
                              int64_t timeout_ms) CALX_MUST_USE;
// The first failure that was told or seen anywhere in the job; NULL: none.
calx_status *cx_world_failure(void) CALX_MUST_USE;

// ---- the board: ranks agree -------------------------------------------------
// Every rank, thread or process, counts what it does together with the others:
// its n-th agreement meets their n-th. All ranks get the same verdict.

typedef struct cx_world_proposal {
  int rank;          // global ordinal of the caller
  cx_hash key;       // of what is to be done: equal on all ranks
  const char *what;  // "all_reduce at train.c:20": for messages
} cx_world_proposal;

// Waits until all ranks of the world have come with the same key. A failure is
// the last word until cx_world_agreement_reset(): later agreements fail with
// it, too. Errors, on every rank and at once when it is known: ABORTED another
// key (who brought what), a rank that ended ("rank 2 has ended its function")
// or failed (its own message), the job's news; DEADLINE_EXCEEDED who is
// missing. *out_differs (may be NULL): a rank with another key, else -1.
calx_status *cx_world_agree(const cx_world_proposal *a, int64_t timeout_ms,
                            int *out_differs) CALX_MUST_USE;
// A rank takes part in no more agreements. `how` (not taken): NULL it ended
// well, else why it failed. Those that wait for it are told at once.
void cx_world_rank_end(int rank, const calx_status *how);
// For the next launch in this process: all counts are 0 again.
void cx_world_agreement_reset(void);

#endif
