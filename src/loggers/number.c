// loggers/number: numbers as Python writes them.
#include "loggers/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A decimal: d.ddd times ten to the exponent, without zeros at the end.
typedef struct short_decimal {
  char digits[24];
  int count, exponent;
} short_decimal;

// "1.25e-03", with whatever the process's locale has for a point.
static void split(const char *text, short_decimal *out)
{
  out->count = 0;
  const char *p = text;
  for (; *p != 'e'; p++) {
    if (*p >= '0' && *p <= '9') out->digits[out->count++] = *p;
  }
  out->exponent = (int)strtol(p + 1, NULL, 10);
  while (out->count > 1 && out->digits[out->count - 1] == '0') out->count--;
  out->digits[out->count] = '\0';
}

// The next greater decimal of as many digits, in place; false: it has more.
static bool increase(char *text)
{
  char *p = strchr(text, 'e');
  while (p-- > text) {
    if (*p < '0' || *p > '9') continue;
    if (*p < '9') {
      (*p)++;
      return true;
    }
    *p = '0';
  }
  return false;
}

// The fewest digits that read back. The nearest decimal of so many digits does
// if any does, but for a power of two: doubles below it are closer than those
// above, so the next greater one may.
static void shortest(double positive, short_decimal *out)
{
  char text[40];
  int exponent;
  const bool power = frexp(positive, &exponent) == 0.5;
  for (int digits = 0; digits <= 16; digits++) {
    snprintf(text, sizeof text, "%.*e", digits, positive);
    if (strtod(text, NULL) == positive) break;
    if (power && increase(text) && strtod(text, NULL) == positive) break;
  }
  split(text, out);
}

static void put_zeros(cx_text *out, int n)
{
  for (; n > 0; n--) cx_text_char(out, '0');
}

// Without an exponent.
static void put_plain(cx_text *out, const short_decimal *d)
{
  const int whole = d->exponent + 1;  // digits before the point
  if (whole <= 0) {
    cx_text_append(out, "0.");
    put_zeros(out, -whole);
    cx_text_append(out, d->digits);
    return;
  }
  const int shown = whole < d->count ? whole : d->count;
  cx_text_append_n(out, d->digits, (size_t)shown);
  put_zeros(out, whole - shown);
  cx_text_char(out, '.');
  cx_text_append(out, whole < d->count ? d->digits + whole : "0");
}

// Without an exponent from 0.0001 to below ten to the `most`.
static void put_decimal(cx_text *out, const short_decimal *d, int most)
{
  if (d->exponent >= -4 && d->exponent < most) {
    put_plain(out, d);
    return;
  }
  cx_text_char(out, d->digits[0]);
  if (d->count > 1) cx_text_char(out, '.');
  cx_text_append(out, d->digits + 1);
  cx_text_format(out, "e%+03d", d->exponent);
}

// The sign, and all of what is not finite; false: nothing else is to come.
static bool put_sign(cx_text *out, double value)
{
  if (isnan(value)) {
    cx_text_append(out, "nan");
    return false;
  }
  if (signbit(value)) cx_text_char(out, '-');
  if (isinf(value)) cx_text_append(out, "inf");
  return isfinite(value);
}

void cx_loggers_put_real(cx_text *out, double value)
{
  short_decimal d = { .digits = "0", .count = 1 };
  if (!put_sign(out, value)) return;
  if (value != 0) shortest(fabs(value), &d);
  put_decimal(out, &d, 16);
}

void cx_loggers_put_rounded(cx_text *out, double value, int digits)
{
  char text[40];
  short_decimal d;
  if (!put_sign(out, value)) return;
  snprintf(text, sizeof text, "%.*e", digits - 1, fabs(value));
  split(text, &d);
  put_decimal(out, &d, digits - 1);
}

void cx_loggers_put_whole(cx_text *out, double value)
{
  if (isfinite(value) && value == trunc(value)) {
    cx_text_format(out, "%.0f", value == 0 ? 0.0 : value);
  } else {
    cx_loggers_put_real(out, value);
  }
}

void cx_loggers_put_number(cx_text *out, double value, bool is_integer)
{
  if (is_integer) {
    cx_loggers_put_whole(out, value);
  } else {
    cx_loggers_put_real(out, value);
  }
}
