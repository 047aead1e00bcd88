// load: loading and refusing plugins, and what their clients are made with, on
// the fake plugin and on files that are none.
#include "base/thread.h"
#include "copies.h"

// ---- by path ----

static void test_path(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  cx_pjrt_plugin *again = NULL;
  copy_fake("by_path/plain.so", path, sizeof path);
  fake f = fake_open(path);
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "plain.so");
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  CHECK_OK(cx_pjrt_plugin_open(path, &again));
  assert_ptr_equal(p, again);
  char other[128];
  join(other, sizeof other, "by_path/../by_path/plain.so");
  CHECK_OK(cx_pjrt_plugin_open(other, &again));  // the same file
  assert_ptr_equal(p, again);
  assert_int_equal(f.calls("PJRT_Plugin_Initialize"), 1);
  int major = -1;
  int minor = -1;
  cx_pjrt_plugin_version(p, &major, &minor);
  assert_int_equal(major, 0);
  assert_int_equal(minor, 114);
  assert_string_equal(getenv("TF_CPP_MIN_LOG_LEVEL"), "3");
}

static void test_attributes(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake("attributes/plugin.so", path, sizeof path);
  fake f = fake_open(path);
  assert_true(f.set("xla=1"));
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  cx_text text = { 0 };
  cx_pjrt_plugin_describe(p, &text);
  assert_string_equal(cx_text_str(&text),
                      "xla_version = 2\n"
                      "stablehlo_current_version = 1.16.1\n"
                      "maker = tests\n"
                      "half = 0.5\n"
                      "fake = true\n"
                      "odd = ?\n");
  cx_text_clear(&text);
  assert_true(f.set("fail=PJRT_Plugin_Attributes@1:13:no"));
  cx_pjrt_plugin_describe(p, &text);
  assert_string_equal(cx_text_str(&text), "");
  cx_text_free(&text);
}

static void test_hash(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake("hash/plugin.so", path, sizeof path);
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  cx_hash wanted;
  cx_hash found;
  CHECK_OK(cx_hash_file(CX_FAKE_PLUGIN, &wanted));
  CHECK_OK(cx_pjrt_plugin_hash(p, &found));
  assert_true(cx_hash_equal(wanted, found));
  unlink(path);  // kept from the first call
  CHECK_OK(cx_pjrt_plugin_hash(p, &found));
  assert_true(cx_hash_equal(wanted, found));
}

static void test_not_a_plugin(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  join(path, sizeof path, "none/missing.so");
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_plugin_open(path, &p), path,
              "No such file");
  assert_null(p);
  join(path, sizeof path, "none/text.so");
  write_file(path, "hello, world", 12);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_plugin_open(path, &p), path,
              "not a plugin", "not an ELF");
  write_file(path, "", 0);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_plugin_open(path, &p),
              "not an ELF");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_plugin_open(folder, &p),
              "not an ELF");
  write_file(path, "\177ELF and then nothing", 21);
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_plugin_open(path, &p), path,
              "does not load");
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_plugin_open(CX_NO_PLUGIN, &p),
              "not a plugin", "GetPjrtApi");
}

static void refuse(const char *name, const char *settings, const char *text)
{
  char path[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake(name, path, sizeof path);
  fake f = fake_open(path);
  assert_true(f.set(settings));
  CHECK_FAILS(CALX_FAILED_PRECONDITION, cx_pjrt_plugin_open(path, &p), path,
              text);
  assert_null(p);
}

static void test_versions(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  refuse("version/old.so", "minor=28", "speaks PJRT 0.28");
  refuse("version/odd.so", "minor=56", "speaks PJRT 0.56");
  refuse("version/major.so", "major=1;minor=0", "speaks PJRT 1.0");
  refuse("version/short.so", "cut=PJRT_Error_Destroy;minor=20", "PJRT 0.20");
  copy_fake("version/oldest.so", path, sizeof path);
  fake f = fake_open(path);
  assert_true(f.set("minor=29"));
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  copy_fake("version/newer.so", path, sizeof path);
  f = fake_open(path);
  assert_true(f.set("minor=999"));
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
}

static void test_needed_slots(void **state)
{
  (void)state;
  static const char *const needed[] = {
    "PJRT_Error_Destroy",
    "PJRT_Error_Message",
    "PJRT_Error_GetCode",
    "PJRT_Plugin_Initialize",
  };
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    for (int cut = 0; cut < 2; cut++) {
      char name[64];
      char path[128];
      char settings[64];
      cx_pjrt_plugin *p = NULL;
      snprintf(name, sizeof name, "slots/%zu_%d.so", i, cut);
      snprintf(settings, sizeof settings, "%s=%s", cut ? "cut" : "null",
               needed[i]);
      copy_fake(name, path, sizeof path);
      fake f = fake_open(path);
      assert_true(f.set(settings));
      // A table that ends before Message has no GetCode either.
      CHECK_FAILS(CALX_UNIMPLEMENTED, cx_pjrt_plugin_open(path, &p),
                  "does not have", needed[i]);
    }
  }
}

