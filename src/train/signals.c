// train/signals: a signal ends training between two batches, on all ranks after
// the same one, so that a checkpoint can be saved before.
//
// A handler only notes the signal. Each step's program has the greatest note of
// all ranks as one of its results, of several steps in one the last step. It is
// read two programs later, when it is computed: nothing waits for it, and every
// rank reads the same.
//
// SIGTERM is what the system sends before it takes a machine away, SIGINT is
// Ctrl-C, and Slurm sends SIGUSR1 where a job asked for it (--signal=USR1@90).
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "lazy/lazy.h"
#include "profiler/profiler.h"
#include "train/internal.h"

static const int numbers[] = { SIGTERM, SIGINT, SIGUSR1 };
enum { SIGNALS = sizeof numbers / sizeof *numbers };

static atomic_int received;  // the newest signal's number; 0: none
static cx_mutex lock = CX_MUTEX_INIT;
static int runs;  // that are under way in this process
static bool installed[SIGNALS];
static struct sigaction before[SIGNALS];

// ---- handlers ---------------------------------------------------------------

// A second signal does what it did without a trainer.
static void on_signal(int number)
{
  int none = 0;
  if (atomic_compare_exchange_strong(&received, &none, number)) return;
  for (int i = 0; i < SIGNALS; i++) {
    if (numbers[i] == number) sigaction(number, &before[i], NULL);
  }
  raise(number);
}

static bool is_wanted(int number)
{
  return number != SIGUSR1 || getenv("SLURM_JOB_ID") != NULL;
}

// A program that ignores a signal goes on ignoring it.
static void install(int i)
{
  struct sigaction ours = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  sigemptyset(&ours.sa_mask);
  installed[i] = false;
  if (!is_wanted(numbers[i])) return;
  if (sigaction(numbers[i], NULL, &before[i]) != 0) return;
  const bool is_plain = (before[i].sa_flags & SA_SIGINFO) == 0;
  if (is_plain && before[i].sa_handler == SIG_IGN) return;
  installed[i] = sigaction(numbers[i], &ours, NULL) == 0;
}

void cx_train_signals_begin(void)
{
  cx_lock(&lock);
  if (runs++ == 0) {
    atomic_store(&received, 0);
    for (int i = 0; i < SIGNALS; i++) install(i);
  }
  cx_unlock(&lock);
}

// Of messages: a process of this run that was started has the signal, and its
// status says which.
static const char *name_of(int number)
{
  return number == SIGINT    ? "SIGINT"
         : number == SIGUSR1 ? "SIGUSR1"
                             : "SIGTERM";
}

static bool is_interrupted(const calx_status *status)
{
  return strstr(calx_status_message(status), "SIGINT ended the run") != NULL;
}

int cx_train_signals_end(const calx_status *status)
{
  cx_lock(&lock);
  if (--runs == 0) {
    for (int i = 0; i < SIGNALS; i++) {
      if (installed[i]) sigaction(numbers[i], &before[i], NULL);
    }
  }
  cx_unlock(&lock);
  if (status == NULL) return 0;
  const bool is_cancelled = calx_status_code(status) == CALX_CANCELLED;
  return is_cancelled && !is_interrupted(status) ? 128 + SIGTERM : 1;
}

// ---- what all ranks agree on ------------------------------------------------

void cx_train_record_signals(calx_trainer *t)
{
  if (calx_world_size() == 1) return;
  const calx_collective_options o = { .size = sizeof o };
  calx_tensor *mine = calx_scalar((double)atomic_load(&received));
  calx_tensor *all = calx_all_reduce_with(mine, CALX_REDUCE_MAX, &o);
  calx_release(t->signals[CX_TRAIN_NEWEST - 1]);
  memmove(&t->signals[1], &t->signals[0],
          (CX_TRAIN_NEWEST - 1) * sizeof *t->signals);
  t->signals[0] = calx_retain(all);
}

static int agreed(calx_trainer *t)
{
  if (calx_world_size() == 1) return atomic_load(&received);
  calx_tensor *oldest = t->signals[CX_TRAIN_NEWEST - 1];
  if (oldest == NULL) return 0;
  cx_profiler_own_read();  // no habit of the program's
  return (int)calx_item(oldest);
}

