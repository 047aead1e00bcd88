// io/pt_read: a zip of storages and the pickle that says what they are.
//
// Bounds: what entries have together when packed, how much each may unpack to,
// the nodes of the pickle, and what texts that are used again may come to, all
// from the file's own size; what tensors with overlapping elements may come to;
// and of a packed storage, what its tensors need. All that a file says of its
// sizes is compared before anything is unpacked. Two entries of one name are
// refused: which one is meant differs between readers. A storage is
// read when the first tensor that is kept needs it; tensors that lie in it in
// order share its memory, which is the file's map where it is not packed.
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"
#include "io/crc.h"
#include "io/pickle.h"
#include "io/pt.h"
#include "io/value.h"
#include "io/zip.h"
#include "lazy/lazy.h"

// Deflate packs no better (zlib's technical notes).
#define MOST_PACKED 1032
#define MB ((uint64_t)1 << 20)
// Bytes that tensors may have beyond their storages': a number that was
// expanded to a large tensor lies in a small file.
#define EXPANDED (1024 * MB)
// Bytes: as memory that was allocated is.
#define ALIGNED _Alignof(max_align_t)

typedef struct reading {
  const char *name;
  size_t file_size;
  cx_io_map *map;  // the file
  zip_t *zip;
  char prefix[256];      // "mnist/"
  cx_io_map **storages;  // by the entry's place; NULL: not read yet
  uint64_t *places;      // of the entries' bytes in the file; 0: not known
  uint64_t *needs;       // bytes of the entries that the tensors reach
  uint64_t n_entries;
  uint64_t copies;  // bytes that tensors may still take besides the storages
  int64_t values;   // that may still be made of nodes
  uint64_t texts;   // bytes that those which are texts may still take
  cx_arena nodes;
  cx_io_strided *made;  // tensors that are held until the end
} reading;

bool cx_io_is_zip(const cx_io_map *map)
{
  return map->size >= 4 && memcmp(map->data, "PK\3\4", 4) == 0;
}

// A pickle of the number 0x1950a86a20f9469cfc6c comes first.
bool cx_io_is_old_pt(const cx_io_map *map)
{
  static const char magic[] = "\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";
  return map->size >= 15 && map->data[0] == 0x80 &&
         memcmp(map->data + 2, magic, 13) == 0;
}

// ---- the archive ------------------------------------------------------------

static calx_status *zip_failed(const reading *r, const char *what,
                               zip_error_t *error)
{
  calx_code code = zip_error_code_zip(error) == ZIP_ER_MEMORY
                       ? CALX_RESOURCE_EXHAUSTED
                       : CALX_DATA_LOSS;
  return cx_error(code, "'%s': %s: %s", r->name, what,
                  zip_error_strerror(error));
}

static calx_status *open_zip(reading *r, const cx_io_map *map)
{
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source =
      zip_source_buffer_create(map->data, map->size, 0, &error);
  if (source != NULL) {
    r->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (r->zip == NULL) zip_source_free(source);
  }
  calx_status *status =
      r->zip != NULL ? NULL : zip_failed(r, "no zip archive", &error);
  zip_error_fini(&error);
  return status;
}

static calx_status *stat_entry(const reading *r, uint64_t at, zip_stat_t *out)
{
  zip_stat_init(out);
  if (zip_stat_index(r->zip, at, 0, out) != 0) {
    return zip_failed(r, "an entry", zip_get_error(r->zip));
  }
  zip_uint64_t wanted =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((out->valid & wanted) != wanted) {
    return cx_error(CALX_DATA_LOSS, "'%s': an entry without a size", r->name);
  }
  return NULL;
}

// No more than the file has, and packed as torch.save and zip programs do.
static calx_status *check_entries(reading *r)
{
  uint64_t packed = 0;
  r->n_entries = (uint64_t)zip_get_num_entries(r->zip, 0);
  for (uint64_t i = 0; i < r->n_entries; i++) {
    zip_stat_t s;
    CALX_TRY(stat_entry(r, i, &s));
    bool encrypted = (s.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 &&
                     s.encryption_method != ZIP_EM_NONE;
    if (encrypted ||
        (s.comp_method != ZIP_CM_STORE && s.comp_method != ZIP_CM_DEFLATE)) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "'%s': the entry '%.100s' is %s; stored and deflated "
                      "ones are read",
                      r->name, s.name,
                      encrypted ? "encrypted" : "packed in another way");
    }
    bool fits =
        s.comp_size <= r->file_size - packed &&
        (s.comp_method == ZIP_CM_STORE ? s.size == s.comp_size
                                       : s.size / MOST_PACKED <= s.comp_size);
    if (!fits) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': the entry '%.100s' claims %" PRIu64
                      " bytes packed in %" PRIu64 ", the file has %zu",
                      r->name, s.name, s.size, s.comp_size, r->file_size);
    }
    packed += s.comp_size;
  }
  r->copies = EXPANDED;
  return NULL;
}

