// base/plot_parts: see plot_parts.h.
#include "base/plot_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/html.h"
#include "base/plot.h"

enum { MARGIN = 14 };  // of a file, pixels

// ---- elements ---------------------------------------------------------------

void cx_plot_number(cx_text *out, double value)
{
  const int64_t tenths = isfinite(value) ? llround(value * 10) : 0;
  if (tenths < 0) cx_text_char(out, '-');
  cx_text_int(out, llabs(tenths) / 10);
  if (tenths % 10 == 0) return;
  cx_text_char(out, '.');
  cx_text_int(out, llabs(tenths) % 10);
}

void cx_plot_pixels(cx_text *out, const char *name, double value)
{
  cx_text_format(out, " %s=\"", name);
  cx_plot_number(out, value);
  cx_text_char(out, '"');
}

// The bytes of the character at p; what is not UTF-8 is one character a byte.
static size_t bytes_at(const char *p)
{
  const size_t n = cx_text_utf8((const unsigned char *)p);
  return n > 0 ? n : 1;
}

size_t cx_plot_characters(const char *text)
{
  size_t n = 0;
  for (; *text != '\0'; text += bytes_at(text)) n++;
  return n;
}

void cx_plot_cut(cx_text *out, const char *text, size_t most)
{
  if (cx_plot_characters(text) <= most) {
    cx_html_escape(out, text);
    return;
  }
  cx_text cut = { 0 };
  const char *end = text;
  for (size_t n = 1; n < most; n++) end += bytes_at(end);
  cx_text_append_n(&cut, text, (size_t)(end - text));
  cx_html_escape(out, cx_text_str(&cut));
  cx_text_append(out, "…");
  out->failed |= cut.failed;
  cx_text_free(&cut);
}

static void put_text(cx_text *out, double x, double y, const char *attributes,
                     const char *text, size_t most)
{
  cx_text_append(out, "<text");
  cx_plot_pixels(out, "x", x);
  cx_plot_pixels(out, "y", y);
  cx_text_format(out, " %s>", attributes);
  cx_plot_cut(out, text, most);
  cx_text_append(out, "</text>\n");
}

void cx_plot_label(cx_text *out, double x, double y, const char *anchor,
                   const char *text)
{
  char attributes[64];
  snprintf(attributes, sizeof attributes,
           "class=\"l\" fill=\"#59636e\" text-anchor=\"%s\"", anchor);
  put_text(out, x, y, attributes, text, CX_PLOT_CUT);
}

static void put_title(cx_text *out, const char *title, int width)
{
  put_text(out, 0, 15,
           "class=\"t\" fill=\"#1f2328\" font-size=\"14\" font-weight=\"600\"",
           title, (size_t)(width / 9));
}

// A file has a margin around the plot, and its own style sheet.
static void put_file_head(cx_text *out, int width, int height)
{
  cx_text_append(out, "<style>\n");
  cx_plot_style(out);
  cx_text_format(out,
                 "</style>\n<rect class=\"b\" x=\"%d\" y=\"%d\" "
                 "width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                 -MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN);
}

void cx_plot_begin(cx_text *out, const char *title, int width, int height,
                   bool is_file)
{
  const int margin = is_file ? MARGIN : 0;
  cx_text_append(out, "<svg class=\"plot\"");
  if (is_file) {
    cx_text_format(out,
                   " xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                   "height=\"%d\"",
                   width + 2 * margin, height + 2 * margin);
  }
  cx_text_format(out,
                 " viewBox=\"%d %d %d %d\" font-size=\"12\" "
                 "font-family=\"system-ui,Segoe UI,Roboto,DejaVu "
                 "Sans,sans-serif\" role=\"img\" aria-label=\"",
                 -margin, -margin, width + 2 * margin, height + 2 * margin);
  cx_html_escape(out, title != NULL ? title : "plot");
  cx_text_append(out, "\">\n");
  if (is_file) put_file_head(out, width, height);
  if (title != NULL) put_title(out, title, width);
}

void cx_plot_end(cx_text *out)
{
  cx_text_append(out, "</svg>\n");
}

// ---- axes -------------------------------------------------------------------

double cx_plot_x(const cx_plot_frame *f, double value)
{
  return f->left + (f->right - f->left) * cx_axis_at(&f->x, value);
}

double cx_plot_y(const cx_plot_frame *f, double value)
{
  return f->bottom - (f->bottom - f->top) * cx_axis_at(&f->y, value);
}

static void put_line(cx_text *out, double x1, double y1, double x2, double y2)
{
  cx_text_char(out, 'M');
  cx_plot_number(out, x1);
  cx_text_char(out, ' ');
  cx_plot_number(out, y1);
  cx_text_char(out, 'L');
  cx_plot_number(out, x2);
  cx_text_char(out, ' ');
  cx_plot_number(out, y2);
}

static void put_grid(cx_text *out, const cx_plot_frame *f)
{
  cx_text_append(out,
                 "<path class=\"g\" fill=\"none\" stroke=\"#d8dee4\" d=\"");
  for (int i = 0; i < f->y.n_ticks; i++) {
    const double y = cx_plot_y(f, f->y.ticks[i]);
    put_line(out, f->left, y, f->right, y);
  }
  for (int i = 0; i < f->x.n_ticks; i++) {
    const double x = cx_plot_x(f, f->x.ticks[i]);
    put_line(out, x, f->top, x, f->bottom);
  }
  cx_text_append(out,
                 "\"/>\n<path class=\"a\" fill=\"none\" "
                 "stroke=\"#8c959f\" d=\"");
  put_line(out, f->left, f->bottom, f->right, f->bottom);
  cx_text_append(out, "\"/>\n");
}

void cx_plot_axes(cx_text *out, const cx_plot_frame *f, const char *x_label,
                  const char *y_label)
{
  put_grid(out, f);
  for (int i = 0; i < f->y.n_ticks; i++) {
    cx_plot_label(out, f->left - 7, cx_plot_y(f, f->y.ticks[i]) + 4, "end",
                  f->y.labels[i]);
  }
  for (int i = 0; i < f->x.n_ticks; i++) {
    cx_plot_label(out, cx_plot_x(f, f->x.ticks[i]), f->bottom + 17, "middle",
                  f->x.labels[i]);
  }
  if (x_label != NULL) {
    cx_plot_label(out, (f->left + f->right) / 2, f->bottom + 34, "middle",
                  x_label);
  }
  if (y_label == NULL) return;
  cx_text_append(out, "<g transform=\"translate(11 ");
  cx_plot_number(out, (f->top + f->bottom) / 2);
  cx_text_append(out, ") rotate(-90)\">");
  cx_plot_label(out, 0, 0, "middle", y_label);
  cx_text_append(out, "</g>\n");
}
