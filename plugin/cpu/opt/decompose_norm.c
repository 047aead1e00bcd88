// opt/decompose: batch normalization by the formulas of StableHLO's
// specification. Factors per feature are computed first, so that only one
// multiplication and one or two additions run over the whole tensor. Types
// narrower than f32 are computed in f32.
#include "hlo/number.h"
#include "opt/decompose.h"
#include "opt/emit.h"

typedef struct norm {
  cx_hlo_builder *b;
  cx_hlo_type type;  // of the tensor, as it is computed
  int64_t feature;
  int64_t *others;  // the dimensions that are reduced
  cx_hlo_elem elem;
  double epsilon;
  double count;  // elements per feature
} norm;

static bool start(norm *n, cpu_opt_walk *w, const cx_hlo_op *op)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_attr *epsilon = cx_hlo_op_attr(op, CX_HLO_A_EPSILON);
  n->b = &w->b;
  n->type = *t;
  n->elem = t->elem;
  if (t->elem != CX_HLO_F64) n->type.elem = CX_HLO_F32;
  n->feature = cx_hlo_op_int(op, CX_HLO_A_FEATURE_INDEX);
  n->epsilon = cx_hlo_bits_to_real(CX_HLO_F32, epsilon->as.bits);
  n->others = cpu_opt_list(w, t->rank);
  if (n->others == NULL) return false;
  n->count = 1;
  size_t k = 0;
  for (size_t i = 0; i < t->rank; i++) {
    if ((int64_t)i == n->feature) continue;
    n->others[k++] = (int64_t)i;
    n->count *= (double)t->dims[i];
  }
  return true;
}

static cpu_opt_value in(const norm *n, cpu_opt_value x)
{
  return converted(n->b, x, n->type.elem);
}

static cpu_opt_value out(const norm *n, cpu_opt_value x)
{
  return converted(n->b, x, n->elem);
}

// Broadcasts a value per feature to the tensor.
static cpu_opt_value spread(const norm *n, cpu_opt_value x)
{
  return cpu_opt_broadcast(n->b, x, &n->type, &n->feature);
}

static cpu_opt_value sum(const norm *n, cpu_opt_value x)
{
  const cx_hlo_type scalar = { n->type.elem, 0, NULL };
  return cx_hlo_reduce_with(n->b, CX_HLO_OP_ADD, x,
                            cx_hlo_splat(n->b, scalar, 0), n->others,
                            n->type.rank - 1);
}

static cpu_opt_value mean(const norm *n, cpu_opt_value x)
{
  cpu_opt_value s = sum(n, x);
  return over(n->b, s, number(n->b, s, n->count));
}

// 1 / sqrt(variance + epsilon)
static cpu_opt_value inverse_deviation(const norm *n, cpu_opt_value variance)
{
  return cx_hlo_unary(n->b, CX_HLO_OP_RSQRT,
                      plus_number(n->b, variance, n->epsilon));
}

// (x - mean) (scale / deviation) + offset
static cpu_opt_value normalized(const norm *n, cpu_opt_value x,
                                cpu_opt_value scale, cpu_opt_value offset,
                                cpu_opt_value middle, cpu_opt_value variance)
{
  cx_hlo_builder *b = n->b;
  cpu_opt_value factor = times(b, scale, inverse_deviation(n, variance));
  cpu_opt_value centered = minus(b, x, spread(n, middle));
  cpu_opt_value shift = spread(n, offset);
  return plus(b, times(b, centered, spread(n, factor)), shift);
}

void cpu_opt_norm_training(cpu_opt_walk *w, cx_hlo_op *op)
{
  norm n;
  if (!start(&n, w, op)) return;
  cpu_opt_value x = in(&n, op->operands[0]);
  cpu_opt_value middle = mean(&n, x);
  cpu_opt_value centered = minus(n.b, x, spread(&n, middle));
  cpu_opt_value variance = mean(&n, times(n.b, centered, centered));
  cpu_opt_value offset = in(&n, op->operands[2]);
  cpu_opt_value scale = in(&n, op->operands[1]);
  cpu_opt_value y = normalized(&n, x, scale, offset, middle, variance);
  cpu_opt_value const r[] = { out(&n, y), out(&n, middle), out(&n, variance) };
  cpu_opt_replace_all(w, op, r);
}

void cpu_opt_norm_inference(cpu_opt_walk *w, cx_hlo_op *op)
{
  norm n;
  if (!start(&n, w, op)) return;
  cpu_opt_value x[5];
  for (int i = 0; i < 5; i++) x[i] = in(&n, op->operands[i]);
  cpu_opt_value y = normalized(&n, x[0], x[1], x[2], x[3], x[4]);
  cpu_opt_replace(w, op, out(&n, y));
}

// With c = (x - mean) / deviation: the scale's gradient is the sum of g c, the
// offset's that of g, the operand's
//   scale / deviation (g - sum(g) / n - c sum(g c) / n).
void cpu_opt_norm_grad(cpu_opt_walk *w, cx_hlo_op *op)
{
  norm n;
  if (!start(&n, w, op)) return;
  cx_hlo_builder *b = n.b;
  cpu_opt_value x = in(&n, op->operands[0]);
  cpu_opt_value scale = in(&n, op->operands[1]);
  cpu_opt_value g = in(&n, op->operands[4]);
  cpu_opt_value inverse = inverse_deviation(&n, in(&n, op->operands[3]));
  cpu_opt_value factor = spread(&n, inverse);
  cpu_opt_value c =
      times(b, minus(b, x, spread(&n, in(&n, op->operands[2]))), factor);
  cpu_opt_value grad_scale = sum(&n, times(b, g, c));
  cpu_opt_value grad_offset = sum(&n, g);
  cpu_opt_value count = number(b, grad_scale, n.count);
  cpu_opt_value flat = minus(b, g, spread(&n, over(b, grad_offset, count)));
  cpu_opt_value slope = times(b, c, spread(&n, over(b, grad_scale, count)));
  cpu_opt_value difference = minus(b, flat, slope);
  cpu_opt_value y = times(b, spread(&n, times(b, scale, inverse)), difference);
  cpu_opt_value const r[] = { out(&n, y), out(&n, grad_scale),
                              out(&n, grad_offset) };
  cpu_opt_replace_all(w, op, r);
}
