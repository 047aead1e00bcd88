// coll/window: see window.h and state.h. What is of one size is mapped when the
// window is opened; regions are mapped as far as they were needed, so that the
// window takes no more addresses than memory.
#include "coll/window.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/futex.h"
#include "base/hash.h"
#include "base/status.h"
#include "coll/mpi_far.h"
#include "coll/state.h"
#include "threads/threads.h"

// A region's memory up to this stays; a map is at least so large.
static const size_t KEPT = (size_t)16 << 20, LEAST_MAP = (size_t)1 << 20;
static const size_t ALIGN = (size_t)2 << 20;
static const int SPINS = 20000;

// ---- sleeping ----

void cpu_coll_sleep(_Atomic uint32_t *word, uint32_t read, int64_t most_ms)
{
  cx_futex_wait(word, read, most_ms, CX_FUTEX_SHARED);
}

void cpu_coll_wake(_Atomic uint32_t *word)
{
  cx_futex_wake(word, CX_FUTEX_SHARED);
}

void cpu_coll_yield(void)
{
  (void)syscall(SYS_sched_yield);
}

// ---- memory ----

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
                  "%zu bytes of the memory that the processes of this host "
                  "share cannot be mapped: %s",
                  bytes, strerror(errno));
}

static int64_t region_at(const cpu_coll *w, uint32_t place)
{
  return w->regions_at +
         (int64_t)((2 * (size_t)place + w->odd) * w->region_bytes);
}

calx_status *cpu_coll_map_region(cpu_coll *w, uint32_t place, size_t bytes,
                                 unsigned char **out)
{
  calx_status *status = NULL;
  cx_lock(&w->lock);
  cpu_coll_map *m = &w->maps[place];
  if (m->bytes < bytes) {
    size_t size = m->bytes < LEAST_MAP ? LEAST_MAP : 2 * m->bytes;
    if (size < bytes) size = round_up(bytes, ALIGN);
    if (size > w->region_bytes) size = w->region_bytes;
    cpu_coll_map *older = cx_alloc(sizeof *older);
    void *at = NULL;
    if (older == NULL) {
      status = cx_out_of_memory();
    } else if (bytes > size) {
      status = cx_error(CALX_RESOURCE_EXHAUSTED,
                        "operands of %zu bytes; a device has %zu of the memory "
                        "that the processes of this host share",
                        bytes, w->region_bytes);
    } else {
      status = map(w->fd, size, region_at(w, place), &at);
    }
    if (status == NULL) {
      *older = *m;
      *m = (cpu_coll_map){ at, size, older };
    } else {
      cx_free(older);
    }
  }
  *out = m->at;
  cx_unlock(&w->lock);
  return status;
}

bool cpu_coll_is_large(size_t bytes)
{
  return bytes > KEPT;
}

void cpu_coll_trim_region(cpu_coll *w, uint32_t place)
{
  cx_lock(&w->lock);
  const cpu_coll_map *m = &w->maps[place];
  if (m->bytes > KEPT) {
    (void)madvise(m->at + KEPT, m->bytes - KEPT, MADV_REMOVE);
  }
  cx_unlock(&w->lock);
}

// ---- opening and closing ----

static void free_maps(const cpu_coll_map *first, bool keeps)
{
  if (first->at != NULL && !keeps) munmap(first->at, first->bytes);
  for (cpu_coll_map *one = first->older, *next; one != NULL; one = next) {
    next = one->older;
    if (one->at != NULL && !keeps) munmap(one->at, one->bytes);
    cx_free(one);
  }
}

void cpu_coll_free(cpu_coll *w)
{
  if (w == NULL) return;
  // What was posted and not waited for lies in pieces and regions: MPI may
  // write to them for as long as the process lives.
  const bool keeps = cpu_coll_mpi_link_close(w->link);
  for (uint32_t i = 0; w->maps != NULL && i < w->share.all; i++) {
    free_maps(&w->maps[i], keeps);
  }
  for (uint32_t i = 0; w->own != NULL && i < w->share.n_own; i++) {
    cx_free(w->own[i].members);
    cx_free(w->own[i].order);
    cx_free(w->own[i].sides);
  }
  if (w->head != NULL && !keeps) munmap(w->head, w->fixed_bytes);
  if (w->news != NULL) munmap(w->news, CALX_WINDOW_BOARD);
  if (w->fd >= 0) close(w->fd);
  cx_mutex_free(&w->lock);
  cx_free(w->maps);
  cx_free(w->own);
  cx_free(w->hosts);
  cx_free(w);
}

