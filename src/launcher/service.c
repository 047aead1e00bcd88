// launcher/service: see service.h.
#include "launcher/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/thread.h"
#include "store/client.h"
#include "store/server.h"
#include "world/origin.h"

enum {
  READY_MS = 30000,         // for the server to get its address
  CONNECT_MS = 300000,      // host 0's launcher may be started by hand
  GRACE_MS = 500,           // for a launcher to report how a process ended
  LONGEST_MS = 1000000000,  // the longest that the store waits: 11 days
  DRAIN_MS = 1000,          // for other hosts to receive the job's failure
  JOIN_TIMEOUT_S = 300      // for other hosts' launchers to join
};

// ---- messages ---------------------------------------------------------------

void cx_launcher_service_send(int fd, calx_code code, const char *text)
{
  cx_launcher_message message = { .code = (uint32_t)code };
  snprintf(message.text, sizeof message.text, "%s", text);
  while (send(fd, &message, sizeof message, MSG_NOSIGNAL) < 0 &&
         errno == EINTR) {
  }
}

// ---- the service's process --------------------------------------------------

typedef struct service {
  const cx_launcher_job *job;
  calx_segment_head *head;
  int fd;
  cx_store_server *server;
  cx_store_client *client;
  bool failed;
} service;

static void forward_failure(void *user, calx_code code, const char *message)
{
  service *s = user;
  cx_world_segment_fail(s->head, code, message);
  cx_launcher_service_send(s->fd, code, message);
}

static void ignore_event(void *user, const char *bytes, size_t size)
{
  (void)user;
  (void)bytes;
  (void)size;
}

static const char *token_of(const cx_launcher_job *job)
{
  return job->token[0] != '\0' ? job->token : NULL;
}

static calx_status *serve(service *s)
{
  const cx_launcher_job *job = s->job;
  if (job->host != 0) return NULL;
  cx_store_server_options options = { .url = job->url,
                                      .token = token_of(job),
                                      .name = "the launcher",
                                      .job = cx_world_origin_job(
                                          CX_WORLD_LAUNCHER_CALX),
                                      .processes = job->hosts * job->processes,
                                      .hosts = job->hosts,
                                      .heartbeat_ms = cx_store_heartbeat_ms(),
                                      .grace_ms = GRACE_MS };
  return cx_store_server_start(&options, &s->server);
}

static calx_status *connect_to_store(service *s)
{
  const cx_launcher_job *job = s->job;
  cx_store_client_options options = {
    .url = job->url,
    .token = token_of(job),
    .process = -1 - job->host,
    .processes = job->hosts * job->processes,
    .origin = { job->host, cx_world_origin_launch(job->launch),
                cx_world_origin_job(CX_WORLD_LAUNCHER_CALX) },
    .heartbeat_ms = cx_store_heartbeat_ms(),
    .on_failure = forward_failure,
    .on_event = ignore_event,
    .user = s
  };
  return cx_store_client_open(&options, CONNECT_MS, &s->client);
}

// Takes the launcher's messages until it ends the job. If the launcher died,
// this process ends without a BYE, which the store reports.
static void take_messages(service *s)
{
  for (;;) {
    cx_launcher_message message;
    ssize_t n = recv(s->fd, &message, sizeof message, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != (ssize_t)sizeof message) _exit(1);
    if (message.code == CALX_OK) return;
    message.text[sizeof message.text - 1] = '\0';
    s->failed = true;
    calx_status_free(
        cx_store_client_fail(s->client, (calx_code)message.code, message.text));
  }
}

// Puts or gets the key by which a host's launcher reports that it has "joined"
// or "left".
static calx_status *call(service *s, cx_store_op op, const char *what, int host,
                         int64_t wait_ms)
{
  char name[32];
  cx_store_request request;
  snprintf(name, sizeof name, "calx/%s/%d", what, host);
  CALX_TRY(cx_store_client_request(op, name, &request));
  request.wait_ms = wait_ms;
  return cx_store_client_call(s->client, &request, NULL, NULL);
}

// Waits until the host's launcher has reported it, the job has failed, or
// `limit_ms` have passed. The launcher no longer takes messages, so this logs
// why the wait failed.
static bool wait_for_host(service *s, const char *what, int host,
                          int64_t limit_ms)
{
  calx_status *status = call(s, CX_STORE_OP_GET, what, host, limit_ms);
  if (status == NULL) return true;
  calx_status *failure = cx_store_client_failure(s->client);
  if (failure != NULL || calx_status_code(status) != CALX_DEADLINE_EXCEEDED) {
    cx_log("%s", cx_status_sentence(failure != NULL ? failure : status));
  } else {
    cx_log("host %d of %d has not %s within %.3g s", host, s->job->hosts, what,
           (double)limit_ms / 1000);
  }
  calx_status_free(status);
  calx_status_free(failure);
  return false;
}

