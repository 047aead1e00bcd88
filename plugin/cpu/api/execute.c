// api/execute: makes launches on devices from the caller's lists.
//
// Everything is checked before a launch starts: the number, shape, element type
// and device of the arguments, and that none was deleted or is donated twice.
// Then the caller itself runs a small program on an idle device, which is
// faster than waking a thread. All other launches are queued. From then on only
// the launch itself can fail, and its results have its error.
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

// Waking a thread and being woken by it takes longer.
#define INLINE_NS 20e3

static atomic_ullong launches;

// ---- a launch's memory ----

static cpu_coll_launch coll_of(const PJRT_LoadedExecutable *e,
                               size_t replica_slot)
{
  const cpu_run_program_info *info = e->code->info;
  cpu_coll_launch coll = { .coll = e->client->coll,
                           .n_replicas = info->n_replicas,
                           .n_partitions = info->n_partitions,
                           .timeout_ms = e->client->timeout_ms,
                           .devices = e->numbers,
                           .device_group = e->device_group,
                           .program = info->fingerprint.low };
  if (!e->portable) {
    coll.replica = (uint32_t)e->logical[replica_slot].replica;
    coll.partition = (uint32_t)e->logical[replica_slot].partition;
  }
  return coll;
}

static cpu_api_launch *launch_new(PJRT_LoadedExecutable *e, size_t replica_slot,
                                  PJRT_Device *device)
{
  const cpu_run_program_info *info = e->code->info;
  size_t n = info->n_params;
  size_t m = info->n_results;
  size_t bytes = sizeof(cpu_api_launch) + (3 * n + 2 * m) * sizeof(void *) + n;
  cpu_api_launch *l = cx_calloc(1, bytes);
  if (l == NULL) return NULL;
  void **at = (void **)(l + 1);
  l->args = (cpu_api_value **)at;
  l->donors = (PJRT_Buffer **)(at + n);
  l->pointers = at + 2 * n;
  l->results = (cpu_api_value **)(at + 3 * n + m);
  l->keeps = (bool *)(at + 3 * n + 2 * m);
  l->n_args = n;
  l->n_results = m;
  l->device = device;
  l->executable = e;
  cpu_api_ref(&e->refs);
  l->coll = coll_of(e, replica_slot);
  return l;
}

// ---- arguments ----

static calx_status *check_arg(const cpu_api_launch *l, size_t i,
                              const PJRT_Buffer *b)
{
  const cpu_api_shape *wanted = &l->executable->code->params[i];
  const char *name = l->executable->code->info->name;
  if (b == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "argument %zu of '%s' is NULL", i,
                    name);
  }
  if (b->device == l->device && cpu_api_shape_equal(wanted, &b->shape)) {
    return NULL;
  }
  return cx_error(
      CALX_INVALID_ARGUMENT,
      "argument %zu of '%s': wanted %s on device %d, found %s on "
      "device %d%s",
      i, name, cpu_api_shape_str(wanted).s, l->device->description.id,
      cpu_api_shape_str(&b->shape).s, b->device->description.id,
      b->device->client == l->device->client ? "" : " of another client");
}

static calx_status *missing(const cpu_api_launch *l, size_t i,
                            const PJRT_Buffer *b)
{
  for (size_t k = 0; k < i; k++) {
    if (l->donors[k] == b) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "argument %zu of '%s' is the buffer that argument %zu "
                      "donates: f(donate(a), a)",
                      i, l->executable->code->info->name, k);
    }
  }
  return cx_annotate(cpu_api_buffer_deleted(b), "argument %zu of '%s'", i,
                     l->executable->code->info->name);
}

static calx_status *take_arg(cpu_api_launch *l, size_t i, PJRT_Buffer *b,
                             uint64_t number)
{
  CALX_TRY(check_arg(l, i, b));
  cx_lock(&b->lock);
  cpu_api_value *v = b->value;
  if (v != NULL && l->executable->code->may_donate[i] && !l->keeps[i] &&
      b->external == 0) {
    atomic_store_explicit(&v->donated, number, memory_order_relaxed);
    l->donors[i] = b;
    b->value = NULL;
  } else if (v != NULL) {
    cpu_api_value_retain(v);
  }
  cx_unlock(&b->lock);
  l->args[i] = v;
  return v != NULL ? NULL : missing(l, i, b);
}

