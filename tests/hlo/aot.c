// The builder's programs through the compilers for a TPU v5e and an H200, which
// need no device: nothing that calx writes is refused there. The plugin's path
// is in CALX_PLUGIN. Each compiles in a process of its own: these compilers end
// the process over what they do not expect.
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "hlo/check.h"
#include "hlo/programs.h"
#include "pjrt/pjrt.h"

static calx_status *compile(bool is_tpu, const cx_text *text)
{
  cx_pjrt_plugin *plugin = NULL;
  char *config = NULL;
  size_t size = 0;
  const cx_pjrt_compile_options one = { .num_replicas = 1 };
  CALX_TRY(cx_pjrt_plugin_open(NULL, &plugin));
  if (is_tpu) {
    return cx_pjrt_compile_for(plugin, "v5e:1x1", NULL, 0, text->data,
                               text->size, &one, NULL, NULL, NULL);
  }
  CALX_TRY(cx_file_read(CX_H200_TARGET, 1 << 16, &config, &size));
  const cx_pjrt_option options[] = {
    { .name = "target_config", .type = CX_PJRT_STRING, .string_value = config },
    { .name = "topology", .type = CX_PJRT_STRING, .string_value = "1x1x1" },
  };
  return cx_pjrt_compile_for(plugin, "cuda", options, 2, text->data, text->size,
                             &one, NULL, NULL, NULL);
}

// Whether a child could compile it.
static bool check_program(bool is_tpu, const program *p)
{
  cx_hlo_module *m = NULL;
  cx_text text = { 0 };
  CHECK_OK(program_module(p, &m));
  cx_hlo_print(m, &text);
  cx_hlo_module_free(m);
  fflush(stdout);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    calx_status *status = compile(is_tpu, &text);
    if (status != NULL) {
      printf("%s: ", p->name);
      calx_status_print(stdout, status);
      fflush(stdout);
    }
    _exit(status == NULL ? 0 : 1);  // no destructors of the plugin's
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  cx_text_free(&text);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_compile(void **state)
{
  (void)state;
  const char *path = getenv("CALX_PLUGIN");
  assert_non_null(path);
  const bool is_tpu = strstr(path, "libtpu") != NULL;
  size_t refused = 0;
  for (size_t i = 0; i < n_programs; i++) {
    refused += !check_program(is_tpu, &programs[i]);
  }
  print_message("%zu programs, %zu refused\n", n_programs, refused);
  assert_int_equal(refused, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { CHECK_TEST(test_compile) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
