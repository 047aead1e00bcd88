// launcher/failure: which child's end is the failure of the job, and in whose
// words.
//
// Ranks that are told of a failure end too, often before the one that failed is
// seen to have ended; so the order of ends is not the order of causes. What a
// rank wrote into the window before it ended is a better reason than how it
// ended, the first is everybody's, and it says which rank it is of.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "launcher/supervisor.h"
#include "world/agreement.h"

const char *cx_launcher_supervisor_reason(const cx_launcher_supervisor *f)
{
  const calx_window *head = f->window.head;
  bool told =
      cx_world_segment_failed(head) != CALX_OK && !cx_launcher_is_of_hosts(f);
  return told ? head->news : f->text;
}

void cx_launcher_supervisor_fail(cx_launcher_supervisor *f, calx_code code,
                                 const char *text)
{
  if (f->failed_at != 0) return;
  f->failed_at = cx_now_ns();
  f->code = code;
  snprintf(f->text, sizeof f->text, "%s", text);
  cx_world_segment_fail(f->window.head, code, text);
  cx_launcher_service_send(&f->post, code, cx_launcher_supervisor_reason(f));
}

static void say_end(const cx_launcher_supervisor *f, int index, int how,
                    char *text, size_t room)
{
  char rank[32];
  snprintf(rank, sizeof rank, "rank %d",
           f->job->host * f->job->processes + index);
  const char *who =
      cx_launcher_is_of_hosts(f) ? f->options->names[index] : rank;
  if (WIFSIGNALED(how)) {
    int number = WTERMSIG(how);
    snprintf(text, room, "%s ended by signal %d (%s)", who, number,
             strsignal(number));
  } else {
    snprintf(text, room, "%s exited with %d", who, WEXITSTATUS(how));
  }
}

// Of several launchers that failed, the first whose own rank did.
static bool knows_better(const cx_launcher_supervisor *f, int code)
{
  return cx_launcher_is_of_hosts(f) && f->end.code == CX_LAUNCHER_EXIT_FAILED &&
         code != CX_LAUNCHER_EXIT_FAILED && f->terminated_at == 0;
}

// What a rank knew before it ended is in the window, also where the post's
// letter is still on its way.
static void read_window(cx_launcher_supervisor *f)
{
  const calx_window *head = f->window.head;
  calx_code code = cx_world_segment_failed(head);
  if (f->failed_at != 0 || code == CALX_OK) return;
  f->is_told = true;
  cx_launcher_supervisor_fail(f, code, head->news);
}

// The first rank that a message names, at its beginning or after the place in
// the user's program: "train.c:20: in step: rank 3: …"; -1: none.
static int rank_of(const char *message)
{
  int rank;
  for (const char *at = message; (at = strstr(at, "rank ")) != NULL; at++) {
    bool begins = at == message || (at - message > 1 && at[-2] == ':');
    if (begins && sscanf(at, "rank %d", &rank) == 1) return rank;
  }
  return -1;
}

// Whether the news name a rank, and the process that it lives in.
static bool is_named(const cx_launcher_supervisor *f, int *out_process)
{
  int rank = f->is_told ? rank_of(cx_launcher_supervisor_reason(f)) : -1;
  if (rank < 0) return false;
  const cx_world_agreement *board = cx_world_agreement_in(f->window.head);
  int world = f->job->hosts * f->job->processes;
  int devices = (int)atomic_load(&board->ranks) / world;
  *out_process = rank / (devices > 0 ? devices : 1);
  return true;
}

// Whether the child's end is the failure, or a part of what follows from it.
static bool is_the_failure(const cx_launcher_supervisor *f, int process)
{
  int named;
  if (is_named(f, &named)) return process == named;
  return f->end.rank < 0 && f->terminated_at == 0;
}

void cx_launcher_supervisor_child_ended(cx_launcher_supervisor *f, int index,
                                        int how)
{
  int process = f->job->host * f->job->processes + index;
  f->children[index] = 0;
  f->alive--;
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return;
  int code = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
  read_window(f);
  if (knows_better(f, code)) {
    f->end.code = code;
    say_end(f, index, how, f->text, sizeof f->text);
  }
  if (f->first.rank < 0 && f->terminated_at == 0) {
    f->first = (cx_launcher_exit){ .rank = process, .code = code };
  }
  if (!is_the_failure(f, process)) return;
  f->end = (cx_launcher_exit){ .rank = process, .code = code };
  char text[CALX_WINDOW_NEWS];
  say_end(f, index, how, text, sizeof text);
  cx_launcher_supervisor_fail(f, CALX_ABORTED, text);
}
