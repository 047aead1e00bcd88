// html_device: what report.html says of a run on a device, here the fake one.
#include "base/trace.h"
#include "lazy/fixture.h"
#include "pages.h"

static int begin(void **state)
{
  return folder_begin(state) || lazy_begin(state);
}

static int end(void **state)
{
  return lazy_end(state) || folder_end(state);
}

static void train(calx_logger *l, int steps)
{
  for (int i = 0; i < steps; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *y = calx_neg(lazy_vector(4, 1));
    calx_sync(y);
    LOG(l, i, V("loss", calx_item(calx_select(y, 0, 0))));
    CHECK_STATUS_OK(calx_scope_end(step));
  }
}

static void test_speed(void **state)
{
  (void)state;
  calx_logger *l = calx_html_logger(folder);
  train(l, 30);
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  CHECK_PAGE(PAGE, " on fake, 1 rank</p>", "<th>Ranks</th><td>1</td>",
             "<th>Plugin</th><td>fake_pjrt.so, platform fake</td>",
             "<h2>Findings</h2>", "<b>reading values</b>",
             "html_device.c:", "<h2>Advice</h2>",
             "aria-label=\"Time of each step\"",
             "aria-label=\"Compilations, when and how long\"",
             "<summary>Timers</summary>", "<td>MarkStep</td>");
  // The run is over, and so may the device be.
  calx_shutdown();
  CHECK_STATUS_OK(calx_logger_save(l));
  CHECK_PAGE(PAGE, " on fake, 1 rank</p>", "Time of each step");
  calx_logger_free(l);
  assert_false(cx_trace_wanted(CX_TRACE_SPANS));
}

static void test_no_profile(void **state)
{
  (void)state;
  calx_logger *l = calx_html_logger(folder, .no_profile = true);
  assert_false(cx_trace_wanted(CX_TRACE_SPANS));
  train(l, 3);
  CHECK_STATUS_OK(calx_logger_finalize(l, "success"));
  calx_logger_free(l);
  CHECK_PAGE(PAGE, "<h2>Findings</h2>", "<summary>Timers</summary>");
  char *page = page_of(PAGE);
  assert_null(strstr(page, "Time of each step"));
  test_free(page);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_speed, begin, end),
    cmocka_unit_test_setup_teardown(test_no_profile, begin, end),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
