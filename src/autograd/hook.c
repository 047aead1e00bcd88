// autograd/hook: functions that see gradients, and results that keep theirs.
#include "base/hook.h"

#include "calx/autograd.h"
#include "graph/extra.h"
#include "ops/ops.h"

static calx_status *check(const char *call, calx_tensor *t)
{
  if (t == NULL) return cx_invalid("%s: the tensor is NULL", call);
  CALX_TRY(cx_lazy_tensor_usable(t, call, 0));
  const cx_graph_node *node = cx_lazy_tensor_value(t).node;
  if (!cx_lazy_tensor_requires_grad(t)) {
    return cx_invalid("%s: the tensor %s requires no gradient", call,
                      cx_graph_shape_str(cx_lazy_tensor_shape(t)));
  }
  if (cx_lazy_tensor_is_leaf(t) ||
      (cx_graph_node_flags(node) & CX_GRAPH_NODE_TAPE_ENDED) == 0) {
    return NULL;
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%s: the sync at %s:%d computed this tensor and ended its "
                  "tape: call %s before that sync",
                  call, node->site.file != NULL ? node->site.file : "?",
                  node->site.line, call);
}

calx_hook calx_register_hook(calx_tensor *tensor, calx_gradient_hook_fn *fn,
                             void *user, calx_hook_free_fn *free_user)
{
  calx_status *status = check("register_hook", tensor);
  if (status == NULL && fn == NULL) {
    status = cx_invalid("register_hook: the function is NULL");
  }
  if (status != NULL) {
    if (free_user != NULL) free_user(user);
    cx_lazy_scope_pin(status);
    return (calx_hook){ 0 };
  }
  return cx_ops_hook(tensor, (cx_hook){ .kind = CX_GRAPH_HOOK_GRAD,
                                        .fn = (cx_hook_fn *)fn,
                                        .user = user,
                                        .drop = free_user });
}

void calx_hook_remove(calx_hook hook)
{
  if (hook.id != 0) cx_hook_remove(hook.id);
}

static void drop_leaf(void *leaf)
{
  cx_graph_leaf_release(leaf);
}

void calx_retain_grad(calx_tensor *tensor)
{
  calx_status *status = check("retain_grad", tensor);
  if (status != NULL || cx_lazy_tensor_is_leaf(tensor)) {
    cx_lazy_scope_pin(status);
    return;
  }
  // The record outlives the tensor, whose gradient nobody can ask for then.
  cx_graph_leaf *leaf = cx_lazy_tensor_leaf(tensor);
  if (leaf == NULL) return;
  cx_graph_value v = cx_lazy_tensor_value(tensor);
  cx_hook *h = NULL;
  while (v.node->extra != NULL &&
         (h = cx_hook_next(&v.node->extra->hooks, h, CX_GRAPH_HOOK_RETAIN,
                           v.out)) != NULL) {
    if (h->user == leaf) {
      cx_hook_give_back(h);
      return;
    }
  }
  cx_graph_leaf_retain(leaf);
  cx_ops_hook(tensor, (cx_hook){ .kind = CX_GRAPH_HOOK_RETAIN,
                                 .user = leaf,
                                 .drop = drop_leaf });
}
