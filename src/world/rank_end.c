// world/rank_end: a rank's end is written to its slot, and sent as an event to
// processes that do not share the slot's memory.
#include "world/rank_end.h"

#include <stdio.h>
#include <string.h>

#include "store/client.h"
#include "world/state.h"

// An event: rank (4 bytes), at (8), state (4), message.
enum { HEAD = 16 };

static void write_end(cx_world_agreement *m, int rank, uint64_t at,
                      cx_world_rank_state state, const char *message)
{
  cx_world_rank_slot *s = &m->slots[rank];
  snprintf(s->message, sizeof s->message, "%s", message);
  atomic_store(&s->at, at);
  atomic_store(&s->state, (uint32_t)state);
  cx_world_wake_all(&m->wake);
}

static void send_end(int rank, uint64_t at, cx_world_rank_state state,
                     const char *message)
{
  unsigned char value[HEAD + CX_WORLD_MESSAGE_BYTES];
  size_t size = strlen(message);
  if (size >= CX_WORLD_MESSAGE_BYTES) size = CX_WORLD_MESSAGE_BYTES - 1;
  cx_store_wire_put32(value, (uint32_t)rank);
  cx_store_wire_put64(value + 4, at);
  cx_store_wire_put32(value + 12, (uint32_t)state);
  memcpy(value + HEAD, message, size);
  cx_store_request r = { .op = CX_STORE_OP_EVENT,
                         .value = (const char *)value,
                         .size = HEAD + size };
  calx_status_free(
      cx_store_client_call(cx_world_global.client, &r, NULL, NULL));
}

void cx_world_rank_end(int rank, const calx_status *how)
{
  cx_world_agreement *m = cx_world_global.agreement;
  if (m == NULL || rank < 0 || rank >= (int)atomic_load(&m->ranks)) return;
  cx_world_rank_state state =
      how != NULL ? CX_WORLD_RANK_FAILED : CX_WORLD_RANK_ENDED;
  const char *message = how != NULL ? calx_status_message(how) : "";
  uint64_t at = atomic_load(&m->slots[rank].at);
  write_end(m, rank, at, state, message);
  if (cx_world_global.groups > 1) send_end(rank, at, state, message);
}

void cx_world_rank_end_receive(const char *bytes, size_t size)
{
  if (size < HEAD || size >= HEAD + CX_WORLD_MESSAGE_BYTES) return;
  const unsigned char *in = (const unsigned char *)bytes;
  uint32_t rank = cx_store_wire_get32(in), state = cx_store_wire_get32(in + 12);
  cx_lock(&cx_world_global.lock);
  cx_world_agreement *m = cx_world_global.agreement;
  if (m != NULL && rank < atomic_load(&m->ranks) &&
      (state == CX_WORLD_RANK_ENDED || state == CX_WORLD_RANK_FAILED) &&
      !cx_world_is_local((int)rank)) {
    char message[CX_WORLD_MESSAGE_BYTES];
    cx_store_wire_copy_text(bytes + HEAD, size - HEAD, message, sizeof message);
    write_end(m, (int)rank, cx_store_wire_get64(in + 4),
              (cx_world_rank_state)state, message);
  }
  cx_unlock(&cx_world_global.lock);
}
