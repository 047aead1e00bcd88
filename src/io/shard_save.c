// io/shard_save: a rank's share of a dict, and the index of all shares.
//
// The dict alone decides which rank writes a tensor: one that all ranks hold is
// written by the rank with the fewest bytes so far. So no rank has to ask
// another. The index is Hugging Face's (weight_map), with the slices beside it.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "io/fetch.h"
#include "io/rank.h"
#include "io/shard.h"

typedef struct saving {
  cx_io_rank_info self;
  const calx_value *dict;
  const char *folder, *tag;
  const calx_value *slices;
  calx_value *share;   // of this rank
  uint64_t *bytes;     // of each rank so far
  json_t *weight_map;  // name -> file
} saving;

static bool is_slice(const saving *s, const char *key)
{
  for (size_t i = 0; i < calx_value_count(s->slices); i++) {
    const char *slice = calx_value_as_string(calx_value_item(s->slices, i));
    if (slice != NULL && strcmp(slice, key) == 0) return true;
  }
  return false;
}

static calx_status *check(const saving *s)
{
  for (size_t i = 0; i < calx_value_count(s->slices); i++) {
    const char *key = calx_value_as_string(calx_value_item(s->slices, i));
    const calx_tensor *t = calx_value_as_tensor(calx_value_get(s->dict, key));
    if (t != NULL && calx_tensor_rank(t) > 0) continue;
    return cx_invalid("save_sharded: the slice '%s' is %s",
                      key != NULL ? key : "?",
                      t != NULL ? "of rank 0" : "no tensor in the dict");
  }
  for (size_t i = 0; i < calx_value_count(s->dict); i++) {
    const char *key = calx_value_key(s->dict, i);
    const calx_value *v = calx_value_item(s->dict, i);
    if (key == NULL || calx_value_as_tensor(v) == NULL) {
      return cx_invalid(
          "save_sharded: a dict of tensors by texts is wanted, item %zu ('%s') "
          "is %s",
          i, key != NULL ? key : "a number",
          calx_kind_name(calx_value_kind(v)));
    }
  }
  if (calx_value_kind(s->dict) == CALX_KIND_DICT) return NULL;
  return cx_invalid("save_sharded: a dict of tensors is wanted, not %s",
                    calx_kind_name(calx_value_kind(s->dict)));
}

void cx_io_shard_name(char out[64], int rank, int ranks)
{
  snprintf(out, 64, "shard-%05d-of-%05d.safetensors", rank, ranks);
}

static int emptiest(const saving *s)
{
  int best = 0;
  for (int r = 1; r < s->self.ranks; r++) {
    if (s->bytes[r] < s->bytes[best]) best = r;
  }
  return best;
}

static calx_status *divide(saving *s)
{
  for (size_t i = 0; i < calx_value_count(s->dict); i++) {
    const char *key = calx_value_key(s->dict, i);
    calx_tensor *t = calx_value_as_tensor(calx_value_item(s->dict, i));
    bool own = is_slice(s, key);
    if (!own) {
      char file[64];
      int rank = emptiest(s);
      s->bytes[rank] += cx_io_bytes(t);
      own = rank == s->self.rank;
      cx_io_shard_name(file, rank, s->self.ranks);
      if (json_object_set_new(s->weight_map, key, json_string(file)) != 0) {
        return cx_invalid("save_sharded: the name '%.100s' is no text in UTF-8",
                          key);
      }
    }
    if (own) CALX_TRY(calx_value_set(s->share, key, calx_value_tensor(t)));
  }
  return NULL;
}

static calx_status *in_folder(const saving *s, const char *name, cx_text *out)
{
  cx_text_format(out, "%s/%s", s->folder, name);
  return cx_text_failed(out) ? cx_out_of_memory() : NULL;
}

static calx_status *put_int(calx_value *dict, const char *key, int number)
{
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  return calx_value_set(dict, key, calx_value_string(text));
}

