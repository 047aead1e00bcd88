// api/execute: makes launches on devices from the caller's lists.
//
// Everything is checked before a launch starts: the number, shape, element type
// and device of the arguments, and that none was deleted or is donated twice.
// Then the caller itself runs a small program on an idle device, which is
// faster than waking a thread, and returns its error. All other launches are
// queued. From then on only the launch itself can fail, and its results have
// its error.
#include "api/launch.h"
#include "base/alloc.h"

// Waking a thread and being woken by it takes 10 to 50 us, and the estimates
// are up to three times what a program takes whose data are in a cache. On one
// of several devices the caller goes on earlier, to launch on the others.
#define INLINE_NS 150e3
#define INLINE_NS_OF_MANY 20e3

typedef PJRT_LoadedExecutable_Execute_Args execute_args;

// ---- results ----

// Gives the caller the event of list `i`, if it wants events.
static void set_event(const execute_args *c, size_t i, PJRT_Event *done)
{
  if (c->device_complete_events == NULL) return;
  c->device_complete_events[i] =
      done == NULL ? NULL : cpu_api_event_retain(done);
}

// Makes the results' values, still without memory, and their buffers. A launch
// without an event is run before the caller sees them, so they count as ready.
static calx_status *promise_results(const execute_args *c, size_t i,
                                    cpu_api_launch *l)
{
  const cpu_api_code *code = l->executable->code;
  for (size_t k = 0; k < l->n_results; k++) {
    PJRT_Event *ready =
        l->done == NULL ? cpu_api_event_ready() : cpu_api_event_retain(l->done);
    cpu_api_value *v = cpu_api_value_new(l->device, ready);
    if (v == NULL) return cx_out_of_memory();
    l->results[k] = v;
    cpu_api_value_retain(v);
    CALX_TRY(cpu_api_buffer_new(
        v, &l->device->spaces[code->info->result_memory[k]], &code->results[k],
        code->result_bytes[k], &c->output_lists[i][k]));
  }
  return NULL;
}

static void run_queued(void *device, const PJRT_Event *done)
{
  cpu_api_queue_run_until(device, done);
}

static void release_client(void *device)
{
  const PJRT_Device *d = device;
  cpu_api_client_release(d->client);
}

// Makes the event that the launch will set, which its results and the caller
// hold.
static calx_status *promise_end(const execute_args *c, size_t i,
                                cpu_api_launch *l)
{
  l->done = cpu_api_event_made_by(
      &(cpu_api_maker){ run_queued, release_client, l->device });
  if (l->done == NULL) return cx_out_of_memory();
  cpu_api_client_retain(l->device->client);
  set_event(c, i, l->done);
  return promise_results(c, i, l);
}

// Frees a launch and the buffers of its results, which the caller does not get.
static void drop(const execute_args *c, size_t i, cpu_api_launch *l)
{
  for (size_t k = 0; k < l->n_results; k++) {
    cpu_api_buffer_free(c->output_lists[i][k]);
    c->output_lists[i][k] = NULL;
  }
  if (c->device_complete_events != NULL) {
    cpu_api_event_release(c->device_complete_events[i]);
    c->device_complete_events[i] = NULL;
  }
  cpu_api_launch_free(l);
}

// The same before it ran: donated arguments are the caller's again.
static void cancel(const execute_args *c, size_t i, cpu_api_launch *l)
{
  cpu_api_launch_return_args(l);
  drop(c, i, l);
}

// ---- running ----

static bool is_small(const cpu_api_launch *l)
{
  const cpu_run_program_info *info = l->executable->code->info;
  bool alone = info->n_replicas <= 1 && info->n_partitions <= 1;
  const double most =
      l->device->client->n_local > 1 ? INLINE_NS_OF_MANY : INLINE_NS;
  if (!(info->cost_ns < most) || (info->has_collectives && !alone)) {
    return false;
  }
  for (size_t i = 0; i < l->n_args; i++) {
    if (!cpu_api_event_is_ready(l->args[i]->ready)) return false;
  }
  return true;
}

// Runs it on the device that the caller has entered.
static calx_status *run_here(const execute_args *c, cpu_api_launch *l)
{
  calx_status *status = promise_results(c, 0, l);
  if (status != NULL) {
    cpu_api_queue_leave(l->device);
    cancel(c, 0, l);
    return status;
  }
  status = cpu_api_launch_run(l);
  cpu_api_queue_leave(l->device);
  if (status != NULL) {
    drop(c, 0, l);
    return status;
  }
  set_event(c, 0, cpu_api_event_ready());
  cpu_api_launch_free(l);
  return NULL;
}

// Queues a launch that only fails, in place of one that could not be prepared.
// From it the other processes learn that this device does not take part.
static void launch_failure(const execute_args *c, size_t slot,
                           PJRT_Device *device, const calx_status *why)
{
  const PJRT_LoadedExecutable *e = c->executable;
  if (e->numbers == NULL || e->n_local == e->n_devices) return;
  cpu_api_launch *l = cpu_api_launch_new(c->executable, slot, device);
  if (l == NULL) {
    cpu_api_launch none = { .device = device,
                            .executable = c->executable,
                            .coll = cpu_api_launch_coll(c->executable, slot) };
    cpu_api_queue_miss(device, &none, why);
    return;
  }
  l->n_args = l->n_results = 0;
  l->failure = cx_status_copy(why);
  cpu_api_queue_push(device, l);
}

