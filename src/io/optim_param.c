// io/optim_param: the state of one parameter in an optimiser's state dict.
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "io/optim_state.h"
#include "lazy/lazy.h"

// ---- saving -----------------------------------------------------------------

static calx_value *host_number(double x)
{
  float value = (float)x;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_host_tensor(&value, CALX_F32, CALX_SCALAR);
  calx_value *v = cx_lazy_tensor_poisoned(t) ? NULL : calx_value_tensor(t);
  calx_status_free(calx_scope_end(scope));
  return v;
}

// Steps of a sync that failed do not count.
calx_status *cx_io_optim_put_param(const calx_optimizer *opt, size_t i,
                                   int64_t key, calx_value *state,
                                   calx_value **out_own)
{
  *out_own = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set_at(state, key, *out_own));
  if (!opt->rule->has_step) return NULL;
  const cx_optim_param *p = &opt->params[i];
  bool undone = calx_optimizer_steps(opt) != opt->steps;
  int64_t steps = undone ? p->confirmed_steps : p->steps;
  CALX_TRY(calx_value_set(*out_own, "step", host_number((double)steps)));
  for (int k = 0; opt->rule->numbers[k] != NULL; k++) {
    float x = undone ? p->confirmed_number[k] : p->number[k];
    CALX_TRY(calx_value_set(*out_own, opt->rule->numbers[k],
                            host_number((double)x)));
  }
  return NULL;
}

calx_status *cx_io_optim_put_states(const calx_optimizer *opt, size_t i,
                                    calx_value *state)
{
  calx_value *own = NULL;
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    const char *name = cx_optim_state_name(opt, k);
    calx_tensor *t = calx_optimizer_state(opt, i, name);
    if (t == NULL) continue;
    if (own == NULL) {
      CALX_TRY(cx_io_optim_put_param(opt, i, (int64_t)i, state, &own));
    }
    CALX_TRY(calx_value_set(own, name, calx_value_tensor(t)));
  }
  return NULL;
}

// ---- loading ----------------------------------------------------------------

double cx_io_optim_number(const calx_value *v)
{
  calx_tensor *t = calx_value_as_tensor(v);
  if (t == NULL) return calx_value_as_float(v);
  if (calx_tensor_numel(t) != 1) return (double)NAN;
  calx_scope *scope = calx_scope_begin();
  double x = calx_item(t);
  calx_status *status = calx_scope_end(scope);
  if (status != NULL) x = (double)NAN;
  calx_status_free(status);
  return x;
}

calx_status *cx_io_optim_wrong(const calx_optimizer *opt, const char *name,
                               const calx_value *found, const char *wanted)
{
  double x = cx_io_optim_number(found);
  char number[40] = "";
  if (!isnan(x)) snprintf(number, sizeof number, " %.6g", x);
  return cx_error(
      CALX_INVALID_ARGUMENT, "%s: load_state_dict: '%s' is %s%s, wanted is %s",
      opt->rule->name, name,
      found != NULL ? calx_kind_name(calx_value_kind(found)) : "not there",
      number, wanted);
}

calx_status *cx_io_optim_wrong_steps(const calx_optimizer *opt,
                                     const char *name, const calx_value *found)
{
  return cx_io_optim_wrong(opt, name, found, "a number of steps, 0 to 2^53");
}

int64_t cx_io_optim_steps(const calx_value *v)
{
  double x = cx_io_optim_number(v);
  return x >= 0 && x < 0x1p53 ? (int64_t)x : -1;
}

calx_status *cx_io_optim_find(const calx_optimizer *opt,
                              const cx_optim_param *p, int k,
                              const calx_value *own, calx_tensor **out_tensor)
{
  const char *name = cx_optim_state_name(opt, k);
  calx_tensor *t =
      name != NULL ? calx_value_as_tensor(calx_value_get(own, name)) : NULL;
  *out_tensor = t;
  if (t == NULL) return NULL;
  if (k == CX_OPTIM_MASTER && !cx_optim_has_master(opt, p)) {
    *out_tensor = NULL;  // see check_masters()
    return NULL;
  }
  cx_graph_shape wanted = cx_optim_state_shape(opt, p, k);
  const cx_graph_shape *found = cx_lazy_tensor_shape(t);
  if (found->rank == wanted.rank &&
      memcmp(found->dims, wanted.dims,
             (size_t)wanted.rank * sizeof wanted.dims[0]) == 0) {
    return NULL;
  }
  return cx_invalid("%s: load_state_dict: '%s' of '%s' is %s, the parameter %s",
                    opt->rule->name, name, p->path, cx_graph_shape_str(found),
                    cx_graph_shape_str(cx_lazy_tensor_shape(p->tensor)));
}

