// api/memory: the memory of tensors.
//
// New memory costs a page fault for each 4 KiB, which for large tensors takes
// longer than the computation. So a device caches freed blocks, in size classes
// of four to a power of two. It caches a block as long as its total is not
// above the peak of the memory in use, or the cache is small. Blocks are
// aligned to 64 bytes.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/api.h"
#include "base/alloc.h"

#define ALIGN 64
#define SMALLEST 64
#define HUGE_PAGE ((size_t)2 << 20)
#define KEPT_AT_LEAST ((size_t)64 << 20)

// Stored in the block itself while that is free.
struct cpu_api_free {
  cpu_api_free *next;
  void *raw;
};

// ---- sizes ----

// The call takes a microsecond, so it is made once.
size_t cpu_api_total_memory(void)
{
  static atomic_size_t total;
  size_t known = atomic_load_explicit(&total, memory_order_relaxed);
  if (known != 0) return known;
  long pages = sysconf(_SC_PHYS_PAGES);
  long size = sysconf(_SC_PAGESIZE);
  known = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX / 4;
  atomic_store_explicit(&total, known, memory_order_relaxed);
  return known;
}

// Class c holds blocks of (4 + c % 4) * 16 << (c / 4) bytes: 64, 80, 96, 112,
// 128, 160 …
static size_t class_of(size_t bytes, size_t *out_size)
{
  if (bytes <= SMALLEST) {
    *out_size = SMALLEST;
    return 0;
  }
  const unsigned top = 63 - (unsigned)__builtin_clzll((bytes - 1) / 16);
  unsigned shift = top - 2;
  size_t quarters = ((bytes - 1) / 16 >> shift) + 1;  // 5 … 8
  *out_size = quarters * 16 << shift;
  return quarters == 8 ? (shift + 1) * 4 : shift * 4 + quarters - 4;
}

// ---- the cache ----

void cpu_api_cache_init(cpu_api_cache *cache)
{
  cx_mutex_init(&cache->lock);
}

static void drop_free(cpu_api_cache *cache)
{
  for (size_t c = 0; c < CPU_API_CLASSES; c++) {
    while (cache->free[c] != NULL) {
      cpu_api_free *f = cache->free[c];
      cache->free[c] = f->next;
      cx_free(f->raw);
    }
  }
  cache->free_bytes = 0;
}

void cpu_api_cache_free(cpu_api_cache *cache)
{
  drop_free(cache);
  cx_mutex_free(&cache->lock);
}

static void *take_free(cpu_api_cache *cache, size_t class, size_t size,
                       void **out_raw)
{
  cpu_api_free *f = cache->free[class];
  if (f == NULL) return NULL;
  cache->free[class] = f->next;
  cache->free_bytes -= size;
  *out_raw = f->raw;
  return f;
}

static void *take_new(size_t size, void **out_raw)
{
  size_t align = size >= HUGE_PAGE ? HUGE_PAGE : ALIGN;
  unsigned char *raw = cx_alloc(size + align);
  if (raw == NULL) return NULL;
  *out_raw = raw;
  unsigned char *data = raw + (align - (uintptr_t)raw % align) % align;
  if (align == HUGE_PAGE) {
    (void)madvise(data, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  }
  return data;
}

static void count(cpu_api_cache *cache, size_t size)
{
  cache->in_use += size;
  cache->n_allocs++;
  if (cache->in_use > cache->peak) cache->peak = cache->in_use;
  if (size > cache->largest) cache->largest = size;
}

static calx_status *no_memory(size_t bytes)
{
  return cx_error(CALX_RESOURCE_EXHAUSTED,
                  "no memory for a tensor of %zu bytes", bytes);
}

calx_status *cpu_api_block_new(cpu_api_cache *cache, size_t bytes,
                               cpu_api_block *out)
{
  *out = (cpu_api_block){ .kind = CPU_API_BLOCK_NONE };
  size_t size = 0;
  if (bytes > cpu_api_total_memory()) return no_memory(bytes);
  size_t class = class_of(bytes, &size);
  void *raw = NULL;
  cx_lock(&cache->lock);
  void *data = take_free(cache, class, size, &raw);
  if (data != NULL) count(cache, size);
  cx_unlock(&cache->lock);
  if (data == NULL) {
    data = take_new(size, &raw);
    cx_lock(&cache->lock);
    if (data == NULL) {
      drop_free(cache);
      data = take_new(size, &raw);
    }
    if (data != NULL) count(cache, size);
    cx_unlock(&cache->lock);
  }
  if (data == NULL) return no_memory(bytes);
  *out = (cpu_api_block){ .data = data,
                          .capacity = size,
                          .kind = CPU_API_BLOCK_OWN,
                          .writable = true,
                          .raw = raw };
  return NULL;
}

static void give_back(cpu_api_cache *cache, const cpu_api_block *block)
{
  size_t size = 0;
  size_t class = class_of(block->capacity, &size);
  cx_lock(&cache->lock);
  cache->in_use -= size;
  size_t held = cache->in_use + cache->free_bytes + size;
  bool keep =
      !cx_alloc_exact() && class < CPU_API_CLASSES &&
      (held <= cache->peak || cache->free_bytes + size <= KEPT_AT_LEAST);
  if (keep) {
    cpu_api_free *f = block->data;
    f->next = cache->free[class];
    f->raw = block->raw;
    cache->free[class] = f;
    cache->free_bytes += size;
  }
  cx_unlock(&cache->lock);
  if (!keep) cx_free(block->raw);
}

void cpu_api_block_release(cpu_api_cache *cache, cpu_api_block *block)
{
  cpu_api_block old = *block;
  *block = (cpu_api_block){ .kind = CPU_API_BLOCK_NONE };
  switch (old.kind) {
    case CPU_API_BLOCK_NONE: break;
    case CPU_API_BLOCK_OWN: give_back(cache, &old); break;
    case CPU_API_BLOCK_BORROWED:
      cpu_api_event_set(old.done, NULL);
      cpu_api_event_release(old.done);
      break;
    case CPU_API_BLOCK_VIEW:
      if (old.on_delete != NULL) old.on_delete(old.data, old.on_delete_user);
      break;
  }
}
