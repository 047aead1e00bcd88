// threads/loop: loops over ranges of numbers.
//
// A loop is cut into more chunks than there are threads. Each thread has a
// range of them, the same for the same n, and then takes chunks of the other
// ranges. So a thread that loses its core delays one chunk at most. A thread
// that has not begun when no chunk is left is not waited for.
#include <stdatomic.h>
#include <stddef.h>

#include "threads/job.h"

#define CACHE_LINES 128  // between words of different threads, with prefetching
#define CHUNKS_PER_THREAD 4
#define MAX_RANGES 64

// The chunks [next, end) are still to be done.
typedef struct chunk_range {
  _Atomic int64_t next;
  int64_t end;
  char apart[CACHE_LINES - 16];
} chunk_range;

typedef struct loop {
  cpu_threads_body *body;
  void *user;
  int64_t n, chunks;
  int n_ranges;
  chunk_range *ranges;
} loop;

// The start of chunk p. The sizes of chunks differ by one at most.
static int64_t start_of(const loop *l, int64_t p)
{
  int64_t each = l->n / l->chunks, rest = l->n % l->chunks;
  return p * each + (p < rest ? p : rest);
}

static void run_chunks(void *user, int rank)
{
  loop *l = user;
  for (int k = 0; k < l->n_ranges; k++) {
    chunk_range *at = &l->ranges[(rank + k) % l->n_ranges];
    int64_t p;
    while ((p = atomic_fetch_add_explicit(&at->next, 1, memory_order_relaxed)) <
           at->end) {
      l->body(l->user, start_of(l, p), start_of(l, p + 1));
    }
  }
}

void cpu_threads_for(cpu_threads *t, int64_t n, int64_t grain,
                     cpu_threads_body *body, void *user)
{
  if (n <= 0) return;
  const int size = cpu_threads_size(t);
  int64_t chunks = grain > 1 ? n / grain : n;
  int members = chunks < size ? (int)chunks : size;
  members = members <= 1 ? 0 : cpu_threads_try_take(t, members);
  if (members == 0) {
    body(user, 0, n);
    return;
  }
  if (chunks > (int64_t)members * CHUNKS_PER_THREAD) {
    chunks = (int64_t)members * CHUNKS_PER_THREAD;
  }
  const int n_ranges = members < MAX_RANGES ? members : MAX_RANGES;
  chunk_range ranges[MAX_RANGES];
  for (int i = 0; i < n_ranges; i++) {
    atomic_init(&ranges[i].next, chunks * i / n_ranges);
    ranges[i].end = chunks * (i + 1) / n_ranges;
  }
  loop l = { body, user, n, chunks, n_ranges, ranges };
  cpu_threads_run_taken(t, members, run_chunks, &l);
}
