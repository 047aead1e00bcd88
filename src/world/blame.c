// world/blame: which child's end is the failure of the job, and in whose words.
//
// Ranks that are told of a failure end too, often before the one that failed is
// seen to have ended; so the order of ends is not the order of causes. What a
// rank wrote into the window before it ended is a better reason than how it
// ended, the first is everybody's, and it says which rank it is of.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "world/board.h"
#include "world/family.h"

const char *cx_family_reason(const cx_family *f)
{
  const calx_window *head = f->window.head;
  bool told = cx_window_failed(head) != CALX_OK && !cx_family_is_of_hosts(f);
  return told ? head->news : f->text;
}

void cx_family_fail(cx_family *f, calx_code code, const char *text)
{
  if (f->failed_at != 0) return;
  f->failed_at = cx_now_ns();
  f->code = code;
  snprintf(f->text, sizeof f->text, "%s", text);
  cx_window_fail(f->window.head, code, text);
  cx_post_tell(&f->post, code, cx_family_reason(f));
}

static void say_end(const cx_family *f, int index, int how, char *text,
                    size_t room)
{
  char rank[32];
  snprintf(rank, sizeof rank, "rank %d",
           f->job->host * f->job->processes + index);
  const char *who = cx_family_is_of_hosts(f) ? f->options->names[index] : rank;
  if (WIFSIGNALED(how)) {
    int number = WTERMSIG(how);
    snprintf(text, room, "%s ended by signal %d (%s)", who, number,
             strsignal(number));
  } else {
    snprintf(text, room, "%s exited with %d", who, WEXITSTATUS(how));
  }
}

// Of several launchers that failed, the first whose own rank did.
static bool knows_better(const cx_family *f, int code)
{
  return cx_family_is_of_hosts(f) && f->end.code == CX_SPAWN_FAILED &&
         code != CX_SPAWN_FAILED && f->terminated_at == 0;
}

// What a rank knew before it ended is in the window, also where the post's
// letter is still on its way.
static void read_window(cx_family *f)
{
  const calx_window *head = f->window.head;
  calx_code code = cx_window_failed(head);
  if (f->failed_at != 0 || code == CALX_OK) return;
  f->is_told = true;
  cx_family_fail(f, code, head->news);
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
static bool is_named(const cx_family *f, int *out_process)
{
  int rank = f->is_told ? rank_of(cx_family_reason(f)) : -1;
  if (rank < 0) return false;
  const cx_board *board = cx_board_in(f->window.head);
  int world = f->job->hosts * f->job->processes;
  int devices = (int)atomic_load(&board->ranks) / world;
  *out_process = rank / (devices > 0 ? devices : 1);
  return true;
}

// Whether the child's end is the failure, or a part of what follows from it.
static bool is_the_failure(const cx_family *f, int process)
{
  int named;
  if (is_named(f, &named)) return process == named;
  return f->end.rank < 0 && f->terminated_at == 0;
}

void cx_family_child_ended(cx_family *f, int index, int how)
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
    f->first = (cx_spawn_end){ .rank = process, .code = code };
  }
  if (!is_the_failure(f, process)) return;
  f->end = (cx_spawn_end){ .rank = process, .code = code };
  char text[CALX_WINDOW_NEWS];
  say_end(f, index, how, text, sizeof text);
  cx_family_fail(f, CALX_ABORTED, text);
}
