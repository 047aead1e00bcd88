// api/load: executables on the devices of a client.
#include "api/api.h"
#include "base/alloc.h"

void cpu_api_loaded_release(PJRT_LoadedExecutable *executable)
{
  if (executable == NULL || !cpu_api_unref(&executable->refs)) return;
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
  CALX_TRY(cpu_api_device_find(e->client, id, &e->devices[slot]));
  size_t n_partitions = e->code->info->n_partitions;
  if (e->devices[slot]->local) {
    e->local[e->n_local] = e->devices[slot];
    e->logical[e->n_local].replica = (int)(slot / n_partitions);
    e->logical[e->n_local].partition = (int)(slot % n_partitions);
    e->n_local++;
  }
  for (size_t i = 0; i < slot; i++) {
    if (e->devices[i] == e->devices[slot]) {
      return cx_error(
          CALX_INVALID_ARGUMENT, "device %d is assigned 2 shares of '%s'%s", id,
          e->code->info->name, options->n_assigned > 0 ? "" : " by default");
    }
  }
  return NULL;
}

// Gets the device group of a program with collectives on several devices.
static calx_status *find_device_group(PJRT_LoadedExecutable *e)
{
  if (e->n_local == 0) {
    return cx_invalid("'%s' is for device %d%s, of other processes than %u",
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
    return cx_invalid(
        "'%s' is for %u replicas of %u partitions, there are %zu devices",
        info->name, info->n_replicas, info->n_partitions, e->client->n_devices);
  }
  if (options->n_assigned > 0 && options->n_assigned != n) {
    return cx_invalid("'%s' is for %zu devices, the assignment has %zu",
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
    status = cx_invalid(
        "'%s' is for %u replicas of %u partitions and cannot be portable",
        code->info->name, code->info->n_replicas, code->info->n_partitions);
  }
  if (status == NULL && !e->portable) status = assign_all(e, options);
  if (status != NULL) {
    cpu_api_loaded_release(e);
    return status;
  }
  *out = e;
  return NULL;
}
