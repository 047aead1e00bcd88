// debug/report_html: see report_html.h.
#include "debug/report_html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/html.h"
#include "base/plot.h"
#include "base/plot_parts.h"
#include "profiler/metric.h"

// Pixels of the plots that are no curves.
enum { WIDTH = 1150, HEIGHT = 200, LEFT = 70, BAR = 28, LEGEND = 4 };

static void format_time(double seconds, char out[32])
{
  cx_text text = { 0 };
  cx_profiler_seconds(&text, seconds);
  snprintf(out, 32, "%s", cx_text_str(&text));
  cx_text_free(&text);
}

// The unit that the greatest of some times is read in best.
static double scale_of(double most, const char **out_unit)
{
  *out_unit = most >= 1 ? "s" : most >= 1e-3 ? "ms" : "us";
  return most >= 1 ? 1 : most >= 1e-3 ? 1e3 : 1e6;
}

// ---- the steps --------------------------------------------------------------

static void put_steps(cx_text *out, const cx_debug_run_data *r)
{
  if (r->n_steps < 2) return;
  double *x = cx_calloc(2 * r->n_steps, sizeof *x), most = 0;
  if (x == NULL) {
    out->failed = true;
    return;
  }
  double *y = x + r->n_steps;
  for (size_t i = 0; i < r->n_steps; i++) {
    const cx_debug_run_step *s = &r->steps[i];
    x[i] = (double)s->first + (double)(s->n - 1) / 2;
    y[i] = s->seconds / (double)s->n;
    most = fmax(most, y[i]);
  }
  const char *unit;
  const double scale = scale_of(most, &unit);
  for (size_t i = 0; i < r->n_steps; i++) y[i] *= scale;
  const cx_plot_series series = { "Time of each step", x, y, r->n_steps };
  cx_plot_put(out, &(cx_plot){ .title = series.label,
                               .x_label = "step",
                               .y_label = unit,
                               .series = &series,
                               .n_series = 1,
                               .from_zero = true,
                               .width = WIDTH,
                               .height = HEIGHT + 60 });
  cx_free(x);
}

// ---- the parts of a step ----------------------------------------------------

typedef struct bar_part {
  const char *name;
  size_t colour;
  double seconds;
} bar_part;

static void put_rect(cx_text *out, double x, double y, double width,
                     double height)
{
  cx_text_append(out, "<rect stroke=\"none\"");
  cx_plot_pixels(out, "x", x);
  cx_plot_pixels(out, "y", y);
  cx_plot_pixels(out, "width", fmax(width, 0));
  cx_plot_pixels(out, "height", height);
}

static void put_bar(cx_text *out, const char *name, double y,
                    const bar_part *parts, size_t n, double whole)
{
  double x = LEFT;
  cx_plot_label(out, LEFT - 8, y + BAR / 2 + 4, "end", name);
  for (size_t i = 0; i < n; i++) {
    const double room = (double)WIDTH - x;
    const double width = fmin((WIDTH - LEFT) * parts[i].seconds / whole, room);
    char time[32];
    format_time(parts[i].seconds, time);
    cx_plot_group(out, parts[i].colour);
    put_rect(out, x, y, width, BAR);
    cx_text_format(out, "><title>%s: %s</title></rect>\n</g>\n", parts[i].name,
                   time);
    x += width;
  }
}

static void put_legend(cx_text *out, double y, const bar_part *parts, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const double x = LEFT + (double)(i % LEGEND) * (WIDTH - LEFT) / LEGEND;
    const double at = y + (double)(i / LEGEND) * 20;
    char text[80], time[32];
    format_time(parts[i].seconds, time);
    snprintf(text, sizeof text, "%s, %s", parts[i].name, time);
    cx_plot_group(out, parts[i].colour);
    put_rect(out, x, at, 11, 11);
    cx_text_append(out, "/>\n</g>\n");
    cx_plot_label(out, x + 17, at + 10, "start", text);
  }
}

