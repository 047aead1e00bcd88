// spmd/reshard: the communication that splits a value in another way.
#include <string.h>

#include "spmd/internal.h"

cx_hlo_type cx_spmd_local(cx_spmd_state *s, const cx_hlo_type *global,
                          const cx_spmd_axes *dims)
{
  cx_hlo_type t = *global;
  int64_t *sizes = CX_ARENA_ARRAY(&s->b.module->arena, int64_t, t.rank + 1);
  if (sizes == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return t;
  }
  for (size_t d = 0; d < t.rank; d++) {
    sizes[d] = t.dims[d];
    if (dims[d] != 0) sizes[d] /= cx_spmd_parts(&s->mesh, dims[d]);
  }
  t.dims = sizes;
  return t;
}

// ---- collectives between partitions ----

static cx_hlo_groups groups_of(cx_spmd_state *s, cx_spmd_axes axes)
{
  const int64_t n = s->mesh.n_devices;
  const int64_t members = cx_spmd_parts(&s->mesh, axes);
  int64_t *ids = CX_ARENA_ARRAY(&s->arena, int64_t, (size_t)n);
  cx_hlo_groups g = { ids, (size_t)(n / members), (size_t)members };
  if (ids == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
  } else {
    cx_spmd_groups(&s->mesh, axes, ids);
  }
  return g;
}

// A channel makes the groups' numbers those of partitions.
static cx_hlo_value *with_channel(cx_spmd_state *s, cx_hlo_value *v)
{
  static const cx_hlo_channel channel = { 1, 1 };
  if (v == NULL) return NULL;
  cx_hlo_module *m = s->b.module;
  cx_hlo_build_attr(&s->b, v->op, CX_HLO_A_CHANNEL_HANDLE,
                    cx_hlo_attr_struct(m, CX_HLO_STRUCT_CHANNEL, &channel));
  cx_hlo_build_attr(&s->b, v->op, CX_HLO_A_USE_GLOBAL_DEVICE_IDS,
                    cx_hlo_attr_unit(m));
  return v;
}

// The axes at the beginning of the list that are all in `of`.
static cx_spmd_axes first_in(cx_spmd_axes list, cx_spmd_axes of)
{
  size_t n = 0;
  while (n < cx_spmd_axes_count(list) &&
         cx_spmd_axes_have(of, cx_spmd_axes_at(list, n))) {
    n++;
  }
  return cx_spmd_axes_first(list, n);
}

cx_hlo_value *cx_spmd_combine(cx_spmd_state *s, cx_hlo_op_kind combine,
                              cx_hlo_value *v, cx_spmd_axes axes,
                              cx_spmd_sharding *now, const cx_spmd_axes *want)
{
  for (size_t d = 0; d < now->rank && v != NULL; d++) {
    const size_t n = cx_spmd_axes_count(now->dims[d]);
    if (cx_spmd_axes_common(now->dims[d], want[d]) != n) continue;
    const cx_spmd_axes more = first_in(cx_spmd_axes_from(want[d], n), axes);
    if (!cx_spmd_fits(&s->mesh, cx_hlo_value_type(v)->dims[d], more)) continue;
    if (more == 0) continue;
    const cx_hlo_groups g = groups_of(s, more);
    v = with_channel(s,
                     cx_hlo_reduce_scatter(&s->b, combine, v, (int64_t)d, &g));
    now->dims[d] = cx_spmd_axes_join(now->dims[d], more);
    axes = cx_spmd_axes_without(axes, more);
  }
  if (axes == 0) return v;
  const cx_hlo_groups g = groups_of(s, axes);
  return with_channel(s, cx_hlo_all_reduce(&s->b, combine, v, &g));
}

