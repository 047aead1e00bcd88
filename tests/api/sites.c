// Every call records where it was made: its own line and function, also when
// its operands are calls that were made elsewhere.
#include "calx/calx.h"
#include "lazy/lazy.h"
#include "pjrt/fake.h"
#include "support/support.h"

#define THIS_FILE "tests/api/sites.c"

// Operands that come from other lines of another function.
static calx_tensor *made(calx_tensor *x)
{
  calx_tensor *n = calx_neg(x);
  return calx_neg(n);
}

static calx_tensor *f32(calx_dims shape)
{
  static const float data[64];
  return calx_tensor_from(data, CALX_F32, shape);
}

static calx_tensor *vector(void)
{
  return made(f32(CALX_SHAPE(4)));
}

static calx_tensor *matrix(void)
{
  return made(f32(CALX_SHAPE(4, 4)));
}

static calx_tensor *image(void)
{
  return made(f32(CALX_SHAPE(1, 1, 4, 4)));
}

static calx_tensor *labels(void)
{
  static const int64_t data[4];
  return calx_tensor_from(data, CALX_I64, CALX_SHAPE(4));
}

// What an elementwise op takes: integers where it combines bits.
static calx_tensor *operand(const char *op)
{
  return strncmp(op, "bitwise_", 8) == 0 ? labels() : vector();
}

static void check_site(const calx_site *site, const char *what, int line,
                       const char *func)
{
  if (site != NULL && site->file != NULL &&
      strcmp(site->file, THIS_FILE) == 0 && site->line == line &&
      strcmp(site->func, func) == 0) {
    return;
  }
  fail_msg("%s: is at %s:%d in %s, wanted line %d in %s", what,
           site != NULL && site->file != NULL ? site->file : "?",
           site != NULL ? site->line : 0,
           site != NULL && site->func != NULL ? site->func : "?", line, func);
}

// The result's node, and all that the call recorded: from the result down to
// what helpers or uploads made.
static void check_nodes(const cx_graph_node *node, const char *what, int line,
                        const char *func, int depth)
{
  check_site(&node->site, what, line, func);
  for (uint32_t i = 0; i < node->n_in && depth < 8; i++) {
    const cx_graph_node *in = node->in[i].node;
    bool helper = in->site.func == NULL || strcmp(in->site.func, func) != 0;
    if (helper || (cx_graph_node_flags(in) & CX_GRAPH_NODE_DATA) != 0) continue;
    check_nodes(in, what, line, func, depth + 1);
  }
}

static void check_tensor(calx_tensor *t, const char *what, int line,
                         const char *func)
{
  calx_status *status = calx_scope_take_error();
  if (status != NULL) fail_msg("%s: %s", what, calx_status_message(status));
  check_nodes(cx_lazy_tensor_value(t).node, what, line, func, 0);
}

// A call whose operands are a list in braces has commas of its own.
#define CHECK(...) check_tensor((__VA_ARGS__), #__VA_ARGS__, __LINE__, __func__)

// The error of a call that does not give a tensor.
static void check_error(const char *what, int line, const char *func)
{
  calx_status *status = calx_scope_take_error();
  if (status == NULL) fail_msg("%s: no error", what);
  check_site(calx_status_site(status), what, line, func);
  calx_status_free(status);
}

#define CHECK_ERROR(call) ((call), check_error(#call, __LINE__, __func__))

// ---- ops --------------------------------------------------------------------

static void test_one_operand(void **state)
{
  (void)state;
#define UNARY(op) CHECK(calx_##op(operand(#op)));
  CALX_EACH_UNARY_(UNARY)
  CHECK(calx_max(vector()));
  CHECK(calx_min(vector()));
  CHECK(calx_t(matrix()));
}

static void test_two_operands(void **state)
{
  (void)state;
#define BINARY(op) CHECK(calx_##op(operand(#op), operand(#op)));
  CALX_EACH_BINARY_(BINARY)
  CHECK(calx_add(vector(), vector()));
  CHECK(calx_add(vector(), 1.5));
  CHECK(calx_add(2, vector()));
  CHECK(calx_add(vector(), vector(), .alpha = 0.5));
  CHECK(calx_sub(vector(), vector()));
  CHECK(calx_sub(1, vector(), .alpha = 2));
  CHECK(calx_mul(0.5, vector()));
  CHECK(calx_div(vector(), vector()));
  CHECK(calx_div(vector(), 2, .rounding = CALX_ROUND_FLOOR));
  CHECK(calx_pow(vector(), 2));
  CHECK(calx_pow(vector(), 2.3));
  CHECK(calx_minimum(vector(), 0.5));
  CHECK(calx_ne(vector(), 1));
  CHECK(calx_le(vector(), 1));
  CHECK(calx_ge(vector(), 1));
  CHECK(calx_where(calx_isnan(vector()), vector(), vector()));
  CHECK(calx_where(calx_isnan(vector()), 1.0, vector()));
}