// Returns donated buffers to the caller.
static void put_back(cpu_api_launch *l)
{
  for (size_t i = 0; i < l->n_args; i++) {
    PJRT_Buffer *b = l->donors[i];
    if (b == NULL) continue;
    cx_lock(&b->lock);
    b->value = l->args[i];
    cx_unlock(&b->lock);
    l->args[i] = NULL;
    l->donors[i] = NULL;
  }
}

static calx_status *take_args(cpu_api_launch *l, PJRT_Buffer *const *args,
                              const PJRT_ExecuteOptions *options)
{
  uint64_t number =
      atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed) + 1;
  size_t n_keeps = options->num_non_donatable_input_indices;
  for (size_t i = 0;
       options->non_donatable_input_indices != NULL && i < n_keeps; i++) {
    int64_t k = options->non_donatable_input_indices[i];
    if (k >= 0 && (uint64_t)k < l->n_args) l->keeps[k] = true;
  }
  for (size_t i = 0; i < l->n_args; i++) {
    CALX_TRY(take_arg(l, i, args[i], number));
  }
  for (size_t i = 0; i < l->n_args; i++) {
    if (l->donors[i] == NULL &&
        atomic_load_explicit(&l->args[i]->donated, memory_order_relaxed) ==
            number) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "argument %zu of '%s' is a buffer that a later argument "
                      "donates: f(a, donate(a))",
                      i, l->executable->code->info->name);
    }
  }
  return NULL;
}

// ---- results ----

static void drop_results(cpu_api_launch *l, PJRT_Buffer **out)
{
  for (size_t i = 0; i < l->n_results; i++) {
    cpu_api_buffer_free(out[i]);
    out[i] = NULL;
  }
}

// Makes the results' values, still without memory, and their buffers. A launch
// without an event is run before the caller sees them, so they count as ready.
static calx_status *promise_results(cpu_api_launch *l, PJRT_Buffer **out)
{
  const cpu_api_code *code = l->executable->code;
  for (size_t i = 0; i < l->n_results; i++) {
    PJRT_Event *ready =
        l->done == NULL ? cpu_api_event_ready() : cpu_api_event_retain(l->done);
    cpu_api_value *v = cpu_api_value_new(l->device, ready);
    if (v == NULL) return cx_out_of_memory();
    l->results[i] = v;
    cpu_api_value_retain(v);
    CALX_TRY(cpu_api_buffer_new(v, &code->results[i], code->result_bytes[i],
                                &out[i]));
  }
  return NULL;
}

// ---- running ----

static bool is_small(const cpu_api_launch *l)
{
  const cpu_run_program_info *info = l->executable->code->info;
  bool alone = info->n_replicas <= 1 && info->n_partitions <= 1;
  if (!(info->cost_ns < INLINE_NS) || (info->has_collectives && !alone)) {
    return false;
  }
  for (size_t i = 0; i < l->n_args; i++) {
    if (!cpu_api_event_is_ready(l->args[i]->ready)) return false;
  }
  return true;
}

static PJRT_Event *run_here(cpu_api_launch *l)
{
  calx_status *status = cpu_api_launch_run(l);
  cpu_api_queue_leave(l->device);
  PJRT_Event *done = cpu_api_event_done(status);
  for (size_t i = 0; i < l->n_results; i++) {
    if (cpu_api_event_error(done) != NULL) {
      cpu_api_block_release(&l->device->cache, &l->results[i]->block);
    }
    l->results[i]->ready = cpu_api_event_retain(done);
  }
  cpu_api_launch_free(l);
  return done;
}

// The caller's lists: one for each device.
typedef struct request {
  PJRT_LoadedExecutable *executable;
  const PJRT_ExecuteOptions *options;
  size_t n;
  PJRT_Buffer *const *const *args;
  PJRT_Buffer **const *outs;
  PJRT_Event **events;  // NULL: none wanted
} request;

// Takes and checks the arguments of list `i`. *out is NULL when it fails.
static calx_status *prepare(const request *r, size_t i, size_t slot,
                            PJRT_Device *device, cpu_api_launch **out)
{
  *out = NULL;
  cpu_api_launch *l = launch_new(r->executable, slot, device);
  if (l == NULL) return cx_out_of_memory();
  calx_status *status =
      take_args(l, r->args == NULL ? NULL : r->args[i], r->options);
  if (status != NULL) {
    put_back(l);
    cpu_api_launch_free(l);
    return status;
  }
  *out = l;
  return NULL;
}

