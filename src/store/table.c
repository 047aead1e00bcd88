// store/table: a hash table with chains.
#include "store/table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static cx_store_entry **chain_of(const cx_store_table *table, const char *key)
{
  uint64_t hash = cx_hash_bytes(key, strlen(key), 0).low;
  return &table->chains[hash & (table->chain_count - 1)];
}

static bool grow(cx_store_table *table)
{
  size_t wanted = table->chain_count != 0 ? 2 * table->chain_count : 64;
  cx_store_entry **chains = cx_calloc(wanted, sizeof *chains);
  if (chains == NULL) return false;
  cx_store_table bigger = *table;
  bigger.chains = chains;
  bigger.chain_count = wanted;
  for (size_t i = 0; i < table->chain_count; i++) {
    for (cx_store_entry *e = table->chains[i], *next; e != NULL; e = next) {
      cx_store_entry **chain = chain_of(&bigger, e->key);
      next = e->next;
      e->next = *chain;
      *chain = e;
    }
  }
  cx_free(table->chains);
  *table = bigger;
  return true;
}

const cx_store_entry *cx_store_table_find(const cx_store_table *table,
                                          const char *key)
{
  if (table->chain_count == 0) return NULL;
  const cx_store_entry *e = *chain_of(table, key);
  while (e != NULL && strcmp(e->key, key) != 0) e = e->next;
  return e;
}

// The size of an entry: head, key and value, with both zero bytes.
static size_t bytes_of(const char *key, size_t size)
{
  return sizeof(cx_store_entry) + strlen(key) + 1 + size + 1;
}

static calx_status *check(const cx_store_table *table, const char *key,
                          size_t size)
{
  size_t length = strlen(key);
  if (length == 0 || length > CX_STORE_TABLE_KEY ||
      size > CX_STORE_TABLE_VALUE) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "store: keys of 1 to %d bytes and values of at most %zu "
                    "are taken, found a key of %zu and a value of %zu",
                    CX_STORE_TABLE_KEY, CX_STORE_TABLE_VALUE, length, size);
  }
  const cx_store_entry *there = cx_store_table_find(table, key);
  if (there != NULL) {
    return cx_error(CALX_ALREADY_EXISTS,
                    "store: key '%s' has another value already", key);
  }
  if (bytes_of(key, size) <= CX_STORE_TABLE_BYTES - table->bytes) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "store: key '%s' of %zu bytes: %zu are stored, and at most "
                  "%zu may be",
                  key, size, table->bytes, CX_STORE_TABLE_BYTES);
}

calx_status *cx_store_table_put(cx_store_table *table, const char *key,
                                const void *value, size_t size)
{
  const cx_store_entry *there = cx_store_table_find(table, key);
  if (there != NULL && there->size == size &&
      (size == 0 || memcmp(there->value, value, size) == 0)) {
    return NULL;
  }
  CALX_TRY(check(table, key, size));
  if (table->count >= table->chain_count && !grow(table)) {
    return cx_out_of_memory();
  }
  size_t length = strlen(key);
  cx_store_entry *e = cx_alloc(sizeof *e + length + 1);
  char *copy = cx_alloc(size + 1);
  if (e == NULL || copy == NULL) {
    cx_free(e);
    cx_free(copy);
    return cx_out_of_memory();
  }
  if (size != 0) memcpy(copy, value, size);
  copy[size] = '\0';
  cx_store_entry **chain = chain_of(table, key);
  *e = (cx_store_entry){ .next = *chain, .size = size, .value = copy };
  memcpy(e->key, key, length + 1);
  *chain = e;
  table->count++;
  table->bytes += bytes_of(key, size);
  return NULL;
}

void cx_store_table_drop(cx_store_table *table, const char *key)
{
  if (table->chain_count == 0) return;
  cx_store_entry **at = chain_of(table, key);
  while (*at != NULL && strcmp((*at)->key, key) != 0) at = &(*at)->next;
  cx_store_entry *e = *at;
  if (e == NULL) return;
  *at = e->next;
  table->count--;
  table->bytes -= bytes_of(key, e->size);
  cx_free(e->value);
  cx_free(e);
}

void cx_store_table_free(cx_store_table *table)
{
  for (size_t i = 0; i < table->chain_count; i++) {
    for (cx_store_entry *e = table->chains[i], *next; e != NULL; e = next) {
      next = e->next;
      cx_free(e->value);
      cx_free(e);
    }
  }
  cx_free(table->chains);
  *table = (cx_store_table){ 0 };
}

calx_status *cx_store_table_no_key(const char *key)
{
  return cx_error(CALX_NOT_FOUND, "store: there is no key '%s'", key);
}

void cx_store_table_format_late(const char *key, int64_t timeout_ms,
                                cx_text *out)
{
  cx_text_format(out, "store: nobody put key '%s' within %lld ms", key,
                 (long long)timeout_ms);
}
