// hlo/print: programs as text, in MLIR's generic form.
//
// All consumers accept the generic form. The text is StableHLO 1.0 unless the
// program uses something newer. Equal modules give equal bytes: values are
// numbered in order of appearance, and attributes are in the order of ops.def.
#ifndef CX_HLO_PRINT_H
#define CX_HLO_PRINT_H

#include "base/text.h"
#include "hlo/module.h"

typedef struct cx_hlo_print_options {
  bool no_locations;  // leaves out loc(…)
  // NULL, or receives the same text without loc(…), for the keys of caches. If
  // there is no memory for it, `out` fails.
  cx_text *without_locations;
} cx_hlo_print_options;

// No memory: cx_text_failed(out).
void cx_hlo_print(const cx_hlo_module *m, cx_text *out);
void cx_hlo_print_with(const cx_hlo_module *m,
                       const cx_hlo_print_options *options, cx_text *out);

// (inputs) -> result, or (inputs) -> (results)
void cx_hlo_function_print(cx_text *out, const cx_hlo_any *inputs,
                           size_t n_inputs, const cx_hlo_any *results,
                           size_t n_results);
void cx_hlo_any_print(cx_text *out, const cx_hlo_any *type);
void cx_hlo_attr_print(cx_text *out, const cx_hlo_attr *attr);
// name = attribute; a unit attribute is its name alone.
void cx_hlo_named_print(cx_text *out, cx_hlo_str name, const cx_hlo_attr *attr);
void cx_hlo_dict_print(cx_text *out, const cx_hlo_named *items, size_t n);
// "…"; other characters than printable ones are escaped as \XX.
void cx_hlo_string_print(cx_text *out, cx_hlo_str s);

#endif
