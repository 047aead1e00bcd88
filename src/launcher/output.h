// launcher/output: what ranks write, line by line, with their number in front.
//
// Each child has two pipes. A line is written once it is whole, so that lines
// of ranks never mix; the end of a stream ends its last line. Lines keep their
// stream: the ranks' standard output comes out on this process's, their errors
// on its. A log folder takes the bytes as they are.
//
// Nothing here waits for whoever reads: lines stand in a queue, and while that
// is full no more is taken from the ranks.
#ifndef CX_LAUNCHER_OUTPUT_H
#define CX_LAUNCHER_OUTPUT_H

#include <poll.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct cx_launcher_output_options {
  const char *log_dir;  // gets rank_3.out and rank_3.err; NULL: no files
  const char *place;    // before the rank: "host-a:"; NULL: nothing
  bool tag;             // the time and the stream in the prefix too
  bool bare;            // no prefix: the lines have one already
  bool again;           // the files have lines of an attempt before
} cx_launcher_output_options;

typedef struct cx_launcher_output cx_launcher_output;

// The options' strings are borrowed.
calx_status *cx_launcher_output_new(const cx_launcher_output_options *options,
                                    cx_launcher_output **out) CALX_MUST_USE;
void cx_launcher_output_free(cx_launcher_output *output);

// Pipes and files for the children `first` … `first` + `count` - 1; the files
// are emptied the first time only.
calx_status *cx_launcher_output_begin(cx_launcher_output *output, int first,
                                      int count) CALX_MUST_USE;
// In child `index`, counted from 0: its standard output and error.
void cx_launcher_output_be_child(cx_launcher_output *output, int index);
// In the parent, once the children are there.
void cx_launcher_output_be_parent(cx_launcher_output *output);
// How many descriptors are to be polled; `out` has room for 2 * count + 2.
nfds_t cx_launcher_output_add_polled(const cx_launcher_output *output,
                                     struct pollfd *out);
// Reads what is there and writes the lines that are whole. `last`: the children
// have ended, so what is there still is taken, also without its end of line,
// once. What others hold open, who the children left behind, is not waited for.
void cx_launcher_output_forward(cx_launcher_output *output, bool last);
// Whether lines stand in a queue.
bool cx_launcher_output_is_pending(const cx_launcher_output *output);
// What could not be written, of all launches with this output: NULL, or how
// much is lost and why. Nobody reading any more is no loss.
calx_status *cx_launcher_output_lost(const cx_launcher_output *output)
    CALX_MUST_USE;
// Closes everything; what waits still is lost.
void cx_launcher_output_end(cx_launcher_output *output);

#endif
