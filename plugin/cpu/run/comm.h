// run/comm: a device's communication thread, which does the collectives that
// the device's own thread has begun, in that order, while the device goes on.
//
// It is started when something is begun for the first time and sleeps when
// there is nothing to do, so that devices without such work have none and idle
// ones take no core. One thread begins, waits and finishes; a forked child
// starts a thread of its own.
#ifndef CPU_RUN_COMM_H
#define CPU_RUN_COMM_H

#include <stdint.h>

#include "base/status.h"

typedef struct cpu_run_comm cpu_run_comm;

// What is done with an item; on the communication thread, or on the caller's
// where the system gives no thread.
typedef calx_status *cpu_run_comm_fn(void *user, const void *item);

calx_status *cpu_run_comm_new(cpu_run_comm **out) CALX_MUST_USE;
void cpu_run_comm_free(cpu_run_comm *comm);  // NULL is accepted

// Before a run: in a forked child nothing of its parent's run goes on.
void cpu_run_comm_renew(cpu_run_comm *comm);
// Items are numbered from 0 since the last cpu_run_comm_finish(), between which
// `fn` and `user` stay the same. After one has failed the later ones are not
// done.
calx_status *cpu_run_comm_begin(cpu_run_comm *comm, cpu_run_comm_fn *fn,
                                void *user, const void *item) CALX_MUST_USE;
// Until the item is done; a copy of how it failed, or of how an earlier one
// did.
calx_status *cpu_run_comm_wait(cpu_run_comm *comm,
                               uint32_t number) CALX_MUST_USE;
// Until all are done that were begun.
calx_status *cpu_run_comm_drain(cpu_run_comm *comm) CALX_MUST_USE;
// The end of a run: the item that is being done is waited for, those behind it
// never are, and from here on the thread touches nothing of the run.
void cpu_run_comm_finish(cpu_run_comm *comm);
// How many are begun and not known to be done.
uint32_t cpu_run_comm_open(const cpu_run_comm *comm);

#endif
