// plot: axes have round ticks, curves stay inside of their frames, and texts
// are escaped.
#include "base/plot.h"

#include <math.h>
#include <unistd.h>

#include "base/axis.h"
#include "base/html.h"
#include "check.h"

#define NONE ((double)NAN)

// ---- axes -------------------------------------------------------------------

// The ticks' labels, with blanks between them.
static void check_axis(const cx_axis_range *range, const char *wanted)
{
  char text[512] = "";
  cx_axis axis;
  cx_axis_init(&axis, range);
  assert_true(axis.low < axis.high);
  for (int i = 0; i < axis.n_ticks; i++) {
    const size_t n = strlen(text);
    const double at = cx_axis_at(&axis, axis.ticks[i]);
    assert_true(at >= 0 && at <= 1);
    snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? " " : "",
             axis.labels[i]);
  }
  assert_string_equal(text, wanted);
}
#define AXIS(labels, ...) \
  check_axis(&(cx_axis_range){ .wanted = 5, __VA_ARGS__ }, labels)

static void test_ticks(void **state)
{
  (void)state;
  AXIS("0 0.5 1.0 1.5 2.0 2.5", .high = 2.33, .is_round = true);
  AXIS("0.5 1.0 1.5 2.0", .low = 0.13, .high = 2.33);
  AXIS("0 2k 4k 6k 8k 10k", .high = 10000);
  AXIS("5k 10k 15k", .low = 3, .high = 15555);
  AXIS("0 200 400 600 800", .high = 937);
  AXIS("0 0.5M 1.0M 1.5M", .high = 1.7e6);
  AXIS("-4e-6 -2e-6 0 2e-6 4e-6", .low = -5e-6, .high = 5e-6);
  AXIS("1", .low = 1, .high = 1.5, .is_whole = true);
  AXIS("0 1 2", .high = 2, .is_whole = true);
  AXIS("4.6 4.8 5.0 5.2 5.4", .low = 5, .high = 5);
  AXIS("-1.0 -0.5 0 0.5 1.0", .low = 0);
  AXIS("-1.0e300 -5e299 0 5e299 1.0e300", .low = -1.7e308, .high = 1.7e308);
  AXIS("-1.0 -0.5 0 0.5 1.0", .high = 5e-324);
  AXIS("0.97200 0.97205 0.97210", .low = 0.97199, .high = 0.97212, .wanted = 3);
}

static void test_log_ticks(void **state)
{
  (void)state;
  AXIS("1e-8 1e-7 1e-6 1e-5 0.0001 0.001 0.01 0.1 1", .low = 1e-8, .high = 1,
       .is_log = true);
  AXIS("0.001 0.002 0.005 0.01 0.02", .low = 0.0009, .high = 0.03,
       .is_log = true);
  AXIS("0.02 0.04 0.06 0.08", .low = 0.011, .high = 0.09, .is_log = true);
  AXIS("0.0008 0.0009 0.0010 0.0011 0.0012", .low = 1e-3, .high = 1e-3,
       .is_log = true);
  cx_axis axis;
  cx_axis_init(&axis, &(cx_axis_range){ 5e-324, 1.7e308, 5, .is_log = true });
  assert_in_range(axis.n_ticks, 2, CX_AXIS_TICKS);
  assert_true(isnan(cx_axis_at(&axis, 0)) && isnan(cx_axis_at(&axis, -1)));
  assert_true(isnan(cx_axis_at(&axis, NONE)));
}

static void test_numbers(void **state)
{
  (void)state;
  static const struct {
    double value;
    const char *text;
  } numbers[] = {
    { 0.1, "0.1" },           { 1e-5, "1e-5" },     { -1.5e-300, "-1.5e-300" },
    { 1234567, "1.23457e6" }, { 123456, "123456" }, { NONE, "nan" }
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char text[CX_AXIS_LABEL];
    cx_axis_number(text, numbers[i].value);
    assert_string_equal(text, numbers[i].text);
  }
}

// ---- curves -----------------------------------------------------------------

static int count(const char *text, const char *piece)
{
  int n = 0;
  for (; (text = strstr(text, piece)) != NULL; text++) n++;
  return n;
}

