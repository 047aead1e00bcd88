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

enum { SLICE_MS = 200 };

static bool read_key(const char **list, size_t *left, cx_world_rank_key *out)
{
  if (!cx_world_exchange_next(list, left, out, sizeof *out)) return false;
  out->what[sizeof out->what - 1] = '\0';
  return true;
}

// Compares the groups with the first one. The result is the same on all hosts.
static cx_world_hosts_result compare(const char *all, size_t size,
                                     uint64_t target, cx_world_outcome *out)
{
  cx_world_rank_key first, other;
  bool valid = read_key(&all, &size, &first);
  for (int i = 1; i < cx_world_global.groups && valid; i++) {
    valid = read_key(&all, &size, &other);
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
  char name[96];
  cx_world_rank_key own = cx_world_rank_key_of(a);
  snprintf(name, sizeof name, "launch %llu.%llu between hosts",
           (unsigned long long)cx_world_epoch(target) + 1,
           (unsigned long long)cx_world_agreement_count(target));
  CALX_TRY(cx_store_client_request(CX_STORE_OP_EXCHANGE, name, &r));
  r.a = cx_world_global.group;
  r.b = cx_world_global.groups;
  r.value = (const char *)&own;
  r.size = sizeof own;
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
