// autograd/grad: a leaf's gradient, and regions in which no tape is recorded.
#include "base/dtype.h"
#include "calx/autograd.h"
#include "lazy/lazy.h"

calx_tensor *calx_grad(calx_tensor *tensor)
{
  calx_tensor *grad = tensor != NULL ? cx_lazy_tensor_grad(tensor) : NULL;
  // A gradient that a failed step left without a value counts as none.
  return grad != NULL && !cx_lazy_tensor_poisoned(grad) ? grad : NULL;
}

void calx_zero_grad(calx_tensor *tensor)
{
  if (tensor != NULL && cx_lazy_tensor_grad(tensor) != NULL) {
    cx_lazy_tensor_set_grad(tensor, NULL);
  }
}

static calx_status *check_leaf(const calx_tensor *t)
{
  if (t == NULL) {
    return cx_invalid("requires_grad: the tensor is NULL");
  }
  CALX_TRY(cx_lazy_tensor_usable(t, "requires_grad", 0));
  const cx_graph_shape *s = cx_lazy_tensor_shape(t);
  if (!cx_dtype_is_inexact(s->dtype)) {
    return cx_invalid(
        "requires_grad: only floating and complex types have gradients, the tensor is %s",
        cx_graph_shape_str(s));
  }
  if (!cx_lazy_tensor_is_leaf(t)) {
    return cx_invalid(
        "requires_grad: the tensor %s is the result of an op on tensors that "
        "require a gradient; only leaves can be changed: calx_detach() it first",
        cx_graph_shape_str(s));
  }
  return NULL;
}

void calx_requires_grad(calx_tensor *tensor, bool on)
{
  calx_status *status = check_leaf(tensor);
  if (status == NULL) cx_lazy_tensor_set_requires_grad(tensor, on);
  cx_lazy_scope_pin(status);
}

bool calx_tensor_requires_grad(const calx_tensor *tensor)
{
  return tensor != NULL && cx_lazy_tensor_requires_grad(tensor);
}

static void end_region(bool enable)
{
  if (cx_lazy_grad_region_end(enable)) return;
  const char *kind = enable ? "enable_grad" : "no_grad";
  cx_lazy_scope_pin(cx_error(
      CALX_FAILED_PRECONDITION,
      "%s_end: no region was begun in this scope, or the innermost one is of "
      "the other kind; regions end with the scope they began in",
      kind));
}

void calx_no_grad_begin(void)
{
  cx_lazy_grad_region_begin(false);
}

void calx_no_grad_end(void)
{
  end_region(false);
}

void calx_inference_mode_begin(void)
{
  calx_no_grad_begin();
}

void calx_inference_mode_end(void)
{
  calx_no_grad_end();
}

void calx_enable_grad_begin(void)
{
  cx_lazy_grad_region_begin(true);
}

void calx_enable_grad_end(void)
{
  end_region(true);
}

bool calx_is_grad_enabled(void)
{
  return cx_lazy_grad_mode();
}

void calx_set_detect_anomaly(bool on)
{
  cx_lazy_debug_set(CX_LAZY_DEBUG_ANOMALY, on);
}

bool calx_is_anomaly_enabled(void)
{
  return cx_lazy_debug_on(CX_LAZY_DEBUG_ANOMALY);
}

void calx_detach_(calx_tensor *tensor)
{
  if (tensor == NULL) {
    cx_lazy_scope_pin(cx_invalid("detach_: the tensor is NULL"));
    return;
  }
  calx_status *status = cx_lazy_tensor_usable(tensor, "detach_", 0);
  if (status == NULL) cx_lazy_tensor_cut(tensor);
  cx_lazy_scope_pin(status);
}
