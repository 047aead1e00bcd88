// data/tokenizer: a vocabulary, and which tokens merge to which.
#ifndef CX_DATA_TOKENIZER_H
#define CX_DATA_TOKENIZER_H

#include <stdint.h>

#include "base/status.h"
#include "calx/text.h"

typedef struct cx_data_token {
  size_t begin, bytes;  // of `texts`
} cx_data_token;

typedef struct cx_data_merge {
  int32_t left, right;  // tokens; left -1: an empty entry
  int32_t rank, to;
} cx_data_merge;

struct calx_tokenizer {
  calx_status *error;
  int64_t size;           // tokens
  cx_data_token *tokens;  // [size]
  char *texts;
  int32_t of_byte[256];   // the token of a byte; -1: none
  int32_t *by_text;       // [text_slots], a hash table of tokens; -1: empty
  size_t text_slots;      // a power of 2
  cx_data_merge *merges;  // [merge_slots], a hash table
  size_t merge_slots;     // a power of 2; 0: there are no merges
};

// From the contents of the two files; their names are for messages. What is
// made so far is in the tokenizer, also on failure.
calx_status *cx_data_tokenizer_load(calx_tokenizer *t, const char *vocab_name,
                                    const char *vocab, size_t vocab_bytes,
                                    const char *merges_name, const char *merges,
                                    size_t merges_bytes) CALX_MUST_USE;
void cx_data_tokenizer_clear(calx_tokenizer *t);  // frees what it holds

// The token of a text; -1: there is none.
int32_t cx_data_token_find(const calx_tokenizer *t, const char *text,
                           size_t bytes);
// The entry of a pair, or the empty one where it would be. Merges are there.
cx_data_merge *cx_data_merge_find(const calx_tokenizer *t, int32_t left,
                                  int32_t right);

// All tokens of a text. cx_free() them.
calx_status *cx_data_tokenize(const calx_tokenizer *t, const char *text,
                              size_t bytes, int32_t **out_tokens,
                              size_t *out_count) CALX_MUST_USE;

#endif
