// data/processes: the loader's side of its worker processes.
//
// A process is forked from one thread only: a lock that another thread held in
// that moment would stay locked in the child for ever. The check is made, not
// left to the caller.
//
// A child has the connections of all others of this process, too, and closes
// them: else a connection would outlive the process that it leads to.
#include "data/processes.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/thread.h"
#include "data/process_shared.h"

enum {
  LOOK_MS = 50,       // how often a thread that waits checks whether it is cut
  PATIENCE_MS = 2000  // for a process to end, before it is killed
};

typedef struct worker_process {
  cx_mutex lock;  // a batch at a time
  pid_t pid;      // 0: it has ended
  int socket;
  cx_data_process_shared *shared;
  char why[160];  // it has ended
} worker_process;

struct cx_data_processes {
  atomic_int holders;
  cx_data_processes_options options;
  cx_data_process_layout layout;
  worker_process *workers;
  int n_workers;            // that were made
  cx_data_processes *next;  // of all that are open
};

static cx_data_processes *all;  // guarded by all_lock
static cx_mutex all_lock = CX_MUTEX_INIT;

// ---- one process ------------------------------------------------------------

// Waits for its end, which is certain, and keeps what it was.
static void bury(worker_process *w, int id)
{
  int status = 0;
  pid_t got;
  do {
    got = waitpid(w->pid, &status, 0);
  } while (got < 0 && errno == EINTR);
  if (got == w->pid && WIFSIGNALED(status)) {
    const char *name = strsignal(WTERMSIG(status));
    snprintf(w->why, sizeof w->why,
             "worker process %d (pid %ld) was ended by signal %d (%s)", id,
             (long)w->pid, WTERMSIG(status), name != NULL ? name : "?");
  } else if (got == w->pid) {
    snprintf(w->why, sizeof w->why,
             "worker process %d (pid %ld) ended with exit status %d", id,
             (long)w->pid, WEXITSTATUS(status));
  } else {
    snprintf(w->why, sizeof w->why, "worker process %d (pid %ld) has ended", id,
             (long)w->pid);
  }
  w->pid = 0;
  close(w->socket);
  w->socket = -1;
}

// Ends a process that is asked for nothing.
static void end_process(worker_process *w, int id)
{
  if (w->pid == 0) return;
  shutdown(w->socket, SHUT_RDWR);
  for (int waited = 0; waited < PATIENCE_MS; waited += LOOK_MS / 10) {
    siginfo_t info = { 0 };
    int code = waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (code != 0 || info.si_pid != 0) break;
    poll(NULL, 0, LOOK_MS / 10);
    if (waited + LOOK_MS / 10 >= PATIENCE_MS) kill(w->pid, SIGKILL);
  }
  bury(w, id);
}

static void close_others(void)
{
  for (cx_data_processes *p = all; p != NULL; p = p->next) {
    for (int i = 0; i < p->n_workers; i++) {
      if (p->workers[i].socket >= 0) close(p->workers[i].socket);
    }
  }
}

static calx_status *fork_process(cx_data_processes *p, worker_process *w)
{
  int pair[2];
  void *shared = mmap(NULL, p->layout.bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shared == MAP_FAILED) return cx_out_of_memory();
  w->shared = shared;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return cx_file_failed("connect", "a worker process");
  }
  // Else the child would write what waits in its copy of the buffers.
  fflush(stdout);
  fflush(stderr);
  pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    close_others();
    all = NULL;
    cx_unlock(&all_lock);  // this thread has it, here too
    cx_data_process_work(pair[1], p->options.dataset, w->shared, &p->layout);
  }
  close(pair[1]);
  if (pid < 0) {
    calx_status *status = cx_file_failed("fork", "a worker process");
    close(pair[0]);
    return status;
  }
  w->pid = pid;
  w->socket = pair[0];
  return NULL;
}

// ---- a batch ----------------------------------------------------------------

static calx_status *has_ended(worker_process *w, cx_data_remote *b)
{
  if (w->pid != 0) {
    bury(w, b->info.id);
    b->bad_sample = atomic_load(&w->shared->at);
  }
  return cx_error(CALX_ABORTED, "%s; a loader does not start it again", w->why);
}

