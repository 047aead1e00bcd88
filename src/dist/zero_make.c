// dist/zero_make: the shards of an optimiser whose state is spread over the
// ranks (dist/zero), and the optimiser that steps on them.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/options.h"
#include "dist/dist.h"
#include "dist/zero.h"
#include "lazy/lazy.h"

static cx_optim_position position(const calx_optimizer *opt, size_t i)
{
  return ((const cx_dist_zero *)opt)->positions[i];
}

static void zero_free(calx_optimizer *opt)
{
  cx_dist_zero *z = (cx_dist_zero *)opt;
  cx_dist_zero_forget(z);
  calx_optimizer_free(opt->inner);
  calx_module_free(z->shards);
  calx_release(z->mask);
  cx_free(z->parts);
  cx_free(z->positions);
  cx_free(z->list);
}

static calx_status *add_group(calx_optimizer *opt, const cx_optim_group *group,
                              const calx_param_group_options *options);

static const cx_optim_rule rule = { .name = "zero_redundancy_optimizer",
                                    .bytes = sizeof(cx_dist_zero),
                                    .step = cx_dist_zero_step,
                                    .reduce = cx_dist_zero_reduce,
                                    .position = position,
                                    .add_group = add_group,
                                    .free = zero_free };

// ---- making -----------------------------------------------------------------

// The shards of this type among those from `first` on, or new ones.
static cx_dist_shard *shard_of(cx_dist_zero *z, size_t first, calx_dtype dtype)
{
  for (size_t i = first; i < z->n && !z->alone; i++) {
    if (z->list[i].dtype == dtype) return &z->list[i];
  }
  if (!cx_grow(&z->list, &z->capacity, z->n + 1, sizeof *z->list)) return NULL;
  z->list[z->n] = (cx_dist_shard){ .dtype = dtype };
  return &z->list[z->n++];
}

// Lays the parameters of a group out in shards.
static calx_status *lay_out(cx_dist_zero *z, const cx_optim_group *group)
{
  size_t n = z->base.n, first = z->n;
  calx_tensor **parts = cx_calloc(n + 1, sizeof *parts);
  cx_optim_position *positions = cx_calloc(n, sizeof *positions);
  if (parts == NULL || positions == NULL) {
    cx_free(parts);
    cx_free(positions);
    return cx_out_of_memory();
  }
  if (z->positions != NULL) {
    memcpy(positions, z->positions, group->first * sizeof *positions);
  }
  cx_free(z->parts);
  cx_free(z->positions);
  z->parts = parts;
  z->positions = positions;
  for (size_t i = group->first; i < n; i++) {
    const calx_tensor *t = z->base.params[i].tensor;
    cx_dist_shard *s = shard_of(z, first, calx_tensor_dtype(t));
    if (s == NULL) return cx_out_of_memory();
    z->positions[i] = (cx_optim_position){ .inner = (size_t)(s - z->list),
                                           .first = s->total };
    s->total += calx_tensor_numel(t);
  }
  return NULL;
}

// Makes the tensors of the shards from `first` on.
static calx_status *make_shards(cx_dist_zero *z, size_t first)
{
  int64_t ranks = calx_world_size();
  calx_scope *scope = calx_scope_begin();
  for (size_t i = first; i < z->n; i++) {
    cx_dist_shard *s = &z->list[i];
    char name[48];
    const char *type = calx_dtype_name(s->dtype);
    snprintf(name, sizeof name, "%s_%zu", type, i);
    s->size = (s->total + ranks - 1) / ranks;
    s->own = calx_module_param(z->shards, first == 0 && !z->alone ? type : name,
                               cx_dist_zero_zeros(z, s->dtype, s->size));
  }
  return calx_scope_end(scope);
}

static calx_status *make_all_shards(cx_dist_zero *z)
{
  calx_module_free(z->shards);
  z->n = 0;
  z->shards = calx_module_new("Shards", NULL, NULL);
  CALX_TRY(lay_out(z, z->base.groups[0]));
  return make_shards(z, 0);
}

