// pjrt/execute: launches a program on one device or on all of its devices.
//
// XLA's plugins compare only the sizes of arguments, and a buffer of another
// device makes them end the process. So the arguments are checked before the
// call: number, client, device, shape, and that none was donated before. A
// launch first claims the buffers that it donates, by an atomic exchange, so
// only one of two launches gets a buffer. The handles of the results are made
// before the launch, because nothing may fail after it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

#define ON_STACK 128

typedef struct execute_call {
  cx_pjrt_executable *e;
  size_t n_lists;               // devices launched by this call
  const size_t *devices;        // [n_lists] indices
  PJRT_Device *single;          // of one device's share; NULL: all of them
  cx_pjrt_buffer *const *args;  // [n_lists][n_params]
  cx_pjrt_buffer **results;     // [n_lists][n_results]
  cx_pjrt_event **done;         // [n_lists], or NULL
} execute_call;

// ---- checks ----

typedef struct argument_name {
  char s[64];
} argument_name;

static const char *describe_position(const execute_call *l, size_t list,
                                     size_t i, argument_name *out)
{
  if (l->n_lists > 1) {
    snprintf(out->s, sizeof out->s, "replica %zu, argument %zu", list, i);
  } else {
    snprintf(out->s, sizeof out->s, "argument %zu", i);
  }
  return out->s;
}

static calx_status *check_argument(const execute_call *l, size_t list, size_t i,
                                   const cx_pjrt_buffer *b)
{
  const cx_pjrt_executable *e = l->e;
  const cx_pjrt_shape *wanted = &e->params[i];
  argument_name where;
  if (b == NULL) {
    return cx_invalid("%s: no buffer was given",
                      describe_position(l, list, i, &where));
  }
  cx_pjrt_shape_text wanted_text;
  cx_pjrt_shape_text found_text;
  if (!cx_pjrt_shape_equal(&b->shape, wanted)) {
    return cx_invalid("%s: wants %s, got %s",
                      describe_position(l, list, i, &where),
                      cx_pjrt_shape_str(wanted, &wanted_text),
                      cx_pjrt_shape_str(&b->shape, &found_text));
  }
  if (b->client != e->client) {
    return cx_invalid(
        "%s: its buffer belongs to another client, of plugin '%s'",
        describe_position(l, list, i, &where), b->client->plugin->name);
  }
  if (b->shards != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "%s: %s is on all devices of a mesh, and the program is "
                    "that of one device",
                    describe_position(l, list, i, &where),
                    cx_pjrt_shape_str(wanted, &wanted_text));
  }
  if (b->device != l->devices[list]) {
    return cx_invalid("%s: wants a buffer on device %zu, got one on device %zu",
                      describe_position(l, list, i, &where), l->devices[list],
                      b->device);
  }
  return NULL;
}

static calx_status *check_arguments(const execute_call *l, size_t n_args)
{
  const cx_pjrt_executable *e = l->e;
  size_t wanted = l->n_lists * e->n_params;
  if (n_args != wanted) {
    return cx_invalid("the program wants %zu arguments, got %zu", wanted,
                      n_args);
  }
  for (size_t list = 0; list < l->n_lists; list++) {
    for (size_t i = 0; i < e->n_params; i++) {
      const cx_pjrt_buffer *b = l->args[list * e->n_params + i];
      CALX_TRY(check_argument(l, list, i, b));
    }
  }
  return NULL;
}

// ---- donation ----

// Argument k is donated twice in this call, or was donated before it.
static calx_status *explain_missing(const execute_call *l, size_t k)
{
  size_t n_params = l->e->n_params;
  size_t list = k / n_params;
  argument_name where;
  argument_name other;
  describe_position(l, list, k % n_params, &where);
  for (size_t i = 0; i < l->n_lists * n_params; i++) {
    if (i == k || l->args[i] != l->args[k]) continue;
    if (!l->e->donated[i % n_params] && !l->e->donated[k % n_params]) continue;
    return cx_invalid("%s: the same buffer is also %s, and it is donated",
                      where.s,
                      describe_position(l, i / n_params, i % n_params, &other));
  }
  cx_pjrt_shape_text text;
  return cx_error(
      CALX_FAILED_PRECONDITION,
      "%s: the buffer %s was donated to an execution and is deleted", where.s,
      cx_pjrt_shape_str(&l->args[k]->shape, &text));
}

