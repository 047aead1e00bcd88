// train/profile_table: the table that the simple profiler prints. The columns
// of parts are calx's own: on a lazy device the time of an action is that of
// recording, compiling and waiting, and says nothing without them.
// Source of the layout: lightning.pytorch.profilers.SimpleProfiler.
#include "train/profile_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loggers/number.h"

enum { WIDTH = 15, DIGITS = 5, TAB = 8 };

static const char *const part_titles[CX_TRAIN_PROFILE_PARTS] = {
  "Trace (s)", "Compile (s)", "Execute wait (s)", "Transfer (s)"
};

// ---- cells ------------------------------------------------------------------

static int characters(const char *text)
{
  int n = 0;
  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

static void put_cell(cx_text *out, const char *text, int width)
{
  const int rest = width - characters(text);
  cx_text_format(out, "  %s%*s\t|", text, rest > 0 ? rest : 0, "");
}

static void put_number(cx_text *out, double value)
{
  cx_text cell = { 0 };
  cx_loggers_put_rounded(&cell, value, DIGITS);
  put_cell(out, cx_text_str(&cell), WIDTH);
  out->failed |= cell.failed;
  cx_text_free(&cell);
}

static void put_count(cx_text *out, int64_t n)
{
  char cell[24];
  snprintf(cell, sizeof cell, "%lld", (long long)n);
  put_cell(out, cell, WIDTH);
}

static void begin_row(cx_text *out, const char *action, int width)
{
  cx_text_append(out, "\n|");
  put_cell(out, action, width);
}

// ---- rows -------------------------------------------------------------------

static void put_header(cx_text *out, const cx_train_profile *p, int width)
{
  begin_row(out, "Action", width);
  put_cell(out, "Mean duration (s)", WIDTH);
  if (!p->is_short) put_cell(out, "Num calls", WIDTH);
  put_cell(out, "Total time (s)", WIDTH);
  if (p->is_short) return;
  put_cell(out, "Percentage %", WIDTH);
  for (int k = 0; k < CX_TRAIN_PROFILE_PARTS && p->has_parts; k++) {
    put_cell(out, part_titles[k], WIDTH);
  }
}

static void put_total(cx_text *out, const cx_train_profile *p, int width)
{
  int64_t calls = 0;
  for (size_t i = 0; i < p->n_rows; i++) calls += p->rows[i].calls;
  begin_row(out, "Total", width);
  put_cell(out, "-", WIDTH);
  put_count(out, calls);
  put_number(out, p->total);
  put_cell(out, "100 %", WIDTH);
  // Actions nest, so no sum of their parts is that of the run.
  for (int k = 0; k < CX_TRAIN_PROFILE_PARTS && p->has_parts; k++) {
    put_cell(out, "-", WIDTH);
  }
}

static double mean_of(const cx_train_profile_row *row)
{
  return row->total / (double)row->calls;
}

static double share_of(const cx_train_profile *p, double total)
{
  return 100 * total / p->total;
}

static void put_row(cx_text *out, const cx_train_profile *p,
                    const cx_train_profile_row *row, int width)
{
  begin_row(out, row->action, width);
  put_number(out, mean_of(row));
  if (!p->is_short) put_count(out, row->calls);
  put_number(out, row->total);
  if (p->is_short) return;
  put_number(out, share_of(p, row->total));
  for (int k = 0; k < CX_TRAIN_PROFILE_PARTS && p->has_parts; k++) {
    if (isnan(row->part[k])) {
      put_cell(out, "-", WIDTH);
    } else {
      put_number(out, row->part[k]);
    }
  }
}

// ---- the table --------------------------------------------------------------

// Lightning counts the header's line break, with which it begins, as a
// character of it. Without memory the header is empty.
static int line_length(const char *header)
{
  int column = 0;
  const char *p = *header == '\n' ? header + 1 : header;
  for (; *p != '\0'; p++) {
    column = *p == '\t' ? (column / TAB + 1) * TAB : column + 1;
  }
  return column + 1;
}

static void put_line(cx_text *out, int length)
{
  cx_text_char(out, '\n');
  for (int i = 0; i < length; i++) cx_text_char(out, '-');
}

typedef struct profile_order {
  double key;
  size_t at;
} profile_order;

static int compare(const void *a, const void *b)
{
  const profile_order *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? 1 : -1;
  return (x->at > y->at) - (x->at < y->at);
}

static void put_rows(cx_text *out, const cx_train_profile *p, int width)
{
  profile_order *order = cx_calloc(p->n_rows, sizeof *order);
  if (order == NULL) {
    out->failed = true;
    return;
  }
  for (size_t i = 0; i < p->n_rows; i++) {
    const cx_train_profile_row *row = &p->rows[i];
    order[i].key = p->is_short ? mean_of(row) : share_of(p, row->total);
    order[i].at = i;
  }
  qsort(order, p->n_rows, sizeof *order, compare);
  for (size_t i = 0; i < p->n_rows; i++) {
    put_row(out, p, &p->rows[order[i].at], width);
  }
  cx_free(order);
}

static void put_table(cx_text *out, const cx_train_profile *p)
{
  int width = 0;
  cx_text header = { 0 };
  for (size_t i = 0; i < p->n_rows; i++) {
    const int n = characters(p->rows[i].action);
    if (n > width) width = n;
  }
  put_header(&header, p, width);
  const int length = line_length(cx_text_str(&header));
  put_line(out, length);
  cx_text_append(out, cx_text_str(&header));
  out->failed |= header.failed;
  cx_text_free(&header);
  put_line(out, length);
  if (!p->is_short) {
    put_total(out, p, width);
    put_line(out, length);
  }
  put_rows(out, p, width);
  put_line(out, length);
}

void cx_train_put_profile(cx_text *out, const cx_train_profile *profile)
{
  if (profile->stage != NULL) cx_text_format(out, "%s ", profile->stage);
  cx_text_append(out, "Profiler Report\n");
  if (profile->n_rows > 0) put_table(out, profile);
  cx_text_char(out, '\n');
}
