// threads/spread: see spread.h.
#include "threads/spread.h"

#include <string.h>

bool cpu_threads_add_core(cpu_set_t *cores, int core)
{
  if (core < 0 || core >= CPU_SETSIZE) return true;
  if (CPU_ISSET(core, cores)) return false;
  CPU_SET(core, cores);
  return true;
}

bool cpu_threads_keep_off(pthread_t thread, const cpu_set_t *cores,
                          cpu_set_t *out_allowed)
{
  // It fails where the machine has more cores than a cpu_set_t has bits.
  if (pthread_getaffinity_np(thread, sizeof *out_allowed, out_allowed) != 0) {
    return false;
  }
  cpu_set_t common, others;
  CPU_AND(&common, out_allowed, cores);
  CPU_XOR(&others, out_allowed, &common);
  return CPU_COUNT(&others) != 0 &&
         pthread_setaffinity_np(thread, sizeof others, &others) == 0;
}

void cpu_threads_allow(pthread_t thread, const cpu_set_t *allowed)
{
  if (pthread_setaffinity_np(thread, sizeof *allowed, allowed) != 0) {
    // The process may no longer use any of them: all that it may use.
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    pthread_setaffinity_np(thread, sizeof all, &all);
  }
}
