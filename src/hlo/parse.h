// hlo/parse: programs from text.
//
// Reads MLIR's generic form of everything and StableHLO's pretty forms, from
// any producer; of other dialects' pretty forms, Shardy's. Text is hostile:
// sizes and nesting are bounded, and what is wrong is told with line, column,
// the source line and a caret. What a program means is cx_hlo_verify()'s to
// say.
#ifndef CX_HLO_PARSE_H
#define CX_HLO_PARSE_H

#include "hlo/module.h"

// `file_name` is for messages. The text may be freed afterwards.
calx_status *cx_hlo_parse(const char *text, size_t size, const char *file_name,
                          cx_hlo_module **out) CALX_MUST_USE;

// What a caller must know of a program to run it, whatever form it is in.
typedef struct cx_hlo_signature {
  char *name;  // of the entry: `main`, or the only function
  cx_hlo_type *params, *results;
  size_t n_params, n_results;
  // The module's mhlo.num_replicas and mhlo.num_partitions; 0: not said.
  int64_t num_replicas, num_partitions;
  cx_arena arena;
} cx_hlo_signature;

// Leaves bodies alone: they may hold anything whose braces balance.
// UNIMPLEMENTED: the entry takes or returns something that is no plain tensor.
calx_status *cx_hlo_parse_signature(const char *text, size_t size,
                                    const char *file_name,
                                    cx_hlo_signature *out) CALX_MUST_USE;
void cx_hlo_signature_free(cx_hlo_signature *signature);

#endif
