// io/pt_archive: see pt_archive.h. libzip reads the directory and unpacks.
#include "io/pt_archive.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/crc.h"
#include "io/zip.h"

// No deflate stream unpacks to more than this many times its size (zlib's
// technical notes).
#define MOST_PACKED 1032
// Alignment of tensors' memory, in bytes, as malloc aligns.
#define ALIGNED _Alignof(max_align_t)

static calx_status *zip_failed(const cx_io_pt_archive *a, const char *what,
                               zip_error_t *error)
{
  calx_code code = zip_error_code_zip(error) == ZIP_ER_MEMORY
                       ? CALX_RESOURCE_EXHAUSTED
                       : CALX_DATA_LOSS;
  return cx_error(code, "'%s': %s: %s", a->name, what,
                  zip_error_strerror(error));
}

static calx_status *open_zip(cx_io_pt_archive *a)
{
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source =
      zip_source_buffer_create(a->map->data, a->map->size, 0, &error);
  if (source != NULL) {
    a->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (a->zip == NULL) zip_source_free(source);
  }
  calx_status *status =
      a->zip != NULL ? NULL : zip_failed(a, "no zip archive", &error);
  zip_error_fini(&error);
  return status;
}

calx_status *cx_io_pt_archive_stat(const cx_io_pt_archive *a, uint64_t at,
                                   zip_stat_t *out)
{
  zip_stat_init(out);
  if (zip_stat_index(a->zip, at, 0, out) != 0) {
    return zip_failed(a, "an entry", zip_get_error(a->zip));
  }
  zip_uint64_t wanted =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((out->valid & wanted) != wanted) {
    return cx_error(CALX_DATA_LOSS, "'%s': an entry without a size", a->name);
  }
  return NULL;
}

// Checks that no entry claims more bytes than the file has, and how each is
// packed.
static calx_status *check_entries(cx_io_pt_archive *a)
{
  uint64_t packed = 0;
  a->n_entries = (uint64_t)zip_get_num_entries(a->zip, 0);
  for (uint64_t i = 0; i < a->n_entries; i++) {
    zip_stat_t s;
    CALX_TRY(cx_io_pt_archive_stat(a, i, &s));
    bool encrypted = (s.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 &&
                     s.encryption_method != ZIP_EM_NONE;
    if (encrypted ||
        (s.comp_method != ZIP_CM_STORE && s.comp_method != ZIP_CM_DEFLATE)) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "'%s': the entry '%.100s' is %s; stored and deflated "
                      "ones are read",
                      a->name, s.name,
                      encrypted ? "encrypted" : "packed in another way");
    }
    bool fits =
        s.comp_size <= a->map->size - packed &&
        (s.comp_method == ZIP_CM_STORE ? s.size == s.comp_size
                                       : s.size / MOST_PACKED <= s.comp_size);
    if (!fits) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': the entry '%.100s' claims %" PRIu64
                      " bytes packed in %" PRIu64 ", the file has %zu",
                      a->name, s.name, s.size, s.comp_size, a->map->size);
    }
    packed += s.comp_size;
  }
  return NULL;
}

