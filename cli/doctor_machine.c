// cli/doctor_machine: rights on the devices, the cache of programs, memory.
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "doctor.h"
#include "lazy/cache/cache.h"
#include "profiler/metric.h"

#define LITTLE_DISK (256LL << 20)
#define LITTLE_SHM (128LL << 20)
#define LITTLE_MEMORY (512LL << 20)
#define FEW_FILES 1024

static void append_bytes(cx_text *out, const char *what, uint64_t bytes)
{
  cx_text_format(out, "%s", what);
  cx_profiler_bytes(out, (double)bytes);
}

// ---- devices ----------------------------------------------------------------

static void check_rights(cx_cli_doctor_state *d, const char *folder,
                         const char *name)
{
  struct stat info;
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "%s/%s", folder, name);
  if (stat(at.s, &info) != 0 || S_ISDIR(info.st_mode)) return;
  cx_text_format(&d->facts, "device %s/%s: mode %04o\n", folder, name,
                 (unsigned)info.st_mode & 07777);
  if (access(at.s, R_OK | W_OK) == 0) return;
  const int error = errno;
  const struct group *group = getgrgid(info.st_gid);
  cx_cli_doctor_find(d, CX_CLI_WRONG, "devices",
                     "%s/%s may not be opened by this user: %s, group %s, mode "
                     "%04o -> join the group (sudo usermod -aG), or sudo",
                     folder, name, strerror(error),
                     group != NULL ? group->gr_name : "?",
                     (unsigned)info.st_mode & 07777);
}

// The files of a folder of /dev that begin so.
static void check_devices(cx_cli_doctor_state *d, const char *folder,
                          const char *begin)
{
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "%s", folder);
  DIR *list = opendir(at.s);
  if (list == NULL) return;
  for (const struct dirent *e; (e = readdir(list)) != NULL;) {
    if (e->d_name[0] != '.' && strncmp(e->d_name, begin, strlen(begin)) == 0) {
      check_rights(d, folder, e->d_name);
    }
  }
  closedir(list);
}

// ---- the cache --------------------------------------------------------------

// The folder, or its nearest parent that is there.
static void find_existing(const char *path, char out[PATH_MAX])
{
  snprintf(out, PATH_MAX, "%s", path);
  while (out[0] != '\0' && !cx_file_exists(out)) {
    char *slash = strrchr(out, '/');
    if (slash == NULL) {
      snprintf(out, PATH_MAX, ".");
    } else {
      slash[slash == out ? 1 : 0] = '\0';
    }
  }
}

static void check_space(cx_cli_doctor_state *d, const char *folder)
{
  struct statvfs disk;
  if (statvfs(folder, &disk) != 0) return;
  int64_t left = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
  if (left >= LITTLE_DISK) return;
  cx_text text = { 0 };
  append_bytes(&text, "", (uint64_t)left);
  cx_cli_doctor_find(d, CX_CLI_WRONG, "cache",
                     "the disk of '%s' has only %s left -> calx cache clear",
                     folder, cx_text_str(&text));
  cx_text_free(&text);
}

static void tell_size(cx_cli_doctor_state *d, const char *path)
{
  cx_lazy_cache cache;
  cx_text text = { 0 };
  uint64_t bytes = 0;
  calx_status *status = cx_lazy_cache_open(path, &cache);
  for (size_t i = 0; i < cache.n; i++) bytes += cache.files[i].size;
  cx_text_format(&text, "'%s' has %zu file%s, ", path, cache.n,
                 cache.n == 1 ? "" : "s");
  append_bytes(&text, "", bytes);
  append_bytes(&text, " of at most ", cx_lazy_cache_limit());
  if (status == NULL) {
    cx_cli_doctor_find(d, CX_CLI_FINE, "cache", "%s", cx_text_str(&text));
    cx_text_format(&d->facts, "cache: %s\n", cx_text_str(&text));
  } else {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "cache", "%s",
                       calx_status_message(status));
  }
  calx_status_free(status);
  cx_lazy_cache_close(&cache);
  cx_text_free(&text);
}

// The folder is not made here: of a doctor that root called it would be root's.
static void check_cache(cx_cli_doctor_state *d)
{
  cx_text path = { 0 };
  bool readonly;
  char existing[PATH_MAX];
  if (!cx_lazy_cache_path(&path, &readonly)) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "cache",
                       "there is none: each program is compiled in each run "
                       "(CALX_CACHE_DIR is off, or HOME is not set)");
    cx_text_free(&path);
    return;
  }
  find_existing(cx_text_str(&path), existing);
  bool there = strcmp(existing, cx_text_str(&path)) == 0;
  calx_status *status =
      there ? cx_lazy_cache_folder(cx_text_str(&path), false) : NULL;
  if (status != NULL) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "cache", "%s -> CALX_CACHE_DIR",
                       calx_status_message(status));
  } else if (access(existing, W_OK | X_OK) != 0) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "cache",
                       "'%s' cannot be written: %s -> CALX_CACHE_DIR names "
                       "another folder",
                       existing, strerror(errno));
  } else if (there) {
    tell_size(d, cx_text_str(&path));
  } else {
    cx_cli_doctor_find(d, CX_CLI_FINE, "cache", "'%s' will be made",
                       cx_text_str(&path));
  }
  calx_status_free(status);
  check_space(d, existing);
  cx_text_free(&path);
}

