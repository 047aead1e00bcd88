// autograd/backward: the public functions. All checks that need no recording
// come first, and the leaves' gradients are set together at the end: a call
// that fails changes nothing.
#include "calx/autograd.h"

#include "autograd/pass.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "base/trace.h"
#include "calx/ops.h"

static const calx_backward_options no_options = { .size = sizeof no_options };

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
                                 const calx_backward_options *options)
{
  if (output == NULL) {
    return cx_invalid("%s: the output is NULL", call);
  }
  CALX_TRY(cx_options_check(call, options->size, sizeof *options));
  CALX_TRY(cx_lazy_tensor_usable(output, call, 0));
  const cx_graph_shape *s = cx_lazy_tensor_shape(output);
  if (!cx_dtype_is_float(s->dtype)) {
    return cx_invalid(
        "%s: the output is %s, only floating types have gradients", call,
        cx_graph_shape_str(s));
  }
  CALX_TRY(check_gradient(call, output, options->gradient));
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
static bool cell_of(const cx_autograd_pass *p, calx_tensor *t, size_t *out_cell)
{
  cx_graph_value v = cx_lazy_tensor_value(t);
  bool leaf = cx_lazy_tensor_is_leaf(t);
  const size_t *first =
      cx_autograd_map_find(&p->walk.cells, leaf ? (void *)t : v.node);
  *out_cell = first == NULL ? 0 : leaf ? *first : *first + v.out;
  return first != NULL;
}

// Sets d(output)/d(output) and runs the pass.
static void run(cx_autograd_pass *p, calx_tensor *output, calx_tensor *gradient)
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
  if (!cx_autograd_failed(p) && cell_of(p, output, &cell)) {
    cx_autograd_put(p, cell, gradient);
  }
  cx_autograd_run(p);
}

// The same value as a handle of its own, with its history if that is wanted.
static calx_tensor *result(const cx_autograd_pass *p, calx_tensor *grad)
{
  if (p->create_graph && cx_lazy_tensor_requires_grad(grad)) {
    return cx_lazy_tensor_of(cx_lazy_tensor_value(grad), p->device);
  }
  return cx_lazy_tensor_detached(grad);
}

// ---- leaves -----------------------------------------------------------------

static bool is_materialised(const calx_tensor *t)
{
  const cx_graph_node *node = cx_lazy_tensor_value(t).node;
  return node != NULL && (cx_graph_node_flags(node) & CX_GRAPH_NODE_DATA) != 0;
}

// A gradient that a failed step left without a value counts as none.
static calx_tensor *usable_grad(calx_tensor *leaf)
{
  calx_tensor *grad = cx_lazy_tensor_grad(leaf);
  return grad != NULL && !cx_lazy_tensor_poisoned(grad) ? grad : NULL;
}

// Whether an optimiser's step used the gradient and a sync dropped its value. A
// sum with it has no value either, which is an error where it is used.
// Parameters of another model, whose gradients nobody uses, often have such
// gradients.
static bool was_dropped(const calx_tensor *grad)
{
  return grad != NULL && cx_lazy_tensor_value(grad).node == NULL;
}

static void set_grad(cx_autograd_pass *p, calx_tensor *leaf, calx_tensor *value)
{
  calx_tensor *old = usable_grad(leaf);
  // If the next sync drops one part, it drops the sum too.
  bool consumed = old != NULL && cx_lazy_tensor_is(old, CX_LAZY_T_CONSUMED) &&
                  !is_materialised(old);
  if (old != NULL && !p->create_graph) {
    cx_lazy_tensor_set_value(old, value);
  } else {
    calx_tensor *grad = result(p, value);
    if (cx_lazy_tensor_poisoned(grad)) return;
    cx_lazy_tensor_set_grad(leaf, calx_take(grad));
  }
  if (consumed)
    cx_lazy_tensor_mark(cx_lazy_tensor_grad(leaf), CX_LAZY_T_CONSUMED);
}

static void collect(cx_autograd_pass *p)
{
  const cx_autograd_walk *w = &p->walk;
  for (size_t i = 0; i < w->n_leaves && !cx_autograd_failed(p); i++) {
    calx_tensor *old = usable_grad(w->leaves[i].tensor);
    if (old != NULL && !was_dropped(old) &&
        p->grads[w->leaves[i].cell] != NULL) {
      cx_autograd_put(p, w->leaves[i].cell, old);
    }
  }
  if (cx_autograd_failed(p)) return;
  for (size_t i = 0; i < w->n_leaves; i++) {
    calx_tensor *grad = p->grads[w->leaves[i].cell];
    calx_tensor *leaf = w->leaves[i].tensor;
    if (grad != NULL && !was_dropped(usable_grad(leaf)))
      set_grad(p, leaf, grad);
  }
}

