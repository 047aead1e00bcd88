// spmd/internal: what the files of the partitioner share.
#ifndef CX_SPMD_INTERNAL_H
#define CX_SPMD_INTERNAL_H

#include "hlo/build_op.h"
#include "spmd/rule.h"
#include "spmd/sharding.h"

// The tables are by the number of a value of the whole program.
typedef struct cx_spmd_state {
  cx_arena arena;
  cx_spmd_mesh mesh;
  uint32_t n_partitions;
  uint32_t n_values;
  cx_spmd_sharding *want;      // how the value is split
  cx_hlo_value **local;        // a device's part of it; NULL: not made yet
  const cx_spmd_rule **rules;  // of the operation, by its first result
  cx_hlo_builder b;
} cx_spmd_state;

// Gives the values of the function shardings and their operations rules.
calx_status *cx_spmd_propagate(cx_spmd_state *s, cx_hlo_func *f) CALX_MUST_USE;

// A device's part of a tensor of this type.
cx_hlo_type cx_spmd_local(cx_spmd_state *s, const cx_hlo_type *global,
                          const cx_spmd_axes *dims);
// `v`, which is split by `from`, split by `to`; NULL: the builder has failed.
cx_hlo_value *cx_spmd_reshard(cx_spmd_state *s, cx_hlo_value *v,
                              const cx_spmd_sharding *from,
                              const cx_spmd_sharding *to);
// Combines the values of the devices that differ along these axes. What the
// program wants split along some of them is only made in parts; `now` is then
// how the value is split.
cx_hlo_value *cx_spmd_combine(cx_spmd_state *s, cx_hlo_op_kind combine,
                              cx_hlo_value *v, cx_spmd_axes axes,
                              cx_spmd_sharding *now, const cx_spmd_axes *want);
// Where this device's part begins, an i64, if each has this size.
cx_hlo_value *cx_spmd_start(cx_spmd_state *s, cx_spmd_axes axes, int64_t size);
// The value that this partition has.
cx_hlo_value *cx_spmd_broadcast(cx_spmd_state *s, cx_hlo_value *v,
                                int64_t partition);

// The operation on parts of its operands, which gives parts of its results.
// NULL: the builder has failed.
cx_hlo_op *cx_spmd_run(cx_spmd_state *s, const cx_hlo_op *op,
                       cx_hlo_value *const *operands,
                       const cx_spmd_sharding *parts);
// The partition that alone runs this operation; -1: all do.
calx_status *cx_spmd_find_device(const cx_spmd_state *s, const cx_hlo_op *op,
                                 int64_t *out) CALX_MUST_USE;
calx_status *cx_spmd_on_one_device(cx_spmd_state *s, const cx_hlo_op *op,
                                   int64_t device) CALX_MUST_USE;
// Makes the parts of the results of an operation whose regions are made. The
// new operation takes them.
void cx_spmd_operation(cx_spmd_state *s, cx_hlo_op *op);

// ---- spmd/choose ----

// The axes of each factor, and how the operands and results are split then.
// NULL: there is no memory.
const cx_spmd_axes *cx_spmd_choose(cx_spmd_state *s, const cx_spmd_rule *r,
                                   size_t n_operands, cx_spmd_sharding *parts);
// Those of contracted indices.
cx_spmd_axes cx_spmd_reduced_axes(const cx_spmd_rule *r,
                                  const cx_spmd_axes *axes);

// ---- spmd/index ----

// Makes the indices those into a device's blocks. Of a gather, whether each is
// in its block; NULL: no indexed dimension is cut.
cx_hlo_value *cx_spmd_move_gather(cx_spmd_state *s, const cx_hlo_op *op,
                                  const cx_spmd_rule *r,
                                  const cx_spmd_axes *axes,
                                  cx_hlo_value **operands);
void cx_spmd_move_scatter(cx_spmd_state *s, const cx_hlo_op *op,
                          const cx_spmd_rule *r, const cx_spmd_axes *axes,
                          cx_hlo_value **operands);
// The bits of the gather's result v as integers, zeros for the indices that are
// not inside.
cx_hlo_value *cx_spmd_keep_inside(cx_spmd_state *s, const cx_hlo_op *op,
                                  cx_hlo_value *v, cx_hlo_value *is_inside);

#endif
