// api/executable: what is told about executables.
//
// A compiled program and its facts are one counted object; the handles of an
// executable and of a loaded executable both point to it. All lists that a
// caller may ask for are made once, with it.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"

#define MEMORY_KIND "device"

// ---- the facts ----

static void code_free(cpu_api_code *c)
{
  cpu_run_program_free(c->program);
  cpu_threads_free(c->pool);
  cx_free(c->options);
  cx_free(c->params);
  cx_free(c->results);
  cx_free(c->param_bytes);
  cx_free(c->result_bytes);
  cx_free(c->may_give);
  cx_free(c->result_types);
  cx_free(c->result_dims);
  cx_free(c->result_ranks);
  cx_free(c->kinds);
  cx_free(c->kind_sizes);
  cx_free(c->param_layouts);
  cx_free(c->result_layouts);
  cx_free(c);
}

void cpu_api_code_retain(cpu_api_code *code)
{
  atomic_fetch_add_explicit(&code->refs, 1, memory_order_relaxed);
}

void cpu_api_code_release(cpu_api_code *code)
{
  if (code != NULL &&
      atomic_fetch_sub_explicit(&code->refs, 1, memory_order_acq_rel) == 1) {
    code_free(code);
  }
}

static calx_status *read_types(const cx_hlo_type *types, size_t n,
                               const char *what, cpu_api_shape *shapes,
                               size_t *bytes,
                               PJRT_Layouts_MemoryLayout **layouts)
{
  for (size_t i = 0; i < n; i++) {
    int64_t elements = 0;
    shapes[i] = (cpu_api_shape){ .type = cpu_api_type_of(types[i].elem),
                                 .rank = types[i].rank,
                                 .dims = types[i].dims };
    if (shapes[i].type == PJRT_Buffer_Type_INVALID) {
      return cx_error(CALX_UNIMPLEMENTED,
                      "%s %zu has type %s, which no buffer can have", what, i,
                      cx_hlo_shape(&types[i]).s);
    }
    CALX_TRY(cx_annotate(cpu_api_shape_check(&shapes[i], &elements, &bytes[i]),
                         "%s %zu", what, i));
    layouts[i] = cpu_api_layout_of(types[i].rank);
  }
  return NULL;
}

static calx_status *make_lists(cpu_api_code *c)
{
  const cpu_run_program_info *info = c->info;
  size_t n = info->n_params;
  size_t m = info->n_results;
  size_t more = n > m ? n : m;
  size_t dims = 0;
  for (size_t i = 0; i < m; i++) dims += info->results[i].rank;
  c->params = cx_calloc(n, sizeof *c->params);
  c->results = cx_calloc(m, sizeof *c->results);
  c->param_bytes = cx_calloc(n, sizeof *c->param_bytes);
  c->result_bytes = cx_calloc(m, sizeof *c->result_bytes);
  c->may_give = cx_calloc(n, sizeof *c->may_give);
  c->result_types = cx_calloc(m, sizeof *c->result_types);
  c->result_dims = cx_calloc(dims, sizeof *c->result_dims);
  c->result_ranks = cx_calloc(m, sizeof *c->result_ranks);
  c->kinds = cx_calloc(more, sizeof *c->kinds);
  c->kind_sizes = cx_calloc(more, sizeof *c->kind_sizes);
  c->param_layouts = cx_calloc(n, sizeof(void *));
  c->result_layouts = cx_calloc(m, sizeof(void *));
  if (c->params == NULL || c->results == NULL || c->param_bytes == NULL ||
      c->result_bytes == NULL || c->may_give == NULL ||
      c->result_types == NULL || c->result_dims == NULL ||
      c->result_ranks == NULL || c->kinds == NULL || c->kind_sizes == NULL ||
      c->param_layouts == NULL || c->result_layouts == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < more; i++) {
    c->kinds[i] = MEMORY_KIND;
    c->kind_sizes[i] = strlen(MEMORY_KIND);
  }
  return NULL;
}

static calx_status *fill(cpu_api_code *c)
{
  const cpu_run_program_info *info = c->info;
  CALX_TRY(make_lists(c));
  CALX_TRY(read_types(info->params, info->n_params, "parameter", c->params,
                      c->param_bytes, c->param_layouts));
  CALX_TRY(read_types(info->results, info->n_results, "result", c->results,
                      c->result_bytes, c->result_layouts));
  int64_t *dims = c->result_dims;
  for (size_t i = 0; i < info->n_results; i++) {
    c->result_types[i] = (PJRT_Buffer_Type)c->results[i].type;
    c->result_ranks[i] = c->results[i].rank;
    for (size_t k = 0; k < c->results[i].rank; k++) {
      *dims++ = c->results[i].dims[k];
    }
    int32_t from = info->alias == NULL ? -1 : info->alias[i];
    if (from >= 0 && (size_t)from < info->n_params) c->may_give[from] = true;
  }
  cx_hash_hex(info->fingerprint, c->fingerprint);
  c->costs[0] = (PJRT_NamedValue){ CX_PJRT_ARGS(PJRT_NamedValue),
                                   .name = "optimal_seconds",
                                   .name_size = strlen("optimal_seconds"),
                                   .type = PJRT_NamedValue_kFloat,
                                   .float_value = (float)(info->cost_ns * 1e-9),
                                   .value_size = 1 };
  return NULL;
}

