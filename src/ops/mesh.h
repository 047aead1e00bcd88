// ops/mesh: a partition spec that is read, for several tensors.
#ifndef CX_OPS_MESH_H
#define CX_OPS_MESH_H

#include "base/status.h"
#include "calx/spmd.h"
#include "graph/node.h"
#include "spmd/placement.h"

// Which axes split each of the first dimensions of a tensor; those behind are
// whole.
typedef struct cx_ops_spec {
  const cx_spmd_mesh *mesh;  // the calx_mesh's own; NULL: nothing is split
  size_t n_dims;
  cx_spmd_axes dims[CALX_MAX_RANK];
} cx_ops_spec;

// FAILED_PRECONDITION: calx_use_spmd() was not called. `call` begins messages.
calx_status *cx_ops_need_spmd(const char *call) CALX_MUST_USE;
calx_status *cx_ops_spec_read(const char *call, const calx_mesh *mesh,
                              calx_axes spec, cx_ops_spec *out) CALX_MUST_USE;
// Whether a tensor of this shape can be split so: it has the dimensions, and
// the axes divide them. The mesh is not NULL.
calx_status *cx_ops_spec_check(const char *call, const cx_ops_spec *spec,
                               const cx_graph_shape *shape) CALX_MUST_USE;
// Checks it, and that the mesh has the devices that there are. Thread-safe.
calx_status *cx_ops_spec_placement(const char *call, const cx_ops_spec *spec,
                                   const cx_graph_shape *shape,
                                   const cx_spmd_placement **out) CALX_MUST_USE;

#endif
