// train/profile_table: the table that the simple profiler prints.
#ifndef CX_TRAIN_PROFILE_TABLE_H
#define CX_TRAIN_PROFILE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

// What an action's time is made of.
typedef enum cx_train_profile_part {
  CX_TRAIN_PROFILE_TRACE,     // recording
  CX_TRAIN_PROFILE_COMPILE,   // compiling
  CX_TRAIN_PROFILE_EXECUTE,   // waiting for executions
  CX_TRAIN_PROFILE_TRANSFER,  // moving values to the device and back
  CX_TRAIN_PROFILE_PARTS
} cx_train_profile_part;

// All times in seconds.
typedef struct cx_train_profile_row {
  const char *action;                   // UTF-8
  int64_t calls;                        // more than 0
  double total;                         // of all calls
  double part[CX_TRAIN_PROFILE_PARTS];  // of them; NaN: not known
} cx_train_profile_row;

typedef struct cx_train_profile {
  const char *stage;  // "FIT"; NULL: none
  double total;       // what the shares are of
  const cx_train_profile_row *rows;
  size_t n_rows;
  bool is_short;   // means and totals alone, Lightning's extended=False
  bool has_parts;  // a column for each part; the short table has none
} cx_train_profile;

// Byte for byte Lightning's where there are no columns of parts. Rows are
// sorted by share, those of the short table by mean, the largest first.
void cx_train_put_profile(cx_text *out, const cx_train_profile *profile);

#endif
