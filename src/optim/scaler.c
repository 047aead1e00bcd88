// optim/scaler: losses times a scale and gradients divided by it, with a scale
// that follows what is finite (P. Micikevicius et al., 2017).
#include "optim/scaler.h"

#include <math.h>

#include "base/alloc.h"
#include "base/options.h"
#include "lazy/lazy.h"
#include "ops/ops.h"
#include "world/world.h"

// The scaler that the constructor returns without memory.
static calx_grad_scaler nil;

static calx_status *check_scale(const char *call, double scale)
{
  if (scale > 0 && scale <= (double)FLT_MAX) return NULL;
  return cx_invalid("%s: the scale %g must be above 0 and finite in f32", call,
                    scale);
}

calx_status *cx_optim_scaler_check(const char *call, double growth,
                                   double backoff, int64_t interval)
{
  if (!(growth > 1) || isinf(growth)) {
    return cx_invalid("%s: growth_factor %g, a number above 1 is wanted", call,
                      growth);
  }
  if (!(backoff > 0 && backoff < 1)) {
    return cx_invalid("%s: backoff_factor %g, a number in (0, 1) is wanted",
                      call, backoff);
  }
  if (interval > 0) return NULL;
  return cx_invalid("%s: growth_interval %lld, a positive number is wanted",
                    call, (long long)interval);
}

calx_grad_scaler *calx_grad_scaler_new_with(
    const calx_grad_scaler_options *options)
{
  static const char call[] = "grad_scaler";
  calx_grad_scaler *s = cx_calloc(1, sizeof *s);
  if (s == NULL) return &nil;
  calx_grad_scaler_options o;
  s->status = cx_options_take(call, options, &o, sizeof o);
  s->enabled = !o.disabled;
  s->scale = (float)(o.init_scale != 0 ? o.init_scale : 65536);
  s->growth = o.growth_factor != 0 ? o.growth_factor : 2;
  s->backoff = o.backoff_factor != 0 ? o.backoff_factor : 0.5;
  s->interval = o.growth_interval != 0 ? o.growth_interval : 2000;
  if (s->status == NULL) {
    s->status = cx_optim_scaler_check(call, s->growth, s->backoff, s->interval);
  }
  if (s->status == NULL && s->enabled) {
    s->status = check_scale(call, o.init_scale != 0 ? o.init_scale : 65536);
  }
  return s;
}

static void forget(calx_grad_scaler *s)
{
  for (size_t i = 0; i < s->n; i++) calx_release(s->used[i].found);
  s->n = 0;
}

void calx_grad_scaler_free(calx_grad_scaler *s)
{
  if (s == NULL || s == &nil) return;
  forget(s);
  calx_release(s->found);
  cx_free(s->used);
  calx_status_free(s->status);
  cx_free(s);
}

calx_status *calx_grad_scaler_error(const calx_grad_scaler *s)
{
  if (s == NULL) return cx_invalid("grad_scaler_error: the scaler is NULL");
  return s == &nil ? cx_out_of_memory() : cx_status_copy(s->status);
}

static bool is_on(const calx_grad_scaler *s)
{
  return s == NULL || s == &nil || s->status != NULL || s->enabled;
}

// ---- scaling ----------------------------------------------------------------

calx_tensor *calx_grad_scaler_scale(calx_grad_scaler *s, calx_tensor *outputs)
{
  if (!is_on(s)) return outputs;
  calx_status *status = calx_grad_scaler_error(s);
  if (status != NULL) {
    return cx_lazy_tensor_poison(cx_annotate(status, "so nothing is scaled"));
  }
  calx_tensor *bad;
  if (cx_ops_unfit("grad_scaler_scale", &outputs, 1, &bad)) return bad;
  if (calx_dtype_size(calx_tensor_dtype(outputs)) < 4) {
    outputs = calx_to_dtype(outputs, CALX_F32);
  }
  cx_optim_scaler_settle(s);
  return calx_mul(outputs, calx_scalar((double)s->scale));
}

// ---- gradients --------------------------------------------------------------

static cx_optim_scaled *find(const calx_grad_scaler *s,
                             const calx_optimizer *opt)
{
  for (size_t i = 0; i < s->n; i++) {
    if (s->used[i].opt == opt) return &s->used[i];
  }
  return NULL;
}

// An optimiser whose state is spread over the ranks has reduced gradients in
// its inner one.
static calx_status *keeper_of(calx_optimizer *opt, calx_optimizer **out)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so it has no gradients"));
  *out = opt;
  if (opt->rule->reduce == NULL) return NULL;
  CALX_TRY(opt->rule->reduce(opt));
  *out = opt->inner;
  return NULL;
}

