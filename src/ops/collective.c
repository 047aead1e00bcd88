// ops/collective: the nodes in which all ranks take part: shape rules,
// gradients, emission. The entries are in collective_call.c.
//
// Only operations that every compiler has are emitted. XLA for CPU and GPU has
// bitwise "and" and "or" of bool only, and no broadcast. These are emitted as
// other collectives. A broadcast is a sum of the elements' bits as integers,
// which are zero on all ranks but the root: the result is exact, also where
// other ranks hold NaN.
#include "ops/collective.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"

// ---- shape rules ------------------------------------------------------------

static calx_status *split(cx_graph_node *node, int64_t *d, uint32_t dim)
{
  const cx_ops_coll_attrs *a = node->attrs;
  if (*d % a->members != 0) {
    return cx_ops_error(node,
                        "dimension %u cannot be split into %u equal parts", dim,
                        a->members);
  }
  *d /= a->members;
  return NULL;
}

static calx_status *join(cx_graph_node *node, int64_t *d, uint32_t dim)
{
  const cx_ops_coll_attrs *a = node->attrs;
  if (__builtin_mul_overflow(*d, (int64_t)a->members, d)) {
    return cx_ops_error(node, "dimension %u becomes too large", dim);
  }
  return NULL;
}

static calx_status *infer_gather(cx_graph_node *node)
{
  const cx_ops_coll_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  return join(node, &out->dims[a->dim], a->dim);
}

static calx_status *infer_scatter(cx_graph_node *node)
{
  const cx_ops_coll_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  return split(node, &out->dims[a->dim], a->dim);
}

static calx_status *infer_all_to_all(cx_graph_node *node)
{
  const cx_ops_coll_attrs *a = node->attrs;
  cx_graph_shape *out = &node->out[0].shape;
  *out = *cx_in(node, 0);
  CALX_TRY(split(node, &out->dims[a->dim], a->dim));
  return join(node, &out->dims[a->to_dim], a->to_dim);
}

// ---- gradients --------------------------------------------------------------

// A collective of the gradient, with this node's attributes but other
// dimensions.
static void give(cx_lazy_tape *t, const cx_graph_op *op, uint32_t dim,
                 uint32_t to_dim, bool reversed)
{
  const cx_ops_coll_attrs *mine = t->attrs;
  cx_ops_coll_attrs *a = cx_alloc(mine->bytes);
  if (a == NULL) {
    t->in_grads[0] = cx_lazy_tensor_poison(cx_out_of_memory());
    return;
  }
  memcpy(a, mine, mine->bytes);
  a->type = CALX_REDUCE_SUM;
  a->dim = dim;
  a->to_dim = to_dim;
  for (uint32_t i = 0; reversed && i + 1 < a->n_ids; i += 2) {
    a->ids[i] = mine->ids[i + 1];
    a->ids[i + 1] = mine->ids[i];
  }
  cx_lazy_call call = { .op = op,
                        .in = &t->out_grads[0],
                        .n_in = 1,
                        .attrs = a,
                        .flags = CX_GRAPH_NODE_COLLECTIVE };
  t->in_grads[0] = cx_lazy_apply(&call, NULL);
  cx_free(a);
}

static bool adds(cx_lazy_tape *t)
{
  const cx_ops_coll_attrs *a = t->attrs;
  if (a->type == CALX_REDUCE_SUM) return true;
  t->in_grads[0] = cx_ops_poison(
      CALX_UNIMPLEMENTED,
      "%s: only a sum over the ranks has a gradient; detach the operand",
      t->node->op->name);
  return false;
}

static void grad_reduce(cx_lazy_tape *t)
{
  if (adds(t)) give(t, &cx_ops_all_reduce, 0, 0, false);
}

static void grad_gather(cx_lazy_tape *t)
{
  const cx_ops_coll_attrs *a = t->attrs;
  give(t, &cx_ops_reduce_scatter, a->dim, 0, false);
}

static void grad_scatter(cx_lazy_tape *t)
{
  const cx_ops_coll_attrs *a = t->attrs;
  if (adds(t)) give(t, &cx_ops_all_gather, a->dim, 0, false);
}

