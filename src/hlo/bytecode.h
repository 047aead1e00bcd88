// hlo/bytecode: programs from MLIR's bytecode with the VHLO dialect, as JAX and
// other frontends send them to a plugin.
//
// Makes the module that cx_hlo_parse() makes of the same program's text. The
// bytes may be hostile, so every size, index and nesting is checked.
// cx_hlo_verify() checks the program that was read. Sources: MLIR's
// docs/BytecodeFormat.md; StableHLO's docs/vhlo.md and VhloBytecode.cpp.
#ifndef CX_HLO_BYTECODE_H
#define CX_HLO_BYTECODE_H

#include "hlo/reader.h"

// Whether the bytes begin as a file of MLIR bytecode does.
bool cx_hlo_is_bytecode(const char *bytes, size_t size);

// Fills the reader's module from its file, which is bytecode.
calx_status *cx_hlo_read_bytecode(cx_hlo_reader *r) CALX_MUST_USE;

#endif
