// fuzz/program_gen_elements: operations on one element each.
#include <math.h>

#include "program_gen_parts.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool is_float(gen_value v)
{
  return cx_hlo_elem_is_float(gen_type(v)->elem);
}

// |x| + 0.5, for what needs numbers away from zero.
static gen_value away_from_zero(gen *g, gen_value x)
{
  cx_hlo_value *half = cx_hlo_splat(g->b, *gen_type(x), 0.5);
  x.v = cx_hlo_binary(g->b, CX_HLO_OP_ADD,
                      cx_hlo_unary(g->b, CX_HLO_OP_ABS, x.v), half);
  x.f.magnitude += 0.5;
  gen_rounded(gen_type(x)->elem, false, &x.f);
  return x;
}

// How a function changes what is known, over the numbers up to the magnitude.
typedef struct slope {
  cx_hlo_op_kind kind;
  double most;    // of the magnitude that goes in
  double slope;   // 0: its value, as for exp
  double result;  // the magnitude that comes out; 0: as for exp
  bool guarded;   // only away from zero
} slope;

bool gen_unary_float(gen *g)
{
  static const slope slopes[] = {
    { CX_HLO_OP_TANH, 1e9, 1, 1, false },
    { CX_HLO_OP_LOGISTIC, 1e9, 0.25, 1, false },
    { CX_HLO_OP_CHLO_ERF, 1e9, 1.13, 1, false },
    { CX_HLO_OP_CHLO_ERFC, 1e9, 1.13, 2, false },
    { CX_HLO_OP_CHLO_ASIN, 0.9, 2.3, 1.2, false },
    { CX_HLO_OP_CHLO_ACOS, 0.9, 2.3, 2.7, false },
    { CX_HLO_OP_CHLO_ATAN, 1e9, 1, 1.6, false },
    { CX_HLO_OP_CHLO_ASINH, 1e9, 1, 22, false },
    { CX_HLO_OP_CHLO_ATANH, 0.9, 5.3, 1.5, false },
    { CX_HLO_OP_CHLO_SINH, 8, 0, 0, false },
    { CX_HLO_OP_CHLO_COSH, 8, 0, 0, false },
    { CX_HLO_OP_SINE, 100, 1, 1, false },
    { CX_HLO_OP_COSINE, 100, 1, 1, false },
    { CX_HLO_OP_EXPONENTIAL, 8, 0, 0, false },
    { CX_HLO_OP_EXPONENTIAL_MINUS_ONE, 8, 0, 0, false },
    { CX_HLO_OP_TAN, 1, 3.5, 1.6, false },
    { CX_HLO_OP_LOG, 1e9, 2, 21, true },
    { CX_HLO_OP_LOG_PLUS_ONE, 1e9, 1, 21, true },
    { CX_HLO_OP_SQRT, 1e9, 0.8, 4e4, true },
    { CX_HLO_OP_RSQRT, 1e9, 1.5, 1.5, true },
    { CX_HLO_OP_CBRT, 1e9, 0.6, 1001, true },
  };
  gen_value x = gen_pick(g, (gen_want){ .classes = CX_HLO_CLASS_FLOAT });
  const slope *s = &slopes[gen_below(g, COUNT(slopes))];
  if (x.f.magnitude > s->most) return false;
  // A logarithm and a root also of what is not positive: NaN everywhere.
  const bool raw = x.f.error == 0 && x.f.integral && gen_chance(g, 30) &&
                   s->kind != CX_HLO_OP_RSQRT;
  if (s->guarded && !raw) x = away_from_zero(g, x);
  gen_facts f = x.f;
  f.finite = f.finite && !s->guarded;
  const double grown = exp(f.magnitude);
  f.error *= s->slope == 0 ? grown : s->slope;
  f.magnitude = s->result == 0 ? grown : s->result;
  if (s->kind == CX_HLO_OP_SQRT) f.magnitude = sqrt(x.f.magnitude) + 1;
  if (!gen_rounded(gen_type(x)->elem, false, &f)) return false;
  f.error *= 4;  // implementations of functions are some units apart
  return gen_push(g, cx_hlo_unary(g->b, s->kind, x.v), f);
}

