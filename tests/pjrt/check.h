// check: what the tests of the pjrt module share.
#ifndef CX_TESTS_PJRT_CHECK_H
#define CX_TESTS_PJRT_CHECK_H

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
#include "pjrt/pjrt.h"

#define CHECK_OK(expression) check_ok((expression), __FILE__, __LINE__)
// Fails with this code and a message that holds every given piece.
#define CHECK_FAILS(code, expression, ...)              \
  check_fails((code), (expression), __FILE__, __LINE__, \
              (const char *const[]){ __VA_ARGS__, NULL })

static inline void check_ok(calx_status *status, const char *file, int line)
{
  if (status == NULL) return;
  print_error("%s\n", calx_status_message(status));
  calx_status_free(status);
  _fail(file, line);
}

static inline void check_fails(calx_code code, calx_status *status,
                               const char *file, int line,
                               const char *const *pieces)
{
  bool right = calx_status_code(status) == code;
  for (; *pieces != NULL; pieces++) {
    if (strstr(calx_status_message(status), *pieces) == NULL) right = false;
    if (!right) break;
  }
  if (!right) {
    print_error("wanted %s with '%s', got %s: %s\n", calx_code_name(code),
                *pieces == NULL ? "" : *pieces,
                calx_code_name(calx_status_code(status)),
                calx_status_message(status));
  }
  calx_status_free(status);
  if (!right) _fail(file, line);
}

// Every test ends with nothing left over.
static inline int check_nothing_left(void **state)
{
  (void)state;
  if (cx_pjrt_live() == 0 && cx_status_live() == 0) return 0;
  print_error("left over: %ld handles, %ld statuses\n", cx_pjrt_live(),
              cx_status_live());
  return 1;
}

#define CHECK_TEST(function) \
  cmocka_unit_test_setup_teardown(function, NULL, check_nothing_left)

#endif
