// nn/convert: the element type of a model. The tensors stay, with another type,
// so that ties, optimisers and layers keep theirs.
#include "base/dtype.h"
#include "lazy/lazy.h"
#include "nn/module.h"

typedef struct conversion {
  calx_dtype dtype;
  bool failed;
} conversion;

// The types are looked at one after the other: of two names of one tensor the
// second has nothing to do.
static void convert(void *user, const char *path, calx_entry_kind kind,
                    calx_tensor *t)
{
  (void)path;
  (void)kind;
  conversion *c = user;
  if (c->failed || cx_lazy_tensor_poisoned(t)) return;
  calx_dtype dtype = calx_tensor_dtype(t);
  if (!cx_dtype_is_float(dtype) || dtype == c->dtype) return;
  calx_tensor *now = calx_to_dtype(t, c->dtype);
  calx_tensor *grad = cx_lazy_tensor_grad(t), *of_grad = NULL;
  if (grad != NULL && !cx_lazy_tensor_poisoned(grad)) {
    of_grad = calx_to_dtype(grad, c->dtype);
    c->failed = cx_lazy_tensor_poisoned(of_grad);
  }
  c->failed = c->failed || cx_lazy_tensor_poisoned(now);
  if (c->failed) return;
  cx_lazy_tensor_set_value(t, now);
  if (of_grad != NULL) {
    cx_lazy_tensor_set_grad(t, calx_retain(cx_lazy_tensor_detached(of_grad)));
  }
}

void calx_module_to(calx_module *m, calx_dtype dtype)
{
  if (m == NULL || cx_nn_module_is_nil(m)) return;
  if (dtype == CALX_DTYPE_DEFAULT || !cx_dtype_is_float(dtype)) {
    cx_nn_module_fail(
        m, cx_invalid(
               "module_to: a floating type is wanted, got %s",
               dtype == CALX_DTYPE_DEFAULT ? "none" : calx_dtype_name(dtype)));
    return;
  }
  conversion c = { .dtype = dtype };
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_module_visit(m, convert, &c);
  cx_lazy_no_grad_end();
  cx_nn_module_fail(m, calx_scope_end(scope));
}