// What does not round, or jumps.
bool gen_unary_exact(gen *g)
{
  static const cx_hlo_op_kind smooth[] = { CX_HLO_OP_NEGATE, CX_HLO_OP_ABS };
  static const cx_hlo_op_kind jumps[] = { CX_HLO_OP_SIGN, CX_HLO_OP_FLOOR,
                                          CX_HLO_OP_CEIL,
                                          CX_HLO_OP_ROUND_NEAREST_EVEN,
                                          CX_HLO_OP_ROUND_NEAREST_AFZ };
  const bool jump = gen_chance(g, 50);
  gen_value x =
      gen_pick(g, (gen_want){ .classes = CX_HLO_CLASS_FLOAT, .exact = jump });
  gen_facts f = x.f;
  cx_hlo_op_kind kind = smooth[gen_below(g, COUNT(smooth))];
  if (jump) {
    if (gen_chance(g, 15)) {
      return gen_push(g, cx_hlo_unary(g->b, CX_HLO_OP_IS_FINITE, x.v),
                      (gen_facts){ 1, 0, true, true });
    }
    kind = jumps[gen_below(g, COUNT(jumps))];
    f.magnitude += 1;
    f.integral = f.magnitude <= 2 / gen_epsilon(gen_type(x)->elem);
  }
  return gen_push(g, cx_hlo_unary(g->b, kind, x.v), f);
}

bool gen_unary_integer(gen *g)
{
  static const cx_hlo_op_kind kinds[] = {
    CX_HLO_OP_NOT,    CX_HLO_OP_POPCNT, CX_HLO_OP_COUNT_LEADING_ZEROS,
    CX_HLO_OP_NEGATE, CX_HLO_OP_ABS,    CX_HLO_OP_SIGN
  };
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_INTEGER });
  const cx_hlo_op_kind kind = kinds[gen_below(g, COUNT(kinds))];
  const bool is_signed = !cx_hlo_elem_is_unsigned(gen_type(x)->elem);
  if (g->portable && kind == CX_HLO_OP_COUNT_LEADING_ZEROS) return false;
  if (!is_signed && (kind == CX_HLO_OP_ABS || kind == CX_HLO_OP_SIGN)) {
    return false;
  }
  if (g->portable && kind == CX_HLO_OP_ABS && x.v->op != NULL) return false;
  gen_facts f = { ldexp(1, (int)cx_hlo_elem_bits(gen_type(x)->elem)), 0, true,
                  true };
  return gen_push(g, cx_hlo_unary(g->b, kind, x.v), f);
}

bool gen_binary(gen *g)
{
  static const cx_hlo_op_kind kinds[] = {
    CX_HLO_OP_ADD,      CX_HLO_OP_ADD,      CX_HLO_OP_SUBTRACT,
    CX_HLO_OP_MULTIPLY, CX_HLO_OP_MULTIPLY, CX_HLO_OP_MAXIMUM,
    CX_HLO_OP_MINIMUM
  };
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_NUMBER });
  gen_value y = gen_like(g, gen_type(x), false);
  if (y.v == NULL) return false;
  const cx_hlo_op_kind kind = kinds[gen_below(g, COUNT(kinds))];
  gen_facts f = gen_both(&x.f, &y.f);
  if (kind == CX_HLO_OP_MULTIPLY) {
    f.magnitude = x.f.magnitude * y.f.magnitude;
    f.error = x.f.magnitude * y.f.error + y.f.magnitude * x.f.error +
              x.f.error * y.f.error;
  } else if (kind == CX_HLO_OP_ADD || kind == CX_HLO_OP_SUBTRACT) {
    f.magnitude = x.f.magnitude + y.f.magnitude;
    f.error = x.f.error + y.f.error;
  }
  const bool rounds = kind != CX_HLO_OP_MAXIMUM && kind != CX_HLO_OP_MINIMUM;
  if (rounds && !gen_rounded(gen_type(x)->elem, true, &f)) return false;
  return gen_push(g, cx_hlo_binary(g->b, kind, x.v, y.v), f);
}

