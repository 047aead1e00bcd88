// io/shard_index: a folder of safetensors files that another program wrote: one
// file, or several with an index of who has what, as Hugging Face's are.
#include <jansson.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "io/shard.h"

// A name of the index becomes a path: it must not lead out of the folder.
static bool is_plain(const char *name)
{
  static const char end[] = ".safetensors";
  size_t n = strlen(name);
  return name[0] != '.' && strchr(name, '/') == NULL && n > strlen(end) &&
         strcmp(name + n - strlen(end), end) == 0;
}

calx_status *cx_io_folder_file(const char *folder, const char *name,
                               calx_value **out)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/%s", folder, name);
  calx_load_options o = { .size = sizeof o, .format = CALX_FORMAT_SAFETENSORS };
  calx_status *status = cx_text_failed(&path)
                            ? cx_out_of_memory()
                            : calx_load_with(cx_text_str(&path), &o, out);
  cx_text_free(&path);
  return status;
}

// The tensors of a file, which `files` keeps.
static calx_status *need_file(const char *folder, const char *name,
                              calx_value *files, const calx_value **out)
{
  *out = calx_value_get(files, name);
  if (*out != NULL) return NULL;
  calx_value *file;
  CALX_TRY(cx_io_folder_file(folder, name, &file));
  CALX_TRY(calx_value_set(files, name, file));
  *out = calx_value_get(files, name);
  return NULL;
}

static calx_status *need_all(const char *folder, json_t *weight_map,
                             calx_value *files, calx_value *dict)
{
  const char *name;
  json_t *value;
  json_object_foreach(weight_map, name, value)
  {
    const char *file_name = json_string_value(value);
    if (file_name == NULL || !is_plain(file_name)) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': model.safetensors.index.json: '%.100s' is in no "
                      "*.safetensors file of the folder",
                      folder, name);
    }
    const calx_value *file;
    CALX_TRY(need_file(folder, file_name, files, &file));
    calx_tensor *t = calx_value_as_tensor(calx_value_get(file, name));
    if (t == NULL) {
      return cx_error(CALX_DATA_LOSS,
                      "'%s': %s has no '%.100s', which the index says it has",
                      folder, file_name, name);
    }
    CALX_TRY(calx_value_set(dict, name, calx_value_tensor(t)));
  }
  return NULL;
}

// A tensor that the index does not name would be lost in silence.
static calx_status *check_named(const char *folder, const calx_value *files,
                                const calx_value *dict)
{
  for (size_t i = 0; i < calx_value_count(files); i++) {
    const calx_value *file = calx_value_item(files, i);
    for (size_t k = 0; k < calx_value_count(file); k++) {
      const char *name = calx_value_key(file, k);
      if (calx_value_get(dict, name) != NULL) continue;
      return cx_error(CALX_DATA_LOSS,
                      "'%s': %s has '%.100s', of which the index does not know",
                      folder, calx_value_key(files, i), name);
    }
  }
  return NULL;
}

calx_status *cx_io_index_load(const char *folder, json_t *weight_map,
                              calx_value *dict)
{
  calx_value *files = calx_value_container(CALX_KIND_DICT);
  if (files == NULL) return cx_out_of_memory();
  calx_status *status = need_all(folder, weight_map, files, dict);
  if (status == NULL) status = check_named(folder, files, dict);
  calx_value_free(files);
  return status;
}
