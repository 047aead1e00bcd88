// The ops that are composed of others: a row each, with what it is called with.
#include "finite.h"
#include "support/long.h"

// ---- indices ----------------------------------------------------------------

static calx_tensor *rows(void)
{
  static const int64_t i[2] = { 2, 0 };
  return calx_tensor_from(i, CALX_I64, CALX_SHAPE(2));
}

static calx_tensor *places(void)
{
  static const int64_t i[8] = { 0, 2, 1, 1, 0, 0, 2, 1 };
  return calx_tensor_from(i, CALX_I64, CALX_SHAPE(2, 4));
}

// No place twice.
static calx_tensor *distinct(void)
{
  static const int64_t i[8] = { 0, 2, 1, 1, 1, 0, 2, 0 };
  return calx_tensor_from(i, CALX_I64, CALX_SHAPE(2, 4));
}

static calx_tensor *signs(void)
{
  static const int64_t i[3] = { 1, -1, 1 };
  return calx_tensor_from(i, CALX_I64, CALX_SHAPE(3));
}

static calx_tensor *thirds(void)
{
  static const int64_t i[3] = { 3, 0, 2 };
  return calx_tensor_from(i, CALX_I64, CALX_SHAPE(3));
}

static calx_tensor *ends(void)
{
  static const int32_t i[2] = { 1, 4 };
  return calx_tensor_from(i, CALX_I32, CALX_SHAPE(2));
}

// With a diagonal by which no row is near another as a pivot.
static calx_tensor *shifted(calx_tensor *x)
{
  int64_t m = calx_tensor_dim(x, 0), n = calx_tensor_dim(x, 1);
  return calx_add(x, calx_mul(4, calx_eye(m, n, .dtype = CALX_F64)));
}

static calx_tensor *lists(void)
{
  static const int64_t i[8] = { 3, 0, -1, 1, 2, -1, 0, 0 };
  return calx_tensor_from(i, CALX_I64, CALX_SHAPE(2, 4));
}

static calx_tensor *parts(calx_tensor *x)
{
  calx_tensor *out[2], *row[3];
  calx_split(x, CALX_DIMS(1, 3), 1, out);
  calx_unbind(out[1], 0, row);
  return calx_add(calx_mul(out[0], row[1]), row[2]);
}

// A symmetric positive definite matrix.
static calx_tensor *positive(calx_tensor *x)
{
  calx_tensor *y = calx_matmul(x, calx_transpose(x, -1, -2));
  return calx_add(y, calx_eye(3, 3, .dtype = CALX_F64));
}

// Of values and vectors, whose signs are open.
static calx_tensor *eigh_of(calx_tensor *x)
{
  calx_tensor *v, *w = calx_eigh(x, &v);
  v = calx_sum(calx_pow(v, 4), .dims = CALX_DIMS(0));
  return calx_add(calx_square(w), calx_mul(3, v));
}

static calx_tensor *svd_of(calx_tensor *x)
{
  calx_tensor *s, *vh, *u = calx_svd(x, &s, &vh);
  u = calx_sum(calx_pow(u, 4), .dims = CALX_DIMS(0));
  vh = calx_sum(calx_pow(vh, 4), .dims = CALX_DIMS(1));
  return calx_add(calx_square(s), calx_mul(calx_add(u, 1), vh));
}

// Of both factors.
static calx_tensor *qr_of(calx_tensor *x)
{
  int64_t m = calx_tensor_dim(x, 0), n = calx_tensor_dim(x, 1);
  calx_tensor *r, *q;
  q = calx_qr(calx_add(x, calx_mul(2, calx_eye(m, n, .dtype = CALX_F64))), &r);
  return calx_add(calx_sum(calx_square(calx_mul(q, calx_add(q, 1)))),
                  calx_sum(calx_square(r)));
}

static calx_tensor *slope(calx_tensor *x)
{
  calx_tensor *out[2];
  calx_gradient(x, out, .edge_order = 2);
  return calx_add(out[0], out[1]);
}

// ---- the ops ----------------------------------------------------------------

