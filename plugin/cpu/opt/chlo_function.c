// opt/chlo: the operations of CHLO that are functions of elements.
//
// Functions of reals that the jit has stay what they are: see jit/math.def. The
// others are computed in f64 and rounded once to the operand's type. erfc of 16
// bits is computed in f32 with their precision, because models use it on large
// tensors.
#include <math.h>
#include <string.h>

#include "opt/chlo.h"

// ---- functions of one type ----

typedef cpu_opt_value unary_fn(cx_hlo_builder *b, cpu_opt_value x);

typedef struct function {
  const char *name;
  cx_hlo_op_kind kept;        // of reals; 0: `real` makes it
  unary_fn *real;             // on f64
  cpu_opt_parts_fn *complex;  // on parts of f64; NULL: not defined
} function;

static const function functions[] = {
  { "erf", CX_HLO_OP_CHLO_ERF, NULL, NULL },
  { "erfc", CX_HLO_OP_CHLO_ERFC, NULL, NULL },
  { "erf_inv", CX_HLO_OP_CHLO_ERF_INV, NULL, NULL },
  { "lgamma", 0, cpu_opt_lgamma, NULL },
  { "digamma", 0, cpu_opt_digamma, NULL },
  { "bessel_i1e", 0, cpu_opt_bessel_i1e, NULL },
  { "asin", CX_HLO_OP_CHLO_ASIN, NULL, cpu_opt_casin },
  { "acos", CX_HLO_OP_CHLO_ACOS, NULL, cpu_opt_cacos },
  { "atan", CX_HLO_OP_CHLO_ATAN, NULL, cpu_opt_catan },
  { "asinh", CX_HLO_OP_CHLO_ASINH, NULL, cpu_opt_casinh },
  { "acosh", CX_HLO_OP_CHLO_ACOSH, NULL, cpu_opt_cacosh },
  { "atanh", CX_HLO_OP_CHLO_ATANH, NULL, cpu_opt_catanh },
  { "sinh", CX_HLO_OP_CHLO_SINH, NULL, cpu_opt_csinh },
  { "cosh", CX_HLO_OP_CHLO_COSH, NULL, cpu_opt_ccosh },
};

// Types on which the jit computes.
static bool is_computed(cx_hlo_elem e)
{
  return e == CX_HLO_F64 || e == CX_HLO_F32 || e == CX_HLO_F16 ||
         e == CX_HLO_BF16;
}

cx_hlo_op_kind cpu_opt_chlo_function(cx_hlo_str name, cx_hlo_elem e)
{
  if (name.n < 5 || memcmp(name.s, "chlo.", 5) != 0 || !is_computed(e)) {
    return CX_HLO_OP_OTHER;
  }
  name.s += 5;
  name.n -= 5;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (cx_hlo_str_equal(name, functions[i].name)) return functions[i].kept;
  }
  return CX_HLO_OP_OTHER;
}

bool cpu_opt_chlo_is_kept(const cx_hlo_op *op)
{
  if (op->n_operands != 1) return false;
  const cx_hlo_elem e = op->operands[0]->type.tensor.elem;
  if (!is_computed(e)) return false;
  if (op->kind == CX_HLO_OP_CHLO_ERFC) return cx_hlo_elem_bits(e) > 16;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (functions[i].kept != 0 && functions[i].kept == op->kind) return true;
  }
  return false;
}

static cpu_opt_value apply_complex(cx_hlo_builder *b, const function *f,
                                   cpu_opt_value x)
{
  const cx_hlo_elem part = cx_hlo_elem_part(x->type.tensor.elem);
  const cpu_opt_parts z = {
    converted(b, real(b, x), CX_HLO_F64),
    converted(b, imaginary(b, x), CX_HLO_F64),
  };
  const cpu_opt_parts r = f->complex(b, z);
  return complex_of(b, converted(b, r.re, part), converted(b, r.im, part));
}

static cpu_opt_value apply(cx_hlo_builder *b, const function *f,
                           cpu_opt_value x)
{
  const cx_hlo_elem e = x->type.tensor.elem;
  if (cx_hlo_elem_is_complex(e)) {
    return f->complex == NULL ? NULL : apply_complex(b, f, x);
  }
  if (!cx_hlo_elem_is_float(e)) return NULL;
  if (f->kept == CX_HLO_OP_CHLO_ERFC && cx_hlo_elem_bits(e) <= 16) {
    return converted(b, cpu_opt_erfc_narrow(b, converted(b, x, CX_HLO_F32)), e);
  }
  cpu_opt_value v = converted(b, x, CX_HLO_F64);
  if (f->kept != 0) return converted(b, cx_hlo_unary(b, f->kept, v), e);
  return converted(b, f->real(b, v), e);
}

