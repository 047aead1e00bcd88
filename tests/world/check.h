// tests/world/check: the checks of tests/base, without a launcher's variables.
#ifndef CX_TESTS_WORLD_CHECK_H
#define CX_TESTS_WORLD_CHECK_H

#include "../base/check.h"

// Removes the variables by which a launcher passes the rank info.
static inline void check_no_launcher(void)
{
  static const char *const prefixes[] = { "CALX_",       "PMI_",
                                          "PMIX_",       "OMPI_",
                                          "SLURM_",      "MPI_LOCAL",
                                          "MASTER_",     "TORCHELASTIC_",
                                          "RANK=",       "WORLD_SIZE=",
                                          "LOCAL_RANK=", "LOCAL_WORLD_SIZE=",
                                          "GROUP_RANK=", "GROUP_WORLD_SIZE=" };
  extern char **environ;
  for (size_t i = 0; environ != NULL && environ[i] != NULL;) {
    bool found = false;
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++) {
      found =
          found || strncmp(environ[i], prefixes[k], strlen(prefixes[k])) == 0;
    }
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="),
             environ[i]);
    if (!found || unsetenv(name) != 0) i++;
  }
}

static inline int check_alone(void **state)
{
  check_no_launcher();
  return check_begin(state);
}

#undef CHECK_TEST
#define CHECK_TEST(function) \
  cmocka_unit_test_setup_teardown(function, check_alone, check_end)

#endif
