// cli/doctor_processes: tells which processes hold a device, and ends them
// where
// --kill asks for it.
//
// Only processes that were printed are ended. Before each signal the process's
// start is compared, so that another one that got its number meanwhile is left
// alone. Left alone, too, are services of the system, which would be started
// again, and what this command was started from.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "doctor.h"

enum { TERM_MS = 5000, KILL_MS = 2000, POLL_MS = 20 };

// ---- what there is ----------------------------------------------------------

static void append_age(cx_text *out, int64_t seconds)
{
  static const struct {
    int64_t seconds;
    const char *unit;
  } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
  if (seconds < 0) return;
  size_t i = 0;
  while (i < 3 && seconds < units[i].seconds) i++;
  cx_text_format(out, ", for %" PRId64 " %s", seconds / units[i].seconds,
                 units[i].unit);
}

static void print_holder(cx_cli_doctor_state *d, const cx_cli_holder *h)
{
  cx_text line = { 0 };
  cx_text_format(&line, "%ld holds %s: '%s', of %s", h->pid,
                 cx_text_str(&h->holds), h->command, h->user);
  append_age(&line, h->seconds);
  if (h->service[0] != '\0') {
    cx_text_format(&line, " (of the service %s: systemctl stop %s)", h->service,
                   h->service);
  } else if (h->is_ours) {
    cx_text_append(&line, " (this command was started from it)");
  } else if (h->parent == 1) {
    cx_text_append(&line, " (what started it has ended)");
  }
  if (h->has_tpu) {
    cx_text_append(&line, "; a TPU is for one process -> calx doctor --kill");
  }
  cx_cli_doctor_find(d, h->has_tpu ? CX_CLI_WRONG : CX_CLI_NOTE, "processes",
                     "%s", cx_text_str(&line));
  cx_text_free(&line);
}

static void print_unseen(cx_cli_doctor_state *d, size_t unseen)
{
  if (unseen == 0) return;
  cx_cli_doctor_find(
      d, CX_CLI_NOTE, "processes",
      "%zu of other users are not shown to this one -> sudo calx "
      "doctor sees them",
      unseen);
}

// ---- ending them ------------------------------------------------------------

static bool is_wanted(const cx_cli_doctor_state *d, const cx_cli_holder *h)
{
  char number[24];
  snprintf(number, sizeof number, "%ld", h->pid);
  for (size_t i = 0; i < d->pids.n; i++) {
    if (strcmp(d->pids.items[i], number) == 0) return true;
  }
  return d->pids.n == 0;
}

static bool may_end(const cx_cli_doctor_state *d, const cx_cli_holder *h)
{
  return is_wanted(d, h) && h->service[0] == '\0' && !h->is_ours && h->pid > 1;
}

// True for y or yes.
static bool ask(const cx_cli_doctor_state *d, const cx_cli_holders *all)
{
  fflush(stdout);
  fputs("end", stderr);
  for (size_t i = 0; i < all->n; i++) {
    const cx_cli_holder *h = &all->items[i];
    if (may_end(d, h)) fprintf(stderr, " %ld", h->pid);
  }
  fputs("? [y/N] ", stderr);
  char answer[16] = "";
  if (fgets(answer, sizeof answer, stdin) == NULL) return false;
  answer[strcspn(answer, "\r\n")] = '\0';
  return strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 ||
         strcmp(answer, "yes") == 0;
}

static size_t count_living(const cx_cli_doctor_state *d,
                           const cx_cli_holders *all)
{
  size_t n = 0;
  for (size_t i = 0; i < all->n; i++) {
    const cx_cli_holder *h = &all->items[i];
    n += may_end(d, h) && cx_cli_holder_lives(d, h);
  }
  return n;
}

// Signals all that live, and waits until none does or the time is over.
static void end_all(const cx_cli_doctor_state *d, const cx_cli_holders *all,
                    int number, int ms)
{
  for (size_t i = 0; i < all->n; i++) {
    const cx_cli_holder *h = &all->items[i];
    if (may_end(d, h) && cx_cli_holder_lives(d, h)) kill((pid_t)h->pid, number);
  }
  const int64_t end = cx_now_ns() + ms * INT64_C(1000000);
  while (count_living(d, all) > 0 && cx_now_ns() < end) {
    nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
  }
}

static void print_end(cx_cli_doctor_state *d, const cx_cli_holder *h)
{
  if (!cx_cli_holder_lives(d, h)) {
    if (h->has_tpu) d->wrong--;
    cx_cli_doctor_find(d, CX_CLI_FINE, "processes", "%ld has ended", h->pid);
    return;
  }
  bool forbidden = kill((pid_t)h->pid, 0) != 0 && errno == EPERM;
  cx_cli_doctor_find(d, h->has_tpu ? CX_CLI_NOTE : CX_CLI_WRONG, "processes",
                     "%ld cannot be ended%s", h->pid,
                     forbidden ? ": it is another user's -> sudo calx doctor "
                                 "--kill"
                               : ", not even by SIGKILL: the kernel waits for "
                                 "its device -> restart the machine");
}

static void end_holders(cx_cli_doctor_state *d, const cx_cli_holders *all)
{
  if (count_living(d, all) == 0) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "processes", "there is none to end");
    return;
  }
  if (!d->yes && !ask(d, all)) {
    cx_cli_doctor_find(d, CX_CLI_NOTE, "processes", "none was ended");
    return;
  }
  end_all(d, all, SIGTERM, TERM_MS);
  end_all(d, all, SIGKILL, KILL_MS);
  for (size_t i = 0; i < all->n; i++) {
    if (may_end(d, &all->items[i])) print_end(d, &all->items[i]);
  }
}

void cx_cli_doctor_processes(cx_cli_doctor_state *d)
{
  cx_cli_holders all;
  cx_cli_holders_find(d, &all);
  for (size_t i = 0; i < all.n; i++) print_holder(d, &all.items[i]);
  print_unseen(d, all.unseen);
  if (all.failed) {
    cx_cli_doctor_find(d, CX_CLI_WRONG, "processes", "out of memory");
  } else if (all.n == 0) {
    cx_cli_doctor_find(d, CX_CLI_FINE, "processes", "none holds a device");
  }
  if (d->kill) end_holders(d, &all);
  cx_cli_holders_free(&all);
}
