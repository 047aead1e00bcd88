// base/axis: see axis.h.
#include "base/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Differences of what is inside are finite.
#define LARGEST 1e300
// Ranges that are smaller, in themselves or beside their values, have no ticks
// that could be told apart.
#define SMALLEST 1e-300
#define LEAST_SHARE 1e-9

// ---- numbers ----------------------------------------------------------------

// A point for the locale's comma, and "1e-5" for "1e-05".
static void tidy(char *text)
{
  for (char *p = text; *p != '\0'; p++) {
    if (*p == ',') *p = '.';
  }
  char *e = strchr(text, 'e');
  if (e == NULL) return;
  char *digits = e + 1 + (e[1] == '-');
  char *from = e + 2;
  while (*from == '0' && from[1] != '\0') from++;
  memmove(digits, from, strlen(from) + 1);
}

void cx_axis_number(char out[CX_AXIS_LABEL], double value)
{
  snprintf(out, CX_AXIS_LABEL, "%.6g", value);
  tidy(out);
}

static int limited(double value, int low, int high)
{
  return value < low ? low : value > high ? high : (int)value;
}

// A tick's value with as many digits as tell it from its neighbour.
static void put_label(char out[CX_AXIS_LABEL], double value, double step,
                      double largest)
{
  static const struct {
    double scale;
    const char *name;
  } units[] = { { 1, "" }, { 1e3, "k" }, { 1e6, "M" }, { 1e9, "G" } };
  if (value == 0) {
    snprintf(out, CX_AXIS_LABEL, "0");
    return;
  }
  if (largest >= 1e12 || largest < 1e-3) {
    const int exponent = (int)floor(log10(fabs(value)) + 1e-9);
    const int digits = limited(exponent - floor(log10(step) + 1e-9), 0, 9);
    snprintf(out, CX_AXIS_LABEL, "%.*e", digits, value);
    tidy(out);
    return;
  }
  int unit = 0;
  while (largest >= 1e4 && unit < 3 && largest >= units[unit + 1].scale) unit++;
  const double scale = units[unit].scale;
  const int decimals = limited(-floor(log10(step / scale) + 1e-9), 0, 9);
  snprintf(out, CX_AXIS_LABEL, "%.*f%s", decimals, value / scale,
           units[unit].name);
  tidy(out);
}

// ---- linear -----------------------------------------------------------------

// The smallest of 1, 2, 5, 10, 20, … that is not smaller.
static double round_step(double least)
{
  const double power = pow(10, floor(log10(least)));
  const double share = least / power - 1e-9;
  return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

static void add_linear(cx_axis *axis, double low, double high, double step)
{
  const double largest = fmax(fabs(low), fabs(high));
  const double last = floor(high / step + 1e-6);
  for (double k = ceil(low / step - 1e-6);
       k <= last && axis->n_ticks < CX_AXIS_TICKS; k++) {
    const double value = k * step;
    axis->ticks[axis->n_ticks] = value;
    put_label(axis->labels[axis->n_ticks++], value, step, largest);
  }
}

static void widen(double *low, double *high)
{
  const double largest = fmax(fabs(*low), fabs(*high));
  if (*high - *low > fmax(SMALLEST, LEAST_SHARE * largest)) return;
  const double by = largest > SMALLEST ? 0.1 * largest : 1;
  *low -= by;
  *high += by;
}

static void init_linear(cx_axis *axis, const cx_axis_range *r)
{
  double low = fmax(r->low, -LARGEST), high = fmin(r->high, LARGEST);
  widen(&low, &high);
  double step = round_step((high - low) / r->wanted);
  if (r->is_whole && step < 1) step = 1;
  axis->low = r->is_round ? floor(low / step + 1e-6) * step : low;
  axis->high = r->is_round ? ceil(high / step - 1e-6) * step : high;
  add_linear(axis, axis->low, axis->high, step);
}

// ---- logarithmic ------------------------------------------------------------

// Powers of ten, and with `between` twice and five times them.
static void add_powers(cx_axis *axis, int every, bool between)
{
  static const double factors[] = { 1, 2, 5 };
  const int last = (int)floor(axis->high + 1e-9);
  for (int k = (int)floor(axis->low); k <= last; k += every) {
    for (int f = 0; f < (between ? 3 : 1); f++) {
      const double at = k + log10(factors[f]);
      if (at < axis->low - 1e-9 || at > axis->high + 1e-9) continue;
      if (axis->n_ticks == CX_AXIS_TICKS) return;
      const double value = factors[f] * pow(10, k);
      axis->ticks[axis->n_ticks] = value;
      cx_axis_number(axis->labels[axis->n_ticks++], value);
    }
  }
}

static void init_log(cx_axis *axis, const cx_axis_range *r)
{
  axis->is_log = true;
  axis->low = log10(fmin(fmax(r->low, SMALLEST), LARGEST));
  axis->high = log10(fmin(fmax(r->high, SMALLEST), LARGEST));
  if (axis->high - axis->low < 1e-3) {
    axis->low -= 0.1;
    axis->high += 0.1;
  }
  const double decades = axis->high - axis->low;
  if (decades < 1) {
    const double low = pow(10, axis->low), high = pow(10, axis->high);
    add_linear(axis, low, high, round_step((high - low) / r->wanted));
  } else {
    add_powers(axis, (int)ceil(decades / 8), decades <= 3);
  }
}

void cx_axis_init(cx_axis *axis, const cx_axis_range *range)
{
  *axis = (cx_axis){ .low = 0 };
  if (range->is_log) {
    init_log(axis, range);
  } else {
    init_linear(axis, range);
  }
}

double cx_axis_at(const cx_axis *axis, double value)
{
  if (axis->is_log) value = value > 0 ? log10(value) : nan("");
  if (!isfinite(value)) return nan("");
  const double at = (value - axis->low) / (axis->high - axis->low);
  return fmin(fmax(at, 0), 1);
}
