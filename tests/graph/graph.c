// Nodes, canonical order, keys, slots and lowering, with ops of the test's own.
// The leaves are buffers of the fake plugin.
#include "base/arena.h"
#include "graph/differ.h"
#include "graph/lower.h"
#include "hlo/print.h"
#include "pjrt/fake.h"
#include "support/support.h"

// ---- ops --------------------------------------------------------------------

static calx_status *infer(cx_graph_node *node)
{
  for (uint32_t k = 0; k < node->n_out; k++) {
    node->out[k].shape = node->n_in != 0 ? *cx_in(node, 0)
                                         : *(const cx_graph_shape *)node->attrs;
  }
  return NULL;
}

static void emit_sum(cx_graph_emit *e)
{
  e->out[0] = e->in[0];
  for (uint32_t i = 1; i < e->node->n_in; i++) {
    e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_ADD, e->out[0], e->in[i]);
  }
  for (uint32_t k = 0; k < e->node->n_slots; k++) {
    if (e->slots[k] == NULL) continue;
    cx_hlo_value *v = cx_hlo_convert(e->b, e->slots[k], CX_HLO_F32);
    cx_hlo_type t = cx_hlo_type_of(cx_in(e->node, 0));
    v = cx_hlo_broadcast_in_dim(e->b, v, t.dims, t.rank, NULL);
    e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_ADD, e->out[0], v);
  }
  for (uint32_t k = 1; k < e->node->n_out; k++) {
    e->out[k] = cx_hlo_unary(e->b, CX_HLO_OP_NEGATE, e->out[0]);
  }
}

static void emit_wrong(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_splat(e->b, (cx_hlo_type){ .elem = CX_HLO_F32 }, 1);
}

static void emit_nothing(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_ADD, e->in[0],
                            cx_hlo_convert(e->b, e->in[0], CX_HLO_I32));
}

static void describe(const void *attrs, cx_text *out)
{
  cx_text_format(out, "mode=%d", *(const int *)attrs);
}

static const cx_graph_op op_sum = {
  .name = "sum", .id = 60000, .infer = infer, .emit = emit_sum
};
static const cx_graph_op op_other = {
  .name = "other", .id = 60001, .infer = infer, .emit = emit_sum
};
static const cx_graph_op op_mode = { .name = "mode",
                                     .id = 60002,
                                     .attr_size = sizeof(int),
                                     .infer = infer,
                                     .emit = emit_sum,
                                     .describe = describe };
static const cx_graph_op op_make = { .name = "make",
                                     .id = 60003,
                                     .attr_size = sizeof(cx_graph_shape),
                                     .infer = infer,
                                     .emit = emit_sum };
static const cx_graph_op op_wrong = {
  .name = "wrong", .id = 60004, .infer = infer, .emit = emit_wrong
};
static const cx_graph_op op_nothing = {
  .name = "nothing", .id = 60005, .infer = infer, .emit = emit_nothing
};

// ---- building ---------------------------------------------------------------

#define V(node) ((cx_graph_value){ (node), 0 })
#define OUT(node, k) ((cx_graph_value){ (node), (k) })

// All nodes of a test, released at its end.
static cx_graph_node *kept[64];
static size_t n_kept;

static cx_graph_node *keep(cx_graph_node *node)
{
  kept[n_kept++] = node;
  return node;
}

static cx_graph_node *leaf(int64_t n)
{
  static const float data[64];
  calx_scope *scope = calx_scope_begin();
  calx_tensor *t = calx_tensor_from(data, CALX_F32, CALX_SHAPE(n));
  cx_graph_node *node = cx_lazy_tensor_value(t).node;
  cx_graph_node_retain(node);
  CHECK_STATUS_OK(calx_scope_end(scope));
  return keep(node);
}

static cx_graph_node *make_node(const cx_graph_op *op, const void *attrs,
                                uint32_t n_out, const cx_graph_slot *slots,
                                uint32_t n_slots, const cx_graph_value *in,
                                uint32_t n_in)
{
  cx_graph_node *node = cx_graph_node_new(op, n_in, n_out, n_slots, attrs);
  assert_non_null(node);
  for (uint32_t i = 0; i < n_in; i++) cx_graph_node_set_input(node, i, in[i]);
  for (uint32_t k = 0; k < n_slots; k++) node->slots[k] = slots[k];
  node->site = (calx_site){ "model.c", "forward", 7 };
  CHECK_STATUS_OK(op->infer(node));
  return keep(node);
}

