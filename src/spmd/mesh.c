#include "spmd/mesh.h"

// ---- lists ----

size_t cx_spmd_axes_count(cx_spmd_axes list)
{
  size_t n = 0;
  for (; list != 0; list >>= 4) n++;
  return n;
}

size_t cx_spmd_axes_at(cx_spmd_axes list, size_t i)
{
  return (size_t)(list >> (4 * i) & 15) - 1;
}

bool cx_spmd_axes_have(cx_spmd_axes list, size_t axis)
{
  for (; list != 0; list >>= 4) {
    if ((list & 15) == axis + 1) return true;
  }
  return false;
}

cx_spmd_axes cx_spmd_axes_first(cx_spmd_axes list, size_t n)
{
  return n >= 16 ? list : list & (((cx_spmd_axes)1 << (4 * n)) - 1);
}

cx_spmd_axes cx_spmd_axes_from(cx_spmd_axes list, size_t n)
{
  return n >= 16 ? 0 : list >> (4 * n);
}

cx_spmd_axes cx_spmd_axes_join(cx_spmd_axes a, cx_spmd_axes b)
{
  const size_t n = cx_spmd_axes_count(a);
  return n >= 16 ? a : a | b << (4 * n);
}

size_t cx_spmd_axes_common(cx_spmd_axes a, cx_spmd_axes b)
{
  size_t n = 0;
  while (a != 0 && (a & 15) == (b & 15)) {
    a >>= 4;
    b >>= 4;
    n++;
  }
  return n;
}

bool cx_spmd_axes_overlap(cx_spmd_axes a, cx_spmd_axes b)
{
  for (; a != 0; a >>= 4) {
    if (cx_spmd_axes_have(b, (size_t)(a & 15) - 1)) return true;
  }
  return false;
}

cx_spmd_axes cx_spmd_axes_in(cx_spmd_axes list, cx_spmd_axes of)
{
  cx_spmd_axes kept = 0;
  for (; list != 0; list >>= 4) {
    if (cx_spmd_axes_have(of, (size_t)(list & 15) - 1)) {
      kept = cx_spmd_axes_join(kept, list & 15);
    }
  }
  return kept;
}

cx_spmd_axes cx_spmd_axes_without(cx_spmd_axes list, cx_spmd_axes dropped)
{
  cx_spmd_axes left = 0;
  for (; list != 0; list >>= 4) {
    if (!cx_spmd_axes_have(dropped, (size_t)(list & 15) - 1)) {
      left = cx_spmd_axes_join(left, list & 15);
    }
  }
  return left;
}

// ---- devices ----

bool cx_spmd_mesh_same(const cx_spmd_mesh *a, const cx_spmd_mesh *b)
{
  if (a->n_axes != b->n_axes || a->n_devices != b->n_devices) return false;
  for (size_t i = 0; i < a->n_axes; i++) {
    if (a->sizes[i] != b->sizes[i] ||
        !cx_hlo_str_same(a->names[i], b->names[i])) {
      return false;
    }
  }
  for (int64_t i = 0; i < a->n_devices; i++) {
    if (a->ids[i] != b->ids[i]) return false;
  }
  return true;
}

int64_t cx_spmd_parts(const cx_spmd_mesh *mesh, cx_spmd_axes list)
{
  int64_t n = 1;
  for (; list != 0; list >>= 4) n *= mesh->sizes[(list & 15) - 1];
  return n;
}

// The distance of neighbours along the axis, in positions.
static int64_t stride_of(const cx_spmd_mesh *mesh, size_t axis)
{
  int64_t n = 1;
  for (size_t i = axis + 1; i < mesh->n_axes; i++) n *= mesh->sizes[i];
  return n;
}

int64_t cx_spmd_part_at(const cx_spmd_mesh *mesh, cx_spmd_axes list,
                        int64_t position)
{
  int64_t part = 0;
  for (; list != 0; list >>= 4) {
    const size_t axis = (size_t)(list & 15) - 1;
    const int64_t size = mesh->sizes[axis];
    part = part * size + position / stride_of(mesh, axis) % size;
  }
  return part;
}

// The position that differs from `leader`, which has part 0, in its part.
static int64_t member(const cx_spmd_mesh *mesh, cx_spmd_axes list,
                      int64_t leader, int64_t part)
{
  for (size_t i = cx_spmd_axes_count(list); i-- > 0;) {
    const size_t axis = cx_spmd_axes_at(list, i);
    leader += part % mesh->sizes[axis] * stride_of(mesh, axis);
    part /= mesh->sizes[axis];
  }
  return leader;
}

void cx_spmd_groups(const cx_spmd_mesh *mesh, cx_spmd_axes list, int64_t *out)
{
  const int64_t n = cx_spmd_parts(mesh, list);
  size_t at = 0;
  for (int64_t p = 0; p < mesh->n_devices; p++) {
    if (cx_spmd_part_at(mesh, list, p) != 0) continue;
    for (int64_t k = 0; k < n; k++) {
      out[at++] = mesh->ids[member(mesh, list, p, k)];
    }
  }
}
