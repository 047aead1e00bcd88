// opt/chlo: erfc of 16 bits and bessel_i1e.
//
// erfc is exp(-x^2) times a fit of our own, in f32. bessel_i1e has the ranges
// of Cephes's i1.c (S. L. Moshier) with Chebyshev series of our own, computed
// with 60 digits.
#include <math.h>

#include "opt/emit.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

// ---- erfc ----

// exp(a^2) erfc(a) / t in t = 1 / (1 + a / 2), with an error of 1.3e-5: a tenth
// of half a unit in f16's last place.
static const double erfc32[] = { 0.05704321512706019, -0.2548169145512907,
                                 0.2591819470846314,  0.11968963629801624,
                                 0.25514180921343615, 0.28164880575858947,
                                 0.2820988130291545 };

cpu_opt_value cpu_opt_erfc_narrow(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value t =
      number_over(b, 1, plus_number(b, times_number(b, a, 0.5), 1));
  cpu_opt_value p =
      times(b, t, cpu_opt_polynomial(b, t, erfc32, COUNT(erfc32)));
  cpu_opt_value e = times(b, exp_of(b, negated(b, times(b, a, a))), p);
  return choose(b, is_under(b, x, 0), number_minus(b, 2, e), e);
}

// ---- bessel_i1e ----

// Series of i1e(a) / a in a / 4 - 1 up to 8, of sqrt(a) i1e(a) in 16 / a - 1
// above.
static const double bessel_low[] = {
  0.12629359322181683,     -0.17641651835783406,    0.1026436586898471,
  -0.052945981208094991,   0.024726449030626517,    -0.010564084894626198,
  0.0041564229443128882,   -0.0015135724506312531,  0.00051228595616857577,
  -0.00016176081582589675, 4.7815651075500542e-5,   -1.3273163656039436e-5,
  3.4702513081376785e-6,   -8.5687202646954547e-7,  2.0032947535521353e-7,
  -4.4450591287963281e-8,  9.3815373864957718e-9,   -1.8872497517228293e-9,
  3.625590281552117e-10,   -6.6634897235020277e-11, 1.1736186298890902e-11,
  -1.9839743977649437e-12, 3.2237933659455747e-13,  -5.0421855047279117e-14,
  7.6006842947354069e-15,  -1.1055969477353863e-15, 1.5536319577362005e-16,
  -2.1114212143581661e-17, 2.7779141127610464e-18,  -3.5415817725421362e-19
};
static const double bessel_high[] = {
  0.38928811750914006,     -0.0097610974913614684,  -0.00011058893876262372,
  -3.8825648088776904e-6,  -2.5122362378702089e-7,  -2.6314688468895195e-8,
  -3.835380385964237e-9,   -5.5897434621965838e-10, -1.8974958123505412e-11,
  3.2526035830154882e-11,  1.4125807436613781e-11,  2.0356285441470895e-12,
  -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14,
  4.2724400167119514e-14,  1.0420276984128803e-14,  -3.8144030724370078e-15,
  -1.8803547755107824e-15, 3.3082023109209283e-16,  2.9626289976459501e-16,
  -3.209525921993424e-17,  -4.6503053684893583e-17, 4.4143483230717079e-18,
  7.5172963108421048e-18,  -9.3141788673268834e-19, -1.242193275194891e-18,
  2.4142767194548485e-19,  2.0269443840532852e-19
};

cpu_opt_value cpu_opt_bessel_i1e(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value near =
      times(b, a,
            cpu_opt_chebyshev(b, plus_number(b, times_number(b, a, 0.25), -1),
                              bessel_low, COUNT(bessel_low)));
  cpu_opt_value far =
      over(b,
           cpu_opt_chebyshev(b, plus_number(b, number_over(b, 16, a), -1),
                             bessel_high, COUNT(bessel_high)),
           root(b, a));
  cpu_opt_value r = choose(b, is_over(b, a, 8), far, near);
  return cpu_opt_copysign(b, r, x);
}
