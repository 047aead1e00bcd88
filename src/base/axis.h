// base/axis: an axis of a plot: its range, and ticks at round numbers.
#ifndef CX_BASE_AXIS_H
#define CX_BASE_AXIS_H

#include <stdbool.h>

enum { CX_AXIS_TICKS = 16, CX_AXIS_LABEL = 24 };

typedef struct cx_axis {
  double low, high;  // of the range, low < high; exponents of 10 where is_log
  bool is_log;
  int n_ticks;
  double ticks[CX_AXIS_TICKS];  // values
  char labels[CX_AXIS_TICKS][CX_AXIS_LABEL];
} cx_axis;

// A range of values, which must be finite; low <= high. A range without extent
// is given some. About `wanted` ticks are made; 2 to 12 may be.
typedef struct cx_axis_range {
  double low, high;
  int wanted;
  bool is_log;    // both are positive
  bool is_whole;  // no ticks between whole numbers
  bool is_round;  // the axis begins and ends at a tick; not where is_log
} cx_axis_range;
void cx_axis_init(cx_axis *axis, const cx_axis_range *range);

// From 0 at `low` to 1 at `high`; NaN for a value that the axis has no point
// for.
double cx_axis_at(const cx_axis *axis, double value);

// A value for people, of up to six digits.
void cx_axis_number(char out[CX_AXIS_LABEL], double value);

#endif
