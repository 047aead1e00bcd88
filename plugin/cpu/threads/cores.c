// threads/cores: how many cores this process may use.
//
// Two limits count: the cores that the scheduler may choose from (affinity),
// and the share of their time that a control group grants (quota), which
// containers set. A group's quota also binds the groups below it, and inside a
// container the path that /proc tells may not exist under the mount, so each
// path is walked up to the mount's own files.
// Source: the kernel's Documentation/admin-guide/cgroup-v2.rst ("cpu.max") and
// Documentation/scheduler/sched-bwc.rst ("cpu.cfs_quota_us").
#include "threads/cores.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads/threads.h"

#define PATH_BYTES 4096

// The file's first bytes as a string; false: it cannot be read.
static bool read_start(const char *path, char *text, size_t bytes)
{
  FILE *f = fopen(path, "re");
  if (f == NULL) return false;
  size_t n = fread(text, 1, bytes - 1, f);
  fclose(f);
  text[n] = '\0';
  return n != 0;
}

// Of microseconds granted in each period; 0: no limit.
static int cores_of(long long quota, long long period)
{
  if (quota <= 0 || period <= 0) return 0;
  long long cores = quota / period + (quota % period != 0);
  return cores > 1 << 20 ? 1 << 20 : (int)cores;
}

static int quota_v2(const char *folder)
{
  char path[PATH_BYTES + 32], text[128];
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  long long quota, period;  // "max 100000" where there is no limit
  if (!read_start(path, text, sizeof text) ||
      sscanf(text, "%lld %lld", &quota, &period) != 2) {
    return 0;
  }
  return cores_of(quota, period);
}

static int quota_v1(const char *folder)
{
  char path[PATH_BYTES + 32], quota[64], period[64];
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
  if (!read_start(path, quota, sizeof quota)) return 0;
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
  if (!read_start(path, period, sizeof period)) return 0;
  return cores_of(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static int smaller(int a, int b)
{
  return a == 0 || (b != 0 && b < a) ? b : a;
}

// The smallest along `group` and its parents.
static int walk(const char *mount, const char *group, size_t n,
                int (*quota)(const char *folder))
{
  char folder[PATH_BYTES];
  int out = 0;
  for (;;) {
    while (n != 0 && group[n - 1] == '/') n--;
    int length =
        snprintf(folder, sizeof folder, "%s%.*s", mount, (int)n, group);
    if (length > 0 && (size_t)length < sizeof folder) {
      out = smaller(out, quota(folder));
    }
    if (n == 0) return out;
    while (n != 0 && group[n - 1] != '/') n--;
  }
}

// Whether `cpu` is one of the names between commas.
static bool has_cpu(const char *names, size_t n)
{
  for (size_t at = 0; at + 3 <= n; at++) {
    bool begins = at == 0 || names[at - 1] == ',';
    bool ends = at + 3 == n || names[at + 3] == ',';
    if (begins && ends && memcmp(names + at, "cpu", 3) == 0) return true;
  }
  return false;
}

int cpu_threads_quota(const char *list, const char *mount)
{
  int out = 0;
  // Lines are ID:CONTROLLERS:PATH; version 2 has no controllers.
  for (const char *line = list; *line != '\0';) {
    const char *end = strchrnul(line, '\n');
    const char *names = memchr(line, ':', (size_t)(end - line));
    const char *path = NULL;
    if (names != NULL) {
      names++;
      path = memchr(names, ':', (size_t)(end - names));
    }
    if (path != NULL) {
      size_t n_names = (size_t)(path - names);
      size_t n_path = (size_t)(end - path) - 1;
      if (n_names == 0) {
        out = smaller(out, walk(mount, path + 1, n_path, quota_v2));
      } else if (has_cpu(names, n_names)) {
        char at[PATH_BYTES];
        snprintf(at, sizeof at, "%s/%.*s", mount, (int)n_names, names);
        out = smaller(out, walk(at, path + 1, n_path, quota_v1));
      }
    }
    line = *end == '\0' ? end : end + 1;
  }
  return out;
}

static int affinity(void)
{
  // Grows until the kernel's mask fits.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC((size_t)cpus);
    if (set == NULL) return 1;
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
    int failed = sched_getaffinity(0, bytes, set);
    int n = failed ? 0 : CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (!failed) return n < 1 ? 1 : n;
  }
  return 1;
}

int cpu_threads_cores(void)
{
  char list[8192];
  int cores = affinity();
  if (!read_start("/proc/self/cgroup", list, sizeof list)) return cores;
  return smaller(cores, cpu_threads_quota(list, "/sys/fs/cgroup"));
}
