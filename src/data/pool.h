// data/pool: reusable host memory for whole batches.
//
// Uploads borrow a batch's memory and give it back when the device has it, at a
// time and on a thread of the device's choosing: possibly after the loader is
// gone. So nobody waits for memory to come back (a new block is made where none
// is free), and the pool lives until its last block came home.
#ifndef CX_DATA_POOL_H
#define CX_DATA_POOL_H

#include <stdatomic.h>

#include "calx/data.h"

typedef struct cx_data_pool cx_data_pool;

typedef struct cx_data_block {
  cx_data_pool *pool;
  struct cx_data_block *next;     // in the pool's free list
  atomic_int holders;             // the filler, or the uploads under way
  void *fields[CALX_MAX_FIELDS];  // 64-byte aligned
} cx_data_block;

// keep: so many free blocks are kept for reuse. NULL when there is no memory,
// or the bytes do not fit.
cx_data_pool *cx_data_pool_new(size_t n_fields, const size_t *field_bytes,
                               size_t keep);
// The owner's end; blocks may still be out.
void cx_data_pool_free(cx_data_pool *pool);

// A block with one holder; NULL when there is no memory. Thread-safe.
cx_data_block *cx_data_pool_take(cx_data_pool *pool);
void cx_data_block_hold(cx_data_block *block, int more);
// Ends one hold; the last gives the block back. A `done` of cx_lazy_upload().
void cx_data_block_release(void *block);

#endif
