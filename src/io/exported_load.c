// io/exported_load: an exported model, read back, and compiled for a device
// that is here or for others.
//
// The manifest says what each argument is; the program and the weights' file
// have its shape, and all three must agree. A file's name is never taken from
// another file.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/options.h"
#include "base/status.h"
#include "calx/io.h"
#include "hlo/parse.h"
#include "hlo/verify.h"
#include "io/export.h"

#define MANIFEST_LIMIT ((size_t)64 << 20)
#define PROGRAM_LIMIT ((size_t)1 << 30)

typedef struct exported_files {
  const char *folder;
  const char *executable;  // compiled ahead; NULL: it is compiled now
  calx_exported *e;
  json_t *manifest;
  const json_t *arguments;
  cx_text program;
  cx_hlo_signature signature;
  calx_value *weights;
} exported_files;

static calx_status *damaged(const exported_files *l, const char *file,
                            const char *what, size_t i)
{
  return cx_error(CALX_DATA_LOSS,
                  "'%s/%s' is damaged, or of another export: %s (%zu)",
                  l->folder, file, what, i);
}

static calx_status *read_file(const exported_files *l, const char *name,
                              size_t limit, char **out_data, size_t *out_size)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/%s", l->folder, name);
  calx_status *status = cx_out_of_memory();
  if (!cx_text_failed(&path)) {
    calx_status_free(status);
    status =
        cx_file_read_regular(cx_text_str(&path), limit, out_data, out_size);
  }
  cx_text_free(&path);
  return status;
}

// ---- the manifest -----------------------------------------------------------

static calx_status *read_shape(const exported_files *l, const json_t *described,
                               size_t at, cx_graph_shape *out)
{
  const char *dtype = json_string_value(json_object_get(described, "dtype"));
  const json_t *shape = json_object_get(described, "shape");
  if (dtype == NULL || !json_is_array(shape) ||
      json_array_size(shape) > CALX_MAX_RANK) {
    return damaged(l, CX_IO_EXPORT_MANIFEST, "a tensor has no type or shape",
                   at);
  }
  *out = (cx_graph_shape){ .rank = (uint32_t)json_array_size(shape) };
  out->dtype = cx_dtype_of_name(dtype);
  for (uint32_t k = 0; k < out->rank; k++) {
    const json_t *size = json_array_get(shape, k);
    out->dims[k] = json_integer_value(size);
    if (!json_is_integer(size) || out->dims[k] < 0) {
      return damaged(l, CX_IO_EXPORT_MANIFEST, "a size is no number", at);
    }
  }
  if (out->dtype != CALX_DTYPE_DEFAULT) return NULL;
  return damaged(l, CX_IO_EXPORT_MANIFEST, "a type is unknown", at);
}

static calx_status *read_shapes(const exported_files *l, const char *key,
                                cx_graph_shape **out, size_t *out_n)
{
  const json_t *list = json_object_get(l->manifest, key);
  if (!json_is_array(list)) {
    return damaged(l, CX_IO_EXPORT_MANIFEST, "a list is missing", 0);
  }
  *out_n = json_array_size(list);
  *out = cx_calloc(*out_n + 1, sizeof **out);
  if (*out == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < *out_n; i++) {
    CALX_TRY(read_shape(l, json_array_get(list, i), i, &(*out)[i]));
  }
  return NULL;
}

static calx_status *read_manifest(exported_files *l)
{
  char *data;
  size_t size;
  json_error_t error;
  CALX_TRY(read_file(l, CX_IO_EXPORT_MANIFEST, MANIFEST_LIMIT, &data, &size));
  l->manifest = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
  cx_free(data);
  if (l->manifest == NULL) {
    return cx_error(CALX_DATA_LOSS, "'%s/%s':%d: %s", l->folder,
                    CX_IO_EXPORT_MANIFEST, error.line, error.text);
  }
  const char *format =
      json_string_value(json_object_get(l->manifest, "format"));
  const json_t *version = json_object_get(l->manifest, "version");
  if (format == NULL || strcmp(format, CX_IO_EXPORT_FORMAT) != 0) {
    return damaged(l, CX_IO_EXPORT_MANIFEST, "it is no manifest", 0);
  }
  if (json_integer_value(version) != CX_IO_EXPORT_VERSION) {
    return cx_error(
        CALX_UNIMPLEMENTED, "'%s/%s' has version %lld, this calx reads %d",
        l->folder, CX_IO_EXPORT_MANIFEST,
        (long long)json_integer_value(version), CX_IO_EXPORT_VERSION);
  }
  l->arguments = json_object_get(l->manifest, "arguments");
  if (!json_is_array(l->arguments)) {
    return damaged(l, CX_IO_EXPORT_MANIFEST, "it has no arguments", 0);
  }
  CALX_TRY(read_shapes(l, "inputs", &l->e->in, &l->e->n_in));
  return read_shapes(l, "outputs", &l->e->out, &l->e->n_out);
}

// ---- the program ------------------------------------------------------------

