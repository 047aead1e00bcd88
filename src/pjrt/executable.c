// pjrt/executable: compiles programs, saves and loads them, and keeps what
// their launches need.
//
// Plugins do not check the arguments of an execution, so the caller passes the
// program's signature. The results that the plugin reports are compared with it
// once, here. The devices that it reports are kept for the launches.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

#define PARAM_LIMIT (1 << 24)

// ---- lifetime ----

static void executable_free(cx_pjrt_executable *e)
{
  if (e->raw != NULL) {
    CX_PJRT_DESTROY(e->client->plugin, PJRT_LoadedExecutable,
                    .executable = e->raw);
  }
  cx_free(e->devices);
  cx_free(e->launches);
  cx_free(e->params);
  cx_free(e->donated);
  cx_free(e->results);
  cx_free(e->wholes);
  cx_pjrt_client_release(e->client);
  cx_pjrt_count(-1);
  cx_free(e);
}

void cx_pjrt_executable_retain(cx_pjrt_executable *e)
{
  atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
}

void cx_pjrt_executable_release(cx_pjrt_executable *e)
{
  if (e == NULL) return;
  if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1) {
    executable_free(e);
  }
}

static bool copy_signature(cx_pjrt_executable *e, const cx_pjrt_signature *s)
{
  e->params = cx_calloc(s->n_params, sizeof *e->params);
  e->donated = cx_calloc(s->n_params, sizeof *e->donated);
  e->results = cx_calloc(s->n_results, sizeof *e->results);
  if (e->params == NULL || e->donated == NULL || e->results == NULL) {
    return false;
  }
  e->n_params = s->n_params;
  e->n_results = s->n_results;
  for (size_t i = 0; i < s->n_params; i++) {
    e->params[i] = s->params[i];
    e->donated[i] = s->donated != NULL && s->donated[i];
  }
  for (size_t i = 0; i < s->n_results; i++) e->results[i] = s->results[i];
  if (s->wholes == NULL) return true;
  e->wholes = cx_calloc(s->n_results + 1, sizeof *e->wholes);
  if (e->wholes == NULL) return false;
  for (size_t i = 0; i < s->n_results; i++) e->wholes[i] = s->wholes[i];
  return true;
}

// Makes an executable that has no plugin's object yet. `program` is its text or
// its saved bytes. They are the same in every process, so a hash of them is a
// number of the first launch on which all processes agree.
static calx_status *executable_new(cx_pjrt_client *c, const char *program,
                                   size_t size,
                                   const cx_pjrt_compile_options *options,
                                   const cx_pjrt_signature *signature,
                                   cx_pjrt_executable **out)
{
  *out = NULL;
  if (signature->n_params > PARAM_LIMIT || signature->n_results > PARAM_LIMIT) {
    return cx_invalid(
        "a program has at most %d parameters and results, found %zu and %zu",
        PARAM_LIMIT, signature->n_params, signature->n_results);
  }
  cx_pjrt_executable *e = cx_calloc(1, sizeof *e);
  if (e == NULL) return cx_out_of_memory();
  atomic_init(&e->refs, 1);
  cx_pjrt_client_retain(c);
  cx_pjrt_count(1);
  e->client = c;
  e->any_device = options != NULL && options->any_device;
  e->launch_base = options != NULL ? options->launches : 0;
  if (e->launch_base == 0) {
    e->launch_base = (uint32_t)cx_hash_bytes(program, size, 0).low;
  }
  if (!copy_signature(e, signature)) {
    executable_free(e);
    return cx_out_of_memory();
  }
  *out = e;
  return NULL;
}

// ---- what the plugin reports of it ----

static calx_status *get_executable(cx_pjrt_executable *e, PJRT_Executable **out)
{
  CX_PJRT_DECLARE(args, PJRT_LoadedExecutable_GetExecutable,
                  .loaded_executable = e->raw);
  CALX_TRY(CX_PJRT_CALL(e->client->plugin, PJRT_LoadedExecutable_GetExecutable,
                        &args));
  *out = args.executable;
  return cx_pjrt_check_object(e->client->plugin, *out, "executable");
}

static calx_status *wrong_count(const cx_pjrt_executable *e, size_t found)
{
  return cx_invalid(
      "the program has %zu results on plugin '%s', its signature has %zu",
      found, e->client->plugin->name, e->n_results);
}

// Where the plugin lacks the function there is nothing to compare:
// UNIMPLEMENTED becomes success.
static calx_status *tolerate(calx_status *status, bool *out_reported)
{
  *out_reported = status == NULL;
  if (calx_status_code(status) != CALX_UNIMPLEMENTED) return status;
  calx_status_free(status);
  return NULL;
}

typedef struct reported {
  PJRT_Executable_OutputElementTypes_Args types;
  PJRT_Executable_OutputDimensions_Args shapes;
  bool has_types, has_shapes;
  const int64_t *dims;  // of the next result
} reported;

