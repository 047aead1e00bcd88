// opt/algebra: elementwise identities that hold for every value: also for -0,
// NaN and infinities (x + 0 is not x, since -0 + 0 is 0; x - 0 is).
#include <math.h>
#include <string.h>

#include "hlo/number.h"
#include "hlo/ops.h"
#include "opt/edit.h"
#include "opt/integers.h"
#include "opt/passes.h"

static cx_hlo_elem elem_of(const cx_hlo_value *v)
{
  return v->type.tensor.elem;
}

static bool is_integral(const cx_hlo_value *v)
{
  const cx_hlo_elem e = elem_of(v);
  return cx_hlo_elem_is_int(e) || e == CX_HLO_I1;
}

static bool is_all_ones(const cx_hlo_value *v)
{
  const unsigned char *p = cpu_opt_splat(v);
  if (p == NULL || !is_integral(v)) return false;
  const unsigned bits = cx_hlo_elem_bits(elem_of(v));
  const uint64_t mask = bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
  return ((uint64_t)cx_hlo_load_int(elem_of(v), p) & mask) == mask;
}

// Each function returns the value that replaces the operation; NULL: none.

// ---- arithmetic ----

static cx_hlo_value *sum(cx_hlo_value *x, cx_hlo_value *y)
{
  if (cpu_opt_is_zero(y, true)) return x;
  return cpu_opt_is_zero(x, true) ? y : NULL;
}

static cx_hlo_value *difference(cpu_opt_walk *w, cx_hlo_value *x,
                                cx_hlo_value *y)
{
  if (cpu_opt_is_zero(y, false)) return x;
  if (x == y && is_integral(x)) {
    return cx_hlo_splat_int(&w->b, x->type.tensor, 0);
  }
  return NULL;
}

static cx_hlo_value *product(cx_hlo_value *x, cx_hlo_value *y)
{
  if (cpu_opt_is_number(y, 1) && !cx_hlo_elem_is_complex(elem_of(x))) return x;
  if (cpu_opt_is_number(x, 1) && !cx_hlo_elem_is_complex(elem_of(x))) return y;
  if (!is_integral(x)) return NULL;
  if (cpu_opt_is_number(y, 0)) return y;
  return cpu_opt_is_number(x, 0) ? x : NULL;
}

// The reciprocal of a power of two, if it is a normal number: multiplying by it
// gives the same bits as dividing. 0: there is none.
static double exact_reciprocal(const cx_hlo_value *v)
{
  const cx_hlo_elem e = elem_of(v);
  const unsigned char *p = cpu_opt_splat(v);
  if (p == NULL || !cx_hlo_elem_is_float(e)) return 0;
  const double c = cx_hlo_load_real(e, p);
  int power = 0;
  if (c == 0 || !isfinite(c) || fabs(frexp(c, &power)) != 0.5) return 0;
  const int most = e == CX_HLO_F16 ? 13 : 120;
  return power < -most || power > most ? 0 : 1 / c;
}

static cx_hlo_value *quotient(cpu_opt_walk *w, cx_hlo_value *x, cx_hlo_value *y)
{
  const cx_hlo_elem e = elem_of(x);
  if (cx_hlo_elem_is_complex(e)) return NULL;
  if (cpu_opt_is_number(y, 1)) return x;
  if (e != CX_HLO_F16 && e != CX_HLO_BF16 && e != CX_HLO_F32 &&
      e != CX_HLO_F64) {
    return NULL;
  }
  const double r = exact_reciprocal(y);
  if (r == 0) return NULL;
  return cx_hlo_binary(&w->b, CX_HLO_OP_MULTIPLY, x,
                       cx_hlo_splat(&w->b, y->type.tensor, r));
}

static cx_hlo_value *power(cpu_opt_walk *w, cx_hlo_value *x, cx_hlo_value *y)
{
  if (cx_hlo_elem_is_complex(elem_of(x))) return NULL;
  if (cpu_opt_is_number(y, 1)) return x;
  if (!cpu_opt_is_number(y, 2)) return NULL;
  return cx_hlo_binary(&w->b, CX_HLO_OP_MULTIPLY, x, x);
}

