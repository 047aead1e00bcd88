// io/pt_tensors: see pt_tensors.h.
#include "io/pt_tensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "lazy/lazy.h"

#define MB ((uint64_t)1 << 20)
// How many bytes all tensors together may have beyond their storages. A small
// file can hold one number that is expanded to a huge tensor.
#define EXPANDED (1024 * MB)

// The number of a storage's entry, "data/KEY"; -1: there is none.
static int64_t find_storage(const cx_io_pt_tensors *r,
                            const cx_io_node *storage, char name[200])
{
  const cx_io_node *key = storage->as.storage.key;
  int n = snprintf(name, 200, "data/%.*s",
                   key->as.text.size < 100 ? (int)key->as.text.size : 100,
                   key->as.text.data);
  return cx_io_pt_archive_find(r->archive, name, (size_t)n);
}

// False: the size overflows.
static bool storage_bytes(const cx_io_node *storage, size_t *out)
{
  size_t each = storage->dtype != 0 ? calx_dtype_size(storage->dtype) : 1;
  return cx_mul_size((size_t)storage->as.storage.elements, each, out);
}

// A packed storage may not unpack to far more than its tensors need.
static calx_status *check_packed(const cx_io_pt_tensors *r, const zip_stat_t *s,
                                 uint64_t need)
{
  if (s->comp_method == ZIP_CM_STORE || s->size / 16 <= need + MB / 16) {
    return NULL;
  }
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "'%s': the storage '%.100s' unpacks from %" PRIu64
                  " to %" PRIu64 " bytes, of which its tensors need %" PRIu64
                  ": save them as clones",
                  r->archive->name, s->name, s->comp_size, s->size, need);
}

// Sizes are compared before anything is unpacked.
static calx_status *check_storage(const cx_io_pt_tensors *r,
                                  const cx_io_node *storage, const char *name,
                                  const zip_stat_t *s)
{
  size_t bytes;
  if (storage_bytes(storage, &bytes) && bytes == s->size) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': the storage '%s' has %" PRIu64 " bytes, %" PRId64
                  " elements of %zu are wanted",
                  r->archive->name, name, s->size, storage->as.storage.elements,
                  storage->dtype != 0 ? calx_dtype_size(storage->dtype) : 1);
}

static calx_status *load_storage(cx_io_pt_tensors *r, const cx_io_node *storage,
                                 cx_io_map **out)
{
  char name[200];
  zip_stat_t s;
  int64_t at = find_storage(r, storage, name);
  if (at < 0) {
    return cx_error(CALX_DATA_LOSS, "'%s': there is no storage '%s%s'",
                    r->archive->name, r->archive->prefix, name);
  }
  CALX_TRY(cx_io_pt_archive_stat(r->archive, (uint64_t)at, &s));
  CALX_TRY(check_storage(r, storage, name, &s));
  cx_io_map **known = &r->storages[at];
  if (*known == NULL) {
    CALX_TRY(cx_io_pt_archive_map(r->archive, (uint64_t)at, known));
    if (*known == NULL) {
      CALX_TRY(check_packed(r, &s, r->needs[at]));
      CALX_TRY(cx_io_pt_archive_unpack(r->archive, (uint64_t)at, known));
    }
    r->copies += 16 * (uint64_t)(*known)->size;
  }
  *out = *known;
  return NULL;
}

// The end of the elements that the tensor uses, from t->offset. False: it
// overflows.
static bool reach(const cx_io_strided *t, int64_t *out_end)
{
  int64_t last = t->offset;
  bool fits = true, empty = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t way;
    empty |= t->dims[d] == 0;
    fits &= !__builtin_mul_overflow(t->dims[d] > 0 ? t->dims[d] - 1 : 0,
                                    t->strides[d], &way) &&
            !__builtin_add_overflow(last, way, &last);
  }
  *out_end = empty ? t->offset : last;
  return empty || (fits && !__builtin_add_overflow(last, 1, out_end));
}

void cx_io_pt_note_need(void *user, const cx_io_node *tensor)
{
  cx_io_pt_tensors *r = user;
  char name[200];
  int64_t end, at = find_storage(r, tensor->as.tensor->storage, name);
  uint64_t need;
  if (at < 0 || !reach(tensor->as.tensor, &end) ||
      __builtin_mul_overflow((uint64_t)end,
                             (uint64_t)calx_dtype_size(tensor->dtype), &need)) {
    return;  // cx_io_pt_tensor() refuses it
  }
  if (need > r->needs[at]) r->needs[at] = need;
}

