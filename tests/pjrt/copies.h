// copies: copies of the fake plugin in a folder that goes after the tests.
//
// A file is loaded once for a process, so each case that is about loading has a
// file of its own.
#ifndef CX_TESTS_PJRT_COPIES_H
#define CX_TESTS_PJRT_COPIES_H

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "fake.h"
#include "pjrt/internal.h"

static char folder[64];

static inline void join(char *out, size_t room, const char *name)
{
  assert_true(snprintf(out, room, "%s/%s", folder, name) < (int)room);
}

static inline void write_file(const char *path, const void *data, size_t size)
{
  char parent[256];
  snprintf(parent, sizeof parent, "%s", path);
  *strrchr(parent, '/') = '\0';
  CHECK_OK(cx_folder_make(parent, 0755));
  unlink(path);  // it may be loaded: that file must stay as it is
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

// A copy of the fake as FOLDER/name; its path is in `out`.
static inline void copy_fake(const char *name, char *out, size_t room)
{
  char *data = NULL;
  size_t size = 0;
  join(out, room, name);
  CHECK_OK(cx_file_read(CX_FAKE_PLUGIN, 0, &data, &size));
  write_file(out, data, size);
  cx_free(data);
}

static const char *const variables[] = {
  "CALX_PLUGIN",     "PJRT_DEVICE",          "PJRT_NAMES_AND_LIBRARY_PATHS",
  "CALX_PLUGIN_DIR", "TPU_LIBRARY_PATH",     "XDG_CACHE_HOME",
  "XRT_TPU_CONFIG",  "COLAB_TPU_ADDR",       "XRT_DEVICE_MAP",
  "XRT_WORKERS",     "TPU_IP_ADDRESS",       "XRT_SHARD_ORDINAL",
  "XLA_USE_BF16",    "XRT_SHARD_WORLD_SIZE",
};

static inline int clean_environment(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    unsetenv(variables[i]);
  }
  setenv("CALX_PLUGIN_DIR", folder, 1);
  return 0;
}

#define COPIES_TEST(function)                                  \
  cmocka_unit_test_setup_teardown(function, clean_environment, \
                                  check_nothing_left)

static inline void copies_begin(void)
{
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx-copies-XXXXXX",
           temporary == NULL ? "/tmp" : temporary);
  if (mkdtemp(folder) == NULL) abort();
}

static inline int copies_end(void **state)
{
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

#endif
