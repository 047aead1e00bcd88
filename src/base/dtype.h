// base/dtype: facts about element types, and conversion of single elements on
// the host.
#ifndef CX_BASE_DTYPE_H
#define CX_BASE_DTYPE_H

#include <stdbool.h>

#include "calx/dtype.h"

bool cx_dtype_is_float(calx_dtype d);  // complex types are none
bool cx_dtype_is_complex(calx_dtype d);
// Floating or complex: what has gradients.
bool cx_dtype_is_inexact(calx_dtype d);
// Of a complex type that of its parts; others are their own.
calx_dtype cx_dtype_part(calx_dtype d);
// The complex type whose parts hold the floating type.
calx_dtype cx_dtype_complex_of(calx_dtype d);
bool cx_dtype_is_int(calx_dtype d);  // bool is none
bool cx_dtype_is_unsigned(calx_dtype d);
bool cx_dtype_valid(calx_dtype d);
// The type that calx_dtype_name() calls so; DEFAULT: none.
calx_dtype cx_dtype_of_name(const char *name);

// PyTorch's promotion of two tensors' types (both with rank > 0, or both rank
// 0).
calx_dtype cx_dtype_promote(calx_dtype a, calx_dtype b);

// One element at p as a number, and back (rounded to nearest even, saturated
// for integers). Of a complex number the real part; a stored one has imaginary
// part 0.
double cx_load_double(calx_dtype d, const void *p);
int64_t cx_load_int(calx_dtype d, const void *p);
void cx_store_double(calx_dtype d, void *p, double v);
void cx_store_int(calx_dtype d, void *p, int64_t v);

// Product of the sizes; false when it, or bytes with the type's size, does not
// fit.
bool cx_dims_bytes(calx_dtype d, const int64_t *dims, size_t rank,
                   int64_t *out_elements, size_t *out_bytes);

#endif
