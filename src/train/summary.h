// train/summary: the table of a model's modules.
#ifndef CX_TRAIN_SUMMARY_H
#define CX_TRAIN_SUMMARY_H

#include "base/status.h"
#include "base/text.h"
#include "calx/callbacks.h"

enum { CX_TRAIN_SUMMARY_COLUMNS = 8 };

// A row of texts; those of sizes are NULL where no input is known.
typedef struct cx_train_summary_row {
  char *cells[CX_TRAIN_SUMMARY_COLUMNS];
} cx_train_summary_row;

// The first row has the titles.
typedef struct cx_train_summary {
  cx_train_summary_row *rows;
  size_t n, capacity;
  int n_columns;
  int64_t trainable, parameters;  // elements, each once
  int64_t training, evaluating;   // modules in the one mode and in the other
  int64_t flops;
  double megabytes;
} cx_train_summary;

// `bytes`: of a parameter's element, for the size.
calx_status *cx_train_summarize(calx_module *model,
                                const calx_model_summary_options *o, int bytes,
                                cx_train_summary *out) CALX_MUST_USE;
void cx_train_summary_free(cx_train_summary *s);
// "21.9 K"; "123  ".
void cx_train_put_count(cx_text *out, int64_t count);
// As Lightning prints it, without a line feed at the end.
void cx_train_summary_plain(const cx_train_summary *s, cx_text *out);
// As Rich draws it.
void cx_train_summary_rich(const cx_train_summary *s, bool has_utf8,
                           bool has_colours, cx_text *out);

#endif
