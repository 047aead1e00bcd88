// hlo/reader: what the files of the parser share.
//
// The parser is a recursive descent over MLIR's text. The comment of a function
// is the grammar rule that it reads. An operation is read into its parts first,
// in either form, and then made from them. Lists are collected on stacks of the
// reader and moved to the arena when they are complete.
#ifndef CX_HLO_READER_H
#define CX_HLO_READER_H

#include "base/alloc.h"
#include "hlo/attr.h"
#include "hlo/module.h"
#include "hlo/names.h"
#include "hlo/ops.h"
#include "hlo/scan.h"

enum {
  CX_HLO_DEEPEST = 128,        // nesting of regions, attributes and types
  CX_HLO_MOST_DIMS = 255,      // of a tensor
  CX_HLO_EXPANSION = 1 << 26,  // bytes of the uses of aliases, written out
  // Bytes of memory that any file may take, and more for each byte of it. An
  // operation of 6 bytes has 300 in memory, one of a text less for each byte.
  CX_HLO_MEMORY = 1 << 26,
  CX_HLO_MEMORY_PER_BYTE = 256
};

#define CX_HLO_STACK(type) \
  struct {                 \
    type *v;               \
    size_t n, capacity;    \
  }
// Pushes an item; a status.
#define CX_HLO_PUSH(stack, ...)                                             \
  (cx_grow(&(stack).v, &(stack).capacity, (stack).n + 1, sizeof *(stack).v) \
       ? ((stack).v[(stack).n++] = (__VA_ARGS__), (calx_status *)NULL)      \
       : cx_out_of_memory())
// Moves the items from `mark` on into the arena; a status.
#define CX_HLO_TAKE(reader, stack, mark, out)                                \
  cx_hlo_reader_take(reader, (stack).v, &(stack).n, mark, sizeof *(stack).v, \
                     out)

// A part of a list of results: %a:2 = …
typedef struct cx_hlo_group {
  cx_hlo_str name;
  size_t count;
  const char *at;
} cx_hlo_group;

// What #name or !name abbreviates. Aliases may use aliases, so a few lines
// could abbreviate more text than memory holds, and nest deeper than the stack
// allows.
typedef struct cx_hlo_alias {
  const cx_hlo_attr *attr;  // or
  cx_hlo_any type;
  size_t bytes;   // of its text, with all aliases in it written out
  size_t height;  // depth of its nesting
} cx_hlo_alias;

// A blob of the file's metadata.
typedef struct cx_hlo_resource {
  cx_hlo_str text;  // "0x…", with its quotes
  const cx_hlo_attr *attr;
  size_t uses;
} cx_hlo_resource;

// A use of a value. Its type, which is read later, must be that of the value.
typedef struct cx_hlo_use {
  cx_hlo_value *value;
  const char *at;
} cx_hlo_use;

typedef struct cx_hlo_reader {
  cx_hlo_scan scan;
  cx_hlo_module *module;
  bool heads_only;  // regions are not read
  size_t depth;
  size_t deepest;   // the largest depth since it was set
  size_t expanded;  // bytes of the uses of aliases so far
  cx_hlo_names values;
  cx_hlo_names types;  // !t = …; items are cx_hlo_alias
  cx_hlo_names attrs;  // #a = …; the same
  cx_hlo_names locs;  // #loc1 = loc(…); items are cx_hlo_loc, filled in later
  cx_hlo_names resources;  // items are cx_hlo_resource
  bool has_resources;      // the metadata was searched for
  CX_HLO_STACK(cx_hlo_any) any_stack;
  CX_HLO_STACK(cx_hlo_named) named_stack;
  CX_HLO_STACK(const cx_hlo_attr *) attr_stack;
  CX_HLO_STACK(int64_t) int_stack;
  CX_HLO_STACK(cx_hlo_group) group_stack;
  CX_HLO_STACK(cx_hlo_use) use_stack;
} cx_hlo_reader;

calx_status *cx_hlo_reader_start(cx_hlo_reader *r, const char *text,
                                 size_t size, const char *file) CALX_MUST_USE;
