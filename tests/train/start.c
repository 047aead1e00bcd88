// The start of a run: the accelerator that must be there, what is said to be
// there, and devices that the program used before. By row of Lightning's
// acceptance list.
#include <dirent.h>

#include "boring.h"
#include "pjrt/internal.h"
#include "texts.h"

static int close_all(void **state)
{
  (void)state;
  cx_pjrt_set_dev(NULL);
  calx_shutdown();
  calx_log_set(NULL, NULL);
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int close_with_nothing(void **state)
{
  cx_pjrt_set_dev(NULL);
  return end(state);
}

// A fit of two batches.
static calx_status *fit(const calx_trainer_options *options)
{
  const calx_lightning_module module =
      CALX_LIGHTNING_MODULE(.self_size = sizeof(boring),
                            .configure_model = boring_model,
                            .configure_optimizers = boring_optimizers,
                            .training_step = boring_step);
  calx_dataset *data = boring_dataset(16);
  calx_loader *loader = calx_loader_new(data, .batch_size = 1);
  calx_trainer *t = calx_trainer_new_with(options);
  calx_status *status =
      calx_trainer_fit(t, &module, .train_dataloader = loader);
  calx_trainer_free(t);
  calx_loader_free(loader);
  calx_dataset_free(data);
  return status;
}

#define FIT(...)                                                       \
  fit(&CALX_TRAINER_OPTIONS(.max_epochs = 1, .limit_train_batches = 2, \
                            .no_progress_bar = true, __VA_ARGS__))

static int threads(void)
{
  int n = 0;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
    n += e->d_name[0] != '.';
  }
  closedir(tasks);
  return n;
}

static const char nothing_there[] =
    "GPU available: False, used: False\n"
    "TPU available: False, using: 0 TPU cores\n";

// No device: the seeds' spelling and the new one; nothing was started to find
// out.
static void test_row_A3(void **state)
{
  (void)state;
  cx_pjrt_set_dev(folder);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, FIT(.tpu_cores = 8),
               "No TPU devices were found.");
  CHECK_STATUS(CALX_FAILED_PRECONDITION, FIT(.tpu_core_ids = "[5]"),
               "No TPU devices were found.");
  CHECK_STATUS(CALX_FAILED_PRECONDITION, FIT(.accelerator = "tpu"),
               "`accelerator='tpu'` can not run on your system since the "
               "accelerator is not available. The following accelerator(s) is "
               "available and can be passed into `accelerator` argument of "
               "`Trainer`: ['cpu'].");
  assert_false(cx_lazy_devices_are_open());
  assert_int_equal(threads(), 1);
  CHECK_STATUS_OK(FIT(.accelerator = "cpu", .devices = 1));
  assert_non_null(strstr(lines, nothing_there));
  // The same where a device is open.
  CHECK_STATUS(CALX_FAILED_PRECONDITION, FIT(.tpu_cores = 8),
               "No TPU devices were found.");
}

static void make_file(const char *name)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fclose(f);
}

// What is there is said where it has changed; an accelerator that is not used
// in a line more.
static void test_row_A4(void **state)
{
  (void)state;
  cx_pjrt_set_dev(folder);
  CHECK_STATUS_OK(FIT(.devices = 1));
  make_file("accel0");
  CHECK_STATUS_OK(FIT(.devices = 1, .barebones = true));
  setenv("CALX_QUIET", "1", 1);
  CHECK_STATUS_OK(FIT(.devices = 1));
  unsetenv("CALX_QUIET");
  assert_null(strstr(lines, "available"));
  CHECK_STATUS_OK(FIT(.devices = 1, .accelerator = "cpu"));
  assert_non_null(strstr(lines,
                         "TPU available: True, using: 0 TPU cores\n"
                         "TPU available but not used. You can set it by doing "
                         "`Trainer(accelerator='tpu')`"));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, FIT(.accelerator = "ddp_cpu"),
               "`accelerator='ddp_cpu'` is not supported on TPU machines.");
  make_file("nvidia0");
  CHECK_STATUS_OK(FIT(.devices = 1));
  assert_non_null(strstr(lines,
                         "GPU available: True (cuda), used: False\n"
                         "GPU available but not used."));
}

// Of the programs that were compiled, dots of this element type.
static int dots(const char *type)
{
  int n = 0;
  static char line[1 << 16];
  char path[512];
  DIR *programs = opendir(folder);
  for (struct dirent *e; (e = readdir(programs)) != NULL;) {
    if (strstr(e->d_name, ".mlir") == NULL) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    FILE *f = fopen(path, "rb");
    while (fgets(line, sizeof line, f) != NULL) {
      n += strstr(line, "dot_general") != NULL && strstr(line, type) != NULL;
    }
    fclose(f);
  }
  closedir(programs);
  return n;
}

// precision=16 computes in bf16.
static void test_row_A5(void **state)
{
  (void)state;
  setenv("CALX_DUMP", folder, 1);
  CHECK_STATUS_OK(FIT(.devices = 1, .precision = "16"));
  unsetenv("CALX_DUMP");
  assert_true(dots("xbf16>") >= 2);
  assert_int_equal(dots("xf32>, tensor<"), 0);
  assert_non_null(strstr(lines, "Using `precision='bf16'` instead."));
}

// A device that was asked for before is used by one rank; eight are refused,
// which is in the way of nothing.
static void test_row_A9(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  CHECK_CLOSE(calx_item(calx_sum(calx_ones(CALX_SHAPE(2)))), 2, 0);
  CHECK_STATUS_OK(calx_scope_end(scope));
  CHECK_STATUS_OK(FIT(.devices = 1));
  CHECK_STATUS(CALX_FAILED_PRECONDITION, FIT(.devices = 8),
               "Do not use the XLA device before calling calx_launch");
  CHECK_STATUS_OK(FIT(.devices = 1));
  calx_shutdown();
  CHECK_STATUS_OK(FIT(.devices = 8));
  CHECK_STATUS_OK(FIT(.devices = 8));
}

static void test_deterministic(void **state)
{
  (void)state;
  CHECK_STATUS_OK(FIT(.devices = 1, .deterministic = true));
  assert_string_equal(getenv("CALX_DETERMINISTIC"), "1");
  assert_null(strstr(lines, "comes too late"));
  unsetenv("CALX_DETERMINISTIC");
  CHECK_STATUS_OK(FIT(.devices = 1, .deterministic = true));
  assert_non_null(strstr(lines, "`deterministic` comes too late"));
  assert_null(getenv("CALX_DETERMINISTIC"));
}

#define START_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, close_with_nothing)

// The first test is that of a process in which nothing was opened yet.
int main(void)
{
  setenv("CPU_NUM_DEVICES", "8", 1);
  const struct CMUnitTest first[] = { cmocka_unit_test_setup_teardown(
      test_row_A3, begin, close_all) };
  const struct CMUnitTest tests[] = {
    START_TEST(test_row_A4),
    START_TEST(test_row_A5),
    START_TEST(test_row_A9),
    START_TEST(test_deterministic),
  };
  return cmocka_run_group_tests(first, NULL, NULL) +
         cmocka_run_group_tests(tests, support_setup, NULL);
}
