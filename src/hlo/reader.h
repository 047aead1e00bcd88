// hlo/reader: what the files of the parser share.
//
// Recursive descent over MLIR's text; each function carries the rule that it
// reads. An operation is read into its parts, in the form that it is spelled
// in, and made of them in one way. Lists are gathered on stacks of the reader
// (marked, pushed to, copied to the arena, cut), so nothing is allocated per
// token.
#ifndef CX_HLO_READER_H
#define CX_HLO_READER_H

#include "base/alloc.h"
#include "hlo/attr.h"
#include "hlo/module.h"
#include "hlo/names.h"
#include "hlo/ops.h"
#include "hlo/scan.h"

enum {
  CX_HLO_DEEPEST = 128,       // regions, attributes and types in one another
  CX_HLO_MOST_DIMS = 255,     // of a tensor
  CX_HLO_EXPANSION = 1 << 26  // bytes that all uses of aliases stand for
};

#define CX_HLO_STACK(type) \
  struct {                 \
    type *v;               \
    size_t n, capacity;    \
  }
// Room for one more at v[n]; false: no memory.
#define CX_HLO_ROOM(stack) \
  cx_grow(&(stack).v, &(stack).capacity, (stack).n + 1, sizeof *(stack).v)
// Copies what was pushed since `mark` into the arena, and cuts; false: no
// memory.
#define CX_HLO_COPY(reader, stack, mark, out)                                \
  cx_hlo_reader_copy(reader, (stack).v, &(stack).n, mark, sizeof *(stack).v, \
                     out)

// A result list's part: %a:2 = …
typedef struct cx_hlo_group {
  cx_hlo_str name;
  size_t count;
  const char *at;
} cx_hlo_group;

// What stands behind #name or !name. Aliases can name aliases: a few lines
// could stand for more than any memory holds, and nest deeper than any stack.
typedef struct cx_hlo_alias {
  const cx_hlo_attr *attr;  // or
  cx_hlo_any type;
  size_t bytes;   // of its text, with all aliases in it written out
  size_t height;  // how deep it nests
} cx_hlo_alias;

// A blob of the file's metadata.
typedef struct cx_hlo_resource {
  cx_hlo_str text;  // "0x…", with its quotes
  const cx_hlo_attr *attr;
  size_t uses;
} cx_hlo_resource;

// A use of a value, checked against its type once that is read.
typedef struct cx_hlo_use {
  cx_hlo_value *value;
  const char *at;
} cx_hlo_use;

