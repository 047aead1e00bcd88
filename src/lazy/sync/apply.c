// lazy/sync/apply: one op becomes one node, its results tensors of the scope.
//
// This is the path that every op takes; it takes no lock, and allocates the
// node and one handle per result.
#include "base/dtype.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "lazy/internal.h"
#include "lazy/sync/anomaly.h"
#include "lazy/tape.h"

// Counts what the thread recorded since its last sync. Programs that read and
// never sync are told only when their graph grows: most of its nodes live.
static void count_recorded(void)
{
  int64_t limit = cx_lazy_pending_limit();
  if (++cx_lazy_self.recorded != limit) return;
  if (cx_lazy_eager() || cx_graph_node_live() < limit) {
    cx_lazy_self.recorded = 0;
    return;
  }
  const calx_site *site = cx_site();
  cx_log_once_per_site("pending",
                       "%lld ops were recorded and none of them run: the loop "
                       "around %s:%d never syncs; call calx_sync in it, or "
                       "iterate over a loader",
                       (long long)cx_lazy_self.recorded, cx_site_file(site),
                       site->line);
}

// A poisoned operand's problem travels on; it was told when it arose, but a
// scope that only sees its consequences must not end as a success.
static calx_tensor *pass_on(calx_status *status, calx_tensor **outs,
                            uint32_t n_out)
{
  calx_tensor *t = cx_lazy_tensor_poison(status);
  for (uint32_t k = 0; outs != NULL && k < n_out; k++) outs[k] = t;
  return t;
}

static calx_status *check_operands(const cx_lazy_call *call,
                                   calx_device **device)
{
  *device = NULL;
  for (uint32_t i = 0; i < call->n_in; i++) {
    const calx_tensor *t = call->in[i];
    if (t == NULL) {
      return cx_invalid("%s: operand %u is NULL", call->op->name, i);
    }
    if (t->node == NULL ||
        (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_FAILED) != 0) {
      CALX_TRY(cx_lazy_tensor_usable(t, call->op->name, i));
    }
    if (*device != NULL && *device != t->device) {
      return cx_invalid(
          "%s: operand %u is on %s, the ones before it on %s; move it with "
          "calx_to",
          call->op->name, i, t->device->name, (*device)->name);
    }
    *device = t->device;
  }
  if (*device == NULL) *device = cx_lazy_device_or_current(call->device);
  if (*device == NULL) return cx_status_copy(calx_scope_error());
  return NULL;
}

// Fills inputs and their edges. Returns whether a gradient can flow.
static bool connect(cx_graph_node *node, const cx_lazy_call *call)
{
  bool record = cx_lazy_grad_mode() && call->op->grad != NULL, any = false;
  for (uint32_t i = 0; i < call->n_in; i++) {
    const calx_tensor *t = call->in[i];
    cx_graph_node_set_input(node, i, cx_lazy_tensor_value(t));
    if (!record || !cx_lazy_tensor_requires_grad(t)) continue;
    any = node->in[i].differentiable = true;
    if ((t->flags & CX_LAZY_T_REQUIRES_GRAD) != 0) {
      cx_graph_leaf_retain(t->leaf);
      node->in[i].leaf = t->leaf;
    }
  }
  return any;
}

// Complex operands and results, which an op has to declare: one whose rules
// are written for real numbers would be wrong in silence. Nor may a composition
// take them that does not say so.
static calx_status *check_complex(const cx_graph_node *node)
{
  if (node->op->takes_complex && !cx_lazy_self.composite.real) return NULL;
  const cx_graph_shape *bad = NULL;
  for (uint32_t i = 0; i < node->n_in && bad == NULL; i++) {
    if (cx_dtype_is_complex(cx_in(node, i)->dtype)) bad = cx_in(node, i);
  }
  for (uint32_t k = 0; k < node->n_out && bad == NULL; k++) {
    const cx_graph_shape *s = &node->out[k].shape;
    if (cx_dtype_is_complex(s->dtype)) bad = s;
  }
  if (bad == NULL) return NULL;
  return cx_error(CALX_INVALID_ARGUMENT,
                  "%s: %s is complex, and this function is one of real numbers "
                  "only; calx_real, calx_imag, calx_abs and calx_view_as_real "
                  "make real tensors of complex ones",
                  cx_graph_node_name(node), cx_graph_shape_str(bad));
}

