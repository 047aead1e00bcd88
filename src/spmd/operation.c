// spmd/operation: runs an operation on a device's parts of its operands.
//
// Its factors have axes (spmd/choose.c). The operands are split accordingly,
// the operation runs on the parts, and its results are combined where a
// contracted index is cut. Then they are split as the program wants them.
#include <string.h>

#include "hlo/infer.h"
#include "spmd/internal.h"

// ---- the operation on parts ----

// A slice that is as long as the whole is as long as the part.
static void fit_sizes(cx_spmd_state *s, cx_hlo_op *to, const cx_hlo_op *op)
{
  const cx_hlo_ints sizes = cx_hlo_op_ints(op, CX_HLO_A_SLICE_SIZES);
  const cx_hlo_type *x = &op->operands[0]->type.tensor;
  const cx_hlo_type *part = &to->operands[0]->type.tensor;
  int64_t *now = CX_ARENA_ARRAY(&s->arena, int64_t, sizes.n + 1);
  if (now == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return;
  }
  for (size_t d = 0; d < sizes.n; d++) {
    now[d] = sizes.v[d] == x->dims[d] ? part->dims[d] : sizes.v[d];
  }
  cx_hlo_build_ints(&s->b, to, CX_HLO_A_SLICE_SIZES, now, sizes.n);
}

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
  } else if (op->kind == CX_HLO_OP_GATHER ||
             op->kind == CX_HLO_OP_DYNAMIC_SLICE) {
    fit_sizes(s, to, op);
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

// The attributes that ops.def does not name. A sharding is that of the whole.
static void keep_extra(cx_spmd_state *s, cx_hlo_op *to, const cx_hlo_op *op)
{
  cx_hlo_module *m = s->b.module;
  cx_hlo_named_list list = { op->extra, op->n_extra };
  calx_status *status = cx_spmd_drop_attr(m, &list, "sdy.sharding");
  if (status == NULL) status = cx_spmd_drop_attr(m, &list, "mhlo.sharding");
  cx_hlo_builder_fail(&s->b, status);
  to->extra = list.items;
  to->n_extra = (uint32_t)list.n;
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
  keep_extra(s, to, op);
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

// What an operation has become.
typedef struct made_op {
  const cx_spmd_rule *rule;
  const cx_spmd_axes *axes;  // of the factors
  cx_spmd_sharding *parts;   // of operands and results
  cx_hlo_value *inside;      // of a gather; NULL: all indices are
} made_op;

// The devices' parts of a contraction become one.
static cx_hlo_value *combine(cx_spmd_state *s, const made_op *m,
                             cx_hlo_value *v, cx_spmd_sharding *part,
                             const cx_spmd_sharding *want)
{
  const cx_spmd_axes all = cx_spmd_reduced_axes(m->rule, m->axes);
  const cx_spmd_axes reduced = cx_spmd_axes_without(all, want->unreduced);
  part->unreduced = cx_spmd_axes_in(all, want->unreduced);
  if (reduced == 0) return v;
  return cx_spmd_combine(s, m->rule->combine, v, reduced, part, want->dims);
}

// A gather's zeros are added as integers, so that no bit changes.
static cx_hlo_value *combine_bits(cx_spmd_state *s, const made_op *m,
                                  const cx_hlo_op *op, cx_hlo_value *v,
                                  cx_spmd_sharding *part,
                                  const cx_spmd_sharding *want)
{
  v = combine(s, m, cx_spmd_keep_inside(s, op, v, m->inside), part, want);
  cx_hlo_type type = *cx_hlo_value_type(v);
  type.elem = op->results[0].type.tensor.elem;
  return cx_hlo_bitcast_convert(&s->b, v, type);
}

static void finish(cx_spmd_state *s, const made_op *m, const cx_hlo_op *op,
                   cx_hlo_op *to)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    cx_hlo_value *v = &to->results[i];
    cx_spmd_sharding *part = &m->parts[op->n_operands + i];
    const cx_spmd_sharding *want = &s->want[op->results[i].number];
    v = m->inside != NULL ? combine_bits(s, m, op, v, part, want)
                          : combine(s, m, v, part, want);
    s->local[op->results[i].number] = cx_spmd_reshard(s, v, part, want);
  }
}

// ---- the whole ----

static cx_hlo_value **take_operands(cx_spmd_state *s, const cx_hlo_op *op,
                                    made_op *m)
{
  cx_hlo_value **operands =
      CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, op->n_operands + 1u);
  if (operands == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return NULL;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const uint32_t number = op->operands[i]->number;
    operands[i] =
        cx_spmd_reshard(s, s->local[number], &s->want[number], &m->parts[i]);
  }
  if (op->kind == CX_HLO_OP_GATHER) {
    m->inside = cx_spmd_move_gather(s, op, m->rule, m->axes, operands);
  } else if (op->kind == CX_HLO_OP_SCATTER) {
    cx_spmd_move_scatter(s, op, m->rule, m->axes, operands);
  }
  return operands;
}

void cx_spmd_operation(cx_spmd_state *s, cx_hlo_op *op)
{
  made_op m = { .rule = op->n_results > 0 ? s->rules[op->results[0].number]
                                          : cx_spmd_rule_of(&s->arena, op) };
  m.parts =
      CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, cx_hlo_op_n_types(op) + 1);
  if (m.rule != NULL && m.parts != NULL) {
    m.axes = cx_spmd_choose(s, m.rule, op->n_operands, m.parts);
  }
  if (m.axes == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return;
  }
  cx_hlo_value **operands = take_operands(s, op, &m);
  if (operands == NULL) return;
  cx_hlo_op *to = cx_spmd_run(s, op, operands, m.parts + op->n_operands);
  if (to != NULL) finish(s, &m, op, to);
}