// clang-format off
// name, expression of x and in[], range of the inputs, flat as in a subject,
// the inputs' sizes
#define COMPOSED(ROW) \
  ROW(silu, (calx_silu(x)), -2, 2, false, { 3, 4 }) \
  ROW(selu, (calx_selu(x)), -2, 2, false, { 3, 4 }) \
  ROW(hardswish, (calx_hardswish(x)), -2, 2, false, { 3, 4 }) \
  ROW(mish, (calx_mish(x)), -2, 2, false, { 3, 4 }) \
  ROW(logsigmoid, (calx_logsigmoid(x)), -2, 2, false, { 3, 4 }) \
  ROW(softsign, (calx_softsign(x)), -2, 2, false, { 3, 4 }) \
  ROW(tanhshrink, (calx_tanhshrink(x)), -2, 2, false, { 3, 4 }) \
  ROW(relu6, (calx_relu6(x)), 0.1, 8, true, { 3, 4 }) \
  ROW(hardsigmoid, (calx_hardsigmoid(x)), -4, 4, true, { 3, 4 }) \
  ROW(gelu, (calx_gelu(x)), -2, 2, false, { 3, 4 }) \
  ROW(gelu_tanh, (calx_gelu(x, .approximate = CALX_GELU_TANH)), -2, 2, false, { 3, 4 }) \
  ROW(elu, (calx_elu(x, .alpha = 1.5)), -2, 2, false, { 3, 4 }) \
  ROW(celu, (calx_celu(x, .alpha = 1.5)), -2, 2, false, { 3, 4 }) \
  ROW(leaky_relu, (calx_leaky_relu(x, .negative_slope = 0.2)), -2, 2, true, { 3, 4 }) \
  ROW(hardtanh, (calx_hardtanh(x)), -2, 2, true, { 3, 4 }) \
  ROW(softplus, (calx_softplus(x, .beta = 1.3, .threshold = 1.5)), -2, 2, false, { 3, 4 }) \
  ROW(hardshrink, (calx_hardshrink(x)), -2, 2, true, { 3, 4 }) \
  ROW(softshrink, (calx_softshrink(x)), -2, 2, true, { 3, 4 }) \
  ROW(threshold, (calx_threshold(x, 0.1, 20)), -2, 2, true, { 3, 4 }) \
  ROW(prelu, (calx_prelu(x, in[1])), -2, 2, false, { 3, 4 }, { 4 }) \
  ROW(glu, (calx_glu(x, 1)), -2, 2, false, { 3, 4 }) \
  ROW(softmin, (calx_softmin(x, 1)), -2, 2, false, { 3, 4 }) \
  ROW(clamp, (calx_square(calx_clamp(x, -0.5, 0.7))), -2, 2, false, { 3, 4 }) \
  ROW(nan_to_num, (calx_square(calx_nan_to_num(x))), -2, 2, false, { 3, 4 }) \
  ROW(masked_fill, (calx_square(calx_masked_fill(x, calx_gt(x, 0), 3))), -2, 2, false, { 3, 4 }) \
  ROW(lerp, (calx_square(calx_lerp(x, in[1], in[2]))), -1, 1, false, { 3, 4 }, { 3, 4 }, { 4 }) \
  ROW(addcmul, (calx_square(calx_addcmul(x, in[1], in[2], .value = 0.7))), -1, 1, false, { 3, 4 }, { 3, 4 }, { 4 }) \
  ROW(addcdiv, (calx_square(calx_addcdiv(x, in[1], in[2], .value = 0.7))), 0.5, 2, false, { 3, 4 }, { 3, 4 }, { 4 }) \
  ROW(xlog1py, (calx_xlog1py(x, in[1])), 0.5, 2, false, { 3, 4 }, { 3, 4 }) \
  ROW(ldexp, (calx_square(calx_ldexp(x, 2))), -1, 1, false, { 3, 4 }) \
  ROW(frexp, (calx_square(calx_frexp(x, NULL))), 0.6, 0.9, false, { 3, 4 }) \
  ROW(logaddexp2, (calx_logaddexp2(x, in[1])), -2, 2, false, { 3, 4 }, { 4 }) \
  ROW(dist, (calx_dist(x, in[1], .p = 3)), -1, 1, false, { 3, 4 }, { 4 }) \
  ROW(pdist, (calx_pdist(x)), -1, 1, false, { 3, 4 }) \
  ROW(inner, (calx_square(calx_inner(x, in[1]))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(addbmm, (calx_square(calx_addbmm(x, in[1], in[2], .beta = 0.5))), -1, 1, false, { 2 }, { 2, 2, 3 }, { 2, 3, 2 }) \
  ROW(renorm, (calx_square(calx_renorm(x, 3, 0, 0.5))), 0.5, 1, false, { 3, 4 }) \
  ROW(index_reduce_mean, (calx_square(calx_index_reduce(x, 0, rows(), in[1], CALX_INDEX_MEAN))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(index_reduce_amax, (calx_square(calx_index_reduce(x, 0, rows(), in[1], CALX_INDEX_AMAX, .exclude_self = true))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(combinations, (calx_square(calx_combinations(x))), -1, 1, false, { 4 }) \
  ROW(column_stack, (calx_square(calx_column_stack(in, 2))), -1, 1, false, { 3 }, { 3, 2 }) \
  ROW(diagflat, (calx_square(calx_diagflat(x, 1))), -1, 1, false, { 2, 2 }) \
  ROW(diagonal_scatter, (calx_square(calx_diagonal_scatter(x, in[1], .offset = 1))), -1, 1, false, { 3, 4 }, { 3 }) \
  ROW(trapezoid, (calx_square(calx_trapezoid(x, .x = in[1], .dim = 1))), -1, 1, false, { 3, 4 }, { 4 }) \
  ROW(cumulative_trapezoid, (calx_square(calx_cumulative_trapezoid(x, .dx = 0.5))), -1, 1, false, { 3, 4 }) \
  ROW(gradient, (calx_square(slope(x))), -1, 1, false, { 4, 3 }) \
  ROW(i0, (calx_i0(x)), -3, 12, false, { 3, 4 }) \
  ROW(i1e, (calx_i1e(x)), -12, 3, false, { 3, 4 }) \
  ROW(ndtr, (calx_ndtr(x)), -2, 2, false, { 3, 4 }) \
  ROW(mvlgamma, (calx_mvlgamma(x, 3)), 2, 4, false, { 3, 4 }) \
  ROW(fmax, (calx_square(calx_fmax(x, in[1]))), -1, 1, true, { 3, 4 }, { 3, 4 }) \
  ROW(fmin, (calx_square(calx_fmin(x, in[1]))), -1, 1, true, { 3, 4 }, { 3, 4 }) \
  ROW(float_power, (calx_float_power(x, 3)), 0.5, 2, false, { 3, 4 }) \
  ROW(rot90, (calx_square(calx_rot90(x, 1, CALX_DIMS(0, 1)))), -1, 1, false, { 3, 4 }) \
  ROW(hstack, (calx_square(calx_hstack((calx_tensor *[]){ x, in[1] }, 2))), -1, 1, false, { 3, 4 }, { 3, 2 }) \
  ROW(dstack, (calx_square(calx_dstack((calx_tensor *[]){ x, in[1] }, 2))), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(block_diag, (calx_square(calx_block_diag((calx_tensor *[]){ x, in[1] }, 2))), -1, 1, false, { 3, 4 }, { 2 }) \
  ROW(diag_embed, (calx_square(calx_diag_embed(x, .offset = -1))), -1, 1, false, { 3, 4 }) \
  ROW(trace, (calx_square(calx_trace(x))), -1, 1, false, { 3, 4 }) \
  ROW(slice_scatter, (calx_square(calx_slice_scatter(x, in[1], 1, 0, 4, 2))), -1, 1, false, { 3, 4 }, { 3, 2 }) \
  ROW(select_scatter, (calx_square(calx_select_scatter(x, in[1], 1, -1))), -1, 1, false, { 3, 4 }, { 3 }) \
  ROW(index_fill, (calx_square(calx_index_fill(x, 0, rows(), 2))), -1, 1, false, { 3, 4 }) \
  ROW(index_put, (calx_square(calx_index_put(x, ((calx_tensor *[]){ rows() }), 1, in[1], .accumulate = true))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(masked_scatter, (calx_square(calx_masked_scatter(x, calx_gt(x, 0), in[1]))), -1, 1, true, { 3, 4 }, { 12 }) \
  ROW(cummax, (calx_square(calx_cummax(x, 1, NULL))), -1, 1, false, { 3, 4 }) \
  ROW(cummin, (calx_square(calx_cummin(x, 0, NULL))), -1, 1, false, { 3, 4 }) \
  ROW(logcumsumexp, (calx_square(calx_logcumsumexp(x, 1))), -1, 1, false, { 3, 4 }) \
  ROW(median, (calx_square(calx_median(x))), -1, 1, false, { 3, 4 }) \
  ROW(median_dim, (calx_square(calx_median_dim(x, 1, false, NULL))), -1, 1, false, { 3, 4 }) \
  ROW(kthvalue, (calx_square(calx_kthvalue(x, 2, 1, false, NULL))), -1, 1, false, { 3, 4 }) \
  ROW(quantile, (calx_square(calx_quantile(x, 0.3, .dims = CALX_DIMS(1)))), -1, 1, false, { 3, 4 }) \
  ROW(nanquantile, (calx_square(calx_nanquantile(x, 0.7))), -1, 1, false, { 3, 4 }) \
  ROW(diff, (calx_square(calx_diff(x, .n = 2))), -1, 1, false, { 3, 4 }) \
  ROW(cov, (calx_square(calx_cov(x))), -1, 1, false, { 3, 4 }) \
  ROW(corrcoef, (calx_square(calx_corrcoef(x))), 0.2, 1, false, { 3, 4 }) \
  ROW(tensordot, (calx_square(calx_tensordot(x, in[1], .dims = 1))), -1, 1, false, { 3, 4 }, { 4, 2 }) \
  ROW(kron, (calx_square(calx_kron(x, in[1]))), -1, 1, false, { 3, 4 }, { 2 }) \
  ROW(cdist, (calx_square(calx_cdist(x, in[1], .p = 3))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(pairwise_distance, (calx_square(calx_pairwise_distance(x, in[1]))), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(vecdot, (calx_square(calx_vecdot(x, in[1], -1))), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(cross, (calx_square(calx_cross(x, in[1], 0))), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(matrix_power, (calx_square(calx_matrix_power(x, 3))), -1, 1, false, { 3, 3 }) \
  ROW(cholesky, (calx_square(calx_cholesky(positive(x)))), -1, 1, false, { 2, 3, 3 }) \
  ROW(cholesky_solve, (calx_square(calx_cholesky_solve(in[1], calx_cholesky(positive(x))))), -1, 1, false, { 3, 3 }, { 3, 2 }) \
  ROW(solve_triangular, (calx_square(calx_solve_triangular(positive(x), in[1]))), -1, 1, false, { 3, 3 }, { 3, 2 }) \
  ROW(solve_triangular_right, (calx_square(calx_solve_triangular(positive(x), in[1], .upper = true, .right = true, .unitriangular = true))), -1, 1, false, { 3, 3 }, { 2, 3 }) \
  ROW(qr, (qr_of(x)), -1, 1, false, { 4, 3 }) \
  ROW(qr_wide, (qr_of(x)), -1, 1, false, { 3, 4 }) \
  ROW(lu_factor, (calx_square(calx_lu_factor(positive(x), NULL))), -1, 1, false, { 3, 3 }) \
  ROW(lu_tall, (calx_square(calx_lu_factor(shifted(x), NULL))), -1, 1, false, { 4, 3 }) \
  ROW(lu_wide, (calx_square(calx_lu_factor(shifted(x), NULL))), -1, 1, false, { 3, 4 }) \
  ROW(householder_product, (calx_square(calx_householder_product(x, in[1]))), -1, 1, false, { 4, 3 }, { 2 }) \
  ROW(ormqr, (calx_square(calx_ormqr(x, in[1], in[2], .transpose = true))), -1, 1, false, { 4, 3 }, { 2 }, { 4, 2 }) \
  ROW(tensorsolve, (calx_square(calx_tensorsolve(calx_reshape(shifted(x), CALX_DIMS(2, 2, 4)), in[1]))), -1, 1, false, { 4, 4 }, { 2, 2 }) \
  ROW(igamma, (calx_igamma(calx_full(CALX_SCALAR, 2.5, .dtype = CALX_F64), x)), 0.5, 5, false, { 2, 3 }) \
  ROW(igammac, (calx_igammac(calx_full(CALX_SCALAR, 2.5, .dtype = CALX_F64), x)), 0.5, 5, false, { 2, 3 }) \
  ROW(log_ndtr, (calx_log_ndtr(x)), -14, 3, false, { 2, 8 }) \
  ROW(ndtri, (calx_ndtri(x)), 0.05, 0.95, false, { 2, 3 }) \
  ROW(grouped_mm, (calx_square(calx_grouped_mm(x, in[1], ends()))), -1, 1, false, { 4, 2 }, { 2, 2, 3 }) \
  ROW(linear_cross_entropy, (calx_linear_cross_entropy(x, in[1], thirds(), .linear_bias = in[2])), -1, 1, false, { 3, 2 }, { 4, 2 }, { 4 }) \
  ROW(solve, (calx_square(calx_solve(positive(x), in[1]))), -1, 1, false, { 3, 3 }, { 2, 3, 2 }) \
  ROW(lstsq, (calx_square(calx_lstsq(calx_add(x, calx_eye(4, 2, .dtype = CALX_F64)), in[1]))), -0.2, 0.2, false, { 4, 2 }, { 4, 2 }) \
  ROW(eigh, (eigh_of(calx_add(positive(x), calx_diag(calx_arange(0, 3, 1), 0)))), -1, 1, false, { 3, 3 }) \
  ROW(svd, (svd_of(calx_add(x, calx_diag(calx_arange(1, 4, 1), 0)))), -0.3, 0.3, false, { 3, 3 }) \
  ROW(svd_tall, (svd_of(calx_add(x, calx_slice(calx_diag(calx_arange(1, 5, 1), 0), 1, 0, 2, 1)))), -0.3, 0.3, false, { 4, 2 }) \
  ROW(pinv_tall, (calx_square(calx_pinv(calx_add(calx_eye(3, 2, .dtype = CALX_F64), x)))), -0.2, 0.2, false, { 3, 2 }) \
  ROW(eigvalsh, (calx_square(calx_eigvalsh(calx_add(positive(x), calx_diag(calx_arange(0, 3, 1), 0))))), -1, 1, false, { 3, 3 }) \
  ROW(cond, (calx_cond(calx_add(x, calx_diag(calx_arange(1, 4, 1), 0)))), -0.3, 0.3, false, { 3, 3 }) \
  ROW(pinv, (calx_square(calx_pinv(calx_add(x, calx_eye(2, 4, .dtype = CALX_F64))))), -0.2, 0.2, false, { 2, 4 }) \
  ROW(inverse, (calx_square(calx_inverse(positive(x)))), -1, 1, false, { 3, 3 }) \
  ROW(det, (calx_square(calx_det(positive(x)))), -1, 1, false, { 2, 3, 3 }) \
  ROW(logdet, (calx_square(calx_logdet(positive(x)))), -1, 1, false, { 2, 3, 3 }) \
  ROW(multi_dot, (calx_square(calx_multi_dot(in, 3))), -1, 1, false, { 3 }, { 3, 4 }, { 4, 2 }) \
  ROW(vander, (calx_square(calx_vander(x, .n = 4))), -1, 1, false, { 3 }) \
  ROW(addr, (calx_square(calx_addr(x, in[1], in[2], .beta = 2))), -1, 1, false, { 3, 4 }, { 3 }, { 4 }) \
  ROW(xlogy, (calx_xlogy(x, in[1])), 0.5, 2, false, { 3, 4 }, { 3, 4 }) \
  ROW(hypot, (calx_hypot(x, in[1])), 0.5, 2, false, { 3, 4 }, { 3, 4 }) \
  ROW(copysign, (calx_square(calx_copysign(x, -1))), -1, 1, false, { 3, 4 }) \
  ROW(sinc, (calx_sinc(x)), 0.2, 2, false, { 3, 4 }) \
  ROW(logit, (calx_logit(x)), 0.2, 0.8, false, { 3, 4 }) \
  ROW(rad2deg, (calx_square(calx_rad2deg(x))), -0.1, 0.1, false, { 3, 4 }) \
  ROW(pad, (calx_square(calx_pad(x, CALX_DIMS(1, 2, -1, 1), .value = 0.5))), -1, 1, false, { 3, 4 }) \
  ROW(pad_reflect, (calx_square(calx_pad(x, CALX_DIMS(1, 2), .mode = CALX_PAD_REFLECT))), -1, 1, false, { 3, 4 }) \
  ROW(pad_replicate, (calx_square(calx_pad(x, CALX_DIMS(1, 2), .mode = CALX_PAD_REPLICATE))), -1, 1, false, { 3, 4 }) \
  ROW(pad_circular, (calx_square(calx_pad(x, CALX_DIMS(1, 2), .mode = CALX_PAD_CIRCULAR))), -1, 1, false, { 3, 4 }) \
  ROW(flip, (calx_square(calx_flip(x, CALX_DIMS(1)))), -1, 1, false, { 3, 4 }) \
  ROW(repeat, (calx_square(calx_repeat(x, CALX_DIMS(2, 1, 2)))), -1, 1, false, { 3, 4 }) \
  ROW(repeat_interleave, (calx_square(calx_repeat_interleave(x, 2, 1))), -1, 1, false, { 3, 4 }) \
  ROW(movedim, (calx_square(calx_movedim(x, 0, 1))), -1, 1, false, { 3, 4 }) \
  ROW(unflatten, (calx_square(calx_unflatten(x, 1, CALX_SHAPE(2, 2)))), -1, 1, false, { 3, 4 }) \
  ROW(narrow, (calx_square(calx_narrow(x, 1, 1, 2))), -1, 1, false, { 3, 4 }) \
  ROW(roll, (calx_square(calx_roll(x, CALX_DIMS(2), CALX_DIMS(1)))), -1, 1, false, { 3, 4 }) \
  ROW(tril, (calx_square(calx_tril(x, 1))), -1, 1, false, { 3, 4 }) \
  ROW(triu, (calx_square(calx_triu(x, -1))), -1, 1, false, { 3, 4 }) \
  ROW(diagonal, (calx_square(calx_diagonal(x))), -1, 1, false, { 3, 4 }) \
  ROW(pixel_shuffle, (calx_square(calx_pixel_shuffle(x, 2))), -1, 1, false, { 1, 4, 2, 2 }) \
  ROW(split, (calx_square(parts(x))), -1, 1, false, { 3, 4 }) \
  ROW(bmm, (calx_square(calx_bmm(x, in[1]))), -1, 1, false, { 2, 2, 3 }, { 2, 3, 2 }) \
  ROW(mv, (calx_square(calx_mv(x, in[1]))), -1, 1, false, { 3, 4 }, { 4 }) \
  ROW(dot, (calx_square(calx_dot(x, in[1]))), -1, 1, false, { 4 }, { 4 }) \
  ROW(outer, (calx_square(calx_outer(x, in[1]))), -1, 1, false, { 3 }, { 4 }) \
  ROW(addmm, (calx_square(calx_addmm(x, in[1], in[2], .beta = 0.5, .alpha = 2))), -1, 1, false, { 3 }, { 2, 4 }, { 4, 3 }) \
  ROW(baddbmm, (calx_square(calx_baddbmm(x, in[1], in[2]))), -1, 1, false, { 2, 2 }, { 2, 2, 3 }, { 2, 3, 2 }) \
  ROW(einsum, (calx_square(calx_einsum("abc,cb->ba", in, 2))), -1, 1, false, { 2, 3, 2 }, { 2, 3 }) \
  ROW(prod, (calx_prod(x, .dims = CALX_DIMS(1))), 0.5, 2, false, { 3, 4 }) \
  ROW(logsumexp, (calx_square(calx_logsumexp(x, .dims = CALX_DIMS(1)))), -1, 1, false, { 3, 4 }) \
  ROW(var, (calx_square(calx_var(x, .dims = CALX_DIMS(1)))), -1, 1, false, { 3, 4 }) \
  ROW(std, (calx_std(x, .dims = CALX_DIMS(0))), -1, 1, false, { 3, 4 }) \
  ROW(norm, (calx_norm(x, .dims = CALX_DIMS(1))), 0.5, 2, false, { 3, 4 }) \
  ROW(norm_3, (calx_norm(x, .dims = CALX_DIMS(1), .p = 3)), 0.5, 2, false, { 3, 4 }) \
  ROW(normalize, (calx_normalize(x)), 0.5, 2, false, { 3, 4 }) \
  ROW(cosine_similarity, (calx_cosine_similarity(x, in[1])), 0.5, 2, false, { 3, 4 }, { 3, 4 }) \
  ROW(cumsum, (calx_square(calx_cumsum(x, 1))), -1, 1, false, { 3, 4 }) \
  ROW(cumprod, (calx_cumprod(x, 1)), 0.5, 2, false, { 3, 4 }) \
  ROW(layer_norm, (calx_square(calx_layer_norm(x, CALX_SHAPE(4), .weight = in[1], .bias = in[2]))), 0.2, 1, false, { 3, 4 }, { 4 }, { 4 }) \
  ROW(rms_norm, (calx_square(calx_rms_norm(x, CALX_SHAPE(4), .weight = in[1]))), 0.2, 1, false, { 3, 4 }, { 4 }) \
  ROW(group_norm, (calx_square(calx_group_norm(x, 2, .weight = in[1], .bias = in[2]))), 0.2, 1, false, { 2, 4, 3 }, { 4 }, { 4 }) \
  ROW(instance_norm, (calx_square(calx_instance_norm(x, .weight = in[1], .bias = in[2]))), 0.2, 1, false, { 2, 2, 4 }, { 2 }, { 2 }) \
  ROW(index_select, (calx_square(calx_index_select(x, 0, rows()))), -1, 1, false, { 3, 4 }) \
  ROW(gather, (calx_square(calx_gather(x, 0, places()))), -1, 1, false, { 3, 4 }) \
  ROW(scatter, (calx_square(calx_scatter(x, 0, distinct(), in[1]))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(scatter_add, (calx_square(calx_scatter_add(x, 0, places(), in[1]))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(scatter_reduce, (calx_square(calx_scatter_reduce(x, 0, places(), in[1], CALX_SCATTER_AMAX))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(index_add, (calx_square(calx_index_add(x, 0, rows(), in[1]))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(index_copy, (calx_square(calx_index_copy(x, 0, rows(), in[1]))), -1, 1, false, { 3, 4 }, { 2, 4 }) \
  ROW(embedding, (calx_square(calx_embedding(rows(), x))), -1, 1, false, { 3, 4 }) \
  ROW(sort, (calx_square(calx_sort(x, .dim = 1))), -1, 1, false, { 3, 4 }) \
  ROW(topk, (calx_square(calx_topk(x, 2, .dim = 1))), -1, 1, false, { 3, 4 }) \
  ROW(masked_select, (calx_square(calx_nan_to_num(calx_masked_select(x, calx_gt(x, 0), .limit = 12)))), -1, 1, false, { 3, 4 }) \
  ROW(mse_loss, (calx_mse_loss(x, in[1])), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(l1_loss, (calx_l1_loss(x, in[1])), -1, 1, true, { 3, 4 }, { 3, 4 }) \
  ROW(smooth_l1_loss, (calx_smooth_l1_loss(x, in[1], .beta = 0.5)), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(huber_loss, (calx_huber_loss(x, in[1], .delta = 0.5)), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(binary_cross_entropy, (calx_binary_cross_entropy(x, in[1])), 0.2, 0.8, false, { 3, 4 }, { 3, 4 }) \
  ROW(bce_with_logits, (calx_binary_cross_entropy_with_logits(x, in[1], .pos_weight = calx_full(CALX_SHAPE(4), 1.5, .dtype = CALX_F64))), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(kl_div, (calx_kl_div(x, in[1])), 0.2, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(poisson_nll_loss, (calx_poisson_nll_loss(x, in[1])), 0.2, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(margin_ranking_loss, (calx_margin_ranking_loss(x, in[1], calx_unsqueeze(signs(), 1), .margin = 0.5)), -1, 1, true, { 3, 4 }, { 3, 4 }) \
  ROW(cosine_embedding_loss, (calx_cosine_embedding_loss(x, in[1], signs())), 0.2, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(triplet_margin_loss, (calx_triplet_margin_loss(x, in[1], in[2], .margin = 9)), -1, 1, false, { 3, 4 }, { 3, 4 }, { 3, 4 }) \
  ROW(multi_margin_loss, (calx_multi_margin_loss(x, thirds(), .p = 2, .margin = 4)), -1, 1, false, { 3, 4 }) \
  ROW(multilabel_margin_loss, (calx_square(calx_multilabel_margin_loss(x, lists()))), -0.4, 0.4, false, { 2, 4 }) \
  ROW(multilabel_soft_margin_loss, (calx_multilabel_soft_margin_loss(x, in[1])), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(gaussian_nll_loss, (calx_gaussian_nll_loss(x, in[1], in[2])), 0.5, 2, false, { 3, 4 }, { 3, 4 }, { 3, 4 }) \
  ROW(fold, (calx_square(calx_fold(x, CALX_SHAPE(3, 3), CALX_SHAPE(2)))), -1, 1, false, { 1, 8, 4 }) \
  ROW(pixel_unshuffle, (calx_square(calx_pixel_unshuffle(x, 2))), -1, 1, false, { 1, 1, 4, 2 }) \
  ROW(channel_shuffle, (calx_square(calx_channel_shuffle(x, 2))), -1, 1, false, { 1, 4, 2 }) \
  ROW(local_response_norm, (calx_local_response_norm(x, 2, .alpha = 0.5)), 0.2, 1, false, { 1, 3, 2 }) \
  ROW(bilinear, (calx_square(calx_bilinear(x, in[1], in[2], NULL))), -1, 1, false, { 3, 2 }, { 3, 3 }, { 2, 2, 3 }) \
  ROW(affine_grid, (calx_square(calx_affine_grid(x, CALX_SHAPE(1, 1, 2, 3)))), -1, 1, false, { 1, 2, 3 }) \
  ROW(grid_sample, (calx_square(calx_grid_sample(x, in[1]))), -0.2, 0.2, false, { 1, 2, 4, 4 }, { 1, 2, 1, 2 }) \
  ROW(soft_margin_loss, (calx_soft_margin_loss(x, in[1])), -1, 1, false, { 3, 4 }, { 3, 4 }) \
  ROW(conv1d, (calx_square(calx_conv1d(x, in[1], .bias = in[2], .stride = 2, .padding = 1))), -1, 1, false, { 2, 2, 5 }, { 3, 2, 3 }, { 3 }) \
  ROW(conv3d, (calx_square(calx_conv3d(x, calx_unsqueeze(in[1], 0), .padding = { 1 }))), -1, 1, false, { 2, 2, 2, 3 }, { 2, 2, 2, 2 }) \
  ROW(conv_transpose1d, (calx_square(calx_conv_transpose1d(x, in[1], .bias = in[2], .stride = 2, .output_padding = 1))), -1, 1, false, { 2, 2, 3 }, { 2, 3, 3 }, { 3 }) \
  ROW(conv_transpose2d, (calx_square(calx_conv_transpose2d(x, in[1], .stride = { 2 }, .padding = { 1 }, .groups = 2))), -1, 1, false, { 1, 4, 3, 3 }, { 4, 1, 3, 3 }) \
  ROW(avg_pool1d, (calx_square(calx_avg_pool1d(x, .kernel_size = 2, .stride = 1))), -1, 1, false, { 1, 2, 5 }) \
  ROW(avg_pool2d, (calx_square(calx_avg_pool2d(x, .kernel_size = { 2 }, .padding = { 1 }))), -1, 1, false, { 1, 2, 4, 4 }) \
  ROW(max_pool1d, (calx_square(calx_max_pool1d(x, 2))), -1, 1, false, { 1, 2, 6 }) \
  ROW(adaptive_avg_pool, (calx_square(calx_adaptive_avg_pool(x, CALX_SHAPE(2, 3)))), -1, 1, false, { 1, 2, 5, 4 }) \
  ROW(adaptive_max_pool, (calx_square(calx_adaptive_max_pool(x, CALX_SHAPE(2, 3)))), -1, 1, false, { 1, 2, 5, 4 }) \
  ROW(interpolate_nearest, (calx_square(calx_interpolate(x, CALX_SHAPE(5, 3)))), -1, 1, false, { 1, 2, 3, 4 }) \
  ROW(interpolate_bilinear, (calx_square(calx_interpolate(x, CALX_SHAPE(5, 3), .mode = CALX_INTERPOLATE_LINEAR))), -1, 1, false, { 1, 2, 3, 4 }) \
  ROW(interpolate_bicubic, (calx_square(calx_interpolate(x, CALX_SHAPE(5, 3), .mode = CALX_INTERPOLATE_BICUBIC))), -1, 1, false, { 1, 2, 3, 4 }) \
  ROW(unfold, (calx_square(calx_unfold(x, CALX_SHAPE(2, 2), .padding = { 1 }))), -1, 1, false, { 1, 2, 3, 3 }) \
  ROW(attention, (calx_square(calx_scaled_dot_product_attention(x, in[1], in[2], .is_causal = true))), -1, 1, false, { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, { 1, 2, 3, 2 })

#define FUNCTION(name, expression, ...) \
  static calx_tensor *f_##name(calx_tensor *const *in) \
  { \
    calx_tensor *x = in[0]; \
    (void)x; \
    return expression; \
  }
COMPOSED(FUNCTION)
// clang-format on

#define SUBJECT(name, expression, low, high, flat, ...) \
  { #name, f_##name, 0, { 0 }, { __VA_ARGS__ }, low, high, flat },

static void test_composed(void **state)
{
  (void)state;
  subject subjects[] = { COMPOSED(SUBJECT) };
  const size_t n = sizeof subjects / sizeof *subjects;
  for (size_t i = 0; i < n; i++) {
    subject *s = &subjects[i];
    for (s->n_in = 0; s->n_in < 3 && s->dims[s->n_in][0] != 0; s->n_in++) {
      size_t *rank = &s->ranks[s->n_in];
      while (*rank < 4 && s->dims[s->n_in][*rank] != 0) (*rank)++;
    }
  }
  finite_check(subjects, n, (size_t)long_or(1, 3));
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_composed) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
