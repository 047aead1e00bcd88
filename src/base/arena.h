// base/arena: memory for things that die together. Allocates freely, frees
// nothing before cx_arena_free().
#ifndef CX_BASE_ARENA_H
#define CX_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cx_arena_block cx_arena_block;

typedef struct cx_arena {
  cx_arena_block *blocks;  // newest first
  size_t used;             // bytes handed out
  size_t limit;            // 0 = none: more than this many bytes is refused
  bool at_limit;           // something was refused
} cx_arena;                // the zero value is an empty arena

// 16-byte aligned, zeroed; NULL when there is no memory.
void *cx_arena_alloc(cx_arena *arena, size_t bytes);
// The next block has room for this many bytes or more. From 2 MiB on it asks
// the kernel for huge pages: a page of 4 KiB costs more than its use by a
// program that is read once. False: there is no memory.
bool cx_arena_reserve(cx_arena *arena, size_t bytes);
char *cx_arena_strndup(cx_arena *arena, const char *s, size_t n);
void cx_arena_reset(cx_arena *arena);  // forgets all, keeps one block
void cx_arena_free(cx_arena *arena);

#define CX_ARENA_NEW(arena, type) \
  ((type *)cx_arena_alloc((arena), sizeof(type)))
#define CX_ARENA_ARRAY(arena, type, count) \
  ((type *)cx_arena_alloc_array((arena), sizeof(type), (count)))
void *cx_arena_alloc_array(cx_arena *arena, size_t bytes, size_t count);

#endif
