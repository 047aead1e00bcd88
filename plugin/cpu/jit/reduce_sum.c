// jit/reduce_sum: the sums of a phase and the elements that are added to them.
#include <math.h>

#include "jit/reduce_phase.h"

// ---- sums ----

// The part of an identity that is a number of its own.
static LLVMValueRef identity_part(cpu_jit_env *env, const cpu_jit_sum *s,
                                  cx_hlo_elem e, bool imaginary)
{
  LLVMTypeRef t = cpu_jit_register_type(env, e, false);
  const bool low = s->simple->kind == CX_HLO_OP_MAXIMUM;
  const bool is_float = cx_hlo_elem_is_float(e);
  switch (s->simple->kind) {
    case CX_HLO_OP_ADD:
      return is_float ? LLVMConstReal(t, -0.0) : LLVMConstNull(t);
    case CX_HLO_OP_MULTIPLY:
      if (is_float) return LLVMConstReal(t, imaginary ? 0 : 1);
      return LLVMConstInt(t, 1, 0);
    case CX_HLO_OP_AND: return LLVMConstAllOnes(t);
    case CX_HLO_OP_OR:
    case CX_HLO_OP_XOR: return LLVMConstNull(t);
    default: break;
  }
  if (is_float) return LLVMConstReal(t, (double)(low ? -INFINITY : INFINITY));
  const unsigned bits = cx_hlo_elem_bits(e);
  if (e == CX_HLO_I1 || cx_hlo_elem_is_unsigned(e)) {
    return low ? LLVMConstNull(t) : LLVMConstAllOnes(t);
  }
  const uint64_t least = (uint64_t)1 << (bits - 1);
  return LLVMConstInt(t, low ? least : least - 1, 0);
}

cpu_jit_val cpu_jit_reduce_identity(cpu_jit_env *env, const cpu_jit_sum *s,
                                    cx_hlo_elem e)
{
  const cx_hlo_elem part = cx_hlo_elem_part(e);
  cpu_jit_val v = { .elem = e };
  v.re = identity_part(env, s, part, false);
  if (cx_hlo_elem_is_complex(e)) v.im = identity_part(env, s, part, true);
  return v;
}

void cpu_jit_reduce_combine(cpu_jit_reduce_phase *f, cpu_jit_val *accs,
                            const cpu_jit_val *x)
{
  const cpu_jit_plan *p = f->p;
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    if (s->simple != NULL) {
      accs[i] = cpu_jit_combine(f->env, s->simple, accs[i], x[i]);
      continue;
    }
    if (s->index != 0) continue;
    const size_t n = s->op->n_results;
    cpu_jit_val args[2 * CPU_JIT_SUMS];
    cpu_jit_val out[CPU_JIT_SUMS];
    for (size_t j = 0; j < n; j++) {
      args[j] = accs[i + j];
      args[n + j] = x[i + j];
    }
    cpu_jit_region(f->env, &s->op->regions[0], args, 2 * n, out, n);
    for (size_t j = 0; j < n; j++) {
      accs[i + j] = p->vector < 0 ? out[j] : cpu_jit_widen(f->env, out[j]);
      accs[i + j].level = f->env->n_levels - 1;
    }
  }
}

cpu_jit_val cpu_jit_reduce_initial(cpu_jit_env *env, const cpu_jit_sum *s)
{
  cpu_jit_val v = cpu_jit_emit(
      env, s->op->operands[s->op->n_results + s->index], &env->scalar);
  v.elem = cpu_jit_sum_elem(s->simple, v.elem);
  return v;
}

// ---- elements ----

bool cpu_jit_is_unreduced(const cpu_jit_plan *p, const cx_hlo_value *output)
{
  // Over no dimensions, results have as many dimensions as what is reduced.
  const cx_hlo_op *op = p->sums[0].op;
  return cpu_jit_type(output)->rank == p->from->rank &&
         cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS).n > 0;
}

// Stores the outputs with an element for each one of what is reduced, or those
// with one for each result.
static void store_outputs(cpu_jit_reduce_phase *f, bool unreduced,
                          const cpu_jit_loc *at)
{
  cpu_jit_env *env = f->env;
  const cpu_jit_kernel *k = env->kernel;
  cpu_jit_val v[CPU_JIT_MAX_OUTPUTS];
  for (size_t i = 0; i < k->n_outputs; i++) {
    if (cpu_jit_is_unreduced(f->p, k->outputs[i]) == unreduced) {
      v[i] = cpu_jit_emit(env, k->outputs[i], at);
    }
  }
  if (cpu_jit_failed(env)) return;
  // All is loaded now: an output may lie where an input does.
  for (size_t i = 0; i < k->n_outputs; i++) {
    if (cpu_jit_is_unreduced(f->p, k->outputs[i]) == unreduced) {
      cpu_jit_store(env, cpu_jit_buffer(env, k->n_inputs + i), v[i], at,
                    env->n_levels - 1);
    }
  }
}

#define LONG_PIECE 4096  // elements

