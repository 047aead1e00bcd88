// launcher/orphans: processes that ranks started and left behind.
//
// While ranks run, the launcher is the parent of every process whose own parent
// has ended, in whatever session or group it is (a subreaper). After a job that
// succeeds such processes are left alone; else they end with the job.
#ifndef CX_LAUNCHER_ORPHANS_H
#define CX_LAUNCHER_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

// The launcher's own children are no orphans.
typedef struct cx_launcher_orphans {
  const pid_t *children;  // [count]
  int count;
  const pid_t *service;
  bool adopts;  // this process is a subreaper for the launch
  int was;      // whether it was one before
} cx_launcher_orphans;

// The caller has set the first three fields, whose targets may change.
void cx_launcher_orphans_begin(cx_launcher_orphans *orphans);
void cx_launcher_orphans_end(cx_launcher_orphans *orphans);
// Reaps the orphans that have ended.
void cx_launcher_orphans_reap(const cx_launcher_orphans *orphans);
// Sends all orphans the signal (0: none), and returns their number.
int cx_launcher_orphans_signal(const cx_launcher_orphans *orphans, int number);

#endif
