// Which graphs are one program: the key is the graph, and nothing else is in
// it: no creation order, no address, no number of the user's.
#include "base/hash.h"
#include "fixture.h"
#include "lazy/lazy.h"

// How many programs were compiled since the last look.
static int64_t looked;

static void look(void)
{
  looked = calx_counter_value("UncachedCompile");
}

static int new_programs(void)
{
  int64_t before = looked;
  look();
  return (int)(looked - before);
}

#define CHECK_NEW(n) assert_int_equal(new_programs(), (n))

// Syncs one tensor in a scope of its own, and says how many programs that took.
#define PROGRAMS(expression) \
  (in_scope = calx_scope_begin(), run_in_scope(expression))
static calx_scope *in_scope;

static int run_in_scope(calx_tensor *t)
{
  look();
  calx_sync(t);
  CHECK_STATUS_OK(calx_scope_end(in_scope));
  return new_programs();
}

// ---- the graph --------------------------------------------------------------

static void test_same_graph(void **state)
{
  (void)state;
  for (int i = 0; i < 5; i++) {
    calx_tensor *x = lazy_vector(4, (float)i), *y = lazy_vector(4, 1);
    assert_int_equal(PROGRAMS(calx_add(calx_neg(x), calx_exp(y))), i == 0);
  }
  assert_int_equal(calx_counter_value("CachedCompile"), 4);
}

// C leaves open which argument is made first.
static void test_creation_order(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0), *y = lazy_vector(4, 1), *a, *b;
  in_scope = calx_scope_begin();
  a = calx_neg(x);
  b = calx_mul(calx_exp(y), 3.0);
  assert_int_equal(run_in_scope(calx_add(a, b)), 1);
  in_scope = calx_scope_begin();
  b = calx_mul(calx_exp(y), 3.0);
  calx_log(b);  // and what hangs on it without being wanted
  a = calx_neg(x);
  assert_int_equal(run_in_scope(calx_add(a, b)), 0);
  y = lazy_vector(4, 1);
  x = lazy_vector(4, 0);
  assert_int_equal(PROGRAMS(calx_add(calx_neg(x), calx_mul(calx_exp(y), 4.0))),
                   0);
}

static void test_operands(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0), *y = lazy_vector(4, 1);
  assert_int_equal(PROGRAMS(calx_sub(x, y)), 1);
  assert_int_equal(PROGRAMS(calx_sub(y, x)), 0);  // the first is parameter 0
  assert_int_equal(PROGRAMS(calx_sub(x, x)), 1);
  assert_int_equal(PROGRAMS(calx_sub(y, y)), 0);
  calx_tensor *n = calx_neg(x);
  assert_int_equal(PROGRAMS(calx_sub(n, x)), 1);
  n = calx_neg(x);
  assert_int_equal(PROGRAMS(calx_sub(x, n)), 1);
  n = calx_neg(x);
  assert_int_equal(PROGRAMS(calx_sub(n, y)), 1);
  n = calx_neg(x);
  assert_int_equal(PROGRAMS(calx_sub(n, n)), 1);
  // Two nodes that do the same are not one.
  assert_int_equal(PROGRAMS(calx_sub(calx_neg(x), calx_neg(x))), 1);
}

static void test_ops_and_attributes(void **state)
{
  (void)state;
  calx_tensor *x = calx_reshape(lazy_vector(6, 0), CALX_SHAPE(2, 3));
  calx_sync(x);
  assert_int_equal(PROGRAMS(calx_neg(x)), 1);
  assert_int_equal(PROGRAMS(calx_abs(x)), 1);
  assert_int_equal(PROGRAMS(calx_sum(x, .dims = CALX_DIMS(0))), 1);
  assert_int_equal(PROGRAMS(calx_sum(x, .dims = CALX_DIMS(1))), 1);
  assert_int_equal(PROGRAMS(calx_sum(x, .dims = CALX_DIMS(-2))), 0);
  assert_int_equal(PROGRAMS(calx_sum(x, .dims = CALX_DIMS(0), .keepdim = true)),
                   1);
  assert_int_equal(PROGRAMS(calx_sum(x)), 1);
  assert_int_equal(PROGRAMS(calx_sum(x, .dims = CALX_DIMS(0, 1))), 0);
  assert_int_equal(PROGRAMS(calx_to_dtype(x, CALX_I32)), 1);
  assert_int_equal(PROGRAMS(calx_to_dtype(x, CALX_I64)), 1);
  assert_int_equal(PROGRAMS(calx_reshape(x, CALX_SHAPE(6))), 1);
  assert_int_equal(PROGRAMS(calx_reshape(x, CALX_SHAPE(3, 2))), 1);
}

