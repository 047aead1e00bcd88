// find: which plugin a name, the environment or the machine means.
#include <sys/stat.h>

#include "copies.h"

static char log_text[1024];

static void keep_log(void *user, const char *line)
{
  (void)user;
  size_t n = strlen(log_text);
  snprintf(log_text + n, sizeof log_text - n, "%s\n", line);
}

// ---- by name ----

static void test_names(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_plugin_open("xla-cpu", &p), "'xla-cpu'",
              folder, "xla-cpu-0.106/libpjrt_cpu.so",
              "xla-cpu-0.81/xla_cpu_pjrt.so", "./dev setup --engines",
              "CALX_PLUGIN");
  copy_fake("xla-cpu-0.81/xla_cpu_pjrt.so", path, sizeof path);
  CHECK_OK(cx_pjrt_plugin_open("xla-cpu", &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "xla-cpu");
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  copy_fake("xla-cpu-0.106/libpjrt_cpu.so", path, sizeof path);
  CHECK_OK(cx_pjrt_plugin_open("XLA-CPU", &p));  // the newer one comes first
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  // The library's own engine is always there.
  CHECK_OK(cx_pjrt_plugin_open("CPU", &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "calx");
  assert_true(cx_file_exists(cx_pjrt_plugin_path(p)));
  cx_pjrt_plugin *own = NULL;
  CHECK_OK(cx_pjrt_plugin_open("calx", &own));
  assert_ptr_equal(own, p);
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

// What others may write, or have written, is not loaded by its name.
static void test_others_may_write(void **state)
{
  (void)state;
  char path[128], root[128];
  cx_pjrt_choice choice;
  join(root, sizeof root, "shared");
  setenv("CALX_PLUGIN_DIR", root, 1);
  copy_fake("shared/cuda/xla_cuda_plugin.so", path, sizeof path);
  const mode_t modes[] = { 0664, 0646, 0777 };
  for (int i = 0; i < 3; i++) {
    assert_int_equal(chmod(path, modes[i]), 0);
    CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_find("cuda", "/dev", &choice),
                "not taken: others may write it");
  }
  assert_int_equal(chmod(path, 0644), 0);
  CHECK_OK(cx_pjrt_find("cuda", "/dev", &choice));
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
  setenv("PJRT_DEVICE", "CPU", 1);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(cx_pjrt_plugin_name(p), "calx");
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
  if (strcmp(wanted, "calx") == 0 && file != NULL) {
    assert_non_null(choice.unused);
    assert_non_null(strstr(choice.unused, " is not used: its plugin "));
    assert_non_null(strstr(choice.unused, "./dev setup --engines"));
  } else if (file != NULL) {
    assert_null(choice.unused);
  }
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
    check_choice("dev_tpu", "accel0", "calx");  // a chip, but no libtpu
  }
  check_choice("dev_card", "nvidia0", "calx");
  copy_fake("machine/cuda/xla_cuda_plugin.so", path, sizeof path);
  copy_fake("machine/libtpu/libtpu.so", path, sizeof path);
  check_choice("dev_none", NULL, "calx");  // plugins, but no devices
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
  setenv("CALX_QUIET", "1", 1);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(log_text, "");
  unsetenv("CALX_QUIET");
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  calx_log_set(NULL, NULL);
  assert_non_null(strstr(log_text, "device: plugin"));
  assert_non_null(strstr(log_text, "PJRT_DEVICE"));
  assert_ptr_equal(strchr(log_text, '\n') + 1, log_text + strlen(log_text));
}

// A folder that stands for /dev, with a card.
static void use_card(const char *name)
{
  static char dev[128];
  char node[160];
  join(dev, sizeof dev, name);
  snprintf(node, sizeof node, "%s/nvidia0", dev);
  write_file(node, "", 0);
  chmod(node, 0666);  // as the driver makes it
  cx_pjrt_set_dev(dev);
}

