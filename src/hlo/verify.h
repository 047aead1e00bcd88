// hlo/verify: whether a program means something.
#ifndef CX_HLO_VERIFY_H
#define CX_HLO_VERIFY_H

#include "hlo/module.h"

// Every use comes after its definition and inside its region; every operation
// keeps its rule in ops.def and has the result types that the rule gives;
// functions return what they say; calls name functions that take and return
// what the call says; there is an entry. INVALID_ARGUMENT says what is wrong
// and where; UNIMPLEMENTED is for what StableHLO has and calx does not.
calx_status *cx_hlo_verify(const cx_hlo_module *m) CALX_MUST_USE;

#endif
