#include "compiled.h"

#include <string.h>

cpu_threads *pool;

int pool_begin(void **state)
{
  (void)state;
  CHECK_STATUS_OK(cpu_threads_new(2, &pool));
  return 0;
}

int pool_end(void **state)
{
  (void)state;
  cpu_threads_free(pool);
  return 0;
}

cpu_run_program *compiled(cx_text *text)
{
  const char *t = cx_text_str(text);
  cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  CHECK_STATUS_OK(cpu_lower_compile(t, strlen(t), &options, &p));
  assert_int_equal(cpu_run_program_info_of(p)->n_interpreted, 0);
  cx_text_free(text);
  return p;
}
