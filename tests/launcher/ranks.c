// One rank of a job, for the tests that start programs: joins the world, then
// agrees with the others again and again, and fails as its arguments say.
//
//   world_ranks MEETINGS [HOW [RANK]]
//
// HOW until:FILE: they meet until the file is there, however often.
// HOW: kill, segv, stop, exit (with 7), raise (a status), leave (early and
// well), none; it befalls RANK (else the last one) in the middle. Exit status:
// 0; 1 after an error, which is on standard error.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "world/world.h"

static calx_status *come_to_harm(const char *how)
{
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "segv") == 0) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (strcmp(how, "stop") == 0) raise(SIGSTOP);
  if (strcmp(how, "exit") == 0) _exit(7);
  if (strcmp(how, "raise") == 0) {
    return cx_error(CALX_OUT_OF_RANGE, "rank %d: batch 7 has no target",
                    cx_world_self()->process);
  }
  return NULL;
}

// Rank 0 sees the file and tells two meetings ahead which one is the last, so
// that all hear of it before.
static calx_status *meet_until(const char *path)
{
  int rank = cx_world_self()->process, last = -1;
  char text[16], *value;
  size_t size;
  for (int i = 0; last < 0 || i <= last; i++) {
    if (rank == 0 && last < 0 && access(path, F_OK) == 0) {
      last = i + 2;
      snprintf(text, sizeof text, "%d", last);
      CALX_TRY(cx_world_store_put("last", text, strlen(text)));
    }
    cx_world_proposal a = { .rank = rank,
                            .key = { 1, 2 },
                            .what = "a meeting" };
    CALX_TRY(cx_world_agree(&a, cx_world_timeout_ms(), NULL));
    calx_status *status = cx_world_store_try_get("last", &value, &size);
    if (status == NULL) {
      last = atoi(value);
      cx_free(value);
    } else if (calx_status_code(status) != CALX_NOT_FOUND) {
      return status;
    }
    calx_status_free(status);
    usleep(2000);
  }
  return cx_world_barrier("the end", cx_world_timeout_ms());
}

static calx_status *meet(int meetings, const char *how, int who)
{
  int rank = cx_world_self()->process;
  if (strncmp(how, "until:", 6) == 0) return meet_until(how + 6);
  for (int i = 0; i < meetings; i++) {
    if (rank == who && i == meetings / 2) {
      if (strcmp(how, "leave") == 0) return NULL;
      CALX_TRY(come_to_harm(how));
    }
    cx_world_proposal a = { .rank = rank,
                            .key = { 1, 2 },
                            .what = "a meeting" };
    CALX_TRY(cx_world_agree(&a, cx_world_timeout_ms(), NULL));
  }
  return cx_world_barrier("the end", cx_world_timeout_ms());
}

static calx_status *run(int argc, char **argv)
{
  CALX_TRY(cx_world_join());
  CALX_TRY(cx_world_ranks(1));
  const cx_world_info *here = cx_world_self();
  int who = argc > 3 ? atoi(argv[3]) : here->processes - 1;
  printf("rank %d of %d on host %d of %d\n", here->process, here->processes,
         here->host, here->hosts);
  fflush(stdout);
  calx_status *status = meet(atoi(argv[1]), argc > 2 ? argv[2] : "none", who);
  cx_world_rank_end(here->process, status);
  cx_world_leave(status);
  return status;
}

int main(int argc, char **argv)
{
  if (argc < 2) return 2;
  calx_status *status = run(argc, argv);
  calx_status_print(stderr, status);
  int code = status != NULL ? 1 : 0;
  calx_status_free(status);
  return code;
}
