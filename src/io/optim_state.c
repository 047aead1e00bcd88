// io/optim_state: an optimiser's state as PyTorch lays it out.
//
//   {'state': {0: {'step': 3., 'exp_avg': …, 'exp_avg_sq': …}, 1: …},
//    'param_groups': [{'lr': …, 'betas': …, …, 'params': [0, 1, …]}]}
//
// PyTorch's load_state_dict() takes it, and what PyTorch wrote is taken here.
// "calx_steps" is ours: SGD in PyTorch does not count its steps. PyTorch keeps
// the entry but does not count on, so the greatest count of a parameter is used
// where it is larger. "calx_shard" is ours too, the rank and how many there
// are, where the state is spread over ranks: it is loaded by the same rank of
// as many. A state without it is whole and can be loaded by any optimiser.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "io/optim_state.h"
#include "io/rank.h"
#include "lazy/lazy.h"

// The innermost optimiser, which has the state.
static calx_optimizer *that_keeps(calx_optimizer *opt)
{
  while (opt != NULL && opt->inner != NULL) opt = opt->inner;
  return opt;
}

// A schedule's first rate, which a group has where a schedule was made.
static const cx_optim_field initial_lr = { "initial_lr",
                                           offsetof(cx_optim_group, initial_lr),
                                           CX_OPTIM_ANY, CX_OPTIM_NOTHING };

// ---- out of an optimiser ----------------------------------------------------

// NaN is PyTorch's None.
static calx_value *number_value(double x)
{
  return isnan(x) ? calx_value_none() : calx_value_float(x);
}

static calx_value *one_value(const cx_optim_rule *rule, const cx_optim_field *f,
                             double x)
{
  switch (f->range) {
    case CX_OPTIM_FLAG: return calx_value_bool(x != 0);
    case CX_OPTIM_COUNT:
    case CX_OPTIM_STEPS: return calx_value_int((int64_t)x);
    case CX_OPTIM_NAME: {
      const char *name = rule->choices[(size_t)x];
      return name[0] != '\0' ? calx_value_string(name) : calx_value_none();
    }
    default: return number_value(x);
  }
}

static calx_status *put_field(const cx_optim_group *g, const cx_optim_field *f,
                              calx_value *group)
{
  double x = cx_optim_get(g, f, 0);
  int n = cx_optim_field_count(f);
  if (n == 1)
    return calx_value_set(group, f->name, one_value(g->opt->rule, f, x));
  calx_value *several = calx_value_container(CALX_KIND_TUPLE);
  CALX_TRY(calx_value_set(group, f->name, several));
  for (int i = 0; i < n; i++) {
    CALX_TRY(calx_value_append(several, number_value(cx_optim_get(g, f, i))));
  }
  return NULL;
}

static calx_status *put_shard(calx_value *group)
{
  calx_value *pair = calx_value_container(CALX_KIND_TUPLE);
  CALX_TRY(calx_value_set(group, "calx_shard", pair));
  CALX_TRY(calx_value_append(pair, calx_value_int(cx_io_rank())));
  return calx_value_append(pair, calx_value_int(cx_io_ranks()));
}

// Appends a group of n parameters, of which `first` is the first.
static calx_status *put_group(const cx_optim_group *g, size_t first, size_t n,
                              bool sharded, calx_value *groups)
{
  calx_value *group = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_append(groups, group));
  for (const cx_optim_field *f = g->opt->rule->fields; f->name != NULL; f++) {
    CALX_TRY(put_field(g, f, group));
  }
  if (g->has_initial_lr) CALX_TRY(put_field(g, &initial_lr, group));
  CALX_TRY(calx_value_set(group, "calx_steps",
                          calx_value_int(calx_optimizer_steps(g->opt))));
  if (sharded) CALX_TRY(put_shard(group));
  calx_value *params = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(group, "params", params));
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(calx_value_append(params, calx_value_int((int64_t)(first + i))));
  }
  return NULL;
}

static calx_status *put_all(calx_optimizer *opt, bool whole, calx_value *dict)
{
  const calx_optimizer *keeper = that_keeps(opt);
  bool spread = keeper != opt;
  calx_value *state = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(dict, "state", state));
  if (spread && whole) {
    CALX_TRY(cx_io_whole_put(opt, state));
  } else {
    for (size_t i = 0; i < keeper->n; i++) {
      CALX_TRY(cx_io_optim_put_states(keeper, i, state));
    }
    const cx_optim_lbfgs *l = cx_optim_as_lbfgs(that_keeps(opt));
    if (l != NULL) CALX_TRY(cx_io_lbfgs_put(l, state));
  }
  calx_value *groups = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(dict, "param_groups", groups));
  const calx_optimizer *has = whole ? opt : keeper;
  for (size_t i = 0; i < keeper->n_groups; i++) {
    CALX_TRY(put_group(keeper->groups[i], has->groups[i]->first,
                       has->groups[i]->n, spread && !whole, groups));
  }
  return NULL;
}

