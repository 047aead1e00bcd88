// base/alloc: malloc with a switch that fails the n-th call.
//
// Counting is always on: two relaxed atomic additions per block. Fault tests
// depend on every allocation of the library passing here.
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long total;
static atomic_long live;
static atomic_long fail_at = -1;
static atomic_bool exact;

// Whether this allocation is the one that is to fail.
static bool must_fail(void)
{
  if (atomic_load_explicit(&fail_at, memory_order_relaxed) < 0) return false;
  return atomic_fetch_sub(&fail_at, 1) == 0;
}

static void *counted(void *p)
{
  if (p != NULL) {
    atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  }
  return p;
}

void *cx_alloc(size_t bytes)
{
  if (must_fail() || bytes > PTRDIFF_MAX) return NULL;
  return counted(malloc(bytes != 0 ? bytes : 1));
}

void *cx_calloc(size_t count, size_t bytes)
{
  if (must_fail()) return NULL;
  size_t all;
  if (!cx_mul_size(count, bytes, &all)) return NULL;
  return counted(calloc(1, all != 0 ? all : 1));
}

void *cx_realloc(void *old, size_t bytes)
{
  if (old == NULL) return cx_alloc(bytes);
  if (must_fail()) return NULL;
  void *p = realloc(old, bytes != 0 ? bytes : 1);
  if (p != NULL) atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
  return p;
}

void cx_free(void *p)
{
  if (p == NULL) return;
  atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  free(p);
}

void *cx_alloc_pages(size_t bytes)
{
  if (must_fail() || bytes > PTRDIFF_MAX - 2 * CX_HUGE_PAGE) return NULL;
  bytes = cx_whole_pages(bytes);
  unsigned char *p = mmap(NULL, bytes + CX_HUGE_PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  const size_t before =
      (CX_HUGE_PAGE - (uintptr_t)p % CX_HUGE_PAGE) % CX_HUGE_PAGE;
  cx_free_pages(p, before);
  cx_free_pages(p + before + bytes, CX_HUGE_PAGE - before);
  (void)madvise(p + before, bytes, MADV_HUGEPAGE);
  return p + before;
}

void cx_free_pages(void *p, size_t bytes)
{
  if (bytes == 0 || munmap(p, bytes) == 0) return;
  // The process has as many mappings as it may: the address stays in use, the
  // memory does not.
  (void)madvise(p, bytes, MADV_DONTNEED);
}

char *cx_strdup(const char *s)
{
  return cx_strndup(s, strlen(s));
}

char *cx_strndup(const char *s, size_t n)
{
  char *copy = cx_alloc(n + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, s, n);
  copy[n] = '\0';
  return copy;
}

bool cx_mul_size(size_t a, size_t b, size_t *out)
{
  return !__builtin_mul_overflow(a, b, out);
}

bool cx_add_size(size_t a, size_t b, size_t *out)
{
  return !__builtin_add_overflow(a, b, out);
}

bool cx_grow(void *items, size_t *capacity, size_t need, size_t bytes)
{
  if (need <= *capacity) return true;
  size_t wanted = *capacity < 8 ? 8 : *capacity + *capacity / 2;
  if (wanted < need) wanted = need;
  size_t size;
  if (!cx_mul_size(wanted, bytes, &size)) return false;
  void *old;
  memcpy(&old, items, sizeof old);
  void *grown = cx_realloc(old, size);
  if (grown == NULL) return false;
  memcpy(items, &grown, sizeof grown);
  *capacity = wanted;
  return true;
}

void cx_alloc_fail_at(long n)
{
  atomic_store(&fail_at, n);
}
long cx_alloc_count(void)
{
  return atomic_load(&total);
}
long cx_alloc_live(void)
{
  return atomic_load(&live);
}
void cx_alloc_set_exact(bool on)
{
  atomic_store(&exact, on);
}
bool cx_alloc_exact(void)
{
  return atomic_load_explicit(&exact, memory_order_relaxed);
}
