#include "spmd/write.h"

#include <string.h>

enum {
  REPLICATED = 0,
  OTHER = 3,
  FIELD_TYPE = 1,
  FIELD_DIMENSIONS = 3,
  FIELD_DEVICES = 4,
  FIELD_LAST_IS_REPLICATED = 6
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

// The tiles' devices: dimensions as of the tensor, then one for the copies.
static void put_tiles(const cx_spmd_mesh *mesh, cx_arena *arena,
                      const cx_spmd_sharding *s, cx_text *out)
{
  cx_spmd_axes all = 0, rest = 0;
  for (size_t d = 0; d < s->rank; d++) {
    put_field(out, FIELD_DIMENSIONS, (uint64_t)cx_spmd_parts(mesh, s->dims[d]));
    all = cx_spmd_axes_join(all, s->dims[d]);
  }
  for (size_t i = 0; i < mesh->n_axes; i++) {
    if (mesh->sizes[i] > 1 && !cx_spmd_axes_have(all, i)) {
      rest = cx_spmd_axes_join(rest, (cx_spmd_axes)i + 1);
    }
  }
  if (rest != 0) {
    put_field(out, FIELD_DIMENSIONS, (uint64_t)cx_spmd_parts(mesh, rest));
    put_field(out, FIELD_LAST_IS_REPLICATED, 1);
  }
  all = cx_spmd_axes_join(all, rest);
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

void cx_spmd_write(const cx_spmd_mesh *mesh, cx_arena *arena,
                   const cx_spmd_sharding *s, cx_text *out)
{
  const size_t start = out->size;
  bool whole = true;
  for (size_t d = 0; d < s->rank; d++) whole = whole && s->dims[d] == 0;
  cx_text_append_n(out, "\0\0\0", 4);
  put_field(out, FIELD_TYPE, whole ? REPLICATED : OTHER);
  if (!whole) put_tiles(mesh, arena, s, out);
  if (out->size < start + 4) return;  // there was no memory
  const size_t n = out->size - start - 4;
  for (int i = 0; i < 4; i++) out->data[start + (size_t)i] = (char)(n >> 8 * i);
}