void cx_hlo_reader_free(cx_hlo_reader *r);  // and the module, where it has one
calx_status *cx_hlo_reader_take(cx_hlo_reader *r, const void *items, size_t *n,
                                size_t mark, size_t bytes,
                                void *out) CALX_MUST_USE;
// A copy of text in the arena.
calx_status *cx_hlo_reader_str(cx_hlo_reader *r, const char *s, size_t n,
                               cx_hlo_str *out) CALX_MUST_USE;
// Writes `attr`; an error where it is NULL, because there is no memory.
calx_status *cx_hlo_reader_attr(const cx_hlo_attr *attr,
                                const cx_hlo_attr **out) CALX_MUST_USE;
// open (item (',' item)*)? close
typedef calx_status *cx_hlo_item_fn(cx_hlo_reader *r);
calx_status *cx_hlo_read_items(cx_hlo_reader *r, const char *open, char close,
                               cx_hlo_item_fn *item) CALX_MUST_USE;
// Called around each nested construct. An error: it nests too deep.
calx_status *cx_hlo_reader_deeper(cx_hlo_reader *r) CALX_MUST_USE;
static inline void cx_hlo_reader_higher(cx_hlo_reader *r)
{
  r->depth--;
}

calx_status *cx_hlo_read_type(cx_hlo_reader *r, cx_hlo_any *out) CALX_MUST_USE;
// A type, pushed onto any_stack.
calx_status *cx_hlo_read_pushed_type(cx_hlo_reader *r) CALX_MUST_USE;
// '(' types ')' '->' (type | '(' types ')'), pushed onto any_stack. *out_inputs
// of them are inputs.
calx_status *cx_hlo_read_function_types(cx_hlo_reader *r,
                                        size_t *out_inputs) CALX_MUST_USE;
// type | '(' types ')', pushed: the results of a function type.
calx_status *cx_hlo_read_result_types(cx_hlo_reader *r) CALX_MUST_USE;
calx_status *cx_hlo_read_attr(cx_hlo_reader *r,
                              const cx_hlo_attr **out) CALX_MUST_USE;
// A number; `typed`: with (':' type)?. Without it, a ':' begins the types of an
// operation.
calx_status *cx_hlo_read_number(cx_hlo_reader *r, bool typed,
                                const cx_hlo_attr **out) CALX_MUST_USE;
// A string without a type.
calx_status *cx_hlo_read_string(cx_hlo_reader *r,
                                const cx_hlo_attr **out) CALX_MUST_USE;
// '[' (item (',' item)*)? ']'; `item` pushes onto attr_stack.
calx_status *cx_hlo_read_list(cx_hlo_reader *r, cx_hlo_item_fn *item,
                              const cx_hlo_attr **out) CALX_MUST_USE;
// '{' (name ('=' attribute)? (',' …)*)? '}', pushed onto named_stack; as an
// attribute.
calx_status *cx_hlo_read_dict(cx_hlo_reader *r) CALX_MUST_USE;
calx_status *cx_hlo_read_optional_dict(cx_hlo_reader *r) CALX_MUST_USE;
calx_status *cx_hlo_read_dict_attr(cx_hlo_reader *r,
                                   const cx_hlo_attr **out) CALX_MUST_USE;
// The name of a value of the family.
calx_status *cx_hlo_read_choice(cx_hlo_reader *r, cx_hlo_choice family,
                                const cx_hlo_attr **out) CALX_MUST_USE;
// dense<…> : type, from behind the word.
calx_status *cx_hlo_read_dense(cx_hlo_reader *r,
                               const cx_hlo_attr **out) CALX_MUST_USE;
// dense_resource<…> : type, from behind the word.
calx_status *cx_hlo_read_dense_resource(cx_hlo_reader *r,
                                        const cx_hlo_attr **out) CALX_MUST_USE;
