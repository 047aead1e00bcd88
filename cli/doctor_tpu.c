// cli/doctor_tpu: what libtpu reads: its variables, its lock file, and how much
// memory a process may pin.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/options.h"
#include "doctor.h"
#include "pjrt/internal.h"

// ---- variables --------------------------------------------------------------

#define VISIBLE "TPU_VISIBLE_CHIPS"
#define CHIPS "TPU_CHIPS_PER_PROCESS_BOUNDS"
#define PROCESSES "TPU_PROCESS_BOUNDS"
#define ADDRESSES "TPU_PROCESS_ADDRESSES"

static int64_t count(const char *name)
{
  const char *list = cx_env_text(name);
  int64_t n = list != NULL;
  for (; list != NULL && *list != '\0'; list++) n += *list == ',';
  return n;
}

// The product of "x,y,z"; 0: not set; -1: it is none.
static int64_t volume(const char *name)
{
  const char *text = cx_env_text(name);
  int x, y, z;
  char rest;
  if (text == NULL) return 0;
  if (sscanf(text, "%d,%d,%d%c", &x, &y, &z, &rest) != 3 || x < 1 || y < 1 ||
      z < 1 || x > 1024 || y > 1024 || z > 1024) {
    return -1;
  }
  return (int64_t)x * y * z;
}

static int64_t number(const char *name)
{
  const char *text = cx_env_text(name);
  int64_t n;
  return text != NULL && cx_read_int(text, 0, 1 << 20, &n) ? n : -1;
}

static void check_bounds(cx_cli_doctor_state *d)
{
  static const char *const names[] = { CHIPS, PROCESSES,
                                       "TPU_CHIPS_PER_HOST_BOUNDS",
                                       "TPU_HOST_BOUNDS" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (volume(names[i]) >= 0) continue;
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "%s is '%s' -> three numbers are wanted, as 2,2,1",
                       names[i], cx_env_text(names[i]));
  }
}

// Two names of one thing, the former one and today's.
static void check_names(cx_cli_doctor_state *d)
{
  static const char *const names[][2] = {
    { "TPU_VISIBLE_DEVICES", VISIBLE },
    { "TPU_HOST_BOUNDS", PROCESSES },
    { "TPU_CHIPS_PER_HOST_BOUNDS", CHIPS },
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *old = cx_env_text(names[i][0]);
    const char *today = cx_env_text(names[i][1]);
    if (old == NULL || today == NULL || strcmp(old, today) == 0) continue;
    cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                       "%s is '%s' and %s, its name of today, is '%s' -> unset "
                       "the former",
                       names[i][0], old, names[i][1], today);
  }
}

// `of` has `n` parts, but `other` is for `wanted`.
static void check_equal(cx_cli_doctor_state *d, const char *of, int64_t n,
                        const char *other, int64_t wanted)
{
  if (n < 1 || wanted < 1 || n == wanted) return;
  cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                     "%s='%s' names %" PRId64 ", but %s='%s' is for %" PRId64,
                     of, cx_env_text(of), n, other, cx_env_text(other), wanted);
}

static void check_below(cx_cli_doctor_state *d, const char *name,
                        const char *list, int64_t size)
{
  if (size < 1 || number(name) < size) return;
  cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                     "%s is %" PRId64 ", but %s='%s' is for %" PRId64
                     ": it counts from 0",
                     name, number(name), list, cx_env_text(list), size);
}

// This process's address has this process's port.
static void check_port(cx_cli_doctor_state *d)
{
  const char *port = cx_env_text("TPU_PROCESS_PORT");
  const char *address = cx_env_text(ADDRESSES);
  int64_t task = number("CLOUD_TPU_TASK_ID");
  if (port == NULL || address == NULL || task < 0 || task >= count(ADDRESSES)) {
    return;
  }
  for (; task > 0; task--) address = strchr(address, ',') + 1;
  size_t n = strcspn(address, ","), size = strlen(port);
  if (n > size && address[n - size - 1] == ':' &&
      strncmp(address + n - size, port, size) == 0) {
    return;
  }
  cx_cli_doctor_find(d, CX_CLI_WRONG, "variables",
                     "TPU_PROCESS_PORT is %s, but " ADDRESSES
                     " has %.*s for CLOUD_TPU_TASK_ID=%s",
                     port, (int)n, address, cx_env_text("CLOUD_TPU_TASK_ID"));
}

// ---- the machine ------------------------------------------------------------

// libtpu refuses to start where the file is, or cannot be written. A process
// that is killed leaves it.
static void check_lock(cx_cli_doctor_state *d)
{
  cx_cli_doctor_path file = cx_cli_doctor_at(d, "/tmp/libtpu_lockfile");
  if (!cx_file_exists(file.s)) return;
  cx_cli_holders all;
  cx_cli_holders_find(d, &all);
  bool held = all.unseen > 0;
  for (size_t i = 0; i < all.n; i++) held = held || all.items[i].has_tpu;
  cx_cli_holders_free(&all);
  if (access(file.s, W_OK) != 0) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "tpu",
                       "'%s' is another user's, and libtpu wants to write it "
                       "-> sudo rm %s, when nobody uses the TPU",
                       file.s, file.s);
  } else if (!held) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "tpu",
                       "'%s' is there although no process has the TPU: one "
                       "that was killed left it -> rm %s",
                       file.s, file.s);
  }
}

static void check_pinned(cx_cli_doctor_state *d)
{
  struct rlimit limit;
  cx_cli_doctor_path vfio = cx_cli_doctor_at(d, "/dev/vfio");
  if (!cx_file_exists(vfio.s) || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return;
  }
  cx_cli_doctor_find(d, CX_CLI_WRONG, "tpu",
                     "a process may pin %" PRIu64
                     " bytes of memory, and a TPU behind /dev/vfio needs more "
                     "-> ulimit -l unlimited; for docker: --ulimit memlock=-1",
                     (uint64_t)limit.rlim_cur);
}

void cx_cli_doctor_tpu(cx_cli_doctor_state *d)
{
  check_bounds(d);
  check_names(d);
  check_equal(d, VISIBLE, count(VISIBLE), CHIPS, volume(CHIPS));
  check_equal(d, ADDRESSES, count(ADDRESSES), PROCESSES, volume(PROCESSES));
  check_below(d, "CLOUD_TPU_TASK_ID", PROCESSES, volume(PROCESSES));
  check_below(d, "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES",
              count("TPU_WORKER_HOSTNAMES"));
  check_port(d);
  check_lock(d);
  cx_cli_doctor_path dev = cx_cli_doctor_at(d, "/dev");
  if (cx_pjrt_has_tpu(dev.s)) check_pinned(d);
}
