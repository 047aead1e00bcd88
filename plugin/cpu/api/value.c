// api/value: values, which are the memory of tensors and their events.
#include "api/api.h"
#include "base/alloc.h"

cpu_api_value *cpu_api_value_new(PJRT_Device *device, PJRT_Event *ready)
{
  cpu_api_value *v = cx_calloc(1, sizeof *v);
  if (v == NULL) {
    cpu_api_event_release(ready);
    return NULL;
  }
  atomic_init(&v->refs, 1);
  atomic_init(&v->donated, 0);
  v->device = device;
  v->ready = ready;
  cpu_api_client_retain(device->client);
  return v;
}

void cpu_api_value_retain(cpu_api_value *value)
{
  cpu_api_ref(&value->refs);
}

void cpu_api_value_release(cpu_api_value *value)
{
  if (value == NULL || !cpu_api_unref(&value->refs)) return;
  PJRT_Client *client = value->device->client;
  cpu_api_block_release(&value->device->cache, &value->block);
  cpu_api_event_release(value->ready);
  cx_free(value);
  cpu_api_client_release(client);
}

calx_status *cpu_api_value_wait(cpu_api_value *value)
{
  cpu_api_event_wait(value->ready);
  return cx_status_copy(cpu_api_event_error(value->ready));
}
