// world/pmi: a request is a line, and so is its reply. Replies have the order
// of the requests.
//
//   init, get_maxes, get_appnum, get_my_kvsname, get_universe_size: constants
//   put, get      of the store
//   barrier_in    replied once all processes have arrived
//   finalize      replied at once
//   abort         fails the job
//
// Lines are read with read(): a thread that waits in fgets() holds the stream's
// lock, for which exit() in another thread would wait. A barrier that fails
// gets no answer: MPICH would end the process, and the job has failed anyway.
#include "world/pmi.h"
#include "base/env.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "world/endpoint.h"
#include "world/state.h"

enum { MAX_LINE = 4096, MAX_VALUE = 1024, MAX_KEY = 64 };

static struct {
  cx_thread thread;
  int socket;  // stays open, because MPICH keeps the other end
  int wake;    // an eventfd that ends the thread
  int barriers;
  bool started;  // the variables are ours
} pmi = { .socket = -1, .wake = -1 };

// ---- lines ------------------------------------------------------------------

// Copies the text of NAME=text in a line, up to a space, or with `rest` to the
// end.
static bool field(const char *line, const char *name, bool rest, char *out,
                  size_t size)
{
  const size_t length = strlen(name);
  for (const char *at = line; (at = strstr(at, name)) != NULL; at += length) {
    if ((at != line && at[-1] != ' ') || at[length] != '=') continue;
    const char *value = at + length + 1;
    const size_t n = rest ? strlen(value) : strcspn(value, " ");
    if (n >= size) return false;
    memcpy(out, value, n);
    out[n] = '\0';
    return true;
  }
  return false;
}

