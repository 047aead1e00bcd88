// hlo/bytecode: what the files of the bytecode reader share.
//
// A file is a list of sections: strings, names of dialects and operations,
// attributes and types as numbered entries, properties, and the program.
// Entries refer to each other by number, so they are read when they are first
// used and kept.
#ifndef CX_HLO_BYTECODE_READER_H
#define CX_HLO_BYTECODE_READER_H

#include "hlo/bytecode.h"

// So many bytes of an attribute, a type or a name are one part of it.
enum { CX_HLO_PART_BYTES = 256 };

typedef struct cx_hlo_bytes {
  const char *at, *end;
} cx_hlo_bytes;

typedef enum cx_hlo_dialect {
  CX_HLO_DIALECT_OTHER,
  CX_HLO_DIALECT_BUILTIN,
  CX_HLO_DIALECT_VHLO,
  CX_HLO_DIALECT_SDY,
  CX_HLO_DIALECT_STABLEHLO  // beside operations of Shardy
} cx_hlo_dialect;

// The last operation whose attributes were made of properties or a dictionary:
// the next ones that have the same have its attributes.
typedef struct cx_hlo_made {
  const struct cx_hlo_op_name *name;  // NULL: none was made yet
  const struct cx_hlo_bytes_properties *properties;
  const cx_hlo_op *op;
  size_t expanded;  // what a use adds to the reader's
  size_t depth;     // the reader's: entries nest deeper where it is deeper
} cx_hlo_made;

// An attribute or a type.
typedef struct cx_hlo_bytes_entry {
  cx_hlo_bytes bytes;
  cx_hlo_dialect dialect;
  bool is_text;             // else the dialect's own encoding
  bool is_read, is_open;    // open: its parts are being read
  size_t parts;             // in it, all that it refers to written out
  size_t height;            // depth of its nesting
  const cx_hlo_attr *attr;  // or
  cx_hlo_any type;          // or
  const cx_hlo_loc *loc;    // where it has_loc; NULL: no file is known
  bool has_loc;
  size_t loc_parts;   // what a use of the location adds
  cx_hlo_made *made;  // of a dictionary; NULL: of no operation
} cx_hlo_bytes_entry;

// One property of an operation of VHLO: an attribute of ops.def's operation, or
// a field of one.
typedef struct cx_hlo_property {
  const char *name;
  cx_hlo_attr_id attr;
  const cx_hlo_field *field;  // NULL: the attribute itself
} cx_hlo_property;

enum { CX_HLO_MOST_PROPERTIES = 20 };

// Operations that the reader treats in a way of their own.
typedef enum cx_hlo_op_role {
  CX_HLO_ROLE_PLAIN,
  CX_HLO_ROLE_MODULE,
  CX_HLO_ROLE_FUNC,
  CX_HLO_ROLE_CAST
} cx_hlo_op_role;

// The name of an operation of the file.
typedef struct cx_hlo_op_name {
  cx_hlo_str name;  // StableHLO's where the file has VHLO's
  cx_hlo_op_kind kind;
  cx_hlo_op_role role;
  bool is_vhlo, is_registered;
  unsigned version;             // of a VHLO operation: the 2 of gather_v2
  cx_hlo_property *properties;  // NULL: not made yet
  size_t n_properties;
} cx_hlo_op_name;

// Properties, which many operations may share.
typedef struct cx_hlo_bytes_properties {
  cx_hlo_bytes bytes;
  cx_hlo_made made;  // of operations that have no dictionary
} cx_hlo_bytes_properties;

// A value by its number. Its type's parts are here, because a use would wait
// for the value's memory otherwise.
typedef struct cx_hlo_numbered {
  cx_hlo_value *value;  // NULL: not defined yet
  size_t parts;         // what a use adds to the reader's `expanded`
} cx_hlo_numbered;

typedef struct cx_hlo_bytecode {
  cx_hlo_reader *r;
  uint64_t version;
  cx_hlo_bytes sections[9];
  cx_hlo_str *strings;
  struct cx_hlo_dialect_name {
    cx_hlo_str name;
    cx_hlo_dialect kind;
  } * dialects;
  cx_hlo_op_name *op_names;
  cx_hlo_bytes_entry *attrs, *types;
  cx_hlo_bytes_properties *properties;
  size_t n_strings, n_dialects, n_op_names, n_attrs, n_types, n_properties;
  size_t parts;   // of the entry that is being read
  size_t n_open;  // entries that are being read, each inside of the one before
  size_t declared;  // values of all regions so far
  // The values that can be used now; those of an isolated operation begin at
  // `scope`.
  CX_HLO_STACK(cx_hlo_numbered) values;
  size_t scope;
} cx_hlo_bytecode;

// INVALID_ARGUMENT at a byte of the file; UNIMPLEMENTED.
#define CX_HLO_BYTES_FAIL(b, at, ...) CX_HLO_FAIL((b)->r, at, __VA_ARGS__)
#define CX_HLO_BYTES_UNKNOWN(b, at, ...) \
  cx_hlo_scan_fail(&(b)->r->scan, at, CALX_UNIMPLEMENTED, __VA_ARGS__)

