// autocast: the types in which ops compute, and training in mixed precision.
#include "base/thread.h"
#include "calx/calx.h"

#include "support/support.h"

static calx_tensor *rand_of(calx_dtype dtype, calx_dims dims)
{
  return calx_to_dtype(calx_rand(dims), dtype);
}

#define M(d) rand_of(d, CALX_SHAPE(4, 4))
#define B(d) rand_of(d, CALX_SHAPE(2, 4, 4))
#define I(d) rand_of(d, CALX_SHAPE(1, 2, 4, 4))
#define V(d) rand_of(d, CALX_SHAPE(4))

// Results of f32, bf16 and f16 operands have the region's type, or f32, and of
// f64 operands stay f64.
#define LOWER(expression) GIVES(expression, region)
#define FULL(expression) GIVES(expression, CALX_F32)
#define GIVES(expression, wanted)                                          \
  for (int i = 0; i < 8; i++) {                                            \
    static const calx_dtype from[] = { CALX_F32, CALX_BF16, CALX_F64,      \
                                       CALX_F16 };                         \
    const calx_dtype region = i < 4 ? CALX_BF16 : CALX_F16;                \
    const calx_dtype d = from[i % 4], want = d == CALX_F64 ? d : (wanted); \
    calx_scope *scope = calx_scope_begin();                                \
    calx_autocast_begin(region);                                           \
    check(#expression, expression, d, want);                               \
    CHECK_STATUS_OK(calx_scope_end(scope));                                \
  }

static void check(const char *text, const calx_tensor *y, calx_dtype from,
                  calx_dtype want)
{
  const calx_status *why = calx_tensor_error(y);
  if (why != NULL) fail_msg("%s: %s", text, calx_status_message(why));
  if (calx_tensor_dtype(y) == want) return;
  fail_msg("%s of %s is %s, %s is wanted", text, calx_dtype_name(from),
           calx_dtype_name(calx_tensor_dtype(y)), calx_dtype_name(want));
}

static calx_tensor *classes(void)
{
  static const int64_t c[4] = { 0, 1, 2, 3 };
  return calx_tensor_from(c, CALX_I64, CALX_SHAPE(4));
}

static calx_tensor *labels(void)
{
  static const int64_t c[4] = { 1, 2, 3, 1 };
  return calx_tensor_from(c, CALX_I64, CALX_SHAPE(4, 1));
}

static calx_tensor *lengths(void)
{
  static const int64_t c[4] = { 1, 1, 1, 1 };
  return calx_tensor_from(c, CALX_I64, CALX_SHAPE(4));
}

static void test_lists(void **state)
{
  (void)state;
  LOWER(calx_matmul(M(d), M(d)));
  LOWER(calx_mm(M(d), M(d)));
  LOWER(calx_bmm(B(d), B(d)));
  LOWER(calx_mv(M(d), V(d)));
  LOWER(calx_linear(M(d), M(d), V(d)));
  LOWER(calx_addmm(M(d), M(d), M(d)));
  LOWER(calx_addmv(V(d), M(d), V(d)));
  LOWER(calx_baddbmm(B(d), B(d), B(d)));
  LOWER(calx_einsum("ij,jk", (calx_tensor *[]){ M(d), M(d) }, 2));
  LOWER(calx_conv2d(I(d), I(d), .bias = rand_of(d, CALX_SHAPE(1))));
  LOWER(calx_conv1d(B(d), B(d)));
  LOWER(calx_conv_transpose2d(I(d), rand_of(d, CALX_SHAPE(2, 1, 2, 2))));
  LOWER(calx_prelu(M(d), V(d)));
  LOWER(calx_relu(M(d)));
  LOWER(calx_max_pool2d(I(d), 2));
  FULL(calx_softmax(M(d), 1));
  FULL(calx_log_softmax(M(d), 1));
  FULL(calx_batch_norm(I(d), .training = true));
  FULL(calx_layer_norm(M(d), CALX_SHAPE(4)));
  FULL(calx_pow(M(d), 2));
  FULL(calx_prod(M(d)));
  FULL(calx_pad(B(d), CALX_DIMS(1, 1), .mode = CALX_PAD_REFLECT));
  FULL(calx_mse_loss(M(d), M(d)));
  FULL(calx_l1_loss(M(d), M(d)));
  FULL(calx_smooth_l1_loss(M(d), M(d)));
  FULL(calx_binary_cross_entropy_with_logits(M(d), M(d)));
  FULL(calx_kl_div(M(d), M(d)));
  FULL(calx_nll_loss(M(d), classes()));
  FULL(calx_cross_entropy(M(d), classes()));
  FULL(calx_cdist(M(d), M(d)));
  FULL(calx_trace(M(d)));
  FULL(calx_margin_ranking_loss(M(d), M(d), M(d)));
  FULL(calx_cosine_embedding_loss(M(d), M(d), V(d)));
  FULL(calx_triplet_margin_loss(M(d), M(d), M(d)));
  FULL(calx_multi_margin_loss(M(d), classes()));
  FULL(calx_multilabel_margin_loss(V(d), classes()));
  FULL(calx_ctc_loss(B(d), labels(), lengths(), lengths()));
  // On no list: they take what comes.
  GIVES(calx_tanh(M(d)), d);
  GIVES(calx_add(M(d), M(d)), d);
  GIVES(calx_pad(B(d), CALX_DIMS(1, 1)), d);
  GIVES(calx_pow(M(d), M(d)), d);
}

// What has one type outside has two inside, and ops must take that.
static void test_mixed(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_autocast_begin(CALX_BF16);
  calx_tensor *low = calx_matmul(M(CALX_F32), M(CALX_F32));
  assert_int_equal(calx_tensor_dtype(calx_matmul(low, M(CALX_F32))), CALX_BF16);
  assert_int_equal(calx_tensor_dtype(calx_add(low, M(CALX_F32))), CALX_F32);
  calx_tensor *both[2] = { low, M(CALX_F32) };
  assert_int_equal(calx_tensor_dtype(calx_cat(both, 2, 0)), CALX_F32);
  calx_tensor *ints = calx_arange(0, 3, 1, .dtype = CALX_I64);
  assert_int_equal(calx_tensor_dtype(calx_relu(ints)), CALX_I64);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void test_regions(void **state)
{
  (void)state;
  assert_int_equal(calx_autocast_dtype(), CALX_DTYPE_DEFAULT);
  calx_scope *scope = calx_scope_begin();
  calx_autocast_begin(CALX_BF16);
  calx_autocast_begin(CALX_F16);
  assert_int_equal(calx_autocast_dtype(), CALX_F16);
  calx_tensor *half = calx_mm(M(CALX_F32), M(CALX_F32));
  assert_int_equal(calx_tensor_dtype(half), CALX_F16);
  calx_autocast_begin(CALX_DTYPE_DEFAULT);
  calx_tensor *full = calx_mm(M(CALX_F32), M(CALX_F32));
  assert_int_equal(calx_tensor_dtype(full), CALX_F32);
  calx_autocast_end();
  assert_int_equal(calx_autocast_dtype(), CALX_F16);
  calx_autocast_end();
  calx_scope *inner = calx_scope_begin();
  calx_autocast_end();  // the region is the outer scope's
  CHECK_STATUS(CALX_FAILED_PRECONDITION, calx_scope_end(inner),
               "no autocast region is open");
  assert_int_equal(calx_autocast_dtype(), CALX_BF16);
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_int_equal(calx_autocast_dtype(), CALX_DTYPE_DEFAULT);
  scope = calx_scope_begin();
  calx_autocast_begin(CALX_I32);
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope),
               "autocast_begin: i32, CALX_BF16 or CALX_F16 is wanted");
  scope = calx_scope_begin();
  for (int i = 0; i < 65; i++) calx_autocast_begin(CALX_BF16);
  CHECK_STATUS(CALX_RESOURCE_EXHAUSTED, calx_scope_end(scope),
               "64 regions are open already");
}

