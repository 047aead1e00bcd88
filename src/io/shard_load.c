// io/shard_load: loads what any number of ranks saved, into any number of
// ranks.
//
// File names follow from the number of ranks, not from the index. Every file
// must name its rank and the same save. An index that names no ranks is another
// program's.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "io/fetch.h"
#include "io/rank.h"
#include "io/shard.h"

enum { MOST_RANKS = 65536, MOST_INDEX = 100000000 };

typedef struct loading {
  cx_io_rank_info self;
  const char *folder;
  bool whole;
  json_t *index;
  json_t *weight_map;    // of the index, as the two below
  const json_t *slices;  // names
  const char *tag;
  int ranks;           // that saved; 0: another program did
  calx_value **files;  // of each rank; NULL: not read
  calx_value *dict;
} loading;

static calx_status *bad(const loading *l, const char *what)
{
  return cx_error(CALX_DATA_LOSS, "'%s': model.safetensors.index.json: %s",
                  l->folder, what);
}

static calx_status *parse_index(loading *l)
{
  cx_text path = { 0 };
  char *text;
  size_t size;
  cx_text_format(&path, "%s/model.safetensors.index.json", l->folder);
  calx_status *status =
      cx_text_failed(&path)
          ? cx_out_of_memory()
          : cx_file_read_regular(cx_text_str(&path), MOST_INDEX, &text, &size);
  cx_text_free(&path);
  CALX_TRY(status);
  json_error_t error;
  l->index = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  cx_free(text);
  if (l->index == NULL && json_error_code(&error) == json_error_out_of_memory) {
    return cx_out_of_memory();
  }
  if (l->index == NULL) return bad(l, error.text);
  l->weight_map = json_object_get(l->index, "weight_map");
  return json_is_object(l->weight_map) ? NULL : bad(l, "it has no weight_map");
}

static calx_status *read_facts(loading *l, const char *wanted_tag)
{
  const json_t *facts = json_object_get(l->index, "metadata");
  json_int_t ranks = json_integer_value(json_object_get(facts, "ranks"));
  l->tag = json_string_value(json_object_get(facts, "tag"));
  l->slices = json_object_get(l->index, "slices");
  if (json_object_get(facts, "ranks") == NULL && l->slices == NULL) {
    if (wanted_tag == NULL) return NULL;
    return bad(l, "another program wrote it, without a tag");
  }
  if (l->tag == NULL || ranks < 1 || ranks > MOST_RANKS) {
    return bad(l, "it has no number of ranks, or no tag");
  }
  if (!json_is_array(l->slices)) return bad(l, "it has no list of slices");
  l->ranks = (int)ranks;
  if (wanted_tag == NULL || strcmp(wanted_tag, l->tag) == 0) return NULL;
  return cx_error(CALX_DATA_LOSS, "'%s' is the save '%s', '%s' is wanted",
                  l->folder, l->tag, wanted_tag);
}

// ---- files ------------------------------------------------------------------

static calx_status *check_facts(const loading *l, const char *file, int rank,
                                const calx_value *facts)
{
  const char *r = calx_value_as_string(calx_value_get(facts, "rank"));
  const char *n = calx_value_as_string(calx_value_get(facts, "ranks"));
  const char *tag = calx_value_as_string(calx_value_get(facts, "tag"));
  if (r != NULL && n != NULL && tag != NULL && strcmp(tag, l->tag) == 0 &&
      strtol(r, NULL, 10) == rank && strtol(n, NULL, 10) == l->ranks) {
    return NULL;
  }
  return cx_error(CALX_DATA_LOSS,
                  "'%s' is of the save '%s' by %s ranks, the index of '%s' by "
                  "%d: another save was interrupted, or is under way",
                  file, tag != NULL ? tag : "?", n != NULL ? n : "?", l->tag,
                  l->ranks);
}

