// opt/attention_facts: what is known of a value that comes from the scores of
// an attention.
//
// A softmax and its gradient are written in several ways. In all of them a
// value is a sum of a few products of E, G, L and R (attention.h), so that
// comparing these sums finds them all.
#include <math.h>
#include <string.h>

#include "kernel/half.h"
#include "opt/attention.h"

static bool is_float(const cx_hlo_value *v)
{
  return v->type.tensor.elem == CX_HLO_F32;
}

// The number that all elements are equal to.
static bool number_of(const cx_hlo_value *v, double *out)
{
  const unsigned char *element = is_float(v) ? cpu_opt_splat(v) : NULL;
  if (element == NULL) return false;
  float x;
  memcpy(&x, element, sizeof x);
  *out = (double)x;
  return true;
}

// The fact of an operand, which may be a number.
static bool operand_fact(const cpu_opt_attention *a, const cx_hlo_value *v,
                         cpu_opt_fact *out)
{
  *out = a->facts[v->number];
  if (out->kind != CPU_OPT_FACT_NONE) return true;
  const cx_hlo_type *t = &v->type.tensor;
  if (t->rank > CPU_OPT_AXIS_RANK ||
      !number_of(v, &out->terms[0].coefficient)) {
    return false;
  }
  out->kind = CPU_OPT_FACT_TERMS;
  out->n = 1;
  for (size_t i = 0; i < t->rank; i++) {
    out->axes.of[i] = t->dims[i] == 1 ? CPU_OPT_AXIS_ONE : CPU_OPT_AXIS_ANY;
  }
  return true;
}

// ---- sums -------------------------------------------------------------------

static bool add_term(cpu_opt_fact *f, cpu_opt_term t)
{
  for (size_t i = 0; i < f->n; i++) {
    cpu_opt_term *x = &f->terms[i];
    if (x->e == t.e && x->g == t.g && x->l == t.l && x->r == t.r) {
      x->coefficient += t.coefficient;
      return true;
    }
  }
  if (t.coefficient == 0) return true;
  if (f->n == CPU_OPT_TERMS) return false;
  f->terms[f->n++] = t;
  return true;
}

static bool add(const cpu_opt_fact *x, const cpu_opt_fact *y, double sign,
                cpu_opt_fact *out)
{
  if (x->gated != y->gated) return false;
  out->gated = x->gated;
  for (size_t i = 0; i < x->n; i++) {
    if (!add_term(out, x->terms[i])) return false;
  }
  for (size_t i = 0; i < y->n; i++) {
    cpu_opt_term t = y->terms[i];
    t.coefficient *= sign;
    if (!add_term(out, t)) return false;
  }
  return true;
}

static bool multiply(const cpu_opt_fact *x, const cpu_opt_fact *y,
                     cpu_opt_fact *out)
{
  out->gated = x->gated || y->gated;
  for (size_t i = 0; i < x->n; i++) {
    for (size_t k = 0; k < y->n; k++) {
      const cpu_opt_term *s = &x->terms[i], *t = &y->terms[k];
      if (!add_term(
              out, (cpu_opt_term){ s->coefficient * t->coefficient, s->e + t->e,
                                   s->g + t->g, s->l + t->l, s->r + t->r })) {
        return false;
      }
    }
  }
  return true;
}

// 1 / y, of numbers and of sums over a row.
static bool invert(const cpu_opt_fact *y, cpu_opt_fact *out)
{
  if (y->n != 1 || y->gated || y->terms[0].coefficient == 0 ||
      y->terms[0].e != 0 || y->terms[0].g != 0) {
    return false;
  }
  *out = *y;
  out->terms[0].coefficient = 1 / y->terms[0].coefficient;
  out->terms[0].l = -y->terms[0].l;
  out->terms[0].r = -y->terms[0].r;
  return true;
}

// The sum over a row.
static bool sum_up(const cpu_opt_fact *x, cpu_opt_fact *out)
{
  if (x->gated) return false;
  for (size_t i = 0; i < x->n; i++) {
    cpu_opt_term t = x->terms[i];
    if (t.e != 1 || t.g < 0 || t.g > 1) return false;
    if (t.g == 1) {
      t.r++;
    } else {
      t.l++;
    }
    t.e = t.g = 0;
    if (!add_term(out, t)) return false;
  }
  return true;
}