// zeta and polygamma
static cpu_opt_value apply_two(cx_hlo_builder *b,
                               cpu_opt_value fn(cx_hlo_builder *b,
                                                cpu_opt_value x,
                                                cpu_opt_value y),
                               cpu_opt_value x, cpu_opt_value y)
{
  const cx_hlo_elem e = x->type.tensor.elem;
  if (!cx_hlo_elem_is_float(e)) return NULL;
  return converted(
      b, fn(b, converted(b, x, CX_HLO_F64), converted(b, y, CX_HLO_F64)), e);
}

// ---- other functions ----

static cpu_opt_value conjugate(cx_hlo_builder *b, cpu_opt_value x)
{
  if (!cx_hlo_elem_is_complex(x->type.tensor.elem)) return x;
  cpu_opt_value im = imaginary(b, x);
  return complex_of(b, real(b, x), negated(b, im));
}

// (x - y) (x + y) and 2xy. Where |x| = |y|, the real part is |x| - |y|: 0 even
// if x + y overflows, and NaN of infinities.
static cpu_opt_value square(cx_hlo_builder *b, cpu_opt_value z)
{
  if (!cx_hlo_elem_is_complex(z->type.tensor.elem)) return times(b, z, z);
  cpu_opt_value x = real(b, z);
  cpu_opt_value y = imaginary(b, z);
  cpu_opt_value p = absolute(b, x);
  cpu_opt_value q = absolute(b, y);
  cpu_opt_value re = choose(b, equal(b, p, q), minus(b, p, q),
                            times(b, minus(b, x, y), plus(b, x, y)));
  cpu_opt_value im = times(b, x, y);
  return complex_of(b, re, plus(b, im, im));
}

// The next number from x toward y: as integers the bits are one more or less.
static cpu_opt_value next_after(cx_hlo_builder *b, cpu_opt_value x,
                                cpu_opt_value y)
{
  const cx_hlo_elem e = x->type.tensor.elem;
  const unsigned width = cx_hlo_elem_bits(e);
  if (!cx_hlo_elem_is_float(e) || width < 8) return NULL;
  cx_hlo_type bits = x->type.tensor;
  bits.elem = width == 64   ? CX_HLO_UI64
              : width == 32 ? CX_HLO_UI32
              : width == 16 ? CX_HLO_UI16
                            : CX_HLO_UI8;
  cpu_opt_value sign =
      cx_hlo_splat_int(b, bits, (int64_t)((uint64_t)1 << (width - 1)));
  cpu_opt_value rest = complement(b, sign);
  cpu_opt_value one = cx_hlo_splat_int(b, bits, 1);
  cpu_opt_value zero = cx_hlo_splat_int(b, bits, 0);
  cpu_opt_value p = cx_hlo_bitcast_convert(b, x, bits);
  cpu_opt_value q = cx_hlo_bitcast_convert(b, y, bits);
  cpu_opt_value q_sign = both(b, q, sign);
  cpu_opt_value apart = cx_hlo_compare(b, CX_HLO_NE, both(b, p, sign), q_sign);
  cpu_opt_value larger =
      cx_hlo_compare(b, CX_HLO_GT, both(b, p, rest), both(b, q, rest));
  cpu_opt_value down = either(b, apart, larger);
  cpu_opt_value r = choose(b, down, minus(b, p, one), plus(b, p, one));
  cpu_opt_value at_zero = equal(b, both(b, p, rest), zero);
  r = choose(b, at_zero, either(b, q_sign, one), r);
  cpu_opt_value next = cx_hlo_bitcast_convert(b, r, x->type.tensor);
  next = choose(b, equal(b, x, y), y, next);
  // NaN where either is one.
  cpu_opt_value ordered = both(b, equal(b, x, x), equal(b, y, y));
  return choose(b, ordered, next, plus(b, x, y));
}

