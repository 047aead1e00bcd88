// launcher/service: the launcher's part of the store, in a process of its own.
//
// The store needs threads, and what forks may have none: so the launcher forks
// this first, and stays alone. On host 0 it serves the store; on all it is the
// launcher's ear and voice there. It talks with the launcher in letters.
#ifndef CX_LAUNCHER_SERVICE_H
#define CX_LAUNCHER_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

#include "world/segment.h"

// A launch, as all its processes know it.
typedef struct cx_launcher_job {
  int hosts, host;
  int processes;    // of this host; the world has hosts times as many
  char url[320];    // of the store
  char token[128];  // empty: none
  char launch[33];  // of this start: CALX_LAUNCH
} cx_launcher_job;

typedef struct cx_launcher_message {
  uint32_t code;                // CALX_OK: ready; from the launcher: it ends
  char news[CALX_WINDOW_NEWS];  // else
} cx_launcher_message;

typedef struct cx_launcher_service {
  pid_t pid;  // 0: there is none
  int fd;     // a packet is a letter
} cx_launcher_service;

// Forks, and waits until the store is served. `head`: the news are written
// there too.
calx_status *cx_launcher_service_start(const cx_launcher_job *job,
                                       calx_window *head,
                                       cx_launcher_service *out) CALX_MUST_USE;
// The next letter that is there; false: none, or *out_gone.
bool cx_launcher_service_receive(const cx_launcher_service *post,
                                 cx_launcher_message *out, bool *out_gone);
// code OK: the job has ended; the process ends when nobody needs the store.
void cx_launcher_service_send(const cx_launcher_service *post, calx_code code,
                              const char *news);
// Kills it if it is still there.
void cx_launcher_service_close(cx_launcher_service *post);

#endif
