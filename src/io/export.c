// io/export: a model's forward as a program, its weights and a manifest.
//
// The forward is recorded once, on copies of the inputs, so that the program's
// arguments can be told apart: those that hold an input's copy, those that hold
// a tensor of the model, and others, which are saved with the weights.
#include "io/export.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/options.h"
#include "base/status.h"
#include "calx/export.h"
#include "calx/io.h"
#include "io/fetch.h"
#include "io/rank.h"

typedef struct held {  // a tensor of the model, before the forward
  const char *path;
  calx_tensor *tensor;
  cx_graph_value value;
} held;

typedef struct exporting {
  calx_module *model;
  const char *folder;
  calx_export_options options;
  size_t n_in, n_out;
  calx_tensor **in, **out;  // in: copies, owned
  held *held;
  size_t n_held, held_capacity;
  cx_lazy_printed program;
  char hash[33];
  json_t *arguments;
  calx_value *weights;
  size_t n_captured;
  calx_status *status;  // of a visit
} exporting;

// ---- before -----------------------------------------------------------------

static calx_status *check(const exporting *x, calx_tensor *const *inputs)
{
  if (x->model == NULL || x->folder == NULL || x->folder[0] == '\0') {
    return cx_invalid("export: there is no %s",
                      x->model == NULL ? "model" : "folder");
  }
  CALX_TRY(cx_annotate(calx_module_error(x->model), "so it is not exported"));
  if (x->options.forward == NULL && (x->n_in != 1 || x->n_out != 1)) {
    return cx_invalid(
        "export: calx_forward takes one input and gives one output, wanted are "
        "%zu and %zu: give a function that calls the model as .forward",
        x->n_in, x->n_out);
  }
  if (calx_module_is_training(x->model)) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "export: the model is in training; call "
                    "calx_module_train(model, false) first");
  }
  for (size_t i = 0; i < x->n_in; i++) {
    if (inputs == NULL || inputs[i] == NULL) {
      return cx_invalid("export: input %zu is NULL", i);
    }
    CALX_TRY(cx_lazy_tensor_usable(inputs[i], "export", (uint32_t)i));
  }
  return NULL;
}

static void hold(void *user, const char *path, calx_entry_kind kind,
                 calx_tensor *tensor)
{
  (void)kind;
  exporting *x = user;
  if (x->status != NULL || !cx_lazy_read(tensor)) return;
  if (!cx_grow(&x->held, &x->held_capacity, x->n_held + 1, sizeof *x->held)) {
    x->status = cx_out_of_memory();
    return;
  }
  x->held[x->n_held++] = (held){ path, tensor, cx_lazy_tensor_value(tensor) };
}

static calx_status *copy_inputs(exporting *x, calx_tensor *const *inputs)
{
  for (size_t i = 0; i < x->n_in; i++) {
    const cx_graph_shape *s = cx_lazy_tensor_shape(inputs[i]);
    size_t bytes = (size_t)cx_graph_shape_numel(s) * calx_dtype_size(s->dtype);
    void *data = cx_alloc(bytes + 1);
    if (data == NULL) return cx_out_of_memory();
    calx_status *status = calx_tensor_read(inputs[i], data, bytes);
    if (status == NULL) {
      status = cx_lazy_upload(calx_tensor_device(inputs[i]), s->dtype, s->dims,
                              s->rank, data, false, NULL, NULL, &x->in[i]);
    }
    cx_free(data);
    CALX_TRY(status);
  }
  return NULL;
}

// ---- the forward ------------------------------------------------------------

static calx_status *record(exporting *x)
{
  cx_lazy_no_grad_begin();
  if (x->options.forward != NULL) {
    x->options.forward(x->options.user, x->in, x->out);
  } else {
    x->out[0] = calx_forward(x->model, x->in[0]);
  }
  (void)cx_lazy_no_grad_end();
  for (size_t i = 0; i < x->n_out; i++) {
    if (x->out[i] == NULL) {
      return cx_invalid("export: the forward does not set output %zu of %zu", i,
                        x->n_out);
    }
    CALX_TRY(cx_lazy_tensor_usable(x->out[i], "export", (uint32_t)i));
    if (calx_tensor_device(x->out[i]) != calx_tensor_device(x->out[0])) {
      return cx_invalid("export: output %zu is on another device", i);
    }
  }
  return NULL;
}

