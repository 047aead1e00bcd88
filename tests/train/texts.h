// texts: what the tests of options that are texts share: the lines that were
// logged, a folder with a file, the words of a command line.
#ifndef CX_TESTS_TRAIN_TEXTS_H
#define CX_TESTS_TRAIN_TEXTS_H

#include <ftw.h>
#include <unistd.h>

#include "calx/calx.h"
#include "support/support.h"

static char lines[4096], folder[64];

static inline void keep_line(void *user, const char *line)
{
  (void)user;
  size_t at = strlen(lines);
  snprintf(lines + at, sizeof lines - at, "%s\n", line);
}

static inline int begin(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  lines[0] = '\0';
  calx_log_set(keep_line, NULL);
  snprintf(folder, sizeof folder, "%s/options_XXXXXX",
           tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
  return mkdtemp(folder) == NULL;
}

static inline int remove_one(const char *path, const struct stat *info,
                             int kind, struct FTW *place)
{
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static inline int end(void **state)
{
  calx_log_set(NULL, NULL);
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) +
         support_nothing_left(state);
}

static inline const char *put_file(const char *text)
{
  static char path[96];
  snprintf(path, sizeof path, "%s/config.yaml", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
  return path;
}

enum { MOST_WORDS = 16 };

typedef struct command {
  int argc;
  char text[1024];
  char *argv[MOST_WORDS + 1];
} command;

// The words between blanks.
static inline command command_of(const char *text)
{
  static command c;
  snprintf(c.text, sizeof c.text, "%s", text);
  c.argc = 0;
  for (char *word = strtok(c.text, " "); word != NULL;
       word = strtok(NULL, " ")) {
    c.argv[c.argc++] = word;
  }
  c.argv[c.argc] = NULL;
  return c;
}

#define NEW_OPTIONS                      \
  {                                      \
    .size = sizeof(calx_trainer_options) \
  }

#define NEW_OPTIONS                      \
  {                                      \
    .size = sizeof(calx_trainer_options) \
  }
#define TEXTS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)
#endif
