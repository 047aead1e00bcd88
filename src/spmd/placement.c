// spmd/placement: see placement.h.
#include "spmd/placement.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

static struct {
  cx_mutex lock;
  cx_spmd_mesh **meshes;
  size_t n_meshes, meshes_capacity;
  cx_spmd_placement **placements;
  size_t n, capacity;
} kept = { .lock = CX_MUTEX_INIT };

// ---- meshes ----

// The block has the record, the ids, the names.
cx_spmd_mesh *cx_spmd_mesh_copy(const cx_spmd_mesh *mesh)
{
  const size_t ids = (size_t)mesh->n_devices * sizeof *mesh->ids;
  size_t bytes = sizeof *mesh + ids;
  for (size_t i = 0; i < mesh->n_axes; i++) bytes += mesh->names[i].n;
  cx_spmd_mesh *copy = cx_alloc(bytes);
  if (copy == NULL) return NULL;
  int64_t *copied_ids = (int64_t *)(void *)(copy + 1);
  char *at = (char *)copied_ids + ids;
  memcpy(copied_ids, mesh->ids, ids);
  *copy = *mesh;
  copy->ids = copied_ids;
  copy->named = NULL;
  copy->n_named = 0;
  for (size_t i = 0; i < mesh->n_axes; i++) {
    memcpy(at, mesh->names[i].s, mesh->names[i].n);
    copy->names[i].s = at;
    at += mesh->names[i].n;
  }
  return copy;
}

// Under the lock.
static cx_spmd_mesh *add_mesh(const cx_spmd_mesh *mesh)
{
  if (!cx_grow(&kept.meshes, &kept.meshes_capacity, kept.n_meshes + 1,
               sizeof *kept.meshes)) {
    return NULL;
  }
  cx_spmd_mesh *copy = cx_spmd_mesh_copy(mesh);
  if (copy != NULL) kept.meshes[kept.n_meshes++] = copy;
  return copy;
}

const cx_spmd_mesh *cx_spmd_mesh_keep(const cx_spmd_mesh *mesh)
{
  size_t i = 0;
  cx_lock(&kept.lock);
  while (i < kept.n_meshes && !cx_spmd_mesh_same(kept.meshes[i], mesh)) i++;
  const cx_spmd_mesh *found =
      i < kept.n_meshes ? kept.meshes[i] : add_mesh(mesh);
  cx_unlock(&kept.lock);
  return found;
}

const cx_spmd_mesh *cx_spmd_mesh_of_all(size_t n_devices)
{
  int64_t *ids = cx_alloc(n_devices * sizeof *ids);
  if (ids == NULL) return NULL;
  for (size_t i = 0; i < n_devices; i++) ids[i] = (int64_t)i;
  const cx_spmd_mesh mesh = { .n_axes = 1,
                              .names = { { "devices", 7 } },
                              .sizes = { (int64_t)n_devices },
                              .n_devices = (int64_t)n_devices,
                              .ids = ids };
  const cx_spmd_mesh *found = cx_spmd_mesh_keep(&mesh);
  cx_free(ids);
  return found;
}

// ---- placements ----

static cx_spmd_placement *find(const cx_spmd_placement *like)
{
  for (size_t i = 0; i < kept.n; i++) {
    cx_spmd_placement *p = kept.placements[i];
    if (p->mesh == like->mesh && p->rank == like->rank &&
        memcmp(p->dims, like->dims, sizeof p->dims) == 0) {
      return p;
    }
  }
  return NULL;
}

static cx_spmd_placement *add(const cx_spmd_placement *like)
{
  if (!cx_grow(&kept.placements, &kept.capacity, kept.n + 1,
               sizeof *kept.placements)) {
    return NULL;
  }
  cx_spmd_placement *p = cx_alloc(sizeof *p);
  if (p == NULL) return NULL;
  *p = *like;
  kept.placements[kept.n++] = p;
  p->number = (uint32_t)kept.n;
  return p;
}

const cx_spmd_placement *cx_spmd_placement_of(const cx_spmd_mesh *mesh,
                                              const cx_spmd_axes *dims,
                                              size_t rank)
{
  cx_spmd_placement like = { .mesh = mesh, .rank = (uint32_t)rank };
  for (size_t d = 0; d < rank; d++) like.dims[d] = dims[d];
  cx_lock(&kept.lock);
  cx_spmd_placement *p = find(&like);
  if (p == NULL) p = add(&like);
  cx_unlock(&kept.lock);
  return p;
}

const cx_spmd_placement *cx_spmd_placement_at(uint32_t number)
{
  cx_lock(&kept.lock);
  const cx_spmd_placement *p =
      number >= 1 && number <= kept.n ? kept.placements[number - 1] : NULL;
  cx_unlock(&kept.lock);
  return p;
}

void cx_spmd_placements_free(void)
{
  cx_lock(&kept.lock);
  for (size_t i = 0; i < kept.n; i++) cx_free(kept.placements[i]);
  for (size_t i = 0; i < kept.n_meshes; i++) cx_free(kept.meshes[i]);
  cx_free(kept.placements);
  cx_free(kept.meshes);
  kept.placements = NULL;
  kept.meshes = NULL;
  kept.n = kept.capacity = kept.n_meshes = kept.meshes_capacity = 0;
  cx_unlock(&kept.lock);
}