calx_status *cpu_api_code_new(cpu_run_program *program, const char *options,
                              size_t options_size, cpu_api_code **out)
{
  *out = NULL;
  cpu_api_code *c = cx_calloc(1, sizeof *c);
  if (c == NULL) {
    cpu_run_program_free(program);
    return cx_out_of_memory();
  }
  atomic_init(&c->refs, 1);
  c->program = program;
  c->info = cpu_run_program_info_of(program);
  c->options = cx_alloc(options_size);
  calx_status *status = c->options == NULL ? cx_out_of_memory() : fill(c);
  if (status == NULL && options_size > 0) {
    memcpy(c->options, options, options_size);
    c->options_size = options_size;
  }
  if (status != NULL) {
    code_free(c);
    return status;
  }
  *out = c;
  return NULL;
}

// ---- handles ----

PJRT_Error *cpu_api_PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_Destroy, struct_size);
  if (args->executable == NULL) return NULL;
  cpu_api_code_release(args->executable->code);
  cx_free(args->executable);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_Destroy(
    PJRT_LoadedExecutable_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_Destroy, struct_size);
  cpu_api_loaded_release(args->executable);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_GetExecutable(
    PJRT_LoadedExecutable_GetExecutable_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_GetExecutable, loaded_executable);
  PJRT_Executable *e = cx_alloc(sizeof *e);
  args->executable = e;
  if (e == NULL) return cpu_api_error(cx_out_of_memory());
  e->code = args->loaded_executable->code;
  cpu_api_code_retain(e->code);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_Delete(
    PJRT_LoadedExecutable_Delete_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_Delete, executable);
  atomic_store(&args->executable->deleted, true);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_IsDeleted(
    PJRT_LoadedExecutable_IsDeleted_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_IsDeleted, executable);
  args->is_deleted = atomic_load(&args->executable->deleted);
  return NULL;
}

// ---- where it runs ----

PJRT_Error *cpu_api_PJRT_LoadedExecutable_AddressableDevices(
    PJRT_LoadedExecutable_AddressableDevices_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_AddressableDevices, executable);
  args->addressable_devices = args->executable->local;
  args->num_addressable_devices = args->executable->n_local;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_AddressableDeviceLogicalIds, executable);
  args->addressable_device_logical_ids = args->executable->logical;
  args->num_addressable_device_logical_ids = args->executable->n_local;
  return NULL;
}

static void free_assignment(PJRT_DeviceAssignmentSerialized *bytes)
{
  cx_free(bytes);
}

// Empty for a portable executable.
PJRT_Error *cpu_api_PJRT_LoadedExecutable_GetDeviceAssignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_GetDeviceAssignment, executable);
  const PJRT_LoadedExecutable *e = args->executable;
  args->serialized_bytes = "";
  args->serialized_bytes_size = 0;
  args->serialized_device_assignment = NULL;
  args->serialized_device_assignment_deleter = free_assignment;
  if (e->n_devices == 0) return NULL;
  int *ids = cx_calloc(e->n_devices, sizeof *ids);
  if (ids == NULL) return cpu_api_error(cx_out_of_memory());
  for (size_t i = 0; i < e->n_devices; i++) {
    ids[i] = e->devices[i]->description.id;
  }
  char *bytes = NULL;
  size_t size = 0;
  calx_status *status =
      cpu_api_assignment_write(ids, e->code->info->n_replicas,
                               e->code->info->n_partitions, &bytes, &size);
  cx_free(ids);
  if (status != NULL) return cpu_api_error(status);
  args->serialized_bytes = bytes;
  args->serialized_bytes_size = size;
  args->serialized_device_assignment = (PJRT_DeviceAssignmentSerialized *)bytes;
  return NULL;
}

// ---- what it is ----

