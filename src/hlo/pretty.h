// hlo/pretty: the pretty forms of operations.
//
// One row for each operation that has a pretty form: the keywords of its
// attributes, how its types are written, and functions for what is particular
// to it. parse_pretty.c reads what all forms have: operands, attributes in
// braces, types.
#ifndef CX_HLO_PRETTY_H
#define CX_HLO_PRETTY_H

#include "hlo/reader.h"

typedef enum cx_hlo_types_form {
  CX_HLO_TYPES_NONE = 0,  // the operation has no pretty form
  CX_HLO_TYPES_ALL,       // : (types) -> types, the only spelling
  CX_HLO_TYPES_SAME,      // : type, of every operand and of the result
  CX_HLO_TYPES_RESULT,    // : type, of the result
  CX_HLO_TYPES_COMPLEX,   // : type, of the result; the operands have its parts
  CX_HLO_TYPES_SELECT,    // : predicate, value
  CX_HLO_TYPES_PAIRWISE,  // : types, of the operands and of the results
  CX_HLO_TYPES_OPERANDS,  // : types, of the operands; there are no results
  CX_HLO_TYPES_VALUE      // the attribute `value` has it
} cx_hlo_types_form;

// word = value, the attribute's
typedef struct cx_hlo_keyword {
  const char *word;
  cx_hlo_attr_id id;
} cx_hlo_keyword;

typedef calx_status *cx_hlo_pretty_fn(cx_hlo_reader *r, cx_hlo_parts *p);

typedef struct cx_hlo_pretty {
  cx_hlo_types_form types;
  cx_hlo_keyword keywords[4];
  cx_hlo_pretty_fn *head;  // reads operands and keywords; NULL: as items
  cx_hlo_pretty_fn *tail;  // what follows the types
} cx_hlo_pretty;

const cx_hlo_pretty *cx_hlo_pretty_of(cx_hlo_op_kind kind);

// (item (',' item)*)?, item = use | keyword '=' value; in parentheses or not
calx_status *cx_hlo_pretty_items(cx_hlo_reader *r,
                                 cx_hlo_parts *p) CALX_MUST_USE;
// keyword '=' value (',' …)*
calx_status *cx_hlo_pretty_keywords(cx_hlo_reader *r,
                                    cx_hlo_parts *p) CALX_MUST_USE;
// ':' types; the types that are not written are pushed too.
calx_status *cx_hlo_pretty_types(cx_hlo_reader *r, cx_hlo_parts *p,
                                 cx_hlo_types_form form) CALX_MUST_USE;
// A value in the short spelling of the attribute's kind, pushed.
calx_status *cx_hlo_pretty_value(cx_hlo_reader *r,
                                 cx_hlo_attr_id id) CALX_MUST_USE;
// The types of the operands, pushed; nothing is read.
calx_status *cx_hlo_pretty_known_types(cx_hlo_reader *r,
                                       cx_hlo_parts *p) CALX_MUST_USE;
// word '='
calx_status *cx_hlo_pretty_word(cx_hlo_reader *r,
                                const char *word) CALX_MUST_USE;
// word
calx_status *cx_hlo_need_word(cx_hlo_reader *r, const char *word) CALX_MUST_USE;

// Heads and tails, by the operations they are for.
cx_hlo_pretty_fn cx_hlo_head_constant, cx_hlo_head_compare, cx_hlo_head_slice,
    cx_hlo_head_element, cx_hlo_head_precision, cx_hlo_head_custom_call,
    cx_hlo_head_call, cx_hlo_head_composite, cx_hlo_head_dot_general,
    cx_hlo_head_convolution, cx_hlo_head_reduce, cx_hlo_tail_reduce,
    cx_hlo_head_while, cx_hlo_tail_while;

#endif
