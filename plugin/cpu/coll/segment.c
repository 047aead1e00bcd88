// coll/segment: see segment.h and state.h.
//
// Parts of fixed size are mapped when the client is opened. Operand buffers are
// mapped up to the size that was needed, so that the process reserves no more
// addresses than memory.
#include "coll/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "coll/remote.h"
#include "coll/state.h"
#include "threads/threads.h"

// An operand buffer keeps this much memory; a mapping has at least this size.
static const size_t KEPT = (size_t)16 << 20, MIN_MAPPING = (size_t)1 << 20;
static const size_t ALIGN = (size_t)2 << 20;
static const int SPINS = 20000;

// ---- mapping ----

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) / to * to;
}

static calx_status *map(int fd, size_t bytes, int64_t at, void **out)
{
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd,
              fd < 0 ? 0 : (off_t)at);
  if (*out != MAP_FAILED) {
    (void)madvise(*out, bytes, MADV_DONTDUMP);
    return NULL;
  }
  *out = NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "cannot map %zu bytes for collectives: %s", bytes,
                  strerror(errno));
}

static calx_status *grow_mapping(cpu_coll *coll, uint32_t slot, size_t bytes)
{
  cpu_coll_mapping *m = &coll->mappings[slot];
  const size_t offset = (2 * (size_t)slot + coll->parity) * coll->operand_room;
  size_t size = m->bytes < MIN_MAPPING ? MIN_MAPPING : 2 * m->bytes;
  if (size < bytes) size = round_up(bytes, ALIGN);
  if (size > coll->operand_room) size = coll->operand_room;
  if (bytes > size) {
    return cx_error(CALX_RESOURCE_EXHAUSTED,
                    "operands of %zu bytes do not fit in a device's %zu bytes "
                    "of the shared segment",
                    bytes, coll->operand_room);
  }
  cpu_coll_mapping *older = cx_alloc(sizeof *older);
  void *at = NULL;
  if (older == NULL) return cx_out_of_memory();
  calx_status *status =
      map(coll->fd, size, coll->operands_at + (int64_t)offset, &at);
  if (status != NULL) {
    cx_free(older);
    return status;
  }
  *older = *m;
  *m = (cpu_coll_mapping){ at, size, older };
  return NULL;
}

calx_status *cpu_coll_map_operands(cpu_coll *coll, uint32_t slot, size_t bytes,
                                   unsigned char **out)
{
  cx_lock(&coll->lock);
  cpu_coll_mapping *m = &coll->mappings[slot];
  calx_status *status =
      m->bytes < bytes ? grow_mapping(coll, slot, bytes) : NULL;
  *out = m->at;
  cx_unlock(&coll->lock);
  return status;
}

bool cpu_coll_is_large(size_t bytes)
{
  return bytes > KEPT;
}

void cpu_coll_trim_operands(cpu_coll *coll, uint32_t slot)
{
  cx_lock(&coll->lock);
  const cpu_coll_mapping *m = &coll->mappings[slot];
  if (m->bytes > KEPT) {
    (void)madvise(m->at + KEPT, m->bytes - KEPT, MADV_REMOVE);
  }
  cx_unlock(&coll->lock);
}

// ---- opening and closing ----

static void free_mappings(const cpu_coll_mapping *newest, bool keep)
{
  if (newest->at != NULL && !keep) munmap(newest->at, newest->bytes);
  for (cpu_coll_mapping *m = newest->older, *next; m != NULL; m = next) {
    next = m->older;
    if (m->at != NULL && !keep) munmap(m->at, m->bytes);
    cx_free(m);
  }
}

void cpu_coll_free(cpu_coll *coll)
{
  if (coll == NULL) return;
  // MPI may still write to buffers of transfers that were given up. Those stay
  // mapped for as long as the process lives.
  const bool keep = cpu_coll_link_close(coll->link);
  for (uint32_t i = 0; coll->mappings != NULL && i < coll->topology.n_world;
       i++) {
    free_mappings(&coll->mappings[i], keep);
  }
  for (uint32_t i = 0; coll->local != NULL && i < coll->topology.n_own; i++) {
    cx_free(coll->local[i].members);
    cx_free(coll->local[i].order);
    cx_free(coll->local[i].host_groups);
  }
  if (coll->head != NULL && !keep) munmap(coll->head, coll->fixed_bytes);
  if (coll->job != NULL) munmap(coll->job, CALX_WINDOW_BOARD);
  if (coll->fd >= 0) close(coll->fd);
  cx_mutex_free(&coll->lock);
  cx_free(coll->mappings);
  cx_free(coll->local);
  cx_free(coll->hosts);
  cx_free(coll);
}

