// pjrt/sharded: a tensor on all devices of a client.
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
    char *inside = whole + (size_t)offset * size;
    memcpy(gather ? part : inside, gather ? inside : part, row);
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
