// functions: gradients that the user computes, recomputation, derivatives of
// functions, and checks of gradients.
#include <sys/resource.h>

#include "calx/nn.h"
#include "function.h"

// ---- y = a x^2, and the number of positive x --------------------------------

typedef struct square_state {
  double a;
  int freed;
  bool wrong, broadcast, saw_zeros;
} square_state;

static void free_square(void *state)
{
  ((square_state *)state)->freed++;
}

static void square_forward(calx_function_context *ctx, calx_tensor *const *in,
                           calx_tensor **out)
{
  const square_state *s = calx_function_state(ctx);
  assert_true(calx_function_needs_input_grad(ctx, 0));
  assert_false(calx_function_needs_input_grad(ctx, 1));
  assert_false(calx_function_needs_input_grad(ctx, 2));
  assert_false(calx_is_grad_enabled());
  out[0] = calx_mul(calx_mul(in[0], in[0]), s->a);
  out[1] = calx_mul(in[1], 3);
  calx_tensor *twice = calx_mul(in[0], 2 * s->a);
  calx_function_save_for_backward(ctx,
                                  (calx_tensor *[]){ in[0], out[0], twice }, 3);
  calx_function_mark_non_differentiable(ctx, 1);
}

static void square_backward(calx_function_context *ctx,
                            calx_tensor *const *grads, calx_tensor **in)
{
  square_state *s = calx_function_state(ctx);
  assert_non_null(grads[1]);
  s->saw_zeros = true;
  calx_tensor *x = calx_function_saved(ctx, 0);
  in[0] = calx_mul(grads[0], calx_mul(x, 2 * s->a));
  if (s->wrong) in[0] = calx_ones(CALX_SHAPE(5), .dtype = CALX_F64);
  if (s->broadcast) in[0] = calx_ones(CALX_SHAPE(3, 2));
  in[1] = grads[1];
}

static const calx_function square = { .name = "Square",
                                      .forward = square_forward,
                                      .backward = square_backward,
                                      .free_state = free_square };

static calx_tensor *constant(void)
{
  return support_tensor(CALX_F64, CALX_SHAPE(2), (double[]){ 7, 8 });
}

static void test_custom(void **state)
{
  (void)state;
  square_state st = { .a = 3 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(1, 2), constant() }, *out[2];
  calx_function_apply(&square, &st, in, 2, out, 2);
  CHECK_VALUES(out[0], 0, 3, 12);
  CHECK_VALUES(out[1], 0, 21, 24);
  assert_true(calx_tensor_requires_grad(out[0]));
  assert_false(calx_tensor_requires_grad(out[1]));
  calx_backward(calx_sum(calx_mul(out[0], in[0])));  // 3 x^3
  CHECK_VALUES(calx_grad(in[0]), 1e-12, 9, 36);
  assert_true(st.saw_zeros);
  assert_int_equal(st.freed, 0);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(st.freed, 1);
}

static void test_custom_second_derivative(void **state)
{
  (void)state;
  square_state st = { .a = 3 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(1, 2), constant() }, *out[2], *g, *gg;
  calx_function_apply(&square, &st, in, 2, out, 2);
  calx_grad_of(calx_sum(calx_mul(out[0], out[0])), in, 1, &g,
               .create_graph = true);
  CHECK_VALUES(g, 1e-12, 36, 288);  // 4 a^2 x^3
  calx_grad_of(calx_sum(g), in, 1, &gg);
  CHECK_VALUES(gg, 1e-12, 108, 432);
  CHECK_STATUS_OK(calx_scope_end(s));
  assert_int_equal(st.freed, 1);
}

static void test_custom_twice(void **state)
{
  (void)state;
  square_state st = { .a = 3 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(1, 2), constant() }, *out[2];
  calx_function_apply(&square, &st, in, 2, out, 2);
  calx_backward(calx_sum(out[0]));
  calx_backward(calx_sum(out[0]));
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "a second time", "Square");
  assert_int_equal(st.freed, 1);
}

// A sync in between keeps nothing alive that it need not.
static void test_custom_across_steps(void **state)
{
  (void)state;
  square_state st[3] = { { .a = 1 }, { .a = 2 }, { .a = 3 } };
  calx_tensor *x = NULL;
  for (int i = 0; i < 3; i++) {
    calx_scope *s = calx_scope_begin();
    if (x == NULL) x = calx_take(LEAF(1, 2));
    calx_tensor *in[2] = { x, constant() }, *out[2];
    calx_function_apply(&square, &st[i], in, 2, out, 2);
    calx_backward(calx_sum(out[0]));
    calx_sync(out[0]);
    CHECK_STATUS_OK(calx_scope_end(s));
    assert_int_equal(st[i].freed, 1);
  }
  calx_scope *s = calx_scope_begin();
  CHECK_VALUES(calx_grad(x), 1e-12, 12, 24);
  CHECK_STATUS_OK(calx_scope_end(s));
  calx_release(x);
}

