// fake/programs: compiling (reading the signature and the options), launching
// (copying), saving, and topologies.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "options.pb-c.h"

#define MAGIC "FAKEPROG"

// One object for both kinds of executable.
struct fake_program {
  atomic_int refs;
  fake_signature signature;
  int replicas;
  bool portable;
  PJRT_Device *devices[FAKE_DEVICES];
  char *text;
  size_t text_size;
  // What the questions hand out.
  PJRT_Buffer_Type *types;
  int64_t *dims;
  size_t *ranks;
};
typedef struct fake_program program;

struct PJRT_TopologyDescription {
  int unused;
};

static program *loaded(PJRT_LoadedExecutable *e)
{
  return (program *)e;
}
static program *bare(const PJRT_Executable *e)
{
  return (program *)(uintptr_t)e;
}

static void program_release(program *p)
{
  if (p == NULL || atomic_fetch_sub(&p->refs, 1) != 1) return;
  fake_signature_clear(&p->signature);
  free(p->text);
  free(p->types);
  free(p->dims);
  free(p->ranks);
  atomic_fetch_sub(&fake_live_objects, 1);
  free(p);
}

// ---- compiling ----

static void list_results(program *p)
{
  const fake_signature *s = &p->signature;
  p->types = calloc(s->n_results + 1, sizeof *p->types);
  p->dims = calloc(s->n_results * FAKE_RANK + 1, sizeof *p->dims);
  p->ranks = calloc(s->n_results + 1, sizeof *p->ranks);
  if (p->types == NULL || p->dims == NULL || p->ranks == NULL) abort();
  size_t n = 0;
  for (size_t i = 0; i < s->n_results; i++) {
    p->types[i] = (PJRT_Buffer_Type)s->results[i].type;
    p->ranks[i] = s->results[i].rank;
    memcpy(p->dims + n, s->results[i].dims, p->ranks[i] * sizeof *p->dims);
    n += p->ranks[i];
  }
}

// Whose shares run here are the replicas that count from now on.
static PJRT_Error *assign(program *p, const CxPjrt__Build *build,
                          PJRT_Client *c)
{
  int local = 0;
  for (int r = 0; r < p->replicas && c != NULL; r++) {
    int64_t id = c->list[0]->description.id + r;
    if (build->device_assignment != NULL) {
      const CxPjrt__DeviceAssignment *a = build->device_assignment;
      if (a->replica_count != p->replicas || a->computation_count != 1 ||
          a->n_computation_devices != 1 ||
          a->computation_devices[0]->n_replica_device_ids !=
              (size_t)p->replicas) {
        return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                          "fake: bad device assignment");
      }
      id = a->computation_devices[0]->replica_device_ids[r];
    }
    int i = 0;
    while (i < c->n_everywhere && c->everywhere[i]->description.id != id) i++;
    if (i == c->n_everywhere) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "fake: no device with id %d", (int)id);
    }
    PJRT_Device *d = c->everywhere[i];
    if (d->description.process == c->list[0]->description.process) {
      p->devices[local++] = d;
    }
  }
  if (c != NULL) p->replicas = local;
  return NULL;
}

static PJRT_Error *apply(program *p, const CxPjrt__CompileOptions *options,
                         PJRT_Client *c)
{
  const CxPjrt__Build *build = options->executable_build_options;
  for (size_t i = 0; i < options->n_env_option_overrides; i++) {
    const char *key = options->env_option_overrides[i]->key;
    if (fake_refuses(key)) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "No such compile option: '%s'", key);
    }
  }
  if (build == NULL || build->num_replicas < 1 || build->num_partitions != 1 ||
      build->num_replicas > FAKE_DEVICES) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "fake: bad number of replicas or partitions");
  }
  p->replicas = build->num_replicas;
  p->portable = options->compile_portable_executable;
  return p->portable ? NULL : assign(p, build, c);
}

