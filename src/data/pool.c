// data/pool: a list of free blocks under a lock.
#include "data/pool.h"

#include "base/alloc.h"
#include "base/thread.h"

#define ALIGNMENT 64  // a cache line, and what plugins ask of host memory

struct cx_data_pool {
  cx_mutex lock;
  size_t n_fields;
  size_t offset[CALX_MAX_FIELDS];  // of each field in a block's bytes
  size_t bytes;
  size_t keep;
  cx_data_block *free;
  size_t n_free;
  size_t n_out;  // blocks that somebody holds
  bool ended;
};

cx_data_pool *cx_data_pool_new(size_t n_fields, const size_t *field_bytes,
                               size_t keep)
{
  cx_data_pool *pool = cx_calloc(1, sizeof *pool);
  if (pool == NULL) return NULL;
  size_t at = sizeof(cx_data_block);
  bool fits = true;
  for (size_t k = 0; k < n_fields; k++) {
    fits = fits && cx_add_size(at, ALIGNMENT - 1, &at);
    at -= at % ALIGNMENT;
    pool->offset[k] = at;
    fits = fits && cx_add_size(at, field_bytes[k], &at);
  }
  // The offsets count from an aligned address; malloc's is aligned to less.
  if (!fits || !cx_add_size(at, ALIGNMENT, &pool->bytes)) {
    cx_free(pool);
    return NULL;
  }
  cx_mutex_init(&pool->lock);
  pool->n_fields = n_fields;
  pool->keep = keep;
  return pool;
}

static void destroy(cx_data_pool *pool)
{
  cx_mutex_free(&pool->lock);
  cx_free(pool);
}

void cx_data_pool_free(cx_data_pool *pool)
{
  if (pool == NULL) return;
  cx_lock(&pool->lock);
  cx_data_block *block = pool->free;
  pool->free = NULL;
  pool->ended = true;
  bool last = pool->n_out == 0;
  cx_unlock(&pool->lock);
  while (block != NULL) {
    cx_data_block *next = block->next;
    cx_free(block);
    block = next;
  }
  if (last) destroy(pool);
}

static cx_data_block *block_new(cx_data_pool *pool)
{
  cx_data_block *block = cx_alloc(pool->bytes);
  if (block == NULL) return NULL;
  block->pool = pool;
  char *base = (char *)block;
  base += (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT;
  for (size_t k = 0; k < pool->n_fields; k++) {
    block->fields[k] = base + pool->offset[k];
  }
  return block;
}

cx_data_block *cx_data_pool_take(cx_data_pool *pool)
{
  cx_lock(&pool->lock);
  cx_data_block *block = pool->free;
  if (block != NULL) {
    pool->free = block->next;
    pool->n_free--;
  }
  pool->n_out++;
  cx_unlock(&pool->lock);
  if (block == NULL) block = block_new(pool);
  if (block == NULL) {
    cx_lock(&pool->lock);
    pool->n_out--;
    cx_unlock(&pool->lock);
    return NULL;
  }
  block->next = NULL;
  atomic_init(&block->holders, 1);
  return block;
}

void cx_data_block_hold(cx_data_block *block, int more)
{
  atomic_fetch_add(&block->holders, more);
}

void cx_data_block_release(void *user)
{
  cx_data_block *block = user;
  if (atomic_fetch_sub(&block->holders, 1) != 1) return;
  cx_data_pool *pool = block->pool;
  cx_lock(&pool->lock);
  pool->n_out--;
  bool kept = !pool->ended && pool->n_free < pool->keep;
  if (kept) {
    block->next = pool->free;
    pool->free = block;
    pool->n_free++;
  }
  bool last = pool->ended && pool->n_out == 0;
  cx_unlock(&pool->lock);
  if (!kept) cx_free(block);
  if (last) destroy(pool);
}