static void put_parts(cx_text *out, const cx_debug_run_data *r)
{
  cx_debug_times t = cx_debug_run_times(r);
  if (t.steps == 0 || !(t.step > 0)) return;
  const bar_part parts[] = {
    { r->has_own ? "calx itself" : "recording, other", 0,
      r->has_own ? t.own : t.host },
    { "the program itself", 5, t.user },
    { "compiling", 4, t.part[CX_PROFILER_COMPILE] },
    { "reading values", 6, t.part[CX_PROFILER_DOWNLOAD] },
    { "waiting for steps", 7, t.part[CX_PROFILER_WAIT] },
    { "waiting for input", 3, t.part[CX_PROFILER_LOADER] },
    { "device works", 2, t.part[CX_PROFILER_EXECUTE] },
    { "transfers", 1, t.part[CX_PROFILER_UPLOAD] },
  };
  cx_plot_begin(out, "Where a step's time goes", WIDTH, 155, false);
  put_bar(out, "program", 30, parts, 6, t.step);
  put_bar(out, "device", 66, parts + 6, 1, t.step);
  put_legend(out, 112, parts, sizeof parts / sizeof *parts);
  cx_plot_end(out);
}

// ---- the compilations -------------------------------------------------------

static void put_compile(cx_text *out, const cx_plot_frame *f,
                        const cx_debug_run_compile *c, double seconds,
                        double scale)
{
  const double x = cx_plot_x(f, fmin(c->at, seconds));
  const double y = cx_plot_y(f, c->seconds * scale);
  const double width = (f->right - f->left) * c->seconds / seconds;
  char time[32];
  format_time(c->seconds, time);
  cx_plot_group(out, c->loaded ? 2 : 4);
  put_rect(out, x, y, fmax(fmin(width, f->right - x), 3), f->bottom - y);
  cx_text_format(out,
                 " fill-opacity=\"0.75\"><title>step %" PRId64 ", %" PRId64
                 " nodes, %s%s, ",
                 c->step, c->nodes, time, c->loaded ? " from the cache" : "");
  cx_html_escape(out, c->site);
  if (c->why[0] != '\0') cx_text_append(out, ": ");
  cx_html_escape(out, c->why);
  cx_text_append(out, "</title></rect>\n</g>\n");
}

static void put_compiles(cx_text *out, const cx_debug_run_data *r)
{
  if (r->n_compiles == 0 || !(r->seconds > 0)) return;
  double most = 0;
  for (size_t i = 0; i < r->n_compiles; i++) {
    most = fmax(most, r->compiles[i].seconds);
  }
  const char *unit;
  const double scale = scale_of(most, &unit);
  cx_plot_frame f = {
    .left = LEFT, .top = 32, .right = WIDTH - 24, .bottom = HEIGHT - 8
  };
  cx_axis_init(&f.x, &(cx_axis_range){ .high = r->seconds, .wanted = 12 });
  cx_axis_init(&f.y, &(cx_axis_range){
                         .high = most * scale, .wanted = 4, .is_round = true });
  cx_plot_begin(out, "Compilations, when and how long", WIDTH, HEIGHT + 32,
                false);
  cx_plot_axes(out, &f, "seconds of the run", unit);
  for (size_t i = 0; i < r->n_compiles; i++) {
    put_compile(out, &f, &r->compiles[i], r->seconds, scale);
  }
  cx_plot_end(out);
}

void cx_debug_put_times(cx_text *out, const cx_debug_run_data *run)
{
  static void (*const plots[])(
      cx_text * out, const cx_debug_run_data *run) = { put_steps, put_parts,
                                                       put_compiles };
  for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
    cx_text plot = { 0 };
    plots[i](&plot, run);
    if (plot.size > 0) {
      cx_text_format(out, "<section>\n%s</section>\n", cx_text_str(&plot));
    }
    out->failed |= plot.failed;
    cx_text_free(&plot);
  }
}