// What the caller calls a window: the number may be anything.
static calx_status *check_file(const cpu_coll_share *share)
{
  struct stat file;
  if (fstat(share->fd, &file) != 0) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "descriptor %d is no window of processes: %s", share->fd,
                    strerror(errno));
  }
  if (!S_ISREG(file.st_mode) || file.st_size < (off_t)CALX_WINDOW_BYTES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "descriptor %d is no window of processes: it has %lld "
                    "bytes",
                    share->fd, (long long)file.st_size);
  }
  return NULL;
}

static calx_status *map_all(cpu_coll *w)
{
  void *at = NULL;
  CALX_TRY(map(w->fd, CALX_WINDOW_BOARD, 0, &at));
  w->news = at;
  const uint32_t processes = w->share.n / w->share.n_own;
  if (w->fd < 0) {
    w->news->magic = CALX_WINDOW_MAGIC;
    w->news->processes = processes;
  }
  if (w->news->magic != CALX_WINDOW_MAGIC || w->news->processes != processes) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "descriptor %d is no window of %u processes: it begins "
                    "with %08x and %u processes",
                    w->share.fd, (unsigned)processes, (unsigned)w->news->magic,
                    (unsigned)w->news->processes);
  }
  const size_t n = w->share.n, all = w->share.all;
  const size_t head = round_up(sizeof *w->head, ALIGN);
  const size_t states =
      round_up(CPU_COLL_TEAMS * all * sizeof(cpu_coll_state), ALIGN);
  const size_t pieces =
      w->fd < 0 ? 0 : 2 * n * (2 + CPU_COLL_OUTS) * CPU_COLL_PIECE;
  w->fixed_bytes = head + states + round_up(pieces, ALIGN);
  CALX_TRY(map(w->fd, w->fixed_bytes, CALX_WINDOW_ENGINE, &at));
  w->head = at;
  w->states = (cpu_coll_state *)((unsigned char *)at + head);
  w->pieces = (unsigned char *)at + head + states;
  w->regions_at = CALX_WINDOW_ENGINE + (int64_t)w->fixed_bytes;
  w->region_bytes = (size_t)((int64_t)CALX_WINDOW_BYTES - w->regions_at) /
                    (2 * all) / ALIGN * ALIGN;
  return NULL;
}

// Of a host's only process, which nobody gave one.
static calx_status *make_file(cpu_coll *w)
{
  const uint32_t magic = CALX_WINDOW_MAGIC, processes = 1;
  cx_file_keep_standard();
  w->fd = memfd_create("calx", MFD_CLOEXEC);
  if (w->fd >= 0 && ftruncate(w->fd, (off_t)CALX_WINDOW_BYTES) == 0 &&
      pwrite(w->fd, &magic, sizeof magic, offsetof(calx_window, magic)) ==
          sizeof magic &&
      pwrite(w->fd, &processes, sizeof processes,
             offsetof(calx_window, processes)) == sizeof processes) {
    return NULL;
  }
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "no memory for the devices of this host to meet: %s",
                  strerror(errno));
}

static calx_status *open_file(cpu_coll *w)
{
  // All devices are this process's: nothing is shared, and a fork copies it.
  if (w->share.all == w->share.n_own) return NULL;
  if (w->share.fd < 0) return make_file(w);
  CALX_TRY(check_file(&w->share));
  w->fd = fcntl(w->share.fd, F_DUPFD_CLOEXEC, 0);
  if (w->fd >= 0) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED, "no descriptor for the window: %s",
                  strerror(errno));
}

// The number of this client among those that the process opened.
static uint64_t count_client(cpu_coll *w)
{
  static _Atomic uint32_t clients;  // with windows of their own
  if (w->share.fd < 0 || w->fd < 0) return atomic_fetch_add(&clients, 1);
  return atomic_fetch_add(&w->head->clients[w->own[0].device], 1);
}

