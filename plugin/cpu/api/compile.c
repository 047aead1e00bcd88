// api/compile: programs become executables.
//
// A program is text or bytecode. Compilation measures kernels on threads of its
// own, which are as many as a device has, so a client compiles one program at a
// time. Launches run on the devices' threads meanwhile.
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "lower/compile.h"

static bool is_format(const PJRT_Program *p, const char *name)
{
  return p->format_size == strlen(name) &&
         memcmp(p->format, name, p->format_size) == 0;
}

static calx_status *check_program(const PJRT_Program *p)
{
  CALX_TRY(cpu_api_check_size("PJRT_Program", PJRT_Program_STRUCT_SIZE,
                              p->struct_size));
  if (p->code == NULL || p->format == NULL) {
    return cx_invalid("a program without code or format");
  }
  int shown = p->format_size < 40 ? (int)p->format_size : 40;
  if (is_format(p, "hlo") || is_format(p, "hlo_with_config")) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "a program of format '%.*s'; this engine reads StableHLO, "
                    "with format 'mlir'",
                    shown, p->format);
  }
  if (!is_format(p, "mlir")) {
    return cx_invalid("Unknown program format '%.*s'.", shown, p->format);
  }
  return NULL;
}

static calx_status *compile(const PJRT_Program *program,
                            const cpu_api_options *options,
                            cpu_threads *threads, cpu_api_code **out)
{
  CALX_TRY(check_program(program));
  cx_text shardings = { 0 };
  cpu_lower_compile_options wanted = { .n_replicas = options->n_replicas,
                                       .n_partitions = options->n_partitions,
                                       .shardings = &shardings,
                                       .threads = threads };
  cpu_run_program *made = NULL;
  calx_status *status =
      cpu_lower_compile(program->code, program->code_size, &wanted, &made);
  if (status == NULL) {
    status = cpu_api_code_new(made, program, options->bytes, options->size,
                              &shardings, out);
  }
  cx_text_free(&shardings);
  return status;
}

static calx_status *compile_for_client(const PJRT_Client_Compile_Args *args,
                                       const cpu_api_options *options,
                                       PJRT_LoadedExecutable **out)
{
  PJRT_Client *client = args->client;
  uint64_t wanted =
      (uint64_t)(options->n_replicas == 0 ? 1 : options->n_replicas) *
      (options->n_partitions == 0 ? 1 : options->n_partitions);
  if (wanted > client->n_devices) {  // checked before the long compilation
    return cx_invalid(
        "No matching device found for device_id %zu: a program for %u replicas "
        "of %u partitions, %zu devices",
        client->n_devices, options->n_replicas, options->n_partitions,
        client->n_devices);
  }
  cpu_api_code *code = NULL;
  cx_lock(&client->compile_lock);
  calx_status *status =
      compile(args->program, options, client->compile_threads, &code);
  cx_unlock(&client->compile_lock);
  return status != NULL ? status : cpu_api_load(client, code, options, out);
}

PJRT_Error *cpu_api_PJRT_Client_Compile(PJRT_Client_Compile_Args *args)
{
  CPU_API_ENTER(PJRT_Client_Compile, client);
  CPU_API_ENTER(PJRT_Client_Compile, program);
  args->executable = NULL;
  cpu_api_options options;
  calx_status *status = cpu_api_options_parse(
      args->compile_options, args->compile_options_size, &options);
  if (status == NULL) {
    status = compile_for_client(args, &options, &args->executable);
  }
  cpu_api_options_clear(&options);
  return cpu_api_error(status);
}

// ---- without a client ----

static calx_status *compile_alone(const PJRT_Compile_Args *args,
                                  const cpu_api_options *options,
                                  PJRT_Executable **out)
{
  const int n = cpu_threads_cores() / (int)args->topology->n;
  cpu_threads *threads = NULL;
  cpu_api_code *code = NULL;
  PJRT_Executable *e = cx_alloc(sizeof *e);
  if (e == NULL) return cx_out_of_memory();
  calx_status *status = cpu_threads_new(n > 1 ? n : 1, &threads);
  if (status == NULL) status = compile(args->program, options, threads, &code);
  if (status != NULL) {
    cpu_threads_free(threads);
    cx_free(e);
    return status;
  }
  code->threads = threads;
  e->code = code;
  *out = e;
  return NULL;
}

PJRT_Error *cpu_api_PJRT_Compile(PJRT_Compile_Args *args)
{
  CPU_API_ENTER(PJRT_Compile, topology);
  CPU_API_ENTER(PJRT_Compile, program);
  args->executable = NULL;
  cpu_api_options options;
  calx_status *status = cpu_api_options_parse(
      args->compile_options, args->compile_options_size, &options);
  if (status == NULL) {
    status = compile_alone(args, &options, &args->executable);
  }
  cpu_api_options_clear(&options);
  return cpu_api_error(status);
}

// ---- loading compiled programs ----

// Loads with the caller's options, or else with those of the compilation. Takes
// the code, also on failure.
static calx_status *load(PJRT_Client *client, cpu_api_code *code,
                         const char *bytes, size_t size,
                         PJRT_LoadedExecutable **out)
{
  cpu_api_options options;
  bool given = bytes != NULL && size > 0;
  calx_status *status =
      cpu_api_options_parse(given ? bytes : code->options,
                            given ? size : code->options_size, &options);
  if (status != NULL) {
    cpu_api_code_release(code);
    return status;
  }
  status = cpu_api_load(client, code, &options, out);
  cpu_api_options_clear(&options);
  return status;
}

PJRT_Error *cpu_api_PJRT_Client_Load(PJRT_Client_Load_Args *args)
{
  CPU_API_ENTER(PJRT_Client_Load, client);
  CPU_API_ENTER(PJRT_Client_Load, executable);
  args->loaded_executable = NULL;
  cpu_api_code_retain(args->executable->code);
  return cpu_api_error(load(args->client, args->executable->code,
                            args->compile_options, args->compile_options_size,
                            &args->loaded_executable));
}

PJRT_Error *cpu_api_PJRT_Executable_DeserializeAndLoad(
    PJRT_Executable_DeserializeAndLoad_Args *args)
{
  CPU_API_ENTER_FROM(PJRT_Executable_DeserializeAndLoad, loaded_executable,
                     client);
  PJRT_Client *client = args->client;
  cpu_api_code *code = NULL;
  args->loaded_executable = NULL;
  cx_lock(&client->compile_lock);
  calx_status *status = cpu_api_executable_read(
      args->serialized_executable, args->serialized_executable_size,
      client->compile_threads, &code);
  cx_unlock(&client->compile_lock);
  if (status != NULL) return cpu_api_error(status);
  const bool has =
      CPU_API_HAS(args, overridden_serialized_compile_options_size);
  return cpu_api_error(load(
      client, code, has ? args->overridden_serialized_compile_options : NULL,
      has ? args->overridden_serialized_compile_options_size : 0,
      &args->loaded_executable));
}