// /dev/vfio alone is no TPU; with Google's chip on the bus it is.
static void test_vfio(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_choice choice;
  if (cx_file_exists("/usr/lib/libtpu.so")) skip();
  join(path, sizeof path, "no_plugins");
  setenv("CALX_PLUGIN_DIR", path, 1);
  join(path, sizeof path, "bus/dev/vfio/vfio");
  write_file(path, "", 0);
  for (int chip = 0; chip < 2; chip++) {
    join(path, sizeof path, "bus/sys/bus/pci/devices/0000:00:04.0/vendor");
    write_file(path, "0x1ae0\n", 7);
    join(path, sizeof path, "bus/sys/bus/pci/devices/0000:00:04.0/device");
    write_file(path, chip ? "0x0063\n" : "0x0042\n", 7);  // v5e; a network's
    join(path, sizeof path, "bus/dev");
    CHECK_OK(cx_pjrt_find(NULL, path, &choice));
    assert_string_equal(choice.name, "calx");
    assert_int_equal(choice.unused != NULL, chip);
    if (chip) assert_non_null(strstr(choice.unused, "a TPU (under "));
    cx_pjrt_choice_free(&choice);
  }
}

// CALX_QUIET does not hide that a card has no plugin.
static void test_unused_is_said_once(void **state)
{
  (void)state;
  char empty[128];
  cx_pjrt_plugin *p = NULL;
  join(empty, sizeof empty, "no_plugins");
  setenv("CALX_PLUGIN_DIR", empty, 1);
  use_card("dev_unused");
  calx_log_set(keep_log, NULL);
  log_text[0] = '\0';
  setenv("CALX_QUIET", "1", 1);
  CHECK_OK(cx_pjrt_plugin_open("calx", &p));
  assert_string_equal(log_text, "");
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  calx_log_set(NULL, NULL);
  unsetenv("CALX_QUIET");
  cx_pjrt_set_dev(NULL);
  assert_string_equal(cx_pjrt_plugin_name(p), "calx");
  assert_non_null(strstr(log_text, "device: an NVIDIA card (under "));
  assert_non_null(strstr(log_text, "its plugin 'cuda' was not found"));
  assert_non_null(strstr(log_text, empty));
  assert_non_null(strstr(log_text, "./dev setup --engines"));
  assert_ptr_equal(strchr(log_text, '\n') + 1, log_text + strlen(log_text));
}

// One whose plugin does not load, or makes no client, is an error that says how
// to do without; what was asked for has the plugin's words alone.
static void test_unusable(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  cx_pjrt_client *client = NULL;
  use_card("dev_unusable");
  join(path, sizeof path, "cuda/xla_cuda_plugin.so");
  write_file(path, "no library", 10);
  CHECK_FAILS(CALX_INVALID_ARGUMENT, cx_pjrt_plugin_open(NULL, &p), path,
              "plugin 'cuda' was chosen for the accelerator",
              "not an ELF shared object", "CALX_PLUGIN=calx");
  copy_fake("cuda/xla_cuda_plugin.so", path, sizeof path);
  fake f = fake_open(path);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_true(f.set("fail=PJRT_Client_Create@1:14:no driver"));
  CHECK_FAILS(CALX_UNAVAILABLE, cx_pjrt_client_open(p, NULL, &client),
              "no driver", "plugin 'cuda' was chosen for the accelerator",
              "CALX_PLUGIN=calx");
  cx_pjrt_set_dev(NULL);
}

int main(void)
{
  copies_begin();
  const struct CMUnitTest tests[] = {
    COPIES_TEST(test_names),
    COPIES_TEST(test_user_cache),
    COPIES_TEST(test_others_may_write),
    COPIES_TEST(test_registered_names),
    COPIES_TEST(test_environment),
    COPIES_TEST(test_automatic),
    COPIES_TEST(test_automatic_is_said_once),
    COPIES_TEST(test_unused_is_said_once),
    COPIES_TEST(test_vfio),
    COPIES_TEST(test_unusable),
  };
  return cmocka_run_group_tests(tests, NULL, copies_end);
}
