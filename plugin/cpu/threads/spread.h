// threads/spread: keeps the threads of a job on different cores.
//
// Linux may wake a thread on the core of the thread that wakes it while another
// core is idle, and leave it there for many jobs. Loops then have one thread
// less. oneDNN's barriers spin, so two threads on one core may each time wait
// for the end of a time slice, 4 ms.
#ifndef CPU_THREADS_SPREAD_H
#define CPU_THREADS_SPREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

// Adds a core to those of the job's threads; -1, that of a thread which has not
// run, adds none. False: it was there before.
bool cpu_threads_add_core(cpu_set_t *cores, int core);

// Between these calls the thread may run on none of `cores`; afterwards it
// stays where it was moved to. False: it may run nowhere else, and nothing was
// changed.
bool cpu_threads_keep_off(pthread_t thread, const cpu_set_t *cores,
                          cpu_set_t *out_allowed);
void cpu_threads_allow(pthread_t thread, const cpu_set_t *allowed);

#endif
