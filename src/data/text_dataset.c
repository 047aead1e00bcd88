// data/text_dataset: blocks of tokens, and each block one token further.
#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/tokenizer.h"

#define MAX_TEXT ((size_t)1 << 30)

typedef struct token_blocks {
  int64_t block, stride;
  int32_t *tokens;
  int64_t count;
} token_blocks;

static void free_blocks(void *user)
{
  token_blocks *b = user;
  cx_free(b->tokens);
  cx_free(b);
}

static calx_status *get(void *user, int64_t index, void *const *fields)
{
  const token_blocks *b = user;
  const int32_t *tokens = b->tokens + index * b->stride;
  int64_t *data = fields[0], *target = fields[1];
  for (int64_t i = 0; i < b->block; i++) {
    data[i] = tokens[i];
    target[i] = tokens[i + 1];
  }
  return NULL;
}

static calx_status *take_options(const calx_text_options *given, int64_t block,
                                 token_blocks *b)
{
  calx_text_options o;
  CALX_TRY(cx_options_take("text dataset", given, &o, sizeof o));
  b->block = block;
  b->stride = o.stride == 0 ? block : o.stride;
  if (block >= 1 && b->stride >= 1) return NULL;
  return cx_invalid("text dataset: blocks of %lld tokens, %lld apart",
                    (long long)block, (long long)b->stride);
}

// Takes the tokens in `b` and the status of making them.
static calx_dataset *make(calx_status *status, const token_blocks *b)
{
  if (status == NULL && b->count - 1 < b->block) {
    status = cx_invalid(
        "text dataset: %lld tokens, a block of %lld and its target are one "
        "more than that",
        (long long)b->count, (long long)b->block);
  }
  token_blocks *kept = status == NULL ? cx_alloc(sizeof *kept) : NULL;
  if (kept == NULL) {
    cx_free(b->tokens);
    return cx_data_failed(status != NULL ? status : cx_out_of_memory());
  }
  *kept = *b;
  const calx_field fields[] = {
    { .name = "data", .dtype = CALX_I64, .rank = 1, .dims = { b->block } },
    { .name = "target", .dtype = CALX_I64, .rank = 1, .dims = { b->block } },
  };
  int64_t size = (b->count - 1 - b->block) / b->stride + 1;
  return calx_dataset_new(size, fields, 2, get, kept, free_blocks);
}

static calx_status *copy_tokens(calx_tensor *tokens, token_blocks *b)
{
  if (tokens == NULL) return cx_invalid("text dataset: the tokens are NULL");
  const calx_status *error = calx_tensor_error(tokens);
  if (error != NULL) return cx_status_copy(error);
  if (!calx_tensor_is_host(tokens) || calx_tensor_rank(tokens) != 1 ||
      calx_tensor_dtype(tokens) != CALX_I64) {
    return cx_invalid(
        "text dataset: tokens are i64 (N) on the host, got %s of rank %zu%s",
        calx_dtype_name(calx_tensor_dtype(tokens)), calx_tensor_rank(tokens),
        calx_tensor_is_host(tokens) ? "" : " on a device: calx_cpu moves it");
  }
  b->count = calx_tensor_numel(tokens);
  b->tokens = cx_calloc((size_t)b->count + 1, sizeof *b->tokens);
  if (b->tokens == NULL) return cx_out_of_memory();
  const int64_t *from = calx_host_data(tokens);
  for (int64_t i = 0; i < b->count; i++) {
    if (from[i] < 0 || from[i] > INT32_MAX) {
      return cx_invalid("text dataset: token %lld is %lld", (long long)i,
                        (long long)from[i]);
    }
    b->tokens[i] = (int32_t)from[i];
  }
  return NULL;
}

calx_dataset *calx_dataset_tokens_with(calx_tensor *tokens, int64_t block_size,
                                       const calx_text_options *options)
{
  token_blocks b = { 0 };
  calx_status *status = take_options(options, block_size, &b);
  if (status == NULL) status = copy_tokens(tokens, &b);
  return make(status, &b);
}

static calx_status *read_text(const char *path, const calx_tokenizer *tokenizer,
                              token_blocks *b)
{
  if (path == NULL || tokenizer == NULL) {
    return cx_invalid("text dataset: the %s is NULL",
                      path == NULL ? "path" : "tokenizer");
  }
  const calx_status *error = calx_tokenizer_error(tokenizer);
  if (error != NULL) return cx_status_copy(error);
  char *text;
  size_t bytes, count;
  CALX_TRY(cx_file_read_regular(path, MAX_TEXT, &text, &bytes));
  calx_status *status =
      cx_data_tokenize(tokenizer, text, bytes, &b->tokens, &count);
  b->count = (int64_t)count;
  cx_free(text);
  return cx_annotate(status, "of the text '%s'", path);
}

calx_dataset *calx_dataset_text_with(const char *path,
                                     const calx_tokenizer *tokenizer,
                                     int64_t block_size,
                                     const calx_text_options *options)
{
  token_blocks b = { 0 };
  calx_status *status = take_options(options, block_size, &b);
  if (status == NULL) status = read_text(path, tokenizer, &b);
  return make(status, &b);
}
