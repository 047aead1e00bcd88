// hlo/parse: programs from text and from bytecode.
//
// Reads MLIR's generic form of all dialects, and the pretty forms of StableHLO
// and Shardy; and MLIR's bytecode with VHLO, which is known by its first bytes
// (hlo/bytecode.h). What is read may be hostile, so sizes and nesting are
// bounded. Messages have the line, the column, the source line and a caret; of
// bytecode the number of the byte. cx_hlo_verify() checks the program that was
// read.
#ifndef CX_HLO_PARSE_H
#define CX_HLO_PARSE_H

#include "hlo/module.h"

// `file_name` is for messages. The text may be freed afterwards.
calx_status *cx_hlo_parse(const char *text, size_t size, const char *file_name,
                          cx_hlo_module **out) CALX_MUST_USE;

// What a caller needs to know to run a program.
typedef struct cx_hlo_signature {
  char *name;  // of the entry: `main`, or the only function
  cx_hlo_type *params, *results;
  size_t n_params, n_results;
  // The module's mhlo.num_replicas and mhlo.num_partitions; 0: not said.
  int64_t num_replicas, num_partitions;
  cx_arena arena;
} cx_hlo_signature;

// Of text it passes the bodies of functions: they may have any contents whose
// braces balance. Bytecode is read as a whole. UNIMPLEMENTED: the entry takes
// or returns something other than plain tensors.
calx_status *cx_hlo_parse_signature(const char *text, size_t size,
                                    const char *file_name,
                                    cx_hlo_signature *out) CALX_MUST_USE;
void cx_hlo_signature_free(cx_hlo_signature *signature);

#endif