bool gen_bitwise(gen *g)
{
  static const cx_hlo_op_kind kinds[] = { CX_HLO_OP_AND,
                                          CX_HLO_OP_OR,
                                          CX_HLO_OP_XOR,
                                          CX_HLO_OP_SHIFT_LEFT,
                                          CX_HLO_OP_SHIFT_RIGHT_LOGICAL,
                                          CX_HLO_OP_SHIFT_RIGHT_ARITHMETIC };
  const bool flags = gen_chance(g, 40);
  gen_value x = gen_pick(
      g, (gen_want){ .classes = flags ? CX_HLO_CLASS_BOOL : GEN_INTEGER });
  gen_value y = gen_like(g, gen_type(x), false);
  const cx_hlo_op_kind kind = kinds[gen_below(g, flags ? 3 : COUNT(kinds))];
  gen_facts f = { ldexp(1, (int)cx_hlo_elem_bits(gen_type(x)->elem)), 0, true,
                  true };
  if (flags && gen_chance(g, 20)) {
    return gen_push(g, cx_hlo_unary(g->b, CX_HLO_OP_NOT, x.v), f);
  }
  return gen_push(g, cx_hlo_binary(g->b, kind, x.v, y.v), f);
}

// x / y, x % y, x ^ y, atan2(x, y) with y (of the power: x) away from zero.
static bool guarded_float(gen *g, gen_value x, gen_value y)
{
  gen_value by = away_from_zero(g, y);
  gen_facts f = gen_both(&x.f, &by.f);
  cx_hlo_value *out = NULL;
  switch (gen_below(g, 3)) {
    case 0:
      f.magnitude = 2 * x.f.magnitude;
      f.error = 2 * x.f.error + 4 * x.f.magnitude * by.f.error;
      if (!gen_rounded(gen_type(x)->elem, false, &f)) return false;
      out = cx_hlo_binary(g->b, CX_HLO_OP_DIVIDE, x.v, by.v);
      break;
    case 1:
      f.magnitude = 3.2;
      f.error = 2 * (x.f.error + by.f.error);
      // On the cut behind zero a sign decides: y is positive, so it is far.
      if (!gen_rounded(gen_type(x)->elem, false, &f)) return false;
      f.error *= 4;
      out = cx_hlo_binary(g->b, CX_HLO_OP_ATAN2, x.v, by.v);
      break;
    default:
      if (x.f.magnitude > 4.5 || by.f.magnitude > 10) return false;
      f.magnitude = pow(fmax(by.f.magnitude, 2), x.f.magnitude);
      f.error = f.magnitude * (2 * x.f.magnitude * by.f.error + 3 * x.f.error);
      if (!gen_rounded(gen_type(x)->elem, false, &f)) return false;
      f.error *= 16;
      out = cx_hlo_binary(g->b, CX_HLO_OP_POWER, by.v, x.v);
      break;
  }
  f.finite = x.f.finite && y.f.finite;
  return gen_push(g, out, f);
}

static bool guarded_int(gen *g, gen_value x, gen_value y)
{
  const cx_hlo_op_kind kind =
      gen_chance(g, 50) ? CX_HLO_OP_DIVIDE : CX_HLO_OP_REMAINDER;
  if (g->portable && x.f.magnitude > 1000) return false;
  if (g->portable || gen_chance(g, 70)) {
    cx_hlo_value *one = cx_hlo_splat_int(g->b, *gen_type(y), 1);
    y.v = cx_hlo_binary(g->b, CX_HLO_OP_OR, y.v, one);
  }
  gen_facts f = { ldexp(1, (int)cx_hlo_elem_bits(gen_type(x)->elem)), 0, true,
                  true };
  return gen_push(g, cx_hlo_binary(g->b, kind, x.v, y.v), f);
}