void cx_train_free_signals(calx_trainer *t)
{
  for (int k = 0; k < CX_TRAIN_NEWEST; k++) calx_release(t->signals[k]);
}

// ---- what follows -----------------------------------------------------------

static calx_status *run_program(char *const *argv)
{
  pid_t pid;
  int state = 0;
  const int error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
  if (error != 0) {
    return cx_error(CALX_UNAVAILABLE, "%s does not start: %s", argv[0],
                    strerror(error));
  }
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return NULL;
  return cx_error(CALX_UNAVAILABLE, "%s %s %s failed", argv[0], argv[1],
                  argv[2]);
}

// Slurm starts the job anew, which goes on from the checkpoint.
static calx_status *requeue(void)
{
  const char *array = getenv("SLURM_ARRAY_JOB_ID");
  const char *task = getenv("SLURM_ARRAY_TASK_ID");
  const char *job = getenv("SLURM_JOB_ID");
  char id[64];
  if (array != NULL && task != NULL) {
    snprintf(id, sizeof id, "%s_%s", array, task);
  } else {
    snprintf(id, sizeof id, "%s", job);
  }
  cx_log("requeing job %s...", id);
  char program[] = "scontrol", verb[] = "requeue";
  char *argv[] = { program, verb, id, NULL };
  return run_program(argv);
}

// A run under Slurm finds its own by itself; .ckpt_path = "last" the other.
static calx_status *path_of(const calx_trainer *t, bool is_slurm, char **out)
{
  if (!is_slurm) return cx_train_signal_path(t, out);
  const int64_t highest = cx_train_hpc_number(t->default_root_dir);
  return cx_train_hpc_path(t, highest < 0 ? 1 : highest + 1, out);
}

static calx_status *save(calx_trainer *t, bool is_slurm)
{
  if (t->config.no_checkpointing) return NULL;
  char *path;
  CALX_TRY(path_of(t, is_slurm, &path));
  calx_status *status = calx_trainer_save_checkpoint(t, path);
  if (status == NULL && calx_trainer_is_global_zero(t)) {
    cx_log("The run was saved in %s", path);
  }
  calx_string_free(path);
  return status;
}

static calx_status *ended(const calx_trainer *t, int number)
{
  return cx_error(CALX_CANCELLED, "%s ended the run at step %lld",
                  name_of(number), (long long)t->position.global_step);
}

static calx_status *end_run(calx_trainer *t, int number)
{
  const bool is_first = calx_trainer_is_global_zero(t);
  if (number == SIGINT) {
    if (is_first) {
      cx_log("Detected KeyboardInterrupt, attempting graceful shutdown ...");
    }
    return ended(t, number);
  }
  if (is_first) {
    cx_log(number == SIGUSR1 ? "Handling auto-requeue signal: %d"
                             : "Received SIGTERM: %d",
           number);
  }
  CALX_TRY(save(t, number == SIGUSR1));
  // A rank that ends with an error would end the first one's save.
  if (calx_world_size() > 1) {
    CALX_TRY(calx_rendezvous("trainer: signal", NULL, 0, NULL, NULL));
  }
  if (number == SIGUSR1 && is_first) CALX_TRY(requeue());
  return ended(t, number);
}

calx_status *cx_train_check_signals(calx_trainer *t)
{
  const int number = agreed(t);
  return number != 0 ? end_run(t, number) : NULL;
}

calx_status *cx_train_check_evaluation_signals(const calx_trainer *t)
{
  const int number = atomic_load(&received);
  if (number == 0 || t->asked == CX_TRAIN_FITTING) return NULL;
  return cx_error(CALX_CANCELLED, "%s ended the run", name_of(number));
}

// A run that went on from what a signal left, and came to its end, removes it.
calx_status *cx_train_forget_signal(const calx_trainer *t)
{
  char *path;
  if (t->ckpt_path == NULL || !calx_trainer_is_global_zero(t)) return NULL;
  CALX_TRY(cx_train_signal_path(t, &path));
  if (strcmp(path, t->ckpt_path) == 0) unlink(path);
  calx_string_free(path);
  return NULL;
}
