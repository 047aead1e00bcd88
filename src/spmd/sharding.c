#include "spmd/sharding.h"

#include <inttypes.h>

#include "hlo/scan.h"

typedef struct sdy_reader {
  cx_hlo_scan scan;
  const cx_spmd_mesh *mesh;
  cx_hlo_str mesh_name;  // that the attribute names; empty: none
  cx_arena *arena;
  bool may_shorten;  // axes that do not cut evenly are left out
} sdy_reader;

// ---- shardings ----

bool cx_spmd_sharding_new(cx_arena *arena, size_t rank, bool open,
                          cx_spmd_sharding *out)
{
  out->rank = rank;
  out->unreduced = 0;
  out->dims = CX_ARENA_ARRAY(arena, cx_spmd_axes, rank + 1);
  out->open = CX_ARENA_ARRAY(arena, bool, rank + 1);
  if (out->dims == NULL || out->open == NULL) return false;
  for (size_t d = 0; d < rank; d++) {
    out->dims[d] = 0;
    out->open[d] = open;
  }
  return true;
}

bool cx_spmd_uses(const cx_spmd_sharding *s, size_t axis)
{
  if (cx_spmd_axes_have(s->unreduced, axis)) return true;
  for (size_t d = 0; d < s->rank; d++) {
    if (cx_spmd_axes_have(s->dims[d], axis)) return true;
  }
  return false;
}

bool cx_spmd_fits(const cx_spmd_mesh *mesh, int64_t size, cx_spmd_axes axes)
{
  return axes == 0 || size % cx_spmd_parts(mesh, axes) == 0;
}

// ---- the text of attributes ----

static sdy_reader reader_of(cx_hlo_str text, const cx_spmd_mesh *mesh,
                            cx_arena *arena)
{
  return (sdy_reader){ .scan = { text.s, text.s, text.s + text.n,
                                 "sdy attribute", false },
                       .mesh = mesh,
                       .arena = arena };
}

calx_status *cx_spmd_text_of(const cx_hlo_attr *attr, const char *what,
                             cx_hlo_str *out)
{
  if (attr == NULL || attr->kind != CX_HLO_ATTR_TEXT) {
    return cx_invalid("sdy: %s is missing or no attribute of Shardy", what);
  }
  *out = attr->as.text;
  return NULL;
}

static calx_status *read_sub_axis(sdy_reader *r)
{
  if (!cx_hlo_scan_sees(&r->scan, ":")) return NULL;
  return cx_hlo_scan_fail(&r->scan, r->scan.at, CALX_UNIMPLEMENTED,
                          "a part of an axis; whole axes are supported");
}

// The run that an axis of the attribute's mesh is; of any mesh, where the
// attribute names none.
static calx_status *find_axis(sdy_reader *r, const char *at, cx_hlo_str name,
                              const cx_spmd_axis **out)
{
  *out = NULL;
  for (size_t i = 0; i < r->mesh->n_named; i++) {
    const cx_spmd_axis *a = &r->mesh->named[i];
    if (!cx_hlo_str_same(a->name, name) ||
        (r->mesh_name.n != 0 && !cx_hlo_str_same(a->mesh, r->mesh_name))) {
      continue;
    }
    if (*out != NULL && ((*out)->first != a->first || (*out)->n != a->n)) {
      return cx_hlo_scan_fail(
          &r->scan, at, CALX_UNIMPLEMENTED,
          "the meshes have two axes '%.*s', and none is named", (int)name.n,
          name.s);
    }
    *out = a;
  }
  if (*out != NULL) return NULL;
  return cx_hlo_scan_fail(&r->scan, at, CALX_INVALID_ARGUMENT,
                          "the mesh has no axis '%.*s'", (int)name.n, name.s);
}

// axis ::= string, whose run is added to the list
static calx_status *read_axis(sdy_reader *r, cx_spmd_axes *list)
{
  const char *at = cx_hlo_scan_here(&r->scan);
  const cx_spmd_axis *axis = NULL;
  cx_hlo_str name;
  CALX_TRY(cx_hlo_scan_string(&r->scan, r->arena, &name));
  CALX_TRY(read_sub_axis(r));
  CALX_TRY(find_axis(r, at, name, &axis));
  for (size_t i = axis->first; i < axis->first + axis->n; i++) {
    if (cx_spmd_axes_have(*list, i)) {
      return cx_hlo_scan_fail(&r->scan, at, CALX_INVALID_ARGUMENT,
                              "the axis is there twice");
    }
    *list = cx_spmd_axes_join(*list, (cx_spmd_axes)i + 1);
  }
  return NULL;
}