static void make_mask(cx_dist_zero *z)
{
  int64_t dims[2] = { calx_world_size(), 1 };
  unsigned char *mine = cx_calloc((size_t)dims[0], 1);
  if (mine == NULL) {
    cx_optim_fail(&z->base, cx_out_of_memory());
    return;
  }
  mine[calx_global_ordinal()] = 1;
  cx_optim_fail(&z->base, cx_lazy_upload(z->base.device, CALX_BOOL, dims, 2,
                                         mine, false, NULL, NULL, &z->mask));
  cx_free(mine);
}

// The optimiser of the shards: its parameters are theirs, in their order.
static calx_status *make_inner(cx_dist_zero *z,
                               const calx_zero_redundancy_options *o)
{
  calx_optimizer *inner = o->make(o->user, z->shards);
  z->base.inner = inner;
  if (inner == NULL) {
    return cx_invalid("%s: .make gave no optimiser", rule.name);
  }
  CALX_TRY(calx_optimizer_error(inner));
  if (inner->rule->step_closure != NULL) {
    return cx_invalid(
        "%s: %s decides by numbers of all parameters; use it without shards",
        rule.name, inner->rule->name);
  }
  bool fits =
      inner->rule->step == NULL && inner->n == z->n && inner->n_groups == 1;
  for (size_t i = 0; fits && i < inner->n; i++) {
    fits = inner->params[i].tensor == z->list[i].own;
  }
  if (!fits) {
    return cx_invalid(
        "%s: the %s that .make gave is not one of the shards'; make it of the "
        "module that .make is given",
        rule.name, inner->rule->name);
  }
  if (inner->rule->needs_shape) {
    return cx_invalid(
        "%s: %s needs rows and columns, which shards have not; its state is "
        "small: use it without shards",
        rule.name, inner->rule->name);
  }
  inner->sharded = true;
  return NULL;
}

// Which shards there are depends on the rule, which only the optimiser tells.
static calx_status *make_both(cx_dist_zero *z,
                              const calx_zero_redundancy_options *o)
{
  CALX_TRY(make_all_shards(z));
  CALX_TRY(make_inner(z, o));
  if (!z->base.inner->rule->needs_all) return NULL;
  calx_optimizer_free(z->base.inner);
  z->base.inner = NULL;
  z->alone = true;
  CALX_TRY(make_all_shards(z));
  return make_inner(z, o);
}

static calx_status *add_shards(cx_dist_zero *z, const cx_optim_group *group,
                               const calx_param_group_options *options)
{
  size_t first = z->n;
  CALX_TRY(lay_out(z, group));
  CALX_TRY(make_shards(z, first));
  calx_tensor **own = cx_calloc(z->n - first, sizeof(calx_tensor *));
  if (own == NULL) return cx_out_of_memory();
  for (size_t i = first; i < z->n; i++) own[i - first] = z->list[i].own;
  calx_status *status = cx_optim_add_group(
      z->base.inner, (cx_optim_choice){ NULL, own, z->n - first }, options);
  cx_free(own);
  return status;
}

static calx_status *add_group(calx_optimizer *opt, const cx_optim_group *group,
                              const calx_param_group_options *options)
{
  cx_dist_zero *z = (cx_dist_zero *)opt;
  size_t n = z->n;
  calx_status *status = add_shards(z, group, options);
  if (status != NULL) z->n = n;
  return status;
}

calx_optimizer *calx_zero_redundancy_optimizer_with(
    calx_module *model, const calx_zero_redundancy_options *options)
{
  calx_optimizer *opt =
      cx_optim_new(&rule, NULL, (cx_optim_choice){ .model = model });
  if (!cx_optim_is_real(opt)) return opt;
  cx_dist_zero *z = (cx_dist_zero *)opt;
  calx_zero_redundancy_options o;
  calx_status *status = cx_options_take(rule.name, options, &o, sizeof o);
  if (status == NULL && o.make == NULL) {
    status = cx_invalid(
        "%s: .make is missing: which optimiser steps on the shards", rule.name);
  }
  cx_optim_fail(opt, status);
  if (opt->status != NULL) return opt;
  make_mask(z);
  cx_optim_fail(opt, make_both(z, &o));
  if (opt->status == NULL) opt->keep_gradients = opt->inner->keep_gradients;
  return opt;
}
