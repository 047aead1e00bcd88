// hlo/verify: walks every function in order.
//
// A flag for each value says whether it is defined: it is set when the walk
// passes the definition, and cleared when the walk leaves the block. The walk
// follows the links of the program instead of recursing, so deep nesting cannot
// overflow the stack.
#include "hlo/verify.h"

#include <string.h>

#include "base/alloc.h"
#include "hlo/calls.h"
#include "hlo/infer.h"

typedef struct walk {
  const cx_hlo_module *module;
  const cx_hlo_func *func;
  unsigned char *defined;  // by a value's number
  cx_arena arena;          // for the rule of one operation
  const cx_hlo_op *op;     // the present operation
  size_t region;           // of op, to enter next
  size_t position;         // operations passed in this function
  cx_hlo_calls calls;
} walk;

// ---- one operation ----

static calx_status *where(const walk *w, const cx_hlo_op *op,
                          calx_status *status)
{
  if (op->loc != NULL && op->loc->line != 0) {
    return cx_annotate(status, "at %.*s:%lld", (int)op->loc->file.n,
                       op->loc->file.s, (long long)op->loc->line);
  }
  return cx_annotate(status, "operation %zu of function '%.*s'", w->position,
                     (int)w->func->name.n, w->func->name.s);
}

static calx_status *check_type(const cx_hlo_op *op, const cx_hlo_any *type)
{
  const char *name = cx_hlo_op_short(op->kind);
  if (type->non_tensor != NULL &&
      type->non_tensor->kind != CX_HLO_NON_TENSOR_ENCODED) {
    if (type->non_tensor->kind != CX_HLO_NON_TENSOR_TEXT) return NULL;
    return cx_error(CALX_UNIMPLEMENTED, "%s: the type %.*s is not supported",
                    name, (int)type->non_tensor->text.n,
                    type->non_tensor->text.s);
  }
  for (size_t i = 0; i < type->tensor.rank; i++) {
    if (type->tensor.dims[i] >= 0) continue;
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s: %s has a dynamic size, which is not supported", name,
                    CX_HLO_SHAPE(&type->tensor));
  }
  if (type->tensor.elem == CX_HLO_TOKEN) return NULL;
  if (cx_hlo_elem_class(type->tensor.elem) == 0) {
    return cx_invalid("%s: no tensor is %s", name, CX_HLO_SHAPE(&type->tensor));
  }
  if (cx_hlo_type_elements(&type->tensor) >= 0) return NULL;
  return cx_invalid("%s: %s has too many elements", name,
                    CX_HLO_SHAPE(&type->tensor));
}

static calx_status *check_uses(const walk *w, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (w->defined[op->operands[i]->number]) continue;
    return cx_invalid("%s: operand %u is used where it is not defined",
                      cx_hlo_op_short(op->kind), i);
  }
  return NULL;
}

static calx_status *check_results(const cx_hlo_op *op, const cx_hlo_any *types)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    const cx_hlo_any *declared = &op->results[i].type;
    if (cx_hlo_any_equal(declared, &types[i])) continue;
    return cx_invalid("%s: result %u is declared %s, it must be %s",
                      cx_hlo_op_short(op->kind), i, CX_HLO_ANY(declared),
                      CX_HLO_ANY(&types[i]));
  }
  return NULL;
}

static calx_status *check_rule(walk *w, const cx_hlo_op *op)
{
  cx_arena_reset(&w->arena);
  cx_hlo_any *types = CX_ARENA_ARRAY(&w->arena, cx_hlo_any, op->n_results);
  if (types == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < op->n_results; i++) {
    types[i] = op->results[i].type;
    CALX_TRY(check_type(op, &types[i]));
  }
  cx_hlo_infer in = { op, w->module, &w->arena, types };
  CALX_TRY(cx_hlo_infer_run(&in));
  return check_results(op, types);
}

// Records a call for the check of recursion.
static calx_status *note_call(walk *w, const cx_hlo_op *op)
{
  if (op->kind != CX_HLO_OP_CALL && op->kind != CX_HLO_OP_COMPOSITE)
    return NULL;
  const cx_hlo_func *f = cx_hlo_func_find(w->module, cx_hlo_op_callee(op));
  return cx_hlo_calls_add(&w->calls, w->func, f);
}

static calx_status *check_args(const cx_hlo_op *op, const cx_hlo_block *block)
{
  for (size_t i = 0; i < block->n_args; i++) {
    CALX_TRY(check_type(op, &block->args[i].type));
  }
  return NULL;
}

// ---- the walk ----

static void mark(walk *w, const cx_hlo_value *values, size_t n, bool on)
{
  for (size_t i = 0; i < n; i++) w->defined[values[i].number] = on;
}

// Clears the flags of the values of a block.
static void leave(walk *w, const cx_hlo_block *block)
{
  mark(w, block->args, block->n_args, false);
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    mark(w, op->results, op->n_results, false);
  }
}

// Steps to `op`. Its regions come first, then its rule, which needs the types
// that they return.
static calx_status *arrive(walk *w, const cx_hlo_op *op)
{
  w->op = op;
  w->region = 0;
  w->position++;
  return check_uses(w, op);
}

