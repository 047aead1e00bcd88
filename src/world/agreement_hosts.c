// world/agreement_hosts: one exchange through the store, of one rank per group.
//
// The rank cannot watch the shared memory meanwhile, so each call waits at most
// SLICE_MS. A repeated call joins the same exchange again.
#include "world/agreement_hosts.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/client.h"
#include "world/outcome.h"
#include "world/state.h"

// A group's value: its rank (4 bytes), its key (16 bytes), and `what`.
enum { SLICE_MS = 200, HEAD = 20 };

static bool read_side(const char **list, size_t *left, cx_world_side *out,
                      char what[CX_WORLD_OPERATION_BYTES])
{
  const char *value;
  size_t size;
  if (!cx_store_wire_next(list, left, &value, &size) || size < HEAD ||
      size >= HEAD + CX_WORLD_OPERATION_BYTES) {
    return false;
  }
  const unsigned char *in = (const unsigned char *)value;
  cx_store_wire_copy_text(value + HEAD, size - HEAD, what,
                          CX_WORLD_OPERATION_BYTES);
  *out = (cx_world_side){ (int)cx_store_wire_get32(in),
                          what,
                          { cx_store_wire_get64(in + 4),
                            cx_store_wire_get64(in + 12) } };
  return true;
}

// Compares the groups with the first one. The result is the same on all hosts.
static cx_world_hosts_result compare(const char *all, size_t size,
                                     uint64_t target, cx_world_outcome *out)
{
  char what[2][CX_WORLD_OPERATION_BYTES];
  cx_world_side first, other;
  bool valid = read_side(&all, &size, &first, what[0]);
  for (int i = 1; i < cx_world_global.groups && valid; i++) {
    valid = read_side(&all, &size, &other, what[1]);
    if (!valid || cx_hash_equal(first.key, other.key)) continue;
    cx_world_outcome_differs(out, target, &first, &other);
    return CX_WORLD_HOSTS_FAIL;
  }
  if (valid) return CX_WORLD_HOSTS_AGREE;
  cx_world_outcome_set(out, CALX_DATA_LOSS,
                       "the store's reply with the hosts' keys is damaged");
  return CX_WORLD_HOSTS_FAIL;
}

static calx_status *exchange(const cx_world_proposal *a, uint64_t target,
                             char **out, size_t *out_size)
{
  cx_store_request r;
  char name[96], value[HEAD + CX_WORLD_OPERATION_BYTES];
  unsigned char *head = (unsigned char *)value;
  snprintf(name, sizeof name, "launch %llu.%llu between hosts",
           (unsigned long long)cx_world_epoch(target) + 1,
           (unsigned long long)cx_world_agreement_count(target));
  CALX_TRY(cx_store_client_request(CX_STORE_OP_EXCHANGE, name, &r));
  cx_store_wire_put32(head, (uint32_t)a->rank);
  cx_store_wire_put64(head + 4, a->key.low);
  cx_store_wire_put64(head + 12, a->key.high);
  snprintf(value + HEAD, CX_WORLD_OPERATION_BYTES, "%s", a->what);
  r.a = cx_world_global.group;
  r.b = cx_world_global.groups;
  r.value = value;
  r.size = HEAD + strlen(value + HEAD);
  r.wait_ms = SLICE_MS;
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
    cx_world_hosts_result result = compare(all, size, target, out);
    cx_free(all);
    return result;
  }
  cx_world_hosts_result result = CX_WORLD_HOSTS_FAIL;
  if (calx_status_code(status) != CALX_DEADLINE_EXCEEDED) {
    cx_world_outcome_set(out, calx_status_code(status),
                         cx_status_sentence(status));
  } else if (last_time) {
    cx_world_outcome_late(out, a, target, "the ranks of other hosts");
  } else {
    result = CX_WORLD_HOSTS_WAIT;
  }
  calx_status_free(status);
  return result;
}