// word or string, with its quotes
calx_status *cx_hlo_read_key(cx_hlo_reader *r, cx_hlo_str *out) CALX_MUST_USE;
// The blob of a key in the metadata of the file, which may follow later.
calx_status *cx_hlo_find_resource(cx_hlo_reader *r, cx_hlo_str key,
                                  const char *at,
                                  cx_hlo_resource **out) CALX_MUST_USE;
// The file's {-# … #-}.
calx_status *cx_hlo_skip_metadata(cx_hlo_reader *r) CALX_MUST_USE;
// #stablehlo…, from behind the '#'. TEXT where ops.def does not have it.
calx_status *cx_hlo_read_stablehlo(cx_hlo_reader *r, const char *from,
                                   const cx_hlo_attr **out) CALX_MUST_USE;
// loc(…), from behind the word. *out is NULL for an unknown location.
calx_status *cx_hlo_read_loc(cx_hlo_reader *r,
                             const cx_hlo_loc **out) CALX_MUST_USE;
// loc(…), or nothing.
calx_status *cx_hlo_read_trailing_loc(cx_hlo_reader *r,
                                      const cx_hlo_loc **out) CALX_MUST_USE;
// An alias definition ('#' or '!' is next), or the file's {-# … #-}.
calx_status *cx_hlo_read_alias(cx_hlo_reader *r) CALX_MUST_USE;
// The definition of an alias; *out is NULL where there is none.
calx_status *cx_hlo_use_alias(cx_hlo_reader *r, const cx_hlo_names *names,
                              cx_hlo_str name, const char *at,
                              const cx_hlo_alias **out) CALX_MUST_USE;
// '@' name or '@' string, in the arena.
calx_status *cx_hlo_read_symbol_name(cx_hlo_reader *r,
                                     cx_hlo_str *out) CALX_MUST_USE;
// The fields of a struct, from behind its '<'.
calx_status *cx_hlo_read_struct(cx_hlo_reader *r, cx_hlo_struct which,
                                const cx_hlo_attr **out) CALX_MUST_USE;
// [b, f, 0]x[o, i, 0]->[b, f, 0]
calx_status *cx_hlo_read_conv_sides(cx_hlo_reader *r,
                                    const cx_hlo_attr **out) CALX_MUST_USE;
// Whether each dimension of a convolution has one meaning.
calx_status *cx_hlo_check_conv(cx_hlo_reader *r, const char *at,
                               const cx_hlo_conv_numbers *c) CALX_MUST_USE;
// A list of integers in brackets, in the arena.
calx_status *cx_hlo_read_ints(cx_hlo_reader *r, cx_hlo_ints *out) CALX_MUST_USE;
// The text from `from` to the cursor, as an attribute.
calx_status *cx_hlo_read_text(cx_hlo_reader *r, const char *from,
                              const cx_hlo_attr **out) CALX_MUST_USE;

// ---- operations ----

// Regions that are read before their operation is made.
typedef struct cx_hlo_region_list {
  cx_hlo_region region;
  struct cx_hlo_region_list *next;
} cx_hlo_region_list;

// The parts of an operation that is not made yet.
typedef struct cx_hlo_parts {
  const char *at;
  cx_hlo_str name;
  cx_hlo_op_kind kind;
  size_t groups, uses, named, types;  // where its parts begin on the stacks
  size_t n_inputs;                    // of the types
  cx_hlo_region_list *regions, *last_region;
  size_t n_regions;
  const cx_hlo_loc *loc;
} cx_hlo_parts;

// The arguments of a block: n names on group_stack, n types on any_stack.
typedef struct cx_hlo_block_args {
  size_t groups, types, n;
} cx_hlo_block_args;

calx_status *cx_hlo_read_parts(cx_hlo_reader *r, cx_hlo_parts *p) CALX_MUST_USE;
// Makes the operation from the items on the stacks, and removes them.
calx_status *cx_hlo_make_op(cx_hlo_reader *r, const cx_hlo_parts *p,
                            cx_hlo_block *block) CALX_MUST_USE;
