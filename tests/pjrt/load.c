// load: finding, loading and refusing plugins, on the fake plugin and on files
// that are none.
//
// A file is loaded once for a process, so each case that is about loading has a
// copy of the fake in a folder of its own.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "check.h"
#include "fake.h"
#include "pjrt/internal.h"

static char folder[64];

static void join(char *out, size_t room, const char *name)
{
  assert_true(snprintf(out, room, "%s/%s", folder, name) < (int)room);
}

static void write_file(const char *path, const void *data, size_t size)
{
  char parent[256];
  snprintf(parent, sizeof parent, "%s", path);
  *strrchr(parent, '/') = '\0';
  CHECK_OK(cx_folder_make(parent, 0755));
  unlink(path);  // it may be loaded: that file must stay as it is
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

// A copy of the fake as FOLDER/name; its path is in `out`.
static void copy_fake(const char *name, char *out, size_t room)
{
  char *data = NULL;
  size_t size = 0;
  join(out, room, name);
  CHECK_OK(cx_file_read(CX_FAKE_PLUGIN, 0, &data, &size));
  write_file(out, data, size);
  cx_free(data);
}

static const char *const variables[] = {
  "CALX_PLUGIN",     "PJRT_DEVICE",      "PJRT_NAMES_AND_LIBRARY_PATHS",
  "CALX_PLUGIN_DIR", "TPU_LIBRARY_PATH", "XDG_CACHE_HOME",
};

static int clean_environment(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    unsetenv(variables[i]);
  }
  setenv("CALX_PLUGIN_DIR", folder, 1);
  return 0;
}

#define LOAD_TEST(function)                                    \
  cmocka_unit_test_setup_teardown(function, clean_environment, \
                                  check_nothing_left)

static char log_text[1024];

static void keep_log(void *user, const char *line)
{
  (void)user;
  size_t n = strlen(log_text);
  snprintf(log_text + n, sizeof log_text - n, "%s\n", line);
}

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

// ---- by name ----

static void test_names(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_plugin_open("cpu", &p), "'cpu'", folder,
              "xla-cpu-0.106/libpjrt_cpu.so", "xla-cpu-0.81/xla_cpu_pjrt.so",
              "./dev setup --engines", "CALX_PLUGIN");
  copy_fake("xla-cpu-0.81/xla_cpu_pjrt.so", path, sizeof path);
  CHECK_OK(cx_pjrt_plugin_open("cpu", &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "cpu");
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  copy_fake("xla-cpu-0.106/libpjrt_cpu.so", path, sizeof path);
  CHECK_OK(cx_pjrt_plugin_open("CPU", &p));  // the newer one comes first
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  copy_fake("cuda/xla_cuda_plugin.so", path, sizeof path);
  CHECK_OK(cx_pjrt_plugin_open("gpu", &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "cuda");
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  copy_fake("elsewhere/my_tpu.so", path, sizeof path);
  setenv("TPU_LIBRARY_PATH", path, 1);
  CHECK_OK(cx_pjrt_plugin_open("tpu", &p));
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_plugin_open("abacus", &p), "'abacus'",
              "cpu, tpu, cuda");
}

static void test_user_cache(void **state)
{
  (void)state;
  char path[128];
  char cache[128];
  cx_pjrt_choice choice;
  copy_fake("user/calx/plugins/cuda/xla_cuda_plugin.so", path, sizeof path);
  join(cache, sizeof cache, "user");
  setenv("XDG_CACHE_HOME", cache, 1);
  // A folder that is named is the only one.
  char empty[128];
  join(empty, sizeof empty, "empty");
  setenv("CALX_PLUGIN_DIR", empty, 1);
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_find("cuda", "/dev", &choice), empty);
  unsetenv("CALX_PLUGIN_DIR");
  CHECK_OK(cx_pjrt_find("cuda", "/dev", &choice));
  // The build's own folder is looked at first, and may have it.
  if (strstr(choice.path, "/.cache/plugins/") == NULL) {
    assert_string_equal(choice.path, path);
  }
  cx_pjrt_choice_free(&choice);
}

static void test_registered_names(void **state)
{
  (void)state;
  char path[128];
  char value[512];
  cx_pjrt_plugin *p = NULL;
  copy_fake("registered/lib.so", path, sizeof path);
  snprintf(value, sizeof value, "one:/nowhere/lib.so,abacus:%s", path);
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", value, 1);
  CHECK_OK(cx_pjrt_plugin_open("abacus", &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "abacus");
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_plugin_open("one", &p),
              "/nowhere/lib.so");
  setenv("PJRT_DEVICE", "abacus", 1);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "one:/nowhere/lib.so,two", 1);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_plugin_open(NULL, &p),
              "PJRT_NAMES_AND_LIBRARY_PATHS", "'two'");
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "abacus:/nowhere/options.json", 1);
  CHECK_FAILS(CALX_UNIMPLEMENTED, cx_pjrt_plugin_open(NULL, &p),
              "/nowhere/options.json");
}

