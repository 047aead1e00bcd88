// launcher/orphans: processes that ranks started and left behind.
//
// While ranks run, the launcher is the parent of every process whose own parent
// has ended, in whatever session or group it is (a subreaper). After a job that
// succeeds such processes are left alone; else they end with the job.
#ifndef CX_LAUNCHER_ORPHANS_H
#define CX_LAUNCHER_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct cx_launcher_orphans {
  bool adopts;  // this process is a subreaper for the launch
  int was;      // whether it was one before
} cx_launcher_orphans;

void cx_launcher_orphans_begin(cx_launcher_orphans *orphans);
void cx_launcher_orphans_end(cx_launcher_orphans *orphans);

// The launcher's own children, which are no orphans.
typedef struct cx_launcher_own_children {
  const pid_t *children;
  int count;
  pid_t service;
} cx_launcher_own_children;

// Reaps the orphans that have ended.
void cx_launcher_orphans_reap(const cx_launcher_orphans *orphans,
                              const cx_launcher_own_children *own);
// Sends all orphans the signal (0: none), and returns their number.
int cx_launcher_orphans_signal(const cx_launcher_orphans *orphans,
                               const cx_launcher_own_children *own, int number);

#endif
