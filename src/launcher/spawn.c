// launcher/spawn: what is to be launched, by the options and the environment,
// and the restarts.
#include "launcher/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/hash.h"
#include "launcher/output.h"
#include "launcher/supervisor.h"
#include "world/endpoint.h"

enum { MAX_PROCESSES = 4096, MAX_HOSTS = 1 << 16 };

// ---- the job ----------------------------------------------------------------

static calx_status *read_hosts(cx_launcher_job *job)
{
  CALX_TRY(cx_env_int("CALX_NNODES", 1, MAX_HOSTS, &job->hosts));
  CALX_TRY(cx_env_int("CALX_NODE_RANK", 0, MAX_HOSTS, &job->host));
  if (job->hosts < 0) job->hosts = 1;
  if (job->hosts == 1) job->host = job->host < 0 ? 0 : job->host;
  if (job->host < 0) {
    return cx_invalid(
        "CALX_NNODES is %d, but CALX_NODE_RANK is not set: it is this host's "
        "number, from 0",
        job->hosts);
  }
  if (job->host < job->hosts) return NULL;
  if (cx_env_text("CALX_NNODES") == NULL) {
    return cx_invalid("CALX_NODE_RANK is %d, but CALX_NNODES is not set",
                      job->host);
  }
  return cx_invalid("CALX_NODE_RANK is %d, but CALX_NNODES is %d", job->host,
                    job->hosts);
}

static calx_status *random_hex(char out[33])
{
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
    return cx_error(CALX_UNAVAILABLE, "the system gives no random numbers: %s",
                    strerror(errno));
  }
  cx_hash hash;
  memcpy(&hash, bytes, sizeof hash);
  cx_hash_hex(hash, out);
  return NULL;
}

// On one host the address and the token are random. On several the environment
// gives both.
static calx_status *choose_store(cx_launcher_job *job)
{
  if (job->hosts == 1) {
    char name[33];
    CALX_TRY(random_hex(name));
    snprintf(job->url, sizeof job->url, "abstract://calx-%u-%s",
             (unsigned)getuid(), name);
    return random_hex(job->token);
  }
  if (cx_env_text("MASTER_ADDR") == NULL && cx_env_text("CALX_STORE") == NULL) {
    return cx_invalid(
        "CALX_NNODES is %d, but MASTER_ADDR is not set: it is the address of "
        "host 0, on all of them",
        job->hosts);
  }
  cx_world_info info = { .processes = job->hosts * job->processes,
                         .hosts = job->hosts };
  cx_world_endpoint endpoint = { 0 };
  CALX_TRY(cx_world_endpoint_read(&info, &endpoint));
  snprintf(job->url, sizeof job->url, "%s", endpoint.url);
  const char *token = cx_env_text("CALX_TOKEN");
  if (token != NULL && strlen(token) >= sizeof job->token) {
    return cx_invalid("CALX_TOKEN has %zu bytes, at most %zu are wanted",
                      strlen(token), sizeof job->token - 1);
  }
  snprintf(job->token, sizeof job->token, "%s", token != NULL ? token : "");
  if (job->host == 0) cx_world_endpoint_warn(job->url, job->hosts, token);
  return NULL;
}

static calx_status *plan(const cx_launcher_options *o, cx_launcher_job *job)
{
  *job = (cx_launcher_job){ .hosts = 1, .processes = o->processes };
  if (o->commands != NULL) return random_hex(job->token);
  CALX_TRY(read_hosts(job));
  if (o->max_restarts > 0 && job->hosts > 1) {
    return cx_invalid(
        "%d restarts are asked for, but CALX_NNODES is %d: one host alone "
        "cannot start a job of several again",
        o->max_restarts, job->hosts);
  }
  CALX_TRY(random_hex(job->launch));
  return choose_store(job);
}

calx_status *cx_launcher_processes(int given, int *out)
{
  *out = given;
  if (given > 0) return NULL;
  CALX_TRY(cx_env_int("CALX_PROCESSES", 1, MAX_PROCESSES, out));
  if (*out < 0) *out = 1;
  return NULL;
}

calx_status *cx_launcher_is_wanted(int processes, bool *out)
{
  cx_launcher_job job = { 0 };
  *out = false;
  CALX_TRY(read_hosts(&job));
  *out = processes > 1 || job.hosts > 1;
  return NULL;
}

// ---- the options ------------------------------------------------------------

static int count_threads(void)
{
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 1;
  int n = 0;
  for (const struct dirent *e; (e = readdir(tasks)) != NULL;) {
    if (e->d_name[0] != '.') n++;
  }
  closedir(tasks);
  return n;
}

static calx_status *check(const cx_launcher_options *o)
{
  if (o->processes < 1 || o->processes > MAX_PROCESSES) {
    return cx_invalid("%d processes are asked for, 1 to %d are wanted",
                      o->processes, MAX_PROCESSES);
  }
  // A forked copy would have locks that another thread holds.
  int threads = count_threads();
  if (threads == 1) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "Runtime is already initialized. This process has %d "
                  "threads, and only one may start others: launch before a "
                  "device is used and before threads are started",
                  threads);
}

// ---- restarts ---------------------------------------------------------------

static calx_status *run(const cx_launcher_options *o, cx_launcher_exit *end,
                        int *out_signal)
{
  for (int attempt = 0;; attempt++) {
    cx_launcher_job job;
    CALX_TRY(plan(o, &job));
    calx_status *status = cx_launcher_supervisor_run(
        o, &job, o->attempt + attempt, end, out_signal);
    if (status == NULL || *out_signal != 0 || attempt == o->max_restarts) {
      return status;
    }
    cx_log("%s; all are started again, restart %d of %d",
           calx_status_message(status), attempt + 1, o->max_restarts);
    calx_status_free(status);
  }
}

calx_status *cx_launcher_spawn(const cx_launcher_options *options,
                               cx_launcher_exit *out)
{
  int number = 0;
  *out = (cx_launcher_exit){ .rank = -1, .code = 1 };
  cx_file_keep_standard();
  CALX_TRY(check(options));
  calx_status *status = run(options, out, &number);
  if (status == NULL && options->output != NULL) {
    status = cx_launcher_output_lost(options->output);
    if (status != NULL) out->code = CX_LAUNCHER_EXIT_FAILED;
  }
  // Without a launch the signal would have ended this process.
  if (number != 0 && options->fn != NULL) raise(number);
  return status;
}
