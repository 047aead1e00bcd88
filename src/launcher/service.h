// launcher/service: a helper process of the launcher that connects to the
// store.
//
// The store needs threads, but a process with threads must not fork. So the
// launcher first forks this process, and itself stays without threads. On host
// 0 the service serves the store. On every host it sends the launcher's
// messages to the store and the store's messages to the launcher.
#ifndef CX_LAUNCHER_SERVICE_H
#define CX_LAUNCHER_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

#include "world/segment.h"

// A launch, as all its processes know it.
typedef struct cx_launcher_job {
  int hosts, host;
  int processes;    // of this host; every host has as many
  char url[320];    // of the store
  char token[128];  // empty: none
  char launch[33];  // CALX_LAUNCH: of this start of the command
} cx_launcher_job;

typedef struct cx_launcher_message {
  uint32_t code;  // CALX_OK: the service is ready, or the job has ended
  char text[CALX_SEGMENT_MESSAGE];  // of a failure
} cx_launcher_message;

typedef struct cx_launcher_service {
  pid_t pid;  // 0: none
  int fd;     // a socket; each packet is a message; -1: closed
} cx_launcher_service;

// Forks, and waits until the store is served. Failures are also written to
// `head`.
calx_status *cx_launcher_service_start(const cx_launcher_job *job,
                                       calx_segment_head *head,
                                       cx_launcher_service *out) CALX_MUST_USE;
// Receives the next message without waiting. False: there is none. The end of
// the service's messages closes the socket.
bool cx_launcher_service_receive(cx_launcher_service *service,
                                 cx_launcher_message *out);
// Sends a message through either end of the socket; -1: it is dropped. code OK,
// to the service: the job has ended, and the service ends once no process needs
// the store.
void cx_launcher_service_send(int fd, calx_code code, const char *text);
// Kills the process if it still runs.
void cx_launcher_service_close(cx_launcher_service *service);

#endif
