// nn/update_bn: the running statistics of BatchNorm layers, made anew from
// data.
#include <string.h>

#include "base/alloc.h"
#include "calx/swa_utils.h"
#include "nn/batch_norm.h"
#include "nn/layer.h"
#include "ops/ops.h"

// A layer, and the momentum that it has otherwise.
typedef struct cx_nn_kept_norm {
  cx_nn_batch_norm *norm;
  double momentum;
} cx_nn_kept_norm;

static void restart(calx_tensor *t, double value)
{
  if (t == NULL) return;
  cx_lazy_no_grad_begin();
  calx_create_options o = { .size = sizeof o,
                            .dtype = calx_tensor_dtype(t),
                            .device = calx_tensor_device(t) };
  cx_lazy_tensor_set_value(t, calx_full_with(calx_tensor_shape(t), value, &o));
  cx_lazy_no_grad_end();
}

static void find_norm(void *user, const char *path, calx_module *m)
{
  (void)path;
  cx_nn_norms *all = user;
  if (!cx_nn_is_batch_norm(m)) return;
  cx_nn_batch_norm *b = m->state;
  if (b->tracked == NULL) return;
  if (!cx_grow(&all->list, &all->capacity, all->n + 1, sizeof *all->list)) {
    all->failed = true;
    return;
  }
  all->list[all->n++] = (cx_nn_kept_norm){ b, b->o.momentum };
  b->o.momentum = (double)NAN;
  restart(cx_nn_tensor(m, "running_mean"), 0);
  restart(cx_nn_tensor(m, "running_var"), 1);
  restart(b->tracked, 0);
}

bool cx_nn_is_batch_norm(const calx_module *m)
{
  return m->layer != NULL && m->self == m->state &&
         strstr(m->layer->kind, "BatchNorm") != NULL;
}

calx_status *cx_nn_norms_begin(calx_module *model, cx_nn_norms *out)
{
  *out = (cx_nn_norms){ .n = 0 };
  calx_module_apply(model, find_norm, out);
  return out->failed ? cx_out_of_memory() : NULL;
}

void cx_nn_norms_end(cx_nn_norms *norms)
{
  for (size_t i = 0; i < norms->n; i++) {
    norms->list[i].norm->o.momentum = norms->list[i].momentum;
  }
  cx_free(norms->list);
}

// In a scope of its own, as a step of training.
static calx_status *run_batch(calx_module *model, calx_batch_fn *next,
                              void *user, bool *out_more)
{
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  calx_tensor *x = next(user);
  *out_more = x != NULL;
  if (x != NULL) calx_sync(calx_forward(model, x));
  cx_lazy_no_grad_end();
  return calx_scope_end(scope);
}

void calx_update_bn(calx_module *model, calx_batch_fn *next, void *user)
{
  calx_status *status = calx_module_error(model);
  if (status == NULL && next == NULL) {
    status = cx_invalid("update_bn: the function of the batches is NULL");
  }
  if (status != NULL || cx_lazy_scope_failed()) {
    cx_lazy_scope_pin(status);
    return;
  }
  cx_nn_norms norms;
  bool training = calx_module_is_training(model), more = true;
  status = cx_nn_norms_begin(model, &norms);
  calx_module_train(model, true);
  while (status == NULL && more && norms.n != 0) {
    status = run_batch(model, next, user, &more);
  }
  calx_module_train(model, training);
  cx_nn_norms_end(&norms);
  cx_lazy_scope_pin(status);
}