static void test_initialize_fails(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake("init/plugin.so", path, sizeof path);
  fake f = fake_open(path);
  assert_true(f.set("fail=PJRT_Plugin_Initialize@1:14:the chip is taken"));
  CHECK_FAILS(CALX_UNAVAILABLE, cx_pjrt_plugin_open(path, &p),
              "PJRT_Plugin_Initialize", "plugin.so", "the chip is taken");
  assert_null(p);
  CHECK_OK(cx_pjrt_plugin_open(path, &p));  // it may be free now
  assert_int_equal(f.live(), 0);
}

// ---- from several threads ----

static void open_plugin(void *user)
{
  cx_pjrt_plugin **out = user;
  char path[128];
  join(path, sizeof path, "threads/plugin.so");
  calx_status_free(cx_pjrt_plugin_open(path, out));
}

static void test_threads_open_one(void **state)
{
  (void)state;
  char path[128];
  copy_fake("threads/plugin.so", path, sizeof path);
  cx_thread threads[4] = { 0 };
  cx_pjrt_plugin *found[4] = { 0 };
  for (size_t i = 0; i < 4; i++) {
    CHECK_OK(cx_thread_start(&threads[i], open_plugin, &found[i]));
  }
  for (size_t i = 0; i < 4; i++) cx_thread_join(&threads[i]);
  assert_non_null(found[0]);
  for (size_t i = 1; i < 4; i++) assert_ptr_equal(found[i], found[0]);
  assert_int_equal(fake_open(path).calls("PJRT_Plugin_Initialize"), 1);
}

// ---- what a client is made with ----

static void check_options(const char *name,
                          const cx_pjrt_client_options *options,
                          const char *wanted)
{
  char path[128];
  cx_pjrt_plugin *p = NULL;
  cx_pjrt_client *c = NULL;
  copy_fake(name, path, sizeof path);
  fake f = fake_open(path);
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  CHECK_OK(cx_pjrt_client_open(p, options, &c));
  assert_string_equal(f.options(), wanted);
  cx_pjrt_client_close(c);
  assert_int_equal(f.live(), 0);
}

static void test_client_options(void **state)
{
  (void)state;
  unsetenv("CPU_NUM_DEVICES");
  check_options("kinds/libpjrt_cpu.so", NULL, "cpu_device_count=1");
  setenv("CPU_NUM_DEVICES", "3", 1);
  check_options("kinds/some_cpu_plugin.so", NULL, "cpu_device_count=3");
  cx_pjrt_client_options four = { .device_count = 4 };
  check_options("kinds/other_cpu.so", &four, "cpu_device_count=4");
  check_options("kinds/xla_cuda_plugin.so", NULL, "preallocate=false");
  check_options("kinds/libtpu.so", NULL, "");
  check_options("kinds/unknown.so", NULL, "");
  check_options("kinds/unknown_2.so", &four, "cpu_device_count=4");
  int64_t pair[] = { 7, 8 };
  cx_pjrt_option extra[] = {
    { .name = "preallocate", .type = CX_PJRT_BOOL, .int_value = 1 },
    { .name = "allocator", .type = CX_PJRT_STRING, .string_value = "bfc" },
    { .name = "memory_fraction", .type = CX_PJRT_FLOAT, .float_value = 0.5 },
    { .name = "visible_devices",
      .type = CX_PJRT_INTS,
      .ints_value = pair,
      .n_ints = 2 },
    { .name = "node_id", .type = CX_PJRT_INT, .int_value = 9 },
  };
  cx_pjrt_client_options all = { .extra = extra, .n_extra = 5 };
  check_options("kinds/my_cuda.so", &all,
                "preallocate=true;allocator='bfc';memory_fraction=0.5;"
                "visible_devices=7,8;node_id=9");
  static const char *const bad[] = { "0", "many", "2x", "-1", "99999999999" };
  cx_pjrt_plugin *p = NULL;
  cx_pjrt_client *c = NULL;
  char path[128];
  join(path, sizeof path, "kinds/libpjrt_cpu.so");
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("CPU_NUM_DEVICES", bad[i], 1);
    CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_client_open(p, NULL, &c),
                "CPU_NUM_DEVICES", bad[i]);
  }
  unsetenv("CPU_NUM_DEVICES");
  cx_pjrt_client_options minus = { .device_count = -2 };
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_client_open(p, &minus, &c),
              "device_count", "-2");
}

int main(void)
{
  copies_begin();
  const struct CMUnitTest tests[] = {
    COPIES_TEST(test_path),
    COPIES_TEST(test_attributes),
    COPIES_TEST(test_hash),
    COPIES_TEST(test_not_a_plugin),
    COPIES_TEST(test_versions),
    COPIES_TEST(test_needed_slots),
    COPIES_TEST(test_initialize_fails),
    COPIES_TEST(test_threads_open_one),
    COPIES_TEST(test_client_options),
  };
  return cmocka_run_group_tests(tests, NULL, copies_end);
}
