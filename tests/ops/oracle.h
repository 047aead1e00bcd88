// One case of the recorded PyTorch values and how it is called here.
#ifndef CX_TESTS_OPS_ORACLE_H
#define CX_TESTS_OPS_ORACLE_H

#include <jansson.h>

#include "calx/calx.h"
#include "support/safetensors.h"

enum { MAX_TENSORS = 8 };

typedef struct call {
  const char *op;
  json_t *attrs;
  calx_tensor *in[MAX_TENSORS];  // NULL: left out
  size_t n_in;
  calx_tensor *out[MAX_TENSORS];
  size_t n_out;
} call;

typedef struct tally {
  int ran, passed, skipped;
} tally;

// What is missed: the tensor, and a bound on the error measured. A list of them
// ends with {0}.
typedef struct miss {
  const char *tensor;
  double bound;
  bool xla;  // by XLA's plugins alone
} miss;

// False: calx has no such op yet.
bool oracle_call(call *c);
// The same of losses and layers' functions.
bool oracle_call_model(call *c);
// The same of functions of torch that are named rarely.
bool oracle_call_rest(call *c);
// The same of complex numbers and Fourier transforms.
bool oracle_call_complex(call *c);
// The same of losses of linear layers, products in groups, factorisations.
bool oracle_call_extra(call *c);
// Runs a case of the file and counts it; false, with the reason printed: it
// differs by more than is allowed. A case with "raises" must be refused.
bool oracle_case(json_t *k, const safetensors *f, const miss *misses, tally *t);

#endif
