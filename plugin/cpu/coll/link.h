// coll/link: this process's connection to the processes of all hosts, by MPI.
//
// MPI is initialised once in a process and stays. A link is a client's use of
// it. No thread ever blocks in a call of MPI, which could not be ended:
// transfers are started and tested. A thread that waits makes progress for all
// transfers, one thread at a time. If no thread waits, a thread of the link
// does, so that data move while devices compute.
#ifndef CPU_COLL_LINK_H
#define CPU_COLL_LINK_H

#include <stdatomic.h>

#include "abi/calx_segment.h"
#include "base/status.h"
#include "coll/mpi_api.h"

typedef struct cpu_coll_link cpu_coll_link;

// The size limits of a transfer and of a message.
#define CPU_COLL_TRANSFER_BYTES ((size_t)1 << 20)
#define CPU_COLL_MESSAGE_BYTES ((size_t)1024)

// Bytes to or from a process. Transfers with one tag between two processes are
// matched in the order in which they are posted. The memory of `data` and of
// the transfer is the caller's, and belongs to MPI until `done`.
typedef struct cpu_coll_transfer {
  struct cpu_coll_transfer *next;
  void *data;
  size_t bytes;
  uint32_t process;
  int tag;
  bool sends;
  bool is_message;  // the link's own: `data` follows, and nobody waits for it
  atomic_bool done;
  cpu_coll_mpi_request request;
} cpu_coll_transfer;

// Called for each message that is received, by one thread at a time.
typedef void cpu_coll_message_fn(void *user, const void *message, size_t bytes);

typedef struct cpu_coll_link_options {
  uint32_t process, processes;
  int max_tag;  // of transfers
  int64_t timeout_ms;
  const calx_segment_head *job;
  cpu_coll_message_fn *on_message;
  void *user;
  // NULL, or returns when it was called in all processes.
  calx_status *(*meet)(const void *user);
  const void *meet_user;
  // Each process sends `own` to all others at the start; `all` receives them in
  // the order of the processes.
  const void *own;
  void *all;
  size_t own_bytes;
} cpu_coll_link_options;

// Waits for all processes.
calx_status *cpu_coll_link_open(const cpu_coll_link_options *options,
                                cpu_coll_link **out) CALX_MUST_USE;
// Waits some seconds for all processes, so that no message is lost. True: MPI
// still has transfers, and their memory must stay for as long as the process
// lives.
bool cpu_coll_link_close(cpu_coll_link *link);  // NULL is accepted

void cpu_coll_link_post(cpu_coll_link *link, cpu_coll_transfer *transfer);
// Copies the message.
void cpu_coll_link_send(cpu_coll_link *link, uint32_t process,
                        const void *message, size_t bytes);
// Makes progress, unless another thread does.
void cpu_coll_link_poll(cpu_coll_link *link);
// Between these calls a device waits for messages: the link's thread does not
// sleep unless other threads poll.
void cpu_coll_link_keep_polling(cpu_coll_link *link);
void cpu_coll_link_stop_polling(cpu_coll_link *link);
// A posted transfer is given up. From here on no transfer can be relied on;
// messages are still sent.
void cpu_coll_link_abandon(cpu_coll_link *link, const char *operation,
                           uint32_t index);
// Why no transfer can be relied on; NULL: they can.
calx_status *cpu_coll_link_error(cpu_coll_link *link) CALX_MUST_USE;
// Sleeps some milliseconds, or until a transfer is done after the wake word was
// read.
uint32_t cpu_coll_link_wake_word(cpu_coll_link *link);
void cpu_coll_link_sleep(cpu_coll_link *link, uint32_t wake_word);

#endif