static void test_shapes_and_types(void **state)
{
  (void)state;
  assert_int_equal(PROGRAMS(calx_neg(lazy_vector(4, 0))), 1);
  assert_int_equal(PROGRAMS(calx_neg(lazy_vector(5, 0))), 1);
  assert_int_equal(PROGRAMS(calx_neg(lazy_vector(4, 0))), 0);
  assert_int_equal(PROGRAMS(calx_neg(lazy_vector(5, 0))), 0);
  const int32_t i[4] = { 0 };
  const double d[4] = { 0 };
  calx_tensor *t = calx_tensor_from(i, CALX_I32, CALX_SHAPE(4));
  assert_int_equal(PROGRAMS(calx_neg(t)), 1);
  t = calx_tensor_from(i, CALX_F32, CALX_SHAPE(2, 2));
  assert_int_equal(PROGRAMS(calx_neg(t)), 1);
  t = calx_tensor_from(i, CALX_F32, CALX_SHAPE(1, 4));
  assert_int_equal(PROGRAMS(calx_neg(t)), 1);
  t = calx_tensor_from(i, CALX_F32, CALX_SHAPE(4, 1));
  assert_int_equal(PROGRAMS(calx_neg(t)), 1);
  t = calx_tensor_from(d, CALX_F64, CALX_SHAPE(4));
  assert_int_equal(PROGRAMS(calx_neg(t)), 1);
  // A shape that no operand tells: a creator's.
  assert_int_equal(PROGRAMS(calx_zeros(CALX_SHAPE(2))), 1);
  assert_int_equal(PROGRAMS(calx_zeros(CALX_SHAPE(3))), 1);
  assert_int_equal(PROGRAMS(calx_zeros(CALX_SHAPE(2))), 0);
  assert_int_equal(PROGRAMS(calx_rand(CALX_SHAPE(2))), 1);
  assert_int_equal(PROGRAMS(calx_rand(CALX_SHAPE(2))), 0);
  assert_int_equal(PROGRAMS(calx_rand(CALX_SHAPE(3))), 1);
}

static void test_roots(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  look();
  calx_tensor *a = calx_neg(x), *b = calx_exp(a);
  calx_sync(b);
  CHECK_NEW(1);
  a = calx_neg(x), b = calx_exp(a);
  calx_sync(a, b);
  CHECK_NEW(1);
  a = calx_neg(x), b = calx_exp(a);
  calx_sync(a, b);
  CHECK_NEW(0);
  a = calx_neg(x), b = calx_exp(a);
  calx_sync(b, a);  // the results are in another order
  CHECK_NEW(1);
  a = calx_neg(x), b = calx_exp(a);
  calx_sync(b, a, b, calx_detach(a));
  CHECK_NEW(0);
}

// A materialised tensor in the place of a pending one.
static void test_leaves(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0), *n = calx_neg(x);
  assert_int_equal(PROGRAMS(calx_exp(n)), 1);
  n = calx_neg(x);
  calx_sync(n);
  assert_int_equal(PROGRAMS(calx_exp(n)), 1);
  assert_int_equal(PROGRAMS(calx_exp(x)), 0);
}