// The descriptor comes from the caller's options and may be anything.
static calx_status *check_file(int fd)
{
  struct stat file;
  if (fstat(fd, &file) != 0) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "descriptor %d is no shared segment: %s", fd,
                    strerror(errno));
  }
  if (!S_ISREG(file.st_mode) || file.st_size < (off_t)CALX_WINDOW_BYTES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "descriptor %d is no shared segment: it has %lld bytes", fd,
                    (long long)file.st_size);
  }
  return NULL;
}

static calx_status *map_job(cpu_coll *coll)
{
  void *at = NULL;
  CALX_TRY(map(coll->fd, CALX_WINDOW_BOARD, 0, &at));
  coll->job = at;
  const uint32_t processes = coll->topology.n_host / coll->topology.n_own;
  if (coll->topology.fd < 0) {
    coll->job->magic = CALX_WINDOW_MAGIC;
    coll->job->processes = processes;
  }
  if (coll->job->magic == CALX_WINDOW_MAGIC &&
      coll->job->processes == processes) {
    return NULL;
  }
  return cx_error(CALX_INVALID_ARGUMENT,
                  "descriptor %d is no shared segment of %u processes: it "
                  "begins with %08x and %u processes",
                  coll->topology.fd, (unsigned)processes,
                  (unsigned)coll->job->magic, (unsigned)coll->job->processes);
}

static calx_status *map_fixed(cpu_coll *coll)
{
  void *at = NULL;
  const size_t n = coll->topology.n_world;
  const size_t head = round_up(sizeof *coll->head, ALIGN);
  const size_t states =
      round_up(CPU_COLL_DEVICE_GROUPS * n * sizeof(cpu_coll_state), ALIGN);
  const size_t buffers = coll->fd < 0 ? 0
                                      : 2 * (size_t)coll->topology.n_host *
                                            (2 + CPU_COLL_STAGING_OUTS) *
                                            CPU_COLL_STAGING_BYTES;
  coll->fixed_bytes = head + states + round_up(buffers, ALIGN);
  CALX_TRY(map(coll->fd, coll->fixed_bytes, CALX_WINDOW_ENGINE, &at));
  coll->head = at;
  coll->states = (cpu_coll_state *)((unsigned char *)at + head);
  coll->staging = (unsigned char *)at + head + states;
  coll->operands_at = CALX_WINDOW_ENGINE + (int64_t)coll->fixed_bytes;
  coll->operand_room =
      (size_t)((int64_t)CALX_WINDOW_BYTES - coll->operands_at) / (2 * n) /
      ALIGN * ALIGN;
  return NULL;
}

static calx_status *open_file(cpu_coll *coll)
{
  const cpu_coll_topology *t = &coll->topology;
  // All devices are of this process: private memory, which a fork copies.
  if (t->n_world == t->n_own) return NULL;
  if (t->fd < 0) {
    // The only process of its host needs a file to map operand buffers anew.
    cx_file_keep_standard();
    coll->fd = memfd_create("calx", MFD_CLOEXEC);
    if (coll->fd >= 0 && ftruncate(coll->fd, (off_t)CALX_WINDOW_BYTES) == 0) {
      return NULL;
    }
    return cx_error(CALX_RESOURCE_EXHAUSTED, "no memory for collectives: %s",
                    strerror(errno));
  }
  CALX_TRY(check_file(t->fd));
  coll->fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
  if (coll->fd >= 0) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "no descriptor for the shared segment: %s", strerror(errno));
}

// The number of this client among those that the process has opened.
static uint64_t count_client(cpu_coll *coll)
{
  static _Atomic uint32_t clients;  // without a segment from outside
  if (coll->topology.fd < 0) return atomic_fetch_add(&clients, 1);
  return atomic_fetch_add(&coll->head->clients[coll->local[0].slot], 1);
}

