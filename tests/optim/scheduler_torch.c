// scheduler_torch: 200 steps of each schedule beside PyTorch's.
#include <jansson.h>

#include "schedules.h"
#include "support/torch.h"

// PyTorch's rates: a list of rows for each schedule.
static FILE *run_torch(void)
{
  char command[1024];
  const char *list = file_in_folder("schedules.txt");
  FILE *f = fopen(list, "w");
  assert_non_null(f);
  for (size_t k = 0; k < SCHEDULES_COUNT; k++) {
    fprintf(f, "%d %s\n", schedules[k].steps - 1, schedules[k].python);
  }
  assert_int_equal(fclose(f), 0);
  snprintf(command, sizeof command, "'%s' -B '%s/scheduler_torch.py' < '%s'",
           torch_python(), CX_TEST_DIR, list);
  f = popen(command, "r");
  assert_non_null(f);
  return f;
}

static bool close_to(double got, double want)
{
  return fabs(got - want) <= 1e-10 * (fabs(want) + 1e-3);
}

static size_t compare(size_t k, const json_t *rows, calx_optimizer *opt)
{
  static const char *const options[] = { "lr", "lr", "momentum" };
  calx_lr_scheduler *s = schedules_make(k, opt);
  CHECK_STATUS_OK(calx_lr_scheduler_error(s));
  size_t wrong = 0;
  for (size_t i = 0; i < json_array_size(rows); i++) {
    for (size_t j = 0; j < 3; j++) {
      double want =
          json_number_value(json_array_get(json_array_get(rows, i), j));
      double got = calx_optimizer_option(opt, j == 1, options[j]);
      if (close_to(got, want) || wrong++ > 2) continue;
      print_message("%s: step %zu, %s of group %d is %.17g, %.17g is wanted\n",
                    schedules[k].python, i, options[j], j == 1, got, want);
    }
    schedules_step(opt, s);
  }
  CHECK_STATUS_OK(calx_scope_take_error());
  calx_lr_scheduler_free(s);
  return wrong;
}

static void test_torch(void **state)
{
  (void)state;
  FILE *f = run_torch();
  size_t wrong = 0;
  calx_module *m = schedules_model();
  for (size_t k = 0; k < SCHEDULES_COUNT; k++) {
    json_error_t error;
    json_t *rows = json_loadf(f, JSON_DISABLE_EOF_CHECK, &error);
    if (rows == NULL) fail_msg("%s: %s", schedules[k].python, error.text);
    assert_int_equal(json_array_size(rows), schedules[k].steps - 1);
    calx_optimizer *opt = schedules_optimizer(m);
    wrong += compare(k, rows, opt);
    calx_optimizer_free(opt);
    json_decref(rows);
  }
  calx_module_free(m);
  // To the end: Python fails if the pipe is closed before its last newline.
  while (fgetc(f) != EOF) {
  }
  assert_int_equal(pclose(f), 0);
  assert_int_equal(wrong, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_torch) };
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
