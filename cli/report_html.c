// cli/report_html: the report as one page: no scripts, nothing from elsewhere,
// the plots are SVG in it. Texts of the file are escaped.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "profiler/metric.h"
#include "report.h"

// All plots: pixels, of the drawing and of the margin at the left.
enum { WIDTH = 900, HEIGHT = 220, LEFT = 70, BOTTOM = 30, TOP = 12 };

static const char style[] =
    "<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;color:#222;background:#fff}\n"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "td,th{border-bottom:1px solid #ddd;padding:.4rem .6rem;text-align:left;"
    "vertical-align:top}\n"
    "pre{margin:.3rem 0;white-space:pre-wrap;font-size:13px}\n"
    ".v{font-weight:600;white-space:nowrap}\n"
    ".v1{color:#1a7f37}.v2{color:#9a6700}.v3{color:#c62828}.v0{color:#777}\n"
    "svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;"
    "fill:#555}\n"
    ".axis{stroke:#999}.line{fill:none;stroke:#1f5fa8;stroke-width:1.5}\n"
    "</style>\n";

static void escape(cx_text *out, const char *s)
{
  for (; *s != '\0'; s++) {
    switch (*s) {
      case '<': cx_text_append(out, "&lt;"); break;
      case '>': cx_text_append(out, "&gt;"); break;
      case '&': cx_text_append(out, "&amp;"); break;
      case '"': cx_text_append(out, "&quot;"); break;
      default: cx_text_char(out, *s);
    }
  }
}

static void number(cx_text *out, double value)
{
  cx_text_real(out, "%.1f", isfinite(value) ? value : 0);
}

static void attribute(cx_text *out, const char *name, double value)
{
  cx_text_format(out, " %s=\"", name);
  number(out, value);
  cx_text_char(out, '"');
}

static void begin_plot(cx_text *out, const char *title, int height)
{
  cx_text_format(out,
                 "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                 "aria-label=\"%s\">\n",
                 title, WIDTH, height, title);
}

static void label(cx_text *out, double x, double y, const char *anchor,
                  const char *text)
{
  cx_text_append(out, "<text");
  attribute(out, "x", x);
  attribute(out, "y", y);
  cx_text_format(out, " text-anchor=\"%s\">", anchor);
  escape(out, text);
  cx_text_append(out, "</text>\n");
}

static void format_time(double seconds, char out[32])
{
  cx_text text = { 0 };
  cx_profiler_seconds(&text, seconds);
  snprintf(out, 32, "%s", cx_text_str(&text));
  cx_text_free(&text);
}

static void axes(cx_text *out, double most, const char *left, const char *right)
{
  char top[32];
  format_time(most, top);
  cx_text_format(out,
                 "<path class=\"axis\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n",
                 LEFT, TOP, HEIGHT - BOTTOM, WIDTH);
  label(out, LEFT - 6, TOP + 10, "end", top);
  label(out, LEFT - 6, HEIGHT - BOTTOM, "end", "0");
  label(out, LEFT, HEIGHT - 8, "start", left);
  label(out, WIDTH, HEIGHT - 8, "end", right);
}

// ---- the steps --------------------------------------------------------------

static double mean_of(const cx_debug_run_step *s)
{
  return s->seconds / (double)s->n;
}

static void plot_steps(cx_text *out, const cx_debug_run_data *r)
{
  if (r->n_steps < 2) return;
  double most = 0;
  for (size_t i = 0; i < r->n_steps; i++) {
    if (mean_of(&r->steps[i]) > most) most = mean_of(&r->steps[i]);
  }
  if (!(most > 0)) most = 1;
  const cx_debug_run_step *last = &r->steps[r->n_steps - 1];
  char left[48], right[48];
  snprintf(left, sizeof left, "step %" PRId64, r->steps[0].first);
  snprintf(right, sizeof right, "step %" PRId64, last->first + last->n - 1);
  begin_plot(out, "Time of each step", HEIGHT);
  axes(out, most, left, right);
  cx_text_append(out, "<polyline class=\"line\" points=\"");
  for (size_t i = 0; i < r->n_steps; i++) {
    double x =
        LEFT + (double)(WIDTH - LEFT) * (double)i / (double)(r->n_steps - 1);
    double y = HEIGHT - BOTTOM -
               (HEIGHT - BOTTOM - TOP) * mean_of(&r->steps[i]) / most;
    number(out, x);
    cx_text_char(out, ',');
    number(out, y);
    cx_text_char(out, ' ');
  }
  cx_text_append(out, "\"/>\n</svg>\n");
}

// ---- the parts of a step ----------------------------------------------------

typedef struct bar_part {
  const char *name, *colour;
  double seconds;
} bar_part;