static void test_custom_without_gradient(void **state)
{
  (void)state;
  square_state st = { .a = 3 };
  calx_function plain = square;
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(1, 2), constant() }, *out[2];
  plain.forward = NULL;
  calx_function_apply(&plain, &st, in, 2, out, 2);
  assert_int_equal(st.freed, 1);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "its forward");
  s = calx_scope_begin();
  in[0] = LEAF(1, 2);
  in[1] = NULL;
  calx_function_apply(&square, &st, in, 2, out, 2);
  assert_int_equal(st.freed, 2);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "operand 1 of 'Square' is NULL");
  s = calx_scope_begin();
  calx_tensor *nine[9];
  calx_function_apply(&square, &st, in, 1, nine, 9);
  assert_int_equal(st.freed, 3);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "9 outputs, 1 to 8");
}

static void test_custom_gradients_that_do_not_fit(void **state)
{
  (void)state;
  square_state st = { .a = 3, .wrong = true };
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(1, 2), constant() }, *out[2];
  calx_function_apply(&square, &st, in, 2, out, 2);
  calx_backward(calx_sum(out[0]));
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT,
              "Function Square returned an invalid gradient at index 0",
              "f64[5]", "f64[2]");
  st = (square_state){ .a = 3, .broadcast = true };
  s = calx_scope_begin();
  in[0] = LEAF(1, 2);
  in[1] = constant();
  calx_function_apply(&square, &st, in, 2, out, 2);
  calx_backward(calx_sum(out[0]));
  CHECK_VALUES(calx_grad(in[0]), 0, 3, 3);  // summed, and f64
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- once differentiable ----------------------------------------------------

static void cube_forward(calx_function_context *ctx, calx_tensor *const *in,
                         calx_tensor **out)
{
  out[0] = calx_mul(calx_mul(in[0], in[0]), in[0]);
  calx_function_save_for_backward(ctx, in, 1);
}

static void cube_backward(calx_function_context *ctx, calx_tensor *const *grads,
                          calx_tensor **in)
{
  calx_tensor *x = calx_function_saved(ctx, 0);
  in[0] = calx_mul(grads[0], calx_mul(calx_mul(x, x), 3));
}

static void bad_cube_backward(calx_function_context *ctx,
                              calx_tensor *const *grads, calx_tensor **in)
{
  calx_tensor *x = calx_function_saved(ctx, 0);
  in[0] = calx_mul(grads[0], calx_mul(calx_mul(x, x), 3.1));
}

static const calx_function once_cube = { .name = "Cube",
                                         .forward = cube_forward,
                                         .backward = cube_backward,
                                         .once_differentiable = true };

static void test_once_differentiable(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(2), *y, *g, *gg;
  calx_function_apply(&once_cube, NULL, &x, 1, &y, 1);
  calx_grad_of(calx_sum(calx_mul(y, y)), &x, 1, &g, .create_graph = true);
  CHECK_VALUES(g, 1e-12, 192);
  calx_grad_of(calx_sum(g), &x, 1, &gg);
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "trying to differentiate twice",
              ".once_differentiable");
}

// ---- checks of gradients ----------------------------------------------------

static void apply_cube(void *user, calx_tensor *const *in, calx_tensor **out)
{
  calx_function f = { .name = "Cube",
                      .forward = cube_forward,
                      .backward =
                          user != NULL ? bad_cube_backward : cube_backward };
  calx_function_apply(&f, NULL, in, 1, out, 1);
}

static void two_outputs(void *user, calx_tensor *const *in, calx_tensor **out)
{
  (void)user;
  out[0] = calx_mul(calx_sin(in[0]), in[1]);
  out[1] = calx_sum(calx_exp(in[1]));
}

static void test_gradcheck(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *in[2] = { LEAF(0.5, -1.5), LEAF(2, 0.25) };
  CHECK_STATUS_OK(calx_gradcheck(apply_cube, NULL, in, 1, 1));
  CHECK_STATUS_OK(calx_gradgradcheck(apply_cube, NULL, in, 1, 1));
  CHECK_STATUS_OK(calx_gradcheck(two_outputs, NULL, in, 2, 2));
  CHECK_STATUS_OK(calx_gradgradcheck(two_outputs, NULL, in, 2, 2));
  CHECK_STATUS(CALX_FAILED_PRECONDITION,
               calx_gradcheck(apply_cube, in, in, 1, 1), "gradcheck",
               "Jacobian mismatch", "d(output[0])/d(input[0])");
  CHECK_STATUS_OK(calx_gradcheck(apply_cube, in, in, 1, 1, .rtol = 0.05));
  calx_tensor *plain = constant();
  CHECK_STATUS(CALX_INVALID_ARGUMENT,
               calx_gradcheck(apply_cube, NULL, &plain, 1, 1),
               "no input requires a gradient");
  CHECK_STATUS_OK(calx_scope_end(s));
}

