// opt/chlo: polynomials and signs, of which functions of reals are made.
#include "opt/emit.h"

cpu_opt_value cpu_opt_polynomial(cx_hlo_builder *b, cpu_opt_value x,
                                 const double *c, size_t n)
{
  cpu_opt_value r = number(b, x, c[0]);
  for (size_t i = 1; i < n; i++) {
    r = plus_number(b, times(b, r, x), c[i]);
  }
  return r;
}

cpu_opt_value cpu_opt_chebyshev(cx_hlo_builder *b, cpu_opt_value x,
                                const double *c, size_t n)
{
  cpu_opt_value twice = plus(b, x, x);
  cpu_opt_value newer = number(b, x, c[n - 1]);
  cpu_opt_value older = number(b, x, 0);
  for (size_t i = n - 1; i-- > 1;) {
    cpu_opt_value next = minus(b, times(b, twice, newer), older);
    older = newer;
    newer = plus_number(b, next, c[i]);
  }
  return plus_number(b, minus(b, times(b, x, newer), older), c[0]);
}

cpu_opt_value cpu_opt_copysign(cx_hlo_builder *b, cpu_opt_value x,
                               cpu_opt_value y)
{
  if (x == NULL || y == NULL) return NULL;
  cx_hlo_type bits = x->type.tensor;
  const bool wide = bits.elem == CX_HLO_F64;
  bits.elem = wide ? CX_HLO_UI64 : CX_HLO_UI32;
  const int64_t top = wide ? INT64_MIN : (int64_t)1 << 31;
  cpu_opt_value sign = cx_hlo_splat_int(b, bits, top);
  cpu_opt_value rest = complement(b, sign);
  cpu_opt_value magnitude = both(b, cx_hlo_bitcast_convert(b, x, bits), rest);
  cpu_opt_value signs = both(b, cx_hlo_bitcast_convert(b, y, bits), sign);
  return cx_hlo_bitcast_convert(b, either(b, magnitude, signs), x->type.tensor);
}