static calx_status *open_all(cpu_coll *coll)
{
  const cpu_coll_topology *t = &coll->topology;
  CALX_TRY(open_file(coll));
  CALX_TRY(map_job(coll));
  CALX_TRY(map_fixed(coll));
  coll->mappings = cx_calloc(t->n_world, sizeof *coll->mappings);
  coll->local = cx_calloc(t->n_own, sizeof *coll->local);
  if (coll->mappings == NULL || coll->local == NULL) return cx_out_of_memory();
  for (uint32_t i = 0; i < t->n_own; i++) {
    coll->local[i].slot = t->own_first - t->host_first + i;
  }
  coll->seed = count_client(coll);
  coll->parity = (unsigned)coll->seed & 1;
  // Spinning only helps where every device has a core, and the link's thread.
  const bool remote = t->n_world > t->n_host;
  coll->spins = t->n_host + remote <= (uint32_t)cpu_threads_cores() ? SPINS : 0;
  return remote ? cpu_coll_remote_open(coll) : NULL;
}

calx_status *cpu_coll_new(const cpu_coll_topology *topology, cpu_coll **out)
{
  *out = NULL;
  if (topology->n_host > CPU_COLL_HOST_DEVICES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%u devices on this host; at most %d are supported",
                    (unsigned)topology->n_host, CPU_COLL_HOST_DEVICES);
  }
  cpu_coll *coll = cx_calloc(1, sizeof *coll);
  if (coll == NULL) return cx_out_of_memory();
  coll->fd = -1;
  coll->topology = *topology;
  if (coll->topology.n_world < topology->n_host) {
    coll->topology.n_world = topology->n_host;
  }
  if (coll->topology.n_world == topology->n_own) coll->topology.fd = -1;
  cx_mutex_init(&coll->lock);
  calx_status *status = open_all(coll);
  if (status != NULL) {
    cpu_coll_free(coll);
    return status;
  }
  *out = coll;
  return NULL;
}

// ---- device groups and launches ----

bool cpu_coll_find_device_group(cpu_coll *coll, uint64_t key, uint32_t *out)
{
  for (uint32_t i = 0; i < CPU_COLL_DEVICE_GROUPS; i++) {
    uint64_t found = 0;
    *out = i;
    if (atomic_compare_exchange_strong(&coll->head->device_groups[i], &found,
                                       key) ||
        found == key) {
      return true;
    }
  }
  return false;
}

calx_status *cpu_coll_device_group(cpu_coll *coll, const uint32_t *devices,
                                   size_t n, uint32_t *out)
{
  const cx_hash hash = cx_hash_bytes(devices, n * sizeof *devices, coll->seed);
  // A key of 0 would mean a free entry.
  if (cpu_coll_find_device_group(coll, hash.low | 1, out)) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "programs with collectives run on at most %d different lists "
                  "of devices; those of closed clients count too",
                  CPU_COLL_DEVICE_GROUPS);
}

static _Atomic uint64_t *launches_of(cpu_coll *coll, uint32_t device_group,
                                     uint32_t device)
{
  return &coll->local[device - coll->topology.own_first].launches[device_group];
}

uint64_t cpu_coll_launch_count(cpu_coll *coll, uint32_t device_group,
                               uint32_t device)
{
  return atomic_load(launches_of(coll, device_group, device));
}

uint64_t cpu_coll_next_launch(cpu_coll *coll, uint32_t device_group,
                              uint32_t device, uint64_t least)
{
  _Atomic uint64_t *count = launches_of(coll, device_group, device);
  uint64_t n = atomic_load(count);
  if (n < least) n = least;
  atomic_store(count, n + 1);
  return n + 1;
}

// ---- buffers ----

static unsigned char *staging_of(const cpu_coll_participant *p, uint32_t i)
{
  const size_t index = 2 * (size_t)p->self->members[i] + p->coll->parity;
  CX_ASSERT(!p->direct && p->self->members[i] < p->coll->topology.n_host);
  return p->coll->staging +
         index * (2 + CPU_COLL_STAGING_OUTS) * CPU_COLL_STAGING_BYTES;
}

unsigned char *cpu_coll_staging_in(const cpu_coll_participant *p, uint32_t i,
                                   unsigned which)
{
  return staging_of(p, i) + which * CPU_COLL_STAGING_BYTES;
}

unsigned char *cpu_coll_staging_out(const cpu_coll_participant *p, uint32_t i,
                                    unsigned which)
{
  return staging_of(p, i) + (2 + which) * CPU_COLL_STAGING_BYTES;
}

calx_status *cpu_coll_operand_buffer(const cpu_coll_participant *p, uint32_t i,
                                     size_t bytes, unsigned char **out)
{
  if (i == p->group->me && p->self->operand_bytes < bytes) {
    p->self->operand_bytes = bytes;
  }
  return cpu_coll_map_operands(p->coll, p->self->members[i], bytes, out);
}
