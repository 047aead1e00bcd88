// graph/lower: one pass over the order; parameters are the program's arguments,
// and the slots, when there are any, are one more: a packed ui32 vector.
//
// A slot is taken out of the vector by a slice. 32-bit floats are bit-cast;
// 64-bit ones are put together from two halves with a shift, because a bit-cast
// that widens is not to be had on every device, and all at once, because
// compilers spend time on each small operation.
#include "graph/lower.h"

#include "base/alloc.h"

typedef struct lowering {
  const cx_graph_lowering *request;
  const cx_graph_order *order;
  cx_hlo_builder *b;
  cx_hlo_value ***values;  // per node of the order: its outputs
  cx_arena arena;
  cx_hlo_value *packed;  // the slots, as cx_graph_order_slots writes them
  cx_hlo_value *wide;    // those of 64 bits, put together
  size_t next_wide, next_narrow;
  const cx_graph_node *failed;  // the first whose emit did not succeed
} lowering;

// Whether the program has the argument that the slots are packed in.
static bool takes_slots(const cx_graph_lowering *request)
{
  return request->order->n_slots != 0 && !request->constants;
}

// Elements [start, start + count) of a vector.
static cx_hlo_value *part(lowering *l, cx_hlo_value *v, size_t start,
                          size_t count)
{
  int64_t from = (int64_t)start, to = from + (int64_t)count, stride = 1;
  return cx_hlo_slice(l->b, v, &from, &to, &stride);
}

// All 64-bit slots at once, as ui64.
static void join_halves(lowering *l)
{
  size_t n = l->order->n_wide;
  if (n == 0) return;
  int64_t size = (int64_t)n;
  cx_hlo_value *low =
      cx_hlo_convert(l->b, part(l, l->packed, 0, n), CX_HLO_UI64);
  cx_hlo_value *high =
      cx_hlo_convert(l->b, part(l, l->packed, n, n), CX_HLO_UI64);
  cx_hlo_type type = { CX_HLO_UI64, 1, &size };
  high = cx_hlo_binary(l->b, CX_HLO_OP_SHIFT_LEFT, high,
                       cx_hlo_splat_int(l->b, type, 32));
  l->wide = cx_hlo_binary(l->b, CX_HLO_OP_OR, high, low);
}

static cx_hlo_value *slot_value(lowering *l, const cx_graph_slot *s)
{
  cx_hlo_type rank0 = { .elem = cx_hlo_elem_of(s->dtype) };
  bool wide = cx_graph_slot_is_wide(s);
  size_t at = wide ? l->next_wide++ : 2 * l->order->n_wide + l->next_narrow++;
  if (s->promotable && !l->request->promote) return NULL;
  if (l->request->constants) {
    return s->dtype == CALX_F32 || s->dtype == CALX_F64
               ? cx_hlo_splat(l->b, rank0, s->value.number)
               : cx_hlo_splat_int(l->b, rank0, s->value.integer);
  }
  cx_hlo_value *v = part(l, wide ? l->wide : l->packed, at, 1);
  v = cx_hlo_reshape(l->b, v, NULL, 0);
  if (s->dtype == CALX_U64) return v;
  if (s->dtype == CALX_I64) return cx_hlo_convert(l->b, v, rank0.elem);
  return cx_hlo_bitcast_convert(l->b, v, rank0);
}

static cx_hlo_value *value_of(lowering *l, const cx_graph_node *node,
                              uint32_t out)
{
  if (node->out[0].buffer == NULL) return l->values[node->index][out];
  return cx_hlo_param(l->b, cx_graph_order_param(l->order, node, out));
}

// What an op's emit made must be what its shape rule said: checked here, where
// the op is known, rather than by a plugin.
static calx_status *check_outputs(const cx_graph_emit *e)
{
  const cx_graph_node *node = e->node;
  for (uint32_t k = 0; k < node->n_out; k++) {
    cx_hlo_type want = cx_hlo_type_of(&node->out[k].shape);
    if (e->out[k] == NULL) return NULL;
    if (!cx_hlo_type_equal(cx_hlo_value_type(e->out[k]), &want)) {
      return cx_error_at(
          &node->site, CALX_INTERNAL, "%s: its program's output %u is not %s",
          node->op->name, k, cx_graph_shape_str(&node->out[k].shape));
    }
  }
  return NULL;
}

