// debug/read_report: one line after the other, with what the lines before began
// in hand.
#include "debug/read_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"

// Where a name's row is: row + 1 at its hash or behind it; 0: nothing there.
enum { SLOTS = 4 * CX_DEBUG_READ_MOST_NAMES };
typedef struct names {
  uint16_t slots[SLOTS];
} names;

typedef struct reader {
  cx_debug_read_report *out;
  names metrics, counters;
  cx_debug_read_metric *metric;    // that the next lines are of; NULL: none
  cx_debug_read_counter *counter;  // the same
  size_t line;
} reader;

typedef struct text_span {  // a piece of the text
  const char *at;
  size_t n;
} text_span;

static bool starts(text_span s, const char *with)
{
  size_t n = strlen(with);
  return s.n >= n && memcmp(s.at, with, n) == 0;
}

static text_span after(text_span s, size_t n)
{
  return (text_span){ s.at + n, s.n - n };
}

static text_span trim(text_span s)
{
  while (s.n > 0 && (*s.at == ' ' || *s.at == '\t')) s = after(s, 1);
  while (s.n > 0 && strchr(" \t\r", s.at[s.n - 1]) != NULL) s.n--;
  return s;
}

// ---- values -----------------------------------------------------------------

// Digits with a point, in C's own form whatever the locale is.
static bool read_number(text_span *s, double *out)
{
  double value = 0, scale = 1;
  size_t digits = 0;
  bool point = false;
  bool minus = s->n > 0 && *s->at == '-';
  if (minus) *s = after(*s, 1);
  for (; s->n > 0; *s = after(*s, 1)) {
    char c = *s->at;
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      value = value * 10 + (c - '0');
      if (point) scale *= 10;
      if (++digits > 300) return false;
    } else {
      break;
    }
  }
  double exponent = 0;
  if (digits > 0 && s->n > 1 && *s->at == 'e' &&
      strchr("+-0123456789", s->at[1]) != NULL) {
    *s = after(*s, 1);
    bool down = *s->at == '-';
    if (*s->at == '+' || *s->at == '-') *s = after(*s, 1);
    if (s->n == 0) return false;
    for (; s->n > 0 && *s->at >= '0' && *s->at <= '9'; *s = after(*s, 1)) {
      exponent = exponent * 10 + (*s->at - '0');
      if (exponent > 300) return false;
    }
    if (down) exponent = -exponent;
  }
  *out = (minus ? -value : value) / scale * pow(10, exponent);
  return digits > 0;
}

typedef struct unit {
  const char *name;
  cx_metric_unit unit;
  double scale;
} unit;

// Longer names first: "ms" begins with "m".
static const unit units[] = {
  { "ms", CX_UNIT_NS, 1e6 },
  { "us", CX_UNIT_NS, 1e3 },
  { "ns", CX_UNIT_NS, 1 },
  { "d", CX_UNIT_NS, 86400e9 },
  { "h", CX_UNIT_NS, 3600e9 },
  { "m", CX_UNIT_NS, 60e9 },
  { "s", CX_UNIT_NS, 1e9 },
  { "KB", CX_UNIT_BYTES, 1024 },
  { "MB", CX_UNIT_BYTES, 1048576 },
  { "GB", CX_UNIT_BYTES, 1073741824 },
  { "TB", CX_UNIT_BYTES, 1099511627776 },
  { "PB", CX_UNIT_BYTES, 1125899906842624 },
  { "B", CX_UNIT_BYTES, 1 },
};

// All of it: "06m09s401ms746.001us", "1.24MB", "3.00".
static bool read_value(text_span s, double *out, cx_metric_unit *out_unit)
{
  *out = 0;
  *out_unit = CX_UNIT_NONE;
  for (int parts = 0; s.n > 0; parts++) {
    double value;
    if (!read_number(&s, &value)) return false;
    const unit *u = NULL;
    for (size_t i = 0; i < sizeof units / sizeof *units && u == NULL; i++) {
      if (starts(s, units[i].name)) u = &units[i];
    }
    if (u == NULL) {
      *out = value;
      return parts == 0 && s.n == 0;
    }
    if (parts > 0 && (u->unit != CX_UNIT_NS || *out_unit != CX_UNIT_NS)) {
      return false;
    }
    *out += value * u->scale;
    *out_unit = u->unit;
    s = after(s, strlen(u->name));
    if (parts > 8) return false;
  }
  return true;
}

// ---- lines ------------------------------------------------------------------

