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

// ---- making -----------------------------------------------------------------

calx_optimizer *cx_optim_new(const cx_optim_rule *rule, calx_status *status,
                             cx_optim_choice choice)
{
  calx_optimizer *opt =
      cx_calloc(1, rule->bytes != 0 ? rule->bytes : sizeof *opt);
  if (opt == NULL) {
    calx_status_free(status);
    return &nil;
  }
  opt->rule = rule;
  cx_optim_fail(opt, status);
  cx_optim_group *g;
  cx_optim_fail(opt, cx_optim_append_group(opt, choice, NULL, &g));
  return opt;
}

void *cx_optim_first_group(calx_optimizer *opt)
{
  return opt->n_groups != 0 ? opt->groups[0] : NULL;
}

calx_optimizer *cx_optim_ready(calx_optimizer *opt, bool keep_gradients,
                               bool master_weights)
{
  const cx_optim_group *g = cx_optim_first_group(opt);
  opt->keep_gradients = keep_gradients;
  opt->master_weights = master_weights;
  cx_optim_fail(opt, cx_optim_check_group(g));
  if (opt->status != NULL) return opt;
  opt->defaults = cx_alloc(opt->rule->group_bytes);
  if (opt->defaults == NULL) {
    cx_optim_fail(opt, cx_out_of_memory());
  } else {
    memcpy(opt->defaults, g, opt->rule->group_bytes);
  }
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
  for (size_t i = 0; i < opt->n_groups; i++) cx_free(opt->groups[i]);
  cx_free(opt->groups);
  cx_free(opt->defaults);
  cx_free(opt->params);
  cx_free(opt->updates);
  calx_release(opt->skip);
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
      cx_optim_param *p = &opt->params[i];
      p->steps = p->confirmed_steps;
      memcpy(p->number, p->confirmed_number, sizeof p->number);
      drop_dead_state(p);
    }
  } else if (node_of(opt->probe) == opt->probe_after) {
    return;  // no sync yet
  }
  opt->confirmed_steps = opt->steps;
  for (size_t i = 0; i < opt->n; i++) {
    cx_optim_param *p = &opt->params[i];
    p->confirmed_steps = p->steps;
    memcpy(p->confirmed_number, p->number, sizeof p->number);
  }
  opt->probe = NULL;
}

// ---- steps that may not be --------------------------------------------------

static void take_back(cx_optim_param *p, bool synced)
{
  p->steps--;
  memcpy(p->number, p->number_before, sizeof p->number);
  if (!synced) return;
  p->confirmed_steps = p->steps;
  memcpy(p->confirmed_number, p->number, sizeof p->number);
  for (int k = 0; k < CX_OPTIM_STATES && p->steps == 0; k++) {
    calx_release(p->state[k]);
    p->state[k] = NULL;
  }
}

// Reads whether the last step changed anything, and else counts it no more.
static void resolve(calx_optimizer *opt)
{
  calx_tensor *skip = opt->skip;
  if (skip == NULL) return;
  bool undone = was_undone(opt);
  settle(opt);
  opt->skip = NULL;
  bool skipped =
      !undone && !cx_lazy_tensor_poisoned(skip) && calx_item(skip) != 0;
  bool synced = opt->probe == NULL;
  if (skipped) {
    opt->steps--;
    if (synced) opt->confirmed_steps = opt->steps;
  }
  for (size_t i = 0; i < opt->n; i++) {
    cx_optim_param *p = &opt->params[i];
    if (skipped && p->is_skippable) take_back(p, synced);
    p->is_skippable = false;
  }
  calx_release(skip);
}

// Where the condition holds, the value and the state are what they were; a
// state that was not there yet is 0.
static void choose(const calx_optimizer *opt, const cx_optim_param *p,
                   cx_optim_update *u)
{
  if (opt->condition == NULL || u->value == NULL || cx_lazy_scope_failed()) {
    return;
  }
  calx_tensor *keep =
      calx_ne(opt->condition,
              cx_optim_number(opt, calx_tensor_dtype(opt->condition), 0));
  u->value = calx_where(keep, p->tensor, u->value);
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    if (u->state[k] == NULL) continue;
    calx_tensor *before = p->state[k];
    if (before == NULL && k == CX_OPTIM_MASTER) {
      before = calx_to_dtype(p->tensor, CALX_F32);
    } else if (before == NULL) {
      before = cx_optim_number(opt, calx_tensor_dtype(u->state[k]), 0);
    }
    u->state[k] = calx_where(keep, before, u->state[k]);
  }
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
  for (size_t i = 0; i < opt->n_groups; i++) opt->groups[i]->step = 0;
  for (size_t i = 0; i < opt->n && calx_scope_error() == NULL; i++) {
    const cx_optim_param *p = &opt->params[i];
    cx_optim_update *u = &opt->updates[i];
    *u = (cx_optim_update){ .value = NULL };
    calx_tensor *grad = gradient_of(p);
    if (grad == NULL) continue;
    cx_optim_update_param(opt->groups[p->group], p, grad, u);
    choose(opt, p, u);
    if (calx_scope_error() == NULL) make_state(p, u);
  }
}

static void set_probe(calx_optimizer *opt, const cx_optim_param *p,
                      const cx_optim_update *u)
{
  bool stateful = u->state[0] != NULL;
  calx_tensor *t = stateful ? p->state[0] : p->tensor;
  const calx_tensor *next = stateful ? u->state[0] : u->value;
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
    cx_lazy_tensor_set_name(p->state[k],
                            state_name(p, cx_optim_state_name(opt, k)));
  }
  set_probe(opt, p, u);
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    if (u->state[k] == NULL || u->is_new[k]) continue;
    cx_lazy_tensor_set_value(p->state[k], u->state[k]);
  }
  cx_lazy_tensor_set_value(p->tensor, u->value);
  p->steps++;
  p->is_skippable = opt->condition != NULL;
  memcpy(p->number_before, p->number, sizeof p->number);
  memcpy(p->number, u->number, sizeof p->number);
  if (!opt->keep_gradients)
    cx_lazy_tensor_mark(cx_lazy_tensor_grad(p->tensor), CX_LAZY_T_CONSUMED);
}

static calx_status *step(calx_optimizer *opt)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so there is no step"));
  if (cx_lazy_scope_failed()) return NULL;
  if (opt->rule->step != NULL) return opt->rule->step(opt);
  resolve(opt);
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
    if (opt->condition != NULL) opt->skip = calx_retain(opt->condition);
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

int64_t calx_optimizer_steps(const calx_optimizer *opt)
{
  if (opt == NULL) return 0;
  if (opt->inner != NULL) return calx_optimizer_steps(opt->inner);
  resolve((calx_optimizer *)opt);
  return was_undone(opt) ? opt->confirmed_steps : opt->steps;
}

calx_tensor *calx_optimizer_state(const calx_optimizer *opt, size_t parameter,
                                  const char *name)
{
  if (opt != NULL && opt->inner != NULL) opt = opt->inner;
  if (opt == NULL || parameter >= opt->n || name == NULL) return NULL;
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    const char *known = cx_optim_state_name(opt, k);
    calx_tensor *t = opt->params[parameter].state[k];
    if (known == NULL || strcmp(known, name) != 0 || t == NULL) continue;
    return cx_lazy_tensor_poisoned(t) ? NULL : t;
  }
  return NULL;
}
