// world/store: calls to the store's server, or to this process's table.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/client.h"
#include "world/local_store.h"
#include "world/state.h"

static calx_status *call(cx_store_op op, const char *key, const void *value,
                         size_t size, int64_t wait_ms, char **out,
                         size_t *out_size)
{
  cx_store_request r;
  CALX_TRY(cx_store_client_request(op, key, &r));
  r.value = value;
  r.size = size;
  r.wait_ms = wait_ms;
  return cx_store_client_call(cx_world_global.client, &r, out, out_size);
}

calx_status *cx_world_store_put(const char *key, const void *value, size_t size)
{
  if (cx_world_global.client == NULL) {
    return cx_world_local_store_put(key, value, size);
  }
  if (size > CX_STORE_TABLE_VALUE) {
    return cx_invalid(
        "store: values of at most %zu bytes are taken, '%s' has %zu",
        CX_STORE_TABLE_VALUE, key, size);
  }
  return call(CX_STORE_OP_PUT, key, value, size, 0, NULL, NULL);
}

calx_status *cx_world_store_get(const char *key, int64_t timeout_ms, char **out,
                                size_t *out_size)
{
  *out = NULL;
  *out_size = 0;
  if (timeout_ms < 0) timeout_ms = 0;
  if (cx_world_global.client == NULL) {
    return cx_world_local_store_get(key, timeout_ms, out, out_size);
  }
  return call(CX_STORE_OP_GET, key, NULL, 0, timeout_ms, out, out_size);
}

calx_status *cx_world_store_try_get(const char *key, char **out,
                                    size_t *out_size)
{
  *out = NULL;
  *out_size = 0;
  if (cx_world_global.client == NULL) {
    return cx_world_local_store_get(key, -1, out, out_size);
  }
  return call(CX_STORE_OP_TRY, key, NULL, 0, 0, out, out_size);
}

void cx_world_store_drop(const char *key)
{
  if (cx_world_global.client == NULL) {
    cx_world_local_store_drop(key);
  } else {
    calx_status_free(call(CX_STORE_OP_DROP, key, NULL, 0, 0, NULL, NULL));
  }
}

calx_status *cx_world_exchange(const char *name, const void *value, size_t size,
                               int64_t timeout_ms, char **out, size_t *out_size)
{
  cx_store_request r;
  CALX_TRY(cx_store_client_request(CX_STORE_OP_EXCHANGE_ALL, name, &r));
  r.a = cx_world_global.info.process;
  r.b = cx_world_global.info.processes;
  r.value = value;
  r.size = size;
  r.wait_ms = timeout_ms;
  return cx_store_client_call(cx_world_global.client, &r, out, out_size);
}

bool cx_world_exchange_next(const char **list, size_t *left, void *out,
                            size_t size)
{
  const char *value;
  size_t found;
  bool valid = cx_store_wire_next(list, left, &value, &found) && found == size;
  if (valid) memcpy(out, value, size);
  return valid;
}

calx_status *cx_world_barrier(const char *name, int64_t timeout_ms)
{
  if (cx_world_global.client == NULL) return cx_world_failure();
  char *all;
  size_t size;
  CALX_TRY(cx_world_exchange(name, NULL, 0, timeout_ms > 0 ? timeout_ms : 0,
                             &all, &size));
  cx_free(all);
  return NULL;
}
