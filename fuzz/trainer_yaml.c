// fuzz/trainer_yaml: any bytes as a YAML file of the trainer's options.
//
// What is accepted are options each of which a trainer takes, and keys of the
// program's as texts that a terminal may show. What is refused says why and
// leaves nothing. Built with -fsanitize=fuzzer this is libFuzzer's entry;
// fuzz/idx_main.c runs it over a corpus without one.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "train/options_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

static void check_text(const char *text)
{
  for (; *text != '\0'; text++) {
    check((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t');
  }
}

static calx_status *take_key(void *user, const char *key, const char *text)
{
  check(strlen(key) < 256);
  check_text(key);
  check_text(text);
  return ++*(int *)user > 100000 ? cx_invalid("too many") : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const long blocks = cx_alloc_live();
  const calx_trainer_options none = { .size = sizeof none };
  cx_train_given g;
  int keys = 0;
  check(cx_train_given_begin(&none, &g) == NULL);
  calx_status *status = cx_train_given_yaml(&g, "input", (const char *)data,
                                            size, take_key, &keys);
  check(keys <= 100000);
  if (status != NULL) {
    check(calx_status_code(status) == CALX_INVALID_ARGUMENT ||
          calx_status_code(status) == CALX_RESOURCE_EXHAUSTED);
    check(strstr(calx_status_message(status), "input:") != NULL);
  }
  calx_status_free(status);
  check(cx_alloc_live() == blocks);
  return 0;
}
