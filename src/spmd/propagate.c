// spmd/propagate: shardings spread from the values that have them.
//
// Each operation extends the lists of axes of dimensions that are cut together
// to the longest of them, forward and backward over the program, until nothing
// changes or the sweeps are used up. What the program asks for stays as it is.
#include "spmd/internal.h"

// Bounds the time. Any shardings give a right program.
enum { MOST_SWEEPS = 64 };

// Extends one dimension by those of the axes that it can take.
static bool extend(cx_spmd_state *s, const cx_hlo_value *v, size_t d,
                   cx_spmd_axes to)
{
  cx_spmd_sharding *w = &s->want[v->number];
  bool changed = false;
  if (!w->open[d]) return false;
  for (size_t n = cx_spmd_axes_count(w->dims[d]); n < cx_spmd_axes_count(to);
       n++) {
    const cx_spmd_axes more = cx_spmd_axes_first(to, n + 1);
    if (cx_spmd_axes_common(w->dims[d], to) != n ||
        cx_spmd_uses(w, cx_spmd_axes_at(to, n)) ||
        !cx_spmd_fits(&s->mesh, v->type.tensor.dims[d], more)) {
      break;
    }
    w->dims[d] = more;
    changed = true;
  }
  return changed;
}

// The longest list of a dimension of the factor, where all begin alike.
static cx_spmd_axes longest(const cx_spmd_state *s, const cx_spmd_rule *r,
                            size_t f)
{
  cx_spmd_axes best = 0;
  for (size_t t = 0; t < r->n_tensors; t++) {
    const cx_spmd_sharding *w = &s->want[r->tensors[t]->number];
    for (size_t d = 0; d < w->rank; d++) {
      if (r->factors[t][d] == (int32_t)f &&
          cx_spmd_axes_common(best, w->dims[d]) == cx_spmd_axes_count(best)) {
        best = w->dims[d];
      }
    }
  }
  return best;
}

static bool spread(cx_spmd_state *s, const cx_spmd_rule *r)
{
  bool changed = false;
  for (size_t f = 0; f < r->n_factors; f++) {
    const cx_spmd_axes axes = longest(s, r, f);
    for (size_t t = 0; axes != 0 && t < r->n_tensors; t++) {
      const size_t rank = s->want[r->tensors[t]->number].rank;
      for (size_t d = 0; d < rank; d++) {
        if (r->factors[t][d] != (int32_t)f) continue;
        changed = extend(s, r->tensors[t], d, axes) || changed;
      }
    }
  }
  return changed;
}

// One sweep over a block, with those of its operations' regions.
static bool sweep(cx_spmd_state *s, const cx_hlo_block *block, bool forward)
{
  bool changed = false;
  if (block == NULL) return false;
  for (const cx_hlo_op *op = forward ? block->first : block->last; op != NULL;
       op = forward ? op->next : op->previous) {
    if (op->n_results > 0) {
      changed = spread(s, s->rules[op->results[0].number]) || changed;
    }
    for (uint32_t i = 0; i < op->n_regions; i++) {
      changed = sweep(s, op->regions[i].first, forward) || changed;
    }
  }
  return changed;
}

// ---- the beginning ----

static calx_status *begin_value(cx_spmd_state *s, const cx_hlo_value *v,
                                bool open)
{
  const size_t rank = v->type.non_tensor == NULL ? v->type.tensor.rank : 0;
  return cx_spmd_sharding_new(&s->arena, rank, open, &s->want[v->number])
             ? NULL
             : cx_out_of_memory();
}

// The results of sdy.manual_computation are split as it says.
static calx_status *begin_manual(cx_spmd_state *s, const cx_hlo_op *op)
{
  const size_t n = op->n_results + 1u;
  cx_spmd_sharding *out = CX_ARENA_ARRAY(&s->arena, cx_spmd_sharding, n);
  cx_hlo_value **results = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, n);
  if (out == NULL || results == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = &op->results[i];
  CALX_TRY(cx_spmd_read_list(
      &s->mesh, &s->arena,
      cx_hlo_named_attr(op->extra, op->n_extra, "out_shardings"), results,
      op->n_results, out));
  for (uint32_t i = 0; i < op->n_results; i++) {
    s->want[op->results[i].number] = out[i];
  }
  return NULL;
}