static calx_status *need_file(loading *l, int rank, const calx_value **out)
{
  if (l->files[rank] == NULL) {
    cx_text path = { 0 };
    calx_value *facts = NULL;
    char file[64];
    cx_io_shard_name(file, rank, l->ranks);
    cx_text_format(&path, "%s/%s", l->folder, file);
    calx_load_options o = { .size = sizeof o,
                            .format = CALX_FORMAT_SAFETENSORS,
                            .out_metadata = &facts };
    calx_status *status =
        cx_text_failed(&path)
            ? cx_out_of_memory()
            : calx_load_with(cx_text_str(&path), &o, &l->files[rank]);
    if (status == NULL) {
      status = check_facts(l, cx_text_str(&path), rank, facts);
    }
    calx_value_free(facts);
    cx_text_free(&path);
    CALX_TRY(status);
  }
  *out = l->files[rank];
  return NULL;
}

static calx_status *need_tensor(loading *l, int rank, const char *name,
                                calx_tensor **out)
{
  const calx_value *file;
  CALX_TRY(need_file(l, rank, &file));
  *out = calx_value_as_tensor(calx_value_get(file, name));
  if (*out != NULL) return NULL;
  return cx_error(CALX_DATA_LOSS, "'%s': rank %d's file has no '%.100s'",
                  l->folder, rank, name);
}

// ---- what all ranks held ----------------------------------------------------

static calx_status *load_shared(loading *l)
{
  const char *name;
  json_t *file;
  json_object_foreach(l->weight_map, name, file)
  {
    const char *text = json_string_value(file);
    int rank = -1;
    char wanted[64] = "";
    calx_tensor *t;
    if (text != NULL && sscanf(text, "shard-%5d-", &rank) == 1 && rank >= 0 &&
        rank < l->ranks) {
      cx_io_shard_name(wanted, rank, l->ranks);
    }
    if (text == NULL || strcmp(text, wanted) != 0) {
      return bad(l, "a tensor is in no rank's file");
    }
    CALX_TRY(need_tensor(l, rank, name, &t));
    CALX_TRY(calx_value_set(l->dict, name, calx_value_tensor(t)));
  }
  return NULL;
}

// ---- slices -----------------------------------------------------------------

// Sets *out to the shape of the whole tensor: the ranks' slices are joined
// along dimension 0 and agree in all others.
static calx_status *measure(loading *l, const char *name, cx_graph_shape *out)
{
  calx_tensor *t;
  CALX_TRY(need_tensor(l, 0, name, &t));
  *out = *cx_lazy_tensor_shape(t);
  if (out->rank == 0) return bad(l, "a slice has rank 0");
  for (int r = 1; r < l->ranks; r++) {
    CALX_TRY(need_tensor(l, r, name, &t));
    cx_graph_shape own = *cx_lazy_tensor_shape(t);
    int64_t rows = own.dims[0];
    own.dims[0] = out->dims[0];
    bool fits = cx_graph_shape_equal(&own, out) &&
                !__builtin_add_overflow(out->dims[0], rows, &out->dims[0]);
    if (!fits) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': the slices of '%.100s' do not fit together: rank "
                      "%d has %s",
                      l->folder, name, r,
                      cx_graph_shape_str(cx_lazy_tensor_shape(t)));
    }
  }
  return NULL;
}

// Copies rows [begin, end) of the whole.
static calx_status *copy_rows(loading *l, const char *name, int64_t begin,
                              int64_t end, size_t row, unsigned char *out)
{
  int64_t at = 0;  // the first row of the rank's part
  for (int r = 0; r < l->ranks && at < end; r++) {
    calx_tensor *t;
    CALX_TRY(need_tensor(l, r, name, &t));
    int64_t rows = calx_tensor_dim(t, 0);
    int64_t from = begin > at ? begin - at : 0;
    int64_t to = end - at < rows ? end - at : rows;
    if (from < to && row > 0) {
      size_t bytes = (size_t)(to - from) * row;
      const unsigned char *data = calx_host_data(t);
      memcpy(out, data + (size_t)from * row, bytes);
      out += bytes;
    }
    at += rows;
  }
  return NULL;
}

