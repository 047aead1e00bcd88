// opt/edit: what passes change programs with.
//
// Most passes are one walk forward over a function: before an operation is
// visited, its operands are put to what stands for them now, so one walk does
// any number of replacements. A visit makes operations with the calls of
// hlo/build.h (types come from the shape rules), says what its operation's
// results are replaced by, and the walk puts in and takes out. Regions are
// visited before the operation that holds them. Nothing here recurses.
//
// Value numbers stay unique and below the module's n_values.
#ifndef CPU_OPT_EDIT_H
#define CPU_OPT_EDIT_H

#include "hlo/build_op.h"
#include "hlo/module.h"

typedef struct cpu_opt_walk {
  cx_hlo_builder b;    // its calls put operations before the visited one
  cx_hlo_block made;   // those of this visit
  cx_hlo_value **map;  // by number: what stands for the value; NULL: itself
  size_t map_size;
  bool erase;    // the visited operation goes
  bool revisit;  // what was made is visited, too
  bool changed;
  void *user;
} cpu_opt_walk;

typedef calx_status *cpu_opt_visit_fn(cpu_opt_walk *w, cx_hlo_op *op);

// Visits every operation of the function. *changed is set where anything was
// replaced or taken out, and else left alone.
calx_status *cpu_opt_walk_func(cx_hlo_module *m, cx_hlo_func *f,
                               cpu_opt_visit_fn *visit, void *user,
                               bool *changed) CALX_MUST_USE;

// Within a visit: the operation goes, and these stand for its results. A NULL
// value (after a failure of the builder) is accepted: the walk reports it.
void cpu_opt_replace_all(cpu_opt_walk *w, cx_hlo_op *op,
                         cx_hlo_value *const *values);
void cpu_opt_replace(cpu_opt_walk *w, cx_hlo_op *op, cx_hlo_value *value);
// Moves all operations of the block but its terminator before the visited one.
void cpu_opt_take_block(cpu_opt_walk *w, cx_hlo_block *block);
// The operation goes; nothing uses its results.
void cpu_opt_erase(cpu_opt_walk *w, cx_hlo_op *op);

// What stands for v at this point of the walk.
cx_hlo_value *cpu_opt_resolve(const cpu_opt_walk *w, cx_hlo_value *v);
// Room for n numbers in the module; NULL: the builder has failed.
int64_t *cpu_opt_list(cpu_opt_walk *w, size_t n);

// ---- order ----

// The next operation of the function when regions come before the operation
// that holds them; NULL: it was the last. `cpu_opt_first` is the first so.
cx_hlo_op *cpu_opt_first(const cx_hlo_block *block);
cx_hlo_op *cpu_opt_next(const cx_hlo_op *op);
// The first of the operations that `op` holds, at any depth, from which the
// order leads through the others to op; op itself where it holds none.
cx_hlo_op *cpu_opt_inner(const cx_hlo_op *op);

// ---- lists ----

void cpu_opt_unlink(cx_hlo_op *op);
// Moves an operation from where it stands to before another.
void cpu_opt_move_before(cx_hlo_op *op, cx_hlo_op *before);

// ---- copies ----

// Begins an operation with the kind and attributes of `op` on other operands,
// with one result and no regions; NULL: the builder has failed.
cx_hlo_op *cpu_opt_begin_like(cx_hlo_builder *b, const cx_hlo_op *op,
                              cx_hlo_value *const *operands);
// A copy of one operation without its regions, in no block, with the operands
// that `map` (by number; NULL: the same) gives; its results are entered there.
cx_hlo_op *cpu_opt_copy_op(cx_hlo_module *m, const cx_hlo_op *op,
                           cx_hlo_value **map);
// Copies the operations of `block` but its terminator to the end of `to`, with
// all that they hold. The block's arguments must be in the map. False: no
// memory.
bool cpu_opt_copy_block(cx_hlo_module *m, const cx_hlo_block *block,
                        cx_hlo_block *to, cx_hlo_value **map);

// ---- use counts ----

// How often each value of the function is used, by its number; cx_free() it.
// NULL: no memory.
uint32_t *cpu_opt_uses(const cx_hlo_module *m, cx_hlo_func *f);

// ---- reading ----

// The operation of this kind that makes v; NULL: another does.
cx_hlo_op *cpu_opt_made_by(const cx_hlo_value *v, cx_hlo_op_kind kind);
// The literal that a value is; NULL: it is none.
const cx_hlo_elements *cpu_opt_literal(const cx_hlo_value *v);
// One element (of the value's type) that all elements of the value are: of a
// literal, or a broadcast of one. NULL: not known.
const unsigned char *cpu_opt_splat(const cx_hlo_value *v);
// Whether all elements are the number (a float compares by value, so -0 is 0).
bool cpu_opt_is_number(const cx_hlo_value *v, double number);
// A literal like `type` of this one element.
cx_hlo_value *cpu_opt_splat_like(cx_hlo_builder *b, const cx_hlo_type *type,
                                 const unsigned char *element);

// "chlo.erf", "stablehlo.add", also where the tables do not know it.
cx_hlo_str cpu_opt_name(const cx_hlo_op *op);
// An attribute by its spelling, known or not; NULL: absent.
const cx_hlo_attr *cpu_opt_attr(const cx_hlo_op *op, const char *name);

// Whether it does nothing but compute its results: nothing that others see,
// no state, no other device; with all that it holds.
bool cpu_opt_pure(const cx_hlo_op *op);
// Whether its regions are run in place, and may use what stands outside.
bool cpu_opt_is_control(const cx_hlo_op *op);
bool cpu_opt_is_elementwise(const cx_hlo_op *op);

bool cpu_opt_is_collective(const cx_hlo_op *op);

bool cpu_opt_same_dims(const cx_hlo_type *a, const cx_hlo_type *b);
bool cpu_opt_same_ints(cx_hlo_ints a, cx_hlo_ints b);

// The block in which v is made, by an operation or as an argument.
const cx_hlo_block *cpu_opt_block_of(const cx_hlo_value *v);
// Whether v is made in a region of op, however deeply nested.
bool cpu_opt_is_inside(const cx_hlo_op *op, const cx_hlo_value *v);

#endif