static void plot_bar(cx_text *out, const char *name, double y,
                     const bar_part *parts, size_t n, double whole)
{
  double x = LEFT;
  label(out, LEFT - 6, y + 20, "end", name);
  for (size_t i = 0; i < n; i++) {
    double width = (WIDTH - LEFT) * parts[i].seconds / whole;
    if (x + width > WIDTH) width = WIDTH - x;
    char time[32];
    format_time(parts[i].seconds, time);
    cx_text_format(out, "<rect fill=\"%s\" height=\"30\"", parts[i].colour);
    attribute(out, "x", x);
    attribute(out, "y", y);
    attribute(out, "width", width > 0 ? width : 0);
    cx_text_format(out, "><title>%s: %s</title></rect>\n", parts[i].name, time);
    x += width;
  }
}

static void plot_legend(cx_text *out, double y, const bar_part *parts, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    double x = LEFT + (double)(i % 4) * 205, at = y + (double)(i / 4) * 20;
    char text[80], time[32];
    format_time(parts[i].seconds, time);
    snprintf(text, sizeof text, "%s, %s", parts[i].name, time);
    cx_text_format(out, "<rect fill=\"%s\" width=\"10\" height=\"10\"",
                   parts[i].colour);
    attribute(out, "x", x);
    attribute(out, "y", at);
    cx_text_append(out, "/>\n");
    label(out, x + 15, at + 10, "start", text);
  }
}

static void plot_parts(cx_text *out, const cx_debug_run_data *r)
{
  cx_debug_times t = cx_debug_run_times(r);
  if (t.steps == 0 || !(t.step > 0)) return;
  const bar_part parts[] = {
    { r->has_own ? "calx itself" : "recording, other", "#1f5fa8",
      r->has_own ? t.own : t.host },
    { "the program itself", "#5b9bd5", t.user },
    { "compiling", "#c62828", t.part[CX_PROFILER_COMPILE] },
    { "reading values", "#b8860b", t.part[CX_PROFILER_DOWNLOAD] },
    { "waiting for steps", "#7b8794", t.part[CX_PROFILER_WAIT] },
    { "waiting for input", "#8e44ad", t.part[CX_PROFILER_LOADER] },
    { "device works", "#1a7f37", t.part[CX_PROFILER_EXECUTE] },
    { "transfers", "#7fb38a", t.part[CX_PROFILER_UPLOAD] },
  };
  begin_plot(out, "Where a step's time goes", 160);
  plot_bar(out, "program", 10, parts, 6, t.step);
  plot_bar(out, "device", 50, parts + 6, 1, t.step);
  plot_legend(out, 100, parts, sizeof parts / sizeof *parts);
  cx_text_append(out, "</svg>\n");
}

// ---- the compilations -------------------------------------------------------

static void plot_compiles(cx_text *out, const cx_debug_run_data *r)
{
  if (r->n_compiles == 0 || !(r->seconds > 0)) return;
  double most = 0;
  for (size_t i = 0; i < r->n_compiles; i++) {
    if (r->compiles[i].seconds > most) most = r->compiles[i].seconds;
  }
  if (!(most > 0)) most = 1;
  char end[32];
  format_time(r->seconds, end);
  begin_plot(out, "Compilations, when and how long", HEIGHT);
  axes(out, most, "0", end);
  for (size_t i = 0; i < r->n_compiles; i++) {
    const cx_debug_run_compile *c = &r->compiles[i];
    double x = LEFT + (WIDTH - LEFT) * fmin(c->at / r->seconds, 1);
    double width = (WIDTH - LEFT) * fmin(c->seconds / r->seconds, 1);
    double height = (HEIGHT - BOTTOM - TOP) * c->seconds / most;
    char time[32];
    format_time(c->seconds, time);
    cx_text_format(out, "<rect fill=\"%s\" fill-opacity=\"0.7\"",
                   c->loaded ? "#1a7f37" : "#c62828");
    attribute(out, "x", x);
    attribute(out, "y", HEIGHT - BOTTOM - height);
    attribute(out, "width", fmax(fmin(width, WIDTH - x), 2));
    attribute(out, "height", height);
    cx_text_format(out, "><title>step %" PRId64 ", %" PRId64 " nodes, %s%s, ",
                   c->step, c->nodes, time, c->loaded ? " from the cache" : "");
    escape(out, c->site);
    if (c->why[0] != '\0') cx_text_append(out, ": ");
    escape(out, c->why);
    cx_text_append(out, "</title></rect>\n");
  }
  cx_text_append(out, "</svg>\n");
}

// ---- tables -----------------------------------------------------------------