static void test_reductions(void **state)
{
  (void)state;
  calx_tensor *index;
  CHECK(calx_sum(matrix()));
  CHECK(calx_sum(matrix(), .dims = CALX_DIMS(1), .keepdim = true));
  CHECK(calx_mean(matrix()));
  CHECK(calx_amax(matrix()));
  CHECK(calx_amin(matrix(), .dims = CALX_DIMS(0)));
  CHECK(calx_argmax(matrix()));
  CHECK(calx_argmin(matrix(), .dims = CALX_DIMS(0)));
  CHECK(calx_max_dim(matrix(), 0, false, &index));
  CHECK(calx_min_dim(matrix(), 0, true, NULL));
}

static void test_shapes(void **state)
{
  (void)state;
  CHECK(calx_reshape(matrix(), CALX_SHAPE(2, 8)));
  CHECK(calx_flatten(matrix()));
  CHECK(calx_transpose(matrix(), 0, 1));
  CHECK(calx_permute(matrix(), CALX_DIMS(1, 0)));
  CHECK(calx_expand(vector(), CALX_SHAPE(3, 4)));
  CHECK(calx_unsqueeze(vector(), 0));
  CHECK(calx_squeeze(image(), 0));
  CHECK(calx_slice(vector(), 0, 1, 3, 1));
  CHECK(calx_select(matrix(), 0, 1));
  calx_tensor *parts[2] = { vector(), vector() };
  CHECK(calx_cat(parts, 2, 0));
  CHECK(calx_stack(parts, 2, 0));
  CHECK(calx_cat((calx_tensor *[]){ vector(), vector() }, 2, 0));
  CHECK(calx_stack((calx_tensor *[]){ vector(), vector() }, 2, 0));
  CHECK(calx_neg(calx_cat((calx_tensor *[]){ vector(), vector() }, 2, 0)));
  CHECK(calx_to_dtype(vector(), CALX_F64));
}

static void test_layers(void **state)
{
  (void)state;
  CHECK(calx_matmul(matrix(), matrix()));
  CHECK(calx_mm(matrix(), matrix()));
  CHECK(calx_linear(matrix(), matrix(), vector()));
  CHECK(calx_linear(matrix(), matrix(), NULL));
  CHECK(calx_conv2d(image(), image()));
  CHECK(calx_conv2d(image(), image(), .bias = made(f32(CALX_SHAPE(1)))));
  CHECK(calx_max_pool2d(image(), 2));
  CHECK(calx_batch_norm(matrix(), .training = true, .weight = vector()));
  CHECK(calx_log_softmax(matrix(), 1));
  CHECK(calx_softmax(matrix(), 1));
  CHECK(calx_nll_loss(matrix(), labels()));
  CHECK(calx_cross_entropy(matrix(), labels(), .weight = vector()));
}

static void test_recurrent(void **state)
{
  (void)state;
  calx_module *rnn = calx_nn_rnn(NULL, NULL, 4, 4);
  calx_module *attention = calx_nn_multihead_attention(NULL, NULL, 4, 2);
  calx_module *encoder = calx_nn_transformer_encoder_layer(NULL, NULL, 4, 2);
  calx_sync(NULL);  // the parameters are data from here on
#define M matrix()
  calx_tensor *w[2] = { M, M };
  CHECK(calx_rnn_tanh_cell(vector(), vector(), M, M));
  CHECK(calx_rnn_relu_cell(M, NULL, M, M, .b_ih = vector()));
  CHECK(calx_rnn_relu(matrix(), w, 2, .no_biases = true));
  CHECK(calx_rnn_forward(rnn, M, .hx = calx_slice(M, 0, 0, 1, 1)));
  CHECK(calx_multihead_attention_forward(attention, M, M, M, .attn_mask = M));
  CHECK(calx_transformer_encoder_forward(encoder, M, .src_mask = M));
#undef M
  calx_module_free(rnn);
  calx_module_free(attention);
  calx_module_free(encoder);
}