typedef struct net {
  calx_module *root;
  calx_optimizer *opt;
} net;

static net make(void)
{
  calx_manual_seed(5);
  net n = { .root = calx_nn_sequential(NULL, NULL) };
  calx_nn_conv2d(n.root, NULL, 1, 8, 3);
  calx_nn_batch_norm2d(n.root, NULL, 8);
  calx_nn_relu(n.root, NULL);
  calx_nn_max_pool2d(n.root, NULL, 2);
  calx_nn_flatten(n.root, NULL);
  calx_nn_linear(n.root, NULL, 72, 4);
  n.opt = calx_adam(n.root, .lr = 1e-2);
  CHECK_STATUS_OK(calx_module_error(n.root));
  return n;
}

// Steps with the forward in a region. Returns the last loss.
static double train(const net *n, calx_dtype autocast, bool backward_inside)
{
  double last = 0;
  for (int i = 0; i < 40; i++) {
    calx_scope *scope = calx_scope_begin();
    calx_tensor *x = calx_rand(CALX_SHAPE(32, 1, 8, 8));
    calx_tensor *bright =
        calx_gt(calx_mean(x, .dims = CALX_DIMS(1, 2, 3)), 0.5);
    calx_optimizer_zero_grad(n->opt);
    calx_autocast_begin(autocast);
    calx_tensor *loss = calx_cross_entropy(calx_forward(n->root, x),
                                           calx_to_dtype(bright, CALX_I64));
    if (!backward_inside) calx_autocast_end();
    calx_backward(loss);
    calx_tensor *w = calx_module_find(n->root, "5.weight");
    assert_int_equal(calx_tensor_dtype(loss), CALX_F32);
    assert_int_equal(calx_tensor_dtype(w), CALX_F32);
    assert_int_equal(calx_tensor_dtype(calx_grad(w)), CALX_F32);
    if (backward_inside) calx_autocast_end();
    calx_optimizer_step(n->opt);
    calx_sync(loss);
    last = calx_item(loss);
    CHECK_STATUS_OK(calx_scope_end(scope));
  }
  return last;
}

