// spmd/operation: runs an operation on a device's parts of its operands.
//
// Each factor gets axes, no axis twice. The operands are split accordingly, the
// operation runs on the parts, and its results are combined where a contracted
// index is cut. Then they are split as the program wants them.
#include <string.h>

#include "hlo/infer.h"
#include "spmd/internal.h"

// ---- the axes of the factors ----

static bool is_taken(const cx_spmd_axes *taken, size_t n, size_t axis)
{
  for (size_t f = 0; f < n; f++) {
    if (cx_spmd_axes_have(taken[f], axis)) return true;
  }
  return false;
}

// As many of the axes as no other factor has and as split each dimension of the
// factor evenly.
static cx_spmd_axes possible(const cx_spmd_state *s, const cx_spmd_rule *r,
                             const cx_spmd_axes *taken, size_t f,
                             cx_spmd_axes axes)
{
  size_t n = 0;
  while (n < cx_spmd_axes_count(axes) &&
         !is_taken(taken, r->n_factors, cx_spmd_axes_at(axes, n))) {
    n++;
  }
  axes = cx_spmd_axes_first(axes, n);
  for (size_t t = 0; t < r->n_tensors; t++) {
    const cx_hlo_type *type = &r->tensors[t]->type.tensor;
    for (size_t d = 0; d < type->rank; d++) {
      while (r->factors[t][d] == (int32_t)f &&
             !cx_spmd_fits(&s->mesh, type->dims[d], axes)) {
        axes = cx_spmd_axes_first(axes, cx_spmd_axes_count(axes) - 1);
      }
    }
  }
  return axes;
}

// Gives factors without axes those of the tensors in [from, to).
static void take(const cx_spmd_state *s, const cx_spmd_rule *r, size_t from,
                 size_t to, bool reduces, cx_spmd_axes *axes)
{
  for (size_t t = from; t < to; t++) {
    const cx_spmd_sharding *w = &s->want[r->tensors[t]->number];
    for (size_t d = 0; d < w->rank; d++) {
      const int32_t f = r->factors[t][d];
      if (f < 0 || r->reduces[f] != reduces || axes[f] != 0) continue;
      axes[f] = possible(s, r, axes, (size_t)f, w->dims[d]);
    }
  }
}

// Results come first: an index that is contracted would need communication.
static cx_spmd_axes *choose(cx_spmd_state *s, const cx_spmd_rule *r,
                            size_t n_operands)
{
  cx_spmd_axes *axes =
      CX_ARENA_ARRAY(&s->arena, cx_spmd_axes, r->n_factors + 1);
  if (axes == NULL) return NULL;
  take(s, r, n_operands, r->n_tensors, false, axes);
  take(s, r, 0, n_operands, false, axes);
  take(s, r, 0, n_operands, true, axes);
  return axes;
}

static bool split_of(cx_spmd_state *s, const cx_spmd_rule *r, size_t t,
                     const cx_spmd_axes *axes, cx_spmd_sharding *out)
{
  const size_t rank = s->want[r->tensors[t]->number].rank;
  if (!cx_spmd_sharding_new(&s->arena, rank, false, out)) return false;
  for (size_t d = 0; d < rank; d++) {
    if (r->factors[t][d] >= 0) out->dims[d] = axes[r->factors[t][d]];
  }
  return true;
}

// ---- the operation on parts ----

// Attributes that say sizes of the whole say those of the part.
static void fit_attrs(cx_spmd_state *s, cx_hlo_op *to, const cx_hlo_op *op,
                      const cx_hlo_type *part)
{
  const cx_hlo_type *x =
      op->n_operands > 0 ? &op->operands[0]->type.tensor : part;
  cx_hlo_module *m = s->b.module;
  if (op->kind == CX_HLO_OP_CONSTANT) {
    const cx_hlo_elements *e = &cx_hlo_op_attr(op, CX_HLO_A_VALUE)->as.elements;
    if (!e->splat) return;
    cx_hlo_build_attr(&s->b, to, CX_HLO_A_VALUE,
                      cx_hlo_attr_elements(m, part, e->data, e->size));
  } else if (op->kind == CX_HLO_OP_SLICE) {
    const cx_hlo_ints limits = cx_hlo_op_ints(op, CX_HLO_A_LIMIT_INDICES);
    int64_t *now = CX_ARENA_ARRAY(&s->arena, int64_t, limits.n);
    if (now == NULL) {
      cx_hlo_builder_fail(&s->b, cx_out_of_memory());
      return;
    }
    for (size_t d = 0; d < limits.n; d++) {
      const bool whole = op->results[0].type.tensor.dims[d] == x->dims[d];
      now[d] = whole ? part->dims[d] : limits.v[d];
    }
    cx_hlo_build_ints(&s->b, to, CX_HLO_A_LIMIT_INDICES, now, limits.n);
  }
}

