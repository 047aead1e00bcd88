// tests/world/check: cmocka, and that nothing allocated is left after a test.
#ifndef CX_TESTS_WORLD_CHECK_H
#define CX_TESTS_WORLD_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

static long check_blocks;

// Every variable by which a launcher tells a process its place.
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

static inline int check_begin(void **state)
{
  (void)state;
  check_no_launcher();
  check_blocks = cx_alloc_live();
  return 0;
}

static inline int check_end(void **state)
{
  (void)state;
  cx_alloc_fail_at(-1);
  long blocks = cx_alloc_live() - check_blocks;
  if (blocks == 0 && cx_status_live() == 0) return 0;
  print_error("left over: %ld blocks, %ld statuses\n", blocks,
              cx_status_live());
  return 1;
}

#define CHECK_TEST(function) \
  cmocka_unit_test_setup_teardown(function, check_begin, check_end)

// The status is this code and its message holds the piece; freed.
static inline void check_fails(calx_status *status, calx_code code,
                               const char *piece)
{
  if (calx_status_code(status) != code ||
      strstr(calx_status_message(status), piece) == NULL) {
    fail_msg("wanted %s with '%s', got %s: %s", calx_code_name(code), piece,
             calx_code_name(calx_status_code(status)),
             calx_status_message(status));
  }
  calx_status_free(status);
}

static inline void check_ok(calx_status *status)
{
  if (status != NULL) fail_msg("%s", calx_status_message(status));
}

#endif
