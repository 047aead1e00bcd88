// hlo/number: elements as text. printf() and strtod() are not used, because
// they depend on the locale.
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/number.h"

static const double powers_of_ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,
                                        1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
                                        1e18, 1e19, 1e20, 1e21, 1e22 };

static void print_hex(cx_text *out, uint64_t bits, unsigned digits)
{
  static const char names[] = "0123456789ABCDEF";
  char s[18] = "0x";
  for (unsigned i = 0; i < digits; i++) {
    s[2 + i] = names[bits >> 4 * (digits - 1 - i) & 15];
  }
  cx_text_append_n(out, s, 2 + digits);
}

// n / 10^decimals with at least one decimal.
static void print_fixed(cx_text *out, bool negative, uint64_t n, int decimals)
{
  char s[32];
  size_t at = sizeof s;
  int left = decimals == 0 ? 1 : decimals;
  if (decimals == 0) n *= 10;
  do {
    s[--at] = (char)('0' + n % 10);
    n /= 10;
    if (--left == 0) s[--at] = '.';
  } while (n != 0 || left >= 0);
  if (negative) s[--at] = '-';
  cx_text_append_n(out, s + at, sizeof s - at);
}

void cx_hlo_print_real(cx_text *out, cx_hlo_elem e, uint64_t bits)
{
  const double v = cx_hlo_bits_to_real(e, bits);
  const double a = fabs(v);
  // n and 10^k are exact doubles, so their quotient is the double nearest to
  // the decimal number, which is what reading it gives.
  for (int k = 0; k <= 9 && a < 1e15; k++) {
    const double n = round(a * powers_of_ten[k]);
    if (n >= 1e15) break;
    const double back = copysign(n / powers_of_ten[k], v);
    if (cx_hlo_real_to_bits(e, back) == bits) {
      print_fixed(out, signbit(v) != 0, (uint64_t)n, k);
      return;
    }
  }
  print_hex(out, bits, (cx_hlo_elem_bits(e) + 3) / 4);
}

void cx_hlo_print_element(cx_text *out, cx_hlo_elem e, const void *p)
{
  if (cx_hlo_elem_is_complex(e)) {
    const cx_hlo_elem part = cx_hlo_elem_part(e);
    const char *second = (const char *)p + cx_hlo_elem_bytes(part);
    cx_text_char(out, '(');
    cx_hlo_print_real(out, part, cx_hlo_load_bits(part, p));
    cx_text_append(out, ", ");
    cx_hlo_print_real(out, part, cx_hlo_load_bits(part, second));
    cx_text_char(out, ')');
  } else if (cx_hlo_elem_is_float(e)) {
    cx_hlo_print_real(out, e, cx_hlo_load_bits(e, p));
  } else if (e == CX_HLO_I1) {
    cx_text_append(out, cx_hlo_load_int(e, p) != 0 ? "true" : "false");
  } else if (e == CX_HLO_UI64) {
    const uint64_t v = (uint64_t)cx_hlo_load_int(e, p);
    if (v >= 10) cx_text_int(out, (int64_t)(v / 10));
    cx_text_int(out, (int64_t)(v % 10));
  } else {
    cx_text_int(out, cx_hlo_load_int(e, p));
  }
}

// The first 19 digits of a number, and the power of ten that scales them.
typedef struct decimal {
  uint64_t digits;
  int64_t exponent;
  bool negative;
  bool exact;  // no digit was left out
} decimal;

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static bool read_exponent(const char *s, size_t n, size_t *at, int64_t *out)
{
  size_t i = *at + 1;
  const bool negative = i < n && s[i] == '-';
  if (i < n && (s[i] == '-' || s[i] == '+')) i++;
  if (i == n) return false;
  int64_t e = 0;
  for (; i < n && is_digit(s[i]); i++) {
    if (e < 1000000) e = e * 10 + (s[i] - '0');
  }
  *at = i;
  *out += negative ? -e : e;
  return true;
}

static bool read_decimal(const char *s, size_t n, decimal *out)
{
  *out = (decimal){ .exact = true };
  size_t i = 0;
  if (i < n && (s[i] == '-' || s[i] == '+')) out->negative = s[i++] == '-';
  bool any = false;
  bool point = false;
  for (; i < n && (is_digit(s[i]) || (s[i] == '.' && !point)); i++) {
    if (s[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (out->digits < UINT64_C(1000000000000000000)) {
      out->digits = out->digits * 10 + (uint64_t)(s[i] - '0');
      out->exponent -= point;
    } else {
      out->exact &= s[i] == '0';
      out->exponent += !point;
    }
  }
  if (!any) return false;
  if (i < n && (s[i] == 'e' || s[i] == 'E')) {
    if (!read_exponent(s, n, &i, &out->exponent)) return false;
  }
  return i == n;
}

// Longer numbers are refused. No double needs more digits.
#define MAX_NUMBER 1100

// Any decimal number through the C library, in the C locale.
static bool slow_real(const char *s, size_t n, bool single, double *out)
{
  char copy[MAX_NUMBER + 1];
  if (n > MAX_NUMBER) return false;
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c == (locale_t)0) return false;
  memcpy(copy, s, n);
  copy[n] = '\0';
  *out = single ? (double)strtof_l(copy, NULL, c) : strtod_l(copy, NULL, c);
  freelocale(c);
  return true;
}

bool cx_hlo_read_real(const char *s, size_t n, double *out)
{
  decimal d;
  if (!read_decimal(s, n, &d)) return false;
  // Both factors are exact doubles, so the result is rounded once.
  if (d.exact && d.digits < UINT64_C(1) << 53 && d.exponent >= -22 &&
      d.exponent <= 22) {
    const double m = (double)d.digits;
    const double v = d.exponent < 0 ? m / powers_of_ten[-d.exponent]
                                    : m * powers_of_ten[d.exponent];
    *out = d.negative ? -v : v;
    return true;
  }
  return slow_real(s, n, false, out);
}

bool cx_hlo_read_bits(cx_hlo_elem e, const char *s, size_t n, uint64_t *out)
{
  double v = 0;
  if (!cx_hlo_read_real(s, n, &v)) return false;
  if (e == CX_HLO_F32) {
    // Rounding twice differs only where the double is halfway between two
    // floats.
    uint64_t wide = 0;
    memcpy(&wide, &v, sizeof v);
    if ((wide & 0x1fffffff) == 0x10000000 && !slow_real(s, n, true, &v)) {
      return false;
    }
  }
  *out = cx_hlo_real_to_bits(e, v);
  return true;
}
