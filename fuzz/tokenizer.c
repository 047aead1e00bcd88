// fuzz/tokenizer: any bytes as a vocabulary, a list of merges and a text, with
// a zero byte between them.
//
// What is accepted makes tokens of the text that make the text again. What is
// refused says why and leaves nothing. Built with -fsanitize=fuzzer this is
// libFuzzer's entry; fuzz/idx_main.c runs it over a corpus without one.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right)
{
  if (!right) abort();
}

// The part up to the next zero byte.
static const char *part(const uint8_t **data, size_t *size, size_t *out_bytes)
{
  const char *begin = (const char *)*data;
  const uint8_t *end = *size > 0 ? memchr(*data, 0, *size) : NULL;
  *out_bytes = end != NULL ? (size_t)(end - *data) : *size;
  size_t used = *out_bytes + (end != NULL);
  *data += used;
  *size -= used;
  return begin;
}

static void encode(const calx_tokenizer *t, const char *text, size_t bytes)
{
  int32_t *tokens;
  size_t count, at = 0;
  calx_status *status = cx_data_tokenize(t, text, bytes, &tokens, &count);
  for (size_t i = 0; i < count; i++) {
    check(tokens[i] >= 0 && tokens[i] < t->size);
    const cx_data_token *token = &t->tokens[tokens[i]];
    check(token->bytes > 0 && token->bytes <= bytes - at);
    check(memcmp(t->texts + token->begin, text + at, token->bytes) == 0);
    at += token->bytes;
  }
  check(status != NULL || at == bytes);
  check(calx_status_code(status) == CALX_OK ||
        calx_status_code(status) == CALX_INVALID_ARGUMENT);
  calx_status_free(status);
  cx_free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  long blocks = cx_alloc_live();
  size_t vocab_bytes, merges_bytes, text_bytes;
  const char *vocab = part(&data, &size, &vocab_bytes);
  const char *merges = part(&data, &size, &merges_bytes);
  const char *text = part(&data, &size, &text_bytes);
  calx_tokenizer t = { 0 };
  calx_status *status = cx_data_tokenizer_load(&t, "vocab", vocab, vocab_bytes,
                                               "merges", merges, merges_bytes);
  if (status == NULL) {
    encode(&t, text, text_bytes);
  } else {
    check(calx_status_code(status) == CALX_DATA_LOSS);
    check(calx_status_message(status)[0] != '\0');
  }
  calx_status_free(status);
  cx_data_tokenizer_clear(&t);
  check(cx_alloc_live() == blocks);
  return 0;
}
