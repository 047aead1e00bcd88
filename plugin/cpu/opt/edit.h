// opt/edit: how passes change programs.
//
// Most passes are one walk forward over a function. A visit builds operations
// with the calls of hlo/build.h (types come from the shape rules) and names the
// values that replace the results of its operation; the walk inserts and erases
// operations. Before an operation is visited, its replaced operands are
// exchanged, so one walk does any number of replacements. Regions are visited
// before the operation that has them. Nothing here recurses, because programs
// may nest deeply.
//
// Value numbers stay unique and below the module's n_values.
#ifndef CPU_OPT_EDIT_H
#define CPU_OPT_EDIT_H

#include "hlo/build_op.h"
#include "hlo/module.h"

typedef struct cpu_opt_walk {
  cx_hlo_builder b;    // inserts operations before the visited one
  cx_hlo_block made;   // the operations that this visit built
  cx_hlo_value **map;  // by number: what replaces the value; NULL: nothing
  size_t map_size;
  bool erase;    // the visited operation
  bool revisit;  // visit the operations that were built
  bool changed;
  void *user;
} cpu_opt_walk;

typedef calx_status *cpu_opt_visit_fn(cpu_opt_walk *w, cx_hlo_op *op);

// Visits every operation of the function. *changed becomes true if anything was
// replaced or erased, else it keeps its value.
calx_status *cpu_opt_walk_func(cx_hlo_module *m, cx_hlo_func *f,
                               cpu_opt_visit_fn *visit, void *user,
                               bool *changed) CALX_MUST_USE;

// Within a visit: erases the operation and replaces its results by these
// values. They may be NULL after a failure of the builder, which the walk
// reports.
void cpu_opt_replace_all(cpu_opt_walk *w, cx_hlo_op *op,
                         cx_hlo_value *const *values);
void cpu_opt_replace(cpu_opt_walk *w, cx_hlo_op *op, cx_hlo_value *value);
// The value that replaces v at this point of the walk; v itself if none does.
cx_hlo_value *cpu_opt_resolve(const cpu_opt_walk *w, cx_hlo_value *v);
// Moves all operations of the block but its terminator before the visited one.
void cpu_opt_take_block(cpu_opt_walk *w, cx_hlo_block *block);
// Erases the operation; nothing uses its results.
void cpu_opt_erase(cpu_opt_walk *w, cx_hlo_op *op);

// Arrays of n zeros in the module's arena; NULL: the builder has failed.
int64_t *cpu_opt_list(cpu_opt_walk *w, size_t n);
cx_hlo_value **cpu_opt_values(cpu_opt_walk *w, size_t n);
// The list p[list[0]], p[list[1]] …; `list` itself if the builder has failed.
cx_hlo_ints cpu_opt_through(cpu_opt_walk *w, cx_hlo_ints p, cx_hlo_ints list);
// The permutation that undoes p; p itself if the builder has failed.
cx_hlo_ints cpu_opt_inverse(cpu_opt_walk *w, cx_hlo_ints p);

// ---- order ----

// The first and the next operation of the function, in the order in which
// regions come before the operation that has them; NULL: there is none.
cx_hlo_op *cpu_opt_first(const cx_hlo_block *block);
cx_hlo_op *cpu_opt_next(const cx_hlo_op *op);
// The first operation, in this order, of all inside op's regions at any depth;
// op itself if they are empty. cpu_opt_next leads from it to op.
cx_hlo_op *cpu_opt_inner(const cx_hlo_op *op);

// ---- lists ----

void cpu_opt_unlink(cx_hlo_op *op);

// ---- copies ----

// Begins an operation with the kind and attributes of `op` on other operands,
// with one result and no regions; NULL: the builder has failed.
cx_hlo_op *cpu_opt_begin_like(cx_hlo_builder *b, const cx_hlo_op *op,
                              cx_hlo_value *const *operands);