// The upper 64 of 128 bits, from products of 32-bit halves. These are unsigned:
// for signed operands the result is corrected.
static cpu_opt_value high_product_64(cx_hlo_builder *b, cpu_opt_value x,
                                     cpu_opt_value y, bool is_signed)
{
  cx_hlo_type word = x->type.tensor;
  word.elem = CX_HLO_UI64;
  cpu_opt_value p = converted(b, x, CX_HLO_UI64);
  cpu_opt_value q = converted(b, y, CX_HLO_UI64);
  cpu_opt_value half = cx_hlo_splat_int(b, word, 32);
  cpu_opt_value low = cx_hlo_splat_int(b, word, 0xffffffff);
  const cx_hlo_op_kind right = CX_HLO_OP_SHIFT_RIGHT_LOGICAL;
  cpu_opt_value pl = both(b, p, low);
  cpu_opt_value ph = cx_hlo_binary(b, right, p, half);
  cpu_opt_value ql = both(b, q, low);
  cpu_opt_value qh = cx_hlo_binary(b, right, q, half);
  cpu_opt_value carry = cx_hlo_binary(b, right, times(b, pl, ql), half);
  cpu_opt_value middle = plus(b, times(b, ph, ql), carry);
  cpu_opt_value other = plus(b, times(b, pl, qh), both(b, middle, low));
  cpu_opt_value r = plus(b, times(b, ph, qh),
                         plus(b, cx_hlo_binary(b, right, middle, half),
                              cx_hlo_binary(b, right, other, half)));
  if (!is_signed) return r;
  r = converted(b, r, CX_HLO_I64);
  cpu_opt_value zero = number(b, x, 0);
  r = minus(b, r, choose(b, is_under(b, x, 0), y, zero));
  return minus(b, r, choose(b, is_under(b, y, 0), x, zero));
}

static cpu_opt_value high_product(cx_hlo_builder *b, cpu_opt_value x,
                                  cpu_opt_value y)
{
  const cx_hlo_elem e = x->type.tensor.elem;
  if (!cx_hlo_elem_is_int(e)) return NULL;
  const bool is_signed = !cx_hlo_elem_is_unsigned(e);
  const unsigned width = cx_hlo_elem_bits(e);
  if (width == 64) return high_product_64(b, x, y, is_signed);
  const cx_hlo_elem wide = is_signed ? CX_HLO_I64 : CX_HLO_UI64;
  cpu_opt_value r = times(b, converted(b, x, wide), converted(b, y, wide));
  r = cx_hlo_binary(b,
                    is_signed ? CX_HLO_OP_SHIFT_RIGHT_ARITHMETIC
                              : CX_HLO_OP_SHIFT_RIGHT_LOGICAL,
                    r, number(b, r, width));
  return converted(b, r, e);
}

cpu_opt_value cpu_opt_chlo_one(cx_hlo_builder *b, cx_hlo_str name,
                               cpu_opt_value x)
{
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (cx_hlo_str_equal(name, functions[i].name)) {
      return apply(b, &functions[i], x);
    }
  }
  if (cx_hlo_str_equal(name, "tan")) return cx_hlo_unary(b, CX_HLO_OP_TAN, x);
  if (cx_hlo_str_equal(name, "conj")) return conjugate(b, x);
  if (cx_hlo_str_equal(name, "square")) return square(b, x);
  if (cx_hlo_str_equal(name, "is_inf")) {
    return is_at(b, absolute(b, x), HUGE_VAL);
  }
  if (cx_hlo_str_equal(name, "is_pos_inf")) return is_at(b, x, HUGE_VAL);
  if (cx_hlo_str_equal(name, "is_neg_inf")) return is_at(b, x, -HUGE_VAL);
  return NULL;
}

cpu_opt_value cpu_opt_chlo_two(cx_hlo_builder *b, cx_hlo_str name,
                               cpu_opt_value x, cpu_opt_value y)
{
  if (x == NULL || y == NULL) return NULL;
  if (cx_hlo_str_equal(name, "next_after")) return next_after(b, x, y);
  if (cx_hlo_str_equal(name, "mulhi")) return high_product(b, x, y);
  if (cx_hlo_str_equal(name, "zeta")) return apply_two(b, cpu_opt_zeta, x, y);
  if (cx_hlo_str_equal(name, "polygamma")) {
    return apply_two(b, cpu_opt_polygamma, x, y);
  }
  return NULL;
}
