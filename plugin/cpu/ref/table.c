// ref/table: the operations on tensors, and what runs them. Those of control
// flow stand in control.c.
#include "ref/inner.h"

#define ROW(id, fn) [CX_HLO_OP_##id] = fn
#define E(id) ROW(id, cpu_ref_elementwise)
#define CPU_ELEMENT(id, ns, real, integer, truth, complexes) E(id),

static cpu_ref_fn *const table[CX_HLO_OP_COUNT] = {
#include "ref/element.def"
  E(IS_FINITE),
  E(REDUCE_PRECISION),
  E(REAL),
  E(IMAG),
  E(COMPLEX),
  E(COMPARE),
  E(SELECT),
  E(CLAMP),
  E(CONVERT),
  ROW(CONSTANT, cpu_ref_constant),
  ROW(IOTA, cpu_ref_iota),
  ROW(RESHAPE, cpu_ref_reshape),
  ROW(BITCAST_CONVERT, cpu_ref_bitcast),
  ROW(BROADCAST_IN_DIM, cpu_ref_broadcast_in_dim),
  ROW(BROADCAST, cpu_ref_broadcast),
  ROW(TRANSPOSE, cpu_ref_transpose),
  ROW(SLICE, cpu_ref_slice),
  ROW(CONCATENATE, cpu_ref_concatenate),
  ROW(PAD, cpu_ref_pad),
  ROW(REVERSE, cpu_ref_reverse),
  ROW(GET_DIMENSION_SIZE, cpu_ref_dimension_size),
  ROW(SET_DIMENSION_SIZE, cpu_ref_set_dimension_size),
  ROW(DYNAMIC_SLICE, cpu_ref_dynamic_slice),
  ROW(DYNAMIC_UPDATE_SLICE, cpu_ref_dynamic_update_slice),
  ROW(GATHER, cpu_ref_gather),
  ROW(SCATTER, cpu_ref_scatter),
  ROW(TORCH_INDEX_SELECT, cpu_ref_index_select),
  ROW(MAP, cpu_ref_map),
  ROW(REDUCE, cpu_ref_reduce),
  ROW(REDUCE_WINDOW, cpu_ref_reduce_window),
  ROW(SELECT_AND_SCATTER, cpu_ref_select_and_scatter),
  ROW(SORT, cpu_ref_sort),
  ROW(DOT_GENERAL, cpu_ref_dot_general),
  ROW(DOT, cpu_ref_dot),
  ROW(EINSUM, cpu_ref_einsum),
  ROW(UNARY_EINSUM, cpu_ref_unary_einsum),
  ROW(CONVOLUTION, cpu_ref_convolution),
  ROW(BATCH_NORM_TRAINING, cpu_ref_norm_training),
  ROW(BATCH_NORM_GRAD, cpu_ref_norm_grad),
  ROW(BATCH_NORM_INFERENCE, cpu_ref_norm_inference),
  ROW(RNG_BIT_GENERATOR, cpu_ref_bit_generator),
  ROW(RNG, cpu_ref_rng),
  ROW(FFT, cpu_ref_fft),
  ROW(CHOLESKY, cpu_ref_cholesky),
  ROW(TRIANGULAR_SOLVE, cpu_ref_triangular_solve),
  ROW(ALL_REDUCE, cpu_ref_collective),
  ROW(REDUCE_SCATTER, cpu_ref_collective),
  ROW(ALL_GATHER, cpu_ref_collective),
  ROW(ALL_TO_ALL, cpu_ref_collective),
  ROW(COLLECTIVE_PERMUTE, cpu_ref_collective),
  ROW(COLLECTIVE_BROADCAST, cpu_ref_collective),
  ROW(COLLECTIVE_REDUCE, cpu_ref_collective),
  ROW(CROSS_REPLICA_SUM, cpu_ref_collective),
  ROW(REPLICA_ID, cpu_ref_device_id),
  ROW(PARTITION_ID, cpu_ref_device_id),
  ROW(DYNAMIC_RESHAPE, cpu_ref_dynamic_reshape),
  ROW(DYNAMIC_BROADCAST_IN_DIM, cpu_ref_dynamic_broadcast),
  ROW(DYNAMIC_IOTA, cpu_ref_dynamic_iota),
  ROW(DYNAMIC_PAD, cpu_ref_dynamic_pad),
  ROW(REAL_DYNAMIC_SLICE, cpu_ref_real_dynamic_slice),
  ROW(DYNAMIC_CONV, cpu_ref_dynamic_conv),
  ROW(DYNAMIC_GATHER, cpu_ref_dynamic_gather),
};

#undef ROW
#undef E

cpu_ref_fn *cpu_ref_fn_of(cx_hlo_op_kind kind)
{
  return (unsigned)kind < CX_HLO_OP_COUNT ? table[kind] : NULL;
}
