// autograd/map: from addresses to numbers. Open addressing with linear probing;
// nothing is ever removed.
//
// Graph nodes have marks of their own, but the device's lock guards those: a
// backward pass only records, and takes no lock.
#ifndef CX_AUTOGRAD_MAP_H
#define CX_AUTOGRAD_MAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cx_autograd_pair {
  const void *key;  // NULL: free
  size_t value;
} cx_autograd_pair;

typedef struct cx_autograd_map {
  cx_autograd_pair *pairs;
  size_t count, capacity;  // capacity: 0 or a power of two
} cx_autograd_map;         // the zero value is the empty map

// The value of the key. If there was none, it is `fresh` and *out_new is true.
// NULL: no memory. Valid until the next call.
size_t *cx_autograd_map_add(cx_autograd_map *map, const void *key, size_t fresh,
                            bool *out_new);
// NULL: none.
const size_t *cx_autograd_map_find(const cx_autograd_map *map, const void *key);
void cx_autograd_map_free(cx_autograd_map *map);

#endif
