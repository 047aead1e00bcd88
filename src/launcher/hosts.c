// launcher/hosts: see hosts.h. A remote shell gets one string, in which every
// word is quoted.
#include "launcher/hosts.h"
#include "base/env.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

extern char **environ;

enum { MAX_HOSTS = 4096, PORT_FIRST = 20000, PORTS = 12000 };

// ---- words ------------------------------------------------------------------

// A word for a POSIX shell that stands for exactly these bytes.
static void add_word(cx_text *text, const char *word)
{
  cx_text_append(text, " '");
  for (const char *end; (end = strchr(word, '\'')) != NULL; word = end + 1) {
    cx_text_append_n(text, word, (size_t)(end - word));
    cx_text_append(text, "'\\''");
  }
  cx_text_append(text, word);
  cx_text_char(text, '\'');
}

static void add_variable(cx_text *text, const char *name, const char *value)
{
  cx_text word = { 0 };
  cx_text_format(&word, "%s=%s", name, value);
  add_word(text, cx_text_str(&word));
  text->failed |= word.failed;
  cx_text_free(&word);
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

static void add_forwarded(cx_text *text)
{
  for (char **v = environ; v != NULL && *v != NULL; v++) {
    if (is_forwarded(*v)) add_word(text, *v);
  }
}

static calx_status *add_asked(cx_text *text, const char *const *forward)
{
  for (; forward != NULL && *forward != NULL; forward++) {
    const char *value = strchr(*forward, '=');
    if (value == *forward) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "'%s' names no variable: NAME or NAME=VALUE is wanted",
                      *forward);
    }
    if (value != NULL) {
      add_word(text, *forward);
      continue;
    }
    value = getenv(*forward);
    if (value == NULL) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "the variable %s is to be forwarded, but is not set",
                      *forward);
    }
    add_variable(text, *forward, value);
  }
  return NULL;
}

// ---- the hosts
// ------------------------------------------------------------------

typedef struct plan {
  const cx_launcher_hosts_options *options;
  char **hosts;
  int count;
  char folder[4096];
  char master[256];
  char port[16];
} plan;

static calx_status *check_host(const char *host)
{
  bool good = host[0] != '\0' && host[0] != '-';
  for (const char *c = host; *c != '\0'; c++) {
    good = good && (unsigned char)*c > ' ' && *c != 127;
  }
  if (good) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "'%s' is no host; names with commas between are wanted",
                  host);
}

static calx_status *split_hosts(plan *p)
{
  const char *list = p->options->hosts;
  p->hosts = cx_calloc(strlen(list) + 1, sizeof *p->hosts);
  if (p->hosts == NULL) return cx_out_of_memory();
  for (;;) {
    size_t n = strcspn(list, ",");
    char *host = cx_strndup(list, n);
    if (host == NULL) return cx_out_of_memory();
    p->hosts[p->count++] = host;
    CALX_TRY(check_host(host));
    if (p->count > MAX_HOSTS) {
      return cx_error(CALX_INVALID_ARGUMENT, "more than %d hosts", MAX_HOSTS);
    }
    if (list[n] == '\0') return NULL;
    list += n + 1;
  }
}

typedef struct address {
  struct sockaddr_storage bytes;
  socklen_t size;
  char numbers[256];  // empty: the name was not resolved
  bool loopback;
} address;

static void write_numbers(address *a)
{
  const struct sockaddr *bytes = (const struct sockaddr *)&a->bytes;
  if (getnameinfo(bytes, a->size, a->numbers, sizeof a->numbers, NULL, 0,
                  NI_NUMERICHOST) != 0) {
    a->numbers[0] = '\0';
  }
  a->loopback = begins(a->numbers, "127.") || strcmp(a->numbers, "::1") == 0;
}

