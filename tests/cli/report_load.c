// report_load: what is said of a file that is refused holds nothing that a
// terminal would take for an order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../cli/report.h"
#include "base/status.h"

static calx_status *load(const char *text, cx_debug_run_data *out)
{
  char path[] = "/tmp/calx_report_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  calx_status *status = cx_cli_report_load(path, out);
  unlink(path);
  return status;
}

static void check_plain(const char *text)
{
  for (const char *p = text; *p != '\0'; p++) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)p[1] < 0xa0)) {
      fail_msg("byte 0x%02x of '%s'", c, text);
    }
  }
}

#define HEAD                                                           \
  "{\"calx_report\":1,\"plugin\":\"a\",\"platform\":\"b\",\"rank\":0," \
  "\"world\":1,\"syncs\":0,\"compilations\":0,\"other_reads\":0,"      \
  "\"seconds\":1,\"setup\":0,\"steps\":[],\"compiles\":[],\"reads\":[],"

static void test_plain_errors(void **state)
{
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
    { HEAD "\"metrics\":{\"\\u001b[31mred \\u009b2J\":{}}}",
      "metrics. [31mred 2J.unit is not a text" },
    { "Metric: A\n  Accumulator: \x1b[31m\xc2\x9b\x9b"
      "2J\xc3\xa9\n",
      "' [31m?2J\xc3\xa9' is no value" },
    { "{\"calx_report\":\x1b]0;title\x07}", "line 1" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cx_debug_run_data run;
    calx_status *status = load(cases[i].text, &run);
    assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
    const char *message = calx_status_message(status);
    if (strstr(message, cases[i].says) == NULL) {
      fail_msg("'%s' has no '%s'", message, cases[i].says);
    }
    check_plain(message);
    calx_status_free(status);
  }
}

static void test_plain_names(void **state)
{
  (void)state;
  static const char *const texts[] = {
    HEAD "\"metrics\":{},\"counters\":{\"a\\u0085b\\u001bc\":1}}",
    "Counter: a\xc2\x85"
    "b\x1b"
    "c\n  Value: 1\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    cx_debug_run_data run;
    assert_null(load(texts[i], &run));
    assert_string_equal(run.report.counters[0].name, "ab c");
    cx_debug_run_free(&run);
  }
}

// How many devices a run had; a file that does not tell had one.
static void test_devices(void **state)
{
  (void)state;
  cx_debug_run_data run;
  assert_null(load(HEAD "\"metrics\":{},\"counters\":{}}", &run));
  assert_int_equal(run.devices, 1);
  cx_debug_run_free(&run);
  assert_null(load(HEAD "\"devices\":4,\"metrics\":{},\"counters\":{}}", &run));
  assert_int_equal(run.devices, 4);
  cx_debug_run_free(&run);
  calx_status *status =
      load(HEAD "\"devices\":\"4\",\"metrics\":{},\"counters\":{}}", &run);
  assert_int_equal(calx_status_code(status), CALX_INVALID_ARGUMENT);
  calx_status_free(status);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plain_errors),
    cmocka_unit_test(test_plain_names),
    cmocka_unit_test(test_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
