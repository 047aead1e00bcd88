// Statuses, texts, the library's lines, interned places.
#include <pthread.h>

#include "base/env.h"
#include "base/text.h"
#include "check.h"

// ---- texts ------------------------------------------------------------------

static void test_text(void **state)
{
  (void)state;
  cx_text t = { 0 };
  assert_string_equal(cx_text_str(&t), "");
  cx_text_append(&t, "a");
  cx_text_append_n(&t, "bcd", 2);
  cx_text_char(&t, '-');
  cx_text_int(&t, INT64_MIN);
  cx_text_char(&t, ' ');
  cx_text_int(&t, 0);
  cx_text_int(&t, INT64_MAX);
  assert_string_equal(cx_text_str(&t),
                      "abc--9223372036854775808 09223372036854775807");
  cx_text_clear(&t);
  assert_string_equal(cx_text_str(&t), "");
  for (int i = 0; i < 1000; i++) cx_text_format(&t, "%d,%s;", i, "xyz");
  assert_int_equal(t.size, 10 * 6 + 90 * 7 + 900 * 8);
  assert_int_equal(strlen(cx_text_str(&t)), t.size);
  cx_text_append_n(&t, "a\0b", 3);  // zeros are characters too
  assert_int_equal(t.data[t.size - 1], 'b');
  cx_text_free(&t);
  char *taken = cx_text_take(&t);
  assert_string_equal(taken, "");
  cx_free(taken);
}

// A failed growth sticks, and taking gives nothing.
static void test_text_without_memory(void **state)
{
  (void)state;
  cx_text t = { 0 };
  cx_text_append(&t, "kept");
  cx_alloc_fail_at(0);
  for (int i = 0; i < 100; i++) cx_text_format(&t, "%s", "much more of it");
  cx_alloc_fail_at(-1);
  assert_true(cx_text_failed(&t));
  cx_text_append(&t, "too late");
  assert_int_equal(strncmp(cx_text_str(&t), "kept", 4), 0);
  assert_null(cx_text_take(&t));
  assert_false(cx_text_failed(&t));
  cx_text_append(&t, "new");
  cx_text_free(&t);
}

// ---- statuses ---------------------------------------------------------------

static void test_codes(void **state)
{
  (void)state;
  assert_string_equal(calx_code_name(CALX_OK), "OK");
  assert_string_equal(calx_code_name(CALX_UNAUTHENTICATED), "UNAUTHENTICATED");
  assert_string_equal(calx_code_name(CALX_DATA_LOSS), "DATA_LOSS");
  assert_string_equal(calx_code_name((calx_code)17), "UNKNOWN");
  assert_string_equal(calx_code_name((calx_code)-1), "UNKNOWN");
  assert_int_equal(calx_status_code(NULL), CALX_OK);
  assert_string_equal(calx_status_message(NULL), "ok");
  assert_null(calx_status_site(NULL));
  calx_status_free(NULL);
}

static void test_error(void **state)
{
  (void)state;
  calx_at_(&(calx_site){ "mnist.c", "forward", 15 });
  calx_status *s = cx_error(CALX_NOT_FOUND, "linear: %d of %s", 3, "them");
  assert_int_equal(calx_status_code(s), CALX_NOT_FOUND);
  assert_string_equal(calx_status_message(s),
                      "mnist.c:15: in forward: linear: 3 of them");
  assert_string_equal(cx_status_sentence(s), "linear: 3 of them");
  assert_int_equal(calx_status_site(s)->line, 15);
  calx_status *copy = cx_status_copy(s);
  calx_status_free(s);
  assert_string_equal(calx_status_site(copy)->func, "forward");
  assert_string_equal(cx_status_sentence(copy), "linear: 3 of them");
  copy = cx_annotate(copy, "while loading '%s'", "x");
  assert_string_equal(
      calx_status_message(copy),
      "mnist.c:15: in forward: linear: 3 of them; while loading 'x'");
  calx_status_free(copy);
  s = cx_error_at(NULL, CALX_INTERNAL, "plain");
  assert_string_equal(calx_status_message(s), "plain");
  assert_string_equal(cx_status_sentence(s), "plain");
  assert_null(calx_status_site(s));
  calx_status_free(s);
  s = cx_error_at(&(calx_site){ "a.lua", NULL, 2 }, CALX_INTERNAL, "x");
  assert_string_equal(calx_status_message(s), "a.lua:2: x");
  calx_status_free(s);
  assert_null(cx_annotate(NULL, "x"));
  assert_null(cx_status_copy(NULL));
  calx_at_(&(calx_site){ 0 });
}

