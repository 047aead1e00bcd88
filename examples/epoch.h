// The progress line of an epoch of training.
#ifndef EXAMPLES_EPOCH_H
#define EXAMPLES_EPOCH_H

#include <calx/calx.h>

// "Epoch 3"; an error where the loader has no batch, which is so where a last
// short one is left out and --batch-size is too large.
static inline calx_status *epoch_begin(int64_t epoch, const calx_loader *loader,
                                       const char *unit,
                                       calx_progress **out_line)
{
  char label[32];
  *out_line = NULL;
  if (calx_loader_error(loader) == NULL && calx_loader_size(loader) == 0) {
    return calx_status_new(CALX_INVALID_ARGUMENT,
                           "--batch-size is more than there are %s", unit);
  }
  snprintf(label, sizeof label, "Epoch %ld", (long)epoch);
  *out_line = calx_progress_new(label, calx_loader_size(loader), .unit = unit);
  return NULL;
}

// The loop's failure, or one that ended the loader's epoch.
static inline calx_status *epoch_end(calx_progress *line, calx_status *status)
{
  calx_progress_end(line);
  return status != NULL ? status : calx_scope_take_error();
}

#endif