static int fold(char c)
{
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

// PyTorch's reader takes upper and lower case for the same.
static int by_name(const void *a, const void *b)
{
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  while (*x != '\0' && fold(*x) == fold(*y)) x++, y++;
  return fold(*x) - fold(*y);
}

// Of two entries of one name PyTorch reads the last, others the first.
static calx_status *check_names(const reading *r)
{
  size_t n = (size_t)r->n_entries;
  const char **names = cx_calloc(n + 1, sizeof *names);
  if (names == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    names[i] = zip_get_name(r->zip, i, 0);
    if (names[i] == NULL) names[i] = "";
  }
  qsort(names, n, sizeof *names, by_name);
  calx_status *status = NULL;
  for (size_t i = 1; i < n && status == NULL; i++) {
    if (by_name(&names[i - 1], &names[i]) != 0) continue;
    status = cx_error(CALX_DATA_LOSS,
                      "'%s': it has two entries called '%.100s', and which one "
                      "is meant cannot be told",
                      r->name, names[i]);
  }
  cx_free(names);
  return status;
}

// The folder that the first entry is in: torch.save has one for all.
static calx_status *find_prefix(reading *r)
{
  zip_stat_t s = { 0 };
  if (r->n_entries > 0) CALX_TRY(stat_entry(r, 0, &s));
  const char *slash = s.name != NULL ? strchr(s.name, '/') : NULL;
  size_t n = slash != NULL ? (size_t)(slash - s.name) + 1 : 0;
  if (n == 0 || n >= sizeof r->prefix) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s': a zip archive, but not one of PyTorch's: its first "
                    "entry is in no folder",
                    r->name);
  }
  memcpy(r->prefix, s.name, n);
  r->prefix[n] = '\0';
  return NULL;
}

// The place of PREFIX/name; -1: there is none.
static int64_t find_entry(const reading *r, const char *name, size_t size)
{
  char full[512];
  int n = snprintf(full, sizeof full, "%s%.*s", r->prefix,
                   size < 200 ? (int)size : 200, name);
  if (n < 0 || (size_t)n >= sizeof full || size >= 200) return -1;
  return zip_name_locate(r->zip, full, 0);
}

// All bytes of an entry, with its checksum checked; the caller frees them.
static calx_status *read_entry(const reading *r, uint64_t at, void **out_data,
                               size_t *out_size)
{
  zip_stat_t s;
  *out_data = NULL;
  CALX_TRY(stat_entry(r, at, &s));
  zip_file_t *file = zip_fopen_index(r->zip, at, 0);
  if (file == NULL) return zip_failed(r, s.name, zip_get_error(r->zip));
  *out_size = (size_t)s.size;
  *out_data = cx_alloc(*out_size + 1);  // to see one byte too many
  calx_status *status = *out_data == NULL ? cx_out_of_memory() : NULL;
  size_t got = 0;
  while (status == NULL && got <= *out_size) {
    zip_int64_t n =
        zip_fread(file, (char *)*out_data + got, *out_size + 1 - got);
    if (n < 0) status = zip_failed(r, s.name, zip_file_get_error(file));
    if (n <= 0) break;
    got += (size_t)n;
  }
  zip_fclose(file);
  if (status == NULL && got != *out_size) {
    status = cx_error(CALX_DATA_LOSS,
                      "'%s': the entry '%.100s' unpacks to other than its %zu "
                      "bytes",
                      r->name, s.name, *out_size);
  }
  if (status != NULL) {
    cx_free(*out_data);
    *out_data = NULL;
  }
  return status;
}

// An entry's bytes where they lie in the file, with its checksum checked; NULL:
// they do not, or it is not right, or they are not aligned for all types.
static calx_status *map_entry(const reading *r, uint64_t at, cx_io_map **out)
{
  zip_stat_t s;
  uint64_t place = r->places[at];
  *out = NULL;
  CALX_TRY(stat_entry(r, at, &s));
  bool there = place != 0 && s.comp_method == ZIP_CM_STORE &&
               (s.valid & ZIP_STAT_CRC) != 0 && place <= r->file_size &&
               s.size <= r->file_size - place;
  if (!there || (uintptr_t)(r->map->data + place) % ALIGNED != 0 ||
      cx_io_crc32(0, r->map->data + place, (size_t)s.size) != s.crc) {
    return NULL;
  }
  return cx_io_map_part(r->map, (size_t)place, (size_t)s.size, out);
}