static void test_own_status(void **state)
{
  (void)state;
  calx_status *s = calx_status_new(CALX_ABORTED, "row %d is bad", 5);
  assert_string_equal(calx_status_message(s), "row 5 is bad");
  assert_int_equal(calx_status_code(s), CALX_ABORTED);
  calx_status_free(s);
  assert_null(calx_status_new(CALX_OK, "nothing"));
}

static void test_long_message(void **state)
{
  (void)state;
  char many[5000];
  memset(many, 'x', sizeof many - 1);
  many[sizeof many - 1] = '\0';
  calx_status *s = cx_error(CALX_INTERNAL, "%s!", many);
  assert_int_equal(strlen(calx_status_message(s)), sizeof many);
  s = cx_annotate(s, "%s", many);
  assert_int_equal(strlen(calx_status_message(s)), 2 * sizeof many + 1);
  calx_status_free(s);
}

// A failure without memory is told all the same.
static void test_without_memory(void **state)
{
  (void)state;
  for (long n = 0; n < 2; n++) {
    cx_alloc_fail_at(n);
    calx_status *s = cx_error(CALX_INTERNAL, "something else");
    cx_alloc_fail_at(-1);
    assert_int_equal(calx_status_code(s), CALX_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(calx_status_message(s), "memory"));
    assert_ptr_equal(s, cx_out_of_memory());
    assert_ptr_equal(cx_status_copy(s), s);
    assert_ptr_equal(cx_annotate(s, "more"), s);
    calx_status_free(s);
    calx_status_free(s);
  }
  calx_status *s = cx_error(CALX_INTERNAL, "kept");
  cx_alloc_fail_at(0);
  s = cx_annotate(s, "lost");
  cx_alloc_fail_at(-1);
  assert_non_null(strstr(calx_status_message(s), "kept"));
  calx_status_free(s);
}

static calx_status *two_steps(calx_status *first, int *reached)
{
  CALX_TRY(first);
  *reached = 1;
  return NULL;
}

static void test_try(void **state)
{
  (void)state;
  int reached = 0;
  check_fails(two_steps(cx_error(CALX_ABORTED, "no"), &reached), CALX_ABORTED,
              "no");
  assert_int_equal(reached, 0);
  check_ok(two_steps(NULL, &reached));
  assert_int_equal(reached, 1);
}

static void test_print(void **state)
{
  (void)state;
  char buffer[200] = { 0 };
  FILE *file = fmemopen(buffer, sizeof buffer, "w");
  calx_status *s = cx_error_at(NULL, CALX_ABORTED, "no luck");
  calx_status_print(file, NULL);
  calx_status_print(file, s);
  fclose(file);
  assert_string_equal(buffer, "error: no luck (ABORTED)\n");
  calx_status_free(s);
}

// ---- places -----------------------------------------------------------------

static void *site_of_thread(void *user)
{
  *(bool *)user = cx_site()->file == NULL;
  calx_at_(&(calx_site){ "thread.c", "f", 1 });
  return NULL;
}

static void test_site_is_the_threads(void **state)
{
  (void)state;
  calx_at_(&(calx_site){ "main.c", "f", 1 });
  bool fresh = false;
  pthread_t thread;
  pthread_create(&thread, NULL, site_of_thread, &fresh);
  pthread_join(thread, NULL);
  assert_true(fresh);
  assert_string_equal(cx_site()->file, "main.c");
  calx_at_(&(calx_site){ 0 });
}

static void test_intern(void **state)
{
  (void)state;
  char file[] = "frame.py", func[] = "step";
  calx_site a = cx_site_intern(&(calx_site){ file, func, 3 });
  memset(file, 'x', 3);
  memset(func, 'x', 3);
  assert_string_equal(a.file, "frame.py");
  assert_string_equal(a.func, "step");
  calx_site b = cx_site_intern(&(calx_site){ "frame.py", NULL, 4 });
  assert_ptr_equal(a.file, b.file);
  assert_null(b.func);
  assert_int_equal(b.line, 4);
}

