// ops/autocast: the types that public functions compute in, in an autocast
// region (calx_autocast_begin).
#ifndef CX_OPS_AUTOCAST_H
#define CX_OPS_AUTOCAST_H

#include "calx/tensor.h"

typedef enum cx_ops_cast {
  CX_OPS_LOWER,  // the region's type
  CX_OPS_F32
} cx_ops_cast;

// Casts the operands, a list that NULL ends of variables that may be NULL.
// Until the function returns, the functions that it calls do not cast.
calx_dtype cx_ops_autocast_begin(cx_ops_cast cast, calx_tensor **const *in);
void cx_ops_autocast_end(const calx_dtype *before);

// One operand as the function computes with it.
calx_tensor *cx_ops_autocast_one(cx_ops_cast cast, calx_tensor *t);

// At the beginning of a function: its operands, as &x, &y.
#define CX_OPS_AUTOCAST(cast, ...)                          \
  __attribute__((cleanup(cx_ops_autocast_end), unused))     \
  const calx_dtype autocast_before = cx_ops_autocast_begin( \
      cast, (calx_tensor * *const[]){ __VA_ARGS__, NULL })

#endif
