// jit/value: a value at a location, from the values that it is computed from.
#include <stdlib.h>

#include "jit/emit.h"

#define BUCKETS 1024

struct cpu_jit_memo {
  cpu_jit_memo *next;
  const cx_hlo_value *value;
  const cpu_jit_loc *loc;
  cpu_jit_val val;
};

static cpu_jit_memo **memo_bucket(cpu_jit_env *env, const cx_hlo_value *v,
                                  const cpu_jit_loc *p)
{
  const uintptr_t h = ((uintptr_t)v >> 4) * 31 + ((uintptr_t)p >> 4);
  return &env->memo[(h ^ (h >> 10)) % BUCKETS];
}

void cpu_jit_known(cpu_jit_env *env, const cx_hlo_value *v,
                   const cpu_jit_loc *p, cpu_jit_val val)
{
  cpu_jit_memo **bucket = memo_bucket(env, v, p);
  cpu_jit_memo *memo = CX_ARENA_NEW(&env->fn_arena, cpu_jit_memo);
  if (memo == NULL) {
    cpu_jit_out_of_memory(env);
    return;
  }
  *memo = (cpu_jit_memo){ *bucket, v, p, val };
  *bucket = memo;
}

cpu_jit_val cpu_jit_no_value(cpu_jit_env *env, cx_hlo_elem e)
{
  LLVMValueRef none = LLVMGetPoison(cpu_jit_register_type(env, e, false));
  return (cpu_jit_val){ .re = none,
                        .im = cx_hlo_elem_is_complex(e) ? none : NULL,
                        .elem = e };
}

static cpu_jit_val emit_element(cpu_jit_env *env, const cx_hlo_op *op,
                                const cpu_jit_loc *p)
{
  cpu_jit_val args[8];
  const size_t n = op->n_operands;
  if (n > sizeof args / sizeof args[0]) {
    cpu_jit_fail(env, "an operation of too many operands");
    return cpu_jit_no_value(env, cpu_jit_type(&op->results[0])->elem);
  }
  for (size_t i = 0; i < n; i++) {
    const cx_hlo_value *x = op->operands[i];
    const bool scalar = cpu_jit_type(x)->rank == 0;
    args[i] = cpu_jit_emit(env, x, scalar ? &env->scalar : p);
  }
  return cpu_jit_element(env, op, args);
}

static cpu_jit_val emit_op(cpu_jit_env *env, const cx_hlo_value *v,
                           const cpu_jit_loc *p)
{
  const cx_hlo_op *op = v->op;
  if (op->kind == CX_HLO_OP_CONSTANT) {
    const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_VALUE);
    return cpu_jit_splat_of(env, &a->as.elements);
  }
  switch (cpu_jit_class_of(op)) {
    case CPU_JIT_ELEMENT: return emit_element(env, op, p);
    case CPU_JIT_INDEX: return cpu_jit_index_emit(env, op, p);
    default:
      cpu_jit_fail(env, "an operation of this class inside a loop");
      return cpu_jit_no_value(env, cpu_jit_type(v)->elem);
  }
}

static LLVMValueRef buffer_of(cpu_jit_env *env, cpu_jit_slot *slot)
{
  if (slot->pointer != NULL) return slot->pointer;
  const cx_hlo_op *op = slot->value->op;
  if (slot->input != SIZE_MAX) {
    slot->pointer = cpu_jit_buffer(env, slot->input);
  } else {
    slot->pointer =
        cpu_jit_literal(env, &cx_hlo_op_attr(op, CX_HLO_A_VALUE)->as.elements);
  }
  return slot->pointer;
}

// Which element it is may be known only when the code runs.
static cpu_jit_val known_element(cpu_jit_env *env, const cpu_jit_slot *slot,
                                 const cpu_jit_loc *p)
{
  cpu_jit_val v = slot->known[0];
  if (slot->n_known == 1) return v;
  const cpu_jit_ix ix = cpu_jit_loc_linear(env, p);
  if (!cpu_jit_ix_same(&ix)) {
    cpu_jit_fail(env, "elements in registers, read by vectors");
    return v;
  }
  if (LLVMIsAConstantInt(ix.base) != NULL) {
    const uint64_t i = LLVMConstIntGetZExtValue(ix.base);
    return i < (uint64_t)slot->n_known ? slot->known[i] : v;
  }
  for (int64_t i = 1; i < slot->n_known; i++) {
    LLVMValueRef here =
        cpu_jit_compare(env, LLVMIntEQ, ix.base, cpu_jit_i64(env, i), ix.level);
    v = cpu_jit_pick(env, here, ix.level, slot->known[i], v);
  }
  return v;
}