// ---- advice -----------------------------------------------------------------

static void put_findings(cx_text *out, const cx_debug_advice *advice)
{
  cx_text_append(out, "<table>\n");
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    const cx_debug_advice *a = &advice[i];
    cx_text_format(out, "<tr><td class=\"v v%d\">%s</td><td><b>", a->rating,
                   cx_debug_rating_name(a->rating));
    cx_html_escape(out, a->item);
    cx_text_append(out, "</b><br/>");
    cx_html_escape(out, cx_text_str(&a->numbers));
    if (a->details.size > 0) {
      cx_text_append(out, "<pre>");
      cx_html_escape(out, cx_text_str(&a->details));
      cx_text_append(out, "</pre>");
    }
    cx_text_append(out, "</td></tr>\n");
    out->failed |= a->numbers.failed || a->details.failed || a->advice.failed;
  }
  cx_text_append(out, "</table>\n");
}

void cx_debug_put_advice(cx_text *out, const cx_debug_advice *advice)
{
  bool any = false;
  cx_text_append(out, "<section>\n<h2>Findings</h2>\n");
  put_findings(out, advice);
  cx_text_append(out, "</section>\n");
  for (int i = 0; i < CX_DEBUG_ADVICE_ITEMS; i++) {
    if (advice[i].advice.size == 0) continue;
    if (!any) cx_text_append(out, "<section>\n<h2>Advice</h2>\n<ul>\n");
    any = true;
    cx_text_append(out, "<li><b>");
    cx_html_escape(out, advice[i].item);
    cx_text_append(out, "</b>: ");
    cx_html_escape(out, cx_text_str(&advice[i].advice));
    cx_text_append(out, "</li>\n");
  }
  if (any) cx_text_append(out, "</ul>\n</section>\n");
}

// ---- timers and counters ----------------------------------------------------

static void put_metric(cx_text *out, const cx_debug_read_metric *m, bool rates)
{
  cx_text_append(out, "<tr><td>");
  cx_html_escape(out, m->name);
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

static void put_timers(cx_text *out, const cx_debug_read_report *r)
{
  bool rates = false;  // a file of CALX_REPORT has none
  for (size_t i = 0; i < r->n_metrics; i++) {
    rates |= r->metrics[i].rate > 0 || r->metrics[i].value_rate > 0;
  }
  if (r->n_metrics == 0) return;
  cx_text_append(out,
                 "<section>\n<details><summary>Timers</summary>\n"
                 "<table class=\"numbers\">\n<thead><tr><th>name</th>"
                 "<th>samples</th><th>sum</th><th>median</th>");
  if (rates) {
    cx_text_append(out, "<th>samples a second</th><th>sum a second</th>");
  }
  cx_text_append(out, "</tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < r->n_metrics; i++) {
    put_metric(out, &r->metrics[i], rates);
  }
  cx_text_append(out, "</tbody></table>\n</details>\n</section>\n");
}

static void put_counters(cx_text *out, const cx_debug_read_report *r)
{
  if (r->n_counters == 0) return;
  cx_text_append(out,
                 "<section>\n<details><summary>Counters</summary>\n"
                 "<table class=\"numbers\">\n<thead><tr><th>name</th>"
                 "<th>value</th></tr></thead>\n<tbody>\n");
  for (size_t i = 0; i < r->n_counters; i++) {
    cx_text_append(out, "<tr><td>");
    cx_html_escape(out, r->counters[i].name);
    cx_text_format(out, "</td><td>%" PRId64 "</td></tr>\n",
                   r->counters[i].value);
  }
  cx_text_append(out, "</tbody></table>\n</details>\n</section>\n");
}

void cx_debug_put_metrics(cx_text *out, const cx_debug_read_report *report)
{
  put_timers(out, report);
  put_counters(out, report);
}