// ---- lines ------------------------------------------------------------------

static char said[10][100];
static int n_said;

static void take(void *user, const char *line)
{
  (void)user;
  snprintf(said[n_said++ % 10], sizeof said[0], "%s", line);
}

static void nested(void *user, const char *line)
{
  take(user, line);
  if (strcmp(line, "again") != 0) cx_log("again");
}

static void test_log(void **state)
{
  (void)state;
  n_said = 0;
  calx_log_set(take, NULL);
  cx_log("%d lines", 2);
  assert_int_equal(n_said, 1);
  assert_string_equal(said[0], "2 lines");
  for (int i = 0; i < 3; i++) {
    calx_at_(&(calx_site){ "a.c", "f", 5 });
    assert_int_equal(cx_log_once_per_site("key", "one"), i == 0);
    assert_int_equal(cx_log_once_per_site("other", "two"), i == 0);
    calx_at_(&(calx_site){ "a.c", "f", 6 });
    assert_int_equal(cx_log_once_per_site("key", "three"), i == 0);
  }
  assert_int_equal(n_said, 4);
  calx_at_(&(calx_site){ 0 });
  calx_log_set(NULL, NULL);
}

// Lines that are held back come in order, when the last hold ends; the callback
// may log.
static void test_hold(void **state)
{
  (void)state;
  n_said = 0;
  calx_log_set(nested, NULL);
  cx_log_hold_begin();
  cx_log("first");
  cx_log_hold_begin();
  cx_log("%s", "");
  cx_log_hold_end();
  cx_log("third");
  assert_int_equal(n_said, 0);
  cx_log_hold_end();
  assert_int_equal(n_said, 6);
  assert_string_equal(said[0], "first");
  assert_string_equal(said[1], "again");
  assert_string_equal(said[2], "");
  assert_string_equal(said[4], "third");
  cx_log_hold_begin();
  cx_log_hold_end();
  // A line that there is no memory for is lost alone.
  cx_log_hold_begin();
  cx_alloc_fail_at(1);
  cx_log("lost");
  cx_alloc_fail_at(-1);
  cx_log_hold_end();
  n_said = 0;
  cx_log_hold_begin();
  cx_log("again");
  cx_log_hold_end();
  assert_int_equal(n_said, 1);
  calx_log_set(NULL, NULL);
}

// The names of a model's parameters and of their state are interned: where that
// took a time quadratic in their number, this would take minutes (the test has
// a limit of one).
static void test_intern_many(void **state)
{
  (void)state;
  enum { MANY = 200000 };
  const char *first = NULL;
  for (int i = 0; i < MANY; i++) {
    char name[32];
    snprintf(name, sizeof name, "layer%d.weight", i);
    const char *kept = cx_site_intern(&(calx_site){ .file = name }).file;
    assert_string_equal(kept, name);
    if (i == 0) first = kept;
  }
  assert_ptr_equal(cx_site_intern(&(calx_site){ .file = "layer0.weight" }).file,
                   first);
}

// ---- settings ---------------------------------------------------------------

// 0 means off, or without an end: what is above 0 never becomes it.
static void test_seconds(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int64_t ms;
  } good[] = { { "1e-9", 1 },  { "0.0015", 2 }, { "0", 0 },
               { "2", 2000 },  { "0.25", 250 }, { "x", 5000 },
               { "-1", 5000 }, { "nan", 5000 }, { "1e300", 5000 },
               { "", 5000 } };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    setenv("CX_TEST_SECONDS", good[i].text, 1);
    assert_int_equal(cx_env_ms("CX_TEST_SECONDS", true, 5), good[i].ms);
  }
  unsetenv("CX_TEST_SECONDS");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_text),           CHECK_TEST(test_text_without_memory),
    CHECK_TEST(test_codes),          CHECK_TEST(test_error),
    CHECK_TEST(test_own_status),     CHECK_TEST(test_long_message),
    CHECK_TEST(test_without_memory), CHECK_TEST(test_try),
    CHECK_TEST(test_print),          CHECK_TEST(test_site_is_the_threads),
    CHECK_TEST(test_intern),         CHECK_TEST(test_log),
    CHECK_TEST(test_hold),           CHECK_TEST(test_intern_many),
    CHECK_TEST(test_seconds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
