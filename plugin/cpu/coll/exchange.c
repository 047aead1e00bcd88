// coll/exchange: see exchange.h. Several slices are under way, each in one of
// two rounds.
//
// MPI matches the transfers of a channel in the order in which they are posted.
// So a slice begins its second round only after the slice before it.
#include "coll/exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "coll/remote.h"
#include "coll/state.h"

enum { LINE = 64, SMALL = 8192 };

typedef struct slice {
  unsigned char *data;     // the caller's
  unsigned char *scratch;  // shards of the other hosts, and the combined one
  int64_t n;               // elements
  bool small, combined, done;
  cpu_coll_transfer *transfers;  // [2 * hosts], of this round
  uint32_t n_transfers;
} slice;

struct cpu_coll_exchange {
  cpu_coll_participant *participant;
  cpu_coll_reducer reducer;
  uint32_t local_index;
  size_t size;          // bytes of an element
  int64_t first, next;  // the oldest that is not done; the next to begin
  const void **x;       // [hosts]
  slice slices[CPU_COLL_STAGING_OUTS];
  unsigned char *memory;
};

// ---- shards -----------------------------------------------------------------

// The elements of a slice that a host combines.
typedef struct host_shard {
  int64_t lo, n;
} host_shard;

static host_shard shard_of(const cpu_coll_exchange *x, const slice *s,
                           uint32_t host)
{
  if (s->small) return (host_shard){ 0, s->n };
  const int64_t hosts = x->participant->n_host_groups;
  const int64_t share = ((s->n + hosts - 1) / hosts + LINE - 1) / LINE * LINE;
  const int64_t lo = share * host < s->n ? share * host : s->n;
  return (host_shard){ lo, s->n - lo < share ? s->n - lo : share };
}

static unsigned char *data_of(const cpu_coll_exchange *x, const slice *s,
                              uint32_t host)
{
  return s->data + (size_t)shard_of(x, s, host).lo * x->size;
}

// Where another host's shard is received; for the own host: the combined one.
static unsigned char *scratch_of(const cpu_coll_exchange *x, const slice *s,
                                 uint32_t host)
{
  const host_shard own = shard_of(x, s, x->participant->own_host_group);
  return s->scratch + host * (size_t)own.n * x->size;
}

static void post(cpu_coll_exchange *x, slice *s, uint32_t host,
                 cpu_coll_channel channel, bool sends, void *data, int64_t n)
{
  if (n == 0) return;
  cpu_coll_transfer *t = &s->transfers[s->n_transfers++];
  *t = cpu_coll_remote_transfer(
      x->participant, x->participant->host_groups[host].members[x->local_index],
      channel, sends, data, (size_t)n * x->size);
  cpu_coll_link_post(x->participant->coll->link, t);
}

// Round 1: each host receives its shard from all others. Round 2: it sends them
// the combined one.
static void post_round(cpu_coll_exchange *x, slice *s, cpu_coll_channel channel)
{
  const uint32_t own = x->participant->own_host_group;
  const bool first = channel == CPU_COLL_CHANNEL_FIRST;
  const int64_t mine = shard_of(x, s, own).n;
  s->n_transfers = 0;
  for (uint32_t i = 0; i < x->participant->n_host_groups; i++) {
    if (i == own) continue;
    const int64_t theirs = shard_of(x, s, i).n;
    void *in = first ? scratch_of(x, s, i) : data_of(x, s, i);
    post(x, s, i, channel, false, in, first ? mine : theirs);
    void *out = data_of(x, s, first ? i : own);
    post(x, s, i, channel, true, out, first ? theirs : mine);
  }
}

static calx_status *combine(cpu_coll_exchange *x, slice *s)
{
  const uint32_t own = x->participant->own_host_group;
  const int64_t n = shard_of(x, s, own).n;
  unsigned char *sum = scratch_of(x, s, own);
  for (uint32_t i = 0; i < x->participant->n_host_groups; i++) {
    x->x[i] = i == own ? data_of(x, s, i) : scratch_of(x, s, i);
  }
  s->combined = true;
  if (n > 0) {
    CALX_TRY(cpu_coll_reduce(&x->reducer, x->x, x->participant->n_host_groups,
                             0, n, sum));
    memcpy(data_of(x, s, own), sum, (size_t)n * x->size);
  }
  if (s->small) {
    s->n_transfers = 0;
  } else {
    post_round(x, s, CPU_COLL_CHANNEL_SECOND);
  }
  return NULL;
}