// Refuses the state of another kind of optimiser. Without this check its
// tensors would be ignored, and training would continue from zeros.
static calx_status *check_rule(const calx_optimizer *opt,
                               const cx_optim_param *p, const calx_value *own)
{
  const char *other = NULL;
  if (opt->rule->step_closure != NULL) return NULL;  // see lbfgs_state.c
  for (int k = 0; opt->rule->states[k] != NULL; k++) {
    if (calx_value_get(own, opt->rule->states[k]) != NULL) return NULL;
  }
  for (size_t i = 0; other == NULL && i < calx_value_count(own); i++) {
    const char *key = calx_value_key(own, i);
    bool is_tensor = calx_value_as_tensor(calx_value_item(own, i)) != NULL;
    if (key != NULL && is_tensor && strcmp(key, "step") != 0 &&
        strcmp(key, "master_param") != 0) {
      other = key;
    }
  }
  if (other == NULL) return NULL;
  return cx_invalid(
      "%s: load_state_dict: the state of '%s' is another optimiser's: it has "
      "'%s' and no '%s'",
      opt->rule->name, p->path, other, opt->rule->states[0]);
}

// A master that nobody would use has bits that training would go on without.
static calx_status *check_masters(const calx_optimizer *opt,
                                  const cx_optim_param *p,
                                  const calx_value *own)
{
  if (calx_value_get(own, "master_param") == NULL ||
      cx_optim_has_master(opt, p)) {
    return NULL;
  }
  const char *type = calx_dtype_name(calx_tensor_dtype(p->tensor));
  return cx_invalid(
      "%s: load_state_dict: the state of '%s' has 'master_param', but the "
      "parameter, of %s, has no master: %s",
      opt->rule->name, p->path, type,
      opt->master_weights ? "the model was of bf16 or f16"
                          : "make the optimiser with .master_weights");
}

calx_status *cx_io_optim_find_steps(const calx_optimizer *opt,
                                    const cx_optim_param *p,
                                    const calx_value *own,
                                    cx_io_param_plan *out)
{
  out->steps = 0;
  CALX_TRY(check_rule(opt, p, own));
  CALX_TRY(check_masters(opt, p, own));
  if (!opt->rule->has_step || own == NULL) return NULL;
  const calx_value *step = calx_value_get(own, "step");
  out->steps = cx_io_optim_steps(step);
  if (out->steps < 0) {
    return cx_annotate(cx_io_optim_wrong_steps(opt, "step", step),
                       "while loading '%s'", p->path);
  }
  for (int k = 0; opt->rule->numbers[k] != NULL; k++) {
    const calx_value *v = calx_value_get(own, opt->rule->numbers[k]);
    double x = v != NULL ? cx_io_optim_number(v) : (double)NAN;
    if (!isfinite(x) || x < 0) {
      return cx_annotate(cx_io_optim_wrong(opt, opt->rule->numbers[k], v,
                                           "a finite number, 0 or more"),
                         "while loading '%s'", p->path);
    }
    out->number[k] = (float)x;
  }
  return NULL;
}

calx_status *cx_io_optim_plan_state(const calx_optimizer *opt, size_t i, int k,
                                    calx_tensor *t, cx_io_plan *plan,
                                    cx_io_param_plan *out)
{
  out->has[k] = true;
  const cx_optim_param *p = &opt->params[i];
  calx_tensor *own = calx_optimizer_state(opt, i, cx_optim_state_name(opt, k));
  if (own != NULL) return cx_io_plan_add(plan, own, t);
  return cx_io_copy_to_device(
      t, p->tensor, cx_optim_state_shape(opt, p, k).dtype, &out->fresh[k]);
}

calx_status *cx_io_optim_plan_param(const calx_optimizer *opt, size_t i,
                                    const calx_value *own, cx_io_plan *plan,
                                    cx_io_param_plan *out)
{
  const cx_optim_param *p = &opt->params[i];
  for (int k = 0; k < CX_OPTIM_STATES; k++) {
    calx_tensor *t;
    CALX_TRY(cx_io_optim_find(opt, p, k, own, &t));
    if (t == NULL) continue;
    CALX_TRY(cx_annotate(cx_io_optim_plan_state(opt, i, k, t, plan, out),
                         "while loading '%s' of '%s'",
                         cx_optim_state_name(opt, k), p->path));
  }
  return cx_io_optim_find_steps(opt, p, own, out);
}
