// What a process does that is one of several: it says so where it trains alone,
// tells the plugin of the others, and refuses collectives that the plugin has
// in one process only.
#include <unistd.h>

#include "base/file.h"
#include "calx/collective.h"
#include "fixture.h"
#include "world/world.h"

static const char *const variables[] = { "RANK",        "WORLD_SIZE",
                                         "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                         "MASTER_ADDR", "MASTER_PORT",
                                         "CALX_RANK",   "CALX_WORLD" };

// The library's own; only the module world may write it.
static cx_world_info *place(void)
{
  union {
    const cx_world_info *in;
    cx_world_info *out;
  } here = { .in = cx_world_self() };
  return here.out;
}

static int end(void **state)
{
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    unsetenv(variables[i]);
  }
  place()->process = 0;
  place()->processes = 1;
  setenv("CALX_PLUGIN", CX_FAKE_PLUGIN, 1);
  return lazy_end(state);
}

#define PROCESS_TEST(function) \
  cmocka_unit_test_setup_teardown(function, lazy_begin, end)

static void set_torchrun(void)
{
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "4", 1);
  setenv("LOCAL_RANK", "1", 1);
  setenv("LOCAL_WORLD_SIZE", "4", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", "29500", 1);
}

// As if it had met the other one.
static void be_one_of_two(void)
{
  place()->process = 1;
  place()->processes = 2;
}

// ---- alone ------------------------------------------------------------------

static void use_device(void)
{
  calx_scope *scope = calx_scope_begin();
  calx_sync(calx_neg(lazy_vector(4, 1)));
  CHECK_STATUS_OK(calx_scope_end(scope));
}

static void test_not_launched(void **state)
{
  (void)state;
  use_device();
  assert_int_equal(lines_with("alone"), 0);
  calx_shutdown();
  set_torchrun();
  use_device();
  use_device();
  assert_int_equal(lines_with("process 1 of 4, started by torchrun, trains "
                              "alone: calx_launch was not called before"),
                   1);
}

static void test_of_one(void **state)
{
  (void)state;
  set_torchrun();
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  setenv("LOCAL_RANK", "0", 1);
  setenv("LOCAL_WORLD_SIZE", "1", 1);
  use_device();
  assert_int_equal(lines_with("alone"), 0);
}

// ---- one of several ---------------------------------------------------------

static void test_plugin_is_told(void **state)
{
  (void)state;
  be_one_of_two();
  use_device();
  assert_int_equal(lines_with("alone"), 0);
  assert_string_equal(lazy_fake.options(), "node_id=1;num_nodes=2");
  assert_true(lazy_fake.has_store());
}

// A plugin of the name of XLA's CPU: it is not told, and knows no others.
static void test_in_one_process_only(void **state)
{
  (void)state;
  const char *tmp = getenv("TMPDIR");
  char path[256], *data;
  size_t size;
  snprintf(path, sizeof path, "%s/calx_%d_cpu.so", tmp != NULL ? tmp : "/tmp",
           (int)getpid());
  CHECK_STATUS_OK(cx_file_read(CX_FAKE_PLUGIN, 0, &data, &size));
  CHECK_STATUS_OK(cx_file_write(path, data, size));
  cx_free(data);
  setenv("CALX_PLUGIN", path, 1);
  fake other = fake_open(path);
  be_one_of_two();
  use_device();
  assert_string_equal(other.options(), "cpu_device_count=1");
  assert_false(other.has_store());
  calx_scope *scope = calx_scope_begin();
  calx_tensor *sum = calx_all_reduce(lazy_vector(4, 1), CALX_REDUCE_SUM);
  calx_sync(sum);
  CHECK_STATUS(CALX_UNIMPLEMENTED, calx_scope_end(scope), "all_reduce at",
               "processes.c", "platform 'fake'",
               "inside one process only, this is process 1 of 2");
  calx_shutdown();
  unlink(path);
  support_kept = cx_alloc_live();  // one plugin more is loaded for ever
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    PROCESS_TEST(test_not_launched),
    PROCESS_TEST(test_of_one),
    PROCESS_TEST(test_plugin_is_told),
    PROCESS_TEST(test_in_one_process_only),
  };
  return cmocka_run_group_tests(tests, lazy_setup, NULL);
}
