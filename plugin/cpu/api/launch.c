// api/launch: what a device does for one launch.
//
// Arguments of other devices are waited for here. Memory for results is made
// here too: as late as possible, and where a result takes an argument's memory
// only now it is known whether somebody else still holds that. A launch that
// fails, or whose argument failed, hands the error to all its results.
#include "api/api.h"
#include "base/alloc.h"

void cx_api_launch_free(cx_api_launch *launch)
{
  for (size_t i = 0; i < launch->n_args; i++) {
    cx_api_value_release(launch->args[i]);
  }
  for (size_t i = 0; i < launch->n_results; i++) {
    cx_api_value_release(launch->results[i]);
  }
  cx_api_event_release(launch->done);
  calx_status_free(launch->failure);
  cx_api_loaded_release(launch->executable);
  cx_free(launch);
}

void cx_api_launch_end(cx_api_launch *launch, calx_status *status)
{
  PJRT_Event *done = launch->done;
  launch->done = NULL;
  if (status != NULL) {
    for (size_t i = 0; i < launch->n_results; i++) {
      cx_api_block_release(&launch->device->cache, &launch->results[i]->block);
    }
  }
  // First the memory is back, then the event says so.
  cx_api_launch_free(launch);
  if (done == NULL) {
    calx_status_free(status);
  } else {
    cx_api_event_set(done, status);
    cx_api_event_release(done);
  }
}

static calx_status *wait_for_args(const cx_api_launch *launch)
{
  for (size_t i = 0; i < launch->n_args; i++) {
    calx_status *status = cx_api_value_wait(launch->args[i]);
    if (status != NULL) {
      return cx_annotate(status, "argument %zu of program '%s'", i,
                         launch->executable->code->info->name);
    }
    launch->pointers[i] = launch->args[i]->block.data;
  }
  return NULL;
}

// Whether nobody but this launch can see the argument's memory any more.
static bool is_ours(const cx_api_launch *launch, int32_t i, size_t bytes)
{
  if (i < 0 || launch->givers[i] == NULL) return false;
  const cx_api_value *v = launch->args[i];
  return atomic_load_explicit(&v->refs, memory_order_acquire) == 1 &&
         v->block.writable && v->block.capacity >= bytes;
}

static calx_status *make_results(cx_api_launch *launch)
{
  const cx_api_code *code = launch->executable->code;
  for (size_t i = 0; i < launch->n_results; i++) {
    cx_api_block *block = &launch->results[i]->block;
    int32_t from = code->info->alias[i];
    if (is_ours(launch, from, code->result_bytes[i])) {
      *block = launch->args[from]->block;
      launch->args[from]->block = (cx_api_block){ .kind = CX_API_BLOCK_NONE };
    } else {
      CALX_TRY(cx_api_block_new(&launch->device->cache, code->result_bytes[i],
                                block));
    }
    launch->pointers[launch->n_args + i] = block->data;
  }
  return NULL;
}

calx_status *cx_api_launch_run(cx_api_launch *launch)
{
  const cx_api_code *code = launch->executable->code;
  calx_status *status = cx_status_copy(launch->failure);
  if (status == NULL) status = wait_for_args(launch);
  if (status == NULL) status = make_results(launch);
  if (status == NULL) {
    status =
        cx_program_run(code->program, launch->device->context, &launch->coll,
                       launch->pointers, launch->pointers + launch->n_args);
  }
  if (code->info->has_collectives) cx_coll_end(&launch->coll, status);
  return status;
}
