// fuzz/hlo_parse: any bytes as a program.
//
// What is accepted must print, and read back to the same text, and the verifier
// must come to an end. As bytecode it must read back to a program that is
// written to the same bytes. What is refused must say why. Nothing may be left.
// The reader of the entry's signature gets the same bytes. Built with
// -fsanitize=fuzzer this is libFuzzer's entry; fuzz/hlo_parse_main.c runs it
// over a corpus without one.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "hlo/bytecode_write.h"
#include "hlo/parse.h"
#include "hlo/print.h"
#include "hlo/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

static void check_refusal(calx_status *status)
{
  const calx_code code = calx_status_code(status);
  check(code == CALX_INVALID_ARGUMENT || code == CALX_UNIMPLEMENTED);
  check(calx_status_message(status)[0] != '\0');
  calx_status_free(status);
}

static void print_again(const cx_hlo_module *m)
{
  cx_text once = { 0 };
  cx_text twice = { 0 };
  cx_hlo_module *again = NULL;
  cx_hlo_print(m, &once);
  check(!cx_text_failed(&once));
  calx_status *status = cx_hlo_parse(once.data, once.size, "again", &again);
  check(status == NULL);
  cx_hlo_print(again, &twice);
  check(once.size == twice.size &&
        memcmp(once.data, twice.data, once.size) == 0);
  cx_hlo_module_free(again);
  cx_text_free(&once);
  cx_text_free(&twice);
}

// The bounds of one file: what text keeps within may be beyond them in
// bytecode, where all parts of an attribute are entries.
static int is_bound(const calx_status *status)
{
  const char *message = calx_status_message(status);
  return strstr(message, "nests deeper") != NULL ||
         (strstr(message, "more than") != NULL &&
          (strstr(message, " parts") != NULL ||
           strstr(message, " bytes") != NULL));
}

static cx_hlo_module *read_back(const cx_text *bytes)
{
  cx_hlo_module *m = NULL;
  calx_status *status = cx_hlo_parse(bytes->data, bytes->size, "again", &m);
  check(status == NULL || is_bound(status));
  calx_status_free(status);
  return m;
}

// Once through bytecode, defaults are absent. From then on nothing changes.
static void write_again(const cx_hlo_module *m)
{
  cx_text once = { 0 };
  cx_text twice = { 0 };
  cx_text thrice = { 0 };
  calx_status *status = cx_hlo_write_bytecode(m, &once);
  cx_hlo_module *again = status == NULL ? read_back(&once) : NULL;
  if (status != NULL) check_refusal(status);
  if (again != NULL) {
    check(cx_hlo_write_bytecode(again, &twice) == NULL);
    cx_hlo_module *last = read_back(&twice);
    if (last != NULL) {
      check(cx_hlo_write_bytecode(last, &thrice) == NULL);
      check(twice.size == thrice.size &&
            memcmp(twice.data, thrice.data, twice.size) == 0);
    }
    cx_hlo_module_free(last);
  }
  cx_hlo_module_free(again);
  cx_text_free(&once);
  cx_text_free(&twice);
  cx_text_free(&thrice);
}

static void parse(const char *text, size_t size)
{
  cx_hlo_module *m = NULL;
  calx_status *status = cx_hlo_parse(text, size, "input", &m);
  if (status != NULL) {
    check(m == NULL);
    check_refusal(status);
    return;
  }
  print_again(m);
  write_again(m);
  status = cx_hlo_verify(m);
  if (status != NULL) check_refusal(status);
  cx_hlo_module_free(m);
}

static void parse_signature(const char *text, size_t size)
{
  cx_hlo_signature s;
  calx_status *status = cx_hlo_parse_signature(text, size, "input", &s);
  if (status != NULL) {
    check(s.name == NULL && s.n_params == 0);
    check_refusal(status);
  } else {
    check(s.name != NULL);
  }
  cx_hlo_signature_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const long blocks = cx_alloc_live();
  parse((const char *)data, size);
  parse_signature((const char *)data, size);
  check(cx_alloc_live() == blocks);
  check(cx_status_live() == 0);
  return 0;
}