static calx_status *check_unchanged(const exporting *x)
{
  for (size_t i = 0; i < x->n_held; i++) {
    cx_graph_value now = cx_lazy_tensor_value(x->held[i].tensor);
    if (now.node == x->held[i].value.node) continue;
    return cx_error(CALX_FAILED_PRECONDITION,
                    "export: the forward changes the model's '%s', which a "
                    "program in a file cannot do",
                    x->held[i].path);
  }
  return NULL;
}

static calx_status *print(exporting *x)
{
  CALX_TRY(cx_lazy_print_values(x->out, x->n_out, &x->program));
  if ((x->program.flags & CX_GRAPH_NODE_TRAIN) != 0) {
    return cx_error(CALX_FAILED_PRECONDITION,
                    "export: a module of the model is in training; call "
                    "calx_module_train(model, false) first");
  }
  if ((x->program.flags & CX_GRAPH_NODE_COLLECTIVE) != 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "export: the forward uses a collective, which only ranks "
                    "that run together can");
  }
  const cx_text *text = &x->program.text;
  cx_hash_hex(cx_hash_bytes(text->data, text->size, 0), x->hash);
  return NULL;
}

// ---- arguments --------------------------------------------------------------

static bool same(cx_graph_value a, cx_graph_value b)
{
  return a.node == b.node && a.out == b.out;
}

// A name that no tensor of the model has.
static void name_captured(exporting *x, char name[32])
{
  bool taken = true;
  while (taken) {
    snprintf(name, 32, "captured.%zu", x->n_captured++);
    taken = calx_module_find(x->model, name) != NULL;
  }
}

static calx_status *add_argument(exporting *x, cx_graph_value value)
{
  for (size_t i = 0; i < x->n_in; i++) {
    if (!same(cx_lazy_tensor_value(x->in[i]), value)) continue;
    json_t *input = json_pack("{s:I}", "input", (json_int_t)i);
    return json_array_append_new(x->arguments, input) == 0 ? NULL
                                                           : cx_out_of_memory();
  }
  char captured[32];
  const char *name = NULL;
  calx_tensor *tensor = NULL;
  for (size_t i = 0; i < x->n_held && name == NULL; i++) {
    if (!same(x->held[i].value, value)) continue;
    name = x->held[i].path;
    tensor = x->held[i].tensor;
  }
  if (name == NULL) {
    name_captured(x, captured);
    name = captured;
    tensor = cx_lazy_tensor_of(value, calx_tensor_device(x->out[0]));
  }
  CALX_TRY(calx_value_set(x->weights, name, calx_value_tensor(tensor)));
  json_t *weight = json_pack("{s:s}", "weight", name);
  return json_array_append_new(x->arguments, weight) == 0 ? NULL
                                                          : cx_out_of_memory();
}

static calx_status *bind_arguments(exporting *x)
{
  x->arguments = json_array();
  x->weights = calx_value_container(CALX_KIND_DICT);
  if (x->arguments == NULL || x->weights == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < x->program.n_params; i++) {
    CALX_TRY(add_argument(x, x->program.params[i]));
  }
  return NULL;
}

// ---- files ------------------------------------------------------------------

static json_t *describe(calx_tensor *const *tensors, size_t n)
{
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++) {
    calx_dims s = calx_tensor_shape(tensors[i]);
    json_t *shape = json_array();
    for (size_t k = 0; k < s.count; k++) {
      json_array_append_new(shape, json_integer(s.values[k]));
    }
    const char *dtype = calx_dtype_name(calx_tensor_dtype(tensors[i]));
    json_array_append_new(
        list, json_pack("{s:s, s:o}", "dtype", dtype, "shape", shape));
  }
  return list;
}

