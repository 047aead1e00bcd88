// autocast_torch: what each op of the autocast lists gives in a region of bf16,
// beside torch.autocast("cpu", torch.bfloat16): the type, the values and the
// gradients, of operands of f32 and of bf16.
//
// calx has the lists of PyTorch's autocast for XLA devices, which differ from
// those for the CPU: a row that PyTorch's CPU types otherwise has the reason,
// and the test fails where it is not so.
#include "calx/calx.h"
#include "support/torch.h"

typedef enum list {
  LOWER,  // computes in the region's type
  FULL,   // computes in f32
  NONE    // takes what comes
} list;

static const char not_listed[] =
    "on the CPU's list alone: XLA devices compute it in the type that comes";
static const char on_xla[] = "on XLA's list alone";
static const char not_listed_product[] =
    "the CPU's list lacks it: a product as mm and addmm are";
static const char norm[] =
    "the CPU's kernels take a bf16 input with f32 parameters; a graph has one "
    "type for an op";

// list, in PyTorch, in calx, why PyTorch's CPU has another list or NULL
#define ROWS(X)                                                                \
  X(LOWER, "x @ z", calx_matmul(t->x, t->z), NULL)                             \
  X(LOWER, "torch.mm(x, z)", calx_mm(t->x, t->z), NULL)                        \
  X(LOWER, "torch.mv(x, v)", calx_mv(t->x, t->v), not_listed_product)          \
  X(LOWER, "torch.bmm(b, c)", calx_bmm(t->b, t->c), NULL)                      \
  X(LOWER, "torch.addmm(p, x, z)", calx_addmm(t->p, t->x, t->z), NULL)         \
  X(LOWER, "torch.addmv(v, x, v)", calx_addmv(t->v, t->x, t->v),               \
    not_listed_product)                                                        \
  X(LOWER, "torch.baddbmm(b, c, b)", calx_baddbmm(t->b, t->c, t->b), NULL)     \
  X(LOWER, "torch.addbmm(x, b, c)", calx_addbmm(t->x, t->b, t->c), NULL)       \
  X(LOWER, "F.linear(x, z, v)", calx_linear(t->x, t->z, t->v), NULL)           \
  X(LOWER, "torch.einsum('ij,jk', x, z)",                                      \
    calx_einsum("ij,jk", (calx_tensor *[]){ t->x, t->z }, 2), NULL)            \
  X(LOWER, "F.conv1d(b, c)", calx_conv1d(t->b, t->c), NULL)                    \
  X(LOWER, "F.conv2d(i, k, padding=1)", calx_conv2d(t->i, t->k, .padding = 1), \
    NULL)                                                                      \
  X(LOWER, "F.conv3d(g, g[:, :, :2, :2, :2])", calx_conv3d(t->g, small(t->g)), \
    NULL)                                                                      \
  X(LOWER, "F.conv_transpose1d(b, x.unsqueeze(2))",                            \
    calx_conv_transpose1d(t->b, calx_unsqueeze(t->x, 2)), NULL)                \
  X(LOWER, "F.conv_transpose2d(i, k.transpose(0, 1))",                         \
    calx_conv_transpose2d(t->i, calx_transpose(t->k, 0, 1)), NULL)             \
  X(LOWER, "F.conv_transpose3d(g, g[:, :, :2, :2, :2].transpose(0, 1))",       \
    calx_conv_transpose3d(t->g, calx_transpose(small(t->g), 0, 1)), NULL)      \
  X(LOWER, "F.prelu(x, v)", calx_prelu(t->x, t->v), NULL)                      \
  X(LOWER, "F.scaled_dot_product_attention(b, c, b)",                          \
    calx_scaled_dot_product_attention(t->b, t->c, t->b), NULL)                 \
  X(LOWER, "F.relu(x)", calx_relu(t->x), on_xla)                               \
  X(LOWER, "F.max_pool2d(i, 2)", calx_max_pool2d(t->i, 2), on_xla)             \
  X(FULL, "F.mse_loss(x, z)", calx_mse_loss(t->x, t->z), NULL)                 \
  X(FULL, "F.l1_loss(x, z)", calx_l1_loss(t->x, t->z), NULL)                   \
  X(FULL, "F.smooth_l1_loss(x, z)", calx_smooth_l1_loss(t->x, t->z), NULL)     \
  X(FULL, "F.huber_loss(x, z)", calx_huber_loss(t->x, t->z), NULL)             \
  X(FULL, "F.kl_div(x, q)", calx_kl_div(t->x, t->q), NULL)                     \
  X(FULL, "F.binary_cross_entropy(p, q)",                                      \
    calx_binary_cross_entropy(t->p, t->q), NULL)                               \
  X(FULL, "F.binary_cross_entropy_with_logits(x, q)",                          \
    calx_binary_cross_entropy_with_logits(t->x, t->q), NULL)                   \
  X(FULL, "F.nll_loss(x, n)", calx_nll_loss(t->x, t->n), NULL)                 \
  X(FULL, "F.cross_entropy(x, n)", calx_cross_entropy(t->x, t->n), NULL)       \
  X(FULL, "F.poisson_nll_loss(x, q)", calx_poisson_nll_loss(t->x, t->q), NULL) \
  X(FULL, "F.soft_margin_loss(x, s)", calx_soft_margin_loss(t->x, t->s), NULL) \
  X(FULL, "F.hinge_embedding_loss(x, s)",                                      \
    calx_hinge_embedding_loss(t->x, t->s), NULL)                               \
  X(FULL, "F.margin_ranking_loss(x, z, s)",                                    \
    calx_margin_ranking_loss(t->x, t->z, t->s), NULL)                          \
  X(FULL, "F.cosine_embedding_loss(x, z, s[0])",                               \
    calx_cosine_embedding_loss(t->x, t->z, row(t->s)), NULL)                   \
  X(FULL, "F.triplet_margin_loss(x, z, p)",                                    \
    calx_triplet_margin_loss(t->x, t->z, t->p), NULL)                          \
  X(FULL, "F.multi_margin_loss(x, n)", calx_multi_margin_loss(t->x, t->n),     \
    NULL)                                                                      \
  X(FULL, "F.multilabel_margin_loss(v, n)",                                    \
    calx_multilabel_margin_loss(t->v, t->n), NULL)                             \
  X(FULL, "torch.prod(p)", calx_prod(t->p), NULL)                              \
  X(FULL, "torch.cdist(x, z)", calx_cdist(t->x, t->z), NULL)                   \
  X(FULL, "torch.trace(x)", calx_trace(t->x), NULL)                            \
  X(FULL, "F.pad(b, (1, 1), mode='reflect')",                                  \
    calx_pad(t->b, CALX_DIMS(1, 1), .mode = CALX_PAD_REFLECT), NULL)           \
  X(FULL, "F.pad(b, (1, 1), mode='replicate')",                                \
    calx_pad(t->b, CALX_DIMS(1, 1), .mode = CALX_PAD_REPLICATE), NULL)         \
  X(FULL, "F.softmax(x, 1)", calx_softmax(t->x, 1), on_xla)                    \
  X(FULL, "F.log_softmax(x, 1)", calx_log_softmax(t->x, 1), on_xla)            \
  X(FULL, "x ** 3", calx_pow(t->x, 3), on_xla)                                 \
  X(FULL, "F.batch_norm(i, None, None, training=True)",                        \
    calx_batch_norm(t->i, .training = true), norm)                             \
  X(FULL, "F.layer_norm(x, (4,))", calx_layer_norm(t->x, CALX_SHAPE(4)), norm) \
  X(FULL, "F.group_norm(i, 2)", calx_group_norm(t->i, 2), norm)                \
  X(NONE, "torch.tanh(x)", calx_tanh(t->x), NULL)                              \
  X(NONE, "x + z", calx_add(t->x, t->z), NULL)                                 \
  X(NONE, "p ** z.abs()", calx_pow(t->p, calx_abs(t->z)), NULL)                \
  X(NONE, "torch.cat([x, z])",                                                 \
    calx_cat(((calx_tensor *[]){ t->x, t->z }), 2, 0), NULL)                   \
  X(NONE, "torch.sum(x)", calx_sum(t->x), NULL)                                \
  X(NONE, "F.gelu(x)", calx_gelu(t->x), NULL)                                  \
  X(NONE, "torch.exp(x)", calx_exp(t->x), NULL)                                \
  X(NONE, "F.pad(b, (1, 1))", calx_pad(t->b, CALX_DIMS(1, 1)), NULL)           \
  X(NONE, "F.avg_pool2d(i, 2)", calx_avg_pool2d(t->i, .kernel_size = { 2 }),   \
    NULL)                                                                      \
  X(NONE, "F.avg_pool3d(g, 2)", calx_avg_pool3d(t->g, .kernel_size = { 2 }),   \
    not_listed)

