// spmd/mesh: the devices as a grid with named axes, and which axes of it split
// a dimension of a tensor.
//
// Axes of one device are left out: they split nothing.
#ifndef CX_SPMD_MESH_H
#define CX_SPMD_MESH_H

#include "hlo/module.h"

enum { CX_SPMD_MOST_AXES = 15, CX_SPMD_MOST_DEVICES = 1 << 16 };

// A list of different axes, the outermost first. Each takes 4 bits, its number
// plus 1, and the outermost the lowest bits. 0: no axes.
typedef uint64_t cx_spmd_axes;

// An axis as a program names it: a run of the axes of the program's one mesh.
typedef struct cx_spmd_axis {
  cx_hlo_str mesh, name;
  size_t first, n;  // n 0: of one device
} cx_spmd_axis;

typedef struct cx_spmd_mesh {
  size_t n_axes;
  cx_hlo_str names[CX_SPMD_MOST_AXES];
  int64_t sizes[CX_SPMD_MOST_AXES];
  int64_t n_devices;
  const int64_t *ids;         // the partition at each position, row-major
  const cx_spmd_axis *named;  // while the program is read
  size_t n_named;
} cx_spmd_mesh;

size_t cx_spmd_axes_count(cx_spmd_axes list);
size_t cx_spmd_axes_at(cx_spmd_axes list, size_t i);  // the axis' number
bool cx_spmd_axes_have(cx_spmd_axes list, size_t axis);
cx_spmd_axes cx_spmd_axes_first(cx_spmd_axes list, size_t n);
cx_spmd_axes cx_spmd_axes_from(cx_spmd_axes list, size_t n);  // without the n
cx_spmd_axes cx_spmd_axes_join(cx_spmd_axes a, cx_spmd_axes b);
// How many axes both lists begin with.
size_t cx_spmd_axes_common(cx_spmd_axes a, cx_spmd_axes b);
bool cx_spmd_axes_overlap(cx_spmd_axes a, cx_spmd_axes b);
// Those of the list that are in `of`, and those that are not.
cx_spmd_axes cx_spmd_axes_in(cx_spmd_axes list, cx_spmd_axes of);
cx_spmd_axes cx_spmd_axes_without(cx_spmd_axes list, cx_spmd_axes dropped);
bool cx_spmd_mesh_same(const cx_spmd_mesh *a, const cx_spmd_mesh *b);
// The number of parts that the axes make.
int64_t cx_spmd_parts(const cx_spmd_mesh *mesh, cx_spmd_axes list);

// Which part a position has: its coordinates along the axes as one number.
int64_t cx_spmd_part_at(const cx_spmd_mesh *mesh, cx_spmd_axes list,
                        int64_t position);
// Writes the partitions that differ along these axes only, one group of
// cx_spmd_parts() after the other, each in the order of the parts.
void cx_spmd_groups(const cx_spmd_mesh *mesh, cx_spmd_axes list, int64_t *out);

#endif
