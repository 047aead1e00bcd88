// autograd/request: all checks that need no recording come first.
#include "autograd/request.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "calx/ops.h"

// ---- the output -------------------------------------------------------------

static bool is_ended(const cx_graph_node *node)
{
  return node != NULL &&
         (cx_graph_node_flags(node) & CX_GRAPH_NODE_TAPE_ENDED) != 0;
}

static calx_status *ended_output(const char *call, const cx_graph_node *node)
{
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: the sync at %s:%d computed this tensor and ended its "
                  "tape: call %s before that sync",
                  call, node->site.file != NULL ? node->site.file : "?",
                  node->site.line, call);
}

static calx_status *check_gradient(const char *call, calx_tensor *output,
                                   calx_tensor *gradient)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(output);
  if (gradient == NULL) {
    if (cx_dtype_is_complex(s->dtype)) {
      return cx_invalid(
          "%s: grad can be implicitly created only for real outputs, got %s: "
          "make it real with calx_abs() or calx_real(), or give .gradient",
          call, cx_graph_shape_str(s));
    }
    if (cx_graph_shape_numel(s) == 1) return NULL;
    return cx_invalid(
        "%s: the output is %s, one element is wanted: reduce it with "
        "calx_mean() or calx_sum(), or give .gradient",
        call, cx_graph_shape_str(s));
  }
  CALX_TRY(cx_lazy_tensor_usable(gradient, call, 1));
  if (cx_graph_shape_equal(s, cx_lazy_tensor_shape(gradient)) &&
      calx_tensor_device(gradient) == calx_tensor_device(output)) {
    return NULL;
  }
  return cx_invalid("%s: .gradient is %s on %s, the output is %s on %s", call,
                    cx_graph_shape_str(cx_lazy_tensor_shape(gradient)),
                    calx_device_name(calx_tensor_device(gradient)),
                    cx_graph_shape_str(s),
                    calx_device_name(calx_tensor_device(output)));
}

static calx_status *check_output(const char *call, calx_tensor *output,
                                 calx_tensor *gradient)
{
  if (output == NULL) {
    return cx_invalid("%s: the output is NULL", call);
  }
  CALX_TRY(cx_lazy_tensor_usable(output, call, 0));
  const cx_graph_shape *s = cx_lazy_tensor_shape(output);
  if (!cx_dtype_is_inexact(s->dtype)) {
    return cx_invalid(
        "%s: the output is %s, only floating and complex types have gradients",
        call, cx_graph_shape_str(s));
  }
  CALX_TRY(check_gradient(call, output, gradient));
  bool leaf =
      cx_lazy_tensor_is_leaf(output) && cx_lazy_tensor_requires_grad(output);
  if (!leaf && is_ended(cx_lazy_tensor_value(output).node)) {
    return ended_output(call, cx_lazy_tensor_value(output).node);
  }
  if (cx_lazy_tensor_requires_grad(output)) return NULL;
  return cx_invalid(
      "%s: no gradient flows through the output %s: it depends on no tensor "
      "that requires one, is detached, or was computed in a no-grad region",
      call, cx_graph_shape_str(s));
}

// ---- the walk ---------------------------------------------------------------

static bool is_target(const cx_autograd_pass *p, const cx_graph_input *in)
{
  size_t cell;
  return p->marks != NULL && cx_autograd_cell(&p->walk, in, &cell) &&
         (p->marks[cell] & CX_AUTOGRAD_TARGET) != 0;
}

// What was recorded before a sync can no longer be differentiated.
static calx_status *check_tape(const cx_autograd_pass *p, const char *call)
{
  for (size_t i = p->walk.n_entries; i > 0; i--) {
    const cx_graph_node *node = p->walk.entries[i - 1].node;
    for (uint32_t k = 0; k < node->n_in; k++) {
      const cx_graph_input *in = &node->in[k];
      if (!in->differentiable || in->leaf != NULL || !is_ended(in->node) ||
          is_target(p, in)) {
        continue;
      }
      const calx_site *at = &node->site, *sync = &in->node->site;
      return cx_error(
          CALX_FAILED_PRECONDITION,
          "%s: %s at %s:%d uses a tensor that the sync at %s:%d computed; that "
          "sync ended its tape: calx_detach() the tensor, or call %s before "
          "the sync",
          call, node->op->name, at->file != NULL ? at->file : "?", at->line,
          sync->file != NULL ? sync->file : "?", sync->line, call);
    }
  }
  return NULL;
}

calx_tensor *cx_autograd_gradient_of(const cx_autograd_request *q, size_t i)
{
  return q->gradients != NULL ? q->gradients[i] : NULL;
}

