// Signals: a run ends after the same batch on all ranks, is saved, and the
// program's exit code says why. Each run is a process of its own.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boring.h"

enum { FIRST_BATCH = 5 };

static char folder[] = "/tmp/calx-signals-XXXXXX";

typedef struct signal_plan {
  int number;
  pid_t to;
} signal_plan;

// The first rank gets the signal; the others learn of it.
static void send_signal(calx_trainer *t, void *self, const calx_batch *batch,
                        int64_t i)
{
  (void)self, (void)batch;
  const signal_plan *p = calx_trainer_user(t);
  if (i == FIRST_BATCH && p->number != 0 && calx_trainer_is_global_zero(t)) {
    raise(p->number);
  }
}

static void note_exception(calx_trainer *t, void *self)
{
  (void)self;
  char path[128];
  snprintf(path, sizeof path, "%s/exception-%d-%lld", folder,
           calx_global_ordinal(), (long long)calx_trainer_global_step(t));
  close(open(path, O_CREAT | O_WRONLY, 0600));
}

// With `ends` it goes on from what a signal left, and comes to its end.
static int train(int number, bool ends)
{
  signal_plan p = { .number = number };
  const int epochs = ends ? 2 : 50;
  const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring), .user = &p,
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_train_batch_start = send_signal,
                                       .on_exception = note_exception });
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t =
      calx_trainer_new(.max_epochs = epochs, .no_progress_bar = true,
                       .no_logger = true, .no_model_summary = true,
                       .default_root_dir = folder);
  calx_status *status = calx_trainer_fit(t, &m, .train_dataloader = loader,
                                         .ckpt_path = ends ? "last" : NULL);
  assert_true(!ends || calx_trainer_current_epoch(t) == epochs);
  calx_status_print(stderr, status);
  calx_status_free(status);
  const int code = calx_trainer_exit_code(t);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  calx_shutdown();
  return code;
}

static int run(int number, const char *processes, const char *devices)
{
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("CALX_PROCESSES", processes, 1);
    setenv("CPU_NUM_DEVICES", devices, 1);
    _exit(train(number, number == 0));
  }
  int state;
  assert_int_equal(waitpid(pid, &state, 0), pid);
  assert_true(WIFEXITED(state));
  return WEXITSTATUS(state);
}

static bool has(const char *name)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static void clear(void)
{
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s/*", folder);
  assert_int_equal(system(command), 0);
}

// Rows E17 and E18: all ranks end after the same step, at most two later.
static void check_same_step(int ranks)
{
  char name[64];
  int found = 0;
  for (int step = FIRST_BATCH; step <= FIRST_BATCH + 4; step++) {
    int here = 0;
    for (int r = 0; r < ranks; r++) {
      snprintf(name, sizeof name, "exception-%d-%d", r, step);
      here += has(name);
    }
    if (here > 0) assert_int_equal(here, ranks);
    found += here;
  }
  assert_int_equal(found, ranks);
}

static void test_row_E18(void **state)
{
  (void)state;
  static const struct {
    const char *processes, *devices;
    int ranks;
  } worlds[] = { { "1", "1", 1 }, { "1", "4", 4 }, { "2", "2", 4 } };
  for (int i = 0; i < 3; i++) {
    assert_int_equal(run(SIGTERM, worlds[i].processes, worlds[i].devices), 143);
    check_same_step(worlds[i].ranks);
    assert_true(has("on_exception.ckpt"));
    assert_int_equal(run(0, worlds[i].processes, worlds[i].devices), 0);
    assert_false(has("on_exception.ckpt"));
    clear();
  }
}

static void test_row_E17(void **state)
{
  (void)state;
  assert_int_equal(run(SIGINT, "1", "1"), 1);
  check_same_step(1);
  assert_false(has("on_exception.ckpt"));
  clear();
  assert_int_equal(run(SIGINT, "1", "4"), 1);
  check_same_step(4);
  clear();
  assert_int_equal(run(SIGINT, "2", "2"), 1);
  check_same_step(4);
  clear();
}

// ---- Slurm ------------------------------------------------------------------

static void write_file(const char *name, const char *text)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void check_file(const char *name, const char *text)
{
  char path[128], line[128] = "";
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_non_null(fgets(line, sizeof line, f));
  fclose(f);
  assert_string_equal(line, text);
}

// Row E19.
static void test_row_E19(void **state)
{
  (void)state;
  char path[4096] = "";
  write_file("scontrol", "#!/bin/sh\necho \"$@\" >\"$0.called\"\n");
  snprintf(path, sizeof path, "%s/scontrol", folder);
  assert_int_equal(chmod(path, 0700), 0);
  snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
  setenv("PATH", path, 1);
  setenv("SLURM_JOB_ID", "12345", 1);
  assert_int_equal(run(SIGUSR1, "1", "2"), 143);
  check_file("scontrol.called", "requeue 12345\n");
  assert_true(has("hpc_ckpt_1.ckpt"));
  setenv("SLURM_ARRAY_JOB_ID", "12345", 1);
  setenv("SLURM_ARRAY_TASK_ID", "2", 1);
  assert_int_equal(run(SIGUSR1, "1", "1"), 143);
  check_file("scontrol.called", "requeue 12345_2\n");
  assert_true(has("hpc_ckpt_2.ckpt"));
  unsetenv("SLURM_JOB_ID");
  clear();
}

static int begin(void **state)
{
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int end(void **state)
{
  (void)state;
  clear();
  return rmdir(folder);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_row_E18),
    cmocka_unit_test(test_row_E17),
    cmocka_unit_test(test_row_E19),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
