// Row C18 of Lightning's acceptance list: a rank that is killed in the middle
// of training ends the job, and its number and step are told.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "boring.h"

enum { LOST = 2, AT = 5, SECONDS = 30 };

static void die(calx_trainer *t, void *self, const calx_batch *batch, int64_t i)
{
  (void)t, (void)self, (void)batch;
  if (i == AT && calx_global_ordinal() == LOST) raise(SIGKILL);
}

static int train(void)
{
  static const calx_lightning_module m =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step,
                            .hooks = { .on_train_batch_start = die });
  calx_dataset *data = boring_dataset(BORING_SAMPLES);
  calx_loader *loader = calx_loader_new(data);
  calx_trainer *t = calx_trainer_new(.max_epochs = 100, .barebones = true);
  calx_status *status = calx_trainer_fit(t, &m, .train_dataloader = loader);
  calx_status_print(stderr, status);
  calx_status_free(status);
  const int code = calx_trainer_exit_code(t);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return code;
}

// The job's standard error; its exit code is *out.
static const char *run(int *out)
{
  static char text[1 << 16];
  int ends[2], state;
  size_t n = 0;
  ssize_t got;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    setenv("CALX_PROCESSES", "4", 1);
    setenv("CPU_NUM_DEVICES", "1", 1);
    _exit(train());
  }
  close(ends[1]);
  // It ends when the last process of the job has.
  while (n < sizeof text - 1 &&
         (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0) {
    n += (size_t)got;
  }
  text[n] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(pid, &state, 0), pid);
  assert_true(WIFEXITED(state));
  *out = WEXITSTATUS(state);
  return text;
}

static void test_row_C18(void **state)
{
  (void)state;
  int code;
  const time_t begun = time(NULL);
  const char *text = run(&code);
  assert_int_equal(code, 1);
  assert_true(time(NULL) - begun < SECONDS);
  assert_non_null(strstr(text, "in train: rank 2 ended by signal 9"));
  assert_non_null(strstr(text, "the run ends at epoch 0, global step "));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_row_C18) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
