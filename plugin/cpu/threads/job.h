// threads/job: how a loop takes a pool.
#ifndef CPU_THREADS_JOB_H
#define CPU_THREADS_JOB_H

#include "threads/threads.h"

// Takes the pool if it is free and the calling thread is in no region. Returns
// how many of `members` threads can take part, or 0: not taken.
int cpu_threads_try_take(cpu_threads *threads, int members);
// Runs fn on the caller, which has taken the pool, and on those of the other
// members that begin before the caller is done; gives the pool back.
void cpu_threads_run_taken(cpu_threads *threads, int members,
                           cpu_threads_parallel_fn *fn, void *user);

#endif