static void move_regions(cx_hlo_op *to, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < to->n_regions; i++) {
    to->regions[i].first = op->regions[i].first;
    to->regions[i].last = op->regions[i].last;
    for (cx_hlo_block *b = to->regions[i].first; b != NULL; b = b->next) {
      b->region = &to->regions[i];
    }
  }
}

cx_hlo_op *cx_spmd_run(cx_spmd_state *s, const cx_hlo_op *op,
                       cx_hlo_value *const *operands,
                       const cx_spmd_sharding *parts)
{
  cx_hlo_op *to = cx_hlo_build_begin(&s->b, op->kind, operands, op->n_operands,
                                     op->n_results, op->n_regions);
  if (to == NULL) return NULL;
  const size_t n = cx_hlo_op_info_of(op->kind)->n_attrs;
  for (size_t i = 0; i < n; i++) to->attrs[i] = op->attrs[i];
  to->name = op->name;
  to->extra = op->extra;
  to->n_extra = op->n_extra;
  move_regions(to, op);
  for (uint32_t i = 0; i < op->n_results; i++) {
    to->results[i].type = op->results[i].type;
    if (op->results[i].type.non_tensor != NULL) continue;
    const cx_hlo_type part =
        cx_spmd_local(s, &op->results[i].type.tensor, parts[i].dims);
    cx_hlo_build_declare(&s->b, to, i, &part);
    if (i == 0) fit_attrs(s, to, op, &part);
  }
  if (s->b.failed != NULL) return NULL;
  if (op->kind == CX_HLO_OP_OTHER) {
    cx_hlo_op_append(s->b.block, to);
  } else {
    cx_hlo_build_end(&s->b, to);
  }
  return s->b.failed != NULL ? NULL : to;
}

// ---- the results ----

static cx_spmd_axes reduced_axes(const cx_spmd_rule *r,
                                 const cx_spmd_axes *axes)
{
  cx_spmd_axes all = 0;
  for (size_t f = 0; f < r->n_factors; f++) {
    if (r->reduces[f]) all = cx_spmd_axes_join(all, axes[f]);
  }
  return all;
}

static void finish(cx_spmd_state *s, const cx_spmd_rule *r, cx_hlo_op *op,
                   cx_hlo_op *made, const cx_spmd_axes *axes,
                   const cx_spmd_sharding *parts)
{
  const cx_spmd_axes reduced = reduced_axes(r, axes);
  for (uint32_t i = 0; i < op->n_results; i++) {
    cx_hlo_value *v = &made->results[i];
    const cx_spmd_sharding *want = &s->want[op->results[i].number];
    if (reduced != 0) v = cx_spmd_all_reduce(s, r->combine, v, reduced);
    s->local[op->results[i].number] =
        cx_spmd_reshard(s, v, &parts[i], want->dims);
  }
}

void cx_spmd_operation(cx_spmd_state *s, cx_hlo_op *op)
{
  const cx_spmd_rule *r = op->n_results > 0 ? s->rules[op->results[0].number]
                                            : cx_spmd_rule_of(&s->arena, op);
  const size_t n = cx_hlo_op_n_types(op);
  cx_spmd_axes *axes = r == NULL ? NULL : choose(s, r, op->n_operands);
  cx_spmd_sharding *parts = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n + 1);
  cx_hlo_value **operands = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, n + 1);
  bool made = axes != NULL && parts != NULL && operands != NULL;
  for (size_t t = 0; made && t < n; t++) {
    made = split_of(s, r, t, axes, &parts[t]);
  }
  if (!made) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const uint32_t number = op->operands[i]->number;
    operands[i] =
        cx_spmd_reshard(s, s->local[number], &s->want[number], parts[i].dims);
  }
  cx_hlo_op *to = cx_spmd_run(s, op, operands, parts + op->n_operands);
  if (to != NULL) finish(s, r, op, to, axes, parts + op->n_operands);
}
