// cli/ranks: `calx run`: a program as several processes that train together.
//
// There are three ways: on this host, on hosts that a command like ssh reaches,
// and on a TPU's workers. In the second way each host runs
// `calx run --as-host`.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/status.h"
#include "commands.h"
#include "launcher/address.h"
#include "launcher/hosts.h"
#include "launcher/output.h"

// clang-format off: one line of source is one line of the text
static const char help[] =
    "usage: calx run [OPTION...] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs a program as several processes, which calx_launch in it makes train\n"
    "together. Each line that one writes comes out with its rank before it:\n"
    "\n"
    "  calx run -n 4 ./mnist --epochs 2          [3] epoch 1: 0.9712\n"
    "  calx run -n 4 --hosts a,b ./mnist         [b:5] epoch 1: 0.9712\n"
    "  calx run --tpu NAME --zone Z ./mnist\n"
    "\n"
    "  -n N               processes, of each host; else CALX_PROCESSES, else 1\n"
    "  --tag              the time and the stream before each line too\n"
    "  --log-dir DIR      what ranks write also goes to DIR/rank_3.out and .err\n"
    "  --max-restarts K   when a rank fails all are started again, K times; their\n"
    "                     CALX_RESTART says how often that has been\n"
    "  --hosts A,B,...    on these hosts, in this folder\n"
    "  --ssh COMMAND      instead of ssh (or CALX_SSH): gets HOST and the shell's\n"
    "                     words to run there\n"
    "  --tpu NAME         on all workers of this TPU, by gcloud; several are one\n"
    "                     job, each a host of it\n"
    "  --zone Z, --project P   of the TPU\n"
    "  --dir DIR          the folder on the workers of a TPU\n"
    "  --env NAME[=VALUE] a variable for the other hosts; may be given often.\n"
    "                     CALX_*, PJRT_* and CPU_NUM_DEVICES go by themselves\n"
    "  --as-host NAME     this is one of the hosts: how --hosts calls itself\n"
    "                     there; standard input brings the job's token and how\n"
    "                     often it was started before, and its end ends the job\n"
    "\n"
    "Several hosts work without --hosts too: the same command on each, with\n"
    "CALX_NNODES, CALX_NODE_RANK and MASTER_ADDR set (CALX_PORT or\n"
    "MASTER_PORT, CALX_TOKEN if wanted). The hosts meet at MASTER_ADDR: the\n"
    "first of --hosts, unless set.\n"
    "The first rank of all reads standard input.\n"
    "\n"
    "SIGINT, SIGTERM and SIGHUP are passed on, a second one kills. When a rank\n"
    "fails, the others are ended within some seconds.\n"
    "\n"
    "Exit status: 0 when all ranks ended with 0; else that of the first that\n"
    "failed, 128 + N for signal N; 2 and 5 as of all commands, 5 also where\n"
    "what they wrote is lost.\n";
// clang-format on

typedef struct asked {
  int64_t processes, restarts;
  bool tag;
  int attempt;  // of --as-host
  const char *log_dir, *hosts, *ssh, *tpu, *zone, *project, *dir, *as_host;
  // Of PyTorch/XLA's xla_dist, which are answered with what to write.
  const char *conda, *image, *container, *port, *vm;
  bool restart_server;
  cx_cli_list docker_flags;
  cx_cli_list env;
  cx_cli_list words;
} asked;

// What each of the three ways gets.
typedef struct rank_run {
  const asked *asked;
  char **argv, **env;  // NULL at the end
  struct cx_launcher_output *output;
} rank_run;

// ---- options that there are elsewhere, or that do not go together -----------

static int check_xla_dist(const asked *a)
{
  if (a->conda != NULL) {
    return cx_cli_usage("calx run",
                        "--conda-env is for Python: a compiled program needs "
                        "none, leave it out; for one that does: calx run --tpu "
                        "NAME -- conda run --no-capture-output -n %s PROGRAM",
                        a->conda);
  }
  if (a->image != NULL || a->container != NULL || a->docker_flags.n > 0) {
    return cx_cli_usage("calx run",
                        "the workers start no container by themselves; write: "
                        "calx run --tpu NAME -- sudo docker run --rm "
                        "--privileged --network=host %s PROGRAM",
                        a->image != NULL ? a->image : "IMAGE");
  }
  if (a->restart_server || a->port != NULL) {
    return cx_cli_usage("calx run",
                        "--restart-tpuvm-pod-server and --tpuvm-server-port "
                        "are for a server that there is not any more, leave "
                        "them out; calx doctor --kill ends what holds a TPU");
  }
  if (a->vm != NULL) {
    return cx_cli_usage("calx run", "--vm is called --hosts here: --hosts %s",
                        a->vm);
  }
  return CX_CLI_GO_ON;
}