// Resolves a host's name to a numeric address.
static void look_up(const char *host, address *out)
{
  struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *found = NULL;
  const char *user = strrchr(host, '@');
  *out = (address){ 0 };
  if (getaddrinfo(user != NULL ? user + 1 : host, "9", &hints, &found) != 0 ||
      found == NULL || found->ai_addrlen > sizeof out->bytes) {
    if (found != NULL) freeaddrinfo(found);
    return;
  }
  out->size = found->ai_addrlen;
  memcpy(&out->bytes, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  write_numbers(out);
}

// Finds this host's own address on the route to another. Nothing is sent.
static void find_own(const address *other, address *out)
{
  *out = (address){ .size = sizeof out->bytes };
  int fd = socket(other->bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 &&
      connect(fd, (const struct sockaddr *)&other->bytes, other->size) == 0 &&
      getsockname(fd, (struct sockaddr *)&out->bytes, &out->size) == 0) {
    write_numbers(out);
  }
  if (fd >= 0) close(fd);
}

// Finds the first host's address, by which others can reach it; where it cannot
// be resolved, the name itself. A host's own name often resolves to its
// loopback address. So this is the first host then, and the address is the one
// on the route to another host.
static void find_address(const plan *p, const char *name, char *out,
                         size_t size)
{
  address first, other, own;
  look_up(name, &first);
  bool usable = first.numbers[0] != '\0' && strlen(first.numbers) < size;
  snprintf(out, size, "%s", usable && !first.loopback ? first.numbers : name);
  for (int i = 1; first.loopback && i < p->count; i++) {
    look_up(p->hosts[i], &other);
    if (other.loopback) continue;  // a name of this host as well
    own = (address){ 0 };
    if (other.numbers[0] != '\0') find_own(&other, &own);
    if (own.numbers[0] != '\0' && !own.loopback && strlen(own.numbers) < size) {
      snprintf(out, size, "%s", own.numbers);
    } else {
      cx_log(
          "host %s is this one, where its name means %s, which host %s cannot "
          "reach: MASTER_ADDR can say another address",
          name, first.numbers, p->hosts[i]);
    }
    return;
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

static calx_status *find_master(plan *p)
{
  const char *given = cx_env_text("MASTER_ADDR");
  const char *user = strrchr(p->hosts[0], '@');
  const char *name = user != NULL ? user + 1 : p->hosts[0];
  const char *master = given != NULL ? given : name;
  if (strlen(master) >= sizeof p->master) {
    return cx_error(CALX_INVALID_ARGUMENT, "'%.80s…' is no host", master);
  }
  if (given != NULL) {
    snprintf(p->master, sizeof p->master, "%s", given);
  } else {
    find_address(p, name, p->master, sizeof p->master);
  }
  int port;
  CALX_TRY(given_port(&port));
  if (port > 0) {
    snprintf(p->port, sizeof p->port, "%d", port);
    return NULL;
  }
  // Two launches with the same first host should use different ports.
  uint32_t random = (uint32_t)getpid();
  if (getrandom(&random, sizeof random, 0) < 0) random *= 2654435761u;
  snprintf(p->port, sizeof p->port, "%u",
           (unsigned)(PORT_FIRST + random % PORTS));
  return NULL;
}

// ---- launchers --------------------------------------------------------------

// cd FOLDER && exec env NAME=VALUE… CALX run --as-host HOST … -- PROGRAM…
static calx_status *write_command(const plan *p, int index, cx_text *out)
{
  const cx_launcher_hosts_options *o = p->options;
  char number[16];
  cx_text_append(out, "cd");
  add_word(out, p->folder);
  cx_text_append(out, " && exec env");
  add_forwarded(out);
  CALX_TRY(add_asked(out, o->forward));
  snprintf(number, sizeof number, "%d", p->count);
  add_variable(out, "CALX_NNODES", number);
  snprintf(number, sizeof number, "%d", index);
  add_variable(out, "CALX_NODE_RANK", number);
  add_variable(out, "MASTER_ADDR", p->master);
  add_variable(out, "MASTER_PORT", p->port);
  add_word(out, o->calx);
  add_word(out, "run");
  add_word(out, "--as-host");
  add_word(out, p->hosts[index]);
  for (const char *const *f = o->flags; f != NULL && *f != NULL; f++) {
    add_word(out, *f);
  }
  add_word(out, "--");
  for (char *const *a = o->argv; *a != NULL; a++) add_word(out, *a);
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

// One launcher's command line, and the texts that it points to.
typedef struct launcher {
  char *argv[7];
  cx_text connect, command, name;
} launcher;

static calx_status *make_launcher(const plan *p, int index, launcher *l)
{
  CALX_TRY(write_command(p, index, &l->command));
  cx_text_format(&l->name, "host %s", p->hosts[index]);
  cx_text_format(&l->connect, "exec %s \"$@\"", p->options->connect);
  if (cx_text_failed(&l->connect) || cx_text_failed(&l->name)) {
    return cx_out_of_memory();
  }
  static char sh[] = "/bin/sh", option[] = "-c", zero[] = "sh";
  char *argv[7] = { sh,   option,          l->connect.data,
                    zero, p->hosts[index], l->command.data,
                    NULL };
  memcpy(l->argv, argv, sizeof argv);
  return NULL;
}

static calx_status *run(const plan *p, launcher *list, char *const **argvs,
                        const char **names, cx_launcher_exit *out)
{
  for (int i = 0; i < p->count; i++) {
    CALX_TRY(make_launcher(p, i, &list[i]));
    argvs[i] = list[i].argv;
    names[i] = cx_text_str(&list[i].name);
  }
  cx_launcher_options options = { .processes = p->count,
                                  .launchers = argvs,
                                  .names = names,
                                  .max_restarts = p->options->max_restarts,
                                  .output = p->options->output };
  return cx_launcher_spawn(&options, out);
}

static calx_status *make_plan(plan *p)
{
  // The shell would run the host's name as the command.
  if (p->options->connect[strspn(p->options->connect, " \t\r\n")] == '\0') {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "the command that connects to hosts is empty");
  }
  CALX_TRY(split_hosts(p));
  if (getcwd(p->folder, sizeof p->folder) == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION, "this folder has no path: %s",
                    strerror(errno));
  }
  return find_master(p);
}

calx_status *cx_launcher_hosts_run(const cx_launcher_hosts_options *options,
                                   cx_launcher_exit *out)
{
  cx_launcher_hosts_options o = *options;
  if (o.connect == NULL) o.connect = "ssh";
  plan p = { .options = &o };
  *out = (cx_launcher_exit){ .rank = -1, .code = 1 };
  calx_status *status = make_plan(&p);
  size_t n = (size_t)p.count + 1;
  launcher *list = cx_calloc(n, sizeof *list);
  char *const **argvs = cx_calloc(n, sizeof *argvs);
  const char **names = cx_calloc(n, sizeof *names);
  if (status == NULL && (list == NULL || argvs == NULL || names == NULL)) {
    status = cx_out_of_memory();
  }
  if (status == NULL) status = run(&p, list, argvs, names, out);
  for (int i = 0; i < p.count; i++) {
    if (list != NULL) {
      cx_text_free(&list[i].connect);
      cx_text_free(&list[i].command);
      cx_text_free(&list[i].name);
    }
    cx_free(p.hosts[i]);
  }
  cx_free(p.hosts);
  cx_free(list);
  cx_free((void *)argvs);
  cx_free((void *)names);
  return status;
}

// ---- a TPU's workers --------------------------------------------------------

typedef struct gcloud {
  cx_text command, zone, project, title;
} gcloud;

static calx_status *write_gcloud(const cx_launcher_tpu_options *o, gcloud *g)
{
  cx_text_append(&g->command, "--command=");
  if (o->folder != NULL) {
    cx_text_append(&g->command, "cd");
    add_word(&g->command, o->folder);
    cx_text_append(&g->command, " && ");
  }
  cx_text_append(&g->command, "exec env");
  add_forwarded(&g->command);
  cx_text_append(&g->command, " PJRT_DEVICE=TPU");
  CALX_TRY(add_asked(&g->command, o->forward));
  for (char *const *a = o->argv; *a != NULL; a++) add_word(&g->command, *a);
  cx_text_format(&g->zone, "--zone=%s", o->zone != NULL ? o->zone : "");
  cx_text_format(&g->project, "--project=%s",
                 o->project != NULL ? o->project : "");
  cx_text_format(&g->title, "TPU %s", o->name);
  bool failed = cx_text_failed(&g->command) || cx_text_failed(&g->zone) ||
                cx_text_failed(&g->project) || cx_text_failed(&g->title);
  return failed ? cx_out_of_memory() : NULL;
}

static calx_status *run_gcloud(const cx_launcher_tpu_options *o, gcloud *g,
                               cx_launcher_exit *out)
{
  static char words[][8] = { "gcloud", "compute", "tpus", "tpu-vm", "ssh" };
  static char all[] = "--worker=all";
  CALX_TRY(write_gcloud(o, g));
  char *name = cx_strdup(o->name);
  if (name == NULL) return cx_out_of_memory();
  char *argv[12];
  size_t n = 0;
  for (; n < sizeof words / sizeof *words; n++) argv[n] = words[n];
  argv[n++] = name;
  if (o->zone != NULL) argv[n++] = g->zone.data;
  if (o->project != NULL) argv[n++] = g->project.data;
  argv[n++] = all;
  argv[n++] = g->command.data;
  argv[n] = NULL;
  cx_launcher_options options = { .processes = 1,
                                  .launchers = (char *const *const[]){ argv },
                                  .names = (const char *const[]){ cx_text_str(
                                      &g->title) },
                                  .output = o->output };
  calx_status *status = cx_launcher_spawn(&options, out);
  cx_free(name);
  return status;
}

calx_status *cx_launcher_tpu_run(const cx_launcher_tpu_options *options,
                                 cx_launcher_exit *out)
{
  *out = (cx_launcher_exit){ .rank = -1, .code = 1 };
  CALX_TRY(check_host(options->name));
  gcloud g = { 0 };
  calx_status *status = run_gcloud(options, &g, out);
  cx_text_free(&g.command);
  cx_text_free(&g.zone);
  cx_text_free(&g.project);
  cx_text_free(&g.title);
  return status;
}
