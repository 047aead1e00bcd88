// world/state: the state, and what can be read of it.
#include "world/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/env.h"

static calx_segment_head own_head = { .magic = CALX_SEGMENT_MAGIC,
                                      .processes = 1 };

cx_world_state cx_world_global = { .info = CX_WORLD_INFO_ALONE,
                                   .head = &own_head,
                                   .segment = { .fd = -1 },
                                   .groups = 1 };

bool cx_world_joined(void)
{
  return cx_world_global.joined;
}

const cx_world_info *cx_world_self(void)
{
  return &cx_world_global.info;
}

int64_t cx_world_timeout_ms(void)
{
  return cx_env_ms("CALX_COLLECTIVE_TIMEOUT_S", false, 1800);
}

int cx_world_segment_fd(void)
{
  return cx_world_global.segment.fd;
}

calx_status *cx_world_failure(void)
{
  const calx_segment_head *head = cx_world_global.head;
  calx_code failed = cx_world_segment_failed(head);
  return failed == CALX_OK ? NULL : cx_error(failed, "%s", head->message);
}

// The number of ranks changes under the same lock: the watch thread needs both.
void cx_world_state_set_agreement(cx_world_agreement *agreement, void *memory,
                                  int devices)
{
  cx_world_state *w = &cx_world_global;
  cx_lock(&w->lock);
  void *before = w->agreement_memory;
  w->info.devices = devices;
  w->agreement = agreement;
  w->agreement_memory = memory;
  cx_unlock(&w->lock);
  cx_free(before);
}

void cx_world_state_reset(void)
{
  cx_world_state *w = &cx_world_global;
  cx_world_state_set_agreement(NULL, NULL, 1);
  w->head = &own_head;
  cx_world_segment_close(&w->segment);
  cx_free(w->group_of);
  w->group_of = NULL;
  w->group = w->ranks_calls = 0;
  w->launched = false;
  w->groups = 1;
  memset(&own_head.message, 0, sizeof own_head.message);
  atomic_store(&own_head.failed, 0);
  atomic_store(&own_head.writing, 0);
  w->info = (cx_world_info)CX_WORLD_INFO_ALONE;
  w->joined = false;
}