// Whether the bytes fit by a bound that needs no product: every size is below
// 2^bits, and an element has at most 2^4 bytes.
static bool is_small(const cx_graph_shape *s)
{
  uint64_t all = 1;
  for (uint32_t i = 0; i < s->rank; i++) all |= (uint64_t)s->dims[i];
  uint32_t bits = 64 - (uint32_t)__builtin_clzll(all);
  return bits * s->rank + 4 < 63;
}

// What follows counts elements and bytes in 64 bits.
static calx_status *check_sizes(const cx_graph_node *node, uint32_t n_out)
{
  for (uint32_t k = 0; k < n_out; k++) {
    const cx_graph_shape *s = &node->out[k].shape;
    int64_t elements;
    size_t bytes;
    if (is_small(s) ||
        cx_dims_bytes(s->dtype, s->dims, s->rank, &elements, &bytes))
      continue;
    return cx_invalid("%s: the result %s is too large", node->op->name,
                      cx_graph_shape_str(s));
  }
  return NULL;
}

static calx_status *build(const cx_lazy_call *call, cx_graph_node **out_node)
{
  uint32_t n_out = call->n_out != 0 ? call->n_out : 1;
  cx_graph_node *node = cx_graph_node_new(call->op, call->n_in, n_out,
                                          call->n_slots, call->attrs);
  *out_node = node;
  if (node == NULL) return cx_out_of_memory();
  uint32_t flags = call->flags | (connect(node, call) ? CX_GRAPH_NODE_GRAD : 0);
  atomic_store_explicit(&node->flags, flags, memory_order_relaxed);
  for (uint32_t k = 0; k < call->n_slots; k++) node->slots[k] = call->slots[k];
  node->site = *cx_site();
  node->module = cx_lazy_self.module;
  node->composite = cx_lazy_self.composite.name;
  CALX_TRY(call->op->infer(node));
  CALX_TRY(check_complex(node));
  return check_sizes(node, n_out);
}

static calx_tensor *apply(const cx_lazy_call *call, calx_tensor **outs)
{
  uint32_t n_out = call->n_out != 0 ? call->n_out : 1;
  calx_device *device;
  calx_status *status = check_operands(call, &device);
  if (status != NULL) return pass_on(status, outs, n_out);
  cx_graph_node *node;
  status = build(call, &node);
  if (status != NULL) {
    cx_graph_node_release(node);
    return pass_on(status, outs, n_out);
  }
  calx_tensor *first = cx_lazy_tensor_of((cx_graph_value){ node, 0 }, device);
  if (outs != NULL) outs[0] = first;
  for (uint32_t k = 1; outs != NULL && k < n_out; k++) {
    outs[k] = cx_lazy_tensor_of((cx_graph_value){ node, k }, device);
  }
  count_recorded();
  cx_graph_node_release(node);
  if (cx_lazy_eager() && !cx_lazy_tensor_poisoned(first)) cx_lazy_read(first);
  if (cx_lazy_debug_on(CX_LAZY_DEBUG_ANOMALY)) {
    cx_lazy_check_anomaly(first, outs, n_out);
  }
  return first;
}

calx_tensor *cx_lazy_apply(const cx_lazy_call *call, calx_tensor **outs)
{
  int64_t begin = cx_trace_own_begin();
  calx_tensor *first = apply(call, outs);
  cx_trace_own_end(begin);
  return first;
}

// ---- the tape's view --------------------------------------------------------

calx_tensor *cx_lazy_tape_in(const cx_lazy_tape *tape, uint32_t i)
{
  if (tape->used_values != NULL) *tape->used_values = true;
  const cx_graph_input *in = &tape->node->in[i];
  calx_tensor *t =
      cx_lazy_tensor_of((cx_graph_value){ in->node, in->out }, tape->device);
  if (cx_lazy_tensor_poisoned(t)) return t;
  if (in->leaf != NULL) {
    // The same leaf: what is computed from it reaches the same gradient.
    cx_graph_leaf_retain(in->leaf);
    t->leaf = in->leaf;
    t->flags |= CX_LAZY_T_REQUIRES_GRAD | CX_LAZY_T_BORROWED_LEAF;
  } else if (!in->differentiable) {
    t->flags |= CX_LAZY_T_DETACHED;
  }
  return t;
}

calx_tensor *cx_lazy_tape_out(const cx_lazy_tape *tape, uint32_t k)
{
  if (tape->used_values != NULL) *tape->used_values = true;
  return cx_lazy_tensor_of((cx_graph_value){ tape->node, k }, tape->device);
}