// ---- bits ----

static cx_hlo_value *bits(cpu_opt_walk *w, cx_hlo_op_kind kind, cx_hlo_value *x,
                          cx_hlo_value *y)
{
  if (kind == CX_HLO_OP_XOR) {
    if (x == y) return cx_hlo_splat_int(&w->b, x->type.tensor, 0);
    if (cpu_opt_is_zero(y, false)) return x;
    return cpu_opt_is_zero(x, false) ? y : NULL;
  }
  const bool is_and = kind == CX_HLO_OP_AND;
  if (x == y) return x;
  // With the neutral element the result is the other operand, with the
  // absorbing element it is that element.
  if (is_and ? is_all_ones(y) : cpu_opt_is_zero(y, false)) return x;
  if (is_and ? is_all_ones(x) : cpu_opt_is_zero(x, false)) return y;
  if (is_and ? cpu_opt_is_zero(y, false) : is_all_ones(y)) return y;
  if (is_and ? cpu_opt_is_zero(x, false) : is_all_ones(x)) return x;
  return NULL;
}

// f(f(x)) is x.
static cx_hlo_value *twice(cx_hlo_op_kind kind, cx_hlo_value *x)
{
  const cx_hlo_op *inner = cpu_opt_made_by(x, kind);
  return inner == NULL ? NULL : inner->operands[0];
}

static cx_hlo_value *magnitude(cpu_opt_walk *w, cx_hlo_value *x)
{
  if (cx_hlo_elem_is_complex(elem_of(x))) return NULL;
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_NEGATE);
  if (inner != NULL) {
    return cx_hlo_unary(&w->b, CX_HLO_OP_ABS, inner->operands[0]);
  }
  inner = cpu_opt_made_by(x, CX_HLO_OP_ABS);
  return inner == NULL || cx_hlo_elem_is_complex(elem_of(inner->operands[0]))
             ? NULL
             : x;
}

// ---- choices ----

// What a comparison of integers is for all elements; -1: not known. JAX
// compares each index with 0.
static int known_comparison(const cx_hlo_value *x, const cx_hlo_value *y,
                            int64_t direction)
{
  cpu_opt_integers a, b;
  if (!cpu_opt_know_integers(x, -1, &a) || !a.bounded) return -1;
  if (!cpu_opt_know_integers(y, -1, &b) || !b.bounded) return -1;
  const bool less = a.high<b.low, more = a.low> b.high;
  switch (direction) {
    case CX_HLO_EQ: return less || more ? 0 : -1;
    case CX_HLO_NE: return less || more ? 1 : -1;
    case CX_HLO_LT: return less ? 1 : a.low >= b.high ? 0 : -1;
    case CX_HLO_GE: return less ? 0 : a.low >= b.high ? 1 : -1;
    case CX_HLO_GT: return more ? 1 : a.high <= b.low ? 0 : -1;
    case CX_HLO_LE: return more ? 0 : a.high <= b.low ? 1 : -1;
    default: return -1;
  }
}

static cx_hlo_value *comparison(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const int64_t d = cx_hlo_op_int(op, CX_HLO_A_COMPARISON_DIRECTION);
  if (!is_integral(x)) return NULL;
  if (x == op->operands[1]) {
    const bool same = d == CX_HLO_EQ || d == CX_HLO_GE || d == CX_HLO_LE;
    return cx_hlo_splat_int(&w->b, op->results[0].type.tensor, same);
  }
  if (elem_of(x) == CX_HLO_I1) {
    const double neutral = d == CX_HLO_EQ ? 1 : 0;
    const bool eq = d == CX_HLO_EQ || d == CX_HLO_NE;
    if (eq && cpu_opt_is_number(op->operands[1], neutral)) return x;
  }
  const int known = known_comparison(x, op->operands[1], d);
  return known < 0 ? NULL
                   : cx_hlo_splat_int(&w->b, op->results[0].type.tensor, known);
}