static calx_status *unpack_entry(const reading *r, uint64_t at, cx_io_map **out)
{
  void *data;
  size_t size;
  CALX_TRY(read_entry(r, at, &data, &size));
  calx_status *status = cx_io_map_memory(r->name, data, size, out);
  if (status != NULL) {
    cx_free(data);
    return status;
  }
  (*out)->owned = data;
  return NULL;
}

static calx_status *check_byte_order(const reading *r)
{
  int64_t at = find_entry(r, "byteorder", 9);
  if (at < 0) return NULL;
  void *order;
  size_t size;
  zip_stat_t s;
  CALX_TRY(stat_entry(r, (uint64_t)at, &s));
  if (s.size >= 6 && s.size < 16) {
    CALX_TRY(read_entry(r, (uint64_t)at, &order, &size));
    bool little = memcmp(order, "little", 6) == 0;
    cx_free(order);
    if (little) return NULL;
  }
  return cx_error(CALX_UNIMPLEMENTED, "'%s': its numbers are not little-endian",
                  r->name);
}

// ---- tensors ----------------------------------------------------------------

// The entry of a storage, "data/KEY"; -1: there is none.
static int64_t find_storage(const reading *r, const cx_io_node *storage,
                            char name[200])
{
  const cx_io_node *key = storage->as.storage.key;
  int n = snprintf(name, 200, "data/%.*s",
                   key->as.text.size < 100 ? (int)key->as.text.size : 100,
                   key->as.text.data);
  return find_entry(r, name, (size_t)n);
}

// False: more than there are numbers for.
static bool storage_bytes(const cx_io_node *storage, size_t *out)
{
  size_t each = storage->dtype != 0 ? calx_dtype_size(storage->dtype) : 1;
  return cx_mul_size((size_t)storage->as.storage.elements, each, out);
}

// A packed storage costs no more than its tensors give reason for.
static calx_status *check_packed(const reading *r, const zip_stat_t *s,
                                 uint64_t need)
{
  if (s->comp_method == ZIP_CM_STORE || s->size / 16 <= need + MB / 16) {
    return NULL;
  }
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "'%s': the storage '%.100s' unpacks from %" PRIu64
                  " to %" PRIu64 " bytes, of which its tensors need %" PRIu64
                  ": save them as clones",
                  r->name, s->name, s->comp_size, s->size, need);
}

// Sizes are compared before anything is unpacked.
static calx_status *check_storage(const reading *r, const cx_io_node *storage,
                                  const char *name, const zip_stat_t *s)
{
  size_t bytes;
  if (storage_bytes(storage, &bytes) && bytes == s->size) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': the storage '%s' has %" PRIu64 " bytes, %" PRId64
                  " elements of %zu are wanted",
                  r->name, name, s->size, storage->as.storage.elements,
                  storage->dtype != 0 ? calx_dtype_size(storage->dtype) : 1);
}

static calx_status *load_storage(reading *r, const cx_io_node *storage,
                                 cx_io_map **out)
{
  char name[200];
  zip_stat_t s;
  int64_t at = find_storage(r, storage, name);
  if (at < 0) {
    return cx_error(CALX_DATA_LOSS, "'%s': there is no storage '%s%s'", r->name,
                    r->prefix, name);
  }
  CALX_TRY(stat_entry(r, (uint64_t)at, &s));
  CALX_TRY(check_storage(r, storage, name, &s));
  cx_io_map **known = &r->storages[at];
  if (*known == NULL) {
    CALX_TRY(map_entry(r, (uint64_t)at, known));
    if (*known == NULL) {
      CALX_TRY(check_packed(r, &s, r->needs[at]));
      CALX_TRY(unpack_entry(r, (uint64_t)at, known));
    }
    r->copies += 16 * (uint64_t)(*known)->size;
  }
  *out = *known;
  return NULL;
}

// The elements that the tensor reaches: [offset, end). False: past all bounds.
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