const cx_spmd_placement *cx_spmd_split(const cx_spmd_placement *p)
{
  for (uint32_t d = 0; p != NULL && d < p->rank; d++) {
    if (p->dims[d] != 0) return p;
  }
  return NULL;
}

void cx_spmd_shard(const cx_spmd_placement *p, const int64_t *dims,
                   size_t device, int64_t *out_dims, int64_t *out_start)
{
  int64_t position = 0;
  while (p->mesh->ids[position] != (int64_t)device) position++;
  for (uint32_t d = 0; d < p->rank; d++) {
    out_dims[d] = dims[d] / cx_spmd_parts(p->mesh, p->dims[d]);
    out_start[d] = out_dims[d] * cx_spmd_part_at(p->mesh, p->dims[d], position);
  }
}

// ---- texts ----

static void print_axes(const cx_spmd_mesh *mesh, cx_text *out)
{
  for (size_t i = 0; i < mesh->n_axes; i++) {
    cx_text_format(out, "%s\"%.*s\"=%" PRId64, i == 0 ? "" : ", ",
                   (int)mesh->names[i].n, mesh->names[i].s, mesh->sizes[i]);
  }
}

void cx_spmd_mesh_print(const cx_spmd_mesh *mesh, cx_text *out)
{
  cx_text_char(out, '{');
  print_axes(mesh, out);
  cx_text_char(out, '}');
}

void cx_spmd_mesh_attr(const cx_spmd_mesh *mesh, cx_text *out)
{
  bool in_order = true;
  cx_text_append(out, "#sdy.mesh<[");
  print_axes(mesh, out);
  cx_text_char(out, ']');
  for (int64_t i = 0; i < mesh->n_devices; i++) in_order &= mesh->ids[i] == i;
  for (int64_t i = 0; i < mesh->n_devices && !in_order; i++) {
    cx_text_format(out, "%s%" PRId64, i == 0 ? ", device_ids=[" : ", ",
                   mesh->ids[i]);
  }
  cx_text_append(out, in_order ? ">" : "]>");
}

void cx_spmd_placement_attr(const cx_spmd_placement *p, cx_text *out)
{
  cx_text_append(out, "#sdy.sharding<@mesh, [");
  for (uint32_t d = 0; d < p->rank; d++) {
    cx_text_append(out, d == 0 ? "{" : ", {");
    for (size_t i = 0; i < cx_spmd_axes_count(p->dims[d]); i++) {
      const cx_hlo_str name = p->mesh->names[cx_spmd_axes_at(p->dims[d], i)];
      cx_text_format(out, "%s\"%.*s\"", i == 0 ? "" : ", ", (int)name.n,
                     name.s);
    }
    cx_text_char(out, '}');
  }
  cx_text_append(out, "]>");
}

// The axes that split no dimension, of more than one device.
static cx_spmd_axes unused_axes(const cx_spmd_placement *p)
{
  cx_spmd_axes used = 0, rest = 0;
  for (uint32_t d = 0; d < p->rank; d++) {
    used = cx_spmd_axes_join(used, p->dims[d]);
  }
  for (size_t i = 0; i < p->mesh->n_axes; i++) {
    if (p->mesh->sizes[i] > 1 && !cx_spmd_axes_have(used, i)) {
      rest = cx_spmd_axes_join(rest, (cx_spmd_axes)i + 1);
    }
  }
  return rest;
}

void cx_spmd_placement_print(const cx_spmd_placement *p, cx_text *out)
{
  if (cx_spmd_split(p) == NULL) {
    cx_text_append(out, "{replicated}");
    return;
  }
  const cx_spmd_axes rest = unused_axes(p);
  cx_spmd_axes all = 0;
  int64_t *ids = cx_alloc((size_t)p->mesh->n_devices * sizeof *ids);
  if (ids == NULL) {
    out->failed = true;
    return;
  }
  cx_text_append(out, "{devices=[");
  for (uint32_t d = 0; d < p->rank; d++) {
    cx_text_format(out, "%s%" PRId64, d == 0 ? "" : ",",
                   cx_spmd_parts(p->mesh, p->dims[d]));
    all = cx_spmd_axes_join(all, p->dims[d]);
  }
  if (rest != 0) cx_text_format(out, ",%" PRId64, cx_spmd_parts(p->mesh, rest));
  cx_text_char(out, ']');
  // The order of the tiles, the last dimension of which are the copies.
  cx_spmd_groups(p->mesh, cx_spmd_axes_join(all, rest), ids);
  for (int64_t i = 0; i < p->mesh->n_devices; i++) {
    cx_text_format(out, "%s%" PRId64, i == 0 ? "" : ",", ids[i]);
  }
  cx_text_append(out, rest != 0 ? " last_tile_dim_replicate}" : "}");
  cx_free(ids);
}
