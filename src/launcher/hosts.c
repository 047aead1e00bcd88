// launcher/hosts: see hosts.h. Every connection is a command for /bin/sh, in
// which every word is quoted. The remote shell's command is one of these words,
// and its own words are quoted too.
#include "launcher/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "launcher/address.h"

extern char **environ;

enum { MAX_HOSTS = 4096, PORT_FIRST = 20000, PORTS = 12000 };

// ---- words ------------------------------------------------------------------

// A word for a POSIX shell that stands for exactly these bytes. name: before
// them, with "="; NULL: nothing.
static void add_variable(cx_text *text, const char *name, const char *value)
{
  cx_text_append(text, " '");
  if (name != NULL) cx_text_format(text, "%s=", name);
  for (const char *end; (end = strchr(value, '\'')) != NULL; value = end + 1) {
    cx_text_append_n(text, value, (size_t)(end - value));
    cx_text_append(text, "'\\''");
  }
  cx_text_append(text, value);
  cx_text_char(text, '\'');
}

static void add_word(cx_text *text, const char *word)
{
  add_variable(text, NULL, word);
}

static void add_words(cx_text *text, const char *const *words)
{
  for (; words != NULL && *words != NULL; words++) add_word(text, *words);
}

// ---- variables --------------------------------------------------------------

static bool begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

// Variables of the rank info and of the connection are set anew for each host.
static bool is_forwarded(const char *variable)
{
  static const char *const kept[] = {
    "CALX_RANK=",        "CALX_WORLD=",     "CALX_LOCAL_RANK=",
    "CALX_LOCAL_WORLD=", "CALX_NODE_RANK=", "CALX_NNODES=",
    "CALX_STORE=",       "CALX_TOKEN=",     "CALX_SEGMENT_FD=",
    "CALX_RESTART=",     "CALX_SSH=",       "CALX_PORT=",
    "CALX_LAUNCH=",
  };
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    if (begins(variable, kept[i])) return false;
  }
  return begins(variable, "CALX_") || begins(variable, "PJRT_") ||
         begins(variable, "CPU_NUM_DEVICES=");
}

// Adds the variables of this process that every launch forwards.
static void add_forwarded(cx_text *text)
{
  for (char **v = environ; v != NULL && *v != NULL; v++) {
    if (is_forwarded(*v)) add_word(text, *v);
  }
}

// Adds the variables that were asked for. They come last, so that they win.
static calx_status *add_asked(cx_text *text, const char *const *forward)
{
  for (; forward != NULL && *forward != NULL; forward++) {
    const char *value = strchr(*forward, '=');
    if (value == *forward) {
      return cx_invalid("'%s' names no variable: NAME or NAME=VALUE is wanted",
                        *forward);
    }
    if (value != NULL) {
      add_word(text, *forward);
      continue;
    }
    value = getenv(*forward);
    if (value == NULL) {
      return cx_invalid("the variable %s is to be forwarded, but is not set",
                        *forward);
    }
    add_variable(text, *forward, value);
  }
  return NULL;
}

// ---- the hosts --------------------------------------------------------------

// What a launch on hosts consists of. The arena has all strings.
typedef struct host_launch {
  const cx_launcher_hosts_options *options;
  cx_arena arena;
  char **hosts;
  int count;
  const char *environment;  // words for env: the forwarded variables
  char folder[4096];
  char master[256];
  char port[16];
} host_launch;

static calx_status *check_name(const char *what, const char *name)
{
  bool good = name[0] != '\0' && name[0] != '-';
  for (const char *c = name; *c != '\0'; c++) {
    good = good && (unsigned char)*c > ' ' && *c != 127;
  }
  return good ? NULL : cx_invalid("'%s' is no name of %s", name, what);
}

static calx_status *check_host(const char *host)
{
  return cx_annotate(check_name("a host", host),
                     "names with commas between are wanted");
}

static calx_status *split_hosts(host_launch *l)
{
  const char *list = l->options->hosts;
  l->hosts = CX_ARENA_ARRAY(&l->arena, char *, strlen(list) + 1);
  if (l->hosts == NULL) return cx_out_of_memory();
  for (;;) {
    size_t n = strcspn(list, ",");
    char *host = cx_arena_strndup(&l->arena, list, n);
    if (host == NULL) return cx_out_of_memory();
    l->hosts[l->count++] = host;
    CALX_TRY(check_host(host));
    if (l->count > MAX_HOSTS) {
      return cx_invalid("more than %d hosts", MAX_HOSTS);
    }
    if (list[n] == '\0') return NULL;
    list += n + 1;
  }
}

