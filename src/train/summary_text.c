// train/summary_text: the table of a model's modules as text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/summary.h"
#include "train/summary.h"

static void repeat(cx_text *out, const char *s, size_t n)
{
  for (size_t i = 0; i < n; i++) cx_text_append(out, s);
}

static size_t width_of(const cx_train_summary *s, int column)
{
  size_t width = 0;
  for (size_t i = 0; i < s->n; i++) {
    const size_t columns = cx_text_columns(s->rows[i].cells[column]);
    if (columns > width) width = columns;
  }
  return width;
}

static void put_left(cx_text *out, const char *cell, size_t width)
{
  const size_t columns = cx_text_columns(cell);
  cx_text_append(out, cell);
  repeat(out, " ", width > columns ? width - columns : 0);
}

// Without the blanks that end it.
static void put_right(cx_text *out, const char *cell, size_t width)
{
  const size_t columns = cx_text_columns(cell);
  size_t size = strlen(cell), blanks = width > columns ? width - columns : 0;
  for (; size > 0 && cell[size - 1] == ' '; size--) blanks++;
  repeat(out, " ", blanks);
  cx_text_append_n(out, cell, size);
}

// ---- totals -----------------------------------------------------------------

enum { TOTALS = 7 };

static void put_total(const cx_train_summary *s, int i, cx_text *out)
{
  const double whole = s->megabytes;
  switch (i) {
    case 0: cx_train_put_count(out, s->trainable); break;
    case 1: cx_train_put_count(out, s->parameters - s->trainable); break;
    case 2: cx_train_put_count(out, s->parameters); break;
    case 3: {
      char digits[64];
      snprintf(digits, sizeof digits, "%.3f", whole);
      cx_nn_put_grouped(out, strtoll(digits, NULL, 10));
      cx_text_format(out, ".%s", digits + strlen(digits) - 3);
      break;
    }
    case 4: cx_text_int(out, s->training); break;
    case 5: cx_text_int(out, s->evaluating); break;
    default: cx_train_put_count(out, s->flops);
  }
}

static const char *const names[TOTALS] = {
  "Trainable params",      "Non-trainable params",
  "Total params",          "Total estimated model params size (MB)",
  "Modules in train mode", "Modules in eval mode",
  "Total Flops",
};

// ---- Lightning's ------------------------------------------------------------

void cx_train_summary_plain(const cx_train_summary *s, cx_text *out)
{
  size_t dashes = 3 * (size_t)(s->n_columns + 1);
  for (int c = 0; c < s->n_columns; c++) dashes += width_of(s, c);
  for (size_t i = 0; i < s->n; i++) {
    for (int c = 0; c < s->n_columns; c++) {
      if (c > 0) cx_text_append(out, " | ");
      put_left(out, s->rows[i].cells[c], width_of(s, c));
    }
    cx_text_char(out, '\n');
    if (i == 0) {
      repeat(out, "-", dashes);
      cx_text_char(out, '\n');
    }
  }
  repeat(out, "-", dashes);
  for (int i = 0; i < TOTALS; i++) {
    cx_text number = { 0 };
    put_total(s, i, &number);
    cx_text_format(out, "\n%-10s%s", cx_text_str(&number), names[i]);
    cx_text_free(&number);
  }
}

// ---- Rich's -----------------------------------------------------------------

// A border: its left end, its line, where a column ends, its right end.
typedef struct border {
  const char *left, *line, *between, *right;
} border;

static const border heavy_top = { "┏", "━", "┳", "┓" },
                    heavy_side = { "┃", " ", "┃", "┃" },
                    heavy_bottom = { "┡", "━", "╇", "┩" },
                    light_side = { "│", " ", "│", "│" },
                    light_bottom = { "└", "─", "┴", "┘" },
                    ascii_line = { "+", "-", "+", "+" },
                    ascii_side = { "|", " ", "|", "|" };

static void put_border(const cx_train_summary *s, const border *b, cx_text *out)
{
  for (int c = 0; c < s->n_columns; c++) {
    cx_text_append(out, c == 0 ? b->left : b->between);
    repeat(out, b->line, width_of(s, c) + 2);
  }
  cx_text_format(out, "%s\n", b->right);
}

// Numbers and sizes stand on the right.
static void put_row(const cx_train_summary *s, size_t row, const border *b,
                    bool has_colours, cx_text *out)
{
  for (int c = 0; c < s->n_columns; c++) {
    const char *colour = row == 0 ? "\033[1;35m"
                         : c == 0 ? "\033[2m"
                         : c >= 6 ? "\033[37m"
                                  : NULL;
    if (!has_colours) colour = NULL;
    cx_text_format(out, "%s%s ", c == 0 ? b->left : b->between,
                   colour != NULL ? colour : "");
    (c == 3 || c >= 5 ? put_right : put_left)(out, s->rows[row].cells[c],
                                              width_of(s, c));
    cx_text_append(out, colour != NULL ? "\033[0m " : " ");
  }
  cx_text_format(out, "%s\n", b->right);
}

void cx_train_summary_rich(const cx_train_summary *s, bool has_utf8,
                           bool has_colours, cx_text *out)
{
  put_border(s, has_utf8 ? &heavy_top : &ascii_line, out);
  put_row(s, 0, has_utf8 ? &heavy_side : &ascii_side, has_colours, out);
  put_border(s, has_utf8 ? &heavy_bottom : &ascii_line, out);
  for (size_t i = 1; i < s->n; i++) {
    put_row(s, i, has_utf8 ? &light_side : &ascii_side, has_colours, out);
  }
  put_border(s, has_utf8 ? &light_bottom : &ascii_line, out);
  for (int i = 0; i < TOTALS; i++) {
    const char *name = i == TOTALS - 1 ? "Total FLOPs" : names[i];
    cx_text_format(out, has_colours ? "\033[1m%s\033[0m: " : "%s: ", name);
    put_total(s, i, out);
    if (i < TOTALS - 1) cx_text_char(out, '\n');
  }
}
