// base/plot_parts: what plots are made of, also those that are no curves.
#ifndef CX_BASE_PLOT_PARTS_H
#define CX_BASE_PLOT_PARTS_H

#include <stdbool.h>

#include "base/axis.h"
#include "base/text.h"

enum { CX_PLOT_CUT = 40 };  // characters of a label

typedef struct cx_plot_frame {
  double left, top, right, bottom;  // of the drawing, pixels
  cx_axis x, y;
} cx_plot_frame;
double cx_plot_x(const cx_plot_frame *frame, double value);
double cx_plot_y(const cx_plot_frame *frame, double value);

// The <svg> element with its title, which may be NULL. is_file: a document of
// its own, not a part of a page.
void cx_plot_begin(cx_text *out, const char *title, int width, int height,
                   bool is_file);
void cx_plot_end(cx_text *out);
// The grid, the ticks and their labels. The labels of the axes may be NULL.
void cx_plot_axes(cx_text *out, const cx_plot_frame *frame, const char *x_label,
                  const char *y_label);
// Begins a <g> of the k-th colour, from 0 on; they come again.
void cx_plot_group(cx_text *out, size_t k);

// A number of pixels with a digit behind the point; ` x="12.5"`.
void cx_plot_number(cx_text *out, double value);
void cx_plot_pixels(cx_text *out, const char *attribute, double value);
// Anchor: start, middle, end. The text is escaped and cut.
void cx_plot_label(cx_text *out, double x, double y, const char *anchor,
                   const char *text);
size_t cx_plot_characters(const char *text);
// Escaped; of a longer text the first ones and "…".
void cx_plot_cut(cx_text *out, const char *text, size_t most);

#endif
