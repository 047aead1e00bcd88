// loggers/html_page: see html_page.h. A section is a function.
#include "loggers/html_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/axis.h"
#include "base/html.h"
#include "base/plot.h"
#include "debug/report_html.h"
#include "loggers/number.h"
#include "profiler/metric.h"

enum { MOST_SERIES = 8 };  // of a plot: as many as it has colours

static void begin_section(cx_text *out, const char *title)
{
  cx_text_append(out, "<section>\n<h2>");
  cx_html_escape(out, title);
  cx_text_append(out, "</h2>\n");
}

static void end_section(cx_text *out)
{
  cx_text_append(out, "</section>\n");
}

// ---- the head ---------------------------------------------------------------

static void put_duration(cx_text *out, double seconds)
{
  if (seconds < 60) {
    cx_profiler_seconds(out, seconds);
    return;
  }
  const int64_t s = (int64_t)seconds;
  if (s >= 3600) cx_text_format(out, "%" PRId64 " h ", s / 3600);
  cx_text_format(out, "%" PRId64 " min %" PRId64 " s", s / 60 % 60, s % 60);
}

static void put_head(cx_text *out, const cx_loggers_page *p)
{
  const bool good = p->state != NULL && strcmp(p->state, "success") == 0;
  const bool bad = p->state != NULL && strcmp(p->state, "failed") == 0;
  cx_text_append(out, "<header>\n<h1>");
  cx_html_escape(out, p->title);
  cx_text_format(out, "<span class=\"state v%d\">", good ? 1 : bad ? 3 : 2);
  cx_html_escape(out, p->state != NULL ? p->state : "running");
  cx_text_append(out, "</span></h1>\n<p class=\"dim\">");
  if (p->curves->has_rows) {
    cx_text_format(out, "step %" PRId64 ", after ", p->curves->last_step);
  }
  put_duration(out, p->seconds);
  if (p->devices->are_known) {
    cx_text_format(out, " on %s, %d %s", p->devices->platform,
                   p->devices->ranks,
                   p->devices->ranks == 1 ? "rank" : "ranks");
  }
  cx_text_append(out, "</p>\n</header>\n");
}

// ---- curves -----------------------------------------------------------------

static bool is_plotted(const cx_loggers_curve *c)
{
  return !c->is_axis && c->seen > c->not_finite;
}

// A plot of curves of one subject, which is its title unless it has one curve.
static void put_plot(cx_text *out, const cx_plot_series *series, size_t n,
                     cx_loggers_subject subject)
{
  cx_text title = { 0 };
  cx_text_append_n(&title, subject.text, subject.size);
  cx_plot_put(
      out, &(cx_plot){ .title = n == 1 ? series[0].label : cx_text_str(&title),
                       .x_label = "step",
                       .series = series,
                       .n_series = n });
  out->failed |= title.failed;
  cx_text_free(&title);
}

// Those from the first on that have its subject; `done` marks them.
static void put_subject(cx_text *out, const cx_loggers_curves *all,
                        size_t first, bool *done)
{
  const cx_loggers_subject subject =
      cx_loggers_subject_of(all->items[first].plain_name);
  cx_plot_series series[MOST_SERIES];
  size_t n = 0;
  for (size_t i = first; i < all->count; i++) {
    const cx_loggers_curve *c = &all->items[i];
    if (done[i] || !is_plotted(c) ||
        !cx_loggers_subject_is(subject, cx_loggers_subject_of(c->plain_name))) {
      continue;
    }
    done[i] = true;
    if (n == MOST_SERIES) {
      put_plot(out, series, n, subject);
      n = 0;
    }
    series[n++] = (cx_plot_series){ c->name, c->x, c->y, c->count };
  }
  put_plot(out, series, n, subject);
}

static void put_curves(cx_text *out, const cx_loggers_curves *all)
{
  bool *done = cx_calloc(all->count + 1, sizeof *done);
  bool any = false;
  if (done == NULL) {
    out->failed = true;
    return;
  }
  begin_section(out, "Curves");
  cx_text_append(out, "<div class=\"plots\">\n");
  for (size_t i = 0; i < all->count; i++) {
    if (done[i] || !is_plotted(&all->items[i])) continue;
    any = true;
    put_subject(out, all, i, done);
  }
  cx_text_append(out, "</div>\n");
  if (!any) cx_text_append(out, "<p class=\"dim\">No metric was logged.</p>\n");
  end_section(out);
  cx_free(done);
}

// ---- the table of metrics ---------------------------------------------------

static void put_number(cx_text *out, double value)
{
  char text[CX_AXIS_LABEL];
  if (value == trunc(value) && fabs(value) < 1e15) {
    cx_loggers_put_whole(out, value);
    return;
  }
  cx_axis_number(text, value);
  cx_text_append(out, text);
}

static void put_point(cx_text *out, const cx_loggers_point *p)
{
  cx_text_append(out, "<td>");
  put_number(out, p->value);
  cx_text_format(out, "</td><td class=\"dim\">%" PRId64 "</td>", p->step);
}

static void put_metric(cx_text *out, const cx_loggers_curve *c, bool gaps)
{
  cx_text_append(out, "<tr><td>");
  cx_html_escape(out, c->name);
  cx_text_append(out, "</td>");
  put_point(out, &c->last);
  if (c->seen > c->not_finite) {
    put_point(out, &c->least);
    put_point(out, &c->most);
  } else {
    cx_text_append(out, "<td colspan=\"4\">no finite value</td>");
  }
  cx_text_format(out, "<td>%" PRId64 "</td>", c->seen);
  if (gaps) cx_text_format(out, "<td>%" PRId64 "</td>", c->not_finite);
  cx_text_append(out, "</tr>\n");
}

