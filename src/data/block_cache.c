// data/block_cache: a list of free blocks under a lock.
#include "data/block_cache.h"

#include "base/alloc.h"
#include "base/thread.h"

#define ALIGNMENT 64  // a cache line, and what plugins ask of host memory

struct cx_data_block_cache {
  cx_mutex lock;
  size_t n_fields;
  size_t offset[CALX_MAX_FIELDS];  // of each field in a block's bytes
  size_t bytes;
  size_t keep;
  cx_data_block *free;
  size_t n_free;
  size_t n_out;  // blocks that are held
  bool ended;
};

cx_data_block_cache *cx_data_block_cache_new(size_t n_fields,
                                             const size_t *field_bytes,
                                             size_t keep)
{
  cx_data_block_cache *cache = cx_calloc(1, sizeof *cache);
  if (cache == NULL) return NULL;
  size_t at = sizeof(cx_data_block);
  bool fits = true;
  for (size_t k = 0; k < n_fields; k++) {
    fits = fits && cx_add_size(at, ALIGNMENT - 1, &at);
    at -= at % ALIGNMENT;
    cache->offset[k] = at;
    fits = fits && cx_add_size(at, field_bytes[k], &at);
  }
  // The offsets count from an aligned address; malloc's is aligned to less.
  if (!fits || !cx_add_size(at, ALIGNMENT, &cache->bytes)) {
    cx_free(cache);
    return NULL;
  }
  cx_mutex_init(&cache->lock);
  cache->n_fields = n_fields;
  cache->keep = keep;
  return cache;
}

static void destroy(cx_data_block_cache *cache)
{
  cx_mutex_free(&cache->lock);
  cx_free(cache);
}

void cx_data_block_cache_free(cx_data_block_cache *cache)
{
  if (cache == NULL) return;
  cx_lock(&cache->lock);
  cx_data_block *block = cache->free;
  cache->free = NULL;
  cache->ended = true;
  bool last = cache->n_out == 0;
  cx_unlock(&cache->lock);
  while (block != NULL) {
    cx_data_block *next = block->next;
    cx_free(block);
    block = next;
  }
  if (last) destroy(cache);
}

static cx_data_block *block_new(cx_data_block_cache *cache)
{
  cx_data_block *block = cx_alloc(cache->bytes);
  if (block == NULL) return NULL;
  block->cache = cache;
  char *base = (char *)block;
  base += (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT;
  for (size_t k = 0; k < cache->n_fields; k++) {
    block->fields[k] = base + cache->offset[k];
  }
  return block;
}

cx_data_block *cx_data_block_cache_take(cx_data_block_cache *cache)
{
  cx_lock(&cache->lock);
  cx_data_block *block = cache->free;
  if (block != NULL) {
    cache->free = block->next;
    cache->n_free--;
  }
  cache->n_out++;
  cx_unlock(&cache->lock);
  if (block == NULL) block = block_new(cache);
  if (block == NULL) {
    cx_lock(&cache->lock);
    cache->n_out--;
    cx_unlock(&cache->lock);
    return NULL;
  }
  block->next = NULL;
  atomic_init(&block->holders, 1);
  return block;
}

cx_data_block *cx_data_block_single(size_t bytes)
{
  cx_data_block_cache *cache = cx_data_block_cache_new(1, &bytes, 0);
  if (cache == NULL) return NULL;
  cx_data_block *block = cx_data_block_cache_take(cache);
  cx_data_block_cache_free(cache);  // with its block
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
  cx_data_block_cache *cache = block->cache;
  cx_lock(&cache->lock);
  cache->n_out--;
  bool kept = !cache->ended && cache->n_free < cache->keep;
  if (kept) {
    block->next = cache->free;
    cache->free = block;
    cache->n_free++;
  }
  bool last = cache->ended && cache->n_out == 0;
  cx_unlock(&cache->lock);
  if (!kept) cx_free(block);
  if (last) destroy(cache);
}
