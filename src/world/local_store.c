// world/local_store: one lock, one condition for all keys; a world of one
// process has few threads that wait here.
#include "world/local_store.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "world/state.h"

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

static calx_status *copy(const cx_store_entry *entry, char **out,
                         size_t *out_size)
{
  *out = cx_alloc(entry->size + 1);
  if (*out == NULL) return cx_out_of_memory();
  memcpy(*out, entry->value, entry->size + 1);
  *out_size = entry->size;
  return NULL;
}

calx_status *cx_world_local_store_get(const char *key, int64_t timeout_ms,
                                      char **out, size_t *out_size)
{
  int64_t limit =
      timeout_ms < INT64_MAX / 4000000 ? timeout_ms : INT64_MAX / 4000000;
  int64_t until = cx_now_ns() + limit * 1000000;
  lock();
  const cx_store_entry *entry = cx_store_table_find(&local.table, key);
  calx_status *status = NULL;
  while (entry == NULL && status == NULL && timeout_ms >= 0) {
    int64_t left = until - cx_now_ns();
    status = cx_world_failure();
    if (status == NULL && left <= 0) {
      status = cx_error(CALX_DEADLINE_EXCEEDED,
                        "store: nobody put key '%s' within %lld ms", key,
                        (long long)timeout_ms);
    } else if (status == NULL) {
      cx_cond_wait_ms(&local.changed, &local.lock, left / 1000000 + 1);
      entry = cx_store_table_find(&local.table, key);
    }
  }
  if (entry != NULL) {
    status = copy(entry, out, out_size);
  } else if (status == NULL) {
    status = cx_error(CALX_NOT_FOUND, "store: there is no key '%s'", key);
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