// ---- operands ---------------------------------------------------------------

#define OPERANDS(X)                   \
  X(x, CALX_SHAPE(4, 4), -1, 1)       \
  X(z, CALX_SHAPE(4, 4), -1, 1)       \
  X(p, CALX_SHAPE(4, 4), 0.1, 0.9)    \
  X(q, CALX_SHAPE(4, 4), 0.1, 0.9)    \
  X(s, CALX_SHAPE(4, 4), 0, 0)        \
  X(v, CALX_SHAPE(4), -1, 1)          \
  X(b, CALX_SHAPE(2, 4, 4), -1, 1)    \
  X(c, CALX_SHAPE(2, 4, 4), -1, 1)    \
  X(i, CALX_SHAPE(1, 2, 6, 6), -1, 1) \
  X(k, CALX_SHAPE(3, 2, 3, 3), -1, 1) \
  X(g, CALX_SHAPE(1, 2, 4, 4, 4), -1, 1)

typedef struct operands {
#define X(name, ...) calx_tensor *name;
  OPERANDS(X)
#undef X
  calx_tensor *n;  // classes
} operands;
enum { MOST = 128, FACTORS = 512 };

static calx_tensor *small(calx_tensor *g)
{
  for (int d = 2; d < 5; d++) g = calx_slice(g, d, 0, 2, 1);
  return g;
}

