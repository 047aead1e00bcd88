// Recompiles explain themselves: after two programs of a place, a further one
// is told with the first node that differs from the nearest known graph.
#include "calx/data.h"
#include "fixture.h"
#include "graph/differ.h"
#include "lazy/lazy.h"

// All syncs of a test are one place: this line, unless said otherwise.
static void sync_here(calx_tensor *t)
{
  calx_sync(t);
}

static calx_tensor *of_size(int64_t n)
{
  return calx_exp(calx_neg(lazy_vector(n, 0)));
}

// Runs in a scope of its own, so that nothing else is pending.
#define STEP(expression)                  \
  do {                                    \
    calx_scope *own = calx_scope_begin(); \
    sync_here(expression);                \
    CHECK_STATUS_OK(calx_scope_end(own)); \
  } while (0)

// The third program of this place: the line holds all these pieces.
static void check_line(const char *const *pieces)
{
  assert_int_equal(lines_with("recompile at "), 1);
  assert_int_equal(lines_with("recompile at tests/lazy/recompile.c:"), 1);
  assert_int_equal(lines_with("program 3: "), 1);
  for (; *pieces != NULL; pieces++) {
    if (lines_with(*pieces) == 0) {
      lines_show();
      fail_msg("no line with '%s'", *pieces);
    }
  }
}

#define CHECK_LINE(...) check_line((const char *const[]){ __VA_ARGS__, NULL })

static void test_first_two_are_silent(void **state)
{
  (void)state;
  STEP(of_size(4));
  STEP(of_size(5));
  STEP(of_size(4));
  assert_int_equal(lines_with("recompile"), 0);
  STEP(of_size(6));
  assert_int_equal(lines_with("recompile"), 1);
  STEP(of_size(6));
  assert_int_equal(lines_with("recompile"), 1);
  STEP(of_size(7));
  assert_int_equal(lines_with("recompile"), 2);
  assert_int_equal(lines_with("program 4: "), 1);
}

static int from_line, neg_line;

static calx_tensor *of_shape(calx_dims shape)
{
  static const float data[64];
  from_line = __LINE__ + 1;
  calx_tensor *x = calx_tensor_from(data, CALX_F32, shape);
  neg_line = __LINE__ + 1;
  return calx_exp(calx_neg(x));
}

static void test_shape(void **state)
{
  (void)state;
  STEP(of_shape(CALX_SHAPE(8, 4)));
  STEP(of_shape(CALX_SHAPE(4, 4)));
  STEP(of_shape(CALX_SHAPE(2, 4)));
  char tensor[160];
  snprintf(tensor, sizeof tensor,
           ": a tensor of tests/lazy/recompile.c:%d was f32[4,4], is f32[2,4], "
           "first used by neg at tests/lazy/recompile.c:%d",
           from_line, neg_line);
  CHECK_LINE(tensor);
  assert_int_equal(lines_with(".drop_last"), 0);
}

// A model's own reshape meets the other shape first; the batch is named.
static calx_status *sample(void *user, int64_t index, void *const *fields)
{
  (void)user;
  (void)index;
  *(float *)fields[0] = 1;
  *(float *)fields[1] = 2;
  return NULL;
}

static void test_short_last_batch(void **state)
{
  (void)state;
  const calx_field fields[] = { { .dtype = CALX_F32 }, { .dtype = CALX_F32 } };
  calx_dataset *set = calx_dataset_new(10, fields, 2, sample, NULL, NULL);
  calx_loader *loader = calx_loader_new(set, .batch_size = 4);
  calx_tensor *one = lazy_durable(1, 1);
  calx_batch batch;
  int next_line = 0, programs = 0;
  while (next_line = __LINE__, calx_loader_next(loader, &batch)) {
    calx_tensor *flat = calx_reshape(batch.data, CALX_SHAPE(-1, 1));
    calx_tensor *target = calx_reshape(batch.target, CALX_SHAPE(-1, 1));
    if (++programs == 2) target = calx_neg(target);
    STEP(calx_add(calx_mul(target, one), flat));
  }
  char told[200];
  snprintf(told, sizeof told,
           ": the batch's target of tests/lazy/recompile.c:%d was f32[4], is "
           "f32[2], first used by reshape at ",
           next_line);
  CHECK_LINE(told, "the short last batch of an epoch", ".drop_last = true");
  calx_release(one);
  calx_loader_free(loader);
  calx_dataset_free(set);
}