// A sum of parts that the program wants unreduced is left so.
static void leave_parts(cx_spmd_state *s, const cx_hlo_value *v,
                        cx_spmd_axes unreduced)
{
  if (v->op == NULL || v->op->kind == CX_HLO_OP_GATHER) return;
  const cx_spmd_rule *r = s->rules[v->number];
  if (r != NULL && r->combine == CX_HLO_OP_ADD && v->op->n_results == 1) {
    s->want[v->number].unreduced = unreduced;
  }
}

static calx_status *begin_constraint(cx_spmd_state *s, const cx_hlo_op *op)
{
  cx_spmd_sharding *want = &s->want[op->results[0].number];
  CALX_TRY(cx_spmd_read_constraint(
      &s->mesh, &s->arena,
      cx_hlo_named_attr(op->extra, op->n_extra, "sharding"),
      &op->results[0].type, want));
  if (want->unreduced != 0) leave_parts(s, op->operands[0], want->unreduced);
  return NULL;
}

static calx_status *begin_op(cx_spmd_state *s, const cx_hlo_op *op)
{
  for (uint32_t i = 0; i < op->n_results; i++) {
    CALX_TRY(begin_value(s, &op->results[i], true));
  }
  if (op->n_results == 0) return NULL;
  s->rules[op->results[0].number] = cx_spmd_rule_of(&s->arena, op);
  if (s->rules[op->results[0].number] == NULL) return cx_out_of_memory();
  if (cx_hlo_str_equal(op->name, "sdy.sharding_constraint") ||
      cx_hlo_str_equal(op->name, "sdy.reshard")) {
    return begin_constraint(s, op);
  }
  return cx_hlo_str_equal(op->name, "sdy.manual_computation")
             ? begin_manual(s, op)
             : NULL;
}

static calx_status *begin_block(cx_spmd_state *s, const cx_hlo_block *block)
{
  if (block == NULL) return NULL;
  for (size_t i = 0; i < block->n_args; i++) {
    CALX_TRY(begin_value(s, &block->args[i], false));
  }
  for (const cx_hlo_op *op = block->first; op != NULL; op = op->next) {
    CALX_TRY(begin_op(s, op));
    for (uint32_t i = 0; i < op->n_regions; i++) {
      CALX_TRY(begin_block(s, op->regions[i].first));
    }
  }
  return NULL;
}

static calx_status *begin_params(cx_spmd_state *s, const cx_hlo_func *f)
{
  const cx_hlo_block *body = f->body.first;
  for (size_t i = 0; i < body->n_args && f->param_attrs != NULL; i++) {
    const cx_hlo_named_list *list = &f->param_attrs[i];
    const cx_hlo_attr *attr =
        cx_hlo_named_attr(list->items, list->n, "sdy.sharding");
    if (attr == NULL) continue;
    cx_spmd_sharding *want = &s->want[body->args[i].number];
    CALX_TRY(cx_spmd_read_sharding(&s->mesh, &s->arena, attr,
                                   &body->args[i].type, want));
    for (size_t d = 0; d < want->rank; d++) want->open[d] = false;
  }
  return NULL;
}

calx_status *cx_spmd_propagate(cx_spmd_state *s, cx_hlo_func *f)
{
  CALX_TRY(begin_block(s, f->body.first));
  CALX_TRY(begin_params(s, f));
  for (int i = 0; i < MOST_SWEEPS; i++) {
    const bool forward = sweep(s, f->body.first, true);
    if (!sweep(s, f->body.first, false) && !forward) break;
  }
  return NULL;
}