static void test_environment(void **state)
{
  (void)state;
  char path[128];
  char cuda[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake("chosen/libother.so", path, sizeof path);
  copy_fake("cuda/xla_cuda_plugin.so", cuda, sizeof cuda);
  setenv("PJRT_DEVICE", "CUDA", 1);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(cx_pjrt_plugin_path(p), cuda);
  setenv("PJRT_DEVICE", "GPU", 1);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(cx_pjrt_plugin_path(p), cuda);
  setenv("CALX_PLUGIN", path, 1);  // wins
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  setenv("CALX_PLUGIN", "cuda", 1);  // a name too
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(cx_pjrt_plugin_path(p), cuda);
  CHECK_OK(cx_pjrt_plugin_open(path, &p));  // what the caller says wins always
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  setenv("CALX_PLUGIN", "", 1);  // as if unset
  setenv("PJRT_DEVICE", "ABACUS", 1);
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_plugin_open(NULL, &p), "'ABACUS'",
              "PJRT_DEVICE");
}

// A folder with these files stands for /dev.
static void check_choice(const char *dev, const char *file, const char *wanted)
{
  char path[128];
  cx_pjrt_choice choice;
  join(path, sizeof path, dev);
  CHECK_OK(cx_folder_make(path, 0755));
  if (file != NULL) {
    char full[256];
    snprintf(full, sizeof full, "%s/%s", path, file);
    write_file(full, "", 0);
  }
  CHECK_OK(cx_pjrt_find(NULL, path, &choice));
  assert_string_equal(choice.name, wanted);
  assert_true(choice.automatic);
  cx_pjrt_choice_free(&choice);
}

static void test_automatic(void **state)
{
  (void)state;
  char path[128];
  char root[128];
  join(root, sizeof root, "machine");
  setenv("CALX_PLUGIN_DIR", root, 1);
  copy_fake("machine/xla-cpu-0.106/libpjrt_cpu.so", path, sizeof path);
  if (!cx_file_exists("/usr/lib/libtpu.so")) {
    check_choice("dev_tpu", "accel0", "cpu");  // a chip, but no libtpu
  }
  check_choice("dev_card", "nvidia0", "cpu");
  copy_fake("machine/cuda/xla_cuda_plugin.so", path, sizeof path);
  copy_fake("machine/libtpu/libtpu.so", path, sizeof path);
  check_choice("dev_none", NULL, "cpu");  // plugins, but no devices
  check_choice("dev_card", NULL, "cuda");
  check_choice("dev_tpu", "accel0", "tpu");
  check_choice("dev_tpu", "nvidia0", "tpu");
  check_choice("dev_vfio", "vfio/0", "tpu");
}

static void test_automatic_is_said_once(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake("xla-cpu-0.106/libpjrt_cpu.so", path, sizeof path);
  calx_log_set(keep_log, NULL);
  log_text[0] = '\0';
  CHECK_OK(cx_pjrt_plugin_open(path, &p));
  assert_string_equal(log_text, "");
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  calx_log_set(NULL, NULL);
  assert_non_null(strstr(log_text, "device: plugin"));
  assert_non_null(strstr(log_text, "PJRT_DEVICE"));
  assert_ptr_equal(strchr(log_text, '\n') + 1, log_text + strlen(log_text));
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
    { .name = "memory_fraction", .type = CX_PJRT_FLOAT, .float_value = 0.5F },
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

static int remove_folder(void **state)
{
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void)
{
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/calx-load-XXXXXX",
           temporary == NULL ? "/tmp" : temporary);
  if (mkdtemp(folder) == NULL) return 1;
  const struct CMUnitTest tests[] = {
    LOAD_TEST(test_path),
    LOAD_TEST(test_attributes),
    LOAD_TEST(test_hash),
    LOAD_TEST(test_not_a_plugin),
    LOAD_TEST(test_versions),
    LOAD_TEST(test_needed_slots),
    LOAD_TEST(test_initialize_fails),
    LOAD_TEST(test_names),
    LOAD_TEST(test_user_cache),
    LOAD_TEST(test_registered_names),
    LOAD_TEST(test_environment),
    LOAD_TEST(test_automatic),
    LOAD_TEST(test_automatic_is_said_once),
    LOAD_TEST(test_threads_open_one),
    LOAD_TEST(test_client_options),
  };
  return cmocka_run_group_tests(tests, NULL, remove_folder);
}