// ---- numbers ----

calx_status *cx_hlo_bytes_long(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               uint64_t *out) CALX_MUST_USE;
// A number of 1 to 9 bytes. One of n bytes, up to 8, has n - 1 zeros and a one
// at its low end. Most have one byte or two.
static inline calx_status *cx_hlo_bytes_number(cx_hlo_bytecode *b,
                                               cx_hlo_bytes *in, uint64_t *out)
{
  const char *at = in->at;
  if (in->end - at < 2 || (*at & 3) == 0) return cx_hlo_bytes_long(b, in, out);
  const unsigned low = (unsigned char)at[0], high = (unsigned char)at[1];
  *out = low & 1 ? low >> 1 : (high << 8 | low) >> 2;
  in->at = at + 2 - (low & 1);
  return NULL;
}
// One with a sign.
calx_status *cx_hlo_bytes_signed(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 int64_t *out) CALX_MUST_USE;
// A float of 64 bits, as a number with a sign.
calx_status *cx_hlo_bytes_double(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 double *out) CALX_MUST_USE;
// The errors of the two functions below.
calx_status *cx_hlo_bytes_no_count(cx_hlo_bytecode *b, const char *at,
                                   size_t left, uint64_t v) CALX_MUST_USE;
calx_status *cx_hlo_bytes_no_index(cx_hlo_bytecode *b, const char *at,
                                   size_t limit, const char *what,
                                   uint64_t v) CALX_MUST_USE;
// A number of things that have a byte or more each in the rest of the input.
static inline calx_status *cx_hlo_bytes_count(cx_hlo_bytecode *b,
                                              cx_hlo_bytes *in, size_t *out)
{
  const char *at = in->at;
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  const size_t left = (size_t)(in->end - in->at);
  *out = (size_t)v;
  return v <= left ? NULL : cx_hlo_bytes_no_count(b, at, left, v);
}
// A number below `limit`; `what` it is the number of.
static inline calx_status *cx_hlo_bytes_index(cx_hlo_bytecode *b,
                                              cx_hlo_bytes *in, size_t limit,
                                              const char *what, size_t *out)
{
  const char *at = in->at;
  uint64_t v = 0;
  CALX_TRY(cx_hlo_bytes_number(b, in, &v));
  *out = (size_t)v;
  return v < limit ? NULL : cx_hlo_bytes_no_index(b, at, limit, what, v);
}
// The next n bytes.
calx_status *cx_hlo_bytes_take(cx_hlo_bytecode *b, cx_hlo_bytes *in, uint64_t n,
                               cx_hlo_bytes *out) CALX_MUST_USE;
// A section: its number and contents.
calx_status *cx_hlo_bytes_section(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                  size_t *out_id,
                                  cx_hlo_bytes *out) CALX_MUST_USE;

// Counts parts of attributes and types that an operation uses; there is a bound
// for all of the file together.
calx_status *cx_hlo_bytes_expand(cx_hlo_bytecode *b, size_t parts,
                                 const char *at) CALX_MUST_USE;
// So many parts, and one more for each part of the file.
size_t cx_hlo_bytes_bound(const cx_hlo_bytecode *b, size_t parts);

// ---- entries, by their number, which stands next ----

