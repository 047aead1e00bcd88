// autograd/map: a hash map of addresses.
#include "autograd/map.h"

#include <stdint.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 256 };

// Multiplicative hashing (D. Knuth, vol. 3, 6.4); blocks are 16-byte aligned.
static size_t slot_of(const void *key, size_t capacity)
{
  uint64_t h = (uint64_t)(uintptr_t)key >> 4;
  return (size_t)((h * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (capacity - 1);
}

// The slot of the key, or the free one for it.
static cx_autograd_pair *probe(cx_autograd_pair *pairs, size_t capacity,
                               const void *key)
{
  size_t i = slot_of(key, capacity);
  while (pairs[i].key != NULL && pairs[i].key != key) {
    i = (i + 1) & (capacity - 1);
  }
  return &pairs[i];
}

static bool make_room(cx_autograd_map *map)
{
  if (2 * (map->count + 1) <= map->capacity) return true;
  size_t capacity = map->capacity != 0 ? 2 * map->capacity : FIRST_CAPACITY;
  cx_autograd_pair *pairs = cx_calloc(capacity, sizeof *pairs);
  if (pairs == NULL) return false;
  for (size_t i = 0; i < map->capacity; i++) {
    const cx_autograd_pair *old = &map->pairs[i];
    if (old->key != NULL) *probe(pairs, capacity, old->key) = *old;
  }
  cx_free(map->pairs);
  map->pairs = pairs;
  map->capacity = capacity;
  return true;
}

size_t *cx_autograd_map_add(cx_autograd_map *map, const void *key, size_t fresh,
                            bool *out_new)
{
  *out_new = false;
  if (!make_room(map)) return NULL;
  cx_autograd_pair *pair = probe(map->pairs, map->capacity, key);
  if (pair->key == NULL) {
    *pair = (cx_autograd_pair){ key, fresh };
    map->count++;
    *out_new = true;
  }
  return &pair->value;
}

const size_t *cx_autograd_map_find(const cx_autograd_map *map, const void *key)
{
  if (map->capacity == 0) return NULL;
  const cx_autograd_pair *pair = probe(map->pairs, map->capacity, key);
  return pair->key != NULL ? &pair->value : NULL;
}

void cx_autograd_map_free(cx_autograd_map *map)
{
  cx_free(map->pairs);
  *map = (cx_autograd_map){ 0 };
}
