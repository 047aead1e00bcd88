// launcher/orphans: see orphans.h. A launcher that had children before the
// launch adopts none, because it could not distinguish their orphans from those
// of the ranks.
#include "launcher/orphans.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// The next process in /proc that is a child of this one; 0: there are no more.
static pid_t next_child(DIR *processes)
{
  for (const struct dirent *e; (e = readdir(processes)) != NULL;) {
    char path[300], line[512];
    long parent = 0;
    if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
    FILE *file = fopen(path, "re");
    if (file == NULL) continue;
    size_t n = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[n] = '\0';
    const char *after = strrchr(line, ')');
    if (after == NULL || sscanf(after + 1, " %*c %ld", &parent) != 1) continue;
    if (parent == (long)getpid()) return (pid_t)atol(e->d_name);
  }
  return 0;
}

static bool is_own(const cx_launcher_orphans *o, pid_t pid)
{
  for (int i = 0; i < o->count; i++) {
    if (o->children[i] == pid) return true;
  }
  return pid == *o->service;
}

void cx_launcher_orphans_begin(cx_launcher_orphans *o)
{
  DIR *processes = opendir("/proc");
  if (processes == NULL) return;
  bool alone = next_child(processes) == 0;
  closedir(processes);
  o->adopts = alone && prctl(PR_GET_CHILD_SUBREAPER, &o->was) == 0 &&
              prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void cx_launcher_orphans_end(cx_launcher_orphans *o)
{
  if (o->adopts) prctl(PR_SET_CHILD_SUBREAPER, o->was);
  *o = (cx_launcher_orphans){ 0 };
}

void cx_launcher_orphans_reap(const cx_launcher_orphans *o)
{
  // WNOWAIT returns the same child again, so this stops at one of the
  // launcher's own.
  for (siginfo_t info; o->adopts;) {
    memset(&info, 0, sizeof info);
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0 || is_own(o, info.si_pid)) {
      return;
    }
    waitpid(info.si_pid, NULL, WNOHANG);
  }
}

int cx_launcher_orphans_signal(const cx_launcher_orphans *o, int number)
{
  int count = 0;
  DIR *processes = o->adopts ? opendir("/proc") : NULL;
  if (processes == NULL) return 0;
  for (pid_t pid; (pid = next_child(processes)) != 0;) {
    if (is_own(o, pid) || waitpid(pid, NULL, WNOHANG) == pid) continue;
    count++;
    if (number != 0) kill(pid, number);
  }
  closedir(processes);
  return count;
}
