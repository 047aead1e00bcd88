#include "spmd/write.h"

#include "hlo/build_op.h"
#include "spmd/spmd.h"

enum {
  REPLICATED = 0,
  TUPLE = 2,
  OTHER = 3,
  UNREDUCED = 6,
  FIELD_TYPE = 1,
  FIELD_DIMENSIONS = 3,
  FIELD_DEVICES = 4,
  FIELD_TUPLE = 5,
  FIELD_LAST_IS_REPLICATED = 6,
  FIELD_LAST_TYPES = 8
};

static void put_varint(cx_text *out, uint64_t v)
{
  for (; v > 127; v >>= 7) cx_text_char(out, (char)((v & 127) | 128));
  cx_text_char(out, (char)v);
}

static void put_field(cx_text *out, uint64_t field, uint64_t v)
{
  put_varint(out, field << 3);
  put_varint(out, v);
}

// In the order of the mesh.
static cx_spmd_axes sorted(const cx_spmd_mesh *mesh, cx_spmd_axes axes)
{
  cx_spmd_axes all = 0;
  for (size_t i = 0; i < mesh->n_axes; i++) {
    if (cx_spmd_axes_have(axes, i)) {
      all = cx_spmd_axes_join(all, (cx_spmd_axes)i + 1);
    }
  }
  return all;
}

// The axes that neither split a dimension nor are unreduced.
static cx_spmd_axes others(const cx_spmd_mesh *mesh, const cx_spmd_sharding *s)
{
  cx_spmd_axes rest = 0;
  for (size_t i = 0; i < mesh->n_axes; i++) {
    if (mesh->sizes[i] > 1 && !cx_spmd_uses(s, i)) {
      rest = cx_spmd_axes_join(rest, (cx_spmd_axes)i + 1);
    }
  }
  return rest;
}

// The last dimensions of the tiles: of parts of a sum, then of copies.
static void put_last(const cx_spmd_mesh *mesh, cx_spmd_axes unreduced,
                     cx_spmd_axes copies, cx_text *out)
{
  const cx_spmd_axes lists[] = { unreduced, copies };
  for (int i = 0; i < 2; i++) {
    if (lists[i] == 0) continue;
    put_field(out, FIELD_DIMENSIONS, (uint64_t)cx_spmd_parts(mesh, lists[i]));
  }
  if (unreduced != 0) {
    put_field(out, FIELD_LAST_TYPES, UNREDUCED);
    if (copies != 0) put_field(out, FIELD_LAST_TYPES, REPLICATED);
  } else if (copies != 0) {
    put_field(out, FIELD_LAST_IS_REPLICATED, 1);
  }
}

// The tiles' devices: dimensions as of the tensor, then the last ones.
static void put_tiles(const cx_spmd_mesh *mesh, cx_arena *arena,
                      const cx_spmd_sharding *s, cx_text *out)
{
  const cx_spmd_axes unreduced = sorted(mesh, s->unreduced);
  const cx_spmd_axes copies = others(mesh, s);
  cx_spmd_axes all = 0;
  for (size_t d = 0; d < s->rank; d++) {
    put_field(out, FIELD_DIMENSIONS, (uint64_t)cx_spmd_parts(mesh, s->dims[d]));
    all = cx_spmd_axes_join(all, s->dims[d]);
  }
  put_last(mesh, unreduced, copies, out);
  all = cx_spmd_axes_join(cx_spmd_axes_join(all, unreduced), copies);
  const size_t n = (size_t)mesh->n_devices;
  int64_t *ids = CX_ARENA_ARRAY(arena, int64_t, n);
  if (ids == NULL) {
    out->failed = true;
    return;
  }
  // The tiles are the parts that all axes make: one group has every device.
  cx_spmd_groups(mesh, all, ids);
  for (size_t i = 0; i < n; i++) {
    put_field(out, FIELD_DEVICES, (uint64_t)ids[i]);
  }
}

void cx_spmd_write_whole(size_t n, cx_text *out)
{
  static const cx_spmd_mesh none = { 0 };
  const cx_spmd_sharding whole = { 0 };
  for (size_t i = 0; i < n; i++) cx_spmd_write(&none, NULL, &whole, out);
}

