// opt/decompose: batch normalization, by its formulas (StableHLO's
// specification). Per-feature factors are made first, so that what runs over
// the whole tensor is one multiplication and one addition or two. Types
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

static bool start(norm *n, cx_opt_walk *w, const cx_hlo_op *op)
{
  const cx_hlo_type *t = &op->operands[0]->type.tensor;
  const cx_hlo_attr *epsilon = cx_hlo_op_attr(op, CX_HLO_A_EPSILON);
  n->b = &w->b;
  n->type = *t;
  n->elem = t->elem;
  if (t->elem != CX_HLO_F64) n->type.elem = CX_HLO_F32;
  n->feature = cx_hlo_op_int(op, CX_HLO_A_FEATURE_INDEX);
  n->epsilon = cx_hlo_bits_to_real(CX_HLO_F32, epsilon->as.bits);
  n->others = CX_ARENA_ARRAY(&w->b.module->arena, int64_t, t->rank + 1);
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

static cx_v in(const norm *n, cx_v x)
{
  if (x == NULL || x->type.tensor.elem == n->type.elem) return x;
  return cx_hlo_convert(n->b, x, n->type.elem);
}

static cx_v out(const norm *n, cx_v x)
{
  if (x == NULL || x->type.tensor.elem == n->elem) return x;
  return cx_hlo_convert(n->b, x, n->elem);
}

// A value per feature, everywhere.
static cx_v spread(const norm *n, cx_v x)
{
  return cx_hlo_broadcast_in_dim(n->b, x, n->type.dims, n->type.rank,
                                 &n->feature);
}

static cx_v sum(const norm *n, cx_v x)
{
  const cx_hlo_type scalar = { n->type.elem, 0, NULL };
  return cx_hlo_reduce_with(n->b, CX_HLO_OP_ADD, x,
                            cx_hlo_splat(n->b, scalar, 0), n->others,
                            n->type.rank - 1);
}

static cx_v mean(const norm *n, cx_v x)
{
  cx_v s = sum(n, x);
  return over(n->b, s, number(n->b, s, n->count));
}

// 1 / sqrt(variance + epsilon)
static cx_v inverse_deviation(const norm *n, cx_v variance)
{
  return unary(n->b, CX_HLO_OP_RSQRT, plus_number(n->b, variance, n->epsilon));
}

// (x - mean) (scale / deviation) + offset
static cx_v normalized(const norm *n, cx_v x, cx_v scale, cx_v offset,
                       cx_v middle, cx_v variance)
{
  cx_hlo_builder *b = n->b;
  cx_v factor = times(b, scale, inverse_deviation(n, variance));
  cx_v centered = minus(b, x, spread(n, middle));
  cx_v shift = spread(n, offset);
  return plus(b, times(b, centered, spread(n, factor)), shift);
}

void cx_opt_norm_training(cx_opt_walk *w, cx_hlo_op *op)
{
  norm n;
  if (!start(&n, w, op)) return;
  cx_v x = in(&n, op->operands[0]);
  cx_v middle = mean(&n, x);
  cx_v centered = minus(n.b, x, spread(&n, middle));
  cx_v variance = mean(&n, times(n.b, centered, centered));
  cx_v offset = in(&n, op->operands[2]);
  cx_v scale = in(&n, op->operands[1]);
  cx_v y = normalized(&n, x, scale, offset, middle, variance);
  cx_v const r[] = { out(&n, y), out(&n, middle), out(&n, variance) };
  cx_opt_replace_all(w, op, r);
}

void cx_opt_norm_inference(cx_opt_walk *w, cx_hlo_op *op)
{
  norm n;
  if (!start(&n, w, op)) return;
  cx_v x[5];
  for (int i = 0; i < 5; i++) x[i] = in(&n, op->operands[i]);
  cx_v y = normalized(&n, x[0], x[1], x[2], x[3], x[4]);
  cx_opt_replace(w, op, out(&n, y));
}

// With c = (x - mean) / deviation: the scale's gradient is the sum of g c, the
// offset's that of g, the operand's
//   scale / deviation (g - sum(g) / n - c sum(g c) / n).
void cx_opt_norm_grad(cx_opt_walk *w, cx_hlo_op *op)
{
  norm n;
  if (!start(&n, w, op)) return;
  cx_hlo_builder *b = n.b;
  cx_v x = in(&n, op->operands[0]);
  cx_v scale = in(&n, op->operands[1]);
  cx_v g = in(&n, op->operands[4]);
  cx_v inverse = inverse_deviation(&n, in(&n, op->operands[3]));
  cx_v factor = spread(&n, inverse);
  cx_v c = times(b, minus(b, x, spread(&n, in(&n, op->operands[2]))), factor);
  cx_v grad_scale = sum(&n, times(b, g, c));
  cx_v grad_offset = sum(&n, g);
  cx_v count = number(b, grad_scale, n.count);
  cx_v flat = minus(b, g, spread(&n, over(b, grad_offset, count)));
  cx_v slope = times(b, c, spread(&n, over(b, grad_scale, count)));
  cx_v difference = minus(b, flat, slope);
  cx_v y = times(b, spread(&n, times(b, scale, inverse)), difference);
  cx_v const r[] = { out(&n, y), out(&n, grad_scale), out(&n, grad_offset) };
  cx_opt_replace_all(w, op, r);
}
