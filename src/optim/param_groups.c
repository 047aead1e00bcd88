// optim/param_groups: the calls about parameter groups (torch.optim.Optimizer
// param_groups).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

// ---- options ----------------------------------------------------------------

// "betas[1]" is the second of "betas". NULL: the rule has no such option.
static const cx_optim_field *find(const cx_optim_group *g, const char *name,
                                  int *out_which)
{
  const cx_optim_field *f = g->opt->rule->fields;
  for (; name != NULL && f != NULL && f->name != NULL; f++) {
    size_t n = strlen(f->name);
    if (strncmp(f->name, name, n) != 0) continue;
    int count = cx_optim_field_count(f);
    for (int i = 0; f->range != CX_OPTIM_NAME && i < count; i++) {
      char suffix[8] = "";
      if (count > 1) snprintf(suffix, sizeof suffix, "[%d]", i);
      *out_which = i;
      if (strcmp(name + n, suffix) == 0) return f;
    }
  }
  return NULL;
}

size_t calx_optimizer_param_groups(const calx_optimizer *opt)
{
  while (opt != NULL && opt->inner != NULL) opt = opt->inner;
  return opt != NULL ? opt->n_groups : 0;
}

double calx_optimizer_option(const calx_optimizer *opt, size_t group,
                             const char *name)
{
  const cx_optim_group *g = cx_optim_group_at(opt, group);
  int which;
  const cx_optim_field *f = g != NULL ? find(g, name, &which) : NULL;
  return f != NULL ? cx_optim_get(g, f, which) : (double)NAN;
}

static calx_status *set(cx_optim_group *g, const char *name, double value)
{
  int which;
  const cx_optim_field *f = find(g, name, &which);
  if (f == NULL) {
    return cx_invalid("%s: it has no option '%s' of one number",
                      g->opt->rule->name, name != NULL ? name : "NULL");
  }
  double was = cx_optim_get(g, f, which);
  if (f->range == CX_OPTIM_FLAG && !cx_optim_in_range(f->range, value)) {
    return cx_invalid("%s: %s %g, 0 or 1 is wanted", g->opt->rule->name,
                      f->name, value);
  }
  cx_optim_put(g, f, which, value);
  calx_status *status = cx_optim_check_group(g);
  if (status != NULL) cx_optim_put(g, f, which, was);
  return status;
}

static calx_status *set_option(calx_optimizer *opt, size_t group,
                               const char *name, double value)
{
  CALX_TRY(calx_optimizer_error(opt));
  cx_optim_group *g = cx_optim_group_at(opt, group);
  if (g != NULL) return set(g, name, value);
  return cx_invalid("%s: set_option of group %zu, it has %zu", opt->rule->name,
                    group, calx_optimizer_param_groups(opt));
}

void calx_optimizer_set_option(calx_optimizer *opt, size_t group,
                               const char *name, double value)
{
  cx_lazy_scope_pin(set_option(opt, group, name, value));
}

void calx_optimizer_set_lr(calx_optimizer *opt, double lr)
{
  if (!cx_optim_is_real(opt) || calx_optimizer_param_groups(opt) == 0) {
    cx_lazy_scope_pin(calx_optimizer_error(opt));
    return;
  }
  calx_status *status = NULL;
  size_t n = calx_optimizer_param_groups(opt);
  for (size_t i = 0; status == NULL && i < n; i++) {
    status = set(cx_optim_group_at(opt, i), "lr", lr);
  }
  cx_lazy_scope_pin(status);
}

double calx_optimizer_lr(const calx_optimizer *opt)
{
  const cx_optim_group *g = cx_optim_group_at(opt, 0);
  return g != NULL ? g->lr : 0;
}

// ---- another group ----------------------------------------------------------

static calx_status *set_if_given(cx_optim_group *g, const char *name, double x)
{
  return cx_is_default(x) ? NULL : set(g, name, x != 0 ? x : 0);
}

static calx_status *set_given(cx_optim_group *g,
                              const calx_param_group_options *o)
{
  CALX_TRY(set_if_given(g, "lr", o->lr));
  CALX_TRY(set_if_given(g, "weight_decay", o->weight_decay));
  CALX_TRY(set_if_given(g, "momentum", o->momentum));
  CALX_TRY(set_if_given(g, "betas[0]", o->betas[0]));
  CALX_TRY(set_if_given(g, "betas[1]", o->betas[1]));
  return set_if_given(g, "eps", o->eps);
}

calx_status *cx_optim_add_group(calx_optimizer *opt, cx_optim_choice choice,
                                const calx_param_group_options *options)
{
  calx_param_group_options o;
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so it has no groups"));
  CALX_TRY(cx_options_take("optimizer_add_param_group", options, &o, sizeof o));
  size_t groups = opt->n_groups;
  cx_optim_group *g;
  calx_status *status = cx_optim_append_group(opt, choice, opt->defaults, &g);
  if (status == NULL) {
    status = opt->rule->add_group != NULL ? opt->rule->add_group(opt, g, &o)
                                          : set_given(g, &o);
  }
  if (status != NULL && opt->n_groups > groups) cx_optim_drop_group(opt);
  return cx_annotate(status, "so optimizer_add_param_group adds nothing");
}

size_t calx_optimizer_add_param_group_with(
    calx_optimizer *opt, calx_module *module,
    const calx_param_group_options *options)
{
  calx_param_group_options o;
  calx_status *status =
      cx_options_take("optimizer_add_param_group", options, &o, sizeof o);
  if (status == NULL) {
    cx_optim_choice choice = { module, o.params, o.n_params };
    status = cx_optim_add_group(opt, choice, options);
  }
  bool good = status == NULL;
  cx_lazy_scope_pin(status);
  return good ? opt->n_groups - 1 : SIZE_MAX;
}
