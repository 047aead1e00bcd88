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

typedef struct process_worker {
  const calx_dataset *dataset;
  cx_data_process_shared *shared;
  const cx_data_process_layout *layout;
  const void *owner;            // of the iteration; NULL: none is begun
  cx_data_iteration iteration;  // through an iterable dataset
} process_worker;

static void sample_at(const process_worker *w, int64_t i, void **out_fields)
{
  for (size_t f = 0; f < w->dataset->n_fields; f++) {
    out_fields[f] = (char *)w->shared + w->layout->fields[f] +
                    (size_t)i * w->dataset->field_bytes[f];
  }
}

static calx_status *with_scope(calx_status *status)
{
  return cx_status_first(status, calx_scope_take_error());
}

static calx_status *make_samples(process_worker *w)
{
  cx_data_process_shared *s = w->shared;
  const int64_t *indices =
      (const int64_t *)(void *)((char *)s + w->layout->indices);
  for (int64_t i = 0; i < s->count && !atomic_load(&s->cut); i++) {
    void *fields[CALX_MAX_FIELDS];
    sample_at(w, i, fields);
    atomic_store(&s->at, indices[i]);
    CALX_TRY(with_scope(calx_dataset_get(w->dataset, indices[i], fields)));
  }
  return NULL;
}

static calx_status *make_next(process_worker *w)
{
  cx_data_process_shared *s = w->shared;
  int64_t most = s->count;
  s->count = 0;
  s->over = false;
  if (w->owner != NULL && w->owner != s->owner) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "loader: another loader reads the iterable dataset in the "
                    "same worker processes; end its epoch first");
  }
  w->owner = s->owner;
  while (s->count < most && !s->over && !atomic_load(&s->cut)) {
    void *fields[CALX_MAX_FIELDS];
    sample_at(w, s->count, fields);
    CALX_TRY(with_scope(cx_data_iteration_next(w->dataset, &w->iteration,
                                               &s->info, fields, &s->over)));
    if (!s->over) s->count++;
  }
  return NULL;
}

static calx_status *serve(process_worker *w)
{
  switch (w->shared->request) {
    case CX_DATA_PROCESS_SAMPLES: return make_samples(w);
    case CX_DATA_PROCESS_NEXT: return make_next(w);
    case CX_DATA_PROCESS_END: break;
  }
  if (w->owner == w->shared->owner) {
    cx_data_iteration_end(w->dataset, &w->iteration);
    w->owner = NULL;
  }
  return with_scope(NULL);
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
  process_worker w = { dataset, shared, layout, NULL, { 0 } };
  while (read_byte(socket)) {
    cx_data_worker_set(&shared->info);
    cx_data_epoch = shared->info.epoch;
    reply(shared, serve(&w));
    if (!write_byte(socket)) break;
  }
  fflush(stdout);
  _exit(0);
}
