// train/options_values: how a text becomes an option's value: numbers, shares
// of batches, switches, lists of devices.
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"
#include "train/options_table.h"

static bool is_one_of(const char *text, const char *const *words)
{
  for (; *words != NULL; words++) {
    if (strcasecmp(text, *words) == 0) return true;
  }
  return false;
}

bool cx_train_is_none(const char *text)
{
  static const char *const words[] = { "none", "null", "~", NULL };
  return is_one_of(text, words);
}

// Source: pytorch_lightning 1.5.10, utilities/argparse.py, str_to_bool.
static bool read_bool(const char *text, bool *out)
{
  static const char *const yes[] = { "true", "1", "yes", "y", "t", "on", NULL };
  static const char *const no[] = { "false", "0", "no", "n", "f", "off", NULL };
  *out = is_one_of(text, yes);
  return *out || is_one_of(text, no);
}

// With a point, whatever the process's locale is.
static bool read_real(const char *text, double *out)
{
  char *end;
  if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') {
    return false;
  }
  const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c == (locale_t)0) return false;
  *out = strtod_l(text, &end, c);
  freelocale(c);
  return *end == '\0' && isfinite(*out);
}

// ---- texts and numbers ------------------------------------------------------

static bool take_text(const char *text, void *const *fields)
{
  *(const char **)fields[0] = text;
  return text[0] != '\0';
}

static bool take_count(const char *text, void *const *fields)
{
  return cx_read_int(text, -INT64_MAX, INT64_MAX, fields[0]);
}

static bool take_number(const char *text, void *const *fields)
{
  int64_t *out = fields[0];
  if (!take_count(text, fields)) return false;
  if (*out == 0) *out = INT64_MIN;
  return true;
}

static bool take_number_or_none(const char *text, void *const *fields)
{
  if (!cx_train_is_none(text)) return take_number(text, fields);
  *(int64_t *)fields[0] = -1;
  return true;
}

static bool take_int(const char *text, void *const *fields)
{
  int64_t value;
  if (!cx_read_int(text, -INT32_MAX, INT32_MAX, &value)) return false;
  *(int *)fields[0] = (int)value;
  return true;
}

static bool take_seed(const char *text, void *const *fields)
{
  char *end;
  if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
  errno = 0;
  *(uint64_t *)fields[0] = strtoull(text, &end, 10);
  return errno == 0;
}

// A number that is not 0 is a number of devices; what else there is the text's
// field takes.
static bool take_devices(const char *text, void *const *fields)
{
  int64_t number;
  if (cx_read_int(text, -INT32_MAX, INT32_MAX, &number) && number != 0) {
    *(int *)fields[0] = (int)number;
    return true;
  }
  return take_text(text, &fields[1]);
}

// Python's 1.0 is all batches, and 1 is one.
static bool take_limit(const char *text, void *const *fields)
{
  double *out = fields[0];
  if (!read_real(text, out)) return false;
  if (*out == 1 && strpbrk(text, ".eE") != NULL) *out = (double)INFINITY;
  if (*out == 0) *out = CALX_ZERO;
  return true;
}

static bool take_interval(const char *text, void *const *fields)
{
  return strchr(text, ':') != NULL ? take_text(text, &fields[1])
                                   : take_limit(text, fields);
}

static bool take_real(const char *text, void *const *fields)
{
  return read_real(text, fields[0]);
}

// ---- switches ---------------------------------------------------------------

static bool take_flag(const char *text, void *const *fields)
{
  return read_bool(text, fields[0]);
}

static bool take_no_flag(const char *text, void *const *fields)
{
  bool value;
  if (!read_bool(text, &value)) return false;
  *(bool *)fields[0] = !value;
  return true;
}

static bool take_flag_or_warn(const char *text, void *const *fields)
{
  return take_flag(strcasecmp(text, "warn") == 0 ? "true" : text, fields);
}

static bool take_flag_or_count(const char *text, void *const *fields)
{
  bool value;
  if (take_count(text, fields)) return true;
  if (!read_bool(text, &value)) return false;
  *(int64_t *)fields[0] = value;
  return true;
}

static bool take_logger(const char *text, void *const *fields)
{
  bool value;
  if (!read_bool(text, &value)) return take_text(text, fields);
  *(bool *)fields[1] = !value;
  return true;
}

// ---- what Lightning has -----------------------------------------------------

static bool take_any(const char *text, void *const *fields)
{
  (void)text, (void)fields;
  return true;
}

static bool take_absent(const char *text, void *const *fields)
{
  bool value;
  (void)fields;
  return strcmp(text, "[]") == 0 || (read_bool(text, &value) && !value);
}

const cx_train_kind cx_train_kinds[] = {
  [CX_TRAIN_TEXT] = { take_text, "a text", "TEXT" },
  [CX_TRAIN_COUNT] = { take_count, "an int", "N" },
  [CX_TRAIN_NUMBER] = { take_number, "an int", "N" },
  [CX_TRAIN_NUMBER_OR_NONE] = { take_number_or_none, "an int or None", "N" },
  [CX_TRAIN_INT] = { take_int, "an int", "N" },
  [CX_TRAIN_SEED] = { take_seed, "an int from 0 to 2^64 - 1", "N" },
  [CX_TRAIN_DEVICES] = { take_devices, "an int, a list or a text", "N" },
  [CX_TRAIN_LIMIT] = { take_limit, "in [0.0, 1.0] or an int", "N" },
  [CX_TRAIN_INTERVAL] = { take_interval, "in [0.0, 1.0], an int or a time",
                          "N" },
  [CX_TRAIN_REAL] = { take_real, "an int or a float", "X" },
  [CX_TRAIN_FLAG] = { take_flag, "true or false", "BOOL" },
  [CX_TRAIN_NO_FLAG] = { take_no_flag, "true or false", "BOOL" },
  [CX_TRAIN_FLAG_OR_WARN] = { take_flag_or_warn, "true, false or 'warn'",
                              "BOOL" },
  [CX_TRAIN_FLAG_OR_COUNT] = { take_flag_or_count, "a bool or an int", "BOOL" },
  [CX_TRAIN_LOGGER] = { take_logger, "a bool or a name", "NAME" },
  [CX_TRAIN_WITHOUT_EFFECT] = { take_any, "a text", "TEXT" },
  [CX_TRAIN_ABSENT] = { take_absent, "None or false, as calx has nothing else",
                        "BOOL" },
};
