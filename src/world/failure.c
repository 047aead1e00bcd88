// world/failure: how this process learns of the job's failure, and causes it.
#include "store/client.h"
#include "world/local_store.h"
#include "world/state.h"

void cx_world_take_failure(void *user, calx_code code, const char *message)
{
  cx_world_state *w = &cx_world_global;
  (void)user;
  cx_lock(&w->lock);
  cx_world_segment_fail(w->head, code, message);
  if (w->agreement != NULL) cx_world_wake_all(&w->agreement->wake);
  cx_unlock(&w->lock);
}

void cx_world_fail(calx_code code, const char *message)
{
  calx_status *first = NULL;
  if (cx_world_global.client != NULL) {
    first = cx_store_client_fail(cx_world_global.client, code, message);
    code = calx_status_code(first);
    message = cx_status_sentence(first);
  }
  cx_world_take_failure(NULL, code, message);
  cx_world_local_store_wake();
  calx_status_free(first);
}