static void cancel(const request *r, size_t i, cpu_api_launch *l)
{
  put_back(l);
  if (l->n_results > 0) drop_results(l, r->outs[i]);
  if (r->events != NULL) {
    cpu_api_event_release(r->events[i]);
    r->events[i] = NULL;
  }
  cpu_api_launch_free(l);
}

// Queues a launch that only fails, in place of one that could not be prepared.
// From it the other processes learn that this device does not take part.
static void launch_failure(const request *r, size_t slot, PJRT_Device *device,
                           const calx_status *why)
{
  const PJRT_LoadedExecutable *e = r->executable;
  if (e->numbers == NULL || e->n_local == e->n_devices) return;
  cpu_api_launch *l = launch_new(r->executable, slot, device);
  if (l == NULL) {
    cpu_api_launch none = { .device = device,
                            .executable = r->executable,
                            .coll = coll_of(r->executable, slot) };
    cpu_api_queue_miss(device, &none, why);
    return;
  }
  l->n_args = l->n_results = 0;
  l->failure = cx_status_copy(why);
  cpu_api_queue_push(device, l);
}

// Makes the event that the launch will set, which its results and the caller
// hold.
static calx_status *promise_end(const request *r, size_t i, cpu_api_launch *l)
{
  l->done = cpu_api_event_new();
  if (l->done == NULL) return cx_out_of_memory();
  if (r->events != NULL) r->events[i] = cpu_api_event_retain(l->done);
  return l->n_results == 0 ? NULL : promise_results(l, r->outs[i]);
}

static calx_status *execute_one(const request *r, size_t slot,
                                PJRT_Device *device)
{
  cpu_api_launch *l = NULL;
  calx_status *wrong = prepare(r, 0, slot, device, &l);
  if (wrong != NULL) {
    launch_failure(r, slot, device, wrong);
    return wrong;
  }
  if (is_small(l) && cpu_api_queue_enter(device, l)) {
    calx_status *status =
        l->n_results == 0 ? NULL : promise_results(l, r->outs[0]);
    if (status != NULL) {
      cpu_api_queue_leave(device);
      cancel(r, 0, l);
      return status;
    }
    PJRT_Event *done = run_here(l);
    if (r->events != NULL) r->events[0] = cpu_api_event_retain(done);
    cpu_api_event_release(done);
    return NULL;
  }
  calx_status *status = promise_end(r, 0, l);
  if (status != NULL) {
    cancel(r, 0, l);
    launch_failure(r, slot, device, status);
    return status;
  }
  cpu_api_queue_push(device, l);
  return NULL;
}

static calx_status *execute_all(const request *r)
{
  cpu_api_launch **all = cx_calloc(r->n, sizeof(cpu_api_launch *));
  calx_status *status = all == NULL ? cx_out_of_memory() : NULL;
  size_t n = 0;
  for (; n < r->n && status == NULL; n++) {
    status = prepare(r, n, n, r->executable->local[n], &all[n]);
    if (status == NULL) status = promise_end(r, n, all[n]);
  }
  if (status == NULL) {
    PJRT_Client *client = r->executable->client;
    cx_lock(&client->launch_lock);
    // All devices get the same number, also if one of them missed a launch.
    for (size_t i = 0; i < n; i++) {
      cpu_api_queue_follow(all[i]->device, all[0]);
    }
    for (size_t i = 0; i < n; i++) {
      all[i]->least_number = all[0]->least_number;
    }
    for (size_t i = 0; i < n; i++) cpu_api_queue_push(all[i]->device, all[i]);
    cx_unlock(&client->launch_lock);
  } else {
    for (size_t i = 0; i < n; i++) {
      if (all[i] != NULL) cancel(r, i, all[i]);
    }
    for (size_t i = 0; i < r->n; i++) {
      launch_failure(r, i, r->executable->local[i], status);
    }
  }
  cx_free(all);
  return status;
}

// ---- checks of the call ----