static void test_creation(void **state)
{
  (void)state;
  CHECK(calx_zeros(CALX_SHAPE(4)));
  CHECK(calx_ones(CALX_SHAPE(4), .dtype = CALX_F64));
  CHECK(calx_full(CALX_SHAPE(4), 2));
  CHECK(calx_arange(0, 4, 1));
  CHECK(calx_arange(4));
  CHECK(calx_rand(CALX_SHAPE(4)));
  CHECK(calx_randn(CALX_SHAPE(4)));
  CHECK(calx_scalar(0.5));
  CHECK(calx_scalar_int(5));
  const float data[4] = { 0 };
  CHECK(calx_tensor_from(data, CALX_F32, CALX_SHAPE(4)));
  CHECK(calx_to(calx_cpu(f32(CALX_SHAPE(4))), NULL));
}

// ---- calls ------------------------------------------------------------------

// A poison of another place.
static calx_tensor *poison(void)
{
  calx_tensor *a = vector();
  calx_tensor *bad = calx_reshape(a, CALX_SHAPE(3));
  calx_status_free(calx_scope_take_error());
  return bad;
}

static void test_calls(void **state)
{
  (void)state;
  calx_tensor *t = f32(CALX_SHAPE(4)), *grads[1];
  CHECK_ERROR(calx_assign(t, poison()));
  CHECK_ERROR(calx_assign(poison(), t));
  CHECK_ERROR(calx_item(poison()));
  CHECK_ERROR(calx_item_int(poison()));
  CHECK_ERROR(calx_print(poison()));
  CHECK_ERROR(calx_tensor_str(poison()));
  CHECK_ERROR(calx_cpu(poison()));
  CHECK_ERROR(calx_to(poison(), NULL));
  CHECK_ERROR(calx_sync(poison()));
  CHECK_ERROR(calx_sync(t, poison()));
  CHECK_ERROR(calx_backward(poison()));
  CHECK_ERROR(calx_grad_of(poison(), &t, 1, grads));
  CHECK_ERROR(calx_requires_grad(poison(), true));
  CHECK_ERROR(calx_detach(poison()));
  float data[4];
  calx_status *status = calx_tensor_read(poison(), data, sizeof data);
  int line = __LINE__ - 1;
  check_site(calx_status_site(status), "calx_tensor_read", line, __func__);
  calx_status_free(status);
}

// What backward records is told with its place.
static void test_backward(void **state)
{
  (void)state;
  calx_tensor *w = calx_take(f32(CALX_SHAPE(4)));
  calx_requires_grad(w, true);
  calx_tensor *loss = calx_sum(calx_mul(w, w));
  int line = __LINE__ + 1;
  calx_backward(loss);
  check_site(&cx_lazy_tensor_value(calx_grad(w)).node->site, "backward", line,
             __func__);
  calx_release(w);
}

static calx_tensor *model(void *self, calx_tensor *x)
{
  (void)self;
  return made(x);
}

static void test_modules(void **state)
{
  (void)state;
  calx_module *m = calx_module_new("model", model, NULL);
  calx_module *fc = calx_nn_linear(m, "fc", 4, 2);
  CHECK_STATUS_OK(calx_module_error(m));
  calx_sync(NULL);
  CHECK_ERROR(calx_forward(fc, poison()));
  CHECK(calx_forward(fc, matrix()));
  calx_optimizer *opt = calx_sgd(m, .lr = 0.1);
  calx_backward(calx_sum(calx_forward(fc, matrix())));
  int line = __LINE__ + 1;
  calx_optimizer_step(opt);
  calx_tensor *w = calx_module_find(m, "fc.weight");
  check_site(&cx_lazy_tensor_value(w).node->site, "step", line, __func__);
  calx_optimizer_free(opt);
  calx_module_free(m);
}

// A binding sets its own language's place.
static void test_binding(void **state)
{
  (void)state;
  calx_tensor *x = f32(CALX_SHAPE(4));
  calx_at_(&(calx_site){ "model.lua", "forward", 12 });
  calx_tensor *n = (calx_neg)(x);
  const calx_site *site = &cx_lazy_tensor_value(n).node->site;
  assert_string_equal(site->file, "model.lua");
  assert_string_equal(site->func, "forward");
  assert_int_equal(site->line, 12);
}

static int setup(void **state)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  return support_setup_fake(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_one_operand), SUPPORT_TEST(test_two_operands),
    SUPPORT_TEST(test_reductions),  SUPPORT_TEST(test_shapes),
    SUPPORT_TEST(test_layers),      SUPPORT_TEST(test_recurrent),
    SUPPORT_TEST(test_creation),    SUPPORT_TEST(test_calls),
    SUPPORT_TEST(test_backward),    SUPPORT_TEST(test_modules),
    SUPPORT_TEST(test_binding),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