// ---- derivatives of functions -----------------------------------------------

// f(x) = (x0 x1, sin x0, x1^3)
static calx_tensor *three(void *user, calx_tensor *x)
{
  (void)user;
  calx_tensor *a = calx_slice(x, 0, 0, 1, 1), *b = calx_slice(x, 0, 1, 2, 1);
  calx_tensor *parts[3] = { calx_mul(a, b), calx_sin(a),
                            calx_mul(calx_mul(b, b), b) };
  return calx_cat(parts, 3, 0);
}

static calx_tensor *one(void *user, calx_tensor *x)
{
  return calx_sum(calx_square(three(user, x)));
}

static void test_functional(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x =
      support_tensor(CALX_F64, CALX_SHAPE(2), (double[]){ 0.5, 2 });
  calx_tensor *j = calx_jacobian(three, NULL, x);
  assert_int_equal(calx_tensor_rank(j), 2);
  CHECK_VALUES(j, 1e-12, 2, 0.5, cos(0.5), 0, 0, 12);
  calx_tensor *v = support_tensor(CALX_F64, CALX_SHAPE(2), (double[]){ 1, 10 });
  calx_tensor *u =
      support_tensor(CALX_F64, CALX_SHAPE(3), (double[]){ 1, 10, 100 });
  calx_tensor *y;
  CHECK_VALUES(calx_jvp(three, NULL, x, v, &y), 1e-12, 7, cos(0.5), 120);
  CHECK_VALUES(y, 1e-12, 1, sin(0.5), 8);
  CHECK_VALUES(calx_vjp(three, NULL, x, u, NULL), 1e-12, 2 + 10 * cos(0.5),
               1200.5);
  // (x0 x1)^2 + sin^2 x0 + x1^6
  CHECK_VALUES(calx_hessian(one, NULL, x), 1e-10, 2 * 4 + 2 * cos(1), 4, 4,
               2 * 0.25 + 30 * 16);
  assert_false(calx_tensor_requires_grad(j));
  calx_hessian(three, NULL, x);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "hessian", "f64[3]", "one element");
  s = calx_scope_begin();
  calx_vjp(three, NULL, LEAF(1, 2), NULL, NULL);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "vjp", "v may be NULL", "f64[3]");
}

// ---- recomputation ----------------------------------------------------------

typedef struct block {
  calx_tensor *w;
  int calls;
  bool grow;
} block;

static void block_fn(void *user, calx_tensor *const *in, calx_tensor **out)
{
  block *b = user;
  b->calls++;
  calx_tensor *h = calx_tanh(calx_matmul(in[0], b->w));
  calx_tensor *noise = calx_rand(CALX_SHAPE(4, 4), .dtype = CALX_F64);
  out[0] = calx_sin(calx_mul(calx_exp(h), noise));
  if (b->grow && b->calls > 1) out[0] = calx_sum(out[0]);
}

// The gradients of x and w, and the draws after, with and without.
static void run_block(bool checkpoint, double *out, size_t n)
{
  calx_manual_seed(7);
  calx_scope *s = calx_scope_begin();
  double v[16];
  for (int i = 0; i < 16; i++) v[i] = 0.1 * i - 0.7;
  calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(4, 4), v);
  block b = { .w = calx_mul(x, 0.5) };
  b.w = calx_detach(b.w);
  calx_requires_grad(b.w, true);
  calx_requires_grad(x, true);
  calx_tensor *h = calx_mul(x, 1.5), *y;
  if (checkpoint) {
    calx_checkpoint(block_fn, &b, &h, 1, &y, 1);
  } else {
    block_fn(&b, &h, &y);
  }
  calx_tensor *after = calx_rand(CALX_SHAPE(2), .dtype = CALX_F64);
  calx_backward(calx_sum(calx_mul(y, y)));
  calx_tensor *later = calx_rand(CALX_SHAPE(2), .dtype = CALX_F64);
  assert_int_equal(b.calls, checkpoint ? 2 : 1);
  calx_tensor *all[5] = { calx_flatten(y), calx_flatten(calx_grad(x)),
                          calx_flatten(calx_grad(b.w)), after, later };
  calx_tensor *flat = calx_cat(all, 5, 0);
  calx_sync(flat);
  CHECK_STATUS_OK(calx_tensor_read(flat, out, n * sizeof *out));
  CHECK_STATUS_OK(calx_scope_end(s));
}