static void grad_all_to_all(cx_lazy_tape *t)
{
  const cx_ops_coll_attrs *a = t->attrs;
  give(t, &cx_ops_all_to_all, a->to_dim, a->dim, false);
}

static void grad_permute(cx_lazy_tape *t)
{
  give(t, &cx_ops_collective_permute, 0, 0, true);
}

// ---- emission ---------------------------------------------------------------

// The node's groups; ids is freed with cx_free(). False: no memory.
static bool groups_of(const cx_graph_emit *e, cx_hlo_groups *out, int64_t **ids)
{
  const cx_ops_coll_attrs *a = e->attrs;
  *ids = cx_alloc(a->world * sizeof **ids);
  if (*ids == NULL) {
    cx_hlo_builder_fail(e->b, cx_out_of_memory());
    return false;
  }
  for (uint32_t i = 0; i < a->world; i++) {
    (*ids)[i] = a->n_ids == 0 ? (int64_t)i : a->ids[i];
  }
  *out = (cx_hlo_groups){ *ids, a->groups, a->members };
  return true;
}

static cx_hlo_op_kind kind_of(const cx_ops_coll_attrs *a)
{
  static const cx_hlo_op_kind kinds[] = {
    [CALX_REDUCE_SUM] = CX_HLO_OP_ADD,
    [CALX_REDUCE_MIN] = CX_HLO_OP_MINIMUM,
    [CALX_REDUCE_MAX] = CX_HLO_OP_MAXIMUM,
    [CALX_REDUCE_MUL] = CX_HLO_OP_MULTIPLY,
    [CALX_REDUCE_AND] = CX_HLO_OP_AND,
    [CALX_REDUCE_OR] = CX_HLO_OP_OR,
  };
  return kinds[a->type];
}

// Whether integers are combined bit by bit.
static bool is_bitwise(const cx_graph_emit *e)
{
  const cx_ops_coll_attrs *a = e->attrs;
  return (a->type == CALX_REDUCE_AND || a->type == CALX_REDUCE_OR) &&
         cx_in(e->node, 0)->dtype != CALX_BOOL;
}

// Combines x along its dimension `dim`.
static cx_hlo_value *combine(const cx_graph_emit *e, cx_hlo_value *x,
                             int64_t dim)
{
  const cx_ops_coll_attrs *a = e->attrs;
  cx_hlo_type rank0 = { .elem = cx_hlo_value_type(x)->elem };
  cx_hlo_value *init =
      cx_hlo_splat_int(e->b, rank0, a->type == CALX_REDUCE_AND ? -1 : 0);
  return cx_hlo_reduce_with(e->b, kind_of(a), x, init, &dim, 1);
}

// Gathers the integers of all ranks, then combines them.
static cx_hlo_value *gather_and_combine(const cx_graph_emit *e,
                                        const cx_hlo_groups *g)
{
  const cx_graph_shape *s = cx_in(e->node, 0);
  int64_t row[2] = { 1, cx_graph_shape_numel(s) };
  cx_hlo_value *v = cx_hlo_reshape(e->b, e->in[0], row, 2);
  v = combine(e, cx_hlo_all_gather(e->b, v, 0, g), 0);
  return cx_hlo_reshape(e->b, v, s->dims, s->rank);
}

// Gathers the parts that are for this rank, joined along `dim`, then combines
// them.
static cx_hlo_value *exchange_and_combine(const cx_graph_emit *e,
                                          const cx_hlo_groups *g)
{
  const cx_ops_coll_attrs *a = e->attrs;
  const cx_graph_shape *s = cx_in(e->node, 0);
  cx_hlo_value *v = cx_hlo_all_to_all(e->b, e->in[0], a->dim, a->dim, g);
  int64_t before = 1, after = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    if (i < a->dim) before *= s->dims[i];
    if (i > a->dim) after *= s->dims[i];
  }
  int64_t parts[3] = { before, a->members,
                       s->dims[a->dim] / a->members * after };
  v = combine(e, cx_hlo_reshape(e->b, v, parts, 3), 1);
  const cx_graph_shape *out = &e->node->out[0].shape;
  return cx_hlo_reshape(e->b, v, out->dims, out->rank);
}