// Three lines for a place, then counts; what is left is told at shutdown.
static void test_counted(void **state)
{
  (void)state;
  for (int64_t n = 1; n <= 5; n++) STEP(of_size(n));
  assert_int_equal(lines_with("recompile at "), 3);
  assert_int_equal(lines_with("further ones are counted"), 1);
  for (int64_t n = 6; n <= 14; n++) STEP(of_size(n));
  assert_int_equal(lines_with("recompile at "), 3);
  STEP(of_size(15));
  assert_int_equal(lines_with("recompile at "), 4);
  assert_int_equal(lines_with(", 10 programs more; the newest: a tensor of "),
                   1);
  for (int64_t n = 16; n <= 34; n++) STEP(of_size(n));
  assert_int_equal(lines_with("recompile at "), 4);
  STEP(of_size(35));
  assert_int_equal(lines_with(", 20 programs more; the newest: "), 1);
  STEP(of_size(36));
  STEP(of_size(37));
  assert_int_equal(lines_with("recompile at "), 5);
  calx_shutdown();
  assert_int_equal(lines_with(", 2 programs more until the end"), 1);
}

static void test_type(void **state)
{
  (void)state;
  static const double data[4];
  calx_tensor *f = calx_tensor_from(data, CALX_F32, CALX_SHAPE(4));
  calx_tensor *d = calx_tensor_from(data, CALX_F64, CALX_SHAPE(4));
  calx_tensor *i = calx_tensor_from(data, CALX_I32, CALX_SHAPE(4));
  STEP(calx_neg(f));
  STEP(calx_neg(f));
  STEP(calx_neg(d));
  STEP(calx_neg(i));
  CHECK_LINE(": a tensor of ", " was f", "is i32[4], first used by neg at ");
}

static void test_attribute(void **state)
{
  (void)state;
  calx_tensor *x = calx_reshape(lazy_vector(8, 0), CALX_SHAPE(2, 2, 2));
  calx_sync(x);
  STEP(calx_sum(x, .dims = CALX_DIMS(0)));
  STEP(calx_sum(x, .dims = CALX_DIMS(1)));
  STEP(calx_sum(x, .dims = CALX_DIMS(2)));
  CHECK_LINE("sum at tests/lazy/recompile.c:", ": was ", ", is ");
}

// Of two constants of one value the shapes are told.
static void test_constant(void **state)
{
  (void)state;
  for (int64_t n = 2; n <= 4; n++) STEP(calx_neg(calx_ones(CALX_SHAPE(n, 3))));
  CHECK_LINE("constant at tests/lazy/recompile.c:", ": was 1 in f32[3,3]",
             ", is 1 in f32[4,3]");
}

static void test_other_op(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  STEP(calx_exp(calx_neg(x)));
  STEP(calx_exp(calx_exp(x)));
  STEP(calx_exp(calx_log(x)));
  CHECK_LINE("log at tests/lazy/recompile.c:", "stands where was ");
}

static void test_one_more(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  STEP(calx_neg(x));
  STEP(calx_exp(calx_neg(x)));
  STEP(calx_log(calx_exp(calx_neg(x))));
  CHECK_LINE("log at ", "is new");
}

static void test_one_less(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  STEP(calx_log(calx_exp(calx_neg(x))));
  STEP(calx_log(calx_exp(calx_abs(x))));
  STEP(calx_exp(calx_neg(x)));
  CHECK_LINE("log at ", "is missing");
}

// The nearest graph is compared with, not the newest or the first.
static void test_nearest(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  STEP(calx_log(calx_exp(calx_neg(x))));
  STEP(calx_sin(calx_cos(calx_abs(x))));
  STEP(calx_tanh(calx_cos(calx_abs(x))));
  CHECK_LINE("tanh at ", "stands where was sin at ");
}

static void test_operand(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0), *y = lazy_vector(4, 1);
  calx_tensor *n;
  STEP(calx_neg(x));
  STEP((n = calx_neg(x), calx_sub(n, x)));
  STEP((n = calx_neg(x), calx_sub(n, y)));
  CHECK_LINE("sub at ", "operand 1 was a tensor from before, is another one");
}

static void test_kind_of_operand(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0), *n;
  STEP(calx_abs(x));
  STEP((n = calx_neg(x), calx_sub(n, n)));
  STEP((n = calx_neg(x), calx_sub(n, x)));
  CHECK_LINE("sub at ",
             "operand 1 was a result of this graph, is a tensor from before");
}

