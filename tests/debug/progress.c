// The line of a loop: what it says off a terminal, and what it does with
// values. With an argument it is the loop that progress.py watches on a
// terminal.
#include <time.h>
#include "calx/calx.h"
#include "support/support.h"

static char text[4096];

static const char *said(FILE *file)
{
  rewind(file);
  size_t n = fread(text, 1, sizeof text - 1, file);
  text[n] = '\0';
  return text;
}

static calx_tensor *number(float v)
{
  return calx_tensor_from(&v, CALX_F32, CALX_SHAPE(1));
}

static void test_lines(void **state)
{
  (void)state;
  FILE *file = tmpfile();
  calx_progress *p = calx_progress_new("Epoch 1", 5, .every = 2, .file = file,
                                       .unit = "images");
  for (int i = 1; i <= 5; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *loss = calx_mul(number((float)i), 0.5);
    calx_sync(loss);
    calx_progress_number(p, "lr", 1e-5);
    calx_progress_value(p, "loss", loss);
    calx_progress_step(p, 128);
    assert_null(calx_scope_end(scope));
  }
  calx_progress_end(p);
  said(file);
  char *second = strchr(text, '\n');
  assert_non_null(second);
  char *third = strchr(second + 1, '\n');
  assert_non_null(third);
  assert_true(strchr(third + 1, '\n') == text + strlen(text) - 1);
  assert_memory_equal(text, "Epoch 1 step 2/5 lr 1.000e-05 loss ", 35);
  assert_non_null(strstr(text, " images/s ETA 0:00\n"));
  assert_memory_equal(second + 1, "Epoch 1 step 4/5 ", 17);
  // The last line has the last value, whenever it came.
  assert_memory_equal(third + 1, "Epoch 1 step 5/5 lr 1.000e-05 loss 2.5000 ",
                      42);
  assert_non_null(strstr(third, " in 0:00\n"));
  assert_null(strchr(text, '\r'));
  fclose(file);
}

// About ten lines of a known number, and the last one of a loop that ends
// early.
static void test_every(void **state)
{
  (void)state;
  FILE *file = tmpfile();
  calx_progress *p = calx_progress_new(NULL, 1000, .file = file);
  for (int i = 0; i < 450; i++) calx_progress_step(p, 0);
  calx_progress_end(p);
  said(file);
  int lines = 0;
  for (char *at = text; (at = strchr(at, '\n')) != NULL; at++) lines++;
  assert_int_equal(lines, 5);
  assert_memory_equal(text, "step 100/1000 ", 14);
  assert_non_null(strstr(text, "step 450/1000 "));
  assert_non_null(strstr(text, " steps/s ETA "));
  fclose(file);
  file = tmpfile();
  p = calx_progress_new("all", 0, .file = file);
  for (int i = 0; i < 250; i++) calx_progress_step(p, 0);
  calx_progress_end(p);
  said(file);
  assert_memory_equal(text, "all step 100 ", 13);
  assert_null(strstr(text, "ETA"));
  fclose(file);
}

static void test_wrong_value(void **state)
{
  (void)state;
  FILE *file = tmpfile();
  calx_progress *p = calx_progress_new("x", 1, .file = file);
  calx_progress_value(p, "loss", calx_ones(CALX_SHAPE(2)));
  calx_status *status = calx_scope_take_error();
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  assert_non_null(strstr(calx_status_message(status), "'loss' has 2 elements"));
  calx_status_free(status);
  calx_progress_step(p, 1);
  calx_progress_end(p);
  calx_progress_end(NULL);
  fclose(file);
}

// The tensor is kept beyond its scope, and computed by the next sync.
static void test_value_is_kept(void **state)
{
  (void)state;
  FILE *file = tmpfile();
  calx_progress *p = calx_progress_new("x", 2, .file = file);
  calx_scope *scope = calx_scope_begin();
  calx_progress_value(p, "loss", calx_mul(number(3), 2));
  calx_sync(NULL);
  assert_null(calx_scope_end(scope));
  calx_progress_step(p, 1);
  calx_progress_end(p);
  assert_non_null(strstr(said(file), "loss 6.0000"));
  fclose(file);
}

static int watched(void)
{
  calx_progress *p = calx_progress_new("Epoch 1", 40, .unit = "images");
  for (int i = 0; i < 40; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *loss = calx_full(CALX_SHAPE(1 + i / 20), 1);
    loss = calx_sum(loss);
    calx_sync(loss);
    calx_progress_value(p, "loss", loss);
    calx_progress_step(p, 10);
    nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    if (i == 30)
      calx_item(calx_div(number(0), number(0)));  // a line of the log
    calx_status_print(stderr, calx_scope_end(scope));
  }
  calx_progress_end(p);
  return 0;
}

int main(int argc, char **argv)
{
  (void)argv;
  if (argc > 1) return watched();
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lines),
    cmocka_unit_test(test_every),
    cmocka_unit_test(test_wrong_value),
    cmocka_unit_test(test_value_is_kept),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
