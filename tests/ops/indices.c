// indices: a class number that is out of range: named with CALX_DEBUG=indices;
// without it NaN, which no right one's loss has.
#include "calx/autograd.h"
#include "calx/ops.h"
#include "lazy/internal.h"
#include "support/support.h"

enum { N = 3, CLASSES = 4 };

static void mode(const char *value)
{
  if (value != NULL) setenv("CALX_DEBUG", value, 1);
  if (value == NULL) unsetenv("CALX_DEBUG");
  cx_lazy_mode_reload();
}

typedef calx_tensor *loss_fn(calx_tensor *x, calx_tensor *target);

static calx_tensor *cross_entropy(calx_tensor *x, calx_tensor *target)
{
  return calx_cross_entropy(x, target);
}

static calx_tensor *nll(calx_tensor *x, calx_tensor *target)
{
  return calx_nll_loss(calx_log_softmax(x, 1), target);
}

static loss_fn *const losses[] = { cross_entropy, nll };
static const char *const names[] = { "cross_entropy", "nll_loss" };

// The loss of three targets, of which the second one is `odd`.
static calx_status *loss_with(loss_fn *fn, calx_dtype type, int64_t odd,
                              double *out)
{
  static const float x[N * CLASSES] = { 1, 2, 3, 4, 4, 3, 2, 1, 0, 1, 0, 1 };
  const int64_t wide[N] = { 0, odd, 3 };
  const int32_t narrow[N] = { 0, (int32_t)odd, 3 };
  calx_scope *s = calx_scope_begin();
  calx_tensor *target = type == CALX_I64
                            ? calx_tensor_from(wide, CALX_I64, CALX_SHAPE(N))
                            : calx_tensor_from(narrow, CALX_I32, CALX_SHAPE(N));
  calx_tensor *logits = calx_tensor_from(x, CALX_F32, CALX_SHAPE(N, CLASSES));
  *out = calx_item(fn(logits, target));
  return calx_scope_end(s);
}

static const int64_t wrong[] = { -1, CLASSES, CLASSES + 1000, -101, INT32_MAX };
enum { WRONG = sizeof wrong / sizeof *wrong };

static void test_named(void **state)
{
  (void)state;
  mode("indices");
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 2 * WRONG; i++) {
      double loss;
      char text[64];
      snprintf(text, sizeof text, "] is class %lld, the %d classes are 0 to %d",
               (long long)wrong[i % WRONG], CLASSES, CLASSES - 1);
      CHECK_STATUS(CALX_OUT_OF_RANGE,
                   loss_with(losses[k], i < WRONG ? CALX_I64 : CALX_I32,
                             wrong[i % WRONG], &loss),
                   names[k], text);
    }
  }
  mode(NULL);
}

static void test_nan(void **state)
{
  (void)state;
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < 2 * WRONG; i++) {
      double loss = 0;
      CHECK_STATUS_OK(loss_with(losses[k], i < WRONG ? CALX_I64 : CALX_I32,
                                wrong[i % WRONG], &loss));
      assert_true(loss != loss);
    }
  }
}

// A right class has the same loss either way, and so has the one that is left
// out.
static void test_right(void **state)
{
  (void)state;
  for (int k = 0; k < 2; k++) {
    for (int64_t c = -1; c < CLASSES; c++) {
      double plain, checked;
      int64_t odd = c < 0 ? -100 : c;
      CHECK_STATUS_OK(loss_with(losses[k], CALX_I64, odd, &plain));
      mode("indices");
      CHECK_STATUS_OK(loss_with(losses[k], CALX_I64, odd, &checked));
      mode(NULL);
      assert_true(plain == plain && plain > 0 && plain < 10);
      CHECK_CLOSE(checked, plain, 1e-7);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_named),
    SUPPORT_TEST(test_nan),
    SUPPORT_TEST(test_right),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
