// io/scheduler_state: the state of a learning-rate schedule, by PyTorch's
// names.
//
//   {'step_size': 30, 'gamma': 0.1, 'base_lrs': [0.1], 'last_epoch': 4,
//    '_step_count': 5, '_last_lr': [0.1]}
//
// SequentialLR and ChainedScheduler have a list '_schedulers' of such dicts.
#include <math.h>

#include "base/status.h"
#include "io/plan.h"
#include "optim/scheduler.h"

// A '#' in front of a name in the rule's list: the number is whole.
static const char *name_of(const char *listed)
{
  return listed + (listed[0] == '#');
}

// ---- out of a schedule ------------------------------------------------------

static calx_status *put_rates(calx_value *dict, const char *name,
                              const double *rates, size_t n)
{
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(dict, name, list));
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(calx_value_append(list, calx_value_float(rates[i])));
  }
  return NULL;
}

static calx_status *put_all(const calx_lr_scheduler *s, calx_value *dict)
{
  for (size_t i = 0; s->rule->numbers[i] != NULL; i++) {
    const char *listed = s->rule->numbers[i];
    calx_value *number = listed[0] == '#'
                             ? calx_value_int((int64_t)s->number[i])
                             : calx_value_float(s->number[i]);
    CALX_TRY(calx_value_set(dict, name_of(listed), number));
  }
  CALX_TRY(put_rates(dict, "base_lrs", s->base, s->n_groups));
  CALX_TRY(calx_value_set(dict, "last_epoch", calx_value_int(s->last_epoch)));
  CALX_TRY(calx_value_set(dict, "_step_count", calx_value_int(s->step_count)));
  CALX_TRY(put_rates(dict, "_last_lr", s->last, s->n_groups));
  if (s->n_inner == 0) return NULL;
  calx_value *list = calx_value_container(CALX_KIND_LIST);
  CALX_TRY(calx_value_set(dict, "_schedulers", list));
  for (size_t i = 0; i < s->n_inner; i++) {
    calx_value *one;
    CALX_TRY(calx_lr_scheduler_state_dict(s->inner[i], &one));
    CALX_TRY(calx_value_append(list, one));
  }
  return NULL;
}

calx_status *calx_lr_scheduler_state_dict(const calx_lr_scheduler *s,
                                          calx_value **out_dict)
{
  *out_dict = NULL;
  CALX_TRY(cx_annotate(calx_lr_scheduler_error(s), "so it has no state dict"));
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  if (dict == NULL) return cx_out_of_memory();
  calx_status *status = put_all(s, dict);
  if (status == NULL) {
    *out_dict = dict;
  } else {
    calx_value_free(dict);
  }
  return status;
}

// ---- into a schedule --------------------------------------------------------

static bool is_number(const calx_value *v)
{
  calx_kind kind = calx_value_kind(v);
  return kind == CALX_KIND_INT || kind == CALX_KIND_FLOAT ||
         kind == CALX_KIND_BOOL;
}

// A list of a number for each group; PyTorch has those of later groups too.
static calx_status *check_rates(const calx_lr_scheduler *s,
                                const calx_value *dict, const char *name)
{
  const calx_value *list = calx_value_get(dict, name);
  bool good = calx_value_count(list) >= s->n_groups;
  for (size_t i = 0; good && i < s->n_groups; i++) {
    good = is_number(calx_value_item(list, i));
  }
  if (list == NULL || good) return NULL;
  return cx_invalid("%s: %s of the state is no list of %zu numbers",
                    s->rule->name, name, s->n_groups);
}

calx_status *cx_io_scheduler_check(const calx_lr_scheduler *s,
                                   const calx_value *dict)
{
  CALX_TRY(cx_annotate(calx_lr_scheduler_error(s), "so nothing is loaded"));
  if (calx_value_kind(calx_value_get(dict, "last_epoch")) != CALX_KIND_INT) {
    return cx_invalid("%s: the state has no number 'last_epoch'",
                      s->rule->name);
  }
  for (size_t i = 0; s->rule->numbers[i] != NULL; i++) {
    const char *name = name_of(s->rule->numbers[i]);
    const calx_value *v = calx_value_get(dict, name);
    if (v == NULL || is_number(v)) continue;
    return cx_invalid("%s: '%s' of the state is %s, a number is wanted",
                      s->rule->name, name, calx_kind_name(calx_value_kind(v)));
  }
  CALX_TRY(check_rates(s, dict, "base_lrs"));
  CALX_TRY(check_rates(s, dict, "_last_lr"));
  const calx_value *inner = calx_value_get(dict, "_schedulers");
  if (calx_value_count(inner) != s->n_inner) {
    return cx_invalid("%s: the state has %zu schedules, %zu are wanted",
                      s->rule->name, calx_value_count(inner), s->n_inner);
  }
  for (size_t i = 0; i < s->n_inner; i++) {
    CALX_TRY(cx_io_scheduler_check(s->inner[i], calx_value_item(inner, i)));
  }
  return NULL;
}

static void give_rates(double *rates, size_t n, const calx_value *list)
{
  for (size_t i = 0; list != NULL && i < n; i++) {
    rates[i] = calx_value_as_float(calx_value_item(list, i));
  }
}

void cx_io_scheduler_give(calx_lr_scheduler *s, const calx_value *dict)
{
  for (size_t i = 0; s->rule->numbers[i] != NULL; i++) {
    const calx_value *v = calx_value_get(dict, name_of(s->rule->numbers[i]));
    if (v != NULL) s->number[i] = calx_value_as_float(v);
  }
  s->last_epoch = calx_value_as_int(calx_value_get(dict, "last_epoch"));
  const calx_value *count = calx_value_get(dict, "_step_count");
  if (count != NULL) s->step_count = calx_value_as_int(count);
  give_rates(s->base, s->n_groups, calx_value_get(dict, "base_lrs"));
  give_rates(s->last, s->n_groups, calx_value_get(dict, "_last_lr"));
  const calx_value *inner = calx_value_get(dict, "_schedulers");
  for (size_t i = 0; i < s->n_inner; i++) {
    cx_io_scheduler_give(s->inner[i], calx_value_item(inner, i));
  }
}

calx_status *calx_lr_scheduler_load_state_dict(calx_lr_scheduler *s,
                                               const calx_value *dict)
{
  CALX_TRY(cx_io_scheduler_check(s, dict));
  cx_io_scheduler_give(s, dict);
  return NULL;
}
