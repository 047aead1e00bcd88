// autograd/grad_of: gradients of chosen tensors, given to the caller.
#include "autograd/request.h"
#include "base/options.h"
#include "calx/autograd.h"
#include "ops/ops.h"

typedef struct grad_results {
  const cx_autograd_request *request;
  calx_tensor **out;
} grad_results;

static bool is_given(const cx_autograd_request *q, const calx_tensor *grad)
{
  for (size_t i = 0; i < q->n_outputs; i++) {
    if (grad == cx_autograd_gradient_of(q, i)) return true;
  }
  return false;
}

// Retains the gradients so that they outlive the pass.
static void keep_results(cx_autograd_pass *p, void *user)
{
  const grad_results *w = user;
  const cx_autograd_request *q = w->request;
  for (size_t i = 0; i < q->n_inputs; i++) {
    size_t cell;
    if (!cx_autograd_cell_of(p, q->inputs[i], &cell) || p->grads[cell] == NULL)
      continue;
    calx_tensor *grad = p->grads[cell];
    // Where the gradient is a tensor that the caller gave, it keeps its
    // history.
    bool own = p->create_graph && is_given(q, grad);
    w->out[i] =
        own ? calx_retain(grad) : calx_take(cx_autograd_result(p, grad));
  }
  // Results that retain their gradient collect it here too.
  for (size_t i = 0; i < p->n_retained && !cx_autograd_failed(p); i++) {
    calx_tensor *sum;
    cx_autograd_add_old(p, &p->retained[i], &sum);
    if (!cx_autograd_failed(p))
      cx_autograd_set_sum(p, p->retained[i].tensor, sum);
  }
}

// Moves owned handles into the current scope, all of them or none.
static void give_results(calx_tensor **grads, const cx_autograd_request *q,
                         calx_device *device, bool ok)
{
  for (size_t i = 0; i < q->n_inputs; i++) {
    calx_tensor *owned = grads[i];
    if (owned == NULL) continue;
    grads[i] = NULL;
    if (ok && is_given(q, owned)) {
      grads[i] = owned;
    } else if (ok) {
      grads[i] = cx_lazy_tensor_requires_grad(owned)
                     ? cx_lazy_tensor_of(cx_lazy_tensor_value(owned), device)
                     : cx_lazy_tensor_detached(owned);
    }
    calx_release(owned);
  }
}

static calx_status *check_unused(const cx_autograd_request *q,
                                 calx_tensor *const *grads)
{
  for (size_t i = 0; i < q->n_inputs; i++) {
    if (grads[i] != NULL) continue;
    return cx_invalid(
        "%s: the differentiated tensor at index %zu, %s, appears to not have "
        "been used in the graph; set .allow_unused = true if this is the "
        "desired behavior",
        q->call, i, cx_graph_shape_str(cx_lazy_tensor_shape(q->inputs[i])));
  }
  return NULL;
}

static calx_status *grad_of(const cx_autograd_request *q,
                            const calx_grad_of_options *o,
                            calx_tensor **out_grads)
{
  CALX_TRY(cx_autograd_check_request(q));
  cx_autograd_pass p = { .device = calx_tensor_device(q->outputs[0]),
                         .create_graph = q->create_graph,
                         .retain_graph = q->retain_graph };
  grad_results w = { q, out_grads };
  calx_status *status = cx_autograd_run_pass(&p, q, keep_results, &w);
  if (status == NULL && !o->allow_unused && !o->materialize_grads) {
    status = check_unused(q, out_grads);
  }
  give_results(out_grads, q, p.device, status == NULL);
  for (size_t i = 0; status == NULL && i < q->n_inputs; i++) {
    if (out_grads[i] != NULL || !o->materialize_grads) continue;
    out_grads[i] = cx_ops_zeros_like(q->inputs[i]);
  }
  return status;
}

static void grad_of_all(const cx_autograd_request *outputs,
                        calx_tensor *const *inputs, size_t count,
                        calx_tensor **out_grads, const calx_grad_of_options *o)
{
  if (out_grads == NULL && count != 0) {
    cx_lazy_scope_pin(cx_invalid(
        "grad_of: there is no room for the gradients: out_grads is NULL"));
    return;
  }
  for (size_t i = 0; i < count; i++) out_grads[i] = NULL;
  calx_status *status = cx_options_check("grad_of", o->size, sizeof *o);
  if (status == NULL && count != 0) {
    cx_autograd_request q = *outputs;
    q.call = "grad_of";
    q.inputs = inputs;
    q.n_inputs = count;
    q.create_graph = o->create_graph;
    q.retain_graph = o->retain_graph || o->create_graph;
    status = grad_of(&q, o, out_grads);
  }
  cx_lazy_scope_pin(status);
}

static const calx_grad_of_options no_grad_of_options = {
  .size = sizeof no_grad_of_options
};

void calx_grad_of_n(calx_tensor *const *outputs, size_t n_outputs,
                    calx_tensor *const *inputs, size_t count,
                    calx_tensor **out_grads,
                    const calx_grad_of_options *options)
{
  if (options == NULL) options = &no_grad_of_options;
  cx_autograd_request q = { .outputs = outputs,
                            .n_outputs = n_outputs,
                            .gradients = options->gradients };
  grad_of_all(&q, inputs, count, out_grads, options);
}

void calx_grad_of_with(calx_tensor *output, calx_tensor *const *inputs,
                       size_t count, calx_tensor **out_grads,
                       const calx_grad_of_options *options)
{
  if (options == NULL) options = &no_grad_of_options;
  cx_autograd_request q = { .outputs = &output,
                            .n_outputs = 1,
                            .gradients = &options->gradient };
  grad_of_all(&q, inputs, count, out_grads, options);
}
