// world/post: the launcher's part of the store, in a process of its own.
//
// The store needs threads, and what forks may have none: so the launcher forks
// this first, and stays alone. On host 0 it serves the store; on all it is the
// launcher's ear and voice there. It talks with the launcher in letters.
#ifndef CX_WORLD_POST_H
#define CX_WORLD_POST_H

#include <stdbool.h>
#include <sys/types.h>

#include "world/window.h"

// A launch, as all its processes know it.
typedef struct cx_job {
  int hosts, host;
  int processes;    // of this host; the world has hosts times as many
  char url[320];    // of the store
  char token[128];  // empty: none
  char launch[33];  // of this start: CALX_LAUNCH
} cx_job;

typedef struct cx_letter {
  uint32_t code;                // CALX_OK: ready; from the launcher: it ends
  char news[CALX_WINDOW_NEWS];  // else
} cx_letter;

typedef struct cx_post {
  pid_t pid;  // 0: there is none
  int fd;     // a packet is a letter
} cx_post;

// Forks, and waits until the store is served. `head`: the news are written
// there too.
calx_status *cx_post_start(const cx_job *job, calx_window *head,
                           cx_post *out) CALX_MUST_USE;
// The next letter that is there; false: none, or *out_gone.
bool cx_post_hear(const cx_post *post, cx_letter *out, bool *out_gone);
// code OK: the job has ended; the process ends when nobody needs the store.
void cx_post_tell(const cx_post *post, calx_code code, const char *news);
// Kills it if it is still there.
void cx_post_close(cx_post *post);

#endif
