// world/local_store: one lock and one condition for all keys, since few threads
// of one process wait for keys.
#include "world/local_store.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "store/table.h"

static struct {
  cx_mutex lock;
  cx_cond changed;
  pthread_once_t once;
  cx_store_table table;
} local = { .lock = CX_MUTEX_INIT, .once = PTHREAD_ONCE_INIT };

static void init_condition(void)
{
  cx_cond_init(&local.changed);
}

static void lock(void)
{
  pthread_once(&local.once, init_condition);
  cx_lock(&local.lock);
}

calx_status *cx_world_local_store_put(const char *key, const void *value,
                                      size_t size)
{
  lock();
  calx_status *status = cx_store_table_put(&local.table, key, value, size);
  cx_cond_broadcast(&local.changed);
  cx_unlock(&local.lock);
  return status;
}

static calx_status *late(const char *key, int64_t timeout_ms)
{
  cx_text text = { 0 };
  cx_store_table_format_late(key, timeout_ms, &text);
  calx_status *status =
      cx_error(CALX_DEADLINE_EXCEEDED, "%s", cx_text_str(&text));
  cx_text_free(&text);
  return status;
}

// The caller holds the lock.
static calx_status *wait_for(const char *key, int64_t timeout_ms,
                             const cx_store_entry **out)
{
  int64_t limit =
      timeout_ms < INT64_MAX / 4000000 ? timeout_ms : INT64_MAX / 4000000;
  int64_t until = cx_now_ns() + limit * 1000000;
  while ((*out = cx_store_table_find(&local.table, key)) == NULL) {
    int64_t left = until - cx_now_ns();
    if (timeout_ms < 0) return cx_store_table_no_key(key);
    CALX_TRY(cx_world_failure());
    if (left <= 0) return late(key, timeout_ms);
    cx_cond_wait_ms(&local.changed, &local.lock, left / 1000000 + 1);
  }
  return NULL;
}

calx_status *cx_world_local_store_get(const char *key, int64_t timeout_ms,
                                      char **out, size_t *out_size)
{
  const cx_store_entry *entry;
  lock();
  calx_status *status = wait_for(key, timeout_ms, &entry);
  if (status == NULL) {
    *out = cx_strndup(entry->value, entry->size);
    *out_size = entry->size;
    if (*out == NULL) status = cx_out_of_memory();
  }
  cx_unlock(&local.lock);
  return status;
}

void cx_world_local_store_drop(const char *key)
{
  lock();
  cx_store_table_drop(&local.table, key);
  cx_unlock(&local.lock);
}

void cx_world_local_store_wake(void)
{
  lock();
  cx_cond_broadcast(&local.changed);
  cx_unlock(&local.lock);
}

void cx_world_local_store_clear(void)
{
  lock();
  cx_store_table_free(&local.table);
  cx_unlock(&local.lock);
}
