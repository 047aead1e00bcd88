// fake/client: clients, their devices, and the thread that works for them.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fake.h"
#include "internal.h"

#define EXPORT __attribute__((visibility("default")))

// The one kind of memory, the same for all devices.
static PJRT_Memory memory;

// ---- the thread ----

static void *work(void *user)
{
  PJRT_Client *c = user;
  pthread_mutex_lock(&c->lock);
  while (c->first != NULL || !c->closing) {
    fake_job *job = c->first;
    if (job == NULL) {
      pthread_cond_wait(&c->wake, &c->lock);
      continue;
    }
    c->first = job->next;
    if (c->first == NULL) c->last = NULL;
    pthread_mutex_unlock(&c->lock);
    fake_wait_while_held();
    job->run(job->user);
    free(job);
    pthread_mutex_lock(&c->lock);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

void fake_work(PJRT_Client *c, void (*run)(void *user), void *user)
{
  if (!fake_is_async()) {
    run(user);
    return;
  }
  fake_job *job = calloc(1, sizeof *job);
  if (job == NULL) abort();
  *job = (fake_job){ .run = run, .user = user };
  pthread_mutex_lock(&c->lock);
  if (!c->started) {
    if (pthread_create(&c->thread, NULL, work, c) != 0) abort();
    c->started = true;
  }
  if (c->last == NULL) {
    c->first = job;
  } else {
    c->last->next = job;
  }
  c->last = job;
  pthread_cond_signal(&c->wake);
  pthread_mutex_unlock(&c->lock);
}

// ---- clients ----

// The last client's, for fake_pjrt_store().
static PJRT_Client_Create_Args store;

EXPORT bool fake_pjrt_has_store(void);
EXPORT bool fake_pjrt_has_store(void)
{
  return store.kv_get_callback != NULL && store.kv_put_callback != NULL &&
         store.kv_try_get_callback != NULL;
}

static PJRT_Error *make_error(PJRT_Error_Code code, const char *text,
                              size_t size)
{
  return fake_error((int)code, "%.*s", (int)size, text);
}

// Takes what came; the error's code.
static int finish(PJRT_Error *error, char *value, size_t size,
                  void (*drop)(char *value), fake_value *out)
{
  int code = 0;
  out->size = 0;
  if (error != NULL) {
    PJRT_Error_GetCode_Args get = { .error = error };
    PJRT_Error_Message_Args message = { .error = error };
    PJRT_Error_Destroy_Args destroy = { .error = error };
    fake_inner.PJRT_Error_GetCode(&get);
    fake_inner.PJRT_Error_Message(&message);
    code = (int)get.code;
    out->size = message.message_size;
    if (out->size > sizeof out->bytes) out->size = sizeof out->bytes;
    memcpy(out->bytes, message.message, out->size);
    fake_inner.PJRT_Error_Destroy(&destroy);
  } else if (value != NULL) {
    out->size = size < sizeof out->bytes ? size : sizeof out->bytes;
    memcpy(out->bytes, value, out->size);
    drop(value);
  }
  return code;
}

// As XLA calls them: the arguments' heads are rubbish.
EXPORT int fake_pjrt_store(fake_value *v);
EXPORT int fake_pjrt_store(fake_value *v)
{
  PJRT_CallbackError make = make_error;
  if (v->what == FAKE_PUT) {
    PJRT_KeyValuePutCallback_Args a;
    memset(&a, 0x5a, sizeof a);
    a.key = v->key, a.key_size = v->key_size;
    a.value = v->bytes, a.value_size = v->size;
    a.callback_error = &make, a.user_arg = store.kv_put_user_arg;
    return finish(store.kv_put_callback(&a), NULL, 0, NULL, v);
  }
  if (v->what == FAKE_TRY_GET) {
    PJRT_KeyValueTryGetCallback_Args a;
    memset(&a, 0x5a, sizeof a);
    a.key = v->key, a.key_size = v->key_size;
    a.callback_error = &make, a.user_arg = store.kv_try_get_user_arg;
    PJRT_Error *error = store.kv_try_get_callback(&a);
    return finish(error, a.value, a.value_size, a.value_deleter_callback, v);
  }
  PJRT_KeyValueGetCallback_Args a;
  memset(&a, 0x5a, sizeof a);
  a.key = v->key, a.key_size = v->key_size, a.timeout_in_ms = v->timeout_ms;
  a.callback_error = &make, a.user_arg = store.kv_get_user_arg;
  PJRT_Error *error = store.kv_get_callback(&a);
  return finish(error, a.value, a.value_size, a.value_deleter_callback, v);
}

// Takes the number of devices and of processes from the options and writes all
// of them down.
static void read_options(const PJRT_Client_Create_Args *args, int *n_devices,
                         int place[2])
{
  char text[512] = "";
  size_t used = 0;
  for (size_t i = 0; i < args->num_options; i++) {
    const PJRT_NamedValue *o = &args->create_options[i];
    char value[64] = "?";
    if (o->type == PJRT_NamedValue_kInt64) {
      snprintf(value, sizeof value, "%" PRId64, o->int64_value);
    } else if (o->type == PJRT_NamedValue_kBool) {
      snprintf(value, sizeof value, "%s", o->bool_value ? "true" : "false");
    } else if (o->type == PJRT_NamedValue_kString) {
      snprintf(value, sizeof value, "'%.*s'", (int)o->value_size,
               o->string_value);
    } else if (o->type == PJRT_NamedValue_kFloat) {
      snprintf(value, sizeof value, "%g", (double)o->float_value);
    } else if (o->type == PJRT_NamedValue_kInt64List && o->value_size == 2) {
      snprintf(value, sizeof value, "%" PRId64 ",%" PRId64,
               o->int64_array_value[0], o->int64_array_value[1]);
    }
    if (o->name_size == 16 && memcmp(o->name, "cpu_device_count", 16) == 0) {
      *n_devices = (int)o->int64_value;
    }
    if (o->name_size == 7 && memcmp(o->name, "node_id", 7) == 0) {
      place[0] = (int)o->int64_value;
    }
    if (o->name_size == 9 && memcmp(o->name, "num_nodes", 9) == 0) {
      place[1] = (int)o->int64_value;
    }
    int n = snprintf(text + used, sizeof text - used, "%s%.*s=%s",
                     i == 0 ? "" : ";", (int)o->name_size, o->name, value);
    if (n > 0 && (size_t)n < sizeof text - used) used += (size_t)n;
  }
  fake_note_options(text);
}

static PJRT_Error *client_create(PJRT_Client_Create_Args *args)
{
  int n = fake_device_count(), place[2] = { 0, 1 };
  read_options(args, &n, place);
  if (place[0] >= place[1]) place[0] = 0, place[1] = 1;
  if (n < 0 || n * place[1] > FAKE_DEVICES) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "fake: %d devices", n);
  }
  PJRT_Client *c = calloc(1, sizeof *c);
  if (c == NULL) abort();
  c->n_devices = n;
  fake_platform(c->platform);
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->wake, NULL);
  for (int i = 0; i < n; i++) {
    for (int p = 0; p < place[1]; p++) {
      bool here = p == place[0];
      PJRT_Device *d = here ? &c->devices[i] : &c->others[c->n_everywhere];
      int id = 10 + i * place[1] + p;  // not the index
      d->description.id = id;
      d->description.process = p;
      snprintf(d->description.text, sizeof d->description.text, "Fake(id=%d)",
               id);
      d->client = c;
      d->memories[0] = &memory;
      c->everywhere[c->n_everywhere++] = d;
      if (here) c->list[i] = d;
    }
  }
  store = *args;
  atomic_fetch_add(&fake_live_objects, 1);
  args->client = c;
  return NULL;
}

