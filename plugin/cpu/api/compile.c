// api/compile: programs become executables.
//
// A program is text. Compiling serves one caller at a time, because it measures
// on a pool of threads that is as large as a device's; what runs meanwhile runs
// on the devices' own.
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "lower/compile.h"

// ---- loading: an executable on a client's devices ----

void cpu_api_loaded_release(PJRT_LoadedExecutable *executable)
{
  if (executable == NULL ||
      atomic_fetch_sub_explicit(&executable->refs, 1, memory_order_acq_rel) !=
          1) {
    return;
  }
  cpu_api_code_release(executable->code);
  cx_free(executable->devices);
  cx_free(executable->local);
  cx_free(executable->numbers);
  cx_free(executable->logical);
  cpu_api_client_release(executable->client);
  cx_free(executable);
}

static calx_status *assign(PJRT_LoadedExecutable *e,
                           const cpu_api_options *options, size_t slot, int id)
{
  if (id < 0 || (size_t)id >= e->client->n_devices) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "No matching device found for device_id %d: there are %zu",
                    id, e->client->n_devices);
  }
  size_t n_partitions = e->code->info->n_partitions;
  e->devices[slot] = e->client->device_list[id];
  if (e->devices[slot]->local) {
    e->local[e->n_local] = e->devices[slot];
    e->logical[e->n_local].replica = (int)(slot / n_partitions);
    e->logical[e->n_local].partition = (int)(slot % n_partitions);
    e->n_local++;
  }
  for (size_t i = 0; i < slot; i++) {
    if (e->devices[i] == e->devices[slot]) {
      return cx_error(CALX_INVALID_ARGUMENT,
                      "device %d is assigned %zu shares of '%s'%s", id,
                      (size_t)2, e->code->info->name,
                      options->n_assigned > 0 ? "" : " by default");
    }
  }
  return NULL;
}

// A program with collectives has a number for its list of devices.
static calx_status *find_device_group(PJRT_LoadedExecutable *e)
{
  if (e->n_local == 0) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s' is for device %d%s, of other processes than %u",
                    e->code->info->name, e->devices[0]->description.id,
                    e->n_devices > 1 ? " and others" : "",
                    e->client->world.process);
  }
  if (e->n_devices == 1 || !e->code->info->has_collectives) {
    return NULL;
  }
  e->numbers = cx_calloc(e->n_devices, sizeof *e->numbers);
  if (e->numbers == NULL) return cx_out_of_memory();
  for (size_t i = 0; i < e->n_devices; i++) {
    e->numbers[i] = (uint32_t)e->devices[i]->description.id;
  }
  return cx_annotate(cpu_coll_device_group(e->client->coll, e->numbers,
                                           e->n_devices, &e->device_group),
                     "'%s'", e->code->info->name);
}

static calx_status *assign_all(PJRT_LoadedExecutable *e,
                               const cpu_api_options *options)
{
  const cpu_run_program_info *info = e->code->info;
  size_t n = (size_t)info->n_replicas * info->n_partitions;
  if (n > e->client->n_devices) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s' is for %u replicas of %u partitions, there are %zu "
                    "devices",
                    info->name, info->n_replicas, info->n_partitions,
                    e->client->n_devices);
  }
  if (options->n_assigned > 0 && options->n_assigned != n) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "'%s' is for %zu devices, the assignment has %zu",
                    info->name, n, options->n_assigned);
  }
  e->devices = cx_calloc(n, sizeof(PJRT_Device *));
  e->local = cx_calloc(n, sizeof(PJRT_Device *));
  e->logical = cx_calloc(n, sizeof *e->logical);
  if (e->devices == NULL || e->local == NULL || e->logical == NULL) {
    return cx_out_of_memory();
  }
  e->n_devices = n;
  for (size_t i = 0; i < n; i++) {
    int id = n == 1 ? (int)e->client->first : (int)i;
    if (options->n_assigned > 0) {
      id = options->assigned[i];
    } else if (n == 1 && options->device >= 0) {
      const int most = CPU_API_MAX_DEVICES;
      id = (int)e->client->first;
      id += options->device < most ? options->device : most;
    }
    CALX_TRY(assign(e, options, i, id));
  }
  return find_device_group(e);
}

