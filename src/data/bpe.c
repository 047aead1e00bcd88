// data/bpe: the tokens of a text.
//
// A piece of the text begins as the tokens of its bytes. The pair of neighbours
// that stands first in the list of merges is replaced by one token, at all
// places from left to right, and so on until no pair is in the list. The pairs
// wait in a heap, by rank and position, so that a piece of n bytes takes
// n log n, whatever it is made of.
#include <string.h>

#include "base/alloc.h"
#include "data/split_text.h"
#include "data/tokenizer.h"

typedef struct symbol {
  int32_t token;          // -1: it has been merged into the one before it
  int32_t before, after;  // neighbours; -1: none
} symbol;

typedef struct candidate {
  int32_t rank, at;     // of the left symbol
  int32_t left, right;  // the tokens that it is for
  int32_t to;
} candidate;

typedef struct merger {
  const calx_tokenizer *tokenizer;
  symbol *symbols;
  size_t symbol_room;
  candidate *heap;
  size_t heap_size, heap_room;
  candidate *batch;  // those of one rank
  size_t batch_room;
  int32_t *tokens;  // the result
  size_t count, room;
} merger;

// ---- the heap ---------------------------------------------------------------

static bool is_before(const candidate *a, const candidate *b)
{
  return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool push(merger *m, candidate c)
{
  if (!cx_grow(&m->heap, &m->heap_room, m->heap_size + 1, sizeof c)) {
    return false;
  }
  size_t at = m->heap_size++;
  while (at > 0 && is_before(&c, &m->heap[(at - 1) / 2])) {
    m->heap[at] = m->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  m->heap[at] = c;
  return true;
}

static candidate pop(merger *m)
{
  candidate first = m->heap[0], last = m->heap[--m->heap_size];
  size_t at = 0;
  for (;;) {
    size_t below = 2 * at + 1;
    if (below >= m->heap_size) break;
    if (below + 1 < m->heap_size &&
        is_before(&m->heap[below + 1], &m->heap[below])) {
      below++;
    }
    if (!is_before(&m->heap[below], &last)) break;
    m->heap[at] = m->heap[below];
    at = below;
  }
  m->heap[at] = last;
  return first;
}

// ---- one piece --------------------------------------------------------------

// Adds the pair of a symbol and the next one, if the list has it.
static bool consider(merger *m, int32_t at)
{
  if (at < 0 || m->symbols[at].after < 0) return true;
  int32_t left = m->symbols[at].token;
  int32_t right = m->symbols[m->symbols[at].after].token;
  const cx_data_merge *merge = cx_data_merge_find(m->tokenizer, left, right);
  if (merge->left < 0) return true;
  return push(m, (candidate){ merge->rank, at, left, right, merge->to });
}

static bool apply(merger *m, const candidate *c)
{
  symbol *s = &m->symbols[c->at];
  if (s->token != c->left || s->after < 0) return true;  // merged meanwhile
  symbol *next = &m->symbols[s->after];
  if (next->token != c->right) return true;
  s->token = c->to;
  next->token = -1;
  s->after = next->after;
  if (s->after >= 0) m->symbols[s->after].before = c->at;
  return consider(m, s->before) && consider(m, c->at);
}

// All pairs of the lowest rank are taken before new ones are looked at.
static bool merge_round(merger *m)
{
  size_t n = 0;
  int32_t rank = m->heap[0].rank;
  while (m->heap_size > 0 && m->heap[0].rank == rank) {
    if (!cx_grow(&m->batch, &m->batch_room, n + 1, sizeof *m->batch)) {
      return false;
    }
    m->batch[n++] = pop(m);
  }
  for (size_t i = 0; i < n; i++) {
    if (!apply(m, &m->batch[i])) return false;
  }
  return true;
}

static calx_status *make_symbols(merger *m, const unsigned char *text,
                                 size_t bytes)
{
  if (!cx_grow(&m->symbols, &m->symbol_room, bytes, sizeof *m->symbols)) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < bytes; i++) {
    int32_t token = m->tokenizer->of_byte[text[i]];
    if (token < 0) {
      return cx_invalid(
          "tokenizer: the vocabulary has no token for byte 0x%02x", text[i]);
    }
    m->symbols[i] =
        (symbol){ token, (int32_t)i - 1, i + 1 < bytes ? (int32_t)i + 1 : -1 };
  }
  return NULL;
}

static calx_status *merge_piece(merger *m, const unsigned char *text,
                                size_t bytes)
{
  CALX_TRY(make_symbols(m, text, bytes));
  bool good = true;
  m->heap_size = 0;
  if (m->tokenizer->merge_slots > 0) {
    for (size_t i = 0; good && i < bytes; i++) good = consider(m, (int32_t)i);
  }
  while (good && m->heap_size > 0) good = merge_round(m);
  good = good &&
         cx_grow(&m->tokens, &m->room, m->count + bytes, sizeof *m->tokens);
  if (!good) return cx_out_of_memory();
  for (size_t i = 0; i < bytes; i++) {
    if (m->symbols[i].token >= 0) m->tokens[m->count++] = m->symbols[i].token;
  }
  return NULL;
}

calx_status *cx_data_tokenize(const calx_tokenizer *t, const char *text,
                              size_t bytes, int32_t **out_tokens,
                              size_t *out_count)
{
  merger m = { .tokenizer = t };
  const unsigned char *s = (const unsigned char *)text;
  calx_status *status = NULL;
  while (status == NULL && bytes > 0) {
    // Bytes alone need no pieces: short ones keep the memory small.
    size_t n = t->merge_slots > 0 ? cx_data_split_text(s, bytes)
               : bytes < 4096     ? bytes
                                  : 4096;
    status = merge_piece(&m, s, n);
    s += n;
    bytes -= n;
  }
  cx_free(m.symbols);
  cx_free(m.heap);
  cx_free(m.batch);
  if (status != NULL) {
    cx_free(m.tokens);
    m.tokens = NULL;
  }
  *out_tokens = m.tokens;
  *out_count = status == NULL ? m.count : 0;
  return status;
}
