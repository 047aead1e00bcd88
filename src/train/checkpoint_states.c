// train/checkpoint_states: the states of a run's model, optimisers and
// schedules in a checkpoint, by Lightning's names; and what calx keeps beside
// them.
//
//   {'calx': {'format': 1, 'loader': {'epoch', 'samples'},
//             'random': {'seed', 'draws'}, 'ranks'}}
#include <inttypes.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/plan.h"
#include "train/checkpoint.h"

enum { FORMAT = 1 };

// ---- states are put ---------------------------------------------------------

static const char *prefix_of(const cx_train_states *s)
{
  return s->prefix != NULL ? s->prefix : "";
}

static calx_status *put_optimizers(const cx_train_states *s,
                                   calx_value *checkpoint)
{
  calx_value *list = calx_value_container(CALX_KIND_LIST), *state;
  CALX_TRY(calx_value_set(checkpoint, "optimizer_states", list));
  for (size_t i = 0; i < s->n_optimizers; i++) {
    CALX_TRY(calx_optimizer_consolidate_state_dict(s->optimizers[i], &state));
    CALX_TRY(calx_value_append(list, state));
  }
  return NULL;
}

static calx_status *put_schedulers(const cx_train_states *s,
                                   calx_value *checkpoint)
{
  calx_value *list = calx_value_container(CALX_KIND_LIST), *state;
  CALX_TRY(calx_value_set(checkpoint, "lr_schedulers", list));
  for (size_t i = 0; i < s->n_schedulers; i++) {
    CALX_TRY(calx_lr_scheduler_state_dict(s->schedulers[i], &state));
    CALX_TRY(calx_value_append(list, state));
  }
  return NULL;
}

calx_status *cx_train_states_put(const cx_train_states *s, bool weights_only,
                                 calx_value *checkpoint)
{
  calx_value *weights;
  CALX_TRY(cx_io_state_dict(s->model, prefix_of(s), &weights));
  CALX_TRY(calx_value_set(checkpoint, "state_dict", weights));
  if (weights_only) return NULL;
  CALX_TRY(put_optimizers(s, checkpoint));
  return put_schedulers(s, checkpoint);
}

// ---- states are got ---------------------------------------------------------

// The list of n states of this name; `what` is Lightning's word for one.
static calx_status *find_states(const calx_value *checkpoint, const char *name,
                                const char *what, size_t n,
                                const calx_value **out)
{
  *out = calx_value_get(checkpoint, name);
  if (*out == NULL) {
    return cx_invalid(
        "Trying to restore %s state but checkpoint contains only the model. "
        "This is probably due to `ModelCheckpoint.save_weights_only` being set "
        "to `True`.",
        what);
  }
  if (calx_value_kind(*out) != CALX_KIND_LIST) {
    return cx_invalid("the checkpoint's '%s' is %s, a list is wanted", name,
                      calx_kind_name(calx_value_kind(*out)));
  }
  if (calx_value_count(*out) == n) return NULL;
  return cx_invalid(
      "the checkpoint's '%s' has %zu, `configure_optimizers()` made %zu", name,
      calx_value_count(*out), n);
}

static calx_status *plan_optimizers(const cx_train_states *s,
                                    const calx_value *checkpoint,
                                    cx_io_plan *plan,
                                    cx_io_optimizer_plan **optimizers)
{
  const calx_value *list;
  CALX_TRY(find_states(checkpoint, "optimizer_states", "optimizer",
                       s->n_optimizers, &list));
  for (size_t i = 0; i < s->n_optimizers; i++) {
    CALX_TRY(cx_io_optimizer_plan_new(
        s->optimizers[i], calx_value_item(list, i), plan, &optimizers[i]));
  }
  CALX_TRY(find_states(checkpoint, "lr_schedulers", "learning rate scheduler",
                       s->n_schedulers, &list));
  for (size_t i = 0; i < s->n_schedulers; i++) {
    CALX_TRY(cx_io_scheduler_check(s->schedulers[i], calx_value_item(list, i)));
  }
  return NULL;
}

static calx_status *plan_model(const cx_train_states *s,
                               const calx_value *checkpoint, cx_io_plan *plan)
{
  const calx_value *weights = calx_value_get(checkpoint, "state_dict");
  if (weights == NULL) {
    return cx_invalid("the checkpoint has no 'state_dict', so no weights");
  }
  const calx_load_state_dict_options o = { .size = sizeof o,
                                           .not_strict = s->not_strict,
                                           .prefix = s->prefix };
  return cx_io_module_plan(s->model, weights, &o, plan);
}

