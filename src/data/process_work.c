// data/process_work: a worker process's side.
//
// It was forked from a process with one thread, so everything in its memory is
// as it was there, and it may use the library. It ends with _exit(): what the
// program registered for its own end is not run here.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/epoch.h"
#include "data/iterable.h"
#include "data/process_shared.h"

static calx_status *make_samples(const calx_dataset *dataset,
                                 cx_data_process_shared *shared,
                                 const cx_data_process_layout *layout)
{
  char *base = (char *)shared;
  const int64_t *indices = (const int64_t *)(void *)(base + layout->indices);
  for (int64_t i = 0; i < shared->count && !atomic_load(&shared->cut); i++) {
    void *fields[CALX_MAX_FIELDS];
    for (size_t f = 0; f < dataset->n_fields; f++) {
      fields[f] =
          base + layout->fields[f] + (size_t)i * dataset->field_bytes[f];
    }
    atomic_store(&shared->at, indices[i]);
    calx_status *status = calx_dataset_get(dataset, indices[i], fields);
    calx_status *pinned = calx_scope_take_error();
    status = cx_status_first(status, pinned);
    if (status != NULL) return status;
  }
  return NULL;
}

static void reply(cx_data_process_shared *shared, calx_status *status)
{
  shared->code = calx_status_code(status);
  snprintf(shared->message, sizeof shared->message, "%s",
           status != NULL ? calx_status_message(status) : "");
  calx_status_free(status);
}

static bool read_byte(int socket)
{
  char byte;
  ssize_t n;
  do {
    n = read(socket, &byte, 1);
  } while (n < 0 && errno == EINTR);
  return n == 1;
}

static bool write_byte(int socket)
{
  ssize_t n;
  do {
    n = write(socket, "d", 1);
  } while (n < 0 && errno == EINTR);
  return n == 1;
}

void cx_data_process_work(int socket, const calx_dataset *dataset,
                          cx_data_process_shared *shared,
                          const cx_data_process_layout *layout)
{
  // A terminal's interrupt goes to all of its processes: the loader's own
  // decides what it means, and its end is seen here.
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  calx_status_free(calx_scope_take_error());  // the loader's, not a sample's
  while (read_byte(socket)) {
    cx_data_worker_set(&shared->info);
    cx_data_epoch = shared->info.epoch;
    reply(shared, make_samples(dataset, shared, layout));
    if (!write_byte(socket)) break;
  }
  fflush(stdout);
  _exit(0);
}
