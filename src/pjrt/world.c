// pjrt/world: what a plugin learns about the processes that train together.
//
// - The library's own engine presents the devices of all processes: it gets
//   this process's rank and host, the segment that the processes of the host
//   share, and between hosts callbacks to the store.
// - CUDA and unknown plugins get the rank, and callbacks to the store, through
//   which their processes find each other. A CUDA process uses the card whose
//   number is its local rank.
// - XLA's CPU plugin works in one process only. libtpu reads the environment.
//
// XLA sets only some fields of the callbacks' arguments, and calls them from
// several threads at once.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

#define KEY_PREFIX "pjrt:"

// ---- options ----------------------------------------------------------------

static size_t add(cx_pjrt_option *list, size_t n, const char *name,
                  int64_t value)
{
  list[n] =
      (cx_pjrt_option){ .name = name, .type = CX_PJRT_INT, .int_value = value };
  return n + 1;
}

// Whether CUDA shows this process a card for each process of the host.
static bool sees_all_cards(const cx_pjrt_world *w)
{
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible == NULL) return true;
  int64_t n = *visible != '\0';
  for (const char *p = visible; *p != '\0'; p++) n += *p == ',';
  return n >= w->local_processes;
}

size_t cx_pjrt_world_options(const cx_pjrt_plugin *plugin,
                             const cx_pjrt_world *w, cx_pjrt_option *list)
{
  size_t n = 0;
  if (w == NULL || w->processes <= 1) return 0;
  if (plugin->kind == CX_PJRT_KIND_TPU ||
      (plugin->kind == CX_PJRT_KIND_CPU && !plugin->is_own)) {
    return 0;
  }
  n = add(list, n, "node_id", w->process);
  n = add(list, n, "num_nodes", w->processes);
  if (plugin->is_own) {
    if (w->segment_fd >= 0) {
      n = add(list, n, CALX_OPTION_SEGMENT_FD, w->segment_fd);
    }
    n = add(list, n, CALX_OPTION_HOST, w->host);
    n = add(list, n, CALX_OPTION_HOSTS, w->hosts);
    if (w->host_processes > 0) {
      n = add(list, n, CALX_OPTION_HOST_FIRST, w->host_first);
      n = add(list, n, CALX_OPTION_HOST_PROCESSES, w->host_processes);
    }
  }
  if (plugin->kind == CX_PJRT_KIND_CUDA && w->local_processes > 1 &&
      sees_all_cards(w)) {
    list[n++] = (cx_pjrt_option){ .name = "visible_devices",
                                  .type = CX_PJRT_INTS,
                                  .ints_value = &w->local_process,
                                  .n_ints = 1 };
  }
  return n;
}

// ---- the store --------------------------------------------------------------

// Frees the status. A code that no store's operation has is a failure of the
// job.
static PJRT_Error *answer(calx_status *status, PJRT_CallbackError *make)
{
  if (status == NULL) return NULL;
  calx_code code = calx_status_code(status);
  switch (code) {
    case CALX_DEADLINE_EXCEEDED:
    case CALX_NOT_FOUND:
    case CALX_ALREADY_EXISTS:
    case CALX_INVALID_ARGUMENT:
    case CALX_RESOURCE_EXHAUSTED: break;
    default: code = CALX_ABORTED;
  }
  const char *text = cx_status_sentence(status);
  PJRT_Error *error = (*make)((PJRT_Error_Code)code, text, strlen(text));
  calx_status_free(status);
  return error;
}

