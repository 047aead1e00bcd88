// folders: a folder for each test, and what is in its files.
#ifndef CX_TESTS_LOGGERS_FOLDERS_H
#define CX_TESTS_LOGGERS_FOLDERS_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calx/loggers.h"
#include "support/support.h"

static char folder[64];

static inline int folder_begin(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/loggers_XXXXXX",
           tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
  return mkdtemp(folder) == NULL;
}

static inline int folder_remove(const char *path, const struct stat *info,
                                int kind, struct FTW *place)
{
  (void)info;
  (void)kind;
  (void)place;
  return remove(path);
}

static inline int folder_end(void **state)
{
  int left = support_nothing_left(state);
  chmod(folder, 0700);
  return left + nftw(folder, folder_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#define FOLDER_TEST(function) \
  cmocka_unit_test_setup_teardown(function, folder_begin, folder_end)

// FOLDER/NAME; the text is static, of one of eight.
static inline const char *in_folder(const char *name)
{
  static char paths[8][512];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static inline bool is_there(const char *name)
{
  return access(in_folder(name), F_OK) == 0;
}

// The content, zero-terminated; test_free() it. NULL: there is no such file.
static inline char *content(const char *name, size_t *out_size)
{
  FILE *f = fopen(in_folder(name), "rb");
  if (f == NULL) return NULL;
  char *data = test_malloc(1 << 16);
  size_t n = fread(data, 1, (1 << 16) - 1, f);
  fclose(f);
  data[n] = '\0';
  if (out_size != NULL) *out_size = n;
  return data;
}

// NULL: there is no such file.
static inline void check_file(const char *name, const char *wanted)
{
  char *got = content(name, NULL);
  if (wanted == NULL) {
    assert_null(got);
    return;
  }
  assert_non_null(got);
  assert_string_equal(got, wanted);
  test_free(got);
}

static inline void put_file(const char *name, const char *text)
{
  FILE *f = fopen(in_folder(name), "wb");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
}

static inline void make_folder(const char *name)
{
  assert_int_equal(mkdir(in_folder(name), 0777), 0);
}

// The newest line of the log.
static char said[512];
static inline void keep_line(void *user, const char *line)
{
  (void)user;
  snprintf(said, sizeof said, "%s", line);
}

#define V(name, value) \
  {                    \
    name, value, false \
  }
#define LOG(logger, step, ...)                                               \
  CHECK_STATUS_OK(                                                           \
      calx_logger_log_metrics(logger, (calx_logged_value[]){ __VA_ARGS__ },  \
                              sizeof((calx_logged_value[]){ __VA_ARGS__ }) / \
                                  sizeof(calx_logged_value),                 \
                              step))

#endif
