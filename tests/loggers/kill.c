// kill: a process that rewrites metrics.csv with ever more columns is killed at
// any moment, and the file is one that a save left, whole.
#include <signal.h>
#include <sys/wait.h>

#include "folders.h"
#include "support/long.h"

enum { ROWS = 2000, COLUMNS = 1000 };

// Each save adds a column, so each writes the whole file anew.
static void widen_for_ever(void)
{
  calx_logger *l = calx_csv_logger(folder, .version = "0",
                                   .flush_logs_every_n_steps = INT64_MAX);
  for (int i = 0; i < ROWS; i++) LOG(l, i, V("c0", i));
  CHECK_STATUS_OK(calx_logger_save(l));
  for (int c = 1; c < COLUMNS; c++) {
    char name[16];
    snprintf(name, sizeof name, "c%d", c);
    LOG(l, c, V(name, c));
    CHECK_STATUS_OK(calx_logger_save(l));
  }
  _exit(0);
}

// All lines have as many cells as the header, and there is a line for each row
// and each column.
static void check_whole(void)
{
  FILE *f = fopen(in_folder("lightning_logs/version_0/metrics.csv"), "rb");
  if (f == NULL) return;  // killed before the first save
  int columns = 0, lines = 0, cells = 1, last = 0;
  for (int c; (c = fgetc(f)) != EOF; last = c) {
    cells += c == ',';
    if (c != '\n') continue;
    assert_int_equal(last, '\r');
    if (lines++ == 0) columns = cells;
    assert_int_equal(cells, columns);
    cells = 1;
  }
  fclose(f);
  assert_int_equal(last, '\n');
  assert_int_equal(lines, 1 + ROWS + columns - 2);
}

static void test_kill(void **state)
{
  (void)state;
  uint64_t random = 88172645463325252u;
  calx_log_set(keep_line, NULL);
  for (long i = 0; i < long_or(200, 30); i++) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) widen_for_ever();
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    usleep((useconds_t)(random % 60000));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    check_whole();
  }
  calx_log_set(NULL, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = { FOLDER_TEST(test_kill) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