static calx_status *save_share(const saving *s)
{
  char name[64];
  cx_text path = { 0 };
  cx_io_shard_name(name, s->self.rank, s->self.ranks);
  calx_value *facts = calx_value_container(CALX_KIND_DICT);
  calx_status *status = facts == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = put_int(facts, "rank", s->self.rank);
  if (status == NULL) status = put_int(facts, "ranks", s->self.ranks);
  if (status == NULL) {
    status = calx_value_set(facts, "tag", calx_value_string(s->tag));
  }
  if (status == NULL) status = in_folder(s, name, &path);
  calx_save_options o = { .size = sizeof o,
                          .format = CALX_FORMAT_SAFETENSORS,
                          .every_rank = true,
                          .metadata = facts };
  if (status == NULL) status = calx_save_with(s->share, cx_text_str(&path), &o);
  calx_value_free(facts);
  cx_text_free(&path);
  return status;
}

static calx_status *write_index(const saving *s, const json_t *index)
{
  cx_text path = { 0 };
  char *text = json_dumps(index, JSON_INDENT(1));
  calx_status *status = text == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) {
    status = in_folder(s, "model.safetensors.index.json", &path);
  }
  if (status == NULL) {
    status = cx_file_write(cx_text_str(&path), text, strlen(text));
  }
  free(text);
  cx_text_free(&path);
  return status;
}

static calx_status *save_index(const saving *s)
{
  json_t *slices = json_array();
  for (size_t i = 0; i < calx_value_count(s->slices); i++) {
    const char *name = calx_value_as_string(calx_value_item(s->slices, i));
    if (json_array_append_new(slices, json_string(name)) != 0) {
      json_decref(slices);
      return cx_invalid(
          "save_sharded: the slice's name '%.100s' is no text in UTF-8", name);
    }
  }
  json_t *index =
      json_pack("{s:{s:i,s:s},s:O,s:o}", "metadata", "ranks", s->self.ranks,
                "tag", s->tag, "weight_map", s->weight_map, "slices", slices);
  calx_status *status = index == NULL ? cx_out_of_memory() : NULL;
  if (status == NULL) status = write_index(s, index);
  json_decref(index);
  return status;
}

calx_status *cx_io_shard_save(cx_io_rank_info self, const calx_value *dict,
                              const char *folder,
                              const calx_save_sharded_options *options)
{
  saving s = { .self = self,
               .dict = dict,
               .folder = folder,
               .tag = options->tag != NULL ? options->tag : "",
               .slices = options->slices };
  CALX_TRY(check(&s));
  CALX_TRY(cx_folder_make(folder, 0777));
  s.share = calx_value_container(CALX_KIND_DICT);
  s.bytes = cx_calloc((size_t)self.ranks, sizeof *s.bytes);
  s.weight_map = json_object();
  bool made = s.share != NULL && s.bytes != NULL && s.weight_map != NULL;
  calx_status *status = made ? divide(&s) : cx_out_of_memory();
  if (status == NULL) status = save_share(&s);
  if (status == NULL && self.rank == 0) status = save_index(&s);
  calx_value_free(s.share);
  cx_free(s.bytes);
  json_decref(s.weight_map);
  return status;
}

calx_status *calx_save_sharded_with(const calx_value *dict, const char *folder,
                                    const calx_save_sharded_options *options)
{
  static const calx_save_sharded_options none = { .size = sizeof none };
  const calx_save_sharded_options *o = options != NULL ? options : &none;
  if (o->size > sizeof *o || folder == NULL) {
    return cx_invalid("save_sharded: %s",
                      folder == NULL ? "the folder has no name"
                                     : "its options are of a newer version");
  }
  cx_io_rank_info self = { cx_io_rank(), cx_io_ranks() };
  return cx_annotate(cx_io_shard_save(self, dict, folder, o),
                     "so rank %d did not save its share to '%s'", self.rank,
                     folder);
}
