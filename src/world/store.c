// world/store: the store's calls, to this process's table or to the server.
#include <string.h>

#include "world/local.h"
#include "world/state.h"

calx_status *cx_store_put(const char *key, const void *value, size_t size)
{
  return cx_local_put(key, value, size);
}

calx_status *cx_store_get(const char *key, int64_t timeout_ms, char **out,
                          size_t *out_size)
{
  *out = NULL;
  *out_size = 0;
  if (timeout_ms < 0) timeout_ms = 0;
  return cx_local_get(key, timeout_ms, out, out_size);
}

calx_status *cx_store_try_get(const char *key, char **out, size_t *out_size)
{
  *out = NULL;
  *out_size = 0;
  return cx_local_get(key, -1, out, out_size);
}

void cx_store_drop(const char *key)
{
  cx_local_drop(key);
}

calx_status *cx_store_barrier(const char *name, int64_t timeout_ms)
{
  (void)name;
  (void)timeout_ms;
  return cx_world_news();
}
