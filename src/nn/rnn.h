// nn/rnn: what recurrent layers and their cells share.
#ifndef CX_NN_RNN_H
#define CX_NN_RNN_H

#include "calx/rnn.h"
#include "nn/module.h"

// The head of the state of these layers.
typedef struct cx_nn_rnn {
  calx_module *m;
  const calx_rnn_forward_options *call;  // during calx_rnn_forward(); or NULL
} cx_nn_rnn;

calx_forward_fn cx_nn_rnn_cell_forward;
// NULL, "tanh" and "relu" are good.
calx_status *cx_nn_check_nonlinearity(const char *call,
                                      const char *nonlinearity);

#endif
