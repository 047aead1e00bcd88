// train/bar: a progress bar as text, in tqdm's and in Rich's shape.
#ifndef CX_TRAIN_BAR_H
#define CX_TRAIN_BAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

// One bar at a moment.
typedef struct cx_train_meter {
  const char *description;
  int64_t n, total;    // batches; total -1: not known
  double elapsed;      // seconds
  double speed;        // batches per second; 0: not known
  const char *values;  // what is shown behind it; "": nothing
} cx_train_meter;

// "Epoch 0:  50%|██   | 2/4 [00:01<00:01,  1.71it/s, loss=0.500]". The bar has
// what the other parts leave of `width` columns; 0: ten. Without UTF-8 it is
// made of ASCII characters.
// Source: tqdm.std.tqdm.format_meter with the bar_format of Lightning.
void cx_train_tqdm_line(cx_text *out, const cx_train_meter *m, int width,
                        bool has_utf8);
// A value of `values`: at least five characters of a number that is none of an
// integer: "0.100", "1e-5", "12345.".
// Source: lightning.pytorch.callbacks.progress.tqdm_progress.Tqdm.format_num.
void cx_train_tqdm_number(cx_text *out, double value, bool is_integer);

// The rows of a table, a line each or more where they are wrapped, without a
// last line feed: "Epoch 0/9  ━━━━ 2/4 0:00:01 • 0:00:01 1.71it/s loss: 0.500".
// Width 0: no limit. The colours are escape sequences of a terminal.
// Source: rich.progress.Progress with the columns of Lightning's
// RichProgressBar.
void cx_train_rich_lines(cx_text *out, const cx_train_meter *rows, size_t n,
                         int width, bool has_utf8, bool has_colours);

#endif
