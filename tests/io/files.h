// files: a folder for each test, and whole files in it.
#ifndef CX_TESTS_IO_FILES_H
#define CX_TESTS_IO_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "support/support.h"

// "/tmp/calx_io_xxxxxx/NAME"; the text is static, of one of eight.
static inline const char *file_in_folder(const char *name)
{
  static char folder[64], paths[8][512];
  static int next;
  if (folder[0] == '\0') {
    strcpy(folder, "/tmp/calx_io_XXXXXX");
    assert_non_null(mkdtemp(folder));
  }
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s%s%s", folder, *name ? "/" : "", name);
  return path;
}

// How many files are there; all of them are removed on request.
static inline int files_in_folder(bool remove_them)
{
  int n = 0;
  DIR *dir = opendir(file_in_folder(""));
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    n++;
    if (remove_them) assert_int_equal(remove(file_in_folder(e->d_name)), 0);
  }
  closedir(dir);
  return n;
}

// Frees the folder with what is in it; in a group's teardown.
static inline int files_end(void **state)
{
  (void)state;
  files_in_folder(true);
  return rmdir(file_in_folder(""));
}

static inline void write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

// A file of CALX_SHARED's folder `oracle`.
static inline const char *oracle_file(const char *name)
{
  static char paths[8][1024];
  static int next;
  const char *folder = getenv("CALX_SHARED");
  assert_non_null(folder);
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/oracle/%s", folder, name);
  return path;
}

#endif