typedef struct cx_hlo_reader {
  cx_hlo_scan scan;
  cx_hlo_module *module;
  bool heads_only;  // regions are passed over, unread
  size_t depth;
  size_t deepest;   // that depth was, since it was last set
  size_t expanded;  // bytes that aliases stood for
  cx_hlo_names values;
  cx_hlo_names types;  // !t = …; items are cx_hlo_alias
  cx_hlo_names attrs;  // #a = …; the same
  cx_hlo_names locs;  // #loc1 = loc(…); items are cx_hlo_loc, filled in later
  cx_hlo_names resources;  // items are cx_hlo_resource
  bool has_resources;      // they were looked for
  cx_hlo_op_names ops;
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
bool cx_hlo_reader_copy(cx_hlo_reader *r, const void *items, size_t *n,
                        size_t mark, size_t bytes, void *out);
// Around everything that nests; an error when it is too deep.
calx_status *cx_hlo_reader_deeper(cx_hlo_reader *r) CALX_MUST_USE;
static inline void cx_hlo_reader_higher(cx_hlo_reader *r)
{
  r->depth--;
}

calx_status *cx_hlo_read_type(cx_hlo_reader *r, cx_hlo_any *out) CALX_MUST_USE;
// '(' types ')' '->' (type | '(' types ')'), gathered on any_stack from its
// present end; *out_inputs of them are inputs.
calx_status *cx_hlo_read_function_types(cx_hlo_reader *r,
                                        size_t *out_inputs) CALX_MUST_USE;
// type | '(' types ')', pushed: what stands behind a '->'.
calx_status *cx_hlo_read_result_types(cx_hlo_reader *r) CALX_MUST_USE;
calx_status *cx_hlo_read_attr(cx_hlo_reader *r,
                              const cx_hlo_attr **out) CALX_MUST_USE;
// '{' (name ('=' attribute)? ','…)? '}', pushed onto named_stack.
calx_status *cx_hlo_read_dict(cx_hlo_reader *r) CALX_MUST_USE;
// dense<…> : type, from behind the word.
calx_status *cx_hlo_read_dense(cx_hlo_reader *r,
                               const cx_hlo_attr **out) CALX_MUST_USE;
// dense_resource<…> : type, from behind the word.
calx_status *cx_hlo_read_dense_resource(cx_hlo_reader *r,
                                        const cx_hlo_attr **out) CALX_MUST_USE;
// word or string, as it is written
calx_status *cx_hlo_read_key(cx_hlo_reader *r, cx_hlo_str *out) CALX_MUST_USE;
// What a key stands for in the file's metadata, which may come later.
calx_status *cx_hlo_find_resource(cx_hlo_reader *r, cx_hlo_str key,
                                  const char *at,
                                  cx_hlo_resource **out) CALX_MUST_USE;
// The file's {-# … #-}.
calx_status *cx_hlo_skip_metadata(cx_hlo_reader *r) CALX_MUST_USE;
// #stablehlo…, from behind the '#'; TEXT where it is none of ops.def.
calx_status *cx_hlo_read_stablehlo(cx_hlo_reader *r, const char *from,
                                   const cx_hlo_attr **out) CALX_MUST_USE;
// loc(…), from behind the word; *out is NULL where nothing is known.
calx_status *cx_hlo_read_loc(cx_hlo_reader *r,
                             const cx_hlo_loc **out) CALX_MUST_USE;
// The same where there may be none.
calx_status *cx_hlo_read_trailing_loc(cx_hlo_reader *r,
                                      const cx_hlo_loc **out) CALX_MUST_USE;
// An alias definition ('#' or '!' is next), or the file's {-# … #-}.
calx_status *cx_hlo_read_alias(cx_hlo_reader *r) CALX_MUST_USE;
// What an alias stands for; NULL in *out: there is none.
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
// A list of integers in brackets, in the arena.
calx_status *cx_hlo_read_ints(cx_hlo_reader *r, cx_hlo_ints *out) CALX_MUST_USE;
// Everything since `from` as it was written.
calx_status *cx_hlo_read_text(cx_hlo_reader *r, const char *from,
                              const cx_hlo_attr **out) CALX_MUST_USE;

// ---- operations ----

// Regions that are read before their operation is made.
typedef struct cx_hlo_region_list {
  cx_hlo_region region;
  struct cx_hlo_region_list *next;
} cx_hlo_region_list;

// What an operation consists of, before it is made.
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
// Makes the operation of what lies on the stacks, and cuts them.
calx_status *cx_hlo_make_op(cx_hlo_reader *r, const cx_hlo_parts *p,
                            cx_hlo_block *block) CALX_MUST_USE;
void cx_hlo_move_region(cx_hlo_region *from, cx_hlo_region *to);

// "func.func" made of its parts; a pretty one, from behind its word.
calx_status *cx_hlo_make_func(cx_hlo_reader *r,
                              const cx_hlo_parts *p) CALX_MUST_USE;
calx_status *cx_hlo_read_func(cx_hlo_reader *r) CALX_MUST_USE;
// Of the attributes pushed since `mark`: the one of this name and kind, or
// NULL; all but the known ones, cut from the stack.
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

// Names `count` values from here to the end of the region.
calx_status *cx_hlo_define(cx_hlo_reader *r, cx_hlo_str name, const char *at,
                           cx_hlo_value *values, size_t count) CALX_MUST_USE;
// '%' name ('#' integer)?, pushed onto use_stack.
calx_status *cx_hlo_read_use(cx_hlo_reader *r) CALX_MUST_USE;
// '(' uses ')'
calx_status *cx_hlo_read_uses(cx_hlo_reader *r) CALX_MUST_USE;
// '%' name, pushed onto group_stack as one value.
calx_status *cx_hlo_read_name(cx_hlo_reader *r) CALX_MUST_USE;
// '(' ('%' name ':' type loc? (',' …)*)? ')', pushed.
calx_status *cx_hlo_read_args(cx_hlo_reader *r) CALX_MUST_USE;
// A region of `p`, whose first block has these arguments; NULL: as its label
// says, or none.
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

// INVALID_ARGUMENT at a place of the text.
#define CX_HLO_FAIL(reader, at, ...) \
  cx_hlo_scan_fail(&(reader)->scan, at, CALX_INVALID_ARGUMENT, __VA_ARGS__)

#endif
