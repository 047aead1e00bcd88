// store/table: a hash table with a fixed number of chains.
#include "store/table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static size_t chain_of(const char *key)
{
  return cx_hash_bytes(key, strlen(key), 0).low % CX_STORE_TABLE_CHAINS;
}

const cx_store_entry *cx_store_table_find(const cx_store_table *table,
                                          const char *key)
{
  const cx_store_entry *e = table->chains[chain_of(key)];
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
    return cx_invalid(
        "store: keys of 1 to %d bytes and values of at most %zu are taken, "
        "found a key of %zu and a value of %zu",
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
  size_t length = strlen(key) + 1;
  cx_store_entry *e = cx_alloc(sizeof *e + length + size + 1);
  if (e == NULL) return cx_out_of_memory();
  cx_store_entry **chain = &table->chains[chain_of(key)];
  *e = (cx_store_entry){ .next = *chain,
                         .size = size,
                         .value = e->key + length };
  memcpy(e->key, key, length);
  if (size != 0) memcpy(e->value, value, size);
  e->value[size] = '\0';
  *chain = e;
  table->count++;
  table->bytes += bytes_of(key, size);
  return NULL;
}

void cx_store_table_drop(cx_store_table *table, const char *key)
{
  cx_store_entry **at = &table->chains[chain_of(key)];
  while (*at != NULL && strcmp((*at)->key, key) != 0) at = &(*at)->next;
  cx_store_entry *e = *at;
  if (e == NULL) return;
  *at = e->next;
  table->count--;
  table->bytes -= bytes_of(key, e->size);
  cx_free(e);
}

void cx_store_table_free(cx_store_table *table)
{
  for (size_t i = 0; table->count > 0; i++) {
    for (cx_store_entry *e = table->chains[i], *next; e != NULL; e = next) {
      next = e->next;
      cx_free(e);
      table->count--;
    }
    table->chains[i] = NULL;
  }
  table->bytes = 0;
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
