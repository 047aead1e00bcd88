// ops/sharding: the marks that say how tensors are split on a mesh.
//
// A pending value gets an op more, whose result is its operand, split so.
#include "calx/scope.h"
#include "calx/spmd.h"
#include "ops/mesh.h"
#include "ops/ops.h"

// ---- the op -----------------------------------------------------------------

static calx_status *infer_mark_sharding(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  return NULL;
}

static void grad_mark_sharding(cx_lazy_tape *t)
{
  t->in_grads[0] =
      cx_ops_record(&cx_ops_mark_sharding, &t->out_grads[0], 1, t->node->attrs);
}

static uint32_t placement_of(const void *attrs)
{
  return *(const uint32_t *)attrs;
}

static void emit_mark_sharding(cx_graph_emit *e)
{
  cx_text text = { 0 };
  if (!e->sharded) {
    e->out[0] = e->in[0];
    return;
  }
  cx_spmd_placement_attr(cx_spmd_placement_at(placement_of(e->attrs)), &text);
  if (cx_text_failed(&text)) {
    cx_hlo_builder_fail(e->b, cx_out_of_memory());
  } else {
    e->out[0] = cx_hlo_sharding_constraint(e->b, e->in[0], cx_text_str(&text));
  }
  cx_text_free(&text);
}

static void describe_mark_sharding(const void *attrs, cx_text *out)
{
  cx_spmd_placement_print(cx_spmd_placement_at(placement_of(attrs)), out);
}

CX_OPS_DEFINE(mark_sharding, .attr_size = sizeof(uint32_t),
              .infer = infer_mark_sharding, .grad = grad_mark_sharding,
              .emit = emit_mark_sharding, .describe = describe_mark_sharding,
              .placement = placement_of, .takes_complex = true)

// ---- marks ------------------------------------------------------------------

static calx_status *find_placement(const calx_tensor *t, const calx_mesh *mesh,
                                   calx_axes names,
                                   const cx_spmd_placement **out)
{
  static const char call[] = "mark_sharding";
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  cx_ops_spec spec;
  CALX_TRY(cx_ops_spec_read(call, mesh, names, &spec));
  if (names.count != s->rank) {
    return cx_invalid(
        "mark_sharding: the spec has %zu entries, and %s has %u "
        "dimensions; NULL stands for one that is not split",
        names.count, cx_graph_shape_str(s), s->rank);
  }
  return cx_ops_spec_placement(call, &spec, s, out);
}

static calx_status *check_mark(const calx_tensor *t,
                               const cx_spmd_placement *placement)
{
  const cx_spmd_placement *before = cx_lazy_tensor_placement(t);
  if (before == NULL || before == placement) return NULL;
  cx_text text = { 0 };
  cx_spmd_placement_print(before, &text);
  calx_status *status = cx_error(
      CALX_FAILED_PRECONDITION,
      "mark_sharding: the tensor is marked %s; calx_clear_sharding() first",
      cx_text_str(&text));
  cx_text_free(&text);
  return status;
}

// The value that t has is split so. A leaf keeps its gradient, so what is
// recorded is none of its history; any other value keeps its history, also in a
// region without gradients. The scope is there so that no temporary keeps the
// value for as long as the caller's scope.
static calx_status *split(calx_tensor *t, const cx_spmd_placement *placement)
{
  bool done;
  CALX_TRY(cx_lazy_tensor_reshard(t, placement, &done));
  if (done) return NULL;
  const uint32_t number = placement->number;
  const bool leaf = cx_lazy_tensor_is_leaf(t);
  calx_scope *scope = calx_scope_begin();
  cx_lazy_grad_region_begin(!leaf);
  calx_tensor *value = cx_ops_record(&cx_ops_mark_sharding, &t, 1, &number);
  if (!cx_lazy_tensor_poisoned(value)) cx_lazy_tensor_set_value(t, value);
  cx_lazy_grad_region_end(!leaf);
  return calx_scope_end(scope);
}

static calx_status *mark(calx_tensor *t, const calx_mesh *mesh, calx_axes spec)
{
  const cx_spmd_placement *placement;
  CALX_TRY(find_placement(t, mesh, spec, &placement));
  CALX_TRY(check_mark(t, placement));
  if (cx_lazy_tensor_placement(t) == placement) {
    bool done;
    return cx_lazy_tensor_reshard(t, placement, &done);
  }
  CALX_TRY(split(t, placement));
  cx_lazy_tensor_set_placement(t, placement);
  return NULL;
}

calx_tensor *calx_mark_sharding(calx_tensor *tensor, const calx_mesh *mesh,
                                calx_axes partition_spec)
{
  calx_tensor *bad;
  if (cx_ops_unfit("mark_sharding", &tensor, 1, &bad)) return bad;
  cx_lazy_scope_pin(mark(tensor, mesh, partition_spec));
  return tensor;
}

calx_tensor *calx_clear_sharding(calx_tensor *tensor)
{
  calx_tensor *bad;
  if (cx_ops_unfit("clear_sharding", &tensor, 1, &bad)) return bad;
  const cx_spmd_placement *before = cx_lazy_tensor_placement(tensor);
  if (before == NULL) {  // it may be split as what it was computed from
    bool done;
    cx_lazy_scope_pin(cx_lazy_tensor_reshard(tensor, NULL, &done));
    return tensor;
  }
  const cx_spmd_axes none[CALX_MAX_RANK] = { 0 };
  const cx_spmd_placement *whole =
      cx_spmd_placement_of(before->mesh, none, before->rank);
  cx_lazy_scope_pin(whole != NULL ? split(tensor, whole) : cx_out_of_memory());
  cx_lazy_tensor_set_placement(tensor, NULL);
  return tensor;
}