// The hash finds, the key decides: here every hash is equal.
static bool collide;
cx_hash __real_cx_hash_bytes(const void *data, size_t size, uint64_t seed);
cx_hash __wrap_cx_hash_bytes(const void *data, size_t size, uint64_t seed);
cx_hash __wrap_cx_hash_bytes(const void *data, size_t size, uint64_t seed)
{
  if (collide) return (cx_hash){ 1, 2 };
  return __real_cx_hash_bytes(data, size, seed);
}

static void test_equal_hashes(void **state)
{
  (void)state;
  collide = true;
  calx_tensor *x = lazy_vector(4, 3), *y = lazy_vector(5, 7);
  assert_int_equal(PROGRAMS(calx_neg(x)), 1);
  assert_int_equal(PROGRAMS(calx_neg(y)), 1);
  assert_int_equal(PROGRAMS(calx_exp(x)), 1);
  assert_int_equal(PROGRAMS(calx_neg(x)), 0);
  assert_int_equal(PROGRAMS(calx_neg(y)), 0);
  calx_tensor *n = calx_neg(y);
  calx_sync(n);
  assert_int_equal(calx_tensor_numel(n), 5);
  assert_true(lazy_holds(n, 7));
  collide = false;
}

// ---- numbers ----------------------------------------------------------------

static void test_any_number(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  const double values[] = {
    0.3,         0, 1,   -1,  2, -0.0, 1e30, 1e-30, (double)INFINITY,
    (double)NAN, 3, 0.3, 0.5, 1, 0,    42
  };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    assert_int_equal(PROGRAMS(calx_mul(x, values[i])), i == 0);
    double alpha = fabs(values[i]) < 100 ? values[i] + 2 : 0.7;
    assert_int_equal(PROGRAMS(calx_add(x, 0.1, .alpha = alpha)), i == 0);
    assert_int_equal(PROGRAMS(calx_full(CALX_SHAPE(4), values[i])), i == 0);
    assert_int_equal(PROGRAMS(calx_where(calx_gt(x, values[i]), x, values[i])),
                     i == 0);
    assert_int_equal(PROGRAMS(calx_maximum(x, values[i])), i == 0);
  }
  for (int i = 0; i < 5; i++) {
    assert_int_equal(PROGRAMS(calx_mul(x, i)), 0);  // as if it were i.0
    assert_int_equal(PROGRAMS(calx_div(x, i)), i == 0);
  }
}

// Equal numbers are not one, whatever they meet.
static void test_equal_numbers(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  assert_int_equal(PROGRAMS(calx_add(calx_mul(x, 0.1), 0.2)), 1);
  assert_int_equal(PROGRAMS(calx_add(calx_mul(x, 0.3), 0.3)), 0);
  assert_int_equal(PROGRAMS(calx_add(calx_mul(x, 1.0), 0.0)), 0);
  calx_tensor *s = calx_scalar(0.5);
  assert_int_equal(PROGRAMS(calx_add(calx_mul(x, s), s)), 1);  // one number
}

static void test_pow(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 1);
  const double own[] = { 2, 3, 0.5, -0.5, -1, 2.5, 0, 1 };
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
    assert_int_equal(PROGRAMS(calx_pow(x, own[i])), 1);
    assert_int_equal(PROGRAMS(calx_pow(x, own[i])), 0);
  }
  assert_int_equal(PROGRAMS(calx_pow(x, 2.1)), 1);
  assert_int_equal(PROGRAMS(calx_pow(x, 0.3)), 0);
  assert_int_equal(PROGRAMS(calx_pow(x, -7.7)), 0);
  assert_int_equal(PROGRAMS(calx_pow(x, 4)), 1);
  assert_int_equal(PROGRAMS(calx_pow(x, 4)), 0);
}

static int norm(calx_tensor *x, double eps, double momentum)
{
  calx_tensor *mean = lazy_vector(2, 0), *var = lazy_vector(2, 1);
  return PROGRAMS(calx_batch_norm(x, .running_mean = mean, .running_var = var,
                                  .training = true, .eps = eps,
                                  .momentum = momentum));
}

