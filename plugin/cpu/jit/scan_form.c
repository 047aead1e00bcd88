// jit/scan_form: which reduce_window is a prefix scan: cumsum and its like. In
// the engine itself too, as class.c is.
#include <math.h>

#include "base/dtype.h"
#include "hlo/build.h"
#include "hlo/infer.h"
#include "hlo/ops.h"
#include "jit/jit.h"

#define SHORTEST 16  // shorter windows are computed for each element

// ---- the dimension ----

// The window is as long as the dimension, and the padding on one side makes
// each end where its element is.
static bool is_whole(const cx_hlo_op *op, size_t d, bool *out_reverse)
{
  const int64_t n = op->operands[0]->type.tensor.dims[d];
  const int64_t low = cx_hlo_padding_at(op, d, 0);
  const int64_t high = cx_hlo_padding_at(op, d, 1);
  *out_reverse = low == 0;
  return n > SHORTEST &&
         cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d) == n &&
         ((low == n - 1 && high == 0) || (low == 0 && high == n - 1));
}

static bool is_one(const cx_hlo_op *op, size_t d)
{
  return cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DIMENSIONS, d) == 1 &&
         cx_hlo_padding_at(op, d, 0) == 0 && cx_hlo_padding_at(op, d, 1) == 0;
}

static bool dim_of(const cx_hlo_op *op, size_t *out_dim, bool *out_reverse)
{
  bool found = false;
  for (size_t d = 0; d < op->operands[0]->type.tensor.rank; d++) {
    if (cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_STRIDES, d) != 1 ||
        cx_hlo_op_int_at(op, CX_HLO_A_BASE_DILATIONS, d) != 1 ||
        cx_hlo_op_int_at(op, CX_HLO_A_WINDOW_DILATIONS, d) != 1) {
      return false;
    }
    if (is_one(op, d)) continue;
    if (found || !is_whole(op, d, out_reverse)) return false;
    found = true;
    *out_dim = d;
  }
  return found;
}

// ---- the body ----

// The constant that the value is, as a double; false: it is none, or complex.
static bool number_of(const cx_hlo_value *v, double *out)
{
  const cx_hlo_op *op = v->op;
  if (op == NULL || op->kind != CX_HLO_OP_CONSTANT) return false;
  const cx_hlo_attr *a = cx_hlo_op_attr(op, CX_HLO_A_VALUE);
  const cx_hlo_elem e = v->type.tensor.elem;
  if (a == NULL || a->kind != CX_HLO_ATTR_ELEMENTS ||
      a->as.elements.size == 0 || cx_hlo_elem_is_complex(e)) {
    return false;
  }
  *out = cx_hlo_elem_is_float(e)
             ? cx_load_double(cx_hlo_elem_dtype(e), a->as.elements.data)
             : (double)cx_hlo_elements_int(&a->as.elements, 0);
  return true;
}

static const cx_hlo_op *made_by(const cx_hlo_value *v, cx_hlo_op_kind kind)
{
  return v->op != NULL && v->op->kind == kind ? v->op : NULL;
}

static bool is_of(const cx_hlo_op *op, const cx_hlo_value *x,
                  const cx_hlo_value *y)
{
  return op != NULL && op->operands[0] == x && op->operands[1] == y;
}

// log1p(exp(-abs(difference)))
static bool is_excess(const cx_hlo_value *v, const cx_hlo_value *difference)
{
  static const cx_hlo_op_kind chain[] = { CX_HLO_OP_LOG_PLUS_ONE,
                                          CX_HLO_OP_EXPONENTIAL,
                                          CX_HLO_OP_NEGATE, CX_HLO_OP_ABS };
  for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) {
    const cx_hlo_op *op = made_by(v, chain[i]);
    if (op == NULL) return false;
    v = op->operands[0];
  }
  return v == difference;
}

// The logarithm of the sum of exponentials, as JAX writes it: max(x, y) +
// log1p(exp(-abs(x - y))), or x + y where x - y is NaN.
static bool is_logaddexp(const cx_hlo_block *b)
{
  const cx_hlo_value *x = &b->args[0], *y = &b->args[1];
  const cx_hlo_op *choice = made_by(b->last->operands[0], CX_HLO_OP_SELECT);
  if (choice == NULL) return false;
  const cx_hlo_op *is_nan = made_by(choice->operands[0], CX_HLO_OP_COMPARE);
  const cx_hlo_op *sum = made_by(choice->operands[2], CX_HLO_OP_ADD);
  if (is_nan == NULL || sum == NULL) return false;
  const cx_hlo_value *difference = is_nan->operands[0];
  return is_nan->operands[1] == difference &&
         cx_hlo_op_int(is_nan, CX_HLO_A_COMPARISON_DIRECTION) == CX_HLO_NE &&
         is_of(made_by(difference, CX_HLO_OP_SUBTRACT), x, y) &&
         is_of(made_by(choice->operands[1], CX_HLO_OP_ADD), x, y) &&
         is_of(made_by(sum->operands[0], CX_HLO_OP_MAXIMUM), x, y) &&
         is_excess(sum->operands[1], difference);
}

// The body is associative, and what lies in the padding changes nothing.
static bool has_identity(const cx_hlo_op *op)
{
  const cx_hlo_block *b = op->regions[0].first;
  const cx_hlo_op *one = cx_hlo_block_combiner(b, 0);
  double init = 0;
  const bool known = number_of(op->operands[1], &init);
  if (one == NULL) return known && init == -HUGE_VAL && is_logaddexp(b);
  switch (one->kind) {
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_XOR: return known && init == 0;
    case CX_HLO_OP_MULTIPLY: return known && init == 1;
    default: return true;  // twice a number is that number
  }
}

bool cpu_jit_scan_of(const cx_hlo_op *op, size_t *out_dim, bool *out_reverse)
{
  return dim_of(op, out_dim, out_reverse) && has_identity(op);
}
