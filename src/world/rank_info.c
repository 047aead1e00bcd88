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

// The numbers that every launcher sets; -1: not set.
enum { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, HOST, HOSTS, NUMBERS };

typedef struct launcher_names {
  cx_world_launcher launcher;
  const char *names[NUMBERS];
} launcher_names;

static const launcher_names rows[] = {
  { CX_WORLD_LAUNCHER_CALX,
    { "CALX_RANK", "CALX_WORLD", "CALX_LOCAL_RANK", "CALX_LOCAL_WORLD",
      "CALX_NODE_RANK", "CALX_NNODES" } },
  { CX_WORLD_LAUNCHER_TORCHRUN,
    { "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
      "GROUP_WORLD_SIZE" } },
  { CX_WORLD_LAUNCHER_OPENMPI,
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL,
      NULL } },
  { CX_WORLD_LAUNCHER_MPICH,
    { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL,
      NULL } },
  { CX_WORLD_LAUNCHER_PMIX,
    { "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
      "SLURM_NODEID", "SLURM_STEP_NUM_NODES" } },
  { CX_WORLD_LAUNCHER_SLURM,
    { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
      "SLURM_NODEID", "SLURM_STEP_NUM_NODES" } },
};

enum { MAX_PROCESSES = 1 << 20 };

// ---- which launcher ---------------------------------------------------------

// A batch script sees SLURM_PROCID=0 too; only a step, which srun started, has
// a list of nodes.
static bool is_slurm_step(void)
{
  return cx_env_text("SLURM_STEP_NODELIST") != NULL;
}

static bool is_started_by(const launcher_names *r)
{
  bool has_rank = cx_env_text(r->names[RANK]) != NULL;
  switch (r->launcher) {
    case CX_WORLD_LAUNCHER_SLURM: return is_slurm_step() && has_rank;
    case CX_WORLD_LAUNCHER_PMIX: return has_rank;
    default: return has_rank || cx_env_text(r->names[SIZE]) != NULL;
  }
}

// srun --mpi=pmi2 sets rank and size as MPICH's mpirun does, and the others
// under Slurm's names.
static launcher_names names_of(const launcher_names *r)
{
  launcher_names changed = *r;
  if (r->launcher == CX_WORLD_LAUNCHER_MPICH && is_slurm_step() &&
      cx_env_text(r->names[LOCAL_RANK]) == NULL) {
    changed.names[LOCAL_RANK] = "SLURM_LOCALID";
    changed.names[LOCAL_SIZE] = NULL;
    changed.names[HOST] = "SLURM_NODEID";
    changed.names[HOSTS] = "SLURM_STEP_NUM_NODES";
  }
  return changed;
}

// ---- its numbers ------------------------------------------------------------

static calx_status *check_set(const launcher_names *r, const int *n, int number,
                              int other)
{
  if (n[number] >= 0) return NULL;
  return cx_invalid("%s is %d, but %s is not set", r->names[other], n[other],
                    r->names[number]);
}

