// nn/attention: what attention, its masks and transformers share.
#ifndef CX_NN_ATTENTION_H
#define CX_NN_ATTENTION_H

#include "calx/transformer.h"
#include "nn/module.h"

// "transformer: the dropout is 2, …", or NULL.
calx_status *cx_nn_check_probability(const char *call, double p);

// ---- masks ------------------------------------------------------------------

typedef struct cx_nn_attention_sizes {
  int64_t batch, heads, length, keys;
  bool batched;  // the operands have a dimension of the batch
} cx_nn_attention_sizes;

// "the key of layer 'attn' is …, (length, 6) is wanted" as a poison.
calx_tensor *cx_nn_attention_refuse(const calx_module *m, const char *which,
                                    const calx_tensor *x, const char *wanted);
// NULL: the masks fit.
calx_tensor *cx_nn_attention_check_masks(
    const calx_module *m, const cx_nn_attention_sizes *s,
    const calx_multihead_attention_forward_options *o);
// What is added to the scores (N, h, L, S) of queries like q, with columns for
// `more` keys that all queries see; NULL: nothing.
calx_tensor *cx_nn_attention_mask(
    const cx_nn_attention_sizes *s,
    const calx_multihead_attention_forward_options *o, const calx_tensor *q,
    int64_t more);

#endif
