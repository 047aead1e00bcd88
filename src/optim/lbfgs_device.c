// optim/lbfgs_device: what LBFGS gives to the device and reads from it: the
// parameters, the loss and its gradient.
#include "base/alloc.h"
#include "base/dtype.h"
#include "lazy/lazy.h"
#include "optim/lbfgs.h"

calx_status *cx_optim_lbfgs_assign(cx_optim_lbfgs *l, double t, const double *d)
{
  size_t k = 0;
  for (size_t i = 0; i < l->base.n; i++) {
    calx_tensor *p = l->base.params[i].tensor, *value;
    const cx_graph_shape *s = cx_lazy_tensor_shape(p);
    size_t n = (size_t)calx_tensor_numel(p), one = calx_dtype_size(s->dtype);
    unsigned char *out = l->staging;
    for (size_t e = 0; e < n; e++, k++) {
      double x = d != NULL ? l->x[k] + t * d[k] : l->x[k];
      cx_store_double(s->dtype, out + e * one, x);
    }
    CALX_TRY(cx_lazy_upload(l->base.device, s->dtype, s->dims, s->rank, out,
                            false, NULL, NULL, &value));
    cx_lazy_no_grad_begin();
    cx_lazy_tensor_set_value(p, value);
    cx_lazy_no_grad_end();
    calx_release(value);
  }
  return NULL;
}

void cx_optim_lbfgs_advance(cx_optim_lbfgs *l, double t, const double *d)
{
  size_t k = 0;
  for (size_t i = 0; i < l->base.n; i++) {
    const calx_tensor *p = l->base.params[i].tensor;
    calx_dtype type = calx_tensor_dtype(p);
    for (int64_t e = calx_tensor_numel(p); e > 0; e--, k++) {
      double rounded;
      cx_store_double(type, &rounded, l->x[k] + t * d[k]);
      l->x[k] = cx_load_double(type, &rounded);
    }
  }
}

// The vector's elements of a parameter, or of its gradient, on the device.
static calx_tensor *part(const cx_optim_lbfgs *l, size_t i, bool gradient)
{
  calx_tensor *p = l->base.params[i].tensor, *t = p;
  if (gradient) {
    t = cx_lazy_tensor_grad(p);
    if (t == NULL || cx_lazy_tensor_poisoned(t)) {
      t = calx_mul(p, cx_optim_number(&l->base, calx_tensor_dtype(p), 0));
    }
  }
  int64_t n = calx_tensor_numel(p);
  return calx_to_dtype(calx_reshape(t, calx_dims_of(&n, 1)), l->dtype);
}

static calx_status *read_vector(cx_optim_lbfgs *l, calx_tensor *t, double *out)
{
  size_t n = (size_t)calx_tensor_numel(t), one = calx_dtype_size(l->dtype);
  CALX_TRY(calx_tensor_read(t, l->staging, n * one));
  for (size_t i = 0; i < n; i++) {
    out[i] =
        cx_load_double(l->dtype, (const unsigned char *)l->staging + i * one);
  }
  return NULL;
}

// Reads a part after the other: gradients or parameters.
static calx_status *read_all(cx_optim_lbfgs *l, calx_tensor *const *parts,
                             double *out)
{
  for (size_t i = 0; i < l->base.n; i++) {
    CALX_TRY(read_vector(l, parts[i], out));
    out += calx_tensor_numel(parts[i]);
  }
  return NULL;
}

static calx_status *check_loss(calx_tensor *loss)
{
  if (loss == NULL) {
    return cx_invalid("lbfgs: the closure returned NULL, the loss is wanted");
  }
  if (cx_lazy_tensor_poisoned(loss) || calx_tensor_numel(loss) == 1) {
    return NULL;
  }
  return cx_invalid(
      "lbfgs: the closure returned %s, a loss of one element is "
      "wanted",
      cx_graph_shape_str(cx_lazy_tensor_shape(loss)));
}

// In a scope: runs the closure, and reads the loss and the gradient.
static calx_status *run_closure(cx_optim_lbfgs *l, calx_tensor **parts,
                                double *out_loss, double *out_grad)
{
  calx_tensor *loss = l->closure(l->user);
  CALX_TRY(check_loss(loss));
  if (calx_scope_error() != NULL) return NULL;
  cx_lazy_no_grad_begin();
  for (size_t i = 0; i < l->base.n; i++) {
    parts[i] = calx_retain(cx_lazy_tensor_detached(part(l, i, true)));
  }
  calx_tensor *kept = calx_retain(cx_lazy_tensor_detached(loss));
  cx_lazy_no_grad_end();
  calx_sync(NULL);
  calx_status *status = NULL;
  if (calx_scope_error() == NULL) {
    *out_loss = calx_item(kept);
    status = read_all(l, parts, out_grad);
  }
  for (size_t i = 0; i < l->base.n; i++) calx_release(parts[i]);
  calx_release(kept);
  return status;
}

calx_status *cx_optim_lbfgs_evaluate(cx_optim_lbfgs *l, double *out_loss,
                                     double *out_grad)
{
  calx_tensor **parts = cx_calloc(l->base.n, sizeof(calx_tensor *));
  if (parts == NULL) return cx_out_of_memory();
  calx_scope *scope = calx_scope_begin();
  calx_status *status = run_closure(l, parts, out_loss, out_grad);
  calx_status *recorded = calx_scope_end(scope);
  cx_free(parts);
  l->s.func_evals++;
  if (recorded == NULL) return status;
  calx_status_free(status);
  return recorded;
}

calx_status *cx_optim_lbfgs_at(cx_optim_lbfgs *l, double t, double *out_loss,
                               double *out_grad)
{
  CALX_TRY(cx_optim_lbfgs_assign(l, t, l->s.d));
  return cx_optim_lbfgs_evaluate(l, out_loss, out_grad);
}

calx_status *cx_optim_lbfgs_read(cx_optim_lbfgs *l)
{
  calx_tensor **parts = cx_calloc(l->base.n, sizeof(calx_tensor *));
  if (parts == NULL) return cx_out_of_memory();
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  for (size_t i = 0; i < l->base.n; i++) parts[i] = part(l, i, false);
  cx_lazy_no_grad_end();
  calx_status *status = read_all(l, parts, l->x);
  calx_status *recorded = calx_scope_end(scope);
  cx_free(parts);
  if (recorded == NULL) return status;
  calx_status_free(status);
  return recorded;
}