PJRT_Error *cpu_api_PJRT_Executable_Name(PJRT_Executable_Name_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_Name, executable);
  args->executable_name = args->executable->code->info->name;
  args->executable_name_size = strlen(args->executable_name);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_NumReplicas(
    PJRT_Executable_NumReplicas_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_NumReplicas, executable);
  args->num_replicas = args->executable->code->info->n_replicas;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_NumPartitions(
    PJRT_Executable_NumPartitions_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_NumPartitions, executable);
  args->num_partitions = args->executable->code->info->n_partitions;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_NumOutputs(
    PJRT_Executable_NumOutputs_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_NumOutputs, executable);
  args->num_outputs = args->executable->code->info->n_results;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_SizeOfGeneratedCodeInBytes(
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_SizeOfGeneratedCodeInBytes, executable);
  args->size_in_bytes = (int64_t)args->executable->code->info->code_bytes;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_Fingerprint(
    PJRT_Executable_Fingerprint_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_Fingerprint, executable);
  args->executable_fingerprint = args->executable->code->fingerprint;
  args->executable_fingerprint_size = strlen(args->executable_fingerprint);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_LoadedExecutable_Fingerprint(
    PJRT_LoadedExecutable_Fingerprint_Args *args)
{
  CPU_API_ENTER(PJRT_LoadedExecutable_Fingerprint, executable);
  args->executable_fingerprint = args->executable->code->fingerprint;
  args->executable_fingerprint_size = strlen(args->executable_fingerprint);
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_OutputElementTypes(
    PJRT_Executable_OutputElementTypes_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_OutputElementTypes, executable);
  args->output_types = args->executable->code->result_types;
  args->num_output_types = args->executable->code->info->n_results;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_OutputDimensions(
    PJRT_Executable_OutputDimensions_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_OutputDimensions, executable);
  args->num_outputs = args->executable->code->info->n_results;
  args->dims = args->executable->code->result_dims;
  args->dim_sizes = args->executable->code->result_ranks;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_OutputMemoryKinds(
    PJRT_Executable_OutputMemoryKinds_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_OutputMemoryKinds, executable);
  args->num_outputs = args->executable->code->info->n_results;
  args->memory_kinds = args->executable->code->kinds;
  args->memory_kind_sizes = args->executable->code->kind_sizes;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_ParameterMemoryKinds(
    PJRT_Executable_ParameterMemoryKinds_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_ParameterMemoryKinds, executable);
  args->num_parameters = args->executable->code->info->n_params;
  args->memory_kinds = args->executable->code->kinds;
  args->memory_kind_sizes = args->executable->code->kind_sizes;
  return NULL;
}

// ---- what it costs ----

PJRT_Error *cpu_api_PJRT_Executable_GetCostAnalysis(
    PJRT_Executable_GetCostAnalysis_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_GetCostAnalysis, executable);
  args->properties = args->executable->code->costs;
  args->num_properties = 1;
  return NULL;
}

static int64_t total(const size_t *bytes, size_t n)
{
  size_t sum = 0;
  for (size_t i = 0; i < n; i++) sum += bytes[i];
  return (int64_t)sum;
}

// Callers from before 0.72 have no field for the peak.
PJRT_Error *cpu_api_PJRT_Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args *args)
{
  CPU_API_ENTER_FROM(PJRT_Executable_GetCompiledMemoryStats,
                     host_temp_size_in_bytes, executable);
  const cpu_api_code *code = args->executable->code;
  const cpu_run_program_info *info = code->info;
  PJRT_Executable_GetCompiledMemoryStats_Args told = {
    .struct_size = args->struct_size,
    .extension_start = args->extension_start,
    .executable = args->executable,
    .generated_code_size_in_bytes = (int64_t)info->code_bytes,
    .argument_size_in_bytes = total(code->param_bytes, info->n_params),
    .output_size_in_bytes = total(code->result_bytes, info->n_results),
    .temp_size_in_bytes = (int64_t)(info->arena_bytes + info->constant_bytes)
  };
  for (size_t i = 0; i < info->n_results; i++) {
    if (info->alias != NULL && info->alias[i] >= 0) {
      told.alias_size_in_bytes += (int64_t)code->result_bytes[i];
    }
  }
  told.total_size_in_bytes = told.argument_size_in_bytes +
                             told.output_size_in_bytes -
                             told.alias_size_in_bytes + told.temp_size_in_bytes;
  told.peak_memory_in_bytes = told.total_size_in_bytes;
  told.total_allocation_bytes = told.total_size_in_bytes;
  told.peak_unpadded_heap_bytes = told.total_size_in_bytes;
  size_t size =
      args->struct_size < sizeof told ? args->struct_size : sizeof told;
  memcpy(args, &told, size);
  return NULL;
}

// ---- as bytes ----

static void free_serialized(PJRT_SerializedExecutable *bytes)
{
  cx_free(bytes);
}

PJRT_Error *cpu_api_PJRT_Executable_Serialize(
    PJRT_Executable_Serialize_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_Serialize, executable);
  cx_text bytes = { 0 };
  calx_status *status = cpu_api_executable_save(args->executable->code, &bytes);
  if (status != NULL) {
    cx_text_free(&bytes);
    return cpu_api_error(status);
  }
  args->serialized_bytes_size = bytes.size;
  args->serialized_bytes = cx_text_take(&bytes);
  args->serialized_executable =
      (PJRT_SerializedExecutable *)(uintptr_t)args->serialized_bytes;
  args->serialized_executable_deleter = free_serialized;
  return NULL;
}

static void keep_options(PJRT_SerializedCompileOptions *bytes)
{
  (void)bytes;  // the executable's
}

PJRT_Error *cpu_api_PJRT_Executable_GetCompileOptions(
    PJRT_Executable_GetCompileOptions_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_GetCompileOptions, executable);
  const cpu_api_code *code = args->executable->code;
  args->serialized_bytes = code->options;
  args->serialized_bytes_size = code->options_size;
  args->serialized_compile_options =
      (PJRT_SerializedCompileOptions *)(uintptr_t)code->options;
  args->serialized_compile_options_deleter = keep_options;
  return NULL;
}