static bool answer(const char *text)
{
  size_t left = strlen(text);
  while (left > 0) {
    const ssize_t n = send(pmi.socket, text, left, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text += n;
    left -= (size_t)n;
  }
  return true;
}

// ---- which process is on which host -----------------------------------------

// The number of consecutive processes, from this one, on the same host.
static int run_of(int process)
{
  int n = 1;
  while (process + n < cx_world_global.info.processes &&
         cx_world_group_of(process + n) == cx_world_group_of(process)) {
    n++;
  }
  return n;
}

// Blocks of (first host, hosts, processes of each). Empty if it is too long for
// a value: MPICH then finds the hosts by itself.
static void append_mapping(cx_text *out)
{
  cx_text_append(out, "(vector");
  for (int i = 0; i < cx_world_global.info.processes;) {
    const int first = cx_world_group_of(i), each = run_of(i);
    int hosts = 1;
    for (i += each; i < cx_world_global.info.processes &&
                    cx_world_group_of(i) == first + hosts && run_of(i) == each;
         i += each) {
      hosts++;
    }
    cx_text_format(out, ",(%d,%d,%d)", first, hosts, each);
  }
  cx_text_char(out, ')');
  if (out->size >= MAX_VALUE) cx_text_clear(out);
}

// ---- requests ---------------------------------------------------------------

// The request's key, as a key of the store.
static bool key_of(const char *line, char *out, size_t size)
{
  char name[MAX_KEY + 1];
  if (!field(line, "key", false, name, sizeof name)) return false;
  snprintf(out, size, "pmi/%s", name);
  return true;
}

static bool put(const char *line)
{
  char key[MAX_KEY + 8], value[MAX_VALUE + 1];
  calx_status *status = key_of(line, key, sizeof key) &&
                                field(line, "value", true, value, sizeof value)
                            ? cx_world_store_put(key, value, strlen(value))
                            : cx_invalid("no key or value: '%s'", line);
  const bool well = status == NULL;
  calx_status_free(status);
  return answer(well ? "cmd=put_result rc=0 msg=success\n"
                     : "cmd=put_result rc=-1 msg=refused\n");
}

static bool get(const char *line)
{
  char key[MAX_KEY + 8];
  char *value = NULL;
  size_t size = 0;
  cx_text found = { 0 };
  if (!key_of(line, key, sizeof key)) {
    // There is no key to find.
  } else if (strcmp(key, "pmi/PMI_process_mapping") == 0) {
    append_mapping(&found);
  } else {
    calx_status_free(cx_world_store_try_get(key, &value, &size));
    if (value != NULL) cx_text_append(&found, value);
    cx_free(value);
  }
  cx_text reply = { 0 };
  if (found.size > 0) {
    cx_text_format(&reply, "cmd=get_result rc=0 msg=success value=%s\n",
                   cx_text_str(&found));
  } else {
    cx_text_append(&reply,
                   "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  }
  const bool well = !cx_text_failed(&reply) && answer(cx_text_str(&reply));
  cx_text_free(&found);
  cx_text_free(&reply);
  return well;
}

static bool barrier(void)
{
  char name[32];
  snprintf(name, sizeof name, "pmi/%d", pmi.barriers++);
  calx_status *status = cx_world_barrier(name, cx_world_timeout_ms());
  const bool well = status == NULL;
  calx_status_free(status);
  return well && answer("cmd=barrier_out rc=0 msg=success\n");
}

static bool abort_job(const char *line)
{
  char code[16] = "?", text[96];
  (void)field(line, "exitcode", false, code, sizeof code);
  snprintf(text, sizeof text, "MPI of process %d ended the job (%s)",
           cx_world_global.info.process, code);
  cx_world_fail(CALX_ABORTED, text);
  return true;
}

// Answers one request. False: the thread ends.
static bool handle(const char *line)
{
  static const struct {
    const char *request, *reply;
  } fixed[] = {
    { "init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n" },
    { "get_maxes",
      "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n" },
    { "get_appnum", "cmd=appnum rc=0 appnum=0\n" },
    { "get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=calx\n" },
    { "finalize", "cmd=finalize_ack rc=0\n" },
  };
  char what[32], size[64];
  if (!field(line, "cmd", false, what, sizeof what)) return false;
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    if (strcmp(what, fixed[i].request) == 0) return answer(fixed[i].reply);
  }
  if (strcmp(what, "get_universe_size") == 0) {
    snprintf(size, sizeof size, "cmd=universe_size rc=0 size=%d\n",
             cx_world_global.info.processes);
    return answer(size);
  }
  if (strcmp(what, "put") == 0) return put(line);
  if (strcmp(what, "get") == 0) return get(line);
  if (strcmp(what, "barrier_in") == 0) return barrier();
  if (strcmp(what, "abort") == 0) return abort_job(line);
  return answer("cmd=unknown rc=-1\n");
}

// False: the thread ends.
static bool wait_for_line(void)
{
  struct pollfd ends[] = { { .fd = pmi.socket, .events = POLLIN },
                           { .fd = pmi.wake, .events = POLLIN } };
  while (poll(ends, 2, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return ends[1].revents == 0;
}

static void serve(void *user)
{
  char line[MAX_LINE];
  size_t used = 0;
  (void)user;
  for (;;) {
    char *end = memchr(line, '\n', used);
    if (end != NULL) {
      *end = '\0';
      if (!handle(line)) return;
      used -= (size_t)(end + 1 - line);
      memmove(line, end + 1, used);
      continue;
    }
    if (used == sizeof line || !wait_for_line()) return;
    const ssize_t n = read(pmi.socket, line + used, sizeof line - used);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    used += (size_t)n;
  }
}

// ---- starting and ending ----------------------------------------------------

// Whether the launcher is not MPI's own.
static bool is_needed(const cx_world_info *self)
{
  if (self->processes == 1 || cx_world_global.groups == 1) return false;
  return self->launcher == CX_WORLD_LAUNCHER_CALX ||
         self->launcher == CX_WORLD_LAUNCHER_TORCHRUN ||
         self->launcher == CX_WORLD_LAUNCHER_SLURM;
}

calx_status *cx_world_pmi_start(void)
{
  const cx_world_info *self = &cx_world_global.info;
  if (!is_needed(self)) return NULL;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "no socket for MPI: %s",
                    strerror(errno));
  }
  pmi.socket = ends[0];
  pmi.wake = eventfd(0, EFD_CLOEXEC);
  pmi.barriers = 0;
  calx_status *status =
      pmi.wake >= 0 ? cx_thread_start(&pmi.thread, serve, NULL)
                    : cx_error(CALX_RESOURCE_EXHAUSTED,
                               "no descriptor for MPI: %s", strerror(errno));
  if (status != NULL) {
    if (pmi.wake >= 0) close(pmi.wake);
    close(ends[0]);
    close(ends[1]);
    return status;
  }
  cx_env_set_int("PMI_FD", ends[1]);
  cx_env_set_int("PMI_RANK", self->process);
  cx_env_set_int("PMI_SIZE", self->processes);
  cx_env_set_int("CALX_PMI_FD", ends[1]);  // ours, not an MPI launcher's
  pmi.started = true;
  return NULL;
}

void cx_world_pmi_stop(void)
{
  const uint64_t one = 1;
  if (!pmi.started) return;
  // The socket stays open. A thread that waits in MPI for an answer continues
  // to wait: the end of the stream would make MPI end the process, and so would
  // SIGPIPE at a later request.
  (void)!write(pmi.wake, &one, sizeof one);
  cx_thread_join(&pmi.thread);
  close(pmi.wake);
  pmi.wake = -1;
  unsetenv("PMI_FD");
  unsetenv("PMI_RANK");
  unsetenv("PMI_SIZE");
  unsetenv("CALX_PMI_FD");
  pmi.started = false;
}