static calx_status *bad(const reader *r, const char *what, text_span s)
{
  char text[61];
  cx_text_plain(s.at, s.n, text, sizeof text);
  return cx_invalid("line %zu: '%s' is no %s", r->line, text, what);
}

static calx_status *read_percentiles(reader *r, text_span s)
{
  cx_debug_read_metric *m = r->metric;
  m->n_percentiles = 0;
  while (s.n > 0) {
    const char *semicolon = memchr(s.at, ';', s.n);
    size_t n = semicolon != NULL ? (size_t)(semicolon - s.at) : s.n;
    text_span one = trim((text_span){ s.at, n });
    text_span whole = one;
    s = after(s, n + (semicolon != NULL));
    double percent;
    cx_metric_unit u;
    size_t k = m->n_percentiles;
    if (k == CX_DEBUG_READ_MOST_PERCENTILES || !read_number(&one, &percent) ||
        !starts(one, "%=") || !read_value(after(one, 2), &m->values[k], &u)) {
      return bad(r, "percentile", whole);
    }
    m->fractions[k] = percent / 100;
    m->n_percentiles++;
  }
  return NULL;
}

static calx_status *read_rate(reader *r, text_span s, double *out)
{
  static const char end[] = "/ second";
  cx_metric_unit u;
  text_span whole = s;
  if (s.n < sizeof end - 1 ||
      memcmp(s.at + s.n - (sizeof end - 1), end, sizeof end - 1) != 0) {
    return bad(r, "rate", whole);
  }
  s.n -= sizeof end - 1;
  return read_value(trim(s), out, &u) ? NULL : bad(r, "rate", whole);
}

static calx_status *read_count(reader *r, text_span s, int64_t *out)
{
  double value;
  text_span whole = s;
  if (!read_number(&s, &value) || s.n != 0 ||
      !(fabs(value) <= (double)CX_DEBUG_READ_MOST)) {
    return bad(r, "count", whole);
  }
  *out = (int64_t)value;
  return NULL;
}

// Whether the text begins so; it is then what follows, without blanks.
static bool skip(text_span *s, const char *with)
{
  if (!starts(*s, with)) return false;
  *s = trim(after(*s, strlen(with)));
  return true;
}

// A line of the metric or counter that the lines before began.
static calx_status *read_field(reader *r, text_span s)
{
  cx_debug_read_metric *m = r->metric;
  if (r->counter != NULL && skip(&s, "Value:")) {
    return read_count(r, s, &r->counter->value);
  }
  if (m == NULL) return NULL;
  if (skip(&s, "TotalSamples:")) return read_count(r, s, &m->samples);
  if (skip(&s, "Accumulator:") || skip(&s, "Counter:")) {
    return read_value(s, &m->accumulator, &m->unit) ? NULL : bad(r, "value", s);
  }
  if (skip(&s, "ValueRate:")) return read_rate(r, s, &m->value_rate);
  if (skip(&s, "Rate:")) return read_rate(r, s, &m->rate);
  return skip(&s, "Percentiles:") ? read_percentiles(r, s) : NULL;
}

// The slot of a name among rows of `bytes`, which begin with their names.
static uint16_t *slot_of(names *all, const void *rows, size_t bytes,
                         const char *name)
{
  size_t at = (size_t)cx_hash_bytes(name, strlen(name), 0).low % SLOTS;
  for (;; at = (at + 1) % SLOTS) {
    uint16_t row = all->slots[at];
    if (row == 0) return &all->slots[at];
    const char *known = (const char *)rows + (size_t)(row - 1) * bytes;
    if (strcmp(known, name) == 0) return &all->slots[at];
  }
}

// Begins a row for a name, or begins its old one anew: a later report's numbers
// take the place of an earlier one's. `rows` is the address of the rows, each
// of `bytes`, which begin with their names.
static calx_status *begin_row(const reader *r, names *all, text_span s,
                              void *rows, size_t *n, size_t *capacity,
                              size_t bytes, void *out_row)
{
  enum { NAME = sizeof r->metric->name };
  _Static_assert(sizeof r->counter->name == NAME,
                 "rows begin with their names");
  char name[NAME], *held;
  cx_text_plain(s.at, s.n, name, sizeof name);
  memcpy(&held, rows, sizeof held);
  uint16_t *slot = slot_of(all, held, bytes, name);
  if (*slot == 0) {
    if (*n == CX_DEBUG_READ_MOST_NAMES) {
      return cx_invalid("line %zu: more than %d names of one kind", r->line,
                        CX_DEBUG_READ_MOST_NAMES);
    }
    if (!cx_grow(rows, capacity, *n + 1, bytes)) return cx_out_of_memory();
    *slot = (uint16_t)++ * n;
    memcpy(&held, rows, sizeof held);
  }
  char *row = held + (*slot - 1u) * bytes;
  memset(row, 0, bytes);
  memcpy(row, name, sizeof name);
  memcpy(out_row, &row, sizeof row);
  return NULL;
}