static PJRT_Error *program_make(const char *text, size_t size,
                                const char *options, size_t options_size,
                                PJRT_Client *c, program **out)
{
  fake_signature signature;
  PJRT_Error *error = fake_signature_parse(text, size, &signature);
  if (error != NULL) return error;
  program *p = calloc(1, sizeof *p);
  if (p == NULL) abort();
  atomic_init(&p->refs, 1);
  atomic_fetch_add(&fake_live_objects, 1);
  p->signature = signature;
  p->text = malloc(size + 1);
  if (p->text == NULL) abort();
  memcpy(p->text, text, size);
  p->text_size = size;
  list_results(p);
  CxPjrt__CompileOptions *read = cx_pjrt__compile_options__unpack(
      NULL, options_size, (const uint8_t *)options);
  error = read == NULL ? fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                                    "fake: bad compile options")
                       : apply(p, read, c);
  if (read != NULL) cx_pjrt__compile_options__free_unpacked(read, NULL);
  if (error != NULL) {
    program_release(p);
    return error;
  }
  *out = p;
  return NULL;
}

static PJRT_Error *client_compile(PJRT_Client_Compile_Args *args)
{
  if (args->program->format_size != 4 ||
      memcmp(args->program->format, "mlir", 4) != 0) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "fake: bad format");
  }
  program *p = NULL;
  PJRT_Error *error = program_make(
      args->program->code, args->program->code_size, args->compile_options,
      args->compile_options_size, args->client, &p);
  if (error == NULL && fake_loses("output")) {
    program_release(p);
    p = NULL;
  }
  args->executable = (PJRT_LoadedExecutable *)p;
  return error;
}

// ---- launching ----

typedef struct run {
  program *p;
  PJRT_Buffer **in;
  PJRT_Buffer **out;
  PJRT_Event *done;
  bool late;
  int code;
  char text[128];
} run;

// The argument that result i copies.
static const PJRT_Buffer *source(const run *r, size_t i)
{
  const fake_signature *s = &r->p->signature;
  if (i < s->n_params && fake_shape_equal(&s->params[i], &s->results[i])) {
    return r->in[i];
  }
  for (size_t k = 0; k < s->n_params; k++) {
    if (fake_shape_equal(&s->params[k], &s->results[i])) return r->in[k];
  }
  return NULL;
}

static void run_program(void *user)
{
  run *r = user;
  const fake_signature *s = &r->p->signature;
  int code = r->late ? r->code : 0;
  for (size_t k = 0; k < s->n_params && code == 0; k++) {
    code = fake_event_wait(r->in[k]->ready, r->text);
  }
  for (size_t i = 0; i < s->n_results; i++) {
    const PJRT_Buffer *from = source(r, i);
    if (code == 0 && from != NULL) {
      memcpy(r->out[i]->data, from->data, fake_shape_bytes(&from->shape));
    }
    fake_event_set(r->out[i]->ready, code, r->text);
    fake_buffer_release(r->out[i]);
  }
  for (size_t k = 0; k < s->n_params; k++) fake_buffer_release(r->in[k]);
  fake_event_set(r->done, code, r->text);
  fake_event_release(r->done);
  program_release(r->p);
  free(r->in);
  free(r->out);
  free(r);
}

static PJRT_Error *check_arguments(const program *p, const PJRT_Device *device,
                                   PJRT_Buffer *const *args)
{
  for (size_t k = 0; k < p->signature.n_params; k++) {
    if (!fake_shape_equal(&args[k]->shape, &p->signature.params[k]) ||
        args[k]->device != device) {
      return fake_error(PJRT_Error_Code_INTERNAL,
                        "fake: argument %zu would have ended the process", k);
    }
    if (atomic_load(&args[k]->deleted)) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "Buffer has been deleted or donated.");
    }
  }
  return NULL;
}

static void launch(program *p, PJRT_Device *device, PJRT_Buffer *const *args,
                   PJRT_Buffer **outputs, PJRT_Event **done)
{
  const fake_signature *s = &p->signature;
  run *r = calloc(1, sizeof *r);
  if (r == NULL) abort();
  r->p = p;
  atomic_fetch_add(&p->refs, 1);
  r->in = calloc(s->n_params + 1, sizeof *r->in);
  r->out = calloc(s->n_results + 1, sizeof *r->out);
  if (r->in == NULL || r->out == NULL) abort();
  r->late = fake_enter_launch(&r->code, r->text);
  for (size_t k = 0; k < s->n_params; k++) {
    r->in[k] = fake_buffer_keep(args[k]);
    if (s->donated[k]) atomic_store(&args[k]->deleted, true);
  }
  for (size_t i = 0; i < s->n_results; i++) {
    r->out[i] = fake_buffer_new(device, &s->results[i], true);
    outputs[i] = fake_buffer_keep(r->out[i]);
  }
  if (fake_loses("output") && s->n_results > 0) {
    fake_buffer_release(outputs[0]);
    outputs[0] = NULL;
  }
  r->done = fake_event_new();
  if (done != NULL) {
    *done = fake_loses("event") ? NULL : fake_event_keep(r->done);
  }
  fake_work(device->client, run_program, r);
}