// Moves the attributes from p->named on from named_stack to the operation.
calx_status *cx_hlo_set_attrs(cx_hlo_reader *r, const cx_hlo_parts *p,
                              cx_hlo_op *op) CALX_MUST_USE;
void cx_hlo_move_region(cx_hlo_region *from, cx_hlo_region *to);

// "func.func" made of its parts; a pretty one, from behind its word.
calx_status *cx_hlo_make_func(cx_hlo_reader *r,
                              const cx_hlo_parts *p) CALX_MUST_USE;
calx_status *cx_hlo_read_func(cx_hlo_reader *r) CALX_MUST_USE;
// Of the attributes on named_stack from `mark` on: find_named() gives that of
// this name and kind, or NULL. take_named() moves all but the known ones to the
// arena.
const cx_hlo_attr *cx_hlo_find_named(const cx_hlo_reader *r, size_t mark,
                                     const char *name, cx_hlo_attr_kind kind);
calx_status *cx_hlo_take_named(cx_hlo_reader *r, size_t mark,
                               const char *const *known,
                               cx_hlo_named_list *out) CALX_MUST_USE;

// A pretty operation from behind its name up to its location.
calx_status *cx_hlo_read_pretty(cx_hlo_reader *r,
                                cx_hlo_parts *p) CALX_MUST_USE;
// The same for a dialect that ops.def does not know.
calx_status *cx_hlo_read_other(cx_hlo_reader *r, cx_hlo_parts *p) CALX_MUST_USE;

calx_status *cx_hlo_read_op(cx_hlo_reader *r,
                            cx_hlo_block *block) CALX_MUST_USE;

// Gives `count` values a name, which is valid to the end of the region.
calx_status *cx_hlo_define(cx_hlo_reader *r, cx_hlo_str name, const char *at,
                           cx_hlo_value *values, size_t count) CALX_MUST_USE;
// '%' name ('#' integer)?, pushed onto use_stack.
calx_status *cx_hlo_read_use(cx_hlo_reader *r) CALX_MUST_USE;
// '(' (use (',' use)*)? ')'; the same without brackets.
calx_status *cx_hlo_read_uses(cx_hlo_reader *r) CALX_MUST_USE;
calx_status *cx_hlo_read_bare_uses(cx_hlo_reader *r) CALX_MUST_USE;
// '%' name, pushed onto group_stack as one value.
calx_status *cx_hlo_read_name(cx_hlo_reader *r) CALX_MUST_USE;
// '(' ('%' name ':' type loc? (',' …)*)? ')', pushed.
calx_status *cx_hlo_read_args(cx_hlo_reader *r) CALX_MUST_USE;
// One more region of `p`, empty.
calx_status *cx_hlo_add_region(cx_hlo_reader *r, cx_hlo_parts *p,
                               cx_hlo_region **out) CALX_MUST_USE;
// Reads a region of `p`, whose first block has these arguments. NULL: the label
// of the block has its arguments.
calx_status *cx_hlo_read_region(cx_hlo_reader *r, cx_hlo_parts *p,
                                const cx_hlo_block_args *args) CALX_MUST_USE;
// '(' region (',' region)* ')'
calx_status *cx_hlo_read_regions(cx_hlo_reader *r,
                                 cx_hlo_parts *p) CALX_MUST_USE;
calx_status *cx_hlo_push_type(cx_hlo_reader *r,
                              const cx_hlo_any *type) CALX_MUST_USE;
// An attribute of ops.def, or one by its name; NULL: there was no memory.
calx_status *cx_hlo_push_attr(cx_hlo_reader *r, cx_hlo_attr_id id,
                              const cx_hlo_attr *attr) CALX_MUST_USE;
calx_status *cx_hlo_push_named(cx_hlo_reader *r, const char *name,
                               const cx_hlo_attr *attr) CALX_MUST_USE;

// INVALID_ARGUMENT, with a position in the text.
#define CX_HLO_FAIL(reader, at, ...) \
  cx_hlo_scan_fail(&(reader)->scan, at, CALX_INVALID_ARGUMENT, __VA_ARGS__)

#endif
