// torch: a Python that has PyTorch answers. CALX_TEST_PLUGIN_TORCH names it.
#ifndef CX_TESTS_SUPPORT_TORCH_H
#define CX_TESTS_SUPPORT_TORCH_H

#include "calx/io.h"
#include "io/files.h"
#include "support/support.h"

// Ends the test as failed where the variable is not set.
static inline const char *torch_python(void)
{
  const char *python = getenv("CALX_TEST_PLUGIN_TORCH");
  if (python == NULL) {
    printf("not set: CALX_TEST_PLUGIN_TORCH, a Python that has torch\n");
    exit(1);
  }
  return python;
}

// Runs a script of the test's folder with two file names; it must succeed.
static inline void torch_run(const char *script, const char *from,
                             const char *to)
{
  char command[2048];
  int n = snprintf(command, sizeof command, "'%s' -B '%s/%s' '%s' '%s'",
                   torch_python(), CX_TEST_DIR, script, from, to);
  assert_in_range(n, 1, sizeof command - 1);
  assert_int_equal(system(command), 0);
}

// The script compares the value, which is freed, with PyTorch's results.
static inline void torch_check(calx_value *value, const char *script)
{
  const char *from = file_in_folder("calx.pt");
  CHECK_STATUS_OK(calx_save(value, from));
  calx_value_free(value);
  torch_run(script, from, "");
  files_in_folder(true);
}

// What the script makes of the value, which is freed.
static inline calx_value *torch_ask(calx_value *value, const char *script)
{
  const char *from = file_in_folder("calx.pt"),
             *to = file_in_folder("torch.pt");
  calx_value *answer;
  CHECK_STATUS_OK(calx_save(value, from));
  calx_value_free(value);
  torch_run(script, from, to);
  CHECK_STATUS_OK(calx_load(to, &answer));
  files_in_folder(true);
  return answer;
}

#endif
