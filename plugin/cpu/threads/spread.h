// threads/spread: keeps the threads of a job on different cores.
//
// A kernel may wake a thread on the core of the thread that wakes it while
// other cores are idle (Linux does without CONFIG_SCHED_MC, as small virtual
// machines are configured, until it balances the cores). oneDNN's barriers
// spin, so each barrier of two threads on one core then takes a time slice, 4
// ms.
#ifndef CPU_THREADS_SPREAD_H
#define CPU_THREADS_SPREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

// The core that the calling thread is on; -1: not known.
int cpu_threads_core(void);

// Cores of the threads of a job; a core is -1 for a thread that has not run.
typedef struct cpu_threads_taken {
  cpu_set_t cores;
} cpu_threads_taken;
// False: the core was taken before.
bool cpu_threads_take(cpu_threads_taken *taken, int core);

// Between these calls the thread may not run on the taken cores; it stays where
// it is moved to. False: it may run nowhere else, nothing was changed.
bool cpu_threads_move(pthread_t thread, const cpu_threads_taken *taken,
                      cpu_set_t *allowed);
void cpu_threads_moved(pthread_t thread, const cpu_set_t *allowed);

#endif