static cx_hlo_value *selection(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *pred = op->operands[0];
  cx_hlo_value *x = op->operands[1];
  cx_hlo_value *y = op->operands[2];
  if (x == y || cpu_opt_is_number(pred, 1)) return x;
  if (cpu_opt_is_number(pred, 0)) return y;
  if (elem_of(x) == CX_HLO_I1 && cpu_opt_is_number(x, 1) &&
      cpu_opt_is_number(y, 0) &&
      cx_hlo_any_equal(&pred->type, &op->results[0].type)) {
    return pred;
  }
  const cx_hlo_op *flipped = cpu_opt_made_by(pred, CX_HLO_OP_NOT);
  if (flipped == NULL) return NULL;
  return cx_hlo_select(&w->b, flipped->operands[0], y, x);
}

// ---- conversions ----

// Bits of a float's significand; 0: not one of these floats.
static int digits_of(cx_hlo_elem e)
{
  switch (e) {
    case CX_HLO_F64: return 53;
    case CX_HLO_F32: return 24;
    case CX_HLO_F16: return 11;
    case CX_HLO_BF16: return 8;
    default: return 0;
  }
}

static bool is_lossless(cx_hlo_elem from, cx_hlo_elem to)
{
  if (from == CX_HLO_I1) return true;
  const int bits_from = (int)cx_hlo_elem_bits(from);
  if (cx_hlo_elem_is_int(from) && cx_hlo_elem_is_int(to)) {
    const bool same =
        cx_hlo_elem_is_unsigned(from) == cx_hlo_elem_is_unsigned(to);
    const int bits_to = (int)cx_hlo_elem_bits(to);
    return same ? bits_from <= bits_to
                : cx_hlo_elem_is_unsigned(from) && bits_from < bits_to;
  }
  if (cx_hlo_elem_is_int(from)) {
    // The largest f16 is below 2^16.
    return to != CX_HLO_F16 && bits_from <= digits_of(to);
  }
  if (to == CX_HLO_F64) return digits_of(from) != 0;
  return to == CX_HLO_F32 && digits_of(from) != 0 && digits_of(from) <= 24;
}

// Whether loops compute with e, an integer.
static bool is_byte_or_more(cx_hlo_elem e)
{
  return cx_hlo_elem_is_int(e) && cx_hlo_elem_is_plain(e);
}

// For a conversion to an integer of n < 8 bits: the low n bits of the source,
// as a byte. The bits above them are the sign, or 0 where it is unsigned. NULL:
// it is another conversion.
static cx_hlo_value *low_bits(cpu_opt_walk *w, const cx_hlo_op *convert)
{
  const cx_hlo_elem e = elem_of(&convert->results[0]);
  cx_hlo_value *source = convert->operands[0];
  if (!cx_hlo_elem_is_int(e) || cx_hlo_elem_is_plain(e) ||
      !is_byte_or_more(elem_of(source))) {
    return NULL;
  }
  const bool u = cx_hlo_elem_is_unsigned(e);
  const cx_hlo_elem byte = u ? CX_HLO_UI8 : CX_HLO_I8;
  cx_hlo_value *x =
      elem_of(source) == byte ? source : cx_hlo_convert(&w->b, source, byte);
  if (x == NULL) return NULL;
  cx_hlo_value *left =
      cx_hlo_splat_int(&w->b, x->type.tensor, 8 - (int64_t)cx_hlo_elem_bits(e));
  if (left == NULL) return NULL;
  x = cx_hlo_binary(&w->b, CX_HLO_OP_SHIFT_LEFT, x, left);
  return x == NULL ? NULL
                   : cx_hlo_binary(&w->b,
                                   u ? CX_HLO_OP_SHIFT_RIGHT_LOGICAL
                                     : CX_HLO_OP_SHIFT_RIGHT_ARITHMETIC,
                                   x, left);
}