static calx_status *lower_node(lowering *l, size_t at)
{
  const cx_graph_node *node = l->order->nodes[at];
  size_t n = (size_t)node->n_in + node->n_out + node->n_slots;
  cx_hlo_value **all = CX_ARENA_ARRAY(&l->arena, cx_hlo_value *, n + 1);
  if (all == NULL) return cx_out_of_memory();
  cx_graph_emit e = { .b = l->b,
                      .node = node,
                      .attrs = node->attrs,
                      .sharded = l->request->partitions != 0,
                      .in = all,
                      .out = all + node->n_in,
                      .slots = all + node->n_in + node->n_out };
  cx_hlo_builder_at(l->b, node->site.file, node->site.line);
  for (uint32_t i = 0; i < node->n_in; i++) {
    e.in[i] = value_of(l, node->in[i].node, node->in[i].out);
  }
  for (uint32_t k = 0; k < node->n_slots; k++) {
    e.slots[k] = slot_value(l, &node->slots[k]);
  }
  node->op->emit(&e);
  l->values[at] = e.out;
  if (l->failed == NULL && node->n_out != 0 && e.out[0] == NULL) {
    l->failed = node;  // the builder holds the reason
  }
  return check_outputs(&e);
}

static calx_status *lower_all(lowering *l, cx_hlo_module **out_module)
{
  const cx_graph_order *o = l->order;
  calx_status *status = NULL;
  if (takes_slots(l->request)) {
    l->packed = cx_hlo_param(l->b, o->n_params);
    join_halves(l);
  }
  for (size_t i = 0; i < o->n_nodes && status == NULL; i++) {
    status = lower_node(l, i);
  }
  cx_hlo_value **roots =
      CX_ARENA_ARRAY(&l->arena, cx_hlo_value *, o->n_roots + 1);
  if (roots == NULL && status == NULL) status = cx_out_of_memory();
  if (status != NULL) {
    cx_hlo_builder_free(l->b);
    return status;
  }
  for (size_t i = 0; i < o->n_roots; i++) {
    roots[i] = value_of(l, o->roots[i].node, o->roots[i].out);
  }
  for (size_t i = 0; l->request->donate && i < o->n_params; i++) {
    if (o->aliases[i] != 0) cx_hlo_param_alias(l->b, i, o->aliases[i] - 1);
  }
  status = cx_hlo_builder_finish(l->b, roots, o->n_roots, out_module);
  if (status == NULL || l->failed == NULL) return status;
  return cx_annotate(status, "while lowering %s, recorded at %s:%d",
                     l->failed->op->name, cx_site_file(&l->failed->site),
                     l->failed->site.line);
}

calx_status *cx_graph_lower(const cx_graph_lowering *request,
                            cx_hlo_module **out_module)
{
  *out_module = NULL;
  const cx_graph_order *o = request->order;
  lowering l = { .request = request, .order = o };
  cx_hlo_type *types = CX_ARENA_ARRAY(&l.arena, cx_hlo_type, o->n_params + 1);
  l.values = CX_ARENA_ARRAY(&l.arena, cx_hlo_value **, o->n_nodes + 1);
  calx_status *status = cx_out_of_memory();
  if (types != NULL && l.values != NULL) {
    for (size_t i = 0; i < o->n_params; i++) {
      const cx_graph_value *p = &o->params[i];
      types[i] = cx_hlo_type_of(&p->node->out[p->out].shape);
    }
    int64_t words = (int64_t)o->n_slots;
    types[o->n_params] = (cx_hlo_type){ CX_HLO_UI32, 1, &words };
    status = cx_hlo_builder_new(request->name, "main", types,
                                o->n_params + takes_slots(request), &l.b);
  }
  if (status == NULL && request->replicas != 0) {
    cx_hlo_module_attr_int(l.b, "mhlo.num_replicas", request->replicas);
  }
  if (status == NULL && request->partitions != 0) {
    cx_hlo_module_attr_int(l.b, "mhlo.num_partitions", request->partitions);
  }
  if (status == NULL) status = lower_all(&l, out_module);
  if (status == NULL && request->partitions != 0) {
    status = cx_graph_shard(request, *out_module);
    if (status != NULL) {
      cx_hlo_module_free(*out_module);
      *out_module = NULL;
    }
  }
  cx_arena_free(&l.arena);
  return status;
}
