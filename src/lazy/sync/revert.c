// lazy/sync/revert: a step that failed changes nothing.
#include "lazy/sync/step.h"

void cx_lazy_forget_changed(calx_device *d)
{
  for (size_t i = 0; i < d->n_changed; i++) d->changed[i]->changed_at = 0;
  d->n_changed = 0;
}

void cx_lazy_revert_step(calx_device *d, const calx_site *site)
{
  cx_lazy_problem *why = NULL;
  for (size_t i = 0; i < d->n_changed; i++) {
    calx_tensor *t = d->changed[i];
    bool keeps = (t->flags & CX_LAZY_T_KEEP_INITIAL) != 0;
    if (why == NULL && t->base == NULL && cx_is_of_this_step(t) && !keeps) {
      why = cx_lazy_problem_new(cx_error_at(
          NULL, CALX_FAILED_PRECONDITION,
          "the tensor has no value: the step that was to compute it failed at "
          "the sync at %s:%d",
          cx_site_file(site), site->line));
    }
    cx_lazy_tensor_revert(t, why);
  }
  cx_lazy_problem_release(why);
  // What a model begins with is still to be computed.
  size_t n = d->n_changed;
  cx_lazy_forget_changed(d);
  for (size_t i = 0; i < n; i++) {
    if (cx_is_pending(d->changed[i])) cx_lazy_changed_add(d->changed[i]);
  }
}

void cx_lazy_drop_step(calx_device *d)
{
  calx_site site = *cx_site();
  cx_lock(&d->lock);
  cx_lazy_revert_step(d, &site);
  cx_unlock(&d->lock);
  cx_lazy_self.recorded = 0;
}
