// train/progress_bar: what a progress bar shows at the moment, and where.
#ifndef CX_TRAIN_PROGRESS_BAR_H
#define CX_TRAIN_PROGRESS_BAR_H

#include "calx/trainer.h"
#include "debug/screen.h"
#include "train/bar.h"

// What a program asks for.
typedef struct cx_train_progress_options {
  bool is_rich;         // else it has tqdm's shape
  int64_t every;        // batches from one drawing to the next; 0: off
  int64_t interval_ns;  // of a terminal, at least
  int offset;           // lines from the cursor's to the bar
  bool leaves;          // each epoch's bar
} cx_train_progress_options;

// How many batches were over when.
typedef struct cx_train_progress_sample {
  int64_t ns, n;
} cx_train_progress_sample;
enum { CX_TRAIN_PROGRESS_SAMPLES = 64 };

// A loop over batches.
typedef struct cx_train_progress_loop {
  bool is_shown;
  char description[64];
  int64_t n, total;  // batches; total -1: not known
  int64_t first;     // n at its beginning
  int64_t begun_ns, finished_ns;
  // A ring of those of the last half minute, at half a second's distance, and
  // the newest.
  cx_train_progress_sample samples[CX_TRAIN_PROGRESS_SAMPLES], newest;
  size_t n_samples;
} cx_train_progress_loop;

enum {
  CX_TRAIN_PROGRESS_OUTER,
  CX_TRAIN_PROGRESS_NESTED,
  CX_TRAIN_PROGRESS_LOOPS
};

// Of a rank.
typedef struct cx_train_bar_state {
  const cx_train_progress_options *o;
  bool is_drawn;     // by this rank
  bool is_begun;     // a screen is, or lines are printed
  bool is_terminal;  // else lines are printed now and then
  bool has_utf8;
  cx_debug_screen screen;
  cx_train_progress_loop loops[CX_TRAIN_PROGRESS_LOOPS];
  int64_t printed_n, printed_ns;
  int dataloader;  // whose batches are shown; -1: none's yet
} cx_train_bar_state;

// Begins to draw on the standard output, if it is not begun.
void cx_train_progress_begin(cx_train_bar_state *bar);
// Ends that: what is shown stays there, or goes.
void cx_train_progress_end(cx_train_bar_state *bar, calx_trainer *t,
                           bool stays);
// A loop begins at batch n.
void cx_train_progress_start(cx_train_bar_state *bar, calx_trainer *t,
                             int which, int64_t n, int64_t total);
// n batches of it are over.
void cx_train_progress_advance(cx_train_bar_state *bar, calx_trainer *t,
                               int which, int64_t n);
// The nested loop is over.
void cx_train_progress_hide(cx_train_bar_state *bar);
// Values of the outer one came.
void cx_train_progress_refresh(cx_train_bar_state *bar, calx_trainer *t);

#endif
