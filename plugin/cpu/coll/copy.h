// coll/copy: copies results.
#ifndef CPU_COLL_COPY_H
#define CPU_COLL_COPY_H

#include <stddef.h>

// The function that copies blocks of a result of this total size. Large results
// are written with non-temporal stores.
typedef void cpu_coll_copy(void *to, const void *from, size_t bytes);
cpu_coll_copy *cpu_coll_copy_of(size_t result_bytes);

#endif