static bool all_done(const slice *s)
{
  for (uint32_t i = 0; i < s->n_transfers; i++) {
    if (!atomic_load(&s->transfers[i].done)) return false;
  }
  return true;
}

// Advances all slices whose transfers are done, oldest first. *moved: any did.
static calx_status *advance(cpu_coll_exchange *x, bool *moved)
{
  bool in_order = true;
  for (int64_t k = x->first; k < x->next; k++) {
    slice *s = &x->slices[k % CPU_COLL_STAGING_OUTS];
    if (s->done) continue;
    const bool ready = all_done(s);
    if (ready && s->combined) {
      s->done = *moved = true;
    } else if (ready && in_order) {
      *moved = true;
      CALX_TRY(combine(x, s));
    }
    in_order = in_order && s->combined;
  }
  while (x->first < x->next &&
         x->slices[x->first % CPU_COLL_STAGING_OUTS].done) {
    x->first++;
  }
  return NULL;
}

// ---- interface -------------------------------------------------------------

calx_status *cpu_coll_exchange_new(cpu_coll_participant *p,
                                   const cpu_coll_reducer *r,
                                   uint32_t local_index, size_t max_bytes,
                                   cpu_coll_exchange **out)
{
  const size_t hosts = p->n_host_groups;
  *out = NULL;
  cpu_coll_exchange *x = cx_calloc(1, sizeof *x);
  if (x == NULL) return cx_out_of_memory();
  x->participant = p;
  x->reducer = *r;
  x->reducer.from = r->elem;
  x->local_index = local_index;
  x->size = cx_hlo_elem_bytes(r->elem);
  // A small slice is received whole from each host, a large one in shards.
  const size_t large = max_bytes / hosts + LINE * x->size + x->size;
  const size_t small = max_bytes < SMALL ? max_bytes : SMALL;
  const size_t scratch =
      (hosts * (large > small ? large : small) + LINE) / LINE * LINE;
  const size_t transfers = 2 * hosts * sizeof(cpu_coll_transfer);
  x->x = cx_alloc(hosts * sizeof *x->x);
  x->memory = cx_calloc(CPU_COLL_STAGING_OUTS, scratch + transfers);
  if (x->x == NULL || x->memory == NULL) {
    cpu_coll_exchange_free(x);
    return cx_out_of_memory();
  }
  unsigned char *at = x->memory + CPU_COLL_STAGING_OUTS * transfers;
  for (size_t i = 0; i < CPU_COLL_STAGING_OUTS; i++) {
    x->slices[i].transfers =
        (cpu_coll_transfer *)(void *)(x->memory + i * transfers);
    x->slices[i].scratch = at + i * scratch;
  }
  *out = x;
  return NULL;
}

void cpu_coll_exchange_free(cpu_coll_exchange *x)
{
  if (x == NULL) return;
  if (x->first == x->next) {
    cx_free(x->memory);
  } else {
    // MPI may still write to it.
    cpu_coll_remote_abandon(x->participant);
  }
  cx_free(x->x);
  cx_free(x);
}

calx_status *cpu_coll_exchange_begin(cpu_coll_exchange *x, int64_t k,
                                     void *data, int64_t elements)
{
  bool moved = false;
  slice *s = &x->slices[k % CPU_COLL_STAGING_OUTS];
  s->data = data;
  s->n = elements;
  s->small = (size_t)elements * x->size <= SMALL;
  s->combined = s->done = false;
  x->next = k + 1;
  post_round(x, s, CPU_COLL_CHANNEL_FIRST);
  cpu_coll_link_poll(x->participant->coll->link);
  return advance(x, &moved);
}

calx_status *cpu_coll_exchange_end(cpu_coll_exchange *x, int64_t k)
{
  for (cpu_coll_remote_wait wait = { .participant = x->participant };;) {
    bool moved = false;
    cpu_coll_remote_wait_begin(&wait);
    calx_status *status = advance(x, &moved);
    if (x->first > k) return status;
    if (status == NULL) status = cpu_coll_remote_wait_end(&wait, moved);
    if (status != NULL) return status;
  }
}
