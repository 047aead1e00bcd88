#include "threads/spread.h"

#include <string.h>

int cpu_threads_core(void)
{
  return sched_getcpu();
}

bool cpu_threads_take(cpu_threads_taken *taken, int core)
{
  if (core < 0 || core >= CPU_SETSIZE) return true;
  if (CPU_ISSET(core, &taken->cores)) return false;
  CPU_SET(core, &taken->cores);
  return true;
}

bool cpu_threads_move(pthread_t thread, const cpu_threads_taken *taken,
                      cpu_set_t *allowed)
{
  if (pthread_getaffinity_np(thread, sizeof *allowed, allowed) != 0) {
    return false;  // there are more cores than a cpu_set_t has bits
  }
  cpu_set_t others = *allowed;
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (CPU_ISSET(i, &taken->cores)) CPU_CLR(i, &others);
  }
  return CPU_COUNT(&others) != 0 &&
         pthread_setaffinity_np(thread, sizeof others, &others) == 0;
}

void cpu_threads_moved(pthread_t thread, const cpu_set_t *allowed)
{
  // The system may have taken cores away meanwhile: then it says which are
  // left.
  if (pthread_setaffinity_np(thread, sizeof *allowed, allowed) != 0) {
    cpu_set_t every;
    memset(&every, 0xff, sizeof every);
    pthread_setaffinity_np(thread, sizeof every, &every);
  }
}
