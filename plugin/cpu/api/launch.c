// api/launch: what a device does for one launch.
//
// It waits for the arguments and allocates the results. Only then is it known
// whether a donated argument has another holder, or whether a result can take
// its memory. If the launch or one of its arguments fails, all results have the
// error.
#include "api/launch.h"
#include "base/alloc.h"

void cpu_api_launch_free(cpu_api_launch *launch)
{
  for (size_t i = 0; i < launch->n_args; i++) {
    cpu_api_value_release(launch->args[i]);
  }
  for (size_t i = 0; i < launch->n_results; i++) {
    cpu_api_value_release(launch->results[i]);
  }
  cpu_api_event_release(launch->done);
  calx_status_free(launch->failure);
  cx_free(launch->user_data);
  cpu_api_loaded_release(launch->executable);
  cx_free(launch);
}

void cpu_api_launch_end(cpu_api_launch *launch, calx_status *status)
{
  PJRT_Event *done = launch->done;
  launch->done = NULL;
  if (status != NULL) {
    for (size_t i = 0; i < launch->n_results; i++) {
      cpu_api_block_release(&launch->device->cache, &launch->results[i]->block);
    }
  }
  // Memory is released before the event is signalled.
  cpu_api_launch_free(launch);
  if (done == NULL) {
    calx_status_free(status);
  } else {
    cpu_api_event_set(done, status);
    cpu_api_event_release(done);
  }
}

static calx_status *wait_for_args(const cpu_api_launch *launch)
{
  for (size_t i = 0; i < launch->n_args; i++) {
    calx_status *status = cpu_api_value_wait(launch->args[i]);
    if (status != NULL) {
      return cx_annotate(status, "argument %zu of program '%s'", i,
                         launch->executable->code->info->name);
    }
    launch->pointers[i] = launch->args[i]->block.data;
  }
  return NULL;
}

// Whether only this launch holds the argument's memory, and may write to it.
static bool is_ours(const cpu_api_launch *launch, int32_t i, size_t bytes)
{
  if (i < 0 || launch->donors[i] == NULL) return false;
  const cpu_api_value *v = launch->args[i];
  return atomic_load_explicit(&v->refs, memory_order_acquire) == 1 &&
         v->block.writable && v->block.capacity >= bytes;
}

static calx_status *make_results(cpu_api_launch *launch)
{
  const cpu_api_code *code = launch->executable->code;
  for (size_t i = 0; i < launch->n_results; i++) {
    cpu_api_block *block = &launch->results[i]->block;
    int32_t from = code->info->alias[i];
    if (is_ours(launch, from, code->result_bytes[i])) {
      *block = launch->args[from]->block;
      launch->args[from]->block = (cpu_api_block){ .kind = CPU_API_BLOCK_NONE };
    } else {
      CALX_TRY(cpu_api_block_new(&launch->device->cache, code->result_bytes[i],
                                 block));
    }
    launch->pointers[launch->n_args + i] = block->data;
  }
  return NULL;
}

calx_status *cpu_api_launch_run(cpu_api_launch *launch)
{
  const cpu_api_code *code = launch->executable->code;
  calx_status *status = cx_status_copy(launch->failure);
  if (status == NULL) status = wait_for_args(launch);
  if (status == NULL) status = make_results(launch);
  if (status == NULL) {
    cpu_run_context_set_data(launch->device->context, launch->user_data,
                             launch->n_user_data);
    status = cpu_run_program_run(code->program, launch->device->context,
                                 &launch->coll, launch->pointers,
                                 launch->pointers + launch->n_args);
  }
  if (code->info->has_collectives) cpu_coll_end(&launch->coll, status);
  return status;
}
