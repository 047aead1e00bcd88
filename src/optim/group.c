// optim/group: what a parameter group is: options, and parameters.
//
// The parameters of a group are next to each other in the optimiser's list, in
// the order of PyTorch's state dicts.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

// ---- options ----------------------------------------------------------------

bool cx_optim_in_range(cx_optim_range range, double x)
{
  switch (range) {
    case CX_OPTIM_POSITIVE: return x >= 0;
    case CX_OPTIM_FRACTION: return x >= 0 && x < 1;
    case CX_OPTIM_UNIT: return x >= 0 && x <= 1;
    case CX_OPTIM_INSIDE: return x > 0 && x < 1;
    case CX_OPTIM_ABOVE_ONE: return x > 1;
    case CX_OPTIM_FROM_ONE: return x >= 1;
    case CX_OPTIM_NEGATIVE: return x <= 0;
    case CX_OPTIM_NONE_POSITIVE: return !(x < 0);
    case CX_OPTIM_FLAG: return x == 0 || x == 1;
    case CX_OPTIM_ANY: return !isnan(x);
    case CX_OPTIM_COUNT: return x >= 0 && x <= 1e15 && floor(x) == x;
    case CX_OPTIM_STEPS: return x >= 1 && x < 100 && floor(x) == x;
    case CX_OPTIM_NAME: return x >= 0;
    case CX_OPTIM_TRIPLE:
    case CX_OPTIM_NOTHING: break;
  }
  return false;
}

const char *cx_optim_range_text(const cx_optim_field *f)
{
  bool pair = f->second != CX_OPTIM_NOTHING;
  switch (f->range) {
    case CX_OPTIM_FRACTION:
      return pair ? "numbers in [0, 1)" : "a number in [0, 1)";
    case CX_OPTIM_UNIT: return "a number in [0, 1]";
    case CX_OPTIM_INSIDE: return "one in (0, 1) and one above 1";
    case CX_OPTIM_FROM_ONE: return "a number of 1 or more";
    case CX_OPTIM_NEGATIVE: return "a number of 0 or less";
    case CX_OPTIM_NONE_POSITIVE: return "numbers of 0 or more";
    case CX_OPTIM_FLAG: return "0 or 1";
    case CX_OPTIM_ANY:
      return f->second == CX_OPTIM_TRIPLE ? "three numbers"
             : pair                       ? "two numbers"
                                          : "a number";
    case CX_OPTIM_COUNT: return "a whole number of 0 or more";
    case CX_OPTIM_STEPS: return "a whole number of 1 to 99";
    default: return "a number of 0 or more";
  }
}

double cx_optim_get(const cx_optim_group *g, const cx_optim_field *f, int which)
{
  const char *at = (const char *)g + f->offset;
  if (f->range == CX_OPTIM_FLAG) return *(const bool *)at;
  return ((const double *)(const void *)at)[which];
}

void cx_optim_put(cx_optim_group *g, const cx_optim_field *f, int which,
                  double x)
{
  char *at = (char *)g + f->offset;
  if (f->range == CX_OPTIM_FLAG) {
    *(bool *)at = x != 0;
  } else {
    ((double *)(void *)at)[which] = x;
  }
}

static calx_status *check_field(const cx_optim_group *g,
                                const cx_optim_field *f)
{
  const char *rule = g->opt->rule->name;
  double x = cx_optim_get(g, f, 0);
  bool good = cx_optim_in_range(f->range, x);
  for (int i = 1; f->second == CX_OPTIM_TRIPLE && i < 3; i++) {
    if (!good) break;
    x = cx_optim_get(g, f, i);
    good = cx_optim_in_range(f->range, x);
  }
  if (cx_optim_field_count(f) != 2) {
    if (good) return NULL;
    return cx_invalid("%s: %s %g, %s is wanted", rule, f->name, x,
                      cx_optim_range_text(f));
  }
  double y = cx_optim_get(g, f, 1);
  if (good && cx_optim_in_range(f->second, y)) return NULL;
  return cx_invalid("%s: %s %g and %g, %s are wanted", rule, f->name, x, y,
                    cx_optim_range_text(f));
}

calx_status *cx_optim_check_group(const cx_optim_group *g)
{
  const cx_optim_rule *rule = g->opt->rule;
  for (const cx_optim_field *f = rule->fields; f->name != NULL; f++) {
    CALX_TRY(check_field(g, f));
  }
  return rule->check != NULL ? rule->check(g) : NULL;
}

cx_optim_group *cx_optim_group_at(const calx_optimizer *opt, size_t group)
{
  while (opt != NULL && opt->inner != NULL) opt = opt->inner;
  return opt != NULL && group < opt->n_groups ? opt->groups[group] : NULL;
}

// ---- parameters -------------------------------------------------------------