static PJRT_Error *execute(PJRT_LoadedExecutable_Execute_Args *args)
{
  program *p = loaded(args->executable);
  if (args->options == NULL || args->options->launch_id < 0 ||
      args->num_args != p->signature.n_params ||
      args->num_devices !=
          (args->execute_device != NULL ? 1 : (size_t)p->replicas)) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "fake: bad launch");
  }
  for (size_t d = 0; d < args->num_devices; d++) {
    PJRT_Device *device =
        args->execute_device != NULL ? args->execute_device : p->devices[d];
    PJRT_Error *error = check_arguments(p, device, args->argument_lists[d]);
    if (error != NULL) return error;
  }
  fake_note_launch(args->options->launch_id);
  for (size_t d = 0; d < args->num_devices; d++) {
    PJRT_Device *device =
        args->execute_device != NULL ? args->execute_device : p->devices[d];
    launch(p, device, args->argument_lists[d], args->output_lists[d],
           args->device_complete_events == NULL
               ? NULL
               : &args->device_complete_events[d]);
  }
  return NULL;
}

// ---- questions ----

static PJRT_Error *get_executable(
    PJRT_LoadedExecutable_GetExecutable_Args *args)
{
  program *p = loaded(args->loaded_executable);
  atomic_fetch_add(&p->refs, 1);
  args->executable = (PJRT_Executable *)p;
  return NULL;
}

static PJRT_Error *executable_destroy(PJRT_Executable_Destroy_Args *args)
{
  program_release(bare(args->executable));
  return NULL;
}

static PJRT_Error *loaded_destroy(PJRT_LoadedExecutable_Destroy_Args *args)
{
  program_release(loaded(args->executable));
  return NULL;
}

static PJRT_Error *loaded_devices(
    PJRT_LoadedExecutable_AddressableDevices_Args *args)
{
  program *p = loaded(args->executable);
  args->addressable_devices = p->devices;
  args->num_addressable_devices = (size_t)p->replicas;
  return NULL;
}

static PJRT_Error *num_outputs(PJRT_Executable_NumOutputs_Args *args)
{
  args->num_outputs = bare(args->executable)->signature.n_results;
  if (fake_outputs() >= 0) args->num_outputs = (size_t)fake_outputs();
  return NULL;
}

static PJRT_Error *output_types(PJRT_Executable_OutputElementTypes_Args *args)
{
  program *p = bare(args->executable);
  args->output_types = p->types;
  args->num_output_types = p->signature.n_results;
  return NULL;
}

static PJRT_Error *output_dims(PJRT_Executable_OutputDimensions_Args *args)
{
  program *p = bare(args->executable);
  args->num_outputs = p->signature.n_results;
  args->dims = p->dims;
  args->dim_sizes = p->ranks;
  return NULL;
}

static PJRT_Error *memory_stats(
    PJRT_Executable_GetCompiledMemoryStats_Args *args)
{
  const fake_signature *s = &bare(args->executable)->signature;
  args->generated_code_size_in_bytes = 7;
  args->argument_size_in_bytes = 0;
  args->output_size_in_bytes = 0;
  args->alias_size_in_bytes = 0;
  args->temp_size_in_bytes = 5;
  for (size_t i = 0; i < s->n_params; i++) {
    int64_t bytes = (int64_t)fake_shape_bytes(&s->params[i]);
    args->argument_size_in_bytes += bytes;
    if (s->donated[i]) args->alias_size_in_bytes += bytes;
  }
  for (size_t i = 0; i < s->n_results; i++) {
    args->output_size_in_bytes += (int64_t)fake_shape_bytes(&s->results[i]);
  }
  if (fake_minor() >= 72) args->peak_memory_in_bytes = 9;
  return NULL;
}

