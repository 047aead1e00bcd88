// io/save: a value to a file and back, in the format that the file has.
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "io/npy.h"
#include "io/pt.h"
#include "io/rank.h"
#include "io/safetensors.h"

static calx_status *check_path(const char *call, const char *path)
{
  if (path != NULL && path[0] != '\0') return NULL;
  return cx_invalid("%s: the file has no name", call);
}

// ---- saving -----------------------------------------------------------------

static calx_format format_of(const char *path)
{
  static const struct {
    const char *end;
    calx_format format;
  } ends[] = { { ".safetensors", CALX_FORMAT_SAFETENSORS },
               { ".npy", CALX_FORMAT_NPY },
               { ".npz", CALX_FORMAT_NPZ } };
  const char *end = strrchr(path, '.');
  for (size_t i = 0; end != NULL && i < sizeof ends / sizeof *ends; i++) {
    if (strcmp(end, ends[i].end) == 0) return ends[i].format;
  }
  return CALX_FORMAT_PT;
}

static calx_status *write_value(cx_writer *w, const calx_value *value,
                                const char *path, calx_format format,
                                const calx_value *metadata)
{
  switch (format) {
    case CALX_FORMAT_SAFETENSORS:
      return cx_io_safetensors_write(w, value, metadata);
    case CALX_FORMAT_NPY: return cx_io_npy_write(w, value);
    case CALX_FORMAT_NPZ: return cx_io_npz_write(w, value);
    default: return cx_io_pt_write(w, path, value);
  }
}

static calx_status *save(const calx_value *value, const char *path,
                         const calx_save_options *o)
{
  calx_format format = o->format;
  if (format == CALX_FORMAT_DEFAULT) format = format_of(path);
  cx_writer *w;
  CALX_TRY(cx_writer_open(path, &w));
  calx_status *status = write_value(w, value, path, format, o->metadata);
  if (status == NULL) return cx_writer_commit(w);
  cx_writer_abandon(w);
  return status;
}

calx_status *calx_save_with(const calx_value *value, const char *path,
                            const calx_save_options *options)
{
  static const calx_save_options none = { .size = sizeof none };
  const calx_save_options *o = options != NULL ? options : &none;
  CALX_TRY(check_path("save", path));
  CALX_TRY(cx_options_check("save", o->size, sizeof *o));
  if (!o->every_rank && cx_io_rank() != 0) return NULL;
  return cx_annotate(save(value, path, o), "so '%s' was not saved", path);
}

// ---- loading ----------------------------------------------------------------

// Whether the file is in neither format. A safetensors file begins with its
// header's size and then '{'; one of the two is enough here, since the reader
// says what is wrong with a damaged file.
static bool is_foreign(const cx_io_map *map)
{
  if (map->size < 8) return true;
  if (map->size > 8 && map->data[8] == '{') return false;
  uint64_t n = 0;
  for (int i = 7; i >= 0; i--) n = n << 8 | map->data[i];
  return n > map->size - 8;
}

static calx_status *refuse_foreign(const cx_io_map *map)
{
  enum { SHOWN = 8 };
  char hex[3 * SHOWN + 1] = "", text[SHOWN + 1] = "";
  for (size_t i = 0; i < SHOWN && i < map->size; i++) {
    unsigned char c = map->data[i];
    snprintf(hex + 3 * i, 4, " %02x", c);
    text[i] = (char)(c >= ' ' && c <= '~' ? c : '.');
  }
  return cx_error(CALX_DATA_LOSS,
                  "'%s': neither .pt, safetensors nor numpy's: %zu bytes that "
                  "begin with%s '%s'; a .pt begins with 'PK', a safetensors "
                  "file with 8 bytes of its header's size and '{', a .npy with "
                  "'\\x93NUMPY'",
                  map->name, map->size,
                  map->size != 0 ? hex : " nothing:", text);
}

static calx_status *no_metadata(const calx_load_options *o)
{
  if (o->out_metadata == NULL) return NULL;
  *o->out_metadata = calx_value_container(CALX_KIND_DICT);
  return *o->out_metadata != NULL ? NULL : cx_out_of_memory();
}

static calx_status *read_numpy(cx_io_map *map, const calx_load_options *o,
                               calx_status *read(cx_io_map *, calx_value **),
                               calx_value **out_value)
{
  CALX_TRY(no_metadata(o));
  return read(map, out_value);
}

static calx_status *read_map(cx_io_map *map, const calx_load_options *o,
                             calx_value **out_value)
{
  bool zip = cx_io_is_zip(map), given = o->format != CALX_FORMAT_DEFAULT;
  if (o->format == CALX_FORMAT_NPZ || (!given && zip && cx_io_is_npz(map))) {
    return read_numpy(map, o, cx_io_npz_read, out_value);
  }
  if (o->format == CALX_FORMAT_NPY || (!given && cx_io_is_npy(map))) {
    return read_numpy(map, o, cx_io_npy_read, out_value);
  }
  if (o->format == CALX_FORMAT_DEFAULT && !zip && !cx_io_is_old_pt(map) &&
      is_foreign(map)) {
    return refuse_foreign(map);
  }
  if (o->format == CALX_FORMAT_SAFETENSORS ||
      (o->format == CALX_FORMAT_DEFAULT && !zip && !cx_io_is_old_pt(map))) {
    return cx_io_safetensors_read(map, out_value, o->out_metadata);
  }
  CALX_TRY(no_metadata(o));
  if (zip) return cx_io_pt_read(map, out_value);
  return cx_error(
      CALX_UNIMPLEMENTED,
      cx_io_is_old_pt(map)
          ? "'%s': the format that torch.save wrote before PyTorch 1.6, which "
            "is no zip archive; load and save it with a newer PyTorch"
          : "'%s': no zip archive, as PyTorch's files are",
      map->name);
}

static calx_status *load(const char *path, const calx_load_options *o,
                         calx_value **out_value)
{
  cx_io_map *map;
  CALX_TRY(cx_io_map_open(path, &map));
  calx_status *status = read_map(map, o, out_value);
  cx_io_map_release(map);
  if (status != NULL && o->out_metadata != NULL) {
    calx_value_free(*o->out_metadata);
    *o->out_metadata = NULL;
  }
  return status;
}

calx_status *calx_load_with(const char *path, const calx_load_options *options,
                            calx_value **out_value)
{
  static const calx_load_options none = { .size = sizeof none };
  const calx_load_options *o = options != NULL ? options : &none;
  *out_value = NULL;
  CALX_TRY(check_path("load", path));
  CALX_TRY(cx_options_check("load", o->size, sizeof *o));
  if (o->out_metadata != NULL) *o->out_metadata = NULL;
  return load(path, o, out_value);
}
