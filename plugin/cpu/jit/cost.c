// jit/cost: what an operation costs. Fusion, the compiled loops and the plan of
// a launch all ask here. In the engine itself too, as class.c.
#include "jit/jit.h"

double cpu_jit_op_ns(const cx_hlo_op *op)
{
  switch (op->kind) {
    case CX_HLO_OP_DIVIDE:
    case CX_HLO_OP_REMAINDER:
    case CX_HLO_OP_SQRT:
    case CX_HLO_OP_RSQRT: return 0.3;
    case CX_HLO_OP_EXPONENTIAL:
    case CX_HLO_OP_EXPONENTIAL_MINUS_ONE:
    case CX_HLO_OP_LOG:
    case CX_HLO_OP_LOG_PLUS_ONE:
    case CX_HLO_OP_LOGISTIC:
    case CX_HLO_OP_TANH: return 0.5;
    case CX_HLO_OP_GATHER:
    case CX_HLO_OP_TRANSPOSE: return 0.8;
    case CX_HLO_OP_SINE:
    case CX_HLO_OP_COSINE:
    case CX_HLO_OP_TAN:
    case CX_HLO_OP_CBRT:
    case CX_HLO_OP_ATAN2:
    case CX_HLO_OP_POWER: return 2;
    default: return 0.04;
  }
}
