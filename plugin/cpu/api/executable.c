// api/executable: the properties of executables, and their handles.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "lower/compile.h"

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

CPU_API_GET(PJRT_LoadedExecutable_IsDeleted, executable, is_deleted,
            atomic_load(&args->executable->deleted))

// ---- devices ----

CPU_API_GET_LIST(PJRT_LoadedExecutable_AddressableDevices, executable,
                 addressable_devices, args->executable->local,
                 num_addressable_devices, args->executable->n_local)
CPU_API_GET_LIST(PJRT_LoadedExecutable_AddressableDeviceLogicalIds, executable,
                 addressable_device_logical_ids, args->executable->logical,
                 num_addressable_device_logical_ids, args->executable->n_local)

static void free_assignment(PJRT_DeviceAssignmentSerialized *bytes)
{
  cx_free(bytes);
}

// A portable executable has an empty assignment.
static calx_status *assignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args *args)
{
  const PJRT_LoadedExecutable *e = args->executable;
  args->serialized_bytes = "";
  args->serialized_bytes_size = 0;
  args->serialized_device_assignment = NULL;
  args->serialized_device_assignment_deleter = free_assignment;
  if (e->n_devices == 0) return NULL;
  int *ids = cx_calloc(e->n_devices, sizeof *ids);
  if (ids == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < e->n_devices; i++) {
    ids[i] = e->devices[i]->description.id;
  }
  char *bytes = NULL;
  size_t size = 0;
  calx_status *status =
      cpu_api_assignment_write(ids, e->code->info->n_replicas,
                               e->code->info->n_partitions, &bytes, &size);
  cx_free(ids);
  CALX_TRY(status);
  args->serialized_bytes = bytes;
  args->serialized_bytes_size = size;
  args->serialized_device_assignment = (PJRT_DeviceAssignmentSerialized *)bytes;
  return NULL;
}

CPU_API_CALL(PJRT_LoadedExecutable_GetDeviceAssignment, executable,
             assignment(args))

// ---- properties ----

CPU_API_GET_TEXT(PJRT_Executable_Name, executable, executable_name,
                 args->executable->code->info->name)
CPU_API_GET(PJRT_Executable_NumReplicas, executable, num_replicas,
            args->executable->code->info->n_replicas)
CPU_API_GET(PJRT_Executable_NumPartitions, executable, num_partitions,
            args->executable->code->info->n_partitions)
CPU_API_GET(PJRT_Executable_NumOutputs, executable, num_outputs,
            args->executable->code->info->n_results)
CPU_API_GET(PJRT_Executable_SizeOfGeneratedCodeInBytes, executable,
            size_in_bytes, (int64_t)args->executable->code->info->code_bytes)
CPU_API_GET_TEXT(PJRT_Executable_Fingerprint, executable,
                 executable_fingerprint, args->executable->code->fingerprint)
CPU_API_GET_TEXT(PJRT_LoadedExecutable_Fingerprint, executable,
                 executable_fingerprint, args->executable->code->fingerprint)
CPU_API_GET_LIST(PJRT_Executable_OutputElementTypes, executable, output_types,
                 args->executable->code->result_types, num_output_types,
                 args->executable->code->info->n_results)
CPU_API_GET_LIST(PJRT_Executable_GetCostAnalysis, executable, properties,
                 args->executable->code->costs, num_properties, CPU_API_COSTS)

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
  args->memory_kinds = args->executable->code->result_kinds;
  args->memory_kind_sizes = args->executable->code->result_kind_sizes;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Executable_ParameterMemoryKinds(
    PJRT_Executable_ParameterMemoryKinds_Args *args)
{
  CPU_API_ENTER(PJRT_Executable_ParameterMemoryKinds, executable);
  args->num_parameters = args->executable->code->info->n_params;
  args->memory_kinds = args->executable->code->param_kinds;
  args->memory_kind_sizes = args->executable->code->param_kind_sizes;
  return NULL;
}

// ---- the program ----

// A first call without memory asks for the size.
static calx_status *optimized(const cpu_api_code *code, PJRT_Program *program)
{
  CALX_TRY(cpu_api_check_size("PJRT_Program", PJRT_Program_STRUCT_SIZE,
                              program->struct_size));
  if (code->source.size == 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "PJRT_Executable_OptimizedProgram: the executable was "
                    "loaded, and a saved one has no StableHLO");
  }
  const cpu_lower_compile_options options = { .n_replicas =
                                                  code->info->n_replicas,
                                              .n_partitions =
                                                  code->info->n_partitions };
  cx_text text = { 0 };
  calx_status *status = cpu_lower_optimized(code->source.data,
                                            code->source.size, &options, &text);
  program->format = "mlir";
  program->format_size = strlen(program->format);
  if (status == NULL && program->code != NULL &&
      program->code_size < text.size) {
    status = cx_invalid("the optimized program has %zu bytes, not %zu",
                        text.size, program->code_size);
  }
  if (status == NULL) {
    program->code_size = text.size;
    if (program->code != NULL) memcpy(program->code, text.data, text.size);
  }
  cx_text_free(&text);
  return status;
}

CPU_API_CALL2(PJRT_Executable_OptimizedProgram, executable, program,
              optimized(args->executable->code, args->program))

// ---- memory ----

static int64_t total(const size_t *bytes, size_t n)
{
  size_t sum = 0;
  for (size_t i = 0; i < n; i++) sum += bytes[i];
  return (int64_t)sum;
}

// Callers before 0.72 have no field for the peak.
PJRT_Error *cpu_api_PJRT_Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args *args)
{
  CPU_API_ENTER_FROM(PJRT_Executable_GetCompiledMemoryStats,
                     host_temp_size_in_bytes, executable);
  const cpu_api_code *code = args->executable->code;
  const cpu_run_program_info *info = code->info;
  PJRT_Executable_GetCompiledMemoryStats_Args stats = {
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
      stats.alias_size_in_bytes += (int64_t)code->result_bytes[i];
    }
  }
  stats.total_size_in_bytes =
      stats.argument_size_in_bytes + stats.output_size_in_bytes -
      stats.alias_size_in_bytes + stats.temp_size_in_bytes;
  stats.peak_memory_in_bytes = stats.total_size_in_bytes;
  stats.total_allocation_bytes = stats.total_size_in_bytes;
  stats.peak_unpadded_heap_bytes = stats.total_size_in_bytes;
  size_t size =
      args->struct_size < sizeof stats ? args->struct_size : sizeof stats;
  memcpy(args, &stats, size);
  return NULL;
}

// ---- as bytes ----

static void free_serialized(PJRT_SerializedExecutable *bytes)
{
  cx_free(bytes);
}

static calx_status *serialize(PJRT_Executable_Serialize_Args *args)
{
  cx_text bytes = { 0 };
  calx_status *status = cpu_api_executable_save(args->executable->code, &bytes);
  if (status != NULL) {
    cx_text_free(&bytes);
    return status;
  }
  args->serialized_bytes_size = bytes.size;
  args->serialized_bytes = cx_text_take(&bytes);
  args->serialized_executable =
      (PJRT_SerializedExecutable *)(uintptr_t)args->serialized_bytes;
  args->serialized_executable_deleter = free_serialized;
  return NULL;
}

CPU_API_CALL(PJRT_Executable_Serialize, executable, serialize(args))

static void keep_options(PJRT_SerializedCompileOptions *bytes)
{
  (void)bytes;  // they belong to the executable
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