static PJRT_Error *client_destroy(PJRT_Client_Destroy_Args *args)
{
  PJRT_Client *c = args->client;
  pthread_mutex_lock(&c->lock);
  c->closing = true;
  bool started = c->started;
  pthread_cond_signal(&c->wake);
  pthread_mutex_unlock(&c->lock);
  if (started) pthread_join(c->thread, NULL);
  pthread_mutex_destroy(&c->lock);
  pthread_cond_destroy(&c->wake);
  atomic_fetch_sub(&fake_live_objects, 1);
  free(c);
  return NULL;
}

static PJRT_Error *client_platform_name(PJRT_Client_PlatformName_Args *args)
{
  args->platform_name = args->client->platform;
  args->platform_name_size = strlen(args->client->platform);
  return NULL;
}

static PJRT_Error *client_platform_version(
    PJRT_Client_PlatformVersion_Args *args)
{
  args->platform_version = "one(not its end)";
  args->platform_version_size = 3;
  return NULL;
}

static PJRT_Error *client_devices(PJRT_Client_AddressableDevices_Args *args)
{
  args->addressable_devices = args->client->list;
  args->num_addressable_devices = (size_t)args->client->n_devices;
  return NULL;
}

static PJRT_Error *client_everywhere(PJRT_Client_Devices_Args *args)
{
  args->devices = args->client->everywhere;
  args->num_devices = (size_t)args->client->n_everywhere;
  return NULL;
}