static cx_hlo_value *conversion(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_elem to = elem_of(&op->results[0]);
  if (elem_of(x) == to) return x;
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_CONVERT);
  if (inner == NULL) return NULL;
  cx_hlo_value *source = inner->operands[0];
  if (!is_lossless(elem_of(source), elem_of(x))) {
    cx_hlo_value *low = low_bits(w, inner);
    return low == NULL || elem_of(low) == to ? low
                                             : cx_hlo_convert(&w->b, low, to);
  }
  if (elem_of(source) == to) return source;
  return cx_hlo_convert(&w->b, source, to);
}

static cx_hlo_value *bitcast(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_type *to = &op->results[0].type.tensor;
  if (cx_hlo_type_equal(&x->type.tensor, to)) return x;
  const cx_hlo_op *inner = cpu_opt_made_by(x, CX_HLO_OP_BITCAST_CONVERT);
  if (inner == NULL || !cpu_opt_same_dims(&x->type.tensor, to)) return NULL;
  cx_hlo_value *source = inner->operands[0];
  if (!cpu_opt_same_dims(&source->type.tensor, to)) return NULL;
  if (elem_of(source) == to->elem) return source;
  return cx_hlo_bitcast_convert(&w->b, source, *to);
}

static cx_hlo_value *part(cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  const cx_hlo_op *whole = cpu_opt_made_by(x, CX_HLO_OP_COMPLEX);
  if (whole != NULL) return whole->operands[op->kind == CX_HLO_OP_IMAG];
  const bool real = !cx_hlo_elem_is_complex(elem_of(x));
  return real && op->kind == CX_HLO_OP_REAL ? x : NULL;
}

// ---- the pass ----

static cx_hlo_value *simpler(cpu_opt_walk *w, cx_hlo_op *op)
{
  cx_hlo_value *x = op->operands[0];
  cx_hlo_value *y = op->n_operands > 1 ? op->operands[1] : NULL;
  switch (op->kind) {
    case CX_HLO_OP_ADD: return sum(x, y);
    case CX_HLO_OP_SUBTRACT: return difference(w, x, y);
    case CX_HLO_OP_MULTIPLY: return product(x, y);
    case CX_HLO_OP_DIVIDE: return quotient(w, x, y);
    case CX_HLO_OP_POWER: return power(w, x, y);
    case CX_HLO_OP_MAXIMUM:
    case CX_HLO_OP_MINIMUM: return x == y ? x : NULL;
    case CX_HLO_OP_AND:
    case CX_HLO_OP_OR:
    case CX_HLO_OP_XOR: return bits(w, op->kind, x, y);
    case CX_HLO_OP_NEGATE:
    case CX_HLO_OP_NOT: return twice(op->kind, x);
    case CX_HLO_OP_ABS: return magnitude(w, x);
    case CX_HLO_OP_COMPARE: return comparison(w, op);
    case CX_HLO_OP_SELECT: return selection(w, op);
    case CX_HLO_OP_CONVERT: return conversion(w, op);
    case CX_HLO_OP_BITCAST_CONVERT: return bitcast(w, op);
    case CX_HLO_OP_REAL:
    case CX_HLO_OP_IMAG: return part(op);
    default: return NULL;
  }
}

static calx_status *visit(cpu_opt_walk *w, cx_hlo_op *op)
{
  const bool mine = op->kind == CX_HLO_OP_BITCAST_CONVERT ||
                    (cpu_opt_is_elementwise(op) && op->n_operands > 0);
  if (!mine) return NULL;
  cx_hlo_value *r = simpler(w, op);
  if (r == NULL) return NULL;
  cpu_opt_replace(w, op, r);
  w->revisit = true;
  return NULL;
}

calx_status *cpu_opt_algebra(cx_hlo_module *m, bool *changed)
{
  return cpu_opt_walk_func(m, cx_hlo_entry(m), visit, NULL, changed);
}
