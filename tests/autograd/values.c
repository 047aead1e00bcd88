// values: gradients and second derivatives as numbers, on a real plugin.
#include <math.h>

#include "calx/autograd.h"
#include "calx/ops.h"
#include "support/support.h"

static calx_tensor *leaf(calx_dims shape, const double *values)
{
  calx_tensor *t = support_tensor(CALX_F64, shape, values);
  calx_requires_grad(t, true);
  return t;
}

#define LEAF(...)                                                      \
  leaf(CALX_SHAPE(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), \
       (double[]){ __VA_ARGS__ })

static calx_tensor *cube(calx_tensor *x)
{
  return calx_mul(calx_mul(x, x), x);
}

// ---- first derivatives ------------------------------------------------------

static void test_backward(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, -2, 3);
  calx_backward(calx_sum(cube(x)));
  calx_tensor *g = calx_grad(x);
  assert_int_equal(calx_tensor_dtype(g), CALX_F64);
  assert_false(calx_tensor_requires_grad(g));
  CHECK_VALUES(g, 1e-12, 3, 12, 27);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// One leaf on several ways, several leaves on one.
static void test_ways_meet(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *a = LEAF(1, 2), *b = LEAF(5, 7);
  calx_tensor *sum = calx_add(a, b);
  calx_tensor *y = calx_add(calx_mul(sum, a), calx_sub(sum, calx_mul(b, 3)));
  calx_backward(calx_sum(y));
  // d/da = 2a + b + 1, d/db = a + 1 - 3
  CHECK_VALUES(calx_grad(a), 1e-12, 8, 12);
  CHECK_VALUES(calx_grad(b), 1e-12, -1, 0);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// A rule may hand one tensor to two leaves: each gets a handle of its own.
static void test_leaves_share_no_gradient(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *a = LEAF(1), *b = LEAF(2);
  calx_backward(calx_sum(calx_add(a, b)));
  assert_ptr_not_equal(calx_grad(a), calx_grad(b));
  calx_backward(calx_sum(calx_mul(a, 10)));
  CHECK_VALUES(calx_grad(a), 0, 11);
  CHECK_VALUES(calx_grad(b), 0, 1);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_gradient_from_above(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 2, 3);
  calx_tensor *up =
      support_tensor(CALX_F64, CALX_SHAPE(3), (double[]){ 1, 10, 100 });
  calx_backward_with(calx_mul(x, x),
                     &(calx_backward_options){ .gradient = up });
  CHECK_VALUES(calx_grad(x), 1e-12, 2, 40, 600);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_leaf_is_the_output(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(CALX_SCALAR, (double[]){ 4 });
  calx_backward(x);
  CHECK_VALUES(calx_grad(x), 0, 1);
  calx_tensor *g, *other = LEAF(1);
  calx_grad_of(x, &x, 1, &g);
  CHECK_VALUES(g, 0, 1);
  calx_grad_of(x, &other, 1, &g, .allow_unused = true);
  assert_null(g);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// More rules than one batch of handles, with a value that is used at both ends.
static void test_long_chain(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 2), *late = LEAF(3, 5), *y = x;
  for (int i = 0; i < 1000; i++) y = calx_neg(y);
  calx_backward(calx_sum(calx_mul(calx_mul(y, x), late)));  // y = x
  CHECK_VALUES(calx_grad(x), 1e-9, 6, 20);
  CHECK_VALUES(calx_grad(late), 1e-9, 1, 4);
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_wide_graph(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(2), *square = calx_mul(x, x), *y = square;
  for (int i = 0; i < 600; i++) y = calx_add(y, square);
  calx_backward(calx_sum(y));
  CHECK_VALUES(calx_grad(x), 1e-9, 4.0 * 601);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// The values at recording count, not those at the time of the backward.
static void test_assigned_leaf(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(3);
  calx_tensor *y = calx_mul(x, x);
  calx_no_grad_begin();
  calx_assign(x, 100);
  calx_no_grad_end();
  calx_backward(calx_sum(y));
  CHECK_VALUES(calx_grad(x), 1e-12, 6);
  CHECK_VALUES(x, 0, 100);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- accumulation -----------------------------------------------------------

static void test_accumulates(void **state)
{
  (void)state;
  calx_tensor *x = NULL;
  for (int i = 1; i <= 3; i++) {
    calx_scope *s = calx_scope_begin();
    if (x == NULL) x = calx_take(LEAF(1, 2));
    calx_tensor *before = calx_grad(x);
    calx_backward(calx_sum(calx_mul(x, i)));
    if (before != NULL) assert_ptr_equal(calx_grad(x), before);
    calx_sync(NULL);  // what no optimiser consumed is durable
    CHECK_STATUS_OK(calx_scope_end(s));
  }
  calx_scope *s = calx_scope_begin();
  CHECK_VALUES(calx_grad(x), 1e-12, 6, 6);
  calx_zero_grad(x);
  assert_null(calx_grad(x));
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_release(x);
}

// ---- chosen tensors ---------------------------------------------------------

static void test_grad_of(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 2), *other = LEAF(3, 4);
  calx_tensor *square = calx_mul(x, x), *unused = calx_mul(other, other);
  calx_tensor *y = calx_sum(calx_mul(square, square));
  calx_tensor *inputs[] = { x, square, other, unused, y };
  calx_tensor *grads[5];
  calx_grad_of(y, inputs, 5, grads, .allow_unused = true);
  CHECK_VALUES(grads[0], 1e-12, 4, 32);
  CHECK_VALUES(grads[1], 1e-12, 2, 8);
  assert_null(grads[2]);
  assert_null(grads[3]);
  CHECK_VALUES(grads[4], 0, 1);
  assert_null(calx_grad(x));
  assert_false(calx_tensor_requires_grad(grads[0]));
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- second derivatives -----------------------------------------------------

static const calx_grad_of_options twice = { .create_graph = true };
static const calx_backward_options back_twice = { .create_graph = true };

static calx_tensor *derivative(calx_tensor *y, calx_tensor *x)
{
  calx_tensor *g;
  calx_grad_of_with(calx_sum(y), &x, 1, &g, &twice);
  return g;
}

static void test_second_derivatives(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(0.5, -1.5);
  calx_tensor *d1 = derivative(cube(x), x), *d2 = derivative(d1, x);
  CHECK_VALUES(d1, 1e-12, 0.75, 6.75);
  CHECK_VALUES(d2, 1e-12, 3, -9);
  CHECK_VALUES(derivative(d2, x), 1e-12, 6, 6);
  calx_tensor *sine = derivative(derivative(calx_sin(x), x), x);
  CHECK_VALUES(sine, 1e-12, -sin(0.5), -sin(-1.5));
  calx_tensor *t = derivative(derivative(calx_tanh(x), x), x);
  double a = tanh(0.5), b = tanh(-1.5);
  CHECK_VALUES(t, 1e-12, -2 * a * (1 - a * a), -2 * b * (1 - b * b));
  calx_tensor *quotient =
      derivative(derivative(calx_div(calx_exp(x), calx_add(x, 3)), x), x);
  double wanted[2], at[2] = { 0.5, -1.5 };
  for (int i = 0; i < 2; i++) {
    double q = at[i] + 3;
    wanted[i] = exp(at[i]) * (1 / q - 2 / (q * q) + 2 / (q * q * q));
  }
  CHECK_VALUES(quotient, 1e-12, wanted[0], wanted[1]);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// The Hessian of a small network's loss, by differences of its gradient.
static calx_tensor *network(calx_tensor *w, calx_tensor *x, calx_tensor *y)
{
  calx_tensor *out = calx_log_softmax(calx_tanh(calx_matmul(x, w)), 1);
  return calx_nll_loss(out, y);
}

static void test_hessian(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  double weights[6] = { 0.3, -0.2, 0.5, 0.1, 0.7, -0.4 };
  double inputs[4] = { 1.0, -0.5, 0.25, 2.0 };
  int64_t classes[2] = { 2, 0 };
  calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(2, 2), inputs);
  calx_tensor *y = calx_tensor_from(classes, CALX_I64, CALX_SHAPE(2));
  calx_tensor *w = leaf(CALX_SHAPE(2, 3), weights);
  calx_tensor *g = derivative(network(w, x, y), w);
  const double h = 1e-6;
  for (int k = 0; k < 6; k++) {
    calx_tensor *row;
    calx_tensor *gk = calx_select(calx_flatten(g), 0, k);
    calx_grad_of(gk, &w, 1, &row, .retain_graph = true);
    size_t n;
    double *got = support_read(row, &n), *at[2];
    for (int side = 0; side < 2; side++) {
      double moved[6];
      memcpy(moved, weights, sizeof moved);
      moved[k] += side == 0 ? -h : h;
      calx_tensor *wm = leaf(CALX_SHAPE(2, 3), moved);
      at[side] = support_read(derivative(network(wm, x, y), wm), &n);
    }
    for (int i = 0; i < 6; i++) {
      CHECK_CLOSE(got[i], (at[1][i] - at[0][i]) / (2 * h), 1e-7);
    }
    test_free(got);
    test_free(at[0]);
    test_free(at[1]);
  }
  CHECK_STATUS_OK(calx_scope_end(s));
}

// .grad itself can be differentiated, and accumulates with its history.
static void test_create_graph_on_leaves(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(2);
  calx_backward_with(calx_sum(cube(x)), &back_twice);
  calx_tensor *first = calx_grad(x), *second;
  assert_true(calx_tensor_requires_grad(first));
  calx_grad_of(calx_sum(first), &x, 1, &second, .retain_graph = true);
  CHECK_VALUES(second, 1e-12, 12);
  calx_backward_with(calx_sum(cube(x)), &back_twice);
  CHECK_VALUES(calx_grad(x), 1e-12, 24);
  calx_grad_of(calx_sum(calx_grad(x)), &x, 1, &second);
  CHECK_VALUES(second, 1e-12, 24);
  calx_zero_grad(x);
  calx_backward(calx_sum(x));  // no history, to which one is added
  calx_backward_with(calx_sum(cube(x)), &back_twice);
  calx_grad_of(calx_sum(calx_grad(x)), &x, 1, &second);
  CHECK_VALUES(second, 1e-12, 12);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// The gradient from above may be a leaf itself: J v from two passes of J^T.
static void test_gradient_of_the_gradient(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(1, 2), *v = LEAF(0, 0);
  calx_tensor *direction =
      support_tensor(CALX_F64, CALX_SHAPE(2), (double[]){ 10, 1 });
  calx_grad_of_options up = { .gradient = v, .create_graph = true };
  calx_tensor *g, *jv;
  calx_grad_of_with(cube(x), &x, 1, &g, &up);
  calx_grad_of_options along = { .gradient = direction };
  calx_grad_of_with(g, &v, 1, &jv, &along);
  CHECK_VALUES(jv, 1e-12, 30, 12);
  calx_grad_of_with(x, &x, 1, &g, &up);
  assert_ptr_equal(g, v);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- types ------------------------------------------------------------------

static void test_types(void **state)
{
  (void)state;
  static const calx_dtype types[] = { CALX_F32, CALX_BF16, CALX_F16 };
  for (size_t i = 0; i < 3; i++) {
    calx_scope *s = calx_scope_begin();
    calx_tensor *x =
        support_tensor(types[i], CALX_SHAPE(2), (double[]){ 2, 3 });
    calx_requires_grad(x, true);
    calx_tensor *wide = calx_to_dtype(x, CALX_F64);
    calx_backward(calx_sum(calx_mul(calx_mul(x, 0.5), wide)));
    assert_int_equal(calx_tensor_dtype(calx_grad(x)), types[i]);
    CHECK_VALUES(calx_grad(x), 0, 2, 3);
    CHECK_STATUS_OK(calx_scope_end(s));
  }
}

// In a gradient with broadcasting, each operand gets its own shape.
static void test_broadcast(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *a = leaf(CALX_SHAPE(2, 1), (double[]){ 1, 2 });
  calx_tensor *b = LEAF(3, 4, 5), *c = leaf(CALX_SCALAR, (double[]){ 2 });
  calx_backward(calx_sum(calx_mul(calx_mul(a, b), c)));
  assert_int_equal(calx_tensor_rank(calx_grad(a)), 2);
  CHECK_VALUES(calx_grad(a), 1e-12, 24, 24);
  CHECK_VALUES(calx_grad(b), 1e-12, 6, 6, 6);
  CHECK_VALUES(calx_grad(c), 1e-12, 36);
  CHECK_STATUS_OK(calx_scope_end(s));
}

// The gradient goes to the first of equal maxima, and to a NaN where there is
// one. PyTorch's values.
static void test_max_pool_chooses(void **state)
{
  (void)state;
  static const double image[16] = { NAN, 5, 1, 2, 0, 1, 3, 3,
                                    1,   1, 7, 0, 1, 1, 2, 7 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = leaf(CALX_SHAPE(1, 1, 4, 4), image);
  calx_tensor *apart = NULL, *overlapping = NULL, *padded = NULL;
  calx_grad_of(calx_sum(calx_max_pool2d(x, 2)), &x, 1, &apart);
  calx_grad_of(calx_sum(calx_max_pool2d(x, 2, .stride = 1)), &x, 1,
               &overlapping);
  calx_grad_of(calx_sum(calx_max_pool2d(x, 2, .stride = 1, .padding = 1)), &x,
               1, &padded);
  CHECK_VALUES(apart, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0);
  CHECK_VALUES(overlapping, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 4, 0, 0, 0, 0, 0);
  CHECK_VALUES(padded, 0, 4, 2, 0, 2, 0, 1, 1, 2, 3, 0, 4, 0, 2, 0, 1, 3);
  CHECK_STATUS_OK(calx_scope_end(s));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_backward),
    SUPPORT_TEST(test_ways_meet),
    SUPPORT_TEST(test_leaves_share_no_gradient),
    SUPPORT_TEST(test_gradient_from_above),
    SUPPORT_TEST(test_leaf_is_the_output),
    SUPPORT_TEST(test_long_chain),
    SUPPORT_TEST(test_wide_graph),
    SUPPORT_TEST(test_assigned_leaf),
    SUPPORT_TEST(test_accumulates),
    SUPPORT_TEST(test_grad_of),
    SUPPORT_TEST(test_second_derivatives),
    SUPPORT_TEST(test_hessian),
    SUPPORT_TEST(test_create_graph_on_leaves),
    SUPPORT_TEST(test_gradient_of_the_gradient),
    SUPPORT_TEST(test_types),
    SUPPORT_TEST(test_broadcast),
    SUPPORT_TEST(test_max_pool_chooses),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
