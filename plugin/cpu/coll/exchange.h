// coll/exchange: the hosts' reduced slices become one.
//
// One member of each host holds its host's result for the same slice. A small
// slice is sent whole to all other hosts, and each member combines all. A
// larger one is cut into one shard for each host; a member receives its shard
// from all others, combines it, and sends the result back. In both cases the
// hosts' shards are combined in the order of the hosts. So all get the same
// bits, for any type and region.
#ifndef CPU_COLL_EXCHANGE_H
#define CPU_COLL_EXCHANGE_H

#include "coll/segment.h"

typedef struct cpu_coll_exchange cpu_coll_exchange;

// With the `local_index`-th member of each other host. Slices have at most
// `max_bytes`.
calx_status *cpu_coll_exchange_new(cpu_coll_participant *participant,
                                   const cpu_coll_reducer *reducer,
                                   uint32_t local_index, size_t max_bytes,
                                   cpu_coll_exchange **out) CALX_MUST_USE;
void cpu_coll_exchange_free(cpu_coll_exchange *exchange);  // NULL is accepted

// Begins with the slice of chunk k = 0, 1, …; `data` is exchanged in place and
// must stay untouched until the end. At most CPU_COLL_STAGING_OUTS slices are
// under way.
calx_status *cpu_coll_exchange_begin(cpu_coll_exchange *exchange, int64_t k,
                                     void *data,
                                     int64_t elements) CALX_MUST_USE;
calx_status *cpu_coll_exchange_end(cpu_coll_exchange *exchange,
                                   int64_t k) CALX_MUST_USE;

#endif
