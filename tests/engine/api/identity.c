// identity: the engine as a plugin of the library, linked in and as a file.
#include <unistd.h>

#include "base/hash.h"
#include "host.h"
#include "pjrt/pjrt.h"

static void check_add(const char *name)
{
  cx_pjrt_plugin *plugin = NULL;
  cx_pjrt_client *client = NULL;
  cx_pjrt_client_options options = { .device_count = 2 };
  assert_null(cx_pjrt_plugin_open(name, &plugin));
  assert_null(cx_pjrt_client_open(plugin, &options, &client));
  assert_string_equal(cx_pjrt_client_platform(client), "calx_cpu");
  assert_int_equal(cx_pjrt_client_device_count(client), 2);
  cx_pjrt_shape shape = { .type = PJRT_Buffer_Type_F32,
                          .rank = 1,
                          .dims = { 4 } };
  cx_pjrt_signature signature = { .params = (cx_pjrt_shape[]){ shape, shape },
                                  .n_params = 2,
                                  .results = &shape,
                                  .n_results = 1 };
  cx_pjrt_compile_options compile = { .any_device = true };
  const char *text = BINARY("add", "tensor<4xf32>");
  cx_pjrt_executable *e = NULL;
  cx_pjrt_buffer *a = NULL, *sum = NULL;
  float data[4] = { 1, 2, 3, 4 };
  assert_null(
      cx_pjrt_compile(client, text, strlen(text), &compile, &signature, &e));
  assert_null(cx_pjrt_buffer_from_host(client, 1, &shape, data, CX_PJRT_COPY,
                                       NULL, NULL, &a));
  assert_null(
      cx_pjrt_execute(e, 1, (cx_pjrt_buffer *[]){ a, a }, 2, &sum, NULL));
  assert_null(cx_pjrt_buffer_to_host(sum, data, sizeof data));
  for (int i = 0; i < 4; i++) assert_true(data[i] == (float)(2 + 2 * i));
  cx_pjrt_buffer_release(sum);
  cx_pjrt_buffer_release(a);
  cx_pjrt_executable_release(e);
  cx_pjrt_client_close(client);
}

static void test_linked_in(void **state)
{
  (void)state;
  setenv("CALX_CPU_REF", "1", 1);
  check_add("calx");
  check_add("calx_cpu");
  cx_pjrt_plugin *one = NULL, *two = NULL;
  assert_null(cx_pjrt_plugin_open("calx", &one));
  setenv("CALX_PLUGIN", "CALX", 1);
  assert_null(cx_pjrt_plugin_open(NULL, &two));
  unsetenv("CALX_PLUGIN");
  assert_ptr_equal(one, two);
  assert_string_equal(cx_pjrt_plugin_name(one), "calx");
  cx_hash a, b;
  assert_null(cx_pjrt_plugin_hash(one, &a));
  assert_null(calx_cpu_identity(&b));
  assert_true(cx_hash_equal(a, b));
  assert_true(a.low != 0 && a.high != 0);
  assert_int_equal(access(calx_cpu_path(), R_OK), 0);
}

static void test_other_compiler(void **state)
{
  (void)state;
  cx_hash a, b;
  assert_null(calx_cpu_identity(&a));
  setenv("CALX_JIT", CX_ENGINE_PLUGIN, 1);  // any other file
  assert_null(calx_cpu_identity(&b));
  unsetenv("CALX_JIT");
  assert_false(cx_hash_equal(a, b));
}

static void test_file(void **state)
{
  (void)state;
  setenv("CALX_CPU_REF", "1", 1);
  check_add(CX_ENGINE_PLUGIN);
  // Nothing but the table's function is seen from outside.
  FILE *pipe =
      popen("nm -D --defined-only --format=posix " CX_ENGINE_PLUGIN, "r");
  assert_non_null(pipe);
  char text[256] = { 0 };
  assert_true(fread(text, 1, sizeof text - 1, pipe) > 0);
  assert_int_equal(pclose(pipe), 0);
  assert_memory_equal(text, "GetPjrtApi ", 11);
  assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_linked_in),
                                      cmocka_unit_test(test_other_compiler),
                                      cmocka_unit_test(test_file) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
