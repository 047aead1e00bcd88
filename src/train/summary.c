// train/summary: what the table of a model's modules says.
// Source: lightning.pytorch.utilities.model_summary.
#include "train/summary.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "nn/summary.h"

enum { NUMBER, NAME, TYPE, PARAMS, MODE, FLOPS, IN_SIZES, OUT_SIZES };

// ---- numbers ----------------------------------------------------------------

void cx_train_put_count(cx_text *out, int64_t count)
{
  static const double scales[] = { 1, 1e-3, 1e-6, 1e-9, 1e-12 };
  enum { GROUPS = 5 };
  int digits = 1;
  for (int64_t n = count; n >= 10; n /= 10) digits++;
  int group = (digits + 2) / 3 - 1;
  if (group > GROUPS - 1) group = GROUPS - 1;
  const double scaled = (double)count * scales[group];
  if (group == 0) {
    cx_nn_put_grouped(out, count);
  } else if (scaled >= 100) {
    cx_nn_put_grouped(out, (int64_t)scaled);
  } else {
    cx_text_real(out, "%.1f", scaled);
  }
  cx_text_format(out, " %c", " KMBT"[group]);
}

// [10, 256]; of several shapes [[…], […]]; of none, or no dimensions, "?".
static void put_size(cx_text *out, const calx_dims *shapes, size_t n)
{
  if (n == 0 || (n == 1 && shapes->count == 0)) {
    cx_text_append(out, "?");
    return;
  }
  if (n > 1) cx_text_char(out, '[');
  for (size_t i = 0; i < n; i++) {
    cx_text_append(out, i == 0 ? "[" : ", [");
    for (size_t d = 0; d < shapes[i].count; d++) {
      cx_text_format(out, "%s%" PRId64, d == 0 ? "" : ", ",
                     shapes[i].values[d]);
    }
    cx_text_char(out, ']');
  }
  if (n > 1) cx_text_char(out, ']');
}

// ---- rows -------------------------------------------------------------------

static calx_status *add_row(cx_train_summary *s, cx_text *cells)
{
  bool is_whole = cx_grow(&s->rows, &s->capacity, s->n + 1, sizeof *s->rows);
  cx_train_summary_row row = { { NULL } };
  for (int c = 0; c < CX_TRAIN_SUMMARY_COLUMNS; c++) {
    cx_text_append(&cells[c], "");
    row.cells[c] = cx_text_take(&cells[c]);
    is_whole = is_whole && row.cells[c] != NULL;
  }
  if (is_whole) {
    s->rows[s->n++] = row;
    return NULL;
  }
  for (int c = 0; c < CX_TRAIN_SUMMARY_COLUMNS; c++) cx_free(row.cells[c]);
  return cx_out_of_memory();
}

static calx_status *add_titles(cx_train_summary *s)
{
  static const char *const titles[] = {
    " ", "Name", "Type", "Params", "Mode", "FLOPs", "In sizes", "Out sizes"
  };
  cx_text cells[CX_TRAIN_SUMMARY_COLUMNS] = { 0 };
  for (int c = 0; c < CX_TRAIN_SUMMARY_COLUMNS; c++) {
    cx_text_append(&cells[c], titles[c]);
  }
  return add_row(s, cells);
}

static calx_status *add_module(cx_train_summary *s, const cx_nn_summary *from,
                               size_t i, int64_t parameters)
{
  const cx_nn_summary_row *r = &from->rows[i];
  cx_text cells[CX_TRAIN_SUMMARY_COLUMNS] = { 0 };
  cx_text_format(&cells[NUMBER], "%zu", s->n - 1);
  cx_text_append(&cells[NAME], cx_nn_summary_name(from, i));
  cx_text_append(&cells[TYPE], calx_module_kind(r->m));
  cx_train_put_count(&cells[PARAMS], parameters);
  cx_text_append(&cells[MODE],
                 calx_module_is_training(r->m) ? "train" : "eval");
  cx_train_put_count(&cells[FLOPS], r->flops);
  put_size(&cells[IN_SIZES], r->in, r->n_in);
  put_size(&cells[OUT_SIZES], &r->out, r->called);
  return add_row(s, cells);
}

// The parameters that no row has.
static calx_status *add_others(cx_train_summary *s, int64_t count)
{
  cx_text cells[CX_TRAIN_SUMMARY_COLUMNS] = { 0 };
  for (int c = 0; c < CX_TRAIN_SUMMARY_COLUMNS; c++) {
    cx_text_append(&cells[c], c == NUMBER ? " "
                              : c == NAME ? "other params"
                                          : "n/a");
  }
  cx_text_clear(&cells[PARAMS]);
  cx_train_put_count(&cells[PARAMS], count);
  return add_row(s, cells);
}

static int depth_of(const char *name)
{
  int depth = 1;
  for (; *name != '\0'; name++) depth += *name == '.';
  return depth;
}

static calx_status *add_rows(cx_train_summary *s, const cx_nn_summary *from,
                             int max_depth)
{
  int64_t shown = 0;
  CALX_TRY(add_titles(s));
  for (size_t i = 1; i < from->n; i++) {
    *(calx_module_is_training(from->rows[i].m) ? &s->training
                                               : &s->evaluating) += 1;
    if (max_depth >= 0 && depth_of(cx_nn_summary_name(from, i)) > max_depth) {
      continue;
    }
    const int64_t parameters = calx_module_param_count(from->rows[i].m);
    shown += parameters;
    CALX_TRY(add_module(s, from, i, parameters));
  }
  return s->parameters > shown ? add_others(s, s->parameters - shown) : NULL;
}

// ---- the table --------------------------------------------------------------

calx_status *cx_train_summarize(calx_module *model,
                                const calx_model_summary_options *o, int bytes,
                                cx_train_summary *s)
{
  const bool has_input = o->example_input.count > 0;
  cx_nn_summary from;
  *s = (cx_train_summary){ .n_columns = has_input ? OUT_SIZES + 1 : IN_SIZES };
  CALX_TRY(cx_nn_summarize(model, has_input ? &o->example_input : NULL,
                           o->example_dtype, &from));
  s->parameters = calx_module_param_count(model);
  s->trainable = cx_nn_trainable_count(model);
  s->flops = from.rows[0].flops;
  s->megabytes = (double)s->parameters * (bytes * 1e-6);
  calx_status *status = add_rows(s, &from, o->max_depth);
  cx_free(from.rows);
  if (status != NULL) cx_train_summary_free(s);
  return status;
}

void cx_train_summary_free(cx_train_summary *s)
{
  for (size_t i = 0; i < s->n; i++) {
    for (int c = 0; c < CX_TRAIN_SUMMARY_COLUMNS; c++) {
      cx_free(s->rows[i].cells[c]);
    }
  }
  cx_free(s->rows);
  *s = (cx_train_summary){ 0 };
}
