// train/average: a model's weights averaged over the steps of training.
#ifndef CX_TRAIN_AVERAGE_H
#define CX_TRAIN_AVERAGE_H

#include "base/status.h"
#include "calx/io.h"

// What is averaged.
typedef enum cx_train_averaged {
  CX_TRAIN_PARAMETERS,             // buffers are left alone
  CX_TRAIN_PARAMETERS_COPY,        // an update copies the buffers
  CX_TRAIN_PARAMETERS_AND_BUFFERS  // both
} cx_train_averaged;

typedef struct cx_train_average cx_train_average;

// An average that is the model's present values. The model must outlive it.
calx_status *cx_train_average_new(calx_module *model, cx_train_averaged what,
                                  cx_train_average **out) CALX_MUST_USE;
void cx_train_average_free(cx_train_average *a);
// average = keep * average + take * model: a part of the program of the next
// sync.
void cx_train_average_update(cx_train_average *a, double keep, double take);
// The two change places. Where both are computed nothing runs.
void cx_train_average_swap(cx_train_average *a);
// The model gets the average.
void cx_train_average_give(cx_train_average *a);
// A dict of the average by the model's names, on the host.
calx_status *cx_train_average_state(cx_train_average *a,
                                    calx_value **out) CALX_MUST_USE;

// Another dict of the same tensors, for later.
calx_status *cx_train_keep_tensors(const calx_value *dict,
                                   calx_value **out) CALX_MUST_USE;

#endif
