// base/plot: curves as SVG, for a page of base/html and for a file of their
// own. It is for light and dark screens; programs that know no style sheets
// show it for light ones. Texts are from anywhere: they are escaped and cut.
#ifndef CX_BASE_PLOT_H
#define CX_BASE_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "calx/status.h"

typedef struct cx_plot_series {
  const char *label;
  const double *x, *y;  // what is not finite is a gap
  size_t count;
} cx_plot_series;

typedef struct cx_plot_mark {  // a point that is pointed out
  double x, y;
  const char *label;
} cx_plot_mark;

typedef struct cx_plot {
  const char *title;              // NULL: none
  const char *x_label, *y_label;  // NULL: none
  const cx_plot_series *series;   // the ninth has the first one's colour
  size_t n_series;
  bool log_x;                // an x that is not positive is a gap then
  bool from_zero;            // the y axis begins at 0, or ends there
  const cx_plot_mark *mark;  // NULL: none
  int width, height;         // pixels, without the legend; 0: 560 and 300
} cx_plot;

// An <svg> element of a page. Each curve has up to 100 points that report their
// values when the pointer is on them.
void cx_plot_put(cx_text *out, const cx_plot *plot);
// A file, seen whole or not at all.
calx_status *cx_plot_write(const char *path, const cx_plot *plot) CALX_MUST_USE;
// The rules for a page's style sheet.
void cx_plot_style(cx_text *out);

#endif