// Reads the shape of result i into *shape, which holds the signature's: what
// the plugin does not report stays. Results are read in their order. False: the
// shape has too many dimensions.
static bool next_shape(reported *r, size_t i, cx_pjrt_shape *shape)
{
  if (r->has_types) shape->type = (int)r->types.output_types[i];
  if (!r->has_shapes) return true;
  shape->rank = r->shapes.dim_sizes[i];
  if (shape->rank == 0) return true;
  if (shape->rank > CALX_MAX_RANK || r->dims == NULL) return false;
  memcpy(shape->dims, r->dims, shape->rank * sizeof *r->dims);
  r->dims += shape->rank;
  return true;
}

static calx_status *check_shapes(cx_pjrt_executable *e, PJRT_Executable *raw)
{
  const cx_pjrt_plugin *p = e->client->plugin;
  reported r = {
    .types = { CX_PJRT_ARGS(PJRT_Executable_OutputElementTypes_Args),
               .executable = raw },
    .shapes = { CX_PJRT_ARGS(PJRT_Executable_OutputDimensions_Args),
                .executable = raw },
  };
  CALX_TRY(
      tolerate(CX_PJRT_CALL(p, PJRT_Executable_OutputElementTypes, &r.types),
               &r.has_types));
  CALX_TRY(
      tolerate(CX_PJRT_CALL(p, PJRT_Executable_OutputDimensions, &r.shapes),
               &r.has_shapes));
  size_t n = e->n_results;
  size_t n_types = r.types.output_types != NULL ? r.types.num_output_types : 0;
  size_t n_shapes = r.shapes.dim_sizes != NULL ? r.shapes.num_outputs : 0;
  if (r.has_types && n_types != n) return wrong_count(e, n_types);
  if (r.has_shapes && n_shapes != n) return wrong_count(e, n_shapes);
  r.dims = r.shapes.dims;
  for (size_t i = 0; i < n; i++) {
    cx_pjrt_shape found = e->results[i];
    bool fits = next_shape(&r, i, &found);
    if (fits && cx_pjrt_shape_equal(&found, &e->results[i])) continue;
    cx_pjrt_shape_text wanted_text;
    cx_pjrt_shape_text found_text;
    return cx_invalid("result %zu is %s in the signature and %s on plugin '%s'",
                      i, cx_pjrt_shape_str(&e->results[i], &wanted_text),
                      fits ? cx_pjrt_shape_str(&found, &found_text)
                           : "of too many dimensions",
                      p->name);
  }
  return NULL;
}

static calx_status *check_results(cx_pjrt_executable *e)
{
  PJRT_Executable *raw = NULL;
  CALX_TRY(get_executable(e, &raw));
  CX_PJRT_DECLARE(args, PJRT_Executable_NumOutputs, .executable = raw);
  calx_status *status =
      CX_PJRT_CALL(e->client->plugin, PJRT_Executable_NumOutputs, &args);
  // An execution writes as many results as the plugin reports here.
  if (status == NULL && args.num_outputs != e->n_results) {
    status = wrong_count(e, args.num_outputs);
  }
  if (status == NULL) status = check_shapes(e, raw);
  cx_pjrt_program_destroy(e->client->plugin, raw);
  return status;
}

// Device r of the list runs replica r.
static calx_status *find_devices(cx_pjrt_executable *e)
{
  const cx_pjrt_client *c = e->client;
  CX_PJRT_DECLARE(args, PJRT_LoadedExecutable_AddressableDevices,
                  .executable = e->raw);
  if (!e->any_device) {
    CALX_TRY(CX_PJRT_CALL(c->plugin, PJRT_LoadedExecutable_AddressableDevices,
                          &args));
  }
  size_t n = e->any_device ? 1 : args.num_addressable_devices;
  if (n == 0 || n > c->n_devices ||
      (!e->any_device && args.addressable_devices == NULL)) {
    return cx_error(CALX_INTERNAL,
                    "plugin '%s' compiled for %zu devices, it has %zu here",
                    c->plugin->name, n, c->n_devices);
  }
  e->devices = cx_calloc(n, sizeof *e->devices);
  e->launches = cx_calloc(c->n_devices, sizeof *e->launches);
  if (e->devices == NULL || e->launches == NULL) return cx_out_of_memory();
  e->n_replicas = n;
  for (size_t r = 0; r < n && !e->any_device; r++) {
    e->devices[r] = cx_pjrt_device_index(c, args.addressable_devices[r]);
    if (e->devices[r] == c->n_devices) {
      return cx_error(CALX_INTERNAL,
                      "plugin '%s' compiled replica %zu for a device that it "
                      "does not list",
                      c->plugin->name, r);
    }
  }
  return NULL;
}

