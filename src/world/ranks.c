// world/ranks: sets up the agreement's memory, once a process knows how many
// devices it has.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/core.h"
#include "world/state.h"

// In the segment that this host's processes share, else on the heap.
static calx_status *create_agreement(int devices)
{
  int ranks = cx_world_global.info.processes * devices;
  size_t bytes = cx_world_agreement_bytes(ranks);
  size_t room = CALX_SEGMENT_ENGINE - CALX_SEGMENT_AGREEMENT;
  cx_world_agreement *agreement;
  void *memory = NULL;
  if (cx_world_global.segment.head == NULL) {
    // Slots need cache lines of their own, and cx_calloc does not align to
    // them.
    memory = cx_calloc(1, bytes + 63);
    if (memory == NULL) return cx_out_of_memory();
    agreement = (cx_world_agreement *)(((uintptr_t)memory + 63) / 64 * 64);
  } else {
    if (bytes > room) {
      return cx_error(
          CALX_RESOURCE_EXHAUSTED,
          "%d ranks: the memory in which they agree has space for %zu", ranks,
          (room - sizeof(cx_world_agreement)) / sizeof(cx_world_rank_slot));
    }
    agreement = cx_world_agreement_in(cx_world_global.segment.head);
  }
  atomic_store(&agreement->ranks, (uint32_t)ranks);
  cx_world_state_set_agreement(agreement, memory, devices);
  return NULL;
}

// Compares the numbers of devices of all processes.
static calx_status *compare_devices(int devices)
{
  char name[64], *list;
  size_t left;
  snprintf(name, sizeof name, "ranks of each process, launch %d",
           ++cx_world_global.ranks_calls);
  CALX_TRY(cx_world_exchange(name, &devices, sizeof devices,
                             cx_world_timeout_ms(), &list, &left));
  const char *at = list;
  calx_status *status = NULL;
  int first = devices;
  for (int i = 0; i < cx_world_global.info.processes && status == NULL; i++) {
    int other;
    if (!cx_world_exchange_next(&at, &left, &other, sizeof other)) other = 0;
    if (i == 0) first = other;
    if (other != first) {
      status = cx_invalid(
          "process 0 has %d device%s, process %d has %d: all must have the "
          "same number",
          first, first == 1 ? "" : "s", i, other);
    }
  }
  cx_free(list);
  return status;
}

// The server names ranks in its messages.
static calx_status *put_devices(int devices)
{
  char text[16];
  if (cx_world_global.info.process != 0) return NULL;
  snprintf(text, sizeof text, "%d", devices);
  cx_world_store_drop(CX_STORE_DEVICES_KEY);
  return cx_world_store_put(CX_STORE_DEVICES_KEY, text, strlen(text));
}

// The memory exists before the exchange: once a process has completed the
// exchange its ranks may end, before another process goes on, and their end
// must be recorded.
static calx_status *set_ranks(int devices)
{
  bool first = cx_world_global.agreement == NULL;
  calx_status *full = first ? create_agreement(devices) : NULL;
  calx_status *status = put_devices(devices);
  if (status == NULL) status = compare_devices(devices);
  if (first && status != NULL) cx_world_state_set_agreement(NULL, NULL, 1);
  if (status == NULL) {
    status = full;
  } else {
    calx_status_free(full);
  }
  int before = cx_world_global.info.devices;
  if (status != NULL || before == devices) return status;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "each process has %d ranks in this job, which cannot "
                  "become %d",
                  before, devices);
}

calx_status *cx_world_ranks(int devices)
{
  if (devices < 1 || devices > 4096) {
    return cx_invalid("%d ranks in each process, 1 to 4096 are wanted",
                      devices);
  }
  CALX_TRY(cx_world_global.client != NULL ? set_ranks(devices)
                                          : create_agreement(devices));
  cx_world_global.launched = true;
  return NULL;
}
