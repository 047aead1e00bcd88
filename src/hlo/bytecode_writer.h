// hlo/bytecode: what the files of the bytecode writer share.
//
// Equal strings, attributes, types and properties are one entry, numbered in
// the order of their first use. An entry is encoded at the end of `out`, behind
// what is being written there, and moves to its pool when it is complete. So
// entries inside of others need no memory of their own.
#ifndef CX_HLO_BYTECODE_WRITER_H
#define CX_HLO_BYTECODE_WRITER_H

#include "base/text.h"
#include "hlo/bytecode_codes.h"
#include "hlo/bytecode_reader.h"

// Strings of bytes, each once.
typedef struct cx_hlo_pool {
  cx_text bytes;
  struct cx_hlo_pool_item {
    size_t at, size;
    uint32_t tag;  // a part of what makes two items equal
  } * items;
  size_t n, capacity;
  uint32_t *slots;  // a hash table of items, which are numbered from 1 here
  size_t n_slots;
} cx_hlo_pool;

// The properties of an operation in its two versions, listed when first used.
typedef struct cx_hlo_property_list {
  cx_hlo_property v[CX_HLO_MOST_PROPERTIES];
  size_t n;
  bool is_made;
} cx_hlo_property_list;

// Dialects are written in this order; others follow.
enum { CX_HLO_WRITES_BUILTIN, CX_HLO_WRITES_VHLO };

typedef struct cx_hlo_bytecode_writer {
  calx_status *status;  // the first error
  bool in_chlo;         // the attributes of an operation of CHLO are written
  cx_text out;
  cx_hlo_pool strings, dialects, op_names, attrs, types, properties;
  // By the number of a value: its number in the file, in VHLO's type and in the
  // builtin one, which other dialects use.
  size_t *vhlo_values, *builtin_values;
  cx_hlo_property_list (*lists)[2];  // by the operation's kind
} cx_hlo_bytecode_writer;

// The number of an item that is equal to these bytes.
size_t cx_hlo_pool_add(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool,
                       uint32_t tag, const char *bytes, size_t size);
void cx_hlo_pool_free(cx_hlo_pool *pool);

// Keeps the first error.
#define CX_HLO_WRITE_FAIL(w, code, ...) \
  ((w)->status =                        \
       (w)->status != NULL ? (w)->status : cx_error(code, __VA_ARGS__))

// ---- numbers, at the end of `out` ----

void cx_hlo_write_number(cx_hlo_bytecode_writer *w, uint64_t v);
void cx_hlo_write_signed(cx_hlo_bytecode_writer *w, int64_t v);
void cx_hlo_write_double(cx_hlo_bytecode_writer *w, double v);
// What was written from `mark` on becomes a section.
void cx_hlo_write_section(cx_hlo_bytecode_writer *w, size_t mark, unsigned id);

// ---- entries ----

size_t cx_hlo_write_string(cx_hlo_bytecode_writer *w, cx_hlo_str s);
// The dialect of this name.
size_t cx_hlo_write_dialect(cx_hlo_bytecode_writer *w, const char *s, size_t n);
// What stands in `out` from `mark` on becomes an entry of a dialect; as text,
// one of the dialect that the text names.
size_t cx_hlo_write_entry(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool,
                          size_t dialect, size_t mark);
size_t cx_hlo_write_text_entry(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool,
                               size_t mark);

// The number of a type or an attribute. `vhlo`: in VHLO's form, else in that of
// the builtin dialect. What neither has is written as text.
size_t cx_hlo_write_type(cx_hlo_bytecode_writer *w, const cx_hlo_any *type,
                         bool vhlo);
size_t cx_hlo_write_elem(cx_hlo_bytecode_writer *w, cx_hlo_elem elem,
                         bool vhlo);
size_t cx_hlo_write_attr(cx_hlo_bytecode_writer *w, const cx_hlo_attr *attr,
                         bool vhlo);
size_t cx_hlo_write_dict(cx_hlo_bytecode_writer *w, const cx_hlo_named *items,
                         size_t n, bool vhlo, bool vhlo_values);
size_t cx_hlo_write_loc(cx_hlo_bytecode_writer *w, const cx_hlo_loc *loc);

// Attributes of VHLO that are made from values.
size_t cx_hlo_write_bool(cx_hlo_bytecode_writer *w, bool v);
size_t cx_hlo_write_int(cx_hlo_bytecode_writer *w, cx_hlo_elem elem, int64_t v);
size_t cx_hlo_write_text(cx_hlo_bytecode_writer *w, cx_hlo_str s);
size_t cx_hlo_write_type_attr(cx_hlo_bytecode_writer *w,
                              const cx_hlo_any *type);
size_t cx_hlo_write_enum(cx_hlo_bytecode_writer *w, uint64_t code, uint64_t v);
// n times the same.
size_t cx_hlo_write_repeated(cx_hlo_bytecode_writer *w, size_t item, size_t n);
// A tensor of i64 or i1; `each`: all elements are v[0].
size_t cx_hlo_write_ints(cx_hlo_bytecode_writer *w, cx_hlo_elem elem,
                         const int64_t *v, const int64_t *dims, size_t rank,
                         bool each);

// Which properties an operation of VHLO has in this version, and their entry.
const cx_hlo_property_list *cx_hlo_write_list(cx_hlo_bytecode_writer *w,
                                              cx_hlo_op_kind kind,
                                              unsigned version);
size_t cx_hlo_write_properties(cx_hlo_bytecode_writer *w, const cx_hlo_op *op,
                               const cx_hlo_property_list *list);
size_t cx_hlo_write_func_properties(cx_hlo_bytecode_writer *w,
                                    const cx_hlo_func *f);
// The program, as the section's contents.
void cx_hlo_write_program(cx_hlo_bytecode_writer *w, const cx_hlo_module *m);

#endif
