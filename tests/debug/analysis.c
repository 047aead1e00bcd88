// CALX_DEBUG=1: the blocks, line for line, on the fake plugin.
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trace.h"
#include "calx/data.h"
#include "calx/dist.h"
#include "calx/nn.h"
#include "lazy/fixture.h"

static char path[] = "/tmp/calx_analysis_XXXXXX";

static int begin(void **state)
{
  strcpy(path + sizeof path - 7, "XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0) return 1;
  close(fd);
  setenv("CALX_DEBUG_FILE", path, 1);
  return lazy_begin(state);
}

static int end(void **state)
{
  unsetenv("CALX_DEBUG");
  unsetenv("CALX_DEBUG_LEVEL");
  unsetenv("CALX_DEBUG_FILE");
  unsetenv("CALX_EAGER");
  cx_trace_set_ranks(&(cx_trace_ranks){ 0, 1, true });
  unlink(path);
  return lazy_end(state);
}

static char *read_all(void)
{
  char *text;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 1 << 20, &text, &size));
  return text;
}

static int count(const char *text, const char *piece)
{
  int n = 0;
  for (; (text = strstr(text, piece)) != NULL; text++) n++;
  return n;
}

// What follows a label up to the end of its line, of the k-th such line.
static void value(const char *text, const char *label, int k, char out[64])
{
  for (;; text++) {
    text = strstr(text, label);
    assert_non_null(text);
    if (k-- == 0) break;
  }
  text += strlen(label);
  snprintf(out, 64, "%.*s", (int)strcspn(text, "\n"), text);
}

#define RULE10 "=========="
#define RULE RULE10 RULE10 RULE10 RULE10 RULE10 RULE10 RULE10 RULE10

static void test_b35_sync(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "1", 1);
  calx_tensor *x = lazy_vector(4, 1);
  int line = __LINE__ + 1;
  calx_sync(calx_neg(x));
  CHECK_STATUS_OK(calx_device_wait(NULL));
  char *text = read_all();
  assert_int_equal(count(text, "Compilation Analysis: Compilation Cause\n"), 1);
  assert_int_equal(count(text, "Execution Analysis: Execution Cause\n"), 1);
  char a[64], b[64], wanted[1024];
  value(text, "Analysis:   Graph Hash: ", 0, a);
  value(text, "Analysis:   Graph Hash: ", 1, b);
  assert_string_equal(a, b);
  assert_int_equal(strlen(a), 32);
  snprintf(wanted, sizeof wanted,
           "Execution Analysis: " RULE
           "\n"
           "Execution Analysis: Execution Cause\n"
           "Execution Analysis:   user calx_sync\n"
           "Execution Analysis: Graph Info: \n"
           "Execution Analysis:   Graph Hash: %s\n"
           "Execution Analysis:   Number of Graph Inputs: 1\n"
           "Execution Analysis:   Number of Graph Outputs: 1\n"
           "Execution Analysis: Frame Triggered Execution: \n"
           "Execution Analysis:   calx_sync\n"
           "Execution Analysis:   test_b35_sync (%s:%d)\n",
           a, __FILE__, line);
  if (strstr(text, wanted) == NULL) fail_msg("not\n%s in\n%s", wanted, text);
  assert_int_equal(count(text, "Post Compilation Analysis: Graph input size: "),
                   1);
  assert_int_equal(count(text, "Post Compilation Analysis: Compiled program"),
                   1);
  cx_free(text);
}

static void test_b35_level(void **state)
{
  (void)state;
  setenv("CALX_DEBUG_LEVEL", "1", 1);
  calx_tensor *x = lazy_vector(4, 1);
  for (int i = 0; i < 3; i++) calx_sync(calx_neg(x));
  char *text = read_all();
  assert_int_equal(count(text, "Compilation Cause\n"), 1);
  assert_int_equal(count(text, "Execution Cause\n"), 0);
  cx_free(text);
}