// Whether elements are read in the order of memory, or in long pieces of it.
// The loops over reduced runs are the inner ones. So where a kept run follows a
// reduced one, a piece is what lies behind that kept run.
static bool is_in_order(const cpu_jit_plan *p)
{
  if (!p->rows && !p->sweep && p->blocks > 1) return false;
  bool reduces = false;
  int64_t piece = INT64_MAX;
  for (int i = 0; i < p->n; i++) {
    if (piece != INT64_MAX) piece *= p->sizes[i];
    reduces = reduces || p->reduced[i];
    if (reduces && !p->reduced[i] && i != p->vector) piece = 1;
  }
  return piece >= LONG_PIECE;
}

void cpu_jit_reduce_elements(cpu_jit_reduce_phase *f, LLVMValueRef mask,
                             cpu_jit_val *x)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  cpu_jit_loc loc = { .mask = mask, .mask_level = f->mask_level };
  for (int i = 0; i < p->n; i++) {
    cpu_jit_loc_push(&loc, p->dims[i], p->sizes[i], f->index[i]);
  }
  const cpu_jit_loc *at = cpu_jit_loc_of(env, &loc);
  if (is_in_order(p)) cpu_jit_stream(env, at);
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    x[i] = p->second ? cpu_jit_load(env, cpu_jit_scratch(f->env, s->offset),
                                    s->elem, at)
                     : cpu_jit_emit(env, s->op->operands[s->index], at);
    if (p->second && s->total != s->elem) {
      x[i] = cpu_jit_convert(env, x[i], s->total);
    }
  }
  if (!p->second) store_outputs(f, true, at);
}

// Where the loop over the blocks of a run at `iv` ends its block.
LLVMValueRef cpu_jit_reduce_block_limit(cpu_jit_env *env,
                                        const cpu_jit_loop *loop, int64_t step,
                                        LLVMValueRef hi)
{
  LLVMValueRef next =
      cpu_jit_op2(env, LLVMAdd, loop->iv, cpu_jit_i64(env, step), loop->level);
  return cpu_jit_least(env, next, hi, loop->level);
}

// ---- locations ----

const cpu_jit_loc *cpu_jit_reduce_out_loc(cpu_jit_reduce_phase *f,
                                          cpu_jit_ix start, LLVMValueRef mask)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_loc out = { .mask = mask, .mask_level = f->mask_level };
  const cx_hlo_op *op = p->sums[0].op;
  const int rank = (int)cpu_jit_type(&op->results[0])->rank;
  if (rank == 0) return &f->env->scalar;
  for (int i = 0; i < p->n; i++) {
    if (p->reduced[i]) continue;
    cpu_jit_loc_push(&out, p->out_dims[i], p->sizes[i],
                     i == p->vector ? start : f->index[i]);
  }
  if (out.n == 0) {
    cpu_jit_loc_push(&out, rank, 1, cpu_jit_ix_const(f->env, 0));
  }
  return cpu_jit_loc_of(f->env, &out);
}

cpu_jit_loc cpu_jit_reduce_partial_loc(const cpu_jit_reduce_phase *f,
                                       const cpu_jit_loc *out)
{
  cpu_jit_loc at = { .mask = out->mask, .mask_level = out->mask_level };
  cpu_jit_loc_push(&at, 1, f->p->pieces, f->piece);
  for (int i = 0; i < out->n; i++) at.part[at.n++] = out->part[i];
  return at;
}

void cpu_jit_reduce_store_at(cpu_jit_reduce_phase *f, size_t offset,
                             cpu_jit_val v, const cpu_jit_loc *at)
{
  cpu_jit_store(f->env, cpu_jit_scratch(f->env, offset), v, at,
                f->env->n_levels - 1);
}

// ---- results ----

void cpu_jit_reduce_store_partial(cpu_jit_reduce_phase *f,
                                  const cpu_jit_val *sums,
                                  const cpu_jit_loc *out)
{
  const cpu_jit_plan *p = f->p;
  const cpu_jit_loc at = cpu_jit_reduce_partial_loc(f, out);
  for (size_t i = 0; i < p->n_sums; i++) {
    cpu_jit_reduce_store_at(f, p->sums[i].offset, sums[i], &at);
  }
}

void cpu_jit_reduce_store_results(cpu_jit_reduce_phase *f, cpu_jit_val *sums,
                                  const cpu_jit_loc *out)
{
  const cpu_jit_plan *p = f->p;
  cpu_jit_env *env = f->env;
  for (size_t i = 0; i < p->n_sums; i++) {
    const cpu_jit_sum *s = &p->sums[i];
    if (s->simple != NULL) {
      cpu_jit_val first = cpu_jit_reduce_initial(env, s);
      if (first.elem != sums[i].elem) {
        first = cpu_jit_convert(env, first, sums[i].elem);
      }
      sums[i] = cpu_jit_combine(env, s->simple, first, sums[i]);
    }
    const cx_hlo_elem e = cpu_jit_type(&s->op->results[s->index])->elem;
    sums[i] = cpu_jit_summed(env, sums[i], e);
    cpu_jit_known(env, &s->op->results[s->index], out, sums[i]);
  }
  store_outputs(f, false, out);
}
