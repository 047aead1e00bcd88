// world/agreement_hosts: one exchange through the store for each group's ranks.
//
// Who went to meet the others cannot look at its board meanwhile, so it meets
// for a moment at a time; coming again is the same meeting to the server.
#include "world/agreement_hosts.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/client.h"
#include "world/state.h"

enum { MOMENT_MS = 200, HEAD = 20, END_HEAD = 16 };

typedef struct word {
  int rank;
  cx_hash key;
  char what[CX_WORLD_OPERATION_BYTES];
} word;

static bool read_word(const char **list, size_t *left, word *out)
{
  const char *value;
  size_t size;
  if (!cx_store_wire_next(list, left, &value, &size) || size < HEAD ||
      size >= HEAD + sizeof out->what) {
    return false;
  }
  const unsigned char *in = (const unsigned char *)value;
  out->rank = (int)cx_store_wire_get32(in);
  out->key =
      (cx_hash){ cx_store_wire_get64(in + 4), cx_store_wire_get64(in + 12) };
  memcpy(out->what, value + HEAD, size - HEAD);
  out->what[size - HEAD] = '\0';
  return true;
}

// The same on all hosts: the first that differs from the first group.
static cx_world_hosts_result compare(const char *all, size_t size,
                                     uint64_t count, cx_world_outcome *out)
{
  word first, other;
  bool whole = read_word(&all, &size, &first);
  for (int i = 1; i < cx_world_global.groups && whole; i++) {
    whole = read_word(&all, &size, &other);
    if (!whole || cx_hash_equal(first.key, other.key)) continue;
    cx_world_format_differs(out, count, (int[]){ first.rank, other.rank },
                            (const char *[]){ first.what, other.what },
                            (cx_hash[]){ first.key, other.key });
    return CX_WORLD_HOSTS_FAIL;
  }
  if (whole) return CX_WORLD_HOSTS_AGREE;
  out->code = CALX_DATA_LOSS;
  snprintf(out->text, sizeof out->text,
           "the store's answer about what the hosts do is damaged");
  return CX_WORLD_HOSTS_FAIL;
}

static calx_status *exchange(const cx_world_proposal *a, uint64_t target,
                             char **out, size_t *out_size)
{
  cx_store_request r;
  char name[96], value[HEAD + CX_WORLD_OPERATION_BYTES];
  snprintf(name, sizeof name, "launch %llu.%llu between hosts",
           (unsigned long long)cx_world_epoch(target) + 1,
           (unsigned long long)cx_world_agreement_count(target));
  CALX_TRY(cx_store_client_request(CX_STORE_OP_EXCHANGE, name, &r));
  cx_store_wire_put32((unsigned char *)value, (uint32_t)a->rank);
  cx_store_wire_put64((unsigned char *)value + 4, a->key.low);
  cx_store_wire_put64((unsigned char *)value + 12, a->key.high);
  snprintf(value + HEAD, CX_WORLD_OPERATION_BYTES, "%s", a->what);
  r.a = cx_world_global.group;
  r.b = cx_world_global.groups;
  r.value = value;
  r.size = HEAD + strlen(value + HEAD);
  r.wait_ms = MOMENT_MS;
  return cx_store_client_call(cx_world_global.client, &r, out, out_size);
}

cx_world_hosts_result cx_world_hosts_agree(const cx_world_proposal *a,
                                           uint64_t target, bool last_time,
                                           cx_world_outcome *out)
{
  char *all;
  size_t size;
  calx_status *status = exchange(a, target, &all, &size);
  if (status == NULL) {
    cx_world_hosts_result said =
        compare(all, size, cx_world_agreement_count(target), out);
    cx_free(all);
    return said;
  }
  bool late = calx_status_code(status) == CALX_DEADLINE_EXCEEDED;
  if (late && !last_time) {
    calx_status_free(status);
    return CX_WORLD_HOSTS_WAIT;
  }
  out->code = (int32_t)calx_status_code(status);
  if (late) {
    snprintf(out->text, sizeof out->text,
             "the ranks of other hosts did not come in time to %s, where rank "
             "%d waited: %.400s",
             a->what, a->rank, cx_status_sentence(status));
  } else {
    snprintf(out->text, sizeof out->text, "%s", cx_status_sentence(status));
  }
  calx_status_free(status);
  return CX_WORLD_HOSTS_FAIL;
}

void cx_world_hosts_report_end(int rank, uint64_t at, cx_world_rank_state state,
                               const char *message)
{
  unsigned char value[END_HEAD + CX_WORLD_MESSAGE_BYTES];
  cx_store_wire_put32(value, (uint32_t)rank);
  cx_store_wire_put64(value + 4, at);
  cx_store_wire_put32(value + 12, (uint32_t)state);
  snprintf((char *)value + END_HEAD, CX_WORLD_MESSAGE_BYTES, "%s", message);
  cx_store_request r = { .op = CX_STORE_OP_EVENT,
                         .value = (const char *)value,
                         .size = END_HEAD + strlen((char *)value + END_HEAD) };
  // Where nobody can be told, nobody waits any more either.
  calx_status_free(
      cx_store_client_call(cx_world_global.client, &r, NULL, NULL));
}

void cx_world_hosts_receive_end(const char *bytes, size_t size)
{
  const unsigned char *in = (const unsigned char *)bytes;
  if (size < END_HEAD || size >= END_HEAD + CX_WORLD_MESSAGE_BYTES) return;
  uint32_t rank = cx_store_wire_get32(in), state = cx_store_wire_get32(in + 12);
  cx_lock(&cx_world_global.lock);
  cx_world_agreement *board = cx_world_global.board;
  if (board != NULL && rank < atomic_load(&board->ranks) &&
      (state == CX_WORLD_RANK_ENDED || state == CX_WORLD_RANK_FAILED) &&
      !cx_world_is_local((int)rank)) {
    char message[CX_WORLD_MESSAGE_BYTES];
    memcpy(message, bytes + END_HEAD, size - END_HEAD);
    message[size - END_HEAD] = '\0';
    cx_world_agreement_note_end(board, (int)rank, cx_store_wire_get64(in + 4),
                                (cx_world_rank_state)state, message);
  }
  cx_unlock(&cx_world_global.lock);
}
