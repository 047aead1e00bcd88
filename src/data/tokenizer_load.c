// data/tokenizer_load: GPT-2's vocabulary files.
//
// Tokens are bytes. In the files a byte is a character: itself where it can be
// printed, else the next one from U+0100 on. Files are not trusted: numbers are
// dense and tokens differ, so each has one entry; a merge names three tokens
// that there are.
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/tokenizer.h"

enum { CHARACTERS = 0x144 };  // U+0000 to U+0143 stand for bytes

// ---- characters -------------------------------------------------------------

static bool is_printed(int byte)
{
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
         byte >= 0xae;
}

// The byte of each character; -1: it is none of them.
static void fill_bytes(int16_t of[CHARACTERS])
{
  int next = 256;
  for (int c = 0; c < CHARACTERS; c++) of[c] = -1;
  for (int byte = 0; byte < 256; byte++) {
    of[is_printed(byte) ? byte : next++] = (int16_t)byte;
  }
}

// Writes the bytes of a token's characters. @return how many; SIZE_MAX: one is
// no byte
static size_t to_bytes(const int16_t of[CHARACTERS], const char *text,
                       size_t size, char *out)
{
  size_t n = 0;
  const unsigned char *s = (const unsigned char *)text;
  for (size_t i = 0; i < size;) {
    unsigned code = s[i];
    size_t step = 1;
    if (code >= 0x80) {
      if (code < 0xc2 || code > 0xdf || i + 1 >= size ||
          (s[i + 1] & 0xc0) != 0x80) {
        return SIZE_MAX;
      }
      code = (code & 0x1f) << 6 | (s[i + 1] & 0x3f);
      step = 2;
    }
    if (code >= CHARACTERS || of[code] < 0) return SIZE_MAX;
    out[n++] = (char)of[code];
    i += step;
  }
  return n;
}

static calx_status *bad(const char *name, const char *what, const char *text,
                        size_t size)
{
  char shown[64];
  cx_text_plain(text, size < 48 ? size : 48, shown, sizeof shown);
  return cx_error(CALX_DATA_LOSS, "'%s': the token '%s' %s", name, shown, what);
}

// ---- tables -----------------------------------------------------------------

static size_t slots_for(size_t count)
{
  size_t slots = 16;
  while (slots < 2 * count) slots *= 2;
  return slots;
}

// Where the token is, or would be.
static size_t slot_of(const calx_tokenizer *t, const char *text, size_t bytes)
{
  size_t at = (size_t)cx_hash_bytes(text, bytes, 0).low;
  for (;; at++) {
    at &= t->text_slots - 1;
    int32_t id = t->by_text[at];
    if (id < 0) return at;
    const cx_data_token *token = &t->tokens[id];
    if (token->bytes == bytes &&
        memcmp(t->texts + token->begin, text, bytes) == 0) {
      return at;
    }
  }
}

int32_t cx_data_token_find(const calx_tokenizer *t, const char *text,
                           size_t bytes)
{
  if (t->by_text == NULL) {
    return bytes == 1 ? t->of_byte[(unsigned char)text[0]] : -1;
  }
  return t->by_text[slot_of(t, text, bytes)];
}

cx_data_merge *cx_data_merge_find(const calx_tokenizer *t, int32_t left,
                                  int32_t right)
{
  const int32_t pair[] = { left, right };
  size_t at = (size_t)cx_hash_bytes(pair, sizeof pair, 0).low;
  for (;; at++) {
    cx_data_merge *m = &t->merges[at & (t->merge_slots - 1)];
    if (m->left < 0 || (m->left == left && m->right == right)) return m;
  }
}

// ---- vocab.json -------------------------------------------------------------

static calx_status *make_tokens(calx_tokenizer *t, json_t *all,
                                size_t text_bytes)
{
  size_t count = json_object_size(all);
  t->text_slots = slots_for(count);
  t->tokens = cx_calloc(count, sizeof *t->tokens);
  t->texts = cx_alloc(text_bytes);
  t->by_text = cx_calloc(t->text_slots, sizeof *t->by_text);
  if (t->tokens == NULL || t->texts == NULL || t->by_text == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < t->text_slots; i++) t->by_text[i] = -1;
  for (size_t i = 0; i < count; i++) t->tokens[i].begin = SIZE_MAX;  // none yet
  t->size = (int64_t)count;
  return NULL;
}

// `used` bytes of the texts are taken.
static calx_status *add_token(calx_tokenizer *t, const char *name,
                              const int16_t of[CHARACTERS], const char *key,
                              json_t *value, size_t *used)
{
  size_t size = strlen(key);
  json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
  if (id < 0 || id >= t->size) {
    return bad(name, "has no number below that of tokens", key, size);
  }
  if (t->tokens[id].begin != SIZE_MAX) {
    return bad(name, "has the number of another one", key, size);
  }
  char *text = t->texts + *used;
  size_t bytes = to_bytes(of, key, size, text);
  if (bytes == SIZE_MAX || bytes == 0) {
    return bad(name,
               bytes == 0 ? "is empty" : "has a character that is no byte", key,
               size);
  }
  t->tokens[id] = (cx_data_token){ *used, bytes };
  *used += bytes;
  // Keys differ, and each byte has one character: the slot is empty.
  t->by_text[slot_of(t, text, bytes)] = (int32_t)id;
  if (bytes == 1) t->of_byte[(unsigned char)text[0]] = (int32_t)id;
  return NULL;
}