// Drops the claims on the first n arguments. A launch that failed may have
// deleted a buffer nevertheless.
static void unclaim(const execute_call *l, size_t n, bool launched)
{
  for (size_t k = 0; k < n; k++) {
    if (!l->e->donated[k % l->e->n_params]) continue;
    cx_pjrt_buffer *b = l->args[k];
    atomic_store(&b->state, CX_PJRT_LIVE);
    if (launched && cx_pjrt_buffer_is_deleted(b)) {
      atomic_store(&b->state, CX_PJRT_DELETED);
    }
  }
}

static calx_status *claim(const execute_call *l)
{
  size_t n = l->n_lists * l->e->n_params;
  for (size_t k = 0; k < n; k++) {
    if (!l->e->donated[k % l->e->n_params]) continue;
    int live = CX_PJRT_LIVE;
    if (atomic_compare_exchange_strong(&l->args[k]->state, &live,
                                       CX_PJRT_DELETED)) {
      continue;
    }
    calx_status *status = explain_missing(l, k);
    unclaim(l, k, false);
    return status;
  }
  for (size_t k = 0; k < n; k++) {
    if (l->e->donated[k % l->e->n_params]) continue;
    if (atomic_load(&l->args[k]->state) == CX_PJRT_LIVE) continue;
    calx_status *status = explain_missing(l, k);
    unclaim(l, n, false);
    return status;
  }
  return NULL;
}

// ---- results ----

static void drop_results(const execute_call *l)
{
  for (size_t k = 0; k < l->n_lists * l->e->n_results; k++) {
    cx_pjrt_buffer_release(l->results[k]);
    l->results[k] = NULL;
  }
  for (size_t list = 0; l->done != NULL && list < l->n_lists; list++) {
    cx_pjrt_event_free(l->done[list]);
    l->done[list] = NULL;
  }
}

static bool make_results(const execute_call *l)
{
  const cx_pjrt_executable *e = l->e;
  for (size_t k = 0; k < l->n_lists * e->n_results; k++) {
    l->results[k] = cx_pjrt_buffer_new(e->client, l->devices[k / e->n_results],
                                       &e->results[k % e->n_results]);
    if (l->results[k] == NULL) return false;
  }
  for (size_t list = 0; l->done != NULL && list < l->n_lists; list++) {
    l->done[list] = cx_pjrt_event_new(e->client->plugin);
    if (l->done[list] == NULL) return false;
  }
  return true;
}

// Puts the plugin's objects into their handles, even if one is missing: the
// caller then releases all of them.
static calx_status *take_results(const execute_call *l,
                                 PJRT_Buffer **raw_results,
                                 PJRT_Event **raw_done)
{
  calx_status *status = NULL;
  const char *plugin = l->e->client->plugin->name;
  for (size_t k = 0; k < l->n_lists * l->e->n_results; k++) {
    l->results[k]->raw = raw_results[k];
    if (raw_results[k] == NULL && status == NULL) {
      status = cx_error(CALX_INTERNAL,
                        "plugin '%s' returned no buffer for result %zu", plugin,
                        k % l->e->n_results);
    }
  }
  for (size_t list = 0; l->done != NULL && list < l->n_lists; list++) {
    l->done[list]->raw = raw_done[list];
    if (raw_done[list] == NULL && status == NULL) {
      status =
          cx_error(CALX_INTERNAL,
                   "plugin '%s' returned no event for an execution", plugin);
    }
  }
  return status;
}

// ---- the call ----

// Each device counts the launches of a program, so the threads or processes
// that launch it together use the same number without communication.
static int launch_number(const execute_call *l)
{
  unsigned n = 0;
  for (size_t list = 0; list < l->n_lists; list++) {
    unsigned here = atomic_fetch_add_explicit(&l->e->launches[l->devices[list]],
                                              1, memory_order_relaxed);
    if (list == 0) n = here;
  }
  return (int)((l->e->launch_base + n) & 0x7fffffff);
}