// The points of each curve, which must be inside of the frame.
static int count_points(const char *svg)
{
  int n = 0;
  for (const char *p = svg;
       (p = strstr(p, "linecap=\"round\" d=\"")) != NULL;) {
    p = strstr(p, " d=\"") + 4;
    const char *end = strchr(p, '"');
    for (; p < end; p++) {
      double x, y;
      if (*p != 'M' && *p != 'L') continue;
      assert_int_equal(sscanf(p + 1, "%lf %lf", &x, &y), 2);
      assert_true(x >= 0 && x <= 560 && y >= 0 && y <= 400);
      n++;
    }
  }
  return n;
}

static char *plotted(const cx_plot *plot)
{
  cx_text text = { 0 };
  cx_plot_put(&text, plot);
  assert_null(strstr(cx_text_str(&text), "nan"));
  assert_null(strstr(cx_text_str(&text), "inf"));
  return cx_text_take(&text);
}

static void test_gaps(void **state)
{
  (void)state;
  const double x[] = { 0, 1, 2, 3, 4, 5, 6 };
  const double y[] = { 1, 2, NONE, 3, HUGE_VAL, -HUGE_VAL, 4 };
  const cx_plot_series s = { "loss", x, y, 7 };
  char *svg =
      plotted(&(cx_plot){ .series = &s, .n_series = 1, .x_label = "step" });
  assert_int_equal(count_points(svg), 4);
  assert_int_equal(count(svg, "h0"), 2);  // 3 and 4 stand alone
  assert_int_equal(count(svg, "<ellipse"), 4);
  assert_non_null(strstr(svg, "<title>loss\nstep 3: 3</title>"));
  cx_free(svg);
}

static void test_extremes(void **state)
{
  (void)state;
  static const double sets[][3] = {
    { 1.7e308, -1.7e308, 0 }, { 5e-324, 0, 1e-320 },
    { NONE, NONE, NONE },     { 7, 7, 7 },
    { 1e15, 1e15 + 1, 1e15 }, { -1e-300, 1e300, HUGE_VAL },
  };
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
      const cx_plot_series s = { "s", sets[i], sets[k], 3 };
      cx_plot plot = { .series = &s, .n_series = 1, .title = "t" };
      char *svg = plotted(&plot);
      count_points(svg);
      cx_free(svg);
      plot.log_x = true;
      cx_free(plotted(&plot));
    }
  }
  char *svg = plotted(&(cx_plot){ .title = "nothing" });
  assert_int_equal(count_points(svg), 0);
  cx_free(svg);
}

static void test_mark(void **state)
{
  (void)state;
  const double x[] = { 1e-4, 1e-3, 1e-2, 0 }, y[] = { 3, 2, 9, 5 };
  const cx_plot_series s = { "loss", x, y, 4 };
  const cx_plot_mark mark = { 1e-3, 2, "suggestion" }, none = { -1, 2, "x" };
  cx_plot plot = {
    .series = &s, .n_series = 1, .log_x = true, .mark = &mark, .title = "lr"
  };
  char *svg = plotted(&plot);
  assert_int_equal(count_points(svg), 3);
  assert_int_equal(count(svg, "class=\"m\""), 1);
  assert_non_null(strstr(svg, ">suggestion<"));
  assert_non_null(strstr(svg, ">0.01<"));
  cx_free(svg);
  plot.mark = &none;
  svg = plotted(&plot);
  assert_int_equal(count(svg, "class=\"m\""), 0);
  cx_free(svg);
}

static void test_many(void **state)
{
  (void)state;
  enum { N = 5000 };
  static double x[N], y[N];
  cx_plot_series series[10];
  for (int i = 0; i < N; i++) {
    x[i] = i;
    y[i] = sin(i);
  }
  for (int k = 0; k < 10; k++) {
    series[k] = (cx_plot_series){ "a label that is not short", x, y, N };
  }
  char *svg = plotted(&(cx_plot){ .series = series, .n_series = 10 });
  assert_int_equal(count_points(svg), 10 * N);
  assert_in_range(count(svg, "<ellipse"), 10 * 100, 10 * 101);
  assert_int_equal(count(svg, "class=\"s0\""), 4);  // curves, legend: 0 and 8
  cx_free(svg);
}

// ---- texts ------------------------------------------------------------------