// The message is PyTorch's.
static calx_status *check_param(const calx_optimizer *opt, const char *path,
                                calx_tensor *t)
{
  const char *rule = opt->rule->name;
  for (size_t i = 0; i < opt->n; i++) {
    if (opt->params[i].tensor != t) continue;
    return cx_invalid(
        "%s: some parameters appear in more than one parameter group: '%s'",
        rule, path);
  }
  calx_device *device = calx_tensor_device(t);
  if (opt->device != NULL && device != opt->device) {
    return cx_invalid("%s: parameter '%s' is on %s, those before it on %s",
                      rule, path, calx_device_name(device),
                      calx_device_name(opt->device));
  }
  // The rules of single elements take complex numbers as pairs of real ones.
  bool only_real = opt->rule->needs_shape || opt->rule->step != NULL;
  if (only_real && cx_dtype_is_complex(calx_tensor_dtype(t))) {
    return cx_invalid(
        "%s: parameter '%s' is %s, and %s takes real ones: train its "
        "calx_view_as_real and make the complex tensor of it in the forward",
        rule, path, cx_graph_shape_str(cx_lazy_tensor_shape(t)), rule);
  }
  if (opt->rule->check_param == NULL) return NULL;
  return cx_annotate(opt->rule->check_param(t), "it is '%s'", path);
}

static calx_status *add_param(calx_optimizer *opt, const char *path,
                              calx_tensor *t)
{
  // The path as the tensor knows it, from the root of its model.
  const char *name = cx_lazy_tensor_name(t);
  CALX_TRY(check_param(opt, name != NULL ? name : path, t));
  if (!cx_grow(&opt->params, &opt->capacity, opt->n + 1, sizeof *opt->params)) {
    return cx_out_of_memory();
  }
  opt->params[opt->n++] =
      (cx_optim_param){ .tensor = calx_retain(t),
                        .path = name != NULL ? name : "a parameter",
                        .group = opt->n_groups - 1 };
  opt->device = calx_tensor_device(t);
  return NULL;
}

typedef struct visit {
  calx_optimizer *opt;
  calx_status *status;
} visit;

static void add_if_trained(void *user, const char *path, calx_entry_kind kind,
                           calx_tensor *tensor)
{
  visit *v = user;
  (void)kind;
  if (!cx_lazy_tensor_requires_grad(tensor)) return;
  if (v->status == NULL) v->status = add_param(v->opt, path, tensor);
}

static calx_status *add_listed(calx_optimizer *opt,
                               const cx_optim_choice *choice)
{
  for (size_t i = 0; i < choice->n; i++) {
    calx_tensor *t = choice->params[i];
    if (t == NULL || cx_lazy_tensor_poisoned(t) || calx_tensor_is_host(t) ||
        !cx_lazy_tensor_requires_grad(t)) {
      return cx_invalid(
          "%s: .params[%zu] is %s, a tensor on a device that "
          "requires a gradient is wanted",
          opt->rule->name, i, t == NULL ? "NULL" : "another tensor");
    }
    CALX_TRY(add_param(opt, "a parameter", t));
  }
  return NULL;
}

static calx_status *add_params(calx_optimizer *opt,
                               const cx_optim_choice *choice)
{
  const char *rule = opt->rule->name;
  if (choice->params != NULL || choice->n != 0) {
    if (choice->params == NULL) {
      return cx_invalid("%s: .n_params %zu without .params", rule, choice->n);
    }
    CALX_TRY(add_listed(opt, choice));
  } else {
    CALX_TRY(cx_annotate(calx_module_error(choice->model), "so %s has no model",
                         rule));
    visit v = { .opt = opt };
    calx_module_parameters(choice->model, add_if_trained, &v);
    CALX_TRY(v.status);
  }
  cx_optim_group *g = opt->groups[opt->n_groups - 1];
  g->n = opt->n - g->first;
  if (g->n != 0) return NULL;
  return cx_invalid("%s: %s no parameter that requires a gradient", rule,
                    choice->params != NULL ? ".params has" : "the model has");
}

// ---- groups -----------------------------------------------------------------

void cx_optim_drop_group(calx_optimizer *opt)
{
  cx_optim_group *g = opt->groups[--opt->n_groups];
  while (opt->n > g->first) calx_release(opt->params[--opt->n].tensor);
  cx_free(g);
}

calx_status *cx_optim_append_group(calx_optimizer *opt, cx_optim_choice choice,
                                   const cx_optim_group *like,
                                   cx_optim_group **out_group)
{
  *out_group = NULL;
  size_t bytes = opt->rule->group_bytes;
  if (bytes == 0) bytes = sizeof(cx_optim_group);
  if (!cx_grow(&opt->groups, &opt->groups_capacity, opt->n_groups + 1,
               sizeof(cx_optim_group *))) {
    return cx_out_of_memory();
  }
  cx_optim_group *g = cx_calloc(1, bytes);
  if (g == NULL) return cx_out_of_memory();
  if (like != NULL) memcpy(g, like, bytes);
  g->opt = opt;
  g->first = opt->n;
  g->n = 0;
  opt->groups[opt->n_groups++] = g;
  *out_group = g;
  CALX_TRY(add_params(opt, &choice));
  cx_optim_update *updates = cx_calloc(opt->n, sizeof *updates);
  if (updates == NULL) return cx_out_of_memory();
  cx_free(opt->updates);
  opt->updates = updates;
  return NULL;
}