// `words` is zeroed memory for all pointers of the call.
static calx_status *call(const execute_call *l, void **words)
{
  const cx_pjrt_executable *e = l->e;
  size_t n_args = l->n_lists * e->n_params;
  size_t n_results = l->n_lists * e->n_results;
  PJRT_Buffer **args = (PJRT_Buffer **)words;
  PJRT_Buffer **results = args + n_args;
  PJRT_Event **done = (PJRT_Event **)(results + n_results);
  PJRT_Buffer *const **arg_lists = (PJRT_Buffer *const **)(done + l->n_lists);
  PJRT_Buffer ***result_lists = (PJRT_Buffer ***)(arg_lists + l->n_lists);
  for (size_t k = 0; k < n_args; k++) args[k] = l->args[k]->raw;
  for (size_t list = 0; list < l->n_lists; list++) {
    arg_lists[list] = args + list * e->n_params;
    result_lists[list] = results + list * e->n_results;
  }
  PJRT_ExecuteOptions options = { CX_PJRT_ARGS(PJRT_ExecuteOptions),
                                  .launch_id = launch_number(l) };
  PJRT_LoadedExecutable_Execute_Args execute = {
    CX_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args),
    .executable = e->raw,
    .options = &options,
    .argument_lists = arg_lists,
    .num_devices = l->n_lists,
    .num_args = e->n_params,
    .output_lists = result_lists,
    .device_complete_events = l->done == NULL ? NULL : done,
    .execute_device = l->single,
  };
  CALX_TRY(
      CX_PJRT_CALL(e->client->plugin, PJRT_LoadedExecutable_Execute, &execute));
  return take_results(l, results, done);
}

static calx_status *run(const execute_call *l)
{
  const cx_pjrt_executable *e = l->e;
  size_t n = l->n_lists * (e->n_params + e->n_results + 3);
  void *stack[ON_STACK];
  void **words = stack;
  if (n > ON_STACK) {
    words = cx_calloc(n, sizeof *words);
    if (words == NULL) return cx_out_of_memory();
  } else {
    memset(stack, 0, n * sizeof *stack);
  }
  calx_status *status = NULL;
  if (!make_results(l)) status = cx_out_of_memory();
  if (status == NULL) status = claim(l);
  if (status == NULL) {
    status = call(l, words);
    if (status != NULL) unclaim(l, l->n_lists * e->n_params, true);
  }
  if (status != NULL) drop_results(l);
  if (words != stack) cx_free(words);
  return status;
}

static void clear_results(const execute_call *l)
{
  for (size_t k = 0; k < l->n_lists * l->e->n_results; k++) {
    l->results[k] = NULL;
  }
  for (size_t list = 0; l->done != NULL && list < l->n_lists; list++) {
    l->done[list] = NULL;
  }
}

calx_status *cx_pjrt_execute(cx_pjrt_executable *e, size_t device,
                             cx_pjrt_buffer *const *args, size_t n_args,
                             cx_pjrt_buffer **out_results,
                             cx_pjrt_event **out_done)
{
  execute_call l = { .e = e,
                     .n_lists = 1,
                     .devices = &device,
                     .args = args,
                     .results = out_results,
                     .done = out_done };
  clear_results(&l);
  CALX_TRY(cx_pjrt_check_device(e->client, device));
  size_t replica = 0;
  while (!e->any_device && replica < e->n_replicas &&
         e->devices[replica] != device) {
    replica++;
  }
  if (replica == e->n_replicas) {
    return cx_invalid(
        "the program was not compiled for device %zu, but for device %zu%s",
        device, e->devices[0], e->n_replicas > 1 ? " and others" : "");
  }
  if (e->any_device || e->n_replicas > 1) {
    l.single = e->client->devices[device].raw;
  }
  CALX_TRY(check_arguments(&l, n_args));
  return run(&l);
}

calx_status *cx_pjrt_execute_all(cx_pjrt_executable *e,
                                 cx_pjrt_buffer *const *args, size_t n_args,
                                 cx_pjrt_buffer **out_results,
                                 cx_pjrt_event **out_done)
{
  execute_call l = { .e = e,
                     .n_lists = e->n_replicas,
                     .devices = e->devices,
                     .args = args,
                     .results = out_results,
                     .done = out_done };
  if (e->any_device) {
    return cx_invalid(
        "a program for any device is launched on one, not on all");
  }
  clear_results(&l);
  CALX_TRY(check_arguments(&l, n_args));
  return run(&l);
}
