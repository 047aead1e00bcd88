// autograd/checkpoint: a part of the forward that the backward runs again.
//
// The first run records its ops with their tape, which is walked for the leaves
// that the function uses; then the tape is dropped. The node that stands for it
// has the inputs and those leaves as inputs. In a program both runs compute the
// same from the same values, so the second one begins behind a barrier that
// takes the gradients too: it is not merged with the first, and does not start
// before the backward is there.
#include <string.h>

#include "autograd/walk.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "calx/function.h"
#include "ops/ops.h"

typedef struct recomputed {
  cx_ops_function base;
  calx_tensors_fn *fn;
  void *user;
  size_t n_inputs, n_leaves, n_outputs;
  bool keep_random;
  calx_dtype autocast;   // of the first run
  uint64_t seed, draws;  // of the device before the first run
} recomputed;

static void region_free(cx_ops_function *base)
{
  cx_free(base);
}

// ---- the second run ---------------------------------------------------------

// An input of the second run: a leaf of its own where it needs a gradient. It
// is behind a barrier with the gradients that arrived.
static calx_tensor *again(const recomputed *r, const cx_lazy_tape *tape,
                          uint32_t i)
{
  calx_tensor *in[1 + CX_OPS_FUNCTION_OUTPUTS];
  uint32_t n = 0;
  calx_tensor *x = cx_lazy_tape_in(tape, i);
  in[n++] = x;
  for (size_t k = 0; k < r->n_outputs; k++) {
    if (tape->out_grads[k] != NULL) in[n++] = tape->out_grads[k];
  }
  if (tape->create_graph) return x;
  calx_tensor *y = cx_lazy_tensor_detached(cx_ops_barrier(in, n));
  if (!cx_lazy_tensor_poisoned(y) && cx_tape_needs(tape, i)) {
    cx_lazy_tensor_set_requires_grad(y, true);
  }
  return y;
}

// The outputs of the second run that a gradient reached, with it.
static size_t pair_outputs(const recomputed *r, const cx_lazy_tape *tape,
                           calx_tensor **outs, calx_tensor **grads)
{
  size_t n = 0;
  for (size_t k = 0; k < r->n_outputs; k++) {
    if (tape->out_grads[k] == NULL || outs[k] == NULL ||
        !cx_lazy_tensor_requires_grad(outs[k])) {
      continue;
    }
    outs[n] = outs[k];
    grads[n++] = tape->out_grads[k];
  }
  return n;
}

static calx_status *check_shapes(const recomputed *r, const cx_lazy_tape *tape,
                                 calx_tensor *const *outs)
{
  for (uint32_t k = 0; k < r->n_outputs; k++) {
    if (outs[k] == NULL) {
      return cx_invalid("checkpoint: the function gave no output %u", k);
    }
    CALX_TRY(cx_lazy_tensor_usable(outs[k], "checkpoint", k));
    const cx_graph_shape *is = cx_lazy_tensor_shape(outs[k]),
                         *was = &tape->node->out[k].shape;
    if (cx_graph_shape_equal(is, was)) continue;
    return cx_error(CALX_FAILED_PRECONDITION,
                    "checkpoint: output %u is %s in the recomputation and was "
                    "%s in the forward: the function must compute the same",
                    k, cx_graph_shape_str(is), cx_graph_shape_str(was));
  }
  return NULL;
}

// Gradients of the wanted inputs and leaves, into tape->in_grads.
static void differentiate(const recomputed *r, const cx_lazy_tape *tape,
                          calx_tensor **inputs, calx_tensor **outs)
{
  calx_tensor *grads[CX_OPS_FUNCTION_OUTPUTS];
  size_t n_out = pair_outputs(r, tape, outs, grads);
  size_t n = r->n_inputs + r->n_leaves, n_wanted = 0;
  calx_tensor **wanted = cx_calloc(n + 1, sizeof(calx_tensor *));
  calx_tensor **got = cx_calloc(n + 1, sizeof(calx_tensor *));
  if (wanted == NULL || got == NULL) cx_lazy_scope_pin(cx_out_of_memory());
  for (uint32_t i = 0; !cx_lazy_scope_failed() && i < n; i++) {
    if (cx_tape_needs(tape, i)) wanted[n_wanted++] = inputs[i];
  }
  if (!cx_lazy_scope_failed() && n_out != 0) {
    calx_grad_of_options o = { .size = sizeof o,
                               .gradients = grads,
                               .create_graph = tape->create_graph,
                               .retain_graph = true,
                               .allow_unused = true };
    calx_grad_of_n(outs, n_out, wanted, n_wanted, got, &o);
  }
  n_wanted = 0;
  for (uint32_t i = 0; !cx_lazy_scope_failed() && i < n; i++) {
    if (cx_tape_needs(tape, i)) tape->in_grads[i] = got[n_wanted++];
  }
  cx_free(wanted);
  cx_free(got);
}

