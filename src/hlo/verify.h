// hlo/verify: whether a program is valid.
#ifndef CX_HLO_VERIFY_H
#define CX_HLO_VERIFY_H

#include "hlo/module.h"

// Checks that values are defined before they are used, and in a region around
// the use; that operations obey their rules in ops.def and have the result
// types that the rules give; that functions return the types that they declare;
// that calls fit the functions; and that there is an entry. INVALID_ARGUMENT
// says what is wrong, and where. UNIMPLEMENTED: StableHLO allows it, calx does
// not have it.
calx_status *cx_hlo_verify(const cx_hlo_module *m) CALX_MUST_USE;

#endif
