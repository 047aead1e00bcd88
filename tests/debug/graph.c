// Graphs and programs as text, on the fake plugin: nothing here needs numbers.
// The ops are the test's own, so that the text depends on no other file.
#include "calx/debug.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "graph/lower.h"
#include "support/support.h"

static calx_status *infer_all(cx_graph_node *node)
{
  for (uint32_t k = 0; k < node->n_out; k++) {
    node->out[k].shape = *cx_in(node, 0);
  }
  return NULL;
}

static void emit_blend(cx_graph_emit *e)
{
  e->out[0] = cx_hlo_binary(e->b, CX_HLO_OP_ADD, e->in[0], e->in[1]);
}

static void emit_split(cx_graph_emit *e)
{
  e->out[0] = e->in[0];
  e->out[1] = cx_hlo_binary(e->b, CX_HLO_OP_ADD, e->in[0], e->in[0]);
}

static void describe_blend(const void *attrs, cx_text *out)
{
  cx_text_format(out, "mode=%d", *(const int *)attrs);
}

static const cx_graph_op op_blend = { .name = "blend",
                                      .id = 60000,
                                      .attr_size = sizeof(int),
                                      .infer = infer_all,
                                      .emit = emit_blend,
                                      .describe = describe_blend };
static const cx_graph_op op_split = {
  .name = "split", .id = 60001, .infer = infer_all, .emit = emit_split
};

// Recorded at line `line` of model.c.
static calx_tensor *blend(calx_tensor *a, calx_tensor *b, int line)
{
  calx_at_(&(calx_site){ "model.c", "forward", line });
  int mode = 3;
  cx_graph_slot slots[] = { { .dtype = CALX_F32, .value.number = 0.1 },
                            { .dtype = CALX_I64, .value.integer = -7 } };
  calx_tensor *in[] = { a, b };
  cx_lazy_call call = { .op = &op_blend,
                        .in = in,
                        .n_in = 2,
                        .attrs = &mode,
                        .slots = slots,
                        .n_slots = 2 };
  return cx_lazy_apply(&call, NULL);
}

static void split(calx_tensor *a, calx_tensor **out, int line)
{
  calx_at_(&(calx_site){ "model.c", "forward", line });
  cx_lazy_call call = { .op = &op_split, .in = &a, .n_in = 1, .n_out = 2 };
  cx_lazy_apply(&call, out);
}

static calx_tensor *six(calx_tensor *(*make)(const void *, calx_dtype,
                                             calx_dims))
{
  float data[6] = { 0 };
  calx_at_(&(calx_site){ "model.c", "main", 1 });
  return make(data, CALX_F32, CALX_SHAPE(2, 3));
}

static calx_tensor *device_tensor(const void *data, calx_dtype d, calx_dims s)
{
  return (calx_tensor_from)(data, d, s);
}

static calx_tensor *host_tensor(const void *data, calx_dtype d, calx_dims s)
{
  return (calx_host_tensor)(data, d, s);
}

static void expect_graph(calx_tensor *t, const char *wanted)
{
  char *text = calx_graph_str(t);
  assert_non_null(text);
  assert_string_equal(text, wanted);
  calx_string_free(text);
}

static void expect_begin(calx_tensor *t, const char *wanted)
{
  char *text = calx_graph_str(t);
  assert_non_null(text);
  text[strlen(wanted) < strlen(text) ? strlen(wanted) : strlen(text)] = '\0';
  assert_string_equal(text, wanted);
  calx_string_free(text);
}

// ---- graphs ----

