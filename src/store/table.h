// store/table: the store's keys and values. It has no lock.
#ifndef CX_STORE_TABLE_H
#define CX_STORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

// Limits of one key, one value and the whole table, in bytes: other processes
// fill the table.
#define CX_STORE_TABLE_KEY 1024
#define CX_STORE_TABLE_VALUE ((size_t)64 << 20)
#define CX_STORE_TABLE_BYTES ((size_t)4 << 30)

enum { CX_STORE_TABLE_CHAINS = 1 << 12 };

typedef struct cx_store_entry {
  struct cx_store_entry *next;
  size_t size;
  char *value;  // behind the key; zero-terminated past its size
  char key[];
} cx_store_entry;

typedef struct cx_store_table {
  cx_store_entry *chains[CX_STORE_TABLE_CHAINS];
  size_t count, bytes;  // of the entries, heads and keys included
} cx_store_table;       // the zero value is the empty table

// ALREADY_EXISTS if the key has another value; the same value is success.
calx_status *cx_store_table_put(cx_store_table *table, const char *key,
                                const void *value, size_t size) CALX_MUST_USE;
const cx_store_entry *cx_store_table_find(const cx_store_table *table,
                                          const char *key);
void cx_store_table_drop(cx_store_table *table, const char *key);
void cx_store_table_free(cx_store_table *table);

// The error for a key that the table lacks.
calx_status *cx_store_table_no_key(const char *key) CALX_MUST_USE;
// Appends the message for a wait that exceeded its limit.
void cx_store_table_format_late(const char *key, int64_t timeout_ms,
                                cx_text *out);

#endif