// Makes the launch of list `i`. *out is NULL when it fails.
static calx_status *prepare(const execute_args *c, size_t i, size_t slot,
                            PJRT_Device *device, cpu_api_launch **out)
{
  return cpu_api_launch_prepare(
      c->executable, slot, device,
      c->argument_lists == NULL ? NULL : c->argument_lists[i], c->options, out);
}

static calx_status *execute_one(const execute_args *c, size_t slot,
                                PJRT_Device *device)
{
  cpu_api_launch *l = NULL;
  calx_status *wrong = prepare(c, 0, slot, device, &l);
  if (wrong != NULL) {
    launch_failure(c, slot, device, wrong);
    return wrong;
  }
  if (is_small(l) && cpu_api_queue_enter(device, l)) return run_here(c, l);
  calx_status *status = promise_end(c, 0, l);
  if (status != NULL) {
    cancel(c, 0, l);
    launch_failure(c, slot, device, status);
    return status;
  }
  cpu_api_queue_push(device, l);
  return NULL;
}

static calx_status *execute_all(const execute_args *c)
{
  cpu_api_launch **all = cx_calloc(c->num_devices, sizeof(cpu_api_launch *));
  calx_status *status = all == NULL ? cx_out_of_memory() : NULL;
  size_t n = 0;
  for (; n < c->num_devices && status == NULL; n++) {
    status = prepare(c, n, n, c->executable->local[n], &all[n]);
    if (status == NULL) status = promise_end(c, n, all[n]);
  }
  if (status == NULL) {
    PJRT_Client *client = c->executable->client;
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
      if (all[i] != NULL) cancel(c, i, all[i]);
    }
    for (size_t i = 0; i < c->num_devices; i++) {
      launch_failure(c, i, c->executable->local[i], status);
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

static calx_status *check_call(const execute_args *c)
{
  const PJRT_LoadedExecutable *e = c->executable;
  const cpu_run_program_info *info = e->code->info;
  CALX_TRY(check_options(c->options));
  if (atomic_load(&e->deleted)) {
    return cx_invalid("the executable '%s' was deleted", info->name);
  }
  if (atomic_load(&e->client->closed)) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "the client of executable '%s' was destroyed", info->name);
  }
  size_t wanted = c->execute_device != NULL || e->portable ? 1 : e->n_local;
  if (c->num_devices != wanted) {
    return cx_invalid(
        "Attempted to execute with %zu argument lists when local device count "
        "is %zu (total replica count: %u, partition count: %u)",
        c->num_devices, wanted, info->n_replicas, info->n_partitions);
  }
  if (c->num_args != info->n_params) {
    return cx_invalid(
        "Execution supplied %zu buffers but compiled program expected %zu "
        "buffers",
        c->num_args, info->n_params);
  }
  for (size_t i = 0; i < wanted; i++) {
    if ((info->n_params > 0 &&
         (c->argument_lists == NULL || c->argument_lists[i] == NULL)) ||
        (info->n_results > 0 &&
         (c->output_lists == NULL || c->output_lists[i] == NULL))) {
      return cx_invalid(
          "the list of arguments or results for device %zu is NULL", i);
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
  return cx_invalid("the executable '%s' is not for device %d",
                    e->code->info->name, device->description.id);
}

// The device for a portable executable: the caller's choice, else the device of
// its first argument.
static PJRT_Device *choose(const execute_args *c)
{
  const PJRT_LoadedExecutable *e = c->executable;
  if (c->execute_device != NULL) return c->execute_device;
  if (!e->portable) return e->local[0];
  if (c->num_args > 0 && c->argument_lists[0][0] != NULL) {
    return c->argument_lists[0][0]->device;
  }
  return e->client->device_list[e->client->first];
}

static calx_status *execute(const execute_args *c)
{
  CALX_TRY(check_call(c));
  PJRT_LoadedExecutable *e = c->executable;
  for (size_t i = 0; i < c->num_devices; i++) {
    for (size_t k = 0; k < e->code->info->n_results; k++) {
      c->output_lists[i][k] = NULL;
    }
    set_event(c, i, NULL);
  }
  if (c->num_devices > 1) return execute_all(c);
  PJRT_Device *device = choose(c);
  size_t slot = 0;
  if (device->client != e->client) {
    return cx_invalid("device %d is of another client than executable '%s'",
                      device->description.id, e->code->info->name);
  }
  CALX_TRY(e->portable ? cpu_api_check_local(device)
                       : find_slot(e, device, &slot));
  return execute_one(c, slot, device);
}

CPU_API_CALL2(PJRT_LoadedExecutable_Execute, executable, options, execute(args))

// ---- poisoning ----

static calx_status *poison(PJRT_Device_PoisonExecution_Args *args)
{
  args->poisoned = false;
  CALX_TRY(cpu_api_check_local(args->device));
  calx_status *error = cpu_api_callers_error(
      args->error_code, args->error_message, args->error_message_size);
  if (error == NULL) {
    return cx_invalid("an execution is poisoned with an error, found code 0");
  }
  args->poisoned = cpu_api_queue_poison(args->device, args->launch_id, error);
  return NULL;
}

// Callers before 0.100 have no payload, which this engine ignores.
CPU_API_CALL_FROM(PJRT_Device_PoisonExecution, poisoned, device, poison(args))