static int check(const asked *a)
{
  const bool on_hosts = a->hosts != NULL, on_tpu = a->tpu != NULL;
  const struct {
    bool wrong;
    const char *why;
  } rules[] = {
    { on_hosts && on_tpu, "--hosts and --tpu are two ways to say where" },
    { a->as_host != NULL && (on_hosts || on_tpu),
      "--as-host is for one of the hosts itself" },
    { !on_tpu && (a->zone != NULL || a->project != NULL || a->dir != NULL),
      "--zone, --project and --dir need --tpu" },
    { !on_hosts && a->ssh != NULL, "--ssh needs --hosts" },
    { !on_hosts && !on_tpu && a->env.n > 0, "--env needs --hosts or --tpu" },
    { on_tpu && a->tpu[0] == '\0',
      "--tpu is empty, the name of a TPU is "
      "wanted (is the variable set?)" },
    { on_tpu && (a->log_dir != NULL || a->tag || a->restarts > 0),
      "--log-dir, --tag and --max-restarts do not go with --tpu" },
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    if (rules[i].wrong) return cx_cli_usage("calx run", "%s", rules[i].why);
  }
  return CX_CLI_GO_ON;
}

// ---- parts ------------------------------------------------------------------

// The arguments, with NULL at the end; freed with cx_free().
static char **with_end(const cx_cli_list *list)
{
  char **out = cx_calloc(list->n + 1, sizeof *out);
  for (size_t i = 0; out != NULL && i < list->n; i++) {
    out[i] = (char *)(uintptr_t)list->items[i];
  }
  return out;
}

// Reads a line: the token and the attempt, from 0. It reads single bytes, so
// that the bytes after the line stay unread.
static calx_status *read_token(int *out_attempt)
{
  *out_attempt = 0;
  char token[128];
  size_t n = 0;
  for (;;) {
    char c;
    ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got == 1 && c == '\n') break;
    if (got != 1 || n + 1 == sizeof token) {
      return cx_error_at(NULL, CALX_INVALID_ARGUMENT,
                         "--as-host: standard input has no token");
    }
    token[n++] = c;
  }
  token[n] = '\0';
  char *attempt = strchr(token, ' ');
  if (attempt != NULL) {
    *attempt++ = '\0';
    size_t digits = strspn(attempt, "0123456789");
    if (digits == 0 || digits > 9 || attempt[digits] != '\0') {
      return cx_error_at(NULL, CALX_INVALID_ARGUMENT,
                         "--as-host: standard input has attempt '%s', a "
                         "number is wanted",
                         attempt);
    }
    *out_attempt = atoi(attempt);
  }
  if (token[0] != '\0') setenv("CALX_TOKEN", token, 1);
  return NULL;
}

// ---- three ways -------------------------------------------------------------

static calx_status *run_here(const rank_run *l, cx_launcher_exit *end)
{
  const asked *a = l->asked;
  cx_launcher_options options = { .argv = l->argv,
                                  .max_restarts = (int)a->restarts,
                                  .attempt = a->attempt,
                                  .output = l->output,
                                  .lifeline = a->as_host != NULL };
  CALX_TRY(cx_launcher_processes((int)a->processes, &options.processes));
  return cx_launcher_spawn(&options, end);
}

static calx_status *run_on_hosts(const rank_run *l, cx_launcher_exit *end)
{
  const asked *a = l->asked;
  char self[4096], number[24];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n < 0) {
    return cx_error_at(NULL, CALX_FAILED_PRECONDITION,
                       "this program's file cannot be found: %s",
                       strerror(errno));
  }
  self[n] = '\0';
  int processes;
  CALX_TRY(cx_launcher_processes((int)a->processes, &processes));
  snprintf(number, sizeof number, "%d", processes);
  const char *flags[8] = { "-n", number };
  size_t used = 2;
  if (a->tag) flags[used++] = "--tag";
  if (a->log_dir != NULL) {
    flags[used++] = "--log-dir";
    flags[used++] = a->log_dir;
  }
  const char *connect = a->ssh != NULL ? a->ssh : cx_env_text("CALX_SSH");
  cx_launcher_hosts_options options = { .hosts = a->hosts,
                                        .connect = connect,
                                        .calx = self,
                                        .flags = flags,
                                        .forward = (const char *const *)l->env,
                                        .argv = l->argv,
                                        .max_restarts = (int)a->restarts,
                                        .output = l->output };
  return cx_launcher_hosts_run(&options, end);
}