static calx_tensor *row(calx_tensor *x)
{
  return calx_squeeze(calx_slice(x, 0, 0, 1, 1), 0);
}

typedef struct row_of {
  list list;
  const char *python, *reason;
} row_of;
static const row_of rows[] = {
#define X(list, python, call, reason) { list, python, reason },
  ROWS(X)
#undef X
};
enum { COUNT = sizeof rows / sizeof rows[0] };

static calx_tensor *call(size_t which, const operands *t)
{
  size_t k = 0;
#define X(list, python, call, reason) \
  if (k++ == which) return call;
  ROWS(X)
#undef X
  return NULL;
}

static const int64_t classes[4] = { 0, 1, 2, 3 };
static double data[11][MOST], factors[FACTORS];
static const char *const names[] = {
#define X(name, ...) #name,
  OPERANDS(X)
#undef X
};
enum { LEAVES = sizeof names / sizeof names[0] };

static void make_data(void)
{
  int k = 0;
#define X(name, shape, low, high)                                           \
  for (int j = 0; j < MOST; j++) {                                          \
    double u = 0.5 + 0.5 * sin(1 + k + 1.7 * j * j + 0.3 * j);              \
    data[k][j] = low == high ? (u < 0.5 ? -1 : 1) : low + (high - low) * u; \
  }                                                                         \
  k++;
  OPERANDS(X)
#undef X
  for (int j = 0; j < FACTORS; j++) factors[j] = cos(0.3 * j + 1);
}

// The others are targets.
static bool is_leaf(const char *name)
{
  return strcmp(name, "q") != 0 && strcmp(name, "s") != 0;
}