static calx_status *time_out(const cx_data_processes *p, worker_process *w,
                             cx_data_remote *b)
{
  long pid = (long)w->pid;
  b->bad_sample = atomic_load(&w->shared->at);
  kill(w->pid, SIGKILL);
  bury(w, b->info.id);
  return cx_error(CALX_DEADLINE_EXCEEDED,
                  "worker process %d (pid %ld) made no batch in %g s, and was "
                  "ended",
                  b->info.id, pid, p->options.timeout);
}

// Waits for the reply. False: the process has ended.
static bool await(const worker_process *w, const cx_data_remote *b,
                  int64_t deadline, bool *out_late)
{
  for (;;) {
    struct pollfd fd = { .fd = w->socket, .events = POLLIN };
    int n = poll(&fd, 1, LOOK_MS);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) {
      char byte;
      ssize_t got = recv(w->socket, &byte, 1, 0);
      if (got == 1) return true;
      if (got == 0 || errno != EINTR) return false;
    }
    if (atomic_load(b->cut)) atomic_store(&w->shared->cut, true);
    *out_late = deadline != 0 && cx_now_ms() > deadline;
    if (*out_late) return true;
  }
}

static void ask(const cx_data_processes *p, const worker_process *w,
                const cx_data_remote *b)
{
  cx_data_process_shared *s = w->shared;
  int64_t *indices = (int64_t *)(void *)((char *)s + p->layout.indices);
  atomic_store(&s->cut, false);
  atomic_store(&s->at, -1);
  s->request =
      b->owner != NULL ? CX_DATA_PROCESS_NEXT : CX_DATA_PROCESS_SAMPLES;
  s->owner = b->owner;
  s->info = b->info;
  s->count = b->count;
  for (int64_t i = 0; b->owner == NULL && i < b->count; i++) {
    indices[i] = b->order != NULL ? b->order[b->first + i] : b->first + i;
  }
}

static calx_status *take_reply(const cx_data_processes *p,
                               const worker_process *w, cx_data_remote *b)
{
  const cx_data_process_shared *s = w->shared;
  const calx_dataset *dataset = p->options.dataset;
  if (s->code != CALX_OK) {
    b->bad_sample = atomic_load(&s->at);
    // The message has its call site.
    return cx_error_at(NULL, s->code, "%.*s", (int)sizeof s->message - 1,
                       s->message);
  }
  b->over = s->over;
  if (b->owner != NULL) b->count = s->count;
  for (size_t f = 0; f < dataset->n_fields; f++) {
    size_t bytes = (size_t)b->count * dataset->field_bytes[f];
    if (bytes == 0) continue;
    memcpy(b->fields[f], (const char *)s + p->layout.fields[f], bytes);
  }
  return NULL;
}

static calx_status *fill_locked(cx_data_processes *p, worker_process *w,
                                cx_data_remote *b)
{
  if (w->pid == 0) return has_ended(w, b);
  ask(p, w, b);
  int64_t limit = (int64_t)(1000 * p->options.timeout);
  int64_t deadline = p->options.timeout > 0 ? cx_now_ms() + limit : 0;
  bool late = false;
  bool alive = send(w->socket, "g", 1, MSG_NOSIGNAL) == 1 &&
               await(w, b, deadline, &late);
  if (!alive) return has_ended(w, b);
  return late ? time_out(p, w, b) : take_reply(p, w, b);
}

calx_status *cx_data_processes_fill(cx_data_processes *p, cx_data_remote *b)
{
  worker_process *w = &p->workers[b->info.id % p->n_workers];
  b->bad_sample = -1;
  cx_lock(&w->lock);
  calx_status *status = fill_locked(p, w, b);
  cx_unlock(&w->lock);
  return status;
}

