// base/arena: a list of blocks, each twice as big as the one before.
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

struct cx_arena_block {
  cx_arena_block *next;
  size_t used, size;  // bytes of data[]
  _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, BIGGEST_BLOCK = 1 << 20 };

static cx_arena_block *block_for(cx_arena *arena, size_t bytes)
{
  cx_arena_block *top = arena->blocks;
  if (top != NULL && top->size - top->used >= bytes) return top;
  size_t size = top == NULL ? FIRST_BLOCK : top->size * 2;
  if (size > BIGGEST_BLOCK) size = BIGGEST_BLOCK;
  if (size < bytes) size = bytes;
  if (size > SIZE_MAX - sizeof *top) return NULL;
  cx_arena_block *block = cx_alloc(sizeof *block + size);
  if (block == NULL) return NULL;
  *block = (cx_arena_block){ .next = top, .size = size };
  arena->blocks = block;
  return block;
}

void *cx_arena_alloc(cx_arena *arena, size_t bytes)
{
  if (bytes > SIZE_MAX - 32) return NULL;
  bytes = (bytes + 15) & ~(size_t)15;
  if (arena->limit != 0 && bytes > arena->limit - arena->used) return NULL;
  cx_arena_block *block = block_for(arena, bytes);
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