static operands make_operands(calx_dtype d)
{
  operands t = { .n = calx_tensor_from(classes, CALX_I64, CALX_SHAPE(4)) };
  int k = 0;
#define X(name, shape, ...)                                              \
  t.name = calx_to_dtype(support_tensor(CALX_F32, shape, data[k++]), d); \
  t.name = calx_detach(t.name);                                          \
  calx_requires_grad(t.name, is_leaf(#name));
  OPERANDS(X)
#undef X
  return t;
}

// ---- beside PyTorch ---------------------------------------------------------

static void put(calx_value *dict, const char *key, calx_value *v)
{
  CHECK_STATUS_OK(calx_value_set(dict, key, v));
}

static calx_value *question(void)
{
  calx_value *all = calx_value_container(CALX_KIND_DICT);
  calx_value *calls = calx_value_container(CALX_KIND_LIST);
  calx_scope *s = calx_scope_begin();
  calx_tensor *t;
  int k = 0;
#define X(name, shape, ...)                       \
  t = support_tensor(CALX_F32, shape, data[k++]); \
  put(all, #name, calx_value_tensor(calx_cpu(t)));
  OPERANDS(X)
#undef X
  t = calx_host_tensor(classes, CALX_I64, CALX_SHAPE(4));
  put(all, "n", calx_value_tensor(t));
  t = support_tensor(CALX_F32, CALX_SHAPE(FACTORS), factors);
  put(all, "factors", calx_value_tensor(calx_cpu(t)));
  put(all, "calls", calls);
  for (size_t i = 0; i < COUNT; i++) {
    CHECK_STATUS_OK(
        calx_value_append(calls, calx_value_string(rows[i].python)));
  }
  CHECK_STATUS_OK(calx_scope_end(s));
  return all;
}

static double worst;

static void compare(size_t i, const char *what, calx_tensor *t,
                    const calx_value *wanted, double tolerance)
{
  size_t n, n_wanted;
  double *got = support_read(t, &n), most = 0;
  double *want = support_read(calx_value_as_tensor(wanted), &n_wanted);
  assert_int_equal(n, n_wanted);
  for (size_t k = 0; k < n; k++) most = fmax(most, fabs(want[k]));
  for (size_t k = 0; k < n; k++) {
    double off = fabs(got[k] - want[k]) / fmax(most, 1e-3);
    worst = fmax(worst, off / tolerance);
    if (off <= tolerance) continue;
    fail_msg("%s, %s, element %zu: %.9g, PyTorch has %.9g", rows[i].python,
             what, k, got[k], want[k]);
  }
  test_free(got);
  test_free(want);
}

static calx_dtype type_of(const calx_value *v)
{
  return calx_tensor_dtype(calx_value_as_tensor(v));
}

static const char *yes_or_no(bool b)
{
  return b ? "has" : "lacks";
}

// The loss is the sum of the result times the factors.
static calx_tensor *loss_of(calx_tensor *y)
{
  int64_t n = calx_tensor_numel(y);
  calx_tensor *f = support_tensor(CALX_F32, calx_dims_of(&n, 1), factors);
  y = calx_reshape(calx_to_dtype(y, CALX_F32), calx_dims_of(&n, 1));
  return calx_sum(calx_mul(y, f));
}

static void check_row(size_t i, calx_dtype d, const calx_value *answer)
{
  calx_scope *scope = calx_scope_begin();
  operands t = make_operands(d);
  calx_autocast_begin(CALX_BF16);
  calx_tensor *y = call(i, &t);
  calx_autocast_end();
  const calx_value *theirs = calx_value_get(answer, "y");
  calx_dtype lists[3] = { CALX_BF16, CALX_F32, d };
  if (calx_scope_error() == NULL &&
      calx_tensor_dtype(y) != lists[rows[i].list]) {
    fail_msg("%s of %s is %s", rows[i].python, calx_dtype_name(d),
             calx_dtype_name(calx_tensor_dtype(y)));
  }
  calx_backward(loss_of(y));
  CHECK_STATUS_OK(calx_scope_error() != NULL ? calx_scope_take_error() : NULL);
  calx_sync(y);
  bool exact = d == CALX_F32 && calx_tensor_dtype(y) == CALX_F32 &&
               type_of(theirs) == CALX_F32;
  double tolerance = exact ? 2e-5 : 0x1p-6;
  compare(i, "result", y, theirs, tolerance);
  calx_tensor *const *leaves = &t.x;
  for (int k = 0; k < LEAVES; k++) {
    const calx_value *g = calx_value_get(answer, names[k]);
    calx_tensor *own = calx_grad(leaves[k]);
    if ((own != NULL) != (g != NULL)) {
      fail_msg("%s: calx %s a gradient of %s, PyTorch %s", rows[i].python,
               yes_or_no(own != NULL), names[k], yes_or_no(g != NULL));
    }
    if (g == NULL) continue;
    assert_int_equal(calx_tensor_dtype(own), d);
    compare(i, names[k], own, g, tolerance);
  }
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// Whether PyTorch's CPU gives the types that calx's list does.
static void check_reason(size_t i, const calx_value *wide,
                         const calx_value *narrow)
{
  static const calx_dtype types[3][2] = { { CALX_BF16, CALX_BF16 },
                                          { CALX_F32, CALX_F32 },
                                          { CALX_F32, CALX_BF16 } };
  const calx_dtype *own = types[rows[i].list];
  bool same = type_of(calx_value_get(wide, "y")) == own[0] &&
              type_of(calx_value_get(narrow, "y")) == own[1];
  if (same == (rows[i].reason == NULL)) return;
  fail_msg("%s: PyTorch's CPU list is %s, the table says: %s", rows[i].python,
           same ? "the same" : "another",
           rows[i].reason != NULL ? rows[i].reason : "the same");
}

static void test_lists(void **state)
{
  (void)state;
  calx_value *back = torch_ask(question(), "torch_autocast.py");
  assert_int_equal(calx_value_count(back), 2 * COUNT);
  int others = 0;
  for (size_t i = 0; i < COUNT; i++) {
    const calx_value *wide = calx_value_item(back, i);
    const calx_value *narrow = calx_value_item(back, COUNT + i);
    check_reason(i, wide, narrow);
    check_row(i, CALX_F32, wide);
    check_row(i, CALX_BF16, narrow);
    others += rows[i].reason != NULL;
  }
  calx_value_free(back);
  print_message(
      "  %d ops, %d of another list on PyTorch's CPU; at most %.2f of "
      "the tolerance\n",
      (int)COUNT, others, worst);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_lists) };
  torch_python();
  make_data();
  return cmocka_run_group_tests(tests, support_setup, files_end);
}