bool gen_guarded(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_NUMBER });
  gen_value y = gen_like(g, gen_type(x), false);
  if (y.v == NULL) return false;
  return is_float(x) ? guarded_float(g, x, y) : guarded_int(g, x, y);
}

bool gen_compare_select(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_ANY, .exact = true });
  gen_value y = gen_like(g, gen_type(x), false);
  if (y.v == NULL || y.f.error != 0) return false;
  const cx_hlo_direction d = (cx_hlo_direction)gen_below(g, 6);
  cx_hlo_value *pred = cx_hlo_compare(g->b, d, x.v, y.v);
  const gen_facts flag = { 1, 0, true, true };
  if (gen_chance(g, 30)) return gen_push(g, pred, flag);
  cx_hlo_type t = *gen_type(x);
  t.elem = gen_elem(g, GEN_ANY);
  gen_value a = gen_like(g, &t, false), b = gen_like(g, &t, false);
  return gen_push(g, cx_hlo_select(g->b, pred, a.v, b.v), gen_both(&a.f, &b.f));
}

static bool narrows(cx_hlo_elem from, cx_hlo_elem to, const gen_facts *f)
{
  if (f->integral && f->magnitude <= 2 / gen_epsilon(to)) return false;
  return !cx_hlo_elem_is_float(from) || gen_epsilon(to) > gen_epsilon(from) ||
         (from == CX_HLO_BF16 && to == CX_HLO_F16);
}

bool gen_convert_one(gen *g)
{
  const cx_hlo_elem to = gen_elem(g, GEN_ANY);
  gen_value x = gen_pick(
      g, (gen_want){ .classes = GEN_ANY, .exact = !cx_hlo_elem_is_float(to) });
  const cx_hlo_elem from = gen_type(x)->elem;
  gen_facts f = x.f;
  if (cx_hlo_elem_is_float(to)) {
    // A float of the same size of exponent, wider: exact.
    if (narrows(from, to, &f) && !gen_rounded(to, false, &f)) return false;
    f.integral = f.integral && f.error == 0;
  } else {
    if (!f.finite && cx_hlo_elem_is_float(from)) return false;
    if (cx_hlo_elem_is_float(from) && cx_hlo_elem_is_unsigned(to)) return false;
    f = (gen_facts){ ldexp(1, (int)cx_hlo_elem_bits(to)), 0, true, true };
    if (x.f.integral) f.magnitude = fmin(f.magnitude, x.f.magnitude);
    if (cx_hlo_elem_is_float(from) && x.f.magnitude >= 127) return false;
  }
  return gen_push(g, cx_hlo_convert(g->b, x.v, to), f);
}

bool gen_clamp_one(gen *g)
{
  gen_value x =
      gen_pick(g, (gen_want){ .classes = GEN_NUMBER, .finite = true });
  const cx_hlo_type scalar = { gen_type(x)->elem, 0, NULL };
  const bool whole = gen_chance(g, 50);
  gen_value low = gen_like(g, whole ? gen_type(x) : &scalar, true);
  gen_value high = gen_like(g, whole ? gen_type(x) : &scalar, true);
  gen_facts f = gen_both(&x.f, &low.f);
  f = gen_both(&f, &high.f);
  if (g->portable) {
    high.v = cx_hlo_binary(g->b, CX_HLO_OP_MAXIMUM, low.v, high.v);
  }
  return gen_push(g, cx_hlo_clamp(g->b, low.v, x.v, high.v), f);
}

// Between integers of the same size.
bool gen_bitcast(gen *g)
{
  gen_value x = gen_pick(g, (gen_want){ .classes = GEN_INTEGER });
  cx_hlo_type t = *gen_type(x);
  const size_t size = cx_hlo_elem_bytes(t.elem);
  t.elem = gen_elem(g, GEN_INTEGER);
  if (cx_hlo_elem_bytes(t.elem) != size) return false;
  gen_facts f = { ldexp(1, (int)(8 * size)), 0, true, true };
  return gen_push(g, cx_hlo_bitcast_convert(g->b, x.v, t), f);
}
