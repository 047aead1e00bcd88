// jit/math_erf: erfc and the inverse of erf.
//
// erfc(x) is 1 - x - x P(x^2) near 0 and exp(-x^2) Q(x) beyond, where f32's
// (1+2x) Q(x) is a polynomial in (x-c) / (x+c) (the form is of M. Shepherd and
// J. Laframboise, "Chebyshev approximation of (1+2x) exp(x^2) erfc x", 1981)
// and f64's Q is the rationals of Cephes (S. L. Moshier, ndtr.c; after W. J.
// Cody, "Rational Chebyshev approximations for the error function", 1969).
// erf_inv has the form of M. Giles, "Approximating the erfinv function", 2010,
// x P(w) with w = -log(1 - x^2); f64's polynomials are our own fits with 60
// digits.
#include "jit/math_parts.h"

static const cpu_jit_series middle_top = {
  9,
  { 5.57535335369399327526E2, 1.02755188689515710272E3,
    9.34528527171957607540E2, 5.26445194995477358631E2,
    1.96520832956077098242E2, 4.86371970985681366614E1,
    7.46321056442269912687E0, 5.64189564831068821977E-1,
    2.46196981473530512524E-10 }
};
static const cpu_jit_series middle_bottom = {
  9,
  { 5.57535340817727675546E2, 1.65666309194161350182E3,
    2.24633760818710981792E3, 1.82390916687909736289E3,
    9.75708501743205489753E2, 3.54937778887819891062E2,
    8.67072140885989742329E1, 1.32281951154744992508E1,
    1.00000000000000000000E0 }
};
static const cpu_jit_series far_top = {
  6,
  { 2.97886665372100240670E0, 7.40974269950448939160E0,
    6.16021097993053585195E0, 5.01905042251180477414E0,
    1.27536670759978104416E0, 5.64189583547755073984E-1 }
};
static const cpu_jit_series far_bottom = {
  7,
  { 3.36907645100081516050E0, 9.60896809063285878198E0,
    1.70814450747565897222E1, 1.20489539808096656605E1,
    9.39603524938001434673E0, 2.26052863220117276590E0,
    1.00000000000000000000E0 }
};

// ---- erfc ----

// exp(-a^2) by `by`; a^2 has an error that exp would magnify.
static LLVMValueRef gauss_times(const cpu_jit_ir *m, LLVMValueRef a,
                                cpu_jit_pair by)
{
  cpu_jit_pair square = product_of(m, a, a);
  cpu_jit_pair x = { negative(m, square.hi), negative(m, square.lo) };
  return cpu_jit_exp_times(m, x, by);
}

// exp(a^2) erfc(a) from 0.8 up to 10.1, where f32 has no smaller number. The
// polynomial's first term is its value at the center, almost a float.
static cpu_jit_pair scaled_narrow(const cpu_jit_ir *m, LLVMValueRef a)
{
  LLVMValueRef center = num(m, 2.9999969005584717), one = num(m, 1);
  LLVMValueRef t = quotient(m, sub(m, a, center), add(m, a, center));
  LLVMValueRef rest = polynomial_from(m, &cpu_jit_erfcx_f32, 1, t);
  LLVMValueRef first = num(m, cpu_jit_erfcx_f32.terms[0]);
  cpu_jit_pair top = quick_sum(m, first, mul(m, rest, t));
  return ratio_of(m, top, quick_sum(m, add(m, a, a), one));
}

// The same for a >= 1; above 28 erfc is 0.
static cpu_jit_pair scaled_wide(const cpu_jit_ir *m, LLVMValueRef a)
{
  LLVMValueRef is_middle = less(m, a, num(m, 8)), zero = num(m, 0);
  LLVMValueRef top = choose(m, is_middle, polynomial(m, &middle_top, a),
                            polynomial(m, &far_top, a));
  LLVMValueRef bottom = choose(m, is_middle, polynomial(m, &middle_bottom, a),
                               polynomial(m, &far_bottom, a));
  return ratio_of(m, (cpu_jit_pair){ top, zero },
                  (cpu_jit_pair){ bottom, zero });
}

LLVMValueRef cpu_jit_erfc(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef magnitude = absolute(m, x), square = mul(m, x, x);
  LLVMValueRef a = at_most(m, magnitude, either(m, 10.1, 28));
  LLVMValueRef far =
      gauss_times(m, a, m->wide ? scaled_wide(m, a) : scaled_narrow(m, a));
  far = choose(m, less(m, x, num(m, 0)), sub(m, num(m, 2), far), far);
  LLVMValueRef p =
      polynomial(m, m->wide ? &cpu_jit_erf_f64 : &cpu_jit_erf_f32, square);
  LLVMValueRef near = sub(m, sub(m, num(m, 1), x), mul(m, p, x));
  return choose(m, less(m, magnitude, either(m, 0.81, 1)), near, far);
}

// ---- erf_inv ----

