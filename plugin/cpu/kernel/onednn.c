// kernel/onednn: loads the library and replaces its threads.
//
// The library is bound at once (RTLD_NOW), so that its global offset table has
// every address that it calls. The entries of the six functions are found
// through its relocations, as the ELF x86-64 psABI (4.4) describes them.
#include "kernel/onednn.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread.h"

static cpu_kernel_onednn library;
static cx_mutex loading = CX_MUTEX_INIT;
static _Atomic bool loaded, usable;

// ---- libgomp's functions, on the entered pool -------------------------------

typedef void region_fn(void *data);

typedef struct gomp {
  void (*parallel)(region_fn *fn, void *data, unsigned threads, unsigned flags);
  void (*barrier)(void);
  int (*max_threads)(void), (*num_threads)(void), (*thread_num)(void);
  int (*in_parallel)(void);
} gomp;

static gomp original;
static _Thread_local int alone;  // entered without a pool

static bool ours(void)
{
  return alone != 0 || cpu_threads_inside() ||
         cpu_threads_here().threads != NULL;
}

typedef struct region {
  region_fn *fn;
  void *data;
} region;

static void run_member(void *user, int rank)
{
  const region *r = user;
  (void)rank;
  r->fn(r->data);
}

static void parallel(region_fn *fn, void *data, unsigned threads,
                     unsigned flags)
{
  if (!ours()) {
    original.parallel(fn, data, threads, flags);
    return;
  }
  if (alone != 0) {
    fn(data);
    return;
  }
  cpu_threads *pool = cpu_threads_here().threads;
  int size = cpu_threads_size(pool);
  int n = threads == 0 || threads > (unsigned)size ? size : (int)threads;
  region r = { fn, data };
  cpu_threads_parallel(pool, n, run_member, &r);
}

static void barrier(void)
{
  if (ours()) {
    if (alone == 0) cpu_threads_barrier();
  } else {
    original.barrier();
  }
}

static int max_threads(void)
{
  if (!ours()) return original.max_threads();
  return alone != 0 || cpu_threads_inside()
             ? 1
             : cpu_threads_size(cpu_threads_here().threads);
}

static int num_threads(void)
{
  if (alone != 0) return 1;
  return ours() ? cpu_threads_here().size : original.num_threads();
}

static int thread_num(void)
{
  if (alone != 0) return 0;
  return ours() ? cpu_threads_here().rank : original.thread_num();
}

static int in_parallel(void)
{
  if (alone != 0) return 0;
  return ours() ? cpu_threads_here().size > 1 : original.in_parallel();
}

#define N_REPLACED 6

typedef void any_fn(void);

static const struct {
  const char *name;
  any_fn *ours;
  size_t original;  // offset in `original`
} replaced[N_REPLACED] = {
  { "GOMP_parallel", (any_fn *)parallel, offsetof(gomp, parallel) },
  { "GOMP_barrier", barrier, offsetof(gomp, barrier) },
  { "omp_get_max_threads", (any_fn *)max_threads, offsetof(gomp, max_threads) },
  { "omp_get_num_threads", (any_fn *)num_threads, offsetof(gomp, num_threads) },
  { "omp_get_thread_num", (any_fn *)thread_num, offsetof(gomp, thread_num) },
  { "omp_in_parallel", (any_fn *)in_parallel, offsetof(gomp, in_parallel) },
};

// ---- the table of addresses -------------------------------------------------

typedef struct image {
  ElfW(Addr) base;
  ElfW(Addr) sealed, sealed_end;  // made read-only after relocation
  const ElfW(Sym) * symbols;
  const char *names;
  const ElfW(Rela) * relocations[2];
  size_t n_relocations[2];
} image;

static int find_image(struct dl_phdr_info *info, size_t size, void *user)
{
  (void)size;
  image *im = user;
  if (info->dlpi_addr != im->base) return 0;
  const ElfW(Dyn) *d = NULL;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    ElfW(Addr) at = info->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_DYNAMIC) d = (const void *)at;
    if (p->p_type == PT_GNU_RELRO) {
      im->sealed = at;
      im->sealed_end = at + p->p_memsz;
    }
  }
  for (; d != NULL && d->d_tag != DT_NULL; d++) {
    const void *at = (const void *)d->d_un.d_ptr;
    size_t n = d->d_un.d_val / sizeof(ElfW(Rela));
    if (d->d_tag == DT_SYMTAB) im->symbols = at;
    if (d->d_tag == DT_STRTAB) im->names = at;
    if (d->d_tag == DT_JMPREL) im->relocations[0] = at;
    if (d->d_tag == DT_PLTRELSZ) im->n_relocations[0] = n;
    if (d->d_tag == DT_RELA) im->relocations[1] = at;
    if (d->d_tag == DT_RELASZ) im->n_relocations[1] = n;
  }
  return 1;
}