bool cpu_opt_is_probability(const cpu_opt_fact *f, double *factor)
{
  const cpu_opt_term *t = &f->terms[0];
  *factor = t->coefficient;
  return f->kind == CPU_OPT_FACT_TERMS && f->n == 1 && !f->gated && t->e == 1 &&
         t->g == 0 && t->l == -1 && t->r == 0;
}

bool cpu_opt_is_score_gradient(const cpu_opt_attention *a,
                               const cpu_opt_fact *f, double *factor)
{
  const bool gated = a->desc.masking == CPU_KERNEL_ATTENTION_KEEP ||
                     a->desc.masking == CPU_KERNEL_ATTENTION_HIDE;
  if (f->kind != CPU_OPT_FACT_TERMS || f->n != 2 || f->gated != gated) {
    return false;
  }
  const cpu_opt_term *s = &f->terms[0], *t = &f->terms[1];
  if (s->g == 0) {
    s = &f->terms[1];
    t = &f->terms[0];
  }
  *factor = s->coefficient;
  return t->coefficient == -s->coefficient && s->e == 1 && s->g == 1 &&
         s->l == -1 && s->r == 0 && t->e == 1 && t->g == 0 && t->l == -2 &&
         t->r == 1;
}

// ---- scores -----------------------------------------------------------------

static bool same_mask(const cpu_opt_attention *a, cx_hlo_value *mask,
                      const cpu_opt_axes *axes)
{
  const int m = CPU_KERNEL_ATTENTION_MASK;
  return a->inputs[m] != NULL &&
         cpu_opt_same_origin(a->inputs[m], &a->input_axes[m], mask, axes, true);
}

// The score with the mask, if a kernel can read it.
static bool set_mask(cpu_opt_attention *a, cx_hlo_value *mask,
                     const cpu_opt_fact *score,
                     cpu_kernel_attention_masking masking)
{
  if (a->desc.masking != CPU_KERNEL_ATTENTION_NO_MASK) return false;
  const cpu_opt_origin o = cpu_opt_origin_of(mask, &score->axes, true);
  const cx_hlo_type *t = &o.value->type.tensor;
  const cpu_kernel_attention_layout l =
      cpu_opt_axes_layout(t, &o.axes, CPU_OPT_AXIS_ROW, CPU_OPT_AXIS_COLUMN);
  if (l.column != 1) return false;
  a->inputs[CPU_KERNEL_ATTENTION_MASK] = o.value;
  a->input_axes[CPU_KERNEL_ATTENTION_MASK] = o.axes;
  a->desc.layout[CPU_KERNEL_ATTENTION_MASK] = l;
  a->desc.masking = masking;
  return true;
}

static bool step(cpu_opt_attention *a, const cpu_opt_fact *score,
                 cpu_opt_fact *out)
{
  if (score->steps != a->steps) return false;  // another has gone on from it
  *out = *score;
  out->steps = ++a->steps;
  return true;
}

static bool scale_score(cpu_opt_attention *a, const cpu_opt_fact *score,
                        const cpu_opt_fact *by, cpu_opt_fact *out)
{
  if (a->desc.masking != CPU_KERNEL_ATTENTION_NO_MASK || by->n != 1 ||
      by->terms[0].e != 0 || by->terms[0].l != 0 || by->terms[0].g != 0 ||
      by->terms[0].r != 0) {
    return false;
  }
  a->scale *= by->terms[0].coefficient;
  return step(a, score, out);
}

static bool add_bias(cpu_opt_attention *a, const cpu_opt_fact *score,
                     cx_hlo_value *bias, cpu_opt_fact *out)
{
  return bias->type.tensor.elem == CX_HLO_F32 &&
         set_mask(a, bias, score, CPU_KERNEL_ATTENTION_ADD) &&
         step(a, score, out);
}