calx_status *cx_autograd_check_request(const cx_autograd_request *q)
{
  if (q->outputs == NULL || q->n_outputs == 0) {
    return cx_invalid("%s: there is no output", q->call);
  }
  if (q->inputs == NULL && q->n_inputs != 0) {
    return cx_invalid("%s: the list of %zu inputs is NULL", q->call,
                      q->n_inputs);
  }
  for (size_t i = 0; i < q->n_outputs; i++) {
    CALX_TRY(
        check_output(q->call, q->outputs[i], cx_autograd_gradient_of(q, i)));
    calx_device *first = calx_tensor_device(q->outputs[0]);
    if (calx_tensor_device(q->outputs[i]) == first) continue;
    return cx_invalid("%s: output %zu is on %s, the ones before it on %s",
                      q->call, i,
                      calx_device_name(calx_tensor_device(q->outputs[i])),
                      calx_device_name(first));
  }
  return NULL;
}

static calx_status *walk(cx_autograd_pass *p, calx_tensor *output)
{
  bool leaf = cx_lazy_tensor_is_leaf(output);
  bool ok =
      leaf ? cx_autograd_walk_leaf(&p->walk, output)
           : cx_autograd_walk_from(&p->walk, cx_lazy_tensor_value(output).node);
  return ok ? NULL : cx_out_of_memory();
}

// Finds the cell of a tensor that is a leaf or a result. False: no gradient
// flows through the tensor.
bool cx_autograd_cell_of(const cx_autograd_pass *p, calx_tensor *t,
                         size_t *out_cell)
{
  cx_graph_value v = cx_lazy_tensor_value(t);
  bool leaf = cx_lazy_tensor_is_leaf(t);
  const size_t *first =
      cx_autograd_map_find(&p->walk.cells, leaf ? (void *)t : v.node);
  *out_cell = first == NULL ? 0 : leaf ? *first : *first + v.out;
  return first != NULL;
}

// Sets d(output)/d(output).
static void seed(cx_autograd_pass *p, calx_tensor *output,
                 calx_tensor *gradient)
{
  if (gradient == NULL) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(output);
    calx_create_options o = { .size = sizeof o,
                              .dtype = s->dtype,
                              .device = p->device };
    calx_dims dims = calx_dims_of(s->dims, s->rank);
    gradient = calx_ones_with(dims, &o);
  }
  size_t cell;
  if (!cx_autograd_failed(p) && cx_autograd_cell_of(p, output, &cell)) {
    cx_autograd_put(p, cell, gradient);
  }
}

static calx_status *mark_inputs(cx_autograd_pass *p,
                                const cx_autograd_request *q)
{
  for (size_t i = 0; i < q->n_inputs; i++) {
    calx_tensor *t = q->inputs[i];
    if (t == NULL || !cx_lazy_tensor_requires_grad(t)) {
      return cx_invalid(
          "%s: input %zu, %s, does not require a gradient", q->call, i,
          t != NULL ? cx_graph_shape_str(cx_lazy_tensor_shape(t)) : "NULL");
    }
    size_t cell;
    if (cx_autograd_cell_of(p, t, &cell) && !cx_autograd_mark(p, cell)) {
      return cx_out_of_memory();
    }
  }
  return NULL;
}

// A leaf's hooks see its whole gradient of this pass.
static void hook_leaves(cx_autograd_pass *p)
{
  for (size_t i = 0; i < p->walk.n_leaves && !cx_autograd_failed(p); i++) {
    const cx_graph_leaf *leaf = cx_lazy_tensor_leaf(p->walk.leaves[i].tensor);
    if (leaf == NULL) continue;
    cx_autograd_hook(p, leaf->extra, p->walk.leaves[i].cell, 0);
  }
}

// Walks, runs the rules and lets `finish` take the gradients. On failure
// nothing has changed.
calx_status *cx_autograd_run_pass(cx_autograd_pass *p,
                                  const cx_autograd_request *q,
                                  cx_autograd_finish_fn *finish, void *user)
{
  calx_status *status = NULL;
  for (size_t i = 0; status == NULL && i < q->n_outputs; i++) {
    status = walk(p, q->outputs[i]);
  }
  if (status == NULL) status = mark_inputs(p, q);
  if (status == NULL) status = check_tape(p, q->call);
  bool any = q->inputs == NULL || p->marks != NULL;
  if (status == NULL && any && !cx_autograd_begin(p)) {
    status = cx_out_of_memory();
  }
  if (status == NULL && any) {
    cx_autograd_mark_ways(p);
    for (size_t i = 0; i < q->n_outputs; i++) {
      seed(p, q->outputs[i], cx_autograd_gradient_of(q, i));
    }
    cx_autograd_run(p);
    hook_leaves(p);
    if (!cx_autograd_failed(p)) finish(p, user);
    if (!cx_autograd_failed(p)) cx_autograd_use_up(p);
  }
  calx_status *late = cx_autograd_end(p);
  if (status == NULL) return late;
  calx_status_free(late);
  return status;
}
