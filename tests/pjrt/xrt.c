// xrt: the variables of PyTorch/XLA's former runtime, as scripts of that time
// set them: what is translated, and the one line that says so.
#include "copies.h"

#include "base/alloc.h"

static char log_text[2048];

static void keep_log(void *user, const char *line)
{
  (void)user;
  size_t n = strlen(log_text);
  snprintf(log_text + n, sizeof log_text - n, "%s\n", line);
}

static void check_choice(const char *name, const char *old)
{
  cx_pjrt_choice choice;
  char none[128];
  join(none, sizeof none, "dev_without_devices");
  CHECK_OK(cx_pjrt_find(NULL, none, &choice));
  assert_string_equal(choice.name, name);
  if (old == NULL) {
    assert_null(choice.old);
  } else {
    assert_non_null(choice.old);
    assert_string_equal(choice.old, old);
  }
  cx_pjrt_choice_free(&choice);
}

#define TAKEN \
  " is of XRT, PyTorch/XLA's former runtime, and is taken as PJRT_DEVICE="
#define BY_VM "programs run on the TPU's own VM, see calx run --tpu"

// The lines of Lightning's page on TPUs.
static void test_tpu(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_choice choice;
  setenv("XRT_TPU_CONFIG", "localservice;0;localhost:51011", 1);
  setenv("TPU_LIBRARY_PATH", "/nowhere/libtpu.so", 1);
  if (!cx_file_exists("/usr/lib/libtpu.so")) {
    CHECK_FAILS(CALX_NOT_FOUND, cx_pjrt_find(NULL, "/dev", &choice),
                "plugin 'tpu' was not found", "as XRT_TPU_CONFIG says");
  }
  copy_fake("old/libtpu.so", path, sizeof path);
  setenv("TPU_LIBRARY_PATH", path, 1);
  check_choice("tpu", "XRT_TPU_CONFIG" TAKEN "TPU: set that instead");
  setenv("TPU_IP_ADDRESS", "10.39.209.42", 1);
  setenv("XRT_TPU_CONFIG", "tpu_worker;0;10.39.209.42:8470", 1);
  check_choice("tpu", "XRT_TPU_CONFIG" TAKEN
                      "TPU: set that instead (its address 10.39.209.42:8470 "
                      "has no effect: " BY_VM
                      "); without effect: "
                      "TPU_IP_ADDRESS (today: " BY_VM ")");
  unsetenv("TPU_IP_ADDRESS");
  setenv("XRT_TPU_CONFIG", "c_localservice;0;10.1.1.1:51011|c_localservice;1;…",
         1);
  check_choice("tpu", "XRT_TPU_CONFIG" TAKEN "TPU: set that instead");
  unsetenv("XRT_TPU_CONFIG");
  setenv("COLAB_TPU_ADDR", "10.0.0.2:8470", 1);
  check_choice("tpu", "COLAB_TPU_ADDR" TAKEN
                      "TPU: set that instead (its address 10.0.0.2:8470 has "
                      "no effect: " BY_VM ")");
}

static void test_device_map(void **state)
{
  (void)state;
  char path[128];
  copy_fake("cuda/xla_cuda_plugin.so", path, sizeof path);
  setenv("XRT_DEVICE_MAP",
         "CPU:0;/job:localservice/replica:0/task:0/device:XLA_CPU:0", 1);
  setenv("XRT_WORKERS", "localservice:0;grpc://localhost:40934", 1);
  check_choice("calx", "XRT_DEVICE_MAP" TAKEN
                       "CPU: set that instead; without effect: XRT_WORKERS "
                       "(today: PJRT_DEVICE=CPU, CUDA or TPU)");
  setenv("XRT_DEVICE_MAP",
         "CPU:0;/job:localservice/replica:0/task:0/device:XLA_CPU:0|GPU:0;/job:"
         "localservice/replica:0/task:0/device:XLA_GPU:0",
         1);
  unsetenv("XRT_WORKERS");
  check_choice("cuda", "XRT_DEVICE_MAP" TAKEN "CUDA: set that instead");
  // What names no device is said to have no effect.
  setenv("XRT_DEVICE_MAP", "NPU:0;/job:x", 1);
  check_choice("calx",
               "variables of PyTorch/XLA's former runtime without effect: "
               "XRT_DEVICE_MAP (today: PJRT_DEVICE=CPU, CUDA or TPU)");
}

static void test_without_effect(void **state)
{
  (void)state;
  check_choice("calx", NULL);
  setenv("XRT_SHARD_ORDINAL", "3", 1);
  setenv("XRT_SHARD_WORLD_SIZE", "8", 1);
  setenv("XLA_USE_BF16", "1", 1);
  static const char bf16[] =
      "XLA_USE_BF16 (today: calx_autocast_begin(CALX_BF16), or the trainer's "
      ".precision = \"bf16-true\")";
  static const char head[] =
      "variables of PyTorch/XLA's former runtime without effect: ";
  char line[512];
  snprintf(line, sizeof line,
           "%sXRT_SHARD_WORLD_SIZE, XRT_SHARD_ORDINAL (today: calx_launch and "
           "calx run number the ranks), %s",
           head, bf16);
  check_choice("calx", line);
  // Who names a device of today is told of what else he may miss.
  setenv("XRT_TPU_CONFIG", "localservice;0;localhost:51011", 1);
  setenv("PJRT_DEVICE", "CPU", 1);
  snprintf(line, sizeof line, "%s%s", head, bf16);
  check_choice("calx", line);
  setenv("XLA_USE_BF16", "0", 1);
  check_choice("calx", NULL);
}

static void test_said_once(void **state)
{
  (void)state;
  char path[128];
  cx_pjrt_plugin *p = NULL;
  copy_fake("once/libtpu.so", path, sizeof path);
  setenv("TPU_LIBRARY_PATH", path, 1);
  setenv("XRT_TPU_CONFIG", "localservice;0;localhost:51011", 1);
  calx_log_set(keep_log, NULL);
  log_text[0] = '\0';
  setenv("CALX_QUIET", "1", 1);
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  assert_string_equal(log_text, "");
  unsetenv("CALX_QUIET");
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  CHECK_OK(cx_pjrt_plugin_open(NULL, &p));
  calx_log_set(NULL, NULL);
  assert_string_equal(cx_pjrt_plugin_path(p), path);
  assert_string_equal(log_text,
                      "device: XRT_TPU_CONFIG" TAKEN "TPU: set that instead\n");
}

static void test_no_memory(void **state)
{
  (void)state;
  setenv("XRT_SHARD_ORDINAL", "3", 1);
  cx_pjrt_choice choice;
  for (long n = 0;; n++) {
    assert_true(n < 100);
    cx_alloc_fail_at(n);
    calx_status *status = cx_pjrt_find(NULL, "/dev/null", &choice);
    cx_alloc_fail_at(-1);
    if (status == NULL) break;
    CHECK_FAILS(CALX_RESOURCE_EXHAUSTED, status, "memory");
  }
  assert_non_null(choice.old);
  cx_pjrt_choice_free(&choice);
}

int main(void)
{
  copies_begin();
  const struct CMUnitTest tests[] = {
    COPIES_TEST(test_tpu),
    COPIES_TEST(test_device_map),
    COPIES_TEST(test_without_effect),
    COPIES_TEST(test_said_once),
    COPIES_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, copies_end);
}
