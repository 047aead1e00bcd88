// world/ranks: sets up the agreement's memory, once a process knows how many
// devices it has.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/core.h"
#include "world/state.h"

// Slots need cache lines of their own, and cx_alloc does not align to them.
static calx_status *create_on_heap(int devices)
{
  int ranks = cx_world_global.info.processes * devices;
  void *memory = cx_calloc(1, cx_world_agreement_bytes(ranks) + 63);
  if (memory == NULL) return cx_out_of_memory();
  cx_world_agreement *agreement =
      (cx_world_agreement *)(((uintptr_t)memory + 63) / 64 * 64);
  atomic_store(&agreement->ranks, (uint32_t)ranks);
  cx_world_state_set_agreement(agreement, memory, devices);
  return NULL;
}

static calx_status *create_in_segment(int devices)
{
  int ranks = cx_world_global.info.processes * devices;
  size_t room = CALX_SEGMENT_ENGINE - CALX_SEGMENT_AGREEMENT;
  if (cx_world_agreement_bytes(ranks) > room) {
    return cx_error(
        CALX_RESOURCE_EXHAUSTED,
        "%d ranks: the memory in which they agree has space for %zu", ranks,
        (room - sizeof(cx_world_agreement)) / sizeof(cx_world_rank_slot));
  }
  cx_world_agreement *agreement = cx_world_agreement_in(cx_world_global.head);
  atomic_store(&agreement->ranks, (uint32_t)ranks);
  cx_world_state_set_agreement(agreement, NULL, devices);
  return NULL;
}

// Compares the numbers of devices of all processes.
static calx_status *compare_devices(int devices)
{
  char name[64], *list;
  unsigned char own[4];
  size_t size;
  snprintf(name, sizeof name, "ranks of each process, launch %d",
           ++cx_world_global.ranks_calls);
  cx_store_wire_put32(own, (uint32_t)devices);
  CALX_TRY(cx_world_exchange(name, own, sizeof own, cx_world_timeout_ms(),
                             &list, &size));
  const char *at = list, *value;
  size_t left = size, bytes;
  calx_status *status = NULL;
  int first = devices;
  for (int i = 0; i < cx_world_global.info.processes && status == NULL; i++) {
    bool valid = cx_store_wire_next(&at, &left, &value, &bytes) && bytes == 4;
    int other =
        valid ? (int)cx_store_wire_get32((const unsigned char *)value) : 0;
    if (i == 0) first = other;
    if (other != first) {
      status = cx_error(CALX_INVALID_ARGUMENT,
                        "process 0 has %d device%s, process %d has %d: all "
                        "must have the same number",
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
  calx_status *full = NULL;
  if (first) {
    full = cx_world_global.segment.head != NULL ? create_in_segment(devices)
                                                : create_on_heap(devices);
  }
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
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%d ranks in each process, 1 to 4096 are wanted", devices);
  }
  CALX_TRY(cx_world_global.client != NULL ? set_ranks(devices)
                                          : create_on_heap(devices));
  cx_world_global.launched = true;
  return NULL;
}