static PJRT_Error *cost_analysis(PJRT_Executable_GetCostAnalysis_Args *args)
{
  static const PJRT_NamedValue costs[] = {
    { .name = "flops per second",
      .name_size = 16,
      .type = PJRT_NamedValue_kFloat,
      .float_value = 3,
      .value_size = 1 },
    { .name = "flops",
      .name_size = 5,
      .type = PJRT_NamedValue_kFloat,
      .float_value = 12,
      .value_size = 1 },
  };
  args->properties = costs;
  args->num_properties = 2;
  return NULL;
}

// ---- saving ----

static void serialized_free(PJRT_SerializedExecutable *owner)
{
  atomic_fetch_sub(&fake_live_objects, 1);
  free(owner);
}

static PJRT_Error *serialize(PJRT_Executable_Serialize_Args *args)
{
  const program *p = bare(args->executable);
  size_t size = sizeof MAGIC + p->text_size;
  char *bytes = malloc(size);
  if (bytes == NULL) abort();
  memcpy(bytes, MAGIC, sizeof MAGIC);
  memcpy(bytes + sizeof MAGIC, p->text, p->text_size);
  atomic_fetch_add(&fake_live_objects, 1);
  args->serialized_bytes = bytes;
  args->serialized_bytes_size = size;
  args->serialized_executable = (PJRT_SerializedExecutable *)bytes;
  args->serialized_executable_deleter = serialized_free;
  return NULL;
}

static PJRT_Error *deserialize(PJRT_Executable_DeserializeAndLoad_Args *args)
{
  if (args->serialized_executable_size < sizeof MAGIC ||
      memcmp(args->serialized_executable, MAGIC, sizeof MAGIC) != 0) {
    return fake_error(PJRT_Error_Code_INTERNAL, "fake: not a program of mine");
  }
  program *p = NULL;
  PJRT_Error *error = program_make(
      args->serialized_executable + sizeof MAGIC,
      args->serialized_executable_size - sizeof MAGIC,
      args->overridden_serialized_compile_options,
      args->overridden_serialized_compile_options_size, args->client, &p);
  args->loaded_executable = (PJRT_LoadedExecutable *)p;
  return error;
}

// ---- topologies ----

static PJRT_Error *topology_create(PJRT_TopologyDescription_Create_Args *args)
{
  if (args->topology_name_size != 8 ||
      memcmp(args->topology_name, "fake:2x2", 8) != 0) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "fake: the only topology is fake:2x2");
  }
  PJRT_TopologyDescription *t = calloc(1, sizeof *t);
  if (t == NULL) abort();
  atomic_fetch_add(&fake_live_objects, 1);
  args->topology = t;
  return NULL;
}

static PJRT_Error *topology_destroy(PJRT_TopologyDescription_Destroy_Args *args)
{
  atomic_fetch_sub(&fake_live_objects, 1);
  free(args->topology);
  return NULL;
}

static PJRT_Error *compile_bare(PJRT_Compile_Args *args)
{
  program *p = NULL;
  PJRT_Error *error =
      program_make(args->program->code, args->program->code_size,
                   args->compile_options, args->compile_options_size, NULL, &p);
  args->executable = (PJRT_Executable *)p;
  return error;
}

void fake_fill_programs(PJRT_Api *api)
{
  api->PJRT_Client_Compile = client_compile;
  api->PJRT_LoadedExecutable_Execute = execute;
  api->PJRT_LoadedExecutable_GetExecutable = get_executable;
  api->PJRT_LoadedExecutable_Destroy = loaded_destroy;
  api->PJRT_LoadedExecutable_AddressableDevices = loaded_devices;
  api->PJRT_Executable_Destroy = executable_destroy;
  api->PJRT_Executable_NumOutputs = num_outputs;
  api->PJRT_Executable_OutputElementTypes = output_types;
  api->PJRT_Executable_OutputDimensions = output_dims;
  api->PJRT_Executable_GetCompiledMemoryStats = memory_stats;
  api->PJRT_Executable_GetCostAnalysis = cost_analysis;
  api->PJRT_Executable_Serialize = serialize;
  api->PJRT_Executable_DeserializeAndLoad = deserialize;
  api->PJRT_TopologyDescription_Create = topology_create;
  api->PJRT_TopologyDescription_Destroy = topology_destroy;
  api->PJRT_Compile = compile_bare;
}