static calx_status *check_options(const PJRT_ExecuteOptions *o)
{
  const size_t wanted =
      offsetof(PJRT_ExecuteOptions, num_non_donatable_input_indices) +
      sizeof(size_t);
  CALX_TRY(cpu_api_check_size("PJRT_ExecuteOptions", wanted, o->struct_size));
  if (o->num_send_ops > 0 || o->num_recv_ops > 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "callbacks of send and recv are not supported");
  }
  return NULL;
}

static calx_status *check_call(const PJRT_LoadedExecutable_Execute_Args *args)
{
  const PJRT_LoadedExecutable *e = args->executable;
  const cpu_run_program_info *info = e->code->info;
  CALX_TRY(check_options(args->options));
  if (atomic_load(&e->deleted)) {
    return cx_error(CALX_INVALID_ARGUMENT, "the executable '%s' was deleted",
                    info->name);
  }
  if (atomic_load(&e->client->closed)) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "the client of executable '%s' was destroyed", info->name);
  }
  size_t wanted = args->execute_device != NULL || e->portable ? 1 : e->n_local;
  if (args->num_devices != wanted) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "Attempted to execute with %zu argument lists when local "
                    "device count is %zu (total replica count: %u, partition "
                    "count: %u)",
                    args->num_devices, wanted, info->n_replicas,
                    info->n_partitions);
  }
  if (args->num_args != info->n_params) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "Execution supplied %zu buffers but compiled program "
                    "expected %zu buffers",
                    args->num_args, info->n_params);
  }
  for (size_t i = 0; i < wanted; i++) {
    if ((info->n_params > 0 &&
         (args->argument_lists == NULL || args->argument_lists[i] == NULL)) ||
        (info->n_results > 0 &&
         (args->output_lists == NULL || args->output_lists[i] == NULL))) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "the list of arguments or results for device %zu is NULL",
                      i);
    }
  }
  return NULL;
}

// The index of the device among the executable's local devices.
static calx_status *find_slot(const PJRT_LoadedExecutable *e,
                              const PJRT_Device *device, size_t *out)
{
  for (size_t i = 0; i < e->n_local; i++) {
    *out = i;
    if (e->local[i] == device) return NULL;
  }
  CALX_TRY(cpu_api_check_local(device));
  return cx_error(CALX_INVALID_ARGUMENT,
                  "the executable '%s' is not for device %d",
                  e->code->info->name, device->description.id);
}

// The device for a portable executable: the caller's choice, else the device of
// its first argument.
static PJRT_Device *choose(const PJRT_LoadedExecutable_Execute_Args *args)
{
  const PJRT_LoadedExecutable *e = args->executable;
  if (args->execute_device != NULL) return args->execute_device;
  if (!e->portable) return e->local[0];
  if (args->num_args > 0 && args->argument_lists[0][0] != NULL) {
    return args->argument_lists[0][0]->device;
  }
  return e->client->device_list[e->client->first];
}

static calx_status *execute(const PJRT_LoadedExecutable_Execute_Args *args)
{
  CALX_TRY(check_call(args));
  PJRT_LoadedExecutable *e = args->executable;
  request r = { .executable = e,
                .options = args->options,
                .n = args->num_devices,
                .args = args->argument_lists,
                .outs = args->output_lists,
                .events = args->device_complete_events };
  for (size_t i = 0; i < r.n; i++) {
    for (size_t k = 0; k < e->code->info->n_results; k++) r.outs[i][k] = NULL;
    if (r.events != NULL) r.events[i] = NULL;
  }
  if (args->num_devices > 1) return execute_all(&r);
  PJRT_Device *device = choose(args);
  size_t slot = 0;
  if (device->client != e->client) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "device %d is of another client than executable '%s'",
                    device->description.id, e->code->info->name);
  }
  CALX_TRY(e->portable ? cpu_api_check_local(device)
                       : find_slot(e, device, &slot));
  return execute_one(&r, slot, device);
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_Execute(
    PJRT_LoadedExecutable_Execute_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_Execute, executable);
  CPU_API_ENTER(PJRT_LoadedExecutable_Execute, options);
  return cpu_api_error(execute(args));
}

// ---- contexts: data for custom calls, which this engine does not have ----

static char context;

CPU_API_GET(PJRT_ExecuteContext_Create, struct_size, context,
            (PJRT_ExecuteContext *)&context)
CPU_API_ACCEPT(PJRT_ExecuteContext_Destroy, struct_size)