calx_status *cpu_api_load(PJRT_Client *client, cpu_api_code *code,
                          const cpu_api_options *options,
                          PJRT_LoadedExecutable **out)
{
  *out = NULL;
  PJRT_LoadedExecutable *e = cx_calloc(1, sizeof *e);
  if (e == NULL) {
    cpu_api_code_release(code);
    return cx_out_of_memory();
  }
  atomic_init(&e->refs, 1);
  atomic_init(&e->deleted, false);
  e->client = client;
  cpu_api_client_retain(client);
  e->code = code;
  bool single = code->info->n_replicas <= 1 && code->info->n_partitions <= 1;
  e->portable = options->portable && single;
  calx_status *status = NULL;
  if (options->portable && !single) {
    status = cx_error(CALX_INVALID_ARGUMENT,
                      "'%s' is for %u replicas of %u partitions and cannot be "
                      "portable",
                      code->info->name, code->info->n_replicas,
                      code->info->n_partitions);
  }
  if (status == NULL && !e->portable) status = assign_all(e, options);
  if (status != NULL) {
    cpu_api_loaded_release(e);
    return status;
  }
  *out = e;
  return NULL;
}

// ---- compiling ----

static calx_status *check_program(const PJRT_Program *p)
{
  static const char bytecode[4] = { 'M', 'L', '\xef', 'R' };
  if (p->struct_size < PJRT_Program_STRUCT_SIZE) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "Unexpected PJRT_Program size: expected %d, got %zu",
                    PJRT_Program_STRUCT_SIZE, p->struct_size);
  }
  if (p->code == NULL || p->format == NULL) {
    return cx_error(CALX_INVALID_ARGUMENT, "a program without code or format");
  }
  int shown = p->format_size < 40 ? (int)p->format_size : 40;
  bool hlo =
      (p->format_size == 3 && memcmp(p->format, "hlo", 3) == 0) ||
      (p->format_size == 15 && memcmp(p->format, "hlo_with_config", 15) == 0);
  if (hlo) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "a program of format '%.*s'; this engine reads StableHLO "
                    "as text, with format 'mlir'",
                    shown, p->format);
  }
  if (p->format_size != 4 || memcmp(p->format, "mlir", 4) != 0) {
    return cx_error(CALX_INVALID_ARGUMENT, "Unknown program format '%.*s'.",
                    shown, p->format);
  }
  if (p->code_size >= sizeof bytecode &&
      memcmp(p->code, bytecode, sizeof bytecode) == 0) {
    return cx_error(CALX_UNIMPLEMENTED,
                    "a program as MLIR bytecode; this engine reads StableHLO "
                    "as text");
  }
  return NULL;
}

// Takes nothing. The code's pool is `pool` only as long as it compiles.
static calx_status *compile(const PJRT_Program *program,
                            const cpu_api_options *options, const char *bytes,
                            size_t size, cpu_threads *pool, cpu_api_code **out)
{
  CALX_TRY(check_program(program));
  cpu_lower_compile_options wanted = { .n_replicas = options->n_replicas,
                                       .n_partitions = options->n_partitions,
                                       .pool = pool };
  cpu_run_program *made = NULL;
  CALX_TRY(
      cpu_lower_compile(program->code, program->code_size, &wanted, &made));
  return cpu_api_code_new(made, bytes, size, out);
}

static calx_status *compile_for_client(const PJRT_Client_Compile_Args *args,
                                       const cpu_api_options *options,
                                       PJRT_LoadedExecutable **out)
{
  PJRT_Client *client = args->client;
  uint64_t wanted =
      (uint64_t)(options->n_replicas == 0 ? 1 : options->n_replicas) *
      (options->n_partitions == 0 ? 1 : options->n_partitions);
  if (wanted > client->n_devices) {  // before the long part
    return cx_error(CALX_INVALID_ARGUMENT,
                    "No matching device found for device_id %zu: a program for "
                    "%u replicas of %u partitions, %zu devices",
                    client->n_devices, options->n_replicas,
                    options->n_partitions, client->n_devices);
  }
  cpu_api_code *code = NULL;
  cx_lock(&client->compile_lock);
  calx_status *status =
      compile(args->program, options, args->compile_options,
              args->compile_options_size, client->compile_pool, &code);
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
  int threads = cpu_threads_cores() / (int)args->topology->n;
  cpu_threads *pool = NULL;
  cpu_api_code *code = NULL;
  PJRT_Executable *e = cx_alloc(sizeof *e);
  if (e == NULL) return cx_out_of_memory();
  calx_status *status = cpu_threads_new(threads > 1 ? threads : 1, &pool);
  if (status == NULL) {
    status = compile(args->program, options, args->compile_options,
                     args->compile_options_size, pool, &code);
  }
  if (status != NULL) {
    cpu_threads_free(pool);
    cx_free(e);
    return status;
  }
  code->pool = pool;
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

// ---- loading what is compiled ----

// The options given, or those it was compiled with.
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
      client->compile_pool, &code);
  cx_unlock(&client->compile_lock);
  if (status != NULL) return cpu_api_error(status);
  bool told = CPU_API_HAS(args, overridden_serialized_compile_options_size);
  return cpu_api_error(load(
      client, code, told ? args->overridden_serialized_compile_options : NULL,
      told ? args->overridden_serialized_compile_options_size : 0,
      &args->loaded_executable));
}
