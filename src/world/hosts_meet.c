// world/hosts_meet: one exchange through the store for each group's ranks.
//
// Who went to meet the others cannot look at its board meanwhile, so it meets
// for a moment at a time; coming again is the same meeting to the server.
#include "world/hosts_meet.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "world/client.h"
#include "world/state.h"

enum { MOMENT_MS = 200, HEAD = 20, END_HEAD = 16 };

typedef struct word {
  int rank;
  cx_hash key;
  char what[CX_BOARD_WHAT];
} word;

static bool read_word(const char **list, size_t *left, word *out)
{
  const char *value;
  size_t size;
  if (!cx_wire_next(list, left, &value, &size) || size < HEAD ||
      size >= HEAD + sizeof out->what) {
    return false;
  }
  const unsigned char *in = (const unsigned char *)value;
  out->rank = (int)cx_wire_get32(in);
  out->key = (cx_hash){ cx_wire_get64(in + 4), cx_wire_get64(in + 12) };
  memcpy(out->what, value + HEAD, size - HEAD);
  out->what[size - HEAD] = '\0';
  return true;
}

// The same on all hosts: the first that differs from the first group.
static cx_hosts_word compare(const char *all, size_t size, uint64_t count,
                             cx_verdict *out)
{
  word first, other;
  bool whole = read_word(&all, &size, &first);
  for (int i = 1; i < cx_world.groups && whole; i++) {
    whole = read_word(&all, &size, &other);
    if (!whole || cx_hash_equal(first.key, other.key)) continue;
    cx_board_say_differs(out, count, (int[]){ first.rank, other.rank },
                         (const char *[]){ first.what, other.what },
                         (cx_hash[]){ first.key, other.key });
    return CX_HOSTS_DIFFER;
  }
  if (whole) return CX_HOSTS_AGREE;
  out->code = CALX_DATA_LOSS;
  snprintf(out->text, sizeof out->text,
           "the store's answer about what the hosts do is damaged");
  return CX_HOSTS_DIFFER;
}

static calx_status *exchange(const cx_agreement *a, uint64_t target, char **out,
                             size_t *out_size)
{
  cx_request r;
  char name[96], value[HEAD + CX_BOARD_WHAT];
  snprintf(name, sizeof name, "launch %llu.%llu between hosts",
           (unsigned long long)cx_board_epoch(target) + 1,
           (unsigned long long)cx_board_count(target));
  CALX_TRY(cx_client_request(CX_OP_MEET, name, &r));
  cx_wire_put32((unsigned char *)value, (uint32_t)a->rank);
  cx_wire_put64((unsigned char *)value + 4, a->key.low);
  cx_wire_put64((unsigned char *)value + 12, a->key.high);
  snprintf(value + HEAD, CX_BOARD_WHAT, "%s", a->what);
  r.a = cx_world.group;
  r.b = cx_world.groups;
  r.value = value;
  r.size = HEAD + strlen(value + HEAD);
  r.wait_ms = MOMENT_MS;
  return cx_client_call(cx_world.client, &r, out, out_size);
}

cx_hosts_word cx_hosts_meet(const cx_agreement *a, uint64_t target,
                            bool last_time, cx_verdict *out)
{
  char *all;
  size_t size;
  calx_status *status = exchange(a, target, &all, &size);
  if (status == NULL) {
    cx_hosts_word said = compare(all, size, cx_board_count(target), out);
    cx_free(all);
    return said;
  }
  bool late = calx_status_code(status) == CALX_DEADLINE_EXCEEDED;
  if (late && !last_time) {
    calx_status_free(status);
    return CX_HOSTS_WAIT;
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
  return CX_HOSTS_DIFFER;
}

void cx_hosts_tell_end(int rank, uint64_t at, cx_board_state state,
                       const char *message)
{
  unsigned char value[END_HEAD + CX_BOARD_MESSAGE];
  cx_wire_put32(value, (uint32_t)rank);
  cx_wire_put64(value + 4, at);
  cx_wire_put32(value + 12, (uint32_t)state);
  snprintf((char *)value + END_HEAD, CX_BOARD_MESSAGE, "%s", message);
  cx_request r = { .op = CX_OP_END,
                   .value = (const char *)value,
                   .size = END_HEAD + strlen((char *)value + END_HEAD) };
  // Where nobody can be told, nobody waits any more either.
  calx_status_free(cx_client_call(cx_world.client, &r, NULL, NULL));
}

void cx_hosts_hear_end(const char *bytes, size_t size)
{
  const unsigned char *in = (const unsigned char *)bytes;
  if (size < END_HEAD || size >= END_HEAD + CX_BOARD_MESSAGE) return;
  uint32_t rank = cx_wire_get32(in), state = cx_wire_get32(in + 12);
  cx_lock(&cx_world.lock);
  cx_board *board = cx_world.board;
  if (board != NULL && rank < atomic_load(&board->ranks) &&
      (state == CX_RANK_ENDED || state == CX_RANK_FAILED) &&
      !cx_world_is_near((int)rank)) {
    char message[CX_BOARD_MESSAGE];
    memcpy(message, bytes + END_HEAD, size - END_HEAD);
    message[size - END_HEAD] = '\0';
    cx_board_tell_end(board, (int)rank, cx_wire_get64(in + 4),
                      (cx_board_state)state, message);
  }
  cx_unlock(&cx_world.lock);
}
