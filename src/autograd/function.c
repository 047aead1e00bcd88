// autograd/function: functions whose gradient the user computes.
//
// The forward runs in a no-grad region, on ordinary ops. A node of `function`
// then names its outputs, with the inputs, the outputs and what was saved as
// operands, and holds the context. So what is saved lives as long as the node,
// and chains of functions are freed without recursion.
#include "calx/function.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "ops/ops.h"

struct calx_function_context {
  cx_ops_function base;
  calx_function fn;
  void *state;
  size_t n_inputs, n_outputs;
  calx_tensor *const *inputs;           // during the forward
  bool *needs;                          // by input
  bool fixed[CX_OPS_FUNCTION_OUTPUTS];  // outputs without a gradient
  bool no_zeros;        // an output without a gradient gives NULL
  calx_tensor **saved;  // during the forward, owned
  uint32_t *saved_at;   // which operand of the node each one is
  size_t n_saved;
  const cx_lazy_tape *tape;  // during the backward
};

// ---- life -------------------------------------------------------------------

static void drop_saved(calx_function_context *c)
{
  for (size_t i = 0; c->saved != NULL && i < c->n_saved; i++) {
    calx_release(c->saved[i]);
  }
  cx_free(c->saved);
  c->saved = NULL;
}

static void context_free(cx_ops_function *base)
{
  calx_function_context *c = (calx_function_context *)base;
  drop_saved(c);
  cx_free(c->saved_at);
  cx_free(c->needs);
  if (c->fn.free_state != NULL) c->fn.free_state(c->state);
  cx_free(c);
}

// ---- what a forward and a backward ask --------------------------------------

void *calx_function_state(calx_function_context *ctx)
{
  return ctx != NULL ? ctx->state : NULL;
}

bool calx_function_needs_input_grad(const calx_function_context *ctx,
                                    size_t index)
{
  return ctx != NULL && index < ctx->n_inputs && ctx->needs[index];
}

void calx_function_set_materialize_grads(calx_function_context *ctx, bool on)
{
  if (ctx != NULL) ctx->no_zeros = !on;
}

void calx_function_mark_non_differentiable(calx_function_context *ctx,
                                           size_t index)
{
  if (ctx == NULL || index >= ctx->n_outputs) {
    cx_lazy_scope_pin(cx_invalid(
        "function_mark_non_differentiable: there is no output %zu", index));
    return;
  }
  ctx->fixed[index] = true;
}

void calx_function_save_for_backward(calx_function_context *ctx,
                                     calx_tensor *const *tensors, size_t count)
{
  const char *call = "function_save_for_backward";
  calx_status *status = NULL;
  if (ctx == NULL || (tensors == NULL && count != 0)) {
    status = cx_invalid("%s: the context or the list is NULL", call);
  } else if (ctx->inputs == NULL || ctx->saved != NULL) {
    status = cx_error(CALX_FAILED_PRECONDITION,
                      "%s: it is to be called once, in the forward of '%s'",
                      call, ctx->fn.name);
  }
  for (size_t i = 0; status == NULL && i < count; i++) {
    status = tensors[i] != NULL
                 ? cx_lazy_tensor_usable(tensors[i], call, (uint32_t)i)
                 : cx_invalid("%s: tensor %zu is NULL", call, i);
  }
  if (status == NULL) {
    ctx->saved = cx_calloc(count + 1, sizeof(calx_tensor *));
    if (ctx->saved == NULL) status = cx_out_of_memory();
  }
  if (status != NULL) {
    cx_lazy_scope_pin(status);
    return;
  }
  for (size_t i = 0; i < count; i++) ctx->saved[i] = calx_retain(tensors[i]);
  ctx->n_saved = count;
}

