// check: what the tests of the hlo module share. A test that leaves a block of
// memory or a status behind fails.
#ifndef TESTS_HLO_CHECK_H
#define TESTS_HLO_CHECK_H

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
#include "hlo/bytecode_write.h"
#include "hlo/parse.h"
#include "hlo/print.h"
#include "hlo/verify.h"

#define CHECK_OK(expression) check_ok((expression), __FILE__, __LINE__)
// The status has this code, and a message that holds the piece.
#define CHECK_FAILS(code, expression, piece) \
  check_fails((code), (expression), (piece), __FILE__, __LINE__)

static inline void check_ok(calx_status *status, const char *file, int line)
{
  if (status == NULL) return;
  print_error("%s\n", calx_status_message(status));
  calx_status_free(status);
  _fail(file, line);
}

static inline void check_fails(calx_code code, calx_status *status,
                               const char *piece, const char *file, int line)
{
  const bool right = calx_status_code(status) == code &&
                     strstr(calx_status_message(status), piece) != NULL;
  if (!right) {
    print_error("wanted %s with '%s', got %s: %s\n", calx_code_name(code),
                piece, calx_code_name(calx_status_code(status)),
                calx_status_message(status));
  }
  calx_status_free(status);
  if (!right) _fail(file, line);
}

static inline cx_hlo_module *check_parse(const char *text)
{
  cx_hlo_module *m = NULL;
  CHECK_OK(cx_hlo_parse(text, strlen(text), "text", &m));
  return m;
}

// print(parse(print(m))) is print(m).
static inline void check_identity(const cx_hlo_module *m)
{
  cx_text once = { 0 };
  cx_text twice = { 0 };
  cx_hlo_print(m, &once);
  assert_false(cx_text_failed(&once));
  cx_hlo_module *again = check_parse(cx_text_str(&once));
  cx_hlo_print(again, &twice);
  assert_string_equal(cx_text_str(&once), cx_text_str(&twice));
  cx_hlo_module_free(again);
  cx_text_free(&once);
  cx_text_free(&twice);
}

// The module as bytecode, read back and printed.
static inline void check_bytecode(const cx_hlo_module *m, cx_text *out)
{
  cx_text bytes = { 0 }, again = { 0 };
  cx_hlo_module *back = NULL;
  CHECK_OK(cx_hlo_write_bytecode(m, &bytes));
  CHECK_OK(cx_hlo_parse(bytes.data, bytes.size, "bytecode", &back));
  cx_hlo_print(back, out);
  CHECK_OK(cx_hlo_write_bytecode(back, &again));
  assert_int_equal(bytes.size, again.size);
  assert_memory_equal(bytes.data, again.data, bytes.size);
  cx_hlo_module_free(back);
  cx_text_free(&bytes);
  cx_text_free(&again);
}

// A whole file of this folder, to be freed with cx_free().
static inline char *check_file(const char *name)
{
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", CX_TEST_DIR, name);
  FILE *f = fopen(path, "rb");
  if (f == NULL) {
    print_error("%s cannot be read\n", path);
    fail();
  }
  cx_text text = { 0 };
  char piece[4096];
  for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) {
    cx_text_append_n(&text, piece, n);
  }
  fclose(f);
  return cx_text_take(&text);
}

typedef struct check_before {
  long statuses, blocks;
} check_before;

static inline int check_begin(void **state)
{
  static check_before before;
  before = (check_before){ cx_status_live(), cx_alloc_live() };
  *state = &before;
  return 0;
}

static inline int check_end(void **state)
{
  const check_before *before = *state;
  const long statuses = cx_status_live() - before->statuses;
  const long blocks = cx_alloc_live() - before->blocks;
  cx_alloc_fail_at(-1);
  if (statuses == 0 && blocks == 0) return 0;
  print_error("left over: %ld statuses, %ld blocks\n", statuses, blocks);
  return 1;
}

#define CHECK_TEST(function) \
  cmocka_unit_test_setup_teardown(function, check_begin, check_end)

#endif
