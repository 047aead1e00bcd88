// train/bar_tqdm: the line of a tqdm bar.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loggers/number.h"
#include "train/bar.h"

// ---- parts ------------------------------------------------------------------

// [H:]MM:SS
static void put_interval(cx_text *out, double seconds)
{
  const int64_t s = seconds < 1e15 ? (int64_t)seconds : (int64_t)1e15;
  if (s >= 3600) cx_text_format(out, "%lld:", (long long)(s / 3600));
  cx_text_format(out, "%02lld:%02lld", (long long)(s / 60 % 60),
                 (long long)(s % 60));
}

// What is right of the bar.
static void put_right(cx_text *out, const cx_train_meter *m)
{
  const bool has_total = m->total >= 0, has_rate = m->speed > 0;
  cx_text_format(out, "| %lld/", (long long)m->n);
  if (has_total) {
    cx_text_int(out, m->total);
  } else {
    cx_text_append(out, "?");
  }
  cx_text_append(out, " [");
  put_interval(out, m->elapsed);
  cx_text_append(out, "<");
  if (has_rate) {
    put_interval(out, m->total > 0 ? (double)(m->total - m->n) / m->speed : 0);
    cx_text_append(out, ", ");
    cx_text_real(out, "%5.2f", m->speed);
  } else {
    cx_text_append(out, "?, ?");
  }
  cx_text_append(out, "it/s");
  if (*m->values != '\0') cx_text_format(out, ", %s", m->values);
  cx_text_append(out, "]");
}

// The character in which the bar ends shows eighths, in ASCII tenths.
static void put_bar(cx_text *out, const cx_train_meter *m, int64_t width,
                    bool has_utf8)
{
  static const char *const eighths[] = { " ", "▏", "▎", "▍", "▌",
                                         "▋", "▊", "▉", "█" };
  static const char *const tenths[] = { " ", "1", "2", "3", "4", "5",
                                        "6", "7", "8", "9", "#" };
  const char *const *symbols = has_utf8 ? eighths : tenths;
  const int parts = has_utf8 ? 8 : 10;
  const double share =
      m->total > 0 ? (double)m->n / (double)m->total * (double)width : 0;
  const int64_t filled = (int64_t)(share * parts);
  for (int64_t i = 0; i < width; i++) {
    const int64_t left = filled - i * parts;
    cx_text_append(out, symbols[left <= 0 ? 0 : left < parts ? left : parts]);
  }
}

// ---- the line ---------------------------------------------------------------

void cx_train_tqdm_line(cx_text *out, const cx_train_meter *given, int width,
                        bool has_utf8)
{
  cx_train_meter m = *given;
  cx_text left = { 0 }, right = { 0 }, line = { 0 };
  if (m.total > 0 && m.n > m.total) m.total = -1;
  if (*m.description != '\0') cx_text_format(&left, "%s: ", m.description);
  if (m.total > 0) {
    cx_text_format(&left, "%3.0f%%", (double)m.n / (double)m.total * 100);
  }
  cx_text_append(&left, "|");
  put_right(&right, &m);
  int64_t room = 10;
  if (width > 0) {
    room = width - (int64_t)(cx_text_columns(cx_text_str(&left)) +
                             cx_text_columns(cx_text_str(&right)));
  }
  cx_text_append(&line, cx_text_str(&left));
  put_bar(&line, &m, room > 1 ? room : 1, has_utf8);
  cx_text_append(&line, cx_text_str(&right));
  const char *text = cx_text_str(&line);
  cx_text_append_n(out, text,
                   width > 0 ? cx_text_fit(text, (size_t)width) : strlen(text));
  cx_text_free(&left);
  cx_text_free(&right);
  cx_text_free(&line);
}

// ---- numbers ----------------------------------------------------------------

// "1e-05" as "1e-5".
static void put_short(cx_text *out, double value)
{
  cx_text text = { 0 };
  cx_text_real(&text, "%.3g", value);
  const char *s = cx_text_str(&text), *e = strchr(s, 'e');
  if (e == NULL || e[2] != '0') {
    cx_text_append(out, s);
  } else {
    cx_text_format(out, "%.*s%s", (int)(e + 2 - s), s, e + 3);
  }
  cx_text_free(&text);
}

void cx_train_tqdm_number(cx_text *out, double value, bool is_integer)
{
  enum { LEAST = 5 };
  cx_text brief = { 0 }, whole = { 0 };
  put_short(&brief, value);
  cx_loggers_put_number(&whole, value, is_integer);
  const char *s = cx_text_str(brief.size < whole.size ? &brief : &whole);
  size_t size = strlen(s);
  cx_text_append(out, s);
  if (!is_integer && isfinite(value) && strchr(s, 'e') == NULL) {
    if (size < LEAST && strchr(s, '.') == NULL) {
      cx_text_char(out, '.');
      size++;
    }
    for (; size < LEAST; size++) cx_text_char(out, '0');
  }
  cx_text_free(&brief);
  cx_text_free(&whole);
}
