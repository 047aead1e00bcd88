// io/map: a file's content in memory, shared by the tensors that lie in it.
#ifndef CX_IO_MAP_H
#define CX_IO_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "calx/tensor.h"
#include "graph/node.h"

typedef struct cx_io_map {
  atomic_int refs;
  const char *name;  // of the file, for messages; lives as long as the opening
  const uint8_t *data;
  size_t size;
  void *mapped;  // or cx_free()d memory, or neither: somebody else's
  void *owned;
  struct cx_io_map *whole;  // that it is a part of; held
} cx_io_map;

// A regular file, mapped. A program that changes the file in place, instead of
// replacing it, changes what is read.
calx_status *cx_io_map_open(const char *path,
                            cx_io_map **out_map) CALX_MUST_USE;
// A map of memory that the caller keeps valid for longer than the map.
calx_status *cx_io_map_memory(const char *name, const void *data, size_t size,
                              cx_io_map **out_map) CALX_MUST_USE;
// A map of `size` bytes at `offset`, which must lie in `whole`. The bytes stay
// valid when `whole` is released.
calx_status *cx_io_map_part(cx_io_map *whole, size_t offset, size_t size,
                            cx_io_map **out_map) CALX_MUST_USE;
void cx_io_map_release(cx_io_map *map);  // NULL is accepted

// A host tensor over the bytes at `offset`, which must lie in the map. Where
// the bytes are not aligned for the element type, the tensor has a copy of
// them.
calx_status *cx_io_map_tensor(cx_io_map *map, size_t offset,
                              const cx_graph_shape *shape,
                              calx_tensor **out_tensor) CALX_MUST_USE;

#endif
