// hlo/ops: the rows of ops.def as tables.
#ifndef CX_HLO_OPS_H
#define CX_HLO_OPS_H

#include "hlo/module.h"

typedef struct cx_hlo_infer cx_hlo_infer;
typedef calx_status *cx_hlo_infer_fn(cx_hlo_infer *in);

typedef struct cx_hlo_attr_rule {
  cx_hlo_attr_id id;
  bool required;
  int64_t fallback;  // its default; of a list: of each of its elements
} cx_hlo_attr_rule;

// Counts: n >= 0 is exactly n; less is -1 - n or more.
typedef struct cx_hlo_op_info {
  const char *name;  // "stablehlo.add"
  int operands, results, regions;
  unsigned elems;         // CX_HLO_CLASS_…; 0: the rule says
  cx_hlo_infer_fn *rule;  // NULL: there is none yet
  const cx_hlo_attr_rule *attrs;
  size_t n_attrs;
} cx_hlo_op_info;

typedef struct cx_hlo_name_info {
  const char *name;
  cx_hlo_attr_kind kind;
  int detail;
} cx_hlo_name_info;

typedef enum cx_hlo_field_kind {
  CX_HLO_FIELD_INTS,  // a list, left out when it is empty
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
bool cx_hlo_count_ok(int rule, size_t n);
const char *cx_hlo_op_short(cx_hlo_op_kind kind);  // "add"
// "2", or "at least 1", for messages.
typedef struct cx_hlo_count_text {
  char s[32];
} cx_hlo_count_text;
cx_hlo_count_text cx_hlo_count(int rule);

// The operations by name. A table of its own for each reader, so that nothing
// is shared and nothing need be initialised before main().
typedef struct cx_hlo_op_names {
  unsigned char slots[512];
} cx_hlo_op_names;
void cx_hlo_op_names_fill(cx_hlo_op_names *names);
cx_hlo_op_kind cx_hlo_op_find(const cx_hlo_op_names *names, const char *s,
                              size_t n);  // OTHER: none

const char *cx_hlo_choice_name(cx_hlo_choice family);  // "precision"
// The value's name; NULL: out of range.
const char *cx_hlo_choice_value(cx_hlo_choice family, int64_t value);
int64_t cx_hlo_choice_find(cx_hlo_choice family, const char *s,
                           size_t n);                         // -1
cx_hlo_choice cx_hlo_choice_family(const char *s, size_t n);  // COUNT: none
cx_hlo_struct cx_hlo_struct_find(const char *s, size_t n);    // COUNT: none

#define CX_HLO_CLASS_BOOL 1u
#define CX_HLO_CLASS_SIGNED 2u
#define CX_HLO_CLASS_UNSIGNED 4u
#define CX_HLO_CLASS_FLOAT 8u
#define CX_HLO_CLASS_COMPLEX 16u
#define CX_HLO_CLASS_INDEX 32u
unsigned cx_hlo_elem_class(cx_hlo_elem e);  // 0: no tensor has it

#endif
