// spmd/placement: a mesh and how a tensor is split on it, beyond one program.
//
// Equal meshes and equal placements are kept once, until all are freed, so that
// they compare by address. Thread-safe.
#ifndef CX_SPMD_PLACEMENT_H
#define CX_SPMD_PLACEMENT_H

#include "base/text.h"
#include "calx/dtype.h"
#include "spmd/mesh.h"

typedef struct cx_spmd_placement {
  const cx_spmd_mesh *mesh;
  uint32_t number;  // 1, 2, … in the order in which they were made
  uint32_t rank;
  cx_spmd_axes dims[CALX_MAX_RANK];
} cx_spmd_placement;

// A copy in one block, to be freed with cx_free(). NULL: there is no memory.
cx_spmd_mesh *cx_spmd_mesh_copy(const cx_spmd_mesh *mesh);
// The equal mesh that is kept; NULL: there is no memory.
const cx_spmd_mesh *cx_spmd_mesh_keep(const cx_spmd_mesh *mesh);
// A mesh of one axis, on which no tensor of a user is split.
const cx_spmd_mesh *cx_spmd_mesh_of_all(size_t n_devices);
// `mesh` is one that is kept; rank is at most CALX_MAX_RANK. NULL: there is no
// memory.
const cx_spmd_placement *cx_spmd_placement_of(const cx_spmd_mesh *mesh,
                                              const cx_spmd_axes *dims,
                                              size_t rank);
const cx_spmd_placement *cx_spmd_placement_at(uint32_t number);  // NULL: none

// Frees all that is kept: nobody may have any of it.
void cx_spmd_placements_free(void);

// The placement itself, or NULL where each device has the whole.
const cx_spmd_placement *cx_spmd_split(const cx_spmd_placement *p);
// The sizes of a shard of a tensor of these sizes, which divide, and where that
// of a device begins.
void cx_spmd_shard(const cx_spmd_placement *p, const int64_t *dims,
                   size_t device, int64_t *out_dims, int64_t *out_start);

// {"x"=2, "y"=4}
void cx_spmd_mesh_print(const cx_spmd_mesh *mesh, cx_text *out);
// Shardy's attributes: #sdy.mesh<["x"=2]> and #sdy.sharding<@mesh, [{"x"}]>.
void cx_spmd_mesh_attr(const cx_spmd_mesh *mesh, cx_text *out);
void cx_spmd_placement_attr(const cx_spmd_placement *p, cx_text *out);
// As XLA prints it: {devices=[2,1]0,1}, {replicated}.
void cx_spmd_placement_print(const cx_spmd_placement *p, cx_text *out);

#endif
