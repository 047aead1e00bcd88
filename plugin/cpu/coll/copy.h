// coll/copy: writing results.
#ifndef CX_COLL_COPY_H
#define CX_COLL_COPY_H

#include <stddef.h>

// How to write a result of this size, a block at a time: what is larger than
// the caches goes past them.
typedef void cx_coll_copy(void *to, const void *from, size_t bytes);
cx_coll_copy *cx_coll_copy_of(size_t result_bytes);

#endif