static calx_tensor *usable_grad(const cx_optim_param *p)
{
  calx_tensor *grad = cx_lazy_tensor_grad(p->tensor);
  return grad != NULL && !cx_lazy_tensor_poisoned(grad) ? grad : NULL;
}

static calx_status *check_grads(const calx_optimizer *opt)
{
  size_t n = 0;
  for (size_t i = 0; i < opt->n; i++) {
    const calx_tensor *grad = usable_grad(&opt->params[i]);
    if (grad == NULL) continue;
    n++;
    calx_status *status = cx_lazy_tensor_usable(grad, "grad_scaler_unscale", 0);
    if (status == NULL && calx_tensor_dtype(grad) == CALX_F16 &&
        !opt->master_weights) {
      status = cx_invalid(
          "grad_scaler_unscale: attempting to unscale FP16 "
          "gradients: parameters of f32, or an optimiser with "
          ".master_weights, are wanted");
    }
    if (status != NULL) return cx_optim_name_gradient(status, &opt->params[i]);
  }
  if (n != 0) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "grad_scaler_step: No inf checks were recorded for this "
                  "optimizer: it has no gradients");
}

// The gradient of a parameter that has an f32 master becomes f32: without the
// scale it may be too small for its type.
static void set_unscaled(const calx_optimizer *opt, const cx_optim_param *p,
                         calx_tensor *grad, double by)
{
  bool master = cx_optim_has_master(opt, p);
  calx_tensor *x = master ? calx_to_dtype(grad, CALX_F32) : grad;
  calx_tensor *g = calx_mul(x, calx_scalar(by));
  if (cx_lazy_scope_failed()) return;
  if (master) {
    cx_lazy_tensor_set_grad(p->tensor, calx_retain(cx_lazy_tensor_detached(g)));
  } else {
    cx_lazy_tensor_set_value(grad, g);
  }
}

// Records the gradients without the scale, and whether one of them is not
// finite.
static calx_tensor *unscaled(calx_optimizer *opt, bool sharded, float scale)
{
  double by = (double)(float)(1 / (double)scale);
  calx_tensor *found = NULL;
  for (size_t i = 0; i < opt->n && !cx_lazy_scope_failed(); i++) {
    calx_tensor *grad = usable_grad(&opt->params[i]);
    if (grad == NULL) continue;
    calx_tensor *all = calx_all_with(calx_isfinite(grad), NULL);
    found = found == NULL ? all : calx_mul(found, all);
    set_unscaled(opt, &opt->params[i], grad, by);
  }
  found = calx_to_dtype(calx_logical_not(found), CALX_F32);
  if (sharded && cx_world_size(cx_world_self()) > 1) {
    found = calx_all_reduce_with(found, CALX_REDUCE_MAX, NULL);
  }
  return found;
}

static calx_status *unscale(calx_grad_scaler *s, calx_optimizer *opt)
{
  CALX_TRY(cx_annotate(calx_grad_scaler_error(s), "so nothing is unscaled"));
  if (cx_lazy_scope_failed()) return NULL;
  const cx_optim_scaled *before = find(s, opt);
  if (before != NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    before->stepped
                        ? "grad_scaler_unscale: unscale_() is being called "
                          "after step(): call calx_grad_scaler_update first"
                        : "grad_scaler_unscale: unscale_() has already been "
                          "called on this optimizer since the last update()");
  }
  calx_optimizer *keeper;
  CALX_TRY(keeper_of(opt, &keeper));
  CALX_TRY(check_grads(keeper));
  if (!cx_grow(&s->used, &s->capacity, s->n + 1, sizeof *s->used)) {
    return cx_out_of_memory();
  }
  cx_lazy_no_grad_begin();
  calx_tensor *found = unscaled(keeper, keeper != opt, s->scale);
  cx_lazy_no_grad_end();
  if (cx_lazy_scope_failed()) return NULL;
  s->used[s->n++] =
      (cx_optim_scaled){ .opt = opt, .found = calx_retain(found) };
  return NULL;
}

void calx_grad_scaler_unscale(calx_grad_scaler *s, calx_optimizer *opt)
{
  if (is_on(s)) cx_lazy_scope_pin(unscale(s, opt));
}

static calx_status *step(calx_grad_scaler *s, calx_optimizer *opt)
{
  CALX_TRY(cx_annotate(calx_grad_scaler_error(s), "so there is no step"));
  if (cx_lazy_scope_failed()) return NULL;
  cx_optim_scaled *u = find(s, opt);
  if (u != NULL && u->stepped) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "grad_scaler_step: step() has already been called since "
                    "the last update()");
  }
  if (u == NULL) {
    CALX_TRY(unscale(s, opt));
    u = find(s, opt);
    if (u == NULL) return NULL;  // the scope has the error
  }
  calx_optimizer *keeper = opt->inner != NULL ? opt->inner : opt;
  u->stepped = true;
  keeper->condition = u->found;
  calx_optimizer_step(opt);
  keeper->condition = NULL;
  return NULL;
}