static bool select_score(cpu_opt_attention *a, const cx_hlo_op *op, int side,
                         const cpu_opt_fact *score, cpu_opt_fact *out)
{
  double hidden = 0;
  if (op->operands[0]->type.tensor.rank != op->results[0].type.tensor.rank ||
      !number_of(op->operands[3 - side], &hidden) ||
      !set_mask(
          a, op->operands[0], score,
          side == 1 ? CPU_KERNEL_ATTENTION_KEEP : CPU_KERNEL_ATTENTION_HIDE)) {
    return false;
  }
  a->desc.hidden = cpu_kernel_f32_to_bits((float)hidden);
  return step(a, score, out);
}

// ---- operations -------------------------------------------------------------

// select(mask, terms, 0)
static bool gate(cpu_opt_attention *a, const cx_hlo_op *op, int side,
                 const cpu_opt_fact *x, cpu_opt_fact *out)
{
  const int wanted = a->desc.masking == CPU_KERNEL_ATTENTION_KEEP ? 1 : 2;
  if (side != wanted || !cpu_opt_is_number(op->operands[3 - side], 0) ||
      op->operands[0]->type.tensor.rank != op->results[0].type.tensor.rank ||
      !same_mask(a, op->operands[0], &x->axes)) {
    return false;
  }
  *out = *x;
  out->gated = true;
  return true;
}

static bool select_fact(cpu_opt_attention *a, const cx_hlo_op *op,
                        cpu_opt_fact *out)
{
  for (int side = 1; side <= 2; side++) {
    const cpu_opt_fact *x = &a->facts[op->operands[side]->number];
    if (x->kind == CPU_OPT_FACT_SCORE) {
      return select_score(a, op, side, x, out);
    }
    if (x->kind == CPU_OPT_FACT_TERMS) return gate(a, op, side, x, out);
  }
  return false;
}

static bool binary_fact(cpu_opt_attention *a, const cx_hlo_op *op,
                        cpu_opt_fact *out)
{
  cpu_opt_fact x, y;
  const bool has_x = operand_fact(a, op->operands[0], &x);
  const bool has_y = operand_fact(a, op->operands[1], &y);
  if (op->kind == CX_HLO_OP_ADD && has_x != has_y) {
    const cpu_opt_fact *score = has_x ? &x : &y;
    return score->kind == CPU_OPT_FACT_SCORE &&
           add_bias(a, score, op->operands[has_x ? 1 : 0], out);
  }
  if (!has_x || !has_y) return false;
  if (op->kind == CX_HLO_OP_MULTIPLY &&
      (x.kind == CPU_OPT_FACT_SCORE || y.kind == CPU_OPT_FACT_SCORE)) {
    const bool first = x.kind == CPU_OPT_FACT_SCORE;
    return (first ? y : x).kind == CPU_OPT_FACT_TERMS &&
           scale_score(a, first ? &x : &y, first ? &y : &x, out);
  }
  if (op->kind == CX_HLO_OP_DIVIDE && x.kind == CPU_OPT_FACT_SCORE) {
    cpu_opt_fact by = { 0 };
    return y.kind == CPU_OPT_FACT_TERMS && invert(&y, &by) &&
           scale_score(a, &x, &by, out);
  }
  const cx_hlo_type *type = &op->results[0].type.tensor;
  if (!cpu_opt_axes_merge(type->rank, &x.axes, &y.axes, &out->axes)) {
    return false;
  }
  if (op->kind == CX_HLO_OP_SUBTRACT && x.kind == CPU_OPT_FACT_SCORE) {
    out->kind = CPU_OPT_FACT_SHIFTED;
    return y.kind == CPU_OPT_FACT_MOST && y.steps == x.steps;
  }
  if (op->kind == CX_HLO_OP_MAXIMUM) {
    // With minus infinity.
    const cpu_opt_fact *most = x.kind == CPU_OPT_FACT_MOST ? &x : &y;
    const cpu_opt_fact *least = most == &x ? &y : &x;
    *out = *most;
    return most->kind == CPU_OPT_FACT_MOST &&
           least->kind == CPU_OPT_FACT_TERMS && least->n == 1 &&
           least->terms[0].e == 0 &&
           least->terms[0].coefficient == -(double)INFINITY;
  }
  if (x.kind != CPU_OPT_FACT_TERMS || y.kind != CPU_OPT_FACT_TERMS) {
    return false;
  }
  out->kind = CPU_OPT_FACT_TERMS;
  cpu_opt_fact over = { 0 };
  switch (op->kind) {
    case CX_HLO_OP_ADD: return add(&x, &y, 1, out);
    case CX_HLO_OP_SUBTRACT: return add(&x, &y, -1, out);
    case CX_HLO_OP_MULTIPLY: return multiply(&x, &y, out);
    default: return invert(&y, &over) && multiply(&x, &over, out);
  }
}