calx_tensor *calx_function_saved(calx_function_context *ctx, size_t index)
{
  if (ctx == NULL || ctx->tape == NULL) {
    return cx_lazy_tensor_poison(
        cx_error(CALX_FAILED_PRECONDITION,
                 "function_saved: it is to be called in a backward"));
  }
  if (index >= ctx->n_saved) {
    return cx_lazy_tensor_poison(
        cx_invalid("function_saved: there is no tensor %zu, the forward of "
                   "'%s' saved %zu",
                   index, ctx->fn.name, ctx->n_saved));
  }
  uint32_t at = ctx->saved_at[index];
  size_t inputs = ctx->n_inputs;
  bool output = at >= inputs && at < inputs + ctx->n_outputs;
  if (!output) return cx_lazy_tape_in(ctx->tape, at);
  uint32_t k = at - (uint32_t)inputs;
  calx_tensor *t = cx_lazy_tape_out(ctx->tape, k);
  return ctx->fixed[k] ? cx_lazy_tensor_detached(t) : t;
}

// ---- the backward -----------------------------------------------------------

// Makes a gradient that the user gave one of the input's shape.
static calx_tensor *fit(const calx_function_context *c, uint32_t i,
                        calx_tensor *grad)
{
  const cx_graph_shape *want = cx_in(c->tape->node, i);
  calx_status *status = cx_lazy_tensor_usable(grad, c->fn.name, i);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  const cx_graph_shape *got = cx_lazy_tensor_shape(grad);
  bool broadcasts = got->rank >= want->rank;
  for (uint32_t d = 0; broadcasts && d < want->rank; d++) {
    int64_t from = want->dims[d], to = got->dims[got->rank - want->rank + d];
    broadcasts = from == to || from == 1;
  }
  if (!broadcasts || !cx_dtype_is_inexact(got->dtype)) {
    return cx_lazy_tensor_poison(cx_invalid(
        "Function %s returned an invalid gradient at index %u: got %s, but "
        "expected a shape compatible with %s",
        c->fn.name, i, cx_graph_shape_str(got), cx_graph_shape_str(want)));
  }
  grad = cx_ops_sum_to(grad, want);
  return cx_lazy_tensor_shape(grad)->dtype == want->dtype
             ? grad
             : calx_to_dtype(grad, want->dtype);
}

static void refuse_backward(cx_ops_function *f, const cx_lazy_tape *tape)
{
  (void)f;
  (void)tape;
  cx_lazy_scope_pin(
      cx_error(CALX_FAILED_PRECONDITION,
               "trying to differentiate twice a function that was marked with "
               ".once_differentiable"));
}

static void free_plain(cx_ops_function *f)
{
  cx_free(f);
}

// A gradient that depends on the gradients of the outputs, but cannot be
// differentiated.
static calx_tensor *seal(const calx_function_context *c, calx_tensor *grad,
                         calx_tensor *const *out_grads)
{
  calx_tensor *operands[CX_OPS_FUNCTION_OUTPUTS + 1], *sealed = grad;
  uint32_t n = 0;
  for (size_t k = 0; k < c->n_outputs; k++) {
    if (out_grads[k] != NULL && cx_lazy_tensor_requires_grad(out_grads[k])) {
      operands[n++] = out_grads[k];
    }
  }
  if (n == 0) return grad;
  cx_ops_function *f = cx_calloc(1, sizeof *f);
  if (f == NULL) return cx_lazy_tensor_poison(cx_out_of_memory());
  *f = (cx_ops_function){ refuse_backward, free_plain };
  operands[n] = cx_lazy_tensor_detached(grad);
  cx_ops_function_record(f, c->fn.name, operands, n + 1, n, &sealed, 1);
  return sealed;
}