static void test_norm(void **state)
{
  (void)state;
  calx_tensor *x = calx_reshape(lazy_vector(8, 1), CALX_SHAPE(4, 2));
  calx_sync(x);
  assert_int_equal(norm(x, 0, 0), 1);
  assert_int_equal(norm(x, 1e-5, 0), 0);  // the default
  assert_int_equal(norm(x, 1e-3, 0), 1);
  assert_int_equal(norm(x, 1e-3, 0), 0);
  assert_int_equal(norm(x, 1e-5, 0), 0);
  // The running statistics are not wanted here; the momentum is theirs.
  calx_tensor *mean = lazy_durable(2, 0), *var = lazy_durable(2, 1);
  for (int i = 0; i < 4; i++) {
    look();
    calx_batch_norm(x, .running_mean = mean, .running_var = var,
                    .training = true, .momentum = 0.1 * (i + 1));
    calx_sync(NULL);
    CHECK_NEW(i == 0);
  }
  calx_release(mean);
  calx_release(var);
}

// All numbers of a step travel in one packed upload, only when one changed.
static void test_one_upload(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  const double a[] = { 1, 1, 1, 2, 2, 2, 1 }, b[] = { 3, 3, 4, 4, 4, 4, 4 };
  const int uploads[] = { 1, 0, 1, 1, 0, 0, 1 };
  for (size_t i = 0; i < sizeof a / sizeof *a; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *t = calx_add(calx_mul(x, a[i]), b[i]);
    t = calx_add(calx_mul(t, 0.25), calx_scalar_int(7));
    long before = lazy_uploads();
    calx_sync(t);
    assert_int_equal(lazy_uploads() - before, uploads[i]);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
}

// What the user gives in bulk is no constant of the program.
static void test_no_constants(void **state)
{
  (void)state;
  static float data[100000];
  calx_tensor *x = calx_tensor_from(data, CALX_F32, CALX_SHAPE(100000));
  calx_tensor *y = calx_add(x, calx_arange(0, 100000, 1));
  char *text = calx_stablehlo_str(calx_where(calx_gt(y, 5.5), y, 0.0));
  assert_non_null(text);
  assert_non_null(strstr(text, "stablehlo.iota"));
  assert_true(strlen(text) < 8000);
  calx_string_free(text);
}

// ---- starts -----------------------------------------------------------------

static int slice_from(calx_tensor *x, int64_t start)
{
  return PROGRAMS(calx_slice(x, 0, start, start + 2, 1));
}

// One program for the first start, one for all others.
static void test_slice_starts(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(10, 0);
  assert_int_equal(slice_from(x, 3), 1);
  assert_int_equal(slice_from(x, 3), 0);
  assert_int_equal(slice_from(x, 4), 1);
  for (int64_t k = 0; k < 8; k++) assert_int_equal(slice_from(x, k), 0);
  assert_int_equal(PROGRAMS(calx_slice(x, 0, 1, 4, 1)), 1);  // another size
  assert_int_equal(PROGRAMS(calx_select(x, 0, 2)), 1);
  assert_int_equal(PROGRAMS(calx_select(x, 0, 5)), 1);
  assert_int_equal(PROGRAMS(calx_select(x, 0, 9)), 0);
  assert_int_equal(PROGRAMS(calx_select(x, 0, -1)), 0);
}

static void test_two_starts(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(10, 0);
  const int64_t a[] = { 0, 0, 1, 2, 3, 0 }, b[] = { 5, 5, 5, 6, 7, 5 };
  const int wanted[] = { 1, 0, 1, 0, 0, 0 };
  for (size_t i = 0; i < sizeof a / sizeof *a; i++) {
    calx_tensor *s = calx_slice(x, 0, a[i], a[i] + 2, 1);
    calx_tensor *t = calx_slice(x, 0, b[i], b[i] + 2, 1);
    assert_int_equal(PROGRAMS(calx_add(s, t)), wanted[i]);
  }
}

static void test_slice_gradient(void **state)
{
  (void)state;
  calx_tensor *w = lazy_durable(10, 0);
  calx_requires_grad(w, true);
  for (int64_t k = 0; k < 5; k++) {
    calx_scope *step = calx_scope_begin();
    look();
    calx_backward(calx_sum(calx_slice(w, 0, k, k + 3, 2)));
    calx_sync(NULL);
    CHECK_NEW(k < 2);
    calx_zero_grad(w);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  calx_release(w);
}

// ---- failures ---------------------------------------------------------------

// A program that could not be compiled is tried anew.
static void test_compile_again(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 1);
  for (int i = 0; i < 2; i++) {
    lazy_set("fail=PJRT_Client_Compile@1:13:no luck");
    calx_sync(calx_neg(x));
    CHECK_STATUS(CALX_INTERNAL, calx_scope_take_error(), "no luck");
  }
  long compiles = lazy_compiles();
  calx_sync(calx_neg(x));
  calx_sync(calx_neg(x));
  assert_int_equal(lazy_compiles(), compiles + 1);
  assert_null(calx_scope_error());
}

// The same for the second program of a slice; the first stays.
static void test_compile_starts_again(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(10, 0);
  assert_int_equal(slice_from(x, 0), 1);
  lazy_set("fail=PJRT_Client_Compile@1:13:no luck");
  calx_scope *step = calx_scope_begin();
  calx_sync(calx_slice(x, 0, 1, 3, 1));
  CHECK_STATUS(CALX_INTERNAL, calx_scope_end(step), "no luck");
  assert_int_equal(slice_from(x, 0), 0);
  assert_int_equal(slice_from(x, 1), 1);
  assert_int_equal(slice_from(x, 2), 0);
}

// ---- the limit ------------------------------------------------------------

// Ten operations, by the bits of n: another program of one size for each n.
static int run_chain(int n)
{
  calx_scope *s = calx_scope_begin();
  calx_tensor *x = lazy_vector(4, 1);
  for (int i = 0; i < 10; i++) {
    x = (n >> i & 1) != 0 ? calx_neg(x) : calx_exp(x);
  }
  look();
  calx_sync(x);
  CHECK_STATUS_OK(calx_scope_end(s));
  return new_programs();
}

// Memory does not grow with the number of programs; one that is run again and
// again stays, and one that was dropped is compiled anew.
static void test_limit(void **state)
{
  (void)state;
  setenv("CALX_PROGRAM_LIMIT", "70", 1);
  long objects = 0, blocks = 0;
  assert_int_equal(run_chain(1000), 1);
  for (int n = 1; n <= 200; n++) {
    assert_int_equal(run_chain(n), 1);
    assert_int_equal(run_chain(1000), 0);
    if (n == 100) {
      objects = lazy_fake.live();
      blocks = cx_alloc_live();
    }
  }
  assert_int_equal(lazy_fake.live(), objects);
  assert_true(cx_alloc_live() < blocks + 20);
  assert_int_equal(run_chain(200), 0);
  assert_int_equal(run_chain(150), 0);
  assert_int_equal(run_chain(1), 1);
  assert_int_equal(run_chain(1), 0);
  unsetenv("CALX_PROGRAM_LIMIT");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_limit),
    LAZY_TEST(test_same_graph),
    LAZY_TEST(test_creation_order),
    LAZY_TEST(test_operands),
    LAZY_TEST(test_ops_and_attributes),
    LAZY_TEST(test_shapes_and_types),
    LAZY_TEST(test_roots),
    LAZY_TEST(test_leaves),
    LAZY_TEST(test_equal_hashes),
    LAZY_TEST(test_any_number),
    LAZY_TEST(test_equal_numbers),
    LAZY_TEST(test_pow),
    LAZY_TEST(test_norm),
    LAZY_TEST(test_one_upload),
    LAZY_TEST(test_no_constants),
    LAZY_TEST(test_slice_starts),
    LAZY_TEST(test_two_starts),
    LAZY_TEST(test_slice_gradient),
    LAZY_TEST(test_compile_again),
    LAZY_TEST(test_compile_starts_again),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
