// jit/value: a value at a place, from the values that it is made of.
#include <stdlib.h>

#include "jit/emit.h"

#define BUCKETS 1024

struct cx_jit_memo {
  cx_jit_memo *next;
  const cx_hlo_value *value;
  const cx_jit_place *place;
  cx_jit_val val;
};

static cx_jit_memo **memo_bucket(cx_jit_env *env, const cx_hlo_value *v,
                                 const cx_jit_place *p)
{
  const uintptr_t h = ((uintptr_t)v >> 4) * 31 + ((uintptr_t)p >> 4);
  return &env->memo[(h ^ (h >> 10)) % BUCKETS];
}

void cx_jit_known(cx_jit_env *env, const cx_hlo_value *v, const cx_jit_place *p,
                  cx_jit_val val)
{
  cx_jit_memo **bucket = memo_bucket(env, v, p);
  cx_jit_memo *memo = CX_ARENA_NEW(&env->fn_arena, cx_jit_memo);
  if (memo == NULL) {
    if (env->status == NULL) env->status = cx_out_of_memory();
    return;
  }
  *memo = (cx_jit_memo){ *bucket, v, p, val };
  *bucket = memo;
}

static cx_jit_val nothing(cx_jit_env *env, cx_hlo_elem e)
{
  LLVMValueRef none = LLVMGetPoison(cx_jit_register_type(env, e, false));
  return (cx_jit_val){ .re = none,
                       .im = cx_hlo_elem_is_complex(e) ? none : NULL,
                       .elem = e };
}

static cx_jit_val emit_element(cx_jit_env *env, const cx_hlo_op *op,
                               const cx_jit_place *p)
{
  cx_jit_val args[8];
  const size_t n = op->n_operands;
  if (n > sizeof args / sizeof args[0]) {
    cx_jit_fail(env, "an operation of too many operands");
    return nothing(env, cx_jit_type(&op->results[0])->elem);
  }
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_value *x = op->operands[i];
    const bool scalar = cx_jit_type(x)->rank == 0;
    args[i] = cx_jit_emit(env, x, scalar ? &env->scalar : p);
  }
  return cx_jit_element(env, op, args);
}

static cx_jit_val emit_op(cx_jit_env *env, const cx_hlo_value *v,
                          const cx_jit_place *p)
{
  const cx_hlo_op *op = v->op;
  if (op->kind == CX_HLO_OP_CONSTANT) {
    const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_VALUE);
    return cx_jit_splat_of(env, &a->as.elements);
  }
  switch (cx_jit_class_of(op)) {
    case CX_JIT_ELEMENT: return emit_element(env, op, p);
    case CX_JIT_INDEX: return cx_jit_index_emit(env, op, p);
    default:
      cx_jit_fail(env, "an operation in a place where it cannot be");
      return nothing(env, cx_jit_type(v)->elem);
  }
}

static LLVMValueRef buffer_of(cx_jit_env *env, cx_jit_slot *slot)
{
  if (slot->pointer != NULL) return slot->pointer;
  const cx_hlo_op *op = slot->value->op;
  if (slot->input != SIZE_MAX) {
    slot->pointer = cx_jit_buffer(env, slot->input);
  } else {
    slot->pointer =
        cx_jit_literal(env, &cx_hlo_op_attr(op, CX_HLO_A_VALUE)->as.elements);
  }
  return slot->pointer;
}

cx_jit_val cx_jit_emit(cx_jit_env *env, const cx_hlo_value *v,
                       const cx_jit_place *p)
{
  const cx_hlo_elem e = cx_jit_type(v)->elem;
  if (cx_jit_failed(env)) return nothing(env, e);
  for (cx_jit_memo *m = *memo_bucket(env, v, p); m != NULL; m = m->next) {
    if (m->value == v && m->place == p) return m->val;
  }
  cx_jit_slot *slot = cx_jit_slot_of(env, v);
  cx_jit_val val;
  if (slot->kind == CX_JIT_SLOT_BUFFER) {
    val = cx_jit_load(env, buffer_of(env, slot), e, p);
  } else if (slot->kind == CX_JIT_SLOT_OP) {
    val = emit_op(env, v, p);
  } else {
    cx_jit_fail(env, "a value from outside that is no input");
    val = nothing(env, e);
  }
  cx_jit_known(env, v, p, val);
  return val;
}

// ---- regions ----

typedef struct binding {
  const cx_hlo_value *value;
  cx_jit_val val;
} binding;

static cx_jit_val bound(cx_jit_env *env, const binding *b, size_t n,
                        const cx_hlo_value *v)
{
  for (size_t i = n; i-- > 0;) {
    if (b[i].value == v) return b[i].val;
  }
  cx_jit_fail(env, "a region that uses a value from outside");
  return nothing(env, cx_jit_type(v)->elem);
}

#define MOST 128

void cx_jit_region(cx_jit_env *env, const cx_hlo_region *region,
                   const cx_jit_val *args, size_t n_args, cx_jit_val *results,
                   size_t n_results)
{
  binding known[MOST];
  size_t n = 0;
  const cx_hlo_block *block = region->first;
  for (; n < n_args && n < MOST; n++) {
    known[n] = (binding){ &block->args[n], args[n] };
  }
  const cx_hlo_op *op = block->first;
  for (; op != NULL && op != block->last && n < MOST; op = op->next) {
    cx_jit_val in[8];
    const size_t k = op->n_operands < 8 ? op->n_operands : 8;
    for (size_t i = 0; i < k; i++)
      in[i] = bound(env, known, n, op->operands[i]);
    known[n++] = (binding){ &op->results[0],
                            op->kind == CX_HLO_OP_CONSTANT
                                ? emit_op(env, &op->results[0], &env->scalar)
                                : cx_jit_element(env, op, in) };
  }
  if (op != block->last) cx_jit_fail(env, "a region of too many operations");
  for (size_t i = 0; i < n_results; i++) {
    results[i] = bound(env, known, n, op->operands[i]);
  }
}
