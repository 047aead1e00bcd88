// store/table: keys and their values, as the store keeps them. No locks.
#ifndef CX_STORE_TABLE_H
#define CX_STORE_TABLE_H

#include <stddef.h>

#include "base/status.h"

// Of one key, of one value, and of all of them: what comes from other processes
// is bounded.
#define CX_STORE_TABLE_KEY 1024
#define CX_STORE_TABLE_VALUE ((size_t)64 << 20)
#define CX_STORE_TABLE_BYTES ((size_t)4 << 30)

typedef struct cx_store_entry {
  struct cx_store_entry *next;
  size_t size;
  char *value;  // zero-terminated past its size
  char key[];
} cx_store_entry;

typedef struct cx_store_table {
  cx_store_entry **chains;
  size_t chain_count;   // a power of two
  size_t count, bytes;  // of the entries, with their heads and keys
} cx_store_table;       // the zero value is the empty table

// ALREADY_EXISTS for a key that has another value; the same value is success.
calx_status *cx_store_table_put(cx_store_table *table, const char *key,
                                const void *value, size_t size) CALX_MUST_USE;
const cx_store_entry *cx_store_table_find(const cx_store_table *table,
                                          const char *key);
void cx_store_table_drop(cx_store_table *table, const char *key);
void cx_store_table_free(cx_store_table *table);

#endif