static calx_status *take_vocab(calx_tokenizer *t, const char *name,
                               const char *vocab, size_t bytes)
{
  int16_t of[CHARACTERS];
  fill_bytes(of);
  json_error_t error;
  json_t *all = json_loadb(vocab, bytes, JSON_REJECT_DUPLICATES, &error);
  if (all == NULL) {
    return cx_error(CALX_DATA_LOSS, "'%s': line %d, column %d: %s", name,
                    error.line, error.column, error.text);
  }
  calx_status *status = NULL;
  if (!json_is_object(all) || json_object_size(all) == 0) {
    status = cx_error(CALX_DATA_LOSS, "'%s': no object of tokens", name);
  } else {
    status = make_tokens(t, all, bytes);
  }
  size_t used = 0;
  const char *key;
  json_t *value;
  if (status == NULL) {
    json_object_foreach(all, key, value)
    {
      status = add_token(t, name, of, key, value, &used);
      if (status != NULL) break;
    }
  }
  json_decref(all);
  return status;
}

// ---- merges.txt -------------------------------------------------------------

typedef struct merge_line {
  const char *name;  // of the file
  size_t number;     // from 1
  const char *text;
  size_t size;
} merge_line;

static calx_status *bad_line(const merge_line *line, const char *what)
{
  char shown[64];
  cx_text_plain(line->text, line->size < 48 ? line->size : 48, shown,
                sizeof shown);
  return cx_error(CALX_DATA_LOSS, "'%s': line %zu: '%s' %s", line->name,
                  line->number, shown, what);
}

static calx_status *add_merge(calx_tokenizer *t, const merge_line *line,
                              const int16_t of[CHARACTERS], char *bytes,
                              int32_t rank)
{
  const char *space = memchr(line->text, ' ', line->size);
  if (space == NULL || space == line->text ||
      space + 1 == line->text + line->size) {
    return bad_line(line, "is no pair of tokens");
  }
  size_t first = (size_t)(space - line->text);
  size_t left = to_bytes(of, line->text, first, bytes);
  size_t right =
      left == SIZE_MAX
          ? SIZE_MAX
          : to_bytes(of, space + 1, line->size - first - 1, bytes + left);
  if (right == SIZE_MAX) {
    return bad_line(line, "has a character that is no byte");
  }
  cx_data_merge merge = { cx_data_token_find(t, bytes, left),
                          cx_data_token_find(t, bytes + left, right), rank,
                          cx_data_token_find(t, bytes, left + right) };
  if (merge.left < 0 || merge.right < 0 || merge.to < 0) {
    return bad_line(line, "makes, or is made of, what is no token");
  }
  cx_data_merge *entry = cx_data_merge_find(t, merge.left, merge.right);
  if (entry->left >= 0) return bad_line(line, "is there twice");
  *entry = merge;
  return NULL;
}

static calx_status *make_merges(calx_tokenizer *t, const char *merges,
                                size_t bytes)
{
  size_t lines = 1;
  for (size_t i = 0; i < bytes; i++) lines += merges[i] == '\n';
  t->merge_slots = slots_for(lines);
  t->merges = cx_calloc(t->merge_slots, sizeof *t->merges);
  if (t->merges == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < t->merge_slots; i++) t->merges[i].left = -1;
  return NULL;
}

static calx_status *take_merges(calx_tokenizer *t, const char *name,
                                const char *merges, size_t bytes)
{
  static const char version[] = "#version";
  CALX_TRY(make_merges(t, merges, bytes));
  char *text = cx_alloc(bytes + 1);  // a line's bytes
  if (text == NULL) return cx_out_of_memory();
  int16_t of[CHARACTERS];
  fill_bytes(of);
  calx_status *status = NULL;
  const char *end = merges + bytes;
  int32_t rank = 0;
  merge_line line = { .name = name, .text = merges };
  while (status == NULL && line.text < end) {
    const char *stop = memchr(line.text, '\n', (size_t)(end - line.text));
    line.size = (size_t)((stop != NULL ? stop : end) - line.text);
    const char *next = line.text + line.size + (stop != NULL);
    if (line.size > 0 && line.text[line.size - 1] == '\r') line.size--;
    line.number++;
    bool is_version = line.number == 1 && line.size >= sizeof version - 1 &&
                      memcmp(line.text, version, sizeof version - 1) == 0;
    if (line.size > 0 && !is_version) {
      status = add_merge(t, &line, of, text, rank++);
    }
    line.text = next;
  }
  cx_free(text);
  return status;
}

calx_status *cx_data_tokenizer_load(calx_tokenizer *t, const char *vocab_name,
                                    const char *vocab, size_t vocab_bytes,
                                    const char *merges_name, const char *merges,
                                    size_t merges_bytes)
{
  for (int i = 0; i < 256; i++) t->of_byte[i] = -1;
  CALX_TRY(take_vocab(t, vocab_name, vocab, vocab_bytes));
  return take_merges(t, merges_name, merges, merges_bytes);
}

void cx_data_tokenizer_clear(calx_tokenizer *t)
{
  cx_free(t->tokens);
  cx_free(t->texts);
  cx_free(t->by_text);
  cx_free(t->merges);
  *t = (calx_tokenizer){ 0 };
}
