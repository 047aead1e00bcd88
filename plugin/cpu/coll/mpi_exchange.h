// coll/mpi_exchange: slices that each host has combined become one.
//
// Members of the hosts, one of each, hold the same slice. A small one goes to
// all the others, and everybody combines all. Of a larger one everybody gets
// one part of all, combines it, and gives it back to the others. Both ways the
// hosts' parts are combined in the hosts' order, so all get the same bits, of
// any type and with any region.
#ifndef CPU_COLL_MPI_EXCHANGE_H
#define CPU_COLL_MPI_EXCHANGE_H

#include "coll/window.h"

typedef struct cpu_coll_mpi_exchange cpu_coll_mpi_exchange;

// With member number `near` of each other host of the visit's group. Slices
// are of at most `most` bytes.
calx_status *cpu_coll_mpi_exchange_new(
    cpu_coll_visit *visit, const cpu_coll_reducer *reducer, uint32_t near,
    size_t most, cpu_coll_mpi_exchange **out) CALX_MUST_USE;
void cpu_coll_mpi_exchange_free(
    cpu_coll_mpi_exchange *exchange);  // NULL is accepted

// Begins with piece k = 0, 1, …; `data` is exchanged in place, and is the
// exchange's until its end. CPU_COLL_OUTS at most are under way.
calx_status *cpu_coll_mpi_exchange_begin(cpu_coll_mpi_exchange *exchange,
                                         int64_t k, void *data,
                                         int64_t elements) CALX_MUST_USE;
calx_status *cpu_coll_mpi_exchange_end(cpu_coll_mpi_exchange *exchange,
                                       int64_t k) CALX_MUST_USE;

#endif
