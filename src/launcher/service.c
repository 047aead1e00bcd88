// launcher/service: see post.h.
#include "launcher/service.h"
#include "base/env.h"

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

#include "base/thread.h"
#include "store/client.h"
#include "store/server.h"
#include "world/endpoint.h"
#include "world/origin.h"

enum {
  READY_MS = 30000,     // for the address to be taken
  CONNECT_MS = 300000,  // for host 0's launcher, typed by hand perhaps
  GRACE_MS = 500,       // for the launcher to say how a process ended
  SLICE_MS = 500,
  LAST_NEWS_MS = 1000,  // for other hosts to hear why this job ends
  OTHERS_S = 300        // for other hosts' launchers to come at all
};

// ---- the process ------------------------------------------------------------

typedef struct office {
  const cx_launcher_job *job;
  calx_window *head;
  int fd;
  cx_store_server *server;
  cx_store_client *client;
  bool failed;
} office;

static void send_letter(int fd, calx_code code, const char *news)
{
  cx_launcher_message letter = { .code = (uint32_t)code };
  snprintf(letter.news, sizeof letter.news, "%s", news);
  while (send(fd, &letter, sizeof letter, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

static void pass_news(void *user, calx_code code, const char *news)
{
  office *o = user;
  cx_world_segment_fail(o->head, code, news);
  send_letter(o->fd, code, news);
}

static void pass_event(void *user, const char *bytes, size_t size)
{
  (void)user;
  (void)bytes;
  (void)size;
}

static calx_status *serve(office *o)
{
  if (o->job->host != 0) return NULL;
  cx_store_server_options options = {
    .url = o->job->url,
    .token = o->job->token[0] != '\0' ? o->job->token : NULL,
    .name = "the launcher",
    .job = cx_world_origin_job(CX_WORLD_LAUNCHER_CALX),
    .processes = o->job->hosts * o->job->processes,
    .hosts = o->job->hosts,
    .heartbeat_ms = cx_store_heartbeat_ms(),
    .grace_ms = GRACE_MS
  };
  return cx_store_server_start(&options, &o->server);
}

static calx_status *connect_to_store(office *o)
{
  cx_store_client_options options = {
    .url = o->job->url,
    .token = o->job->token[0] != '\0' ? o->job->token : NULL,
    .process = -1 - o->job->host,
    .processes = o->job->hosts * o->job->processes,
    .origin = { o->job->host, cx_world_origin_launch(o->job->launch),
                cx_world_origin_job(CX_WORLD_LAUNCHER_CALX) },
    .heartbeat_ms = cx_store_heartbeat_ms(),
    .on_failure = pass_news,
    .on_event = pass_event,
    .user = o
  };
  return cx_store_client_open(&options, CONNECT_MS, &o->client);
}

// The launcher's letters, until it ends. One that died says nothing, and this
// process goes as it did: that is news.
static void take_letters(office *o)
{
  for (;;) {
    cx_launcher_message letter;
    ssize_t n = recv(o->fd, &letter, sizeof letter, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != (ssize_t)sizeof letter) _exit(1);
    if (letter.code == CALX_OK) return;
    letter.news[sizeof letter.news - 1] = '\0';
    o->failed = true;
    calx_status_free(
        cx_store_client_fail(o->client, (calx_code)letter.code, letter.news));
  }
}

// What a launcher tells host 0's: that it "came", that it "left".
static calx_status *call(office *o, cx_store_op op, const char *what, int host,
                         int64_t wait_ms)
{
  char name[32];
  cx_store_request request;
  snprintf(name, sizeof name, "calx/%s/%d", what, host);
  CALX_TRY(cx_store_client_request(op, name, &request));
  request.wait_ms = wait_ms;
  return cx_store_client_call(o->client, &request, NULL, NULL);
}

// Until that host's launcher has told it, there are news, or `limit_ms` passed;
// the launcher that waits here listens no more, so this says why it was in
// vain.
static bool wait_for_other(office *o, const char *what, int host,
                           int64_t limit_ms)
{
  int64_t until = cx_now_ns() + limit_ms * 1000000;
  for (;;) {
    calx_status *status = call(o, CX_STORE_OP_GET, what, host, SLICE_MS);
    if (status == NULL) return true;
    calx_status *news = cx_store_client_failure(o->client);
    bool late = calx_status_code(status) == CALX_DEADLINE_EXCEEDED;
    bool waits = news == NULL && late && cx_now_ns() < until;
    if (!waits && news == NULL && late) {
      cx_log("host %d of %d did not come within %.3g s", host, o->job->hosts,
             (double)limit_ms / 1000);
    } else if (!waits) {
      cx_log("%s", cx_status_sentence(news != NULL ? news : status));
    }
    calx_status_free(status);
    calx_status_free(news);
    if (!waits) return false;
  }
}

// The other hosts' launchers need the store until they say that they end. One
// that came has no limit, since its ranks may go on: it has gone when its
// connection closes or it is silent, and that is news.
static void wait_for_others(office *o)
{
  int64_t limit_ms = cx_env_ms("CALX_JOIN_TIMEOUT_S", false, OTHERS_S);
  bool here = !o->failed;
  for (int host = 1; here && host < o->job->hosts; host++) {
    here = wait_for_other(o, "came", host, limit_ms) &&
           wait_for_other(o, "left", host, INT64_MAX / 4000000);
  }
}

static void leave(office *o)
{
  calx_status *news = cx_store_client_failure(o->client);
  // The launcher did not hear of it in time.
  if (!o->failed && news != NULL) cx_log("%s", cx_status_sentence(news));
  o->failed = o->failed || news != NULL;
  calx_status_free(news);
  if (o->job->host == 0) {
    wait_for_others(o);
  } else {
    calx_status_free(call(o, CX_STORE_OP_PUT, "left", o->job->host, 0));
  }
  cx_store_client_close(o->client, true);
  if (o->server == NULL) return;
  if (o->job->hosts > 1) cx_store_server_drain(o->server, LAST_NEWS_MS);
  cx_store_server_stop(o->server);
}

// A connection for each process, whatever the shell's limit was.
static void allow_descriptors(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// Never returns.
static void run(office *o)
{
  allow_descriptors();
  calx_status *status = serve(o);
  if (status == NULL) send_letter(o->fd, CALX_OK, "");
  if (status == NULL) status = connect_to_store(o);
  if (status != NULL) {
    pass_news(o, calx_status_code(status), cx_status_sentence(status));
    _exit(1);
  }
  if (o->job->host != 0) {
    calx_status_free(call(o, CX_STORE_OP_PUT, "came", o->job->host, 0));
  }
  take_letters(o);
  leave(o);
  _exit(0);
}

// ---- the launcher's side ----------------------------------------------------

// What the terminal sends reaches this process too; its end is the launcher's
// to say.
static void become_post(office *o, pid_t parent)
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
  run(o);
}

static calx_status *wait_until_ready(const cx_launcher_service *post)
{
  struct pollfd from = { .fd = post->fd, .events = POLLIN };
  int ready;
  do {
    ready = poll(&from, 1, READY_MS);
  } while (ready < 0 && errno == EINTR);
  cx_launcher_message letter;
  bool gone;
  if (ready <= 0 || !cx_launcher_service_receive(post, &letter, &gone)) {
    return cx_error(CALX_INTERNAL,
                    "the process that serves the store did not start");
  }
  if (letter.code == CALX_OK) return NULL;
  return cx_error((calx_code)letter.code, "%s", letter.news);
}

calx_status *cx_launcher_service_start(const cx_launcher_job *job,
                                       calx_window *head,
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
    become_post(&(office){ .job = job, .head = head, .fd = ends[1] }, parent);
  }
  close(ends[1]);
  *out = (cx_launcher_service){ .pid = pid, .fd = ends[0] };
  calx_status *status = wait_until_ready(out);
  if (status != NULL) cx_launcher_service_close(out);
  return status;
}

bool cx_launcher_service_receive(const cx_launcher_service *post,
                                 cx_launcher_message *out, bool *out_gone)
{
  ssize_t n;
  *out_gone = false;
  do {
    n = recv(post->fd, out, sizeof *out, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  *out_gone = n == 0 || (n < 0 && errno != EAGAIN);
  out->news[sizeof out->news - 1] = '\0';
  return n == (ssize_t)sizeof *out;
}

void cx_launcher_service_send(const cx_launcher_service *post, calx_code code,
                              const char *news)
{
  if (post->fd >= 0) send_letter(post->fd, code, news);
}

void cx_launcher_service_close(cx_launcher_service *post)
{
  if (post->fd >= 0) close(post->fd);
  if (post->pid > 0) {
    kill(post->pid, SIGKILL);
    while (waitpid(post->pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  *post = (cx_launcher_service){ .fd = -1 };
}