// dim ::= '{' (axis (',' axis)* (',' '?')? | '?')? '}' ('p' integer)?
static calx_status *read_dim(sdy_reader *r, cx_spmd_axes *axes, bool *open)
{
  cx_hlo_scan *s = &r->scan;
  cx_hlo_str priority;
  *axes = 0;
  *open = false;
  CALX_TRY(cx_hlo_scan_need(s, "{"));
  while (!cx_hlo_scan_accept(s, "}")) {
    if (cx_hlo_scan_accept(s, "?")) {
      *open = true;
    } else {
      CALX_TRY(read_axis(r, axes));
    }
    if (!cx_hlo_scan_sees(s, "}")) CALX_TRY(cx_hlo_scan_need(s, ","));
  }
  if (cx_hlo_scan_peek(s) == 'p') (void)cx_hlo_scan_word(s, &priority);
  return NULL;
}

// '{' (axis (',' axis)*)? '}', whose devices' values are added
static calx_status *read_unreduced(sdy_reader *r, cx_spmd_axes *out)
{
  bool open = false;
  CALX_TRY(cx_hlo_scan_need(&r->scan, "="));
  if (!cx_hlo_scan_sees(&r->scan, "{")) {
    return cx_hlo_scan_fail(&r->scan, r->scan.at, CALX_UNIMPLEMENTED,
                            "unreduced axes of another reduction than a sum");
  }
  return read_dim(r, out, &open);
}

// (',' ('replicated' | 'unreduced') '=' '{' … '}')*
static calx_status *read_rest(sdy_reader *r, cx_spmd_sharding *out)
{
  cx_hlo_scan *s = &r->scan;
  while (cx_hlo_scan_accept(s, ",")) {
    if (cx_hlo_scan_accept_word(s, "unreduced")) {
      CALX_TRY(read_unreduced(r, &out->unreduced));
      continue;
    }
    if (!cx_hlo_scan_accept_word(s, "replicated")) {
      return cx_hlo_scan_expected(s, "'replicated'");
    }
    CALX_TRY(cx_hlo_scan_need(s, "="));
    CALX_TRY(cx_hlo_scan_balanced(s));
  }
  return NULL;
}

static void shorten(const cx_spmd_mesh *mesh, int64_t size, cx_spmd_axes *axes)
{
  while (!cx_spmd_fits(mesh, size, *axes)) {
    *axes = cx_spmd_axes_first(*axes, cx_spmd_axes_count(*axes) - 1);
  }
}

static calx_status *check(const sdy_reader *r, const cx_hlo_any *type,
                          cx_spmd_sharding *out)
{
  cx_spmd_axes all = out->unreduced;
  for (size_t d = 0; d < out->rank; d++) {
    if (cx_spmd_axes_overlap(all, out->dims[d])) {
      return cx_invalid(
          "sdy: an axis splits two dimensions of %s, or one and is unreduced",
          cx_hlo_shape(&type->tensor).s);
    }
    all = cx_spmd_axes_join(all, out->dims[d]);
    if (r->may_shorten) shorten(r->mesh, type->tensor.dims[d], &out->dims[d]);
    if (cx_spmd_fits(r->mesh, type->tensor.dims[d], out->dims[d])) continue;
    return cx_error(CALX_UNIMPLEMENTED,
                    "sdy: dimension %zu of %s is split into %" PRId64
                    " parts, which are not equal",
                    d, cx_hlo_shape(&type->tensor).s,
                    cx_spmd_parts(r->mesh, out->dims[d]));
  }
  return NULL;
}

