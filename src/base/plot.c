// base/plot: see plot.h.
#include "base/plot.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/html.h"
#include "base/plot_parts.h"

enum {
  WIDTH = 560,
  HEIGHT = 300,
  POINTS = 100,       // of a curve, that report their values
  SHOWN_POINTS = 30,  // a curve with fewer shows where they are
  ROW = 18,           // of the legend
  SWATCH = 22,
  GAP = 16
};
#define CHARACTER 6.6  // the width of one, about

// ---- the ranges -------------------------------------------------------------

typedef struct plot_range {
  double low, high;
  bool is_whole;
} plot_range;

static void include(plot_range *r, double value)
{
  r->low = fmin(r->low, value);
  r->high = fmax(r->high, value);
  r->is_whole &= value == trunc(value);
}

static bool is_drawn(const cx_plot *plot, double x, double y)
{
  return isfinite(x) && isfinite(y) && (!plot->log_x || x > 0);
}

static void find_ranges(const cx_plot *plot, plot_range *x, plot_range *y)
{
  *x = *y = (plot_range){ HUGE_VAL, -HUGE_VAL, true };
  for (size_t i = 0; i < plot->n_series; i++) {
    const cx_plot_series *s = &plot->series[i];
    for (size_t k = 0; k < s->count; k++) {
      if (!is_drawn(plot, s->x[k], s->y[k])) continue;
      include(x, s->x[k]);
      include(y, s->y[k]);
    }
  }
  const cx_plot_mark *m = plot->mark;
  if (m != NULL && is_drawn(plot, m->x, m->y)) {
    include(x, m->x);
    include(y, m->y);
  }
  if (plot->from_zero) include(y, 0);
  if (x->low > x->high) *x = (plot_range){ plot->log_x ? 1 : 0, 1, true };
  if (y->low > y->high) *y = (plot_range){ 0, 1, false };
}

// The longest label of an axis, in pixels.
static double label_width(const cx_axis *axis)
{
  size_t most = 0;
  for (int i = 0; i < axis->n_ticks; i++) {
    const size_t n = strlen(axis->labels[i]);
    if (n > most) most = n;
  }
  return CHARACTER * (double)most;
}

static cx_plot_frame frame_of(const cx_plot *plot, int width, int height,
                              double top)
{
  plot_range x, y;
  cx_plot_frame f = { .top = top };
  find_ranges(plot, &x, &y);
  cx_axis_init(&f.x, &(cx_axis_range){ .low = x.low,
                                       .high = x.high,
                                       .wanted = width / 90,
                                       .is_whole = x.is_whole,
                                       .is_log = plot->log_x });
  cx_axis_init(
      &f.y, &(cx_axis_range){
                .low = y.low, .high = y.high, .wanted = 5, .is_round = true });
  f.left = label_width(&f.y) + 10 + (plot->y_label != NULL ? 18 : 0);
  f.right = width - 24;  // half a label
  f.bottom = height - (plot->x_label != NULL ? 40 : 24);
  return f;
}

// ---- the legend -------------------------------------------------------------

static bool has_legend(const cx_plot *plot)
{
  if (plot->n_series != 1) return plot->n_series > 0;
  return plot->title != NULL && strcmp(plot->title, plot->series[0].label) != 0;
}

// Draws it, or only counts its rows. Its height in pixels.
static double put_legend(cx_text *out, const cx_plot *plot, int width,
                         double top)
{
  double x = 0, y = top;
  if (!has_legend(plot)) return 0;
  for (size_t i = 0; i < plot->n_series; i++) {
    const char *name = plot->series[i].label;
    const double n = fmin((double)cx_plot_characters(name), CX_PLOT_CUT);
    const double wanted = SWATCH + CHARACTER * n;
    if (x > 0 && x + wanted > width) {
      x = 0;
      y += ROW;
    }
    if (out != NULL) {
      cx_plot_group(out, i);
      cx_text_append(out, "<path stroke-width=\"3\" d=\"M");
      cx_plot_number(out, x);
      cx_text_char(out, ' ');
      cx_plot_number(out, y + 8);
      cx_text_append(out, "h16\"/>\n</g>\n");
      cx_plot_label(out, x + SWATCH, y + 12, "start", name);
    }
    x += wanted + GAP;
  }
  return y + ROW - top;
}

// ---- curves -----------------------------------------------------------------

static void put_point(cx_text *out, const cx_plot_frame *f, double x, double y)
{
  cx_plot_number(out, cx_plot_x(f, x));
  cx_text_char(out, ' ');
  cx_plot_number(out, cx_plot_y(f, y));
}

