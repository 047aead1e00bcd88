// train/bar_rich: the rows of a Rich progress table. Columns are as wide as
// their widest cell; where the terminal is narrower, the widest ones give way
// and their texts are wrapped.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/bar.h"

enum { DESCRIPTION, BAR, BATCHES, TIME, SPEED, VALUES, COLUMNS };
enum { BAR_WIDTH = 40 };

// Colours of Lightning's theme, of 256.
#define DONE "\033[38;5;56m"
#define REST "\033[38;5;237m"
#define PLAIN "\033[0m"
static const char *const styles[COLUMNS] = {
  [TIME] = "\033[2m", [SPEED] = "\033[2;4m", [VALUES] = "\033[3m"
};

typedef struct rich_row {
  const cx_train_meter *meter;
  char *cells[COLUMNS];  // owned; of the bar NULL
} rich_row;

// ---- cells ------------------------------------------------------------------

// As Python prints a timedelta of whole seconds; less than 0: not known.
static void put_delta(cx_text *out, double seconds)
{
  if (seconds < 0) {
    cx_text_append(out, "-:--:--");
    return;
  }
  const long long s = seconds < 1e15 ? (long long)seconds : 1000000000000000;
  const long long days = s / 86400;
  if (days > 0) {
    cx_text_format(out, "%lld day%s, ", days, days == 1 ? "" : "s");
  }
  cx_text_format(out, "%lld:%02lld:%02lld", s / 3600 % 24, s / 60 % 60, s % 60);
}

static double remaining(const cx_train_meter *m)
{
  if (m->total < 0) return -1;
  if (m->n >= m->total) return 0;
  return m->speed > 0 ? ceil((double)(m->total - m->n) / m->speed) : -1;
}

static void put_cell(cx_text *out, const cx_train_meter *m, int column,
                     bool has_utf8)
{
  switch (column) {
    case DESCRIPTION: cx_text_append(out, m->description); break;
    case BATCHES:
      cx_text_format(out, "%lld/", (long long)m->n);
      if (m->total < 0) {
        cx_text_append(out, "--");
      } else {
        cx_text_int(out, m->total);
      }
      break;
    case TIME:
      put_delta(out, m->elapsed);
      cx_text_append(out, has_utf8 ? " • " : " - ");
      put_delta(out, remaining(m));
      break;
    case SPEED:
      cx_text_real(out, "%.2f", m->speed);
      cx_text_append(out, "it/s");
      break;
    case VALUES: cx_text_append(out, m->values); break;
    default: break;
  }
}

// ---- widths -----------------------------------------------------------------

// All columns but the last one have a blank behind them.
static int padding(int column)
{
  return column == COLUMNS - 1 ? 0 : 1;
}

static int sum(const int *widths)
{
  int all = 0;
  for (int c = 0; c < COLUMNS; c++) all += widths[c];
  return all;
}

// Takes `excess` columns from those of `gives`, at most `most` from each.
// Source: rich._ratio.ratio_reduce.
static void reduce(int *widths, const bool *gives, int excess, int most)
{
  int givers = 0;
  for (int c = 0; c < COLUMNS; c++) givers += gives[c];
  for (int c = 0; c < COLUMNS; c++) {
    if (!gives[c]) continue;
    int share = (int)nearbyint((double)excess / givers--);
    if (share > most) share = most;
    if (share > widths[c]) share = widths[c];
    widths[c] -= share;
    excess -= share;
  }
}

// The widest columns give way until they are as wide as the next ones, and so
// on. The description is never wrapped.
// Source: rich.table.Table._collapse_widths.
static void collapse(int *widths, int width)
{
  for (int excess; (excess = sum(widths) - width) > 0;) {
    int widest = 0, next = 0;
    for (int c = BAR; c < COLUMNS; c++) {
      if (widths[c] > widest) widest = widths[c];
    }
    bool gives[COLUMNS] = { false };
    for (int c = BAR; c < COLUMNS; c++) {
      gives[c] = widths[c] == widest;
      if (!gives[c] && widths[c] > next) next = widths[c];
    }
    if (widest <= next) return;
    reduce(widths, gives, excess,
           excess < widest - next ? excess : widest - next);
  }
}

static void measure(const rich_row *rows, size_t n, int width, int *widths)
{
  for (int c = 0; c < COLUMNS; c++) {
    widths[c] = c == BAR ? BAR_WIDTH : 0;
    for (size_t r = 0; r < n && c != BAR; r++) {
      const int columns = (int)cx_text_columns(rows[r].cells[c]);
      if (columns > widths[c]) widths[c] = columns;
    }
    widths[c] += padding(c);
    if (widths[c] == 0) widths[c] = 1;
  }
  collapse(widths, width);
  const int excess = sum(widths) - width;
  if (excess <= 0) return;
  bool all[COLUMNS];
  for (int c = 0; c < COLUMNS; c++) all[c] = widths[c] > 0;
  reduce(widths, all, excess, excess);
}