static calx_status *check_optimizer(calx_optimizer *opt)
{
  CALX_TRY(cx_annotate(calx_optimizer_error(opt), "so it has no state dict"));
  (void)calx_optimizer_steps(opt);  // counts what has been a step
  if (that_keeps(opt)->rule->fields != NULL) return NULL;
  return cx_error(CALX_UNIMPLEMENTED, "%s: it has no state dict",
                  opt->rule->name);
}

static calx_status *make_dict(calx_optimizer *opt, bool whole,
                              calx_value **out_dict)
{
  *out_dict = NULL;
  CALX_TRY(check_optimizer(opt));
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  calx_status *status =
      dict != NULL ? put_all(opt, whole, dict) : cx_out_of_memory();
  if (status != NULL) {
    calx_value_free(dict);
    dict = NULL;
  }
  *out_dict = dict;
  return status;
}

calx_status *calx_optimizer_state_dict(calx_optimizer *opt,
                                       calx_value **out_dict)
{
  return make_dict(opt, false, out_dict);
}

calx_status *calx_optimizer_consolidate_state_dict(calx_optimizer *opt,
                                                   calx_value **out_dict)
{
  return make_dict(opt, true, out_dict);
}

// ---- into an optimiser ------------------------------------------------------

typedef struct field_plan {
  double number[CX_OPTIM_MOST_VALUES];
  bool is_there;
} field_plan;

enum { MOST_FIELDS = 16 };

struct cx_io_optimizer_plan {
  calx_optimizer *opt;
  const calx_optimizer *outer;  // that spreads it over the ranks; NULL: none
  // Of each group; the last one is initial_lr.
  field_plan (*fields)[MOST_FIELDS + 1];
  int64_t steps;
  cx_optim_lbfgs_state lbfgs;
  cx_io_param_plan params[];
};

// PyTorch's None is NaN.
static double number_of(const calx_value *v, cx_optim_range range)
{
  if (range == CX_OPTIM_FLAG) return calx_value_as_bool(v);
  return cx_io_optim_number(v);
}

static calx_status *plan_name(const calx_optimizer *opt,
                              const cx_optim_field *f, const calx_value *v,
                              field_plan *out)
{
  const char *found =
      calx_value_kind(v) == CALX_KIND_NONE ? "" : calx_value_as_string(v);
  for (size_t i = 0; found != NULL && opt->rule->choices[i] != NULL; i++) {
    if (strcmp(found, opt->rule->choices[i]) != 0) continue;
    out->number[0] = (double)i;
    return NULL;
  }
  return cx_io_optim_wrong(opt, f->name, v, opt->rule->choices[1]);
}

static calx_status *plan_field(const calx_optimizer *opt,
                               const cx_optim_field *f, const calx_value *v,
                               field_plan *out)
{
  *out = (field_plan){ .is_there = v != NULL };
  if (v == NULL) return NULL;
  if (f->range == CX_OPTIM_NAME) return plan_name(opt, f, v, out);
  int n = cx_optim_field_count(f);
  for (int i = 0; i < n; i++) {
    const calx_value *one = n > 1 ? calx_value_item(v, (size_t)i) : v;
    cx_optim_range range =
        i == 0 || f->second == CX_OPTIM_TRIPLE ? f->range : f->second;
    bool none = calx_value_kind(one) == CALX_KIND_NONE && one != NULL;
    double x = none ? (double)NAN : number_of(one, range);
    bool is_number = !isnan(x) || (none && range == CX_OPTIM_NONE_POSITIVE);
    if (!is_number || isinf(x) || !cx_optim_in_range(range, x)) {
      char wanted[64];
      snprintf(wanted, sizeof wanted, "%s, finite", cx_optim_range_text(f));
      return cx_io_optim_wrong(opt, f->name, one != NULL ? one : v, wanted);
    }
    out->number[i] = x;
  }
  return NULL;
}