// In powers of w - 3.125, sqrt(w) - 3.25 and sqrt(w) - 5.125.
static const double inverse_low[] = {
  -1.062661045960373e-21, -1.6799573252473117e-19, 1.1472892499658116e-18,
  1.1132050897179721e-17, -1.301058090875769e-16,  2.1532989801742722e-17,
  6.595574614113682e-15,  -4.0552462575666957e-14, -8.1177203635106666e-14,
  2.6335599076213162e-12, -1.2976921089952883e-11, -5.415435817169476e-11,
  1.0512182736096884e-9,  -4.1126332809472789e-9,  -2.9070382513851822e-8,
  4.2347877704225573e-7,  -1.365469184753234e-6,   -1.3882523361584086e-5,
  0.00018673420802445552, -0.00074070253416680276, -0.0060336708714278026,
  0.24015818242558969,    1.6536545626831027
};
static const double inverse_middle[] = {
  6.8549064300269058e-10, 9.0692528630371793e-8,  -2.7131624527580291e-7,
  1.8388706833090645e-8,  1.4986827255819008e-6,  -4.0140103357855181e-6,
  2.925746394013068e-6,   1.2475377015983698e-5,  -4.7318989799941195e-5,
  6.8284830494579507e-5,  2.4031258115822877e-5,  -0.00035503751692834043,
  0.00095328936362384672, -0.0016882755563216031, 0.0024914420969882754,
  -0.0037512085075576364, 0.0053709145535715434,  1.0052589676941591,
  3.0838856104922206
};
static const double inverse_high[] = {
  2.0186766962063982e-11, -2.2678908192370868e-10, 8.5123889295682096e-10,
  -1.8622482801508006e-9, 3.4911735607019094e-9,   -6.8347790991674197e-9,
  1.4598625438068775e-8,  -4.1659903088323714e-8,  1.6930165004838654e-7,
  -7.961964349153816e-7,  3.7475911541912686e-6,   -1.6589904218986969e-5,
  6.4690756106251198e-5,  -0.00017993907174023441, -0.00021259950361968834,
  1.0102562759886399,     4.9761913900162993
};

// The highest power first.
static LLVMValueRef long_polynomial(const cpu_jit_ir *m, LLVMValueRef x,
                                    const double *terms, size_t n)
{
  LLVMValueRef sum = num(m, terms[0]);
  for (size_t i = 1; i < n; i++) sum = mad(m, sum, x, num(m, terms[i]));
  return sum;
}

#define LONG(x, terms) \
  long_polynomial(m, x, terms, sizeof(terms) / sizeof(terms)[0])

// The polynomial in w - center without most of its rounding, which the product
// with x would double.
static cpu_jit_pair exact_polynomial(const cpu_jit_ir *m,
                                     const cpu_jit_series *series,
                                     LLVMValueRef w, double center)
{
  LLVMValueRef c = num(m, center), first = num(m, series->terms[0]);
  LLVMValueRef t = sub(m, w, c);
  LLVMValueRef rest = polynomial_from(m, series, 1, t);
  cpu_jit_pair product = product_of(m, rest, t);
  cpu_jit_pair sum = quick_sum(m, first, product.hi);
  LLVMValueRef t_lo = sub(m, w, add(m, t, c));
  LLVMValueRef lo = mad(m, rest, t_lo, product.lo);
  return (cpu_jit_pair){ sum.hi, add(m, sum.lo, lo) };
}

// f32 has no w between 15.95 and infinity.
static LLVMValueRef erf_inv_narrow(const cpu_jit_ir *m, LLVMValueRef x,
                                   LLVMValueRef w)
{
  cpu_jit_pair low = exact_polynomial(m, &cpu_jit_inverse_low_f32, w, 3.125);
  cpu_jit_pair high =
      exact_polynomial(m, &cpu_jit_inverse_high_f32, root(m, w), 3.25);
  LLVMValueRef is_low = less(m, w, num(m, 6.25));
  LLVMValueRef hi = choose(m, is_low, low.hi, high.hi);
  LLVMValueRef lo = choose(m, is_low, low.lo, high.lo);
  return mad(m, hi, x, mul(m, lo, x));
}

static LLVMValueRef erf_inv_wide(const cpu_jit_ir *m, LLVMValueRef x,
                                 LLVMValueRef w)
{
  LLVMValueRef s = root(m, w);
  LLVMValueRef low = LONG(sub(m, w, num(m, 3.125)), inverse_low);
  LLVMValueRef middle = LONG(sub(m, s, num(m, 3.25)), inverse_middle);
  LLVMValueRef high = LONG(sub(m, s, num(m, 5.125)), inverse_high);
  high = choose(m, less(m, w, num(m, 16)), middle, high);
  return mul(m, choose(m, less(m, w, num(m, 6.25)), low, high), x);
}

LLVMValueRef cpu_jit_erf_inv(const cpu_jit_ir *m, LLVMValueRef x)
{
  LLVMValueRef one = num(m, 1);
  LLVMValueRef w = mul(m, sub(m, one, x), add(m, one, x));
  w = negative(m, cpu_jit_log(m, w));
  LLVMValueRef result =
      m->wide ? erf_inv_wide(m, x, w) : erf_inv_narrow(m, x, w);
  LLVMValueRef at_end = same(m, absolute(m, x), one);
  return with_sign(m, choose(m, at_end, infinity(m), result), x);
}
