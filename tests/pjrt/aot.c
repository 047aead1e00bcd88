// aot: programs compiled for devices that are not here, by libtpu for a TPU v5e
// and by the CUDA plugin for an H200 (tools/h200_target.txt). The plugin's path
// is in CALX_PLUGIN.
//
// Each case runs in a process of its own: these compilers end the process over
// what they do not expect.
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "pjrt/internal.h"
#include "programs.h"

static const char *path;
static bool is_tpu;

typedef struct target {
  const char *topology;
  cx_pjrt_option options[2];
  size_t n_options;
  char *text;  // of the target's description
} target;

static calx_status *target_make(int devices, target *out)
{
  *out = (target){ .topology = devices == 1 ? "v5e:1x1" : "v5e:2x2" };
  if (is_tpu) return NULL;
  size_t size = 0;
  CALX_TRY(cx_file_read(CX_H200_TARGET, 1 << 16, &out->text, &size));
  out->topology = "cuda";
  out->options[0] = (cx_pjrt_option){ .name = "target_config",
                                      .type = CX_PJRT_STRING,
                                      .string_value = out->text };
  out->options[1] =
      (cx_pjrt_option){ .name = "topology",
                        .type = CX_PJRT_STRING,
                        .string_value = devices == 1 ? "1x1x1" : "1x1x4" };
  out->n_options = 2;
  return NULL;
}

static calx_status *compile(const char *text, int replicas,
                            const char *topology)
{
  cx_pjrt_plugin *plugin = NULL;
  target t = { 0 };
  char *bytes = NULL;
  size_t size = 0;
  cx_pjrt_executable_stats stats;
  cx_pjrt_compile_options options = { .num_replicas = replicas };
  calx_status *status = cx_pjrt_plugin_open(path, &plugin);
  if (status == NULL) status = target_make(replicas, &t);
  if (status == NULL) {
    status = cx_pjrt_compile_for(
        plugin, topology == NULL ? t.topology : topology, t.options,
        t.n_options, text, strlen(text), &options, &bytes, &size, &stats);
  }
  if (status == NULL) {
    printf("%d replicas: %zu bytes; arguments %lld, temporaries %lld\n",
           replicas, size, (long long)stats.arguments,
           (long long)stats.temporaries);
    if (size < 100 || stats.arguments < 0) {
      status = cx_error(CALX_INTERNAL, "too little came out");
    }
  }
  cx_free(bytes);
  cx_free(t.text);
  return status;
}

// Whether the child ended with the wanted code and text.
static void check_child(const char *text, int replicas, const char *topology,
                        calx_code code, const char *piece)
{
  fflush(stdout);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    calx_status *status = compile(text, replicas, topology);
    bool right = calx_status_code(status) == code &&
                 strstr(calx_status_message(status), piece) != NULL;
    if (!right) calx_status_print(stdout, status);
    fflush(stdout);
    _exit(right ? 0 : 1);  // no destructors of the plugin's
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_one_device(void **state)
{
  (void)state;
  check_child(DONATING_ADD("tensor<4xf32>"), 1, NULL, CALX_OK, "ok");
}

static void test_four_devices(void **state)
{
  (void)state;
  check_child(ALL_REDUCE_4("tensor<4xf32>"), 4, NULL, CALX_OK, "ok");
}

static void test_refusal(void **state)
{
  (void)state;
  check_child(BINARY("nonsense", "tensor<4xf32>"), 1, NULL, CALX_UNKNOWN,
              "nonsense");
  if (is_tpu) {
    check_child(BINARY("add", "tensor<4xf32>"), 1, "v5e:3x3",
                CALX_INVALID_ARGUMENT, "topology 'v5e:3x3'");
  }
}

int main(void)
{
  path = getenv("CALX_PLUGIN");
  if (path == NULL) {
    printf("skipped: no plugin is given in CALX_PLUGIN\n");
    return 77;
  }
  is_tpu = cx_pjrt_kind_of(NULL, path) == CX_PJRT_KIND_TPU;
  const struct CMUnitTest tests[] = {
    CHECK_TEST(test_one_device),
    CHECK_TEST(test_four_devices),
    CHECK_TEST(test_refusal),
  };
  return cmocka_run_group_tests_name(path, tests, NULL, NULL);
}
