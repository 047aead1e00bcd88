// io/npy_read: arrays as host tensors, without a copy where the file has the
// elements as memory has them.
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/npy.h"
#include "io/pt_archive.h"
#include "lazy/lazy.h"

// A bool of numpy's is any byte; here it is 0 or 1.
static bool has_odd_bools(const cx_io_npy_header *h, const uint8_t *data,
                          size_t n)
{
  if (h->shape.dtype != CALX_BOOL) return false;
  for (size_t i = 0; i < n; i++) {
    if (data[i] > 1) return true;
  }
  return false;
}

static void put_element(const cx_io_npy_header *h, const uint8_t *from,
                        uint8_t *to, size_t size)
{
  if (h->shape.dtype == CALX_BOOL) {
    *to = *from != 0;
  } else if (h->swapped) {
    // Each part of a complex number is turned.
    const size_t part = calx_dtype_size(cx_dtype_part(h->shape.dtype));
    for (size_t i = 0; i < size; i++) {
      to[i] = from[i - i % part + part - 1 - i % part];
    }
  } else {
    memcpy(to, from, size);
  }
}

// Copies the elements in the order of the file to their places in memory.
static void turn(const cx_io_npy_header *h, const uint8_t *from, uint8_t *to,
                 size_t n)
{
  const cx_graph_shape *s = &h->shape;
  size_t size = calx_dtype_size(s->dtype), at = 0;
  size_t strides[CALX_MAX_RANK] = { 0 };
  int64_t index[CALX_MAX_RANK] = { 0 };
  size_t stride = size;
  for (size_t d = s->rank; d > 0; d--) {
    strides[d - 1] = stride;
    stride *= (size_t)s->dims[d - 1];
  }
  for (size_t i = 0; i < n; i++, from += size) {
    put_element(h, from, to + at, size);
    if (!h->fortran) {
      at += size;
      continue;
    }
    // The first index runs fastest.
    for (size_t d = 0; d < s->rank; d++) {
      at += strides[d];
      if (++index[d] < s->dims[d]) break;
      at -= strides[d] * (size_t)s->dims[d];
      index[d] = 0;
    }
  }
}

static calx_status *read_tensor(cx_io_map *map, calx_tensor **out)
{
  cx_io_npy_header h;
  CALX_TRY(cx_io_npy_header_read(map, &h));
  size_t n = (size_t)cx_graph_shape_numel(&h.shape);
  const uint8_t *data = map->data + h.begin;
  bool turned = (h.fortran && h.shape.rank > 1) || h.swapped ||
                has_odd_bools(&h, data, n);
  if (!turned) return cx_io_map_tensor(map, h.begin, &h.shape, out);
  uint8_t *copy = cx_alloc(n * calx_dtype_size(h.shape.dtype));
  if (copy == NULL) return cx_out_of_memory();
  turn(&h, data, copy, n);
  return cx_lazy_host_tensor_over(&h.shape, copy, cx_free, copy, out);
}

calx_status *cx_io_npy_read(cx_io_map *map, calx_value **out_value)
{
  calx_tensor *t = NULL;
  *out_value = NULL;
  CALX_TRY(read_tensor(map, &t));
  *out_value = calx_value_tensor(t);
  calx_release(t);
  return *out_value != NULL ? NULL : cx_out_of_memory();
}

// ---- archives ---------------------------------------------------------------

bool cx_io_is_npz(const cx_io_map *map)
{
  enum { NAME = 30 };  // where the first entry's name is
  if (map->size < NAME || memcmp(map->data, "PK\3\4", 4) != 0) return false;
  size_t n = (size_t)map->data[26] | (size_t)map->data[27] << 8;
  return n >= 4 && n <= map->size - NAME &&
         memcmp(map->data + NAME + n - 4, ".npy", 4) == 0;
}

static calx_status *read_entry(const cx_io_pt_archive *a, uint64_t at,
                               calx_value **out)
{
  cx_io_map *map;
  CALX_TRY(cx_io_pt_archive_map(a, at, &map));
  if (map == NULL) CALX_TRY(cx_io_pt_archive_unpack(a, at, &map));
  calx_status *status = NULL;
  if (cx_io_is_npy(map)) {
    status = cx_io_npy_read(map, out);
  } else {
    *out = calx_value_bytes(map->data, map->size);
  }
  cx_io_map_release(map);
  return status;
}

static calx_status *read_entries(const cx_io_pt_archive *a, calx_value *dict)
{
  for (uint64_t i = 0; i < a->n_entries; i++) {
    zip_stat_t s;
    char key[256];
    CALX_TRY(cx_io_pt_archive_stat(a, i, &s));
    size_t n = strlen(s.name);
    bool is_array = n > 4 && strcmp(s.name + n - 4, ".npy") == 0;
    if (is_array) n -= 4;
    if (n >= sizeof key) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "'%s': the entry '%.100s' has a name of %zu bytes, %zu "
                      "are possible",
                      a->name, s.name, n, sizeof key - 1);
    }
    memcpy(key, s.name, n);
    key[n] = '\0';
    if (calx_value_get(dict, key) != NULL) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': it has '%s' with and without .npy, and which one "
                      "is meant cannot be told",
                      a->name, key);
    }
    calx_value *item = NULL;
    CALX_TRY(cx_annotate(read_entry(a, i, &item), "in the entry '%s'", key));
    CALX_TRY(calx_value_set(dict, key, item));
  }
  return NULL;
}

calx_status *cx_io_npz_read(cx_io_map *map, calx_value **out_dict)
{
  cx_io_pt_archive a;
  *out_dict = NULL;
  calx_value *dict = calx_value_container(CALX_KIND_DICT);
  if (dict == NULL) return cx_out_of_memory();
  calx_status *status = cx_io_pt_archive_open_any(map, &a);
  if (status == NULL) status = read_entries(&a, dict);
  cx_io_pt_archive_close(&a);
  if (status == NULL) {
    *out_dict = dict;
  } else {
    calx_value_free(dict);
  }
  return status;
}
