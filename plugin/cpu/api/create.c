// api/create: creates clients, and closes them.
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/launch.h"
#include "base/alloc.h"
#include "base/env.h"
#include "lower/compile.h"

#define DEFAULT_TIMEOUT_S 1800
#define MAX_TIMEOUT_S (INT64_C(10) * 365 * 24 * 3600)
#define MAX_THREADS 4096

static void open_memories(PJRT_Device *d, PJRT_Memory **list)
{
  for (int kind = 0; kind < CPU_RUN_MEMORIES; kind++) {
    cpu_api_space *s = &d->spaces[kind];
    s->device = d;
    s->kind = (cpu_run_memory)kind;
    snprintf(s->text, sizeof s->text, "MEMORY_SPACE_%d",
             d->description.id * CPU_RUN_MEMORIES + kind);
    snprintf(s->debug_text, sizeof s->debug_text,
             "memory %s of calx_cpu device %d", cpu_run_memory_name(s->kind),
             d->description.id);
    list[kind] = d->memories[kind] = &s->base;
  }
}

static calx_status *open_device(PJRT_Client *c, int id, int threads)
{
  PJRT_Device *d = &c->devices[id];
  d->client = c;
  cpu_api_describe(&d->description, id, id / (int)c->world.per_process);
  d->local = d->description.process == (int)c->world.process;
  open_memories(d, c->memory_list + (size_t)id * CPU_RUN_MEMORIES);
  c->device_list[id] = d;
  c->n_devices = (size_t)id + 1;
  if (!d->local) return NULL;
  cpu_api_cache_init(&d->cache);
  cpu_api_queue_init(d);
  c->n_local++;
  CALX_TRY(cpu_threads_new(threads, &d->threads));
  return cpu_run_context_new(d->threads, &d->context);
}

// A hash of the processor's features (CPUID), for which kernels are compiled.
// They differ under valgrind and in other virtual machines.
static unsigned processor(void)
{
  unsigned hash = 2166136261U;
#if defined(__x86_64__)
  unsigned r[2][4] = { { 0 } };
  __get_cpuid(1, &r[0][0], &r[0][1], &r[0][2], &r[0][3]);
  __get_cpuid_count(7, 0, &r[1][0], &r[1][1], &r[1][2], &r[1][3]);
  r[0][1] = 0;  // this has the number of the core
  for (int i = 0; i < 8; i++) hash = (hash ^ r[i / 4][i % 4]) * 16777619U;
#endif
  return hash;
}

// Callers use the version as a key of cached executables. So it names all
// environment variables that change executables.
static void write_version(PJRT_Client *c)
{
  const char *lanes = cx_env_text("CALX_CPU_LANES");
  snprintf(c->version, sizeof c->version,
           "calx " CALX_VERSION ", x86 %08x%s%s%s%s%.8s", processor(),
           cpu_lower_env_is("CALX_CPU_REF", "1") ? ", interpreted" : "",
           cpu_lower_env_is("CALX_DETERMINISTIC", "1") ? ", deterministic" : "",
           cpu_lower_env_is("CALX_COLLECTIVES", "blocking") ? ", blocking" : "",
           lanes != NULL ? ", lanes " : "", lanes != NULL ? lanes : "");
}

static calx_status *meet_in_store(const void *store)
{
  return cpu_api_store_barrier(store, CPU_API_STORE_LINKED);
}

// store: NULL: none. pids: of this host's processes, or NULL.
static calx_status *join_world(PJRT_Client *c, const cpu_api_store *store,
                               const int64_t *pids)
{
  const cpu_api_world *w = &c->world;
  const bool alone = w->n_processes == 1;
  const cpu_coll_topology topology = {
    .fd = alone ? -1 : w->segment_fd,
    .host_first = w->host_first * w->per_process,
    .n_host = w->host_processes * w->per_process,
    .own_first = (uint32_t)c->first,
    .n_own = w->per_process,
    .n_world = w->n_processes * w->per_process,
    .timeout_ms = c->timeout_ms,
    .pids = pids,
    .meet = store != NULL ? meet_in_store : NULL,
    .meet_user = store
  };
  return cpu_coll_new(&topology, &c->coll);
}

// The number of threads of a device. By default the devices of a host share its
// cores.
static calx_status *count_threads(const cpu_api_world *w, int *out)
{
  int64_t total = 0;
  const int64_t on_host = w->host_processes;
  CALX_TRY(cpu_api_environment("CALX_CPU_THREADS", 1, MAX_THREADS,
                               cpu_threads_cores() / on_host, &total));
  *out = total > w->per_process ? (int)(total / w->per_process) : 1;
  return NULL;
}

