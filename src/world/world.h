// world: which of the processes that train together this one is, and how they
// communicate without a device: a key-value store, the job's failure, and
// a shared memory in which ranks agree before they launch a program with
// collectives.
//
// Both come from the environment: from the variables of torchrun, mpirun or
// srun (rank_info.c has a table of them), or from those that calx's launcher
// sets:
//
//   CALX_RANK       this process
//   CALX_WORLD      the number of processes
//   CALX_LOCAL_RANK, CALX_LOCAL_WORLD
//                   the same on this host
//   CALX_NODE_RANK  this host
//   CALX_NNODES     the number of hosts
//   CALX_STORE      where the store is: tcp://host:port, abstract://name. Under
//                   another launcher process 0 serves it there
//   CALX_TOKEN      the secret that every process sends to the store. Without
//                   one, TCP accepts anybody who knows the port
//   CALX_LAUNCH     which start of this host's command it is: the store refuses
//                   a second one
//   CALX_SEGMENT_FD  the descriptor of the host's shared segment (segment.h)
//   CALX_RESTART    for the program: how often the job was restarted
//
// and the user's:
//
//   CALX_JOB                   the job's name, the same on all hosts: two jobs
//                              that share address and token do not mix
//   CALX_PORT                  the store's port; it precedes MASTER_PORT
//   CALX_HEARTBEAT_S           5: a process silent for so long is lost; 0: off
//   CALX_JOIN_TIMEOUT_S        60: the limit of the first wait for the other
//                              processes; 300 for host 0's launcher, which
//                              waits for the other launchers only
//   CALX_COLLECTIVE_TIMEOUT_S  1800: the limit of a wait for a rank that lives
//
// This module knows processes, ranks and hosts, no devices and no tensors. A
// process has one world; without a launcher it is the only process of its world
// and needs no store. Every wait has a time limit, and its message names the
// processes or ranks that are missing.
#ifndef CX_WORLD_WORLD_H
#define CX_WORLD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

// ---- rank info --------------------------------------------------------------

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
  int process, processes;              // this one, and their number
  int local_process, local_processes;  // the same on this host
  int host, hosts;
  int devices;  // ranks of each process: 1 until cx_world_ranks() sets it
} cx_world_info;

// Initialises the info of a process that is alone.
#define CX_WORLD_INFO_ALONE                                        \
  {                                                                \
    .processes = 1, .local_processes = 1, .hosts = 1, .devices = 1 \
  }

// Reads the environment only. Variables that contradict each other or are no
// numbers are an error with their names and values.
calx_status *cx_world_find(cx_world_info *out) CALX_MUST_USE;

// Joins the world that the environment names: connects to the store (after it
// serves it, if this process is to), and starts heartbeats. Without a launcher
// it only reads the environment. A second call is an error.
calx_status *cx_world_join(void) CALX_MUST_USE;
// Sets the number of ranks (local devices) of each process, and creates the
// memory in which ranks agree. All processes must call it with one number; else
// it fails in all of them.
calx_status *cx_world_ranks(int devices) CALX_MUST_USE;
// Leaves the world; calls of other processes that wait for this one fail. how
// (the caller keeps it): NULL for a normal end; else it fails the job.
void cx_world_leave(const calx_status *how);
bool cx_world_joined(void);
const cx_world_info *cx_world_self(void);  // never NULL

// The processes that share memory with this one, as the engine counts hosts:
// consecutive ones. Where the launcher deals processes out to the hosts in
// turns, or memory cannot be shared, each process is a group of its own.
typedef struct cx_world_group {
  int group, groups;  // this process's, and their number
  int first, count;   // its processes
  int segment_fd;     // its segment; -1: none
} cx_world_group;
cx_world_group cx_world_local_group(void);

// The descriptor of the segment that this host's processes share (for
// CALX_OPTION_SEGMENT_FD); -1: none.
int cx_world_segment_fd(void);

static inline int cx_world_size(const cx_world_info *info)
{
  return info->processes * info->devices;
}

// CALX_COLLECTIVE_TIMEOUT_S in ms; 1800 s where it is not set.
int64_t cx_world_timeout_ms(void);

// ---- the store: keys and binary values, shared by all processes -------------
// Thread-safe: a call blocks its thread only. In a world of one process a table
// in this process serves them.

// ALREADY_EXISTS for a key that has another value.
calx_status *cx_world_store_put(const char *key, const void *value,
                                size_t size) CALX_MUST_USE;
// Waits for the key. The caller frees the value with cx_free(); a zero byte
// follows it. DEADLINE_EXCEEDED with the key; ABORTED with the job's failure.
calx_status *cx_world_store_get(const char *key, int64_t timeout_ms, char **out,
                                size_t *out_size) CALX_MUST_USE;
// NOT_FOUND at once.
calx_status *cx_world_store_try_get(const char *key, char **out,
                                    size_t *out_size) CALX_MUST_USE;
// Removes a key, if it is there.
void cx_world_store_drop(const char *key);
// Waits for all processes. DEADLINE_EXCEEDED names those that did not arrive.
calx_status *cx_world_barrier(const char *name,
                              int64_t timeout_ms) CALX_MUST_USE;
// The first failure anywhere in the job; NULL: none.
calx_status *cx_world_failure(void) CALX_MUST_USE;

// ---- agreements of ranks ----------------------------------------------------
// Every rank, whether a thread or a process, counts its agreements: its n-th
// one is with the n-th of all others. All ranks get the same outcome.

typedef struct cx_world_proposal {
  int rank;          // global ordinal of the caller
  cx_hash key;       // of what is to be done: equal on all ranks
  const char *what;  // "all_reduce at train.c:20": for messages
} cx_world_proposal;

// Waits until all ranks of the world have submitted the same key. A failure is
// the outcome of all later agreements too, until cx_world_agreement_reset().
// Errors, on every rank as soon as they are known: ABORTED for another key
// (with both submissions), a rank that has ended or failed (with its message),
// or the job's failure; DEADLINE_EXCEEDED with the missing ranks.
// *out_differs (may be NULL): a rank with another key, else -1.
calx_status *cx_world_agree(const cx_world_proposal *a, int64_t timeout_ms,
                            int *out_differs) CALX_MUST_USE;
// Ends a rank's part in agreements; agreements that wait for it fail. how (the
// caller keeps it): NULL for a normal end, else why it failed.
void cx_world_rank_end(int rank, const calx_status *how);
// Prepares the next launch in this process: all counts become 0.
void cx_world_agreement_reset(void);

#endif