#define INPUTS(...)                  \
  (cx_graph_value[]){ __VA_ARGS__ }, \
      sizeof((cx_graph_value[]){ __VA_ARGS__ }) / sizeof(cx_graph_value)
#define SUM(...) make_node(&op_sum, NULL, 1, NULL, 0, INPUTS(__VA_ARGS__))
#define SPLIT(n_out, ...) \
  make_node(&op_sum, NULL, (n_out), NULL, 0, INPUTS(__VA_ARGS__))

static cx_graph_order order;

static void walk(const cx_graph_value *roots, size_t n)
{
  cx_free(order.roots);
  order.roots = cx_calloc(n, sizeof *roots);
  memcpy(order.roots, roots, n * sizeof *roots);
  order.n_roots = order.roots_capacity = n;
  assert_true(cx_graph_order_walk(&order));
  assert_true(cx_graph_order_key(&order));
}

#define WALK(...)                         \
  walk((cx_graph_value[]){ __VA_ARGS__ }, \
       sizeof((cx_graph_value[]){ __VA_ARGS__ }) / sizeof(cx_graph_value))

// The key of what was walked, to compare with a later one; test_free() it.
static cx_graph_key copy_key(void)
{
  cx_graph_key k = { .count = order.key.count };
  k.words = test_malloc(k.count * sizeof *k.words);
  memcpy(k.words, order.key.words, k.count * sizeof *k.words);
  return k;
}

static bool same_key(const cx_graph_key *k)
{
  return k->count == order.key.count &&
         memcmp(k->words, order.key.words, k->count * sizeof *k->words) == 0;
}

static int end(void **state)
{
  while (n_kept > 0) cx_graph_node_release(kept[--n_kept]);
  cx_graph_order_free(&order);
  return support_nothing_left(state);
}

#define GRAPH_TEST(function) \
  cmocka_unit_test_setup_teardown(function, NULL, end)

// ---- nodes ------------------------------------------------------------------

static void test_shapes(void **state)
{
  (void)state;
  cx_graph_shape a = { CALX_F32, 2, { 128, 320 } }, b = a,
                 rank0 = { CALX_I64, 0, { 0 } };
  assert_true(cx_graph_shape_equal(&a, &b));
  b.dims[1] = 321;
  assert_false(cx_graph_shape_equal(&a, &b));
  b = a;
  b.dtype = CALX_F64;
  assert_false(cx_graph_shape_equal(&a, &b));
  b = a;
  b.rank = 1;
  assert_false(cx_graph_shape_equal(&a, &b));
  assert_int_equal(cx_graph_shape_numel(&a), 128 * 320);
  assert_int_equal(cx_graph_shape_numel(&rank0), 1);
  assert_string_equal(cx_graph_shape_str(&a), "f32[128,320]");
  assert_string_equal(cx_graph_shape_str(&rank0), "i64[]");
  cx_text text = { 0 };
  cx_graph_shape_print(&text, &a);
  assert_string_equal(cx_text_str(&text), "f32[128,320]");
  cx_text_free(&text);
  // Four of them in one message.
  cx_graph_shape s[4] = { a, a, a, a };
  for (int i = 0; i < 4; i++) s[i].dims[0] = i;
  const char *t[4];
  for (int i = 0; i < 4; i++) t[i] = cx_graph_shape_str(&s[i]);
  assert_string_equal(t[0], "f32[0,320]");
  assert_string_equal(t[3], "f32[3,320]");
  cx_graph_shape big = { CALX_BOOL, 8, { 0 } };
  for (int i = 0; i < 8; i++) big.dims[i] = INT64_MAX;
  assert_int_equal(strlen(cx_graph_shape_str(&big)), 4 + 2 + 8 * 19 + 7);
}

