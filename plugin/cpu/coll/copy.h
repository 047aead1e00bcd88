// coll/copy: writing results.
#ifndef CPU_COLL_COPY_H
#define CPU_COLL_COPY_H

#include <stddef.h>

// How to write a result of this size, a block at a time: what is larger than
// the caches goes past them.
typedef void cpu_coll_copy(void *to, const void *from, size_t bytes);
cpu_coll_copy *cpu_coll_copy_of(size_t result_bytes);

#endif
