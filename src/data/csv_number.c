// data/csv_number: cells as numbers, in no locale but C's.
#include "data/csv_number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/dtype.h"
#include "hlo/number.h"

static bool is_space(char c)
{
  return c == ' ' || c == '\t';
}

static bool is_one_of(const char *s, size_t n, const char *const *words)
{
  for (; *words != NULL; words++) {
    if (strlen(*words) == n && strncasecmp(s, *words, n) == 0) return true;
  }
  return false;
}

static bool is_missing(const char *s, size_t n)
{
  static const char *const words[] = {
    "NA", "N/A", "NaN", "null", "None", NULL
  };
  return n == 0 || is_one_of(s, n, words);
}

// The sign and one of the words for infinity.
static bool read_infinity(const char *s, size_t n, double *out)
{
  static const char *const words[] = { "inf", "infinity", NULL };
  size_t sign = n > 0 && (*s == '-' || *s == '+') ? 1 : 0;
  *out = sign == 1 && *s == '-' ? (double)-INFINITY : (double)INFINITY;
  return is_one_of(s + sign, n - sign, words);
}

static const char *store_real(const char *s, size_t n, calx_dtype dtype,
                              void *out)
{
  double value;
  bool infinite = read_infinity(s, n, &value);
  if (!infinite && !cx_hlo_read_real(s, n, &value)) return "no number";
  cx_store_double(dtype, out, value);
  if (!infinite && isinf(cx_load_double(dtype, out))) {
    return "too large for the dtype";
  }
  return NULL;
}

static const char *store_bool(const char *s, size_t n, void *out)
{
  static const char *const yes[] = { "true", "1", NULL };
  static const char *const no[] = { "false", "0", NULL };
  if (is_one_of(s, n, yes)) {
    *(char *)out = 1;
  } else if (is_one_of(s, n, no)) {
    *(char *)out = 0;
  } else {
    return "neither true, false, 1 nor 0";
  }
  return NULL;
}

// Digits, maybe behind a sign.
static bool is_whole(const char *s, size_t n)
{
  size_t sign = n > 0 && (*s == '-' || *s == '+') ? 1 : 0;
  for (size_t i = sign; i < n; i++) {
    if (s[i] < '0' || s[i] > '9') return false;
  }
  return n > sign;
}

static const char *store_int(const char *s, size_t n, calx_dtype dtype,
                             void *out)
{
  if (!is_whole(s, n)) return "no whole number";
  char *end;
  errno = 0;
  // What follows the digits is a space or the text's end.
  bool large = dtype == CALX_U64 && *s != '-';
  int64_t value =
      large ? (int64_t)strtoull(s, &end, 10) : (int64_t)strtoll(s, &end, 10);
  bool fits = errno != ERANGE && end == s + n;
  if (fits) cx_store_int(dtype, out, value);
  if (!fits || cx_load_int(dtype, out) != value ||
      (dtype == CALX_U64 && *s == '-' && value != 0)) {
    return "not in the dtype's range";
  }
  return NULL;
}

calx_status *cx_data_csv_number(const cx_data_csv *csv, size_t row,
                                size_t column, calx_dtype dtype,
                                const cx_data_csv_missing *missing, void *out)
{
  const char *s = cx_data_csv_cell(csv, row, column);
  size_t n = strlen(s);
  for (; n > 0 && is_space(*s); n--) s++;
  while (n > 0 && is_space(s[n - 1])) n--;
  const char *wrong;
  if (is_missing(s, n)) {
    if (missing->allowed) {
      cx_store_double(dtype, out, missing->value);
      return NULL;
    }
    wrong = "missing; say what stands for it with .missing";
  } else if (cx_dtype_is_float(dtype)) {
    wrong = store_real(s, n, dtype, out);
  } else if (dtype == CALX_BOOL) {
    wrong = store_bool(s, n, out);
  } else {
    wrong = store_int(s, n, dtype, out);
  }
  return wrong == NULL ? NULL : cx_data_csv_bad_cell(csv, row, column, wrong);
}
