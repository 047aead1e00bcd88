// optim/closure: steps of optimisers that evaluate the loss.
#include "lazy/lazy.h"
#include "optim/optimizer.h"

// *out_loss is not NULL where there is no error.
static calx_status *step_closure(calx_optimizer *opt,
                                 calx_loss_closure_fn *closure, void *user,
                                 calx_tensor **out_loss)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so there is no step"));
  if (closure == NULL) {
    return cx_invalid("optimizer_step_closure: the closure is NULL");
  }
  if (cx_lazy_scope_failed()) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "optimizer_step_closure: the step has failed before it");
  }
  if (opt->rule->step_closure != NULL) {
    return opt->rule->step_closure(opt, closure, user, out_loss);
  }
  calx_tensor *loss = closure(user);
  if (loss == NULL) {
    return cx_invalid("optimizer_step_closure: the closure returned NULL");
  }
  *out_loss = loss;
  calx_optimizer_step(opt);
  return NULL;
}

calx_tensor *calx_optimizer_step_closure(calx_optimizer *opt,
                                         calx_loss_closure_fn *closure,
                                         void *user)
{
  calx_tensor *loss = NULL;
  calx_status *status = step_closure(opt, closure, user, &loss);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  return loss;
}
