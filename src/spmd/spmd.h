// spmd: makes of a program for the whole of its tensors, with shardings in
// Shardy's annotations, the program of one device of many.
//
// See docs/decisions/067-one-partitioner.md. A dimension that cannot be cut
// evenly, and an operation without a rule, are computed whole on each device.
#ifndef CX_SPMD_SPMD_H
#define CX_SPMD_SPMD_H

#include "base/text.h"
#include "calx/dtype.h"
#include "hlo/module.h"
#include "spmd/mesh.h"

// Whether the program has a mesh.
bool cx_spmd_has_mesh(const cx_hlo_module *m);

// Whether the result of the operation is its operand, which may be split in
// another way. Reads only the name.
bool cx_spmd_is_identity(const cx_hlo_op *op);

// Partitions the entry of the module in place. It must have no calls. Its
// parameters and results become the parts that a device has; parameters
// without a sharding are whole. Appends the serialised xla.OpSharding of each
// parameter and then of each result, each with its size as 4 little-endian
// bytes before it.
calx_status *cx_spmd_partition(cx_hlo_module *m, uint32_t n_partitions,
                               cx_text *out_shardings) CALX_MUST_USE;

// Appends the same of n tensors that every partition has whole.
void cx_spmd_write_whole(size_t n, cx_text *out);

// The next one of these from *at on, which moves behind it. False: the text
// ends before.
bool cx_spmd_next_written(const cx_text *text, size_t *at, cx_hlo_str *out);

// Adds the shardings that cx_spmd_partition appended to the attributes of the
// module. JAX before 0.9 reads them there: its client does not know PJRT's
// extension for shardings.
calx_status *cx_spmd_attach(cx_hlo_module *m,
                            const cx_text *shardings) CALX_MUST_USE;

// The axes by which the pass would split each dimension of the entry's results,
// where the program does not say it of a result. The module stays as it is.
calx_status *cx_spmd_results(cx_hlo_module *m, uint32_t n_partitions,
                             cx_spmd_axes (*out)[CALX_MAX_RANK]) CALX_MUST_USE;

#endif
