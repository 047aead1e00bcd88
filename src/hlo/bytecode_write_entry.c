// hlo/bytecode: numbers and pools of entries.
#include <string.h>

#include "base/hash.h"
#include "hlo/bytecode_writer.h"

// ---- numbers ----

// Zeros at the low end of the first byte count the bytes that follow it.
static size_t encode(uint64_t v, char *out)
{
  size_t n = 1;
  while (n < 9 && v >> (7 * n) != 0) n++;
  if (n == 9) {
    out[0] = 0;
    memcpy(out + 1, &v, sizeof v);
    return n;
  }
  const uint64_t bits = (v << 1 | 1) << (n - 1);
  memcpy(out, &bits, n);
  return n;
}

void cx_hlo_write_number(cx_hlo_bytecode_writer *w, uint64_t v)
{
  char bytes[9];
  cx_text_append_n(&w->out, bytes, encode(v, bytes));
}

void cx_hlo_write_signed(cx_hlo_bytecode_writer *w, int64_t v)
{
  cx_hlo_write_number(w, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

void cx_hlo_write_double(cx_hlo_bytecode_writer *w, double v)
{
  int64_t bits = 0;
  memcpy(&bits, &v, sizeof bits);
  cx_hlo_write_signed(w, bits);
}

void cx_hlo_write_section(cx_hlo_bytecode_writer *w, size_t mark, unsigned id)
{
  char head[10] = { (char)id };
  const size_t size = w->out.size - mark;
  const size_t n = 1 + encode(size, head + 1);
  cx_text_append_n(&w->out, head, n);  // makes room
  if (cx_text_failed(&w->out)) return;
  memmove(w->out.data + mark + n, w->out.data + mark, size);
  memcpy(w->out.data + mark, head, n);
}

// ---- pools ----

static void put_slot(cx_hlo_pool *pool, uint64_t hash, size_t item)
{
  size_t at = hash & (pool->n_slots - 1);
  while (pool->slots[at] != 0) at = (at + 1) & (pool->n_slots - 1);
  pool->slots[at] = (uint32_t)item + 1;
}

static uint64_t hash_of(const char *bytes, size_t size, uint32_t tag)
{
  return cx_hash_bytes(bytes, size, tag).low;
}

// Half of the slots are free.
static bool make_slots(cx_hlo_pool *pool)
{
  if (2 * (pool->n + 1) <= pool->n_slots) return true;
  const size_t n = pool->n_slots == 0 ? 64 : 2 * pool->n_slots;
  uint32_t *slots = cx_calloc(n, sizeof *slots);
  if (slots == NULL) return false;
  cx_free(pool->slots);
  pool->slots = slots;
  pool->n_slots = n;
  for (size_t i = 0; i < pool->n; i++) {
    const struct cx_hlo_pool_item *item = &pool->items[i];
    put_slot(pool, hash_of(pool->bytes.data + item->at, item->size, item->tag),
             i);
  }
  return true;
}

static bool find(const cx_hlo_pool *pool, uint64_t hash, uint32_t tag,
                 const char *bytes, size_t size, size_t *out)
{
  size_t at = hash & (pool->n_slots - 1);
  for (; pool->slots[at] != 0; at = (at + 1) & (pool->n_slots - 1)) {
    *out = pool->slots[at] - 1;
    const struct cx_hlo_pool_item *item = &pool->items[*out];
    if (item->size == size && item->tag == tag &&
        (size == 0 || memcmp(pool->bytes.data + item->at, bytes, size) == 0)) {
      return true;
    }
  }
  return false;
}

size_t cx_hlo_pool_add(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool,
                       uint32_t tag, const char *bytes, size_t size)
{
  const uint64_t hash = hash_of(bytes, size, tag);
  size_t i = 0;
  if (!make_slots(pool) || !cx_grow(&pool->items, &pool->capacity, pool->n + 1,
                                    sizeof *pool->items)) {
    w->out.failed = true;
    return 0;
  }
  if (find(pool, hash, tag, bytes, size, &i)) return i;
  i = pool->n;
  pool->items[i] = (struct cx_hlo_pool_item){ pool->bytes.size, size, tag };
  cx_text_append_n(&pool->bytes, bytes, size);
  if (cx_text_failed(&pool->bytes)) {
    w->out.failed = true;
    return 0;
  }
  pool->n++;
  put_slot(pool, hash, i);
  return i;
}

void cx_hlo_pool_free(cx_hlo_pool *pool)
{
  cx_text_free(&pool->bytes);
  cx_free(pool->items);
  cx_free(pool->slots);
}

// ---- entries ----

size_t cx_hlo_write_string(cx_hlo_bytecode_writer *w, cx_hlo_str s)
{
  return cx_hlo_pool_add(w, &w->strings, 0, s.s, s.n);
}

size_t cx_hlo_write_dialect(cx_hlo_bytecode_writer *w, const char *s, size_t n)
{
  return cx_hlo_pool_add(w, &w->dialects, 0, s, n);
}

static size_t take(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool, size_t dialect,
                   bool is_text, size_t mark)
{
  if (cx_text_failed(&w->out)) return 0;
  const size_t i = cx_hlo_pool_add(w, pool, (uint32_t)(dialect << 1 | !is_text),
                                   w->out.data + mark, w->out.size - mark);
  if (!cx_text_failed(&w->out)) w->out.size = mark;
  return i;
}

size_t cx_hlo_write_entry(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool,
                          size_t dialect, size_t mark)
{
  return take(w, pool, dialect, false, mark);
}

// #sdy.sharding<…>, !quant.uniform<…>: the name is the dialect's.
size_t cx_hlo_write_text_entry(cx_hlo_bytecode_writer *w, cx_hlo_pool *pool,
                               size_t mark)
{
  static const char marks[] = "#!";
  if (cx_text_failed(&w->out)) return 0;
  const char *text = w->out.data + mark;
  const size_t size = w->out.size - mark;
  size_t n = 1, dialect = CX_HLO_WRITES_BUILTIN;
  if (memchr(text, '\0', size) != NULL) {
    CX_HLO_WRITE_FAIL(w, CALX_UNIMPLEMENTED,
                      "bytecode: an attribute or a type has a zero byte in its "
                      "text");
  }
  if (size != 0 && memchr(marks, text[0], 2) != NULL) {
    while (n < size && text[n] != '.' && text[n] != '<') n++;
    if (n < size) dialect = cx_hlo_write_dialect(w, text + 1, n - 1);
  }
  cx_text_char(&w->out, '\0');
  return take(w, pool, dialect, true, mark);
}