static int compare_names(const void *a, const void *b)
{
  const cx_loggers_curve *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static void put_metrics(cx_text *out, const cx_loggers_curves *all)
{
  bool gaps = false;
  const cx_loggers_curve **sorted = cx_calloc(all->count + 1, sizeof *sorted);
  if (all->count == 0 || sorted == NULL) {
    out->failed |= sorted == NULL;
    cx_free(sorted);
    return;
  }
  for (size_t i = 0; i < all->count; i++) {
    sorted[i] = &all->items[i];
    gaps |= sorted[i]->not_finite > 0;
  }
  qsort(sorted, all->count, sizeof *sorted, compare_names);
  begin_section(out, "Metrics");
  cx_text_format(out,
                 "<table class=\"numbers\">\n<thead><tr><th>name</th>"
                 "<th>last</th><th>step</th><th>min</th><th>step</th>"
                 "<th>max</th><th>step</th><th>values</th>%s</tr>"
                 "</thead>\n<tbody>\n",
                 gaps ? "<th>not finite</th>" : "");
  for (size_t i = 0; i < all->count; i++) put_metric(out, sorted[i], gaps);
  cx_text_append(out, "</tbody></table>\n");
  if (all->is_full) {
    cx_text_format(out,
                   "<p class=\"dim\">More than %d metrics were logged; these "
                   "are the first ones.</p>\n",
                   CX_LOGGERS_CURVES);
  }
  end_section(out);
  cx_free(sorted);
}

// ---- hyperparameters, environment, texts ------------------------------------

static void put_hyperparameter(cx_text *out, const calx_hyperparameter *h)
{
  cx_text value = { 0 };
  switch (h->kind) {
    case CALX_HYPERPARAMETER_TEXT:
      cx_text_append(&value, h->text != NULL ? h->text : "None");
      break;
    case CALX_HYPERPARAMETER_BOOL:
      cx_text_append(&value, h->number != 0 ? "True" : "False");
      break;
    case CALX_HYPERPARAMETER_INTEGER:
      cx_loggers_put_whole(&value, h->number);
      break;
    default: cx_loggers_put_real(&value, h->number);
  }
  cx_html_pair(out, h->name, cx_text_str(&value));
  out->failed |= value.failed;
  cx_text_free(&value);
}

static void put_hyperparameters(cx_text *out,
                                const cx_loggers_hyperparameters *all)
{
  if (all->count == 0) return;
  begin_section(out, "Hyperparameters");
  cx_text_append(out, "<table class=\"pairs\">\n");
  for (size_t i = 0; i < all->count; i++) {
    put_hyperparameter(out, &all->items[i]);
  }
  cx_text_append(out, "</table>\n");
  end_section(out);
}

static void put_environment(cx_text *out, const cx_loggers_page *p)
{
  char began[64] = "?";
  struct tm at;
  cx_text text = { 0 };
  if (localtime_r(&p->began, &at) != NULL) {
    strftime(began, sizeof began, "%Y-%m-%d %H:%M:%S %z", &at);
  }
  put_duration(&text, p->seconds);
  begin_section(out, "Environment");
  cx_text_append(out, "<table class=\"pairs\">\n");
  cx_html_pair(out, "Started", began);
  cx_html_pair(out, "Duration", cx_text_str(&text));
  cx_html_pair(out, "Exit", p->state != NULL ? p->state : "still running");
  cx_loggers_put_machine(out, p->devices);
  cx_text_append(out, "</table>\n");
  end_section(out);
  out->failed |= text.failed;
  cx_text_free(&text);
}

static void put_notes(cx_text *out, const cx_loggers_page *p)
{
  for (size_t i = 0; i < p->n_notes; i++) {
    begin_section(out, p->notes[i].name);
    cx_text_append(out, "<pre>");
    cx_html_escape(out, p->notes[i].text);
    cx_text_append(out, "</pre>\n");
    end_section(out);
  }
}

// ---- the speed --------------------------------------------------------------

// Nothing is known of a process that ran nothing on a device.
static calx_status *put_speed(cx_text *out)
{
  cx_debug_run_data run;
  cx_debug_advice advice[CX_DEBUG_ADVICE_ITEMS];
  CALX_TRY(cx_debug_run_now(&run));
  if (run.syncs > 0 || run.report.n_metrics > 0) {
    cx_debug_advise(&run, advice);
    cx_debug_put_advice(out, advice);
    cx_debug_put_times(out, &run);
    cx_debug_put_metrics(out, &run.report);
    cx_debug_advice_free(advice);
  }
  cx_debug_run_free(&run);
  return NULL;
}

calx_status *cx_loggers_put_page(cx_text *out, const cx_loggers_page *page)
{
  cx_html_begin(out, page->title);
  put_head(out, page);
  put_curves(out, page->curves);
  put_metrics(out, page->curves);
  cx_text_append(out, "<div class=\"grid\">\n");
  put_hyperparameters(out, page->hyperparameters);
  put_environment(out, page);
  cx_text_append(out, "</div>\n");
  put_notes(out, page);
  CALX_TRY(put_speed(out));
  cx_html_end(out);
  return NULL;
}
