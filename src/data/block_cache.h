// data/block_cache: reusable host memory for whole batches.
//
// Uploads borrow a batch's memory and return it when the device has copied it,
// on a thread of the device and possibly after the loader is freed. So nothing
// waits for memory: a new block is made where none is free, and the cache lives
// until its last block is released.
#ifndef CX_DATA_BLOCK_CACHE_H
#define CX_DATA_BLOCK_CACHE_H

#include <stdatomic.h>

#include "calx/data.h"

typedef struct cx_data_block_cache cx_data_block_cache;

typedef struct cx_data_block {
  cx_data_block_cache *cache;
  struct cx_data_block *next;     // in the cache's free list
  atomic_int holders;             // the filler, or the uploads under way
  void *fields[CALX_MAX_FIELDS];  // 64-byte aligned
} cx_data_block;

// Up to `keep` free blocks are kept for reuse. NULL: there is no memory, or the
// bytes overflow.
cx_data_block_cache *cx_data_block_cache_new(size_t n_fields,
                                             const size_t *field_bytes,
                                             size_t keep);
// Called by the owner. Blocks may still be held.
void cx_data_block_cache_free(cx_data_block_cache *cache);

// A block with one holder; NULL when there is no memory. Thread-safe.
cx_data_block *cx_data_block_cache_take(cx_data_block_cache *cache);
// A block of one field that belongs to no cache.
cx_data_block *cx_data_block_single(size_t bytes);
void cx_data_block_hold(cx_data_block *block, int more);
// Ends one hold; the last gives the block back. A `done` of cx_lazy_upload().
void cx_data_block_release(void *block);

#endif
