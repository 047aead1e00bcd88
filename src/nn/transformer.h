// nn/transformer: what transformer layers and their stacks share.
#ifndef CX_NN_TRANSFORMER_H
#define CX_NN_TRANSFORMER_H

#include "calx/transformer.h"
#include "nn/module.h"

// The head of the state of these modules.
typedef struct cx_nn_transformer {
  calx_module *m;
  const calx_transformer_forward_options *call;  // during a call with masks
} cx_nn_transformer;

calx_status *cx_nn_transformer_check(
    const char *call, int64_t d_model, int64_t nhead,
    const calx_nn_transformer_options *o) CALX_MUST_USE;
calx_module *cx_nn_transformer_norm(calx_module *m, const char *name,
                                    int64_t d_model,
                                    const calx_nn_transformer_options *o);
// The error of calx_forward() on a decoder.
calx_forward_fn cx_nn_transformer_wants_two;

#endif