void cx_spmd_write(const cx_spmd_mesh *mesh, cx_arena *arena,
                   const cx_spmd_sharding *s, cx_text *out)
{
  const size_t start = out->size;
  bool whole = true;
  for (size_t d = 0; d < s->rank; d++) whole = whole && s->dims[d] == 0;
  cx_text_append_n(out, "\0\0\0", 4);
  const bool all_added = whole && s->unreduced != 0 && others(mesh, s) == 0;
  whole = whole && s->unreduced == 0;
  put_field(out, FIELD_TYPE,
            whole       ? REPLICATED
            : all_added ? UNREDUCED
                        : OTHER);
  if (!whole && !all_added) put_tiles(mesh, arena, s, out);
  if (out->size < start + 4) return;  // there was no memory
  const size_t n = out->size - start - 4;
  for (int i = 0; i < 4; i++) out->data[start + (size_t)i] = (char)(n >> 8 * i);
}

bool cx_spmd_next_written(const cx_text *text, size_t *at, cx_hlo_str *out)
{
  const size_t left = text->size - *at;
  if (left < 4) return false;
  const unsigned char *start = (const unsigned char *)text->data + *at;
  size_t n = 0;
  for (int i = 0; i < 4; i++) n |= (size_t)start[i] << 8 * i;
  if (left - 4 < n) return false;
  *out = (cx_hlo_str){ (const char *)start + 4, n };
  *at += 4 + n;
  return true;
}

// ---- as attributes of a module ----

static const cx_hlo_attr *string_attr(cx_hlo_module *m, cx_hlo_str s)
{
  return cx_hlo_attr_text(m, CX_HLO_ATTR_STRING, s.s, s.n);
}

// The sharding of the results, which are a tuple unless there is one.
static const cx_hlo_attr *output_attr(cx_hlo_module *m, const cx_text *text,
                                      size_t *at, size_t n)
{
  cx_hlo_str one = { "", 0 };
  if (n == 1) {
    return cx_spmd_next_written(text, at, &one) ? string_attr(m, one) : NULL;
  }
  cx_text tuple = { 0 };
  put_field(&tuple, FIELD_TYPE, TUPLE);
  for (size_t i = 0; i < n && cx_spmd_next_written(text, at, &one); i++) {
    put_varint(&tuple, FIELD_TUPLE << 3 | 2);
    put_varint(&tuple, one.n);
    cx_text_append_n(&tuple, one.s, one.n);
  }
  const cx_hlo_str whole = { tuple.data, tuple.size };
  const cx_hlo_attr *attr =
      cx_text_failed(&tuple) ? NULL : string_attr(m, whole);
  cx_text_free(&tuple);
  return attr;
}

static const cx_hlo_attr *params_attr(cx_hlo_module *m, const cx_text *text,
                                      size_t *at, size_t n)
{
  cx_hlo_attr *list = cx_hlo_attr_new(m, CX_HLO_ATTR_LIST);
  const cx_hlo_attr **items =
      CX_ARENA_ARRAY(&m->arena, const cx_hlo_attr *, n + 1);
  if (list == NULL || items == NULL) return NULL;
  cx_hlo_str one = { "", 0 };
  for (size_t i = 0; i < n && cx_spmd_next_written(text, at, &one); i++) {
    items[i] = string_attr(m, one);
    if (items[i] == NULL) return NULL;
  }
  list->as.list.items = items;
  list->as.list.n = n;
  return list;
}

// openxla/xla, xla/hlo/translate/mhlo_to_hlo/mlir_hlo_to_hlo.cc, reads them.
calx_status *cx_spmd_attach(cx_hlo_module *m, const cx_text *shardings)
{
  const cx_hlo_func *f = cx_hlo_entry(m);
  if (cx_text_failed(shardings)) return cx_out_of_memory();
  if (f == NULL || shardings->size == 0) return NULL;
  size_t at = 0;
  const cx_hlo_attr *params = params_attr(m, shardings, &at, f->n_params);
  const cx_hlo_attr *output = output_attr(m, shardings, &at, f->n_results);
  const bool done =
      cx_hlo_add_named(m, &m->attrs, "mhlo.spmd_parameters_shardings",
                       params) &&
      cx_hlo_add_named(m, &m->attrs, "mhlo.spmd_output_sharding", output);
  return done ? NULL : cx_out_of_memory();
}