static void test_attributes_are_copied(void **state)
{
  (void)state;
  int mode = 5;
  cx_graph_node *n = make_node(&op_mode, &mode, 1, NULL, 0, INPUTS(V(leaf(4))));
  mode = 6;
  assert_int_equal(*(int *)n->attrs, 5);
  assert_int_equal((uintptr_t)n->attrs % _Alignof(int64_t), 0);
}

static void test_release(void **state)
{
  (void)state;
  long before = cx_graph_node_live();
  cx_graph_node *a = leaf(4), *b = SUM(V(a), V(a)), *c = SUM(V(b), V(a));
  n_kept = 0;
  cx_graph_node_release(a);
  cx_graph_node_release(b);
  assert_int_equal(cx_graph_node_live() - before, 3);
  cx_graph_node_retain(c);
  cx_graph_node_release(c);
  assert_int_equal(cx_graph_node_live() - before, 3);
  cx_graph_node_release(c);
  cx_graph_node_release(NULL);
  assert_int_equal(cx_graph_node_live(), before);
}

// ---- order ------------------------------------------------------------------

static void test_post_order(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *y = leaf(4);
  cx_graph_node *late = SUM(V(y)), *first = SUM(V(x));
  cx_graph_node *root = SUM(V(first), V(late), V(first));
  WALK(V(root));
  assert_int_equal(order.n_nodes, 3);
  assert_ptr_equal(order.nodes[0], first);
  assert_ptr_equal(order.nodes[1], late);
  assert_ptr_equal(order.nodes[2], root);
  assert_int_equal(order.n_params, 2);
  assert_ptr_equal(order.params[0].node, x);
  assert_ptr_equal(order.params[1].node, y);
  // A second walk is the same, whatever was walked between.
  WALK(V(late));
  assert_int_equal(order.n_nodes, 1);
  assert_ptr_equal(order.params[0].node, y);
  WALK(V(root));
  assert_ptr_equal(order.nodes[0], first);
  assert_ptr_equal(order.params[0].node, x);
}

static void test_diamond(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *n = SUM(V(x));
  for (int i = 0; i < 40; i++) n = SUM(V(n), V(n));
  WALK(V(n));
  assert_int_equal(order.n_nodes, 41);
  assert_int_equal(order.n_params, 1);
}

static void test_many_roots(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *a = SUM(V(x)), *b = SUM(V(a)), *c = SUM(V(x));
  WALK(V(b), V(a), V(c));
  assert_int_equal(order.n_nodes, 3);
  assert_ptr_equal(order.nodes[0], a);
  assert_ptr_equal(order.nodes[2], c);
}

// A computed node is a parameter for each of its outputs that is used.
static void test_computed(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *s = SPLIT(3, V(x));
  cx_graph_node *root = SUM(OUT(s, 2), OUT(s, 1), OUT(s, 2));
  WALK(V(root));
  assert_int_equal(order.n_nodes, 2);
  assert_int_equal(order.n_params, 1);
  cx_pjrt_buffer *b = x->out[0].buffer;
  for (int k = 0; k < 3; k++) {
    cx_pjrt_buffer_retain(b);
    s->out[k].buffer = b;
  }
  WALK(V(root));
  assert_int_equal(order.n_nodes, 1);
  assert_int_equal(order.n_params, 2);
  assert_int_equal(order.params[0].out, 2);
  assert_int_equal(order.params[1].out, 1);
  cx_graph_key two = copy_key();
  cx_graph_node *same = SUM(OUT(s, 1), OUT(s, 2), OUT(s, 1));
  WALK(V(same));
  assert_true(same_key(&two));
  same = SUM(OUT(s, 2), OUT(s, 2), OUT(s, 2));
  WALK(V(same));
  assert_false(same_key(&two));
  test_free(two.words);
}

// ---- keys -------------------------------------------------------------------

static void test_equal_graphs(void **state)
{
  (void)state;
  cx_graph_node *a = SUM(V(leaf(4))), *b = SUM(V(leaf(4)));
  WALK(V(SUM(V(a), V(b))));
  cx_graph_key k = copy_key();
  cx_hash h = order.hash;
  b = SUM(V(leaf(4)));
  a = SUM(V(leaf(4)));
  b->site.line = 99;
  WALK(V(SUM(V(a), V(b))));
  assert_true(same_key(&k));
  assert_true(cx_hash_equal(h, order.hash));
  test_free(k.words);
}

