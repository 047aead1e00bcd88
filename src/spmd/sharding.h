// spmd/sharding: how a tensor is split among the devices of a mesh, and how
// Shardy's attributes write it (github.com/openxla/shardy).
//
// Each dimension has a list of mesh axes, by which it is cut into equal blocks.
// Devices that differ only along other axes hold the same elements.
#ifndef CX_SPMD_SHARDING_H
#define CX_SPMD_SHARDING_H

#include "base/arena.h"
#include "spmd/mesh.h"

typedef struct cx_spmd_sharding {
  size_t rank;
  cx_spmd_axes *dims;
  bool *open;  // of each dimension: propagation may split it further
  // Along these the devices have different values, whose sum is the tensor.
  cx_spmd_axes unreduced;
} cx_spmd_sharding;

// Of a tensor of this rank: no axes, all dimensions open or none. False: there
// is no memory.
bool cx_spmd_sharding_new(cx_arena *arena, size_t rank, bool open,
                          cx_spmd_sharding *out);
bool cx_spmd_uses(const cx_spmd_sharding *s, size_t axis);
// Whether the axes cut a dimension of this size evenly.
bool cx_spmd_fits(const cx_spmd_mesh *mesh, int64_t size, cx_spmd_axes axes);

// The text of an attribute of Shardy; `what` is for the error.
calx_status *cx_spmd_text_of(const cx_hlo_attr *attr, const char *what,
                             cx_hlo_str *out) CALX_MUST_USE;
// Reads all sdy.mesh of the module, which may be several over the same devices
// in the same order. Without any, the mesh has no axes.
calx_status *cx_spmd_read_meshes(const cx_hlo_module *m, cx_arena *arena,
                                 uint32_t n_partitions,
                                 cx_spmd_mesh *out) CALX_MUST_USE;
// #sdy.sharding<@mesh, [{"x"}, {?}]> of a tensor of this type. It must split
// every dimension evenly.
calx_status *cx_spmd_read_sharding(const cx_spmd_mesh *mesh, cx_arena *arena,
                                   const cx_hlo_attr *attr,
                                   const cx_hlo_any *type,
                                   cx_spmd_sharding *out) CALX_MUST_USE;
// The same of a value inside the program: a dimension that is not split evenly
// is split by fewer axes.
calx_status *cx_spmd_read_constraint(const cx_spmd_mesh *mesh, cx_arena *arena,
                                     const cx_hlo_attr *attr,
                                     const cx_hlo_any *type,
                                     cx_spmd_sharding *out) CALX_MUST_USE;
// #sdy.sharding_per_value<[<…>, <…>]>, of n values of these types.
calx_status *cx_spmd_read_list(const cx_spmd_mesh *mesh, cx_arena *arena,
                               const cx_hlo_attr *attr,
                               cx_hlo_value *const *values, size_t n,
                               cx_spmd_sharding *out) CALX_MUST_USE;
// #sdy<manual_axes{"x"}>: a list in any order.
calx_status *cx_spmd_read_manual(const cx_spmd_mesh *mesh,
                                 const cx_hlo_attr *attr,
                                 cx_spmd_axes *out) CALX_MUST_USE;

// Takes the attribute of this name out of the list, if it is there.
calx_status *cx_spmd_drop_attr(cx_hlo_module *m, cx_hlo_named_list *list,
                               const char *name) CALX_MUST_USE;

#endif
