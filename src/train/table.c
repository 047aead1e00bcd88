// train/table: the table of results that validate and test print: a row for
// each name, a column for each loader. Source of the layout:
// lightning.pytorch.loops.evaluation_loop.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "train/internal.h"

enum { COLUMNS = 120, LEAST = 25 };

static int terminal_columns(void)
{
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return COLUMNS;
  }
  return size.ws_col;
}

static void put_bar(cx_text *out, int columns)
{
  for (int i = 0; i < columns; i++) cx_text_format(out, "─");
  cx_text_format(out, "\n");
}

// Blanks that end a line are put only when something follows.
static void put_cell(cx_text *out, const char *cell, int width, int *blanks)
{
  const int length = (int)strlen(cell);
  const int rest = width > length ? width - length : 0;
  if (length > 0) {
    cx_text_format(out, "%*s%s", *blanks + rest / 2, "", cell);
    *blanks = 0;
  } else {
    *blanks += rest / 2;
  }
  *blanks += rest - rest / 2;
}

// As Python prints a float: the fewest digits that read back as the same.
static void format_float(char *out, size_t size, double value)
{
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, size, "%.*g", digits, value);
    if (strtod(out, NULL) == value) break;
  }
  if (isfinite(value) && strpbrk(out, ".e") == NULL) strncat(out, ".0", 3);
}

static void cell_of(const calx_trainer *t, const char *name, int loader,
                    char *out, size_t size)
{
  char full[256];
  const char *suffix = t->n_evaluated > 1 ? "/dataloader_idx_" : "";
  *out = '\0';
  snprintf(full, sizeof full, "%s%s", name, suffix);
  if (*suffix != '\0') {
    snprintf(full, sizeof full, "%s%s%d", name, suffix, loader);
  }
  if (!calx_trainer_has_metric(t, full)) return;
  format_float(out, size,
               calx_trainer_callback_metric((calx_trainer *)t, full));
}

static int compare(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The names that have an epoch's value, sorted, each once.
static size_t sorted_names(const cx_train_results *r, const char **names)
{
  size_t n = 0;
  for (size_t i = 0; i < r->n_logged; i++) {
    if (r->logged[i].on_epoch) names[n++] = r->logged[i].name;
  }
  qsort(names, n, sizeof *names, compare);
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0) {
      names[kept++] = names[i];
    }
  }
  return kept;
}

static void put_rows(const calx_trainer *t, cx_text *out, const char **names,
                     size_t n, int width)
{
  char cell[64];
  int blanks = 0;
  const bool is_test = t->asked == CX_TRAIN_TESTING;
  put_cell(out, is_test ? "Test metric" : "Validate metric", width, &blanks);
  for (int k = 0; (size_t)k < t->n_evaluated; k++) {
    snprintf(cell, sizeof cell, "DataLoader %d", k);
    put_cell(out, cell, width, &blanks);
  }
  cx_text_format(out, "\n");
  put_bar(out, terminal_columns());
  for (size_t i = 0; i < n; i++) {
    blanks = 0;
    put_cell(out, names[i], width, &blanks);
    for (int k = 0; (size_t)k < t->n_evaluated; k++) {
      cell_of(t, names[i], k, cell, sizeof cell);
      put_cell(out, cell, width, &blanks);
    }
    cx_text_format(out, "\n");
  }
}

void cx_train_print_results(calx_trainer *t)
{
  const cx_train_results *r = &t->evaluation_results;
  const char **names = cx_calloc(r->n_logged + 1, sizeof *names);
  if (names == NULL) return;
  const size_t n = sorted_names(r, names);
  int width = LEAST;
  for (size_t i = 0; i < n; i++) {
    if ((int)strlen(names[i]) > width) width = (int)strlen(names[i]);
  }
  cx_text out = { 0 };
  put_bar(&out, terminal_columns());
  put_rows(t, &out, names, n, width);
  put_bar(&out, terminal_columns());
  char *text = cx_text_take(&out);
  if (n > 0 && text != NULL) fputs(text, stdout);
  fflush(stdout);
  calx_string_free(text);
  cx_free(names);
}
