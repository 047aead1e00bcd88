// First and second derivatives of every differentiable op against central
// differences, in f64. For f(x) = sum(w * op(x)) with random w:
//   first    df/dx_i           against (f(x + h e_i) - f(x - h e_i)) / 2h
//   second   d(v . df/dx)/dx_i against the same difference of v . df/dx
// All points of one x are computed by one program: each difference only
// uploads.
#include "calx/calx.h"

#include "support/support.h"

typedef struct subject {
  const char *name;
  calx_tensor *(*fn)(calx_tensor *const *in);
  size_t n_in;
  size_t ranks[3];
  int64_t dims[3][4];
  double low, high;  // of the random inputs
  bool flat;         // its second derivative is 0 everywhere: none is recorded
} subject;

// ---- the ops ----------------------------------------------------------------

#define CASE(name, expression)                         \
  static calx_tensor *f_##name(calx_tensor *const *in) \
  {                                                    \
    calx_tensor *x = in[0];                            \
    (void)x;                                           \
    return (expression);                               \
  }
// The elementwise ops: their inputs are of [low, high); flat as in a subject.
// clang-format off
#define ELEMENTWISE(ONE, TWO) \
  ONE(neg, -1, 1, true) \
  ONE(abs, 0.1, 1, true) \
  ONE(exp, -1, 1, false) \
  ONE(expm1, -1, 1, false) \
  ONE(log, 0.5, 2, false) \
  ONE(log2, 0.5, 2, false) \
  ONE(log1p, -0.5, 2, false) \
  ONE(sqrt, 0.5, 2, false) \
  ONE(rsqrt, 0.5, 2, false) \
  ONE(reciprocal, 0.5, 2, false) \
  ONE(square, -1, 1, false) \
  ONE(sin, -1, 1, false) \
  ONE(cos, -1, 1, false) \
  ONE(tanh, -1, 1, false) \
  ONE(sigmoid, -1, 1, false) \
  ONE(relu, 0.1, 1, true) \
  ONE(tan, -1, 1, false) \
  ONE(asin, -0.8, 0.8, false) \
  ONE(acos, -0.8, 0.8, false) \
  ONE(atan, -1, 1, false) \
  ONE(sinh, -1, 1, false) \
  ONE(cosh, -1, 1, false) \
  ONE(asinh, -1, 1, false) \
  ONE(acosh, 1.5, 2.5, false) \
  ONE(atanh, -0.8, 0.8, false) \
  ONE(exp2, -1, 1, false) \
  ONE(log10, 0.5, 2, false) \
  ONE(erf, -1, 1, false) \
  ONE(erfc, -1, 1, false) \
  ONE(erfinv, -0.8, 0.8, false) \
  ONE(lgamma, 0.5, 3, false) \
  ONE(digamma, 0.5, 3, false) \
  ONE(frac, 0.1, 0.9, true) \
  ONE(max, -1, 1, true) \
  ONE(min, -1, 1, true) \
  TWO(mul, -1, 1, false) \
  TWO(div, 0.5, 2, false) \
  TWO(pow, 0.5, 2, false) \
  TWO(remainder, 1, 1.9, true) \
  TWO(fmod, 1, 1.9, true) \
  TWO(atan2, 0.5, 2, false) \
  TWO(logaddexp, -1, 1, false) \
  TWO(maximum, -1, 1, true) \
  TWO(minimum, -1, 1, true)