static void run_again(const recomputed *r, const cx_lazy_tape *tape,
                      calx_tensor **inputs, calx_tensor **outs)
{
  uint64_t seed, draws;
  cx_lazy_random_state(tape->device, &seed, &draws);
  if (r->keep_random) cx_lazy_random_restore(tape->device, r->seed, r->draws);
  cx_lazy_grad_region_begin(true);
  calx_dtype autocast = cx_lazy_autocast_set(r->autocast);
  r->fn(r->user, inputs, outs);
  (void)cx_lazy_autocast_set(autocast);
  cx_lazy_grad_region_end(true);
  if (r->keep_random) cx_lazy_random_restore(tape->device, seed, draws);
}

static void backward(cx_ops_function *base, const cx_lazy_tape *tape)
{
  const recomputed *r = (const recomputed *)base;
  calx_tensor *outs[CX_OPS_FUNCTION_OUTPUTS] = { NULL };
  size_t n = r->n_inputs + r->n_leaves;
  calx_tensor **inputs = cx_calloc(n + 1, sizeof(calx_tensor *));
  if (inputs == NULL) {
    cx_lazy_scope_pin(cx_out_of_memory());
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    inputs[i] = i < r->n_inputs ? again(r, tape, i) : cx_lazy_tape_in(tape, i);
    if (i >= r->n_inputs && tape->node->in[i].leaf != NULL) {
      // The leaf itself is what the function uses.
      calx_tensor *leaf = cx_autograd_leaf_tensor(&tape->node->in[i]);
      if (leaf != NULL) inputs[i] = leaf;
    }
  }
  if (!cx_lazy_scope_failed()) run_again(r, tape, inputs, outs);
  if (!cx_lazy_scope_failed()) {
    cx_lazy_scope_pin(check_shapes(r, tape, outs));
  }
  if (!cx_lazy_scope_failed()) differentiate(r, tape, inputs, outs);
  cx_free(inputs);
}

// ---- the first run ----------------------------------------------------------

static calx_status *check_call(calx_tensors_fn *fn, calx_tensor *const *inputs,
                               size_t n_inputs, calx_tensor **outputs,
                               size_t n_outputs,
                               const calx_checkpoint_options *o)
{
  CALX_TRY(cx_options_check("checkpoint", o->size, sizeof *o));
  if (fn == NULL) return cx_invalid("checkpoint: the function is NULL");
  if (inputs == NULL || n_inputs == 0 || n_inputs > UINT16_MAX) {
    return cx_invalid("checkpoint: %zu inputs, 1 to %d are possible", n_inputs,
                      UINT16_MAX);
  }
  if (outputs == NULL || n_outputs == 0 ||
      n_outputs > CX_OPS_FUNCTION_OUTPUTS) {
    return cx_invalid("checkpoint: %zu outputs, 1 to %d are possible",
                      n_outputs, CX_OPS_FUNCTION_OUTPUTS);
  }
  for (size_t i = 0; i < n_inputs; i++) {
    if (inputs[i] == NULL) {
      return cx_invalid("checkpoint: operand %zu is NULL", i);
    }
    CALX_TRY(cx_lazy_tensor_usable(inputs[i], "checkpoint", (uint32_t)i));
  }
  return NULL;
}

// An input as the function sees it: a leaf of its own, so that the walk ends
// there.
static calx_tensor *as_leaf(calx_tensor *x)
{
  calx_tensor *y = cx_lazy_tensor_detached(x);
  if (cx_lazy_tensor_requires_grad(x) && !cx_lazy_tensor_poisoned(y)) {
    cx_lazy_tensor_set_requires_grad(y, true);
  }
  return y;
}

static bool is_among(calx_tensor *const *all, size_t n, const calx_tensor *t)
{
  for (size_t i = 0; i < n; i++) {
    if (all[i] == t) return true;
  }
  return false;
}

