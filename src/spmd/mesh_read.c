// spmd/mesh_read: the meshes of a program as one.
//
// A program has several meshes where it calls an exported function that has one
// of its own. The one mesh has axes so fine that each axis of each mesh is a
// run of them: of ["x"=8] and ["a"=2, "b"=4] they have 2 and 4 devices, "a" is
// the first, "b" the second, and "x" is both.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hlo/scan.h"
#include "spmd/sharding.h"

enum { MOST_MESHES = 64, MOST_ENDS = CX_SPMD_MOST_AXES + 1 };

typedef struct meshes {
  size_t n;
  cx_hlo_str symbols[MOST_MESHES];
  cx_spmd_mesh all[MOST_MESHES];
  const cx_spmd_mesh *first;  // of more than one device; NULL: there is none
  bool differ;                // those of more than one device
} meshes;

// ---- the text ----

// '[' (string '=' integer (',' …)*)? ']'
static calx_status *read_axes(cx_hlo_scan *s, cx_arena *arena,
                              cx_spmd_mesh *out)
{
  CALX_TRY(cx_hlo_scan_need(s, "["));
  while (!cx_hlo_scan_accept(s, "]")) {
    cx_hlo_str name;
    int64_t size = 0;
    const char *at = cx_hlo_scan_here(s);
    CALX_TRY(cx_hlo_scan_string(s, arena, &name));
    CALX_TRY(cx_hlo_scan_need(s, "="));
    CALX_TRY(cx_hlo_scan_int(s, &size));
    if (size < 1 || size > CX_SPMD_MOST_DEVICES / out->n_devices) {
      return cx_hlo_scan_fail(s, at, CALX_INVALID_ARGUMENT,
                              "a mesh has 1 to %d devices",
                              CX_SPMD_MOST_DEVICES);
    }
    if (out->n_axes == CX_SPMD_MOST_AXES) {
      return cx_hlo_scan_fail(s, at, CALX_UNIMPLEMENTED,
                              "more than %d axes of a mesh", CX_SPMD_MOST_AXES);
    }
    out->names[out->n_axes] = name;
    out->sizes[out->n_axes++] = size;
    out->n_devices *= size;
    if (!cx_hlo_scan_sees(s, "]")) CALX_TRY(cx_hlo_scan_need(s, ","));
  }
  return NULL;
}

// (',' 'device_ids' '=' '[' integer (',' integer)* ']')?: each partition once
static calx_status *read_ids(cx_hlo_scan *s, cx_arena *arena, cx_spmd_mesh *out)
{
  const size_t n = (size_t)out->n_devices;
  int64_t *ids = CX_ARENA_ARRAY(arena, int64_t, n);
  bool *seen = CX_ARENA_ARRAY(arena, bool, n);
  if (ids == NULL || seen == NULL) return cx_out_of_memory();
  const bool given = cx_hlo_scan_accept(s, ",");
  if (given) {
    if (!cx_hlo_scan_accept_word(s, "device_ids")) {
      return cx_hlo_scan_expected(s, "'device_ids'");
    }
    CALX_TRY(cx_hlo_scan_need(s, "="));
    CALX_TRY(cx_hlo_scan_need(s, "["));
  }
  for (size_t i = 0; i < n; i++) {
    ids[i] = (int64_t)i;
    if (!given) continue;
    const char *at = cx_hlo_scan_here(s);
    if (i > 0) CALX_TRY(cx_hlo_scan_need(s, ","));
    CALX_TRY(cx_hlo_scan_int(s, &ids[i]));
    if (n > 1 && (ids[i] < 0 || ids[i] >= (int64_t)n || seen[ids[i]])) {
      return cx_hlo_scan_fail(s, at, CALX_INVALID_ARGUMENT,
                              "device_ids must have each of 0 to %zu once",
                              n - 1);
    }
    if (n > 1) seen[ids[i]] = true;
  }
  out->ids = ids;
  return given ? cx_hlo_scan_need(s, "]") : NULL;
}

static calx_status *read_mesh(const cx_hlo_op *op, cx_arena *arena,
                              cx_spmd_mesh *out)
{
  cx_hlo_str text = { NULL, 0 };
  CALX_TRY(cx_spmd_text_of(cx_hlo_named_attr(op->extra, op->n_extra, "mesh"),
                           "the mesh", &text));
  cx_hlo_scan s = { text.s, text.s, text.s + text.n, "sdy attribute", false };
  *out = (cx_spmd_mesh){ .n_devices = 1 };
  CALX_TRY(cx_hlo_scan_need(&s, "#sdy.mesh"));
  CALX_TRY(cx_hlo_scan_need(&s, "<"));
  CALX_TRY(read_axes(&s, arena, out));
  CALX_TRY(read_ids(&s, arena, out));
  return cx_hlo_scan_need(&s, ">");
}

// ---- which there are ----

static calx_status *check_mesh(const meshes *all, const cx_spmd_mesh *mesh,
                               uint32_t n_partitions)
{
  if (mesh->n_devices != (int64_t)n_partitions) {
    return cx_invalid("sdy: a mesh of %" PRId64
                      " devices in a program of %u partitions",
                      mesh->n_devices, n_partitions);
  }
  if (all->first == NULL || memcmp(all->first->ids, mesh->ids,
                                   n_partitions * sizeof *mesh->ids) == 0) {
    return NULL;
  }
  return cx_error(CALX_UNIMPLEMENTED,
                  "sdy: two meshes with the devices in different orders");
}