#define ONE(op, low, high, flat) CASE(op, calx_##op(x))
#define TWO(op, low, high, flat) CASE(op, calx_##op(x, in[1]))
ELEMENTWISE(ONE, TWO)
CASE(add, calx_add(x, in[1]))
CASE(sub, calx_sub(x, in[1]))
CASE(matmul, calx_matmul(x, in[1]))
CASE(pow3, calx_pow(x, 3))
CASE(pow_half, calx_pow(x, 0.5))
CASE(pow_any, calx_pow(x, 1.7))
CASE(polygamma, calx_polygamma(1, x))
CASE(where, calx_where(calx_gt(x, 0.5), calx_square(x), in[1]))
CASE(sum, calx_square(calx_sum(x, .dims = CALX_DIMS(1))))
CASE(mean, calx_square(calx_mean(x, .dims = CALX_DIMS(0), .keepdim = true)))
CASE(amax, calx_square(calx_amax(x, .dims = CALX_DIMS(1))))
CASE(amin, calx_square(calx_amin(x, .dims = CALX_DIMS(0))))
CASE(max_dim, calx_square(calx_max_dim(x, 1, false, NULL)))
CASE(min_dim, calx_square(calx_min_dim(x, 0, true, NULL)))
CASE(reshape, calx_square(calx_reshape(x, CALX_SHAPE(4, 3))))
CASE(permute, calx_square(calx_permute(x, CALX_DIMS(1, 0))))
CASE(expand, calx_square(calx_expand(x, CALX_SHAPE(2, 3, 4))))
CASE(cat, calx_square(calx_cat(in, 2, 1)))
CASE(slice, calx_square(calx_slice(x, 1, 1, 4, 2)))
CASE(select, calx_square(calx_select(x, 0, -1)))
CASE(linear, calx_square(calx_linear(x, in[1], in[2])))
CASE(matmul_batch, calx_square(calx_matmul(x, in[1])))
CASE(log_softmax, calx_square(calx_log_softmax(x, 1)))
CASE(softmax, calx_square(calx_softmax(x, 0)))
CASE(conv2d,
     calx_square(calx_conv2d(x, in[1], .bias = in[2], .padding = { 1 })))
CASE(conv2d_stride,
     calx_square(calx_conv2d(x, in[1], .stride = { 2, 1 }, .dilation = { 1,
     2 })))
CASE(conv2d_groups,
     calx_square(calx_conv2d(x, in[1], .groups = 2, .stride = { 2 },
     .padding = { 1 })))
CASE(max_pool2d, calx_square(calx_max_pool2d(x, 2)))
CASE(max_pool2d_wide,
     calx_square(calx_max_pool2d(x, 3, .stride = { 1 }, .padding = { 1 })))
CASE(batch_norm,
     calx_square(calx_batch_norm(x, .weight = in[1], .bias = in[2],
     .training = true)))
CASE(to_dtype, calx_square(calx_to_dtype(x, CALX_F64)))
// clang-format on

static calx_tensor *target(void)
{
  static const int64_t classes[3] = { 1, 0, 3 };
  return calx_tensor_from(classes, CALX_I64, CALX_SHAPE(3));
}
// clang-format off
CASE(nll_loss, calx_square(calx_nll_loss(x, target())))
CASE(cross_entropy, calx_cross_entropy(x, target(), .label_smoothing = 0.1))

