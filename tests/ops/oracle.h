// One case of the recorded PyTorch values and how it is called here.
#ifndef CX_TESTS_OPS_ORACLE_H
#define CX_TESTS_OPS_ORACLE_H

#include <jansson.h>

#include "calx/calx.h"

enum { MAX_TENSORS = 8 };

typedef struct call {
  const char *op;
  json_t *attrs;
  calx_tensor *in[MAX_TENSORS];  // NULL: left out
  size_t n_in;
  calx_tensor *out[MAX_TENSORS];
  size_t n_out;
} call;

// False: calx has no such op yet.
bool oracle_call(call *c);

#endif