static calx_status *enter_region(walk *w)
{
  const cx_hlo_region *region = &w->op->regions[w->region++];
  const cx_hlo_block *block = region->first;
  if (block == NULL)
    return NULL;  // the rule decides whether a region may be empty
  if (block->next != NULL) {
    return cx_error(
        CALX_UNIMPLEMENTED,
        "%s: region %zu has several blocks, which StableHLO has not",
        cx_hlo_op_short(w->op->kind), w->region - 1);
  }
  CALX_TRY(check_args(w->op, block));
  mark(w, block->args, block->n_args, true);
  return block->first == NULL ? NULL : arrive(w, block->first);
}

// Steps to the next operation; from the last one of a block to the operation
// that the region belongs to, which continues with its next region. w->op is
// NULL behind the last operation of the function.
static calx_status *leave_op(walk *w)
{
  const cx_hlo_op *op = w->op;
  CALX_TRY(check_rule(w, op));
  CALX_TRY(note_call(w, op));
  mark(w, op->results, op->n_results, true);
  if (op->next != NULL) return arrive(w, op->next);
  const cx_hlo_region *region = op->block->region;
  leave(w, op->block);
  w->op = region->op;
  if (w->op != NULL) w->region = (size_t)(region - w->op->regions) + 1;
  return NULL;
}

static calx_status *walk_block(walk *w, const cx_hlo_block *block)
{
  if (block->first == NULL) return NULL;
  calx_status *status = arrive(w, block->first);
  while (status == NULL && w->op != NULL) {
    status = w->region < w->op->n_regions ? enter_region(w) : leave_op(w);
  }
  return status == NULL ? NULL : where(w, w->op, status);
}

// ---- functions ----

static calx_status *bad_func(const cx_hlo_func *f, const char *sentence)
{
  return cx_invalid("function '%.*s' %s", (int)f->name.n, f->name.s, sentence);
}

static calx_status *check_return(const cx_hlo_func *f)
{
  const cx_hlo_op *end = cx_hlo_terminator(f->body.first);
  if (end == NULL) return bad_func(f, "does not end with func.return");
  if (end->n_operands != f->n_results) {
    return cx_invalid("function '%.*s' returns %u values, its type says %zu",
                      (int)f->name.n, f->name.s, end->n_operands, f->n_results);
  }
  for (size_t i = 0; i < f->n_results; i++) {
    if (cx_hlo_any_equal(&end->operands[i]->type, &f->results[i])) continue;
    return cx_invalid(
        "function '%.*s' returns %s as value %zu, its type says %s",
        (int)f->name.n, f->name.s, CX_HLO_ANY(&end->operands[i]->type), i,
        CX_HLO_ANY(&f->results[i]));
  }
  return NULL;
}

static calx_status *check_func(walk *w, const cx_hlo_func *f)
{
  const cx_hlo_block *block = f->body.first;
  w->func = f;
  w->position = 0;
  if (block == NULL) return bad_func(f, "has no body");
  if (block->next != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "function '%.*s' has several blocks, which StableHLO has "
                    "not",
                    (int)f->name.n, f->name.s);
  }
  bool ok = block->n_args == f->n_params;
  for (size_t i = 0; ok && i < f->n_params; i++) {
    ok = cx_hlo_any_equal(&block->args[i].type, &f->params[i]);
  }
  if (!ok) return bad_func(f, "has other parameters than its type says");
  const cx_hlo_op entry = { .kind = CX_HLO_OP_CALL };
  CALX_TRY(check_args(&entry, block));
  mark(w, block->args, block->n_args, true);
  CALX_TRY(walk_block(w, block));
  return check_return(f);
}

static calx_status *check_names(const cx_hlo_module *m)
{
  if (cx_hlo_entry(m) == NULL) {
    return cx_invalid(
        m->first == NULL
            ? "the module has no function"
            : "the module has several functions, and none is called 'main'");
  }
  for (const cx_hlo_func *f = m->first; f != NULL; f = f->next) {
    if (cx_hlo_func_find(m, f->name) != f) return bad_func(f, "is there twice");
  }
  for (const cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    if (op->kind == CX_HLO_OP_OTHER) continue;
    return cx_invalid("%s: stands outside of a function",
                      cx_hlo_op_short(op->kind));
  }
  return NULL;
}

calx_status *cx_hlo_verify(const cx_hlo_module *m)
{
  CALX_TRY(check_names(m));
  walk w = { .module = m };
  w.defined = cx_calloc((size_t)m->n_values + 1, 1);
  if (w.defined == NULL) return cx_out_of_memory();
  calx_status *status = NULL;
  for (const cx_hlo_func *f = m->first; f != NULL && status == NULL;
       f = f->next) {
    status = check_func(&w, f);
  }
  if (status == NULL) status = cx_hlo_calls_check(&w.calls, m);
  cx_arena_free(&w.arena);
  cx_free(w.calls.items);
  cx_free(w.defined);
  return status;
}