#define M { 3, 4 }
// clang-format on
#define ONE_ROW(op, low, high, flat) \
  { #op, f_##op, 1, { 2 }, { M }, low, high, flat },
#define TWO_ROW(op, low, high, flat) \
  { #op, f_##op, 2, { 2, 1 }, { M, { 4 } }, low, high, flat },
static const subject subjects[] = {
  { "matmul", f_matmul, 2, { 2, 2 }, { M, { 4, 2 } }, -1, 1, false },
  { "add", f_add, 2, { 2, 1 }, { M, { 4 } }, -1, 1, true },
  { "sub", f_sub, 2, { 2, 2 }, { M, { 3, 1 } }, -1, 1, true },
  { "pow 3", f_pow3, 1, { 2 }, { M }, -1, 1, false },
  { "pow 0.5", f_pow_half, 1, { 2 }, { M }, 0.5, 2, false },
  { "pow 1.7", f_pow_any, 1, { 2 }, { M }, 0.5, 2, false },
  { "polygamma", f_polygamma, 1, { 2 }, { M }, 1, 2, false },
  { "where", f_where, 2, { 2, 2 }, { M, M }, -1, 1, false },
  { "sum", f_sum, 1, { 2 }, { M }, -1, 1, false },
  { "mean", f_mean, 1, { 2 }, { M }, -1, 1, false },
  { "amax", f_amax, 1, { 2 }, { M }, -1, 1, false },
  { "amin", f_amin, 1, { 2 }, { M }, -1, 1, false },
  { "max_dim", f_max_dim, 1, { 2 }, { M }, -1, 1, false },
  { "min_dim", f_min_dim, 1, { 2 }, { M }, -1, 1, false },
  { "reshape", f_reshape, 1, { 2 }, { M }, -1, 1, false },
  { "permute", f_permute, 1, { 2 }, { M }, -1, 1, false },
  { "expand", f_expand, 1, { 2 }, { M }, -1, 1, false },
  { "cat", f_cat, 2, { 2, 2 }, { M, { 3, 2 } }, -1, 1, false },
  { "slice", f_slice, 1, { 2 }, { M }, -1, 1, false },
  { "select", f_select, 1, { 2 }, { M }, -1, 1, false },
  { "linear",
    f_linear,
    3,
    { 3, 2, 1 },
    { { 2, 3, 4 }, { 2, 4 }, { 2 } },
    -1,
    1,
    false },
  { "matmul, batched",
    f_matmul_batch,
    2,
    { 3, 3 },
    { { 2, 3, 4 }, { 1, 4, 2 } },
    -1,
    1,
    false },
  { "log_softmax", f_log_softmax, 1, { 2 }, { M }, -1, 1, false },
  { "softmax", f_softmax, 1, { 2 }, { M }, -1, 1, false },
  { "conv2d",
    f_conv2d,
    3,
    { 4, 4, 1 },
    { { 2, 2, 4, 4 }, { 3, 2, 3, 3 }, { 3 } },
    -1,
    1,
    false },
  { "conv2d, stride and dilation",
    f_conv2d_stride,
    2,
    { 4, 4 },
    { { 1, 2, 5, 6 }, { 2, 2, 2, 2 } },
    -1,
    1,
    false },
  { "conv2d, groups",
    f_conv2d_groups,
    2,
    { 4, 4 },
    { { 1, 4, 5, 5 }, { 2, 2, 3, 3 } },
    -1,
    1,
    false },
  { "max_pool2d", f_max_pool2d, 1, { 4 }, { { 1, 2, 4, 4 } }, -1, 1, false },
  { "max_pool2d, overlapping",
    f_max_pool2d_wide,
    1,
    { 4 },
    { { 1, 1, 4, 4 } },
    -1,
    1,
    false },
  { "batch_norm",
    f_batch_norm,
    3,
    { 4, 1, 1 },
    { { 3, 2, 2, 2 }, { 2 }, { 2 } },
    0.2,
    1,
    false },
  { "to_dtype", f_to_dtype, 1, { 2 }, { M }, -1, 1, false },
  { "nll_loss", f_nll_loss, 1, { 2 }, { M }, -1, 1, false },
  { "cross_entropy", f_cross_entropy, 1, { 2 }, { M }, -1, 1, false },
  ELEMENTWISE(ONE_ROW, TWO_ROW)
};

// ---- points -----------------------------------------------------------------

enum { MOST = 128 };

typedef struct point {
  double values[3][MOST];
  size_t counts[3];
} point;

// A fixed sequence of numbers, spread so that no two are equal: kinks and ties
// of maxima lie far from the steps.
static double next_number(uint64_t *state, double low, double high)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  double u = (double)(*state >> 40) / (double)(1 << 24);
  return low + (high - low) * u;
}

static point make_point(const subject *s, uint64_t *state)
{
  point p = { .counts = { 0, 0, 0 } };
  for (size_t k = 0; k < s->n_in; k++) {
    p.counts[k] = 1;
    for (size_t i = 0; i < s->ranks[k]; i++) {
      p.counts[k] *= (size_t)s->dims[k][i];
    }
    assert_true(p.counts[k] <= MOST);
    for (size_t i = 0; i < p.counts[k]; i++) {
      p.values[k][i] = next_number(state, s->low, s->high);
    }
  }
  return p;
}

// An alternating weight of the elements, different for each.
static calx_tensor *weights(const calx_tensor *like, double first)
{
  double w[4 * MOST];
  size_t n = (size_t)calx_tensor_numel(like);
  assert_true(n <= 4 * MOST);
  for (size_t i = 0; i < n; i++) w[i] = first + 0.37 * sin(1.7 * (double)i + 1);
  return calx_tensor_from(w, CALX_F64, calx_tensor_shape(like));
}

typedef struct result {
  double f, vg;  // the objective; v . its gradient
  double first[3][MOST], second[3][MOST];
} result;

static void read_all(calx_tensor *t, double *out)
{
  size_t n;
  double *values = support_read(t, &n);
  for (size_t i = 0; i < n; i++) out[i] = values[i];
  test_free(values);
}

static void evaluate(const subject *s, const point *p, result *r)
{
  calx_scope *scope = calx_scope_begin();
  calx_tensor *in[3] = { NULL }, *first[3], *second[3];
  for (size_t k = 0; k < s->n_in; k++) {
    in[k] = calx_tensor_from(p->values[k], CALX_F64,
                             calx_dims_of(s->dims[k], s->ranks[k]));
    calx_requires_grad(in[k], true);
  }
  calx_tensor *y = s->fn(in);
  calx_tensor *f = calx_sum(calx_mul(y, weights(y, 0.9)));
  calx_backward_options o = { .size = sizeof o, .create_graph = true };
  calx_grad_of_with(f, in, s->n_in, first, &o);
  r->f = calx_item(f);
  calx_tensor *vg = NULL;
  for (size_t k = 0; k < s->n_in; k++) {
    assert_non_null(first[k]);
    calx_tensor *part =
        calx_sum(calx_mul(first[k], weights(first[k], -0.4 - (double)k)));
    vg = vg == NULL ? part : calx_add(vg, part);
    read_all(first[k], r->first[k]);
  }
  if (!s->flat) {
    r->vg = calx_item(vg);
    calx_grad_of(vg, in, s->n_in, second);
    for (size_t k = 0; k < s->n_in; k++) {
      for (size_t i = 0; i < MOST; i++) r->second[k][i] = 0;
      if (second[k] != NULL) read_all(second[k], r->second[k]);
    }
  }
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static bool agree(const subject *s, const char *which, size_t k, size_t i,
                  double got, double want)
{
  double tolerance = 2e-6 * (1 + fabs(want));
  if (fabs(got - want) <= tolerance) return true;
  print_message(
      "%s: %s derivative, input %zu element %zu: %.9g, differences "
      "say %.9g\n",
      s->name, which, k, i, got, want);
  return false;
}

static bool check(const subject *s)
{
  static const double h = 1e-5;
  uint64_t state = 7;
  point p = make_point(s, &state);
  result at, above, below;
  evaluate(s, &p, &at);
  bool good = true;
  for (size_t k = 0; k < s->n_in; k++) {
    // Every third element of the large ones: all ops are uniform in them.
    size_t stride = p.counts[k] > 16 ? 5 : 1;
    for (size_t i = 0; i < p.counts[k]; i += stride) {
      double x = p.values[k][i];
      p.values[k][i] = x + h;
      evaluate(s, &p, &above);
      p.values[k][i] = x - h;
      evaluate(s, &p, &below);
      p.values[k][i] = x;
      good &= agree(s, "first", k, i, at.first[k][i],
                    (above.f - below.f) / (2 * h));
      if (s->flat) continue;
      good &= agree(s, "second", k, i, at.second[k][i],
                    (above.vg - below.vg) / (2 * h));
    }
  }
  return good;
}

static void test_all(void **state)
{
  (void)state;
  size_t n = sizeof subjects / sizeof *subjects, good = 0;
  for (size_t i = 0; i < n; i++) good += check(&subjects[i]);
  print_message("finite differences: %zu of %zu ops agree\n", good, n);
  assert_int_equal(good, n);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_all) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