// CALX_PORT goes before MASTER_PORT; 0: neither is set.
static calx_status *given_port(int *out)
{
  CALX_TRY(cx_env_int("CALX_PORT", 0, 65535, out));
  if (*out <= 0) CALX_TRY(cx_env_int("MASTER_PORT", 0, 65534, out));
  if (*out < 0) *out = 0;
  return NULL;
}

static calx_status *find_master(host_launch *l)
{
  const char *given = cx_env_text("MASTER_ADDR");
  const char *master =
      given != NULL ? given : cx_launcher_host_name(l->hosts[0]);
  int port;
  if (strlen(master) >= sizeof l->master) {
    return cx_invalid("'%.80s…' is no host", master);
  }
  if (given != NULL) {
    snprintf(l->master, sizeof l->master, "%s", given);
  } else {
    cx_launcher_find_address(l->hosts, l->count, l->master, sizeof l->master);
  }
  CALX_TRY(given_port(&port));
  // Two launches with the same first host should use different ports.
  uint32_t random = (uint32_t)getpid();
  if (getrandom(&random, sizeof random, 0) < 0) random *= 2654435761u;
  if (port == 0) port = PORT_FIRST + (int)(random % PORTS);
  snprintf(l->port, sizeof l->port, "%d", port);
  return NULL;
}

// ---- launchers --------------------------------------------------------------

// Moves a text into the arena. NULL: there was no memory.
static const char *keep(cx_arena *arena, cx_text *text)
{
  const char *copy = cx_text_failed(text)
                         ? NULL
                         : cx_arena_strndup(arena, text->data, text->size);
  cx_text_free(text);
  return copy;
}

static calx_status *write_environment(host_launch *l)
{
  cx_text text = { 0 };
  cx_text_append(&text, " && exec env");
  add_forwarded(&text);
  calx_status *status = add_asked(&text, l->options->forward);
  l->environment = keep(&l->arena, &text);
  if (status == NULL && l->environment == NULL) status = cx_out_of_memory();
  return status;
}

// cd FOLDER && exec env NAME=VALUE… CALX run --as-host HOST … -- PROGRAM…
static void write_command(const host_launch *l, int index, cx_text *out)
{
  const cx_launcher_hosts_options *o = l->options;
  cx_text_append(out, "cd");
  add_word(out, l->folder);
  cx_text_append(out, l->environment);
  cx_text_format(out, " CALX_NNODES=%d CALX_NODE_RANK=%d", l->count, index);
  add_variable(out, "MASTER_ADDR", l->master);
  add_variable(out, "MASTER_PORT", l->port);
  add_word(out, o->calx);
  cx_text_append(out, " run --as-host");
  add_word(out, l->hosts[index]);
  add_words(out, o->flags);
  cx_text_append(out, " --");
  add_words(out, (const char *const *)o->argv);
}

static const char *make_command(host_launch *l, int index)
{
  cx_text text = { 0 };
  write_command(l, index, &text);
  return keep(&l->arena, &text);
}

// The command for the host is "$1": quoted once more, a long one would be
// longer than the system allows.
static const char *make_connection(host_launch *l, int index)
{
  const char *connect = l->options->connect;
  cx_text text = { 0 };
  cx_text_format(&text, "exec %s", connect != NULL ? connect : "ssh");
  add_word(&text, l->hosts[index]);
  cx_text_append(&text, " \"$1\"");
  return keep(&l->arena, &text);
}

static calx_status *run(host_launch *l, cx_launcher_exit *out)
{
  size_t n = (size_t)l->count;
  const char **commands = CX_ARENA_ARRAY(&l->arena, const char *, n);
  const char **remote = CX_ARENA_ARRAY(&l->arena, const char *, n);
  const char **names = CX_ARENA_ARRAY(&l->arena, const char *, n);
  if (commands == NULL || remote == NULL || names == NULL) {
    return cx_out_of_memory();
  }
  for (int i = 0; i < l->count; i++) {
    cx_text name = { 0 };
    cx_text_format(&name, "host %s", l->hosts[i]);
    names[i] = keep(&l->arena, &name);
    commands[i] = make_connection(l, i);
    remote[i] = make_command(l, i);
    if (names[i] == NULL || commands[i] == NULL || remote[i] == NULL) {
      return cx_out_of_memory();
    }
  }
  cx_launcher_options options = { .processes = l->count,
                                  .commands = commands,
                                  .remote_commands = remote,
                                  .names = names,
                                  .max_restarts = l->options->max_restarts,
                                  .output = l->options->output };
  return cx_launcher_spawn(&options, out);
}

