// jit/nest: see nest.h.
#include "jit/nest.h"

void cpu_jit_nest_block(cpu_jit_nest *s, int64_t most)
{
  s->block = s->inner <= 2 * most ? s->inner : most;
  s->blocks = s->inner == 0 ? 0 : (s->inner + s->block - 1) / s->block;
}

cpu_jit_nest cpu_jit_nest_of(cpu_jit_env *env, const cx_hlo_type *t,
                             uint32_t cuts)
{
  cpu_jit_nest s = { 0 };
  const int lanes = env->target->lanes;
  s.n = cpu_jit_runs(t, cuts, s.dims, s.sizes);
  s.open = s.n == 1 && s.sizes[0] > 1;
  if (s.n > 1 && s.sizes[s.n - 1] < lanes / 2) {
    s.n = cpu_jit_runs(t, 0, s.dims, s.sizes);
  }
  s.inner = s.n == 0 ? 1 : s.sizes[s.n - 1];
  cpu_jit_nest_block(&s, CPU_JIT_NEST_BLOCK);
  return s;
}

int64_t cpu_jit_nest_extent(const cpu_jit_nest *s)
{
  int64_t extent = s->open ? s->inner : s->blocks;
  for (int i = 0; i + 1 < s->n; i++) extent *= s->sizes[i];
  return extent;
}

cpu_jit_ix cpu_jit_iteration(cpu_jit_env *env, const cpu_jit_nest *s,
                             cpu_jit_ix t, int64_t extent, cpu_jit_loc *out)
{
  int64_t size = extent;
  const cpu_jit_ix block = cpu_jit_ix_take(env, &t, &size, s->blocks);
  cpu_jit_ix index[CPU_JIT_RANK];
  for (int i = s->n - 2; i >= 0; i--) {
    index[i] = cpu_jit_ix_take(env, &t, &size, s->sizes[i]);
  }
  *out = (cpu_jit_loc){ .n = 0 };
  for (int i = 0; i + 1 < s->n; i++) {
    cpu_jit_loc_push(out, s->dims[i], s->sizes[i], index[i]);
  }
  return cpu_jit_ix_scale(env, block, s->block);
}

uint32_t cpu_jit_update_cuts(const cx_hlo_op *op)
{
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *u = cpu_jit_type(op->operands[1]);
  uint32_t cuts = 0;
  for (size_t d = 0; d < t->rank; d++) {
    if (t->dims[d] != u->dims[d]) cuts |= (uint32_t)1 << d;
  }
  return cuts;
}

// The location in the updated tensor of a location in the update.
static void updated_loc(cpu_jit_env *env, const cx_hlo_op *op,
                        const cpu_jit_loc *at, cpu_jit_loc *out)
{
  const cx_hlo_type *t = cpu_jit_type(op->operands[0]);
  const cx_hlo_type *u = cpu_jit_type(op->operands[1]);
  cpu_jit_loc_cut(env, u, at, cpu_jit_update_cuts(op), out);
  size_t d = 0;
  for (int i = 0; i < out->n; i++) {
    cpu_jit_part *part = &out->part[i];
    if (t->dims[d] != u->dims[d]) {
      const int64_t inner = part->size / u->dims[d];
      cpu_jit_ix start = cpu_jit_start_index(
          env, op->operands[2 + d], &env->scalar, t->dims[d] - u->dims[d]);
      part->ix =
          cpu_jit_ix_add(env, part->ix, cpu_jit_ix_scale(env, start, inner));
      part->size = t->dims[d] * inner;
    }
    d += (size_t)part->dims;
  }
}

// The location in the concatenation of a location in an operand of it.
static void piece_loc(cpu_jit_env *env, const cpu_jit_work *k,
                      const cpu_jit_loc *at, cpu_jit_loc *out)
{
  const size_t d = (size_t)cx_hlo_op_int(k->whole, CX_HLO_A_DIMENSION);
  const cx_hlo_type *t = cpu_jit_type(&k->whole->results[0]);
  const cx_hlo_type *u = cpu_jit_type(k->values[0]);
  cpu_jit_loc_cut(env, u, at, (uint32_t)1 << d, out);
  size_t next = 0;
  for (int i = 0; i < out->n; i++) {
    cpu_jit_part *part = &out->part[i];
    if (next == d) {
      const int64_t inner = part->size / u->dims[d];
      part->ix = cpu_jit_ix_offset(env, part->ix, k->first * inner);
      part->size = t->dims[d] * inner;
    }
    next += (size_t)part->dims;
  }
}

void cpu_jit_store_at(cpu_jit_env *env, const cpu_jit_work *k,
                      const cpu_jit_nest *s, const cpu_jit_loc *outer,
                      cpu_jit_ix inner, LLVMValueRef mask)
{
  cpu_jit_loc p = *outer;
  if (s->n > 0) cpu_jit_loc_push(&p, s->dims[s->n - 1], s->inner, inner);
  p.mask = mask;
  const cpu_jit_loc *at = cpu_jit_loc_of(env, &p);
  if (k->update == NULL && k->whole == NULL) {
    cpu_jit_store_values(env, k->values, k->n, k->buffer, at);
    return;
  }
  const cpu_jit_val v = cpu_jit_emit(env, k->values[0], at);
  if (cpu_jit_failed(env)) return;
  if (k->whole != NULL) {
    piece_loc(env, k, at, &p);
  } else {
    updated_loc(env, k->update, at, &p);
  }
  cpu_jit_store(env, cpu_jit_buffer(env, k->buffer), v, &p, env->n_levels - 1);
}
