// profiler/interrupt: CALX_REPORT is written when SIGINT or SIGTERM ends the
// run.
//
// A handler may call few functions, so this one writes the signal's number into
// a pipe. A thread reads the number, writes the file, restores the disposition
// that was there before, and sends the signal again. So the program's handler,
// or the default, gets the signal as if there had been no other. A signal that
// is sent a second time does not wait for the file.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "profiler/internal.h"

static const int numbers[] = { SIGINT, SIGTERM };
enum { SIGNALS = sizeof numbers / sizeof *numbers };
enum { STOP = 0 };  // no signal's number: ends the thread

static cx_mutex lock = CX_MUTEX_INIT;
static struct {
  int pipe[2];
  pid_t pipe_of;  // process
  pid_t process;  // that has the thread, 0: none; a fork's child has none
  cx_thread thread;
  bool installed[SIGNALS];
  struct sigaction before[SIGNALS];
  atomic_int sent[SIGNALS];
} watch = { .pipe = { -1, -1 } };

static int index_of(int number)
{
  return number == numbers[0] ? 0 : 1;
}

static void put_back(int i)
{
  sigaction(numbers[i], &watch.before[i], NULL);
}

// In a signal's context: calls async-signal-safe functions only.
static void on_signal(int number)
{
  int saved = errno;
  int i = index_of(number);
  unsigned char byte = (unsigned char)number;
  bool first = atomic_fetch_add(&watch.sent[i], 1) == 0;
  if (!first || getpid() != watch.process ||
      write(watch.pipe[1], &byte, 1) != 1) {
    put_back(i);
    raise(number);
  }
  errno = saved;
}

static void run(void *user)
{
  (void)user;
  unsigned char number;
  for (;;) {
    ssize_t n = read(watch.pipe[0], &number, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n != 1 || number == STOP) return;
    cx_profiler_record_write();
    put_back(index_of(number));
    kill(getpid(), number);
  }
}

// A pipe stays open: a handler may be about to write to it in another thread.
static calx_status *open_pipe(void)
{
  if (watch.pipe_of == getpid()) return NULL;
  if (pipe2(watch.pipe, O_CLOEXEC) != 0) {
    return cx_error(CALX_RESOURCE_EXHAUSTED, "no pipe for signals, errno %d",
                    errno);
  }
  fcntl(watch.pipe[1], F_SETFL, O_NONBLOCK);
  watch.pipe_of = getpid();
  return NULL;
}

// The thread takes no signals: a handler of the program's runs where it did
// before.
static calx_status *start_thread(void)
{
  if (watch.process == getpid()) return NULL;
  CALX_TRY(open_pipe());
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  calx_status *status = cx_thread_start(&watch.thread, run, NULL);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  if (status == NULL) watch.process = getpid();
  return status;
}

// A process that is to start ranks must have one thread. A signal that came too
// late for the thread has its disposition of before by now.
static void stop_thread(void)
{
  if (watch.process != getpid()) return;
  const unsigned char stop = STOP;
  if (write(watch.pipe[1], &stop, 1) != 1) return;  // full of signals: it stays
  cx_thread_join(&watch.thread);
  watch.process = 0;
  struct pollfd late = { .fd = watch.pipe[0], .events = POLLIN };
  unsigned char number;
  while (poll(&late, 1, 0) == 1 && read(watch.pipe[0], &number, 1) == 1) {
    kill(getpid(), number);
  }
}

static bool is_ours(const struct sigaction *a)
{
  return (a->sa_flags & SA_SIGINFO) == 0 && a->sa_handler == on_signal;
}

static void install(int i)
{
  struct sigaction there, ours = { .sa_handler = on_signal };
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  if (sigaction(numbers[i], NULL, &there) != 0 || is_ours(&there)) return;
  bool ignored =
      (there.sa_flags & SA_SIGINFO) == 0 && there.sa_handler == SIG_IGN;
  if (ignored) return;  // the program goes on, and so does the report
  atomic_store(&watch.sent[i], 0);
  watch.before[i] = there;
  watch.installed[i] = sigaction(numbers[i], &ours, NULL) == 0;
}

void cx_profiler_interrupt_open(void)
{
  cx_lock(&lock);
  calx_status *status = start_thread();
  for (int i = 0; i < SIGNALS && status == NULL; i++) install(i);
  cx_unlock(&lock);
  cx_log_failure("CALX_REPORT", status);
}

void cx_profiler_interrupt_close(void)
{
  cx_lock(&lock);
  for (int i = 0; i < SIGNALS; i++) {
    struct sigaction there;
    if (!watch.installed[i]) continue;
    watch.installed[i] = false;
    // Who installed another after us keeps it.
    if (sigaction(numbers[i], NULL, &there) == 0 && is_ours(&there)) {
      put_back(i);
    }
  }
  stop_thread();
  cx_unlock(&lock);
}
