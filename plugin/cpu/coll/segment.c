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
#include "base/futex.h"
#include "base/status.h"
#include "coll/state.h"

// An operand buffer keeps this much memory; a mapping has at least this size.
static const size_t KEPT = (size_t)16 << 20, MIN_MAPPING = (size_t)1 << 20;
static const size_t ALIGN = (size_t)2 << 20;

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

// The descriptor comes from the caller's options and may be anything.
static calx_status *check_file(int fd)
{
  struct stat file;
  if (fstat(fd, &file) != 0) {
    return cx_invalid("descriptor %d is no shared segment: %s", fd,
                      strerror(errno));
  }
  if (!S_ISREG(file.st_mode) || file.st_size < (off_t)CALX_SEGMENT_BYTES) {
    return cx_invalid("descriptor %d is no shared segment: it has %lld bytes",
                      fd, (long long)file.st_size);
  }
  return NULL;
}

static calx_status *map_job(cpu_coll *coll)
{
  void *at = NULL;
  CALX_TRY(map(coll->fd, CALX_SEGMENT_AGREEMENT, 0, &at));
  coll->job = at;
  const uint32_t processes = coll->topology.n_host / coll->topology.n_own;
  if (coll->fd < 0) {
    coll->job->magic = CALX_SEGMENT_MAGIC;
    coll->job->processes = processes;
  }
  if (coll->job->magic == CALX_SEGMENT_MAGIC &&
      coll->job->processes == processes) {
    return NULL;
  }
  return cx_invalid(
      "descriptor %d is no shared segment of %u processes: it begins with %08x "
      "and %u processes",
      coll->topology.fd, (unsigned)processes, (unsigned)coll->job->magic,
      (unsigned)coll->job->processes);
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
  CALX_TRY(map(coll->fd, coll->fixed_bytes, CALX_SEGMENT_ENGINE, &at));
  coll->head = at;
  coll->states = (cpu_coll_state *)((unsigned char *)at + head);
  coll->staging = (unsigned char *)at + head + states;
  coll->operands_at = CALX_SEGMENT_ENGINE + (int64_t)coll->fixed_bytes;
  coll->operand_room =
      (size_t)((int64_t)CALX_SEGMENT_BYTES - coll->operands_at) / (2 * n) /
      ALIGN * ALIGN;
  return NULL;
}

calx_status *cpu_coll_segment_create(uint32_t processes, int *out)
{
  const calx_segment_head head = { .magic = CALX_SEGMENT_MAGIC,
                                   .processes = processes };
  cx_file_keep_standard();
  *out = memfd_create("calx", MFD_CLOEXEC);
  if (*out >= 0 && ftruncate(*out, (off_t)CALX_SEGMENT_BYTES) == 0 &&
      pwrite(*out, &head, sizeof head, 0) == (ssize_t)sizeof head) {
    return NULL;
  }
  calx_status *status =
      cx_error(CALX_RESOURCE_EXHAUSTED, "no memory for collectives: %s",
               strerror(errno));
  if (*out >= 0) close(*out);
  *out = -1;
  return status;
}

static calx_status *open_file(cpu_coll *coll)
{
  const cpu_coll_topology *t = &coll->topology;
  // All devices are of this process: private memory, which a fork copies.
  if (t->n_world == t->n_own) return NULL;
  // The only process of its host needs a file to map operand buffers anew.
  if (t->fd < 0) return cpu_coll_segment_create(1, &coll->fd);
  CALX_TRY(check_file(t->fd));
  coll->fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
  if (coll->fd >= 0) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "no descriptor for the shared segment: %s", strerror(errno));
}

calx_status *cpu_coll_segment_open(cpu_coll *coll)
{
  CALX_TRY(open_file(coll));
  CALX_TRY(map_job(coll));
  CALX_TRY(map_fixed(coll));
  coll->mappings = cx_calloc(coll->topology.n_world, sizeof *coll->mappings);
  return coll->mappings == NULL ? cx_out_of_memory() : NULL;
}

void cpu_coll_segment_close(cpu_coll *coll, bool keep)
{
  for (uint32_t i = 0; coll->mappings != NULL && i < coll->topology.n_world;
       i++) {
    free_mappings(&coll->mappings[i], keep);
  }
  if (coll->head != NULL && !keep) munmap(coll->head, coll->fixed_bytes);
  if (coll->job != NULL) munmap(coll->job, CALX_SEGMENT_AGREEMENT);
  if (coll->fd >= 0) close(coll->fd);
  cx_free(coll->mappings);
}

// ---- states ----

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

void cpu_coll_wake_sleepers(cpu_coll_state *s)
{
  atomic_fetch_add(&s->wake_word, 1);
  cx_futex_wake(&s->wake_word, CX_FUTEX_SHARED);
}

void cpu_coll_wake_all(const cpu_coll *coll, cpu_coll_state *states)
{
  for (uint32_t i = 0; i < coll->topology.n_world; i++) {
    if (atomic_load(&states[i].sleepers) != 0) {
      cpu_coll_wake_sleepers(&states[i]);
    }
  }
}

// ---- buffers ----

unsigned char *cpu_coll_staging(const cpu_coll_participant *p, uint32_t i,
                                unsigned which)
{
  const uint32_t slot = p->self->members[cpu_coll_local_group(p)->members[i]];
  const size_t device = 2 * (size_t)slot + p->coll->parity;
  CX_ASSERT(!p->direct && slot < p->coll->topology.n_host);
  return p->coll->staging + (device * (2 + CPU_COLL_STAGING_OUTS) + which) *
                                CPU_COLL_STAGING_BYTES;
}

calx_status *cpu_coll_operand_buffer(const cpu_coll_participant *p, uint32_t i,
                                     size_t bytes, unsigned char **out)
{
  if (i == p->group->me && p->self->operand_bytes < bytes) {
    p->self->operand_bytes = bytes;
  }
  return cpu_coll_map_operands(p->coll, p->self->members[i], bytes, out);
}
