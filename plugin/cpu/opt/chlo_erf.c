// opt/chlo: erfc, erf_inv and bessel_i1e.
//
// erfc on f16 and bf16 is exp(-x^2) times a fit of our own, in f32. erfc and
// erf_inv of f32 are computed in f64, which needs no care about rounding, with
// fits of our own to 2^-30 (least squares in Chebyshev's polynomials). The f64
// rationals of erfc are those of Cephes (S. L. Moshier, ndtr.c; after W. J.
// Cody, "Rational Chebyshev approximations for the error function", 1969).
// erf_inv has the ranges of M. Giles, "Approximating the erfinv
// function", 2010, with polynomials of our own; bessel_i1e the ranges of
// Cephes's i1.c with Chebyshev series of our own: all computed with 60 digits.
#include <math.h>

#include "opt/emit.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

// ---- erfc on f32, for narrower types ----

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

// ---- erfc on f64 ----

static const double erf_t[] = {
  9.60497373987051638749E0, 9.00260197203842689217E1, 2.23200534594684319226E3,
  7.00332514112805075473E3, 5.55923013010394962768E4
};
static const double erf_u[] = {
  1.00000000000000000000E0, 3.35617141647503099647E1, 5.21357949780152679795E2,
  4.59432382970980127987E3, 2.26290000613890934246E4, 4.92673942608635921086E4
};
static const double erfc_p[] = {
  2.46196981473530512524E-10, 5.64189564831068821977E-1,
  7.46321056442269912687E0,   4.86371970985681366614E1,
  1.96520832956077098242E2,   5.26445194995477358631E2,
  9.34528527171957607540E2,   1.02755188689515710272E3,
  5.57535335369399327526E2
};
static const double erfc_q[] = {
  1.00000000000000000000E0, 1.32281951154744992508E1, 8.67072140885989742329E1,
  3.54937778887819891062E2, 9.75708501743205489753E2, 1.82390916687909736289E3,
  2.24633760818710981792E3, 1.65666309194161350182E3, 5.57535340817727675546E2
};
static const double erfc_r[] = {
  5.64189583547755073984E-1, 1.27536670759978104416E0, 5.01905042251180477414E0,
  6.16021097993053585195E0,  7.40974269950448939160E0, 2.97886665372100240670E0
};
static const double erfc_s[] = {
  1.00000000000000000000E0, 2.26052863220117276590E0, 9.39603524938001434673E0,
  1.20489539808096656605E1, 1.70814450747565897222E1, 9.60896809063285878198E0,
  3.36907645100081516050E0
};

// erf for magnitudes up to 1.
static cpu_opt_value erf_near(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value s = times(b, x, x);
  cpu_opt_value top = cpu_opt_polynomial(b, s, erf_t, COUNT(erf_t));
  return times(b, x,
               over(b, top, cpu_opt_polynomial(b, s, erf_u, COUNT(erf_u))));
}

// exp(-a^2). The rounding error of a^2 would be magnified a^2 times, so a = h +
// l with so few bits in h that h^2 is exact.
static cpu_opt_value gauss(cx_hlo_builder *b, cpu_opt_value a)
{
  cpu_opt_value h =
      times_number(b, floor_of(b, times_number(b, a, 128)), 0.0078125);
  cpu_opt_value l = minus(b, a, h);
  cpu_opt_value lower = times(b, l, plus(b, a, h));
  cpu_opt_value e = exp_of(b, negated(b, times(b, h, h)));
  return times(b, e, exp_of(b, negated(b, lower)));
}

// erfc for a >= 1; above 28 it is 0.
static cpu_opt_value erfc_far(cx_hlo_builder *b, cpu_opt_value a)
{
  cpu_opt_value t = smaller(b, a, number(b, a, 28));
  cpu_opt_value near = over(b, cpu_opt_polynomial(b, t, erfc_p, COUNT(erfc_p)),
                            cpu_opt_polynomial(b, t, erfc_q, COUNT(erfc_q)));
  cpu_opt_value far = over(b, cpu_opt_polynomial(b, t, erfc_r, COUNT(erfc_r)),
                           cpu_opt_polynomial(b, t, erfc_s, COUNT(erfc_s)));
  return times(b, gauss(b, t), choose(b, is_under(b, t, 8), near, far));
}