static calx_status *open_client(PJRT_Client *c, const cpu_api_store *store,
                                const int64_t *pids)
{
  const cpu_api_world *w = &c->world;
  const size_t n = (size_t)w->n_processes * w->per_process;
  int threads = 0;
  c->first = (size_t)w->process * w->per_process;
  CALX_TRY(count_threads(w, &threads));
  write_version(c);
  c->devices = cx_calloc(n, sizeof *c->devices);
  c->device_list = cx_calloc(n, sizeof(PJRT_Device *));
  c->memory_list = cx_calloc(n * CPU_RUN_MEMORIES, sizeof(PJRT_Memory *));
  if (c->devices == NULL || c->device_list == NULL || c->memory_list == NULL) {
    return cx_out_of_memory();
  }
  for (size_t i = 0; i < n; i++) {
    CALX_TRY(open_device(c, (int)i, threads));
  }
  CALX_TRY(cpu_threads_new(threads, &c->compile_threads));
  CALX_TRY(join_world(c, store, pids));
  return cpu_api_topology_new(n, w->per_process, w->platform, &c->topology);
}

static calx_status *create_in(const cpu_api_world *world, int64_t timeout_ms,
                              const cpu_api_store *store, const int64_t *pids,
                              PJRT_Client **out)
{
  CALX_TRY(cpu_api_world_check_segment(world));
  PJRT_Client *c = cx_calloc(1, sizeof *c);
  if (c == NULL) return cx_out_of_memory();
  c->world = *world;
  c->timeout_ms = timeout_ms;
  atomic_init(&c->refs, 1);
  atomic_init(&c->closed, false);
  cx_mutex_init(&c->compile_lock);
  cx_mutex_init(&c->launch_lock);
  calx_status *status = open_client(c, store, pids);
  if (status != NULL) {
    cpu_api_client_release(c);
    return status;
  }
  *out = c;
  return NULL;
}

// All processes have a client, or none has: else the next ones would not meet.
static calx_status *create_together(const cpu_api_store *store,
                                    cpu_api_world *world, PJRT_Client **out)
{
  cpu_api_meeting meeting = { .fd = -1 };
  calx_status *status =
      world->placed ? NULL : cpu_api_meet(store, world, &meeting);
  if (status == NULL) {
    status = create_in(world, store->timeout_ms, store, meeting.pids, out);
  }
  if (status == NULL && !world->placed) {
    status = cpu_api_store_barrier(store, CPU_API_STORE_MADE);
  }
  cpu_api_meeting_end(&meeting);
  if (status == NULL) return NULL;
  cpu_api_store_give_up(store);
  if (*out != NULL) cpu_api_client_release(*out);
  *out = NULL;
  return status;
}

static calx_status *create(const PJRT_Client_Create_Args *args,
                           PJRT_Client **out)
{
  cpu_api_world world;
  cpu_api_store store;
  int64_t timeout_s = 0;
  CALX_TRY(cpu_api_world_read(args->create_options, args->num_options, &world));
  CALX_TRY(cpu_api_environment("CALX_COLLECTIVE_TIMEOUT_S", 1, MAX_TIMEOUT_S,
                               DEFAULT_TIMEOUT_S, &timeout_s));
  const int64_t timeout_ms = timeout_s * 1000;
  return cpu_api_store_open(args, &world, timeout_ms, &store)
             ? create_together(&store, &world, out)
             : create_in(&world, timeout_ms, NULL, NULL, out);
}

PJRT_Error *cpu_api_PJRT_Client_Create(PJRT_Client_Create_Args *args)
{
  CPU_API_ENTER_FROM(PJRT_Client_Create, client, struct_size);
  args->client = NULL;
  return cpu_api_error(create(args, &args->client));
}

// Destroying the handle ends the devices' threads after their queued launches.
PJRT_Error *cpu_api_PJRT_Client_Destroy(PJRT_Client_Destroy_Args *args)
{
  CPU_API_ENTER(PJRT_Client_Destroy, struct_size);
  PJRT_Client *c = args->client;
  if (c == NULL) return NULL;
  atomic_store(&c->closed, true);
  for (size_t i = 0; i < c->n_local; i++) {
    cpu_api_queue_stop(&c->devices[c->first + i]);
  }
  cpu_api_client_release(c);
  return NULL;
}
