// train/self: what a module's functions keep on a rank. A `self_size` of
// another struct, as of a pointer to it, would let them write over other
// memory.
#include <string.h>

#include "base/alloc.h"
#include "train/internal.h"

enum { GUARD_BYTES = 1024, GUARD = 0xa5 };

void *cx_train_self_new(size_t size)
{
  unsigned char *self = cx_calloc(1, size + GUARD_BYTES);
  if (self != NULL) memset(self + size, GUARD, GUARD_BYTES);
  return self;
}

calx_status *cx_train_self_check(const void *self, size_t size,
                                 const char *function)
{
  const unsigned char *guard = (const unsigned char *)self + size;
  for (size_t i = 0; i < GUARD_BYTES; i++) {
    if (guard[i] == GUARD) continue;
    return cx_invalid(
        "`%s()` wrote behind its `self`, which has %zu bytes: `.self_size` is "
        "the size of the struct that `self` points to",
        function, size);
  }
  return NULL;
}
