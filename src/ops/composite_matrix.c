// ops/composite_matrix: products over chosen dimensions, powers and chains of
// matrices, distances of rows, composed of public ops.
#include <math.h>

#include "base/dtype.h"
#include "ops/autocast.h"
#include "ops/composite.h"

// ---- products over chosen dimensions ----------------------------------------

// x as a matrix: the dimensions that are summed over behind the others, or in
// front of them. The others' sizes are appended to `left`. False: *out is what
// the function returns.
static bool as_matrix(calx_tensor **x, calx_dims summed, bool behind,
                      cx_graph_shape *left, calx_tensor **out)
{
  const cx_graph_shape s = *cx_lazy_tensor_shape(*x);
  int64_t order[CALX_MAX_RANK], sizes[2] = { 1, 1 };
  bool used[CALX_MAX_RANK] = { false };
  uint32_t others = s.rank - (uint32_t)summed.count;
  uint32_t first = behind ? 0 : (uint32_t)summed.count;
  for (size_t i = 0; i < summed.count; i++) {
    uint32_t d = 0;
    if (!cx_ops_dim(summed.values[i], s.rank, &d) || used[d]) {
      *out = cx_ops_invalid(
          "tensordot: dimension %lld of %s is none, or stands "
          "twice",
          (long long)summed.values[i], cx_graph_shape_str(&s));
      return false;
    }
    used[d] = true;
    order[(behind ? others : 0) + i] = d;
    sizes[behind] *= s.dims[d];
  }
  for (uint32_t d = 0; d < s.rank; d++) {
    if (used[d]) continue;
    order[first++] = d;
    sizes[!behind] *= s.dims[d];
    if (left->rank < CALX_MAX_RANK) left->dims[left->rank] = s.dims[d];
    left->rank++;
  }
  *x = calx_reshape(calx_permute(*x, calx_dims_of(order, s.rank)),
                    calx_dims_of(sizes, 2));
  return true;
}

// The pairs of dimensions, in `room` where they are a number. False: *out is
// what the function returns.
static bool pairs_of(calx_tensor *const *in, const calx_tensordot_options *o,
                     int64_t room[2][CALX_MAX_RANK], calx_dims *dims,
                     calx_tensor **out)
{
  const cx_graph_shape *x = cx_lazy_tensor_shape(in[0]);
  const cx_graph_shape *y = cx_lazy_tensor_shape(in[1]);
  int64_t n = o->dims == 0 ? 2 : o->dims == CALX_ZERO_INT ? 0 : o->dims;
  dims[0] = o->x_dims;
  dims[1] = o->y_dims;
  bool lists = dims[0].count != 0 || dims[1].count != 0, fits;
  if (lists) {
    fits = o->dims == 0 && dims[0].count == dims[1].count &&
           dims[0].count <= x->rank && dims[1].count <= y->rank;
  } else {
    fits = n >= 0 && n <= x->rank && n <= y->rank;
    for (int64_t i = 0; fits && i < n; i++) {
      room[0][i] = x->rank - n + i;
      room[1][i] = i;
    }
    dims[0] = calx_dims_of(room[0], (size_t)n);
    dims[1] = calx_dims_of(room[1], (size_t)n);
  }
  for (size_t i = 0; fits && i < dims[0].count; i++) {
    uint32_t a = 0, b = 0;
    if (!cx_ops_dim(dims[0].values[i], x->rank, &a) ||
        !cx_ops_dim(dims[1].values[i], y->rank, &b)) {
      continue;  // told where they are used
    }
    fits = x->dims[a] == y->dims[b];
  }
  if (fits) return true;
  *out = cx_ops_invalid(
      "tensordot: %s and %s: as many dimensions of each, of "
      "equal sizes, are wanted",
      cx_graph_shape_str(x), cx_graph_shape_str(y));
  return false;
}