static calx_status *load_slice(loading *l, const char *name)
{
  cx_graph_shape shape;
  CALX_TRY(measure(l, name, &shape));
  int64_t rows = shape.dims[0], begin = 0, end = rows, elements;
  if (!l->whole) {
    int64_t each = rows / l->self.ranks + (rows % l->self.ranks != 0);
    begin = each * l->self.rank < rows ? each * l->self.rank : rows;
    end = begin + each < rows ? begin + each : rows;
  }
  size_t bytes, row;
  shape.dims[0] = 1;
  bool fits =
      cx_dims_bytes(shape.dtype, shape.dims, shape.rank, &elements, &row);
  shape.dims[0] = end - begin;
  fits = fits &&
         cx_dims_bytes(shape.dtype, shape.dims, shape.rank, &elements, &bytes);
  unsigned char *data = fits ? cx_alloc(bytes) : NULL;
  if (data == NULL) return cx_out_of_memory();
  calx_status *status = copy_rows(l, name, begin, end, row, data);
  if (status != NULL) {
    cx_free(data);
    return status;
  }
  calx_tensor *t;
  CALX_TRY(cx_lazy_host_tensor_over(&shape, data, cx_free, data, &t));
  calx_value *v = calx_value_tensor(t);
  calx_release(t);
  return calx_value_set(l->dict, name, v);
}

// A tensor that the index does not name would be lost in silence.
static calx_status *check_named(loading *l, int rank)
{
  const calx_value *file;
  CALX_TRY(need_file(l, rank, &file));
  for (size_t i = 0; i < calx_value_count(file); i++) {
    const char *name = calx_value_key(file, i);
    if (calx_value_get(l->dict, name) != NULL) continue;
    return cx_error(CALX_DATA_LOSS,
                    "'%s': rank %d's file has '%.100s', of which the index "
                    "does not know: another save was interrupted, or is under "
                    "way",
                    l->folder, rank, name);
  }
  return NULL;
}

// Of a folder without an index, which `missing` says: one file has all.
static calx_status *load_alone(loading *l, calx_status *missing)
{
  calx_value_free(l->dict);
  l->dict = NULL;
  calx_status *status =
      cx_io_folder_file(l->folder, "model.safetensors", &l->dict);
  if (status != NULL && calx_status_code(status) == CALX_NOT_FOUND) {
    return cx_status_first(missing, status);
  }
  calx_status_free(missing);
  return status;
}

static calx_status *load_all(loading *l, const char *wanted_tag)
{
  l->dict = calx_value_container(CALX_KIND_DICT);
  if (l->dict == NULL) return cx_out_of_memory();
  calx_status *status = parse_index(l);
  if (status != NULL && calx_status_code(status) == CALX_NOT_FOUND &&
      wanted_tag == NULL) {
    return load_alone(l, status);
  }
  CALX_TRY(status);
  CALX_TRY(read_facts(l, wanted_tag));
  if (l->ranks == 0) return cx_io_index_load(l->folder, l->weight_map, l->dict);
  l->files = cx_calloc((size_t)l->ranks, sizeof(calx_value *));
  if (l->files == NULL) return cx_out_of_memory();
  CALX_TRY(load_shared(l));
  for (size_t i = 0; i < json_array_size(l->slices); i++) {
    const char *name = json_string_value(json_array_get(l->slices, i));
    if (name == NULL) return bad(l, "a slice has no name");
    CALX_TRY(load_slice(l, name));
  }
  for (int r = 0; r < l->ranks; r++) CALX_TRY(check_named(l, r));
  return NULL;
}

calx_status *cx_io_shard_load(cx_io_rank_info self, const char *folder,
                              const calx_load_sharded_options *options,
                              calx_value **out_dict)
{
  loading l = { .self = self, .folder = folder, .whole = options->whole };
  calx_status *status = load_all(&l, options->tag);
  for (int r = 0; l.files != NULL && r < l.ranks; r++) {
    calx_value_free(l.files[r]);
  }
  cx_free(l.files);
  json_decref(l.index);
  if (status != NULL) {
    calx_value_free(l.dict);
    l.dict = NULL;
  }
  *out_dict = l.dict;
  return status;
}

calx_status *calx_load_sharded_with(const char *folder,
                                    const calx_load_sharded_options *options,
                                    calx_value **out_dict)
{
  static const calx_load_sharded_options none = { .size = sizeof none };
  const calx_load_sharded_options *o = options != NULL ? options : &none;
  *out_dict = NULL;
  if (o->size > sizeof *o || folder == NULL) {
    return cx_invalid("load_sharded: %s",
                      folder == NULL ? "the folder has no name"
                                     : "its options are of a newer version");
  }
  return cx_io_shard_load((cx_io_rank_info){ cx_io_rank(), cx_io_ranks() },
                          folder, o, out_dict);
}