// A shard can be loaded only by the same rank of the same number of ranks.
static calx_status *check_shard(bool sharded, const calx_value *pair)
{
  if (pair == NULL) return NULL;
  int64_t rank = calx_value_as_int(calx_value_item(pair, 0));
  int64_t ranks = calx_value_as_int(calx_value_item(pair, 1));
  if (sharded && rank == cx_io_rank() && ranks == cx_io_ranks()) return NULL;
  if (sharded) {
    return cx_invalid(
        "load_state_dict: the state is the shard of rank %" PRId64
        " of %" PRId64
        ", this is rank %d of %d; each rank loads what it saved, among as "
        "many, or all of them the whole (calx_optimizer_consolidate_state_dict)",
        rank, ranks, cx_io_rank(), cx_io_ranks());
  }
  return cx_invalid(
      "load_state_dict: the state is the shard of rank %" PRId64 " of %" PRId64
      ", the optimiser's state is whole, as "
      "calx_optimizer_consolidate_state_dict() would have made it",
      rank, ranks);
}

// *out_whole: the state is whole and is to be spread over the ranks. *out_ids
// are the keys of the parameters in the state, in order: the caller frees it.
static calx_status *find_group(const cx_io_optimizer_plan *p, size_t which,
                               const calx_value *group, bool *out_whole,
                               calx_value *ids)
{
  const calx_optimizer *opt = p->opt;
  const calx_value *shard = calx_value_get(group, "calx_shard");
  CALX_TRY(check_shard(p->outer != NULL, shard));
  *out_whole = p->outer != NULL && shard == NULL;
  const calx_value *params = calx_value_get(group, "params");
  size_t n = calx_value_count(params);
  const calx_optimizer *has = *out_whole ? p->outer : opt;
  size_t wanted = has->groups[which]->n;
  for (size_t i = 0; n == wanted && i < n; i++) {
    int64_t id = calx_value_as_int(calx_value_item(params, i));
    CALX_TRY(calx_value_append(ids, calx_value_int(id)));
  }
  if (n == wanted) return NULL;
  return cx_invalid(
      "%s: loaded state dict contains a parameter group that doesn't match the "
      "size of optimizer's group: %zu parameters, the optimiser has %zu",
      opt->rule->name, n, wanted);
}

// The options of each group, and the ids of the parameters of all.
static calx_status *plan_groups(cx_io_optimizer_plan *p, const calx_value *dict,
                                bool *out_whole, calx_value *ids)
{
  const calx_optimizer *opt = p->opt;
  const calx_value *groups = calx_value_get(dict, "param_groups");
  if (calx_value_kind(groups) != CALX_KIND_LIST ||
      calx_value_count(groups) != opt->n_groups) {
    return cx_invalid(
        "%s: loaded state dict has a different number of parameter groups: "
        "%zu, %zu wanted",
        opt->rule->name, calx_value_count(groups), opt->n_groups);
  }
  for (size_t g = 0; g < opt->n_groups; g++) {
    const calx_value *group = calx_value_item(groups, g);
    CALX_TRY(find_group(p, g, group, out_whole, ids));
    const cx_optim_field *fields = opt->rule->fields;
    for (size_t i = 0; fields[i].name != NULL; i++) {
      CX_ASSERT(i < MOST_FIELDS);
      CALX_TRY(plan_field(opt, &fields[i],
                          calx_value_get(group, fields[i].name),
                          &p->fields[g][i]));
    }
    CALX_TRY(plan_field(opt, &initial_lr,
                        calx_value_get(group, initial_lr.name),
                        &p->fields[g][MOST_FIELDS]));
    const calx_value *counted = calx_value_get(group, "calx_steps");
    int64_t steps = counted != NULL ? cx_io_optim_steps(counted) : 0;
    if (steps < 0) return cx_io_optim_wrong_steps(opt, "calx_steps", counted);
    if (steps > p->steps) p->steps = steps;
  }
  return NULL;
}

static calx_status *plan_params(cx_io_optimizer_plan *p, const calx_value *ids,
                                const calx_value *state, cx_io_plan *plan)
{
  for (size_t i = 0; i < p->opt->n; i++) {
    int64_t id = calx_value_as_int(calx_value_item(ids, i));
    const calx_value *own = calx_value_get_at(state, id);
    CALX_TRY(cx_io_optim_plan_param(p->opt, i, own, plan, &p->params[i]));
  }
  const cx_optim_lbfgs *l = cx_optim_as_lbfgs(p->opt);
  if (l == NULL) return NULL;
  int64_t first = calx_value_as_int(calx_value_item(ids, 0));
  return cx_io_lbfgs_plan(l, calx_value_get_at(state, first), &p->lbfgs);
}

