// base/arena: a list of blocks, each twice as big as the one before.
#include "base/arena.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

struct cx_arena_block {
  cx_arena_block *next;
  size_t used, size;  // bytes of data[]
  _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, BIGGEST_BLOCK = 1 << 20 };

// A block with room for `size` bytes, behind the others.
static cx_arena_block *add_block(cx_arena *arena, size_t size)
{
  if (size > SIZE_MAX - sizeof(cx_arena_block)) return NULL;
  cx_arena_block *block = cx_alloc(sizeof *block + size);
  if (block == NULL) return NULL;
  *block = (cx_arena_block){ .next = arena->blocks, .size = size };
  arena->blocks = block;
  return block;
}

// The next block, twice as big as the last.
static cx_arena_block *add_block_for(cx_arena *arena, size_t bytes)
{
  const cx_arena_block *top = arena->blocks;
  size_t size = top == NULL ? FIRST_BLOCK : top->size * 2;
  if (size > BIGGEST_BLOCK) size = BIGGEST_BLOCK;
  return add_block(arena, size < bytes ? bytes : size);
}

// The whole huge pages of a block. That the kernel has none is no error.
static void ask_huge_pages(cx_arena_block *block)
{
  const uintptr_t from = ((uintptr_t)block->data + CX_HUGE_PAGE - 1) &
                         ~(uintptr_t)(CX_HUGE_PAGE - 1);
  const uintptr_t to =
      ((uintptr_t)block->data + block->size) & ~(uintptr_t)(CX_HUGE_PAGE - 1);
  if (from >= to) return;
  block->used = from - (uintptr_t)block->data;
  (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
}

bool cx_arena_reserve(cx_arena *arena, size_t bytes)
{
  if (bytes < CX_HUGE_PAGE) return add_block_for(arena, bytes) != NULL;
  if (bytes > SIZE_MAX / 2) return false;
  // Room for whole pages wherever the block begins.
  bytes = cx_whole_pages(bytes);
  cx_arena_block *block = add_block(arena, bytes + CX_HUGE_PAGE);
  if (block == NULL) return false;
  ask_huge_pages(block);
  return true;
}

void *cx_arena_alloc(cx_arena *arena, size_t bytes)
{
  if (bytes > SIZE_MAX - 32) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  if (arena->limit != 0 && bytes > arena->limit - arena->used) {
    arena->at_limit = true;
    return NULL;
  }
  cx_arena_block *block = arena->blocks;
  if (block == NULL || block->size - block->used < bytes) {
    block = add_block_for(arena, bytes);
  }
  if (block == NULL) return NULL;
  void *p = block->data + block->used;
  block->used += bytes;
  arena->used += bytes;
  memset(p, 0, bytes);
  return p;
}

void *cx_arena_alloc_array(cx_arena *arena, size_t bytes, size_t count)
{
  size_t all;
  if (!cx_mul_size(bytes, count, &all)) return NULL;
  return cx_arena_alloc(arena, all);
}

char *cx_arena_strndup(cx_arena *arena, const char *s, size_t n)
{
  if (n == SIZE_MAX) return NULL;
  char *copy = cx_arena_alloc(arena, n + 1);
  if (copy != NULL && n != 0) memcpy(copy, s, n);
  return copy;
}

void cx_arena_reset(cx_arena *arena)
{
  cx_arena_block *keep = arena->blocks;
  if (keep == NULL) return;
  arena->blocks = keep->next;
  size_t limit = arena->limit;
  cx_arena_free(arena);
  keep->next = NULL;
  keep->used = 0;
  *arena = (cx_arena){ .blocks = keep, .limit = limit };
}

void cx_arena_free(cx_arena *arena)
{
  cx_arena_block *block = arena->blocks;
  while (block != NULL) {
    cx_arena_block *next = block->next;
    cx_free(block);
    block = next;
  }
  *arena = (cx_arena){ .limit = arena->limit };
}