static calx_status *check_reach(const cx_io_pt_tensors *r,
                                const cx_io_node *node,
                                const cx_graph_shape *shape)
{
  const cx_io_strided *t = node->as.tensor;
  size_t bytes;
  if (!storage_bytes(t->storage, &bytes)) bytes = 0;
  // The offset of a tensor in an untyped storage counts the tensor's own
  // elements.
  int64_t end, have = (int64_t)(bytes / calx_dtype_size(node->dtype));
  if (reach(t, &end) && t->offset <= have && end <= have) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': %s at element %" PRId64
                  " reaches past its storage of %" PRId64 " elements",
                  r->archive->name, cx_graph_shape_str(shape), t->offset, have);
}

static bool is_row_major(const cx_io_strided *t)
{
  int64_t wanted = 1;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (t->dims[d] == 0) return true;
  }
  for (uint32_t d = t->rank; d > 0; d--) {
    if (t->dims[d - 1] != 1 && t->strides[d - 1] != wanted) return false;
    wanted *= t->dims[d - 1];
  }
  return true;
}

// n elements of a strided tensor, in row-major order.
static void gather(const cx_io_strided *t, const uint8_t *from, size_t each,
                   int64_t n, uint8_t *to)
{
  int64_t index[CALX_MAX_RANK] = { 0 }, at = t->offset;
  for (int64_t i = 0; i < n; i++, to += each) {
    memcpy(to, from + (size_t)at * each, each);
    for (uint32_t d = t->rank; d > 0; d--) {
      at += t->strides[d - 1];
      if (++index[d - 1] < t->dims[d - 1]) break;
      at -= t->strides[d - 1] * t->dims[d - 1];
      index[d - 1] = 0;
    }
  }
}

static calx_status *gather_tensor(cx_io_pt_tensors *r, const cx_io_strided *t,
                                  const cx_graph_shape *shape,
                                  const cx_io_map *map, calx_tensor **out)
{
  int64_t n;
  size_t bytes;
  bool fits = cx_dims_bytes(shape->dtype, shape->dims, shape->rank, &n, &bytes);
  if (!fits || bytes > r->copies) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "'%s': %s lies in a storage of %zu bytes: the tensors ask "
                    "for much more than the file has; save a clone of what is "
                    "expanded",
                    r->archive->name, cx_graph_shape_str(shape), map->size);
  }
  r->copies -= bytes;
  void *data = cx_alloc(bytes);
  if (data == NULL) return cx_out_of_memory();
  gather(t, map->data, calx_dtype_size(shape->dtype), n, data);
  return cx_lazy_host_tensor_over(shape, data, cx_free, data, out);
}

static calx_status *make_tensor(cx_io_pt_tensors *r, const cx_io_node *node,
                                calx_tensor **out)
{
  cx_io_strided *t = node->as.tensor;
  cx_io_map *map = NULL;
  *out = NULL;
  cx_graph_shape shape = { .dtype = node->dtype, .rank = t->rank };
  memcpy(shape.dims, t->dims, t->rank * sizeof *t->dims);
  CALX_TRY(check_reach(r, node, &shape));
  CALX_TRY(load_storage(r, t->storage, &map));
  if (is_row_major(t)) {
    size_t offset = (size_t)t->offset * calx_dtype_size(node->dtype);
    return cx_io_map_tensor(map, offset, &shape, out);
  }
  return gather_tensor(r, t, &shape, map, out);
}

// A node gives the same tensor each time.
calx_status *cx_io_pt_tensor(cx_io_pt_tensors *r, const cx_io_node *node,
                             calx_tensor **out)
{
  cx_io_strided *t = node->as.tensor;
  *out = NULL;
  if (t->made == NULL) {
    CALX_TRY(make_tensor(r, node, &t->made));
    t->next_made = r->made;
    r->made = t;
  }
  *out = t->made;
  return NULL;
}

calx_status *cx_io_pt_tensors_begin(const cx_io_pt_archive *archive,
                                    cx_io_pt_tensors *out)
{
  size_t n = (size_t)archive->n_entries;
  *out = (cx_io_pt_tensors){ .archive = archive,
                             .storages = cx_calloc(n, sizeof(cx_io_map *)),
                             .needs = cx_calloc(n, sizeof *out->needs),
                             .copies = EXPANDED };
  if (out->storages == NULL || out->needs == NULL) return cx_out_of_memory();
  return NULL;
}

void cx_io_pt_tensors_end(cx_io_pt_tensors *r)
{
  for (uint64_t i = 0; r->storages != NULL && i < r->archive->n_entries; i++) {
    cx_io_map_release(r->storages[i]);
  }
  for (; r->made != NULL; r->made = r->made->next_made) {
    calx_release(r->made->made);
  }
  cx_free(r->storages);
  cx_free(r->needs);
}