static void test_checkpoint(void **state)
{
  (void)state;
  double plain[52], again[52];
  run_block(false, plain, 52);
  run_block(true, again, 52);
  for (int i = 0; i < 52; i++) {
    if (plain[i] != again[i]) print_error("%d: %g %g\n", i, plain[i], again[i]);
  }
  assert_memory_equal(plain, again, sizeof plain);
  double sum = 0;
  for (int i = 16; i < 48; i++) sum += fabs(plain[i]);
  assert_true(sum > 1);
}

static void test_checkpoint_errors(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  double v[16] = { 1 };
  calx_tensor *x = support_tensor(CALX_F64, CALX_SHAPE(4, 4), v), *y;
  calx_requires_grad(x, true);
  block b = { .w = calx_detach(x), .grow = true };
  calx_checkpoint(block_fn, &b, &x, 1, &y, 1);
  calx_backward(calx_sum(y));
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "checkpoint", "f64[]", "f64[4,4]",
              "must compute the same");
  s = calx_scope_begin();
  calx_checkpoint(NULL, NULL, &x, 1, &y, 1);
  CHECK_SCOPE(s, CALX_INVALID_ARGUMENT, "checkpoint", "the function is NULL");
}

// A gradient through it twice, and second derivatives.
static void sine_cube(void *user, calx_tensor *const *in, calx_tensor **out)
{
  (void)user;
  out[0] = calx_sin(calx_mul(calx_mul(in[0], in[0]), in[0]));
}

static void checkpointed(void *user, calx_tensor *const *in, calx_tensor **out)
{
  calx_checkpoint(sine_cube, user, in, 1, out, 1);
}

static void test_checkpoint_second_derivative(void **state)
{
  (void)state;
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = LEAF(0.5, -0.75);
  CHECK_STATUS_OK(calx_gradcheck(checkpointed, NULL, &x, 1, 1));
  CHECK_STATUS_OK(calx_gradgradcheck(checkpointed, NULL, &x, 1, 1));
  calx_tensor *y;
  calx_checkpoint(sine_cube, NULL, &x, 1, &y, 1);
  calx_backward(calx_sum(y));
  calx_backward(calx_sum(y));
  CHECK_SCOPE(s, CALX_FAILED_PRECONDITION, "a second time", "checkpoint");
}

// ---- the memory that recomputation saves ------------------------------------

enum { ROWS = 16384, SIDE = 64, LAYERS = 4, BLOCKS = 8 };

static void layers_fn(void *user, calx_tensor *const *in, calx_tensor **out)
{
  calx_tensor *w = user;
  out[0] = in[0];
  for (int i = 0; i < LAYERS; i++) out[0] = calx_tanh(calx_matmul(out[0], w));
}

// The process's peak in KiB after a step that keeps all results, or those
// between blocks only.
static long peak_of_step(bool checkpoint)
{
  calx_scope *s = calx_scope_begin();
  calx_tensor *w = calx_mul(calx_rand(CALX_SHAPE(SIDE, SIDE)), 0.01);
  calx_tensor *x = calx_detach(calx_rand(CALX_SHAPE(ROWS, SIDE)));
  w = calx_detach(w);
  calx_sync(w, x);
  calx_requires_grad(w, true);
  calx_tensor *h = x;
  for (int i = 0; i < BLOCKS; i++) {
    calx_tensor *y;
    if (checkpoint) {
      calx_checkpoint(layers_fn, w, &h, 1, &y, 1);
    } else {
      layers_fn(w, &h, &y);
    }
    h = y;
  }
  calx_backward(calx_sum(h));
  calx_sync(calx_grad(w));
  CHECK_STATUS_OK(calx_device_wait(NULL));
  CHECK_STATUS_OK(calx_scope_end(s));
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

// The peak only rises, so the smaller one is measured first. A result has 4
// MiB: 32 of them are kept without recomputation, and with it 8 and those of a
// block.
static void test_checkpoint_memory(void **state)
{
  (void)state;
  if (!support_own_engine()) return;  // the measured bound is our engine's
  long less = peak_of_step(true), more = peak_of_step(false);
  print_message("peak: %ld KiB with recomputation, %ld without\n", less, more);
  assert_true(more - less > 48 * 1024);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_custom),
    SUPPORT_TEST(test_custom_second_derivative),
    SUPPORT_TEST(test_custom_twice),
    SUPPORT_TEST(test_custom_across_steps),
    SUPPORT_TEST(test_custom_without_gradient),
    SUPPORT_TEST(test_custom_gradients_that_do_not_fit),
    SUPPORT_TEST(test_once_differentiable),
    SUPPORT_TEST(test_gradcheck),
    SUPPORT_TEST(test_functional),
    SUPPORT_TEST(test_checkpoint),
    SUPPORT_TEST(test_checkpoint_errors),
    SUPPORT_TEST(test_checkpoint_second_derivative),
    SUPPORT_TEST(test_checkpoint_memory),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