void calx_grad_scaler_step(calx_grad_scaler *s, calx_optimizer *opt)
{
  if (!is_on(s)) {
    calx_optimizer_step(opt);
    return;
  }
  cx_lazy_scope_pin(step(s, opt));
}

// ---- the scale --------------------------------------------------------------

// torch._amp_update_scale_, in f32.
void cx_optim_scaler_settle(calx_grad_scaler *s)
{
  calx_tensor *found = s->found;
  if (found == NULL) return;
  s->found = NULL;
  if (!cx_lazy_tensor_poisoned(found)) {  // else the step failed
    if (calx_item(found) != 0) {
      s->scale = (float)((double)s->scale * s->backoff);
      s->tracker = 0;
    } else if (++s->tracker == s->interval) {
      float grown = (float)((double)s->scale * s->growth);
      if (!isinf(grown)) s->scale = grown;
      s->tracker = 0;
    }
  }
  calx_release(found);
}

static calx_status *update(calx_grad_scaler *s)
{
  CALX_TRY(cx_annotate(calx_grad_scaler_error(s), "so there is no update"));
  if (cx_lazy_scope_failed()) return NULL;
  if (s->n == 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "grad_scaler_update: No inf checks were recorded prior to "
                    "update: call calx_grad_scaler_step before");
  }
  cx_optim_scaler_settle(s);
  calx_tensor *found = s->used[0].found;
  for (size_t i = 1; i < s->n; i++) {
    found = calx_maximum(found, s->used[i].found);
  }
  if (!cx_lazy_scope_failed()) s->found = calx_retain(found);
  forget(s);
  return NULL;
}

void calx_grad_scaler_update(calx_grad_scaler *s)
{
  if (is_on(s)) cx_lazy_scope_pin(update(s));
}

void calx_grad_scaler_update_to(calx_grad_scaler *s, double new_scale)
{
  if (!is_on(s)) return;
  calx_status *status = calx_grad_scaler_error(s);
  if (status == NULL) status = check_scale("grad_scaler_update", new_scale);
  cx_lazy_scope_pin(status);
  if (status != NULL) return;
  cx_optim_scaler_settle(s);
  forget(s);
  s->scale = (float)new_scale;
}

// ---- the numbers ------------------------------------------------------------

double calx_grad_scaler_get_scale(calx_grad_scaler *s)
{
  if (s == NULL || !s->enabled) return 1;
  cx_optim_scaler_settle(s);
  return (double)s->scale;
}

int64_t calx_grad_scaler_get_growth_tracker(calx_grad_scaler *s)
{
  if (s == NULL) return 0;
  cx_optim_scaler_settle(s);
  return s->tracker;
}

double calx_grad_scaler_get_growth_factor(const calx_grad_scaler *s)
{
  return s != NULL ? s->growth : 0;
}

double calx_grad_scaler_get_backoff_factor(const calx_grad_scaler *s)
{
  return s != NULL ? s->backoff : 0;
}

int64_t calx_grad_scaler_get_growth_interval(const calx_grad_scaler *s)
{
  return s != NULL ? s->interval : 0;
}

bool calx_grad_scaler_is_enabled(const calx_grad_scaler *s)
{
  return s != NULL && s->enabled;
}

static void set(calx_grad_scaler *s, const char *call, double growth,
                double backoff, int64_t interval)
{
  calx_status *status = calx_grad_scaler_error(s);
  if (status == NULL) {
    status = cx_optim_scaler_check(call, growth, backoff, interval);
  }
  if (status == NULL) {
    cx_optim_scaler_settle(s);
    s->growth = growth;
    s->backoff = backoff;
    s->interval = interval;
  }
  cx_lazy_scope_pin(status);
}

void calx_grad_scaler_set_growth_factor(calx_grad_scaler *s, double factor)
{
  set(s, "grad_scaler_set_growth_factor", factor,
      calx_grad_scaler_get_backoff_factor(s),
      calx_grad_scaler_get_growth_interval(s));
}

void calx_grad_scaler_set_backoff_factor(calx_grad_scaler *s, double factor)
{
  set(s, "grad_scaler_set_backoff_factor",
      calx_grad_scaler_get_growth_factor(s), factor,
      calx_grad_scaler_get_growth_interval(s));
}

void calx_grad_scaler_set_growth_interval(calx_grad_scaler *s, int64_t interval)
{
  set(s, "grad_scaler_set_growth_interval",
      calx_grad_scaler_get_growth_factor(s),
      calx_grad_scaler_get_backoff_factor(s), interval);
}