static calx_status *check_hash(const exported_files *l, const char *file,
                               const char *hash)
{
  const char *wanted =
      json_string_value(json_object_get(l->manifest, "program"));
  if (hash != NULL && wanted != NULL && strcmp(hash, wanted) == 0) return NULL;
  return damaged(l, file, "its program is not the manifest's", 0);
}

static calx_status *verify(const exported_files *l)
{
  cx_hlo_module *module = NULL;
  calx_status *status = cx_hlo_parse(l->program.data, l->program.size,
                                     CX_IO_EXPORT_PROGRAM, &module);
  if (status == NULL) status = cx_hlo_verify(module);
  cx_hlo_module_free(module);
  return cx_annotate(status, "in '%s/%s'", l->folder, CX_IO_EXPORT_PROGRAM);
}

static calx_status *read_program(exported_files *l)
{
  char *data, hash[33];
  size_t size;
  CALX_TRY(read_file(l, CX_IO_EXPORT_PROGRAM, PROGRAM_LIMIT, &data, &size));
  cx_text_append_n(&l->program, data, size);
  cx_free(data);
  if (cx_text_failed(&l->program)) return cx_out_of_memory();
  cx_hash_hex(cx_hash_bytes(l->program.data, l->program.size, 0), hash);
  CALX_TRY(check_hash(l, CX_IO_EXPORT_PROGRAM, hash));
  CALX_TRY(verify(l));
  return cx_hlo_parse_signature(l->program.data, l->program.size,
                                CX_IO_EXPORT_PROGRAM, &l->signature);
}

// ---- weights and arguments --------------------------------------------------

static calx_status *read_weights(exported_files *l)
{
  cx_text path = { 0 };
  calx_value *facts = NULL;
  cx_text_format(&path, "%s/%s", l->folder, CX_IO_EXPORT_WEIGHTS);
  if (cx_text_failed(&path)) return cx_out_of_memory();
  const calx_load_options o = { .size = sizeof o,
                                .format = CALX_FORMAT_SAFETENSORS,
                                .out_metadata = &facts };
  calx_status *status = calx_load_with(cx_text_str(&path), &o, &l->weights);
  if (status == NULL) {
    const calx_value *hash = calx_value_get(facts, "program");
    status = check_hash(l, CX_IO_EXPORT_WEIGHTS, calx_value_as_string(hash));
  }
  calx_value_free(facts);
  cx_text_free(&path);
  return status;
}

static bool agrees(const cx_hlo_type *type, const cx_graph_shape *s)
{
  const cx_hlo_type wanted = { cx_hlo_elem_of(s->dtype), s->rank, s->dims };
  return cx_hlo_type_equal(type, &wanted);
}

static calx_status *read_argument(exported_files *l, size_t i)
{
  const json_t *entry = json_array_get(l->arguments, i);
  const json_t *input = json_object_get(entry, "input");
  const char *weight = json_string_value(json_object_get(entry, "weight"));
  cx_io_argument *a = &l->e->arguments[i];
  const cx_graph_shape *shape = NULL;
  calx_tensor *t = NULL;
  if (weight != NULL) {
    t = calx_value_as_tensor(calx_value_get(l->weights, weight));
    if (t != NULL) shape = cx_lazy_tensor_shape(t);
  } else if (json_is_integer(input) && json_integer_value(input) >= 0) {
    a->input = (size_t)json_integer_value(input);
    if (a->input < l->e->n_in) shape = &l->e->in[a->input];
  }
  if (shape == NULL || !agrees(&l->signature.params[i], shape)) {
    return damaged(l, CX_IO_EXPORT_MANIFEST,
                   "an argument is none of the program's", i);
  }
  if (t != NULL) a->weight = calx_retain(calx_to(t, l->e->device));
  return NULL;
}

static calx_status *read_arguments(exported_files *l)
{
  size_t n = l->signature.n_params;
  if (n != json_array_size(l->arguments) ||
      l->signature.n_results != l->e->n_out) {
    return damaged(l, CX_IO_EXPORT_MANIFEST,
                   "the program has another number of arguments or results", n);
  }
  l->e->arguments = cx_calloc(n + 1, sizeof *l->e->arguments);
  if (l->e->arguments == NULL) return cx_out_of_memory();
  l->e->n_arguments = n;
  for (size_t i = 0; i < n; i++) CALX_TRY(read_argument(l, i));
  for (size_t i = 0; i < l->e->n_out; i++) {
    if (agrees(&l->signature.results[i], &l->e->out[i])) continue;
    return damaged(l, CX_IO_EXPORT_MANIFEST,
                   "an output is not the program's result", i);
  }
  return NULL;
}

// ---- compiling --------------------------------------------------------------

static calx_status *read_executable(const exported_files *l,
                                    const cx_pjrt_signature *signature,
                                    cx_pjrt_executable **out)
{
  char *data;
  size_t size;
  CALX_TRY(cx_file_read_regular(l->executable, 0, &data, &size));
  const cx_pjrt_compile_options one = { 0 };
  calx_status *status = cx_pjrt_executable_deserialize(
      cx_lazy_device_client(l->e->device), data, size, &one, signature, out);
  cx_free(data);
  return cx_annotate(status, "while loading '%s'", l->executable);
}