cpu_opt_value cpu_opt_erfc(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = absolute(b, x);
  cpu_opt_value far = erfc_far(b, a);
  cpu_opt_value outer =
      choose(b, is_under(b, x, 0), number_minus(b, 2, far), far);
  return choose(b, is_under(b, a, 1), number_minus(b, 1, erf_near(b, x)),
                outer);
}

// ---- erfc for f32, in f64 ----

// exp(a^2) erfc(a) in (a - 3) / (a + 3), for a up to 10.1, from where on erfc
// is less than half of f32's least number.
static const double erfc_single[] = {
  5.1898589825685096e-06,  6.6903725305781194e-05, 3.1020835419775721e-05,
  -0.00060277616676924074, 0.00071225313456323744, 0.0042711465458230543,
  -0.024393206326885523,   0.071665575563955475,   -0.15011588312709817,
  0.24560381278394899,     -0.32623356134372006,   0.17900115111699177
};

cpu_opt_value cpu_opt_erfc_single(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value a = smaller(b, absolute(b, x), number(b, x, 10.1));
  cpu_opt_value t = over(b, plus_number(b, a, -3), plus_number(b, a, 3));
  cpu_opt_value p = cpu_opt_polynomial(b, t, erfc_single, COUNT(erfc_single));
  // The square of a number of 24 bits is exact.
  cpu_opt_value e = times(b, exp_of(b, negated(b, times(b, a, a))), p);
  return choose(b, is_under(b, x, 0), number_minus(b, 2, e), e);
}

// ---- erf_inv ----

// In powers of w - 3.125, sqrt(w) - 3.25 and sqrt(w) - 5.125, where w is
// -log(1 - x^2).
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

// In powers of w - 3.125 and sqrt(w) - 3.25; f32 has no w between 15.95 and
// infinity.
static const double inverse_low_single[] = {
  -1.330218319269096e-11,  5.3716480687820968e-12,  1.057881535041456e-09,
  -4.7442343181807677e-09, -2.9195994824935132e-08, 4.2690190381555282e-07,
  -1.364615704107972e-06,  -1.3891784996254592e-05, 0.00018673188276806263,
  -0.00074069165521976432, -0.0060336686873451104,  0.24015817875232234,
  1.6536545623611529
};
static const double inverse_middle_single[] = {
  -4.0568058220468995e-05, 8.1487976467602537e-05, 1.9680657945365851e-05,
  -0.00036133078097788836, 0.00095448775500423725, -0.0016868664419299171,
  0.0024913016591064626,   -0.0037513415161052263, 0.0053709200463401274,
  1.0052589712692646,      3.0838856104640655
};

// -log(1 - x^2)
static cpu_opt_value log_distance(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value product = times(b, number_minus(b, 1, x), plus_number(b, x, 1));
  return negated(b, log_of(b, product));
}

// p x, and infinity at 1.
static cpu_opt_value inverse_of(cx_hlo_builder *b, cpu_opt_value x,
                                cpu_opt_value p)
{
  cpu_opt_value end = is_at(b, absolute(b, x), 1);
  return times(b, choose(b, end, number(b, x, HUGE_VAL), p), x);
}

cpu_opt_value cpu_opt_erf_inv_single(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value w = log_distance(b, x);
  cpu_opt_value low =
      cpu_opt_polynomial(b, plus_number(b, w, -3.125), inverse_low_single,
                         COUNT(inverse_low_single));
  cpu_opt_value middle =
      cpu_opt_polynomial(b, plus_number(b, root(b, w), -3.25),
                         inverse_middle_single, COUNT(inverse_middle_single));
  return inverse_of(b, x, choose(b, is_under(b, w, 6.25), low, middle));
}

cpu_opt_value cpu_opt_erf_inv(cx_hlo_builder *b, cpu_opt_value x)
{
  cpu_opt_value w = log_distance(b, x);
  cpu_opt_value s = root(b, w);
  cpu_opt_value low = cpu_opt_polynomial(b, plus_number(b, w, -3.125),
                                         inverse_low, COUNT(inverse_low));
  cpu_opt_value middle = cpu_opt_polynomial(
      b, plus_number(b, s, -3.25), inverse_middle, COUNT(inverse_middle));
  cpu_opt_value high = cpu_opt_polynomial(b, plus_number(b, s, -5.125),
                                          inverse_high, COUNT(inverse_high));
  return inverse_of(b, x,
                    choose(b, is_under(b, w, 6.25), low,
                           choose(b, is_under(b, w, 16), middle, high)));
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
