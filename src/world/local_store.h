// world/local_store: the store of a world of one process, whose threads wait
// for keys.
#ifndef CX_WORLD_LOCAL_STORE_H
#define CX_WORLD_LOCAL_STORE_H

#include "world/world.h"

calx_status *cx_world_local_store_put(const char *key, const void *value,
                                      size_t size) CALX_MUST_USE;
// timeout_ms < 0: NOT_FOUND at once.
calx_status *cx_world_local_store_get(const char *key, int64_t timeout_ms,
                                      char **out,
                                      size_t *out_size) CALX_MUST_USE;
void cx_world_local_store_drop(const char *key);
// Wakes the threads that wait, after a failure of the job.
void cx_world_local_store_wake(void);
// Removes all keys.
void cx_world_local_store_clear(void);

#endif