static void test_roots(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(4, 0);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    calx_tensor *a = calx_neg(x), *b = calx_exp(a), *c = calx_log(b);
    calx_sync_n((calx_tensor *[]){ c, a, b }, (size_t)i + 1);
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  CHECK_LINE("2 tensors were kept, now 3");
}

static void test_donation(void **state)
{
  (void)state;
  calx_tensor *old = NULL, *w = lazy_durable(4, 1);
  for (int i = 0; i < 3; i++) {
    calx_scope *step = calx_scope_begin();
    if (i == 0) calx_assign(w, calx_exp(w));
    if (i != 0) calx_assign(w, calx_neg(w));
    if (i == 2) old = calx_detach(w);
    if (i == 2) calx_assign(w, calx_neg(lazy_vector(4, 0)));
    sync_here(NULL);
    (void)old;
    CHECK_STATUS_OK(calx_scope_end(step));
  }
  CHECK_LINE("other tensors can be updated in place");
  calx_release(w);
}

// Train and eval count apart, and so do places.
static void test_apart(void **state)
{
  (void)state;
  calx_tensor *x = calx_reshape(lazy_vector(8, 0), CALX_SHAPE(4, 2));
  calx_tensor *y = calx_reshape(lazy_vector(4, 0), CALX_SHAPE(2, 2));
  calx_tensor *mean = lazy_vector(2, 0), *var = lazy_vector(2, 1);
  calx_sync(x, y);
  STEP(calx_batch_norm(x, .training = true));
  STEP(calx_batch_norm(y, .training = true));
  STEP(calx_batch_norm(x, .running_mean = mean, .running_var = var));
  STEP(calx_batch_norm(y, .running_mean = mean, .running_var = var));
  assert_int_equal(lines_with("recompile"), 0);
  calx_scope *other = calx_scope_begin();
  calx_sync(calx_exp(x));
  calx_sync(calx_log(x));
  CHECK_STATUS_OK(calx_scope_end(other));
  assert_int_equal(lines_with("recompile"), 0);
}

// A second start of a slice is no miss of the graph, and reads are not steps.
static void test_not_told(void **state)
{
  (void)state;
  calx_tensor *x = lazy_vector(10, 0);
  for (int64_t k = 0; k < 5; k++) STEP(calx_slice(x, 0, k, k + 2, 1));
  for (int64_t n = 1; n < 5; n++) {
    calx_scope *scope = calx_scope_begin();
    calx_item(calx_sum(lazy_vector(n, 0)));
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  assert_int_equal(lines_with("recompile"), 0);
}

static void test_error(void **state)
{
  (void)state;
  setenv("CALX_RECOMPILE", "error", 1);
  STEP(of_size(4));
  STEP(of_size(5));
  calx_tensor *w = lazy_durable(4, 1);
  calx_scope *step = calx_scope_begin();
  calx_tensor *t = of_size(6);
  calx_assign(w, calx_add(w, 1));
  long compiles = lazy_compiles();
  sync_here(t);
  assert_int_equal(lazy_compiles(), compiles);
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(step),
               "recompile.c:", "CALX_RECOMPILE=error", "2 are known", "neg at ",
               "was f32[5], is f32[6]");
  assert_true(lazy_holds(w, 1));
  assert_int_equal(lines_with("recompile"), 0);
  STEP(of_size(5));  // what is known still runs
  unsetenv("CALX_RECOMPILE");
  STEP(of_size(6));
  assert_int_equal(lines_with("recompile"), 1);
  calx_release(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    LAZY_TEST(test_first_two_are_silent),
    LAZY_TEST(test_shape),
    LAZY_TEST(test_short_last_batch),
    LAZY_TEST(test_counted),
    LAZY_TEST(test_type),
    LAZY_TEST(test_attribute),
    LAZY_TEST(test_constant),
    LAZY_TEST(test_other_op),
    LAZY_TEST(test_one_more),
    LAZY_TEST(test_one_less),
    LAZY_TEST(test_nearest),
    LAZY_TEST(test_operand),
    LAZY_TEST(test_kind_of_operand),
    LAZY_TEST(test_roots),
    LAZY_TEST(test_donation),
    LAZY_TEST(test_apart),
    LAZY_TEST(test_not_told),
    LAZY_TEST(test_error),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
