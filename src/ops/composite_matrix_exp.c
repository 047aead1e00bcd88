// ops/composite_matrix_exp: the exponential of matrices, by scaling, a Taylor
// polynomial and squaring (N. Higham, Functions of Matrices, 2008, 10.3).
#include <math.h>

#include "ops/factor.h"

// A polynomial of degree 16 has a relative error below 2^-53 up to norm LIMIT.
// A matrix is divided by 2 as often as it takes, MOST times at most, and the
// polynomial squared as often.
#define LIMIT 0.8
enum { DEGREE = 16, BLOCK = 4, MOST = 24 };

// sum of x^k / k! for k from `from` to `from` + BLOCK - 1, divided by x^from.
static calx_tensor *block(calx_tensor *const *powers, int from, double factor)
{
  calx_tensor *sum = NULL;
  for (int k = 0; k < BLOCK; k++) {
    calx_tensor *term = calx_mul(powers[k], calx_scalar(factor));
    sum = sum == NULL ? term : cx_ops_plus(sum, term);
    factor /= from + k + 1;
  }
  return sum;
}

// sum of x^k / k! for k from 0 to DEGREE, Horner's rule in x^BLOCK (M.
// Paterson, L. Stockmeyer, 1973).
static calx_tensor *taylor(calx_tensor *x, calx_tensor *eye)
{
  calx_tensor *powers[BLOCK + 1] = { eye, x };
  for (int k = 2; k <= BLOCK; k++) {
    powers[k] = calx_matmul(powers[k - 1], x);
  }
  calx_tensor *sum = calx_mul(powers[0], calx_scalar(1 / tgamma(DEGREE + 1)));
  for (int from = DEGREE - BLOCK; from >= 0; from -= BLOCK) {
    calx_tensor *next = block(powers, from, 1 / tgamma(from + 1));
    sum = cx_ops_plus(next, calx_matmul(powers[BLOCK], sum));
  }
  return sum;
}

// How often each matrix is halved, (…, 1, 1); NaN: MOST times are too few.
static calx_tensor *halvings(calx_tensor *x)
{
  static const int64_t rows = -2, columns = -1;
  calx_reduce_options sum = { .size = sizeof sum,
                              .dims = calx_dims_of(&rows, 1),
                              .keepdim = true };
  calx_reduce_options most = { .size = sizeof most,
                               .dims = calx_dims_of(&columns, 1),
                               .keepdim = true };
  calx_tensor *norm = calx_sum_with(calx_abs(calx_detach(x)), &sum);
  norm = calx_div(calx_amax_with(norm, &most), calx_scalar(LIMIT));
  calx_tensor *times =
      calx_ceil(calx_log2(calx_clamp_min(norm, calx_scalar(1))));
  calx_tensor *bad = calx_logical_not(calx_le(times, calx_scalar(MOST)));
  return calx_where(bad, calx_scalar((double)NAN), times);
}

calx_tensor *calx_matrix_exp(calx_tensor *x)
{
  CX_OPS_COMPOSITE("matrix_exp");
  calx_tensor *bad;
  if (!cx_ops_is_matrix("matrix_exp", x, true, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  int64_t n = s->dims[s->rank - 1];
  if (cx_graph_shape_numel(s) == 0) return calx_exp(x);
  calx_tensor *times = halvings(x);
  calx_tensor *eye = cx_ops_eye(x, n, n);
  calx_tensor *y = taylor(calx_mul(x, calx_exp2(calx_neg(times))), eye);
  for (int k = 0; k < MOST; k++) {
    calx_tensor *goes_on = calx_gt(times, calx_scalar(k));
    y = calx_where(goes_on, calx_matmul(y, y), y);
  }
  return y;
}
