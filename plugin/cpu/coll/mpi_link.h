// coll/mpi_link: this process among those of all hosts.
//
// MPI is initialised once in a process and stays; a link is a client's use of
// it. Nobody ever sits in a call of MPI, which could not be ended: transfers
// are started and tested, in turns. Whoever waits for something takes turns,
// one thread at a time; where nobody does, a thread of the link does, so that
// data move while devices compute.
#ifndef CPU_COLL_MPI_LINK_H
#define CPU_COLL_MPI_LINK_H

#include <stdatomic.h>

#include "abi/calx_window.h"
#include "base/status.h"
#include "coll/mpi_api.h"

typedef struct cpu_coll_mpi_link cpu_coll_mpi_link;

// The most bytes of a transfer, and of a message.
#define CPU_COLL_MPI_TRANSFER ((size_t)1 << 20)
#define CPU_COLL_MPI_MESSAGE ((size_t)1024)

// Bytes on their way to or from a process. Those of one tag between two
// processes are matched in the order they are posted in.
typedef struct cpu_coll_mpi_transfer {
  struct cpu_coll_mpi_transfer *next;  // the link's, until it is done
  void *data;
  size_t bytes;
  uint32_t process;
  int tag;
  bool sends;
  atomic_bool done;
  cpu_coll_mpi_request request;
} cpu_coll_mpi_transfer;

// Called for each message that came, by one thread at a time.
typedef void cpu_coll_mpi_hear(void *user, const void *message, size_t bytes);

typedef struct cpu_coll_mpi_options {
  uint32_t process, processes;
  int most_tag;  // that transfers will use
  int64_t timeout_ms;
  const calx_window *news;
  cpu_coll_mpi_hear *hear;
  void *user;
  // What all processes tell each other at first: `told`, of told_bytes; and of
  // all, in their order.
  const void *told;
  void *all;
  size_t told_bytes;
} cpu_coll_mpi_options;

// Waits for all processes.
calx_status *cpu_coll_mpi_link_open(const cpu_coll_mpi_options *options,
                                    cpu_coll_mpi_link **out) CALX_MUST_USE;
// Where messages still go it waits some seconds for all processes, so that
// nothing that was sent is lost. True: there are transfers that MPI was given
// and is not done with; their memory must stay for as long as the process
// lives.
bool cpu_coll_mpi_link_close(cpu_coll_mpi_link *link);  // NULL is accepted

void cpu_coll_mpi_link_post(cpu_coll_mpi_link *link,
                            cpu_coll_mpi_transfer *transfer);
// Copies the message.
void cpu_coll_mpi_link_tell(cpu_coll_mpi_link *link, uint32_t process,
                            const void *message, size_t bytes);
// A turn, unless another thread has it.
void cpu_coll_mpi_link_poll(cpu_coll_mpi_link *link);
// Between these somebody waits for messages: the link's thread does not sleep
// while nobody else takes turns.
void cpu_coll_mpi_link_hurry(cpu_coll_mpi_link *link);
void cpu_coll_mpi_link_relax(cpu_coll_mpi_link *link);
// A transfer that was posted will not be waited for: from here on there is none
// that one could rely on. Messages still go.
void cpu_coll_mpi_link_abandon(cpu_coll_mpi_link *link, const char *operation,
                               uint32_t index);
// Why no transfer can be relied on; NULL: they can.
calx_status *cpu_coll_mpi_link_error(cpu_coll_mpi_link *link) CALX_MUST_USE;
// Sleeps for a moment, or until a transfer is done that was not when the bell
// was read.
uint32_t cpu_coll_mpi_link_bell(cpu_coll_mpi_link *link);
void cpu_coll_mpi_link_sleep(cpu_coll_mpi_link *link, uint32_t bell);

#endif