static calx_status *open_window(cpu_coll *w)
{
  CALX_TRY(open_file(w));
  CALX_TRY(map_all(w));
  w->maps = cx_calloc(w->share.all, sizeof *w->maps);
  w->own = cx_calloc(w->share.n_own, sizeof *w->own);
  if (w->maps == NULL || w->own == NULL) return cx_out_of_memory();
  const uint32_t first = w->share.own - w->share.first;
  for (uint32_t i = 0; i < w->share.n_own; i++) w->own[i].device = first + i;
  w->seed = count_client(w);
  w->odd = (unsigned)w->seed & 1;
  const bool far = w->share.all > w->share.n;  // and the link has a thread
  w->spins = w->share.n + far <= (uint32_t)cpu_threads_cores() ? SPINS : 0;
  return far ? cpu_coll_mpi_far_open(w) : NULL;
}

calx_status *cpu_coll_new(const cpu_coll_share *share, cpu_coll **out)
{
  *out = NULL;
  if (share->n > CPU_COLL_HOST_DEVICES) {
    return cx_error(CALX_INVALID_ARGUMENT,
                    "%u devices on this host; at most %d can share a window",
                    (unsigned)share->n, CPU_COLL_HOST_DEVICES);
  }
  cpu_coll *w = cx_calloc(1, sizeof *w);
  if (w == NULL) return cx_out_of_memory();
  w->fd = -1;
  w->share = *share;
  if (w->share.all < w->share.n) w->share.all = w->share.n;
  cx_mutex_init(&w->lock);
  calx_status *status = open_window(w);
  if (status != NULL) {
    cpu_coll_free(w);
    return status;
  }
  *out = w;
  return NULL;
}

// ---- teams ----

bool cpu_coll_slot_of(cpu_coll *w, uint64_t key, uint32_t *out)
{
  for (uint32_t i = 0; i < CPU_COLL_TEAMS; i++) {
    uint64_t found = 0;
    *out = i;
    if (atomic_compare_exchange_strong(&w->head->teams[i], &found, key) ||
        found == key) {
      return true;
    }
  }
  return false;
}

calx_status *cpu_coll_team(cpu_coll *coll, const uint32_t *devices, size_t n,
                           uint32_t *out)
{
  const cx_hash hash = cx_hash_bytes(devices, n * sizeof *devices, coll->seed);
  if (cpu_coll_slot_of(coll, hash.low | 1, out)) return NULL;
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "all %d places for lists of devices that programs run on are "
                  "taken; those of clients that were closed are not given back",
                  CPU_COLL_TEAMS);
}

uint64_t cpu_coll_launches(cpu_coll *coll, uint32_t team, uint32_t device)
{
  return atomic_load(&coll->own[device - coll->share.own].launches[team]);
}

uint64_t cpu_coll_number(cpu_coll *coll, uint32_t team, uint32_t device,
                         uint64_t least)
{
  _Atomic uint64_t *count = &coll->own[device - coll->share.own].launches[team];
  uint64_t n = atomic_load(count);
  if (n < least) n = least;
  atomic_store(count, n + 1);
  return n + 1;
}

// ---- who and where ----

static unsigned char *pieces_of(const cpu_coll_visit *v, uint32_t i)
{
  const size_t place = 2 * (size_t)v->self->members[i] + v->window->odd;
  return v->window->pieces + place * (2 + CPU_COLL_OUTS) * CPU_COLL_PIECE;
}

unsigned char *cpu_coll_piece_in(const cpu_coll_visit *v, uint32_t i,
                                 unsigned which)
{
  return pieces_of(v, i) + which * CPU_COLL_PIECE;
}

unsigned char *cpu_coll_piece_out(const cpu_coll_visit *v, uint32_t i,
                                  unsigned which)
{
  return pieces_of(v, i) + (2 + which) * CPU_COLL_PIECE;
}

calx_status *cpu_coll_region(const cpu_coll_visit *v, uint32_t i, size_t bytes,
                             unsigned char **out)
{
  if (i == v->group->me && v->self->used < bytes) v->self->used = bytes;
  return cpu_coll_map_region(v->window, v->self->members[i], bytes, out);
}
