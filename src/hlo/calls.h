// hlo/calls: the call graph of a module, and the check that it has no
// recursion.
//
// StableHLO has no recursion: compilers inline functions.
#ifndef CX_HLO_CALLS_H
#define CX_HLO_CALLS_H

#include "hlo/module.h"

typedef struct cx_hlo_call {
  uint32_t caller, callee;  // cx_hlo_func.index
} cx_hlo_call;

typedef struct cx_hlo_calls {
  cx_hlo_call *items;  // cx_free() it
  size_t n, capacity;
} cx_hlo_calls;  // the zero value has none

calx_status *cx_hlo_calls_add(cx_hlo_calls *calls, const cx_hlo_func *caller,
                              const cx_hlo_func *callee) CALX_MUST_USE;
// INVALID_ARGUMENT names a recursive function, or one that calls such a
// function.
calx_status *cx_hlo_calls_check(const cx_hlo_calls *calls,
                                const cx_hlo_module *m) CALX_MUST_USE;

#endif