cpu_jit_val cpu_jit_emit(cpu_jit_env *env, const cx_hlo_value *v,
                         const cpu_jit_loc *p)
{
  const cx_hlo_elem e = cpu_jit_type(v)->elem;
  if (cpu_jit_failed(env)) return cpu_jit_no_value(env, e);
  for (cpu_jit_memo *m = *memo_bucket(env, v, p); m != NULL; m = m->next) {
    if (m->value == v && m->loc == p) return m->val;
  }
  cpu_jit_slot *slot = cpu_jit_slot_of(env, v);
  cpu_jit_val val;
  if (slot->kind == CPU_JIT_SLOT_BUFFER) {
    val = cpu_jit_load(env, buffer_of(env, slot), e, p);
  } else if (slot->kind == CPU_JIT_SLOT_OP) {
    val = emit_op(env, v, p);
  } else if (slot->kind == CPU_JIT_SLOT_KNOWN) {
    val = known_element(env, slot, p);
  } else {
    cpu_jit_fail(env, "a value from outside that is no input");
    val = cpu_jit_no_value(env, e);
  }
  cpu_jit_known(env, v, p, val);
  return val;
}

cpu_jit_val cpu_jit_emit_wide(cpu_jit_env *env, const cx_hlo_value *v,
                              const cpu_jit_loc *p)
{
  return cpu_jit_widen(env, cpu_jit_emit(env, v, p));
}

void cpu_jit_store_values(cpu_jit_env *env, const cx_hlo_value *const *values,
                          size_t n, size_t buffer, const cpu_jit_loc *at)
{
  cpu_jit_val v[CPU_JIT_MAX_OUTPUTS];
  cpu_jit_stream(env, at);
  for (size_t i = 0; i < n; i++) v[i] = cpu_jit_emit(env, values[i], at);
  if (cpu_jit_failed(env)) return;
  for (size_t i = 0; i < n; i++) {
    cpu_jit_store(env, cpu_jit_buffer(env, buffer + i), v[i], at,
                  env->n_levels - 1);
  }
}

// ---- regions ----

typedef struct binding {
  const cx_hlo_value *value;
  cpu_jit_val val;
} binding;

static cpu_jit_val bound(cpu_jit_env *env, const binding *b, size_t n,
                         const cx_hlo_value *v)
{
  for (size_t i = n; i-- > 0;) {
    if (b[i].value == v) return b[i].val;
  }
  cpu_jit_fail(env, "a region that uses a value from outside");
  return cpu_jit_no_value(env, cpu_jit_type(v)->elem);
}

#define MOST 128

void cpu_jit_region(cpu_jit_env *env, const cx_hlo_region *region,
                    const cpu_jit_val *args, size_t n_args,
                    cpu_jit_val *results, size_t n_results)
{
  binding known[MOST];
  size_t n = 0;
  const cx_hlo_block *block = region->first;
  for (; n < n_args && n < MOST; n++) {
    known[n] = (binding){ &block->args[n], args[n] };
  }
  const cx_hlo_op *op = block->first;
  for (; op != NULL && op != block->last && n < MOST; op = op->next) {
    cpu_jit_val in[8];
    const size_t k = op->n_operands < 8 ? op->n_operands : 8;
    for (size_t i = 0; i < k; i++)
      in[i] = bound(env, known, n, op->operands[i]);
    known[n++] = (binding){ &op->results[0],
                            op->kind == CX_HLO_OP_CONSTANT
                                ? emit_op(env, &op->results[0], &env->scalar)
                                : cpu_jit_element(env, op, in) };
  }
  if (op != block->last) cpu_jit_fail(env, "a region of too many operations");
  for (size_t i = 0; i < n_results; i++) {
    results[i] = bound(env, known, n, op->operands[i]);
  }
}

cpu_jit_val cpu_jit_region_of_two(cpu_jit_env *env, const cx_hlo_region *region,
                                  cpu_jit_val x, cpu_jit_val y)
{
  const cpu_jit_val args[2] = { x, y };
  cpu_jit_val out;
  cpu_jit_region(env, region, args, 2, &out, 1);
  return out;
}