static int fold(char c)
{
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

// PyTorch's reader compares names without regard to case.
static int by_name(const void *left, const void *right)
{
  const char *x = *(const char *const *)left;
  const char *y = *(const char *const *)right;
  while (*x != '\0' && fold(*x) == fold(*y)) x++, y++;
  return fold(*x) - fold(*y);
}

static int by_exact_name(const void *left, const void *right)
{
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// Refuses two entries of one name: PyTorch reads the last of them, other
// readers the first.
static calx_status *check_names(const cx_io_pt_archive *a,
                                int (*compare)(const void *, const void *))
{
  size_t n = (size_t)a->n_entries;
  const char **names = cx_calloc(n + 1, sizeof *names);
  if (names == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    names[i] = zip_get_name(a->zip, i, 0);
    if (names[i] == NULL) names[i] = "";
  }
  qsort(names, n, sizeof *names, compare);
  calx_status *status = NULL;
  for (size_t i = 1; i < n && status == NULL; i++) {
    if (compare(&names[i - 1], &names[i]) != 0) continue;
    status = cx_error(CALX_DATA_LOSS,
                      "'%s': it has two entries called '%.100s', and which one "
                      "is meant cannot be told",
                      a->name, names[i]);
  }
  cx_free(names);
  return status;
}

// The folder that the first entry is in: torch.save has one for all.
static calx_status *find_prefix(cx_io_pt_archive *a)
{
  zip_stat_t s = { 0 };
  if (a->n_entries > 0) CALX_TRY(cx_io_pt_archive_stat(a, 0, &s));
  const char *slash = s.name != NULL ? strchr(s.name, '/') : NULL;
  size_t n = slash != NULL ? (size_t)(slash - s.name) + 1 : 0;
  if (n == 0 || n >= sizeof a->prefix) {
    return cx_invalid(
        "'%s': a zip archive, but not one of PyTorch's: its first entry is in "
        "no folder",
        a->name);
  }
  memcpy(a->prefix, s.name, n);
  a->prefix[n] = '\0';
  return NULL;
}

int64_t cx_io_pt_archive_find(const cx_io_pt_archive *a, const char *name,
                              size_t size)
{
  char full[512];
  int n = snprintf(full, sizeof full, "%s%.*s", a->prefix,
                   size < 200 ? (int)size : 200, name);
  if (n < 0 || (size_t)n >= sizeof full || size >= 200) return -1;
  return zip_name_locate(a->zip, full, 0);
}

calx_status *cx_io_pt_archive_read(const cx_io_pt_archive *a, uint64_t at,
                                   void **out_data, size_t *out_size)
{
  zip_stat_t s;
  *out_data = NULL;
  CALX_TRY(cx_io_pt_archive_stat(a, at, &s));
  zip_file_t *file = zip_fopen_index(a->zip, at, 0);
  if (file == NULL) return zip_failed(a, s.name, zip_get_error(a->zip));
  *out_size = (size_t)s.size;
  *out_data = cx_alloc(*out_size + 1);  // to see one byte too many
  calx_status *status = *out_data == NULL ? cx_out_of_memory() : NULL;
  size_t got = 0;
  while (status == NULL && got <= *out_size) {
    zip_int64_t n =
        zip_fread(file, (char *)*out_data + got, *out_size + 1 - got);
    if (n < 0) status = zip_failed(a, s.name, zip_file_get_error(file));
    if (n <= 0) break;
    got += (size_t)n;
  }
  zip_fclose(file);
  if (status == NULL && got != *out_size) {
    status = cx_error(CALX_DATA_LOSS,
                      "'%s': the entry '%.100s' unpacks to other than its %zu "
                      "bytes",
                      a->name, s.name, *out_size);
  }
  if (status != NULL) {
    cx_free(*out_data);
    *out_data = NULL;
  }
  return status;
}

calx_status *cx_io_pt_archive_map(const cx_io_pt_archive *a, uint64_t at,
                                  cx_io_map **out)
{
  zip_stat_t s;
  uint64_t offset = a->offsets[at];
  *out = NULL;
  CALX_TRY(cx_io_pt_archive_stat(a, at, &s));
  bool is_stored = offset != 0 && s.comp_method == ZIP_CM_STORE &&
                   (s.valid & ZIP_STAT_CRC) != 0 && offset <= a->map->size &&
                   s.size <= a->map->size - offset;
  if (!is_stored || (uintptr_t)(a->map->data + offset) % ALIGNED != 0 ||
      cx_io_crc32(0, a->map->data + offset, (size_t)s.size) != s.crc) {
    return NULL;
  }
  return cx_io_map_part(a->map, (size_t)offset, (size_t)s.size, out);
}

calx_status *cx_io_pt_archive_unpack(const cx_io_pt_archive *a, uint64_t at,
                                     cx_io_map **out)
{
  void *data;
  size_t size;
  CALX_TRY(cx_io_pt_archive_read(a, at, &data, &size));
  calx_status *status = cx_io_map_memory(a->name, data, size, out);
  if (status != NULL) {
    cx_free(data);
    return status;
  }
  (*out)->owned = data;
  return NULL;
}

static calx_status *check_byte_order(const cx_io_pt_archive *a)
{
  int64_t at = cx_io_pt_archive_find(a, "byteorder", 9);
  if (at < 0) return NULL;
  void *order;
  size_t size;
  zip_stat_t s;
  CALX_TRY(cx_io_pt_archive_stat(a, (uint64_t)at, &s));
  if (s.size >= 6 && s.size < 16) {
    CALX_TRY(cx_io_pt_archive_read(a, (uint64_t)at, &order, &size));
    bool little = memcmp(order, "little", 6) == 0;
    cx_free(order);
    if (little) return NULL;
  }
  return cx_error(CALX_UNIMPLEMENTED, "'%s': its numbers are not little-endian",
                  a->name);
}

static calx_status *find_offsets(cx_io_pt_archive *a)
{
  a->offsets = cx_calloc((size_t)a->n_entries + 1, sizeof *a->offsets);
  if (a->offsets == NULL) return cx_out_of_memory();
  cx_io_zip_offsets(a->map->data, a->map->size, a->n_entries, a->offsets);
  return NULL;
}

calx_status *cx_io_pt_archive_open_any(cx_io_map *map, cx_io_pt_archive *a)
{
  *a = (cx_io_pt_archive){ .name = map->name, .map = map };
  CALX_TRY(open_zip(a));
  CALX_TRY(check_entries(a));
  CALX_TRY(check_names(a, by_exact_name));
  return find_offsets(a);
}

calx_status *cx_io_pt_archive_open(cx_io_map *map, cx_io_pt_archive *a)
{
  *a = (cx_io_pt_archive){ .name = map->name, .map = map };
  CALX_TRY(open_zip(a));
  CALX_TRY(check_entries(a));
  CALX_TRY(check_names(a, by_name));
  CALX_TRY(find_prefix(a));
  CALX_TRY(check_byte_order(a));
  return find_offsets(a);
}

void cx_io_pt_archive_close(cx_io_pt_archive *a)
{
  cx_free(a->offsets);
  if (a->zip != NULL) zip_discard(a->zip);
}
