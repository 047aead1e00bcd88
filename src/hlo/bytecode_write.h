// hlo/bytecode: programs as MLIR's bytecode with the VHLO dialect, the portable
// artifact that StableHLO's readers accept (deserialize_portable_artifact).
//
// cx_hlo_parse() reads it back to the same program. An attribute that says what
// is the default is absent afterwards. Each operation is written in the lowest
// version of VHLO that has what it uses. Operations of other dialects (sdy,
// chlo) stand between VHLO's, as in the mixed artifacts that JAX sends. Equal
// modules give equal bytes.
#ifndef CX_HLO_BYTECODE_WRITE_H
#define CX_HLO_BYTECODE_WRITE_H

#include "base/text.h"
#include "hlo/module.h"

// Appends the bytes. INVALID_ARGUMENT: an operation lacks a required attribute,
// or one is of another kind; UNIMPLEMENTED: bytecode has no such thing.
calx_status *cx_hlo_write_bytecode(const cx_hlo_module *m,
                                   cx_text *out) CALX_MUST_USE;

#endif
