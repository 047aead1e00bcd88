// hlo/build_linalg: factorisations and systems of equations.
#include "hlo/build_op.h"

static void put_flag(cx_hlo_builder *b, cx_hlo_op *op, cx_hlo_attr_id id,
                     bool value)
{
  if (op == NULL) return;
  cx_hlo_build_attr(b, op, id, cx_hlo_attr_bool(b->module, value));
}

cx_hlo_value *cx_hlo_cholesky(cx_hlo_builder *b, cx_hlo_value *x)
{
  cx_hlo_op *op = cx_hlo_build_begin(b, CX_HLO_OP_CHOLESKY, &x, 1, 1, 0);
  put_flag(b, op, CX_HLO_A_LOWER, true);
  return cx_hlo_build_end(b, op);
}

cx_hlo_value *cx_hlo_triangular_solve(cx_hlo_builder *b, cx_hlo_value *a,
                                      cx_hlo_value *y, bool lower, bool unit,
                                      bool transpose)
{
  enum { NO_TRANSPOSE = 1, TRANSPOSE };
  cx_hlo_value *const operands[] = { a, y };
  cx_hlo_op *op =
      cx_hlo_build_begin(b, CX_HLO_OP_TRIANGULAR_SOLVE, operands, 2, 1, 0);
  if (op == NULL) return NULL;
  put_flag(b, op, CX_HLO_A_LEFT_SIDE, true);
  put_flag(b, op, CX_HLO_A_LOWER, lower);
  put_flag(b, op, CX_HLO_A_UNIT_DIAGONAL, unit);
  cx_hlo_build_attr(b, op, CX_HLO_A_TRANSPOSE_A,
                    cx_hlo_attr_choice(b->module, CX_HLO_TRANSPOSE,
                                       transpose ? TRANSPOSE : NO_TRANSPOSE));
  return cx_hlo_build_end(b, op);
}
