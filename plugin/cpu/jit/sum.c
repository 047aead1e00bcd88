// jit/sum: how reduce and reduce_window add up: the operation of their body,
// the types that they are summed in, and the length of a block.
#include "jit/emit.h"

// The operation that makes result i, where it has the elements' own type.
static const cx_hlo_op *simple_result(const cx_hlo_op *op, size_t i)
{
  const cx_hlo_block *b = op->regions[0].first;
  const cx_hlo_op *one = cx_hlo_block_combiner(b, i);
  if (one == NULL) return NULL;
  const cx_hlo_elem own = cpu_jit_type(&b->args[i])->elem;
  return cpu_jit_type(&one->results[0])->elem == own ? one : NULL;
}

const cx_hlo_op *cpu_jit_simple_body(const cx_hlo_op *op, size_t i)
{
  for (size_t j = 0; j < op->n_results; j++) {
    if (simple_result(op, j) == NULL) return NULL;
  }
  return simple_result(op, i);
}

cx_hlo_elem cpu_jit_sum_elem(const cx_hlo_op *simple, cx_hlo_elem e)
{
  const bool small = e == CX_HLO_BF16 || e == CX_HLO_F16;
  return simple != NULL && small ? CX_HLO_F32 : e;
}

cx_hlo_elem cpu_jit_total_elem(const cx_hlo_op *simple, cx_hlo_elem e)
{
  if (simple == NULL || simple->kind != CX_HLO_OP_ADD) return e;
  if (e == CX_HLO_C64) return CX_HLO_C128;
  return e == CX_HLO_F32 ? CX_HLO_F64 : e;
}

cpu_jit_val cpu_jit_combine(cpu_jit_env *env, const cx_hlo_op *simple,
                            cpu_jit_val a, cpu_jit_val b)
{
  b.elem = a.elem;
  const cpu_jit_val args[2] = { a, b };
  cpu_jit_val out = cpu_jit_element(env, simple, args);
  out.elem = a.elem;
  return out;
}

cpu_jit_val cpu_jit_summed(cpu_jit_env *env, cpu_jit_val sum, cx_hlo_elem e)
{
  if (sum.elem == e) return sum;
  if (cx_hlo_elem_part(sum.elem) == CX_HLO_F64) {
    return cpu_jit_convert(env, sum, e);
  }
  sum.re = cpu_jit_round(env, cpu_jit_at(env, sum.level), sum.re, e);
  sum.elem = e;
  return sum;
}

int64_t cpu_jit_block(int64_t chain)
{
  // A little more, rather than little more than half.
  return (CPU_JIT_BLOCK + chain / 4) / chain;
}
