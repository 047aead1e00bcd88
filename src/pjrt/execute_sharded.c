// pjrt/execute_sharded: the launch of a program of as many partitions as the
// client has devices, on sharded buffers.
#include "base/alloc.h"
#include "pjrt/internal.h"

bool cx_pjrt_executable_is_sharded(const cx_pjrt_executable *e)
{
  return e->wholes != NULL;
}

// The arguments of each device, in the order in which the program has them.
static calx_status *take_shards(const cx_pjrt_executable *e,
                                cx_pjrt_buffer *const *args, size_t n_args,
                                cx_pjrt_buffer **shards)
{
  for (size_t i = 0; i < n_args; i++) {
    if (args[i] == NULL || args[i]->shards == NULL ||
        args[i]->client != e->client) {
      return cx_invalid("argument %zu is not on all devices of the program", i);
    }
    for (size_t r = 0; r < e->n_replicas; r++) {
      shards[r * n_args + i] = args[i]->shards[e->devices[r]];
    }
  }
  return NULL;
}

static void give_shards(const cx_pjrt_executable *e, cx_pjrt_buffer **shards,
                        cx_pjrt_event **done, cx_pjrt_buffer **results)
{
  for (size_t r = 0; r < e->n_replicas; r++) {
    for (size_t i = 0; i < e->n_results; i++) {
      results[i]->shards[e->devices[r]] = shards[r * e->n_results + i];
    }
    if (r != 0) done[r - 1]->next = done[r];
  }
}

static calx_status *execute(cx_pjrt_executable *e, cx_pjrt_buffer *const *args,
                            size_t n_args, void **words,
                            cx_pjrt_buffer **out_results,
                            cx_pjrt_event **out_done)
{
  cx_pjrt_buffer **in = (cx_pjrt_buffer **)words;
  cx_pjrt_buffer **out = in + e->n_replicas * n_args;
  cx_pjrt_event **done = (cx_pjrt_event **)(out + e->n_replicas * e->n_results);
  CALX_TRY(take_shards(e, args, n_args, in));
  for (size_t i = 0; i < e->n_results; i++) {
    out_results[i] = cx_pjrt_sharded_new(e->client, &e->wholes[i].shape,
                                         e->wholes[i].placement);
    if (out_results[i] == NULL) return cx_out_of_memory();
  }
  CALX_TRY(cx_pjrt_execute_all(e, in, e->n_replicas * n_args, out, done));
  give_shards(e, out, done, out_results);
  // The shards are gone; the tensor of all of them is too.
  for (size_t i = 0; i < n_args; i++) {
    if (e->donated[i]) atomic_store(&args[i]->state, CX_PJRT_DELETED);
  }
  if (out_done != NULL) {
    *out_done = done[0];
  } else {
    cx_pjrt_event_free(done[0]);
  }
  return NULL;
}

calx_status *cx_pjrt_execute_sharded(cx_pjrt_executable *e,
                                     cx_pjrt_buffer *const *args, size_t n_args,
                                     cx_pjrt_buffer **out_results,
                                     cx_pjrt_event **out_done)
{
  for (size_t i = 0; i < e->n_results; i++) out_results[i] = NULL;
  if (out_done != NULL) *out_done = NULL;
  if (e->wholes == NULL || e->n_replicas != e->client->n_devices) {
    return cx_invalid("the program is not one of all devices");
  }
  void **words =
      cx_calloc(e->n_replicas * (n_args + e->n_results + 1) + 1, sizeof *words);
  if (words == NULL) return cx_out_of_memory();
  calx_status *status = execute(e, args, n_args, words, out_results, out_done);
  cx_free(words);
  for (size_t i = 0; i < e->n_results && status != NULL; i++) {
    cx_pjrt_buffer_release(out_results[i]);
    out_results[i] = NULL;
  }
  return status;
}