// Not every compiler takes a collective of no elements.
static bool emit_empty(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  if (cx_graph_shape_numel(s) != 0) return false;
  e->out[0] = cx_ops_emit_splat(e, cx_hlo_elem_of(s->dtype), s, 0);
  return true;
}

static void emit_reduce(cx_graph_emit *e)
{
  cx_hlo_groups g;
  int64_t *ids;
  if (emit_empty(e) || !groups_of(e, &g, &ids)) return;
  e->out[0] = is_bitwise(e)
                  ? gather_and_combine(e, &g)
                  : cx_hlo_all_reduce(e->b, kind_of(e->attrs), e->in[0], &g);
  cx_free(ids);
}

static void emit_scatter(cx_graph_emit *e)
{
  const cx_ops_coll_attrs *a = e->attrs;
  cx_hlo_groups g;
  int64_t *ids;
  if (emit_empty(e) || !groups_of(e, &g, &ids)) return;
  e->out[0] = is_bitwise(e) ? exchange_and_combine(e, &g)
                            : cx_hlo_reduce_scatter(e->b, kind_of(a), e->in[0],
                                                    a->dim, &g);
  cx_free(ids);
}

static void emit_gather(cx_graph_emit *e)
{
  const cx_ops_coll_attrs *a = e->attrs;
  cx_hlo_groups g;
  int64_t *ids;
  if (emit_empty(e) || !groups_of(e, &g, &ids)) return;
  e->out[0] = cx_hlo_all_gather(e->b, e->in[0], a->dim, &g);
  cx_free(ids);
}

static void emit_all_to_all(cx_graph_emit *e)
{
  const cx_ops_coll_attrs *a = e->attrs;
  cx_hlo_groups g;
  int64_t *ids;
  if (emit_empty(e) || !groups_of(e, &g, &ids)) return;
  e->out[0] = cx_hlo_all_to_all(e->b, e->in[0], a->dim, a->to_dim, &g);
  cx_free(ids);
}

static void emit_permute(cx_graph_emit *e)
{
  const cx_ops_coll_attrs *a = e->attrs;
  if (emit_empty(e)) return;
  e->out[0] = cx_hlo_collective_permute(e->b, e->in[0], a->ids, a->n_ids / 2);
}

// i1: whether this replica is its group's root.
static cx_hlo_value *is_root(const cx_graph_emit *e, const cx_hlo_groups *g)
{
  const cx_ops_coll_attrs *a = e->attrs;
  cx_hlo_builder *b = e->b;
  uint32_t *roots = cx_alloc(g->groups * sizeof *roots);
  if (roots == NULL) {
    cx_hlo_builder_fail(b, cx_out_of_memory());
    return NULL;
  }
  for (size_t i = 0; i < g->groups; i++) {
    roots[i] = (uint32_t)g->ids[i * g->members + a->root];
  }
  int64_t n = (int64_t)g->groups, dim = 0;
  cx_hlo_value *all = cx_hlo_constant(b, (cx_hlo_type){ CX_HLO_UI32, 1, &n },
                                      roots, g->groups * sizeof *roots);
  cx_free(roots);
  cx_hlo_value *me =
      cx_hlo_broadcast_in_dim(b, cx_hlo_replica_id(b), &n, 1, NULL);
  cx_hlo_value *hits = cx_hlo_compare(b, CX_HLO_EQ, all, me);
  cx_hlo_value *no = cx_hlo_splat_int(b, (cx_hlo_type){ .elem = CX_HLO_I1 }, 0);
  return cx_hlo_reduce_with(b, CX_HLO_OP_OR, hits, no, &dim, 1);
}

static cx_hlo_elem bits_of(calx_dtype d)
{
  switch (calx_dtype_size(d)) {
    case 1: return CX_HLO_UI8;
    case 2: return CX_HLO_UI16;
    case 4: return CX_HLO_UI32;
    default: return CX_HLO_UI64;
  }
}

