// run/comm: a device's communication thread. It runs the collectives that the
// device's own thread has begun, in that order, while the device goes on.
//
// The thread is started for the first collective and sleeps when it has nothing
// to do. Only the device's thread calls these functions. A forked child starts
// a thread of its own.
#ifndef CPU_RUN_COMM_H
#define CPU_RUN_COMM_H

#include <stdint.h>

#include "base/status.h"

typedef struct cpu_run_comm cpu_run_comm;

// Runs an item on the communication thread, or on the caller's if the system
// gives no thread.
typedef calx_status *cpu_run_comm_fn(void *user, const void *item);

calx_status *cpu_run_comm_new(cpu_run_comm **out) CALX_MUST_USE;
void cpu_run_comm_free(cpu_run_comm *comm);  // NULL is accepted

// Called before a run. In a forked child it drops what the parent had begun.
void cpu_run_comm_renew(cpu_run_comm *comm);
// Begins an item. Items are numbered from 0 after each cpu_run_comm_finish().
// All items of a run have the same `fn` and `user`. After one has failed the
// later ones are not run.
calx_status *cpu_run_comm_begin(cpu_run_comm *comm, cpu_run_comm_fn *fn,
                                void *user, const void *item) CALX_MUST_USE;
// Waits for an item. Returns a copy of its error, or of an earlier item's.
calx_status *cpu_run_comm_wait(cpu_run_comm *comm,
                               uint32_t number) CALX_MUST_USE;
// Waits for all items that were begun.
calx_status *cpu_run_comm_drain(cpu_run_comm *comm) CALX_MUST_USE;
// Ends a run: waits for the item that is running and drops those behind it.
// From here on the thread uses nothing of the run.
void cpu_run_comm_finish(cpu_run_comm *comm);
// How many items were begun and are not known to be done.
uint32_t cpu_run_comm_open(const cpu_run_comm *comm);

#endif