cx_hlo_value *cx_spmd_broadcast(cx_spmd_state *s, cx_hlo_value *v,
                                int64_t partition)
{
  const size_t n = s->n_partitions;
  int64_t *ids = CX_ARENA_ARRAY(&s->arena, int64_t, n);
  cx_hlo_op *op =
      cx_hlo_build_begin(&s->b, CX_HLO_OP_COLLECTIVE_BROADCAST, &v, 1, 1, 0);
  if (ids == NULL) cx_hlo_builder_fail(&s->b, cx_out_of_memory());
  if (ids == NULL || op == NULL) return NULL;
  for (size_t i = 0; i < n; i++) ids[i] = (int64_t)i;
  ids[0] = partition;  // the group's first one gives
  ids[partition] = 0;
  cx_hlo_build_attr(&s->b, op, CX_HLO_A_REPLICA_GROUPS,
                    cx_hlo_attr_matrix(s->b.module, ids, 1, n));
  return with_channel(s, cx_hlo_build_end(&s->b, op));
}

static cx_hlo_value *gather(cx_spmd_state *s, cx_hlo_value *v, size_t d,
                            cx_spmd_axes axes)
{
  const cx_hlo_groups g = groups_of(s, axes);
  return with_channel(s, cx_hlo_all_gather(&s->b, v, (int64_t)d, &g));
}

static cx_hlo_value *exchange(cx_spmd_state *s, cx_hlo_value *v, size_t split,
                              size_t join, cx_spmd_axes axes)
{
  const cx_hlo_groups g = groups_of(s, axes);
  return with_channel(
      s, cx_hlo_all_to_all(&s->b, v, (int64_t)split, (int64_t)join, &g));
}

// ---- a device's own part ----

// An element of a table over the partitions.
cx_hlo_value *cx_spmd_start(cx_spmd_state *s, cx_spmd_axes axes, int64_t size)
{
  const int64_t n = s->mesh.n_devices, one = 1;
  const cx_hlo_type type = { CX_HLO_I64, 1, &n };
  int64_t *table = CX_ARENA_ARRAY(&s->arena, int64_t, (size_t)n);
  if (table == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return NULL;
  }
  for (int64_t p = 0; p < n; p++) {
    table[s->mesh.ids[p]] = size * cx_spmd_part_at(&s->mesh, axes, p);
  }
  cx_hlo_value *t =
      cx_hlo_constant(&s->b, type, table, (size_t)n * sizeof *table);
  cx_hlo_value *id = cx_hlo_build_end(
      &s->b, cx_hlo_build_begin(&s->b, CX_HLO_OP_PARTITION_ID, NULL, 0, 1, 0));
  return cx_hlo_reshape(&s->b, cx_hlo_dynamic_slice(&s->b, t, &id, &one), NULL,
                        0);
}

static cx_hlo_value *cut(cx_spmd_state *s, cx_hlo_value *v, size_t d,
                         cx_spmd_axes axes)
{
  const cx_hlo_type *t = cx_hlo_value_type(v);
  const cx_hlo_type scalar = { CX_HLO_I64, 0, NULL };
  if (v == NULL) return NULL;
  int64_t *sizes = CX_ARENA_ARRAY(&s->arena, int64_t, t->rank);
  cx_hlo_value **starts = CX_ARENA_ARRAY(&s->arena, cx_hlo_value *, t->rank);
  if (sizes == NULL || starts == NULL) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return NULL;
  }
  cx_hlo_value *zero = cx_hlo_splat_int(&s->b, scalar, 0);
  for (size_t i = 0; i < t->rank; i++) {
    starts[i] = zero;
    sizes[i] = t->dims[i];
  }
  sizes[d] /= cx_spmd_parts(&s->mesh, axes);
  starts[d] = cx_spmd_start(s, axes, sizes[d]);
  return cx_hlo_dynamic_slice(&s->b, v, starts, sizes);
}

// ---- the steps ----

static bool uses_any(const cx_spmd_sharding *now, cx_spmd_axes axes)
{
  for (size_t d = 0; d < now->rank; d++) {
    if (cx_spmd_axes_overlap(now->dims[d], axes)) return true;
  }
  return false;
}