// Gives `to` the attribute of `op`, if `op` has it.
void cpu_opt_keep_attr(cx_hlo_builder *b, cx_hlo_op *to, const cx_hlo_op *op,
                       cx_hlo_attr_id id);
// Broadcasts x to the dimensions of `to`; x's dimension i becomes dims[i].
cx_hlo_value *cpu_opt_broadcast(cx_hlo_builder *b, cx_hlo_value *x,
                                const cx_hlo_type *to, const int64_t *dims);
// A copy of one operation without its regions, in no block. `map` (by number;
// NULL: the same value) gives its operands, and gets its results.
cx_hlo_op *cpu_opt_copy_op(cx_hlo_module *m, const cx_hlo_op *op,
                           cx_hlo_value **map);
// Copies the operations of `block` without its terminator, but with their
// regions, to the end of `to`. The map must have the block's arguments. False:
// out of memory.
bool cpu_opt_copy_block(cx_hlo_module *m, const cx_hlo_block *block,
                        cx_hlo_block *to, cx_hlo_value **map);

// ---- all operations ----

// Whether an operation of the function, or of its regions, is like that.
typedef bool cpu_opt_question(const cx_hlo_op *op);
bool cpu_opt_any(const cx_hlo_func *f, cpu_opt_question *is_so);

// How often each value of the function is used, by its number, to be freed with
// cx_free(); NULL: out of memory.
uint32_t *cpu_opt_uses(const cx_hlo_module *m, cx_hlo_func *f);

// ---- reading ----

// The operation that makes v, if it is of this kind; else NULL.
cx_hlo_op *cpu_opt_made_by(const cx_hlo_value *v, cx_hlo_op_kind kind);
// The elements of a constant; NULL: v is none.
const cx_hlo_elements *cpu_opt_literal(const cx_hlo_value *v);
// The element, in the value's type, that all elements of the value are equal
// to; NULL: not known. The value may be a constant, or moved from one.
const unsigned char *cpu_opt_splat(const cx_hlo_value *v);
// Whether all elements are this number, by value: -0 is 0.
bool cpu_opt_is_number(const cx_hlo_value *v, double number);
// Whether all elements are 0: of floats with this sign.
bool cpu_opt_is_zero(const cx_hlo_value *v, bool negative);
// A constant of this type, with all elements equal to this one.
cx_hlo_value *cpu_opt_splat_like(cx_hlo_builder *b, const cx_hlo_type *type,
                                 const unsigned char *element);

// "chlo.erf", "stablehlo.add", also of operations that the tables do not have.
cx_hlo_str cpu_opt_name(const cx_hlo_op *op);
// An attribute by its name, also one that the tables do not have; NULL: absent.
const cx_hlo_attr *cpu_opt_attr(const cx_hlo_op *op, const char *name);

// Whether the operation and its regions have no side effect: no input or
// output, no state, no communication with other devices.
bool cpu_opt_pure(const cx_hlo_op *op);
// Whether it is a while, if or case: their regions run in place and may use
// values from outside.
bool cpu_opt_is_control(const cx_hlo_op *op);
bool cpu_opt_is_elementwise(const cx_hlo_op *op);

// Whether two reductions by this operation, both from this initial value, have
// the result of one. Of floats below 32 bits the first result would be rounded.
bool cpu_opt_may_repeat(const cx_hlo_op *combiner, const cx_hlo_value *init);
bool cpu_opt_is_collective(const cx_hlo_op *op);

bool cpu_opt_same_dims(const cx_hlo_type *a, const cx_hlo_type *b);
bool cpu_opt_same_ints(cx_hlo_ints a, cx_hlo_ints b);

// The block in which v is made, by an operation or as an argument.
const cx_hlo_block *cpu_opt_block_of(const cx_hlo_value *v);
// Whether v is made in a region of op, however deeply nested.
bool cpu_opt_is_inside(const cx_hlo_op *op, const cx_hlo_value *v);

#endif
