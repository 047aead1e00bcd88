// world/endpoint: finds where the store listens, by the launcher's variables.
//
// Across hosts the store listens on TCP, at an address that the user or the
// launcher has set. On one host it listens on an abstract Unix socket, which
// leaves no file. The socket's name depends on the launcher's job, so that two
// jobs of a host use two stores. Client and server check each other's user.
#include "world/endpoint.h"
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

enum {
  // A job's number, modulo PORT_COUNT, is added to PORT_BASE, as in JAX under
  // Slurm and Open MPI. The default is the port of PyTorch/XLA's coordinator.
  PORT_BASE = 61440,
  PORT_COUNT = 4096,
  PORT_DEFAULT = 8547
};

// ---- the port ---------------------------------------------------------------

static calx_status *job_port(const char *name, long divisor, int *out)
{
  const char *text = cx_env_text(name);
  if (text == NULL) return NULL;
  char *end;
  unsigned long long job = strtoull(text, &end, 10);
  if (*end != '\0' || text[0] == '-') {
    return cx_invalid("%s is '%s', a number is wanted", name, text);
  }
  *out = PORT_BASE + (int)(job / (unsigned long)divisor % PORT_COUNT);
  return NULL;
}

// torchrun's agent may listen on MASTER_PORT itself.
static bool agent_uses_port(void)
{
  const char *text = cx_env_text("TORCHELASTIC_USE_AGENT_STORE");
  return text != NULL && strcmp(text, "True") == 0;
}

static calx_status *find_port(const cx_world_info *info, int *out)
{
  CALX_TRY(cx_env_int("CALX_PORT", 0, 65535, out));
  if (*out > 0) return NULL;
  int given;
  CALX_TRY(cx_env_int("MASTER_PORT", 0, 65534, &given));
  *out = PORT_DEFAULT;
  if (given > 0) {
    *out = given + (agent_uses_port() ? 1 : 0);
    return NULL;
  }
  switch (info->launcher) {
    case CX_WORLD_LAUNCHER_TORCHRUN:
      return cx_invalid(
          "MASTER_ADDR is '%s', but neither MASTER_PORT nor CALX_PORT is set",
          cx_env_text("MASTER_ADDR"));
    case CX_WORLD_LAUNCHER_OPENMPI:
      return job_port("OMPI_MCA_ess_base_jobid", 4096, out);
    default: return job_port("SLURM_JOB_ID", 1, out);
  }
}

// ---- the address ------------------------------------------------------------

