/**
 * calx/progress.h: a line that tells how far a loop is.
 *
 *   Epoch 1 step 40/62 loss 0.3127 13400 images/s ETA 0:01
 *
 * On a terminal it is one line, drawn anew at most ten times a second, cut to
 * the terminal's width; while a program is being compiled it ends with
 * "compiling…". Elsewhere it is a plain line now and then. On several ranks the
 * first one's are shown. Values are read when they are there: the loop never
 * waits for one, and what is shown is a step or two old, but for the last line.
 *
 * @threads a line belongs to the thread that made it
 */
#ifndef CALX_PROGRESS_H
#define CALX_PROGRESS_H

#include <stdio.h>

#include "calx/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_progress calx_progress;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_progress_options {
  CALX_NAMED size_t size;
  /* steps from one plain line to the next; 0 = about ten lines, or each 100th
     step where the total is not known */
  CALX_NAMED int64_t every;
  CALX_NAMED const char *unit; /* of the items of a step; NULL = "steps" */
  CALX_NAMED FILE *file;       /* NULL = standard output */
} calx_progress_options;

/**
 * Begins a line. Never NULL: without memory, one that shows nothing.
 * @param label  what comes first; copied; NULL: nothing
 * @param total  steps; 0 or less: not known, then there is no ETA
 */
CALX_API calx_progress *calx_progress_new_with(
    const char *label, int64_t total, const calx_progress_options *options);

/**
 * A value of the step that is under way, shown as NAME VALUE; given again, it
 * replaces the one before. The tensor is retained until it is read, so a sync
 * materialises it.
 * @param name  copied; at most 8 names are shown
 * @return the newest value that is known; 0 before the first one
 * @shape value one element
 * @errors those of an execution, through the scope
 */
CALX_API double calx_progress_value(calx_progress *progress, const char *name,
                                    calx_tensor *value);
/** The same of a number of the host's, such as a learning rate. */
CALX_API void calx_progress_number(calx_progress *progress, const char *name,
                                   double value);

/** One step is done. @param items  that it worked on; 0: the rate is in steps
 */
CALX_API void calx_progress_step(calx_progress *progress, int64_t items);

/** Reads what is left, ends the line and frees it; NULL is accepted.
 *  @errors as calx_progress_value */
CALX_API void calx_progress_end(calx_progress *progress);

#ifdef __cplusplus
}
#else
#define calx_progress_new(label, ...) \
  CALX_PROGRESS_(label, __VA_ARGS__, .size = sizeof(calx_progress_options))
#define CALX_PROGRESS_(label, total, ...) \
  calx_progress_new_with(label, total, &(calx_progress_options){ __VA_ARGS__ })
#endif
#endif
