// threads/threads: the thread pool of one device.
//
// A pool of n threads consists of the caller and n - 1 workers. A loop is split
// over them. A parallel region runs n threads at the same time, which oneDNN
// needs because its regions hold barriers. A pool serves one program at a time;
// pools of different devices have no thread in common. Idle workers spin for
// some microseconds and then sleep. A forked child starts its own workers.
//
// Thread-safe: if a second thread uses a pool at the same time, its loops run
// on that thread alone and its parallel regions wait.
#ifndef CPU_THREADS_THREADS_H
#define CPU_THREADS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/thread.h"

typedef struct cpu_threads cpu_threads;

// threads >= 1. Workers are started at the first use.
calx_status *cpu_threads_new(int threads, cpu_threads **out) CALX_MUST_USE;
void cpu_threads_free(cpu_threads *threads);  // NULL is accepted
int cpu_threads_size(const cpu_threads *threads);
// The cores that this process may use (affinity and cgroup quota), at least 1.
int cpu_threads_cores(void);
// Starts the workers that do not run yet. Loops use as many as could be
// started. A parallel region whose size matters must call this first.
calx_status *cpu_threads_start(cpu_threads *threads) CALX_MUST_USE;

// Splits [0, n) into chunks of at least `grain` (except the last), calls body
// on each, and returns when all are done. With the same n each thread gets the
// same chunks, as long as every thread has a core; one without a core does not
// delay the others. n <= grain runs on the caller alone.
typedef void cpu_threads_body(void *user, int64_t lo, int64_t hi);
void cpu_threads_for(cpu_threads *threads, int64_t n, int64_t grain,
                     cpu_threads_body *body, void *user);

// A parallel region: calls fn(user, rank) for all ranks below n <=
// cpu_threads_size() at the same time, each on a thread of its own, rank 0 on
// the caller. fn may call cpu_threads_barrier(). A region inside a region or a
// loop has one thread: fn(user, 0).
typedef void cpu_threads_parallel_fn(void *user, int rank);
void cpu_threads_parallel(cpu_threads *threads, int n,
                          cpu_threads_parallel_fn *fn, void *user);

// The calling thread's rank in its parallel region or loop. Outside: rank 0 of
// 1, and the pool that was entered, or NULL.
typedef struct cpu_threads_position {
  cpu_threads *threads;
  int rank, size;
} cpu_threads_position;
cpu_threads_position cpu_threads_here(void);
bool cpu_threads_inside(void);   // a region or a loop, of any pool
void cpu_threads_barrier(void);  // of the innermost region

// 1, and one more in each forked child than in its parent. Threads that were
// started in an earlier generation do not exist in this process, and locks may
// have been held at the fork.
uint32_t cpu_threads_generation(void);

// Starts a thread that handles no signals: these are the program's own
// threads'.
calx_status *cpu_threads_spawn(cx_thread *thread, void (*fn)(void *user),
                               void *user) CALX_MUST_USE;

// Lets other threads run on this core.
void cpu_threads_yield(void);

// For a loop that polls what another thread changes.
static inline void cpu_threads_pause(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Between these calls, oneDNN's parallel regions on this thread use the pool.
// The calls nest; the outermost pool is used.
void cpu_threads_enter(cpu_threads *threads);
void cpu_threads_leave(void);

#endif
