// data/tokenizer: tokenizers as objects.
#include "data/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "lazy/lazy.h"

#define MAX_TEXT ((size_t)1 << 30)
#define MAX_FILE ((size_t)256 << 20)

static calx_tokenizer no_memory;

// Takes the status; keeps nothing of a tokenizer that has failed.
static calx_tokenizer *keep(const calx_tokenizer *made, calx_status *status)
{
  calx_tokenizer *t = cx_alloc(sizeof *t);
  calx_tokenizer copy = *made;
  if (t == NULL || status != NULL) cx_data_tokenizer_clear(&copy);
  if (t == NULL) {
    calx_status_free(status);
    return &no_memory;
  }
  *t = copy;
  t->error = status;
  return t;
}

static calx_status *make_bytes(calx_tokenizer *t)
{
  t->size = 256;
  t->tokens = cx_calloc(256, sizeof *t->tokens);
  t->texts = cx_alloc(256);
  if (t->tokens == NULL || t->texts == NULL) return cx_out_of_memory();
  for (int i = 0; i < 256; i++) {
    t->of_byte[i] = i;
    t->texts[i] = (char)i;
    t->tokens[i] = (cx_data_token){ (size_t)i, 1 };
  }
  return NULL;
}

calx_tokenizer *calx_byte_tokenizer(void)
{
  calx_tokenizer t = { 0 };
  calx_status *status = make_bytes(&t);
  return keep(&t, status);
}

static calx_status *read_files(const char *vocab, const char *merges,
                               calx_tokenizer *t)
{
  if (vocab == NULL || merges == NULL) {
    return cx_invalid("gpt2 tokenizer: the path of the %s is NULL",
                      vocab == NULL ? "vocabulary" : "merges");
  }
  char *vocab_text, *merges_text;
  size_t vocab_bytes, merges_bytes;
  CALX_TRY(cx_file_read_regular(vocab, MAX_FILE, &vocab_text, &vocab_bytes));
  calx_status *status =
      cx_file_read_regular(merges, MAX_FILE, &merges_text, &merges_bytes);
  if (status == NULL) {
    status = cx_data_tokenizer_load(t, vocab, vocab_text, vocab_bytes, merges,
                                    merges_text, merges_bytes);
    cx_free(merges_text);
  }
  cx_free(vocab_text);
  return status;
}

calx_tokenizer *calx_gpt2_tokenizer(const char *vocab, const char *merges)
{
  calx_tokenizer t = { 0 };
  calx_status *status = read_files(vocab, merges, &t);
  return keep(&t, status);
}

void calx_tokenizer_free(calx_tokenizer *tokenizer)
{
  if (tokenizer == NULL || tokenizer == &no_memory) return;
  calx_status_free(tokenizer->error);
  cx_data_tokenizer_clear(tokenizer);
  cx_free(tokenizer);
}

const calx_status *calx_tokenizer_error(const calx_tokenizer *tokenizer)
{
  return tokenizer == &no_memory ? cx_out_of_memory()
         : tokenizer != NULL     ? tokenizer->error
                                 : NULL;
}

int64_t calx_tokenizer_size(const calx_tokenizer *tokenizer)
{
  return tokenizer != NULL ? tokenizer->size : 0;
}

int64_t calx_tokenizer_id(const calx_tokenizer *tokenizer, const char *text)
{
  if (tokenizer == NULL || tokenizer->size == 0 || text == NULL) return -1;
  return cx_data_token_find(tokenizer, text, strlen(text));
}

// ---- texts ------------------------------------------------------------------

static calx_status *check(const char *call, const calx_tokenizer *tokenizer)
{
  if (tokenizer == NULL) return cx_invalid("%s: the tokenizer is NULL", call);
  return cx_status_copy(calx_tokenizer_error(tokenizer));
}

static calx_status *encode(const calx_tokenizer *tokenizer, const char *text,
                           size_t bytes, int64_t **out, size_t *out_count)
{
  int32_t *tokens;
  *out = NULL;
  CALX_TRY(check("tokenizer_encode", tokenizer));
  if (text == NULL && bytes > 0) {
    return cx_invalid("tokenizer_encode: the text is NULL");
  }
  if (bytes > MAX_TEXT) {
    return cx_invalid("tokenizer_encode: a text of %zu bytes, the most is %zu",
                      bytes, MAX_TEXT);
  }
  CALX_TRY(cx_data_tokenize(tokenizer, text, bytes, &tokens, out_count));
  *out = cx_calloc(*out_count + 1, sizeof **out);
  for (size_t i = 0; *out != NULL && i < *out_count; i++) (*out)[i] = tokens[i];
  cx_free(tokens);
  return *out != NULL ? NULL : cx_out_of_memory();
}

calx_tensor *calx_tokenizer_encode(const calx_tokenizer *tokenizer,
                                   const char *text, size_t bytes)
{
  int64_t *tokens;
  size_t count;
  calx_status *status = encode(tokenizer, text, bytes, &tokens, &count);
  if (status != NULL) return cx_lazy_tensor_poison(status);
  const int64_t dims[] = { (int64_t)count };
  calx_tensor *t = calx_host_tensor(tokens, CALX_I64, calx_dims_of(dims, 1));
  cx_free(tokens);
  return t;
}

static calx_status *count_bytes(const calx_tokenizer *tokenizer,
                                const int64_t *tokens, size_t count,
                                size_t *out_bytes)
{
  *out_bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (tokens[i] < 0 || tokens[i] >= tokenizer->size) {
      return cx_invalid(
          "tokenizer_decode: number %zu is %lld, there are %lld tokens", i,
          (long long)tokens[i], (long long)tokenizer->size);
    }
    if (!cx_add_size(*out_bytes, tokenizer->tokens[tokens[i]].bytes,
                     out_bytes)) {
      return cx_out_of_memory();
    }
  }
  return NULL;
}

calx_status *calx_tokenizer_decode(const calx_tokenizer *tokenizer,
                                   const int64_t *tokens, size_t count,
                                   char **out_text, size_t *out_bytes)
{
  size_t bytes;
  if (out_text == NULL) {
    return cx_invalid("tokenizer_decode: out_text is NULL");
  }
  *out_text = NULL;
  if (out_bytes != NULL) *out_bytes = 0;
  CALX_TRY(check("tokenizer_decode", tokenizer));
  if (tokens == NULL && count > 0) {
    return cx_invalid("tokenizer_decode: the tokens are NULL");
  }
  CALX_TRY(count_bytes(tokenizer, tokens, count, &bytes));
  char *text = bytes < SIZE_MAX ? cx_alloc(bytes + 1) : NULL;
  if (text == NULL) return cx_out_of_memory();
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    const cx_data_token *token = &tokenizer->tokens[tokens[i]];
    memcpy(text + at, tokenizer->texts + token->begin, token->bytes);
    at += token->bytes;
  }
  text[at] = '\0';
  *out_text = text;
  if (out_bytes != NULL) *out_bytes = bytes;
  return NULL;
}