static void test_what_tells_graphs_apart(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *y = leaf(4), *z = leaf(5);
  int one = 1, two = 2;
  cx_graph_shape s4 = { CALX_F32, 1, { 4 } }, s5 = { CALX_F32, 1, { 5 } };
  cx_graph_slot f = { .dtype = CALX_F32 }, d = { .dtype = CALX_F64 };
  cx_graph_slot i = { .dtype = CALX_I64 },
                promotable = { .dtype = CALX_I64, .promotable = true };
  cx_graph_node *split = SPLIT(2, V(x));
  cx_graph_node *n = SUM(V(x));
  const cx_graph_value roots[] = {
    V(SUM(V(x))),
    V(SUM(V(z))),
    V(SUM(V(x), V(x))),
    V(SUM(V(x), V(y))),
    V(SUM(V(n), V(n))),
    V(SUM(V(n), V(x))),
    V(SUM(V(x), V(n))),
    V(SUM(V(n), V(SUM(V(x))))),
    V(SUM(V(x), V(y), V(x))),
    V(SUM(V(x), V(y), V(y))),
    V(make_node(&op_other, NULL, 1, NULL, 0, INPUTS(V(x)))),
    V(make_node(&op_mode, &one, 1, NULL, 0, INPUTS(V(x)))),
    V(make_node(&op_mode, &two, 1, NULL, 0, INPUTS(V(x)))),
    V(make_node(&op_make, &s4, 1, NULL, 0, NULL, 0)),
    V(make_node(&op_make, &s5, 1, NULL, 0, NULL, 0)),
    V(make_node(&op_sum, NULL, 1, &f, 1, INPUTS(V(x)))),
    V(make_node(&op_sum, NULL, 1, &d, 1, INPUTS(V(x)))),
    V(make_node(&op_sum, NULL, 1, &i, 1, INPUTS(V(x)))),
    V(make_node(&op_sum, NULL, 1, &promotable, 1, INPUTS(V(x)))),
    OUT(split, 0),
    OUT(split, 1),
    V(SUM(OUT(split, 0))),
    V(SUM(OUT(split, 1))),
  };
  enum { N = sizeof roots / sizeof *roots };
  cx_graph_key keys[N];
  for (size_t r = 0; r < N; r++) {
    walk(&roots[r], 1);
    for (size_t q = 0; q < r; q++) {
      if (same_key(&keys[q])) fail_msg("graphs %zu and %zu have one key", q, r);
    }
    keys[r] = copy_key();
  }
  for (size_t r = 0; r < N; r++) test_free(keys[r].words);
}

static void test_aliases_are_in_the_key(void **state)
{
  (void)state;
  cx_graph_node *root = SUM(V(leaf(4)), V(leaf(4)));
  WALK(V(root));
  cx_graph_key none = copy_key();
  order.aliases[0] = 1;
  assert_true(cx_graph_order_key(&order));
  assert_false(same_key(&none));
  cx_graph_key first = copy_key();
  order.aliases[0] = 0;
  order.aliases[1] = 1;
  assert_true(cx_graph_order_key(&order));
  assert_false(same_key(&none));
  assert_false(same_key(&first));
  test_free(none.words);
  test_free(first.words);
}

static void test_values_are_not(void **state)
{
  (void)state;
  cx_graph_slot a = { .dtype = CALX_F32, .value.number = 0 };
  cx_graph_slot b = { .dtype = CALX_F32, .value.number = 1e30 };
  cx_graph_node *x = leaf(4);
  WALK(V(make_node(&op_sum, NULL, 1, &a, 1, INPUTS(V(x)))));
  cx_graph_key k = copy_key();
  WALK(V(make_node(&op_sum, NULL, 1, &b, 1, INPUTS(V(x)))));
  assert_true(same_key(&k));
  test_free(k.words);
}

// ---- slots ------------------------------------------------------------------