// Checks a compiled executable and returns it. Releases e on failure.
static calx_status *finish(cx_pjrt_executable *e, calx_status *status,
                           cx_pjrt_executable **out)
{
  if (status == NULL) {
    status = cx_pjrt_check_object(e->client->plugin, e->raw, "executable");
  }
  if (status == NULL) status = check_results(e);
  if (status == NULL) status = find_devices(e);
  if (status != NULL) {
    cx_pjrt_executable_release(e);
    return status;
  }
  *out = e;
  return NULL;
}

// ---- compiling ----

static calx_status *compile_once(cx_pjrt_executable *e,
                                 const PJRT_Program *program,
                                 const cx_pjrt_compile_options *options)
{
  char *bytes = NULL;
  size_t size = 0;
  CALX_TRY(cx_pjrt_options_encode(options, e->client, &bytes, &size));
  CX_PJRT_DECLARE(args, PJRT_Client_Compile, .client = e->client->raw,
                  .program = program, .compile_options = bytes,
                  .compile_options_size = size);
  calx_status *status =
      CX_PJRT_CALL(e->client->plugin, PJRT_Client_Compile, &args);
  if (status == NULL) e->raw = args.executable;
  cx_free(bytes);
  return status;
}

calx_status *cx_pjrt_compile(cx_pjrt_client *c, const char *text, size_t size,
                             const cx_pjrt_compile_options *options,
                             const cx_pjrt_signature *signature,
                             cx_pjrt_executable **out)
{
  *out = NULL;
  cx_pjrt_executable *e = NULL;
  CALX_TRY(executable_new(c, text, size, options, signature, &e));
  PJRT_Program program = cx_pjrt_program(text, size);
  calx_status *status = compile_once(e, &program, options);
  if (cx_pjrt_defaults_refused(c, status)) {
    calx_status_free(status);
    status = compile_once(e, &program, options);
  }
  return finish(e, status, out);
}

// ---- saving ----

calx_status *cx_pjrt_executable_serialize(cx_pjrt_executable *e,
                                          char **out_bytes, size_t *out_size)
{
  *out_bytes = NULL;
  *out_size = 0;
  PJRT_Executable *raw = NULL;
  CALX_TRY(get_executable(e, &raw));
  calx_status *status =
      cx_pjrt_program_serialize(e->client->plugin, raw, out_bytes, out_size);
  cx_pjrt_program_destroy(e->client->plugin, raw);
  return status;
}

calx_status *cx_pjrt_executable_deserialize(
    cx_pjrt_client *c, const char *bytes, size_t size,
    const cx_pjrt_compile_options *options, const cx_pjrt_signature *signature,
    cx_pjrt_executable **out)
{
  *out = NULL;
  cx_pjrt_executable *e = NULL;
  char *encoded = NULL;
  size_t encoded_size = 0;
  CALX_TRY(executable_new(c, bytes, size, options, signature, &e));
  calx_status *status =
      cx_pjrt_options_encode(options, c, &encoded, &encoded_size);
  if (status == NULL) {
    CX_PJRT_DECLARE(args, PJRT_Executable_DeserializeAndLoad, .client = c->raw,
                    .serialized_executable = bytes,
                    .serialized_executable_size = size,
                    .overridden_serialized_compile_options = encoded,
                    .overridden_serialized_compile_options_size = encoded_size);
    status = CX_PJRT_CALL(c->plugin, PJRT_Executable_DeserializeAndLoad, &args);
    if (status == NULL) e->raw = args.loaded_executable;
  }
  cx_free(encoded);
  return finish(e, status, out);
}

// ---- questions ----

calx_status *cx_pjrt_executable_memory(cx_pjrt_executable *e,
                                       cx_pjrt_executable_stats *out)
{
  *out = (cx_pjrt_executable_stats){ -1, -1, -1, -1, -1, -1 };
  PJRT_Executable *raw = NULL;
  CALX_TRY(get_executable(e, &raw));
  calx_status *status = cx_pjrt_program_memory(e->client->plugin, raw, out);
  cx_pjrt_program_destroy(e->client->plugin, raw);
  return status;
}

calx_status *cx_pjrt_executable_cost(cx_pjrt_executable *e, const char *name,
                                     double *out)
{
  *out = 0;
  PJRT_Executable *raw = NULL;
  CALX_TRY(get_executable(e, &raw));
  calx_status *status = cx_pjrt_program_cost(e->client->plugin, raw, name, out);
  cx_pjrt_program_destroy(e->client->plugin, raw);
  return status;
}

size_t cx_pjrt_executable_result_count(const cx_pjrt_executable *e)
{
  return e->n_results;
}

size_t cx_pjrt_executable_device_count(const cx_pjrt_executable *e)
{
  return e->n_replicas;
}

size_t cx_pjrt_executable_device(const cx_pjrt_executable *e, size_t replica)
{
  return e->devices[replica];
}