void cx_data_processes_end(cx_data_processes *p, int id, const void *owner)
{
  worker_process *w = &p->workers[id % p->n_workers];
  const atomic_bool cut = false;
  const cx_data_remote b = { .cut = &cut };
  bool late = false;
  cx_lock(&w->lock);
  if (w->pid != 0) {
    w->shared->request = CX_DATA_PROCESS_END;
    w->shared->owner = owner;
    int64_t deadline = cx_now_ms() + PATIENCE_MS;
    bool alive = send(w->socket, "g", 1, MSG_NOSIGNAL) == 1 &&
                 await(w, &b, deadline, &late);
    if (late) kill(w->pid, SIGKILL);
    if (late || !alive) bury(w, id);
  }
  cx_unlock(&w->lock);
}

// ---- life -------------------------------------------------------------------

// Threads of this process; -1: the system does not tell.
static int count_threads(void)
{
  DIR *folder = opendir("/proc/self/task");
  if (folder == NULL) return -1;
  int n = 0;
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    n += e->d_name[0] != '.';
  }
  closedir(folder);
  return n;
}

static calx_status *check_threads(void)
{
  int n = count_threads();
  if (n == 1) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "loader: worker processes are forked when the loader is "
                  "made, from a process with one thread; this one has %d: make "
                  "the loader before a device is used, before calx_launch and "
                  "before any other thread, or use .num_workers, threads",
                  n);
}

static bool lay_out(const cx_data_processes_options *o,
                    cx_data_process_layout *out)
{
  size_t at = sizeof(cx_data_process_shared), bytes;
  bool fits = cx_mul_size((size_t)o->batch_size, sizeof(int64_t), &bytes);
  out->indices = at + (CX_DATA_PROCESS_ALIGNED - at % CX_DATA_PROCESS_ALIGNED);
  fits = fits && cx_add_size(out->indices, bytes, &at);
  for (size_t f = 0; fits && f < o->dataset->n_fields; f++) {
    fits = cx_add_size(at, CX_DATA_PROCESS_ALIGNED, &at);
    at -= at % CX_DATA_PROCESS_ALIGNED;
    out->fields[f] = at;
    fits = fits &&
           cx_mul_size((size_t)o->batch_size, o->dataset->field_bytes[f],
                       &bytes) &&
           cx_add_size(at, bytes, &at);
  }
  out->bytes = at;
  return fits;
}

static calx_status *open_all(cx_data_processes *p)
{
  CALX_TRY(check_threads());
  if (!lay_out(&p->options, &p->layout)) return cx_out_of_memory();
  p->workers = cx_calloc((size_t)p->options.count, sizeof *p->workers);
  if (p->workers == NULL) return cx_out_of_memory();
  for (int i = 0; i < p->options.count; i++) {
    worker_process *w = &p->workers[i];
    cx_mutex_init(&w->lock);
    w->socket = -1;
    p->n_workers = i + 1;
    CALX_TRY(fork_process(p, w));
  }
  return NULL;
}

calx_status *cx_data_processes_open(const cx_data_processes_options *options,
                                    cx_data_processes **out)
{
  cx_data_processes *p = cx_calloc(1, sizeof *p);
  *out = NULL;
  if (p == NULL) return cx_out_of_memory();
  atomic_init(&p->holders, 1);
  p->options = *options;
  cx_lock(&all_lock);
  p->next = all;
  all = p;
  calx_status *status = open_all(p);
  cx_unlock(&all_lock);
  if (status != NULL) {
    cx_data_processes_release(p);
    return status;
  }
  *out = p;
  return NULL;
}

cx_data_processes *cx_data_processes_hold(cx_data_processes *p)
{
  if (p != NULL) atomic_fetch_add(&p->holders, 1);
  return p;
}

void cx_data_processes_release(cx_data_processes *p)
{
  if (p == NULL || atomic_fetch_sub(&p->holders, 1) != 1) return;
  cx_lock(&all_lock);
  cx_data_processes **at = &all;
  while (*at != p) at = &(*at)->next;
  *at = p->next;
  cx_unlock(&all_lock);
  for (int i = 0; i < p->n_workers; i++) {
    worker_process *w = &p->workers[i];
    end_process(w, i);
    if (w->shared != NULL) munmap(w->shared, p->layout.bytes);
    cx_mutex_free(&w->lock);
  }
  cx_free(p->workers);
  cx_free(p);
}