// Low halves of the wide ones, their high halves, the narrow ones.
static void test_slot_words(void **state)
{
  (void)state;
  const cx_graph_slot slots[] = {
    { .dtype = CALX_F32, .value.number = 1.5 },
    { .dtype = CALX_I64, .value.integer = 0x100000002, .promotable = true },
    { .dtype = CALX_F64, .value.number = -2 },
    { .dtype = CALX_F32, .value.number = 0.1 },
    { .dtype = CALX_U64, .value.integer = -1 },
  };
  cx_graph_node *n = make_node(&op_sum, NULL, 1, slots, 5, INPUTS(V(leaf(4))));
  WALK(V(n));
  assert_int_equal(order.n_slots, 8);
  assert_int_equal(order.n_wide, 3);
  assert_int_equal(order.n_promotable, 1);
  uint32_t words[8];
  int64_t promotable[1];
  cx_graph_order_slots(&order, words, promotable);
  float third = 0.1F, first = 1.5F;
  uint32_t a, b;
  memcpy(&a, &first, 4);
  memcpy(&b, &third, 4);
  const uint32_t wanted[8] = {
    2, 0, UINT32_MAX, 1, 0xc0000000, UINT32_MAX, a, b
  };
  assert_memory_equal(words, wanted, sizeof wanted);
  assert_true(promotable[0] == 0x100000002);
}

// ---- lowering ---------------------------------------------------------------

static char *text_of(bool promote, bool donate)
{
  cx_graph_lowering l = {
    .order = &order, .name = "test", .promote = promote, .donate = donate
  };
  cx_hlo_module *m;
  CHECK_STATUS_OK(cx_graph_lower(&l, &m));
  cx_text text = { 0 };
  cx_hlo_print(m, &text);
  cx_hlo_module_free(m);
  return cx_text_take(&text);
}

static void check_piece(const char *text, const char *piece, bool wanted)
{
  if ((strstr(text, piece) != NULL) == wanted) return;
  fail_msg("%s '%s' in:\n%s", wanted ? "no" : "there is", piece, text);
}

static void test_lower(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *y = leaf(4);
  WALK(V(SUM(V(x), V(SUM(V(y), V(x))))));
  char *text = text_of(false, true);
  check_piece(text, "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>", true);
  check_piece(text, "tf.aliasing_output", false);
  check_piece(text, "ui32", false);
  check_piece(text, "model.c", true);
  cx_free(text);
  order.aliases[1] = 1;
  text = text_of(false, true);
  check_piece(text, "tf.aliasing_output", true);
  cx_free(text);
  text = text_of(false, false);
  check_piece(text, "tf.aliasing_output", false);
  cx_free(text);
}

// A promotable constant is a constant first: the op sees no value for it. The
// packed vector is the same for both programs.
static void test_lower_soft(void **state)
{
  (void)state;
  cx_graph_slot promotable = { .dtype = CALX_I64,
                               .promotable = true,
                               .value.integer = 3 };
  WALK(V(make_node(&op_sum, NULL, 1, &promotable, 1, INPUTS(V(leaf(4))))));
  char *text = text_of(false, true);
  check_piece(text, "tensor<2xui32>", true);
  check_piece(text, "stablehlo.add", false);
  cx_free(text);
  text = text_of(true, true);
  check_piece(text, "tensor<2xui32>", true);
  check_piece(text, "stablehlo.add", true);
  cx_free(text);
}

static void test_lower_fails(void **state)
{
  (void)state;
  cx_hlo_module *m;
  cx_graph_lowering l = { .order = &order, .name = "test" };
  WALK(V(make_node(&op_wrong, NULL, 1, NULL, 0, INPUTS(V(leaf(4))))));
  CHECK_STATUS(CALX_INTERNAL, cx_graph_lower(&l, &m),
               "model.c:7: in forward: ", "wrong: ", "output 0", "f32[4]");
  assert_null(m);
  WALK(V(make_node(&op_nothing, NULL, 1, NULL, 0, INPUTS(V(leaf(4))))));
  calx_status *status = cx_graph_lower(&l, &m);
  assert_non_null(strstr(calx_status_message(status), "nothing"));
  assert_non_null(strstr(calx_status_message(status), "model.c:7"));
  calx_status_free(status);
  assert_null(m);
}