// Notes what a tensor of the value needs of its storage.
static void note_need(void *user, const cx_io_node *tensor)
{
  reading *r = user;
  char name[200];
  int64_t end, at = find_storage(r, tensor->as.tensor->storage, name);
  uint64_t need;
  if (at < 0 || !reach(tensor->as.tensor, &end) ||
      __builtin_mul_overflow((uint64_t)end,
                             (uint64_t)calx_dtype_size(tensor->dtype), &need)) {
    return;  // it will be refused
  }
  if (need > r->needs[at]) r->needs[at] = need;
}

static calx_status *check_reach(const reading *r, const cx_io_node *node,
                                const cx_graph_shape *shape)
{
  const cx_io_strided *t = node->as.tensor;
  size_t bytes;
  if (!storage_bytes(t->storage, &bytes)) bytes = 0;
  // An untyped storage's tensor counts its offset in its own elements.
  int64_t end, have = (int64_t)(bytes / calx_dtype_size(node->dtype));
  if (reach(t, &end) && t->offset <= have && end <= have) return NULL;
  return cx_error(CALX_DATA_LOSS,
                  "'%s': %s at element %" PRId64
                  " reaches past its storage of %" PRId64 " elements",
                  r->name, cx_graph_shape_str(shape), t->offset, have);
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

static calx_status *gather_tensor(reading *r, const cx_io_strided *t,
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
                    r->name, cx_graph_shape_str(shape), map->size);
  }
  r->copies -= bytes;
  void *data = cx_alloc(bytes);
  if (data == NULL) return cx_out_of_memory();
  gather(t, map->data, calx_dtype_size(shape->dtype), n, data);
  return cx_lazy_host_tensor_over(shape, data, cx_free, data, out);
}

static calx_status *make_tensor(reading *r, const cx_io_node *node,
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

// ---- values -----------------------------------------------------------------

static calx_status *make_value(reading *r, const cx_io_node *node, int depth,
                               calx_value **out);

// The same node is the same tensor.
static calx_status *make_tensor_value(reading *r, const cx_io_node *node,
                                      calx_value **out)
{
  cx_io_strided *t = node->as.tensor;
  if (t->made == NULL) {
    CALX_TRY(make_tensor(r, node, &t->made));
    t->next_made = r->made;
    r->made = t;
  }
  *out = calx_value_tensor(t->made);
  return *out != NULL ? NULL : cx_out_of_memory();
}

static calx_status *too_much(const reading *r)
{
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "'%s': its containers share so many items that they come "
                  "to more than the file has",
                  r->name);
}

// Every use of a text is a copy of it, however often the pickle names the one.
static calx_status *charge_text(reading *r, const cx_io_node *node)
{
  if (node->as.text.size > r->texts) return too_much(r);
  r->texts -= node->as.text.size;
  return NULL;
}

static calx_status *key_of(reading *r, const cx_io_node *node, cx_io_entry *out)
{
  *out = (cx_io_entry){ 0 };
  bool value = node->what == CX_IO_NODE_VALUE;
  if (value && node->type == CALX_KIND_INT) {
    out->number = node->as.integer;
    return NULL;
  }
  if (!value || node->type != CALX_KIND_STRING) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': a dict with a %s as key; texts and integers are "
                    "read",
                    r->name,
                    value ? calx_kind_name(node->type) : "tensor or name");
  }
  if (memchr(node->as.text.data, '\0', node->as.text.size) != NULL) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': a dict's key has a zero byte in it", r->name);
  }
  CALX_TRY(charge_text(r, node));
  out->key = cx_strndup(node->as.text.data, node->as.text.size);
  return out->key != NULL ? NULL : cx_out_of_memory();
}

static calx_status *fill(reading *r, const cx_io_node *node, int depth,
                         calx_value *out)
{
  bool dict = node->type == CALX_KIND_DICT;
  size_t step = dict ? 2 : 1;
  for (size_t i = 0; i + step <= node->as.list.count; i += step) {
    cx_io_entry like = { 0 };
    calx_value *item = NULL;
    if (dict) CALX_TRY(key_of(r, node->as.list.items[i], &like));
    calx_status *status =
        make_value(r, node->as.list.items[i + step - 1], depth + 1, &item);
    if (status == NULL) status = cx_io_put(out, &like, item);
    cx_free(like.key);
    CALX_TRY(status);
  }
  return NULL;
}

static calx_status *make_container(reading *r, const cx_io_node *node,
                                   int depth, calx_value **out)
{
  if (depth >= CX_IO_DEPTH) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "'%s': containers in containers, more than %d deep or in "
                    "a circle",
                    r->name, CX_IO_DEPTH);
  }
  *out = calx_value_container(node->type);
  if (*out == NULL) return cx_out_of_memory();
  calx_status *status = fill(r, node, depth, *out);
  if (status != NULL) {
    calx_value_free(*out);
    *out = NULL;
  }
  return status;
}