static calx_status *compile(const exported_files *l)
{
  const cx_hlo_signature *s = &l->signature;
  cx_pjrt_shape *shapes =
      cx_calloc(s->n_params + s->n_results + 1, sizeof *shapes);
  if (shapes == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < s->n_params; i++) {
    const cx_io_argument *a = &l->e->arguments[i];
    const cx_graph_shape *shape = a->weight != NULL
                                      ? cx_lazy_tensor_shape(a->weight)
                                      : &l->e->in[a->input];
    cx_pjrt_shape_make(shape->dtype, shape->dims, shape->rank, &shapes[i]);
  }
  for (size_t i = 0; i < s->n_results; i++) {
    const cx_graph_shape *shape = &l->e->out[i];
    cx_pjrt_shape_make(shape->dtype, shape->dims, shape->rank,
                       &shapes[s->n_params + i]);
  }
  const cx_pjrt_signature signature = { .params = shapes,
                                        .n_params = s->n_params,
                                        .results = shapes + s->n_params,
                                        .n_results = s->n_results };
  calx_status *status =
      l->executable != NULL
          ? read_executable(l, &signature, &l->e->executable)
          : cx_lazy_compile_text(l->e->device, &l->program, &signature,
                                 &l->e->executable);
  cx_free(shapes);
  return status;
}

// ---- public -----------------------------------------------------------------

static calx_status *load(exported_files *l)
{
  CALX_TRY(read_manifest(l));
  CALX_TRY(read_program(l));
  CALX_TRY(read_weights(l));
  l->e->device = cx_lazy_device_or_current(NULL);
  if (l->e->device == NULL) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "exported_load: there is no device to run it on");
  }
  CALX_TRY(read_arguments(l));
  return compile(l);
}

static void files_free(exported_files *l)
{
  cx_hlo_signature_free(&l->signature);
  cx_text_free(&l->program);
  calx_value_free(l->weights);
  json_decref(l->manifest);
}

calx_status *calx_exported_load_with(const char *folder,
                                     const calx_exported_load_options *options,
                                     calx_exported **out)
{
  *out = NULL;
  exported_files l = { .folder = folder };
  if (options != NULL) {
    CALX_TRY(cx_options_check("exported_load", options->size, sizeof *options));
    l.executable = options->executable;
  }
  if (folder == NULL) return cx_invalid("exported_load: there is no folder");
  l.e = cx_calloc(1, sizeof *l.e);
  if (l.e == NULL) return cx_out_of_memory();
  calx_scope *scope = calx_scope_begin();
  calx_status *status = load(&l);
  status = cx_status_first(calx_scope_end(scope), status);
  files_free(&l);
  if (status != NULL) {
    calx_exported_free(l.e);
    return status;
  }
  *out = l.e;
  return NULL;
}

static calx_status *compile_for(const exported_files *l, const char *topology,
                                const char *path,
                                const calx_compile_ahead_options *o)
{
  const char *name = o->plugin != NULL ? o->plugin : "tpu";
  const cx_pjrt_option device[] = {
    { .name = "target_config", .string_value = o->target_config },
    { .name = "topology", .string_value = topology },
  };
  const size_t n_options = o->target_config != NULL ? 2 : 0;
  cx_pjrt_plugin *plugin;
  char *bytes = NULL;
  size_t size = 0;
  CALX_TRY(cx_pjrt_plugin_open(name, &plugin));
  const cx_pjrt_compile_options one = { .num_replicas = 1 };
  calx_status *status =
      cx_pjrt_compile_for(plugin, topology, device, n_options, l->program.data,
                          l->program.size, &one, &bytes, &size, NULL);
  if (status == NULL) status = cx_file_write(path, bytes, size);
  cx_free(bytes);
  return status;
}

calx_status *calx_compile_ahead_with(const char *folder, const char *topology,
                                     const char *path,
                                     const calx_compile_ahead_options *options)
{
  static const calx_compile_ahead_options none = { .size = sizeof none };
  if (options == NULL) options = &none;
  CALX_TRY(cx_options_check("compile_ahead", options->size, sizeof *options));
  if (folder == NULL || topology == NULL || path == NULL) {
    return cx_invalid("compile_ahead: there is no %s", folder == NULL ? "folder"
                                                       : topology == NULL
                                                           ? "topology"
                                                           : "file to write");
  }
  exported_files l = { .folder = folder,
                       .e = cx_calloc(1, sizeof(calx_exported)) };
  if (l.e == NULL) return cx_out_of_memory();
  calx_status *status = read_manifest(&l);
  if (status == NULL) status = read_program(&l);
  if (status == NULL) status = compile_for(&l, topology, path, options);
  files_free(&l);
  calx_exported_free(l.e);
  return status;
}