// sharding ::= '<' ('@' name | 'mesh' '<' … '>') ',' '[' (dim (',' dim)*)? ']'
//              rest '>'
static calx_status *read_sharding(sdy_reader *r, const cx_hlo_any *type,
                                  cx_spmd_sharding *out)
{
  cx_hlo_scan *s = &r->scan;
  const size_t rank = type->non_tensor == NULL ? type->tensor.rank : 0;
  const char *from = cx_hlo_scan_here(s);
  size_t n = 0;
  if (!cx_spmd_sharding_new(r->arena, rank, false, out)) {
    return cx_out_of_memory();
  }
  CALX_TRY(cx_hlo_scan_need(s, "<"));
  if (cx_hlo_scan_accept(s, "@")) {
    if (cx_hlo_scan_peek(s) == '"') {
      CALX_TRY(cx_hlo_scan_string(s, r->arena, &r->mesh_name));
    } else {
      r->mesh_name = cx_hlo_scan_suffix(s);
    }
  } else if (cx_hlo_scan_accept_word(s, "mesh")) {
    CALX_TRY(cx_hlo_scan_balanced(s));
  } else {
    return cx_hlo_scan_expected(s, "a mesh");
  }
  CALX_TRY(cx_hlo_scan_need(s, ","));
  CALX_TRY(cx_hlo_scan_need(s, "["));
  while (!cx_hlo_scan_accept(s, "]")) {
    cx_spmd_axes axes = 0;
    bool open = false;
    CALX_TRY(read_dim(r, &axes, &open));
    if (n < rank) {
      out->dims[n] = axes;
      out->open[n] = open;
    }
    n++;
    if (!cx_hlo_scan_sees(s, "]")) CALX_TRY(cx_hlo_scan_need(s, ","));
  }
  CALX_TRY(read_rest(r, out));
  CALX_TRY(cx_hlo_scan_need(s, ">"));
  if (n != rank) {
    return cx_hlo_scan_fail(s, from, CALX_INVALID_ARGUMENT,
                            "%zu dimensions, the tensor has %zu", n, rank);
  }
  return check(r, type, out);
}

static calx_status *read_one(const cx_spmd_mesh *mesh, cx_arena *arena,
                             const cx_hlo_attr *attr, const cx_hlo_any *type,
                             bool may_shorten, cx_spmd_sharding *out)
{
  cx_hlo_str text = { NULL, 0 };
  CALX_TRY(cx_spmd_text_of(attr, "the sharding", &text));
  sdy_reader r = reader_of(text, mesh, arena);
  r.may_shorten = may_shorten;
  CALX_TRY(cx_hlo_scan_need(&r.scan, "#sdy.sharding"));
  return read_sharding(&r, type, out);
}

calx_status *cx_spmd_read_sharding(const cx_spmd_mesh *mesh, cx_arena *arena,
                                   const cx_hlo_attr *attr,
                                   const cx_hlo_any *type,
                                   cx_spmd_sharding *out)
{
  return read_one(mesh, arena, attr, type, false, out);
}

calx_status *cx_spmd_read_constraint(const cx_spmd_mesh *mesh, cx_arena *arena,
                                     const cx_hlo_attr *attr,
                                     const cx_hlo_any *type,
                                     cx_spmd_sharding *out)
{
  return read_one(mesh, arena, attr, type, true, out);
}

calx_status *cx_spmd_read_list(const cx_spmd_mesh *mesh, cx_arena *arena,
                               const cx_hlo_attr *attr,
                               cx_hlo_value *const *values, size_t n,
                               cx_spmd_sharding *out)
{
  cx_hlo_str text = { NULL, 0 };
  CALX_TRY(cx_spmd_text_of(attr, "the list of shardings", &text));
  sdy_reader r = reader_of(text, mesh, arena);
  CALX_TRY(cx_hlo_scan_need(&r.scan, "#sdy.sharding_per_value"));
  CALX_TRY(cx_hlo_scan_need(&r.scan, "<"));
  CALX_TRY(cx_hlo_scan_need(&r.scan, "["));
  for (size_t i = 0; i < n; i++) {
    if (i > 0) CALX_TRY(cx_hlo_scan_need(&r.scan, ","));
    CALX_TRY(read_sharding(&r, &values[i]->type, &out[i]));
  }
  return cx_hlo_scan_need(&r.scan, "]");
}

calx_status *cx_spmd_read_manual(const cx_spmd_mesh *mesh,
                                 const cx_hlo_attr *attr, cx_spmd_axes *out)
{
  cx_arena arena = { 0 };
  cx_hlo_str text = { NULL, 0 };
  bool open = false;
  CALX_TRY(cx_spmd_text_of(attr, "manual_axes", &text));
  sdy_reader r = reader_of(text, mesh, &arena);
  calx_status *status = cx_hlo_scan_need(&r.scan, "#sdy<manual_axes");
  if (status == NULL) status = read_dim(&r, out, &open);
  cx_arena_free(&arena);
  return status;
}

calx_status *cx_spmd_drop_attr(cx_hlo_module *m, cx_hlo_named_list *list,
                               const char *name)
{
  if (cx_hlo_named_attr(list->items, list->n, name) == NULL) return NULL;
  cx_hlo_named *kept = CX_ARENA_ARRAY(&m->arena, cx_hlo_named, list->n + 1);
  size_t n = 0;
  if (kept == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < list->n; i++) {
    if (!cx_hlo_str_equal(list->items[i].name, name))
      kept[n++] = list->items[i];
  }
  *list = (cx_hlo_named_list){ kept, n };
  return NULL;
}