// ---- lines ------------------------------------------------------------------

// The bytes of the next line of a text that is `room` wide; `*skipped` blanks
// follow it. Lines end between words; a word that is longer has one of its own.
// Source: rich._wrap.divide_line.
static size_t next_line(const char *text, int room, size_t *skipped)
{
  size_t end = 0, at = 0;
  while (text[at] != '\0') {
    size_t word = at + strspn(text + at, " ");
    word += strcspn(text + word, " ");
    char *line = cx_strndup(text, word);
    const size_t columns = line != NULL ? cx_text_columns(line) : 0;
    cx_free(line);
    if (end > 0 && columns > (size_t)room) break;
    end = at = word;
  }
  *skipped = strspn(text + end, " ");
  return end;
}

// A line that is too long ends with an ellipsis.
static void put_text(cx_text *out, const char *line, size_t bytes, int column,
                     int room, bool has_utf8)
{
  char *text = cx_strndup(line, bytes);
  if (text == NULL || room <= 0) {
    cx_free(text);
    return;
  }
  int columns = (int)cx_text_columns(text);
  const char *style = bytes > 0 ? styles[column] : NULL;
  if (style != NULL) cx_text_append(out, style);
  if (columns <= room) {
    cx_text_append(out, text);
  } else {
    cx_text_append_n(out, text, cx_text_fit(text, (size_t)room - 1));
    cx_text_append(out, has_utf8 ? "…" : ".");
    columns = room;
  }
  if (style != NULL) cx_text_append(out, PLAIN);
  if (column < COLUMNS - 1) cx_text_format(out, "%*s", room - columns, "");
  cx_free(text);
}

// Source: rich.progress_bar.ProgressBar.
static void put_bar(cx_text *out, const cx_train_meter *m, int room,
                    bool has_utf8)
{
  const char *bar = has_utf8 ? "━" : "-";
  int64_t halves = 2 * (int64_t)room;
  if (m->total > 0 && m->n < m->total) {
    halves = (int64_t)((double)halves * (double)m->n / (double)m->total);
  }
  int at = 0;
  cx_text_append(out, DONE);
  for (; at < halves / 2; at++) cx_text_append(out, bar);
  if (halves % 2 != 0) {
    cx_text_append(out, has_utf8 ? "╸" : " ");
    at++;
  }
  cx_text_append(out, PLAIN REST);
  if (at > 0 && at < room && halves % 2 == 0) {
    cx_text_append(out, has_utf8 ? "╺" : " ");
    at++;
  }
  for (; at < room; at++) cx_text_append(out, bar);
  cx_text_append(out, PLAIN);
}

// All lines of a row. What is left of a cell's text is in `rest`.
static void put_row(cx_text *out, const rich_row *row, const int *widths,
                    bool has_utf8)
{
  const char *rest[COLUMNS];
  memcpy(rest, row->cells, sizeof rest);
  for (bool first = true, more = true; more; first = false) {
    more = false;
    if (out->size > 0) cx_text_char(out, '\n');
    for (int c = 0; c < COLUMNS; c++) {
      const int room = widths[c] - padding(c);
      if (c == BAR && first) {
        put_bar(out, row->meter, room, has_utf8);
      } else {
        const char *text = c == BAR ? "" : rest[c];
        const bool is_whole = c == DESCRIPTION || room <= 0;
        size_t skipped = 0;
        const size_t bytes =
            is_whole ? strlen(text) : next_line(text, room, &skipped);
        put_text(out, text, bytes, c, room, has_utf8);
        rest[c] = text + bytes + skipped;
        more = more || *rest[c] != '\0';
      }
      if (padding(c) > 0 && widths[c] > 0) cx_text_char(out, ' ');
    }
  }
}

void cx_train_rich_lines(cx_text *out, const cx_train_meter *meters, size_t n,
                         int width, bool has_utf8)
{
  rich_row *rows = cx_calloc(n + 1, sizeof *rows);
  bool failed = rows == NULL;
  for (size_t r = 0; !failed && r < n; r++) {
    rows[r].meter = &meters[r];
    for (int c = 0; c < COLUMNS; c++) {
      cx_text cell = { 0 };
      put_cell(&cell, &meters[r], c, has_utf8);
      cx_text_append(&cell, "");
      rows[r].cells[c] = cx_text_take(&cell);
      failed = failed || rows[r].cells[c] == NULL;
    }
  }
  int widths[COLUMNS];
  if (!failed) measure(rows, n, width, widths);
  for (size_t r = 0; !failed && r < n; r++) {
    put_row(out, &rows[r], widths, has_utf8);
  }
  for (size_t r = 0; rows != NULL && r < n; r++) {
    for (int c = 0; c < COLUMNS; c++) cx_free(rows[r].cells[c]);
  }
  cx_free(rows);
}