static void table_of_advice(cx_text *out, const cx_debug_advice *advice)
{
  cx_text_append(out, "<table>\n");
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    const cx_debug_advice *a = &advice[i];
    cx_text_format(out, "<tr><td class=\"v v%d\">%s</td><td><b>", a->rating,
                   cx_debug_rating_name(a->rating));
    escape(out, a->item);
    cx_text_append(out, "</b><br>");
    escape(out, cx_text_str(&a->numbers));
    if (a->details.size > 0) {
      cx_text_append(out, "<pre>");
      escape(out, cx_text_str(&a->details));
      cx_text_append(out, "</pre>");
    }
    cx_text_append(out, "</td></tr>\n");
  }
  cx_text_append(out, "</table>\n");
}

static void list_of_advice(cx_text *out, const cx_debug_advice *advice)
{
  bool any = false;
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    if (advice[i].advice.size == 0) continue;
    if (!any) cx_text_append(out, "<h2>Advice</h2>\n<ul>\n");
    any = true;
    cx_text_append(out, "<li><b>");
    escape(out, advice[i].item);
    cx_text_append(out, "</b>: ");
    escape(out, cx_text_str(&advice[i].advice));
    cx_text_append(out, "</li>\n");
  }
  if (any) cx_text_append(out, "</ul>\n");
}

static void table_of_metrics(cx_text *out, const cx_debug_read_report *r)
{
  bool rates = false;  // a file of CALX_REPORT has none
  for (size_t i = 0; i < r->n_metrics; i++) {
    rates |= r->metrics[i].rate > 0 || r->metrics[i].value_rate > 0;
  }
  if (r->n_metrics == 0) return;
  cx_text_append(out,
                 "<h2>Timers</h2>\n<table>\n<tr><th>name</th>"
                 "<th>samples</th><th>sum</th><th>median</th>");
  if (rates) {
    cx_text_append(out, "<th>samples a second</th><th>sum a second</th>");
  }
  cx_text_append(out, "</tr>\n");
  for (size_t i = 0; i < r->n_metrics; i++) {
    const cx_debug_read_metric *m = &r->metrics[i];
    cx_text_append(out, "<tr><td>");
    escape(out, m->name);
    cx_text_format(out, "</td><td>%" PRId64 "</td><td>", m->samples);
    cx_profiler_value(out, m->unit, m->accumulator);
    cx_text_append(out, "</td><td>");
    if (m->n_percentiles > 0) {
      cx_profiler_value(out, m->unit, cx_debug_report_at(m, 0.5));
    }
    if (rates) cx_text_append(out, "</td><td>");
    if (m->rate > 0) cx_text_real(out, "%.3g", m->rate);
    if (rates) cx_text_append(out, "</td><td>");
    if (m->value_rate > 0) cx_profiler_value(out, m->unit, m->value_rate);
    cx_text_append(out, "</td></tr>\n");
  }
  cx_text_append(out, "</table>\n");
}

static void table_of_counters(cx_text *out, const cx_debug_read_report *r)
{
  if (r->n_counters == 0) return;
  cx_text_append(out,
                 "<h2>Counters</h2>\n<table>\n<tr><th>name</th>"
                 "<th>value</th></tr>\n");
  for (size_t i = 0; i < r->n_counters; i++) {
    cx_text_append(out, "<tr><td>");
    escape(out, r->counters[i].name);
    cx_text_format(out, "</td><td>%" PRId64 "</td></tr>\n",
                   r->counters[i].value);
  }
  cx_text_append(out, "</table>\n");
}

void cx_cli_report_ranks(const cx_debug_run_data *run, cx_text *out)
{
  cx_text_format(out, "; rank %" PRId64 " of %" PRId64, run->rank, run->world);
  if (run->devices > 1) {
    cx_text_format(out, " with %" PRId64 " devices, each one's share is told",
                   run->devices);
  }
  cx_text_append(out, ", the first step was done after ");
  cx_profiler_seconds(out, run->setup);
}

void cx_cli_report_html(const cx_debug_run_data *run,
                        const cx_debug_advice *advice, const char *name,
                        cx_text *out)
{
  cx_text_append(out,
                 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
                 "charset=\"utf-8\"><title>calx report</title>\n");
  cx_text_append(out, style);
  cx_text_append(out, "</head><body>\n<h1>calx report: ");
  escape(out, name);
  cx_text_append(out, "</h1>\n");
  if (run->detailed) {
    char time[32];
    format_time(run->seconds, time);
    cx_text_format(out, "<p>%" PRId64 " steps in %s on ", run->syncs, time);
    escape(out, run->plugin);
    cx_text_append(out, ", ");
    escape(out, run->platform);
    cx_cli_report_ranks(run, out);
    cx_text_append(out, "</p>\n");
  }
  table_of_advice(out, advice);
  list_of_advice(out, advice);
  plot_steps(out, run);
  plot_parts(out, run);
  plot_compiles(out, run);
  table_of_metrics(out, &run->report);
  table_of_counters(out, &run->report);
  cx_text_append(out, "</body></html>\n");
}