// One path, with a gap where a value is not finite. A point between two gaps
// is a line without length, which a round end makes a dot of.
static void put_path(cx_text *out, const cx_plot *plot, const cx_plot_frame *f,
                     const cx_plot_series *s)
{
  cx_text_append(out,
                 "<path fill=\"none\" stroke-width=\"1.6\" "
                 "stroke-linejoin=\"round\" stroke-linecap=\"round\" d=\"");
  bool pen_is_down = false;
  for (size_t k = 0; k < s->count; k++) {
    if (!is_drawn(plot, s->x[k], s->y[k])) {
      pen_is_down = false;
      continue;
    }
    cx_text_char(out, pen_is_down ? 'L' : 'M');
    put_point(out, f, s->x[k], s->y[k]);
    const bool ends =
        k + 1 == s->count || !is_drawn(plot, s->x[k + 1], s->y[k + 1]);
    if (!pen_is_down && ends) cx_text_append(out, "h0");
    pen_is_down = true;
  }
  cx_text_append(out, "\"/>\n");
}

static void put_value(cx_text *out, const cx_plot *plot, const cx_plot_frame *f,
                      const cx_plot_series *s, size_t k)
{
  char x[CX_AXIS_LABEL], y[CX_AXIS_LABEL];
  cx_axis_number(x, s->x[k]);
  cx_axis_number(y, s->y[k]);
  cx_text_append(out, "<ellipse class=\"p\" rx=\"3\" ry=\"3\"");
  cx_plot_pixels(out, "cx", cx_plot_x(f, s->x[k]));
  cx_plot_pixels(out, "cy", cx_plot_y(f, s->y[k]));
  cx_text_append(out, "><title>");
  cx_plot_cut(out, s->label, CX_PLOT_CUT);
  cx_text_char(out, '\n');
  cx_html_escape(out, plot->x_label != NULL ? plot->x_label : "x");
  cx_text_format(out, " %s: %s</title></ellipse>\n", x, y);
}

// Those that report their values. They are invisible until the pointer is
// there, but for a curve of a few points; a wide border makes them easy to hit.
static void put_values(cx_text *out, const cx_plot *plot,
                       const cx_plot_frame *f, const cx_plot_series *s)
{
  size_t count = 0, last = 0, i = 0;
  for (size_t k = 0; k < s->count; k++) {
    if (!is_drawn(plot, s->x[k], s->y[k])) continue;
    count++;
    last = k;
  }
  if (count == 0) return;
  const size_t every = (count + POINTS - 1) / POINTS;
  cx_text_format(out,
                 "<g stroke-width=\"9\" stroke-opacity=\"0\" "
                 "fill-opacity=\"%d\">\n",
                 count < SHOWN_POINTS);
  for (size_t k = 0; k < s->count; k++) {
    if (!is_drawn(plot, s->x[k], s->y[k])) continue;
    if (i++ % every == 0 || k == last) put_value(out, plot, f, s, k);
  }
  cx_text_append(out, "</g>\n");
}

static void put_mark(cx_text *out, const cx_plot *plot, const cx_plot_frame *f)
{
  const cx_plot_mark *m = plot->mark;
  if (m == NULL || !is_drawn(plot, m->x, m->y)) return;
  const double x = cx_plot_x(f, m->x), y = cx_plot_y(f, m->y);
  const bool is_right = x > (f->left + f->right) / 2;
  cx_text_append(out,
                 "<g class=\"m\" stroke=\"#cf222e\" fill=\"#cf222e\">\n"
                 "<path stroke-dasharray=\"4 3\" d=\"M");
  cx_plot_number(out, x);
  cx_text_char(out, ' ');
  cx_plot_number(out, f->top);
  cx_text_char(out, 'V');
  cx_plot_number(out, f->bottom);
  cx_text_append(out, "\"/>\n<ellipse rx=\"4\" ry=\"4\"");
  cx_plot_pixels(out, "cx", x);
  cx_plot_pixels(out, "cy", y);
  cx_text_append(out, "/>\n</g>\n");
  cx_plot_label(out, is_right ? x - 6 : x + 6, f->top + 12,
                is_right ? "end" : "start", m->label);
}

// ---- the plot ---------------------------------------------------------------

static void draw(cx_text *out, const cx_plot *plot, bool is_file)
{
  const int width = plot->width > 0 ? plot->width : WIDTH;
  const double head = plot->title != NULL ? 26 : 6;
  const double legend = put_legend(NULL, plot, width, head);
  const int height = (plot->height > 0 ? plot->height : HEIGHT) + (int)legend;
  const cx_plot_frame f = frame_of(plot, width, height, head + legend + 6);
  cx_plot_begin(out, plot->title, width, height, is_file);
  put_legend(out, plot, width, head);
  cx_plot_axes(out, &f, plot->x_label, plot->y_label);
  for (size_t i = 0; i < plot->n_series; i++) {
    cx_plot_group(out, i);
    put_path(out, plot, &f, &plot->series[i]);
    put_values(out, plot, &f, &plot->series[i]);
    cx_text_append(out, "</g>\n");
  }
  put_mark(out, plot, &f);
  cx_plot_end(out);
}

void cx_plot_put(cx_text *out, const cx_plot *plot)
{
  draw(out, plot, false);
}

calx_status *cx_plot_write(const char *path, const cx_plot *plot)
{
  cx_text text = { 0 };
  draw(&text, plot, true);
  calx_status *status = cx_file_write_text(path, &text);
  cx_text_free(&text);
  return status;
}
