// pjrt/sharded: a tensor on all devices of a client, and the launch of a program
// of as many partitions.
//
// A sharded buffer has one ordinary buffer on each device, which has a block of
// the tensor or, where no dimension is split, all of it.
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

// ---- shapes ----

void cx_pjrt_shard_shape(const cx_pjrt_shape *shape,
                         const cx_spmd_placement *placement, cx_pjrt_shape *out)
{
  int64_t start[CALX_MAX_RANK];
  *out = *shape;
  if (cx_spmd_split(placement) == NULL) return;
  cx_spmd_shard(placement, shape->dims, 0, out->dims, start);
}

const cx_spmd_placement *cx_pjrt_buffer_placement(const cx_pjrt_buffer *b)
{
  return b->placement;
}

// ---- blocks of host data ----

// Copies the block at `start` of a dense tensor of `all` from there (gather) or
// into it; the block's data is dense too. Row by row of the last dimension.
static void copy_block(const cx_pjrt_shape *all, const cx_pjrt_shape *block,
                       const int64_t *start, char *whole, char *part,
                       bool gather)
{
  const size_t rank = all->rank, size = cx_pjrt_type_bytes(all->type);
  const size_t row = (size_t)block->dims[rank - 1] * size;
  int64_t at[CALX_MAX_RANK] = { 0 };
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; d++) {
      offset = offset * all->dims[d] + start[d] + at[d];
    }
    char *place = whole + (size_t)offset * size;
    memcpy(gather ? part : place, gather ? place : part, row);
    part += row;
    size_t d = rank - 1;
    while (d-- > 0 && ++at[d] == block->dims[d]) at[d] = 0;
    if (d == (size_t)-1) return;
  }
}

static size_t bytes_of(const cx_pjrt_shape *s)
{
  size_t bytes = 0;
  calx_status_free(cx_pjrt_shape_bytes(s, &bytes));
  return bytes;
}

// ---- buffers ----

cx_pjrt_buffer *cx_pjrt_sharded_new(cx_pjrt_client *c,
                                    const cx_pjrt_shape *shape,
                                    const cx_spmd_placement *placement)
{
  cx_pjrt_buffer *b = cx_pjrt_buffer_new(c, 0, shape);
  if (b == NULL) return NULL;
  b->placement = cx_spmd_split(placement);
  b->shards = cx_calloc(c->n_devices, sizeof(cx_pjrt_buffer *));
  if (b->shards != NULL) return b;
  cx_pjrt_buffer_release(b);
  return NULL;
}

// `block` has room for a shard.
static calx_status *upload_shard(cx_pjrt_buffer *b, size_t device,
                                 const void *data, char *block)
{
  cx_pjrt_shape shape = b->shape;
  if (b->placement != NULL) {
    int64_t start[CALX_MAX_RANK];
    cx_spmd_shard(b->placement, b->shape.dims, device, shape.dims, start);
    if (bytes_of(&shape) != 0) {
      copy_block(&b->shape, &shape, start, (char *)data, block, true);
    }
    data = block;
  }
  return cx_pjrt_buffer_from_host(b->client, device, &shape, data, CX_PJRT_COPY,
                                  NULL, NULL, &b->shards[device]);
}

calx_status *cx_pjrt_sharded_from_host(cx_pjrt_client *c,
                                       const cx_pjrt_shape *shape,
                                       const cx_spmd_placement *placement,
                                       const void *data, cx_pjrt_buffer **out)
{
  cx_pjrt_shape part;
  *out = NULL;
  cx_pjrt_buffer *b = cx_pjrt_sharded_new(c, shape, placement);
  if (b == NULL) return cx_out_of_memory();
  cx_pjrt_shard_shape(shape, b->placement, &part);
  char *block = NULL;
  calx_status *status = NULL;
  if (b->placement != NULL) {
    block = cx_alloc(bytes_of(&part) + 1);
    if (block == NULL) status = cx_out_of_memory();
  }
  for (size_t d = 0; d < c->n_devices && status == NULL; d++) {
    status = upload_shard(b, d, data, block);
  }
  cx_free(block);
  if (status != NULL) {
    cx_pjrt_buffer_release(b);
    return status;
  }
  *out = b;
  return NULL;
}

calx_status *cx_pjrt_sharded_await(cx_pjrt_buffer *b)
{
  calx_status *status = NULL;
  for (size_t d = 0; d < b->client->n_devices; d++) {
    status = cx_status_first(status, cx_pjrt_buffer_await(b->shards[d]));
  }
  return status;
}

bool cx_pjrt_sharded_is_ready(cx_pjrt_buffer *b)
{
  size_t d = 0;
  while (d < b->client->n_devices && cx_pjrt_buffer_is_ready(b->shards[d])) d++;
  return d == b->client->n_devices;
}

// Whether a device before this one has the same block.
static bool is_copy(const cx_pjrt_buffer *b, size_t device,
                    const int64_t *start)
{
  int64_t dims[CALX_MAX_RANK], other[CALX_MAX_RANK];
  for (size_t d = 0; d < device; d++) {
    cx_spmd_shard(b->placement, b->shape.dims, d, dims, other);
    if (memcmp(start, other, b->shape.rank * sizeof *start) == 0) return true;
  }
  return false;
}

calx_status *cx_pjrt_sharded_to_host(cx_pjrt_buffer *b, void *dst)
{
  if (b->placement == NULL) {
    return cx_pjrt_buffer_to_host(b->shards[0], dst, bytes_of(&b->shape));
  }
  cx_pjrt_shape part = b->shape;
  int64_t start[CALX_MAX_RANK];
  cx_pjrt_shard_shape(&b->shape, b->placement, &part);
  const size_t bytes = bytes_of(&part);
  if (bytes == 0) return NULL;
  char *block = cx_alloc(bytes);
  calx_status *status = block == NULL ? cx_out_of_memory() : NULL;
  for (size_t d = 0; d < b->client->n_devices && status == NULL; d++) {
    cx_spmd_shard(b->placement, b->shape.dims, d, part.dims, start);
    if (is_copy(b, d, start)) continue;
    status = cx_pjrt_buffer_to_host(b->shards[d], block, bytes);
    if (status == NULL) {
      copy_block(&b->shape, &part, start, dst, block, false);
    }
  }
  cx_free(block);
  return status;
}

// ---- launches ----

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
  void **words = cx_calloc(e->n_replicas * (n_args + e->n_results + 1) + 1,
                           sizeof *words);
  if (words == NULL) return cx_out_of_memory();
  calx_status *status =
      execute(e, args, n_args, words, out_results, out_done);
  cx_free(words);
  for (size_t i = 0; i < e->n_results && status != NULL; i++) {
    cx_pjrt_buffer_release(out_results[i]);
    out_results[i] = NULL;
  }
  return status;
}