static void backward(cx_ops_function *base, const cx_lazy_tape *tape)
{
  calx_function_context *c = (calx_function_context *)base;
  calx_tensor *grads[CX_OPS_FUNCTION_OUTPUTS] = { NULL };
  for (uint32_t k = 0; k < c->n_outputs; k++) {
    grads[k] = tape->out_grads[k];
    if (grads[k] != NULL || c->no_zeros) continue;
    grads[k] = cx_ops_zeros_like(
        cx_lazy_tensor_of((cx_graph_value){ tape->node, k }, tape->device));
  }
  calx_tensor **in = cx_calloc(c->n_inputs, sizeof(calx_tensor *));
  if (in == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  const cx_lazy_tape *before = c->tape;
  c->tape = tape;
  bool closed = c->fn.once_differentiable && tape->create_graph;
  if (closed) cx_lazy_grad_region_begin(false);
  c->fn.backward(c, grads, in);
  if (closed) cx_lazy_grad_region_end(false);
  for (uint32_t i = 0; i < c->n_inputs && !cx_lazy_scope_failed(); i++) {
    if (in[i] == NULL || !c->needs[i]) continue;
    calx_tensor *grad = fit(c, i, in[i]);
    tape->in_grads[i] =
        closed && !cx_lazy_scope_failed() ? seal(c, grad, grads) : grad;
  }
  c->tape = before;
  cx_free(in);
}

// ---- the forward ------------------------------------------------------------

static calx_status *check_call(const calx_function *fn,
                               calx_tensor *const *inputs, size_t n_inputs,
                               calx_tensor **outputs, size_t n_outputs)
{
  const char *call = "function_apply";
  if (fn == NULL || fn->forward == NULL || fn->backward == NULL) {
    return cx_invalid("%s: the function, its forward or its backward is NULL",
                      call);
  }
  if (inputs == NULL || n_inputs == 0 || n_inputs > UINT16_MAX) {
    return cx_invalid("%s: '%s' has %zu inputs, 1 to %d are possible", call,
                      fn->name != NULL ? fn->name : "?", n_inputs, UINT16_MAX);
  }
  if (outputs == NULL || n_outputs == 0 ||
      n_outputs > CX_OPS_FUNCTION_OUTPUTS) {
    return cx_invalid("%s: '%s' has %zu outputs, 1 to %d are possible", call,
                      fn->name != NULL ? fn->name : "?", n_outputs,
                      CX_OPS_FUNCTION_OUTPUTS);
  }
  for (size_t i = 0; i < n_inputs; i++) {
    if (inputs[i] == NULL) {
      return cx_invalid("%s: operand %zu of '%s' is NULL", call, i,
                        fn->name != NULL ? fn->name : "?");
    }
    CALX_TRY(cx_lazy_tensor_usable(inputs[i], call, (uint32_t)i));
  }
  return NULL;
}

// Takes the state. NULL: no memory, and the state is freed.
static calx_function_context *context_new(const calx_function *fn, void *state,
                                          calx_tensor *const *inputs,
                                          size_t n_inputs, size_t n_outputs)
{
  calx_function_context *c = cx_calloc(1, sizeof *c);
  if (c == NULL) {
    if (fn->free_state != NULL) fn->free_state(state);
    return NULL;
  }
  c->base = (cx_ops_function){ backward, context_free };
  c->fn = *fn;
  c->state = state;
  const char *name = fn->name != NULL ? fn->name : "function";
  c->fn.name = cx_site_intern(&(calx_site){ .file = name }).file;
  c->n_inputs = n_inputs;
  c->n_outputs = n_outputs;
  c->needs = cx_calloc(n_inputs, sizeof *c->needs);
  if (c->needs == NULL) {
    context_free(&c->base);
    return NULL;
  }
  for (size_t i = 0; i < n_inputs; i++) {
    c->needs[i] =
        cx_lazy_grad_mode() && cx_lazy_tensor_requires_grad(inputs[i]);
  }
  return c;
}

static calx_status *check_outputs(const calx_function_context *c,
                                  calx_tensor **outputs)
{
  for (size_t k = 0; k < c->n_outputs; k++) {
    if (outputs[k] == NULL) {
      return cx_invalid(
          "function_apply: the forward of '%s' gave no output %zu", c->fn.name,
          k);
    }
    CALX_TRY(cx_lazy_tensor_usable(outputs[k], c->fn.name, (uint32_t)k));
    calx_device *d = calx_tensor_device(c->inputs[0]);
    if (calx_tensor_device(outputs[k]) != d) {
      return cx_invalid(
          "function_apply: output %zu of '%s' is on %s, its "
          "inputs on %s",
          k, c->fn.name, calx_device_name(calx_tensor_device(outputs[k])),
          calx_device_name(d));
    }
  }
  return NULL;
}

static bool same_value(const calx_tensor *a, const calx_tensor *b)
{
  cx_graph_value x = cx_lazy_tensor_value(a), y = cx_lazy_tensor_value(b);
  return x.node == y.node && x.out == y.out;
}

// Records the node. The context is the node's from then on.
static void record(calx_function_context *c, calx_tensor **outputs)
{
  uint32_t n_in = (uint32_t)c->n_inputs, n_out = (uint32_t)c->n_outputs;
  size_t n_saved = c->n_saved, n = n_in + n_out;
  calx_tensor **operands = cx_calloc(n + n_saved, sizeof(calx_tensor *));
  c->saved_at = cx_calloc(n_saved + 1, sizeof *c->saved_at);
  if (operands == NULL || c->saved_at == NULL) {
    cx_free(operands);
    cx_lazy_scope_pin(cx_out_of_memory());
    context_free(&c->base);
    return;
  }
  for (uint32_t i = 0; i < n_in; i++) operands[i] = c->inputs[i];
  for (uint32_t k = 0; k < n_out; k++) {
    operands[n_in + k] = cx_lazy_tensor_detached(outputs[k]);
  }
  for (size_t i = 0; i < n_saved; i++) {
    size_t at = 0;
    while (at < n && !same_value(operands[at], c->saved[i])) at++;
    if (at == n) operands[n++] = cx_lazy_tensor_detached(c->saved[i]);
    c->saved_at[i] = (uint32_t)at;
  }
  drop_saved(c);
  c->inputs = NULL;
  bool fixed[CX_OPS_FUNCTION_OUTPUTS];
  memcpy(fixed, c->fixed, sizeof fixed);
  cx_ops_function_record(&c->base, c->fn.name, operands, (uint32_t)n, n_in,
                         outputs, n_out);
  cx_free(operands);
  for (uint32_t k = 0; k < n_out; k++) {
    if (fixed[k]) cx_lazy_tensor_mark(outputs[k], CX_LAZY_T_DETACHED);
  }
}

static void poison_all(calx_tensor **outputs, size_t n, calx_status *status)
{
  calx_tensor *bad = cx_lazy_tensor_poison(status);
  for (size_t k = 0; outputs != NULL && k < n; k++) outputs[k] = bad;
}

void calx_function_apply(const calx_function *fn, void *state,
                         calx_tensor *const *inputs, size_t n_inputs,
                         calx_tensor **outputs, size_t n_outputs)
{
  calx_status *status = check_call(fn, inputs, n_inputs, outputs, n_outputs);
  if (status != NULL) {
    if (fn != NULL && fn->free_state != NULL) fn->free_state(state);
    poison_all(outputs, n_outputs, status);
    return;
  }
  calx_function_context *c =
      context_new(fn, state, inputs, n_inputs, n_outputs);
  if (c == NULL) {
    poison_all(outputs, n_outputs, cx_out_of_memory());
    return;
  }
  c->inputs = inputs;
  for (size_t k = 0; k < n_outputs; k++) outputs[k] = NULL;
  cx_lazy_grad_region_begin(false);
  fn->forward(c, inputs, outputs);
  cx_lazy_grad_region_end(false);
  status = check_outputs(c, outputs);
  bool wanted = false;
  for (size_t i = 0; i < n_inputs; i++) wanted |= c->needs[i];
  if (status != NULL) {
    context_free(&c->base);
    poison_all(outputs, n_outputs, status);
  } else if (wanted) {
    record(c, outputs);
  } else {
    for (size_t k = 0; k < n_outputs; k++) {
      outputs[k] = cx_lazy_tensor_detached(outputs[k]);
    }
    context_free(&c->base);
  }
}