// Ten batches of data + 100: one compilation, ten executions.
static void test_b35_loader(void **state)
{
  (void)state;
  setenv("CALX_DEBUG_LEVEL", "2", 1);
  float zeros[4] = { 0 };
  calx_loader *loader = calx_sample_generator(
      calx_host_tensor(zeros, CALX_F32, CALX_SHAPE(4, 1)), NULL, 10);
  calx_batch batch;
  calx_tensor *kept = NULL;
  while (calx_loader_next(loader, &batch)) {
    calx_release(kept);
    kept = calx_retain(calx_add(batch.data, 100));
  }
  calx_release(kept);
  calx_loader_free(loader);
  char *text = read_all();
  assert_int_equal(count(text, "Compilation Cause\n"), 1);
  assert_int_equal(count(text, "Execution Cause\n"), 10);
  assert_int_equal(
      count(text, "Execution Analysis:   calx_sync in the loader at step end"),
      10);
  char n[64];
  value(text, "Number of Graph Inputs: ", 10, n);
  assert_string_equal(n, "2");
  value(text, "Number of Graph Outputs: ", 10, n);
  assert_string_equal(n, "1");
  cx_free(text);
}

static void test_b35_dist_step(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "1", 1);
  calx_module *model = calx_nn_linear(NULL, "fc", 4, 1);
  calx_optimizer *opt = calx_sgd(model, .lr = 0.1);
  calx_tensor *loss = calx_sum(calx_forward(model, lazy_vector(4, 1)));
  calx_backward(loss);
  calx_dist_step(opt, loss);
  calx_optimizer_free(opt);
  calx_module_free(model);
  char *text = read_all();
  assert_int_equal(
      count(text, "Execution Analysis:   calx_sync in calx_dist_step\n"), 1);
  assert_int_equal(count(text, "Execution Cause\n"), 1);
  cx_free(text);
}

static void test_b35_read(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "nan,1", 1);
  cx_lazy_mode_reload();
  calx_item(calx_neg(lazy_vector(1, 1)));
  char *text = read_all();
  assert_int_equal(
      count(text, "user code trying to access tensor value before calx_sync"),
      2);
  assert_int_equal(count(text, "Execution Analysis:   read\n"), 1);
  assert_int_equal(lines_with("CALX_DEBUG"), 0);
  cx_free(text);
}

static void test_b35_eager(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "1", 1);
  setenv("CALX_EAGER", "1", 1);
  cx_lazy_mode_reload();
  calx_tensor *x = calx_neg(lazy_vector(4, 1));
  calx_sync(x);
  char *text = read_all();
  assert_string_equal(text, "");
  cx_free(text);
}

static void test_off(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "0", 1);
  cx_lazy_mode_reload();
  calx_sync(calx_neg(lazy_vector(4, 1)));
  calx_shutdown();
  setenv("CALX_DEBUG", "nan", 1);
  calx_sync(calx_neg(lazy_vector(4, 1)));
  calx_shutdown();
  setenv("CALX_DEBUG_LEVEL", "much", 1);
  calx_sync(calx_neg(lazy_vector(4, 1)));
  assert_int_equal(lines_with("CALX_DEBUG_LEVEL: 'much' is no level"), 1);
  char *text = read_all();
  assert_string_equal(text, "");
  cx_free(text);
}

// Of several hosts' or processes' ranks the first of its host writes.
static void test_first_rank(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "1", 1);
  cx_trace_set_ranks(&(cx_trace_ranks){ 1, 2, false });
  calx_sync(calx_neg(lazy_vector(4, 1)));
  char *text = read_all();
  assert_string_equal(text, "");
  cx_free(text);
}

static void test_unwritable(void **state)
{
  (void)state;
  setenv("CALX_DEBUG", "1", 1);
  setenv("CALX_DEBUG_FILE", "/nonexistent/x", 1);
  calx_sync(calx_neg(lazy_vector(4, 1)));
  assert_int_equal(lines_with("cannot write '/nonexistent/x'"), 1);
}

#define ANALYSIS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
    ANALYSIS_TEST(test_b35_sync),   ANALYSIS_TEST(test_b35_level),
    ANALYSIS_TEST(test_b35_loader), ANALYSIS_TEST(test_b35_read),
    ANALYSIS_TEST(test_b35_eager),  ANALYSIS_TEST(test_b35_dist_step),
    ANALYSIS_TEST(test_off),        ANALYSIS_TEST(test_first_rank),
    ANALYSIS_TEST(test_unwritable),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