static void check_escaped(const char *from, const char *wanted)
{
  cx_text text = { 0 };
  cx_html_escape(&text, from);
  assert_string_equal(cx_text_str(&text), wanted);
  cx_text_free(&text);
}

static void test_escape(void **state)
{
  (void)state;
  check_escaped("<script>\"a\" & 'b'</script>",
                "&lt;script&gt;&quot;a&quot; &amp; 'b'&lt;/script&gt;");
  check_escaped("\x01\x1b[31m\r\n\tx\x7f", "  [31m \n\tx ");
  check_escaped("\xc3\xa9 \xe6\xb8\xac \xf0\x9f\x98\x80",
                "\xc3\xa9 \xe6\xb8\xac \xf0\x9f\x98\x80");
  check_escaped("\xff\xc3 \xed\xa0\x80 \xc0\xaf", "?? ??? ??");
  check_escaped("\xc2\x9b\xef\xbf\xbf\xef\xbf\xbe\xef\xbf\xbd",
                "??\xef\xbf\xbd");
  check_escaped("", "");
}

static void test_labels(void **state)
{
  (void)state;
  const double one[] = { 1 };
  const cx_plot_series s[] = {
    { "</title><script>alert(1)</script>", one, one, 1 },
    { "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "0123456789012345678901234567890123456789",
      one, one, 1 },
    { "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
      "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
      "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
      one, one, 1 },
  };
  char *svg = plotted(&(cx_plot){ .series = s,
                                  .n_series = 3,
                                  .title = "\"><b>",
                                  .x_label = "<x>",
                                  .y_label = "<y>" });
  assert_null(strstr(svg, "<script"));
  assert_null(strstr(svg, "<b>"));
  assert_non_null(strstr(svg, "aria-label=\"&quot;&gt;&lt;b&gt;\""));
  assert_non_null(strstr(svg,
                         "\xa9"
                         "012345678901234\xe2\x80\xa6<"));
  assert_null(strstr(svg, "0123456789012345\xe2\x80\xa6"));
  assert_non_null(strstr(svg, ">???????????????????????????????????????\xe2"));
  cx_free(svg);
}

// ---- files ------------------------------------------------------------------

static void test_file(void **state)
{
  (void)state;
  const double x[] = { 1, 2 }, y[] = { 3, 4 };
  const cx_plot_series s = { "loss", x, y, 2 };
  const cx_plot plot = { .title = "loss", .series = &s, .n_series = 1 };
  char folder[] = "/tmp/calx_plot_XXXXXX", path[64], data[4096];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/lr.svg", folder);
  assert_null(cx_plot_write(path, &plot));
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  data[fread(data, 1, sizeof data - 1, f)] = '\0';
  fclose(f);
  assert_int_equal(strncmp(data, "<svg class=\"plot\" xmlns=", 24), 0);
  assert_string_equal(data + strlen(data) - 7, "</svg>\n");
  assert_non_null(strstr(data, "<style>"));
  assert_int_equal(remove(path), 0);
  assert_int_equal(rmdir(folder), 0);
  calx_status *status = cx_plot_write(path, &plot);
  assert_int_equal(calx_status_code(status), CALX_NOT_FOUND);
  calx_status_free(status);
}

static void test_no_memory(void **state)
{
  (void)state;
  const double x[] = { 1, 2 }, y[] = { 3, 4 };
  const cx_plot_series s = {
    "a label of more than forty characters, which is cut", x, y, 2
  };
  bool failed = true;
  for (long n = 0; failed; n++) {
    cx_text text = { 0 };
    cx_alloc_fail_at(n);
    cx_html_begin(&text, "page");
    cx_plot_put(&text, &(cx_plot){ .series = &s, .n_series = 1 });
    cx_html_end(&text);
    cx_alloc_fail_at(-1);
    failed = cx_text_failed(&text);
    cx_text_free(&text);
    assert_true(n < 1000);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_ticks),     CHECK_TEST(test_log_ticks),
    CHECK_TEST(test_numbers),   CHECK_TEST(test_gaps),
    CHECK_TEST(test_extremes),  CHECK_TEST(test_mark),
    CHECK_TEST(test_many),      CHECK_TEST(test_escape),
    CHECK_TEST(test_labels),    CHECK_TEST(test_file),
    CHECK_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