static calx_status *plan_all(cx_io_optimizer_plan *p, const calx_value *dict,
                             cx_io_plan *plan)
{
  bool whole = false;
  calx_value *ids = calx_value_container(CALX_KIND_LIST);
  calx_status *status =
      ids != NULL ? plan_groups(p, dict, &whole, ids) : cx_out_of_memory();
  const calx_value *state = calx_value_get(dict, "state");
  if (status == NULL) {
    status = whole ? cx_io_whole_plan(p->outer, ids, state, plan, p->params)
                   : plan_params(p, ids, state, plan);
  }
  calx_value_free(ids);
  for (size_t i = 0; i < p->opt->n; i++) {
    if (p->params[i].steps > p->steps) p->steps = p->params[i].steps;
  }
  return status;
}

calx_status *cx_io_optimizer_plan_new(calx_optimizer *opt,
                                      const calx_value *dict, cx_io_plan *plan,
                                      cx_io_optimizer_plan **out_plan)
{
  *out_plan = NULL;
  CALX_TRY(check_optimizer(opt));
  calx_optimizer *keeper = that_keeps(opt);
  cx_io_optimizer_plan *p =
      cx_calloc(1, sizeof *p + keeper->n * sizeof p->params[0]);
  if (p == NULL) return cx_out_of_memory();
  p->opt = keeper;
  p->outer = keeper != opt ? opt : NULL;
  p->fields = cx_calloc(keeper->n_groups, sizeof p->fields[0]);
  calx_status *status =
      p->fields != NULL ? plan_all(p, dict, plan) : cx_out_of_memory();
  if (status != NULL) {
    cx_io_optimizer_plan_free(p);
    return status;
  }
  *out_plan = p;
  return NULL;
}

static void give_fields(const cx_io_optimizer_plan *p, size_t group)
{
  const cx_optim_field *fields = p->opt->rule->fields;
  cx_optim_group *g = p->opt->groups[group];
  for (size_t i = 0; fields[i].name != NULL; i++) {
    const field_plan *f = &p->fields[group][i];
    if (!f->is_there) continue;
    for (int k = 0; k < cx_optim_field_count(&fields[i]); k++) {
      cx_optim_put(g, &fields[i], k, f->number[k]);
    }
  }
  const field_plan *initial = &p->fields[group][MOST_FIELDS];
  if (!initial->is_there) return;
  g->initial_lr = initial->number[0];
  g->has_initial_lr = true;
}

// "conv1.weight.exp_avg". Interned: it is never freed.
static const char *state_name(const char *path, const char *name)
{
  cx_text text = { 0 };
  cx_text_format(&text, "%s.%s", path, name);
  const char *kept =
      cx_site_intern(&(calx_site){ .file = cx_text_str(&text) }).file;
  cx_text_free(&text);
  return kept;
}

void cx_io_optimizer_plan_give(cx_io_optimizer_plan *p)
{
  calx_optimizer *opt = p->opt;
  for (size_t g = 0; g < opt->n_groups; g++) give_fields(p, g);
  opt->probe = NULL;
  cx_optim_lbfgs *l = cx_optim_as_lbfgs(opt);
  if (l != NULL) cx_io_lbfgs_give(l, &p->lbfgs);
  opt->steps = opt->confirmed_steps = p->steps;
  for (size_t i = 0; i < opt->n; i++) {
    cx_optim_param *to = &opt->params[i];
    cx_io_param_plan *from = &p->params[i];
    to->steps = to->confirmed_steps =
        opt->rule->has_step ? from->steps : p->steps;
    memcpy(to->number, from->number, sizeof to->number);
    memcpy(to->confirmed_number, from->number, sizeof to->number);
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      if (from->has[k] && from->fresh[k] == NULL) continue;
      calx_release(to->state[k]);
      to->state[k] = from->fresh[k];
      from->fresh[k] = NULL;
      if (to->state[k] == NULL) continue;
      cx_lazy_tensor_set_name(
          to->state[k], state_name(to->path, cx_optim_state_name(opt, k)));
    }
  }
}

void cx_io_optimizer_plan_free(cx_io_optimizer_plan *p)
{
  if (p == NULL) return;
  for (size_t i = 0; i < p->opt->n; i++) {
    for (int k = 0; k < CX_OPTIM_STATES; k++) {
      calx_release(p->params[i].fresh[k]);
    }
  }
  cx_optim_lbfgs_state_free(&p->lbfgs);
  cx_free(p->fields);
  cx_free(p);
}

calx_status *calx_optimizer_load_state_dict(calx_optimizer *opt,
                                            const calx_value *dict)
{
  cx_io_plan plan = { 0 };
  cx_io_optimizer_plan *p;
  calx_status *status = cx_io_optimizer_plan_new(opt, dict, &plan, &p);
  if (status == NULL) {
    cx_io_plan_give(&plan);
    cx_io_optimizer_plan_give(p);
  }
  cx_io_optimizer_plan_free(p);
  cx_io_plan_free(&plan);
  return status;
}
