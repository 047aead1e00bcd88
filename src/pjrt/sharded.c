// pjrt/sharded: a tensor on all devices of a client.
//
// A sharded buffer has one ordinary buffer on each device, which has a block of
// the tensor or, where no dimension is split, all of it.
#include <stdatomic.h>
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

// Where the host's data of a tensor comes from. It may be in use until all
// devices are done with it.
typedef struct shards_upload {
  const char *data;
  cx_pjrt_upload mode;
  atomic_size_t left;  // devices that may use it
  void (*done)(void *user);
  void *user;
} shards_upload;

static void device_done(void *user)
{
  shards_upload *u = user;
  if (atomic_fetch_sub(&u->left, 1) != 1) return;
  u->done(u->user);
  cx_free(u);
}

// Whether the elements of a block lie one after another in the tensor.
static bool is_dense(const cx_pjrt_shape *all, const cx_pjrt_shape *block)
{
  size_t d = all->rank;
  while (d > 0 && block->dims[d - 1] == all->dims[d - 1]) d--;
  while (d > 1 && block->dims[d - 2] == 1) d--;
  return d <= 1;
}

static size_t offset_of(const cx_pjrt_shape *all, const int64_t *start)
{
  int64_t offset = 0;
  for (size_t d = 0; d < all->rank; d++) {
    offset = offset * all->dims[d] + start[d];
  }
  return (size_t)offset * cx_pjrt_type_bytes(all->type);
}

// From where it lies, where it is dense; else from `block`, which has room for
// a shard.
static calx_status *upload_shard(cx_pjrt_buffer *b, size_t device,
                                 shards_upload *u, char *block)
{
  cx_pjrt_shape shape = b->shape;
  const char *data = u->data;
  if (b->placement != NULL) {
    int64_t start[CALX_MAX_RANK];
    cx_spmd_shard(b->placement, b->shape.dims, device, shape.dims, start);
    if (block == NULL) {
      data += offset_of(&b->shape, start);
    } else if (bytes_of(&shape) != 0) {
      copy_block(&b->shape, &shape, start, (char *)data, block, true);
    }
    if (block != NULL) data = block;
  }
  const bool borrowed = u->mode != CX_PJRT_COPY;
  return cx_pjrt_buffer_from_host(b->client, device, &shape, data, u->mode,
                                  borrowed ? device_done : NULL, u,
                                  &b->shards[device]);
}

static calx_status *upload_shards(cx_pjrt_buffer *b, shards_upload *u,
                                  char *block)
{
  const size_t n = b->client->n_devices;
  calx_status *status = NULL;
  size_t d = 0;
  while (d < n && status == NULL) status = upload_shard(b, d++, u, block);
  for (; d < n && u->mode != CX_PJRT_COPY; d++) device_done(u);
  return status;
}

// The caller's `done` is called here, or by the last device.
static calx_status *upload_all(cx_pjrt_buffer *b, const shards_upload *asked)
{
  cx_pjrt_shape part;
  cx_pjrt_shard_shape(&b->shape, b->placement, &part);
  const bool dense = b->placement == NULL || is_dense(&b->shape, &part);
  shards_upload now = *asked, *later = NULL;
  char *block = NULL;
  calx_status *status = NULL;
  if (dense && now.mode != CX_PJRT_COPY) later = cx_alloc(sizeof *later);
  if (later != NULL) {
    *later = now;
    atomic_init(&later->left, b->client->n_devices);
    return upload_shards(b, later, NULL);
  }
  now.mode = CX_PJRT_COPY;
  if (!dense) {
    block = cx_alloc(bytes_of(&part) + 1);
    if (block == NULL) status = cx_out_of_memory();
  }
  if (status == NULL) status = upload_shards(b, &now, block);
  cx_free(block);
  if (now.done != NULL) now.done(now.user);
  return status;
}

calx_status *cx_pjrt_sharded_from_host(cx_pjrt_client *c,
                                       const cx_pjrt_shape *shape,
                                       const cx_spmd_placement *placement,
                                       const void *data, cx_pjrt_upload mode,
                                       void (*done)(void *user), void *user,
                                       cx_pjrt_buffer **out)
{
  const shards_upload asked = {
    .data = data, .mode = mode, .done = done, .user = user
  };
  *out = NULL;
  cx_pjrt_buffer *b = cx_pjrt_sharded_new(c, shape, placement);
  if (b == NULL) {
    if (done != NULL) done(user);
    return cx_out_of_memory();
  }
  calx_status *status = upload_all(b, &asked);
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