static calx_status *check_address(const char *name, const char *address)
{
  size_t good = strspn(address,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789.-_:%");
  bool any = strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
  if (address[good] == '\0' && good <= 255 && !any) return NULL;
  return cx_invalid("%s is '%s', the name or address of one host is wanted",
                    name, address);
}

static calx_status *set_tcp(const cx_world_info *info, const char *name,
                            const char *address, cx_world_endpoint *out)
{
  int port;
  CALX_TRY(check_address(name, address));
  CALX_TRY(find_port(info, &port));
  bool six = strchr(address, ':') != NULL;
  snprintf(out->url, sizeof out->url, "tcp://%s%s%s:%d", six ? "[" : "",
           address, six ? "]" : "", port);
  return NULL;
}

bool cx_world_first_node(const char *list, char *out, size_t size)
{
  size_t prefix = strcspn(list, "[,");
  const char *number = list[prefix] == '[' ? list + prefix + 1 : "";
  size_t digits = strspn(number, "0123456789");
  if (prefix + digits == 0 || prefix + digits >= size) return false;
  if (list[prefix] == '[' && digits == 0) return false;
  memcpy(out, list, prefix);
  memcpy(out + prefix, number, digits);
  out[prefix + digits] = '\0';
  return true;
}

static calx_status *set_slurm(const cx_world_info *info, cx_world_endpoint *out)
{
  char node[256];
  const char *list = cx_env_text("SLURM_STEP_NODELIST");
  if (!cx_world_first_node(list, node, sizeof node)) {
    return cx_invalid("SLURM_STEP_NODELIST is '%s', a list of hosts is wanted",
                      list);
  }
  return set_tcp(info, "SLURM_STEP_NODELIST", node, out);
}

// ---- one host ---------------------------------------------------------------

// Reads a process's parent and the name of its command.
static bool read_stat(long pid, long *out_parent, char comm[32])
{
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  size_t n = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[n] = '\0';
  char *open = strchr(line, '('), *close = strrchr(line, ')');
  if (open == NULL || close == NULL || close[1] == '\0') return false;
  *close = '\0';
  snprintf(comm, 32, "%s", open + 1);
  return sscanf(close + 2, "%*c %ld", out_parent) == 1;
}

// MPICH's mpirun sets no variable that names the job. Its processes of one host
// have the same proxy as ancestor, or without a proxy the same parent.
static long hydra_proxy(void)
{
  long parent, pid = (long)getppid();
  char comm[32];
  for (int i = 0; i < 64 && pid > 1 && read_stat(pid, &parent, comm); i++) {
    if (strncmp(comm, "hydra_pmi_proxy", 15) == 0) return pid;
    pid = parent;
  }
  return (long)getppid();
}

static void set_local(const cx_world_info *info, cx_world_endpoint *out)
{
  const char *const names[] = { "PMIX_NAMESPACE", "SLURM_JOB_ID",
                                "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid" };
  char job[600], hex[33];
  size_t used = (size_t)snprintf(job, sizeof job, "%d", (int)info->launcher);
  bool known = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = cx_env_text(names[i]);
    if (text == NULL) continue;
    used += (size_t)snprintf(job + used, sizeof job - used, "/%.100s", text);
    known = true;
  }
  bool hydra = info->launcher == CX_WORLD_LAUNCHER_MPICH &&
               cx_env_text("MPI_LOCALRANKID") != NULL;
  if (!known || hydra) {
    used +=
        (size_t)snprintf(job + used, sizeof job - used, "/%ld", hydra_proxy());
  }
  cx_hash_hex(cx_hash_bytes(job, used, 0), hex);
  snprintf(out->url, sizeof out->url, "abstract://calx-%u-%s",
           (unsigned)getuid(), hex);
}

// ---- the endpoint -----------------------------------------------------------

static calx_status *no_address(const cx_world_info *info)
{
  if (info->launcher == CX_WORLD_LAUNCHER_TORCHRUN) {
    return cx_invalid(
        "RANK is %d and WORLD_SIZE is %d, but MASTER_ADDR is not set",
        info->process, info->processes);
  }
  return cx_invalid(
      "%s runs %d processes on %d hosts, but MASTER_ADDR is not set: set it to "
      "the host of process 0, on all of them",
      info->launcher == CX_WORLD_LAUNCHER_OPENMPI ? "Open MPI's mpirun"
                                                  : "MPICH's mpirun",
      info->processes, info->hosts);
}

calx_status *cx_world_endpoint_read(const cx_world_info *info,
                                    cx_world_endpoint *out)
{
  if (info->processes == 1) return NULL;
  const char *store = cx_env_text("CALX_STORE");
  const char *master = cx_env_text("MASTER_ADDR");
  out->by_process = info->launcher != CX_WORLD_LAUNCHER_CALX;
  if (store != NULL) {
    if (strlen(store) < sizeof out->url) {
      snprintf(out->url, sizeof out->url, "%s", store);
      return NULL;
    }
    return cx_invalid("CALX_STORE has %zu bytes, an address is wanted",
                      strlen(store));
  }
  if (info->launcher == CX_WORLD_LAUNCHER_CALX) {
    return cx_invalid(
        "CALX_RANK is %d and CALX_WORLD is %d, but CALX_STORE is not set",
        info->process, info->processes);
  }
  if (master != NULL) return set_tcp(info, "MASTER_ADDR", master, out);
  if (info->launcher == CX_WORLD_LAUNCHER_TORCHRUN) return no_address(info);
  if (info->hosts == 1) {
    set_local(info, out);
    return NULL;
  }
  bool step = cx_env_text("SLURM_STEP_NODELIST") != NULL;
  if (!step || info->launcher == CX_WORLD_LAUNCHER_OPENMPI)
    return no_address(info);
  return set_slurm(info, out);
}

void cx_world_endpoint_warn(const char *url, int hosts, const char *token)
{
  if (hosts < 2 || (token != NULL && token[0] != '\0') ||
      strncmp(url, "tcp:", 4) != 0) {
    return;
  }
  cx_log(
      "whoever can reach %s can join this job: set CALX_TOKEN to the same "
      "secret on all its hosts",
      url);
}
