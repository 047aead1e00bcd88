// io/checkpoint: all that an interrupted training run needs to continue with
// the same results, in one .pt file.
//
//   {'model': state dict, 'optimizer': state dict, 'loader': {'epoch',
//    'samples'}, 'random': {'seed', 'draws'}, 'lr_scheduler': state dict,
//    'scaler': state dict, 'user': …}
#include "base/options.h"
#include "base/status.h"
#include "io/plan.h"
#include "io/rank.h"
#include "io/value.h"
#include "lazy/lazy.h"
#include "optim/optimizer.h"

static calx_status *check(const char *call, const calx_checkpoint *c)
{
  if (c == NULL || c->model == NULL) {
    return cx_invalid("%s: there is no model", call);
  }
  return cx_options_check(call, c->size, sizeof *c);
}

// ---- saving -----------------------------------------------------------------

static calx_status *put_numbers(calx_value *root, const char *name,
                                const char *first, int64_t a,
                                const char *second, int64_t b)
{
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  CALX_TRY(calx_value_set(root, name, dict));
  CALX_TRY(calx_value_set(dict, first, calx_value_int(a)));
  return calx_value_set(dict, second, calx_value_int(b));
}

static calx_status *put_all(const calx_checkpoint *c, calx_device *device,
                            calx_value *root)
{
  calx_value *part;
  uint64_t seed, draws;
  CALX_TRY(calx_module_state_dict(c->model, &part));
  CALX_TRY(calx_value_set(root, "model", part));
  if (c->optimizer != NULL) {
    CALX_TRY(calx_optimizer_consolidate_state_dict(c->optimizer, &part));
    CALX_TRY(calx_value_set(root, "optimizer", part));
  }
  if (c->lr_scheduler != NULL) {
    CALX_TRY(calx_lr_scheduler_state_dict(c->lr_scheduler, &part));
    CALX_TRY(calx_value_set(root, "lr_scheduler", part));
  }
  if (c->scaler != NULL) {
    CALX_TRY(calx_grad_scaler_state_dict(c->scaler, &part));
    CALX_TRY(calx_value_set(root, "scaler", part));
  }
  CALX_TRY(put_numbers(root, "loader", "epoch", c->loader.epoch, "samples",
                       c->loader.samples));
  cx_lazy_random_state(device, &seed, &draws);
  CALX_TRY(put_numbers(root, "random", "seed", (int64_t)seed, "draws",
                       (int64_t)draws));
  return c->user != NULL ? cx_io_lend(root, "user", c->user) : NULL;
}

// Joining the shards takes all ranks, and a save must not wait for another
// rank.
static calx_status *check_whole(const calx_optimizer *opt)
{
  if (opt == NULL || opt->inner == NULL || cx_io_ranks() == 1) return NULL;
  return cx_error(CALX_FAILED_PRECONDITION,
                  "checkpoint_save: the optimiser's state is spread over %d "
                  "ranks: save calx_optimizer_consolidate_state_dict(), which "
                  "all of them call, with calx_save()",
                  cx_io_ranks());
}

calx_status *calx_checkpoint_save(const char *path, const calx_checkpoint *c)
{
  CALX_TRY(check("checkpoint_save", c));
  CALX_TRY(check_whole(c->optimizer));
  calx_device *device = calx_device_current();
  if (device == NULL) return cx_status_copy(calx_scope_error());
  calx_value *root = calx_value_container(CALX_KIND_DICT);
  if (root == NULL) return cx_out_of_memory();
  calx_status *status = put_all(c, device, root);
  calx_save_options o = { .size = sizeof o, .format = CALX_FORMAT_PT };
  if (status == NULL) status = calx_save_with(root, path, &o);
  cx_io_take_back(root, c->user);
  calx_value_free(root);
  return status;
}

// ---- loading ----------------------------------------------------------------

static calx_status *find(const calx_value *root, const char *path,
                         const char *name, const calx_value **out)
{
  *out = calx_value_get(root, name);
  if (calx_value_kind(*out) == CALX_KIND_DICT) return NULL;
  return cx_invalid("'%s' is no checkpoint of calx: it has no dict '%s'", path,
                    name);
}

static calx_status *find_number(const calx_value *root, const char *path,
                                const char *name, const char *key, int64_t *out)
{
  const calx_value *dict;
  CALX_TRY(find(root, path, name, &dict));
  const calx_value *v = calx_value_get(dict, key);
  *out = calx_value_as_int(v);
  if (calx_value_kind(v) == CALX_KIND_INT) return NULL;
  return cx_invalid("'%s' is no checkpoint of calx: '%s' has no number '%s'",
                    path, name, key);
}

typedef struct restoring {
  cx_io_plan plan;
  cx_io_optimizer_plan *optimizer;
  const calx_value *lr_scheduler, *scaler;
  calx_loader_position loader;
  int64_t seed, draws;
} restoring;

static calx_status *prepare(const calx_checkpoint *c, const char *path,
                            const calx_value *root, restoring *r)
{
  static const calx_load_state_dict_options strict = { .size = sizeof strict };
  const calx_value *part;
  CALX_TRY(find_number(root, path, "loader", "epoch", &r->loader.epoch));
  CALX_TRY(find_number(root, path, "loader", "samples", &r->loader.samples));
  CALX_TRY(find_number(root, path, "random", "seed", &r->seed));
  CALX_TRY(find_number(root, path, "random", "draws", &r->draws));
  CALX_TRY(find(root, path, "model", &part));
  CALX_TRY(cx_io_module_plan(c->model, part, &strict, &r->plan));
  if (c->lr_scheduler != NULL) {
    CALX_TRY(find(root, path, "lr_scheduler", &r->lr_scheduler));
    CALX_TRY(cx_io_scheduler_check(c->lr_scheduler, r->lr_scheduler));
  }
  if (c->scaler != NULL) {
    CALX_TRY(find(root, path, "scaler", &r->scaler));
    CALX_TRY(cx_io_scaler_check(c->scaler, r->scaler));
  }
  if (c->optimizer == NULL) return NULL;
  CALX_TRY(find(root, path, "optimizer", &part));
  return cx_io_optimizer_plan_new(c->optimizer, part, &r->plan, &r->optimizer);
}

static void give(calx_checkpoint *c, calx_device *device, calx_value *root,
                 restoring *r)
{
  cx_io_plan_give(&r->plan);
  if (r->optimizer != NULL) cx_io_optimizer_plan_give(r->optimizer);
  if (c->lr_scheduler != NULL) {
    cx_io_scheduler_give(c->lr_scheduler, r->lr_scheduler);
  }
  if (c->scaler != NULL) cx_io_scaler_give(c->scaler, r->scaler);
  cx_lazy_random_restore(device, (uint64_t)r->seed, (uint64_t)r->draws);
  c->loader = r->loader;
  c->user = calx_value_get(root, "user");
  cx_io_take_back(root, c->user);
}

calx_status *calx_checkpoint_load(const char *path, calx_checkpoint *c)
{
  CALX_TRY(check("checkpoint_load", c));
  c->user = NULL;
  calx_device *device = calx_device_current();
  if (device == NULL) return cx_status_copy(calx_scope_error());
  calx_value *root;
  calx_load_options o = { .size = sizeof o, .format = CALX_FORMAT_PT };
  CALX_TRY(calx_load_with(path, &o, &root));
  restoring r = { .optimizer = NULL };
  calx_status *status = prepare(c, path, root, &r);
  if (status == NULL) give(c, device, root, &r);
  cx_io_optimizer_plan_free(r.optimizer);
  cx_io_plan_free(&r.plan);
  calx_value_free(root);
  return status;
}
