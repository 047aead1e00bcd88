// threads/threads: the threads of one device.
//
// A pool of n threads is the caller and n - 1 workers. Loops are split over
// them; a team is n threads that all run at once, as oneDNN's regions need
// (they hold barriers). One pool serves one device's program at a time; pools
// of different devices are disjoint. Workers spin for some microseconds and
// then sleep. A forked child starts its own workers at its first use.
//
// Thread-safe: should two threads use a pool at once, the second one's loops
// run on itself alone and its teams wait.
#ifndef CPU_THREADS_POOL_H
#define CPU_THREADS_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct cpu_threads cpu_threads;

// threads >= 1. Workers are started at the first use.
calx_status *cpu_threads_new(int threads, cpu_threads **out) CALX_MUST_USE;
void cpu_threads_free(cpu_threads *pool);  // NULL is accepted
int cpu_threads_size(const cpu_threads *pool);
// The cores that this process may use (affinity and cgroup quota), at least 1.
int cpu_threads_cores(void);
// Starts the workers where they are not running yet. Loops get by with those
// that could be started; a team of more than one needs all of them, so call
// this before a team whose size matters.
calx_status *cpu_threads_start(cpu_threads *pool) CALX_MUST_USE;

// Calls body on pieces of [0, n) that do not overlap and cover it, at least
// `grain` long (but the last); returns when all are done. Pieces of the same n
// fall to the same threads each time, where all of them have a core; a thread
// that has none does not hold up the others. n <= grain runs on the caller
// alone.
typedef void cpu_threads_body(void *user, int64_t lo, int64_t hi);
void cpu_threads_for(cpu_threads *pool, int64_t n, int64_t grain,
                     cpu_threads_body *body, void *user);

// Calls fn(user, rank) for all ranks below n <= cpu_threads_size() at once,
// each on its own thread; rank 0 on the caller. cpu_threads_barrier() is for
// inside. Inside of a team or of a loop's piece it is a team of one: fn(user,
// 0).
typedef void cpu_threads_member(void *user, int rank);
void cpu_threads_team(cpu_threads *pool, int n, cpu_threads_member *fn,
                      void *user);

// What the calling thread is inside of. Outside of any region it is 0 of 1, and
// the pool is the one that was entered, or NULL.
typedef struct cpu_threads_position {
  cpu_threads *pool;
  int rank, size;
} cpu_threads_position;
cpu_threads_position cpu_threads_here(void);
bool cpu_threads_inside(void);   // of a team or a loop's piece, of any pool
void cpu_threads_barrier(void);  // of the innermost team

// The generation of this process among its forks: the first process's is 1, and
// that of a child one more than its parent's. Threads and locks of an earlier
// generation do not exist here.
uint32_t cpu_threads_generation(void);

// Lets other threads run on this core.
void cpu_threads_yield(void);

// Between two looks at what another thread is to change.
static inline void cpu_threads_pause(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The pool that oneDNN's regions on this thread run on, between these. They
// nest; the outermost counts.
void cpu_threads_enter(cpu_threads *pool);
void cpu_threads_leave(void);

#endif
