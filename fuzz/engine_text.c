// fuzz/engine_text: any bytes as a program for the CPU engine.
//
// What compiles is run when it is small, on zeros, and gives the same bytes
// after it was saved and loaded; what does not compile says why. Programs with
// loops are compiled only: they need not end. Built with -fsanitize=fuzzer this
// is libFuzzer's entry; fuzz/engine_main.c runs it over a corpus without one.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "lower/compile.h"

enum { MOST_BYTES = 1 << 20, MOST_TENSORS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cpu_threads *pool;
static cpu_run_context *context;

static void check(int right)
{
  if (!right) abort();
}

static void check_refusal(calx_status *status)
{
  const calx_code code = calx_status_code(status);
  check(code == CALX_INVALID_ARGUMENT || code == CALX_UNIMPLEMENTED ||
        code == CALX_RESOURCE_EXHAUSTED);
  check(calx_status_message(status)[0] != '\0');
  calx_status_free(status);
}

static size_t bytes_of(const cx_hlo_type *t)
{
  const int64_t n = cx_hlo_type_elements(t);
  if (n < 0 || n > MOST_BYTES) return SIZE_MAX;
  return (size_t)n * cx_hlo_elem_bytes(t->elem);
}

// Memory for the tensors, zeroed; false: too many or too large.
static bool make(const cx_hlo_type *types, size_t n, void **out)
{
  size_t total = 0;
  if (n > MOST_TENSORS) return false;
  for (size_t i = 0; i < n; i++) {
    const size_t size = bytes_of(&types[i]);
    if (size > MOST_BYTES || (total += size) > MOST_BYTES) return false;
  }
  for (size_t i = 0; i < n; i++) {
    const size_t size = bytes_of(&types[i]) / 64 * 64 + 64;
    out[i] = aligned_alloc(64, size);
    check(out[i] != NULL);
    memset(out[i], 0, size);
  }
  return true;
}

static void drop(void **data, size_t n)
{
  for (size_t i = 0; i < n; i++) free(data[i]);
}

static calx_status *run(const cpu_run_program *p, void *const *results)
{
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  void *args[MOST_TENSORS];
  if (!make(info->params, info->n_params, args)) return NULL;
  void *to[MOST_TENSORS];
  for (size_t i = 0; i < info->n_results; i++) {
    to[i] = info->alias[i] >= 0 ? args[info->alias[i]] : results[i];
  }
  calx_status *status = cpu_run_program_run(p, context, NULL, args, to);
  for (size_t i = 0; i < info->n_results; i++) {
    if (to[i] == results[i]) continue;
    memcpy(results[i], to[i], bytes_of(&info->results[i]));
  }
  drop(args, info->n_params);
  return status;
}

static void run_twice(cpu_run_program *p)
{
  const cpu_run_program_info *info = cpu_run_program_info_of(p);
  void *first[MOST_TENSORS], *second[MOST_TENSORS];
  if (info->has_collectives || info->arena_bytes > 16 * MOST_BYTES ||
      !make(info->results, info->n_results, first)) {
    return;
  }
  check(make(info->results, info->n_results, second));
  cx_text bytes = { 0 };
  cpu_run_program *again = NULL;
  calx_status *status = cpu_run_program_save(p, &bytes);
  check(status == NULL && !cx_text_failed(&bytes));
  status = cpu_run_program_load(bytes.data, bytes.size, pool, &again);
  check(status == NULL);
  calx_status *one = run(p, first), *two = run(again, second);
  check(calx_status_code(one) == calx_status_code(two));
  for (size_t i = 0; one == NULL && i < info->n_results; i++) {
    check(memcmp(first[i], second[i], bytes_of(&info->results[i])) == 0);
  }
  calx_status_free(one);
  calx_status_free(two);
  cpu_run_program_free(again);
  cx_text_free(&bytes);
  drop(first, info->n_results);
  drop(second, info->n_results);
}

static bool has(const uint8_t *data, size_t size, const char *word)
{
  return memmem(data, size, word, strlen(word)) != NULL;
}

static void start(void)
{
  check(cpu_threads_new(1, &pool) == NULL);
  check(cpu_run_context_new(pool, &context) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (pool == NULL) start();
  const cpu_lower_compile_options options = { .threads = pool };
  cpu_run_program *p = NULL;
  calx_status *status =
      cpu_lower_compile((const char *)data, size, &options, &p);
  if (status != NULL) {
    check(p == NULL);
    check_refusal(status);
  } else if (!has(data, size, "while")) {
    run_twice(p);
  }
  cpu_run_program_free(p);
  check(cx_status_live() == 0);
  return 0;
}
