// io/map: a file's content in memory, shared by the tensors that lie in it.
//
// Nothing is copied where the type's alignment allows: the system reads a page
// at the first access, and the map is freed with its last tensor.
#include "io/map.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/status.h"
#include "lazy/lazy.h"

calx_status *cx_io_map_memory(const char *name, const void *data, size_t size,
                              cx_io_map **out_map)
{
  *out_map = cx_alloc(sizeof **out_map);
  if (*out_map == NULL) return cx_out_of_memory();
  **out_map = (cx_io_map){ .name = name, .data = data, .size = size };
  atomic_init(&(*out_map)->refs, 1);
  return NULL;
}

calx_status *cx_io_map_part(cx_io_map *whole, size_t offset, size_t size,
                            cx_io_map **out_map)
{
  CX_ASSERT(offset <= whole->size && size <= whole->size - offset);
  CALX_TRY(cx_io_map_memory(whole->name, whole->data + offset, size, out_map));
  atomic_fetch_add_explicit(&whole->refs, 1, memory_order_relaxed);
  (*out_map)->whole = whole;
  return NULL;
}

static calx_status *map_file(int fd, const char *path, cx_io_map **out_map)
{
  struct stat info;
  if (fstat(fd, &info) != 0) return cx_file_failed("look at", path);
  if (!S_ISREG(info.st_mode)) {
    return cx_invalid("'%s' is no regular file", path);
  }
  size_t size = (size_t)info.st_size;
  void *data = NULL;
  if (size != 0) {
    data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return cx_file_failed("map", path);
  }
  calx_status *status = cx_io_map_memory(path, data, size, out_map);
  if (status == NULL) {
    (*out_map)->mapped = data;
  } else if (data != NULL) {
    munmap(data, size);
  }
  return status;
}

calx_status *cx_io_map_open(const char *path, cx_io_map **out_map)
{
  *out_map = NULL;
  // Opening a pipe must not wait for its other end.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return cx_file_failed("open", path);
  calx_status *status = map_file(fd, path, out_map);
  close(fd);
  return status;
}

void cx_io_map_release(cx_io_map *map)
{
  if (map == NULL) return;
  if (atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel) != 1) {
    return;
  }
  if (map->mapped != NULL) munmap(map->mapped, map->size);
  cx_io_map_release(map->whole);  // a whole is never a part itself
  cx_free(map->owned);
  cx_free(map);
}

static void release(void *map)
{
  cx_io_map_release(map);
}

calx_status *cx_io_map_tensor(cx_io_map *map, size_t offset,
                              const cx_graph_shape *shape,
                              calx_tensor **out_tensor)
{
  size_t size = calx_dtype_size(shape->dtype);
  size_t bytes = (size_t)cx_graph_shape_numel(shape) * size;
  CX_ASSERT(offset <= map->size && bytes <= map->size - offset);
  const uint8_t *data = map->data != NULL ? map->data + offset : NULL;
  if ((uintptr_t)data % size == 0) {
    atomic_fetch_add_explicit(&map->refs, 1, memory_order_relaxed);
    return cx_lazy_host_tensor_over(shape, (void *)(uintptr_t)data, release,
                                    map, out_tensor);
  }
  *out_tensor = NULL;
  void *copy = cx_alloc(bytes);
  if (copy == NULL) return cx_out_of_memory();
  memcpy(copy, data, bytes);
  return cx_lazy_host_tensor_over(shape, copy, cx_free, copy, out_tensor);
}
