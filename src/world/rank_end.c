// world/rank_end: a rank's end is written to its slot, and sent as an event to
// processes that do not share the slot's memory.
#include "world/rank_end.h"

#include <stdio.h>
#include <string.h>

#include "store/client.h"
#include "world/state.h"

// An event, as it lies in memory: hosts of one job have one byte order.
typedef struct rank_end {
  uint64_t at;
  uint32_t rank, state;
  char message[CX_WORLD_MESSAGE_BYTES];
} rank_end;

_Static_assert(sizeof(rank_end) <= CX_STORE_EVENT_BYTES, "the store's limit");

static void write_end(cx_world_agreement *m, const rank_end *end)
{
  cx_world_rank_slot *s = &m->slots[end->rank];
  memcpy(s->message, end->message, sizeof s->message);
  atomic_store(&s->at, end->at);
  atomic_store(&s->state, end->state);
  cx_world_wake_all(&m->wake);
}

void cx_world_rank_end(int rank, const calx_status *how)
{
  cx_world_agreement *m = cx_world_global.agreement;
  if (m == NULL || rank < 0 || rank >= (int)atomic_load(&m->ranks)) return;
  rank_end end = { .at = atomic_load(&m->slots[rank].at),
                   .rank = (uint32_t)rank,
                   .state = CX_WORLD_RANK_ENDED };
  if (how != NULL) {
    end.state = CX_WORLD_RANK_FAILED;
    snprintf(end.message, sizeof end.message, "%s", calx_status_message(how));
  }
  write_end(m, &end);
  if (cx_world_global.groups == 1) return;
  cx_store_request r = { .op = CX_STORE_OP_EVENT,
                         .value = (const char *)&end,
                         .size = sizeof end };
  calx_status_free(
      cx_store_client_call(cx_world_global.client, &r, NULL, NULL));
}

void cx_world_rank_end_receive(const char *bytes, size_t size)
{
  rank_end end;
  if (size != sizeof end) return;
  memcpy(&end, bytes, sizeof end);
  end.message[sizeof end.message - 1] = '\0';
  cx_lock(&cx_world_global.lock);
  cx_world_agreement *m = cx_world_global.agreement;
  if (m != NULL && end.rank < atomic_load(&m->ranks) &&
      (end.state == CX_WORLD_RANK_ENDED || end.state == CX_WORLD_RANK_FAILED) &&
      !cx_world_is_local((int)end.rank)) {
    write_end(m, &end);
  }
  cx_unlock(&cx_world_global.lock);
}
