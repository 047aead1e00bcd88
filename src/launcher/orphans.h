// launcher/orphans: what ranks started and left behind.
//
// While ranks run, this process is the parent of all whose own parent ended, in
// whatever session or group they are. Where a job ended well they are let go;
// else they end with it.
#ifndef CX_LAUNCHER_ORPHANS_H
#define CX_LAUNCHER_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct cx_launcher_orphans {
  bool takes;  // this launch takes them
  int was;     // whether this process did before
} cx_launcher_orphans;

void cx_launcher_orphans_begin(cx_launcher_orphans *orphans);
void cx_launcher_orphans_end(cx_launcher_orphans *orphans);

// The launcher's own children, which are none of these.
typedef struct cx_launcher_own_children {
  const pid_t *children;
  int count;
  pid_t post;
} cx_launcher_own_children;

// Those that ended are reaped.
void cx_launcher_orphans_reap(const cx_launcher_orphans *orphans,
                              const cx_launcher_own_children *own);
// Sends all of them the signal (0: none); how many there are.
int cx_launcher_orphans_signal(const cx_launcher_orphans *orphans,
                               const cx_launcher_own_children *own, int number);

#endif
