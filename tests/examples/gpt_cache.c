// gpt_cache: what the GPT example writes a token at a time, from the keys and
// values that it kept, is what it gives for the whole text, by one program.
#include "../../examples/gpt_write.h"
#include "support/support.h"

enum { WORDS = 11, CONTEXT = 8 };

static void test_same(void **state)
{
  (void)state;
  gpt g;
  const int64_t text[CONTEXT] = { 3, 1, 4, 1, 5, 9, 2, 6 };
  float whole[CONTEXT][WORDS], one[WORDS];
  CHECK_STATUS_OK(gpt_init(&g, (gpt_sizes){ .vocabulary = WORDS,
                                            .context = CONTEXT,
                                            .width = 12,
                                            .heads = 3,
                                            .layers = 2 }));
  calx_init_normal(calx_module_find(g.root, "h.0.attn.c_attn.weight"), 0, 1);
  calx_no_grad_begin();
  calx_tensor *x = calx_tensor_from(text, CALX_I64, CALX_SHAPE(1, CONTEXT));
  CHECK_STATUS_OK(
      calx_tensor_read(calx_forward(g.root, x), whole, sizeof whole));
  gpt_keep(&g);
  calx_sync(NULL);
  int64_t compiled = 0;
  for (int i = 0; i < CONTEXT; i++) {
    calx_scope *scope = calx_scope_begin();
    g.at = calx_full(CALX_SHAPE(1), i, .dtype = CALX_I64);
    x = calx_full(CALX_SHAPE(1, 1), (double)text[i], .dtype = CALX_I64);
    calx_tensor *logits = calx_forward(g.root, x);
    calx_sync(logits);
    CHECK_STATUS_OK(calx_tensor_read(logits, one, sizeof one));
    CHECK_STATUS_OK(calx_scope_end(scope));
    for (int k = 0; k < WORDS; k++) {
      assert_float_equal(one[k], whole[i][k], 1e-5);
    }
    if (i == 0) compiled = calx_counter_value("UncachedCompile");
  }
  assert_int_equal(calx_counter_value("UncachedCompile"), compiled);
  calx_no_grad_end();
  gpt_forget(&g);
  gpt_free(&g);
}

static void count(void *user, int64_t token)
{
  assert_in_range(token, 0, WORDS - 1);
  ++*(int *)user;
}

// It writes until the context is full, and no more than is asked.
static void test_length(void **state)
{
  (void)state;
  gpt g;
  const int64_t prompt[] = { 1, 2, 3 };
  CHECK_STATUS_OK(gpt_init(&g, (gpt_sizes){ WORDS, CONTEXT, 8, 2, 1 }));
  int n = 0;
  CHECK_STATUS_OK(gpt_write(&g, prompt, 3, 100, count, &n));
  assert_int_equal(n, CONTEXT - 2);  // the last one is not read again
  n = 0;
  CHECK_STATUS_OK(gpt_write(&g, prompt, 3, 2, count, &n));
  assert_int_equal(n, 2);
  gpt_free(&g);
}

int main(void)
{
  const struct CMUnitTest tests[] = { SUPPORT_TEST(test_same),
                                      SUPPORT_TEST(test_length) };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