static calx_status *make_value(reading *r, const cx_io_node *node, int depth,
                               calx_value **out)
{
  *out = NULL;
  if (--r->values < 0) return too_much(r);
  if (node->what == CX_IO_NODE_TENSOR) return make_tensor_value(r, node, out);
  if (node->what != CX_IO_NODE_VALUE) {
    return cx_error(
        CALX_UNIMPLEMENTED, "'%s': %s as a value of its own, which is not read",
        r->name, node->what == CX_IO_NODE_STORAGE ? "a storage" : "a type");
  }
  switch (node->type) {
    case CALX_KIND_NONE: *out = calx_value_none(); break;
    case CALX_KIND_BOOL: *out = calx_value_bool(node->as.integer != 0); break;
    case CALX_KIND_INT: *out = calx_value_int(node->as.integer); break;
    case CALX_KIND_FLOAT: *out = calx_value_float(node->as.real); break;
    case CALX_KIND_STRING:
    case CALX_KIND_BYTES:
      CALX_TRY(charge_text(r, node));
      *out = cx_io_text(node->type, node->as.text.data, node->as.text.size);
      break;
    default: return make_container(r, node, depth, out);
  }
  return *out != NULL ? NULL : cx_out_of_memory();
}

// ---- all --------------------------------------------------------------------

static calx_status *read_value(reading *r, calx_value **out)
{
  int64_t at = find_entry(r, "data.pkl", 8);
  if (at < 0 || find_entry(r, "constants.pkl", 13) >= 0) {
    return cx_error(CALX_UNIMPLEMENTED, "'%s': %s", r->name,
                    at < 0 ? "a zip archive without data.pkl: not one that "
                             "torch.save wrote"
                           : "a TorchScript archive, whose code is not read; "
                             "save its state_dict()");
  }
  void *pickle;
  size_t size;
  cx_io_node *root;
  zip_stat_t s;
  CALX_TRY(stat_entry(r, (uint64_t)at, &s));
  if (s.size / 64 > s.comp_size + MB / 4) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "'%s': its data.pkl unpacks from %" PRIu64 " to %" PRIu64
                    " bytes, far more than texts and numbers do",
                    r->name, s.comp_size, s.size);
  }
  CALX_TRY(read_entry(r, (uint64_t)at, &pickle, &size));
  r->nodes.limit = (size_t)(64 * MB) + 64 * r->file_size;
  r->values = (int64_t)(MB + size);
  r->texts = 64 * MB + 16 * (uint64_t)size;
  calx_status *status = cx_io_unpickle(r->name, pickle, size, &r->nodes, &root);
  if (status == NULL) cx_io_each_tensor(root, note_need, r);
  if (status == NULL) status = make_value(r, root, 0, out);
  cx_free(pickle);
  return status;
}

static calx_status *read_all(reading *r, calx_value **out)
{
  CALX_TRY(check_entries(r));
  CALX_TRY(check_names(r));
  CALX_TRY(find_prefix(r));
  CALX_TRY(check_byte_order(r));
  r->storages = cx_calloc((size_t)r->n_entries, sizeof(cx_io_map *));
  r->places = cx_calloc((size_t)r->n_entries, sizeof *r->places);
  r->needs = cx_calloc((size_t)r->n_entries, sizeof *r->needs);
  if (r->storages == NULL || r->places == NULL || r->needs == NULL) {
    return cx_out_of_memory();
  }
  cx_io_zip_places(r->map->data, r->map->size, r->n_entries, r->places);
  return read_value(r, out);
}

calx_status *cx_io_pt_read(cx_io_map *map, calx_value **out_value)
{
  *out_value = NULL;
  reading r = { .name = map->name, .file_size = map->size, .map = map };
  calx_status *status = open_zip(&r, map);
  if (status == NULL) status = read_all(&r, out_value);
  for (uint64_t i = 0; r.storages != NULL && i < r.n_entries; i++) {
    cx_io_map_release(r.storages[i]);
  }
  for (; r.made != NULL; r.made = r.made->next_made) {
    calx_release(r.made->made);
  }
  cx_free(r.storages);
  cx_free(r.places);
  cx_free(r.needs);
  cx_arena_free(&r.nodes);
  if (r.zip != NULL) zip_discard(r.zip);
  return status;
}
