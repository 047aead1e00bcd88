// coll/mpi_shim: the table of mpi_api.h in terms of MPI; compiled once for each
// implementation.
//
// At the end of the process, Open MPI's mpirun treats a process that did not
// call MPI_Finalize as failed. MPICH's MPI_Finalize can hang for ever between
// hosts (openucx/ucx issue 8738), so it is not called. All processes have
// passed a barrier before, and MPICH's own launcher receives "finalize" by its
// protocol. A program that initialised MPI itself also finalises it.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/mpi_api.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(cpu_coll_mpi_request),
               "a request has room");

static MPI_Comm world;
static char message[MPI_MAX_ERROR_STRING];

static const char *error_text(int code)
{
  int length = 0;
  if (code == MPI_SUCCESS) return NULL;
  if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) {
    return "an error without a message";
  }
  for (char *c = message; *c != '\0'; c++) {
    if (*c == '\n') *c = ' ';
  }
  return message;
}

static void keep(cpu_coll_mpi_request *out, const MPI_Request *request)
{
  memcpy(out, request, sizeof *request);
}

// ---- the end ----------------------------------------------------------------

#ifdef OMPI_MAJOR_VERSION
static void leave(void)
{
  MPI_Finalize();
}
#else
static int launcher = -1;  // the socket of MPICH's own launcher

static void leave(void)
{
  static const char last[] = "cmd=finalize\n";
  char answer[256];
  if (write(launcher, last, sizeof last - 1) == (ssize_t)sizeof last - 1) {
    (void)!read(launcher, answer, sizeof answer);
  }
}
#endif

// PMI_FD belongs to MPICH's own launcher unless CALX_PMI_FD has the same value:
// calx then answers PMI itself.
static void plan_end(void)
{
#ifdef OMPI_MAJOR_VERSION
  atexit(leave);
#else
  const char *fd = getenv("PMI_FD"), *own = getenv("CALX_PMI_FD");
  if (fd == NULL || (own != NULL && strcmp(own, fd) == 0)) return;
  launcher = atoi(fd);
  atexit(leave);
#endif
}

// ---- the table --------------------------------------------------------------

static const char *init(void)
{
  int level = 0;
  const char *wrong =
      error_text(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
  if (wrong != NULL) return wrong;
  plan_end();
  world = MPI_COMM_WORLD;
  return level < MPI_THREAD_SERIALIZED ? "it was built without threads" : NULL;
}

// The program initialised MPI itself and may use it at the same time. A
// communicator of our own keeps messages apart.
static const char *join_in(void)
{
  int level = 0, over = 0;
  MPI_Finalized(&over);
  if (over) return "the program has ended it";
  const char *wrong = error_text(MPI_Query_thread(&level));
  if (wrong != NULL) return wrong;
  if (level < MPI_THREAD_MULTIPLE) {
    return "the program initialised it without MPI_THREAD_MULTIPLE";
  }
  return error_text(MPI_Comm_dup(MPI_COMM_WORLD, &world));
}

static const char *open_mpi(int *rank, int *size, int *max_tag)
{
  int found = 0, initialized = 0, *limit = NULL;
  MPI_Initialized(&initialized);
  const char *wrong = initialized ? join_in() : init();
  if (wrong != NULL) return wrong;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, rank);
  MPI_Comm_size(world, size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
  *max_tag = found && limit != NULL ? *limit : 32767;
  return NULL;
}

static const char *send_bytes(const void *data, int bytes, int to, int tag,
                              cpu_coll_mpi_request *out)
{
  MPI_Request request;
  const char *wrong =
      error_text(MPI_Isend(data, bytes, MPI_BYTE, to, tag, world, &request));
  keep(out, &request);
  return wrong;
}

static const char *receive_bytes(void *data, int bytes, int from, int tag,
                                 cpu_coll_mpi_request *out)
{
  MPI_Request request;
  const char *wrong = error_text(MPI_Irecv(data, bytes, MPI_BYTE,
                                           from < 0 ? MPI_ANY_SOURCE : from,
                                           tag, world, &request));
  keep(out, &request);
  return wrong;
}

static const char *gather_bytes(const void *data, void *all, int bytes,
                                cpu_coll_mpi_request *out)
{
  MPI_Request request;
  const char *wrong = error_text(MPI_Iallgather(
      data, bytes, MPI_BYTE, all, bytes, MPI_BYTE, world, &request));
  keep(out, &request);
  return wrong;
}

static const char *barrier(cpu_coll_mpi_request *out)
{
  MPI_Request request;
  const char *wrong = error_text(MPI_Ibarrier(world, &request));
  keep(out, &request);
  return wrong;
}

static const char *test(cpu_coll_mpi_request *in, bool *done, int *bytes)
{
  MPI_Request request;
  MPI_Status status;
  int flag = 0;
  memcpy(&request, in, sizeof request);
  const char *wrong = error_text(MPI_Test(&request, &flag, &status));
  keep(in, &request);
  *done = flag != 0;
  if (wrong == NULL && *done && bytes != NULL) {
    MPI_Get_count(&status, MPI_BYTE, bytes);
  }
  return wrong;
}

__attribute__((visibility("default"))) const cpu_coll_mpi_api *
cpu_coll_mpi_get_api(void)
{
  static const cpu_coll_mpi_api api = { .struct_size = sizeof api,
#ifdef OMPI_MAJOR_VERSION
                                        .flavour = "Open MPI",
#else
                                        .flavour = "MPICH",
#endif
                                        .open = open_mpi,
                                        .send = send_bytes,
                                        .receive = receive_bytes,
                                        .gather = gather_bytes,
                                        .barrier = barrier,
                                        .test = test };
  return &api;
}
