// hlo/print: programs as text, in MLIR's generic form only.
//
// One spelling for every operation, which all consumers accept, of StableHLO
// 1.0 where the program uses nothing newer. Equal modules print equal bytes:
// names are numbers in order of appearance, attributes stand in the order of
// ops.def.
#ifndef CX_HLO_PRINT_H
#define CX_HLO_PRINT_H

#include "base/text.h"
#include "hlo/module.h"

typedef struct cx_hlo_print_options {
  bool no_locations;  // leaves out loc(…)
  // NULL, or gets the same text without loc(…) beside: for keys of caches.
  // Where there is no memory for it, `out` has failed.
  cx_text *without_locations;
} cx_hlo_print_options;

// No memory: cx_text_failed(out).
void cx_hlo_print(const cx_hlo_module *m, cx_text *out);
void cx_hlo_print_with(const cx_hlo_module *m,
                       const cx_hlo_print_options *options, cx_text *out);

void cx_hlo_any_print(cx_text *out, const cx_hlo_any *type);
void cx_hlo_attr_print(cx_text *out, const cx_hlo_attr *attr);
// name = attribute; a unit attribute is its name alone.
void cx_hlo_named_print(cx_text *out, cx_hlo_str name, const cx_hlo_attr *attr);
void cx_hlo_dict_print(cx_text *out, const cx_hlo_named *items, size_t n);
// "…" with what must be escaped as \XX.
void cx_hlo_string_print(cx_text *out, cx_hlo_str s);

#endif
