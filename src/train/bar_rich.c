// train/bar_rich: the rows of a Rich progress table. Columns are as wide as
// their widest cell; where the terminal is narrower, the widest ones give way
// and their texts are wrapped.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/bar.h"

enum { DESCRIPTION, BAR, BATCHES, TIME, SPEED, VALUES, COLUMNS };
enum { BAR_WIDTH = 40 };

// Of Lightning's theme in 256 colours.
enum { DONE = COLUMNS, REST, STYLES };
static const char *const styles[STYLES] = { [TIME] = "\033[2m",
                                            [SPEED] = "\033[2;4m",
                                            [VALUES] = "\033[3m",
                                            [DONE] = "\033[38;5;56m",
                                            [REST] = "\033[38;5;237m" };

// How the table is written.
typedef struct rich_form {
  bool has_utf8, has_colours;
  int widths[COLUMNS];
} rich_form;

typedef struct rich_row {
  const cx_train_meter *meter;
  char *cells[COLUMNS];  // owned; that of the bar is empty
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

static void measure(const rich_row *rows, size_t n, int *widths)
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
}

static void fit(int *widths, int width)
{
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

static void put_styled(cx_text *out, const rich_form *f, int style,
                       const char *text, size_t bytes)
{
  const char *colour = f->has_colours && bytes > 0 ? styles[style] : NULL;
  if (colour != NULL) cx_text_append(out, colour);
  cx_text_append_n(out, text, bytes);
  if (colour != NULL) cx_text_append(out, "\033[0m");
}

// A line that is too long ends with an ellipsis.
static void put_text(cx_text *out, const rich_form *f, int column,
                     const char *line, size_t bytes)
{
  const size_t room = (size_t)(f->widths[column] - padding(column));
  char *text = cx_strndup(line, bytes);
  if (text == NULL) return;
  size_t columns = cx_text_columns(text);
  if (columns > room) {
    text[cx_text_fit(text, room - 1)] = '\0';
    cx_text cut = { 0 };
    cx_text_format(&cut, "%s%s", text, f->has_utf8 ? "…" : ".");
    put_styled(out, f, column, cx_text_str(&cut), cut.size);
    cx_text_free(&cut);
    columns = room;
  } else {
    put_styled(out, f, column, text, bytes);
  }
  cx_free(text);
  if (column == COLUMNS - 1) return;
  for (; columns < room; columns++) cx_text_char(out, ' ');
}

static void repeat(cx_text *out, const char *s, int64_t n)
{
  for (int64_t i = 0; i < n; i++) cx_text_append(out, s);
}

// Without colours the rest of the bar is blank.
// Source: rich.progress_bar.ProgressBar.
static void put_bar(cx_text *out, const cx_train_meter *m, const rich_form *f)
{
  const char *bar = f->has_utf8 ? "━" : "-";
  const int64_t room = f->widths[BAR] - padding(BAR);
  int64_t halves = 2 * room;
  if (m->total > 0 && m->n < m->total) {
    halves = (int64_t)((double)halves * (double)m->n / (double)m->total);
  }
  cx_text done = { 0 }, rest = { 0 };
  repeat(&done, bar, halves / 2);
  if (halves % 2 != 0) cx_text_append(&done, f->has_utf8 ? "╸" : " ");
  int64_t left = room - (halves + 1) / 2;
  if (f->has_colours && halves % 2 == 0 && halves > 0 && left > 0) {
    cx_text_append(&rest, f->has_utf8 ? "╺" : " ");
    left--;
  }
  repeat(&rest, f->has_colours ? bar : " ", left);
  put_styled(out, f, DONE, cx_text_str(&done), done.size);
  put_styled(out, f, REST, cx_text_str(&rest), rest.size);
  cx_text_free(&done);
  cx_text_free(&rest);
}

// One line of a row; the cells' texts that are left go on in `rest`. True:
// there are some.
static bool put_line(cx_text *out, const rich_form *f,
                     const cx_train_meter *bar, const char **rest)
{
  bool more = false;
  for (int c = 0; c < COLUMNS; c++) {
    const int room = f->widths[c] - padding(c);
    if (room > 0 && c == BAR && bar != NULL) {
      put_bar(out, bar, f);
    } else if (room > 0) {
      size_t skipped = 0, bytes = c == DESCRIPTION
                                      ? strlen(rest[c])
                                      : next_line(rest[c], room, &skipped);
      put_text(out, f, c, rest[c], bytes);
      rest[c] += bytes + skipped;
      more = more || *rest[c] != '\0';
    }
    if (padding(c) > 0 && f->widths[c] > 0) cx_text_char(out, ' ');
  }
  return more;
}

static void put_rows(cx_text *out, const rich_form *f, const rich_row *rows,
                     size_t n)
{
  for (size_t r = 0; r < n; r++) {
    const char *rest[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) rest[c] = rows[r].cells[c];
    if (r > 0) cx_text_char(out, '\n');
    const cx_train_meter *bar = rows[r].meter;
    while (put_line(out, f, bar, rest)) {
      cx_text_char(out, '\n');
      bar = NULL;
    }
  }
}

// ---- the table --------------------------------------------------------------

static bool take_row(rich_row *row, const cx_train_meter *m, bool has_utf8)
{
  row->meter = m;
  for (int c = 0; c < COLUMNS; c++) {
    cx_text cell = { 0 };
    put_cell(&cell, m, c, has_utf8);
    cx_text_append(&cell, "");
    row->cells[c] = cx_text_take(&cell);
    if (row->cells[c] == NULL) return false;
  }
  return true;
}

void cx_train_rich_lines(cx_text *out, const cx_train_meter *meters, size_t n,
                         int width, bool has_utf8, bool has_colours)
{
  rich_form f = { .has_utf8 = has_utf8, .has_colours = has_colours };
  rich_row *rows = cx_calloc(n + 1, sizeof *rows);
  bool is_whole = rows != NULL;
  for (size_t r = 0; is_whole && r < n; r++) {
    is_whole = take_row(&rows[r], &meters[r], has_utf8);
  }
  if (is_whole) {
    measure(rows, n, f.widths);
    if (width > 0) fit(f.widths, width);
    put_rows(out, &f, rows, n);
  }
  for (size_t r = 0; rows != NULL && r < n; r++) {
    for (int c = 0; c < COLUMNS; c++) cx_free(rows[r].cells[c]);
  }
  cx_free(rows);
}