static void test_lower_without_memory(void **state)
{
  (void)state;
  cx_graph_slot slot = { .dtype = CALX_F64, .value.number = 1 };
  cx_graph_node *x = leaf(4);
  WALK(V(make_node(&op_sum, NULL, 2, &slot, 1, INPUTS(V(x), V(SUM(V(x)))))));
  long live = cx_alloc_live();
  for (long n = 0;; n++) {
    cx_hlo_module *m = NULL;
    cx_graph_lowering l = { .order = &order, .name = "test" };
    cx_alloc_fail_at(n);
    calx_status *status = cx_graph_lower(&l, &m);
    cx_alloc_fail_at(-1);
    bool done = status == NULL;
    assert_true(done == (m != NULL));
    if (!done) {
      assert_int_equal(calx_status_code(status), CALX_RESOURCE_EXHAUSTED);
    }
    calx_status_free(status);
    cx_hlo_module_free(m);
    assert_int_equal(cx_alloc_live(), live);
    if (done) break;
  }
}

// ---- differences ------------------------------------------------------------

static void test_differ(void **state)
{
  (void)state;
  int one = 1, two = 2;
  cx_graph_node *x = leaf(4);
  WALK(V(SUM(V(make_node(&op_mode, &one, 1, NULL, 0, INPUTS(V(x)))))));
  cx_graph_outline *o = cx_graph_outline_new(&order);
  assert_true(same_key(cx_graph_outline_key(o)));
  assert_int_equal(cx_graph_outline_common(o, &order), 2);
  assert_int_equal(cx_graph_outline_excess(o, &order), 0);
  WALK(V(SUM(V(make_node(&op_mode, &two, 1, NULL, 0, INPUTS(V(x)))))));
  assert_int_equal(cx_graph_outline_common(o, &order), 0);
  cx_text text = { 0 };
  cx_graph_outline_differ(o, NULL, &order, NULL, &text);
  assert_string_equal(cx_text_str(&text),
                      "mode at model.c:7: was mode=1, is mode=2");
  cx_text_free(&text);
  // The outline outlives its graph.
  WALK(V(leaf(5)));
  cx_graph_outline_differ(o, NULL, &order, NULL, &text);
  assert_string_equal(cx_text_str(&text), "mode at model.c:7 is missing");
  cx_text_free(&text);
  cx_graph_outline_free(o);
  cx_graph_outline_free(NULL);
}

// Two graphs that exist at once.
static void check_compared(const cx_graph_outline *theirs, const char *words)
{
  cx_text text = { 0 };
  cx_graph_outline_differ(theirs, "rank 0", &order, "rank 1", &text);
  assert_string_equal(cx_text_str(&text), words);
  cx_text_free(&text);
}

static void test_compare(void **state)
{
  (void)state;
  int one = 1, two = 2;
  cx_graph_node *x = leaf(4);
  cx_graph_node *known = make_node(&op_mode, &one, 1, NULL, 0, INPUTS(V(x)));
  WALK(V(SUM(V(known))));
  cx_graph_outline *o = cx_graph_outline_new(&order);
  cx_graph_node *other = make_node(&op_mode, &two, 1, NULL, 0, INPUTS(V(x)));
  WALK(V(SUM(V(other))));
  check_compared(o, "mode at model.c:7: is mode=1 on rank 0, mode=2 on rank 1");
  WALK(V(SUM(V(x))));
  check_compared(o,
                 "sum at model.c:7 on rank 1 stands where rank 0 has mode at "
                 "model.c:7");
  cx_graph_node *wide =
      make_node(&op_mode, &one, 1, NULL, 0, INPUTS(V(leaf(5))));
  WALK(V(wide));
  check_compared(o,
                 "mode at model.c:7: operand 0 is f32[4] on rank 0, f32[5] on "
                 "rank 1");
  WALK(V(known));
  check_compared(o, "only rank 0 has sum at model.c:7");
  WALK(V(SUM(V(SUM(V(known))))));
  check_compared(o, "only rank 1 has sum at model.c:7");
  WALK(V(SUM(V(known), V(x))));
  check_compared(o, "sum at model.c:7: has 1 operands on rank 0, 2 on rank 1");
  cx_graph_node *mode = known, *sum = SUM(V(mode));
  WALK(V(sum), V(mode));
  check_compared(o, "rank 0 keeps 1 tensors, rank 1 2");
  cx_graph_outline_free(o);
}

