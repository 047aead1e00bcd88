// jit/class: which operations kernels may hold. In the engine itself too, so
// that grouping needs no LLVM.
#include "jit/jit.h"

cx_jit_class cx_jit_class_of(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_SUBTRACT:
    case CX_HLO_OP_MULTIPLY: return CX_JIT_ELEMENT;
    case CX_HLO_OP_RESHAPE:
    case CX_HLO_OP_BROADCAST_IN_DIM:
    case CX_HLO_OP_TRANSPOSE: return CX_JIT_INDEX;
    case CX_HLO_OP_REDUCE: return CX_JIT_REDUCE;
    default: return CX_JIT_NONE;
  }
}

bool cx_jit_fuses(const cx_hlo_op *op, size_t i)
{
  cx_jit_class class = cx_jit_class_of(op);
  if (class == CX_JIT_REDUCE) return i < op->n_results;
  return class == CX_JIT_ELEMENT || class == CX_JIT_INDEX;
}