calx_status *cx_hlo_bytes_string(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                 cx_hlo_str *out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_type(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_any *out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_attr(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               const cx_hlo_attr **out) CALX_MUST_USE;
// The same, by a number that was read.
calx_status *cx_hlo_bytes_type_at(cx_hlo_bytecode *b, size_t i, const char *at,
                                  cx_hlo_any *out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_attr_at(cx_hlo_bytecode *b, size_t i, const char *at,
                                  const cx_hlo_attr **out) CALX_MUST_USE;
// The location with this number; NULL: no file is known.
calx_status *cx_hlo_bytes_loc(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                              const cx_hlo_loc **out) CALX_MUST_USE;

// ---- what an entry holds ----

calx_status *cx_hlo_bytes_read_type(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                                    cx_hlo_any *out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_read_attr(cx_hlo_bytecode *b, cx_hlo_bytes_entry *e,
                                    const cx_hlo_attr **out) CALX_MUST_USE;

// The next type, which must be an element type.
calx_status *cx_hlo_bytes_elem(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                               cx_hlo_elem *out) CALX_MUST_USE;
// A literal, and an array of integers, from behind their code.
calx_status *cx_hlo_bytes_read_dense(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     const cx_hlo_attr **out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_read_array(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     const cx_hlo_attr **out) CALX_MUST_USE;

// What the module keeps as text: an attribute of Shardy, a mesh of VHLO, from
// behind their code; a quantized element type.
calx_status *cx_hlo_bytes_read_sdy(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                   uint64_t code,
                                   const cx_hlo_attr **out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_read_mesh(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                    uint64_t code,
                                    const cx_hlo_attr **out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_read_quantized(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                         bool per_axis,
                                         cx_hlo_str *out) CALX_MUST_USE;
// The text of an entry, which is freed; as an attribute. The texts of a file
// have a bound together; check_text() checks one that is not complete yet.
calx_status *cx_hlo_bytes_take_text(cx_hlo_bytecode *b, const char *at,
                                    cx_text *text,
                                    cx_hlo_str *out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_text_attr(cx_hlo_bytecode *b, const char *at,
                                    cx_text *text,
                                    const cx_hlo_attr **out) CALX_MUST_USE;
calx_status *cx_hlo_bytes_check_text(cx_hlo_bytecode *b, const char *at,
                                     const cx_text *text) CALX_MUST_USE;

// ---- operations ----

// Gives the operation StableHLO's name.
calx_status *cx_hlo_vhlo_name(cx_hlo_bytecode *b, cx_hlo_str dialect,
                              cx_hlo_str name,
                              cx_hlo_op_name *out) CALX_MUST_USE;
// Fills in the operation's properties, once.
calx_status *cx_hlo_vhlo_properties(cx_hlo_bytecode *b,
                                    cx_hlo_op_name *op) CALX_MUST_USE;
// The same of an operation of this name, kind and version, into room for
// CX_HLO_MOST_PROPERTIES. How many there are.
size_t cx_hlo_vhlo_list(const cx_hlo_op_name *op, cx_hlo_property *out);
// The lowest version that has all that the operation uses.
unsigned cx_hlo_vhlo_version(const cx_hlo_op *op);
// The struct whose fields are properties; COUNT: the attribute is one itself.
cx_hlo_struct cx_hlo_vhlo_struct(const cx_hlo_name_info *info);
// The properties of an operation and its other attributes onto named_stack, as
// StableHLO's attributes. NULL: it has none.
calx_status *cx_hlo_vhlo_push(cx_hlo_bytecode *b, cx_hlo_op_name *name,
                              const cx_hlo_bytes_properties *properties,
                              const cx_hlo_attr *dict,
                              const char *at) CALX_MUST_USE;
// The properties of an operation of another dialect, onto named_stack.
calx_status *cx_hlo_other_push(cx_hlo_bytecode *b, cx_hlo_str name,
                               cx_hlo_bytes properties,
                               const char *at) CALX_MUST_USE;
// Where an operation stands.
typedef enum cx_hlo_surrounding {
  CX_HLO_IN_FILE,
  CX_HLO_IN_MODULE,
  CX_HLO_IN_FUNCTION,
  CX_HLO_IN_OPERATION
} cx_hlo_surrounding;

// Of the values that a region defines: the next one's number, and the last's
// plus 1.
typedef struct cx_hlo_numbers {
  size_t next, end;
} cx_hlo_numbers;

// An operation that is read but not made.
typedef struct cx_hlo_draft {
  cx_hlo_parts p;  // its operands lie on use_stack
  cx_hlo_op_name *name;
  const cx_hlo_attr *dict;              // NULL: none
  cx_hlo_bytes_entry *dict_entry;       // where it stands
  cx_hlo_bytes_properties *properties;  // NULL: none
  cx_hlo_op *op;                        // with its operands; NULL: not made
  cx_hlo_bytes results;                 // their types
  size_t n_results;
} cx_hlo_draft;

// Its results and operands; its dictionary and properties.
calx_status *cx_hlo_bytes_read_values(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                      unsigned has,
                                      cx_hlo_draft *d) CALX_MUST_USE;
calx_status *cx_hlo_bytes_read_attrs(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                     unsigned has,
                                     cx_hlo_draft *d) CALX_MUST_USE;
// Makes the operation in `block`, and its values.
calx_status *cx_hlo_bytes_make(cx_hlo_bytecode *b, cx_hlo_draft *d,
                               cx_hlo_block *block, cx_hlo_surrounding where,
                               cx_hlo_numbers *n) CALX_MUST_USE;
// Name and attributes of the module.
calx_status *cx_hlo_bytes_take_module(cx_hlo_bytecode *b,
                                      cx_hlo_bytes properties,
                                      const cx_hlo_attr *dict) CALX_MUST_USE;
// All in a type, which is gone through again for each use. A tensor: 0.
size_t cx_hlo_bytes_parts(const cx_hlo_any *type);
// Gives a value the next number of its region.
static inline calx_status *cx_hlo_bytes_define(cx_hlo_bytecode *b,
                                               cx_hlo_numbers *n,
                                               cx_hlo_value *value,
                                               const char *at)
{
  if (n->next == n->end) {
    return CX_HLO_BYTES_FAIL(b, at, "the region has more values than it says");
  }
  const bool is_tensor = value->type.non_tensor == NULL;
  b->values.v[n->next++] =
      (cx_hlo_numbered){ value,
                         is_tensor ? 0 : cx_hlo_bytes_parts(&value->type) };
  return NULL;
}
// The orders in which n values are used: nothing that a program means.
calx_status *cx_hlo_bytes_skip_orders(cx_hlo_bytecode *b, cx_hlo_bytes *in,
                                      size_t n) CALX_MUST_USE;
// The program.
calx_status *cx_hlo_bytes_read_program(cx_hlo_bytecode *b,
                                       cx_hlo_bytes program) CALX_MUST_USE;

#endif