static void test_data(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  expect_begin(six(device_tensor), "%0 = f32[2,3] device_data");
  expect_graph(six(host_tensor), "%0 = f32[2,3] host_data\n");
  expect_graph(NULL, "no tensor\n");
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void test_nodes(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  calx_tensor *a = six(device_tensor);
  const char *before = cx_lazy_module_path_set("net.fc1");
  calx_tensor *b = blend(a, a, 31);
  cx_lazy_module_path_set(before);
  calx_tensor *both[2];
  split(b, both, 32);
  calx_tensor *c = blend(both[1], a, 33);
  char *text = calx_graph_str(c);
  assert_non_null(text);
  const char *rest = strchr(text, '\n') + 1;  // past the data
  assert_string_equal(
      rest,
      "%1 = f32[2,3] blend(%0, %0) mode=3 numbers=[0.1, -7], at model.c:31 in "
      "net.fc1\n"
      "%2 = (f32[2,3], f32[2,3]) split(%1), at model.c:32\n"
      "%3 = f32[2,3] blend(%2#1, %0) mode=3 numbers=[0.1, -7], at "
      "model.c:33\n");
  calx_string_free(text);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

// What is computed is data, whatever it came from; asking computes nothing.
static void test_computed(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  calx_tensor *a = six(device_tensor);
  calx_tensor *both[2];
  split(a, both, 5);
  calx_tensor *c = blend(both[1], both[0], 6);
  expect_begin(c, "%0 = f32[2,3] device_data");
  assert_int_equal(cx_lazy_program_count(), 0);
  assert_true(cx_lazy_read(both[1]));
  char *text = calx_graph_str(c);
  assert_non_null(strstr(text, "%2 = f32[2,3] blend(%0, %1)"));
  calx_string_free(text);
  calx_sync_n(&c, 1);
  expect_begin(c, "%0 = f32[2,3] device_data");
  text = calx_graph_str(c);
  assert_null(strchr(strchr(text, '\n') + 1, '%'));
  calx_string_free(text);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void test_poison(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  calx_tensor *p = blend(six(host_tensor), six(device_tensor), 9);
  expect_begin(p,
               "poisoned: model.c:9: in forward: blend: Input tensor is not "
               "an XLA tensor");
  assert_null(calx_stablehlo_str(p));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "blend");
}

// ---- programs ----

// One file of a folder.
static char *read_dump(const char *folder)
{
  char command[300], path[300] = "";
  snprintf(command, sizeof command, "ls %s/*.mlir", folder);
  FILE *list = popen(command, "r");
  assert_non_null(list);
  assert_non_null(fgets(path, sizeof path, list));
  pclose(list);
  path[strcspn(path, "\n")] = '\0';
  char *text;
  size_t size;
  CHECK_STATUS_OK(cx_file_read(path, 0, &text, &size));
  return text;
}

static void test_program(void **state)
{
  (void)state;
  char folder[] = "/tmp/calx-graph-XXXXXX";
  assert_non_null(mkdtemp(folder));
  calx_scope *scope = (calx_scope_begin)();
  calx_tensor *both[2];
  split(six(device_tensor), both, 5);
  calx_tensor *c = blend(both[0], both[1], 6);
  char *text = calx_stablehlo_str(c);
  assert_non_null(text);
  assert_int_equal(cx_lazy_program_count(), 0);
  setenv("CALX_DUMP", folder, 1);
  cx_lazy_mode_reload();
  assert_true(cx_lazy_read(c));
  unsetenv("CALX_DUMP");
  cx_lazy_mode_reload();
  char *dumped = read_dump(folder);
  assert_string_equal(text, dumped);
  assert_non_null(strstr(text, "model.c\":6"));
  cx_free(dumped);
  calx_string_free(text);
  CHECK_STATUS_OK(calx_scope_end(scope));
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void test_program_of_data(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  char *text = calx_stablehlo_str(six(device_tensor));
  assert_non_null(text);
  assert_non_null(strstr(text, "func.return"));
  assert_null(strstr(text, "stablehlo."));
  calx_string_free(text);
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void test_no_program(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  assert_null(calx_stablehlo_str(six(host_tensor)));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "f32[2,3]",
               "on the host");
  scope = (calx_scope_begin)();
  assert_null(calx_stablehlo_str(NULL));
  CHECK_STATUS(CALX_INVALID_ARGUMENT, calx_scope_end(scope), "got NULL");
}

// Each allocation fails once: NULL, nothing left, and the next call is right.
static void test_no_memory(void **state)
{
  (void)state;
  calx_scope *scope = (calx_scope_begin)();
  calx_tensor *both[2];
  split(six(device_tensor), both, 5);
  calx_tensor *c = blend(both[0], both[1], 6);
  for (int which = 0; which < 2; which++) {
    for (long n = 0;; n++) {
      calx_scope *inner = (calx_scope_begin)();
      cx_alloc_fail_at(n);
      char *text = which == 0 ? calx_graph_str(c) : calx_stablehlo_str(c);
      cx_alloc_fail_at(-1);
      bool done = text != NULL;
      calx_string_free(text);
      calx_status *status = calx_scope_end(inner);
      if (done || which == 0) assert_null(status);
      calx_status_free(status);
      if (done) break;
      assert_true(n < 10000);
    }
  }
  CHECK_STATUS_OK(calx_scope_end(scope));
}

int main(void)
{
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  const struct CMUnitTest tests[] = {
    SUPPORT_TEST(test_data),       SUPPORT_TEST(test_nodes),
    SUPPORT_TEST(test_computed),   SUPPORT_TEST(test_poison),
    SUPPORT_TEST(test_program),    SUPPORT_TEST(test_program_of_data),
    SUPPORT_TEST(test_no_program), SUPPORT_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, support_setup, NULL);
}
