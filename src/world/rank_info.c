// world/rank_info: which launcher has started this process, and as which one.
//
// Every launcher sets the same six numbers under names of its own, so a
// launcher is a row of a table. The rows are tried in order, launchers that run
// inside others first: an mpirun inside a Slurm job keeps Slurm's variables,
// and torchrun's workers see those of the launcher of their agent. Variables of
// one row that contradict each other are an error, since a process that
// believed one of them would wait for processes that do not exist.
#include "world/rank_info.h"
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world/endpoint.h"

typedef struct row {
  cx_world_launcher launcher;
  const char *rank, *size, *local_rank, *local_size, *host, *hosts;
} row;

static const row rows[] = {
  { CX_WORLD_LAUNCHER_CALX, "CALX_RANK", "CALX_WORLD", "CALX_LOCAL_RANK",
    "CALX_LOCAL_WORLD", "CALX_NODE_RANK", "CALX_NNODES" },
  { CX_WORLD_LAUNCHER_TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK",
    "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE" },
  { CX_WORLD_LAUNCHER_OPENMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL },
  { CX_WORLD_LAUNCHER_MPICH, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS", NULL, NULL },
  { CX_WORLD_LAUNCHER_PMIX, "PMIX_RANK", "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID", NULL, "SLURM_NODEID", "SLURM_STEP_NUM_NODES" },
  { CX_WORLD_LAUNCHER_SLURM, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID", NULL, "SLURM_NODEID", "SLURM_STEP_NUM_NODES" },
};

enum { MAX_PROCESSES = 1 << 20 };

// ---- which launcher ---------------------------------------------------------

// A batch script sees SLURM_PROCID=0 too; only a step, which srun started, has
// a list of nodes.
static bool is_slurm_step(void)
{
  return cx_env_text("SLURM_STEP_NODELIST") != NULL;
}

static bool is_started_by(const row *r)
{
  if (r->launcher == CX_WORLD_LAUNCHER_SLURM) {
    return is_slurm_step() && cx_env_text(r->rank) != NULL;
  }
  if (r->launcher == CX_WORLD_LAUNCHER_PMIX) {
    return cx_env_text(r->rank) != NULL;
  }
  return cx_env_text(r->rank) != NULL || cx_env_text(r->size) != NULL;
}

// srun --mpi=pmi2 sets rank and size as MPICH's mpirun does, and the others
// under Slurm's names.
static row names_of(const row *r)
{
  row names = *r;
  if (r->launcher == CX_WORLD_LAUNCHER_MPICH && is_slurm_step() &&
      cx_env_text(r->local_rank) == NULL) {
    names.local_rank = "SLURM_LOCALID";
    names.local_size = NULL;
    names.host = "SLURM_NODEID";
    names.hosts = "SLURM_STEP_NUM_NODES";
  }
  return names;
}

// ---- its numbers ------------------------------------------------------------

typedef struct numbers {
  int rank, size, local_rank, local_size, host, hosts;  // -1: not set
} numbers;

// Checks that part < whole, or with `may_equal` part <= whole, if both are set.
static calx_status *check_pair(const char *part_name, int part,
                               const char *whole_name, int whole,
                               bool may_equal)
{
  if (part < 0 || whole < 0 || part < whole + (may_equal ? 1 : 0)) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT, "%s is %d, but %s is %d", part_name,
                  part, whole_name, whole);
}

static calx_status *check_not_zero(const char *name, int value)
{
  if (value != 0) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT, "%s is 0, 1 or more is wanted", name);
}

static calx_status *check_set(const char *name, int value,
                              const char *other_name, int other)
{
  if (value >= 0) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT, "%s is %d, but %s is not set",
                  other_name, other, name);
}

