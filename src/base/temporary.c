// base/temporary: which process a temporary file belongs to.
//
// A process that is killed leaves its temporary file. The next process that
// writes into the folder removes it, by its name alone, which has the writer's
// process id and where that id is valid. Machines share folders, and so do
// containers, so WHERE is a hash of the machine's start and of the process's id
// namespace (proc(5), pid_namespaces(7)). Where another process has got the id,
// the file stays.
#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

enum { MOST_NAME = 180 };  // bytes of the path's last part that are kept

#define MARK ".calx-"
#define END ".tmp"

// 0: it is not known here, and nothing is removed.
static uint64_t where(void)
{
  char facts[128];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, facts, 64);
  close(fd);
  if (n <= 0) return 0;
  ssize_t more = readlink("/proc/self/ns/pid", facts + n, 64);
  if (more <= 0) return 0;
  uint64_t hash = cx_hash_bytes(facts, (size_t)(n + more), 0).low;
  return hash != 0 ? hash : 1;
}

void cx_temporary_name(const char *path, char out[PATH_MAX])
{
  static atomic_uint counter;
  const char *slash = strrchr(path, '/');
  const char *base = slash != NULL ? slash + 1 : path;
  size_t length = strlen(base), folder = (size_t)(base - path);
  if (length > MOST_NAME) length = MOST_NAME;
  snprintf(out, PATH_MAX, "%.*s" MARK "%016" PRIx64 "-%ld-%u" END,
           (int)(folder + length), path, where(), (long)getpid(),
           atomic_fetch_add(&counter, 1));
}

// "model.pt.calx-WHERE-PID-N.tmp": whether it is of that form, with WHERE.
static bool read_name(const char *name, uint64_t here, long *out_pid)
{
  const char *mark = NULL;
  for (const char *p = name; (p = strstr(p, MARK)) != NULL; p++) mark = p;
  if (mark == NULL) return false;
  char wanted[24];
  snprintf(wanted, sizeof wanted, "%016" PRIx64 "-", here);
  const char *p = mark + strlen(MARK);
  if (strncmp(p, wanted, strlen(wanted)) != 0) return false;
  p += strlen(wanted);
  char *end;
  if (*p < '1' || *p > '9') return false;
  *out_pid = strtol(p, &end, 10);
  if (*end != '-' || *out_pid > INT_MAX) return false;
  p = end + 1;
  return strcmp(p + strspn(p, "0123456789"), END) == 0;
}

void cx_temporary_sweep(const char *folder)
{
  uint64_t here = where();
  DIR *dir = here != 0 ? opendir(folder) : NULL;
  if (dir == NULL) return;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    long pid;
    if (!read_name(e->d_name, here, &pid)) continue;
    bool ended = kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    if (ended) unlinkat(dirfd(dir), e->d_name, 0);
  }
  closedir(dir);
}