static char *path_of(const exporting *x, const char *name)
{
  cx_text path = { 0 };
  cx_text_format(&path, "%s/%s", x->folder, name);
  return cx_text_take(&path);
}

static calx_status *write_weights(const exporting *x, const char *path)
{
  calx_value *facts = calx_value_container(CALX_KIND_DICT);
  if (facts == NULL) return cx_out_of_memory();
  calx_status *status =
      calx_value_set(facts, "program", calx_value_string(x->hash));
  const calx_save_options options = { .size = sizeof options,
                                      .format = CALX_FORMAT_SAFETENSORS,
                                      .metadata = facts };
  if (status == NULL) status = calx_save_with(x->weights, path, &options);
  calx_value_free(facts);
  return status;
}

static calx_status *write_manifest(const exporting *x, const char *path)
{
  json_t *root =
      json_pack("{s:s, s:i, s:s, s:o, s:o, s:O}", "format", CX_IO_EXPORT_FORMAT,
                "version", CX_IO_EXPORT_VERSION, "program", x->hash, "inputs",
                describe(x->in, x->n_in), "outputs", describe(x->out, x->n_out),
                "arguments", x->arguments);
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(1)) : NULL;
  calx_status *status = text != NULL ? cx_file_write(path, text, strlen(text))
                                     : cx_out_of_memory();
  free(text);
  json_decref(root);
  return status;
}

// The manifest is the last: a folder that has one is whole.
static calx_status *write_files(const exporting *x)
{
  CALX_TRY(cx_folder_make(x->folder, 0777));
  char *weights = path_of(x, CX_IO_EXPORT_WEIGHTS);
  char *program = path_of(x, CX_IO_EXPORT_PROGRAM);
  char *manifest = path_of(x, CX_IO_EXPORT_MANIFEST);
  calx_status *status = NULL;
  if (weights == NULL || program == NULL || manifest == NULL) {
    status = cx_out_of_memory();
  }
  if (status == NULL) status = write_weights(x, weights);
  if (status == NULL) status = cx_file_write_text(program, &x->program.text);
  if (status == NULL) status = write_manifest(x, manifest);
  cx_free(weights);
  cx_free(program);
  cx_free(manifest);
  return status;
}

// ---- public -----------------------------------------------------------------

static calx_status *export(exporting *x, calx_tensor *const *inputs)
{
  CALX_TRY(check(x, inputs));
  x->in = cx_calloc(x->n_in + 1, sizeof *x->in);
  x->out = cx_calloc(x->n_out, sizeof *x->out);
  if (x->in == NULL || x->out == NULL) return cx_out_of_memory();
  calx_module_visit(x->model, hold, x);
  CALX_TRY(x->status);
  CALX_TRY(copy_inputs(x, inputs));
  CALX_TRY(record(x));
  CALX_TRY(print(x));
  CALX_TRY(check_unchanged(x));
  CALX_TRY(bind_arguments(x));
  return cx_io_rank() == 0 ? write_files(x) : NULL;
}

calx_status *calx_export_with(calx_module *model, calx_tensor *const *inputs,
                              size_t count, const char *folder,
                              const calx_export_options *options)
{
  static const calx_export_options none = { .size = sizeof none };
  if (options == NULL) options = &none;
  CALX_TRY(cx_options_check("export", options->size, sizeof *options));
  exporting x = {
    .model = model, .folder = folder, .options = *options, .n_in = count
  };
  x.n_out = options->outputs != 0 ? options->outputs : 1;
  calx_scope *scope = calx_scope_begin();
  calx_status *status = export(&x, inputs);
  cx_lazy_printed_free(&x.program);
  calx_value_free(x.weights);
  json_decref(x.arguments);
  for (size_t i = 0; x.in != NULL && i < x.n_in; i++) calx_release(x.in[i]);
  cx_free(x.in);
  cx_free(x.out);
  cx_free(x.held);
  return cx_status_first(calx_scope_end(scope), status);
}