static calx_status *run_on_tpu(const rank_run *l, cx_launcher_exit *end)
{
  const asked *a = l->asked;
  char number[24];
  snprintf(number, sizeof number, "%lld", (long long)a->processes);
  if (a->processes > 0) setenv("CALX_PROCESSES", number, 1);
  cx_launcher_tpu_options options = { .name = a->tpu,
                                      .zone = a->zone,
                                      .project = a->project,
                                      .folder = a->dir,
                                      .forward = (const char *const *)l->env,
                                      .argv = l->argv,
                                      .output = l->output };
  return cx_launcher_tpu_run(&options, end);
}

static calx_status *run_with(const asked *a, struct cx_launcher_output *output,
                             cx_launcher_exit *end)
{
  rank_run l = { a, with_end(&a->words), with_end(&a->env), output };
  calx_status *status = NULL;
  if (l.argv == NULL || l.env == NULL) {
    status = cx_out_of_memory();
  } else if (a->hosts != NULL) {
    status = run_on_hosts(&l, end);
  } else if (a->tpu != NULL) {
    status = run_on_tpu(&l, end);
  } else {
    status = run_here(&l, end);
  }
  cx_free(l.argv);
  cx_free(l.env);
  return status;
}

static calx_status *run(asked *a, cx_launcher_exit *end)
{
  char host[300] = "";
  if (a->as_host != NULL) {
    snprintf(host, sizeof host, "%s:", cx_launcher_host_name(a->as_host));
    CALX_TRY(read_token(&a->attempt));
  }
  bool bare = a->hosts != NULL || a->tpu != NULL;
  cx_launcher_output_options options = { .log_dir = bare ? NULL : a->log_dir,
                                         .host = host,
                                         .tag = a->tag,
                                         .bare = bare,
                                         .again = a->attempt > 0 };
  struct cx_launcher_output *output;
  CALX_TRY(cx_launcher_output_new(&options, &output));
  calx_status *status = run_with(a, output, end);
  cx_launcher_output_free(output);
  return status;
}

// By this exit status a launcher of several hosts knows that another host's
// rank has failed.
_Static_assert((int)CX_CLI_FAILED == (int)CX_LAUNCHER_EXIT_FAILED,
               "a launcher's own failure has one exit status");

static int run_asked(asked *a)
{
  cx_launcher_exit end = { .rank = -1 };
  calx_status *status = run(a, &end);
  if (status == NULL) return cx_cli_end(CX_CLI_OK);
  fprintf(stderr, "calx run: %s\n", calx_status_message(status));
  calx_status_free(status);
  // A failure without a rank's exit status is this command's own.
  return cx_cli_end(end.rank >= 0 || end.code > 128 ? end.code : CX_CLI_FAILED);
}

int cx_cli_ranks(int argc, char **argv)
{
  asked a = { 0 };
  const cx_cli_option options[] = {
    { "-n", CX_CLI_COUNT, &a.processes },
    { "--tag", CX_CLI_FLAG, &a.tag },
    { "--log-dir", CX_CLI_TEXT, &a.log_dir },
    { "--max-restarts", CX_CLI_COUNT, &a.restarts },
    { "--hosts", CX_CLI_TEXT, &a.hosts },
    { "--ssh", CX_CLI_TEXT, &a.ssh },
    { "--tpu", CX_CLI_TEXT, &a.tpu },
    { "--zone", CX_CLI_TEXT, &a.zone },
    { "--project", CX_CLI_TEXT, &a.project },
    { "--dir", CX_CLI_TEXT, &a.dir },
    { "--env", CX_CLI_LIST, &a.env },
    { "--as-host", CX_CLI_TEXT, &a.as_host },
    { "--conda-env", CX_CLI_TEXT, &a.conda },
    { "--docker-image", CX_CLI_TEXT, &a.image },
    { "--docker-container", CX_CLI_TEXT, &a.container },
    { "--docker-run-flag", CX_CLI_LIST, &a.docker_flags },
    { "--restart-tpuvm-pod-server", CX_CLI_FLAG, &a.restart_server },
    { "--tpuvm-server-port", CX_CLI_TEXT, &a.port },
    { "--vm", CX_CLI_TEXT, &a.vm },
  };
  const cx_cli_command command = { .name = "calx run",
                                   .help = help,
                                   .options = options,
                                   .n_options =
                                       sizeof options / sizeof *options,
                                   .least_words = 1,
                                   .most_words = CX_CLI_PROGRAM };
  int code = cx_cli_args_read(&command, argc, argv, &a.words);
  if (code == CX_CLI_GO_ON) code = check_xla_dist(&a);
  if (code == CX_CLI_GO_ON) code = check(&a);
  if (code == CX_CLI_GO_ON) code = run_asked(&a);
  cx_cli_args_free(&command, &a.words);
  return code;
}
