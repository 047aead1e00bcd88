// optim/optimizer: parameters, state and steps of every optimiser.
//
// The host counts the steps, the device has the values. A sync that fails
// restores the values, so the count is restored too: see settle().
#include "optim/optimizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/trace.h"
#include "lazy/lazy.h"

// The optimiser that constructors return without memory.
static const cx_optim_rule nil_rule = { .name = "optimizer" };
static calx_optimizer nil = { .rule = &nil_rule };

bool cx_optim_is_real(const calx_optimizer *opt)
{
  return opt != NULL && opt != &nil;
}

void cx_optim_fail(calx_optimizer *opt, calx_status *status)
{
  if (status == NULL) return;
  if (!cx_optim_is_real(opt) || opt->status != NULL) {
    calx_status_free(status);
  } else {
    opt->status = status;
  }
}

// calx_scalar() would not do: a weak number is recorded again for each operand
// whose type is not f32.
calx_tensor *cx_optim_number(const calx_optimizer *opt, calx_dtype dtype,
                             double value)
{
  calx_create_options o = { .size = sizeof o,
                            .dtype = dtype,
                            .device = opt->device };
  return calx_full_with(CALX_SCALAR, value, &o);
}

calx_status *cx_optim_check_positive(const calx_optimizer *opt,
                                     const char *name, double value)
{
  if (value >= 0) return NULL;
  return cx_invalid("%s: %s %g, a number of 0 or more is wanted",
                    opt->rule->name, name, value);
}

// ---- making -----------------------------------------------------------------

static calx_status *add_param(calx_optimizer *opt, const char *path,
                              calx_tensor *t)
{
  calx_device *device = calx_tensor_device(t);
  if (opt->device != NULL && device != opt->device) {
    return cx_invalid("%s: parameter '%s' is on %s, those before it on %s",
                      opt->rule->name, path, calx_device_name(device),
                      calx_device_name(opt->device));
  }
  if (!cx_grow(&opt->params, &opt->capacity, opt->n + 1, sizeof *opt->params)) {
    return cx_out_of_memory();
  }
  // The path as the tensor knows it, from the root of its model.
  const char *name = cx_lazy_tensor_name(t);
  opt->params[opt->n++] =
      (cx_optim_param){ .tensor = calx_retain(t),
                        .path = name != NULL ? name : "a parameter" };
  opt->device = device;
  return NULL;
}

static void add_if_trained(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor)
{
  calx_optimizer *opt = user;
  (void)kind;
  if (!cx_lazy_tensor_requires_grad(tensor)) return;
  cx_optim_fail(opt, add_param(opt, path, tensor));
}

calx_optimizer *cx_optim_new(size_t bytes, const cx_optim_rule *rule,
                             calx_module *model)
{
  calx_optimizer *opt = cx_calloc(1, bytes);
  if (opt == NULL) return &nil;
  opt->rule = rule;
  cx_optim_fail(opt, cx_annotate(calx_module_error(model), "so %s has no model",
                                 rule->name));
  calx_module_parameters(model, add_if_trained, opt);
  if (opt->n == 0) {
    cx_optim_fail(
        opt,
        cx_invalid("%s: the model has no parameter that requires a gradient",
                   rule->name));
  }
  opt->updates = cx_calloc(opt->n, sizeof *opt->updates);
  if (opt->updates == NULL) cx_optim_fail(opt, cx_out_of_memory());
  return opt;
}

void calx_optimizer_free(calx_optimizer *opt)
{
  if (!cx_optim_is_real(opt)) return;
  if (opt->rule->free != NULL) opt->rule->free(opt);
  for (size_t i = 0; i < opt->n; i++) {
    calx_release(opt->params[i].tensor);
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      calx_release(opt->params[i].state[k]);
    }
  }
  cx_free(opt->params);
  cx_free(opt->updates);
  calx_status_free(opt->status);
  cx_free(opt);
}

calx_status *calx_optimizer_error(const calx_optimizer *opt)
{
  if (opt == NULL) {
    return cx_invalid("optimizer_error: the optimiser is NULL");
  }
  return opt == &nil ? cx_out_of_memory() : cx_status_copy(opt->status);
}