static void test_training(void **state)
{
  (void)state;
  double losses[4];
  for (int i = 0; i < 4; i++) {
    static const calx_dtype types[] = { CALX_DTYPE_DEFAULT, CALX_BF16,
                                        CALX_BF16, CALX_F16 };
    net n = make();
    losses[i] = train(&n, types[i], i == 2);
    calx_optimizer_free(n.opt);
    calx_module_free(n.root);
  }
  assert_true(losses[1] == losses[2]);
  assert_true(losses[1] != losses[0]);
  CHECK_CLOSE(losses[1], losses[0], 0.02);
  CHECK_CLOSE(losses[3], losses[0], 0.02);
}

// A thread has regions of its own.
static void in_thread(void *user)
{
  calx_dtype *seen = user;
  calx_scope *scope = calx_scope_begin();
  seen[0] = calx_autocast_dtype();
  calx_autocast_begin(CALX_F16);
  seen[1] = calx_tensor_dtype(calx_mm(M(CALX_F32), M(CALX_F32)));
  CHECK_STATUS_OK(calx_scope_end(scope));
  seen[2] = calx_autocast_dtype();
}

static void test_threads(void **state)
{
  (void)state;
  calx_dtype seen[3] = { CALX_I64, CALX_I64, CALX_I64 };
  calx_scope *scope = calx_scope_begin();
  calx_autocast_begin(CALX_BF16);
  cx_thread other;
  CHECK_STATUS_OK(cx_thread_start(&other, in_thread, seen));
  cx_thread_join(&other);
  assert_int_equal(calx_autocast_dtype(), CALX_BF16);
  CHECK_STATUS_OK(calx_scope_end(scope));
  assert_int_equal(seen[0], CALX_DTYPE_DEFAULT);
  assert_int_equal(seen[1], CALX_F16);
  assert_int_equal(seen[2], CALX_DTYPE_DEFAULT);
}

typedef struct product {
  calx_tensor *w;
  int calls;
  calx_dtype dtype[2];
} product;

static void multiply(void *user, calx_tensor *const *in, calx_tensor **out)
{
  product *p = user;
  out[0] = calx_mm(calx_mm(in[0], p->w), p->w);
  p->dtype[p->calls++ % 2] = calx_tensor_dtype(out[0]);
}

// What a checkpoint computes again, outside of the region, has its types: the
// gradients are those without a checkpoint.
static void test_checkpoint(void **state)
{
  (void)state;
  calx_scope *scope = calx_scope_begin();
  calx_tensor *grads[2];
  for (int i = 0; i < 2; i++) {
    calx_manual_seed(3);
    product p = { .w = calx_rand(CALX_SHAPE(4, 4)) };
    calx_tensor *x = calx_rand(CALX_SHAPE(4, 4)), *y;
    calx_requires_grad(p.w, true);
    calx_autocast_begin(CALX_BF16);
    if (i == 0) {
      calx_checkpoint(multiply, &p, &x, 1, &y, 1);
    } else {
      multiply(&p, &x, &y);
    }
    calx_autocast_end();
    calx_backward(calx_sum(y));
    grads[i] = calx_grad(p.w);
    assert_int_equal(p.calls, i == 0 ? 2 : 1);
    assert_int_equal(p.dtype[0], CALX_BF16);
    if (i == 0) assert_int_equal(p.dtype[1], CALX_BF16);
  }
  calx_tensor *apart = calx_max(calx_abs(calx_sub(grads[0], grads[1])));
  CHECK_CLOSE(calx_item(apart), 0, 0);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_lists),   SUPPORT_TEST(test_mixed),
    SUPPORT_TEST(test_regions), SUPPORT_TEST(test_training),
    SUPPORT_TEST(test_threads), SUPPORT_TEST(test_checkpoint),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