static calx_status *read_numbers(const row *r, numbers *out)
{
  CALX_TRY(cx_env_int(r->rank, 0, MAX_PROCESSES, &out->rank));
  CALX_TRY(cx_env_int(r->size, 0, MAX_PROCESSES, &out->size));
  CALX_TRY(cx_env_int(r->local_rank, 0, MAX_PROCESSES, &out->local_rank));
  CALX_TRY(cx_env_int(r->local_size, 0, MAX_PROCESSES, &out->local_size));
  CALX_TRY(cx_env_int(r->host, 0, MAX_PROCESSES, &out->host));
  CALX_TRY(cx_env_int(r->hosts, 0, MAX_PROCESSES, &out->hosts));
  CALX_TRY(check_set(r->rank, out->rank, r->size, out->size));
  CALX_TRY(check_set(r->size, out->size, r->rank, out->rank));
  CALX_TRY(check_not_zero(r->size, out->size));
  CALX_TRY(check_not_zero(r->local_size, out->local_size));
  CALX_TRY(check_not_zero(r->hosts, out->hosts));
  CALX_TRY(check_pair(r->rank, out->rank, r->size, out->size, false));
  CALX_TRY(check_pair(r->local_rank, out->local_rank, r->local_size,
                      out->local_size, false));
  CALX_TRY(
      check_pair(r->local_rank, out->local_rank, r->size, out->size, false));
  CALX_TRY(
      check_pair(r->local_size, out->local_size, r->size, out->size, true));
  CALX_TRY(check_pair(r->host, out->host, r->hosts, out->hosts, false));
  return check_pair(r->hosts, out->hosts, r->size, out->size, true);
}

int cx_world_tasks_of_node(const char *list, int index)
{
  while (*list >= '0' && *list <= '9') {
    char *end;
    long tasks = strtol(list, &end, 10), times = 1;
    if (strncmp(end, "(x", 2) == 0) {
      times = strtol(end + 2, &end, 10);
      if (*end == ')') end++;
    }
    if (tasks < 0 || tasks > MAX_PROCESSES || times < 1) return 0;
    if (index < times) return (int)tasks;
    index -= (int)times;
    list = *end == ',' ? end + 1 : end;
  }
  return 0;
}

// Slurm sets the numbers of processes of all nodes as one list.
static void read_slurm_local_size(const row *r, numbers *n)
{
  const char *list = cx_env_text("SLURM_STEP_TASKS_PER_NODE");
  bool slurm = r->host != NULL && strcmp(r->host, "SLURM_NODEID") == 0;
  if (!slurm || list == NULL || n->host < 0) return;
  int tasks = cx_world_tasks_of_node(list, n->host);
  if (tasks > 0 && tasks > n->local_rank && tasks <= n->size) {
    n->local_size = tasks;
  }
}

// Computes what is not set from the rest, as blocks of equal size.
static void complete(numbers *n)
{
  if (n->local_size < 0 && n->hosts > 0) {
    n->local_size = (n->size + n->hosts - 1) / n->hosts;
  }
  if (n->local_size < 0) n->local_size = n->size;
  if (n->hosts < 0) n->hosts = (n->size + n->local_size - 1) / n->local_size;
  if (n->host < 0) n->host = n->rank / n->local_size;
  if (n->host >= n->hosts) n->host = n->hosts - 1;
  if (n->local_rank < 0) n->local_rank = n->rank % n->local_size;
}

static calx_status *check_hosts(const row *r, const numbers *n)
{
  bool one = n->hosts == 1, all = n->local_size == n->size;
  if (r->hosts == NULL || n->hosts < 0 || n->local_size < 0 || one == all) {
    return NULL;
  }
  return cx_error(CALX_INVALID_ARGUMENT,
                  "%s is %d, but %s is %d and the processes of this host are "
                  "%d",
                  r->hosts, n->hosts, r->size, n->size, n->local_size);
}

calx_status *cx_world_info_read(cx_world_info *out_info,
                                cx_world_endpoint *out_endpoint)
{
  *out_info = (cx_world_info)CX_WORLD_INFO_ALONE;
  *out_endpoint = (cx_world_endpoint){ .hosts_known = true };
  const row *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && found == NULL; i++) {
    if (is_started_by(&rows[i])) found = &rows[i];
  }
  if (found == NULL) return NULL;
  row names = names_of(found);
  numbers n;
  CALX_TRY(read_numbers(&names, &n));
  read_slurm_local_size(&names, &n);
  CALX_TRY(check_hosts(&names, &n));
  out_endpoint->hosts_known = n.hosts >= 0 && n.host >= 0;
  if (out_endpoint->hosts_known && n.hosts > 1 && n.local_rank < 0) {
    out_endpoint->hosts_known = false;
  }
  complete(&n);
  out_info->launcher = found->launcher;
  out_info->process = n.rank;
  out_info->processes = n.size;
  out_info->local_process = n.local_rank;
  out_info->local_processes = n.local_size;
  out_info->host = n.host;
  out_info->hosts = n.hosts;
  return cx_world_endpoint_read(out_info, out_endpoint);
}

calx_status *cx_world_find(cx_world_info *out)
{
  cx_world_endpoint endpoint;
  return cx_world_info_read(out, &endpoint);
}
