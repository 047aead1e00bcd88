// coll/mpi_exchange: slices that each host has combined become one.
//
// Members of the hosts, one of each, hold the same slice. A small one goes to
// all the others, and everybody combines all. Of a larger one everybody gets
// one part of all, combines it, and gives it back to the others. Both ways the
// hosts' parts are combined in the hosts' order, so all get the same bits, of
// any type and with any region.
#ifndef CX_COLL_MPI_EXCHANGE_H
#define CX_COLL_MPI_EXCHANGE_H

#include "coll/window.h"

typedef struct cx_mpi_exchange cx_mpi_exchange;

// With member number `near` of each other host of the visit's group. Slices
// are of at most `most` bytes.
calx_status *cx_mpi_exchange_new(cx_coll_visit *visit,
                                 const cx_coll_reducer *reducer, uint32_t near,
                                 size_t most,
                                 cx_mpi_exchange **out) CALX_MUST_USE;
void cx_mpi_exchange_free(cx_mpi_exchange *exchange);  // NULL is accepted

// Begins with piece k = 0, 1, …; `data` is exchanged in place, and is the
// exchange's until its end. CX_COLL_OUTS at most are under way.
calx_status *cx_mpi_exchange_begin(cx_mpi_exchange *exchange, int64_t k,
                                   void *data, int64_t elements) CALX_MUST_USE;
calx_status *cx_mpi_exchange_end(cx_mpi_exchange *exchange,
                                 int64_t k) CALX_MUST_USE;

#endif
