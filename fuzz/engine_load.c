// fuzz/engine_load: any bytes as a saved program.
//
// Each input is loaded as it is, and once more with its hash made right, so
// that what lies behind the hash is seen too. What loads is not run: its code
// may be anything. Built with -fsanitize=fuzzer this is libFuzzer's entry;
// fuzz/engine_main.c makes saved programs of a corpus of texts.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "engine_main.h"
#include "lower/compile.h"
#include "run/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cpu_threads *pool;

static void check(int right)
{
  if (!right) abort();
}

static void load(const void *data, size_t size)
{
  cpu_run_program *p = NULL;
  calx_status *status = cpu_run_program_load(data, size, pool, &p);
  check((status == NULL) == (p != NULL));
  if (status != NULL) check(calx_status_message(status)[0] != '\0');
  calx_status_free(status);
  cpu_run_program_free(p);
  check(cx_status_live() == 0);
}

static void start(void)
{
  if (pool == NULL) check(cpu_threads_new(1, &pool) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  start();
  load(data, size);
  if (size == 0) return 0;
  unsigned char *right = malloc(size);
  check(right != NULL);
  memcpy(right, data, size);
  cpu_run_program_seal(right, size);
  load(right, size);
  free(right);
  return 0;
}

size_t engine_main_prepare(unsigned char *data, size_t size, size_t most)
{
  start();
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  cx_text bytes = { 0 };
  calx_status *status =
      cpu_lower_compile((const char *)data, size, &options, &p);
  if (status == NULL) status = cpu_run_program_save(p, &bytes);
  check(status == NULL && bytes.size <= most);
  memcpy(data, bytes.data, bytes.size);
  const size_t n = bytes.size;
  cx_text_free(&bytes);
  cpu_run_program_free(p);
  return n;
}
