// nn/summary: what a recorded forward tells of a model's modules.
#ifndef CX_NN_SUMMARY_H
#define CX_NN_SUMMARY_H

#include "nn/module.h"

typedef struct cx_nn_summary_row {
  calx_module *m;
  bool called, was_training;
  size_t n_in;
  calx_dims in[CX_NN_INPUTS], out;  // of the first call
  int64_t own_flops;                // recorded by the module itself
  int64_t flops;                    // with those of the modules below
} cx_nn_summary_row;

// Each module before its children; the first row is the model.
typedef struct cx_nn_summary {
  cx_nn_summary_row *rows;  // cx_free() them
  size_t n, capacity;
  bool failed;
} cx_nn_summary;

// Records the forward of an input of that shape in evaluation mode; NULL: none
// is recorded. Nothing runs and the model stays as it is.
calx_status *cx_nn_summarize(calx_module *model, const calx_dims *input,
                             calx_dtype dtype,
                             cx_nn_summary *out) CALX_MUST_USE;
// The name of a row's module, from the model's.
const char *cx_nn_summary_name(const cx_nn_summary *s, size_t row);
// The elements of the parameters that collect gradients.
int64_t cx_nn_trainable_count(calx_module *m);
// 21840 as "21,840".
void cx_nn_put_grouped(cx_text *out, int64_t value);

#endif
