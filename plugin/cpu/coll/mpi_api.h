// coll/mpi_api: what the engine uses of MPI, as a table.
//
// MPI's implementations have no common binary interface, so one source is
// compiled against each, into a shared object of its own that is loaded only
// where there are several hosts. All calls but the first are of one thread, and
// none of them waits. Data are bytes.
#ifndef CPU_COLL_MPI_API_H
#define CPU_COLL_MPI_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Room for any implementation's request.
typedef struct cpu_coll_mpi_request {
  _Alignas(void *) unsigned char room[sizeof(void *)];
} cpu_coll_mpi_request;

// They return what went wrong, NULL: nothing. The text lives until the next
// call.
typedef struct cpu_coll_mpi_api {
  size_t struct_size;
  const char *flavour;
  // Initialises MPI. Waits for the other processes: nothing else does.
  const char *(*open)(int *rank, int *size, int *max_tag);
  const char *(*send)(const void *data, int bytes, int to, int tag,
                      cpu_coll_mpi_request *out);
  // From < 0: from anybody.
  const char *(*receive)(void *data, int bytes, int from, int tag,
                         cpu_coll_mpi_request *out);
  // All processes' `bytes`, in their order.
  const char *(*gather)(const void *data, void *all, int bytes,
                        cpu_coll_mpi_request *out);
  const char *(*barrier)(cpu_coll_mpi_request *out);
  // `bytes` (may be NULL): of what was received.
  const char *(*test)(cpu_coll_mpi_request *request, bool *done, int *bytes);
} cpu_coll_mpi_api;

// Exported by the shared objects as "cpu_coll_mpi_get_api".
const cpu_coll_mpi_api *cpu_coll_mpi_get_api(void);

#endif
