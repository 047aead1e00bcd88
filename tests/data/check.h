// check: what the tests of the data module share.
//
// Each test runs in a scope of its own; when it ends, the scope must hold no
// error, and no tensor, status or block of memory may be left over.
#ifndef CX_TESTS_DATA_CHECK_H
#define CX_TESTS_DATA_CHECK_H

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
#include "calx/data.h"
#include "lazy/lazy.h"

#define CHECK_OK(expression) check_ok((expression), __FILE__, __LINE__)
// The status has this code and a message that holds every given piece; FAILS
// frees it, SAYS borrows it.
#define CHECK_FAILS(code, expression, ...)              \
  check_fails((code), (expression), __FILE__, __LINE__, \
              (const char *const[]){ __VA_ARGS__, NULL })
#define CHECK_SAYS(code, expression, ...)              \
  check_says((code), (expression), __FILE__, __LINE__, \
             (const char *const[]){ __VA_ARGS__, NULL })

static inline void check_ok(calx_status *status, const char *file, int line)
{
  if (status == NULL) return;
  print_error("%s\n", calx_status_message(status));
  calx_status_free(status);
  _fail(file, line);
}

static inline void check_says(calx_code code, const calx_status *status,
                              const char *file, int line,
                              const char *const *pieces)
{
  const char *message = calx_status_message(status);
  bool right = calx_status_code(status) == code;
  for (; right && *pieces != NULL; pieces++) {
    if (strstr(message, *pieces) == NULL) break;
  }
  if (right && *pieces == NULL) return;
  print_error("wanted %s with '%s', got %s: %s\n", calx_code_name(code),
              *pieces, calx_code_name(calx_status_code(status)), message);
  _fail(file, line);
}

static inline void check_fails(calx_code code, calx_status *status,
                               const char *file, int line,
                               const char *const *pieces)
{
  check_says(code, status, file, line, pieces);
  calx_status_free(status);
}

typedef struct check_before {
  calx_scope *scope;
  long tensors, statuses, blocks;
} check_before;

static inline int check_begin(void **state)
{
  CHECK_OK(calx_scope_end(calx_scope_begin()));  // makes the root scope
  static check_before before;
  before.tensors = cx_lazy_tensor_live();
  before.statuses = cx_status_live();
  before.blocks = cx_alloc_live();
  before.scope = calx_scope_begin();
  *state = &before;
  return 0;
}

static inline int check_end(void **state)
{
  const check_before *before = *state;
  calx_status *status = calx_scope_end(before->scope);
  CHECK_OK(calx_scope_end(calx_scope_begin()));  // forgets the scope's tensors
  if (status != NULL) {
    print_error("left in the scope: %s\n", calx_status_message(status));
    calx_status_free(status);
    return 1;
  }
  long tensors = cx_lazy_tensor_live() - before->tensors;
  long statuses = cx_status_live() - before->statuses;
  long blocks = cx_alloc_live() - before->blocks;
  if (tensors == 0 && statuses == 0 && blocks == 0) return 0;
  print_error("left over: %ld tensors, %ld statuses, %ld blocks\n", tensors,
              statuses, blocks);
  return 1;
}

#define CHECK_TEST(function) \
  cmocka_unit_test_setup_teardown(function, check_begin, check_end)

#endif