// XLA's keys are bytes, the store's are texts: a zero byte becomes %00, and a
// percent sign %25.
static calx_status *name_of(const char *key, size_t size, cx_text *out)
{
  cx_text_append(out, KEY_PREFIX);
  for (size_t i = 0; i < size; i++) {
    if (key[i] == '\0' || key[i] == '%') {
      cx_text_append(out, key[i] == '%' ? "%25" : "%00");
    } else {
      cx_text_char(out, key[i]);
    }
  }
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

static void free_value(char *value)
{
  cx_free(value);
}

// timeout_ms < 0: NOT_FOUND at once.
static calx_status *read_value(const cx_pjrt_world *w, const char *key,
                               size_t key_size, int64_t timeout_ms,
                               char **value, size_t *size)
{
  cx_text name = { 0 };
  *value = NULL;
  *size = 0;
  calx_status *status = name_of(key, key_size, &name);
  if (status == NULL) {
    status = timeout_ms < 0 ? w->try_get(name.data, value, size)
                            : w->get(name.data, timeout_ms, value, size);
  }
  cx_text_free(&name);
  return status;
}

static PJRT_Error *get(PJRT_KeyValueGetCallback_Args *args)
{
  int64_t timeout_ms = args->timeout_in_ms > 0 ? args->timeout_in_ms : 0;
  args->value_deleter_callback = free_value;
  return answer(read_value(args->user_arg, args->key, args->key_size,
                           timeout_ms, &args->value, &args->value_size),
                args->callback_error);
}

static PJRT_Error *try_get(PJRT_KeyValueTryGetCallback_Args *args)
{
  args->value_deleter_callback = free_value;
  return answer(read_value(args->user_arg, args->key, args->key_size, -1,
                           &args->value, &args->value_size),
                args->callback_error);
}

static PJRT_Error *put(PJRT_KeyValuePutCallback_Args *args)
{
  const cx_pjrt_world *w = args->user_arg;
  cx_text name = { 0 };
  calx_status *status = name_of(args->key, args->key_size, &name);
  if (status == NULL) {
    status = w->put(name.data, args->value_size != 0 ? args->value : "",
                    args->value_size);
  }
  cx_text_free(&name);
  return answer(status, args->callback_error);
}

void cx_pjrt_world_callbacks(cx_pjrt_client *c, PJRT_Client_Create_Args *args)
{
  cx_pjrt_world *w = &c->world;
  const cx_pjrt_kind kind = c->plugin->kind;
  const bool is_between_hosts = c->plugin->is_own && w->hosts > 1;
  if (w->processes <= 1 || w->get == NULL || kind == CX_PJRT_KIND_TPU ||
      (kind == CX_PJRT_KIND_CPU && !is_between_hosts)) {
    return;
  }
  args->kv_get_callback = get;
  args->kv_put_callback = put;
  args->kv_try_get_callback = try_get;
  args->kv_get_user_arg = args->kv_put_user_arg = args->kv_try_get_user_arg = w;
}

// ---- programs of all ranks --------------------------------------------------

typedef struct global_device {
  int process;
  int64_t id;
} global_device;

static int by_process(const void *a, const void *b)
{
  const global_device *x = a, *y = b;
  if (x->process != y->process) return x->process < y->process ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

// Describes a device of any process. A plugin that reports no process has one
// process.
static calx_status *describe(const cx_pjrt_client *c, PJRT_Device *device,
                             global_device *out)
{
  PJRT_DeviceDescription *about = NULL;
  int id = 0;
  CALX_TRY(cx_pjrt_device_describe(c->plugin, device, &about, &id));
  CX_PJRT_DECLARE(process, PJRT_DeviceDescription_ProcessIndex,
                  .device_description = about);
  cx_pjrt_ignore(
      CX_PJRT_CALL(c->plugin, PJRT_DeviceDescription_ProcessIndex, &process));
  *out = (global_device){ process.process_index, id };
  return NULL;
}

// The first `each` devices of each process become replicas. `all` is sorted.
static bool choose_devices(const global_device *all, size_t n, size_t each,
                           size_t n_replicas, int64_t *ids)
{
  size_t chosen = 0;
  for (size_t i = 0, of_process = 0; i < n; i++, of_process++) {
    if (i > 0 && all[i].process != all[i - 1].process) {
      if (of_process < each) return false;
      of_process = 0;
    }
    if (of_process >= each) continue;
    if (chosen == n_replicas) return false;
    ids[chosen++] = all[i].id;
  }
  return chosen == n_replicas;
}

static calx_status *find_devices(const cx_pjrt_client *c, size_t n_replicas,
                                 const PJRT_Client_Devices_Args *args,
                                 global_device *all, int64_t *ids)
{
  size_t n = args->devices != NULL ? args->num_devices : 0;
  size_t processes =
      c->world.processes > 1 ? (size_t)c->world.processes : (size_t)1;
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(describe(c, args->devices[i], &all[i]));
  }
  qsort(all, n, sizeof *all, by_process);
  if (n_replicas % processes == 0 &&
      choose_devices(all, n, n_replicas / processes, n_replicas, ids)) {
    return NULL;
  }
  return cx_error(CALX_FAILED_PRECONDITION,
                  "%zu replicas are wanted, platform '%s' has %zu devices "
                  "here and %zu in all processes",
                  n_replicas, c->platform, c->n_devices, n);
}

calx_status *cx_pjrt_world_devices(const cx_pjrt_client *c, size_t n_replicas,
                                   int64_t *ids)
{
  CX_PJRT_DECLARE(args, PJRT_Client_Devices, .client = c->raw);
  CALX_TRY(CX_PJRT_CALL(c->plugin, PJRT_Client_Devices, &args));
  global_device *all = cx_calloc(args.num_devices + 1, sizeof *all);
  if (all == NULL) return cx_out_of_memory();
  calx_status *status = find_devices(c, n_replicas, &args, all, ids);
  cx_free(all);
  return status;
}