static calx_status *prepare(host_launch *l)
{
  const char *connect = l->options->connect;
  // The shell would run the host's name as the command.
  if (connect != NULL && connect[strspn(connect, " \t\r\n")] == '\0') {
    return cx_invalid("the command that connects to hosts is empty");
  }
  CALX_TRY(split_hosts(l));
  if (getcwd(l->folder, sizeof l->folder) == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION, "this folder has no path: %s",
                    strerror(errno));
  }
  CALX_TRY(find_master(l));
  return write_environment(l);
}

calx_status *cx_launcher_hosts_run(const cx_launcher_hosts_options *options,
                                   cx_launcher_exit *out)
{
  host_launch l = { .options = options };
  *out = (cx_launcher_exit){ .rank = -1, .code = 1 };
  calx_status *status = prepare(&l);
  if (status == NULL) status = run(&l, out);
  cx_arena_free(&l.arena);
  return status;
}

// ---- a TPU's workers --------------------------------------------------------

// Shell text that sets $calx to the variables by which the workers of a pod are
// one job, nothing where there is one worker. gcloud runs one command on all,
// so a worker finds its number and the others' addresses itself: in variables,
// else at the metadata server, which gives "x:y:ADDRESS,x:y:ADDRESS".
static const char find_job[] =
    "about() { curl -sf -m 5 -H 'Metadata-Flavor: Google' "
    "\"http://metadata.google.internal/computeMetadata/v1/instance/attributes/"
    "$1\"; }; "
    "calx=; number=${TPU_WORKER_ID:-$(about agent-worker-number)}; "
    "hosts=${TPU_WORKER_HOSTNAMES:-$(about worker-network-endpoints | "
    "sed 's/[^,:]*:[^,:]*:\\([^,:]*\\)[^,]*/\\1/g')}; "
    "case $number,$hosts in "
    ",* | *,) echo 'calx run: this worker trains alone: neither TPU_WORKER_ID "
    "and TPU_WORKER_HOSTNAMES nor the metadata server tell it the others' >&2 "
    ";; "
    "*,*,*) calx=\"CALX_NNODES=$(echo $hosts | tr , '\\n' | grep -c .) "
    "CALX_NODE_RANK=$number MASTER_ADDR=${hosts%%,*}\" ;; esac; ";

// …; [cd FOLDER &&] exec env NAME=VALUE… PROGRAM…
static calx_status *write_worker(const cx_launcher_tpu_options *o, cx_text *out)
{
  cx_text_append(out, find_job);
  if (o->folder != NULL) {
    cx_text_append(out, "cd");
    add_word(out, o->folder);
    cx_text_append(out, " && ");
  }
  cx_text_append(out, "exec env $calx");
  add_forwarded(out);
  cx_text_append(out, " PJRT_DEVICE=TPU");
  CALX_TRY(add_asked(out, o->forward));
  add_words(out, (const char *const *)o->argv);
  return NULL;
}

static void write_gcloud(const cx_launcher_tpu_options *o, cx_text *out)
{
  cx_text_append(out, "exec gcloud compute tpus tpu-vm ssh");
  add_word(out, o->name);
  if (o->zone != NULL) add_variable(out, "--zone", o->zone);
  if (o->project != NULL) add_variable(out, "--project", o->project);
  cx_text_append(out, " --worker=all");
  cx_text_append(out, " --command=\"$1\"");
}

calx_status *cx_launcher_tpu_run(const cx_launcher_tpu_options *options,
                                 cx_launcher_exit *out)
{
  cx_text worker = { 0 }, gcloud = { 0 }, name = { 0 };
  *out = (cx_launcher_exit){ .rank = -1, .code = 1 };
  CALX_TRY(check_name("a TPU", options->name));
  calx_status *status = write_worker(options, &worker);
  write_gcloud(options, &gcloud);
  cx_text_format(&name, "TPU %s", options->name);
  if (status == NULL && (cx_text_failed(&worker) || cx_text_failed(&gcloud) ||
                         cx_text_failed(&name))) {
    status = cx_out_of_memory();
  }
  if (status == NULL) {
    cx_launcher_options launch = {
      .processes = 1,
      .commands = (const char *const[]){ gcloud.data },
      .remote_commands = (const char *const[]){ worker.data },
      .names = (const char *const[]){ cx_text_str(&name) },
      .output = options->output
    };
    status = cx_launcher_spawn(&launch, out);
  }
  cx_text_free(&worker);
  cx_text_free(&gcloud);
  cx_text_free(&name);
  return status;
}
