// launcher/output: the ranks' lines, with their rank before each.
//
// Each child has two pipes. A line is written once it is complete, so lines of
// ranks never mix; the end of a stream completes its last line. The ranks'
// standard output goes to this process's, their standard error to its standard
// error. A log folder gets the bytes unchanged.
//
// Nothing here waits for a reader: lines are queued, and while a queue is full
// nothing more is read from the ranks.
#ifndef CX_LAUNCHER_OUTPUT_H
#define CX_LAUNCHER_OUTPUT_H

#include <poll.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct cx_launcher_output_options {
  const char *log_dir;  // gets rank_3.out and rank_3.err; NULL: no files
  const char *host;     // before the rank: "host-a:"; NULL: nothing
  bool tag;             // the prefix also has the time and the stream
  bool bare;            // no prefix, because the lines have one
  bool again;           // the files have lines of an earlier attempt
} cx_launcher_output_options;

typedef struct cx_launcher_output cx_launcher_output;

// The caller keeps the options' strings alive.
calx_status *cx_launcher_output_new(const cx_launcher_output_options *options,
                                    cx_launcher_output **out) CALX_MUST_USE;
void cx_launcher_output_free(cx_launcher_output *output);

// Opens pipes and files for the ranks `first` … `first` + `count` - 1. Only the
// first call empties the files.
calx_status *cx_launcher_output_begin(cx_launcher_output *output, int first,
                                      int count) CALX_MUST_USE;
// In child `index`, from 0: sets its standard output and error.
void cx_launcher_output_be_child(cx_launcher_output *output, int index);
// In the parent, once the children are started.
void cx_launcher_output_be_parent(cx_launcher_output *output);
// Fills in the descriptors to poll and returns their number; `out` has space
// for 2 * count + 2.
nfds_t cx_launcher_output_add_polled(const cx_launcher_output *output,
                                     struct pollfd *out);
// Reads what has arrived and writes the lines that are complete. last: the
// children have ended, so incomplete last lines are written too. It does not
// wait for streams that processes which the ranks left behind hold open.
void cx_launcher_output_forward(cx_launcher_output *output, bool last);
// Whether lines are queued.
bool cx_launcher_output_is_pending(const cx_launcher_output *output);
// NULL, or how many bytes of all launches with this output could not be
// written, and why. A reader that has closed its end is no loss.
calx_status *cx_launcher_output_lost(const cx_launcher_output *output)
    CALX_MUST_USE;
// Closes everything; lines that are still queued are dropped.
void cx_launcher_output_end(cx_launcher_output *output);

#endif
