// hlo/bytecode: the numbers that the format, the builtin dialect and VHLO give
// to things. The reader and the writer share them.
//
// Sources: MLIR's docs/BytecodeFormat.md and BuiltinDialectBytecode.td;
// StableHLO's VhloBytecode.cpp.
#ifndef CX_HLO_BYTECODE_CODES_H
#define CX_HLO_BYTECODE_CODES_H

#include "hlo/module.h"

// The first bytes of a file, and the newest version of the format.
#define CX_HLO_BYTECODE_MAGIC "ML\xefR"
enum { CX_HLO_BYTECODE_MAGIC_SIZE = 4, CX_HLO_BYTECODE_NEWEST = 6 };

// ---- sections ----

enum {
  CX_HLO_SECTION_STRINGS,
  CX_HLO_SECTION_DIALECTS,
  CX_HLO_SECTION_ENTRIES,
  CX_HLO_SECTION_SIZES,
  CX_HLO_SECTION_PROGRAM,
  CX_HLO_SECTION_RESOURCES,
  CX_HLO_SECTION_RESOURCE_SIZES,
  CX_HLO_SECTION_DIALECT_VERSION,
  CX_HLO_SECTION_PROPERTIES,
  CX_HLO_SECTIONS
};

// What an operation has, as bits of the byte behind its name.
enum {
  CX_HLO_HAS_ATTRS = 1,
  CX_HLO_HAS_RESULTS = 2,
  CX_HLO_HAS_OPERANDS = 4,
  CX_HLO_HAS_SUCCESSORS = 8,
  CX_HLO_HAS_REGIONS = 16,
  CX_HLO_HAS_USE_ORDERS = 32,
  CX_HLO_HAS_PROPERTIES = 64
};

// ---- attributes ----

enum {
  CX_HLO_BUILTIN_ARRAY,
  CX_HLO_BUILTIN_DICT,
  CX_HLO_BUILTIN_STRING,
  CX_HLO_BUILTIN_TYPED_STRING,
  CX_HLO_BUILTIN_FLAT_SYMBOL,
  CX_HLO_BUILTIN_SYMBOL,
  CX_HLO_BUILTIN_TYPE,
  CX_HLO_BUILTIN_UNIT,
  CX_HLO_BUILTIN_INTEGER,
  CX_HLO_BUILTIN_FLOAT,
  CX_HLO_BUILTIN_LOC_CALL,
  CX_HLO_BUILTIN_LOC_FILE,
  CX_HLO_BUILTIN_LOC_FUSED,
  CX_HLO_BUILTIN_LOC_FUSED_MORE,
  CX_HLO_BUILTIN_LOC_NAME,
  CX_HLO_BUILTIN_LOC_UNKNOWN,
  CX_HLO_BUILTIN_RESOURCE,
  CX_HLO_BUILTIN_DENSE_ARRAY,
  CX_HLO_BUILTIN_DENSE
};

enum {
  CX_HLO_VHLO_ARRAY = 1,
  CX_HLO_VHLO_BOOL,
  CX_HLO_VHLO_DIRECTION,
  CX_HLO_VHLO_COMPARE_TYPE,
  CX_HLO_VHLO_API_VERSION,
  CX_HLO_VHLO_DICT,
  CX_HLO_VHLO_FFT,
  CX_HLO_VHLO_FLOAT,
  CX_HLO_VHLO_INTEGER,
  CX_HLO_VHLO_ALIAS,
  CX_HLO_VHLO_PRECISION,
  CX_HLO_VHLO_RNG_ALGORITHM,
  CX_HLO_VHLO_RNG_DISTRIBUTION,
  CX_HLO_VHLO_STRING,
  CX_HLO_VHLO_TENSOR,
  CX_HLO_VHLO_TRANSPOSE,
  CX_HLO_VHLO_TYPE,
  CX_HLO_VHLO_BOUNDS,
  CX_HLO_VHLO_ACCURACY_MODE,
  CX_HLO_VHLO_ACCURACY,
  CX_HLO_VHLO_SUB_AXIS,
  CX_HLO_VHLO_AXIS_REF,
  CX_HLO_VHLO_MESH_AXES,
  CX_HLO_VHLO_MESH_AXIS,
  CX_HLO_VHLO_MESH
};

// The enumeration of an attribute of VHLO; COUNT: it is none. And the way back.
cx_hlo_choice cx_hlo_vhlo_choice(uint64_t code);
uint64_t cx_hlo_vhlo_choice_code(cx_hlo_choice family);

// ---- types ----

enum {
  CX_HLO_BUILTIN_T_INTEGER,
  CX_HLO_BUILTIN_T_INDEX,
  CX_HLO_BUILTIN_T_FUNCTION,
  CX_HLO_BUILTIN_T_COMPLEX = 9,
  CX_HLO_BUILTIN_T_NONE = 12,
  CX_HLO_BUILTIN_T_TENSOR,
  CX_HLO_BUILTIN_T_ENCODED,
  CX_HLO_BUILTIN_T_TUPLE
};

enum {
  CX_HLO_VHLO_T_COMPLEX = 1,
  CX_HLO_VHLO_T_FUNCTION = 8,
  CX_HLO_VHLO_T_TENSOR = 20,
  CX_HLO_VHLO_T_ENCODED,
  CX_HLO_VHLO_T_TOKEN,
  CX_HLO_VHLO_T_TUPLE,
  CX_HLO_VHLO_T_QUANTIZED,
  CX_HLO_VHLO_T_UNRANKED,
  CX_HLO_VHLO_T_QUANTIZED_AXIS = 30,
  CX_HLO_VHLO_T_NONE = 33,
  CX_HLO_VHLO_T_BUFFER = 41,
  CX_HLO_VHLO_T_FUTURE
};

enum { CX_HLO_NO_CODE = 255 };

// The element types that are a number alone. INVALID, CX_HLO_NO_CODE: it is
// another type.
cx_hlo_elem cx_hlo_builtin_elem(uint64_t code);
cx_hlo_elem cx_hlo_vhlo_elem(uint64_t code);
uint64_t cx_hlo_builtin_elem_code(cx_hlo_elem elem);
uint64_t cx_hlo_vhlo_elem_code(cx_hlo_elem elem);

#endif