// The other hosts' launchers need the store until they leave. One that has
// joined has no time limit, since its ranks may still run; if it is lost the
// store reports that.
static void wait_for_hosts(service *s)
{
  int64_t limit_ms = cx_env_ms("CALX_JOIN_TIMEOUT_S", false, JOIN_TIMEOUT_S);
  bool present = !s->failed;
  for (int host = 1; present && host < s->job->hosts; host++) {
    present = wait_for_host(s, "joined", host, limit_ms) &&
              wait_for_host(s, "left", host, LONGEST_MS);
  }
}

static void leave(service *s)
{
  calx_status *failure = cx_store_client_failure(s->client);
  // The launcher did not receive it in time.
  if (!s->failed && failure != NULL) {
    cx_log("%s", cx_status_sentence(failure));
  }
  s->failed = s->failed || failure != NULL;
  calx_status_free(failure);
  if (s->job->host == 0) {
    wait_for_hosts(s);
  } else {
    calx_status_free(call(s, CX_STORE_OP_PUT, "left", s->job->host, 0));
  }
  cx_store_client_close(s->client, true);
  if (s->server == NULL) return;
  if (s->job->hosts > 1) cx_store_server_drain(s->server, DRAIN_MS);
  cx_store_server_stop(s->server);
}

// The server needs a descriptor for each process, whatever the shell's limit.
static void raise_descriptor_limit(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static _Noreturn void run(service *s)
{
  raise_descriptor_limit();
  calx_status *status = serve(s);
  if (status == NULL) cx_launcher_service_send(s->fd, CALX_OK, "");
  if (status == NULL) status = connect_to_store(s);
  if (status != NULL) {
    forward_failure(s, calx_status_code(status), cx_status_sentence(status));
    _exit(1);
  }
  if (s->job->host != 0) {
    calx_status_free(call(s, CX_STORE_OP_PUT, "joined", s->job->host, 0));
  }
  take_messages(s);
  leave(s);
  _exit(0);
}

// The terminal's signals reach this process too; the launcher decides when it
// ends.
static _Noreturn void become_service(service *s, pid_t parent)
{
  const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  prctl(PR_SET_NAME, "calx-store");
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
    signal(ignored[i], SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  run(s);
}

// ---- the launcher's process -------------------------------------------------

static calx_status *wait_until_ready(cx_launcher_service *s)
{
  struct pollfd from = { .fd = s->fd, .events = POLLIN };
  int ready;
  do {
    ready = poll(&from, 1, READY_MS);
  } while (ready < 0 && errno == EINTR);
  cx_launcher_message message;
  if (ready <= 0 || !cx_launcher_service_receive(s, &message)) {
    return cx_error(CALX_INTERNAL,
                    "the process that serves the store did not start");
  }
  if (message.code == CALX_OK) return NULL;
  return cx_error((calx_code)message.code, "%s", message.text);
}

calx_status *cx_launcher_service_start(const cx_launcher_job *job,
                                       calx_segment_head *head,
                                       cx_launcher_service *out)
{
  *out = (cx_launcher_service){ .fd = -1 };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "no socket for the launcher: %s",
                    strerror(errno));
  }
  pid_t parent = getpid(), pid = fork();
  if (pid < 0) {
    calx_status *status =
        cx_error(CALX_RESOURCE_EXHAUSTED,
                 "no process that serves the store: %s", strerror(errno));
    close(ends[0]);
    close(ends[1]);
    return status;
  }
  if (pid == 0) {
    close(ends[0]);
    become_service(&(service){ .job = job, .head = head, .fd = ends[1] },
                   parent);
  }
  close(ends[1]);
  *out = (cx_launcher_service){ .pid = pid, .fd = ends[0] };
  calx_status *status = wait_until_ready(out);
  if (status != NULL) cx_launcher_service_close(out);
  return status;
}

bool cx_launcher_service_receive(cx_launcher_service *s,
                                 cx_launcher_message *out)
{
  ssize_t n;
  if (s->fd < 0) return false;
  do {
    n = recv(s->fd, out, sizeof *out, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n == 0 || (n < 0 && errno != EAGAIN)) {
    close(s->fd);
    s->fd = -1;
  }
  out->text[sizeof out->text - 1] = '\0';
  return n == (ssize_t)sizeof *out;
}

void cx_launcher_service_close(cx_launcher_service *s)
{
  if (s->fd >= 0) close(s->fd);
  if (s->pid > 0) {
    kill(s->pid, SIGKILL);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  *s = (cx_launcher_service){ .fd = -1 };
}