// Cuts the dimensions whose axes are free: devices along them have the same.
static cx_hlo_value *cut_free(cx_spmd_state *s, cx_hlo_value *v,
                              cx_spmd_sharding *now, const cx_spmd_axes *to)
{
  for (size_t d = 0; d < now->rank; d++) {
    const size_t n = cx_spmd_axes_count(now->dims[d]);
    const cx_spmd_axes more = cx_spmd_axes_from(to[d], n);
    if (cx_spmd_axes_common(now->dims[d], to[d]) != n || more == 0 ||
        uses_any(now, more)) {
      continue;
    }
    v = cut(s, v, d, more);
    now->dims[d] = to[d];
  }
  return v;
}

// Axes that move from the end of one dimension's list to that of another.
static cx_hlo_value *move_axes(cx_spmd_state *s, cx_hlo_value *v,
                               cx_spmd_sharding *now, const cx_spmd_axes *to)
{
  for (size_t i = 0; i < now->rank && v != NULL; i++) {
    const size_t n = cx_spmd_axes_common(now->dims[i], to[i]);
    const cx_spmd_axes moved = cx_spmd_axes_from(now->dims[i], n);
    for (size_t j = 0; moved != 0 && j < now->rank; j++) {
      const cx_spmd_axes all = cx_spmd_axes_join(now->dims[j], moved);
      if (j == i ||
          cx_spmd_axes_common(all, to[j]) != cx_spmd_axes_count(all)) {
        continue;
      }
      v = exchange(s, v, j, i, moved);
      now->dims[j] = all;
      now->dims[i] = cx_spmd_axes_first(now->dims[i], n);
      break;
    }
  }
  return v;
}

// The sum over the devices along the axes is v: the first one has it, the
// others zeros.
static cx_hlo_value *leave_to_first(cx_spmd_state *s, cx_hlo_value *v,
                                    cx_spmd_axes axes)
{
  const cx_hlo_type scalar = { CX_HLO_I64, 0, NULL };
  if (v == NULL || axes == 0) return v;
  cx_hlo_value *is_first =
      cx_hlo_compare(&s->b, CX_HLO_EQ, cx_spmd_start(s, axes, 1),
                     cx_hlo_splat_int(&s->b, scalar, 0));
  return cx_hlo_select(&s->b, is_first, v,
                       cx_hlo_splat(&s->b, *cx_hlo_value_type(v), 0));
}

cx_hlo_value *cx_spmd_reshard(cx_spmd_state *s, cx_hlo_value *v,
                              const cx_spmd_sharding *from,
                              const cx_spmd_sharding *to)
{
  const cx_spmd_axes kept = cx_spmd_axes_in(from->unreduced, to->unreduced);
  const cx_spmd_axes added = cx_spmd_axes_without(from->unreduced, kept);
  cx_spmd_sharding now;
  if (v == NULL || (from->rank == 0 && from->unreduced == to->unreduced)) {
    return v;
  }
  if (!cx_spmd_sharding_new(&s->arena, from->rank, false, &now)) {
    cx_hlo_builder_fail(&s->b, cx_out_of_memory());
    return NULL;
  }
  memcpy(now.dims, from->dims, from->rank * sizeof *now.dims);
  if (added != 0) {
    v = cx_spmd_combine(s, CX_HLO_OP_ADD, v, added, &now, to->dims);
  }
  v = move_axes(s, v, &now, to->dims);
  v = cut_free(s, v, &now, to->dims);
  for (size_t d = 0; d < now.rank; d++) {
    const size_t n = cx_spmd_axes_common(now.dims[d], to->dims[d]);
    const cx_spmd_axes rest = cx_spmd_axes_from(now.dims[d], n);
    if (rest != 0) v = gather(s, v, d, rest);
    now.dims[d] = cx_spmd_axes_first(now.dims[d], n);
  }
  v = cut_free(s, v, &now, to->dims);
  return leave_to_first(s, v, cx_spmd_axes_without(to->unreduced, kept));
}