// ---- what became of the last steps ------------------------------------------

static const cx_graph_node *node_of(const calx_tensor *t)
{
  return cx_lazy_tensor_value(t).node;
}

// Whether a failed sync undid the steps since the sync before it.
static bool was_undone(const calx_optimizer *opt)
{
  return opt->probe != NULL && opt->steps > opt->confirmed_steps &&
         (cx_lazy_tensor_poisoned(opt->probe) ||
          node_of(opt->probe) == opt->probe_before);
}

static void drop_dead_state(cx_optim_param *p)
{
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    if (p->state[k] == NULL || !cx_lazy_tensor_poisoned(p->state[k])) continue;
    calx_release(p->state[k]);
    p->state[k] = NULL;
  }
}

static void settle(calx_optimizer *opt)
{
  if (opt->probe == NULL) return;
  if (was_undone(opt)) {
    opt->steps = opt->confirmed_steps;
    for (size_t i = 0; i < opt->n; i++) {
      opt->params[i].steps = opt->params[i].confirmed_steps;
      drop_dead_state(&opt->params[i]);
    }
  } else if (node_of(opt->probe) == opt->probe_after) {
    return;  // no sync yet
  }
  opt->confirmed_steps = opt->steps;
  for (size_t i = 0; i < opt->n; i++) {
    opt->params[i].confirmed_steps = opt->params[i].steps;
  }
  opt->probe = NULL;
}

// ---- a step -----------------------------------------------------------------

// NULL: there is none. A gradient that a failed step left without a value
// counts as none.
static calx_tensor *gradient_of(const cx_optim_param *p)
{
  calx_tensor *grad = cx_lazy_tensor_grad(p->tensor);
  return grad != NULL && !cx_lazy_tensor_poisoned(grad) ? grad : NULL;
}

calx_status *cx_optim_name_gradient(calx_status *status,
                                    const cx_optim_param *p)
{
  const char *model = cx_lazy_tensor_model(p->tensor);
  return cx_annotate(status, "it is the gradient of '%s' %s%s", p->path,
                     model != NULL ? "of the model " : "",
                     model != NULL ? model : "");
}

static calx_status *check_gradients(const calx_optimizer *opt)
{
  for (size_t i = 0; i < opt->n; i++) {
    const calx_tensor *grad = gradient_of(&opt->params[i]);
    if (grad == NULL) continue;
    calx_status *status = cx_lazy_tensor_usable(grad, "optimizer_step", 0);
    if (status != NULL) {
      return cx_optim_name_gradient(status, &opt->params[i]);
    }
  }
  return NULL;
}

// "conv1.weight.exp_avg". Interned: it is never freed.
static const char *state_name(const cx_optim_param *p, const char *name)
{
  cx_text text = { 0 };
  cx_text_format(&text, "%s.%s", p->path, name);
  const char *kept =
      cx_site_intern(&(calx_site){ .file = cx_text_str(&text) }).file;
  cx_text_free(&text);
  return kept;
}

// A tensor that becomes a parameter's state gets a handle of its own.
static void make_state(const cx_optim_param *p, cx_optim_update *u)
{
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    u->is_new[k] = u->state[k] != NULL && p->state[k] == NULL;
    if (u->is_new[k]) u->state[k] = cx_lazy_tensor_detached(u->state[k]);
  }
}

// Records the new values as temporaries of the scope, which also has the first
// error.
static void compute(calx_optimizer *opt)
{
  int64_t prepared = 0;
  calx_dtype of = CALX_DTYPE_DEFAULT;
  for (size_t i = 0; i < opt->n && calx_scope_error() == NULL; i++) {
    const cx_optim_param *p = &opt->params[i];
    cx_optim_update *u = &opt->updates[i];
    *u = (cx_optim_update){ .value = NULL };
    calx_tensor *grad = gradient_of(p);
    if (grad == NULL) continue;
    calx_dtype dtype = calx_tensor_dtype(p->tensor);
    if (prepared != p->steps + 1 || of != dtype) {
      prepared = p->steps + 1;
      of = dtype;
      opt->rule->prepare(opt, prepared, dtype);
    }
    opt->rule->update(opt, p, grad, u);
    if (calx_scope_error() == NULL) make_state(p, u);
  }
}