// ---- attributes that end in a list ------------------------------------------

typedef struct list_attrs {
  uint32_t count, values[];
} list_attrs;

static uint32_t list_bytes(const void *attrs)
{
  return 4 + 4 * ((const list_attrs *)attrs)->count;
}

static const cx_graph_op op_list = { .name = "list",
                                     .id = 60006,
                                     .attr_size = sizeof(list_attrs),
                                     .attr_bytes = list_bytes,
                                     .infer = infer,
                                     .emit = emit_sum };

static void test_lists(void **state)
{
  (void)state;
  uint32_t a[] = { 3, 7, 8, 9 }, b[] = { 3, 7, 8, 1 }, c[] = { 2, 7, 8 };
  cx_graph_node *x = leaf(4);
  cx_graph_node *first = make_node(&op_list, a, 1, NULL, 0, INPUTS(V(x)));
  a[3] = 0;  // it was copied
  assert_int_equal(((list_attrs *)first->attrs)->values[2], 9);
  WALK(V(first));
  cx_graph_key key = copy_key();
  cx_graph_outline *o = cx_graph_outline_new(&order);
  a[3] = 9;
  WALK(V(make_node(&op_list, a, 1, NULL, 0, INPUTS(V(x)))));
  assert_true(same_key(&key));
  assert_int_equal(cx_graph_outline_common(o, &order), 1);
  WALK(V(make_node(&op_list, b, 1, NULL, 0, INPUTS(V(x)))));
  assert_false(same_key(&key));
  assert_int_equal(cx_graph_outline_common(o, &order), 0);
  WALK(V(make_node(&op_list, c, 1, NULL, 0, INPUTS(V(x)))));
  assert_false(same_key(&key));
  assert_int_equal(cx_graph_outline_common(o, &order), 0);
  cx_graph_outline_free(o);
  test_free(key.words);
}

static void test_flags(void **state)
{
  (void)state;
  cx_graph_node *x = leaf(4), *sum = SUM(V(x));
  WALK(V(sum));
  assert_int_equal(order.flags, 0);
  cx_graph_node_set_flags(sum, CX_GRAPH_NODE_COLLECTIVE);
  WALK(V(SUM(V(sum))));
  assert_int_equal(order.flags, CX_GRAPH_NODE_COLLECTIVE);
  cx_hlo_module *m;
  cx_graph_lowering l = { .order = &order, .name = "test", .replicas = 3 };
  CHECK_STATUS_OK(cx_graph_lower(&l, &m));
  cx_text text = { 0 };
  cx_hlo_print(m, &text);
  assert_non_null(strstr(cx_text_str(&text), "mhlo.num_replicas = 3 : i32"));
  cx_text_free(&text);
  cx_hlo_module_free(m);
}

static int setup(void **state)
{
  setenv("CALX_CACHE_DIR", "off", 1);
  return support_setup_fake(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(test_shapes),
    GRAPH_TEST(test_attributes_are_copied),
    GRAPH_TEST(test_release),
    GRAPH_TEST(test_post_order),
    GRAPH_TEST(test_diamond),
    GRAPH_TEST(test_many_roots),
    GRAPH_TEST(test_computed),
    GRAPH_TEST(test_equal_graphs),
    GRAPH_TEST(test_what_tells_graphs_apart),
    GRAPH_TEST(test_aliases_are_in_the_key),
    GRAPH_TEST(test_values_are_not),
    GRAPH_TEST(test_slot_words),
    GRAPH_TEST(test_lower),
    GRAPH_TEST(test_lower_soft),
    GRAPH_TEST(test_lower_fails),
    GRAPH_TEST(test_lower_without_memory),
    GRAPH_TEST(test_differ),
    GRAPH_TEST(test_compare),
    GRAPH_TEST(test_lists),
    GRAPH_TEST(test_flags),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
