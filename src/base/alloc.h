// base/alloc: all heap memory of the library passes here, so that tests can
// fail the n-th allocation.
#ifndef CX_BASE_ALLOC_H
#define CX_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// NULL when there is no memory; 0 bytes gives a unique pointer.
void *cx_alloc(size_t bytes);
void *cx_calloc(size_t count, size_t bytes);  // zeroed; NULL on overflow too
void *cx_realloc(void *old, size_t bytes);    // NULL: old stays valid
void cx_free(void *p);
char *cx_strdup(const char *s);
char *cx_strndup(const char *s, size_t n);

// Zeroed memory of cx_whole_pages(bytes) bytes, aligned to CX_HUGE_PAGE; NULL
// when there is none. It consists of huge pages where the system has them: the
// first access to it is faster, and the processor finds its pages faster. It is
// freed whole or in parts, each a number of small pages.
#define CX_HUGE_PAGE ((size_t)2 << 20)
static inline size_t cx_whole_pages(size_t bytes)
{
  return (bytes + CX_HUGE_PAGE - 1) / CX_HUGE_PAGE * CX_HUGE_PAGE;
}
void *cx_alloc_pages(size_t bytes);
void cx_free_pages(void *p, size_t bytes);

// a * b and a + b; false where the result does not fit.
bool cx_mul_size(size_t a, size_t b, size_t *out);
bool cx_add_size(size_t a, size_t b, size_t *out);

// Grows *items (each of `bytes`) to hold at least `need`; false when there is
// no memory, then nothing changed.
bool cx_grow(void *items, size_t *capacity, size_t need, size_t bytes);

// Fault tests: the n-th allocation from now on (0 = the next) fails, once; -1
// switches it off.
void cx_alloc_fail_at(long n);
long cx_alloc_count(void);  // allocations so far
long cx_alloc_live(void);   // blocks not freed
// Block caches and slabs give out single blocks while this is set, so that
// every object is an allocation of its own.
void cx_alloc_set_exact(bool on);
bool cx_alloc_exact(void);

#endif