// ---- memory and limits ------------------------------------------------------

// A line "NAME: 123 kB" of /proc/meminfo, as bytes; -1: there is none.
static int64_t meminfo(const char *text, const char *name)
{
  const char *line = strstr(text, name);
  return line == NULL ? -1 : strtoll(line + strlen(name), NULL, 10) * 1024;
}

// Of the control group, of either version; -1: none.
static int64_t group_limit(const cx_cli_doctor_state *d)
{
  static const char *const paths[] = {
    "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
  };
  cx_text text = { 0 };
  int64_t bytes = -1;
  for (size_t i = 0; i < 2 && bytes < 0; i++) {
    if (!cx_cli_doctor_read(d, paths[i], &text)) continue;
    char *end;
    bytes = strtoll(cx_text_str(&text), &end, 10);
    if (end == cx_text_str(&text) || bytes > INT64_C(1) << 50) bytes = -1;
  }
  cx_text_free(&text);
  return bytes;
}

static void check_memory(cx_cli_doctor_state *d)
{
  cx_text text = { 0 }, facts = { 0 };
  if (!cx_cli_doctor_read(d, "/proc/meminfo", &text)) {
    cx_text_free(&text);
    return;
  }
  int64_t total = meminfo(cx_text_str(&text), "MemTotal:");
  int64_t left = meminfo(cx_text_str(&text), "MemAvailable:");
  int64_t limit = group_limit(d);
  if (total >= 0) append_bytes(&facts, "", (uint64_t)total);
  if (left >= 0) append_bytes(&facts, ", available ", (uint64_t)left);
  if (limit >= 0)
    append_bytes(&facts, ", this group's limit ", (uint64_t)limit);
  bool little = (left >= 0 && left < LITTLE_MEMORY) ||
                (limit >= 0 && limit < LITTLE_MEMORY);
  cx_cli_doctor_find(d, little ? CX_CLI_WRONG : CX_CLI_FINE, "memory", "%s%s",
                     cx_text_str(&facts),
                     little ? ": too little to compile and train -> other "
                              "programs, or the container's limit"
                            : "");
  cx_text_format(&d->facts, "memory: %s\n", cx_text_str(&facts));
  cx_text_free(&facts);
  cx_text_free(&text);
}

// NCCL, under CUDA's plugin, and MPI exchange data through it.
static void check_shared_memory(cx_cli_doctor_state *d)
{
  struct statvfs disk;
  cx_cli_doctor_path at = cx_cli_doctor_at(d, "/dev/shm");
  if (statvfs(at.s, &disk) != 0) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "memory",
                       "there is no /dev/shm, which NCCL and MPI need");
    return;
  }
  uint64_t bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
  cx_text text = { 0 };
  append_bytes(&text, "", bytes);
  cx_text_format(&d->facts, "/dev/shm: %s\n", cx_text_str(&text));
  if (bytes < LITTLE_SHM) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "memory",
                       "/dev/shm has only %s, which NCCL and MPI may fill -> "
                       "docker run --shm-size=1g",
                       cx_text_str(&text));
  }
  cx_text_free(&text);
}

static void tell_limit(cx_cli_doctor_state *d, const char *name, int which,
                       rlim_t *out)
{
  struct rlimit limit;
  *out = RLIM_INFINITY;
  if (getrlimit(which, &limit) == 0) *out = limit.rlim_cur;
  if (*out == RLIM_INFINITY) {
    cx_text_format(&d->facts, "ulimit %s: unlimited\n", name);
  } else {
    cx_text_format(&d->facts, "ulimit %s: %" PRIu64 "\n", name, (uint64_t)*out);
  }
}

static void check_limits(cx_cli_doctor_state *d)
{
  rlim_t addresses, files, pinned;
  tell_limit(d, "-v (bytes)", RLIMIT_AS, &addresses);
  tell_limit(d, "-n", RLIMIT_NOFILE, &files);
  tell_limit(d, "-l (bytes)", RLIMIT_MEMLOCK, &pinned);
  if (addresses != RLIM_INFINITY) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "limits",
                       "a process may have %" PRIu64
                       " bytes of addresses (ulimit -v), and the compiler ends "
                       "the process where that is too little -> ulimit -v "
                       "unlimited",
                       (uint64_t)addresses);
  }
  if (files < FEW_FILES) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "limits",
                       "a process may open %" PRIu64
                       " files: few for many ranks -> ulimit -n 4096",
                       (uint64_t)files);
  }
}

void cx_cli_doctor_machine(cx_cli_doctor_state *d)
{
  check_devices(d, "/dev", "accel");
  check_devices(d, "/dev/accel", "accel");
  check_devices(d, "/dev/vfio", "");
  check_devices(d, "/dev", "nvidia");
  check_cache(d);
  check_memory(d);
  check_shared_memory(d);
  check_limits(d);
}
