// lazy/tensor/query: what a handle knows of its tensor.
#include "base/dtype.h"
#include "lazy/internal.h"

// ---- state ------------------------------------------------------------------

bool cx_lazy_tensor_is(const calx_tensor *t, uint32_t flag)
{
  return (t->flags & flag) != 0;
}

bool cx_lazy_tensor_poisoned(const calx_tensor *t)
{
  return (t->flags & CX_LAZY_T_POISON) != 0;
}

const cx_graph_shape *cx_lazy_tensor_shape(const calx_tensor *t)
{
  static const cx_graph_shape none = { .dtype = CALX_F32 };
  if (t == NULL) return &none;
  if (t->node != NULL) return &t->node->out[t->out].shape;
  return t->host != NULL ? &t->host->shape : &none;
}

cx_graph_value cx_lazy_tensor_value(const calx_tensor *t)
{
  return (cx_graph_value){ t->node, t->out };
}

const char *cx_lazy_tensor_name(const calx_tensor *t)
{
  return t->name;
}

const char *cx_lazy_tensor_model(const calx_tensor *t)
{
  return t->model;
}

calx_status *cx_lazy_tensor_usable(const calx_tensor *t, const char *op,
                                   uint32_t operand)
{
  if ((t->flags & CX_LAZY_T_POISON) != 0 && cx_lazy_scope_failed()) {
    // Only the first to meet it says where: messages must not grow by each.
    return cx_status_copy(t->problem->status);
  }
  if ((t->flags & (CX_LAZY_T_POISON | CX_LAZY_T_EXPIRED)) != 0) {
    return cx_error(calx_status_code(t->problem->status), "%s: operand %u: %s",
                    op, operand, calx_status_message(t->problem->status));
  }
  if (t->host != NULL) {
    return cx_invalid(
        "%s: Input tensor is not an XLA tensor: operand %u is %s on the host; "
        "move it with calx_to(tensor, NULL)",
        op, operand, cx_graph_shape_str(&t->host->shape));
  }
  if (t->node != NULL &&
      (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_FAILED) != 0) {
    return cx_error(calx_status_code(t->node->error), "%s: operand %u: %s", op,
                    operand, calx_status_message(t->node->error));
  }
  return NULL;
}

// ---- gradients --------------------------------------------------------------

bool cx_lazy_tensor_requires_grad(const calx_tensor *t)
{
  if ((t->flags & CX_LAZY_T_REQUIRES_GRAD) != 0) return true;
  // What a sync cut off its history still counts: a backward that reaches it
  // must say so.
  uint32_t on_tape = CX_GRAPH_NODE_GRAD | CX_GRAPH_NODE_TAPE_ENDED;
  return t->node != NULL && (t->flags & CX_LAZY_T_DETACHED) == 0 &&
         (cx_graph_node_flags(t->node) & on_tape) != 0 &&
         cx_dtype_is_inexact(cx_lazy_tensor_shape(t)->dtype);
}

bool cx_lazy_tensor_is_leaf(const calx_tensor *t)
{
  return (t->flags & CX_LAZY_T_REQUIRES_GRAD) != 0 ||
         !cx_lazy_tensor_requires_grad(t);
}

void cx_lazy_tensor_cut(calx_tensor *t)
{
  if (t == cx_lazy_tensor_nil()) return;
  t->flags &= ~(uint32_t)CX_LAZY_T_REQUIRES_GRAD;
  t->flags |= CX_LAZY_T_DETACHED;
}

calx_tensor *cx_lazy_tensor_grad(calx_tensor *t)
{
  return t->grad;
}

// ---- public -----------------------------------------------------------------

size_t calx_tensor_rank(const calx_tensor *t)
{
  return cx_lazy_tensor_shape(t)->rank;
}

int64_t calx_tensor_dim(const calx_tensor *t, int dim)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  int64_t at = dim < 0 ? dim + (int64_t)s->rank : dim;
  if (at < 0 || at >= (int64_t)s->rank) return 0;
  return s->dims[at];
}

calx_dims calx_tensor_shape(const calx_tensor *t)
{
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  return calx_dims_of(s->dims, s->rank);
}

int64_t calx_tensor_numel(const calx_tensor *t)
{
  if (t == NULL || (t->node == NULL && t->host == NULL)) return 0;
  return cx_graph_shape_numel(cx_lazy_tensor_shape(t));
}

calx_dtype calx_tensor_dtype(const calx_tensor *t)
{
  return cx_lazy_tensor_shape(t)->dtype;
}

calx_device *calx_tensor_device(const calx_tensor *t)
{
  return t != NULL && t->host == NULL ? t->device : NULL;
}

bool calx_tensor_is_host(const calx_tensor *t)
{
  return t != NULL && t->host != NULL;
}

const calx_status *calx_tensor_error(const calx_tensor *t)
{
  if (t == NULL) return NULL;
  if (t->problem != NULL) return t->problem->status;
  if (t->node != NULL &&
      (cx_graph_node_flags(t->node) & CX_GRAPH_NODE_FAILED) != 0) {
    return t->node->error;
  }
  return NULL;
}

const void *calx_host_data(const calx_tensor *t)
{
  return t != NULL && t->host != NULL ? t->host->data : NULL;
}