static bool reduce_fact(cpu_opt_attention *a, const cx_hlo_op *op,
                        cpu_opt_fact *out)
{
  const cpu_opt_fact *x = &a->facts[op->operands[0]->number];
  const cx_hlo_ints dims = cx_hlo_op_ints(op, CX_HLO_A_DIMENSIONS);
  const cx_hlo_op *combiner = cx_hlo_block_combiner(op->regions[0].first, 0);
  if (op->n_results != 1 || combiner == NULL) return false;
  int n = 0;
  size_t at = 0;
  for (size_t i = 0; i < op->operands[0]->type.tensor.rank; i++) {
    bool reduced = false;
    for (size_t k = 0; k < dims.n; k++) {
      reduced = reduced || dims.v[k] == (int64_t)i;
    }
    if (!reduced) {
      out->axes.of[at++] = x->axes.of[i];
    } else if (x->axes.of[i] == CPU_OPT_AXIS_COLUMN) {
      n++;
    } else if (x->axes.of[i] != CPU_OPT_AXIS_ONE) {
      return false;
    }
  }
  if (n != 1) return false;
  double initial = 0;
  if (!number_of(op->operands[1], &initial)) return false;
  if (combiner->kind == CX_HLO_OP_MAXIMUM) {
    out->kind = CPU_OPT_FACT_MOST;
    out->steps = x->steps;
    return x->kind == CPU_OPT_FACT_SCORE && initial == -(double)INFINITY;
  }
  out->kind = CPU_OPT_FACT_TERMS;
  return combiner->kind == CX_HLO_OP_ADD && x->kind == CPU_OPT_FACT_TERMS &&
         initial == 0 && sum_up(x, out);
}

bool cpu_opt_attention_fact(cpu_opt_attention *a, const cx_hlo_op *op,
                            cpu_opt_fact *out)
{
  const cpu_opt_fact *x = &a->facts[op->operands[0]->number];
  *out = (cpu_opt_fact){ 0 };
  if (op->n_results != 1 ||
      op->results[0].type.tensor.rank > CPU_OPT_AXIS_RANK ||
      !is_float(&op->results[0])) {
    return false;
  }
  switch (op->kind) {
    case CX_HLO_OP_ADD:
    case CX_HLO_OP_SUBTRACT:
    case CX_HLO_OP_MULTIPLY:
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_DIVIDE: return binary_fact(a, op, out);
    case CX_HLO_OP_SELECT: return select_fact(a, op, out);
    case CX_HLO_OP_REDUCE: return reduce_fact(a, op, out);
    case CX_HLO_OP_RESHAPE:
    case CX_HLO_OP_TRANSPOSE:
    case CX_HLO_OP_BROADCAST_IN_DIM:
      *out = *x;
      return cpu_opt_axes_move(op, &x->axes, &out->axes);
    case CX_HLO_OP_NEGATE:
      *out = *x;
      for (size_t i = 0; i < out->n; i++) out->terms[i].coefficient *= -1;
      return x->kind == CPU_OPT_FACT_TERMS;
    case CX_HLO_OP_EXPONENTIAL:
      *out =
          (cpu_opt_fact){ .kind = CPU_OPT_FACT_TERMS, .axes = x->axes, .n = 1 };
      out->terms[0] = (cpu_opt_term){ 1, 1, 0, 0, 0 };
      return x->kind == CPU_OPT_FACT_SHIFTED;
    default: return false;
  }
}