// Results of ops outside that the function uses: they would get no gradient.
static calx_status *walk_outputs(cx_autograd_walk *w, const recomputed *r,
                                 calx_tensor *const *outs)
{
  for (size_t k = 0; k < r->n_outputs; k++) {
    if (outs[k] == NULL) {
      return cx_invalid("checkpoint: the function gave no output %zu", k);
    }
    CALX_TRY(cx_lazy_tensor_usable(outs[k], "checkpoint", (uint32_t)k));
    if (!cx_lazy_tensor_requires_grad(outs[k])) continue;
    bool ok =
        cx_lazy_tensor_is_leaf(outs[k])
            ? cx_autograd_walk_leaf(w, outs[k])
            : cx_autograd_walk_from(w, cx_lazy_tensor_value(outs[k]).node);
    if (!ok) return cx_out_of_memory();
  }
  return NULL;
}

static calx_status *record(recomputed *r, calx_tensor *const *inputs,
                           calx_tensor *const *seen, calx_tensor *const *outs,
                           calx_tensor **outputs)
{
  cx_autograd_walk w = { 0 };
  calx_status *status = walk_outputs(&w, r, outs);
  size_t n = r->n_inputs, most = n + w.n_leaves + r->n_outputs;
  calx_tensor **operands = cx_calloc(most, sizeof(calx_tensor *));
  if (status == NULL && operands == NULL) status = cx_out_of_memory();
  if (status == NULL) {
    memcpy(operands, inputs, n * sizeof(calx_tensor *));
    for (size_t i = 0; i < w.n_leaves; i++) {
      calx_tensor *leaf = w.leaves[i].tensor;
      if (is_among(seen, r->n_inputs, leaf)) continue;
      operands[n++] = leaf;
      r->n_leaves++;
    }
    for (size_t k = 0; k < r->n_outputs; k++) {
      operands[n + k] = cx_lazy_tensor_detached(outs[k]);
    }
    size_t n_out = r->n_outputs;
    cx_ops_function_record(&r->base, "checkpoint", operands,
                           (uint32_t)(n + n_out), (uint32_t)n, outputs,
                           (uint32_t)n_out);
  } else {
    region_free(&r->base);
  }
  cx_autograd_walk_free(&w);
  cx_free(operands);
  return status;
}

static calx_status *first_run(recomputed *r, calx_tensor *const *inputs,
                              calx_tensor **outputs)
{
  calx_tensor *outs[CX_OPS_FUNCTION_OUTPUTS] = { NULL };
  calx_tensor **seen = cx_calloc(r->n_inputs, sizeof(calx_tensor *));
  if (seen == NULL) {
    region_free(&r->base);
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < r->n_inputs; i++) seen[i] = as_leaf(inputs[i]);
  cx_lazy_random_state(calx_tensor_device(inputs[0]), &r->seed, &r->draws);
  r->fn(r->user, seen, outs);
  calx_status *status = record(r, inputs, seen, outs, outputs);
  cx_free(seen);
  return status;
}

void calx_checkpoint_with(calx_tensors_fn *fn, void *user,
                          calx_tensor *const *inputs, size_t n_inputs,
                          calx_tensor **outputs, size_t n_outputs,
                          const calx_checkpoint_options *options)
{
  static const calx_checkpoint_options none = { .size = sizeof none };
  if (options == NULL) options = &none;
  calx_status *status =
      check_call(fn, inputs, n_inputs, outputs, n_outputs, options);
  recomputed *r = status == NULL ? cx_calloc(1, sizeof *r) : NULL;
  if (status == NULL && r == NULL) status = cx_out_of_memory();
  if (status == NULL && !cx_lazy_grad_mode()) {
    region_free(&r->base);
    fn(user, inputs, outputs);
    return;
  }
  if (status == NULL) {
    *r = (recomputed){ .base = { backward, region_free },
                       .fn = fn,
                       .user = user,
                       .n_inputs = n_inputs,
                       .n_outputs = n_outputs,
                       .keep_random = !options->no_preserve_rng_state,
                       .autocast = cx_lazy_autocast() };
    status = first_run(r, inputs, outputs);
  }
  if (status == NULL) return;
  calx_tensor *bad = cx_lazy_tensor_poison(status);
  for (size_t k = 0; outputs != NULL && k < n_outputs; k++) outputs[k] = bad;
}