static bool write_slot(const image *im, void *slot, any_fn *fn)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t at = (uintptr_t)slot;
  bool sealed = at >= im->sealed && at < im->sealed_end;
  void *start = (void *)(at & ~(page - 1));
  if (sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  memcpy(slot, &fn, sizeof fn);
  return !sealed || mprotect(start, page, PROT_READ) == 0;
}

#if defined(__x86_64__)
static bool is_address_slot(const ElfW(Rela) * r)
{
  return ELF64_R_TYPE(r->r_info) == R_X86_64_JUMP_SLOT ||
         ELF64_R_TYPE(r->r_info) == R_X86_64_GLOB_DAT;
}
#else
static bool is_address_slot(const ElfW(Rela) * r)
{
  (void)r;
  return false;
}
#endif

// Replaces all six or none.
static bool redirect(ElfW(Addr) base)
{
  image im = { .base = base };
  dl_iterate_phdr(find_image, &im);
  if (im.symbols == NULL || im.names == NULL) return false;
  void *slots[N_REPLACED] = { NULL };
  size_t found = 0, others = 0;
  for (int t = 0; t < 2; t++) {
    for (size_t i = 0; i < im.n_relocations[t]; i++) {
      const ElfW(Rela) *r = &im.relocations[t][i];
      if (!is_address_slot(r)) continue;
      const char *name = im.names + im.symbols[ELF64_R_SYM(r->r_info)].st_name;
      if (strncmp(name, "GOMP_", 5) != 0 && strncmp(name, "omp_", 4) != 0) {
        continue;
      }
      size_t k = 0;
      while (k < N_REPLACED && strcmp(name, replaced[k].name) != 0) k++;
      if (k == N_REPLACED || slots[k] != NULL) {
        others++;
        continue;
      }
      slots[k] = (void *)(base + r->r_offset);
      found++;
    }
  }
  if (found != N_REPLACED || others != 0) return false;
  for (size_t k = 0; k < N_REPLACED; k++) {
    memcpy((char *)&original + replaced[k].original, slots[k],
           sizeof(any_fn *));
  }
  for (size_t k = 0; k < N_REPLACED; k++) {
    if (!write_slot(&im, slots[k], replaced[k].ours)) return false;
  }
  return true;
}

// ---- loading ----------------------------------------------------------------

static bool find_function(void *handle, const char *name, void *slot)
{
  void *at = dlsym(handle, name);
  memcpy(slot, &at, sizeof at);
  return at != NULL;
}

static bool find_functions(void *handle)
{
  bool all = true;
#define X(name) \
  all = all && find_function(handle, "dnnl_" #name, &library.name);
  CPU_KERNEL_ONEDNN_FUNCTIONS(X)
#undef X
  return all;
}

// Never closed: its code may be on any thread's stack.
static void load(void)
{
  void *handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL || !find_functions(handle)) return;
  const dnnl_version_t *version = library.version();
  if (version->major != 2 || version->minor < 6) return;
  struct link_map *map = NULL;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL) {
    library.pooled = redirect(map->l_addr);
  }
  if (!library.pooled &&
      !find_function(handle, "omp_set_num_threads", &library.omp_set_threads)) {
    return;
  }
  usable =
      library.engine_create(&library.engine, dnnl_cpu, 0) == dnnl_success &&
      library.stream_create(&library.stream, library.engine,
                            dnnl_stream_default_flags) == dnnl_success;
}

const cpu_kernel_onednn *cpu_kernel_onednn_get(void)
{
  if (!atomic_load(&loaded)) {
    cx_lock(&loading);
    if (!atomic_load(&loaded)) load();
    atomic_store(&loaded, true);
    cx_unlock(&loading);
  }
  return usable ? &library : NULL;
}

void cpu_kernel_onednn_enter(const cpu_kernel_onednn *d, cpu_threads *pool)
{
  if (alone != 0 || (d->pooled && pool == NULL)) {
    alone++;
  } else if (d->pooled) {
    cpu_threads_enter(pool);
  } else {
    d->omp_set_threads(1);
  }
}

void cpu_kernel_onednn_leave(const cpu_kernel_onednn *d)
{
  if (alone != 0) {
    alone--;
  } else if (d->pooled) {
    cpu_threads_leave();
  }
}
