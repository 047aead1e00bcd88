// train/table: the table of results that validate and test print: a row for
// each name, a column for each loader. Where they do not fit, there are several
// tables. Source of the layout: lightning.pytorch.loops.evaluation_loop.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "debug/screen.h"
#include "loggers/number.h"
#include "train/internal.h"

enum { COLUMNS = 120, LEAST = 25 };

typedef struct results_table {
  const calx_trainer *t;
  char **names;  // of the rows, sorted; owned
  size_t n_names;
  size_t columns;  // of the terminal
  size_t width;    // of a cell
  const char *bar;
} results_table;

// The variable wins over the terminal, as in Python.
static size_t terminal_columns(void)
{
  const char *text = getenv("COLUMNS");
  int n = text != NULL ? atoi(text) : 0;
  if (n <= 0) n = cx_debug_columns(stdout);
  return n > 0 ? (size_t)n : COLUMNS;
}

// ---- values -----------------------------------------------------------------

// What a value of an epoch is called in the table.
static void name_of(const cx_train_logged *l, char *out, size_t size)
{
  snprintf(out, size, "%s%s", l->name, l->on_step ? "_epoch" : "");
}

static bool is_listed(const cx_train_logged *l)
{
  return l->on_epoch && l->logger;
}

// A value that was logged for no loader stands in each column.
static void put_value(cx_text *out, const results_table *tab, const char *name,
                      int loader)
{
  const cx_train_results *r = &tab->t->evaluation_results;
  for (size_t i = 0; i < r->n_logged; i++) {
    const cx_train_logged *l = &r->logged[i];
    char own[256], full[256];
    name_of(l, own, sizeof own);
    cx_train_full_name(l, l->on_step ? "_epoch" : "", full, sizeof full);
    if (!is_listed(l) || strcmp(own, name) != 0 ||
        (l->loader >= 0 && l->loader != loader) ||
        !calx_trainer_has_metric(tab->t, full)) {
      continue;
    }
    cx_loggers_put_real(
        out, calx_trainer_callback_metric((calx_trainer *)tab->t, full));
    return;
  }
}

// ---- lines ------------------------------------------------------------------

static void repeat(cx_text *out, const char *s, size_t n)
{
  for (size_t i = 0; i < n; i++) cx_text_append(out, s);
}

static void put_bar(cx_text *out, const results_table *tab)
{
  repeat(out, tab->bar, tab->columns);
  cx_text_char(out, '\n');
}

static void put_centred(cx_text *line, const results_table *tab,
                        const char *cell)
{
  const size_t columns = cx_text_columns(cell);
  const size_t rest = tab->width > columns ? tab->width - columns : 0;
  repeat(line, " ", rest / 2);
  cx_text_append(line, cell);
  repeat(line, " ", rest - rest / 2);
}

// Without the blanks at its end.
static void put_line(cx_text *out, cx_text *line)
{
  const char *text = cx_text_str(line);
  size_t size = line->size;
  while (size > 0 && text[size - 1] == ' ') size--;
  cx_text_append_n(out, text, size);
  cx_text_char(out, '\n');
  cx_text_clear(line);
}

static void put_head(cx_text *out, const results_table *tab, size_t first,
                     size_t last)
{
  cx_text line = { 0 };
  put_centred(
      &line, tab,
      tab->t->asked == CX_TRAIN_TESTING ? "Test metric" : "Validate metric");
  for (size_t k = first; k < last; k++) {
    char cell[32];
    snprintf(cell, sizeof cell, "DataLoader %zu", k);
    put_centred(&line, tab, cell);
  }
  put_line(out, &line);
  cx_text_free(&line);
}

// A name that is longer than half the terminal goes on in further lines, of
// which the last has no values.
static void put_row(cx_text *out, const results_table *tab, const char *name,
                    size_t first, size_t last)
{
  const char *rest = name;
  cx_text line = { 0 }, cell = { 0 };
  bool is_long;
  do {
    const size_t bytes = cx_text_fit(rest, tab->columns / 2);
    const bool has_values = rest[bytes] != '\0' || rest == name;
    is_long = rest[bytes] != '\0' && bytes > 0;
    cx_text_append_n(&cell, rest, is_long ? bytes : strlen(rest));
    put_centred(&line, tab, cx_text_str(&cell));
    cx_text_clear(&cell);
    for (size_t k = first; k < last && has_values; k++) {
      put_value(&cell, tab, name, (int)k);
      put_centred(&line, tab, cx_text_str(&cell));
      cx_text_clear(&cell);
    }
    put_line(out, &line);
    rest += bytes;
  } while (is_long);
  cx_text_free(&cell);
  cx_text_free(&line);
}

// ---- tables -----------------------------------------------------------------

static int compare(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The names that have an epoch's value, sorted, each once.
static bool take_names(results_table *tab)
{
  const cx_train_results *r = &tab->t->evaluation_results;
  char name[256];
  for (size_t i = 0; i < r->n_logged; i++) {
    if (!is_listed(&r->logged[i])) continue;
    name_of(&r->logged[i], name, sizeof name);
    bool is_new = true;
    for (size_t k = 0; is_new && k < tab->n_names; k++) {
      is_new = strcmp(tab->names[k], name) != 0;
    }
    if (!is_new) continue;
    tab->names[tab->n_names] = cx_strdup(name);
    if (tab->names[tab->n_names] == NULL) return false;
    tab->n_names++;
  }
  qsort(tab->names, tab->n_names, sizeof *tab->names, compare);
  return true;
}

static void take_widths(results_table *tab)
{
  char head[32];
  snprintf(head, sizeof head, "DataLoader %zu", tab->t->n_evaluated - 1);
  tab->columns = terminal_columns();
  tab->width = strlen(head) > LEAST ? strlen(head) : LEAST;
  for (size_t i = 0; i < tab->n_names; i++) {
    const size_t columns = cx_text_columns(tab->names[i]);
    if (columns > tab->width) tab->width = columns;
  }
  if (tab->width > tab->columns / 2) tab->width = tab->columns / 2;
  if (tab->width == 0) tab->width = 1;
}

static void put_tables(cx_text *out, const results_table *tab)
{
  const size_t n = tab->t->n_evaluated;
  size_t at_once = (tab->columns - tab->width) / tab->width;
  if (at_once == 0) at_once = 1;
  for (size_t first = 0; first < n; first += at_once) {
    const size_t last = first + at_once < n ? first + at_once : n;
    put_bar(out, tab);
    put_head(out, tab, first, last);
    put_bar(out, tab);
    for (size_t i = 0; i < tab->n_names; i++) {
      put_row(out, tab, tab->names[i], first, last);
    }
    put_bar(out, tab);
  }
}

void cx_train_print_results(calx_trainer *t)
{
  results_table tab = { .t = t, .bar = cx_debug_has_utf8() ? "─" : "-" };
  cx_text out = { 0 };
  tab.names = cx_calloc(t->evaluation_results.n_logged + 1, sizeof(char *));
  if (tab.names != NULL && take_names(&tab) && tab.n_names > 0) {
    take_widths(&tab);
    put_tables(&out, &tab);
    fputs(cx_text_str(&out), stdout);
    fflush(stdout);
  }
  for (size_t i = 0; i < tab.n_names; i++) cx_free(tab.names[i]);
  cx_free(tab.names);
  cx_text_free(&out);
}
