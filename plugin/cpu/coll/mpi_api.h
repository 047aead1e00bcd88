// coll/mpi_api: the functions of MPI that the engine uses, as a table.
//
// Implementations of MPI have no common binary interface. So one source is
// compiled against each of them, into a shared object that is loaded only if
// there are several hosts. One thread at a time calls these functions, and only
// open() blocks. Data are bytes.
#ifndef CPU_COLL_MPI_API_H
#define CPU_COLL_MPI_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Large enough for the request of any implementation.
typedef struct cpu_coll_mpi_request {
  _Alignas(void *) unsigned char room[sizeof(void *)];
} cpu_coll_mpi_request;

// Functions return an error message, which is valid until the next call; NULL:
// success.
typedef struct cpu_coll_mpi_api {
  size_t struct_size;
  const char *flavour;
  // Initialises MPI, which waits for the other processes.
  const char *(*open)(int *rank, int *size, int *max_tag);
  const char *(*send)(const void *data, int bytes, int to, int tag,
                      cpu_coll_mpi_request *out);
  // from < 0: from any process.
  const char *(*receive)(void *data, int bytes, int from, int tag,
                         cpu_coll_mpi_request *out);
  // `all` receives `bytes` of each process, in their order.
  const char *(*gather)(const void *data, void *all, int bytes,
                        cpu_coll_mpi_request *out);
  const char *(*barrier)(cpu_coll_mpi_request *out);
  // *bytes (may be NULL): how many were received.
  const char *(*test)(cpu_coll_mpi_request *request, bool *done, int *bytes);
} cpu_coll_mpi_api;

// Exported by the shared objects as "cpu_coll_mpi_get_api".
const cpu_coll_mpi_api *cpu_coll_mpi_get_api(void);

#endif