static calx_status *read_numbers(const launcher_names *r, int n[NUMBERS])
{
  static const int counts[] = { SIZE, LOCAL_SIZE, HOSTS };
  // Where both are set: number < limit + more.
  static const struct {
    int number, limit, more;
  } pairs[] = { { RANK, SIZE, 0 },       { LOCAL_RANK, LOCAL_SIZE, 0 },
                { LOCAL_RANK, SIZE, 0 }, { LOCAL_SIZE, SIZE, 1 },
                { HOST, HOSTS, 0 },      { HOSTS, SIZE, 1 } };
  for (int i = 0; i < NUMBERS; i++) {
    CALX_TRY(cx_env_int(r->names[i], 0, MAX_PROCESSES, &n[i]));
  }
  CALX_TRY(check_set(r, n, RANK, SIZE));
  CALX_TRY(check_set(r, n, SIZE, RANK));
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (n[counts[i]] != 0) continue;
    return cx_invalid("%s is 0, 1 or more is wanted", r->names[counts[i]]);
  }
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    int number = n[pairs[i].number], limit = n[pairs[i].limit];
    if (number < 0 || limit < 0 || number < limit + pairs[i].more) continue;
    return cx_invalid("%s is %d, but %s is %d", r->names[pairs[i].number],
                      number, r->names[pairs[i].limit], limit);
  }
  return NULL;
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
static void read_slurm_local_size(const launcher_names *r, int n[NUMBERS])
{
  const char *list = cx_env_text("SLURM_STEP_TASKS_PER_NODE");
  const char *host = r->names[HOST];
  bool slurm = host != NULL && strcmp(host, "SLURM_NODEID") == 0;
  if (!slurm || list == NULL || n[HOST] < 0) return;
  int tasks = cx_world_tasks_of_node(list, n[HOST]);
  if (tasks > 0 && tasks > n[LOCAL_RANK] && tasks <= n[SIZE]) {
    n[LOCAL_SIZE] = tasks;
  }
}

// Computes what is not set from the rest, as blocks of equal size.
static void complete(int n[NUMBERS])
{
  if (n[LOCAL_SIZE] < 0 && n[HOSTS] > 0) {
    n[LOCAL_SIZE] = (n[SIZE] + n[HOSTS] - 1) / n[HOSTS];
  }
  if (n[LOCAL_SIZE] < 0) n[LOCAL_SIZE] = n[SIZE];
  int size = n[LOCAL_SIZE];
  if (n[HOSTS] < 0) n[HOSTS] = (n[SIZE] + size - 1) / size;
  if (n[HOST] < 0) n[HOST] = n[RANK] / size;
  if (n[HOST] >= n[HOSTS]) n[HOST] = n[HOSTS] - 1;
  if (n[LOCAL_RANK] < 0) n[LOCAL_RANK] = n[RANK] % size;
}

static calx_status *check_hosts(const launcher_names *r, const int n[NUMBERS])
{
  bool one = n[HOSTS] == 1, all = n[LOCAL_SIZE] == n[SIZE];
  if (n[HOSTS] < 0 || n[LOCAL_SIZE] < 0 || one == all) return NULL;
  return cx_invalid(
      "%s is %d, but %s is %d and the processes of this host are %d",
      r->names[HOSTS], n[HOSTS], r->names[SIZE], n[SIZE], n[LOCAL_SIZE]);
}

calx_status *cx_world_info_read(cx_world_info *out_info,
                                cx_world_endpoint *out_endpoint)
{
  *out_info = (cx_world_info)CX_WORLD_INFO_ALONE;
  *out_endpoint = (cx_world_endpoint){ .hosts_known = true };
  const launcher_names *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && found == NULL; i++) {
    if (is_started_by(&rows[i])) found = &rows[i];
  }
  if (found == NULL) return NULL;
  launcher_names names = names_of(found);
  int n[NUMBERS];
  CALX_TRY(read_numbers(&names, n));
  read_slurm_local_size(&names, n);
  CALX_TRY(check_hosts(&names, n));
  out_endpoint->hosts_known =
      n[HOSTS] >= 0 && n[HOST] >= 0 && (n[HOSTS] == 1 || n[LOCAL_RANK] >= 0);
  complete(n);
  *out_info = (cx_world_info){ .launcher = found->launcher,
                               .process = n[RANK],
                               .processes = n[SIZE],
                               .local_process = n[LOCAL_RANK],
                               .local_processes = n[LOCAL_SIZE],
                               .host = n[HOST],
                               .hosts = n[HOSTS],
                               .devices = 1 };
  return cx_world_endpoint_read(out_info, out_endpoint);
}

calx_status *cx_world_find(cx_world_info *out)
{
  cx_world_endpoint endpoint;
  return cx_world_info_read(out, &endpoint);
}
