// ops/function: a node that names tensors computed elsewhere as the results of
// a function with a gradient of its own. It computes nothing: its outputs are
// the operands behind its inputs.
#include "graph/extra.h"
#include "hlo/build_op.h"
#include "ops/ops.h"

typedef struct function_attrs {
  uint32_t n_in;
} function_attrs;

static calx_status *infer_function(cx_graph_node *node)
{
  const function_attrs *a = node->attrs;
  for (uint32_t k = 0; k < node->n_out; k++) {
    node->out[k].shape = *cx_in(node, a->n_in + k);
  }
  return NULL;
}

static void emit_function(cx_graph_emit *e)
{
  const function_attrs *a = e->attrs;
  for (uint32_t k = 0; k < e->node->n_out; k++) e->out[k] = e->in[a->n_in + k];
}

static void grad_function(cx_lazy_tape *tape)
{
  cx_graph_extra *extra = tape->node->extra;
  cx_ops_function *f = extra != NULL ? extra->context : NULL;
  if (f != NULL) {
    f->backward(f, tape);
  } else {
    tape->in_grads[0] = tape->out_grads[0];
  }
}

CX_OPS_DEFINE(custom, .attr_size = sizeof(function_attrs),
              .infer = infer_function, .grad = grad_function,
              .emit = emit_function, .takes_complex = true)

static void free_context(void *f)
{
  ((cx_ops_function *)f)->free(f);
}

void cx_ops_function_record(cx_ops_function *f, const char *name,
                            calx_tensor *const *operands, uint32_t n_operands,
                            uint32_t n_in, calx_tensor **outs, uint32_t n_out)
{
  function_attrs a = { n_in };
  cx_lazy_call call = { .op = &cx_ops_custom,
                        .in = operands,
                        .n_in = n_operands,
                        .n_out = n_out,
                        .attrs = &a };
  const cx_lazy_composite_state before = cx_lazy_composite_begin(name, false);
  calx_tensor *first = cx_lazy_apply(&call, outs);
  cx_lazy_composite_end(&before);
  cx_graph_extra *extra = NULL;
  if (!cx_lazy_tensor_poisoned(first)) {
    extra = cx_graph_extra_of(&cx_lazy_tensor_value(first).node->extra);
    if (extra == NULL) cx_lazy_scope_pin(cx_out_of_memory());
  }
  if (extra == NULL) {
    f->free(f);
    return;
  }
  extra->context = f;
  extra->context_free = free_context;
}

calx_tensor *cx_ops_identity(calx_tensor *x)
{
  calx_tensor *operands[2] = { x, cx_lazy_tensor_detached(x) };
  function_attrs a = { 1 };
  cx_lazy_call call = {
    .op = &cx_ops_custom, .in = operands, .n_in = 2, .attrs = &a
  };
  return cx_lazy_apply(&call, NULL);
}

// ---- hooks ------------------------------------------------------------------

calx_hook cx_ops_hook(calx_tensor *t, cx_hook hook)
{
  cx_graph_extra **at = NULL;
  if (cx_lazy_tensor_is_leaf(t)) {
    cx_graph_leaf *leaf = cx_lazy_tensor_leaf(t);
    if (leaf != NULL) at = &leaf->extra;
  } else {
    cx_graph_value v = cx_lazy_tensor_value(t);
    hook.out = v.out;
    at = &v.node->extra;
  }
  cx_graph_extra *extra = at != NULL ? cx_graph_extra_of(at) : NULL;
  calx_hook h = { extra != NULL ? cx_hook_add(&extra->hooks, &hook) : 0 };
  if (h.id == 0) {
    if (hook.drop != NULL) hook.drop(hook.user);
    cx_lazy_scope_pin(cx_out_of_memory());
  }
  return h;
}

// ---- barrier ----------------------------------------------------------------

static calx_status *infer_barrier(cx_graph_node *node)
{
  node->out[0].shape = *cx_in(node, 0);
  return NULL;
}

static void emit_barrier(cx_graph_emit *e)
{
  cx_hlo_value **out =
      CX_ARENA_ARRAY(&e->b->module->arena, cx_hlo_value *, e->node->n_in);
  if (out == NULL) return;
  cx_hlo_optimization_barrier(e->b, e->in, e->node->n_in, out);
  e->out[0] = out[0];
}

static void grad_barrier(cx_lazy_tape *tape)
{
  tape->in_grads[0] = tape->out_grads[0];
}

CX_OPS_DEFINE(ordered, .infer = infer_barrier, .grad = grad_barrier,
              .emit = emit_barrier, .takes_complex = true)

calx_tensor *cx_ops_barrier(calx_tensor *const *in, uint32_t n)
{
  return cx_ops_record(&cx_ops_ordered, in, n, NULL);
}
