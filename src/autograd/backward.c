// autograd/backward: gradients that tensors collect. They are set together at
// the end: a call that fails changes nothing.
#include "autograd/request.h"
#include "base/alloc.h"
#include "base/options.h"
#include "base/trace.h"
#include "calx/autograd.h"
#include "calx/ops.h"

// The same value as a handle of its own, with its history if that is wanted.
calx_tensor *cx_autograd_result(const cx_autograd_pass *p, calx_tensor *grad)
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
    calx_tensor *grad = cx_autograd_result(p, value);
    if (cx_lazy_tensor_poisoned(grad)) return;
    cx_lazy_tensor_set_grad(leaf, calx_take(grad));
  }
  if (consumed)
    cx_lazy_tensor_mark(cx_lazy_tensor_grad(leaf), CX_LAZY_T_CONSUMED);
}

// Whether a leaf collects the gradient in this cell.
static bool collects(const cx_autograd_pass *p, size_t cell)
{
  return p->grads[cell] != NULL &&
         (p->marks == NULL || (p->marks[cell] & CX_AUTOGRAD_TARGET) != 0);
}

void cx_autograd_add_old(cx_autograd_pass *p, const cx_autograd_leaf *to,
                         calx_tensor **out_sum)
{
  calx_tensor *old = usable_grad(to->tensor);
  *out_sum = p->grads[to->cell];
  if (old != NULL && !was_dropped(old)) {
    *out_sum = calx_add_with(old, *out_sum, NULL);
  }
}

void cx_autograd_set_sum(cx_autograd_pass *p, calx_tensor *t, calx_tensor *sum)
{
  if (!was_dropped(usable_grad(t))) set_grad(p, t, sum);
}

// The tensors with a gradient of their own: leaves, and results that retain
// theirs or were asked for. The sums are recorded before the first one is set.
static void collect(cx_autograd_pass *p, void *user)
{
  const cx_autograd_request *q = user;
  const cx_autograd_walk *w = &p->walk;
  size_t most = w->n_leaves + p->n_retained + q->n_inputs, n = 0;
  calx_tensor **to = cx_calloc(most + 1, sizeof(calx_tensor *));
  calx_tensor **sums = cx_calloc(most + 1, sizeof(calx_tensor *));
  if (to == NULL || sums == NULL) cx_lazy_scope_pin(cx_out_of_memory());
  for (size_t i = 0; i < most && !cx_autograd_failed(p); i++) {
    cx_autograd_leaf leaf = { .tensor = NULL };
    if (i < w->n_leaves) {
      leaf = w->leaves[i];
      if (!collects(p, leaf.cell)) continue;
    } else if (i < w->n_leaves + p->n_retained) {
      leaf = p->retained[i - w->n_leaves];
    } else {
      leaf.tensor = q->inputs[i - w->n_leaves - p->n_retained];
      if (cx_lazy_tensor_is_leaf(leaf.tensor) ||
          !cx_autograd_cell_of(p, leaf.tensor, &leaf.cell) ||
          p->grads[leaf.cell] == NULL)
        continue;
    }
    cx_autograd_add_old(p, &leaf, &sums[n]);
    to[n++] = leaf.tensor;
  }
  for (size_t i = 0; i < n && !cx_autograd_failed(p); i++) {
    cx_autograd_set_sum(p, to[i], sums[i]);
  }
  cx_free(to);
  cx_free(sums);
}

static calx_status *backward(const cx_autograd_request *q)
{
  CALX_TRY(cx_autograd_check_request(q));
  cx_autograd_pass p = { .device = calx_tensor_device(q->outputs[0]),
                         .create_graph = q->create_graph,
                         .retain_graph = q->retain_graph };
  return cx_autograd_run_pass(&p, q, collect, (void *)q);
}

// ---- public -----------------------------------------------------------------

static void backward_all(calx_tensor *const *outputs, size_t n_outputs,
                         calx_tensor *const *gradients,
                         const calx_backward_options *o)
{
  int64_t begin = cx_trace_own_begin();
  calx_status *status = cx_options_check("backward", o->size, sizeof *o);
  if (status == NULL) {
    cx_autograd_request q = { .call = "backward",
                              .outputs = outputs,
                              .gradients = gradients,
                              .inputs = o->inputs,
                              .n_outputs = n_outputs,
                              .n_inputs = o->n_inputs,
                              .create_graph = o->create_graph,
                              .retain_graph =
                                  o->retain_graph || o->create_graph };
    status = backward(&q);
  }
  cx_lazy_scope_pin(status);
  cx_trace_own_end(begin);
}

static const calx_backward_options no_options = { .size = sizeof no_options };

void calx_backward_n(calx_tensor *const *outputs, size_t n_outputs,
                     const calx_backward_options *options)
{
  if (options == NULL) options = &no_options;
  backward_all(outputs, n_outputs, options->gradients, options);
}

void calx_backward_with(calx_tensor *output,
                        const calx_backward_options *options)
{
  if (options == NULL) options = &no_options;
  backward_all(&output, 1, &options->gradient, options);
}

void calx_backward(calx_tensor *loss)
{
  calx_backward_with(loss, NULL);
}