// Meshes without axes, which name one device, are left out.
static calx_status *read_all(const cx_hlo_module *m, cx_arena *arena,
                             uint32_t n_partitions, meshes *out)
{
  for (const cx_hlo_op *op = m->others.first; op != NULL; op = op->next) {
    if (!cx_hlo_str_equal(op->name, "sdy.mesh")) continue;
    if (out->n == MOST_MESHES) {
      return cx_error(CALX_UNIMPLEMENTED, "sdy: more than %d meshes",
                      MOST_MESHES);
    }
    cx_spmd_mesh *mesh = &out->all[out->n];
    CALX_TRY(read_mesh(op, arena, mesh));
    if (mesh->n_axes == 0) continue;
    const cx_hlo_attr *symbol =
        cx_hlo_named_attr(op->extra, op->n_extra, "sym_name");
    if (symbol != NULL && symbol->kind == CX_HLO_ATTR_STRING) {
      out->symbols[out->n] = symbol->as.text;
    }
    out->n++;
    if (mesh->n_devices == 1 && n_partitions != 1) continue;
    CALX_TRY(check_mesh(out, mesh, n_partitions));
    if (out->first == NULL) {
      out->first = mesh;
    } else if (!cx_spmd_mesh_same(out->first, mesh)) {
      out->differ = true;
    }
  }
  return NULL;
}

// ---- one mesh ----

// For each number of leading axes of each mesh the product of their sizes, all
// of them once and in rising order; ends[0] is 1. False: there are too many, or
// one does not divide the next.
static bool find_ends(const meshes *all, int64_t *ends, size_t *n)
{
  ends[0] = 1;
  *n = 1;
  for (size_t i = 0; i < all->n; i++) {
    int64_t end = 1;
    for (size_t k = 0; k < all->all[i].n_axes; k++) {
      size_t at = 0;
      end *= all->all[i].sizes[k];
      while (at < *n && ends[at] < end) at++;
      if (at < *n && ends[at] == end) continue;
      if (*n == MOST_ENDS) return false;
      memmove(&ends[at + 1], &ends[at], (*n - at) * sizeof *ends);
      ends[at] = end;
      ++*n;
    }
  }
  for (size_t i = 1; i < *n; i++) {
    if (ends[i] % ends[i - 1] != 0) return false;
  }
  return true;
}

// Axes between neighbouring ends, named by their numbers.
static calx_status *refine(const meshes *all, cx_arena *arena,
                           cx_spmd_mesh *out)
{
  int64_t ends[MOST_ENDS];
  size_t n = 0;
  if (!find_ends(all, ends, &n)) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "sdy: meshes whose axes are not runs of the same axes");
  }
  out->n_axes = n - 1;
  for (size_t i = 0; i + 1 < n; i++) {
    char *name = CX_ARENA_ARRAY(arena, char, 24);
    if (name == NULL) return cx_out_of_memory();
    out->sizes[i] = ends[i + 1] / ends[i];
    out->names[i] = (cx_hlo_str){ name, (size_t)snprintf(name, 24, "%zu", i) };
  }
  return NULL;
}

// An axis of this size, as a run of the axes of `of`; `begin` is the product of
// the sizes of the axes before it.
static cx_spmd_axis run_of(const cx_spmd_mesh *of, int64_t begin, int64_t size)
{
  cx_spmd_axis run = { .first = 0 };
  int64_t end = 1;
  for (size_t i = 0; i < of->n_axes && end < begin * size; i++) {
    if (end < begin) {
      run.first = i + 1;
    } else if (of->sizes[i] > 1) {
      if (run.n == 0) run.first = i;
      run.n++;
    }
    end *= of->sizes[i];
  }
  return run;
}

static calx_status *name_runs(const meshes *all, cx_arena *arena,
                              cx_spmd_mesh *out)
{
  size_t n = 0;
  for (size_t i = 0; i < all->n; i++) n += all->all[i].n_axes;
  cx_spmd_axis *named = CX_ARENA_ARRAY(arena, cx_spmd_axis, n + 1);
  if (named == NULL) return cx_out_of_memory();
  out->named = named;
  out->n_named = n;
  for (size_t i = 0; i < all->n; i++) {
    int64_t begin = 1;
    for (size_t k = 0; k < all->all[i].n_axes; k++) {
      const int64_t size = all->all[i].sizes[k];
      *named = run_of(out, begin, size);
      named->mesh = all->symbols[i];
      named->name = all->all[i].names[k];
      named++;
      begin *= size;
    }
  }
  return NULL;
}

calx_status *cx_spmd_read_meshes(const cx_hlo_module *m, cx_arena *arena,
                                 uint32_t n_partitions, cx_spmd_mesh *out)
{
  static const int64_t only = 0;
  meshes *all = CX_ARENA_ARRAY(arena, meshes, 1);
  if (all == NULL) return cx_out_of_memory();
  memset(all, 0, sizeof *all);
  *out = (cx_spmd_mesh){ .n_devices = 1, .ids = &only };
  CALX_TRY(read_all(m, arena, n_partitions, all));
  if (all->first != NULL) *out = *all->first;
  if (all->differ) CALX_TRY(refine(all, arena, out));
  return name_runs(all, arena, out);
}