static void set_probe(calx_optimizer *opt, const cx_optim_param *p,
                      const cx_optim_update *u)
{
  calx_tensor *t = p->state[0] != NULL ? p->state[0] : p->tensor;
  const calx_tensor *next = p->state[0] != NULL ? u->state[0] : u->value;
  if (opt->probe == NULL) {
    opt->probe = t;
    opt->probe_before = u->is_new[0] ? NULL : node_of(t);
  }
  if (opt->probe == t) opt->probe_after = node_of(next);
}

static void assign(calx_optimizer *opt, cx_optim_param *p, cx_optim_update *u)
{
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    if (!u->is_new[k]) continue;
    p->state[k] = calx_take(u->state[k]);
    cx_lazy_tensor_set_name(p->state[k], state_name(p, opt->rule->states[k]));
  }
  set_probe(opt, p, u);
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    if (u->state[k] == NULL || u->is_new[k]) continue;
    cx_lazy_tensor_set_value(p->state[k], u->state[k]);
  }
  cx_lazy_tensor_set_value(p->tensor, u->value);
  p->steps++;
  if (!opt->keep_gradients)
    cx_lazy_tensor_mark(cx_lazy_tensor_grad(p->tensor), CX_LAZY_T_CONSUMED);
}

static calx_status *step(calx_optimizer *opt)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so there is no step"));
  if (cx_lazy_scope_failed()) return NULL;
  if (opt->rule->step != NULL) return opt->rule->step(opt);
  settle(opt);
  CALX_TRY(check_gradients(opt));
  calx_scope *scope = calx_scope_begin();
  cx_lazy_no_grad_begin();
  compute(opt);
  if (calx_scope_error() == NULL) {
    for (size_t i = 0; i < opt->n; i++) {
      cx_optim_update *u = &opt->updates[i];
      if (u->value != NULL) assign(opt, &opt->params[i], u);
    }
    opt->steps++;
  }
  cx_lazy_no_grad_end();
  return calx_scope_end(scope);
}

void calx_optimizer_step(calx_optimizer *opt)
{
  int64_t begin = cx_trace_own_begin();
  cx_lazy_scope_pin(step(opt));
  cx_trace_own_end(begin);
}

// ---- the rest ---------------------------------------------------------------

void calx_optimizer_zero_grad(calx_optimizer *opt)
{
  for (size_t i = 0; opt != NULL && i < opt->n; i++) {
    if (cx_lazy_tensor_grad(opt->params[i].tensor) != NULL) {
      cx_lazy_tensor_set_grad(opt->params[i].tensor, NULL);
    }
  }
}

void calx_optimizer_set_lr(calx_optimizer *opt, double lr)
{
  if (opt != NULL && opt->inner != NULL) opt = opt->inner;
  if (!cx_optim_is_real(opt)) {
    cx_lazy_scope_pin(calx_optimizer_error(opt));
    return;
  }
  calx_status *status = cx_optim_check_positive(opt, "lr", lr);
  if (status == NULL) opt->lr = lr;
  cx_lazy_scope_pin(status);
}

double calx_optimizer_lr(const calx_optimizer *opt)
{
  if (opt == NULL) return 0;
  return opt->inner != NULL ? opt->inner->lr : opt->lr;
}

int64_t calx_optimizer_steps(const calx_optimizer *opt)
{
  if (opt == NULL) return 0;
  if (opt->inner != NULL) return calx_optimizer_steps(opt->inner);
  return was_undone(opt) ? opt->confirmed_steps : opt->steps;
}

calx_tensor *calx_optimizer_state(const calx_optimizer *opt, size_t parameter,
                                  const char *name)
{
  if (opt != NULL && opt->inner != NULL) opt = opt->inner;
  if (opt == NULL || parameter >= opt->n || name == NULL) return NULL;
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    const char *known = opt->rule->states[k];
    calx_tensor *t = opt->params[parameter].state[k];
    if (known == NULL || strcmp(known, name) != 0 || t == NULL) continue;
    return cx_lazy_tensor_poisoned(t) ? NULL : t;
  }
  return NULL;
}