static calx_status *begin_metric(reader *r, text_span s)
{
  cx_debug_read_report *o = r->out;
  r->counter = NULL;
  return begin_row(r, &r->metrics, s, &o->metrics, &o->n_metrics,
                   &o->metrics_capacity, sizeof *o->metrics, &r->metric);
}

static calx_status *begin_counter(reader *r, text_span s)
{
  cx_debug_read_report *o = r->out;
  r->metric = NULL;
  return begin_row(r, &r->counters, s, &o->counters, &o->n_counters,
                   &o->counters_capacity, sizeof *o->counters, &r->counter);
}

// The newest first, so that none is behind a hole.
static void forget_names(names *all, const void *rows, size_t n, size_t bytes)
{
  for (size_t i = n; i > 0; i--) {
    *slot_of(all, rows, bytes, (const char *)rows + (i - 1) * bytes) = 0;
  }
}

static void begin_section(reader *r, text_span s)
{
  cx_debug_read_report *o = r->out;
  forget_names(&r->metrics, o->metrics, o->n_metrics, sizeof *o->metrics);
  forget_names(&r->counters, o->counters, o->n_counters, sizeof *o->counters);
  o->n_metrics = o->n_counters = 0;
  r->metric = NULL;
  r->counter = NULL;
  double step;
  o->step = read_number(&s, &step) && fabs(step) < 9e18 ? (int64_t)step : -1;
}

static calx_status *read_line(reader *r, text_span s)
{
  bool indented = s.n > 0 && (*s.at == ' ' || *s.at == '\t');
  s = trim(s);
  if (skip(&s, "[MetricsData; step=")) {
    begin_section(r, s);
    return NULL;
  }
  if (skip(&s, "Metric: ")) return begin_metric(r, s);
  if (!(indented && r->metric != NULL) && skip(&s, "Counter: ")) {
    return begin_counter(r, s);
  }
  return read_field(r, s);
}

// ---- public -----------------------------------------------------------------

calx_status *cx_debug_report_read(const char *text, size_t size,
                                  cx_debug_read_report *out)
{
  *out = (cx_debug_read_report){ .step = -1 };
  reader r = { .out = out };
  calx_status *status = NULL;
  for (size_t at = 0; at < size && status == NULL;) {
    const char *end = memchr(text + at, '\n', size - at);
    size_t n = end != NULL ? (size_t)(end - (text + at)) : size - at;
    r.line++;
    status = read_line(&r, (text_span){ text + at, n });
    at += n + 1;
  }
  if (status == NULL && out->n_metrics == 0 && out->n_counters == 0) {
    status = cx_invalid(
        "there is no metrics report in it: no line begins with 'Metric: ' or "
        "'Counter: '");
  }
  if (status != NULL) cx_debug_report_free(out);
  return status;
}

void cx_debug_report_free(cx_debug_read_report *r)
{
  cx_free(r->metrics);
  cx_free(r->counters);
  *r = (cx_debug_read_report){ .step = -1 };
}

const cx_debug_read_metric *cx_debug_report_metric(
    const cx_debug_read_report *r, const char *name)
{
  for (size_t i = 0; i < r->n_metrics; i++) {
    if (strcmp(r->metrics[i].name, name) == 0) return &r->metrics[i];
  }
  return NULL;
}

int64_t cx_debug_report_counter(const cx_debug_read_report *r, const char *name)
{
  for (size_t i = 0; i < r->n_counters; i++) {
    if (strcmp(r->counters[i].name, name) == 0) return r->counters[i].value;
  }
  return 0;
}

double cx_debug_report_at(const cx_debug_read_metric *m, double fraction)
{
  double nearest = 2, value = 0;
  for (size_t i = 0; i < m->n_percentiles; i++) {
    double distance = fabs(m->fractions[i] - fraction);
    if (distance >= nearest) continue;
    nearest = distance;
    value = m->values[i];
  }
  return value;
}