calx_tensor *calx_tensordot_with(calx_tensor *x, calx_tensor *y,
                                 const calx_tensordot_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("tensordot");
  calx_tensor *in[2] = { x, y }, *bad;
  int64_t room[2][CALX_MAX_RANK];
  calx_dims dims[2];
  if (cx_ops_unfit("tensordot", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(tensordot, o, bad);
  cx_graph_shape left = { .rank = 0 };
  if (!pairs_of(in, o, room, dims, &bad) ||
      !as_matrix(&in[0], dims[0], true, &left, &bad) ||
      !as_matrix(&in[1], dims[1], false, &left, &bad)) {
    return bad;
  }
  if (left.rank > CALX_MAX_RANK) {
    return cx_ops_invalid(
        "tensordot: the result has rank %u, at most %d are "
        "possible",
        left.rank, CALX_MAX_RANK);
  }
  x = calx_mm(in[0], in[1]);
  return cx_lazy_tensor_poisoned(x) ? x : cx_ops_reshape_to(x, &left);
}

calx_tensor *calx_kron(calx_tensor *x, calx_tensor *y)
{
  CX_OPS_COMPOSITE_COMPLEX("kron");
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("kron", in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(y);
  uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
  if (2 * rank > CALX_MAX_RANK) {
    return cx_ops_invalid("kron: %s and %s, rank %d at most is possible",
                          cx_graph_shape_str(a), cx_graph_shape_str(b),
                          CALX_MAX_RANK / 2);
  }
  cx_graph_shape whole = { .rank = rank };
  cx_graph_shape apart[2] = { { .rank = 2 * rank }, { .rank = 2 * rank } };
  for (uint32_t i = 0; i < rank; i++) {
    int64_t n = i + a->rank < rank ? 1 : a->dims[i + a->rank - rank];
    int64_t m = i + b->rank < rank ? 1 : b->dims[i + b->rank - rank];
    if (__builtin_mul_overflow(n, m, &whole.dims[i])) {
      return cx_ops_invalid("kron: %s and %s are too large",
                            cx_graph_shape_str(a), cx_graph_shape_str(b));
    }
    apart[0].dims[2 * i] = n;
    apart[0].dims[2 * i + 1] = apart[1].dims[2 * i] = 1;
    apart[1].dims[2 * i + 1] = m;
  }
  x = calx_mul(cx_ops_reshape_to(x, &apart[0]),
               cx_ops_reshape_to(y, &apart[1]));
  return cx_lazy_tensor_poisoned(x) ? x : cx_ops_reshape_to(x, &whole);
}

calx_tensor *calx_vecdot(calx_tensor *x, calx_tensor *y, int dim)
{
  CX_OPS_COMPOSITE("vecdot");
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("vecdot", in, 2, &bad)) return bad;
  for (int i = 0; i < 2; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(in[i]);
    if (cx_dtype_is_float(s->dtype)) continue;
    return cx_ops_invalid(
        "vecdot: operand %d is %s, a floating type is wanted; convert it with "
        "calx_to_dtype",
        i, cx_graph_shape_str(s));
  }
  int64_t along = dim;
  calx_reduce_options r = { .size = sizeof r, .dims = calx_dims_of(&along, 1) };
  return calx_sum_with(calx_mul(x, y), &r);
}

calx_tensor *calx_cross(calx_tensor *x, calx_tensor *y, int dim)
{
  CX_OPS_COMPOSITE_COMPLEX("cross");
  calx_tensor *in[2] = { x, y }, *bad;
  uint32_t d = 0;
  if (cx_ops_unfit("cross", in, 2, &bad)) return bad;
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(y);
  if (a->rank == 0 || a->rank != b->rank || !cx_ops_dim(dim, a->rank, &d) ||
      a->dims[d] != 3 || b->dims[d] != 3) {
    return cx_ops_invalid(
        "cross: dimension %d of %s and %s: equal ranks and a size of 3 are "
        "wanted",
        dim, cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  static const int64_t shifts[2] = { -1, -2 };
  int64_t along = d;
  calx_dims dims = calx_dims_of(&along, 1);
  calx_dims one = calx_dims_of(&shifts[0], 1),
            two = calx_dims_of(&shifts[1], 1);
  return cx_ops_minus(
      calx_mul(calx_roll(x, one, dims), calx_roll(y, two, dims)),
      calx_mul(calx_roll(x, two, dims), calx_roll(y, one, dims)));
}

// ---- distances --------------------------------------------------------------

calx_tensor *calx_cdist_with(calx_tensor *x, calx_tensor *y,
                             const calx_cdist_options *o)
{
  CX_OPS_COMPOSITE("cdist");
  CX_OPS_AUTOCAST(CX_OPS_F32, &x, &y);
  calx_tensor *in[2] = { x, y }, *bad;
  if (cx_ops_unfit("cdist", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(cdist, o, bad);
  const cx_graph_shape *a = cx_lazy_tensor_shape(x);
  const cx_graph_shape *b = cx_lazy_tensor_shape(y);
  bool fits = a->rank >= 2 && b->rank >= 2 && a->rank < CALX_MAX_RANK &&
              b->rank < CALX_MAX_RANK &&
              a->dims[a->rank - 1] == b->dims[b->rank - 1] &&
              cx_dtype_is_float(a->dtype) && cx_dtype_is_float(b->dtype);
  if (!fits || o->p < 0 || isnan(o->p)) {
    return cx_ops_invalid(
        "cdist: p = %g of %s and %s: floats (…, n, d) and (…, m, d) and a p of "
        "0 or more are wanted",
        o->p, cx_graph_shape_str(a), cx_graph_shape_str(b));
  }
  static const int64_t last = -1;
  calx_norm_options n = { .size = sizeof n, .p = o->p };
  n.dims = calx_dims_of(&last, 1);
  x = cx_ops_minus(calx_unsqueeze(x, -2), calx_unsqueeze(y, -3));
  calx_reduce_options r = { .size = sizeof r, .dims = n.dims };
  // Without coordinates there is no distance.
  if (a->dims[a->rank - 1] == 0) return calx_sum_with(x, &r);
  return calx_norm_with(x, &n);
}

calx_tensor *calx_pairwise_distance_with(
    calx_tensor *x, calx_tensor *y, const calx_pairwise_distance_options *o)
{
  CX_OPS_COMPOSITE("pairwise_distance");
  calx_tensor *in[2] = { x, y }, *bad;
  if (!cx_ops_floating("pairwise_distance", in, 2, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(pairwise_distance, o, bad);
  static const int64_t last = -1;
  calx_norm_options n = { .size = sizeof n, .p = o->p, .keepdim = o->keepdim };
  n.dims = calx_dims_of(&last, 1);
  x = cx_ops_plus(cx_ops_minus(in[0], in[1]), cx_ops_given(o->eps, 1e-6));
  return calx_norm_with(x, &n);
}

// ---- powers -----------------------------------------------------------------

calx_tensor *calx_matrix_power(calx_tensor *x, int64_t n)
{
  CX_OPS_COMPOSITE_COMPLEX("matrix_power");
  calx_tensor *bad, *product = NULL;
  if (cx_ops_unfit("matrix_power", &x, 1, &bad)) return bad;
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank < 2 || s->dims[s->rank - 1] != s->dims[s->rank - 2] ||
      n < -INT64_MAX) {
    return cx_ops_invalid(
        "matrix_power: %s to the power %lld: square matrices and a power above "
        "-2^63 are wanted",
        cx_graph_shape_str(s), (long long)n);
  }
  if (n < 0) return calx_matrix_power(calx_inverse(x), -n);
  if (n == 0) {
    calx_create_options o = { .size = sizeof o,
                              .dtype = CALX_I64,
                              .device = calx_tensor_device(x) };
    double size = (double)s->dims[s->rank - 1];
    calx_tensor *at = calx_arange_with(0, size, 1, &o);
    calx_tensor *eye = calx_eq(at, calx_unsqueeze(at, 1));
    return calx_expand(calx_to_dtype(eye, s->dtype), cx_ops_dims_of(s));
  }
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) product = product == NULL ? x : calx_matmul(product, x);
    if (n > 1) x = calx_matmul(x, x);
  }
  return product;
}

calx_tensor *calx_vander_with(calx_tensor *x, const calx_vander_options *o)
{
  CX_OPS_COMPOSITE_COMPLEX("vander");
  calx_tensor *bad;
  if (cx_ops_unfit("vander", &x, 1, &bad)) return bad;
  CX_OPS_TAKE_OPTIONS(vander, o, bad);
  const cx_graph_shape *s = cx_lazy_tensor_shape(x);
  if (s->rank != 1 || (o->n < 0 && o->n != CALX_ZERO_INT)) {
    return cx_ops_invalid(
        "vander: %lld columns of %s: a vector and 0 or more "
        "are wanted",
        (long long)o->n, cx_graph_shape_str(s));
  }
  int64_t n = o->n == 0 ? s->dims[0] : o->n == CALX_ZERO_INT ? 0 : o->n;
  int64_t last = 1, pad[2] = { n > 0, 0 };
  int64_t wide[2] = { s->dims[0], n > 0 ? n - 1 : 0 };
  if (!cx_dtype_is_inexact(s->dtype)) x = calx_to_dtype(x, CALX_I64);
  x = calx_expand(calx_unsqueeze(x, 1), calx_dims_of(wide, 2));
  // 1, x, x x, …
  calx_pad_options one = { .size = sizeof one, .value = 1 };
  x = calx_pad_with(calx_cumprod(x, 1), calx_dims_of(pad, 2), &one);
  return o->increasing ? x : calx_flip(x, calx_dims_of(&last, 1));
}

// ---- chains -----------------------------------------------------------------

enum { MOST_MATRICES = 64 };

typedef struct chain {
  calx_tensor *in[MOST_MATRICES];
  double sizes[MOST_MATRICES + 1];              // matrix i: sizes[i], [i + 1]
  double costs[MOST_MATRICES][MOST_MATRICES];   // of the product of i … k
  size_t splits[MOST_MATRICES][MOST_MATRICES];  // behind which it is divided
} chain;

// The cheapest order, from shorter products to longer ones (T. Cormen et al.,
// Introduction to Algorithms, 15.2).
static void find_order(chain *c, size_t n)
{
  for (size_t i = 0; i < n; i++) c->costs[i][i] = 0;
  for (size_t length = 1; length < n; length++) {
    for (size_t i = 0; i + length < n; i++) {
      size_t k = i + length;
      c->costs[i][k] = HUGE_VAL;
      for (size_t m = i; m < k; m++) {
        double cost = c->costs[i][m] + c->costs[m + 1][k] +
                      c->sizes[i] * c->sizes[m + 1] * c->sizes[k + 1];
        if (cost >= c->costs[i][k]) continue;
        c->costs[i][k] = cost;
        c->splits[i][k] = m;
      }
    }
  }
}

static calx_tensor *product_of(const chain *c, size_t first, size_t last)
{
  if (first == last) return c->in[first];
  size_t m = c->splits[first][last];
  return calx_mm(product_of(c, first, m), product_of(c, m + 1, last));
}

// `vectors`: the first may be a row, the last a column.
static calx_tensor *multiply(const char *op, calx_tensor *const *tensors,
                             size_t count, bool vectors)
{
  chain c;
  calx_tensor *bad;
  if (tensors == NULL || count < (vectors ? 2 : 1) || count > MOST_MATRICES) {
    return cx_ops_invalid("%s: %zu tensors, %d to %d are possible", op, count,
                          vectors ? 2 : 1, MOST_MATRICES);
  }
  if (cx_ops_unfit(op, tensors, (uint32_t)count, &bad)) return bad;
  bool row = false, column = false;
  for (size_t i = 0; i < count; i++) {
    c.in[i] = tensors[i];
    uint32_t rank = cx_lazy_tensor_shape(tensors[i])->rank;
    if (vectors && rank == 1 && (i == 0 || i + 1 == count)) {
      c.in[i] = calx_unsqueeze(tensors[i], i == 0 ? 0 : 1);
      *(i == 0 ? &row : &column) = true;
    } else if (rank != 2) {
      return cx_ops_invalid(
          "%s: tensor %zu is %s, a matrix is wanted", op, i,
          cx_graph_shape_str(cx_lazy_tensor_shape(tensors[i])));
    }
    const cx_graph_shape *s = cx_lazy_tensor_shape(c.in[i]);
    if (i > 0 && c.sizes[i] != (double)s->dims[0]) {
      return cx_ops_invalid("%s: tensor %zu is %s, %g rows are wanted", op, i,
                            cx_graph_shape_str(s), c.sizes[i]);
    }
    c.sizes[i] = (double)s->dims[0];
    c.sizes[i + 1] = (double)s->dims[1];
  }
  find_order(&c, count);
  calx_tensor *out = product_of(&c, 0, count - 1);
  if (column) out = calx_squeeze(out, 1);
  return row ? calx_squeeze(out, 0) : out;
}

calx_tensor *calx_multi_dot(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("multi_dot");
  return multiply("multi_dot", tensors, count, true);
}

calx_tensor *calx_chain_matmul(calx_tensor *const *tensors, size_t count)
{
  CX_OPS_COMPOSITE_COMPLEX("chain_matmul");
  return multiply("chain_matmul", tensors, count, false);
}
