// hlo/ops: the rows of ops.def as tables.
#ifndef CX_HLO_OPS_H
#define CX_HLO_OPS_H

#include "hlo/module.h"

typedef struct cx_hlo_attr_rule {
  cx_hlo_attr_id id;
  bool required;
  int64_t fallback;  // the default value; of a list: of each element
} cx_hlo_attr_rule;

// A count n >= 0 means exactly n; n < 0 means at least -1 - n.
typedef struct cx_hlo_op_info {
  const char *name;  // "stablehlo.add"
  int operands, results, regions;
  unsigned elems;  // CX_HLO_CLASS_…; 0: the rule decides
  const cx_hlo_attr_rule *attrs;
  size_t n_attrs;
} cx_hlo_op_info;

typedef struct cx_hlo_name_info {
  const char *name;
  cx_hlo_attr_kind kind;
  int detail;
} cx_hlo_name_info;

typedef enum cx_hlo_field_kind {
  CX_HLO_FIELD_INTS,  // a list, not printed when it is empty
  CX_HLO_FIELD_LIST,  // a list, always printed
  CX_HLO_FIELD_INT,   // an integer
  CX_HLO_FIELD_FLAG,  // true or false
  CX_HLO_FIELD_ELEM,  // a bare element type
  CX_HLO_FIELD_REAL,  // a double
  CX_HLO_FIELD_MODE   // a value of CX_HLO_ACCURACY_MODE
} cx_hlo_field_kind;

typedef struct cx_hlo_field {
  const char *name;
  cx_hlo_field_kind kind;
  size_t offset;
} cx_hlo_field;

typedef struct cx_hlo_struct_info {
  const char *name;  // "dot"
  size_t size;
  const cx_hlo_field *fields;
  size_t n_fields;
} cx_hlo_struct_info;

const cx_hlo_op_info *cx_hlo_op_info_of(cx_hlo_op_kind kind);
const cx_hlo_name_info *cx_hlo_name_info_of(cx_hlo_attr_id id);
cx_hlo_struct_info cx_hlo_struct_info_of(cx_hlo_struct which);
const char *cx_hlo_op_short(cx_hlo_op_kind kind);  // "add"

cx_hlo_op_kind cx_hlo_op_find(const char *s, size_t n);  // OTHER: none

const char *cx_hlo_choice_name(cx_hlo_choice family);  // "precision"
// The value's name; NULL: out of range.
const char *cx_hlo_choice_value(cx_hlo_choice family, int64_t value);
int64_t cx_hlo_choice_find(cx_hlo_choice family, const char *s,
                           size_t n);                         // -1
cx_hlo_choice cx_hlo_choice_family(const char *s, size_t n);  // COUNT: none
// Of the choices of CX_HLO_A_COMPARE_TYPE: zeros have signs, and NaN an order.
enum { CX_HLO_TOTALORDER = 2 };
cx_hlo_struct cx_hlo_struct_find(const char *s, size_t n);  // COUNT: none

#define CX_HLO_CLASS_BOOL 1u
#define CX_HLO_CLASS_SIGNED 2u
#define CX_HLO_CLASS_UNSIGNED 4u
#define CX_HLO_CLASS_FLOAT 8u
#define CX_HLO_CLASS_COMPLEX 16u
#define CX_HLO_CLASS_INDEX 32u
#define CX_HLO_CLASS_ANY ~0u  // in ops.def: types that are no tensor, too
unsigned cx_hlo_elem_class(cx_hlo_elem e);  // 0: no tensor has it

#endif