static calx_status *backward(calx_tensor *loss,
                             const calx_backward_options *options)
{
  CALX_TRY(check_output("backward", loss, options));
  cx_autograd_pass p = { .device = calx_tensor_device(loss),
                         .create_graph = options->create_graph };
  calx_status *status = walk(&p, loss);
  if (status == NULL) status = check_tape(&p, "backward");
  if (status == NULL) {
    if (cx_autograd_begin(&p)) {
      run(&p, loss, options->gradient);
      if (!cx_autograd_failed(&p)) collect(&p);
    } else {
      status = cx_out_of_memory();
    }
  }
  calx_status *late = cx_autograd_end(&p);
  if (status == NULL) return late;
  calx_status_free(late);
  return status;
}

// ---- gradients of chosen tensors --------------------------------------------

static calx_status *mark_inputs(cx_autograd_pass *p, calx_tensor *const *inputs,
                                size_t count)
{
  if (inputs == NULL && count != 0) {
    return cx_invalid("grad_of: the list of %zu inputs is NULL", count);
  }
  for (size_t i = 0; i < count; i++) {
    if (inputs[i] == NULL || !cx_lazy_tensor_requires_grad(inputs[i])) {
      return cx_invalid(
          "grad_of: input %zu, %s, does not require a gradient", i,
          inputs[i] != NULL
              ? cx_graph_shape_str(cx_lazy_tensor_shape(inputs[i]))
              : "NULL");
    }
    size_t cell;
    if (cell_of(p, inputs[i], &cell) && !cx_autograd_mark(p, cell)) {
      return cx_out_of_memory();
    }
  }
  return NULL;
}

// Retains the gradients so that they outlive the pass.
static void keep_results(cx_autograd_pass *p, calx_tensor *const *inputs,
                         size_t count, calx_tensor *gradient,
                         calx_tensor **out_grads)
{
  for (size_t i = 0; i < count; i++) {
    size_t cell;
    if (!cell_of(p, inputs[i], &cell) || p->grads[cell] == NULL) continue;
    calx_tensor *grad = p->grads[cell];
    // Where the gradient is the tensor that the caller gave, it keeps its
    // history.
    bool own = p->create_graph && grad == gradient;
    out_grads[i] = own ? calx_retain(grad) : calx_take(result(p, grad));
  }
}

// Moves owned handles into the current scope, all of them or none.
static void give_results(calx_tensor **grads, size_t count,
                         calx_tensor *gradient, calx_device *device, bool ok)
{
  for (size_t i = 0; i < count; i++) {
    calx_tensor *owned = grads[i];
    if (owned == NULL) continue;
    grads[i] = NULL;
    if (ok && owned == gradient) {
      grads[i] = owned;
    } else if (ok) {
      grads[i] = cx_lazy_tensor_requires_grad(owned)
                     ? cx_lazy_tensor_of(cx_lazy_tensor_value(owned), device)
                     : cx_lazy_tensor_detached(owned);
    }
    calx_release(owned);
  }
}

static calx_status *grad_of(calx_tensor *output, calx_tensor *const *inputs,
                            size_t count, const calx_backward_options *options,
                            calx_tensor **out_grads)
{
  CALX_TRY(check_output("grad_of", output, options));
  cx_autograd_pass p = { .device = calx_tensor_device(output),
                         .create_graph = options->create_graph };
  calx_status *status = walk(&p, output);
  if (status == NULL) status = mark_inputs(&p, inputs, count);
  if (status == NULL) status = check_tape(&p, "grad_of");
  if (status == NULL && p.marks != NULL) {
    if (cx_autograd_begin(&p)) {
      cx_autograd_mark_ways(&p);
      run(&p, output, options->gradient);
      if (!cx_autograd_failed(&p)) {
        keep_results(&p, inputs, count, options->gradient, out_grads);
      }
    } else {
      status = cx_out_of_memory();
    }
  }
  calx_status *late = cx_autograd_end(&p);
  if (status == NULL) {
    status = late;
  } else {
    calx_status_free(late);
  }
  give_results(out_grads, count, options->gradient, p.device, status == NULL);
  return status;
}

// ---- public -----------------------------------------------------------------

void calx_backward_with(calx_tensor *output,
                        const calx_backward_options *options)
{
  int64_t begin = cx_trace_own_begin();
  cx_lazy_scope_pin(backward(output, options != NULL ? options : &no_options));
  cx_trace_own_end(begin);
}

void calx_backward(calx_tensor *loss)
{
  calx_backward_with(loss, NULL);
}

void calx_grad_of_with(calx_tensor *output, calx_tensor *const *inputs,
                       size_t count, calx_tensor **out_grads,
                       const calx_backward_options *options)
{
  if (out_grads == NULL && count != 0) {
    cx_lazy_scope_pin(cx_invalid(
        "grad_of: there is no room for the gradients: out_grads is NULL"));
    return;
  }
  for (size_t i = 0; i < count; i++) out_grads[i] = NULL;
  cx_lazy_scope_pin(grad_of(output, inputs, count,
                            options != NULL ? options : &no_options,
                            out_grads));
}
