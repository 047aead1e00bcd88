// api/prepare: makes a launch for one device, from a caller's arguments.
//
// Each argument is checked, and its value is held or taken. If one is unfit,
// the launch is freed and the donated values return to their buffers.
#include <string.h>

#include "api/launch.h"
#include "base/alloc.h"

static atomic_ullong launches;

// ---- memory ----

cpu_coll_launch cpu_api_launch_coll(const PJRT_LoadedExecutable *e, size_t slot)
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
    coll.replica = (uint32_t)e->logical[slot].replica;
    coll.partition = (uint32_t)e->logical[slot].partition;
  }
  return coll;
}

cpu_api_launch *cpu_api_launch_new(PJRT_LoadedExecutable *e, size_t slot,
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
  l->coll = cpu_api_launch_coll(e, slot);
  return l;
}

// ---- arguments ----

static calx_status *check_arg(const cpu_api_launch *l, size_t i,
                              const PJRT_Buffer *b)
{
  const cpu_api_shape *wanted = &l->executable->code->params[i];
  const char *name = l->executable->code->info->name;
  if (b == NULL) {
    return cx_invalid("argument %zu of '%s' is NULL", i, name);
  }
  // A token has no content. JAX begins with an empty tensor for one.
  if (b->device == l->device && (wanted->type == PJRT_Buffer_Type_TOKEN ||
                                 cpu_api_shape_equal(wanted, &b->shape))) {
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
      return cx_invalid(
          "argument %zu of '%s' is the buffer that argument %zu donates: "
          "f(donate(a), a)",
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

void cpu_api_launch_return_args(cpu_api_launch *l)
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
      return cx_invalid(
          "argument %zu of '%s' is a buffer that a later argument donates: "
          "f(a, donate(a))",
          i, l->executable->code->info->name);
    }
  }
  return NULL;
}

// A copy, since the caller may destroy its context before the launch has run.
static calx_status *take_user_data(cpu_api_launch *l,
                                   const PJRT_ExecuteOptions *options)
{
  const PJRT_ExecuteContext *context =
      CPU_API_HAS(options, context) ? options->context : NULL;
  if (context == NULL || context->n == 0) return NULL;
  l->user_data = cx_calloc(context->n, sizeof *l->user_data);
  if (l->user_data == NULL) return cx_out_of_memory();
  memcpy(l->user_data, context->data, context->n * sizeof *l->user_data);
  l->n_user_data = context->n;
  return NULL;
}

calx_status *cpu_api_launch_prepare(PJRT_LoadedExecutable *executable,
                                    size_t slot, PJRT_Device *device,
                                    PJRT_Buffer *const *args,
                                    const PJRT_ExecuteOptions *options,
                                    cpu_api_launch **out)
{
  cpu_api_launch *l = cpu_api_launch_new(executable, slot, device);
  *out = l;
  if (l == NULL) return cx_out_of_memory();
  l->launch_id = options->launch_id;
  calx_status *status = take_user_data(l, options);
  if (status == NULL) status = take_args(l, args, options);
  if (status == NULL) return NULL;
  *out = NULL;
  cpu_api_launch_return_args(l);
  cpu_api_launch_free(l);
  return status;
}