// ---- devices ----

static PJRT_Error *device_description(PJRT_Device_GetDescription_Args *args)
{
  args->device_description = &args->device->description;
  return NULL;
}

static PJRT_Error *description_id(PJRT_DeviceDescription_Id_Args *args)
{
  args->id = args->device_description->id;
  return NULL;
}

static PJRT_Error *description_process(
    PJRT_DeviceDescription_ProcessIndex_Args *args)
{
  args->process_index = args->device_description->process;
  return NULL;
}

static PJRT_Error *description_kind(PJRT_DeviceDescription_Kind_Args *args)
{
  args->device_kind = "pebble";
  args->device_kind_size = 6;
  return NULL;
}

static PJRT_Error *description_text(PJRT_DeviceDescription_ToString_Args *args)
{
  args->to_string = args->device_description->text;
  args->to_string_size = strlen(args->device_description->text);
  return NULL;
}

static PJRT_Error *device_memories(PJRT_Device_AddressableMemories_Args *args)
{
  args->memories = args->device->memories;
  args->num_memories = 1;
  return NULL;
}

static PJRT_Error *memory_kind(PJRT_Memory_Kind_Args *args)
{
  args->kind = "device";
  args->kind_size = 6;
  return NULL;
}

static PJRT_Error *device_memory_stats(PJRT_Device_MemoryStats_Args *args)
{
  args->bytes_in_use = 1000;
  args->peak_bytes_in_use = 2000;
  args->peak_bytes_in_use_is_set = true;
  args->bytes_limit = 3000;  // but not set
  return NULL;
}

void fake_fill_client(PJRT_Api *api)
{
  api->PJRT_Client_Create = client_create;
  api->PJRT_Client_Destroy = client_destroy;
  api->PJRT_Client_PlatformName = client_platform_name;
  api->PJRT_Client_PlatformVersion = client_platform_version;
  api->PJRT_Client_AddressableDevices = client_devices;
  api->PJRT_Client_Devices = client_everywhere;
  api->PJRT_DeviceDescription_ProcessIndex = description_process;
  api->PJRT_Device_GetDescription = device_description;
  api->PJRT_DeviceDescription_Id = description_id;
  api->PJRT_DeviceDescription_Kind = description_kind;
  api->PJRT_DeviceDescription_ToString = description_text;
  api->PJRT_Device_AddressableMemories = device_memories;
  api->PJRT_Memory_Kind = memory_kind;
  api->PJRT_Device_MemoryStats = device_memory_stats;
}
