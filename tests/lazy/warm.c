// warm: a process that finds its programs on disk loads no compiler. LLVM is a
// hundred megabytes; it is loaded when a program is compiled, never before.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "calx/calx.h"

enum { HITS = 10, COMPILER = 11 };  // exit statuses of a child, from 10 on

static bool is_loaded(const char *library)
{
  char line[4096];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return true;
  while (fgets(line, sizeof line, maps) != NULL) {
    found = found || strstr(line, library) != NULL;
  }
  fclose(maps);
  return found;
}

// A step of training: generated loops, products and random numbers.
static calx_status *train(void)
{
  calx_scope *scope = calx_scope_begin();
  calx_module *m = calx_nn_linear(NULL, NULL, 8, 4);
  calx_optimizer *opt = calx_adam(m, .lr = 0.01);
  for (int i = 0; i < 2; i++) {
    calx_optimizer_zero_grad(opt);
    calx_tensor *y = calx_forward(m, calx_randn(CALX_SHAPE(16, 8)));
    calx_tensor *loss = calx_mean(calx_exp(calx_relu(y)));
    calx_backward(loss);
    calx_optimizer_step(opt);
    calx_sync(loss);
    if (!(calx_item(loss) > 0)) abort();
  }
  calx_optimizer_free(opt);
  calx_module_free(m);
  return calx_scope_end(scope);
}

static int child(void)
{
  calx_status *status = train();
  calx_status_print(stderr, status);
  if (status != NULL) return 1;
  int code = 0;
  if (is_loaded("libLLVM") || is_loaded("libcalx_jit")) code = COMPILER;
  if (calx_counter_value("PersistentCacheMiss") == 0 &&
      calx_counter_value("PersistentCacheHit") > 0) {
    if (code == 0) code = HITS;
  } else if (code == 0) {
    code = 2;
  }
  return code;
}

static int run(const char *how)
{
  char self[1024], command[2048];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(n > 0);
  self[n] = '\0';
  snprintf(command, sizeof command, "'%s' %s", self, how);
  const int status = system(command);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

// The first compiles; the second finds all of it. The first says that what is
// looked for is there to be found.
static void test_warm_process(void **state)
{
  (void)state;
  char folder[512];
  snprintf(folder, sizeof folder, "%s/warm", getenv("TMPDIR"));
  setenv("CALX_CACHE_DIR", folder, 1);
  assert_int_equal(run("child"), COMPILER);
  assert_int_equal(run("child"), HITS);
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "child") == 0) return child();
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_warm_process) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
