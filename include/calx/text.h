/**
 * calx/text.h: texts as numbers, for language models.
 *
 * A tokenizer makes a list of numbers, the tokens, of a text and the text of
 * the numbers. Both directions lose nothing: a text is any bytes, UTF-8 or not.
 *
 * A tokenizer that cannot be made is a failed one: its error says so.
 *
 * @threads thread-safe
 */
#ifndef CALX_TEXT_H
#define CALX_TEXT_H

#include "calx/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct calx_tokenizer calx_tokenizer;

/** Tokens are bytes, 0 to 255. */
CALX_API calx_tokenizer *calx_byte_tokenizer(void);

/**
 * Byte-level byte-pair encoding as GPT-2 has it, from its two files. The text
 * is split by GPT-2's regular expression, with Unicode 14's letters and
 * numbers; then neighbours in a piece are merged, the pair that stands first in
 * the list of merges first.
 * @param vocab   vocab.json (encoder.json): a number for each token, 0, 1, 2, …
 * @param merges  merges.txt (vocab.bpe): a pair of tokens a line
 * @errors NOT_FOUND, PERMISSION_DENIED a file  DATA_LOSS one is damaged, or the
 *         two do not belong together: with the token or line
 *         INVALID_ARGUMENT NULL, no regular file or one above 256 MiB
 * @source A. Radford et al., "Language Models are Unsupervised Multitask
 *         Learners", 2019; R. Sennrich et al., arXiv:1508.07909
 */
CALX_API calx_tokenizer *calx_gpt2_tokenizer(const char *vocab,
                                             const char *merges);

/** NULL is accepted. */
CALX_API void calx_tokenizer_free(calx_tokenizer *tokenizer);
/** Why the tokenizer is of no use; NULL: it is. Owned by the tokenizer. */
CALX_API const calx_status *calx_tokenizer_error(
    const calx_tokenizer *tokenizer);
/** How many tokens there are; 0 for a failed one. */
CALX_API int64_t calx_tokenizer_size(const calx_tokenizer *tokenizer);
/** The token that stands for exactly this text, "<|endoftext|>"; -1: there is
 *  none. calx_tokenizer_encode() does not make it of a text that has it. */
CALX_API int64_t calx_tokenizer_id(const calx_tokenizer *tokenizer,
                                   const char *text);

/**
 * The tokens of a text.
 * @return on the host @shape (tokens) @dtype i64
 * @errors through the scope: INVALID_ARGUMENT a byte that the vocabulary has no
 *         token for, NULL, a text above 1 GiB; a failed tokenizer's own
 * @owner the current scope
 */
CALX_API calx_tensor *calx_tokenizer_encode(const calx_tokenizer *tokenizer,
                                            const char *text, size_t bytes);

/**
 * The text of tokens.
 * @param out_text   zero-terminated; freed with calx_string_free()
 * @param out_bytes  without the zero at its end; may be NULL
 * @errors INVALID_ARGUMENT a number that is no token, NULL; a failed
 *         tokenizer's own
 */
CALX_API calx_status *calx_tokenizer_decode(const calx_tokenizer *tokenizer,
                                            const int64_t *tokens, size_t count,
                                            char **out_text,
                                            size_t *out_bytes) CALX_MUST_USE;

/** Zero means default in every field. */
typedef struct CALX_OPTIONS calx_text_options {
  CALX_NAMED size_t size;
  /* tokens from the beginning of a block to that of the next; 0: a block's */
  CALX_NAMED int64_t stride;
} calx_text_options;

/**
 * Blocks of a list of tokens: "data" and "target", i64 (block_size), the target
 * one token further. A rest that is no whole block is left out.
 * @param tokens  on the host, copied @shape (N) @dtype i64
 * @errors INVALID_ARGUMENT no such tensor, a block or stride below 1, fewer
 *         than block_size + 1 tokens, a token that is negative or above 2^31-1
 */
CALX_API calx_dataset *calx_dataset_tokens_with(
    calx_tensor *tokens, int64_t block_size, const calx_text_options *options);

/**
 * The same of a text file, which is read whole here. The tokenizer is not used
 * afterwards.
 * @errors NOT_FOUND, PERMISSION_DENIED the file  INVALID_ARGUMENT no regular
 *         file or one above 1 GiB; as calx_tokenizer_encode and
 *         calx_dataset_tokens
 */
CALX_API calx_dataset *calx_dataset_text_with(const char *path,
                                              const calx_tokenizer *tokenizer,
                                              int64_t block_size,
                                              const calx_text_options *options);

#ifdef __cplusplus
}
#elif !defined(CALX_NO_SITES)
#define calx_byte_tokenizer() (calx_at_(CALX_HERE), calx_byte_tokenizer())
#define calx_gpt2_tokenizer(vocab, merges) \
  (calx_at_(CALX_HERE), calx_gpt2_tokenizer(vocab, merges))
#define calx_tokenizer_encode(tokenizer, ...) \
  (calx_at_(CALX_HERE), calx_tokenizer_encode(tokenizer, __VA_ARGS__))
#define calx_tokenizer_decode(tokenizer, ...) \
  (calx_at_(CALX_HERE), calx_tokenizer_decode(tokenizer, __VA_ARGS__))
#define CALX_DATASET_TOKENS_(tokens, block_size, ...) \
  (calx_at_(CALX_HERE),                               \
   calx_dataset_tokens_with(tokens, block_size,       \
                            &(calx_text_options){ __VA_ARGS__ }))
#define calx_dataset_tokens(tokens, ...) \
  CALX_DATASET_TOKENS_(tokens, __VA_ARGS__, .size = sizeof(calx_text_options))
#define CALX_DATASET_TEXT_(path, tokenizer, block_size, ...) \
  (calx_at_(CALX_HERE),                                      \
   calx_dataset_text_with(path, tokenizer, block_size,       \
                          &(calx_text_options){ __VA_ARGS__ }))
#define calx_dataset_text(path, tokenizer, ...)    \
  CALX_DATASET_TEXT_(path, tokenizer, __VA_ARGS__, \
                     .size = sizeof(calx_text_options))
#endif
#endif
