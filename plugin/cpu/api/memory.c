// api/memory: the memory of tensors.
//
// New memory costs a page fault for each 4 KiB, which for large tensors takes
// longer than the computation. So a device caches freed blocks, in size classes
// of four to a power of two. It caches a block as long as its total is not
// above the peak of the memory in use, or the cache is small. Blocks are
// aligned to 64 bytes. All but small ones are cut one after the other from
// regions of huge pages: a loop that reads several tensors otherwise spends
// most of its time on looking up small pages (decision 114).
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/alloc.h"

#define ALIGN 64
#define SMALLEST 64
#define KEPT_AT_LEAST ((size_t)64 << 20)
// Blocks from this size on are cut from regions: the sizes of their classes are
// multiples of a small page.
#define CUT ((size_t)16 << 10)
#define REGION ((size_t)32 << 20)

// Stored in the block itself while that is free.
struct cpu_api_free {
  cpu_api_free *next;
  void *raw;  // what cx_alloc gave; NULL: cut from a region
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

static void free_block(void *data, size_t size, void *raw)
{
  if (raw != NULL) {
    cx_free(raw);
  } else {
    cx_free_pages(data, size);
  }
}

static void drop_free(cpu_api_cache *cache)
{
  for (size_t c = 0; c < CPU_API_CLASSES; c++) {
    const size_t size = (4 + c % 4) * 16 << c / 4;
    while (cache->free[c] != NULL) {
      cpu_api_free *f = cache->free[c];
      cache->free[c] = f->next;
      free_block(f, size, f->raw);
    }
  }
  cache->free_bytes = 0;
}

static void drop_region(cpu_api_cache *cache)
{
  cx_free_pages(cache->region, cache->region_left);
  cache->region_left = 0;
}

void cpu_api_cache_free(cpu_api_cache *cache)
{
  drop_free(cache);
  drop_region(cache);
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

// The caller holds the lock.
static void *cut(cpu_api_cache *cache, size_t size)
{
  if (size > cache->region_left) {
    const size_t all = cx_whole_pages(size > REGION ? size : REGION);
    unsigned char *region = cx_alloc_pages(all);
    if (region == NULL) return NULL;
    drop_region(cache);
    cache->region = region;
    cache->region_left = all;
  }
  unsigned char *data = cache->region;
  cache->region += size;
  cache->region_left -= size;
  return data;
}

// Each block is an allocation of its own where tests count them.
static void *take_new(cpu_api_cache *cache, size_t size, void **out_raw)
{
  if (size >= CUT && !cx_alloc_exact()) {
    *out_raw = NULL;
    cx_lock(&cache->lock);
    void *data = cut(cache, size);
    cx_unlock(&cache->lock);
    return data;
  }
  unsigned char *raw = cx_alloc(size + ALIGN);
  if (raw == NULL) return NULL;
  *out_raw = raw;
  return raw + (ALIGN - (uintptr_t)raw % ALIGN) % ALIGN;
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
    data = take_new(cache, size, &raw);
    if (data == NULL) {
      cx_lock(&cache->lock);
      drop_free(cache);
      cx_unlock(&cache->lock);
      data = take_new(cache, size, &raw);
    }
    cx_lock(&cache->lock);
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
  if (!keep) free_block(block->data, size, block->raw);
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