static void emit_broadcast(cx_graph_emit *e)
{
  const cx_graph_shape *s = &e->node->out[0].shape;
  cx_hlo_groups g;
  int64_t *ids;
  if (emit_empty(e) || !groups_of(e, &g, &ids)) return;
  cx_hlo_builder *b = e->b;
  cx_hlo_type bits = { bits_of(s->dtype), s->rank, s->dims };
  bool is_bool = s->dtype == CALX_BOOL;
  cx_hlo_value *v = is_bool ? cx_hlo_convert(b, e->in[0], bits.elem)
                            : cx_hlo_bitcast_convert(b, e->in[0], bits);
  v = cx_hlo_select(b, is_root(e, &g), v,
                    cx_ops_emit_splat(e, bits.elem, s, 0));
  v = cx_hlo_all_reduce(b, CX_HLO_OP_ADD, v, &g);
  e->out[0] = is_bool ? cx_hlo_convert(b, v, CX_HLO_I1)
                      : cx_hlo_bitcast_convert(b, v, cx_hlo_type_of(s));
  cx_free(ids);
}

// ---- for people -------------------------------------------------------------

static void describe_ids(const cx_ops_coll_attrs *a, uint32_t in_row,
                         cx_text *out)
{
  for (uint32_t i = 0; i < a->n_ids; i++) {
    cx_text_append(out, i % in_row == 0 ? (i == 0 ? " [[" : "], [") : ", ");
    cx_text_int(out, a->ids[i]);
  }
  if (a->n_ids != 0) cx_text_append(out, "]]");
}

static void describe_members(const cx_ops_coll_attrs *a, cx_text *out)
{
  cx_text_format(out, "%u ranks", a->world);
  if (a->n_ids == 0) return;
  cx_text_append(out, " in groups");
  describe_ids(a, a->members, out);
}

static void describe_reduce(const void *attrs, cx_text *out)
{
  static const char *const names[] = {
    "sum", "min", "max", "mul", "and", "or"
  };
  const cx_ops_coll_attrs *a = attrs;
  cx_text_format(out, "%s of ", names[a->type]);
  describe_members(a, out);
}

static void describe_scatter(const void *attrs, cx_text *out)
{
  const cx_ops_coll_attrs *a = attrs;
  describe_reduce(attrs, out);
  cx_text_format(out, ", dim %u", a->dim);
}

static void describe_gather(const void *attrs, cx_text *out)
{
  const cx_ops_coll_attrs *a = attrs;
  describe_members(a, out);
  cx_text_format(out, ", dim %u", a->dim);
}

static void describe_all_to_all(const void *attrs, cx_text *out)
{
  const cx_ops_coll_attrs *a = attrs;
  describe_members(a, out);
  cx_text_format(out, ", dim %u to %u", a->dim, a->to_dim);
}

static void describe_permute(const void *attrs, cx_text *out)
{
  const cx_ops_coll_attrs *a = attrs;
  cx_text_format(out, "pairs of %u ranks", a->world);
  describe_ids(a, 2, out);
}

static void describe_broadcast(const void *attrs, cx_text *out)
{
  const cx_ops_coll_attrs *a = attrs;
  describe_members(a, out);
  cx_text_format(out, ", root %u", a->root);
}

// ---- the ops ----------------------------------------------------------------

static uint32_t attr_bytes(const void *attrs)
{
  return ((const cx_ops_coll_attrs *)attrs)->bytes;
}

#define COLLECTIVE(op, rule, gradient, emission, words)                    \
  CX_OPS_DEFINE(op, .attr_size = sizeof(cx_ops_coll_attrs),                \
                .attr_bytes = attr_bytes, .infer = rule, .grad = gradient, \
                .emit = emission, .describe = words)
COLLECTIVE(all_reduce, cx_ops_infer_same, grad_reduce, emit_reduce,
           describe_reduce)
COLLECTIVE(all_gather, infer_gather, grad_gather, emit_gather, describe_gather)
COLLECTIVE(reduce_scatter, infer_scatter, grad_scatter, emit_scatter,
           describe_scatter)
COLLECTIVE(all_to_all, infer_all_to_all, grad_all_to_all, emit_all_to_all,
           describe_all_to_all)
COLLECTIVE(collective_permute, cx_ops_infer_same, grad_permute, emit_permute,
           describe_permute)
COLLECTIVE(collective_broadcast, cx_ops_infer_same, NULL, emit_broadcast,
           describe_broadcast)