static calx_status *plan_all(const cx_train_states *s, bool weights_only,
                             const calx_value *checkpoint, cx_io_plan *plan,
                             cx_io_optimizer_plan **optimizers)
{
  if (s->model != NULL) CALX_TRY(plan_model(s, checkpoint, plan));
  if (weights_only) return NULL;
  return plan_optimizers(s, checkpoint, plan, optimizers);
}

static void give_all(const cx_train_states *s, bool weights_only,
                     const calx_value *checkpoint, const cx_io_plan *plan,
                     cx_io_optimizer_plan **optimizers)
{
  cx_io_plan_give(plan);
  if (weights_only) return;
  for (size_t i = 0; i < s->n_optimizers; i++) {
    cx_io_optimizer_plan_give(optimizers[i]);
  }
  const calx_value *list = calx_value_get(checkpoint, "lr_schedulers");
  for (size_t i = 0; i < s->n_schedulers; i++) {
    cx_io_scheduler_give(s->schedulers[i], calx_value_item(list, i));
  }
}

calx_status *cx_train_states_get(const cx_train_states *s, bool weights_only,
                                 const calx_value *checkpoint)
{
  cx_io_plan plan = { 0 };
  cx_io_optimizer_plan **optimizers =
      cx_calloc(s->n_optimizers + 1, sizeof(cx_io_optimizer_plan *));
  if (optimizers == NULL) return cx_out_of_memory();
  calx_status *status =
      plan_all(s, weights_only, checkpoint, &plan, optimizers);
  if (status == NULL) {
    give_all(s, weights_only, checkpoint, &plan, optimizers);
  }
  for (size_t i = 0; i < s->n_optimizers; i++) {
    cx_io_optimizer_plan_free(optimizers[i]);
  }
  cx_free(optimizers);
  cx_io_plan_free(&plan);
  return status;
}

// ---- what calx keeps --------------------------------------------------------

static calx_status *put_pair(calx_value *own, const char *name,
                             const char *first, int64_t a, const char *second,
                             int64_t b)
{
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(own, name, dict));
  CALX_TRY(calx_value_set(dict, first, calx_value_int(a)));
  return calx_value_set(dict, second, calx_value_int(b));
}

calx_status *cx_train_own_put(const cx_train_own *own, calx_value *checkpoint)
{
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(checkpoint, "calx", dict));
  CALX_TRY(calx_value_set(dict, "format", calx_value_int(FORMAT)));
  CALX_TRY(put_pair(dict, "loader", "epoch", own->loader.epoch, "samples",
                    own->loader.samples));
  CALX_TRY(put_pair(dict, "random", "seed", (int64_t)own->seed, "draws",
                    (int64_t)own->draws));
  return calx_value_set(dict, "ranks", calx_value_int(own->ranks));
}

static calx_status *get_number(const calx_value *dict, const char *name,
                               int64_t least, int64_t *out)
{
  const calx_value *v = calx_value_get(dict, name);
  *out = calx_value_as_int(v);
  if (calx_value_kind(v) == CALX_KIND_INT && *out >= least) return NULL;
  return cx_invalid("the checkpoint's 'calx' has no number '%s' of %" PRId64
                    " or more",
                    name, least);
}

calx_status *cx_train_own_get(const calx_value *checkpoint, cx_train_own *out,
                              bool *out_found)
{
  const calx_value *own = calx_value_get(checkpoint, "calx");
  int64_t format, seed, draws;
  *out = (cx_train_own){ 0 };
  *out_found = own != NULL;
  if (own == NULL) return NULL;
  CALX_TRY(get_number(own, "format", 1, &format));
  if (format > FORMAT) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "the checkpoint's 'calx' has the format %" PRId64
                    ", this calx knows %d: a later one wrote it",
                    format, FORMAT);
  }
  const calx_value *loader = calx_value_get(own, "loader");
  const calx_value *random = calx_value_get(own, "random");
  CALX_TRY(get_number(loader, "epoch", 0, &out->loader.epoch));
  CALX_TRY(get_number(loader, "samples", 0, &out->loader.samples));
  CALX_TRY(get_number(random, "seed", INT64_MIN, &seed));
  CALX_TRY(get_number(random, "draws", INT64_MIN, &draws));
  CALX_TRY(get_number(own, "ranks", 1, &out->ranks));
  out->seed = (uint64_t)seed;
  out->draws = (uint64_t)draws;
  return NULL;
}
